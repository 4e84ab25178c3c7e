"""The devices ``faulty`` and ``faulty:remote``: those of `reference` with the fault `fault` names.

There is none if it is empty. Its first value is the environment variable PLUGIN_FAULT, in time for
what fails at the start.
"""

import os
import threading
from collections.abc import Callable, Sequence

from ggarray.interface import (
    API_VERSION,
    BackendDevice,
    Flag,
    HostBuffer,
    Kernel,
    Op,
    Status,
    Tensor,
)
from ggarray.interface.buffers import Bytes
from ggarray_plugin_backends.reference.devices import (
    ReferenceDevice,
    ReferenceRegistry,
    RemoteDevice,
)
from ggarray_plugin_backends.reference.memory import (
    RemoteBuffer,
    RemoteBufferType,
    array_of,
)
from ggarray_plugin_backends.reference.streams import (
    Mark,
    Plan,
    ReferenceBackend,
    RemoteBackend,
    Stream,
)

fault = os.environ.get("PLUGIN_FAULT", "")

STATUSES = {
    "failed": Status.FAILED,
    "allocation failed": Status.ALLOC_FAILED,
    "aborted": Status.ABORTED,
}
LATE_STATUSES = {f"{name} in the end": status for name, status in STATUSES.items()}
NAMES = {
    "a silent device": ["faulty", "faulty:2"],
    "a name that is taken": ["faulty", "cpu"],
}
UNSUPPORTED = {
    "supports no outer product": {Op.OUT_PROD},
    "supports nothing": set(Op),
}

if fault == "import":
    raise ImportError("libfaulty.so is missing")
if fault == "exit":
    raise SystemExit("no licence for faulty")


# -- streams --------------------------------------------------------------------------------------


class FaultyStream(Stream):
    """Spoils what it was to compute before it fails."""

    computed = 0

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.needed = threading.Event()

    def graph_compute(self, graph: Sequence[Kernel]) -> Status:
        """Have the nodes computed, unless there is a fault."""
        if fault in STATUSES or fault == "raise":
            _spoil(graph)
        if fault == "raise":
            raise OSError("the device was unplugged")
        if fault == "waits for no event":  # and is late, so that it matters
            self.needed.clear()
            self.worker.ask(self.needed.wait)
        return STATUSES.get(fault) or super().graph_compute(graph)

    def synchronize(self) -> Status:
        """Return when everything asked for is done, with the first failure."""
        self.needed.set()
        return super().synchronize()

    def compute(self, graph: Sequence[Kernel]) -> Status:
        """Compute the nodes, unless there is a fault that shows in the end."""
        if fault in LATE_STATUSES or fault == "raise in the end":
            _spoil(graph)
        if fault == "raise in the end":
            raise OSError("the device was unplugged")
        if fault == "knows no flags":
            for kernel in graph:
                kernel.flags |= Flag.COMPUTE
        status = LATE_STATUSES.get(fault) or super().compute(graph)
        self.computed += len(graph) * (status is Status.SUCCESS)
        if fault == "writes behind results":
            for kernel in graph:
                _write_behind(kernel.out)
        return status

    def event_wait(self, event: Mark) -> None:
        """Wait for an event, or for none."""
        if fault != "waits for no event":
            super().event_wait(event)


def _spoil(graph: Sequence[Kernel]) -> None:
    for kernel in graph:
        array_of(kernel.out)[...] = 1


def _write_behind(out: Tensor) -> None:
    """Change the byte behind the last one of a contiguous result, if that is in its buffer."""
    memory, end = out.buffer.memory, out.offset + out.nbytes
    memory[end : end + 1] ^= 1


class FaultyBackend(FaultyStream, ReferenceBackend):
    """The stream of ``faulty``."""

    def graph_plan_create(self, graph: Sequence[Kernel]) -> Plan:
        """Keep a graph, and the memory that it has at first."""
        plan = super().graph_plan_create(graph)
        plan.first = plan.graph
        return plan

    def graph_plan_update(self, plan: Plan, graph: Sequence[Kernel]) -> None:
        """Take other memory, or fail to."""
        if fault == "plans cannot be updated":
            raise OSError("no room for arguments")
        super().graph_plan_update(plan, plan.first if fault == "plans keep their memory" else graph)


class FaultyRemoteBackend(FaultyStream, RemoteBackend):
    """The stream of ``faulty:remote``."""

    def graph_optimize(
        self, graph: Sequence[Kernel], add_alloc_dep: Callable[[int, int], None]
    ) -> Sequence[int]:
        """Return an order of the nodes, or none."""
        order = super().graph_optimize(graph, add_alloc_dep)
        if fault == "loses a node":
            return order[:-1]
        return order[::-1] if fault == "puts results before operands" else order


# -- memory ---------------------------------------------------------------------------------------


class FaultyRemoteBuffer(RemoteBuffer):
    """Memory that may not be there when it is needed."""

    def init_tensor(self, tensor: Tensor) -> Status:
        """Note the place of a tensor, unless there is a fault."""
        if fault == "takes no tensors":
            return Status.ALLOC_FAILED
        return super().init_tensor(tensor)

    def set_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Send bytes of a tensor, or lose them."""
        if fault == "cannot be written":
            raise OSError("the wire was cut")
        if fault != "forgets what is written":
            super().set_tensor(tensor, data, offset)

    def get_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Fetch bytes of a tensor, unless there is a fault."""
        if fault == "cannot be read":
            raise OSError("the wire was cut")
        super().get_tensor(tensor, data, offset)

    def copy_tensor(self, source: Tensor, target: Tensor) -> bool:
        """Copy a tensor, or say so."""
        return fault == "only says that it copies" or super().copy_tensor(source, target)


class FaultyRemoteBufferType(RemoteBufferType):
    """Memory that may be used up."""

    makes = FaultyRemoteBuffer

    def alloc(self, size: int) -> RemoteBuffer:
        """Return a new buffer if there is memory."""
        if fault == "out of memory":
            raise MemoryError("faulty:remote has no memory left")
        return super().alloc(size)


# -- devices --------------------------------------------------------------------------------------


class FaultyDevice(ReferenceDevice):
    """A device that may be choosy; a second one never answers."""

    description = "broken on demand"

    def __init__(self, name: str) -> None:
        if name == "faulty:2":
            raise OSError("faulty:2 does not answer")
        super().__init__(name)
        self.backend = FaultyBackend(name)

    def supports_op(self, node: Kernel) -> bool:
        """Tell whether the node is a product that the fault leaves over."""
        return super().supports_op(node) and node.op not in UNSUPPORTED.get(fault, ())

    def buffer_from_host_ptr(self, address: int, size: int, max_tensor_size: int) -> HostBuffer:
        """Return a buffer over memory of the host, unless there is a fault."""
        if fault == "cannot map memory":
            raise OSError("too many maps")
        return super().buffer_from_host_ptr(address, size, max_tensor_size)

    def init_backend(self, params: str = "") -> FaultyBackend:
        """Return the one stream; there are no parameters."""
        return self.backend


class FaultyRemoteDevice(RemoteDevice):
    """A device with memory that breaks."""

    description = "broken on demand, far away"

    def __init__(self) -> None:
        super().__init__("faulty:remote")
        self.buffer_type = FaultyRemoteBufferType(self.name, self)

    def supports_op(self, node: Kernel) -> bool:
        """Tell whether the node is a product that the fault leaves over."""
        return super().supports_op(node) and node.op not in UNSUPPORTED.get(fault, ())

    def init_backend(self, params: str = "") -> FaultyRemoteBackend:
        """Return a stream; there are no parameters."""
        return FaultyRemoteBackend(self.name)


class FaultyRegistry(ReferenceRegistry):
    """One device of each kind."""

    name = "faulty"
    api_version = API_VERSION + 1 if fault == "version" else API_VERSION

    def score(self) -> int:
        """Return a score that says "unusable" if that is the fault."""
        if fault == "score":
            raise OSError("no such processor is known")
        return 0 if fault == "unusable" else 1

    def devices(self) -> Sequence[BackendDevice]:
        """Return the devices, and what the fault adds."""
        if fault == "devices":
            raise OSError("the driver\nhas a long story to tell")
        return [*map(FaultyDevice, NAMES.get(fault, ["faulty"])), FaultyRemoteDevice()]


registry = object() if fault == "no registry" else FaultyRegistry()
