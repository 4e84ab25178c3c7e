"""Searching functions against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = [np.int8, np.uint64, np.float32, np.float64, np.float16, bfloat16]


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_argmax_and_argmin_are_those_of_numpy(dtype, axis, keepdims):
    x = numbers((4, 5), dtype)
    for name in ("argmax", "argmin"):
        expected = getattr(np, name)(x.astype(np.float64), axis=axis, keepdims=keepdims)
        check(getattr(xp, name)(on_cpu(x), axis=axis, keepdims=keepdims), expected, np.int64)


@pytest.mark.parametrize("dtype", [np.float32, bfloat16], ids=str)
def test_the_first_of_equals_is_found_and_nan_counts_as_extreme(dtype):
    check(xp.argmax(on_cpu([1, 3, 3], dtype)), 1)
    check(xp.argmin(on_cpu([2, 1, 1], dtype)), 1)
    check(xp.argmax(on_cpu([1, np.nan, 3, np.nan], dtype)), 1)
    check(xp.argmin(on_cpu([1, np.nan, 0], dtype)), 1)


def test_argmax_raises_for_no_elements_and_no_axis():
    with pytest.raises(ValueError, match="empty"):
        xp.argmax(on_cpu(np.ones(0)))
    for axis in (0, -1):
        with pytest.raises(ValueError, match="out of bounds"):
            xp.argmin(on_cpu(1.0), axis=axis)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), ()])
@pytest.mark.parametrize("dtype", [*DTYPES, np.bool_, np.complex64], ids=str)
def test_count_nonzero_is_that_of_numpy(dtype, axis):
    x = numbers((4, 5), dtype) * numbers((4, 5), np.bool_, seed=1).astype(dtype)
    for keepdims in (False, True):
        result = xp.count_nonzero(on_cpu(x), axis=axis, keepdims=keepdims)
        check(result, (x != 0).sum(axis, keepdims=keepdims), np.int64)
    with pytest.raises(ValueError, match="out of bounds"):
        xp.count_nonzero(on_cpu(1), axis=0)


def test_complex_numbers_are_nonzero_by_either_part_and_nan_is():
    x = [0, 1j, 1, np.nan, -0.0]
    check(xp.count_nonzero(on_cpu(x)), 3)
    (places,) = xp.nonzero(on_cpu(x))
    check(places, [1, 2, 3], np.int64)


def test_nonzero_gives_an_array_an_axis():
    result = xp.nonzero(on_cpu([[0, 5], [6, 0], [7, 8]]))
    assert type(result) is tuple
    check(result[0], [0, 1, 2, 2], np.int64)
    check(result[1], [1, 0, 0, 1], np.int64)
    with pytest.raises(ValueError, match="no axes"):
        xp.nonzero(on_cpu(1))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_searchsorted_counts_what_is_less(dtype, side):
    x1 = np.sort(numbers(30, dtype).astype(np.float64))
    x2 = numbers((4, 5), dtype, seed=1).astype(np.float64)
    less = x1 < x2[..., None] if side == "left" else x1 <= x2[..., None]
    result = xp.searchsorted(on_cpu(x1, dtype), on_cpu(x2, dtype), side=side)
    check(result, less.sum(-1), np.int64)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.uint64])
def test_searchsorted_with_a_sorter(dtype):
    x1, order = on_cpu([3.0, 1.0, 2.0]), on_cpu([1, 2, 0], dtype)
    check(xp.searchsorted(x1, on_cpu([0.5, 2.0, 9.0]), sorter=order), [0, 1, 3], np.int64)
    with pytest.raises(ValueError, match="differ"):
        xp.searchsorted(x1, on_cpu([1.0]), sorter=order[:2])
    with pytest.raises(TypeError, match="integer"):
        xp.searchsorted(x1, on_cpu([1.0]), sorter=x1)


def test_searchsorted_takes_a_scalar_in_the_dtype_of_the_array():
    tenth = on_cpu([0.1], np.float32)  # more than the float64 of that name
    check(xp.searchsorted(tenth, 0.1, side="right"), 1, np.int64)
    check(xp.searchsorted(on_cpu([1, 2, 3]), 2), 1, np.int64)
    check(xp.searchsorted(on_cpu([1, 2, 3]), 2.5), 2, np.int64)
    check(xp.searchsorted(on_cpu([0.1], bfloat16), 0.1, side="right"), 1, np.int64)
    with pytest.raises(OverflowError):
        xp.searchsorted(on_cpu([1, 2], np.uint8), 300)


def test_searchsorted_raises():
    with pytest.raises(ValueError, match="one axis"):
        xp.searchsorted(on_cpu(np.ones((2, 2))), on_cpu([1.0]))
    with pytest.raises(ValueError, match="side"):
        xp.searchsorted(on_cpu([1.0]), on_cpu([1.0]), side="middle")
    with pytest.raises(TypeError):
        xp.searchsorted(on_cpu([1.0]), "a")


CHOICES = {
    "two arrays": (np.float32, np.float64, np.float64),
    "integers": (np.int8, np.uint8, np.int16),
    "half": (np.float16, bfloat16, np.float32),
    "half and integer": (bfloat16, np.int8, bfloat16),
    "complex": (np.float32, np.complex64, np.complex64),
}


@pytest.mark.parametrize(("dtype1", "dtype2", "dtype"), CHOICES.values(), ids=CHOICES)
def test_where_chooses_and_promotes(dtype1, dtype2, dtype):
    condition = np.array([[True], [False]])
    x1, x2 = numbers((2, 3), dtype1), numbers(3, dtype2, seed=1)
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    expected = np.where(condition, x1.astype(wide), x2.astype(wide))
    result = xp.where(on_cpu(condition), on_cpu(x1), on_cpu(x2))
    check(result, expected.astype(dtype), dtype)


WEAK = [
    (np.float32, 1, np.float32),
    (np.float32, 0.1, np.float32),
    (np.float32, True, np.float32),
    (np.float32, 1j, np.complex64),
    (np.float16, 0.5, np.float16),
    (bfloat16, 0.5, bfloat16),
    (bfloat16, 2, bfloat16),
    (bfloat16, 1j, np.complex64),
    (np.uint8, 2, np.uint8),
    (np.bool_, False, np.bool_),
    (np.int8, 0.5, np.float64),
]


@pytest.mark.parametrize(("dtype", "scalar", "expected"), WEAK, ids=str)
def test_a_python_scalar_in_where_is_weak(dtype, scalar, expected):
    condition, x = on_cpu([True, False]), on_cpu([1, 1], dtype)
    scalar_there = np.asarray(scalar).astype(expected)
    check(xp.where(condition, x, scalar), np.array([1, scalar_there], expected), expected)
    check(xp.where(condition, scalar, x), np.array([scalar_there, 1], expected), expected)


@pytest.mark.parametrize("scalars", [(1, 2), (0.5, 0), (True, 2.0), (False, True), (3, 1j)])
def test_where_chooses_between_python_scalars(scalars):
    condition = np.array([True, False])
    check(xp.where(on_cpu(condition), *scalars), np.where(condition, *scalars))


def test_where_of_a_condition_alone_gives_its_indices():
    condition = np.array([[True, False, True], [False, True, False]])
    for result, expected in zip(xp.where(on_cpu(condition)), np.nonzero(condition), strict=True):
        check(result, expected)


def test_where_raises_and_never_wraps():
    yes = on_cpu([True])
    for scalar in (300, -1):
        with pytest.raises(OverflowError):
            xp.where(yes, on_cpu([1], np.uint8), scalar)
    with pytest.raises(TypeError, match="Array is wanted"):
        xp.where(yes, 1, "2")
    with pytest.raises(TypeError, match="Array is wanted"):
        xp.where(yes, 1)
    with pytest.raises(TypeError, match="Array is wanted"):
        xp.where(True, yes, yes)
    with pytest.raises(ValueError, match="broadcast"):
        xp.where(on_cpu([True, False]), on_cpu([1.0, 2.0, 3.0]), on_cpu([1.0]))


def test_results_are_on_the_joined_device():
    blas, cpu = xp.asarray([1.0, 2.0], device="blas"), on_cpu([True, False])
    check(xp.where(cpu, blas, 0.0), [1.0, 0.0], device="blas")
    check(xp.where(cpu, 0.0, on_cpu([1.0, 2.0])), [0.0, 2.0])
    check(xp.argmax(blas), 1, device="blas")
    check(xp.searchsorted(on_cpu([1.5]), blas), [0, 1], device="blas")


def test_a_pending_operand_is_computed():
    x = numbers((3, 3), np.float64)
    product = on_cpu(x) @ on_cpu(x)
    check(xp.where(product > 0.0, product, 0.0), np.maximum(x @ x, 0), rtol=1e-12, atol=1e-12)
