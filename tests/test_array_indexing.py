"""Reading and writing through indexes, iteration, and conversion to Python scalars."""

import operator

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, zeros_q8_0

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
VALUE = numbers((3, 4, 5), np.float64)
MASK = VALUE > 0
ROWS = np.array([2, 0, 2])
BASIC = [
    0,
    -1,
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(5, 9),
    ...,
    None,
    (),
    (1, 2, 3),
    (1, slice(1, 3)),
    (..., 2),
    (..., None, slice(None, None, 2)),
    (None, 1, ..., None, -1),
    (slice(None), slice(2, 0, -1), slice(1, 4, 2)),
    np.int64(1),
    (np.uint8(2), slice(0, 2)),
]
ADVANCED = [
    ROWS,
    ROWS.astype(np.uint8),
    np.array(1),
    (ROWS, ROWS),
    (slice(None), ROWS),
    (ROWS, slice(1, 3)),
    (ROWS, ..., 1),
    (ROWS[:, None], ROWS),
    (0, ROWS, None),
    (..., np.array([[0, -1]])),
    MASK,
    MASK[:, 0, 0],
    (slice(None), MASK[0, :, 0]),
    (MASK[:, :, 0], 2),
    np.array(True),
    np.zeros(0, np.int64),
]


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


def pending(value):
    """A pending array of this value, of 2 or more axes."""
    value = np.asarray(value)
    x = on_cpu(np.eye(value.shape[-2]), value.dtype) @ on_cpu(value)
    assert xp.is_pending(x)
    return x


MAKERS = pytest.mark.parametrize("make", [on_cpu, pending], ids=["plain", "pending"])


def with_arrays(key):
    """The same key with Arrays in place of ndarrays."""
    if isinstance(key, tuple):
        return tuple(with_arrays(each) for each in key)
    return on_cpu(key) if isinstance(key, np.ndarray) else key


@MAKERS
@pytest.mark.parametrize("key", [*BASIC, *ADVANCED], ids=str)
def test_getitem(make, key):
    expected = VALUE[key]
    check(make(VALUE)[key], expected)
    check(make(VALUE)[with_arrays(key)], expected)


@MAKERS
@pytest.mark.parametrize("key", [*BASIC, *ADVANCED], ids=str)
@pytest.mark.parametrize("indirect", [False, True], ids=["ndarrays", "Arrays"])
def test_setitem(make, key, indirect):
    selected = VALUE[key]
    for right in (7.0, numbers(selected.shape, np.float64, 5), np.array(3.0)):
        expected = VALUE.copy()
        expected[key] = right
        for value in (right, on_cpu(right), numbers((), np.float32, 1) * 0 + right):
            x = make(VALUE)
            x[with_arrays(key) if indirect else key] = value
            check(x, expected)


@pytest.mark.parametrize("key", BASIC[:-2], ids=str)
def test_basic_indexing_of_a_pending_array_waits(key):
    part = pending(VALUE)[key]
    assert xp.is_pending(part) == (VALUE[key].ndim > 0)
    assert part.shape == VALUE[key].shape


@MAKERS
def test_basic_indexing_gives_views(make):
    x = make(VALUE)
    part = x[1, ::2]
    part[...] = 0.0
    expected = VALUE.copy()
    expected[1, ::2] = 0.0
    check(x, expected)
    part += on_cpu(np.ones(5))
    expected[1, ::2] = 1.0
    check(x, expected)


@MAKERS
def test_indexing_with_arrays_gives_copies(make):
    x = make(VALUE)
    x[on_cpu(ROWS)][...] = 0.0
    x[on_cpu(MASK)][...] = 0.0
    check(x, VALUE)


def test_setitem_of_a_pending_value():
    x = on_cpu(np.zeros((2, 4, 5)))
    x[0] = pending(VALUE)[1]
    check(x, np.stack([VALUE[1], np.zeros((4, 5))]))


def test_setitem_changes_no_product_recorded_before():
    x = on_cpu(VALUE[0, :4, :4])
    product = x @ x
    x[0] = 9.0
    check(product, VALUE[0, :4, :4] @ VALUE[0, :4, :4], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, bfloat16, np.complex64], ids=str)
def test_indexing_keeps_the_dtype(dtype):
    value = numbers((3, 4), dtype)
    x = on_cpu(value)
    check(x[1:, on_cpu([0, 2])], value[1:, [0, 2]])
    x[0] = x[1]
    value[0] = value[1]
    check(x, value)


@MAKERS
@pytest.mark.parametrize(
    "key", [3, -4, (0, 4), (0, 0, 0, 0), (..., ...), 1.0, "a", ROWS * 1.0], ids=str
)
def test_bad_indexes_raise(make, key):
    x = make(VALUE)
    with pytest.raises(IndexError):
        x[key]
    with pytest.raises(IndexError):
        x[key] = 1.0
    check(x, VALUE)


@MAKERS
def test_bad_values_raise_and_change_nothing(make):
    x = make(VALUE)
    with pytest.raises(ValueError, match="broadcast"):
        x[0] = on_cpu(np.ones(3))
    with pytest.raises(TypeError):
        x[0] = 1j
    with pytest.raises(TypeError, match="dequantize"):
        x[0] = zeros_q8_0((4, 32))
    check(x, VALUE)
    small = make(np.ones((2, 2), np.int8))
    with pytest.raises(OverflowError):
        small[0] = 300
    check(small, np.ones((2, 2), np.int8))


def test_quantized_arrays_are_not_written():
    with pytest.raises(TypeError, match="dequantize"):
        zeros_q8_0((2, 32))[0] = 1.0


@MAKERS
def test_iteration(make):
    x = make(VALUE)
    assert len(x) == 3
    parts = list(x)
    assert len(parts) == 3
    for part, expected in zip(parts, VALUE, strict=True):
        check(part, expected)
    first, *_ = x
    first[...] = 0.0
    check(x[0], np.zeros((4, 5)))


def test_arrays_of_no_axes_have_no_length():
    x = on_cpu(1.0)
    with pytest.raises(TypeError, match="no axes"):
        len(x)
    with pytest.raises(TypeError, match="no axes"):
        iter(x)


# -- conversion to Python scalars ---------------------------------------------------------------

NUMBERS = [np.int8, np.uint64, np.float16, np.float32, np.float64, bfloat16]
SCALAR_TYPES = {
    bool: [np.bool_, *NUMBERS, np.complex64],
    int: [np.bool_, *NUMBERS],
    float: [np.bool_, *NUMBERS],
    complex: [np.bool_, *NUMBERS, np.complex64],
    operator.index: [np.int8, np.uint64],
}


@pytest.mark.parametrize(
    ("convert", "dtype"),
    [(convert, dtype) for convert, dtypes in SCALAR_TYPES.items() for dtype in dtypes],
)
def test_conversion(convert, dtype):
    for number in (0, 1) if dtype is np.bool_ else (0, 3):
        result = convert(on_cpu(number, dtype))
        assert result == (bool(number) if convert is bool else number)
        assert type(result) is (int if convert is operator.index else convert)
        if dtype is not np.bool_:
            row, column = on_cpu([number, 0], dtype), on_cpu([1, 1], dtype)
            product = row @ column
            assert xp.is_pending(product)
            assert convert(product) == result


def test_conversion_of_a_complex_number():
    assert complex(on_cpu(1 + 2j)) == 1 + 2j
    for convert in (int, float):
        with pytest.raises(TypeError):
            convert(on_cpu(1 + 2j))


@pytest.mark.parametrize("value", [1.0, True, 1j])
def test_only_integers_are_indexes(value):
    with pytest.raises(TypeError):
        operator.index(on_cpu(value))
    assert [10, 20][on_cpu(1)] == 20


@pytest.mark.parametrize("convert", [int, float, complex, operator.index])
@pytest.mark.parametrize("shape", [(1,), (1, 1), (2,), (0,)])
def test_only_arrays_of_no_axes_convert(convert, shape):
    with pytest.raises(TypeError, match="no axes"):
        convert(on_cpu(np.ones(shape, np.int64)))


def test_truth_of_several_elements_is_ambiguous():
    for shape in ((2,), (0,)):
        with pytest.raises(ValueError, match="ambiguous"):
            bool(on_cpu(np.ones(shape)))
    assert bool(on_cpu(float("nan"))) is True


def test_integers_of_what_is_no_number_raise():
    with pytest.raises(ValueError, match="NaN"):
        int(on_cpu(float("nan")))
    with pytest.raises(OverflowError):
        int(on_cpu(float("inf")))


def test_quantized_arrays_do_not_convert():
    with pytest.raises(TypeError, match="dequantize"):
        bool(zeros_q8_0((1, 32)))
