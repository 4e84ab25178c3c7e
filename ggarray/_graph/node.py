"""A node of the graph: a value that has not been computed yet, and what it takes to do so."""

import math
import weakref
from typing import Any

import numpy as np

from ggarray._graph.source import Source
from ggarray._runtime.devices import Device
from ggarray._storage import Plain, Storage, address, registry, root_of
from ggarray.interface import Op, Value
from ggarray.interface.nodes import contiguous_strides

pending: "set[weakref.ref[Node]]" = set()
"""The nodes of this process that wait to be computed; the dead drop out by themselves."""


class Destination:
    """A part of existing memory that an in-place node updates.

    It refers to the memory weakly: books about memory never keep it alive, and when the last
    array that could see the update is gone, the update is not needed any more.
    """

    __slots__ = ("_offset", "_root", "dtype", "shape", "strides")

    def __init__(self, value: Plain) -> None:
        root = root_of(value)
        self._root = weakref.ref(root)
        self._offset = address(value) - address(root)
        self.shape = value.shape
        self.strides = value.strides
        self.dtype = value.dtype

    @property
    def root(self) -> Plain:
        """The array that stands for the memory; hold it to keep the destination valid."""
        root = self._root()
        assert root is not None, "the memory of an in-place update has gone"
        return root

    @property
    def storage(self) -> Storage:
        """The books of the memory."""
        return registry[id(self.root)]

    def array(self) -> Plain:
        """Return the destination as an array."""
        return part(self.root, self.shape, self.strides, self._offset, self.dtype)

    def covers(self, value: Plain) -> bool:
        """Tell whether `value` is exactly this part of the memory."""
        return (
            value.shape == self.shape
            and value.strides == self.strides
            and value.dtype == self.dtype
            and address(value) == address(self.root) + self._offset
        )


class Node:
    """One recorded operation.

    Attributes
    ----------
    op : Op
    operands : tuple of Node, numpy.ndarray, Blocks or Destination
        Emptied when the value has been computed.
    shape, dtype, device
        Of the value.
    params : object
        MATMUL: the shape of the product before axes of vectors are dropped. VIEW: strides and
        offset in bytes, and whether it may be written through. ADD: True to subtract. SCALE: the
        scalar, None for unary minus.
    value : Value or None
        Set once, when the node has been computed.
    storage : Storage or None
        Books of the memory that the value will have; made when something first reads the node.
    source : Source or None
        Where in the program the node was recorded.
    handle : weak reference or None
        To the Array that stands for this node; dead or None when the program cannot see it.
    reads : list of Storage
        The books in which the node is entered as a reader.
    ref : weak reference
        To the node itself, as books and `pending` hold it.
    writes : Destination or None
        Where the value goes if this node is an in-place update.
    keeps : tuple of numpy.ndarray
        Memory that must live until the node has been computed: an in-place update does not keep
        its own alive, so those who read its value do.
    """

    __slots__ = (
        "__weakref__",
        "device",
        "dtype",
        "handle",
        "keeps",
        "op",
        "operands",
        "params",
        "reads",
        "ref",
        "shape",
        "source",
        "storage",
        "value",
        "writes",
    )

    def __init__(
        self,
        op: Op,
        operands: tuple[Any, ...],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        device: Device,
        params: Any = None,
    ) -> None:
        self.op = op
        self.operands = operands
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.params = params
        self.value: Value | None = None
        self.reads: list[Storage] = []
        self.ref = weakref.ref(self, pending.discard)
        pending.add(self.ref)
        self.storage: Storage | None = None
        self.source: Source | None = None
        self.handle: weakref.ref[Any] | None = None
        self.writes: Destination | None = None
        self.keeps: tuple[Plain, ...] = ()

    @property
    def ndim(self) -> int:
        """Number of axes of the value."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements of the value."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in bytes that the value will have."""
        if self.op is Op.VIEW:
            strides: tuple[int, ...] = self.params[0]
            return strides
        return contiguous_strides(self.shape, self.dtype.itemsize)

    @property
    def held(self) -> bool:
        """True while the program can still ask for the value."""
        return self.handle is not None and self.handle() is not None

    def books(self) -> Storage:
        """Return the Storage of the memory that the value will have."""
        if self.storage is None:
            self.storage = Storage()
        return self.storage


def part(
    root: Plain, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, dtype: np.dtype[Any]
) -> Plain:
    """Return the view of `root`'s memory with this layout; its base is `root`."""
    if not root.flags.c_contiguous:  # the axes in memory order, as the buffer protocol wants them
        root = root.transpose(sorted(range(root.ndim), key=lambda axis: -root.strides[axis]))
    return np.ndarray(shape, dtype, buffer=root, offset=offset, strides=strides)


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Tell whether this layout is row-major; strides of axes of length 1 do not count."""
    return all(
        have == want or extent == 1
        for have, want, extent in zip(
            strides, contiguous_strides(shape, itemsize), shape, strict=True
        )
    )
