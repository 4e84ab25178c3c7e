"""The two devices, and their registry."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ggarray.interface import (
    PRODUCTS,
    Backend,
    BackendDevice,
    DeviceType,
    Events,
    HostBuffer,
    HostBuffers,
    HostBufferType,
    Kernel,
    Offload,
    Registry,
)
from ggarray_plugin_backends.reference.memory import OwnBufferType, RemoteBufferType
from ggarray_plugin_backends.reference.streams import Mark, ReferenceBackend, RemoteBackend


class NumpyDevice(BackendDevice, HostBuffers, Offload, Events):
    """What both devices are."""

    asynchronous = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.host_buffer_type = HostBufferType(f"{name} of the host", self)

    def supports_op(self, node: Kernel) -> bool:
        """Tell whether the node is a product, scaled or added to or not."""
        return node.op in PRODUCTS

    def offload_op(self, node: Kernel) -> bool:
        """Take all that the device supports."""
        return True

    def event_new(self) -> Mark:
        """Return a mark that is nowhere yet."""
        return Mark()

    def event_synchronize(self, event: Mark) -> None:
        """Return when a stream has reached the mark."""
        event.reached.wait()


class ReferenceDevice(NumpyDevice):
    """NumPy on the processor, where values of the host lie."""

    description = "NumPy in double precision"
    type = DeviceType.ACCEL

    def __init__(self, name: str = "reference") -> None:
        super().__init__(name)
        self.buffer_type = OwnBufferType(name, self)

    def memory(self) -> tuple[int, int]:
        """Return that nothing is known."""
        return 0, 0

    def buffer_from_host_ptr(self, address: int, size: int, max_tensor_size: int) -> HostBuffer:
        """Return a buffer over memory of the host; a tensor in it may be of any size."""
        return HostBuffer.at(self.buffer_type, address, size)

    def init_backend(self, params: str = "") -> ReferenceBackend:
        """Return a stream; there are no parameters."""
        return ReferenceBackend(self.name)


class RemoteDevice(NumpyDevice):
    """NumPy, as if it were far away."""

    description = "NumPy in double precision, in memory of its own"
    type = DeviceType.GPU
    takes_host_ptr = False
    buffer_type: RemoteBufferType

    def __init__(self, name: str = "reference:remote") -> None:
        super().__init__(name)
        self.buffer_type = RemoteBufferType(name, self)

    def memory(self) -> tuple[int, int]:
        """Return what is left of the device's memory, and all of it."""
        return self.buffer_type.left, self.buffer_type.capacity

    def offload_op(self, node: Kernel) -> bool:
        """Leave single rows: all weights would be sent for few multiplications."""
        return node.out.shape[-2] >= 2

    def init_backend(self, params: str = "") -> RemoteBackend:
        """Return a stream; there are no parameters."""
        return RemoteBackend(self.name)


class ReferenceRegistry(Registry):
    """NumPy is always there."""

    name = "reference"

    def devices(self) -> Sequence[BackendDevice]:
        """Return the two devices."""
        return [ReferenceDevice(), RemoteDevice()]

    def procedures(self) -> Mapping[str, Callable[..., Any]]:
        """Return ``set_abort_callback(backend, callback, user_data=None)``."""
        return {"set_abort_callback": set_abort_callback}


def set_abort_callback(
    backend: Backend, callback: Callable[[Any], Any] | None, user_data: Any = None
) -> None:
    """Have a stream ask ``callback(user_data)`` before each node whether to stop, or nobody."""
    backend.should_stop = bool if callback is None else partial(callback, user_data)


registry = ReferenceRegistry()
