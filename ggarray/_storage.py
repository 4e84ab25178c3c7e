"""Storage: who still reads or writes a piece of memory.

A Storage is made for a piece of memory when a pending node first reads it, will write it, or when
the memory is first given out; it lives as long as the memory does. It only keeps books: it never
computes anything, and it never keeps the memory alive.

A piece of memory is known by its *root*: the NumPy array at the end of the chain of ``base``
references. What lies behind the root says whose the memory is:

- nothing: NumPy allocated it for an Array, and only Arrays and our own exports see it;
- ``bytes`` or the map of a GGUF file: constant, nobody writes it, no books are kept;
- anything else: foreign. Others may write it at any time, so no product of it may wait.
"""

import mmap
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ggarray._quantized.blocks import Blocks, stored

if TYPE_CHECKING:
    from ggarray._graph.node import Node

Plain = np.ndarray[Any, Any]

_ndarray = np.ndarray

registry: "dict[int, Storage]" = {}
"""The Storage of each root that has one, by the root's id."""

writers: "dict[int, Storage]" = {}
"""Those whose memory a pending node will write. Empty nearly always: readers test that first."""


class Storage:
    """Books of one piece of memory, or of the memory that a pending node will get.

    Attributes
    ----------
    root : weak reference or None
        To the root array; None until the memory exists.
    readers : dict of weak references to nodes
        The pending nodes that read this memory; dead references are swept now and then.
    writer : Node or None
        The pending node that will write this memory.
    exports : set of weak references, or None
        To what lies behind the arrays given out: while one is alive, the memory is shared.
    foreign : bool
        The memory belongs to somebody else; it is shared for ever.
    """

    __slots__ = ("_sweep_at", "exports", "foreign", "readers", "root", "writer")

    def __init__(self) -> None:
        self.root: _Root | None = None
        self.readers: dict[weakref.ref[Node], None] = {}
        self.writer: Node | None = None
        self.exports: set[weakref.ref[Plain]] | None = None
        self.foreign = False
        self._sweep_at = 64

    @property
    def shared(self) -> bool:
        """True while somebody outside may read or write the memory at any time."""
        return self.foreign or bool(self.exports)

    def is_of(self, root: Plain) -> bool:
        """Tell whether these are the books of `root`, not of gone memory whose id it has got.

        Such books are left only where Ctrl-C came while they were being closed.
        """
        known = self.root
        return known is not None and known() is root

    def add_reader(self, node: "weakref.ref[Node]") -> None:
        """Note that a pending node will read this memory."""
        self.readers[node] = None
        if len(self.readers) > self._sweep_at:
            for dead in [ref for ref in list(self.readers) if ref() is None]:
                self.readers.pop(dead, None)
            self._sweep_at = 2 * len(self.readers) + 64

    def pending_readers(self) -> "list[Node]":
        """Return the nodes that still wait to read this memory, oldest first."""
        nodes = (ref() for ref in list(self.readers))
        return [node for node in nodes if node is not None and node.value is None]

    def set_writer(self, node: "Node") -> None:
        """Note which pending node will write this memory."""
        assert self.root is not None
        writers[self.root.key] = self
        self.writer = node

    def written(self, node: "Node") -> None:
        """Note that a node has written this memory, unless another is to write it by now.

        A signal handler may come between two calls of Python, so nothing is called in here.
        """
        assert self.root is not None
        key = self.root.key
        if self.writer is node:
            self.writer = None
            writers.pop(key, None)


class _Root(weakref.ref[Plain]):
    """Weak reference to a root array that remembers the array's key in the registry."""

    __slots__ = ("key",)

    key: int


def _forget(root: _Root) -> None:
    """Close the books of memory that has gone; an update of it is not needed any more."""
    writers.pop(root.key, None)
    storage = registry.pop(root.key, None)
    if storage is not None:
        storage.writer = None


def root_of(value: Plain) -> Plain:
    """Return the array that stands for the memory of `value`."""
    base = value.base
    while type(base) is _ndarray:
        value = base
        base = value.base
    return value


def address(value: Plain) -> int:
    """Return the address of the first element of `value`."""
    pointer: int = value.__array_interface__["data"][0]
    return pointer


def layout_key(value: Plain | Blocks) -> tuple[Any, ...]:
    """Return what two values have in common that lay out the same memory alike."""
    data = stored(value)
    axis = value.axis if isinstance(value, Blocks) else None
    return address(data), data.shape, data.strides, value.dtype, axis


def is_constant(value: Plain) -> bool:
    """Tell whether nobody can ever write the memory of `value`."""
    return _never_written(root_of(value).base)


def _never_written(base: Any) -> bool:
    """Tell whether what lies behind a root is ``bytes``, or the map of a GGUF file."""
    if type(base) is memoryview:
        base = base.obj if base.readonly else None
    return type(base) is bytes or (type(base) is mmap.mmap and memoryview(base).readonly)


def find(value: Plain) -> Storage | None:
    """Return the Storage of the memory of `value` if it has one."""
    return _entry(root_of(value))


def _entry(root: Plain) -> Storage | None:
    storage = registry.get(id(root))
    return storage if storage is not None and storage.is_of(root) else None


def storage_of(value: Plain) -> Storage | None:
    """Return the Storage of the memory of `value`, made if needed; None for constant memory."""
    storage = registry.get(id(value))  # nearly always `value` is a root that has been seen
    if storage is not None and storage.is_of(value):
        return storage
    root = root_of(value)
    storage = _entry(root)
    if storage is not None:
        return storage
    base = root.base
    if base is not None and _never_written(base):
        return None
    storage = Storage()
    storage.foreign = base is not None
    return _bind(storage, root)


def adopt(storage: Storage, value: Plain) -> None:
    """Give `storage`, the books of a pending node, the memory that the node has now got."""
    root = root_of(value)
    known = _entry(root)
    if known is None:
        _bind(storage, root)
    elif known is not storage:
        for ref in storage.readers:
            known.add_reader(ref)


def _bind(storage: Storage, root: Plain) -> Storage:
    storage.root = _Root(root, _forget)
    storage.root.key = id(root)
    entered = registry.setdefault(id(root), storage)
    if not entered.is_of(root):
        entered = registry[id(root)] = storage
    return entered


class _Exported(np.ndarray[Any, Any]):
    """Lies between memory of ours and an array that was given out; marks it as shared by living."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # the set of exports goes by identity


class _Borrowed(np.ndarray[Any, Any]):
    """Lies between foreign memory and our arrays; a root with this base is foreign."""


def _behind(value: Plain, kind: type[Plain]) -> Plain:
    """Return an array of `kind` over the memory of `value`, to be the base of further views.

    NumPy shortens a chain of bases only between arrays of one type, and keeps the first of two of
    another type. So a plain view of the second keeps it alive.
    """
    return value.view(kind).view(kind)


def export(value: Plain) -> Plain:
    """Return a view of `value` to give out: its memory is shared until the view has died.

    The caller has computed the pending readers and the pending writer of the memory.
    """
    storage = storage_of(value)
    if storage is None:
        return value.view()
    exported = _behind(value, _Exported)
    if storage.exports is None:
        storage.exports = set()
    storage.exports.add(weakref.ref(exported, storage.exports.discard))
    return exported.view(_ndarray)


def borrow(foreign: Plain) -> Plain:
    """Return a view of an array that somebody else holds, marked as foreign memory."""
    return _behind(foreign, _Borrowed).view(_ndarray)


def unheld_bytes(values: Iterator[Plain]) -> int:
    """Return the bytes of the memory of `values` that nothing but their owner keeps alive.

    `values` yields the operands of the pending nodes, each as often as a node holds it. Whether
    anybody else refers to them is told by reference counts: good enough for a limit on memory,
    and used for nothing else.
    """
    held: Counter[int] = Counter()
    views: dict[int, Plain] = {}
    while (value := next(values, None)) is not None:
        held[id(value)] += 1
        views[id(value)] = value
    roots: dict[int, Plain] = {}
    views_of: Counter[int] = Counter()
    held_outside: set[int] = set()
    for key in views:
        root = id(root_of(views[key]))
        roots[root] = root_of(views[key])
        if root != key:
            views_of[root] += 1
            if sys.getrefcount(views[key]) - _CALL > held[key] + 1:
                held_outside.add(root)
    total = 0
    for key in roots:
        inside = held[key] + (key in views) + views_of[key] + 1
        if key not in held_outside and sys.getrefcount(roots[key]) - _CALL <= inside:
            total += roots[key].nbytes
    return total


# What sys.getrefcount counts besides the one reference of a container.
_CONTAINER = [object()]
_CALL = sys.getrefcount(_CONTAINER[0]) - 1
