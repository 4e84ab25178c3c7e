"""Functions of NumPy values that follow the standard at arguments where NumPy does not.

The sentences that say "special case" are those of the array API standard 2025.12. Everywhere else
the functions give what NumPy's of the same name give.
"""

import math
from typing import Any, Literal

import numpy as np

from ggarray._storage import Plain

_NUMBERS = frozenset({int, float, complex, bool})


def floor_divide(
    x1: Any,
    x2: Any,
    /,
    out: Plain | None = None,
    casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "same_kind",
) -> Any:
    """Floor of the quotient, which is the quotient where an operand is infinite.

    NumPy gives NaN for ``inf // 3`` and -1 for ``1 // -inf``; the standard inf and -0.
    """
    infinite = _infinite(x1) | _infinite(x2)
    if infinite is False:
        return np.floor_divide(x1, x2, out=out, casting=casting)
    with np.errstate(invalid="ignore"):
        result = np.asarray(np.floor_divide(x1, x2))
    np.divide(x1, x2, out=result, where=infinite)
    if out is None:
        return result
    np.copyto(out, result, casting=casting)
    return out


def _infinite(x: Any) -> Any:
    """Tell which elements are infinite; False if none is, and integers of any size never are."""
    if type(x) in _NUMBERS:
        return x in (math.inf, -math.inf)
    if x.dtype.kind not in "fV":
        return False
    infinite = np.isinf(x)
    return infinite if np.count_nonzero(infinite) else False


def power(
    x1: Any,
    x2: Any,
    /,
    out: Plain | None = None,
    casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "same_kind",
) -> Any:
    """`x1` to the power `x2`; for 0.5 inf of -inf, and 0 of -0.

    NumPy takes the square root where one 0.5 is the exponent of many elements: NaN, and -0.
    """
    if type(x2) in _NUMBERS:
        if x2 != 0.5 and out is None:
            return x1**x2  # the operator has quick ways that the ufunc lacks
        roots = x2 == 0.5
    else:
        roots = _roots(x1, x2)
    if roots is False:
        return np.power(x1, x2) if out is None else np.power(x1, x2, out=out, casting=casting)
    infinite = np.equal(x1, -np.inf)  # before `out`, which may be x1, is written
    result = np.asarray(np.power(x1, x2, out=out, casting=casting))
    if result.dtype.kind == "f":
        np.add(result, 0.0, out=result, where=roots)
        if infinite.any():
            np.copyto(result, np.inf, where=roots & infinite)
    return result


def _roots(x1: Any, x2: Any) -> Any:
    """Tell which exponents are 0.5; False also where each is that of one element of several."""
    if x2.dtype.kind != "f":
        return False
    if x2.size > 1 and type(x1) is np.ndarray and x1.shape == x2.shape and 0 not in x2.strides:
        return False
    return np.equal(x2, 0.5)


def expm1(x: Plain) -> Any:
    """``exp(x) - 1``; of a complex number that is not finite, or overflows, computed like that.

    NumPy gives NaN for parts that the standard defines there, and -0 for the real part of -0.
    """
    if x.dtype.kind != "c":
        return np.expm1(x)
    with np.errstate(invalid="ignore", over="ignore"):
        result = np.asarray(np.expm1(x))
    result.real[x == 0] = 0.0
    beyond = ~(np.isfinite(x) & np.isfinite(result))
    result[beyond] = np.exp(x[beyond]) - 1
    return result


def log1p(x: Plain) -> Any:
    """``log(1 + x)``; the real part of that of a small complex number without computing 1 + x.

    NumPy's loses the bits of `x` that 1 + x has no room for.
    """
    if x.dtype.kind != "c":
        return np.log1p(x)
    result = np.asarray(np.log1p(x))
    small = (np.abs(x.real) < 0.5) & (np.abs(x.imag) < 0.5)
    a, b = x.real[small], x.imag[small]
    result.real[small] = np.log1p(a * (2 + a) + b * b) / 2  # |1 + x| ** 2 is 1 + that
    return result


def tanh(x: Plain) -> Any:
    """Hyperbolic tangent; the imaginary part of that of inf + bj is 0 with the sign of b."""
    if x.dtype.kind != "c":
        return np.tanh(x)
    result = np.asarray(np.tanh(x))
    flat = np.isinf(x.real) & np.isfinite(x.imag)
    result.imag[flat] = np.copysign(0, x.imag[flat])
    return result


def tan(x: Plain) -> Any:
    """Tangent, of a complex number ``-1j * tanh(1j * x)``."""
    if x.dtype.kind != "c":
        return np.tan(x)
    result = np.asarray(np.tan(x))
    flat = np.isinf(x.imag) & np.isfinite(x.real)
    result.real[flat] = np.copysign(0, x.real[flat])
    return result


def sign(x: Plain) -> Any:
    """-1, 0 or 1, or ``x / abs(x)`` of a complex number, which is NaN if a part is NaN."""
    result = np.asarray(np.sign(x))
    if x.dtype.kind == "c":
        result[np.isnan(x)] = complex(np.nan, np.nan)
    if x.dtype.kind in "cV":  # bfloat16 too gives the sign of a zero
        result[x == 0] = 0
    return result


def imag(x: Plain) -> Plain:
    """Imaginary part, a view; zeros that may be written if `x` is real."""
    return x.imag if x.dtype.kind == "c" else np.zeros_like(x)
