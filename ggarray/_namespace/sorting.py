"""Sorting functions. NaNs come last, in descending order first; equal elements keep their order."""

from typing import Literal

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ggarray._array import Array, wrap
from ggarray._namespace._calls import narrow, read_wide

# NumPy's algorithm for `stable`.
_KINDS: dict[bool, Literal["quicksort", "stable"]] = {False: "quicksort", True: "stable"}


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the indices that sort an array along an axis.

    Parameters
    ----------
    x : Array
        At least one axis.
    axis : int
        The axis to sort along.
    descending : bool
        The greatest element comes first.
    stable : bool
        Equal elements keep their order, also where `descending`.

    Returns
    -------
    Array
        Of int64, with the shape of `x`.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.argsort(xp.asarray([2.0, xp.nan, 1.0, 2.0]), descending=True)
    Array([1, 0, 3, 2], dtype=int64, device='cpu')
    """
    value = read_wide(x)
    at = normalize_axis_index(axis, value.ndim)
    if not descending:
        return wrap(value.argsort(at, _KINDS[stable]), x.device)
    # Ascending from behind is descending from the front, with equal elements in their order.
    order = np.flip(value, at).argsort(at, _KINDS[stable])
    return wrap(value.shape[at] - 1 - np.flip(order, at), x.device)


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return a copy of an array, sorted along an axis.

    Parameters
    ----------
    x : Array
        At least one axis.
    axis : int
        The axis to sort along.
    descending : bool
        The greatest element comes first.
    stable : bool
        Equal elements keep their order, also where `descending`.

    Returns
    -------
    Array
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.sort(xp.asarray([2.0, xp.nan, 1.0]))
    Array([ 1.,  2., nan], dtype=float64, device='cpu')
    """
    value = read_wide(x)
    at = normalize_axis_index(axis, value.ndim)
    if descending:
        value = np.flip(value, at)
    result = value.copy()
    result.sort(at, _KINDS[stable])
    if descending:
        result = np.flip(result, at).copy()
    return wrap(narrow(result, x.dtype), x.device)
