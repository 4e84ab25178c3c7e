"""Set functions. Unique values come sorted, NaNs last and each on its own."""

from typing import NamedTuple

import numpy as np

from ggarray._array import Array, wrap
from ggarray._namespace._calls import device_of, narrow, read_wide
from ggarray._namespace.searching import Scalar, beside
from ggarray._storage import Plain


class UniqueAllResult(NamedTuple):
    """What `unique_all` gives."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` gives."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` gives."""

    values: Array
    inverse_indices: Array


def isin(x1: Array | Scalar, x2: Array | Scalar, /, *, invert: bool = False) -> Array:
    """Tell for each element whether it equals an element of another array.

    Parameters
    ----------
    x1, x2 : Array or Python scalar
        At least one Array. Integers are compared by value, whatever their dtypes; NaN equals
        nothing.
    invert : bool
        Tell whether it equals none.

    Returns
    -------
    Array
        Of bool, with the shape of `x1`.

    Raises
    ------
    TypeError
        Neither is an Array, or one is quantized.
    ValueError
        The devices do not mix.

    Examples
    --------
    >>> xp.isin(xp.asarray([1, 2, 3]), xp.asarray([3, 1]))
    Array([ True, False,  True], dtype=bool, device='cpu')
    """
    device = device_of(x1, x2)
    found = _isin(_elements(x1, x2), _elements(x2, x1))
    return wrap(np.logical_not(found) if invert else found, device)


def _elements(x: Array | Scalar, other: Array | Scalar) -> Plain:
    if isinstance(x, Array):
        return read_wide(x)
    assert isinstance(other, Array)
    if type(x) is int and other.dtype.kind in "iu":
        return np.asarray(x)  # as it is: out of range means equal to nothing
    value = beside(x, other.dtype)
    return value.astype(np.float32) if value.dtype.itemsize == 2 else value


def _isin(x1: Plain, x2: Plain) -> Plain:
    """Apply `numpy.isin`, but never compare 64-bit integers as floats."""
    kinds = x1.dtype.kind + x2.dtype.kind
    if kinds == "ui":
        x2 = x2[x2 >= 0].astype(np.uint64)
    if kinds == "iu":
        return np.asarray((x1 >= 0) & np.isin(x1.astype(np.uint64), x2))
    return np.isin(x1, x2)


def unique_all(x: Array, /) -> UniqueAllResult:
    """Distinct elements with first places, the way back, and counts.

    Parameters
    ----------
    x : Array
        Taken flattened, in row-major order.

    Returns
    -------
    values : Array
        The distinct elements, one axis, of the dtype of `x`.
    indices : Array
        Where in the flattened `x` each occurs first, int64.
    inverse_indices : Array
        Of the shape of `x`, int64: ``values[inverse_indices]`` equals `x`.
    counts : Array
        How often each occurs, int64.

    Raises
    ------
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> result = xp.unique_all(xp.asarray([30, 10, 30]))
    >>> result.values, result.indices
    (Array([10, 30], dtype=int64, device='cpu'), Array([1, 0], dtype=int64, device='cpu'))
    """
    values, *places = np.unique(
        read_wide(x), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    indices, inverse, counts = (wrap(each, x.device) for each in places)
    return UniqueAllResult(wrap(narrow(values, x.dtype), x.device), indices, inverse, counts)


def unique_counts(x: Array, /) -> UniqueCountsResult:
    """Distinct elements with counts.

    Parameters
    ----------
    x : Array
        Taken flattened.

    Returns
    -------
    values : Array
        The distinct elements, one axis, of the dtype of `x`.
    counts : Array
        How often each occurs, int64.

    Raises
    ------
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> values, counts = xp.unique_counts(xp.asarray([30, 10, 30]))
    >>> counts
    Array([1, 2], dtype=int64, device='cpu')
    """
    values, counts = np.unique(read_wide(x), return_counts=True, equal_nan=False)
    return UniqueCountsResult(
        wrap(narrow(values, x.dtype), x.device),
        wrap(counts, x.device),
    )


def unique_inverse(x: Array, /) -> UniqueInverseResult:
    """Distinct elements with the way back.

    Parameters
    ----------
    x : Array
        Taken flattened.

    Returns
    -------
    values : Array
        The distinct elements, one axis, of the dtype of `x`.
    inverse_indices : Array
        Of the shape of `x`, int64: ``values[inverse_indices]`` equals `x`.

    Raises
    ------
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> values, inverse = xp.unique_inverse(xp.asarray([30, 10, 30]))
    >>> inverse
    Array([1, 0, 1], dtype=int64, device='cpu')
    """
    values, inverse = np.unique(read_wide(x), return_inverse=True, equal_nan=False)
    return UniqueInverseResult(
        wrap(narrow(values, x.dtype), x.device),
        wrap(inverse, x.device),
    )


def unique_values(x: Array, /) -> Array:
    """Distinct elements.

    Parameters
    ----------
    x : Array
        Taken flattened.

    Returns
    -------
    Array
        One axis, of the dtype of `x`: sorted, NaNs last and each on its own.

    Raises
    ------
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.unique_values(xp.asarray([xp.nan, 1.0, xp.nan, 1.0]))
    Array([ 1., nan, nan], dtype=float64, device='cpu')
    """
    return wrap(narrow(np.unique(read_wide(x), equal_nan=False), x.dtype), x.device)
