"""The device ``faulty``: `reference` with the fault that `fault` names, none if it is empty.

Its first value is the environment variable PLUGIN_FAULT, in time for what fails at the start.
"""

import os
from collections.abc import Sequence

from ggarray.interface import API_VERSION, BackendDevice, Kernel, Op, Registry, Status
from ggarray_plugin_backends.reference import ReferenceBackend, ReferenceDevice

fault = os.environ.get("PLUGIN_FAULT", "")

STATUSES = {
    "failed": Status.FAILED,
    "allocation failed": Status.ALLOC_FAILED,
    "aborted": Status.ABORTED,
}
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


class FaultyBackend(ReferenceBackend):
    """Spoils what it was to compute before it fails."""

    name = "faulty"
    computed = 0

    def graph_compute(self, graph: Sequence[Kernel]) -> Status:
        """Compute the nodes, unless there is a fault."""
        if fault in STATUSES or fault == "raise":
            for kernel in graph:
                kernel.out[...] = 1
        if fault == "raise":
            raise OSError("the device was unplugged")
        status = STATUSES.get(fault) or super().graph_compute(graph)
        self.computed += len(graph) * (status is Status.SUCCESS)
        return status


class FaultyDevice(ReferenceDevice):
    """A device that may be choosy; a second one never answers."""

    description = "broken on demand"

    def __init__(self, name: str) -> None:
        if name == "faulty:2":
            raise OSError("faulty:2 does not answer")
        self.name = name
        self.backend = FaultyBackend()

    def supports_op(self, node: Kernel) -> bool:
        """Tell whether the node is a product that the fault leaves over."""
        return super().supports_op(node) and node.op not in UNSUPPORTED.get(fault, ())

    def init_backend(self, params: str = "") -> FaultyBackend:
        """Return the one stream; there are no parameters."""
        return self.backend


class FaultyRegistry(Registry):
    """One device."""

    name = "faulty"
    api_version = API_VERSION + 1 if fault == "version" else API_VERSION

    def score(self) -> int:
        """Return a score that says "unusable" if that is the fault."""
        if fault == "score":
            raise OSError("no such processor is known")
        return 0 if fault == "unusable" else 1

    def devices(self) -> Sequence[BackendDevice]:
        """Return the device, and what the fault adds."""
        if fault == "devices":
            raise OSError("the driver\nhas a long story to tell")
        return [FaultyDevice(name) for name in NAMES.get(fault, ["faulty"])]


registry = object() if fault == "no registry" else FaultyRegistry()
