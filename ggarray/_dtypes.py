"""Dtypes of the namespace and how two of them promote.

The names are NumPy's scalar classes and ``x.dtype`` is an `numpy.dtype`; float16 and bfloat16 are
extensions for storage and products; quantized dtypes are `QuantizedDType` objects of our own.
"""

from functools import cache
from typing import Any

import numpy as np

from ggarray._quantized.traits import QuantizedDType

AnyDType = np.dtype[Any] | QuantizedDType

DTypeLike = AnyDType | type[Any] | str
"""What functions take for a dtype: one, a scalar class such as ``xp.float32``, or its name."""

# The kinds of the standard, by name.
KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]

# What isdtype knows beyond the standard's dtypes.
EXTENDED_KINDS: dict[str, tuple[str, ...]] = {
    **KINDS,
    "real floating": (*KINDS["real floating"], "float16", "bfloat16"),
    "numeric": (*KINDS["numeric"], "float16", "bfloat16"),
}

_NAMES = frozenset({"bool", *EXTENDED_KINDS["numeric"]})

# Dtypes and scalar classes that have been looked at; dtypes are slow to tell their names.
_native: dict[Any, np.dtype[Any]] = {}

_FLOAT32 = np.dtype(np.float32)
_FLOAT64 = np.dtype(np.float64)


def is_half(dtype: np.dtype[Any]) -> bool:
    """Tell whether a dtype is float16 or bfloat16."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def is_real_floating(dtype: np.dtype[Any]) -> bool:
    """Tell whether a dtype is float16, bfloat16, float32 or float64."""
    return dtype.kind == "f" or is_half(dtype)


def bfloat16() -> type[Any]:
    """Return the bfloat16 scalar class of ml_dtypes.

    Raises
    ------
    ImportError
        ml_dtypes is not installed.
    """
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError("bfloat16 needs ml_dtypes: pip install ml_dtypes") from error
    scalar: type[Any] = ml_dtypes.bfloat16
    return scalar


def to_dtype(dtype: Any) -> np.dtype[Any]:
    """Return `dtype` as an `numpy.dtype`.

    Raises
    ------
    TypeError
        It is a quantized dtype, or no dtype.
    """
    if isinstance(dtype, QuantizedDType):
        raise TypeError(f"{dtype} is a quantized dtype: use quantize or astype to make such arrays")
    plain: np.dtype[Any] = np.dtype(dtype)
    return plain


def plain_dtype(dtype: Any) -> np.dtype[Any]:
    """Return a dtype that arrays can have and that is not quantized, in native byte order.

    Raises
    ------
    TypeError
        There are no arrays of that dtype, or it is quantized.
    """
    known = isinstance(dtype, (np.dtype, type))
    if known and dtype in _native:
        return _native[dtype]
    if dtype is None:
        raise TypeError("a dtype is wanted, not None")
    plain = to_dtype(dtype).newbyteorder("=")
    if plain.name not in _NAMES:
        raise TypeError(f"ggarray has no dtype {plain}")
    if known:
        _native[dtype] = plain
    return plain


@cache
def promote(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that `a` and `b` promote to; bfloat16 with float16 gives float32.

    Raises
    ------
    TypeError
        They have no common dtype, or it is none of the namespace: one is NumPy's alone.
    """
    if a != b and is_half(a) and is_half(b):
        return _FLOAT32
    common = np.promote_types(a, b)
    if common.name not in _NAMES:
        raise TypeError(f"{a} with {b} gives {common}: ggarray has no such dtype")
    return common


def product_dtype(a: AnyDType, b: AnyDType) -> np.dtype[Any]:
    """Return the dtype of a product of arrays of dtypes `a` and `b`.

    Two quantized operands, or one with float16, bfloat16 or float32, give float32; one with
    float64 gives float64.

    Raises
    ------
    TypeError
        A quantized operand with anything else.
    """
    if not isinstance(a, QuantizedDType):
        if a is b:
            return a
        if not isinstance(b, QuantizedDType):
            return promote(a, b)
    for dtype in (a, b):
        if not isinstance(dtype, QuantizedDType) and not is_real_floating(dtype):
            raise TypeError(
                f"a product of {a} and {b} is not defined: a quantized operand goes with"
                " float16, bfloat16, float32, float64 or another quantized one"
            )
    return _FLOAT64 if _FLOAT64 in (a, b) else _FLOAT32
