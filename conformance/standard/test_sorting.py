"""Sorting functions against Python's stable sort."""

import numpy as np
import pytest
from hypothesis import strategies as st

import ggarray as xp
from conformance.standard.references import (
    EXTENDED,
    LAYOUTS,
    REALS,
    check,
    given,
    kind_of,
    repeating,
    shapes,
    to_array,
    values,
    wide,
)

COVERS = ["argsort", "sort"]

REAL = [d for d in EXTENDED if kind_of(d) in "iuf"]


def place(element):
    """Return the key that sorts elements, NaN last."""
    return (element != element, 0 if element != element else element)


def order(column, descending):
    """Return the indices of a stable sort; a descending one keeps equal elements in order too."""
    indices = range(len(column))
    return sorted(indices, key=lambda at: place(column[at]), reverse=descending)


def orders(value, axis, descending):
    """Return the indices that sort an array along an axis."""
    columns = np.moveaxis(wide(value), axis, -1)
    found = np.empty(columns.shape, np.int64)
    for index in np.ndindex(*columns.shape[:-1]):
        found[index] = order(columns[index].tolist(), descending)
    return np.moveaxis(found, -1, axis)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@given(data=st.data())
def test_sort_and_argsort_are_those_of_python(dtype, data):
    shape = shapes(min_dims=1, max_dims=3, max_side=9)
    v = data.draw(values(dtype, shape) | repeating(dtype, shape))
    x = to_array(v, data.draw(st.sampled_from(list(LAYOUTS))))
    axis = data.draw(st.integers(-v.ndim, v.ndim - 1))
    for descending in (False, True):
        indices = orders(v, axis, descending)
        wanted = np.take_along_axis(v, indices, axis)
        kwargs = {"axis": axis, "descending": descending}
        check(xp.sort(x, **kwargs), wanted, zeros=False)
        check(xp.sort(x, **kwargs, stable=False), wanted, zeros=False)
        check(xp.argsort(x, **kwargs), indices)
        unstable = np.asarray(xp.argsort(x, **kwargs, stable=False))
        check(to_array(np.take_along_axis(v, unstable, axis)), wanted, zeros=False)
    if axis in (-1, v.ndim - 1):
        check(xp.argsort(x), orders(v, -1, False))
    check(x, v)


@pytest.mark.parametrize("size", [3, 17, 64, 1000])
@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_many_equal_elements_keep_their_order(dtype, size):
    v = np.random.default_rng(size).integers(0, 3, size).astype(dtype)
    for descending in (False, True):
        check(xp.argsort(to_array(v), descending=descending), orders(v, 0, descending))


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_zeros_are_equal_and_nan_is_last(dtype):
    v = np.array([0.0, np.nan, -0.0, np.inf, -0.0, np.nan, -np.inf, 0.0], dtype)
    x = to_array(v)
    check(xp.argsort(x), [6, 0, 2, 4, 7, 3, 1, 5])
    check(xp.sort(x), v[[6, 0, 2, 4, 7, 3, 1, 5]])
    check(xp.argsort(x, descending=True), [1, 5, 3, 0, 2, 4, 7, 6])
    check(xp.sort(x, descending=True), v[[1, 5, 3, 0, 2, 4, 7, 6]])


@pytest.mark.parametrize("function", [xp.sort, xp.argsort])
def test_axes_that_are_not_there_raise(function):
    for shape, axis in (((2, 3), 2), ((2, 3), -3), ((), -1), ((), 0)):
        with pytest.raises((IndexError, ValueError)):
            function(xp.ones(shape), axis=axis)
