"""Layouts of views of arrays that have not been computed: shapes, strides and offsets only."""

import operator
from dataclasses import dataclass
from typing import Any

from ggarray._graph.node import is_contiguous
from ggarray.interface.nodes import contiguous_strides


@dataclass(frozen=True, slots=True)
class Layout:
    """Shape, and strides and offset in bytes, within memory that will be row-major."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    writeable: bool = True

    def permute(self, axes: tuple[int, ...]) -> "Layout":
        """Return the layout with its axes in this order (a permutation of them all)."""
        return Layout(
            tuple(self.shape[axis] for axis in axes),
            tuple(self.strides[axis] for axis in axes),
            self.offset,
            self.writeable,
        )

    def expand(self, axis: int) -> "Layout":
        """Return the layout with a new axis of length 1 before `axis`."""
        shape, strides = list(self.shape), list(self.strides)
        shape.insert(axis, 1)
        strides.insert(axis, 0)
        return Layout(tuple(shape), tuple(strides), self.offset, self.writeable)

    def squeeze(self, axes: frozenset[int]) -> "Layout":
        """Return the layout without these axes of length 1."""
        kept = tuple(axis for axis in range(len(self.shape)) if axis not in axes)
        return self.permute(kept)

    def broadcast(self, shape: tuple[int, ...]) -> "Layout | None":
        """Return the layout repeated to `shape`, read-only; None where it does not broadcast."""
        missing = len(shape) - len(self.shape)
        if missing < 0:
            return None
        strides = [0] * missing
        for have, want, stride in zip(self.shape, shape[missing:], self.strides, strict=True):
            if have != want and have != 1:
                return None
            strides.append(stride if have == want else 0)
        return Layout(shape, tuple(strides), self.offset, writeable=False)

    def reshape(self, shape: tuple[int, ...], itemsize: int) -> "Layout | None":
        """Return the layout of this shape; None where elements would have to move."""
        if not is_contiguous(self.shape, self.strides, itemsize):
            return None
        return Layout(shape, contiguous_strides(shape, itemsize), self.offset, self.writeable)

    def index(self, key: tuple[Any, ...]) -> "Layout | None":
        """Return the layout that basic indexing gives; None for any other index, or a bad one.

        Integers, slices, one ellipsis and None are basic; what NumPy refuses gives None too, so
        that NumPy itself can raise.
        """
        steps = _full_key(key, len(self.shape))
        if steps is None:
            return None
        shape, strides, offset = [], [], self.offset
        axis = 0
        for step in steps:
            if step is None:
                shape.append(1)
                strides.append(0)
                continue
            extent, stride = self.shape[axis], self.strides[axis]
            axis += 1
            if isinstance(step, slice):
                start, stop, stride_step = step.indices(extent)
                count = len(range(start, stop, stride_step))
                shape.append(count)
                strides.append(stride * stride_step)
                offset += start * stride if count else 0
            else:
                if not -extent <= step < extent:
                    return None
                offset += (step % extent) * stride
        # of no elements, any place is right that lies within the memory
        offset = self.offset if 0 in shape else offset
        return Layout(tuple(shape), tuple(strides), offset, self.writeable)


def _full_key(key: tuple[Any, ...], ndim: int) -> list[Any] | None:
    """Return one integer, slice or None a place, with the ellipsis written out."""
    steps: list[Any] = []
    ellipsis_at = None
    for item in key:
        if item is Ellipsis:
            if ellipsis_at is not None:
                return None
            ellipsis_at = len(steps)
        elif item is None or (isinstance(item, slice) and _is_basic_slice(item)):
            steps.append(item)
        elif isinstance(item, int) and not isinstance(item, bool):
            steps.append(operator.index(item))
        else:
            return None
    missing = ndim - sum(step is not None for step in steps)
    if missing < 0:
        return None
    at = len(steps) if ellipsis_at is None else ellipsis_at
    return steps[:at] + [slice(None)] * missing + steps[at:]


def _is_basic_slice(item: slice) -> bool:
    bounds = (item.start, item.stop, item.step)
    return item.step != 0 and all(bound is None or isinstance(bound, int) for bound in bounds)
