"""The device ``null``: supports nothing, so that ggarray's own kernels compute its products."""

from collections.abc import Sequence
from typing import NoReturn

from ggarray.interface import BackendDevice, BackendError, DeviceType, Kernel, Registry


class NullDevice(BackendDevice):
    """A device that does nothing."""

    name = "null"
    description = "leaves every product to the CPU"
    type = DeviceType.ACCEL

    def memory(self) -> tuple[int, int]:
        """Return that nothing is known."""
        return 0, 0

    def supports_op(self, node: Kernel) -> bool:
        """Leave every node to others."""
        return False

    def init_backend(self, params: str = "") -> NoReturn:
        """Raise: nobody needs a stream of a device that supports no node."""
        raise BackendError("the device 'null' computes nothing")


class NullRegistry(Registry):
    """Nothing is always there."""

    name = "null"

    def devices(self) -> Sequence[BackendDevice]:
        """Return the one device."""
        return [NullDevice()]


registry = NullRegistry()
