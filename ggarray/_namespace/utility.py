"""Utility functions. They shadow builtins: helpers here must not use all or any."""

from typing import Any

import numpy as np

from ggarray._array import Array, wrap
from ggarray._namespace._calls import device_of, read
from ggarray._namespace.statistical import check_axis

Axis = int | tuple[int, ...] | None


def all(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Tell whether all elements, or all along axes, are true.

    Parameters
    ----------
    x : Array
        Elements are true unless they are 0; NaN is true.
    axis : int or tuple of int, optional
        All axes if None.
    keepdims : bool
        Keep the axes, of length 1.

    Returns
    -------
    Array
        Of dtype bool; True where there are no elements.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.all(xp.asarray([[1, 1], [0, 1]]), axis=1)
    Array([ True, False], dtype=bool, device='cpu')
    """
    return _reduce(np.logical_and, x, axis, keepdims)


def any(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Tell whether any element, or any along axes, is true.

    Parameters
    ----------
    x : Array
        Elements are true unless they are 0; NaN is true.
    axis : int or tuple of int, optional
        All axes if None.
    keepdims : bool
        Keep the axes, of length 1.

    Returns
    -------
    Array
        Of dtype bool; False where there are no elements.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.any(xp.asarray([[1, 1], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool, device='cpu')
    """
    return _reduce(np.logical_or, x, axis, keepdims)


def diff(
    x: Array,
    /,
    n: int = 1,  # also by position, as callers of NumPy give it
    *,
    axis: int = -1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """Differences of neighbours along an axis, taken `n` times.

    Parameters
    ----------
    x : Array
        Numbers, or truth values, which differ or not.
    n : int
        How often; 0 gives `x` with what is put beside it.
    axis : int
        An axis of `x`.
    prepend, append : Array, optional
        Put before and behind `x` first; of x's shape except along `axis`.

    Returns
    -------
    Array
        Shorter by `n` along `axis` than what was put together.

    Raises
    ------
    ValueError
        `n` is negative, there is no such axis, shapes differ along other axes, or the devices do
        not mix.
    TypeError
        One is quantized, or no Array.

    Examples
    --------
    >>> xp.diff(xp.asarray([1, 4, 9, 16]))
    Array([3, 5, 7], dtype=int64, device='cpu')
    >>> xp.diff(xp.asarray([1, 4, 9, 16]), n=2)
    Array([2, 2], dtype=int64, device='cpu')
    """
    device = device_of(x, prepend, append)
    parts = [read(each) for each in (prepend, x, append) if each is not None]
    return wrap(np.diff(np.concatenate(parts, axis), n, axis), device)


def _reduce(ufunc: np.ufunc, x: Array, axis: Axis, keepdims: bool) -> Array:
    value = read(x)
    check_axis(value, axis)
    result: Any = ufunc.reduce(value, axis, np.bool_, keepdims=keepdims)
    return wrap(result, x.device)
