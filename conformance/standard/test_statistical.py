"""Statistical functions against long double and Python's integers."""

import math
from math import inf, nan

import numpy as np
import pytest
from hypothesis import strategies as st

import ggarray as xp
from conformance.standard.references import (
    COMPLEXES,
    EXTENDED,
    HALVES,
    INTEGERS,
    NUMERIC,
    REALS,
    SIGNED,
    UNSIGNED,
    arrays,
    axes_of,
    check,
    elements,
    eps_of,
    given,
    is_half,
    kind_of,
    reduced,
    rounded,
    shapes,
    to_array,
    values,
    wide,
    wrapped,
)

COVERS = ["cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "std", "sum", "var"]

# Means of nothing, and what overflows, make NumPy warn.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

ACCUMULATED = [d for d in EXTENDED if kind_of(d) != "b"]
REAL = [d for d in EXTENDED if kind_of(d) in "iuf"]
FLOATING = [d for d in EXTENDED if kind_of(d) in "fc"]


def accumulator(dtype):
    """Return the dtype of a sum of elements of a dtype."""
    default = {"i": np.int64, "u": np.uint64}.get(kind_of(dtype))
    return np.dtype(default or dtype)


def _sum(group):
    return sum(group.tolist()) if group.dtype == object else group.sum()


def _prod(group):
    return math.prod(group.tolist()) if group.dtype == object else group.prod()


SUMS = {"sum": _sum, "prod": _prod}
BOUND = {"sum": 2.0**8, "prod": 1.5}


@pytest.mark.parametrize("dtype", ACCUMULATED, ids=str)
@pytest.mark.parametrize("name", SUMS)
@given(data=st.data())
def test_sums_and_products(name, dtype, data):
    floating = kind_of(dtype) in "fc"
    limits = {"low": -BOUND[name], "high": BOUND[name]} if floating else {}
    x, v = data.draw(arrays(dtype, shapes(max_dims=3), **limits))
    axis = data.draw(axes_of(v.ndim, several=True))
    keepdims = data.draw(st.booleans())
    exact = reduced(SUMS[name], wide(v), axis, keepdims)
    target = accumulator(dtype)
    tolerances = {}
    if floating:
        bound = reduced(SUMS[name], np.abs(wide(v)), axis, keepdims)
        scale = 1.0 if is_half(dtype) else 64.0  # those are rounded once
        tolerances = {"atol": scale * eps_of(dtype) * np.max(bound, initial=0), "zeros": False}
    wanted = rounded(exact, target) if floating else wrapped(exact.astype(object), target)
    check(getattr(xp, name)(x, axis=axis, keepdims=keepdims), wanted, **tolerances)


@pytest.mark.parametrize("target", NUMERIC, ids=str)
@pytest.mark.parametrize("dtype", [*INTEGERS, *REALS, *HALVES], ids=str)
@pytest.mark.parametrize("name", SUMS)
def test_elements_are_cast_before_they_are_accumulated(name, dtype, target):
    if kind_of(dtype) == "f" and kind_of(target) in "iu":
        return
    v = np.array([100, 100, 2, 3]).astype(dtype)
    exact = SUMS[name](wide(v.astype(np.int64)))
    if kind_of(target) in "iu":
        wanted = wrapped(np.array(exact, object), target)
    else:
        wanted = np.array(exact, target)
    check(getattr(xp, name)(to_array(v), dtype=target), wanted)
    cumulative = getattr(xp, f"cumulative_{name}")(to_array(v), dtype=target)
    assert cumulative.dtype == target
    check(cumulative[-1], wanted)


def test_half_floats_are_accumulated_in_float32():
    for dtype in HALVES:
        v = np.full(4096, 0.25).astype(dtype)
        check(xp.sum(to_array(v)), np.array(1024.0).astype(dtype))
        check(xp.mean(to_array(v)), np.array(0.25).astype(dtype))
        check(xp.sum(to_array(v, "strided"), dtype=xp.float32), np.float32(1024))
        check(
            xp.sum(xp.ones(4096, dtype=xp.int8, device="cpu"), dtype=dtype),
            np.array(4096.0).astype(dtype),
        )


@pytest.mark.parametrize("dtype", ACCUMULATED, ids=str)
@pytest.mark.parametrize("name", SUMS)
@given(data=st.data())
def test_cumulative_sums_and_products(name, dtype, data):
    floating = kind_of(dtype) in "fc"
    limits = {"low": -BOUND[name], "high": BOUND[name]} if floating else {}
    x, v = data.draw(arrays(dtype, shapes(min_dims=1, max_dims=3), **limits))
    axis = data.draw(st.integers(-v.ndim, v.ndim - 1))
    initial = data.draw(st.booleans())
    target = accumulator(dtype)
    columns = np.moveaxis(wide(v), axis, -1)
    bounds = np.moveaxis(np.abs(wide(v)), axis, -1)
    found, bound = [], 0.0
    for index in np.ndindex(*columns.shape[:-1]):
        steps = range(0 if initial else 1, columns.shape[-1] + 1)
        found.append([SUMS[name](columns[index][:step]) for step in steps])
        bound = max(bound, float(SUMS[name](bounds[index])) if floating else 0.0)
    shape = (*columns.shape[:-1], columns.shape[-1] + initial)
    exact = np.empty(math.prod(shape), columns.dtype)
    exact[:] = [each for column in found for each in column]
    exact = np.moveaxis(exact.reshape(shape), -1, axis)
    wanted = rounded(exact, target) if floating else wrapped(exact, target)
    tolerances = {"atol": 64 * eps_of(dtype) * max(bound, 1), "zeros": False} if floating else {}
    function = getattr(xp, f"cumulative_{name}")
    check(function(x, axis=axis, include_initial=initial), wanted, **tolerances)
    if v.ndim == 1:
        check(function(x, include_initial=initial), wanted, **tolerances)


@pytest.mark.parametrize("function", [xp.cumulative_sum, xp.cumulative_prod])
def test_an_axis_has_to_be_named_if_there_are_several(function):
    with pytest.raises(ValueError, match="axis"):
        function(xp.ones((2, 3)))
    for axis in (2, -3):
        with pytest.raises((IndexError, ValueError)):
            function(xp.ones((2, 3)), axis=axis)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@given(data=st.data())
def test_max_and_min(dtype, data):
    x, v = data.draw(arrays(dtype, shapes(min_side=1, max_dims=3)))
    axis = data.draw(axes_of(v.ndim, several=True))
    keepdims = data.draw(st.booleans())
    if axis == ():
        axis = None

    def extreme(choose):
        def of(group):
            return nan if any(each != each for each in group) else choose(group)

        return reduced(of, wide(v), axis, keepdims).astype(dtype)

    check(xp.max(x, axis=axis, keepdims=keepdims), extreme(max), zeros=False)
    check(xp.min(x, axis=axis, keepdims=keepdims), extreme(min), zeros=False)


@pytest.mark.parametrize("function", [xp.max, xp.min])
def test_nothing_has_no_extreme(function):
    with pytest.raises(ValueError, match=r"zero-size|empty"):
        function(xp.ones((0, 3)))
    check(function(xp.ones((0, 3), device="cpu"), axis=1), np.ones(0))


@pytest.mark.parametrize("dtype", [*FLOATING, *INTEGERS], ids=str)
@given(data=st.data())
def test_means(dtype, data):
    x, v = data.draw(arrays(dtype, shapes(max_dims=3, min_side=1), low=-100, high=100))
    axis = data.draw(axes_of(v.ndim, several=True))
    keepdims = data.draw(st.booleans())
    target = np.dtype(dtype if kind_of(dtype) in "fc" else np.float64)
    exact = wide(v) if kind_of(dtype) in "fc" else wide(v).astype(np.longdouble)
    wanted = rounded(reduced(np.mean, exact, axis, keepdims), target)
    tolerances = {"rtol": eps_of(target), "atol": 400 * eps_of(target), "zeros": False}
    check(xp.mean(x, axis=axis, keepdims=keepdims), wanted, **tolerances)


@pytest.mark.parametrize("dtype", [*REALS, *HALVES, *INTEGERS], ids=str)
@given(data=st.data())
def test_deviations_and_variances(dtype, data):
    x, v = data.draw(arrays(dtype, shapes(max_dims=3, min_side=1), low=-100, high=100))
    axis = data.draw(axes_of(v.ndim, several=True))
    keepdims = data.draw(st.booleans())
    correction = data.draw(st.sampled_from([0, 1, 0.5, 2, 3.0, 7, -1]))
    target = np.dtype(dtype if kind_of(dtype) == "f" else np.float64)

    def variance(group):
        number = len(group) - correction
        return nan if number <= 0 else ((group - group.mean()) ** 2).sum() / number

    exact = reduced(variance, wide(v).astype(np.longdouble), axis, keepdims)
    kwargs = {"axis": axis, "correction": correction, "keepdims": keepdims}
    tolerances = {"rtol": 8 * eps_of(target), "atol": 2e5 * eps_of(target), "zeros": False}
    check(xp.var(x, **kwargs), rounded(exact, target), **tolerances)
    tolerances["atol"] = 100 * math.sqrt(eps_of(target)) if not is_half(target) else 0.05
    check(xp.std(x, **kwargs), rounded(np.sqrt(exact), target), **tolerances)


# -- special cases ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_of_no_elements(dtype):
    x = to_array(np.ones((0, 2), dtype))
    for axis, shape in ((None, ()), (0, (2,)), ((0, 1), ())):
        check(xp.sum(x, axis=axis), np.zeros(shape, dtype))
        check(xp.prod(x, axis=axis), np.ones(shape, dtype))
        none = complex(nan, nan) if kind_of(dtype) == "c" else nan
        check(xp.mean(x, axis=axis), np.full(shape, none, dtype))
        if kind_of(dtype) == "f":
            check(xp.var(x, axis=axis), np.full(shape, nan, dtype))
            check(xp.std(x, axis=axis), np.full(shape, nan, dtype))


@pytest.mark.parametrize("dtype", [*REALS, *HALVES], ids=str)
@pytest.mark.parametrize("size", [1, 2, 17, 64])
def test_nan_and_infinity_propagate(dtype, size):
    for at in {0, size // 2, size - 1}:
        v = np.linspace(-1, 1, size).astype(dtype)
        v[at] = nan
        for function in (xp.max, xp.min, xp.mean, xp.sum, xp.prod, xp.std, xp.var):
            check(function(to_array(v)), np.array(nan, dtype))
        v[at] = inf
        check(xp.max(to_array(v)), np.array(inf, dtype))
        check(xp.sum(to_array(v)), np.array(inf, dtype))
        check(xp.mean(to_array(v)), np.array(inf, dtype))
        if size > 1:
            v[at - 1] = -inf
            check(xp.sum(to_array(v)), np.array(nan, dtype))
            v[at] = nan
            check(xp.min(to_array(v)), np.array(nan, dtype))


@pytest.mark.parametrize("dtype", COMPLEXES, ids=str)
def test_parts_of_a_complex_mean_are_on_their_own(dtype):
    z = [complex(1, 1), complex(3, nan), complex(5, 2)]
    check(xp.mean(to_array(np.array(z, dtype))), np.array(complex(3, nan), dtype))
    z[1] = complex(nan, 3)
    check(xp.mean(to_array(np.array(z, dtype))), np.array(complex(nan, 2), dtype))
    check(xp.mean(to_array(np.array([z], dtype)), axis=0), np.array(z, dtype))


@pytest.mark.parametrize("dtype", [*REALS, *HALVES], ids=str)
def test_a_correction_that_leaves_nothing_gives_nan(dtype):
    v = np.array([[1, 2, 4], [3, 5, 7]]).astype(dtype)
    for correction in (3, 3.5, 100):
        for function in (xp.std, xp.var):
            found = function(to_array(v), axis=1, correction=correction)
            check(found, np.array([nan, nan], dtype))
    assert not bool(xp.any(xp.isnan(xp.var(to_array(v), axis=1, correction=2.5))))


# -- dtypes and axes ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED], ids=str)
def test_small_integers_do_not_wrap(dtype):
    largest = np.full(3, np.iinfo(dtype).max, dtype)
    if dtype.itemsize < 8:
        check(xp.sum(to_array(largest)), np.array(3 * int(largest[0])).astype(accumulator(dtype)))
    check(xp.sum(to_array(largest), dtype=dtype), wrapped(3 * wide(largest)[0], dtype))


ALL = [xp.max, xp.mean, xp.min, xp.prod, xp.std, xp.sum, xp.var]


@pytest.mark.parametrize("function", ALL)
def test_axes_that_are_not_there_raise(function):
    for shape, axis in (((2, 3), 2), ((2, 3), -3), ((), 0), ((2, 3), (0, 0)), ((2, 3), (0, 5))):
        with pytest.raises((IndexError, ValueError)):
            function(xp.ones(shape), axis=axis)


@given(data=st.data())
def test_no_axes_at_all_reduce_nothing(data):
    v = data.draw(values(np.float64, low=-9, high=9))
    for function in (xp.max, xp.min, xp.sum, xp.prod, xp.mean):
        check(function(to_array(v), axis=()), v, zeros=False)


@given(data=st.data())
def test_scalars_are_arrays_of_no_axes(data):
    number = data.draw(elements(np.float64, low=-9, high=9))
    x = to_array(np.array(number))
    for function in (xp.max, xp.min, xp.sum, xp.prod, xp.mean):
        check(function(x), np.array(number), zeros=False)
        check(function(x, keepdims=True), np.array(number), zeros=False)
