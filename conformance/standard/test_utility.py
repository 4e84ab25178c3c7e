"""Utility functions against Python's own."""

import numpy as np
import pytest
from hypothesis import strategies as st

import ggarray as xp
from conformance.standard.references import (
    EXTENDED,
    LAYOUTS,
    NUMERIC,
    axes_of,
    check,
    eps_of,
    given,
    kind_of,
    reduced,
    rounded,
    shapes,
    to_array,
    values,
    wide,
    wrapped,
)

COVERS = ["all", "any", "diff"]


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data())
def test_all_and_any(dtype, data):
    v = data.draw(values(dtype, shapes(max_dims=3)))
    v = np.where(data.draw(values(np.bool_, v.shape)), v, np.zeros((), dtype))
    x = to_array(v, data.draw(st.sampled_from(list(LAYOUTS))))
    truth = np.array([bool(each) for each in v.ravel().tolist()], bool).reshape(v.shape)
    axis = data.draw(axes_of(v.ndim, several=True))
    keepdims = data.draw(st.booleans())
    for function, of in ((xp.all, all), (xp.any, any)):
        wanted = reduced(lambda group, of=of: of(group.tolist()), truth, axis, keepdims)
        check(function(x, axis=axis, keepdims=keepdims), wanted.astype(bool))


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
def test_of_no_elements(dtype):
    x = to_array(np.ones((0, 2), dtype))
    check(xp.all(x), np.array(True))
    check(xp.any(x), np.array(False))
    check(xp.all(x, axis=0), np.array([True, True]))
    check(xp.any(x, axis=0, keepdims=True), np.array([[False, False]]))
    check(xp.all(x, axis=1), np.zeros(0, bool))


@pytest.mark.parametrize("dtype", [d for d in EXTENDED if kind_of(d) in "fc"], ids=str)
def test_nan_and_infinity_are_true(dtype):
    for truth in (np.nan, np.inf, -np.inf):
        x = to_array(np.array([truth, truth]).astype(dtype))
        check(xp.all(x), np.array(True))
    check(xp.any(to_array(np.array([-0.0, 0.0]).astype(dtype))), np.array(False))


@pytest.mark.parametrize("function", [xp.all, xp.any])
def test_axes_that_are_not_there_raise(function):
    for shape, axis in (((2, 3), 2), ((2, 3), -3), ((), 0), ((2, 3), (0, 0)), ((2, 3), (0, 5))):
        with pytest.raises((IndexError, ValueError)):
            function(xp.ones(shape), axis=axis)


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
@given(data=st.data())
def test_differences(dtype, data):
    limits = {"low": -100, "high": 100} if kind_of(dtype) in "fc" else {}
    v = data.draw(values(dtype, shapes(min_dims=1, max_dims=3), **limits))
    axis = data.draw(st.integers(-v.ndim, v.ndim - 1))
    n = data.draw(st.integers(0, 3))
    beside = []
    for _ in range(2):
        shape = list(v.shape)
        shape[axis] = data.draw(st.integers(0, 2))
        beside.append(data.draw(st.none() | values(dtype, tuple(shape), **limits)))
    layout = data.draw(st.sampled_from(list(LAYOUTS)))
    keywords = {
        name: to_array(each, layout)
        for name, each in zip(("prepend", "append"), beside, strict=True)
        if each is not None
    }
    whole = np.moveaxis(
        np.concatenate([each for each in (beside[0], v, beside[1]) if each is not None], axis),
        axis,
        0,
    )
    exact = wide(whole)
    for _ in range(n):
        exact = exact[1:] - exact[:-1]
    floating = kind_of(dtype) in "fc"
    wanted = np.moveaxis(rounded(exact, dtype) if floating else wrapped(exact, dtype), 0, axis)
    tolerances = {"atol": 1600 * eps_of(dtype), "zeros": False} if floating else {}
    check(xp.diff(to_array(v, layout), axis=axis, n=n, **keywords), wanted, **tolerances)
    if axis in (-1, v.ndim - 1) and n == 1:
        check(xp.diff(to_array(v, layout), **keywords), wanted, **tolerances)


@given(data=st.data())
def test_differences_of_truth_values(data):
    v = data.draw(values(np.bool_, shapes(min_dims=1, max_dims=2)))
    check(xp.diff(to_array(v)), v[..., 1:] != v[..., :-1])


def test_differences_raise():
    x = xp.ones((2, 3))
    with pytest.raises(ValueError, match="order"):
        xp.diff(x, n=-1)
    for axis in (2, -3):
        with pytest.raises((IndexError, ValueError)):
            xp.diff(x, axis=axis)
    with pytest.raises(ValueError, match="dimension"):
        xp.diff(x, prepend=xp.ones((3, 1)))
    with pytest.raises((IndexError, ValueError)):
        xp.diff(xp.asarray(1.0))
