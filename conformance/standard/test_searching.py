"""Searching functions against Python's searches of lists."""

import bisect
from math import inf, nan

import numpy as np
import pytest
from hypothesis import strategies as st

import ggarray as xp
from conformance.standard.references import (
    DTYPES,
    EXTENDED,
    INTEGERS,
    LAYOUTS,
    REALS,
    SIGNED,
    arrays,
    axes_of,
    broadcastable,
    check,
    elements,
    given,
    kind_of,
    reduced,
    repeating,
    rounded,
    shapes,
    to_array,
    values,
    wide,
)
from conformance.standard.test_data_types import strict_result_type

COVERS = ["argmax", "argmin", "count_nonzero", "nonzero", "searchsorted", "where"]

REAL = [d for d in EXTENDED if kind_of(d) in "iuf"]


def first(choose):
    """Return the function that finds the first extreme element, or the first NaN."""

    def search(group):
        listed = group.tolist()
        unknown = [at for at, each in enumerate(listed) if each != each]
        return unknown[0] if unknown else listed.index(choose(listed))

    return search


@pytest.mark.parametrize("dtype", REAL, ids=str)
@given(data=st.data())
def test_argmax_and_argmin_find_the_first(dtype, data):
    shape = shapes(min_side=1, max_dims=3)
    v = data.draw(values(dtype, shape) | repeating(dtype, shape))
    x = to_array(v, data.draw(st.sampled_from(list(LAYOUTS))))
    axis = data.draw(axes_of(v.ndim))
    keepdims = data.draw(st.booleans())
    for function, choose in ((xp.argmax, max), (xp.argmin, min)):
        wanted = reduced(first(choose), wide(v), axis, keepdims)
        check(function(x, axis=axis, keepdims=keepdims), wanted.astype(np.int64))


@pytest.mark.parametrize("function", [xp.argmax, xp.argmin])
def test_extremes_are_searched_along_axes_that_are_there(function):
    for shape, axis in (((2, 3), 2), ((2, 3), -3), ((), 0)):
        with pytest.raises((IndexError, ValueError)):
            function(xp.ones(shape), axis=axis)
    with pytest.raises(ValueError, match="empty"):
        function(xp.ones((0,)))
    check(function(xp.ones((0, 3), device="cpu"), axis=1), np.zeros(0, np.int64))


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data())
def test_counts_and_places_of_what_is_not_zero(dtype, data):
    v = data.draw(values(dtype, shapes(min_dims=1, max_dims=3)))
    mask = data.draw(values(np.bool_, v.shape))
    v = np.where(mask, v, np.zeros((), dtype))
    x = to_array(v, data.draw(st.sampled_from(list(LAYOUTS))))
    truth = np.array([bool(each) for each in v.ravel().tolist()], bool).reshape(v.shape)
    axis = data.draw(axes_of(v.ndim, several=True))
    keepdims = data.draw(st.booleans())
    wanted = reduced(lambda group: int(sum(group.tolist())), truth, axis, keepdims)
    check(xp.count_nonzero(x, axis=axis, keepdims=keepdims), wanted.astype(np.int64))
    found = xp.nonzero(x)
    assert type(found) is tuple
    indices = [index for index in np.ndindex(*v.shape) if truth[index]]
    places = np.array(indices, np.int64).reshape(-1, v.ndim).T
    assert len(found) == v.ndim
    for result, wanted in zip(found, places, strict=True):
        check(result, wanted)


def test_an_array_of_no_axes_has_no_places():
    with pytest.raises(ValueError, match="no axes"):
        xp.nonzero(xp.asarray(1))
    check(xp.count_nonzero(to_array(np.array(nan))), np.array(1))
    for axis in (2, -3, (0, 0)):
        with pytest.raises((IndexError, ValueError)):
            xp.count_nonzero(xp.ones((2, 3)), axis=axis)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@given(data=st.data())
def test_searchsorted_is_bisect(dtype, data):
    limits = {"finite": True} if kind_of(dtype) == "f" else {}
    v = data.draw(values(dtype, shapes(min_dims=1, max_dims=1, max_side=9), **limits))
    w = data.draw(values(dtype, **limits))
    if v.size and data.draw(st.booleans()):
        w = np.where(data.draw(values(np.bool_, w.shape)), v[0], w)
    order = np.array(sorted(range(v.size), key=lambda at: wide(v)[at]), np.int64)
    listed = wide(v)[order].tolist()
    layout = data.draw(st.sampled_from(list(LAYOUTS)))
    index = data.draw(st.sampled_from(INTEGERS))
    for side, search in (("left", bisect.bisect_left), ("right", bisect.bisect_right)):
        wanted = np.array([search(listed, each) for each in wide(w).ravel()], np.int64)
        wanted = wanted.reshape(w.shape)
        x, y = to_array(v[order], layout), to_array(w, layout)
        check(xp.searchsorted(x, y, side=side), wanted)
        shuffled, sorter = to_array(v, layout), to_array(order.astype(index), layout)
        check(xp.searchsorted(shuffled, y, side=side, sorter=sorter), wanted)
        scalar = data.draw(elements(dtype, **limits))
        exact = wide(rounded(scalar, dtype)) if kind_of(dtype) == "f" else scalar
        place = np.array(search(listed, exact), np.int64)
        check(xp.searchsorted(x, scalar, side=side), place)


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_searchsorted_agrees_with_sort_on_nan(dtype):
    v = np.array([-inf, -1, 0, 2, inf, nan, nan], dtype)
    x = to_array(v)
    for needle in (nan, inf, -inf, -0.0):
        for side in ("left", "right"):
            at = int(xp.searchsorted(x, needle, side=side))
            inserted = to_array(np.insert(v, at, needle))
            check(xp.sort(inserted), np.asarray(inserted), zeros=False)


def test_searchsorted_raises():
    x = xp.asarray([1.0, 2.0])
    with pytest.raises(ValueError, match="axis"):
        xp.searchsorted(xp.ones((2, 2)), x)
    with pytest.raises(ValueError, match="side"):
        xp.searchsorted(x, x, side="middle")
    with pytest.raises(ValueError, match="differ"):
        xp.searchsorted(x, x, sorter=xp.asarray([0]))
    with pytest.raises(TypeError):
        xp.searchsorted(x, x, sorter=xp.asarray([0.0, 1.0]))


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data())
def test_where_chooses(dtype, data):
    of = data.draw(broadcastable(3))
    mask, m = data.draw(arrays(np.bool_, of[0]))
    (x, v), (y, w) = (data.draw(arrays(dtype, shape)) for shape in of[1:])
    scalar = data.draw(elements(dtype))
    s = rounded(scalar, dtype) if kind_of(dtype) in "fc" else np.array(scalar, dtype)
    for arguments, (a, b) in (((x, y), (v, w)), ((x, scalar), (v, s)), ((scalar, y), (s, w))):
        shape = np.broadcast_shapes(m.shape, *(np.shape(each) for each in (a, b)))
        chosen, other, where = (np.broadcast_to(each, shape) for each in (a, b, m))
        wanted = np.empty(shape, dtype)
        for index in np.ndindex(*shape):
            wanted[index] = chosen[index] if where[index] else other[index]
        check(xp.where(mask, *arguments), wanted)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("scalar", [True, 2, 2.5, 1j], ids=repr)
def test_scalars_in_where_are_weak(dtype, scalar):
    wanted = strict_result_type(dtype, scalar)
    if wanted is not None:
        x, mask = to_array(np.ones(2, dtype)), to_array(np.array([True, False]))
        check(xp.where(mask, x, scalar), np.array([1, scalar]).astype(wanted))
        check(xp.where(mask, scalar, x), np.array([scalar, 1]).astype(wanted))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_scalars_in_where_and_searchsorted_do_not_wrap(dtype):
    x = xp.ones(2, dtype=dtype)
    for scalar in (int(np.iinfo(dtype).max) + 1, -1 if dtype not in SIGNED else -(2**63) - 1):
        with pytest.raises(OverflowError):
            xp.where(xp.asarray([True, False]), x, scalar)
        with pytest.raises(OverflowError):
            xp.searchsorted(x, scalar)


def test_where_raises():
    x = xp.ones(3)
    with pytest.raises(TypeError):
        xp.where(xp.asarray([True, False, True]), x, "1")
    with pytest.raises(ValueError, match="broadcast"):
        xp.where(xp.asarray([True, False]), x, x)
