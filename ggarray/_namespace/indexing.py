"""Indexing functions."""

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ggarray._array import Array, wrap, wrap_blocks
from ggarray._namespace._calls import device_of, read, require
from ggarray._namespace.searching import as_indices
from ggarray._quantized.blocks import Blocks


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Elements at indices along an axis.

    Parameters
    ----------
    x : Array
        May be quantized: the result is too, and `axis` is not the blocked one.
    indices : Array
        Integers; negative ones count from the end. With several axes, these replace `axis`.
    axis : int, optional
        May be left out if there is only one.

    Returns
    -------
    Array
        The shape of `x` with that of `indices` in place of `axis`; of the dtype of `x`.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        No axis is given and there is not exactly one, there is no such axis, or the devices do not
        mix.
    TypeError
        Indices are not integers, or `axis` is the blocked one.

    Examples
    --------
    >>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([2, 0, -1]))
    Array([30, 10, 30], dtype=int64, device='cpu')
    >>> rows = xp.take(xp.quantize(xp.ones((4, 32)), xp.q8_0), xp.asarray([3, 1]), axis=0)
    >>> rows  # only these rows would be decoded
    Array(shape=(2, 32), dtype=q8_0, device='cpu')
    """
    require(x)
    device = device_of(x, indices)
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: an axis has to be named for shape {x.shape}")
    at = normalize_axis_index(0 if axis is None else axis, x.ndim)
    places = as_indices(indices)
    if isinstance(x._source, Blocks):
        return wrap_blocks(x._source.take(places, at), device)
    return wrap(read(x).take(places, at), device)


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Elements at indices along an axis, other indices for each vector along it.

    Parameters
    ----------
    x : Array
        The elements.
    indices : Array
        Integers, with as many axes as `x`, which broadcast except for `axis`; negative ones count
        from the end.
    axis : int
        The axis to take along.

    Returns
    -------
    Array
        Of the shape of `indices`, broadcast; of the dtype of `x`.

    Raises
    ------
    IndexError
        An index is out of range, or shapes do not broadcast.
    ValueError
        The numbers of axes differ, there is no such axis, or the devices do not mix.
    TypeError
        Indices are not integers, or `x` is quantized.

    Examples
    --------
    >>> x = xp.asarray([[3, 1, 2], [4, 6, 5]])
    >>> xp.take_along_axis(x, xp.argsort(x), axis=-1)
    Array([[1, 2, 3],
           [4, 5, 6]], dtype=int64, device='cpu')
    """
    device = device_of(x, indices)
    value, places = read(x), as_indices(indices)
    if value.ndim != places.ndim:
        raise ValueError(
            f"take_along_axis: indices of shape {places.shape} for an array of shape {value.shape}"
        )
    at = normalize_axis_index(axis, value.ndim)
    return wrap(np.take_along_axis(value, places, at), device)
