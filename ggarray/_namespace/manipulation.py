"""Manipulation functions. Those that give a view of a pending array are recorded."""

import math
import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ggarray._array import Array, permute, view, wrap, wrap_blocks
from ggarray._dtypes import promote
from ggarray._graph.views import Layout
from ggarray._namespace._calls import device_of, read, require
from ggarray._quantized import blocks as _blocks
from ggarray._quantized.blocks import Blocks
from ggarray._runtime.devices import Device
from ggarray._storage import Plain

Shape = Sequence[int]


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Arrays broadcast against each other.

    Parameters
    ----------
    *arrays : Array
        Their shapes broadcast.

    Returns
    -------
    tuple of Array
        All of one shape: those that have it already themselves, the others as read-only views.

    Raises
    ------
    ValueError
        The shapes do not broadcast.
    TypeError
        One is no Array, or is quantized and of another shape.

    Examples
    --------
    >>> x, y = xp.broadcast_arrays(xp.asarray([[1], [2]]), xp.asarray([10, 20]))
    >>> x
    Array([[1, 1],
           [2, 2]], dtype=int64, device='cpu')
    """
    require(*arrays)
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(x if x.shape == shape else broadcast_to(x, shape) for x in arrays)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Shape that arrays of these shapes broadcast to.

    Parameters
    ----------
    *shapes : tuple of int
        Lengths of the axes.

    Returns
    -------
    tuple of int
        Of as many axes as the longest shape has.

    Raises
    ------
    ValueError
        The shapes do not broadcast.

    Examples
    --------
    >>> xp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return np.broadcast_shapes(*shapes)


def broadcast_to(x: Array, /, shape: Shape) -> Array:
    """`x` repeated to a shape, as a read-only view; recorded if it is pending.

    Parameters
    ----------
    x : Array
        Of any plain dtype.
    shape : sequence of int
        The axes of `x` come last, of the same length or 1.

    Returns
    -------
    Array
        Of this shape.

    Raises
    ------
    ValueError
        `x` does not broadcast to `shape`.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int64, device='cpu')
    """
    require(x)
    target = _shape(shape)
    pending = view(x, lambda layout: layout.broadcast(target))
    return wrap(np.broadcast_to(read(x), target), x.device) if pending is None else pending


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    """Arrays joined along an existing axis, or flattened first.

    Parameters
    ----------
    arrays : sequence of Array
        Of equal shapes except along `axis`. Quantized arrays of one dtype join along axes that are
        not blocked.
    axis : int, optional
        None joins the arrays flattened.

    Returns
    -------
    Array
        Of the dtype that they promote to.

    Raises
    ------
    ValueError
        There is no array, shapes differ along other axes, there is no such axis, or the devices do
        not mix.
    TypeError
        One is no Array, or quantized and another is not of its dtype, or `axis` is the blocked one.

    Examples
    --------
    >>> xp.concat([xp.asarray([[1, 2]]), xp.asarray([[3.0, 4.0]])])
    Array([[1., 2.],
           [3., 4.]], dtype=float64, device='cpu')
    >>> cache = xp.quantize(xp.ones((4, 32)), xp.q8_0)
    >>> xp.concat([cache, cache[:1, :]])
    Array(shape=(5, 32), dtype=q8_0, device='cpu')
    """
    device = _device_of_all("concat", arrays)
    quantized = _blocks_of(arrays)
    if quantized is not None and axis is not None:
        return wrap_blocks(_blocks.concat(quantized, axis), device)
    return wrap(np.concatenate(_promoted(arrays), axis=axis), device)


def expand_dims(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """View of `x` with new axes of length 1; recorded if it is pending.

    Parameters
    ----------
    x : Array
        Of any plain dtype.
    axis : int or tuple of int
        The places of the new axes in the result.

    Returns
    -------
    Array
        A view.

    Raises
    ------
    IndexError
        A place is out of range; it is also a ValueError.
    ValueError
        A place is named twice.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.expand_dims(xp.ones((2, 3)), axis=(0, -1)).shape
    (1, 2, 3, 1)
    """
    require(x)

    def insert(layout: Layout) -> Layout:
        new = 1 if isinstance(axis, int) else len(axis)
        for place in sorted(normalize_axis_tuple(axis, x.ndim + new)):
            layout = layout.expand(place)
        return layout

    pending = view(x, insert)
    return wrap(np.expand_dims(read(x), axis), x.device) if pending is None else pending


def flip(x: Array, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """View of `x` with the order of elements reversed along axes.

    Parameters
    ----------
    x : Array
        Of any plain dtype.
    axis : int or tuple of int, optional
        All axes if None.

    Returns
    -------
    Array
        Of the shape of `x`.

    Raises
    ------
    ValueError
        There is no such axis, or one is named twice.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.flip(xp.asarray([1, 2, 3]))
    Array([3, 2, 1], dtype=int64, device='cpu')
    """
    return wrap(np.flip(read(x), axis), x.device)


def moveaxis(
    x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Array:
    """View of `x` with axes moved to other places; recorded if it is pending.

    Parameters
    ----------
    x : Array
        A quantized array stays so.
    source : int or tuple of int
        The axes to move; the others keep their order.
    destination : int or tuple of int
        Their places in the result.

    Returns
    -------
    Array
        A view.

    Raises
    ------
    ValueError
        There is no such axis or place, one is named twice, or there are more of the one.
    TypeError
        `x` is no Array.

    Examples
    --------
    >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    require(x)
    ndim = x.ndim
    sources = normalize_axis_tuple(source, ndim)
    places = normalize_axis_tuple(destination, ndim)
    if len(sources) != len(places):
        raise ValueError(f"moveaxis: {len(sources)} axes cannot go to {len(places)} places")
    order = [axis for axis in range(ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return permute(x, tuple(order))


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """View of `x` with its axes in another order; recorded if it is pending.

    Parameters
    ----------
    x : Array
        A quantized array stays so.
    axes : tuple of int
        All axes of `x`, in the order of the result.

    Returns
    -------
    Array
        A view.

    Raises
    ------
    ValueError
        `axes` is no permutation of the axes of `x`.
    TypeError
        `x` is no Array.

    Examples
    --------
    >>> xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    require(x)
    ndim = x.ndim
    if type(axes) is tuple and sorted(axes) == list(range(ndim)):  # nearly always, and quick
        return permute(x, axes)
    order = normalize_axis_tuple(axes, ndim)
    if len(order) != ndim:
        raise ValueError(f"axes {tuple(axes)} are no permutation of the axes of shape {x.shape}")
    return permute(x, order)


def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    """Each element repeated, all equally often or each its own number of times.

    Parameters
    ----------
    x : Array
        Of any plain dtype.
    repeats : int or Array
        How often; an Array of integers of one axis has a number for each place along `axis`.
    axis : int, optional
        None flattens `x` first.

    Returns
    -------
    Array
        A copy.

    Raises
    ------
    ValueError
        A number is negative, there are not as many as places, or there is no such axis.
    TypeError
        `x` is quantized or no Array, or an Array `repeats` is not of an integer dtype.

    Examples
    --------
    >>> xp.repeat(xp.asarray([1, 2]), 2)
    Array([1, 1, 2, 2], dtype=int64, device='cpu')
    >>> xp.repeat(xp.asarray([1, 2]), xp.asarray([0, 3]))
    Array([2, 2, 2], dtype=int64, device='cpu')
    """
    times = read(repeats) if isinstance(repeats, Array) else repeats
    return wrap(np.repeat(read(x), times, axis), x.device)


def reshape(x: Array, /, shape: Shape, *, copy: bool | None = None) -> Array:
    """`x` with another shape, its elements in row-major order; recorded if pending and a view.

    Parameters
    ----------
    x : Array
        A quantized array keeps its blocked axis.
    shape : sequence of int
        One length may be -1: it follows from the others.
    copy : bool, optional
        True copies, False raises where a view is impossible; by default a view where possible.

    Returns
    -------
    Array
        Of this shape, a view where that is possible and `copy` is not True.

    Raises
    ------
    ValueError
        The numbers of elements differ, or `copy` is False and elements have to move.
    TypeError
        `x` is no Array, or quantized and its blocks would be cut.

    Examples
    --------
    >>> xp.reshape(xp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int64, device='cpu')
    """
    require(x)
    if isinstance(x._source, Blocks):
        return wrap_blocks(x._source.reshape(_shape(shape)), x.device)
    target = _shape(shape)
    if not copy:
        pending = view(x, lambda layout: layout.reshape(_full_shape(target, x), x.itemsize))
        if pending is not None:
            return pending
    value = read(x)
    try:
        reshaped = value.reshape(target) if copy is None else np.reshape(value, target, copy=copy)
    except ValueError:
        _full_shape(target, x)  # raises with both shapes if they are the reason
        raise
    return wrap(reshaped, x.device)


def roll(
    x: Array,
    /,
    shift: int | tuple[int, ...],
    *,
    axis: int | tuple[int, ...] | None = None,
) -> Array:
    """Elements moved along axes, those past the end back to the begin.

    Parameters
    ----------
    x : Array
        Of any plain dtype.
    shift : int or tuple of int
        By how many places; one for each axis, or one for all.
    axis : int or tuple of int, optional
        None moves the elements of the flattened array.

    Returns
    -------
    Array
        A copy, of the shape of `x`.

    Raises
    ------
    ValueError
        There is no such axis, or `shift` and `axis` do not broadcast.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.roll(xp.arange(4), 1)
    Array([3, 0, 1, 2], dtype=int64, device='cpu')
    """
    return wrap(np.roll(read(x), shift, axis), x.device)


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """View of `x` without axes of length 1; recorded if it is pending.

    Parameters
    ----------
    x : Array
        Of any plain dtype.
    axis : int or tuple of int
        The axes to leave out.

    Returns
    -------
    Array
        A view.

    Raises
    ------
    ValueError
        An axis is not of length 1, or there is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.squeeze(xp.ones((1, 2, 1)), axis=(0, 2)).shape
    (2,)
    """
    require(x)
    axes = frozenset(normalize_axis_tuple(axis, x.ndim))
    for each in axes:
        if x.shape[each] != 1:
            raise ValueError(f"squeeze: axis {each} of shape {x.shape} is not of length 1")
    pending = view(x, lambda layout: layout.squeeze(axes))
    return wrap(np.squeeze(read(x), tuple(axes)), x.device) if pending is None else pending


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    """Arrays of one shape joined along a new axis.

    Parameters
    ----------
    arrays : sequence of Array
        Quantized arrays of one dtype stay so.
    axis : int
        The place of the new axis in the result.

    Returns
    -------
    Array
        Of the dtype that they promote to.

    Raises
    ------
    ValueError
        There is no array, the shapes differ, there is no such place, or the devices do not mix.
    TypeError
        One is no Array, or quantized and another is not of its dtype.

    Examples
    --------
    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int64, device='cpu')
    """
    device = _device_of_all("stack", arrays)
    quantized = _blocks_of(arrays)
    if quantized is not None:
        return wrap_blocks(_blocks.stack(quantized, axis), device)
    return wrap(np.stack(_promoted(arrays), axis=axis), device)


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """`x` laid side by side along each axis.

    Parameters
    ----------
    x : Array
        Of any plain dtype.
    repetitions : tuple of int
        How often along each axis; the shorter of it and the shape is filled with 1 in front.

    Returns
    -------
    Array
        A copy.

    Raises
    ------
    ValueError
        A number is negative.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.tile(xp.asarray([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int64, device='cpu')
    """
    return wrap(np.tile(read(x), repetitions), x.device)


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the parts of `x` along an axis, as views without it.

    Parameters
    ----------
    x : Array
        A quantized array along an axis that is not blocked.
    axis : int
        The axis to take apart.

    Returns
    -------
    tuple of Array
        As many as the axis is long.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is no Array, or `axis` is the blocked one.

    Examples
    --------
    >>> real, imaginary = xp.unstack(xp.asarray([[1, 2], [3, 4]]), axis=1)
    >>> real
    Array([1, 3], dtype=int64, device='cpu')
    """
    require(x)
    at = normalize_axis_index(axis, x.ndim)
    before = (slice(None),) * at
    return tuple(x[(*before, index)] for index in range(x.shape[at]))


def _shape(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, int):
        return (shape,)
    return tuple(operator.index(length) for length in shape)


def _full_shape(shape: tuple[int, ...], x: Array) -> tuple[int, ...]:
    """Return `shape` with the length that -1 stands for."""
    known = math.prod(length for length in shape if length != -1)
    if shape.count(-1) == 1 and known > 0:
        shape = tuple(x.size // known if length == -1 else length for length in shape)
    if math.prod(shape) != x.size or min(shape, default=0) < 0:
        raise ValueError(f"an array of shape {x.shape} cannot have shape {shape}")
    return shape


def _device_of_all(name: str, arrays: Sequence[Array]) -> Device:
    if not len(arrays):
        raise ValueError(f"{name}: there is no array")
    require(*arrays)
    return device_of(*arrays)


def _promoted(arrays: Sequence[Array]) -> list[Plain]:
    """Return the values of arrays, all in the dtype that they promote to."""
    values = [x._read() for x in arrays]
    if len({value.dtype for value in values}) == 1:
        return values
    dtype = reduce(promote, (value.dtype for value in values))
    return [value.astype(dtype, copy=False) for value in values]


def _blocks_of(arrays: Sequence[Array]) -> list[Blocks] | None:
    """Return the blocks of arrays that are all quantized; None if one is not."""
    sources = [x._source for x in arrays]
    if sources and all(isinstance(source, Blocks) for source in sources):
        return sources  # type: ignore[return-value]  # as just checked
    return None
