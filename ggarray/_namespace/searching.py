"""Searching functions."""

from functools import cache
from typing import Any, Literal, overload

import numpy as np

from ggarray._array import Array, wrap
from ggarray._dtypes import is_half, promote
from ggarray._namespace._calls import device_of, read, read_wide
from ggarray._namespace.statistical import Axis, check_axis
from ggarray._storage import Plain

Scalar = bool | int | float | complex

_SCALARS = (bool, int, float, complex)
_FLOAT32 = np.dtype(np.float32)
_LARGEST_INDEX = np.iinfo(np.intp).max


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the first greatest element along an axis; of the first NaN if there is one.

    Parameters
    ----------
    x : Array
        Values that are compared.
    axis : int, optional
        If None, the index is that in the flattened array.
    keepdims : bool
        Keep the axis (all axes for None), of length 1.

    Returns
    -------
    Array
        Of int64.

    Raises
    ------
    ValueError
        There are no elements to compare, or there is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.argmax(xp.asarray([[1, 5, 2], [7, 0, 7]]), axis=1)
    Array([1, 0], dtype=int64, device='cpu')
    """
    value = read_wide(x)
    check_axis(value, axis)
    return wrap(value.argmax(axis, keepdims=keepdims), x.device)  # type: ignore[arg-type]


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the first least element along an axis; of the first NaN if there is one.

    Parameters
    ----------
    x : Array
        Values that are compared.
    axis : int, optional
        If None, the index is that in the flattened array.
    keepdims : bool
        Keep the axis (all axes for None), of length 1.

    Returns
    -------
    Array
        Of int64.

    Raises
    ------
    ValueError
        There are no elements to compare, or there is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.argmin(xp.asarray([[1, 5, 2], [7, 0, 7]]), axis=1)
    Array([0, 1], dtype=int64, device='cpu')
    """
    value = read_wide(x)
    check_axis(value, axis)
    return wrap(value.argmin(axis, keepdims=keepdims), x.device)  # type: ignore[arg-type]


def count_nonzero(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Count the elements that are not zero, all or along axes; the counts are int64.

    Parameters
    ----------
    x : Array
        Of any dtype; NaN is not zero.
    axis : int or tuple of int, optional
        All axes if None.
    keepdims : bool
        Keep the axes, of length 1.

    Returns
    -------
    Array
        Of int64.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.count_nonzero(xp.asarray([[0, 1], [2, 3]]), axis=0)
    Array([1, 2], dtype=int64, device='cpu')
    """
    value = read(x)
    check_axis(value, axis)
    return wrap(np.count_nonzero(value, axis, keepdims=keepdims), x.device)


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Places of the elements that are not zero, in row-major order.

    Parameters
    ----------
    x : Array
        Of any plain dtype; NaN is not zero.

    Returns
    -------
    tuple of Array
        An int64 Array an axis: the indices along it.

    Raises
    ------
    ValueError
        `x` has no axes.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> rows, columns = xp.nonzero(xp.asarray([[0, 5], [6, 0]]))
    >>> rows, columns
    (Array([0, 1], dtype=int64, device='cpu'), Array([1, 0], dtype=int64, device='cpu'))
    """
    value = read(x)
    if not value.ndim:
        raise ValueError("nonzero: an array of no axes has no indices")
    return tuple(wrap(places, x.device) for places in value.nonzero())


def searchsorted(
    x1: Array,
    x2: Array | int | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Array | None = None,
) -> Array:
    """Places in a sorted array where elements could be inserted and leave it sorted.

    Parameters
    ----------
    x1 : Array
        One axis, ascending (NaN last) unless `sorter` is given.
    x2 : Array, int or float
        What to insert; a Python scalar takes the dtype of `x1` where it can.
    side : {"left", "right"}
        The place before, or after, elements that are equal.
    sorter : Array, optional
        Integers: the order that sorts `x1`.

    Returns
    -------
    Array
        Of int64, with the shape of `x2`.

    Raises
    ------
    ValueError
        `x1` has not one axis, `side` is another word, `sorter` another shape than `x1`, or the
        devices do not mix.
    OverflowError
        A Python integer that the dtype of `x1` does not hold.
    TypeError
        `x1` is quantized or no Array, or `sorter` not of an integer dtype.

    Examples
    --------
    >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4]), side="right")
    Array([2, 2], dtype=int64, device='cpu')
    """
    device = device_of(x1, x2, sorter)
    haystack = read_wide(x1)
    needles = _wide(beside(x2, x1.dtype))
    if haystack.ndim != 1:
        raise ValueError(f"searchsorted: x1 has one axis, not shape {haystack.shape}")
    order = None if sorter is None else as_indices(sorter)
    if order is not None and order.shape != haystack.shape:
        raise ValueError(f"searchsorted: sorter {order.shape} and x1 {haystack.shape} differ")
    return wrap(np.searchsorted(haystack, needles, side, order), device)


@overload
def where(condition: Array, x1: Array | Scalar, x2: Array | Scalar, /) -> Array: ...
@overload
def where(condition: Array, /) -> tuple[Array, ...]: ...
def where(condition: Array, x1: Any = None, x2: Any = None, /) -> Array | tuple[Array, ...]:
    """Elements of `x1` where a condition is true, of `x2` elsewhere.

    Parameters
    ----------
    condition : Array
        Of bool; of another dtype, elements that are not zero are true.
    x1, x2 : Array or Python scalar
        A scalar takes the dtype of the Array beside it where it can. Without both, the result is
        that of `nonzero`, as in NumPy.

    Returns
    -------
    Array
        Of the shape that all three broadcast to and the dtype that `x1` and `x2` promote to.

    Raises
    ------
    ValueError
        The shapes do not broadcast, or the devices do not mix.
    TypeError
        One is neither, or `condition` is no Array.
    OverflowError
        A Python integer that the dtype of the Array does not hold.

    Examples
    --------
    >>> x = xp.asarray([-1.0, 2.0, xp.nan])
    >>> xp.where(x > 0, x, 0)
    Array([0., 2., 0.], dtype=float64, device='cpu')
    """
    if x1 is x2 is None:
        return nonzero(condition)
    device = device_of(condition, x1, x2)
    chosen, other = _both(x1, x2)
    if chosen.dtype != other.dtype:  # NumPy does not promote the two half floats
        dtype = promote(chosen.dtype, other.dtype)
        chosen, other = chosen.astype(dtype, copy=False), other.astype(dtype, copy=False)
    return wrap(np.where(read(condition), chosen, other), device)


def _both(x1: Any, x2: Any) -> tuple[Plain, Plain]:
    """Return the values of two operands; a Python scalar takes after the other one."""
    if isinstance(x1, Array):
        value = read(x1)
        return value, beside(x2, value.dtype)
    value = beside(x2, np.dtype(np.bool_))
    return beside(x1, value.dtype), value


def beside(x: Any, dtype: np.dtype[Any]) -> Plain:
    """Return the value of an Array, or of a Python scalar that meets an array of this dtype.

    Raises
    ------
    TypeError
        `x` is neither.
    OverflowError
        A Python integer that `dtype` does not hold.
    """
    if isinstance(x, Array) or not isinstance(x, _SCALARS):
        return read(x)
    kind: Any = type(x)
    return np.asarray(x, _beside(dtype, kind))


@cache
def _beside(dtype: np.dtype[Any], kind: type[Any]) -> np.dtype[Any]:
    """Return the dtype of a scalar of this class that meets an array of this dtype."""
    half = is_half(dtype)
    target = np.result_type(_FLOAT32 if half else dtype, kind(1))
    return dtype if half and target == _FLOAT32 else target


def as_indices(x: Any) -> Plain:
    """Return integers, of an Array or a NumPy array, in the dtype that NumPy indexes with.

    Raises
    ------
    TypeError
        They are not of an integer dtype.
    """
    value = x if isinstance(x, np.ndarray) else read(x)
    if value.dtype.kind not in "iu":
        raise TypeError(f"indices are of an integer dtype, not {value.dtype}")
    if value.dtype == np.uint64:  # what is too large stays too large, and does not wrap
        value = np.minimum(value, _LARGEST_INDEX)
    return value.astype(np.intp, copy=False)


def _wide(value: Plain) -> Plain:
    return value.astype(_FLOAT32) if is_half(value.dtype) else value
