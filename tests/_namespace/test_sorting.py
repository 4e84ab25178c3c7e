"""Sorting against Python's sort, which is stable both ways."""

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = [np.bool_, np.int8, np.uint64, np.float32, np.float64, np.float16, bfloat16]


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


def python_argsort(x, axis, descending):
    def one(vector):
        values = vector.tolist()
        return np.array(sorted(range(len(values)), key=values.__getitem__, reverse=descending))

    return np.apply_along_axis(one, axis, x)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sort_and_argsort_are_stable_by_default(dtype, axis, descending):
    x = np.round(numbers((20, 7), np.float64))  # many are equal
    x = (np.abs(x) if np.dtype(dtype).kind in "ub" else x).astype(dtype)
    order = python_argsort(x, axis, descending)
    options = {"axis": axis, "descending": descending}
    check(xp.argsort(on_cpu(x), **options), order, np.int64)
    check(xp.sort(on_cpu(x), **options), np.take_along_axis(x, order, axis), dtype)


@pytest.mark.parametrize("descending", [False, True])
def test_unstable_sorting_sorts(descending):
    x = np.random.default_rng(0).permutation(100).astype(np.float64)
    expected = np.arange(100.0)[:: -1 if descending else 1]
    options = {"descending": descending, "stable": False}
    check(xp.sort(on_cpu(x), **options), expected)
    check(on_cpu(x)[xp.argsort(on_cpu(x), **options)], expected)


def test_the_last_axis_is_sorted_by_default():
    check(xp.sort(on_cpu([[3, 1], [2, 0]])), [[1, 3], [0, 2]])
    check(xp.argsort(on_cpu([0, 1, 0]), descending=True), [1, 0, 2], np.int64)


def test_sort_and_argsort_agree_on_signed_zeros():
    x = on_cpu([0.0, -0.0, 0.0])
    for descending in (False, True):
        signs = np.signbit(np.asarray(xp.sort(x, descending=descending)))
        np.testing.assert_array_equal(signs, [False, True, False])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16], ids=str)
def test_nans_come_last_and_first_where_descending(dtype):
    x = on_cpu([2, np.nan, 1], dtype)
    check(xp.sort(x), np.array([1, 2, np.nan]), dtype)
    check(xp.sort(x, descending=True), np.array([np.nan, 2, 1]), dtype)
    check(xp.argsort(x), [2, 0, 1], np.int64)


def test_complex_numbers_are_ordered_by_real_then_imaginary_part():
    check(xp.sort(on_cpu([2, 1 + 1j, 1 - 1j])), [1 - 1j, 1 + 1j, 2])


def test_the_operand_stays_and_the_result_is_fresh():
    x = on_cpu([3, 1, 2])
    result = xp.sort(x, descending=True)
    result[0] = 9
    check(x, [3, 1, 2])
    one = on_cpu([1.0])
    xp.sort(one)[0] = 5.0
    check(one, [1.0])


def test_no_elements_and_no_axes():
    for descending in (False, True):
        check(xp.sort(on_cpu(np.ones((0, 3))), axis=0, descending=descending), np.ones((0, 3)))
        result = xp.argsort(on_cpu(np.ones((2, 0))), descending=descending)
        check(result, np.ones((2, 0), np.int64))
        for function in (xp.sort, xp.argsort):
            with pytest.raises(ValueError, match="out of bounds"):
                function(on_cpu(1.0), descending=descending)
            with pytest.raises(ValueError, match="out of bounds"):
                function(on_cpu([1.0]), axis=1, descending=descending)


def test_results_are_on_the_device_of_the_operand(device):
    x = xp.asarray(np.array([2.0, 1.0]), device=device)
    check(xp.sort(x), [1.0, 2.0], device=device)
    check(xp.argsort(x), [1, 0], np.int64, device=device)
