"""Copies of constants in the memories of devices, kept from one evaluation to the next.

A copy lives as long as the constant does, and as all copies together are within a limit. Only
evaluations come here, one at a time; but constants die whenever they do.
"""

import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ggarray._graph.node import address
from ggarray._quantized.blocks import Blocks
from ggarray._storage import Plain, root_of
from ggarray.interface import Buffer, BufferType, Tensor, Usage, Value, alloc_tensors

_Key = tuple[Any, ...]
NOWHERE: frozenset[str] = frozenset()


class Group:
    """Constants that were copied to a device together; their memory goes with this object."""

    def __init__(self, owner: Buffer) -> None:
        self.nbytes = owner.size
        self.keys: set[_Key] = set()
        weakref.finalize(self, owner.free).atexit = False


class Resident(NamedTuple):
    """A copy of a constant, and the group to hold while it is used."""

    tensor: Tensor
    group: Group


_copies: dict[_Key, dict[BufferType, Resident]] = {}
_groups: OrderedDict[Group, None] = OrderedDict()
"""The groups that are kept, the one used last at the end."""
_roots: dict[_Key, "weakref.ref[Plain]"] = {}


def residents(value: Value) -> frozenset[str]:
    """Return the names of the devices that have a copy of a constant."""
    if not _copies:
        return NOWHERE
    types = list(_copies.get(_key(value), ()))
    return frozenset(each.device.name for each in types if each.device is not None)


def resident_bytes() -> int:
    """Return the bytes of all copies together."""
    return sum(group.nbytes for group in list(_groups))


def find(value: Value, buffer_type: BufferType) -> Resident | None:
    """Return the copy of a constant in memory of this type, if there is one."""
    found = _copies.get(_key(value), {}).get(buffer_type)
    if found is not None and found.group in _groups:
        _groups.move_to_end(found.group)
    return found


def place(
    values: Sequence[Value],
    buffer_type: BufferType,
    write: Callable[[Tensor, Value], None],
    limit: int,
) -> list[Resident]:
    """Copy constants to memory of a device, and keep the copies if there is room.

    Raises
    ------
    MemoryError
        The device has not so much memory; nothing is kept.
    """
    tensors = [Tensor.like(value).contiguous() for value in values]
    owner, placed = alloc_tensors(tensors, buffer_type, Usage.WEIGHTS)
    group = Group(owner)
    for tensor, value in zip(placed, values, strict=True):
        write(tensor, value)
    made = [Resident(tensor, group) for tensor in placed]
    if group.nbytes <= limit:
        for value, resident in zip(values, made, strict=True):
            _keep(value, buffer_type, resident)
        _groups[group] = None
        trim(limit)
    return made


def trim(limit: int) -> None:
    """Drop copies, those used longest ago first, until all together are within a limit."""
    while resident_bytes() > limit:
        drop(next(iter(_groups)))


def _keep(value: Value, buffer_type: BufferType, resident: Resident) -> None:
    key = _key(value)
    here = _copies.setdefault(key, {})
    if buffer_type in here:  # a signal handler has copied it meanwhile
        _leave(here[buffer_type].group, key)
    here[buffer_type] = resident
    resident.group.keys.add(key)
    if key not in _roots:  # its address may be that of something else once it is gone
        root = root_of(_data(value))
        _roots[key] = weakref.ref(root, lambda _: _forget(key))


def _forget(key: _Key) -> None:
    _roots.pop(key, None)
    for resident in _copies.pop(key, {}).values():
        _leave(resident.group, key)


def _leave(group: Group, key: _Key) -> None:
    """Take a constant out of a group, which goes with the last."""
    group.keys.discard(key)
    if not group.keys:
        _groups.pop(group, None)


def drop(group: Group) -> None:
    """Drop the copies of a group."""
    _groups.pop(group, None)
    for key in list(group.keys):  # a constant may die meanwhile
        here = _copies.get(key, {})
        for buffer_type in [each for each, copy in here.items() if copy.group is group]:
            del here[buffer_type]
        if not here:
            _copies.pop(key, None)
            _roots.pop(key, None)


def _key(value: Value) -> _Key:
    data = _data(value)
    axis = value.axis if isinstance(value, Blocks) else None
    return address(data), data.shape, data.strides, value.dtype, axis


def _data(value: Value) -> Plain:
    return value.data if isinstance(value, Blocks) else value
