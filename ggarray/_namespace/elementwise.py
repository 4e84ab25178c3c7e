"""Elementwise functions. They shadow builtins: helpers here must not use abs, pow or round."""

from typing import Any

import numpy as np

from ggarray import _special_cases as special_cases
from ggarray._array import Array, negative as _negative, wrap
from ggarray._namespace._calls import binary_of, device_of, read, unary
from ggarray._storage import Plain

abs = unary("abs", np.abs, "Absolute value; of complex elements, their magnitude.")
acos = unary("acos", np.arccos, "Inverse cosine, in radians.")
acosh = unary("acosh", np.arccosh, "Inverse hyperbolic cosine.")
asin = unary("asin", np.arcsin, "Inverse sine, in radians.")
asinh = unary("asinh", np.arcsinh, "Inverse hyperbolic sine.")
atan = unary("atan", np.arctan, "Inverse tangent, in radians.")
atanh = unary("atanh", np.arctanh, "Inverse hyperbolic tangent.")
bitwise_invert = unary("bitwise_invert", np.invert, "Each bit inverted; of truth values, not.")
ceil = unary("ceil", np.ceil, "Least integer that is not less, in the same dtype.")
conj = unary("conj", np.conj, "Complex conjugate; real elements stay.")
cos = unary("cos", np.cos, "Cosine of an angle in radians.")
cosh = unary("cosh", np.cosh, "Hyperbolic cosine.")
exp = unary("exp", np.exp, "e to the power of each element.")
expm1 = unary("expm1", special_cases.expm1, "``exp(x) - 1``, accurate near 0.")
floor = unary("floor", np.floor, "Greatest integer that is not greater, in the same dtype.")
imag = unary("imag", special_cases.imag, "Imaginary part, a view; 0 for real elements.")
isfinite = unary("isfinite", np.isfinite, "Whether an element is neither infinite nor NaN.")
isinf = unary("isinf", np.isinf, "Whether an element is infinite; of a complex one, a part.")
isnan = unary("isnan", np.isnan, "Whether an element is NaN; of a complex one, a part.")
log = unary("log", np.log, "Natural logarithm.")
log10 = unary("log10", np.log10, "Logarithm to base 10.")
log1p = unary("log1p", np.log1p, "``log(1 + x)``, accurate near 0.")
log2 = unary("log2", np.log2, "Logarithm to base 2.")
logical_not = unary("logical_not", np.logical_not, "Whether an element is 0, or False.")
positive = unary("positive", np.positive, "A copy.")
real = unary("real", np.real, "Real part, a view; real elements stay.")
reciprocal = unary("reciprocal", np.reciprocal, "``1 / x``, in the same dtype.")
round = unary("round", np.round, "Nearest integer, the even one of two, in the same dtype.")
sign = unary("sign", special_cases.sign, "-1, 0 or 1; of complex elements, ``x / abs(x)`` or 0.")
signbit = unary("signbit", np.signbit, "Whether the sign bit is set, as it is in -0.")
sin = unary("sin", np.sin, "Sine of an angle in radians.")
sinh = unary("sinh", np.sinh, "Hyperbolic sine.")
sqrt = unary("sqrt", np.sqrt, "Square root; of complex elements, that with real part >= 0.")
square = unary("square", np.square, "Each element times itself.")
tan = unary("tan", special_cases.tan, "Tangent of an angle in radians.")
tanh = unary("tanh", special_cases.tanh, "Hyperbolic tangent.")
trunc = unary("trunc", np.trunc, "Nearest integer towards 0, in the same dtype.")

add = binary_of("add", np.add, "Sum of two arrays, recorded if one is pending.")
atan2 = binary_of("atan2", np.arctan2, "Angle of the point (x2, x1), in radians.")
bitwise_and = binary_of("bitwise_and", np.bitwise_and, "And of each bit, or of truth values.")
bitwise_left_shift = binary_of(
    "bitwise_left_shift", np.left_shift, "Bits moved up by x2 places: times 2 to that power."
)
bitwise_or = binary_of("bitwise_or", np.bitwise_or, "Or of each bit, or of truth values.")
bitwise_right_shift = binary_of(
    "bitwise_right_shift", np.right_shift, "Bits moved down by x2 places; the sign stays."
)
bitwise_xor = binary_of(
    "bitwise_xor", np.bitwise_xor, "Exclusive or of each bit, or of truth values."
)
copysign = binary_of("copysign", np.copysign, "Magnitude of x1 with the sign of x2.")
divide = binary_of("divide", np.divide, "Quotient, floating also for integers.")
equal = binary_of("equal", np.equal, "Whether elements are equal; NaN is not equal to NaN.")
floor_divide = binary_of(
    "floor_divide",
    special_cases.floor_divide,
    "Floor of the quotient, which is the quotient itself where an operand is infinite.",
)
greater = binary_of("greater", np.greater, "Whether x1 is greater than x2.")
greater_equal = binary_of("greater_equal", np.greater_equal, "Whether x1 is not less than x2.")
hypot = binary_of("hypot", np.hypot, "``sqrt(x1 ** 2 + x2 ** 2)`` without overflow on the way.")
less = binary_of("less", np.less, "Whether x1 is less than x2.")
less_equal = binary_of("less_equal", np.less_equal, "Whether x1 is not greater than x2.")
logaddexp = binary_of("logaddexp", np.logaddexp, "``log(exp(x1) + exp(x2))`` without overflow.")
logical_and = binary_of("logical_and", np.logical_and, "Whether both are true, that is not 0.")
logical_or = binary_of("logical_or", np.logical_or, "Whether one or both are true, that is not 0.")
logical_xor = binary_of("logical_xor", np.logical_xor, "Whether just one is true, that is not 0.")
maximum = binary_of("maximum", np.maximum, "The greater element; NaN if one is NaN.")
minimum = binary_of("minimum", np.minimum, "The lesser element; NaN if one is NaN.")
multiply = binary_of(
    "multiply", np.multiply, "Product of elements; of a pending array and a scalar, recorded."
)
nextafter = binary_of("nextafter", np.nextafter, "Number next to x1 in the direction of x2.")
not_equal = binary_of("not_equal", np.not_equal, "Whether elements differ; NaN differs from NaN.")
pow = binary_of("pow", np.power, "x1 to the power x2; ValueError for negative integer powers.")
remainder = binary_of("remainder", np.remainder, "Remainder with the sign of the divisor x2.")
subtract = binary_of("subtract", np.subtract, "Difference, recorded if an array is pending.")


def negative(x: Array, /) -> Array:
    """Each element with the other sign, recorded if `x` is pending; TypeError for bool."""
    device_of(x)
    return _negative(x)


def clip(x: Array, /, min: Any = None, max: Any = None) -> Array:
    """Limit elements to the range from `min` to `max`, which broadcast with `x`.

    Parameters
    ----------
    x : Array
        Its dtype is the result's; NaN stays.
    min, max : int, float or Array, optional
        The limits; integer ones if `x` is of an integer dtype, where a limit out of the range of
        the dtype counts as the end of the range. Elements are `max` where `min` is greater, and
        NaN where a limit is.

    Raises
    ------
    TypeError
        A limit is of a kind that x's dtype cannot hold.
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
