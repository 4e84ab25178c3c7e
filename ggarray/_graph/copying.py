"""Copies between the host's memory and that of a device."""

from collections.abc import Iterable

import numpy as np

from ggarray._graph.flights import Flights
from ggarray._graph.memory import host_buffer
from ggarray._quantized.blocks import stored
from ggarray._runtime.plugins import stream
from ggarray._storage import Plain
from ggarray.interface import (
    Async,
    Backend,
    BackendDevice,
    Buffer,
    HostBuffers,
    Tensor,
    Value,
)
from ggarray.interface.buffers import Bytes


def send(
    device: BackendDevice, tensor: Tensor, value: Value, flights: Flights, *, may_change: bool
) -> None:
    """Copy a value of the host to its place in the memory of a device.

    An asynchronous stream may do so later; `may_change` says that the value's memory is the
    evaluation's own, which may write something else to it.
    """
    buffer = _buffer(tensor)
    if not tensor.nbytes:
        return
    data = _bytes(stored(value))
    backend = stream(device)
    if not isinstance(backend, Async):
        buffer.set_tensor(tensor, data)
        return
    if isinstance(device, HostBuffers) and device.host_buffer_type is not None:
        staging = device.host_buffer_type.alloc(data.size)
        flights.add(backend, staging=[staging])
        data, may_change = _staged(data, staging), False
    flights.add(backend, held=[data], in_host_memory=may_change)
    backend.set_tensor_async(tensor, data)


def fetch(copies: Iterable[tuple[Tensor, Plain]], flights: Flights) -> None:
    """Copy values from the memory of devices to contiguous arrays, and wait for them."""
    waiting: dict[Backend, BackendDevice] = {}
    for tensor, out in copies:
        if not tensor.nbytes:
            continue
        buffer = _buffer(tensor)
        device = buffer.buffer_type.device
        assert device is not None, "a device has been asked for its stream"
        backend = stream(device)
        if isinstance(backend, Async):
            flights.add(backend, held=[out])
            backend.get_tensor_async(tensor, _bytes(out))
            waiting[backend] = device
        else:
            buffer.get_tensor(tensor, _bytes(out))
    for backend, device in waiting.items():
        flights.wait(backend, device)


def _staged(data: Bytes, staging: Buffer) -> Bytes:
    """Return bytes in memory that the device copies from quickly."""
    memory = host_buffer(staging).memory[: data.size]
    memory[...] = data
    return memory


def _bytes(value: Plain) -> Bytes:
    """Return the bytes of an array, row-major; those of a contiguous one itself."""
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)


def _buffer(tensor: Tensor) -> Buffer:
    assert tensor.buffer is not None, "a value in a device's memory lies in a buffer"
    return tensor.buffer
