"""Elementwise functions. They shadow builtins: helpers here must not use abs, pow or round."""

from typing import Any

import numpy as np

from ggarray import _special_cases as special_cases
from ggarray._array import Array, Operand, negative as _negative, wrap
from ggarray._namespace._calls import Kind, binary_of, device_of, read, unary
from ggarray._storage import Plain

_COUNT = "integers and bool count as float16 up to 8 bits, float32 up to 16, else float64"
_ORDER = "complex elements are ordered by their real, then their imaginary parts"
_PROMOTED = "of the dtype that they promote to"

_TRUTH = Kind("Of any plain dtype", "of bool", "", "bool")

# Functions of one array.
_SIGN = Kind("Real", "of bool", ", complex", "bool")
_FLOATING = Kind(f"Floating; {_COUNT}", "of the dtype that it counts as", "", "float64")
_NUMERIC = Kind("Numeric", "of its dtype", "", "float64")
_COMPLEX = _NUMERIC._replace(dtype="complex128")
_SIGNED = _NUMERIC._replace(refused=", of bool")
_PART = _NUMERIC._replace(result="real, of its precision")
_REAL = _NUMERIC._replace(operand="Real", refused=", complex")
_BITS = Kind("Of an integer dtype or bool", "of its dtype", ", floating", "int64")

# Functions of two.
_NUMBERS = Kind("Numeric", _PROMOTED, "", "float64")
_DIFFERENCE = _NUMBERS._replace(refused=", both are of bool")
_QUOTIENT = _NUMBERS._replace(result="of the promoted dtype, float64 for integers")
_REALS = _NUMBERS._replace(operand="Real", refused=", one is complex")
_FLOATING_REALS = _REALS._replace(operand=f"Real floating; {_COUNT}")
_EXTREME = _NUMBERS._replace(operand=f"Numeric; {_ORDER}")
_COMPARED = _TRUTH._replace(operand=f"Of any plain dtype; {_ORDER}")
_PLACES = Kind("Of integer dtypes", _PROMOTED, ", one is floating", "int64")
_BIT_PAIRS = _PLACES._replace(operand="Of integer dtypes or bool")

# A table: two lines a function.
# fmt: off
abs = unary("abs", np.abs, _PART,
    "Absolute value; of complex elements, their magnitude.", "[-1.0, 2.0]", "[1., 2.]")
acos = unary("acos", np.arccos, _FLOATING, "Inverse cosine, in radians.", "[1.0]", "[0.]")
acosh = unary("acosh", np.arccosh, _FLOATING, "Inverse hyperbolic cosine.", "[1.0]", "[0.]")
asin = unary("asin", np.arcsin, _FLOATING, "Inverse sine, in radians.", "[0.0]", "[0.]")
asinh = unary("asinh", np.arcsinh, _FLOATING, "Inverse hyperbolic sine.", "[0.0]", "[0.]")
atan = unary("atan", np.arctan, _FLOATING,
    "Inverse tangent, in radians.", "[0.0, xp.inf]", "[0.        , 1.57079633]")
atanh = unary("atanh", np.arctanh, _FLOATING, "Inverse hyperbolic tangent.", "[0.0]", "[0.]")
bitwise_invert = unary("bitwise_invert", np.invert, _BITS,
    "Each bit inverted; of truth values, not.", "[0, 5]", "[-1, -6]")
ceil = unary("ceil", np.ceil, _REAL,
    "Least integer that is not less, in the same dtype.", "[-1.5, 1.5]", "[-1.,  2.]")
conj = unary("conj", np.conj, _COMPLEX,
    "Complex conjugate; real elements stay.", "[1 + 2j]", "[1.-2.j]")
cos = unary("cos", np.cos, _FLOATING,
    "Cosine of an angle in radians.", "[0.0, xp.pi]", "[ 1., -1.]")
cosh = unary("cosh", np.cosh, _FLOATING, "Hyperbolic cosine.", "[0.0]", "[1.]")
exp = unary("exp", np.exp, _FLOATING,
    "e to the power of each element.", "[0.0, 1.0]", "[1.        , 2.71828183]")
expm1 = unary("expm1", special_cases.expm1, _FLOATING,
    "``exp(x) - 1``, accurate near 0.", "[1e-20]", "[1.e-20]")
floor = unary("floor", np.floor, _REAL,
    "Greatest integer that is not greater, in the same dtype.", "[-1.5, 1.5]", "[-2.,  1.]")
imag = unary("imag", special_cases.imag, _PART,
    "Imaginary part, a view; 0 for real elements.", "[1 + 2j, 3]", "[2., 0.]")
isfinite = unary("isfinite", np.isfinite, _TRUTH, "Whether an element is neither infinite nor NaN.",
    "[1.0, xp.inf, xp.nan]", "[ True, False, False]")
isinf = unary("isinf", np.isinf, _TRUTH,
    "Whether an element is infinite; of a complex one, a part.",
    "[1.0, -xp.inf, xp.nan]", "[False,  True, False]")
isnan = unary("isnan", np.isnan, _TRUTH, "Whether an element is NaN; of a complex one, a part.",
    "[1.0, xp.inf, xp.nan]", "[False, False,  True]")
log = unary("log", np.log, _FLOATING, "Natural logarithm.", "[1.0, xp.e]", "[0., 1.]")
log10 = unary("log10", np.log10, _FLOATING, "Logarithm to base 10.", "[0.1, 100.0]", "[-1.,  2.]")
log1p = unary("log1p", special_cases.log1p, _FLOATING,
    "``log(1 + x)``, accurate near 0.", "[1e-20]", "[1.e-20]")
log2 = unary("log2", np.log2, _FLOATING, "Logarithm to base 2.", "[0.5, 8.0]", "[-1.,  3.]")
logical_not = unary("logical_not", np.logical_not, _TRUTH,
    "Whether an element is 0, or False.", "[0.0, 2.0]", "[ True, False]")
positive = unary("positive", np.positive, _SIGNED,
    "Each element as it is; a copy.", "[-1.0, 2.0]", "[-1.,  2.]")
real = unary("real", np.real, _PART,
    "Real part, a view; real elements stay.", "[1 + 2j, 3]", "[1., 3.]")
reciprocal = unary("reciprocal", np.reciprocal, _NUMERIC,
    "``1 / x``, in the same dtype.", "[4.0]", "[0.25]")
round = unary("round", np.round, _NUMERIC,
    "Nearest integer, the even one of two, in the same dtype.",
    "[0.5, 1.5, -1.2]", "[ 0.,  2., -1.]")
sign = unary("sign", special_cases.sign, _SIGNED,
    "-1, 0 or 1; of complex elements, ``x / abs(x)`` or 0.", "[-3.0, 0.0, 2.0]", "[-1.,  0.,  1.]")
signbit = unary("signbit", np.signbit, _SIGN,
    "Whether the sign bit is set, as it is in -0.", "[-0.0, 0.0]", "[ True, False]")
sin = unary("sin", np.sin, _FLOATING,
    "Sine of an angle in radians.", "[0.0, xp.pi / 2]", "[0., 1.]")
sinh = unary("sinh", np.sinh, _FLOATING, "Hyperbolic sine.", "[0.0]", "[0.]")
sqrt = unary("sqrt", np.sqrt, _FLOATING,
    "Square root; of complex elements, that with real part >= 0.", "[4.0, 9.0]", "[2., 3.]")
square = unary("square", np.square, _NUMERIC, "Each element times itself.", "[-3.0]", "[9.]")
tan = unary("tan", special_cases.tan, _FLOATING,
    "Tangent of an angle in radians.", "[0.0, xp.pi / 4]", "[0., 1.]")
tanh = unary("tanh", special_cases.tanh, _FLOATING,
    "Hyperbolic tangent.", "[0.0, xp.inf]", "[0., 1.]")
trunc = unary("trunc", np.trunc, _REAL,
    "Nearest integer towards 0, in the same dtype.", "[-1.5, 1.5]", "[-1.,  1.]")

add = binary_of("add", np.add, _NUMBERS,
    "Sum of two arrays, recorded if one is pending.", "[1.0, 2.0]", "10", "[11., 12.]")
atan2 = binary_of("atan2", np.arctan2, _FLOATING_REALS, "Angle of the point (x2, x1), in radians.",
    "[1.0, -1.0]", "[-1.0, 0.0]", "[ 2.35619449, -1.57079633]")
bitwise_and = binary_of("bitwise_and", np.bitwise_and, _BIT_PAIRS,
    "And of each bit, or of truth values.", "[12, 10]", "6", "[4, 2]")
bitwise_left_shift = binary_of("bitwise_left_shift", np.left_shift, _PLACES,
    "Bits moved up by x2 places: times 2 to that power.", "[1, 5]", "2", "[ 4, 20]")
bitwise_or = binary_of("bitwise_or", np.bitwise_or, _BIT_PAIRS,
    "Or of each bit, or of truth values.", "[12, 10]", "6", "[14, 14]")
bitwise_right_shift = binary_of("bitwise_right_shift", np.right_shift, _PLACES,
    "Bits moved down by x2 places; the sign stays.", "[20, -5]", "2", "[ 5, -2]")
bitwise_xor = binary_of("bitwise_xor", np.bitwise_xor, _BIT_PAIRS,
    "Exclusive or of each bit, or of truth values.", "[12, 10]", "6", "[10, 12]")
copysign = binary_of("copysign", np.copysign, _FLOATING_REALS,
    "Magnitude of x1 with the sign of x2.", "[1.0, 2.0]", "-0.0", "[-1., -2.]")
divide = binary_of("divide", np.divide, _QUOTIENT,
    "Quotient, floating also for integers.", "[1, 2]", "4", "[0.25, 0.5 ]")
equal = binary_of("equal", np.equal, _TRUTH, "Whether elements are equal; NaN is not equal to NaN.",
    "[1.0, xp.nan]", "[1.0, xp.nan]", "[ True, False]")
floor_divide = binary_of("floor_divide", special_cases.floor_divide, _REALS,
    "Floor of the quotient, which is the quotient itself where an operand is infinite.",
    "[7.0, -7.0, xp.inf]", "2.0", "[ 3., -4., inf]")
greater = binary_of("greater", np.greater, _COMPARED,
    "Whether x1 is greater than x2.", "[1.0, 3.0]", "2", "[False,  True]")
greater_equal = binary_of("greater_equal", np.greater_equal, _COMPARED,
    "Whether x1 is not less than x2.", "[1.0, 2.0]", "2", "[False,  True]")
hypot = binary_of("hypot", np.hypot, _FLOATING_REALS,
    "``sqrt(x1 ** 2 + x2 ** 2)`` without overflow on the way.",
    "[3.0, 3e200]", "[4.0, 4e200]", "[5.e+000, 5.e+200]")
less = binary_of("less", np.less, _COMPARED,
    "Whether x1 is less than x2.", "[1.0, 3.0]", "2", "[ True, False]")
less_equal = binary_of("less_equal", np.less_equal, _COMPARED,
    "Whether x1 is not greater than x2.", "[2.0, 3.0]", "2", "[ True, False]")
logaddexp = binary_of("logaddexp", np.logaddexp, _FLOATING_REALS,
    "``log(exp(x1) + exp(x2))`` without overflow.", "[1000.0]", "[1000.0]", "[1000.69314718]")
logical_and = binary_of("logical_and", np.logical_and, _TRUTH,
    "Whether both are true, that is not 0.", "[0, 0, 2]", "[0, 3, 3]", "[False, False,  True]")
logical_or = binary_of("logical_or", np.logical_or, _TRUTH,
    "Whether one or both are true, that is not 0.",
    "[0, 0, 2]", "[0, 3, 3]", "[False,  True,  True]")
logical_xor = binary_of("logical_xor", np.logical_xor, _TRUTH,
    "Whether just one is true, that is not 0.", "[0, 0, 2]", "[0, 3, 3]", "[False,  True, False]")
maximum = binary_of("maximum", np.maximum, _EXTREME,
    "The greater element; NaN if one is NaN.", "[1.0, xp.nan]", "2.0", "[ 2., nan]")
minimum = binary_of("minimum", np.minimum, _EXTREME,
    "The lesser element; NaN if one is NaN.", "[1.0, xp.nan]", "2.0", "[ 1., nan]")
multiply = binary_of("multiply", np.multiply, _NUMBERS,
    "Product of elements; of a pending array and a scalar, recorded.",
    "[1.0, 2.0]", "[3.0, 4.0]", "[3., 8.]")
nextafter = binary_of("nextafter", np.nextafter, _FLOATING_REALS,
    "Number next to x1 in the direction of x2.", "[0.0]", "1.0", "[5.e-324]")
not_equal = binary_of("not_equal", np.not_equal, _TRUTH,
    "Whether elements differ; NaN differs from NaN.",
    "[1.0, xp.nan]", "[1.0, xp.nan]", "[False,  True]")
pow = binary_of("pow", special_cases.power, _NUMBERS,
    "x1 to the power x2; ValueError for integers to a negative power.",
    "[2.0, 3.0]", "2", "[4., 9.]")
remainder = binary_of("remainder", np.remainder, _REALS,
    "Remainder with the sign of the divisor x2.", "[7.0, -7.0]", "3.0", "[1., 2.]")
subtract = binary_of("subtract", np.subtract, _DIFFERENCE,
    "Difference, recorded if an array is pending.", "[1.0, 2.0]", "[3.0, 5.0]", "[-2., -3.]")
# fmt: on


def negative(x: Array, /) -> Array:
    """Each element with the other sign; recorded if `x` is pending.

    Parameters
    ----------
    x : Array
        Numeric.

    Returns
    -------
    Array
        Of the shape and dtype of `x`.

    Raises
    ------
    TypeError
        `x` is of bool, quantized, or no Array.

    Examples
    --------
    >>> product = xp.ones((2, 2)) @ xp.ones((2, 2))
    >>> xp.is_pending(xp.negative(product))
    True
    >>> xp.negative(product)
    Array([[-2., -2.],
           [-2., -2.]], dtype=float64, device='cpu')
    """
    device_of(x)
    return _negative(x)


def clip(x: Array, /, min: Operand | None = None, max: Operand | None = None) -> Array:
    """Limit elements to the range from `min` to `max`, which broadcast with `x`.

    Parameters
    ----------
    x : Array
        Its dtype is the result's; NaN stays.
    min, max : int, float or Array, optional
        The limits; integer ones if `x` is of an integer dtype, where a limit out of the range of
        the dtype counts as the end of the range. Elements are `max` where `min` is greater, and
        NaN where a limit is.

    Returns
    -------
    Array
        Of the shape that all broadcast to and the dtype of `x`; a copy.

    Raises
    ------
    TypeError
        A limit is of a kind that x's dtype cannot hold, or `x` is quantized or no Array.
    ValueError
        The shapes do not broadcast, or the devices do not mix.

    Examples
    --------
    >>> xp.clip(xp.asarray([-2.0, 0.5, 3.0]), 0, 1)
    Array([0. , 0.5, 1. ], dtype=float64, device='cpu')
    >>> xp.clip(xp.asarray([10, 200], dtype=xp.uint8), max=1000)
    Array([ 10, 200], dtype=uint8, device='cpu')
    """
    device = device_of(x, min, max)
    value = read(x)
    if min is None and max is None:
        return wrap(value.copy(), device)
    if min is not None:
        value = np.maximum(value, _limit(min, value.dtype))
    if max is not None:
        value = np.minimum(value, _limit(max, value.dtype))
    return wrap(value, device)


_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}  # V: bfloat16


def _limit(limit: Any, dtype: np.dtype[Any]) -> Plain:
    """Return a limit of elements of this dtype in the dtype."""
    ends = np.iinfo(dtype) if dtype.kind in "iu" else None
    if ends is not None and type(limit) is int:
        limit = sorted((ends.min, limit, ends.max))[1]
    value = read(limit) if isinstance(limit, Array) else np.asarray(limit)
    if _RANKS.get(value.dtype.kind, 4) > _RANKS[dtype.kind]:
        raise TypeError(f"clip: {value.dtype} limits for an array of {dtype}")
    with np.errstate(over="ignore"):
        result = value.astype(dtype)
    if ends is not None:
        result[value < ends.min] = ends.min
        result[value > ends.max] = ends.max
    return result
