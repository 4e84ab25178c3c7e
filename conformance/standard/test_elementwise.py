"""Elementwise functions against long double, fractions and Python's integers."""

import math
import operator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

import ggarray as xp
from conformance.standard.references import (
    COMPLEXES,
    EXTENDED,
    arrays,
    check,
    elements,
    eps_of,
    given,
    is_half,
    kind_of,
    part_of,
    rounded,
    several,
    to_array,
    values,
    wide,
    wrapped,
)
from conformance.standard.test_data_types import strict_result_type

# Infinite results of finite arguments, and NaN of what has no value, are what is asked for.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


class Row(NamedTuple):
    """How a function is tested.

    `kinds` are those of its arguments, `low` and `high` their bounds, `result` is "same" (dtype),
    "part" (that of the parts of a complex one) or "bool", `ulps` the error in units of eps, and
    `zeros` whether it is told which zero the result is.
    """

    reference: Any
    kinds: str
    low: float | None = None
    high: float | None = None
    result: str = "same"
    ulps: int = 0
    zeros: bool = True


def _parts(function):
    """Return the function that applies another to real and imaginary parts."""

    def apart(x):
        if x.dtype.kind != "c":
            return function(x)
        result = np.empty_like(x)
        result.real, result.imag = function(x.real), function(x.imag)
        return result

    return apart


def _log1p(x):
    if x.dtype.kind != "c":
        return np.log1p(x)
    a, b = x.real, x.imag
    near = np.log1p(a * (2 + a) + b * b) / 2  # |1 + x| ** 2 is 1 + that
    real = np.where(np.abs(x) < 0.5, near, np.log(np.hypot(1 + a, b)))
    return _complex(real, np.arctan2(b, 1 + a))


def _expm1(x):
    if x.dtype.kind != "c":
        return np.expm1(x)
    a, b = x.real, x.imag
    real = np.expm1(a) * np.cos(b) - 2 * np.sin(b / 2) ** 2
    return _complex(real, np.exp(a) * np.sin(b))


def _complex(real, imag):
    result = np.empty(real.shape, np.clongdouble)
    result.real, result.imag = real, imag
    return result


def _sign(x):
    if x.dtype.kind == "O":
        return (x > 0) * 1 - (x < 0) * 1
    if x.dtype.kind != "c":
        return np.where(np.isnan(x), x, np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0)))
    return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))


UNARY = {
    "abs": Row(np.abs, "iufc", result="part", ulps=2),
    "acos": Row(np.arccos, "fc", -1, 1, ulps=4),
    "acosh": Row(np.arccosh, "fc", 1, 1e4, ulps=4),
    "asin": Row(np.arcsin, "fc", -1, 1, ulps=4),
    "asinh": Row(np.arcsinh, "fc", -1e4, 1e4, ulps=4),
    "atan": Row(np.arctan, "fc", -1e4, 1e4, ulps=4),
    "atanh": Row(np.arctanh, "fc", -1, 1, ulps=4),
    "bitwise_invert": Row(np.invert, "biu"),
    "ceil": Row(np.ceil, "iuf"),
    "conj": Row(np.conj, "fc"),
    "cos": Row(np.cos, "fc", -60, 60, ulps=4),
    "cosh": Row(np.cosh, "fc", -60, 60, ulps=4),
    "exp": Row(np.exp, "fc", -60, 60, ulps=4),
    "expm1": Row(_expm1, "fc", -60, 60, ulps=4),
    "floor": Row(np.floor, "iuf"),
    "imag": Row(np.imag, "fc", result="part"),
    "isfinite": Row(np.isfinite, "fc", result="bool"),
    "isinf": Row(np.isinf, "fc", result="bool"),
    "isnan": Row(np.isnan, "fc", result="bool"),
    "log": Row(np.log, "fc", 0, 1e30, ulps=4),
    "log10": Row(np.log10, "fc", 0, 1e30, ulps=4),
    "log1p": Row(_log1p, "fc", -1, 1e4, ulps=4),
    "log2": Row(np.log2, "fc", 0, 1e30, ulps=4),
    "logical_not": Row(np.logical_not, "b", result="bool"),
    "negative": Row(np.negative, "iufc"),
    "positive": Row(np.positive, "iufc"),
    "real": Row(np.real, "fc", result="part"),
    "reciprocal": Row(lambda x: 1 / x, "f", ulps=1),
    "round": Row(_parts(np.rint), "iufc"),
    "sign": Row(_sign, "iufc", -1e9, 1e9, ulps=2),
    "signbit": Row(np.signbit, "f", result="bool"),
    "sin": Row(np.sin, "fc", -60, 60, ulps=4),
    "sinh": Row(np.sinh, "fc", -60, 60, ulps=4),
    "sqrt": Row(np.sqrt, "fc", 0, ulps=4),
    "square": Row(lambda x: x * x, "iufc", -1e9, 1e9, ulps=4),
    "tan": Row(np.tan, "fc", -60, 60, ulps=4),
    "tanh": Row(np.tanh, "fc", -60, 60, ulps=4),
    "trunc": Row(np.trunc, "iuf"),
}
WHOLE = {"ceil", "floor", "round", "trunc"}  # which leave integers as they are


def _fractions(function):
    """Return the function of two arrays that computes without rounding; of what is finite."""

    def exactly(x1, x2):
        pairs = zip(np.ravel(x1), np.ravel(x2), strict=True)
        found = [float(function(Fraction(float(a)), Fraction(float(b)))) for a, b in pairs]
        return np.array(found, np.longdouble).reshape(x1.shape)

    return exactly


def _remainder(x1, x2):
    return x1 - math.floor(x1 / x2) * x2


def _each(function):
    """Return the function of two arrays that applies one of Python's scalars."""

    def apply(x1, x2):
        found = [function(a, b) for a, b in zip(np.ravel(x1), np.ravel(x2), strict=True)]
        return np.array(found, x1.dtype).reshape(x1.shape)

    return apply


def _logaddexp(x1, x2):
    return np.maximum(x1, x2) + np.log1p(np.exp(-np.abs(x1 - x2)))


BINARY = {
    "add": Row(operator.add, "iufc", ulps=1),
    "atan2": Row(np.arctan2, "f", -1e9, 1e9, ulps=4),
    "bitwise_and": Row(operator.and_, "biu"),
    "bitwise_or": Row(operator.or_, "biu"),
    "bitwise_xor": Row(operator.xor, "biu"),
    "copysign": Row(np.copysign, "f"),
    "divide": Row(operator.truediv, "f", ulps=1),
    "equal": Row(operator.eq, "biufc", result="bool"),
    "greater": Row(operator.gt, "iuf", result="bool"),
    "greater_equal": Row(operator.ge, "iuf", result="bool"),
    "hypot": Row(np.hypot, "f", ulps=4),
    "less": Row(operator.lt, "iuf", result="bool"),
    "less_equal": Row(operator.le, "iuf", result="bool"),
    "logaddexp": Row(_logaddexp, "f", -60, 60, ulps=4),
    "logical_and": Row(operator.and_, "b", result="bool"),
    "logical_or": Row(operator.or_, "b", result="bool"),
    "logical_xor": Row(operator.xor, "b", result="bool"),
    "maximum": Row(np.maximum, "iuf", zeros=False),
    "minimum": Row(np.minimum, "iuf", zeros=False),
    "multiply": Row(operator.mul, "iufc", -1e9, 1e9, ulps=4),
    "not_equal": Row(operator.ne, "biufc", result="bool"),
    "subtract": Row(operator.sub, "iufc", ulps=1),
}
# These have arguments of their own, below.
OTHERS = {
    "bitwise_left_shift",
    "bitwise_right_shift",
    "clip",
    "floor_divide",
    "nextafter",
    "pow",
    "remainder",
}
COVERS = [*UNARY, *BINARY, *OTHERS]

COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
DTYPES = list(EXTENDED)


def cases(table):
    """Names and dtypes of a table, and the row."""
    return [
        pytest.param(name, dtype, id=f"{name}-{dtype}")
        for name, row in table.items()
        for dtype in DTYPES
        if kind_of(dtype) in row.kinds
    ]


def expect(row, value, dtype):
    """Return a wide result of a row as the array that is wanted, and the tolerances."""
    if row.result == "bool":
        return np.asarray(value, bool), {}
    target = part_of(dtype) if row.result == "part" else dtype
    if kind_of(target) in "biu":
        return wrapped(value, target) if kind_of(target) != "b" else np.asarray(value, bool), {}
    eps = eps_of(target)
    return rounded(value, target), {
        "rtol": row.ulps * eps,
        "atol": 2 * xp.finfo(target).smallest_normal * eps if row.ulps else 0.0,
        # which zero a computed part of a complex number is, is a matter of special cases
        "zeros": row.zeros and (kind_of(target) != "c" or not row.ulps),
    }


def promoted(a, b):
    """Return the dtype of a result: what array_api_strict says, or the rules of half floats.

    None where neither has a rule, as for integers with floats.
    """
    if is_half(a) or is_half(b):
        if kind_of(a) not in "fc" or kind_of(b) not in "fc":
            return None
        wider = [dtype for dtype in (a, b) if not is_half(dtype)]
        return wider[0] if wider else a if a == b else np.dtype(np.float32)
    return strict_result_type(a, b)


def partners(dtype, kinds):
    """Return the dtypes of some kinds that another promotes with."""
    return [each for each in DTYPES if kind_of(each) in kinds and promoted(dtype, each)]


@pytest.mark.parametrize(("name", "dtype"), cases(UNARY))
@given(data=st.data(), examples=10)
def test_functions_of_one_array(name, dtype, data):
    row = UNARY[name]
    x, v = data.draw(arrays(dtype, low=row.low, high=row.high))
    whole = name in WHOLE and kind_of(dtype) in "iu"
    expected, tolerances = expect(row, v if whole else row.reference(wide(v)), dtype)
    check(getattr(xp, name)(x), expected, **tolerances)
    check(x, v)


@pytest.mark.parametrize(("name", "dtype"), cases(BINARY))
@given(data=st.data(), examples=10)
def test_functions_of_two_arrays(name, dtype, data):
    row = BINARY[name]
    other = data.draw(st.sampled_from(partners(dtype, row.kinds)))
    (x, v), (y, w) = data.draw(several(dtype, other, low=row.low, high=row.high))
    common = promoted(dtype, other)
    a, b = np.broadcast_arrays(wide(v.astype(common)), wide(w.astype(common)))
    expected, tolerances = expect(row, row.reference(a, b), common)
    check(getattr(xp, name)(x, y), expected, **tolerances)


@pytest.mark.parametrize(("name", "dtype"), cases(BINARY))
@given(data=st.data(), examples=10)
def test_functions_of_an_array_and_a_python_scalar(name, dtype, data):
    row = BINARY[name]
    x, v = data.draw(arrays(dtype, low=row.low, high=row.high))
    scalar = data.draw(elements(dtype, low=row.low, high=row.high))
    w = np.full(v.shape, rounded(scalar, dtype) if kind_of(dtype) in "fc" else scalar, dtype)
    for a, b, arguments in ((v, w, (x, scalar)), (w, v, (scalar, x))):
        expected, tolerances = expect(row, row.reference(wide(a), wide(b)), dtype)
        check(getattr(xp, name)(*arguments), expected, **tolerances)


def evenly(row, dtype, seed):
    """Return 515 random numbers of the domain of a row."""
    rng = np.random.default_rng(seed)
    kind = kind_of(dtype)
    if kind == "b":
        return rng.integers(0, 2, 515).astype(dtype)
    if kind in "iu":
        ends = np.iinfo(dtype)
        return rng.integers(ends.min, ends.max, 515, dtype, endpoint=True)
    low = -1e3 if row.low is None else max(row.low, -1e3)
    high = 1e3 if row.high is None else min(row.high, 1e3)
    parts = rng.uniform(low, high, (2, 515))
    return (parts[0] + 1j * parts[1] if kind == "c" else parts[0]).astype(dtype)


@pytest.mark.parametrize("layout", ["plain", "reversed", "strided"])
@pytest.mark.parametrize(("name", "dtype"), cases(UNARY | BINARY))
def test_many_elements_at_once(name, dtype, layout):
    """Loops over vectors, and what they leave over."""
    row = (UNARY | BINARY)[name]
    a, b = evenly(row, dtype, 0), evenly(row, dtype, 1)
    arguments = (a,) if name in UNARY else (a, b)
    if name in WHOLE and kind_of(dtype) in "iu":
        expected, tolerances = a, {}
    else:
        expected, tolerances = expect(row, row.reference(*map(wide, arguments)), dtype)
    found = getattr(xp, name)(*(to_array(each, layout) for each in arguments))
    check(found, expected, **tolerances)


# -- functions whose second argument has a domain of its own ------------------------------------


def reals(*, halves=True):
    return [d for d in DTYPES if kind_of(d) == "f" and (halves or not is_half(d))]


INTEGERS = [d for d in DTYPES if kind_of(d) in "iu"]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(data=st.data())
def test_shifts_of_bits(dtype, data):
    x, v = data.draw(arrays(dtype))
    bits = 8 * dtype.itemsize
    y, w = data.draw(arrays(dtype, v.shape, low=0, high=bits - 1))
    a, b = wide(v), wide(w)
    check(xp.bitwise_left_shift(x, y), wrapped(a << b, dtype))
    check(xp.bitwise_right_shift(x, y), wrapped(a >> b, dtype))
    check(xp.bitwise_left_shift(x, 3), wrapped(a << 3, dtype))
    check(xp.bitwise_right_shift(x, 3), wrapped(a >> 3, dtype))
    check(xp.bitwise_left_shift(1, y), wrapped(1 << b, dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(data=st.data())
def test_division_of_integers(dtype, data):
    (x, v), (y, w) = data.draw(several(dtype, dtype))
    y, w = to_array(np.where(w == 0, dtype.type(3), w)), np.where(w == 0, dtype.type(3), w)
    a, b = np.broadcast_arrays(wide(v), wide(w))
    check(xp.floor_divide(x, y), wrapped(a // b, dtype))
    check(xp.remainder(x, y), wrapped(a % b, dtype))


@pytest.mark.parametrize("dtype", reals(), ids=str)
@given(data=st.data())
def test_division_of_floats(dtype, data):
    high = 2.0**14
    x, v = data.draw(arrays(dtype, low=-high, high=high))
    w = data.draw(values(dtype, v.shape, low=2.0**-6, high=high))
    w = np.where(data.draw(values(np.bool_, v.shape)), w, -w)
    eps = eps_of(dtype)
    quotient = _fractions(lambda a, b: math.floor(a / b))(v, w)
    check(xp.floor_divide(x, to_array(w)), rounded(quotient, dtype), rtol=eps, zeros=False)
    remainder = rounded(_fractions(_remainder)(v, w), dtype)
    # where the quotient is huge and rounded, the remainder is known to the divisor's precision
    check(xp.remainder(x, to_array(w)), remainder, rtol=eps, atol=eps * high, zeros=False)


@pytest.mark.parametrize("dtype", COMPLEXES, ids=str)
@given(data=st.data())
def test_division_of_complex_numbers(dtype, data):
    x, v = data.draw(arrays(dtype, low=-1e3, high=1e3))
    y, w = data.draw(arrays(dtype, v.shape, low=2.0**-6, high=1e3))
    tolerances = {"rtol": 8 * eps_of(dtype), "atol": 1e-37, "zeros": False}
    check(xp.divide(x, y), rounded(wide(v) / wide(w), dtype), **tolerances)
    check(x / y, rounded(wide(v) / wide(w), dtype), **tolerances)
    check(xp.divide(x, 4.0), rounded(wide(v) / 4, dtype), **tolerances)
    check(xp.divide(1, y), rounded(1 / wide(w), dtype), **tolerances)
    check(xp.reciprocal(y), rounded(1 / wide(w), dtype), **tolerances)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(data=st.data())
def test_powers_of_integers(dtype, data):
    (x, v), (y, w) = data.draw(several(dtype, dtype))
    y, w = to_array(w & 15), w & 15
    a, b = np.broadcast_arrays(wide(v), wide(w))
    check(xp.pow(x, y), wrapped(a**b, dtype))
    check(xp.pow(x, 5), wrapped(wide(v) ** 5, dtype))
    check(xp.pow(2, y), wrapped(2 ** wide(w), dtype))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if kind_of(d) in "fc"], ids=str)
@given(data=st.data())
def test_powers_of_floats(dtype, data):
    x, v = data.draw(arrays(dtype, low=0.125, high=8))
    y, w = data.draw(arrays(dtype, v.shape, low=-4, high=4))
    tolerances = {"rtol": (32 if kind_of(dtype) == "c" else 4) * eps_of(dtype)}
    check(xp.pow(x, y), rounded(wide(v) ** wide(w), dtype), **tolerances)
    check(xp.pow(x, 2), rounded(wide(v) ** 2, dtype), **tolerances)
    check(xp.pow(2.0, y), rounded(2 ** wide(w), dtype), **tolerances)


def _next(dtype):
    """Return the function of the float after another, towards a third, made from their bits."""
    whole = np.dtype(f"int{8 * dtype.itemsize}")

    def following(a, b):
        if np.isnan(a) or np.isnan(b):
            return dtype.type(np.nan)
        if a == b:
            return b
        bits = int(np.asarray(a).view(whole))
        if a == 0:
            return np.copysign(np.asarray(1, whole).view(dtype), b)
        away = (a < b) == (a > 0)
        return np.asarray(bits + 1 if away else bits - 1, whole).view(dtype)[()]

    return following


@pytest.mark.parametrize("dtype", reals(), ids=str)
@given(data=st.data())
def test_nextafter_is_the_neighbour(dtype, data):
    (x, v), (y, w) = data.draw(several(dtype, dtype))
    a, b = np.broadcast_arrays(v, w)
    # the standard tells which zero comes next of float32 and float64 alone
    check(xp.nextafter(x, y), _each(_next(dtype))(a, b), zeros=not is_half(dtype))


def _clip(value, low, high):
    """Return a number within limits; NaN where one of the three is."""
    if any(each is not None and each != each for each in (value, low, high)):
        return math.nan
    value = value if low is None else max(value, low)
    return value if high is None else min(value, high)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if kind_of(d) in "iuf"], ids=str)
@given(data=st.data())
def test_clip_with_arrays_and_scalars(dtype, data):
    x, v = data.draw(arrays(dtype))
    chosen = st.one_of(st.none(), elements(dtype), arrays(dtype, v.shape))
    drawn = [data.draw(chosen) for _ in range(2)]
    limits = [each[0] if isinstance(each, tuple) else each for each in drawn]
    exact = [each[1] if isinstance(each, tuple) else each for each in drawn]
    if kind_of(dtype) == "f":
        exact = [rounded(e, dtype) if isinstance(e, float) else e for e in exact]
    columns = [
        [None] * v.size if e is None else np.broadcast_to(e, v.shape).ravel().tolist()
        for e in (v, *exact)
    ]
    expected = np.array([_clip(*each) for each in zip(*columns, strict=True)], dtype)
    check(xp.clip(x, *limits), expected.reshape(v.shape), zeros=False)
    check(xp.clip(x, min=limits[0], max=limits[1]), expected.reshape(v.shape), zeros=False)


# -- errors -------------------------------------------------------------------------------------

# Kinds of which an operation has no meaning.
MEANINGLESS = {
    "fc": ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert", "bitwise_left_shift"],
    "c": ["atan2", "ceil", "copysign", "floor", "floor_divide", "hypot", "logaddexp", "nextafter"],
    "b": ["negative", "subtract", "positive"],
}
MEANINGLESS["fc"] += ["bitwise_right_shift"]
MEANINGLESS["c"] += ["remainder", "signbit", "trunc"]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, id=f"{name}-{dtype}")
        for kinds, names in MEANINGLESS.items()
        for name in names
        for dtype in DTYPES
        if kind_of(dtype) in kinds
    ],
)
def test_kinds_without_a_meaning_raise(name, dtype):
    x = xp.ones(3, dtype=dtype)
    arguments = (x,) if name in UNARY else (x, x)
    with pytest.raises(TypeError):
        getattr(xp, name)(*arguments)


@pytest.mark.parametrize("name", [*BINARY, *sorted(OTHERS)])
def test_shapes_that_do_not_broadcast_raise(name):
    dtype = {"b": np.bool_, "i": np.int64}.get(BINARY[name].kinds[0] if name in BINARY else "", 0)
    x = xp.ones((2, 3), dtype=dtype or (np.int64 if "shift" in name else np.float64))
    for shape in ((2, 2), (4, 2, 2), (0,)):
        with pytest.raises(ValueError, match="broadcast"):
            getattr(xp, name)(x, xp.ones(shape, dtype=x.dtype))


OF_NUMBERS = [name for name, row in BINARY.items() if "u" in row.kinds and name not in COMPARISONS]


@pytest.mark.parametrize("name", [*OF_NUMBERS, "floor_divide", "remainder", "pow"])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_python_integers_out_of_range_never_wrap(name, dtype):
    x, ends = xp.ones(3, dtype=dtype), xp.iinfo(dtype)
    for scalar in (ends.min - 1, ends.max + 1, 2**70):
        with pytest.raises(OverflowError):
            getattr(xp, name)(x, scalar)
        with pytest.raises(OverflowError):
            getattr(xp, name)(scalar, x)


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_comparisons_with_integers_of_any_size_are_exact(name, dtype):
    v = np.array([0, 1, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    for scalar in (-(2**70), -1, 0, 2**63, 2**64 - 1, 2**70):
        function = BINARY[name].reference
        check(getattr(xp, name)(to_array(v), scalar), [function(int(a), scalar) for a in v])
        check(getattr(xp, name)(scalar, to_array(v)), [function(scalar, int(a)) for a in v])


def test_integers_have_no_negative_powers():
    x = xp.asarray([2, 3])
    with pytest.raises(ValueError, match="negative"):
        xp.pow(x, xp.asarray([-1, 2]))
    with pytest.raises(ValueError, match="negative"):
        _ = x**-1
