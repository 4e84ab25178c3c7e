"""Fourier transforms against the sums that define them, in extended precision."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import ggarray as xp
from conformance.standard.references import (
    BOOL,
    COMPLEXES,
    EXTENDED,
    FLOATS,
    HALVES,
    INTEGERS,
    LAYOUTS,
    REALS,
    check,
    eps_of,
    given,
    kind_of,
    numbers,
    rounded,
    to_array,
    wide,
)
from ggarray import fft

COVERS = (
    "fft.fft",
    "fft.fftfreq",
    "fft.fftn",
    "fft.fftshift",
    "fft.hfft",
    "fft.ifft",
    "fft.ifftn",
    "fft.ifftshift",
    "fft.ihfft",
    "fft.irfft",
    "fft.irfftn",
    "fft.rfft",
    "fft.rfftfreq",
    "fft.rfftn",
)

NORMS = ["backward", "ortho", "forward"]
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 64, 97]
PI = 4 * np.arctan(np.longdouble(1))


# -- the definitions ----------------------------------------------------------------------------


def resized(value, length, axis):
    """Return the first elements along an axis, zeros after them."""
    value = np.moveaxis(value, axis, 0)[:length]
    missing = [(0, length - len(value))] + [(0, 0)] * (value.ndim - 1)
    return np.moveaxis(np.pad(value, missing), 0, axis)


def summed(value, n, axis, norm, sign):
    """Sum over elements j with weights exp(sign 2 pi i j k / n), divided as `norm` says."""
    steps = np.arange(n)
    angles = sign * 2 * PI * (np.outer(steps, steps) % n) / n
    weights = np.cos(angles) + 1j * np.sin(angles)
    divisor = {"backward": 1, "ortho": np.sqrt(np.longdouble(n)), "forward": n}
    if sign > 0:
        divisor = {"backward": n, "ortho": divisor["ortho"], "forward": 1}
    moved = np.moveaxis(resized(value, n, axis), axis, -1)
    return np.moveaxis(moved @ weights / divisor[norm], -1, axis)


def hermitian(value, n, axis):
    """Return the `n` elements of which these are the first half, the others their conjugates."""
    half = np.moveaxis(resized(value, n // 2 + 1, axis), axis, 0).copy()
    real = [0, n // 2] if n % 2 == 0 else [0]
    half[real] = half[real].real
    return np.moveaxis(np.concat([half, np.conj(half[1 : (n + 1) // 2][::-1])]), 0, axis)


def first_half(value, n, axis):
    return np.moveaxis(np.moveaxis(value, axis, 0)[: n // 2 + 1], 0, axis)


DEFINITIONS = {
    "fft": lambda x, n, *how: summed(x, n, *how, sign=-1),
    "ifft": lambda x, n, *how: summed(x, n, *how, sign=1),
    "rfft": lambda x, n, axis, norm: first_half(summed(x, n, axis, norm, sign=-1), n, axis),
    "irfft": lambda x, n, axis, norm: summed(hermitian(x, n, axis), n, axis, norm, sign=1).real,
    "hfft": lambda x, n, axis, norm: summed(hermitian(x, n, axis), n, axis, norm, sign=-1).real,
    "ihfft": lambda x, n, axis, norm: first_half(summed(x, n, axis, norm, sign=1), n, axis),
}

# Transforms along several axes: the one along the last of them, and whether it is done last.
SEVERAL = {
    "fftn": ("fft", "fft", False),
    "ifftn": ("ifft", "ifft", False),
    "rfftn": ("rfft", "fft", False),
    "irfftn": ("irfft", "ifft", True),
}

FROM_REAL = ["rfft", "rfftn", "ihfft"]
TO_REAL = ["irfft", "irfftn", "hfft"]


def along_axes(name, value, lengths, axes, norm):
    last, others, last_at_end = SEVERAL[name]
    steps = [(others, n, axis) for n, axis in zip(lengths[:-1], axes[:-1], strict=True)]
    steps.insert(len(steps) if last_at_end else 0, (last, lengths[-1], axes[-1]))
    for each, n, axis in steps:
        value = DEFINITIONS[each](value, n, axis, norm)
    return value


def dtype_of(name, dtype):
    """Return the dtype of a transform: complex ones are never half, integers count as float64."""
    if kind_of(dtype) in "biu":
        dtype = np.dtype(np.float64)
    single = dtype in HALVES or dtype in (np.float32, np.complex64)
    if name not in TO_REAL:
        return np.dtype(np.complex64 if single else np.complex128)
    return dtype if dtype in HALVES else np.dtype(np.float32 if single else np.float64)


def dtypes_of(name):
    """Return the dtypes that a transform takes, those of the standard first."""
    kinds = REALS if name in FROM_REAL else FLOATS
    return st.sampled_from([*kinds, *kinds, *HALVES, *BOOL, *INTEGERS])


def near(result, expected, dtype, axes, device):
    """Compare by the norms along the axes that were transformed."""
    assert type(result) is xp.Array
    assert (result.shape, result.dtype, result.device) == (expected.shape, dtype, device)
    found = wide(result)
    size, off = (np.sqrt((np.abs(each) ** 2).sum(axes)) for each in (expected, found - expected))
    count = math.prod(expected.shape[axis] for axis in axes)
    assert (off <= 4 * eps_of(dtype) * (1 + math.log2(max(1, count))) * size).all(), (off, size)


# -- transforms ---------------------------------------------------------------------------------


def array(data, value, device):
    """Return an Array of these values in some layout, or pending."""
    return to_array(value, data.draw(st.sampled_from(list(LAYOUTS))), device)


@pytest.mark.parametrize("norm", [None, *NORMS])
@pytest.mark.parametrize("name", DEFINITIONS)
@given(
    data=st.data(),
    length=st.sampled_from(LENGTHS),
    n=st.one_of(st.none(), st.sampled_from(LENGTHS)),
    others=st.sampled_from([(), (1,), (3,), (2, 3), (0,)]),
)
def test_transforms_along_an_axis(device, name, norm, data, length, n, others):
    dtype = data.draw(dtypes_of(name))
    axis = data.draw(st.integers(-len(others) - 1, len(others)))
    shape = list(others)
    shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, length)
    default = 2 * (length - 1) if name in TO_REAL else length
    value = numbers(dtype, shape, length)
    options = {"axis": axis, "n": n, "norm": norm}
    given_options = {key: each for key, each in options.items() if each is not None}
    x = array(data, value, device)
    if n is None and not default:  # the half of nothing
        with pytest.raises(ValueError, match="data points"):
            getattr(fft, name)(x, **given_options)
        return
    result = getattr(fft, name)(x, **given_options)
    exact = wide(value).astype(np.clongdouble)
    expected = DEFINITIONS[name](exact, n or default, axis, norm or "backward")
    near(result, expected, dtype_of(name, dtype), (axis,), device)


@pytest.mark.parametrize("name", SEVERAL)
@given(
    data=st.data(),
    norm=st.sampled_from(NORMS),
    shape=st.lists(st.sampled_from([2, 3, 4, 5, 8]), min_size=1, max_size=4),
)
def test_transforms_along_several_axes(device, name, data, norm, shape):
    dtype = data.draw(dtypes_of(name))
    order = data.draw(st.permutations(range(len(shape))))
    axes = order[: data.draw(st.integers(1, len(shape)))]
    lengths = [shape[axis] for axis in axes]
    options = {"norm": norm}
    form = data.draw(st.sampled_from(["axes", "axes and s", "s", "neither"]))
    if form in ("s", "neither"):
        axes = range(len(shape) - len(axes) if form == "s" else 0, len(shape))
        lengths = [shape[axis] for axis in axes]
    else:
        options["axes"] = tuple(axis - len(shape) * data.draw(st.booleans()) for axis in axes)
    if name in TO_REAL:
        lengths[-1] = 2 * (lengths[-1] - 1)
    if form in ("s", "axes and s"):
        lengths = [data.draw(st.sampled_from([1, 2, 3, 6, length])) for length in lengths]
        whole = -1 if name not in TO_REAL else None  # -1 takes an axis as it is
        options["s"] = tuple(
            whole if whole and shape[axis] == length else length
            for axis, length in zip(axes, lengths, strict=True)
        )
    value = numbers(dtype, tuple(shape), sum(shape))
    result = getattr(fft, name)(array(data, value, device), **options)
    exact = wide(value).astype(np.clongdouble)
    expected = along_axes(name, exact, lengths, list(axes), norm)
    near(result, expected, dtype_of(name, dtype), tuple(axes), device)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_long_transforms(device, dtype):
    value = numbers(dtype, (2, 1009), 0)
    exact = wide(value).astype(np.clongdouble)
    x = to_array(value, device=device)
    near(fft.fft(x), summed(exact, 1009, -1, "backward", -1), dtype_of("fft", dtype), (1,), device)
    back = fft.ifft(fft.fft(x))
    near(back, exact, dtype_of("ifft", dtype), (1,), device)


@pytest.mark.parametrize("name", FROM_REAL)
@pytest.mark.parametrize("dtype", COMPLEXES, ids=str)
def test_transforms_of_real_numbers_refuse_complex_ones(device, name, dtype):
    with pytest.raises(TypeError, match="real"):
        getattr(fft, name)(to_array(np.ones(4, dtype), device=device))


@pytest.mark.parametrize("name", [*DEFINITIONS, *SEVERAL])
def test_transforms_that_are_not_defined(device, name):
    function, several = getattr(fft, name), name in SEVERAL
    x = to_array(np.ones((4, 4)), device=device)
    wrong = [
        {"axes": (2,)} if several else {"axis": 2},
        {"axes": (-3,)} if several else {"axis": -3},
        {"s": (0,), "axes": (0,)} if several else {"n": 0},
        {"s": (-2,), "axes": (0,)} if several else {"n": -1},
        {"norm": "half"},
    ]
    wrong += [{"s": (2,), "axes": (0, 1)}, {"s": (2, 2, 2)}] if several else []
    for options in wrong:
        with pytest.raises(ValueError):  # noqa: PT011
            function(x, **options)
    for shape in ((), (0,)):
        with pytest.raises(ValueError):  # noqa: PT011
            function(to_array(np.ones(shape), device=device))
    with pytest.raises(TypeError, match="Array is wanted"):
        function(np.ones(4))


# -- frequencies and shifts ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [None, *REALS, *HALVES], ids=str)
@given(n=st.integers(1, 100), d=st.sampled_from([None, 1.0, 0.5, 3.0, 1e-3, -2.0]))
def test_frequencies(device, dtype, n, d):
    options = {"device": device} | ({} if dtype is None else {"dtype": dtype})
    options |= {} if d is None else {"d": d}
    wanted = np.dtype(np.float64) if dtype is None else dtype
    steps = np.fft.ifftshift(np.arange(n) - n // 2)
    for function, each in ((fft.fftfreq, steps), (fft.rfftfreq, np.arange(n // 2 + 1))):
        exact = each / (n * np.longdouble(1.0 if d is None else d))
        found = function(n, **options)
        check(found, rounded(exact, wanted), rtol=2 * eps_of(wanted), device=device)


def test_frequencies_that_are_not_defined(device):
    for function in (fft.fftfreq, fft.rfftfreq):
        for n in (0, -1):
            with pytest.raises(ValueError, match="at least one"):
                function(n, device=device)
        for dtype in (xp.int64, xp.complex64, xp.bool):
            with pytest.raises(TypeError, match="real floating"):
                function(4, dtype=dtype, device=device)
        with pytest.raises(ValueError, match="unknown device"):
            function(4, device="nowhere")
        with xp.default_device(device):
            assert function(4).device == device


@given(
    data=st.data(),
    dtype=st.sampled_from(EXTENDED),
    shape=st.lists(st.sampled_from([1, 2, 3, 4, 5, 0]), max_size=3).map(tuple),
)
def test_shifts(device, data, dtype, shape):
    value = numbers(dtype, shape, 1)
    every = range(-len(shape), len(shape))
    axes = st.sampled_from([None, *every, *((axis,) for axis in every), tuple(range(len(shape)))])
    axes = data.draw(axes)
    x = array(data, value, device)
    moved = {None: range(len(shape))}.get(axes, (axes,) if isinstance(axes, int) else axes)
    for function, by in (
        (fft.fftshift, lambda n: n // 2),
        (fft.ifftshift, lambda n: -(n // 2)),
    ):
        expected = value
        for axis in moved:
            expected = np.roll(expected, by(shape[axis]), axis)
        result = function(x, **({} if axes is None else {"axes": axes}))
        check(result, expected, device=device)
        if value.size:
            assert not np.shares_memory(np.asarray(result), np.asarray(x))
    for wrong in (len(shape), -len(shape) - 1):
        for function in (fft.fftshift, fft.ifftshift):
            with pytest.raises(ValueError, match="out of bounds"):
                function(x, axes=wrong)
