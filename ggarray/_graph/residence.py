"""Copies of constants in the memories of devices, kept from one evaluation to the next.

A copy lives as long as the constant does, and as all copies together are within a limit. Only
evaluations come here, one at a time; but constants die whenever they do.
"""

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ggarray._graph.node import layout_key
from ggarray._quantized.blocks import stored
from ggarray._storage import Plain, root_of
from ggarray.interface import BufferType, Tensor, Usage, Value, alloc_tensors

_Key = tuple[Any, ...]
NOWHERE: frozenset[str] = frozenset()


class Resident:
    """A copy of a constant; its memory goes with this object, to be held while it is used."""

    def __init__(self, value: Value, buffer_type: BufferType) -> None:
        tensors = [Tensor.like(value).contiguous()]
        buffer, (self.tensor,) = alloc_tensors(tensors, buffer_type, Usage.WEIGHTS)
        self.nbytes = buffer.size
        weakref.finalize(self, buffer.free).atexit = False


_copies: OrderedDict[tuple[_Key, BufferType], Resident] = OrderedDict()
"""The copies that are kept, the one used last at the end."""
_types: set[BufferType] = set()
_roots: dict[_Key, "weakref.ref[Plain]"] = {}


def residents(value: Value) -> frozenset[str]:
    """Return the names of the devices that have a copy of a constant."""
    if not _copies:
        return NOWHERE
    key = layout_key(value)
    devices = (each.device for each in _types if (key, each) in _copies)
    return frozenset(device.name for device in devices if device is not None)


def resident_bytes() -> int:
    """Return the bytes of all copies together."""
    return sum(resident.nbytes for resident in list(_copies.values()))


def find(value: Value, buffer_type: BufferType) -> Resident | None:
    """Return the copy of a constant in memory of this type, if there is one."""
    key = layout_key(value), buffer_type
    found = _copies.pop(key, None)
    if found is not None:
        _copies[key] = found
    return found


def place(
    value: Value, buffer_type: BufferType, write: Callable[[Tensor, Value], None]
) -> Resident:
    """Copy a constant to memory of a device; `keep` is for when it is there.

    Raises
    ------
    MemoryError
        The device has not so much memory.
    """
    resident = Resident(value, buffer_type)
    write(resident.tensor, value)
    return resident


def keep(value: Value, buffer_type: BufferType, resident: Resident) -> None:
    """Enter a copy of a constant in the books."""
    key = layout_key(value)
    _types.add(buffer_type)
    _copies[key, buffer_type] = resident
    if key not in _roots:  # its address may be that of something else once it is gone
        root = root_of(stored(value))
        _roots[key] = weakref.ref(root, lambda _: _forget(key))


def trim(limit: int) -> None:
    """Drop copies, those used longest ago first, until all together are within a limit."""
    while resident_bytes() > limit:
        _copies.pop(next(iter(_copies)), None)


def _forget(key: _Key) -> None:
    _roots.pop(key, None)
    for buffer_type in list(_types):
        _copies.pop((key, buffer_type), None)
