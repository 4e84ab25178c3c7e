"""Blocks: the value of a quantized array, as bytes with a logical shape.

A plain value is an `numpy.ndarray`; a quantized one is a `Blocks`. It holds the encoded bytes as
they are in a GGUF file (multi-byte fields little-endian) and moves whole blocks around; nothing
here decodes them. Whatever would cut a block apart raises TypeError.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ggarray._quantized.index_key import Entry, axes_used, axis_after, parse_key
from ggarray._quantized.traits import QuantizedDType

__all__ = ["Blocks", "concat", "stack", "stored"]

_Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]

_DEQUANTIZE = "use dequantize() for a float array first"


class Blocks:
    """An immutable array whose elements are quantized in blocks along one axis.

    Two Blocks are equal only if they are the same object.

    Parameters
    ----------
    data : numpy.ndarray of uint8
        The encoded blocks: the logical shape with the blocked axis replaced by its number of
        blocks, then an axis of ``dtype.block_bytes``. A read-only view is kept (or a copy, where
        the bytes of a block are not next to each other); the caller does not write to it later.
    dtype : QuantizedDType
        The format of the blocks.
    axis : int, optional
        The logical axis along which blocks run; the last one if not given.

    Raises
    ------
    ValueError
        `data` has no blocked axis, or its last axis is not ``dtype.block_bytes`` long.
    TypeError
        `data` is not of uint8.
    """

    __slots__ = ("_axis", "_data", "_dtype", "_shape")

    _axis: int
    _data: _Bytes
    _dtype: QuantizedDType
    _shape: tuple[int, ...]

    def __init__(self, data: _Bytes, dtype: QuantizedDType, axis: int = -1) -> None:
        if data.dtype != np.uint8:
            raise TypeError(f"blocks are uint8 bytes, not {data.dtype}")
        if data.ndim < 2 or data.shape[-1] != dtype.block_bytes:
            raise ValueError(
                f"data of blocks of {dtype} has shape (..., blocks, {dtype.block_bytes}),"
                f" not {data.shape}"
            )
        if data.strides[-1] != 1:
            data = np.ascontiguousarray(data)
        self._data = data.view()
        self._data.flags.writeable = False
        self._dtype = dtype
        self._axis = normalize_axis_index(axis, data.ndim - 1)
        lengths = list(data.shape[:-1])
        lengths[self._axis] *= dtype.block_size
        self._shape = tuple(lengths)

    @classmethod
    def from_bytes(cls, data: Any, dtype: QuantizedDType, shape: Sequence[int]) -> Self:
        """Wrap encoded bytes, blocked along the last axis, without copying them.

        Parameters
        ----------
        data : bytes-like or numpy.ndarray of uint8
            The blocks in row-major order, as GGUF files store them; of any shape.
        dtype : QuantizedDType
            Their format.
        shape : sequence of int
            The logical shape: at least one axis, the last a multiple of ``dtype.block_size``.

        Raises
        ------
        ValueError
            The last axis is not a multiple of the block, or the number of bytes is not what
            `shape` needs.
        TypeError
            `data` is an array of another dtype than uint8, or no buffer.
        """
        shape = tuple(operator.index(length) for length in shape)
        if any(length < 0 for length in shape):
            raise ValueError(f"negative length in shape {shape}")
        data_shape = _data_shape(shape, dtype)
        if isinstance(data, np.ndarray) and data.dtype != np.uint8:
            raise TypeError(f"blocks are uint8 bytes, not {data.dtype}")
        raw = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
        if raw.size != math.prod(data_shape):
            raise ValueError(
                f"{dtype} of shape {shape} needs {math.prod(data_shape)} bytes, not {raw.size}"
            )
        return cls(raw.reshape(data_shape), dtype)

    @property
    def data(self) -> _Bytes:
        """The encoded bytes, read-only; see the class for their shape."""
        return self._data

    @property
    def dtype(self) -> QuantizedDType:
        """The format of the blocks."""
        return self._dtype

    @property
    def axis(self) -> int:
        """The logical axis along which blocks run, from 0."""
        return self._axis

    @property
    def ndim(self) -> int:
        """The number of logical axes."""
        return self._data.ndim - 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape, in elements."""
        return self._shape

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of encoded bytes."""
        return self._data.nbytes

    @property
    def mT(self) -> Self:  # noqa: N802 (the standard's name)
        """A view with the last two axes exchanged; ValueError if there are fewer than two."""
        if self.ndim < 2:
            raise ValueError(f"mT needs at least two axes, not shape {self.shape}")
        return self.permute((*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    def __repr__(self) -> str:
        return f"Blocks(shape={self.shape}, dtype={self._dtype}, axis={self._axis})"

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return type(self), (self._data, self._dtype, self._axis)

    def permute(self, axes: Sequence[int]) -> Self:
        """Return a view with the logical axes in the order `axes`.

        Raises
        ------
        ValueError
            `axes` is not a permutation of all axes.
        """
        order = [operator.index(axis) for axis in axes]
        order = [axis + self.ndim if axis < 0 else axis for axis in order]
        if sorted(order) != list(range(self.ndim)):
            raise ValueError(f"axes {tuple(axes)} do not permute shape {self.shape}")
        return self._like(self._data.transpose(*order, self.ndim), order.index(self._axis))

    def __getitem__(self, key: Any) -> Self:
        """Return ``self[key]`` as NumPy defines it, for keys that leave blocks whole.

        Unblocked axes take integers, slices, and arrays of integers or booleans; the blocked axis
        takes slices with step 1 that begin and end at a block boundary. ``None`` and ``...`` work.

        Raises
        ------
        TypeError
            The key would cut blocks apart.
        IndexError
            An index is out of range, there are too many, or one is of no known kind.
        """
        entries = parse_key(key, self.shape)
        position = [i for i, entry in enumerate(entries) if axes_used(entry)][self._axis]
        entries[position] = self._block_slice(entries[position])
        return self._like(self._data[(*entries, slice(None))], axis_after(entries, position))

    def take(self, indices: Any, axis: int = 0) -> Self:
        """Return the elements at `indices` (integers of any shape) along an unblocked axis.

        Raises
        ------
        TypeError
            `axis` is the blocked one.
        IndexError
            An index is out of range or no integer, or there is no such axis.
        """
        axis = normalize_axis_index(axis, self.ndim)
        return self[(slice(None),) * axis + (np.asarray(indices),)]

    def reshape(self, shape: Sequence[int]) -> Self:
        """Return the same elements in row-major order with another shape; one length may be -1.

        The new shape keeps the blocked axis, with the same numbers of elements before and after
        it. Blocks along the last axis may also be divided among other rows of whole blocks.
        A view where the strides allow one.

        Raises
        ------
        ValueError
            The numbers of elements differ.
        TypeError
            Blocks would be cut apart.
        """
        lengths = _resolve_shape(shape, self.shape)
        axis = self._axis_in(lengths)
        if axis is None:
            raise TypeError(
                f"cannot reshape {self.dtype} of shape {self.shape}, blocked along axis"
                f" {self.axis}, to {lengths} in whole blocks: {_DEQUANTIZE}"
            )
        block_lengths = list(lengths)
        block_lengths[axis] //= self._dtype.block_size
        data = self._data.reshape(*block_lengths, self._dtype.block_bytes)
        return self._like(data, axis)

    def as_rows(self) -> _Bytes:
        """Return the bytes as (rows, blocks, block_bytes), the blocked axis moved last.

        Rows are in row-major order of the other axes; a view where the strides allow one.
        """
        data = np.moveaxis(self._data, self._axis, -2)
        return data.reshape(math.prod(data.shape[:-2]), *data.shape[-2:])

    def _like(self, data: _Bytes, axis: int) -> Self:
        return type(self)(data, self._dtype, axis)

    def _axis_in(self, lengths: tuple[int, ...]) -> int | None:
        """Find the blocked axis in a reshape to `lengths`, or None if blocks are cut."""
        before, after = self.shape[: self._axis], self.shape[self._axis + 1 :]
        for axis, length in enumerate(lengths):
            split = (math.prod(lengths[:axis]), length, math.prod(lengths[axis + 1 :]))
            if split == (math.prod(before), self.shape[self._axis], math.prod(after)):
                return axis
        if lengths and math.prod(after) == 1 and lengths[-1] % self._dtype.block_size == 0:
            return len(lengths) - 1
        return None

    def _block_slice(self, entry: Entry) -> slice:
        """Return `entry`, a key along the blocked axis, counted in blocks."""
        length, block = self.shape[self._axis], self._dtype.block_size
        if isinstance(entry, slice):
            start, stop, step = entry.indices(length)
            if step == 1 and (stop <= start or start % block == stop % block == 0):
                return slice(start // block, stop // block)
        raise TypeError(
            f"axis {self._axis} of shape {self.shape} is stored in blocks of {block} ({self.dtype})"
            f" and takes only slices of whole blocks: {_DEQUANTIZE}"
        )


def stored(value: np.ndarray[Any, Any] | Blocks) -> np.ndarray[Any, Any]:
    """Return the array in which a value is stored: itself, or the encoded bytes of blocks."""
    return value.data if isinstance(value, Blocks) else value


def concat(arrays: Sequence[Blocks], axis: int = 0) -> Blocks:
    """Join `arrays` along an existing, unblocked axis.

    Raises
    ------
    ValueError
        There are none, there is no such axis, or the shapes differ along another one.
    TypeError
        The dtypes or blocked axes differ, or `axis` is the blocked one.
    """
    first = _first_of_a_kind(arrays)
    axis = normalize_axis_index(axis, first.ndim)
    if axis == first.axis:
        raise TypeError(f"cannot concat {first.dtype} along its blocked axis: {_DEQUANTIZE}")
    if len({x.shape[:axis] + x.shape[axis + 1 :] for x in arrays}) > 1:
        shapes = [x.shape for x in arrays]
        raise ValueError(f"shapes to concat along axis {axis} differ elsewhere: {shapes}")
    return Blocks(np.concatenate([x.data for x in arrays], axis), first.dtype, first.axis)


def stack(arrays: Sequence[Blocks], axis: int = 0) -> Blocks:
    """Join `arrays` of one shape along a new axis.

    Raises
    ------
    ValueError
        There are none, there is no such axis, or the shapes differ.
    TypeError
        The dtypes or blocked axes differ.
    """
    first = _first_of_a_kind(arrays)
    axis = normalize_axis_index(axis, first.ndim + 1)
    if len({x.shape for x in arrays}) > 1:
        raise ValueError(f"shapes to stack differ: {[x.shape for x in arrays]}")
    data = np.stack([x.data for x in arrays], axis)
    return Blocks(data, first.dtype, first.axis + (axis <= first.axis))


def _first_of_a_kind(arrays: Sequence[Blocks]) -> Blocks:
    """Return the first of `arrays`, which must agree in dtype, blocked axis and number of axes."""
    if not arrays:
        raise ValueError("need at least one array to join")
    if len({x.ndim for x in arrays}) > 1:
        raise ValueError(f"numbers of axes differ: shapes {[x.shape for x in arrays]}")
    kinds = {(x.dtype, x.axis): f"{x.dtype} blocked along axis {x.axis}" for x in arrays}
    if len(kinds) > 1:
        raise TypeError(f"cannot join {' and '.join(kinds.values())}: {_DEQUANTIZE}")
    return arrays[0]


def _data_shape(shape: tuple[int, ...], dtype: QuantizedDType) -> tuple[int, ...]:
    """Return the shape of the bytes of `shape`, blocked along the last axis."""
    if not shape or shape[-1] % dtype.block_size:
        raise ValueError(
            f"the last axis of shape {shape} is not a multiple of the block of {dtype},"
            f" {dtype.block_size}"
        )
    return (*shape[:-1], shape[-1] // dtype.block_size, dtype.block_bytes)


def _resolve_shape(shape: Sequence[int], old: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape` with a -1 filled in; ValueError unless it has as many elements as `old`."""
    lengths = [operator.index(length) for length in shape]
    size = math.prod(old)
    if lengths.count(-1) == 1:
        known = math.prod(length for length in lengths if length != -1)
        lengths[lengths.index(-1)] = size // known if known else 0
    if any(length < 0 for length in lengths) or math.prod(lengths) != size:
        raise ValueError(f"cannot reshape shape {old} to {tuple(shape)}")
    return tuple(lengths)
