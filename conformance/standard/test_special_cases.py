"""The standard's special cases, written down from its sentences, at every dtype that has them.

A row has the arguments and what the result is. An argument may be a tuple: the row holds for each.
A part of a result may be a tuple: the standard leaves open which (a sign, as a rule). Of two rows
for the same arguments, the first holds.
"""

import itertools
import math
import operator
from math import copysign, inf, nan, pi

import numpy as np
import pytest

import ggarray as xp
from conformance.standard.references import COMPLEXES, DEVICE, REALS, eps_of, part_of

# These are the arguments that make NumPy warn; the standard knows no warnings.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# Loops over vectors may differ from those over what is left.
SIZES = (1, 3, 17, 64)

ZERO = (0.0, -0.0)
INFINITE = (inf, -inf)
POSITIVE = (2.0**-20, 0.75, 1.0, 1.5, 2.0, 3.0, 2.0**20)
NEGATIVE = tuple(-each for each in POSITIVE)
ODD, NOT_ODD = (1.0, 3.0, 7.0), (0.5, 2.0, 2.5, 4.0)
NONZERO = POSITIVE + NEGATIVE
FINITE = ZERO + NONZERO
NOT_NAN = FINITE + INFINITE
ANY = (*NOT_NAN, nan)
ABOVE_ONE = (1.5, 2.0, 3.0, 2.0**20)
BELOW_ONE = (0.5, 0.75, 2.0**-20)
OVER = (*ABOVE_ONE, inf)


def negative(values):
    return tuple(-each for each in values)


# -- real arguments -----------------------------------------------------------------------------

ODD_AT_ZERO = [(nan, nan), (0.0, 0.0), (-0.0, -0.0)]
ONE_AT_ZERO = [(nan, nan), (ZERO, 1.0)]
LOGARITHM = [(nan, nan), (NEGATIVE, nan), (ZERO, -inf), (1.0, 0.0), (inf, inf)]
WHOLE = [*ODD_AT_ZERO, (inf, inf), (-inf, -inf), (3.0, 3.0), (-5.0, -5.0), (2.0**20, 2.0**20)]

REAL = {
    "abs": [(nan, nan), (-0.0, 0.0), (-inf, inf), (inf, inf), (-1.5, 1.5)],
    "acos": [(nan, nan), (OVER, nan), (negative(OVER), nan), (1.0, 0.0)],
    "acosh": [(nan, nan), (NEGATIVE + ZERO + BELOW_ONE, nan), (1.0, 0.0), (inf, inf)],
    "asin": [*ODD_AT_ZERO, (OVER, nan), (negative(OVER), nan)],
    "asinh": [*ODD_AT_ZERO, (inf, inf), (-inf, -inf)],
    "atan": [*ODD_AT_ZERO, (inf, pi / 2), (-inf, -pi / 2)],
    "atanh": [*ODD_AT_ZERO, (OVER, nan), (negative(OVER), nan), (1.0, inf), (-1.0, -inf)],
    "ceil": [*WHOLE, (-0.5, -0.0), (0.5, 1.0)],
    "cos": [*ONE_AT_ZERO, (INFINITE, nan)],
    "cosh": [*ONE_AT_ZERO, (INFINITE, inf)],
    "exp": [*ONE_AT_ZERO, (inf, inf), (-inf, 0.0)],
    "expm1": [*ODD_AT_ZERO, (inf, inf), (-inf, -1.0)],
    "floor": [*WHOLE, (-0.5, -1.0), (0.5, 0.0)],
    "isfinite": [(nan, False), (INFINITE, False), (FINITE, True)],
    "isinf": [(nan, False), (INFINITE, True), (FINITE, False)],
    "isnan": [(nan, True), (INFINITE, False), (FINITE, False)],
    "log": LOGARITHM,
    "log10": LOGARITHM,
    "log1p": [*ODD_AT_ZERO, (negative(OVER), nan), (-1.0, -inf), (inf, inf)],
    "log2": LOGARITHM,
    "reciprocal": [(nan, nan), (0.0, inf), (-0.0, -inf), (inf, 0.0), (-inf, -0.0)],
    "round": [*WHOLE, (0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (-1.5, -2.0)],
    "sign": [(nan, nan), (ZERO, 0.0), ((*POSITIVE, inf), 1.0), ((*NEGATIVE, -inf), -1.0)],
    "signbit": [((*POSITIVE, inf, 0.0), False), ((*NEGATIVE, -inf, -0.0), True)],
    "sin": [*ODD_AT_ZERO, (INFINITE, nan)],
    "sinh": [*ODD_AT_ZERO, (inf, inf), (-inf, -inf)],
    "sqrt": [*ODD_AT_ZERO, ((*NEGATIVE, -inf), nan), (inf, inf)],
    "square": [(nan, nan), (ZERO, 0.0), (INFINITE, inf)],
    "tan": [*ODD_AT_ZERO, (INFINITE, nan)],
    "tanh": [*ODD_AT_ZERO, (inf, 1.0), (-inf, -1.0)],
    "trunc": [*WHOLE, (-0.5, -0.0), (0.5, 0.0), (-1.5, -1.0)],
}

NAN_GIVES_NAN = [(nan, ANY, nan), (ANY, nan, nan)]
ADD = [
    *NAN_GIVES_NAN,
    (inf, -inf, nan),
    (-inf, inf, nan),
    (inf, (*FINITE, inf), inf),
    (-inf, (*FINITE, -inf), -inf),
    (FINITE, inf, inf),
    (FINITE, -inf, -inf),
    (-0.0, -0.0, -0.0),
    (ZERO, ZERO, 0.0),
    *((ZERO, each, each) for each in NONZERO),
    *((each, ZERO, each) for each in NONZERO),
    *((each, -each, 0.0) for each in NONZERO),
]
# Of x1 / x2 and of x1 // x2 too.
QUOTIENT = [
    *NAN_GIVES_NAN,
    (INFINITE, INFINITE, nan),
    (ZERO, ZERO, nan),
    (0.0, POSITIVE, 0.0),
    (-0.0, POSITIVE, -0.0),
    (0.0, NEGATIVE, -0.0),
    (-0.0, NEGATIVE, 0.0),
    ((*POSITIVE, inf), 0.0, inf),
    ((*POSITIVE, inf), -0.0, -inf),
    ((*NEGATIVE, -inf), 0.0, -inf),
    ((*NEGATIVE, -inf), -0.0, inf),
    (inf, POSITIVE, inf),
    (inf, NEGATIVE, -inf),
    (-inf, POSITIVE, -inf),
    (-inf, NEGATIVE, inf),
    ((*POSITIVE, 0.0), inf, 0.0),
    ((*POSITIVE, 0.0), -inf, -0.0),
    ((*NEGATIVE, -0.0), inf, -0.0),
    ((*NEGATIVE, -0.0), -inf, 0.0),
]

REAL_PAIRS = {
    "add": ADD,
    "atan2": [
        *NAN_GIVES_NAN,
        (POSITIVE, ZERO, pi / 2),
        (0.0, (*POSITIVE, 0.0, inf), 0.0),
        (0.0, (*NEGATIVE, -0.0, -inf), pi),
        (-0.0, (*POSITIVE, 0.0, inf), -0.0),
        (-0.0, (*NEGATIVE, -0.0, -inf), -pi),
        (NEGATIVE, ZERO, -pi / 2),
        (POSITIVE, inf, 0.0),
        (POSITIVE, -inf, pi),
        (NEGATIVE, inf, -0.0),
        (NEGATIVE, -inf, -pi),
        (inf, FINITE, pi / 2),
        (-inf, FINITE, -pi / 2),
        (inf, inf, pi / 4),
        (inf, -inf, 3 * pi / 4),
        (-inf, inf, -pi / 4),
        (-inf, -inf, -3 * pi / 4),
    ],
    "copysign": [
        *((each, (*POSITIVE, inf, 0.0), math.fabs(each)) for each in NOT_NAN),
        *((each, (*NEGATIVE, -inf, -0.0), -math.fabs(each)) for each in NOT_NAN),
    ],
    "divide": QUOTIENT,
    "equal": [
        (nan, ANY, False),
        (ANY, nan, False),
        (ZERO, ZERO, True),
        *((each, each, True) for each in NONZERO + INFINITE),
        (inf, -inf, False),
        (-inf, inf, False),
        (INFINITE, FINITE, False),
        (0.75, 1.5, False),
    ],
    "floor_divide": [*QUOTIENT, (7.0, 2.0, 3.0), (-7.0, 2.0, -4.0), (7.0, -2.0, -4.0)],
    "hypot": [
        (INFINITE, ANY, inf),
        (ANY, INFINITE, inf),
        *((ZERO, each, math.fabs(each)) for each in FINITE),
        *((each, ZERO, math.fabs(each)) for each in FINITE),
        *NAN_GIVES_NAN,
    ],
    "logaddexp": [*NAN_GIVES_NAN, (inf, NOT_NAN, inf), (NOT_NAN, inf, inf)],
    "maximum": [*NAN_GIVES_NAN, (inf, NOT_NAN, inf), (-inf, 2.0, 2.0)],
    "minimum": [*NAN_GIVES_NAN, (-inf, NOT_NAN, -inf), (inf, 2.0, 2.0)],
    "multiply": [
        *NAN_GIVES_NAN,
        (INFINITE, ZERO, nan),
        (ZERO, INFINITE, nan),
        *(
            (a, b, copysign(inf, copysign(1, a) * copysign(1, b)))
            for a, b in itertools.product(NONZERO + INFINITE, repeat=2)
            if math.isinf(a) or math.isinf(b)
        ),
        *(
            (a, b, copysign(0, copysign(1, a) * copysign(1, b)))
            for a, b in [*itertools.product(ZERO, FINITE), *itertools.product(NONZERO, ZERO)]
        ),
    ],
    "nextafter": [*NAN_GIVES_NAN, (-0.0, 0.0, 0.0), (0.0, -0.0, -0.0), (1.5, 1.5, 1.5)],
    "not_equal": [
        (nan, ANY, True),
        (ANY, nan, True),
        (ZERO, ZERO, False),
        *((each, each, False) for each in NONZERO + INFINITE),
        (inf, -inf, True),
        (-inf, inf, True),
        (0.75, 1.5, True),
    ],
    "pow": [
        (ANY, ZERO, 1.0),
        (1.0, NOT_NAN, 1.0),
        (tuple(set(NOT_NAN) - {1.0}), nan, nan),
        (nan, (*NONZERO, inf, -inf, nan), nan),
        (OVER + negative(OVER), inf, inf),
        (OVER + negative(OVER), -inf, 0.0),
        (-1.0, INFINITE, 1.0),
        (BELOW_ONE + negative(BELOW_ONE) + ZERO, inf, 0.0),
        (BELOW_ONE + negative(BELOW_ONE) + ZERO, -inf, inf),
        (inf, POSITIVE, inf),
        (inf, NEGATIVE, 0.0),
        (-inf, ODD, -inf),
        (-inf, NOT_ODD, inf),
        (-inf, negative(ODD), -0.0),
        (-inf, negative(NOT_ODD), 0.0),
        (0.0, POSITIVE, 0.0),
        (0.0, NEGATIVE, inf),
        (-0.0, ODD, -0.0),
        (-0.0, NOT_ODD, 0.0),
        (-0.0, negative(ODD), -inf),
        (-0.0, negative(NOT_ODD), inf),
        (NEGATIVE, (0.5, -2.5, 0.75), nan),
    ],
    "remainder": [
        *NAN_GIVES_NAN,
        (INFINITE, ANY, nan),
        (ANY, ZERO, nan),
        (ZERO, (*POSITIVE, inf), 0.0),
        (ZERO, (*NEGATIVE, -inf), -0.0),
        *((each, inf, each) for each in POSITIVE),
        (POSITIVE, -inf, -inf),
        (NEGATIVE, inf, inf),
        *((each, -inf, each) for each in NEGATIVE),
        (5.5, 2.0, 1.5),
        (-5.5, 2.0, 0.5),
        (4.0, -2.0, -0.0),
        (-4.0, 2.0, 0.0),
    ],
    "subtract": [(a, negative(b) if isinstance(b, tuple) else -b, result) for a, b, result in ADD],
}

# -- complex arguments --------------------------------------------------------------------------

SOME_ZERO, SOME_INFINITY = (0.0, -0.0), (inf, -inf)


def cis(scale, offset=-0.0):
    """What becomes of a row's imaginary part b: scale * (cos(b) + sin(b)*1j) + offset."""
    return lambda b: (scale * math.cos(b) + offset, scale * math.sin(b))


# Rows: real part, imaginary part, result. Each function maps conjugates to conjugates.
COMPLEX = {
    "acos": [
        (ZERO, 0.0, (pi / 2, -0.0)),
        (ZERO, nan, (pi / 2, nan)),
        (FINITE, inf, (pi / 2, -inf)),
        (NONZERO, nan, (nan, nan)),
        (-inf, POSITIVE, (pi, -inf)),
        (inf, POSITIVE, (0.0, -inf)),
        (-inf, inf, (3 * pi / 4, -inf)),
        (inf, inf, (pi / 4, -inf)),
        (INFINITE, nan, (nan, SOME_INFINITY)),
        (nan, FINITE, (nan, nan)),
        (nan, inf, (nan, -inf)),
        (nan, nan, (nan, nan)),
    ],
    "acosh": [
        (ZERO, 0.0, (0.0, pi / 2)),
        (FINITE, inf, (inf, pi / 2)),
        (NONZERO, nan, (nan, nan)),
        (0.0, nan, (nan, (pi / 2, -pi / 2))),
        (-inf, POSITIVE, (inf, pi)),
        (inf, POSITIVE, (inf, 0.0)),
        (-inf, inf, (inf, 3 * pi / 4)),
        (inf, inf, (inf, pi / 4)),
        (INFINITE, nan, (inf, nan)),
        (nan, FINITE, (nan, nan)),
        (nan, inf, (inf, nan)),
        (nan, nan, (nan, nan)),
    ],
    "asinh": [
        (0.0, 0.0, (0.0, 0.0)),
        (POSITIVE, inf, (inf, pi / 2)),
        (FINITE, nan, (nan, nan)),
        (inf, POSITIVE, (inf, 0.0)),
        (inf, inf, (inf, pi / 4)),
        (nan, 0.0, (nan, 0.0)),
        (nan, NONZERO, (nan, nan)),
        (nan, inf, (SOME_INFINITY, nan)),
        (nan, nan, (nan, nan)),
    ],
    "atanh": [
        (0.0, 0.0, (0.0, 0.0)),
        (0.0, nan, (0.0, nan)),
        (1.0, 0.0, (inf, 0.0)),
        (POSITIVE, inf, (0.0, pi / 2)),
        (NONZERO, nan, (nan, nan)),
        (inf, POSITIVE, (0.0, pi / 2)),
        (inf, inf, (0.0, pi / 2)),
        (inf, nan, (0.0, nan)),
        (nan, FINITE, (nan, nan)),
        (nan, inf, (SOME_ZERO, pi / 2)),
        (nan, nan, (nan, nan)),
    ],
    "cosh": [
        (0.0, 0.0, (1.0, 0.0)),
        (0.0, inf, (nan, SOME_ZERO)),
        (0.0, nan, (nan, SOME_ZERO)),
        (NONZERO, inf, (nan, nan)),
        (NONZERO, nan, (nan, nan)),
        (inf, 0.0, (inf, 0.0)),
        (inf, NONZERO, cis(inf)),
        (inf, inf, (SOME_INFINITY, nan)),
        (inf, nan, (inf, nan)),
        (nan, ZERO, (nan, SOME_ZERO)),
        (nan, NONZERO, (nan, nan)),
        (nan, nan, (nan, nan)),
    ],
    "exp": [
        (ZERO, 0.0, (1.0, 0.0)),
        (FINITE, inf, (nan, nan)),
        (FINITE, nan, (nan, nan)),
        (inf, 0.0, (inf, 0.0)),
        (-inf, FINITE, cis(0.0)),
        (inf, NONZERO, cis(inf)),
        (-inf, inf, (SOME_ZERO, SOME_ZERO)),
        (inf, inf, (SOME_INFINITY, nan)),
        (-inf, nan, (SOME_ZERO, SOME_ZERO)),
        (inf, nan, (SOME_INFINITY, nan)),
        (nan, 0.0, (nan, 0.0)),
        (nan, (*NONZERO, inf, nan), (nan, nan)),
    ],
    "expm1": [
        (ZERO, 0.0, (0.0, 0.0)),
        (FINITE, inf, (nan, nan)),
        (FINITE, nan, (nan, nan)),
        (inf, 0.0, (inf, 0.0)),
        (-inf, FINITE, cis(0.0, -1.0)),
        (inf, NONZERO, cis(inf, -1.0)),
        (-inf, inf, (-1.0, SOME_ZERO)),
        (inf, inf, (SOME_INFINITY, nan)),
        (-inf, nan, (-1.0, SOME_ZERO)),
        (inf, nan, (SOME_INFINITY, nan)),
        (nan, 0.0, (nan, 0.0)),
        (nan, (*NONZERO, inf, nan), (nan, nan)),
    ],
    "log": [
        (-0.0, 0.0, (-inf, pi)),
        (0.0, 0.0, (-inf, 0.0)),
        (FINITE, inf, (inf, pi / 2)),
        (FINITE, nan, (nan, nan)),
        (-inf, POSITIVE, (inf, pi)),
        (inf, POSITIVE, (inf, 0.0)),
        (-inf, inf, (inf, 3 * pi / 4)),
        (inf, inf, (inf, pi / 4)),
        (INFINITE, nan, (inf, nan)),
        (nan, FINITE, (nan, nan)),
        (nan, inf, (inf, nan)),
        (nan, nan, (nan, nan)),
    ],
    "log1p": [
        (-1.0, 0.0, (-inf, 0.0)),
        (FINITE, inf, (inf, pi / 2)),
        (FINITE, nan, (nan, nan)),
        (-inf, POSITIVE, (inf, pi)),
        (inf, POSITIVE, (inf, 0.0)),
        (-inf, inf, (inf, 3 * pi / 4)),
        (inf, inf, (inf, pi / 4)),
        (INFINITE, nan, (inf, nan)),
        (nan, FINITE, (nan, nan)),
        (nan, inf, (inf, nan)),
        (nan, nan, (nan, nan)),
    ],
    "sinh": [
        (0.0, 0.0, (0.0, 0.0)),
        (0.0, inf, (SOME_ZERO, nan)),
        (0.0, nan, (SOME_ZERO, nan)),
        (POSITIVE, inf, (nan, nan)),
        (POSITIVE, nan, (nan, nan)),
        (inf, 0.0, (inf, 0.0)),
        (inf, POSITIVE, cis(inf)),
        (inf, inf, (SOME_INFINITY, nan)),
        (inf, nan, (SOME_INFINITY, nan)),
        (nan, 0.0, (nan, 0.0)),
        (nan, NONZERO, (nan, nan)),
        (nan, nan, (nan, nan)),
    ],
    "sqrt": [
        (ZERO, 0.0, (0.0, 0.0)),
        (ANY, inf, (inf, inf)),
        (FINITE, nan, (nan, nan)),
        (-inf, POSITIVE, (0.0, inf)),
        (inf, POSITIVE, (inf, 0.0)),
        (-inf, nan, (nan, SOME_INFINITY)),
        (inf, nan, (inf, nan)),
        (nan, (*FINITE, nan), (nan, nan)),
    ],
    "tanh": [
        (0.0, 0.0, (0.0, 0.0)),
        (NONZERO, inf, (nan, nan)),
        (0.0, inf, (0.0, nan)),
        (NONZERO, nan, (nan, nan)),
        (0.0, nan, (0.0, nan)),
        (inf, POSITIVE, (1.0, 0.0)),
        (inf, inf, (1.0, SOME_ZERO)),
        (inf, nan, (1.0, SOME_ZERO)),
        (nan, 0.0, (nan, 0.0)),
        (nan, NONZERO, (nan, nan)),
        (nan, nan, (nan, nan)),
    ],
}
ODD_FUNCTIONS = ("asinh", "atanh", "sinh", "tanh")


def parts_of(values):
    return values if isinstance(values, tuple) else (values,)


def minus(part):
    """Return a part of a result, or each that it may be, with the other sign."""
    return negative(part) if isinstance(part, tuple) else -part


def key(*numbers):
    """Return numbers so that zeros differ, and NaN is equal to itself."""
    return tuple(map(repr, map(float, numbers)))


def expanded(rows):
    """Return the cases of rows by arguments, of which the first holds."""
    cases = {}
    for *arguments, result in rows:
        for each in itertools.product(*map(parts_of, arguments)):
            cases.setdefault(key(*each), (each, result))
    return list(cases.values())


def complex_cases(name):
    """Return arguments and parts of results, mirrored as the function is."""
    cases = {}
    for (a, b), result in expanded(COMPLEX[name]):
        re, im = result(b) if callable(result) else result
        if name == "tanh" and a == 0 and not math.isfinite(b):
            re = (re, nan)  # the standard excuses those who have it of an older C library
        found = [((a, b), (re, im)), ((a, -b), (re, minus(im)))]
        if name in ODD_FUNCTIONS:
            found += [((-x, -y), (minus(u), minus(v))) for (x, y), (u, v) in found]
        if name == "cosh":
            found += [((-x, -y), result) for (x, y), result in found]
        for arguments, result in found:
            cases.setdefault(key(*arguments), (arguments, result))
    return list(cases.values())


def rotated(cases):
    """Return the cases of f where -1j * f(z * 1j) is wanted, given those of f."""
    return [((b, -a), (im, minus(re))) for (a, b), (re, im) in cases]


def scaled(cases, factor):
    """Return cases whose results are multiplied by a factor."""
    return [
        (z, tuple(tuple(each * factor for each in parts_of(part)) for part in result))
        for z, result in cases
    ]


COMPLEX_CASES = {name: complex_cases(name) for name in COMPLEX}
COMPLEX_CASES |= {
    "asin": rotated(COMPLEX_CASES["asinh"]),
    "atan": rotated(COMPLEX_CASES["atanh"]),
    "cos": [((b, -a), result) for (a, b), result in COMPLEX_CASES["cosh"]],
    "sin": rotated(COMPLEX_CASES["sinh"]),
    "tan": rotated(COMPLEX_CASES["tanh"]),
    "log2": scaled(COMPLEX_CASES["log"], 1 / math.log(2)),
    "log10": scaled(COMPLEX_CASES["log"], 1 / math.log(10)),
    "sign": expanded([(ZERO, ZERO, (0.0, 0.0)), (nan, ANY, (nan, nan)), (ANY, nan, (nan, nan))]),
    "round": [
        ((a, b), (u, v))
        for ((a,), u), ((b,), v) in itertools.product(expanded(REAL["round"]), repeat=2)
    ],
}
# Of complex arguments with results that are real.
COMPLEX_TO_REAL = {
    "abs": [
        (INFINITE, ANY, inf),
        (ANY, INFINITE, inf),
        *((ZERO, each, math.fabs(each)) for each in FINITE),
        *((each, ZERO, math.fabs(each)) for each in FINITE),
        (nan, ANY, nan),
        (ANY, nan, nan),
    ],
    "isfinite": [
        (nan, ANY, False),
        (ANY, nan, False),
        (INFINITE, ANY, False),
        (ANY, INFINITE, False),
        (FINITE, FINITE, True),
    ],
    "isinf": [(INFINITE, ANY, True), (ANY, INFINITE, True), (FINITE, FINITE, False)],
    "isnan": [(nan, ANY, True), (ANY, nan, True), (NOT_NAN, NOT_NAN, False)],
}

OPERATORS = {
    "add": (operator.add, operator.iadd),
    "subtract": (operator.sub, operator.isub),
    "multiply": (operator.mul, operator.imul),
    "divide": (operator.truediv, operator.itruediv),
    "floor_divide": (operator.floordiv, operator.ifloordiv),
    "remainder": (operator.mod, operator.imod),
    "pow": (operator.pow, operator.ipow),
    "equal": (operator.eq, None),
    "not_equal": (operator.ne, None),
}


# -- the judge ----------------------------------------------------------------------------------


def is_part(value, wanted, dtype):
    """Tell whether parts of results are what is wanted: signs of zeros too, and NaN for NaN."""
    if wanted != wanted:
        return np.isnan(value)
    if math.isinf(wanted):
        return value == wanted
    near = np.abs(value - wanted) <= 2 * eps_of(dtype) * math.fabs(wanted)
    return near & (np.signbit(value) == (copysign(1, wanted) < 0))


def agrees(result, wanted, size, dtype):
    """Tell whether every element of a result is what is wanted, or one that may be."""
    value = np.asarray(result)
    assert result.device == DEVICE
    assert value.shape == (size,)
    assert value.dtype == (np.bool_ if isinstance(wanted, bool) else part_of(dtype))
    if isinstance(wanted, bool):
        return (value == wanted).all()
    return any(np.all(is_part(value, each, dtype)) for each in parts_of(wanted))


def filled(number, size, dtype):
    return xp.full(size, number, dtype=dtype, device=DEVICE)


@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("name", REAL)
def test_real_arguments(name, dtype):
    cases = expanded(REAL[name])
    forms = [getattr(xp, name), *([operator.abs] if name == "abs" else [])]
    # alone, among equal ones, and among all the others
    together = xp.asarray([x for (x,), _ in cases], dtype=dtype, device=DEVICE)
    for form in forms:
        mixed = form(together)
        for at, ((x,), wanted) in enumerate(cases):
            assert agrees(mixed[at : at + 1], wanted, 1, dtype), (x, wanted)
            for size in SIZES:
                assert agrees(form(filled(x, size, dtype)), wanted, size, dtype), (x, wanted, size)


@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("name", REAL_PAIRS)
def test_two_real_arguments(name, dtype):
    function = getattr(xp, name)
    on, in_place = OPERATORS.get(name, (function, None))
    for ((a, b), wanted), size in itertools.product(expanded(REAL_PAIRS[name]), SIZES):
        x, y = filled(a, size, dtype), filled(b, size, dtype)
        results = [function(x, y), function(x, b), function(a, y), on(x, y), on(x, b), on(a, y)]
        if in_place is not None:
            results.append(in_place(xp.asarray(x, copy=True), y))
        for form, result in enumerate(results):
            assert agrees(result, wanted, size, dtype), (a, b, wanted, size, form)


@pytest.mark.parametrize("dtype", COMPLEXES, ids=str)
@pytest.mark.parametrize("name", COMPLEX_CASES)
def test_complex_arguments(name, dtype):
    function = getattr(xp, name)
    for ((a, b), (re, im)), size in itertools.product(COMPLEX_CASES[name], SIZES):
        result = function(filled(complex(a, b), size, dtype))
        assert result.dtype == dtype
        assert agrees(xp.real(result), re, size, dtype), (a, b, re, im, size, result[0])
        assert agrees(xp.imag(result), im, size, dtype), (a, b, re, im, size, result[0])


@pytest.mark.parametrize("dtype", COMPLEXES, ids=str)
@pytest.mark.parametrize("name", COMPLEX_TO_REAL)
def test_complex_arguments_with_real_results(name, dtype):
    function = getattr(xp, name)
    for ((a, b), wanted), size in itertools.product(expanded(COMPLEX_TO_REAL[name]), SIZES):
        x = filled(complex(a, b), size, dtype)
        assert agrees(function(x), wanted, size, dtype), (a, b, wanted, size)


@pytest.mark.parametrize("dtype", COMPLEXES, ids=str)
@pytest.mark.parametrize("name", ["add", "subtract"])
def test_parts_of_complex_numbers_are_added_on_their_own(name, dtype):
    cases = dict((key(*each), result) for each, result in expanded(REAL_PAIRS[name]))
    some = (0.0, -0.0, 1.5, inf, -inf, nan)
    known = [pair for pair in itertools.product(some, repeat=2) if key(*pair) in cases]
    on, in_place = OPERATORS[name]
    for (a, c), (b, d) in itertools.product(known, repeat=2):
        re, im = cases[key(a, c)], cases[key(b, d)]
        for size in SIZES:
            x, y = filled(complex(a, b), size, dtype), filled(complex(c, d), size, dtype)
            for result in (on(x, y), in_place(xp.asarray(x, copy=True), y)):
                assert agrees(xp.real(result), re, size, dtype), (a, b, c, d, size)
                assert agrees(xp.imag(result), im, size, dtype), (a, b, c, d, size)


@pytest.mark.parametrize("dtype", COMPLEXES, ids=str)
def test_complex_numbers_with_nan_are_equal_to_nothing(dtype):
    some = (0.0, -0.0, 1.5, inf, -inf, nan)
    for a, b, c, d in itertools.product(some, repeat=4):
        equal = a == c and b == d
        x, y = filled(complex(a, b), 3, dtype), filled(complex(c, d), 3, dtype)
        assert agrees(xp.equal(x, y), equal, 3, dtype), (a, b, c, d)
        assert agrees(xp.not_equal(x, y), not equal, 3, dtype), (a, b, c, d)


@pytest.mark.parametrize("dtype", COMPLEXES, ids=str)
def test_products_and_quotients_of_nothing_but_nan_are_nan(dtype):
    for size in SIZES:
        z = filled(complex(nan, nan), size, dtype)
        for result in (z * z, z / z, xp.square(z)):
            assert agrees(xp.real(result), nan, size, dtype)
            assert agrees(xp.imag(result), nan, size, dtype)


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_the_sign_of_nan_is_copied_and_seen(dtype):
    for size in SIZES:
        for magnitude in (nan, -nan, 1.5, inf, -0.0):
            x = filled(magnitude, size, dtype)
            for sign, is_negative in ((nan, False), (-nan, True), (-0.0, True), (2.0, False)):
                result = xp.copysign(x, filled(sign, size, dtype))
                assert agrees(xp.signbit(result), is_negative, size, dtype), (magnitude, sign)
                assert agrees(xp.isnan(result), math.isnan(magnitude), size, dtype)


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_clip_gives_nan_where_an_argument_is(dtype):
    limits = [(nan, 0.0, 1.0), (0.5, nan, 1.0), (0.5, 0.0, nan), (nan, None, 1.0), (0.5, nan, None)]
    for size, (x, low, high) in itertools.product(SIZES, limits):
        given = [None if each is None else filled(each, size, dtype) for each in (low, high)]
        assert agrees(xp.clip(filled(x, size, dtype), *given), nan, size, dtype)
        assert agrees(xp.clip(filled(x, size, dtype), low, high), nan, size, dtype)


@pytest.mark.parametrize("dtype", [*REALS, *COMPLEXES], ids=str)
@pytest.mark.parametrize(("name", "sign"), [("sinh", -1), ("tanh", -1), ("cosh", 1)])
def test_odd_and_even_functions(name, sign, dtype):
    parts = (0.0, 2.0**-30, 0.5, 0.75)
    function = getattr(xp, name)
    for a, b in itertools.product(parts, parts if dtype in COMPLEXES else (0.0,)):
        x = filled(complex(a, b) if dtype in COMPLEXES else a, 17, dtype)
        result = function(x) if sign > 0 else -function(x)
        assert np.asarray(result).tobytes() == np.asarray(function(-x)).tobytes(), (a, b)
