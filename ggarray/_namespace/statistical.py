"""Statistical functions. They shadow builtins: helpers here must not use max, min or sum."""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ggarray._array import Array, wrap
from ggarray._dtypes import DTypeLike, to_dtype
from ggarray._namespace._calls import narrow, read, read_wide
from ggarray._storage import Plain

Axis = int | tuple[int, ...] | None

_FLOAT32 = np.dtype(np.float32)


def cumulative_prod(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Multiply the elements up to each place along an axis.

    Parameters
    ----------
    x : Array
        At least one axis.
    axis : int, optional
        May be left out if there is only one.
    dtype : dtype, optional
        Elements are cast to it first; by default small integers go to the default (unsigned)
        integer dtype, and others stay.
    include_initial : bool
        Put the empty product, 1, in front: the axis is longer by one.

    Returns
    -------
    Array
        Of the shape of `x`, but for `include_initial`.

    Raises
    ------
    ValueError
        No axis is given and there is not exactly one, or there is no such axis.
    TypeError
        `x` is quantized or no Array, or there is no such dtype.

    Examples
    --------
    >>> xp.cumulative_prod(xp.asarray([1, 2, 3, 4]), include_initial=True)
    Array([ 1,  1,  2,  6, 24], dtype=int64, device='cpu')
    """
    return _accumulate(np.multiply, "cumulative_prod", x, axis, dtype, include_initial)


def cumulative_sum(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Sum the elements up to each place along an axis.

    Parameters
    ----------
    x : Array
        At least one axis.
    axis : int, optional
        May be left out if there is only one.
    dtype : dtype, optional
        Elements are cast to it first; by default small integers go to the default (unsigned)
        integer dtype, and others stay.
    include_initial : bool
        Put the empty sum, 0, in front: the axis is longer by one.

    Returns
    -------
    Array
        Of the shape of `x`, but for `include_initial`.

    Raises
    ------
    ValueError
        No axis is given and there is not exactly one, or there is no such axis.
    TypeError
        `x` is quantized or no Array, or there is no such dtype.

    Examples
    --------
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3, 4]), include_initial=True)
    Array([ 0,  1,  3,  6, 10], dtype=int64, device='cpu')
    """
    return _accumulate(np.add, "cumulative_sum", x, axis, dtype, include_initial)


def max(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Greatest element, of all or along axes; NaN if there is one.

    Parameters
    ----------
    x : Array
        Complex elements are ordered by their real, then their imaginary parts.
    axis : int or tuple of int, optional
        All axes if None.
    keepdims : bool
        Keep the axes, of length 1.

    Returns
    -------
    Array
        Of the dtype of `x` and its shape without the axes.

    Raises
    ------
    ValueError
        There are no elements to compare, or there is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.max(xp.asarray([[1, 5], [7, 3]]), axis=1)
    Array([5, 7], dtype=int64, device='cpu')
    """
    return _extreme(np.maximum, x, axis, keepdims)


def mean(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Arithmetic mean, of all elements or along axes.

    Parameters
    ----------
    x : Array
        Integers give float64, other dtypes stay.
    axis : int or tuple of int, optional
        All axes if None.
    keepdims : bool
        Keep the axes, of length 1.

    Returns
    -------
    Array
        The shape of `x` without the axes; NaN where there are no elements.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.mean(xp.asarray([[1, 2], [3, 4]]), axis=0)
    Array([2., 3.], dtype=float64, device='cpu')
    """
    value = read_wide(x)
    check_axis(value, axis)
    return wrap(narrow(_mean(value, axis, keepdims), x.dtype), x.device)


def min(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Least element, of all or along axes; NaN if there is one.

    Parameters
    ----------
    x : Array
        Complex elements are ordered by their real, then their imaginary parts.
    axis : int or tuple of int, optional
        All axes if None.
    keepdims : bool
        Keep the axes, of length 1.

    Returns
    -------
    Array
        Of the dtype of `x` and its shape without the axes.

    Raises
    ------
    ValueError
        There are no elements to compare, or there is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.min(xp.asarray([[1, 5], [7, 3]]), axis=1)
    Array([1, 3], dtype=int64, device='cpu')
    """
    return _extreme(np.minimum, x, axis, keepdims)


def prod(
    x: Array, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Array:
    """Product of elements, of all or along axes; 1 if there are none.

    Parameters
    ----------
    x : Array
        The factors.
    axis : int or tuple of int, optional
        All axes if None.
    dtype : dtype, optional
        Elements are cast to it first; by default small integers go to the default (unsigned)
        integer dtype, and others stay.
    keepdims : bool
        Keep the axes, of length 1.

    Returns
    -------
    Array
        The shape of `x` without the axes.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is quantized or no Array, or there is no such dtype.

    Examples
    --------
    >>> xp.prod(xp.asarray([[1, 2], [3, 4]], dtype=xp.int8))
    Array(24, dtype=int64, device='cpu')
    """
    return _reduce(np.multiply, x, axis, dtype, keepdims)


def std(
    x: Array, /, *, axis: Axis = None, correction: int | float = 0.0, keepdims: bool = False
) -> Array:
    """Return the standard deviation, of all elements or along axes.

    Parameters
    ----------
    x : Array
        Integers give float64.
    axis : int or tuple of int, optional
        All axes if None.
    correction : int or float
        Subtracted from the number of elements that the squares are divided by: 1 for a sample.
    keepdims : bool
        Keep the axes, of length 1.

    Returns
    -------
    Array
        The shape of `x` without the axes: ``sqrt(sum(abs(x - mean(x)) ** 2) / (n - correction))``
        of n elements; NaN unless n is greater than `correction`.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.std(xp.asarray([1.0, 3.0]))
    Array(1., dtype=float64, device='cpu')
    >>> xp.std(xp.asarray([1.0, 3.0]), correction=1)
    Array(1.41421356, dtype=float64, device='cpu')
    """
    value = read_wide(x)
    check_axis(value, axis)
    result = value.std(axis, ddof=correction, keepdims=keepdims)
    return wrap(narrow(_of_samples(result, value, correction), x.dtype), x.device)


def sum(
    x: Array, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Array:
    """Sum of elements, of all or along axes; 0 if there are none.

    Parameters
    ----------
    x : Array
        The terms.
    axis : int or tuple of int, optional
        All axes if None.
    dtype : dtype, optional
        Elements are cast to it first; by default small integers go to the default (unsigned)
        integer dtype, and others stay.
    keepdims : bool
        Keep the axes, of length 1.

    Returns
    -------
    Array
        The shape of `x` without the axes.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is quantized or no Array, or there is no such dtype.

    Examples
    --------
    >>> xp.sum(xp.asarray([[1, 2], [3, 4]], dtype=xp.int8))
    Array(10, dtype=int64, device='cpu')
    >>> xp.sum(xp.ones((2, 3)), axis=1, keepdims=True)
    Array([[3.],
           [3.]], dtype=float64, device='cpu')
    """
    return _reduce(np.add, x, axis, dtype, keepdims)


def var(
    x: Array, /, *, axis: Axis = None, correction: int | float = 0.0, keepdims: bool = False
) -> Array:
    """Return the variance, of all elements or along axes.

    Parameters
    ----------
    x : Array
        Integers give float64.
    axis : int or tuple of int, optional
        All axes if None.
    correction : int or float
        Subtracted from the number of elements that the squares are divided by: 1 for a sample.
    keepdims : bool
        Keep the axes, of length 1.

    Returns
    -------
    Array
        The shape of `x` without the axes: ``sum(abs(x - mean(x)) ** 2) / (n - correction)`` of n
        elements; NaN unless n is greater than `correction`.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.var(xp.asarray([1.0, 3.0]))
    Array(1., dtype=float64, device='cpu')
    >>> xp.var(xp.asarray([1.0, 3.0]), correction=1)
    Array(2., dtype=float64, device='cpu')
    """
    value = read_wide(x)
    check_axis(value, axis)
    result = value.var(axis, ddof=correction, keepdims=keepdims)
    return wrap(narrow(_of_samples(result, value, correction), x.dtype), x.device)


def check_axis(value: Plain, axis: Axis) -> None:
    """Raise AxisError for an axis of an array of no axes: NumPy lets 0 and -1 pass."""
    if axis is not None and not value.ndim:
        normalize_axis_tuple(axis, 0)


def _mean(value: Plain, axis: Axis, keepdims: bool) -> Any:
    if value.dtype.kind != "c":
        return value.mean(axis, keepdims=keepdims)
    # Each part on its own: NumPy divides by a complex number, which spreads NaN to both.
    result = np.asarray(np.add.reduce(value, axis, keepdims=keepdims))  # type: ignore[call-overload]
    number = value.size / result.size if result.size else 0
    result.real /= number
    result.imag /= number
    return result


def _of_samples(result: Any, value: Plain, correction: int | float) -> Any:
    """Return variances; NaN where the correction leaves no element, where NumPy's may be inf."""
    if correction > 0 and result.size and value.size // result.size <= correction:
        return np.full_like(result, np.nan)
    return result


def _terms(x: Array, dtype: Any) -> tuple[Plain, Any, np.dtype[Any]]:
    """Return what to accumulate, the dtype to do it in (None: NumPy's choice), and x's or `dtype`.

    Half floats are accumulated in float32, whether they come from `x` or from `dtype`.
    """
    if dtype is None:
        return read_wide(x), None, x.dtype
    target = to_dtype(dtype)
    if target.kind in "fV" and target.itemsize == 2:
        return read(x).astype(target).astype(_FLOAT32), None, target
    return read(x), target, target


def _reduce(ufunc: np.ufunc, x: Array, axis: Axis, dtype: Any, keepdims: bool) -> Array:
    value, within, target = _terms(x, dtype)
    check_axis(value, axis)
    return wrap(narrow(ufunc.reduce(value, axis, within, keepdims=keepdims), target), x.device)


def _extreme(ufunc: np.ufunc, x: Array, axis: Axis, keepdims: bool) -> Array:
    value = read_wide(x)
    check_axis(value, axis)
    return wrap(narrow(ufunc.reduce(value, axis, keepdims=keepdims), x.dtype), x.device)


def _accumulate(
    ufunc: np.ufunc, name: str, x: Array, axis: int | None, dtype: Any, include_initial: bool
) -> Array:
    value, within, target = _terms(x, dtype)
    if value.ndim == 0 or (axis is None and value.ndim > 1):
        raise ValueError(f"{name}: an axis has to be named for shape {value.shape}")
    at = 0 if axis is None else normalize_axis_index(axis, value.ndim)
    result = ufunc.accumulate(value, at, within)
    if include_initial:
        first = list(value.shape)
        first[at] = 1
        initial = np.full(first, ufunc.identity, result.dtype)
        result = np.concatenate([initial, result], at)
    return wrap(narrow(result, target), x.device)
