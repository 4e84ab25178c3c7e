"""Set functions against Python's and NumPy's."""

from collections import Counter

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, zeros_q8_0

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = [np.bool_, np.int8, np.uint64, np.float32, np.complex128, np.float16, bfloat16]


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


def order(number):
    return (complex(number).real, complex(number).imag)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (30,), (4, 5), (2, 3, 4)])
def test_unique_functions_count_and_lead_back(dtype, shape):
    x = np.asarray(np.round(numbers(shape, np.complex128 if dtype is np.complex128 else float)))
    x = x.astype(dtype) if np.dtype(dtype).kind != "u" else np.abs(x).astype(dtype)
    elements = x.reshape(-1).tolist()
    counts = Counter(elements)
    distinct = sorted(counts, key=order)

    result = xp.unique_all(on_cpu(x))
    assert result._fields == ("values", "indices", "inverse_indices", "counts")
    check(result.values, np.array(distinct, dtype), dtype)
    check(result.counts, np.array([counts[each] for each in distinct], np.int64))
    check(result.indices, np.array([elements.index(each) for each in distinct], np.int64))
    back = np.array([distinct.index(each) for each in elements], np.int64)
    check(result.inverse_indices, back.reshape(shape))

    by_counts, inverse = xp.unique_counts(on_cpu(x)), xp.unique_inverse(on_cpu(x))
    assert by_counts._fields == ("values", "counts")
    assert inverse._fields == ("values", "inverse_indices")
    check(xp.unique_values(on_cpu(x)), np.array(distinct, dtype), dtype)
    check(by_counts.values, np.array(distinct, dtype), dtype)
    check(by_counts.counts, np.asarray(result.counts))
    check(inverse.values, np.array(distinct, dtype), dtype)
    check(inverse.inverse_indices, back.reshape(shape))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, bfloat16], ids=str)
def test_nans_are_distinct_and_signed_zeros_are_not(dtype):
    x = on_cpu([np.nan, 0.0, -0.0, np.nan, 1.0], dtype)
    values, counts = xp.unique_counts(x)
    check(values, np.array([0, 1, np.nan, np.nan]), dtype)
    check(counts, [2, 1, 1, 1], np.int64)
    assert xp.unique_values(x).shape == (4,)


def test_complex_numbers_with_a_nan_are_distinct():
    x = on_cpu([complex(np.nan, 1), complex(np.nan, 1), complex(1, np.nan), 1])
    check(xp.unique_counts(x).counts, [1, 1, 1, 1], np.int64)


@pytest.mark.parametrize("dtype1", DTYPES, ids=str)
@pytest.mark.parametrize("dtype2", [np.int64, np.uint64, np.float64, bfloat16], ids=str)
@pytest.mark.parametrize("invert", [False, True])
def test_isin_compares_by_value(dtype1, dtype2, invert):
    x1 = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype1)
    x2 = np.array([1, 4, 4, 9]).astype(dtype2)
    among = set(x2.tolist())
    expected = np.array([[(each in among) != invert for each in row] for row in x1.tolist()])
    check(xp.isin(on_cpu(x1), on_cpu(x2), invert=invert), expected)


def test_isin_of_64_bit_integers_is_exact():
    large = 2**63 + 1
    unsigned, signed = on_cpu([large, 2**53 + 1, 5], np.uint64), on_cpu([-1, 2**53, 5], np.int64)
    check(xp.isin(unsigned, signed), [False, False, True])
    check(xp.isin(signed, unsigned), [False, False, True])
    check(xp.isin(unsigned, 2**63), [False, False, False])
    check(xp.isin(unsigned, large), [True, False, False])
    check(xp.isin(on_cpu([-1, 3]), on_cpu([2**64 - 1], np.uint64)), [False, False])


def test_isin_with_a_scalar():
    x = on_cpu([0, 200], np.uint8)
    check(xp.isin(x, 200), [False, True])
    check(xp.isin(x, 456), [False, False])  # 200 if it wrapped
    check(xp.isin(x, -1, invert=True), [True, True])
    check(xp.isin(200, x), True)
    check(xp.isin(2**70, x), False)
    check(xp.isin(on_cpu([0.1], np.float32), 0.1), [True])
    check(xp.isin(on_cpu([0.1], bfloat16), 0.1), [True])
    check(xp.isin(on_cpu([1, 2]), 1.5), [False, False])
    check(xp.isin(on_cpu([True, False]), True), [True, False])


def test_nan_is_in_nothing_and_nothing_is_in_an_empty_array():
    check(xp.isin(on_cpu([np.nan, 1.0]), on_cpu([np.nan, 1.0])), [False, True])
    check(xp.isin(on_cpu([1.0]), on_cpu(np.ones(0))), [False])
    check(xp.isin(on_cpu(np.ones((0, 2))), on_cpu([1.0])), np.ones((0, 2), bool))


def test_isin_raises():
    with pytest.raises(TypeError, match="Array is wanted"):
        xp.isin(1, 2)
    with pytest.raises(TypeError):
        xp.isin(on_cpu([1]), [1])
    with pytest.raises(TypeError, match="dequantize"):
        xp.unique_values(zeros_q8_0((1, 32)))


def test_results_are_on_the_device_of_the_operand(device):
    x = xp.asarray(np.array([2.0, 1.0, 2.0]), device=device)
    for part in (*xp.unique_all(x), *xp.unique_counts(x), *xp.unique_inverse(x)):
        assert part.device == device
    check(xp.isin(1.0, x), True, device=device)
