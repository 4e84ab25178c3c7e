"""Copies of constants in the memories of devices; `ggarray._weight_cache` has the books of them."""

import weakref
from collections.abc import Callable

from ggarray import _weight_cache
from ggarray._weight_cache import kept_bytes, kept_forms, trim
from ggarray.interface import BufferType, Tensor, Usage, Value, alloc_tensors

__all__ = ["NOWHERE", "Resident", "find", "keep", "place", "resident_bytes", "residents", "trim"]

NOWHERE: frozenset[str] = frozenset()


class Resident:
    """A copy of a constant; its memory goes with this object, to be held while it is used."""

    def __init__(self, value: Value, buffer_type: BufferType) -> None:
        tensors = [Tensor.like(value).contiguous()]
        buffer, (self.tensor,) = alloc_tensors(tensors, buffer_type, Usage.WEIGHTS)
        self.nbytes = buffer.size
        weakref.finalize(self, buffer.free).atexit = False


_types: dict[BufferType, None] = {}
"""Those that have ever had a copy."""


def residents(value: Value) -> frozenset[str]:
    """Return the names of the devices that have a copy of a constant."""
    if not _types:
        return NOWHERE
    devices = (each.device for each in kept_forms(value, list(_types)))
    return frozenset(device.name for device in devices if device is not None)


def resident_bytes() -> int:
    """Return the bytes of all copies together."""
    return kept_bytes(Resident)


def find(value: Value, buffer_type: BufferType) -> Resident | None:
    """Return the copy of a constant in memory of this type, if there is one."""
    found: Resident | None = _weight_cache.find(value, buffer_type)
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
    _types[buffer_type] = None
    _weight_cache.keep(value, buffer_type, resident)
