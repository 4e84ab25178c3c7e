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
    """Arrays broadcast against each other, as read-only views; ValueError if they do not."""
    require(*arrays)
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(broadcast_to(x, shape) for x in arrays)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Shape that arrays of these shapes broadcast to; ValueError if they do not."""
    return np.broadcast_shapes(*shapes)


def broadcast_to(x: Array, /, shape: Shape) -> Array:
    """`x` repeated to `shape`, as a read-only view; ValueError if it does not broadcast."""
    require(x)
    target = _shape(shape)
    pending = view(x, lambda layout: layout.broadcast(target))
    return wrap(np.broadcast_to(read(x), target), x.device) if pending is None else pending


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    """Arrays joined along an existing axis, or flattened first for None.

    Quantized arrays of one dtype join along axes that are not blocked.

    Raises
    ------
    ValueError
        There is no array, or shapes differ along other axes.
    """
    device = _device_of_all("concat", arrays)
    quantized = _blocks_of(arrays)
    if quantized is not None and axis is not None:
        return wrap_blocks(_blocks.concat(quantized, axis), device)
    return wrap(np.concatenate(_promoted(arrays), axis=axis), device)


def expand_dims(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """View of `x` with a new axis of length 1 at each place of `axis` in the result.

    Raises
    ------
    IndexError
        A place is out of range.
    ValueError
        A place is named twice.
    """
    require(x)
    new = 1 if isinstance(axis, int) else len(axis)
    places = sorted(normalize_axis_tuple(axis, x.ndim + new))

    def insert(layout: Layout) -> Layout:
        for place in places:
            layout = layout.expand(place)
        return layout

    pending = view(x, insert)
    return wrap(np.expand_dims(read(x), tuple(places)), x.device) if pending is None else pending


def flip(x: Array, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """View of `x` with the order of elements reversed along `axis`, or along all axes."""
    return wrap(np.flip(read(x), axis), x.device)


def moveaxis(
    x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Array:
    """View of `x` with the axes `source` moved to the places `destination`."""
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
    """View of `x` with its axes in the order `axes`; ValueError if that is no permutation."""
    require(x)
    order = normalize_axis_tuple(axes, x.ndim)
    if len(order) != x.ndim:
        raise ValueError(f"axes {tuple(axes)} are no permutation of the axes of shape {x.shape}")
    return permute(x, order)


def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    """Each element of `x` repeated, `repeats` times or each its own number of times."""
    times = read(repeats) if isinstance(repeats, Array) else repeats
    return wrap(np.repeat(read(x), times, axis), x.device)


def reshape(x: Array, /, shape: Shape, *, copy: bool | None = None) -> Array:
    """`x` with another shape, its elements in row-major order.

    Parameters
    ----------
    x : Array
        A quantized array keeps its blocked axis.
    shape : sequence of int
        One length may be -1: it follows from the others.
    copy : bool, optional
        True copies, False raises where a view is impossible; by default a view where possible.

    Raises
    ------
    ValueError
        The numbers of elements differ, or `copy` is False and elements have to move.
    """
    require(x)
    if isinstance(x._source, Blocks):
        return wrap_blocks(x._source.reshape(shape), x.device)
    if not copy:
        target = _full_shape(_shape(shape), x)
        pending = view(x, lambda layout: layout.reshape(target, x.itemsize))
        if pending is not None:
            return pending
    return wrap(np.reshape(read(x), _shape(shape), copy=copy), x.device)


def roll(
    x: Array,
    /,
    shift: int | tuple[int, ...],
    *,
    axis: int | tuple[int, ...] | None = None,
) -> Array:
    """`x` with elements moved by `shift` places, those past the end back to the begin."""
    return wrap(np.roll(read(x), shift, axis), x.device)


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """View of `x` without the axes `axis`; ValueError where one is not of length 1."""
    require(x)
    axes = frozenset(normalize_axis_tuple(axis, x.ndim))
    for each in axes:
        if x.shape[each] != 1:
            raise ValueError(f"squeeze: axis {each} of shape {x.shape} is not of length 1")
    pending = view(x, lambda layout: layout.squeeze(axes))
    return wrap(np.squeeze(read(x), tuple(axes)), x.device) if pending is None else pending


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    """Arrays of one shape joined along a new axis; quantized ones of one dtype too."""
    device = _device_of_all("stack", arrays)
    quantized = _blocks_of(arrays)
    if quantized is not None:
        return wrap_blocks(_blocks.stack(quantized, axis), device)
    return wrap(np.stack(_promoted(arrays), axis=axis), device)


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """`x` laid side by side this many times along each axis."""
    return wrap(np.tile(read(x), repetitions), x.device)


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the parts of `x` along an axis, without it."""
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
    values = [read(x) for x in arrays]
    dtype = reduce(promote, (value.dtype for value in values))
    return [value.astype(dtype, copy=False) for value in values]


def _blocks_of(arrays: Sequence[Array]) -> list[Blocks] | None:
    """Return the blocks of arrays that are all quantized; None if one is not."""
    sources = [x._source for x in arrays]
    if sources and all(isinstance(source, Blocks) for source in sources):
        return sources  # type: ignore[return-value]  # as just checked
    return None
