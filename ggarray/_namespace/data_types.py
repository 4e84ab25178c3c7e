"""Data type functions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ggarray._array import Array, astype as _cast
from ggarray._dtypes import EXTENDED_KINDS, AnyDType, DTypeLike, is_half, plain_dtype, to_dtype
from ggarray._namespace._calls import require
from ggarray._namespace.quantization import dequantize, quantize
from ggarray._quantized.traits import QuantizedDType

_SCALARS = (bool, int, float, complex)
_FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True, slots=True)
class FloatInfo:
    """Limits of a floating dtype.

    Attributes
    ----------
    bits : int
        Size of a number, in bits.
    eps : float
        Distance from 1 to the next greater number.
    max, min : float
        Greatest and least number.
    smallest_normal : float
        Least positive number of full precision.
    dtype : numpy.dtype
        The dtype; of a complex one, that of its parts.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class IntegerInfo:
    """Limits of an integer dtype.

    Attributes
    ----------
    bits : int
        Size of a number, in bits.
    max, min : int
        Greatest and least number.
    dtype : numpy.dtype
        The dtype.
    """

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def dtype_of(x: Any) -> AnyDType:
    """Return the dtype of an array, or a dtype itself; TypeError for what is neither."""
    if isinstance(x, Array):
        dtype: AnyDType = x.dtype
        return dtype
    return x if isinstance(x, QuantizedDType) else plain_dtype(x)


def astype(x: Array, dtype: DTypeLike, /, *, copy: bool = True, device: str | None = None) -> Array:
    """Cast an array to another dtype; recorded if it is pending and both dtypes are real floating.

    Parameters
    ----------
    x : Array
        Any; of a quantized one, dequantize it.
    dtype : dtype
        A quantized dtype quantizes along the last axis.
    copy : bool
        False returns `x` itself if it has that dtype and device.
    device : Device or str, optional
        Where to put the result; by default where `x` is.

    Returns
    -------
    Array
        Of x's shape.

    Raises
    ------
    TypeError
        `dtype` is no dtype; a complex array is cast to a real dtype other than bool: see ``real``
        and ``imag``; or a quantized one to or from a dtype that is not real floating.
    ValueError
        The last axis of `x` is not a multiple of the block of a quantized dtype, elements do not
        fit it (see ``quantize``), or there is no such device.

    Examples
    --------
    >>> xp.astype(xp.asarray([1.7, -1.7]), xp.int64)
    Array([ 1, -1], dtype=int64, device='cpu')
    >>> xp.astype(xp.ones((2, 64)), xp.q8_0)
    Array(shape=(2, 64), dtype=q8_0, device='cpu')
    """
    require(x)
    result = _astype(x, dtype_of(dtype), copy)
    return result if device is None else result.to_device(device)


def _astype(x: Array, dtype: AnyDType, copy: bool) -> Array:
    quantized = isinstance(x.dtype, QuantizedDType)
    if dtype == x.dtype and (quantized or not copy):
        return x
    if isinstance(dtype, QuantizedDType):
        return quantize(dequantize(x) if quantized else x, dtype)
    if quantized:
        return dequantize(x, dtype)
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError(f"astype from {x.dtype} to {dtype}: see real and imag")
    return _cast(x, dtype)


def can_cast(from_: DTypeLike | Array, to: DTypeLike, /) -> bool:
    """Tell whether a dtype, or that of an array, can be cast to another without loss.

    Parameters
    ----------
    from_ : dtype or Array
        Values of an array do not matter.
    to : dtype
        The dtype to cast to.

    Returns
    -------
    bool
        As NumPy's rules for safe casts say.

    Raises
    ------
    TypeError
        One is no dtype, or one is quantized and the other another dtype.

    Examples
    --------
    >>> xp.can_cast(xp.int32, xp.float64), xp.can_cast(xp.int64, xp.int32)
    (True, False)
    """
    source, target = dtype_of(from_), dtype_of(to)
    if isinstance(source, QuantizedDType) or isinstance(target, QuantizedDType):
        _refuse_mixing((source, target))
        return True
    return np.can_cast(source, target)


def finfo(type: DTypeLike | Array, /) -> FloatInfo:
    """Limits of a floating dtype.

    Parameters
    ----------
    type : dtype or Array
        Real or complex floating; of an array, its dtype.

    Returns
    -------
    FloatInfo
        With attributes ``bits``, ``eps``, ``max``, ``min``, ``smallest_normal`` and ``dtype``.

    Raises
    ------
    ValueError
        The dtype is not floating.
    TypeError
        It is no dtype, or quantized.

    Examples
    --------
    >>> xp.finfo(xp.float16).max
    65504.0
    >>> xp.finfo(xp.complex64).dtype  # that of its parts
    dtype('float32')
    """
    dtype = to_dtype(dtype_of(type))
    if dtype.kind not in "fc" and not is_half(dtype):
        raise ValueError(f"finfo is for floating dtypes, not {dtype}: see iinfo")
    info = _finfo(dtype)
    return FloatInfo(
        bits=int(info.bits),
        eps=float(info.eps),
        max=float(info.max),
        min=float(info.min),
        smallest_normal=float(info.smallest_normal),
        dtype=np.dtype(info.dtype),
    )


def _finfo(dtype: np.dtype[Any]) -> Any:
    if dtype.name != "bfloat16":
        return np.finfo(dtype)
    import ml_dtypes  # there is such a dtype, so it is installed

    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def iinfo(type: DTypeLike | Array, /) -> IntegerInfo:
    """Limits of an integer dtype.

    Parameters
    ----------
    type : dtype or Array
        Signed or unsigned; of an array, its dtype.

    Returns
    -------
    IntegerInfo
        With attributes ``bits``, ``max``, ``min`` and ``dtype``.

    Raises
    ------
    ValueError
        The dtype is not an integer dtype.
    TypeError
        It is no dtype, or quantized.

    Examples
    --------
    >>> xp.iinfo(xp.int8).max
    127
    """
    dtype = to_dtype(dtype_of(type))
    if dtype.kind not in "iu":
        raise ValueError(f"iinfo is for integer dtypes, not {dtype}: see finfo")
    info = np.iinfo(dtype)
    return IntegerInfo(int(info.bits), int(info.max), int(info.min), np.dtype(info.dtype))


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Tell whether a dtype is of a kind.

    Parameters
    ----------
    dtype : dtype
        A quantized dtype is of no kind that has a name; float16 and bfloat16 are real floating.
    kind : str, dtype, or tuple of them
        ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
        ``"real floating"``, ``"complex floating"``, ``"numeric"``, a dtype, or any of a tuple.

    Returns
    -------
    bool
        Whether it is of one of the kinds at least.

    Raises
    ------
    ValueError
        A kind has another name.
    TypeError
        `dtype` or a kind is no dtype.

    Examples
    --------
    >>> xp.isdtype(xp.float16, "real floating")
    True
    >>> xp.isdtype(xp.int8, ("bool", "unsigned integer"))
    False
    """
    given = dtype_of(dtype)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any([_is_of_kind(given, each) for each in kinds])  # a list: each is checked


def _is_of_kind(dtype: AnyDType, kind: Any) -> bool:
    if not isinstance(kind, str):
        return dtype == dtype_of(kind)
    if kind not in EXTENDED_KINDS:
        raise ValueError(f"unknown kind {kind!r} of dtypes; there are {', '.join(EXTENDED_KINDS)}")
    return dtype.name in EXTENDED_KINDS[kind]


def result_type(*arrays_and_dtypes: Array | DTypeLike | complex) -> np.dtype[Any] | Any:
    """Return the dtype of an operation on arrays, dtypes and Python scalars.

    Parameters
    ----------
    *arrays_and_dtypes : Array, dtype, bool, int, float or complex
        Python scalars are weak: they raise the kind of the others' dtype, never its precision.

    Returns
    -------
    numpy.dtype or QuantizedDType
        The dtype that they promote to.

    Raises
    ------
    TypeError
        One is none of these, two do not promote, or a quantized dtype is beside another one.
    ValueError
        There is nothing.

    Examples
    --------
    >>> xp.result_type(xp.int8, xp.uint8)
    dtype('int16')
    >>> xp.result_type(xp.float32, 1.0)
    dtype('float32')
    """
    scalars: list[Any] = [x for x in arrays_and_dtypes if type(x) in _SCALARS]
    dtypes = [dtype_of(x) for x in arrays_and_dtypes if type(x) not in _SCALARS]
    plain = [dtype for dtype in dtypes if not isinstance(dtype, QuantizedDType)]
    if len(plain) < len(dtypes):
        _refuse_mixing((*dtypes, *scalars))
        return dtypes[0]
    if len({dtype for dtype in plain if is_half(dtype)}) > 1:
        plain = [_FLOAT32 if is_half(dtype) else dtype for dtype in plain]
    if not plain:
        return np.result_type(*scalars)
    strong = np.result_type(*plain)
    if strong.name == "bfloat16" and complex not in map(type, scalars):
        return strong  # NumPy does not know that its scalars are weak
    return np.result_type(strong, *scalars)


def _refuse_mixing(dtypes: tuple[Any, ...]) -> None:
    """Raise TypeError if these are not all one dtype: some are quantized."""
    if any(dtype is not dtypes[0] for dtype in dtypes):
        names = ", ".join(str(dtype) for dtype in dtypes)
        raise TypeError(f"a quantized dtype does not promote: {names}")
