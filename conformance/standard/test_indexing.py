"""Indexing, and indexing functions, against the elements one by one."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ggarray as xp
from conformance.standard.references import (
    EXTENDED,
    INTEGERS,
    LAYOUTS,
    arrays,
    check,
    elements,
    given,
    kind_of,
    rounded,
    shapes,
    to_array,
    values,
)
from conformance.standard.test_data_types import strict_result_type

COVERS = ["take", "take_along_axis", "Array.__getitem__", "Array.__setitem__"]

OF_EVERY_DTYPE = pytest.mark.parametrize("dtype", EXTENDED, ids=str)
WRITABLE = [each for each in LAYOUTS if each != "broadcast"]
LAYOUT = st.sampled_from(list(LAYOUTS))


@st.composite
def keys(draw, shape):
    """Indices of an array: those of the standard, and arrays of integers; with NumPy arrays."""
    kinds = [hnp.basic_indices(shape, allow_newaxis=True, max_dims=8)]
    kinds.append(hnp.arrays(np.bool_, shape))
    if shape and math.prod(shape):
        results = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0)
        kinds.append(hnp.integer_array_indices(shape, result_shape=results))
    return draw(st.one_of(kinds))


def as_arrays(key, layout):
    """Return a key with Arrays in place of its NumPy arrays."""
    if isinstance(key, tuple):
        return tuple(as_arrays(each, layout) for each in key)
    return to_array(key, layout) if isinstance(key, np.ndarray) else key


def places(shape, key):
    """Return the index of the flat array that each element of ``x[key]`` is at."""
    return np.arange(math.prod(shape)).reshape(shape)[key]


@OF_EVERY_DTYPE
@given(data=st.data())
def test_getitem(dtype, data):
    x, v = data.draw(arrays(dtype))
    key = data.draw(keys(v.shape))
    flat = v.ravel().tolist()
    found = places(v.shape, key)
    wanted = np.empty(np.shape(found), dtype)
    for index in np.ndindex(*np.shape(found)):
        wanted[index] = flat[np.asarray(found)[index]]
    check(x[key], wanted)
    check(x[as_arrays(key, data.draw(LAYOUT))], wanted)
    check(x, v)


@OF_EVERY_DTYPE
@given(data=st.data())
def test_setitem(dtype, data):
    v = data.draw(values(dtype))
    key = data.draw(keys(v.shape))
    found = places(v.shape, key)
    shape = np.shape(found)
    narrower = data.draw(st.sampled_from([shape, shape[1:], ()]))
    w = data.draw(values(dtype, narrower))
    scalar = data.draw(elements(dtype))
    s = rounded(scalar, dtype) if kind_of(dtype) in "fc" else np.array(scalar, dtype)
    layout = data.draw(LAYOUT)
    for assigned, value in ((to_array(w, layout), w), (w, w), (scalar, s)):
        flat = v.ravel().copy()
        whole = np.broadcast_to(value, shape)
        for index in np.ndindex(*shape):
            flat[np.asarray(found)[index]] = whole[index]
        x = to_array(v, data.draw(st.sampled_from(WRITABLE)))
        part = x[...]
        x[as_arrays(key, layout)] = assigned
        wanted = flat.reshape(v.shape)
        check(x, wanted)
        check(part, wanted)  # views see it


@pytest.mark.parametrize("other", EXTENDED[:-2], ids=str)
@pytest.mark.parametrize("dtype", EXTENDED[:-2], ids=str)
def test_values_are_promoted_to_the_dtype_of_the_array(dtype, other):
    if strict_result_type(dtype, other) != dtype:
        return
    v = np.zeros(3, dtype)
    for layout in ("plain", "pending"):
        x = to_array(v, layout)
        x[1:] = to_array(np.array([1, 1], other), layout)
        check(x, np.array([0, 1, 1], dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_values_out_of_range_overflow(dtype):
    x, ends = to_array(np.zeros(3, dtype)), np.iinfo(dtype)
    for value in (int(ends.min) - 1, int(ends.max) + 1, 2**70):
        for key in (0, slice(1), ..., to_array(np.array([True, False, True]))):
            with pytest.raises(OverflowError):
                x[key] = value
    check(x, np.zeros(3, dtype))


@pytest.mark.parametrize("layout", WRITABLE)
def test_indices_and_values_that_do_not_fit_raise(layout):
    v = np.arange(6.0).reshape(2, 3)
    x = to_array(v, layout)
    mask = to_array(np.ones((3, 2), bool))
    for key in (2, -3, (0, 3), (0, 0, 0), (..., ...), mask, to_array(np.array([0, 2])), 1.0, "0"):
        with pytest.raises(IndexError):
            _ = x[key]
        with pytest.raises(IndexError):
            x[key] = 0
    for key, shape in (((0,), (2,)), (slice(None), (3, 3)), (..., (3, 2)), (0, (0,))):
        with pytest.raises(ValueError, match="broadcast"):
            x[key] = xp.ones(shape, device="cpu")
    check(x, v)


@OF_EVERY_DTYPE
@given(data=st.data())
def test_take(dtype, data):
    x, v = data.draw(arrays(dtype, shapes(min_dims=1, max_dims=3, min_side=1)))
    axis = data.draw(st.integers(-v.ndim, v.ndim - 1))
    length = v.shape[axis]
    index = data.draw(st.sampled_from(INTEGERS))
    low = 0 if kind_of(index) == "u" else -length
    at = data.draw(values(index, shapes(min_dims=1, max_dims=1), low=low, high=length - 1))
    parts = [np.take(v, [int(each) % length], axis) for each in at]
    wanted = np.concatenate([v[(slice(None),) * (axis % v.ndim) + (slice(0, 0),)], *parts], axis)
    check(xp.take(x, to_array(at, data.draw(LAYOUT)), axis=axis), wanted)
    if v.ndim == 1:
        check(xp.take(x, to_array(at)), wanted)


@OF_EVERY_DTYPE
@given(data=st.data())
def test_take_along_axis(dtype, data):
    x, v = data.draw(arrays(dtype, shapes(min_dims=1, max_dims=3, min_side=1)))
    axis = data.draw(st.integers(-v.ndim, v.ndim - 1))
    length = v.shape[axis]
    shape = list(v.shape)
    for each in range(v.ndim):  # indices broadcast along the other axes
        shape[each] = data.draw(st.sampled_from([shape[each], 1]))
    shape[axis] = data.draw(st.integers(0, 4))
    index = data.draw(st.sampled_from(INTEGERS))
    low = 0 if kind_of(index) == "u" else -length
    at = data.draw(values(index, tuple(shape), low=low, high=length - 1))
    whole = list(v.shape)
    whole[axis] = shape[axis]
    wanted = np.empty(whole, dtype)
    for place in np.ndindex(*whole):
        chosen = int(np.broadcast_to(at, whole)[place]) % length
        wanted[place] = v[tuple(chosen if n == axis % v.ndim else i for n, i in enumerate(place))]
    check(xp.take_along_axis(x, to_array(at, data.draw(LAYOUT)), axis=axis), wanted)
    if axis in (-1, v.ndim - 1):
        check(xp.take_along_axis(x, to_array(at)), wanted)


def test_taking_raises():
    x = xp.ones((2, 3))
    one = xp.asarray([0])
    for function, indices in ((xp.take, one), (xp.take_along_axis, xp.asarray([[0]]))):
        for axis in (2, -3):
            with pytest.raises((IndexError, ValueError)):
                function(x, indices, axis=axis)
        with pytest.raises(TypeError):
            function(x, xp.astype(indices, xp.float64), axis=1)
        for at in (3, -4, 2**40):
            with pytest.raises(IndexError):
                function(x, xp.full_like(indices, at), axis=1)
    with pytest.raises(ValueError, match="axis"):
        xp.take(x, one)
    with pytest.raises(ValueError, match="shape"):
        xp.take_along_axis(x, one)
