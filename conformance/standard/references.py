"""What the chapters share: the standard's names and dtypes, random arrays, the judge of results.

References compute in types wider than the dtype under test: floats in `numpy.longdouble`, integers
in Python's own. Arrays are made on a device that is not the default one, so that a result which
lost its device is seen.
"""

import json
import os
from math import inf, prod
from pathlib import Path

import hypothesis
import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ggarray as xp

STANDARD = json.loads((Path(__file__).parent / "standard_2025_12.json").read_text())
"""The standard's names, by table, with the parameters of functions."""

DEVICE = "cpu"

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALVES = (np.dtype(np.float16), BFLOAT16)

BOOL = (np.dtype(np.bool_),)
SIGNED = tuple(np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))
UNSIGNED = tuple(np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
INTEGERS = SIGNED + UNSIGNED
REALS = (np.dtype(np.float32), np.dtype(np.float64))
COMPLEXES = (np.dtype(np.complex64), np.dtype(np.complex128))
FLOATS = REALS + COMPLEXES
NUMERIC = INTEGERS + FLOATS
DTYPES = BOOL + NUMERIC
"""The dtypes of the standard."""

EXTENDED = DTYPES + HALVES
"""The standard's dtypes, and the two half floats."""


# -- random tests ---------------------------------------------------------------------------------

# So many random examples a test, other ones each time; without it, few that are always the same.
_EXAMPLES = int(os.environ.get("CONFORMANCE_EXAMPLES", "0"))


def given(*strategies, examples=20, **named):
    """`hypothesis.given`, with the settings of the suite.

    Large tables, of which each function is tested at each dtype, take fewer `examples`.
    """
    settings = hypothesis.settings(
        max_examples=_EXAMPLES or examples,
        derandomize=not _EXAMPLES,
        database=None,
        deadline=None,
    )
    return lambda test: settings(hypothesis.given(*strategies, **named)(test))


# -- dtypes ---------------------------------------------------------------------------------------


def is_half(dtype):
    return dtype in HALVES


def kind_of(dtype):
    """Return "b", "i", "u", "f" or "c"; bfloat16 is of "f"."""
    return "f" if is_half(dtype) else np.dtype(dtype).kind


def part_of(dtype):
    """Return the dtype of the parts of a complex dtype; another dtype as it is."""
    return np.empty(0, dtype).real.dtype


def eps_of(dtype):
    """Return the distance from 1 to the next number of a floating dtype."""
    return float(ml_dtypes.finfo(part_of(dtype)).eps)


def wide(value):
    """Return floats and complex numbers in long double, and others as Python's integers."""
    value = np.asarray(value)
    kind = kind_of(value.dtype)
    if kind == "f":
        value = value.astype(np.float32) if value.dtype == BFLOAT16 else value
        return value.astype(np.longdouble)
    return value.astype({"c": np.clongdouble, "b": np.bool_}.get(kind, object))


def wrapped(value, dtype):
    """Return Python's integers in an integer dtype, modulo two to the power of its bits."""
    bits = 8 * np.dtype(dtype).itemsize
    lowest = -(2 ** (bits - 1)) if kind_of(dtype) == "i" else 0
    value = np.asarray(value, object)
    flat = [(int(each) - lowest) % 2**bits + lowest for each in value.ravel()]
    return np.array(flat, dtype).reshape(value.shape)


# -- random arrays --------------------------------------------------------------------------------


def shapes(min_dims=0, max_dims=4, min_side=0, max_side=5):
    """Shapes, by default also of no axes and with axes of length 0."""
    return hnp.array_shapes(
        min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side
    )


@st.composite
def broadcastable(draw, count=2, max_dims=3, max_side=4):
    """Shapes, as many as `count`, that broadcast with each other."""
    shapes = hnp.mutually_broadcastable_shapes(
        num_shapes=count, min_dims=0, max_dims=max_dims, min_side=0, max_side=max_side
    )
    return draw(shapes).input_shapes


def elements(dtype, low=None, high=None, finite=False):
    """Elements of a dtype as Python scalars, from `low` to `high` where these are given."""
    kind = kind_of(dtype)
    if kind == "b":
        return st.booleans()
    if kind in "iu":
        ends = np.iinfo(dtype)
        return st.integers(
            ends.min if low is None else max(low, ends.min),
            ends.max if high is None else min(high, ends.max),
        )
    bits = 32 if dtype == BFLOAT16 else 8 * part_of(dtype).itemsize
    if finite:  # bounds, for hypothesis would throw away what float16 does not hold
        low, high = (-inf if low is None else low), (inf if high is None else high)
    low, high = (_nearest(each, part_of(dtype)) for each in (low, high))
    special = None if low is high is None else False
    # the magnitude of a number with subnormal parts is known to few bits, and so what it divides
    subnormal = False if special is False and kind == "c" else None
    parts = st.floats(
        low,
        high,
        width=bits,
        allow_nan=special,
        allow_infinity=special,
        allow_subnormal=subnormal,
    )
    return st.builds(complex, parts, parts) if kind == "c" else parts


def _nearest(bound, dtype):
    """Return the number of a floating dtype that is nearest to a bound."""
    if bound is None:
        return None
    limit = float(ml_dtypes.finfo(dtype).max)
    return float(np.asarray(max(-limit, min(bound, limit))).astype(dtype))


def values(dtype, shape=None, low=None, high=None, finite=False):
    """NumPy arrays of a dtype; `shape` is a shape or a strategy, any shape by default.

    `finite` leaves out infinity and NaN, and so do bounds, which are rounded to the dtype.
    """
    dtype = np.dtype(dtype)
    drawn = np.float32 if dtype == BFLOAT16 else dtype
    fitting = elements(dtype, low, high, finite)
    made = hnp.arrays(drawn, shapes() if shape is None else shape, elements=fitting)
    return made.map(_to_bfloat16) if dtype == BFLOAT16 else made


def _to_bfloat16(value):
    with np.errstate(all="ignore"):
        return value.astype(BFLOAT16)


@st.composite
def repeating(draw, dtype, shape=None):
    """NumPy arrays of a dtype with many equal elements."""
    pool = draw(values(dtype, (3,)))
    return pool[draw(values(np.int8, shape, low=0, high=2))]


STACKS = st.sampled_from([(), (), (1,), (3,), (2, 3), (2, 1, 2), (0,), (2, 0)])
"""Leading axes of stacks of matrices."""


def numbers(dtype, shape, seed):
    """Return random numbers, many at once: integers of the whole range, or normal ones."""
    rng = np.random.default_rng(seed)
    kind = kind_of(dtype)
    if kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if kind in "iu":
        ends = np.iinfo(dtype)
        return rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)
    parts = rng.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1] if kind == "c" else parts[0]).astype(dtype)


def _plain(value, device):
    return xp.asarray(value, device=device, copy=True)


def _reversed(value, device):
    return xp.flip(_plain(np.flip(value), device))


def _transposed(value, device):
    order = tuple(reversed(range(value.ndim)))
    return xp.permute_dims(_plain(value.transpose(order).copy(), device), order)


def _strided(value, device):
    if not value.ndim:
        return _plain(value, device)
    return _plain(np.repeat(value, 2, -1), device)[..., ::2]


def _broadcast(value, device):
    """Return an array that repeats itself along its first axis if `value` does; read-only."""
    if value.ndim and len(value) and all(_same_bits(each, value[0]) for each in value):
        return xp.broadcast_to(_plain(value[0], device), value.shape)
    return _plain(value, device)


def _pending(value, device):
    """Return a pending array; a plain one of what no product has exactly.

    That is bool, and complex numbers with a part that is 0 or not finite.
    """
    parts = np.stack([value.real, value.imag]) if value.dtype.kind == "c" else np.ones(0)
    if value.dtype.kind == "b" or not (np.isfinite(parts) & (parts != 0)).all():
        return _plain(value, device)
    one = xp.ones(1, dtype=value.dtype, device=device)
    return xp.reshape(xp.linalg.outer(_plain(value.reshape(-1), device), one), value.shape)


def _same_bits(a, b):
    return a.tobytes() == b.tobytes()


LAYOUTS = {
    "plain": _plain,
    "reversed": _reversed,
    "transposed": _transposed,
    "strided": _strided,
    "broadcast": _broadcast,
    "pending": _pending,
}
"""Ways to lay out the same values in memory, or not yet to have them."""


def to_array(value, layout="plain", device=DEVICE):
    """Return an Array of these values in one of `LAYOUTS`, on a device."""
    return LAYOUTS[layout](np.asarray(value), device)


@st.composite
def arrays(draw, dtype, shape=None, device=DEVICE, **bounds):
    """Pairs of an Array, in any layout, and the NumPy array of its values."""
    value = draw(values(dtype, shape, **bounds))
    return to_array(value, draw(st.sampled_from(list(LAYOUTS))), device), value


@st.composite
def several(draw, *dtypes, device=DEVICE, **bounds):
    """Tuples of such pairs, one a dtype, whose shapes broadcast."""
    return tuple(
        draw(arrays(dtype, shape, device, **bounds))
        for dtype, shape in zip(dtypes, draw(broadcastable(len(dtypes))), strict=True)
    )


@st.composite
def axes_of(draw, ndim, several=False):
    """An axis of an array, counted from either end, or None; `several`: or a tuple of them."""
    choices = [st.none()]
    if ndim:
        choices.append(st.integers(-ndim, ndim - 1))
    if several:
        choices.append(hnp.valid_tuple_axes(ndim))
    return draw(st.one_of(choices))


def reduced(function, value, axis, keepdims):
    """Return what a function gives of the elements along axes, flat, for each place left."""
    axes = range(value.ndim) if axis is None else np.atleast_1d(np.array(axis, int))
    axes = {int(each) % value.ndim for each in axes} if value.ndim else set()
    kept = [each for each in range(value.ndim) if each not in axes]
    lengths = [value.shape[each] for each in kept]
    moved = value.transpose([*kept, *sorted(axes)])
    groups = moved.reshape(prod(lengths), prod(value.shape[each] for each in axes))
    found = [function(group) for group in groups]
    exact = value.dtype == object or not found
    result = np.empty(len(found), value.dtype if exact else np.result_type(*found))
    result[...] = found
    whole = [1 if each in axes else length for each, length in enumerate(value.shape)]
    return result.reshape(whole if keepdims else lengths)


# -- judging results ------------------------------------------------------------------------------


def check(result, expected, dtype=None, *, rtol=0.0, atol=0.0, device=DEVICE, zeros=True):
    """Compare a result: class, device, shape, dtype (`expected`'s if None) and values.

    NaN has to be where `expected` has it, infinities too. Without tolerances other values have to
    be equal, and unless `zeros` is False the signs of zeros. With tolerances, that of a complex
    number is of its magnitude.
    """
    expected = np.asarray(expected)
    assert type(result) is xp.Array
    assert result.device == device
    assert result.shape == expected.shape
    assert result.dtype == np.dtype(dtype or expected.dtype)
    value = np.asarray(result)
    if kind_of(value.dtype) not in "fc":
        np.testing.assert_array_equal(value, expected)
        return
    value, expected = wide(value), wide(expected)
    with np.errstate(all="ignore"):
        _check_floats(value, expected, rtol, atol, zeros)


def _check_floats(value, expected, rtol, atol, zeros):
    expected = expected.astype(value.dtype)
    whole = np.isfinite(expected)
    near = whole & (np.abs(value - expected) <= atol + rtol * np.abs(expected))
    for part, wanted in ((value.real, expected.real), (value.imag, expected.imag)):
        equal = (part == wanted) | (np.isnan(part) & np.isnan(wanted))
        # beside an infinite or unknown part, the other one is on its own
        alone = ~whole & np.isfinite(wanted)
        equal |= alone & (np.abs(part - wanted) <= atol + rtol * np.abs(wanted))
        if zeros:
            equal &= (wanted != 0) | (part != 0) | (np.signbit(part) == np.signbit(wanted))
        close = near & ~(zeros & (wanted == 0) & (part == 0))
        wrong = ~(equal | close)
        assert not wrong.any(), (
            f"at {np.argwhere(wrong)[:3].tolist()}: {value[wrong][:3]} for {expected[wrong][:3]}"
        )


def rounded(value, dtype):
    """Return wide values in a dtype, rounded once; beyond its range they are infinite."""
    with np.errstate(all="ignore"):
        if dtype == BFLOAT16:
            return np.asarray(value).astype(np.float64).astype(dtype)
        return np.asarray(value).astype(dtype)
