"""take and take_along_axis against NumPy; take from quantized arrays against gguf."""

import gguf
import ml_dtypes
import numpy as np
import pytest
from values import check, numbers

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = [np.int8, np.int64, np.uint8, np.uint64]


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("index_dtype", INTEGERS)
@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.complex64, bfloat16], ids=str)
def test_take_is_that_of_numpy(dtype, index_dtype, axis):
    x = numbers((3, 4, 5), dtype)
    indices = np.array([2, 0, 0, 1], index_dtype)
    expected = np.take(x, indices.astype(np.int64), axis)
    check(xp.take(on_cpu(x), on_cpu(indices), axis=axis), expected)


def test_take_counts_negative_indices_from_the_end():
    check(xp.take(on_cpu([5, 6, 7]), on_cpu([-1, -3])), [7, 5])
    check(xp.take(on_cpu([5, 6, 7]), on_cpu(np.zeros(0, np.int64))), np.zeros(0, np.int64))


def test_take_with_indices_of_several_axes():
    x = numbers((3, 4), np.float64)
    indices = np.array([[0, 1], [2, 2]])
    check(xp.take(on_cpu(x), on_cpu(indices), axis=0), x[indices])


def test_take_is_a_copy():
    x = on_cpu([1.0, 2.0])
    xp.take(x, on_cpu([0, 1]))[0] = 9.0
    check(x, [1.0, 2.0])


@pytest.mark.parametrize("index", [3, -4, 2**62])
def test_an_index_out_of_range_raises(index):
    with pytest.raises(IndexError):
        xp.take(on_cpu([1, 2, 3]), on_cpu([index]))
    with pytest.raises(IndexError):
        xp.take_along_axis(on_cpu([1, 2, 3]), on_cpu([index]))


def test_a_huge_unsigned_index_does_not_wrap_round():
    huge = on_cpu([2**64 - 1], np.uint64)
    with pytest.raises(IndexError):
        xp.take(on_cpu([1, 2, 3]), huge)
    with pytest.raises(IndexError):
        xp.take_along_axis(on_cpu([1, 2, 3]), huge)


def test_take_raises():
    x = on_cpu(np.ones((2, 2)))
    with pytest.raises(ValueError, match="an axis has to be named"):
        xp.take(x, on_cpu([0]))
    with pytest.raises(ValueError, match="out of bounds"):
        xp.take(x, on_cpu([0]), axis=2)
    for indices in (on_cpu([0.0]), on_cpu([True])):
        with pytest.raises(TypeError, match="integer"):
            xp.take(x, indices, axis=0)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("index_dtype", INTEGERS)
def test_take_along_axis_is_that_of_numpy(axis, index_dtype):
    x = numbers((3, 4), np.float64)
    indices = np.argsort(x, axis)
    result = xp.take_along_axis(on_cpu(x), on_cpu(indices, index_dtype), axis=axis)
    check(result, np.sort(x, axis))


def test_take_along_axis_takes_the_last_axis_and_broadcasts_the_others():
    x = on_cpu([[1, 2, 3], [4, 5, 6]])
    check(xp.take_along_axis(x, on_cpu([[2, -3]])), [[3, 1], [6, 4]])
    with pytest.raises(ValueError, match="indices of shape"):
        xp.take_along_axis(x, on_cpu([0]))
    with pytest.raises(ValueError, match="out of bounds"):
        xp.take_along_axis(x, on_cpu([[0]]), axis=2)
    with pytest.raises(TypeError, match="integer"):
        xp.take_along_axis(x, on_cpu([[0.0]]))


def test_take_from_a_quantized_array_takes_its_blocks():
    x = numbers((5, 64), np.float32)
    data = gguf.quantize(x, gguf.GGMLQuantizationType.Q8_0)
    decoded = gguf.dequantize(data, gguf.GGMLQuantizationType.Q8_0)
    quantized = xp.quantized_from_bytes(data, xp.q8_0, x.shape, device="cpu")
    rows = xp.take(quantized, on_cpu([[4, 0], [-1, 2]]), axis=0)
    assert rows.dtype == xp.q8_0
    assert rows.device == "cpu"
    check(xp.dequantize(rows), decoded[np.array([[4, 0], [-1, 2]])], np.float32)
    with pytest.raises(TypeError, match="dequantize"):
        xp.take(quantized, on_cpu([0]), axis=1)
    with pytest.raises(IndexError):
        xp.take(quantized, on_cpu([5]), axis=0)
    with pytest.raises(TypeError, match="dequantize"):
        xp.take_along_axis(quantized, on_cpu([[0]]))


def test_results_are_on_the_joined_device():
    blas = xp.asarray(np.array([1.0, 2.0]), device="blas")
    check(xp.take(blas, on_cpu([1])), [2.0], device="blas")
    check(xp.take_along_axis(blas, on_cpu([1])), [2.0], device="blas")
