"""The device ``cpu``: our own kernels, for every product and every dtype."""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ggarray._quantized.blocks import Blocks
from ggarray.backends.cpu import kernels
from ggarray.interface import Backend, BackendDevice, DeviceType, Kernel, Op, Registry, Status


def _matmul(kernel: Kernel, n_threads: int) -> int:
    a, b = kernel.operands
    return kernels.matmul(a, b, kernel.out, n_threads)


def _out_prod(kernel: Kernel, n_threads: int) -> int:
    a, b = kernel.operands
    return kernels.out_prod(a[:, 0], b[:, 0], kernel.out, n_threads)


def _copy(kernel: Kernel, n_threads: int) -> int:
    (source,) = kernel.operands
    if isinstance(kernel.out, Blocks):
        return kernels.from_float(source, kernel.out, n_threads)
    return kernels.to_float(source, kernel.out, n_threads)


_COMPUTE: dict[Op, Callable[[Kernel, int], int]] = {
    Op.MATMUL: _matmul,
    Op.OUT_PROD: _out_prod,
    Op.COPY: _copy,
}


class CpuBackend(Backend):
    """Computes with the kernels of `ggarray.backends.cpu.kernels`."""

    name = "cpu"

    def graph_compute(self, graph: Sequence[Kernel]) -> Status:
        """Compute the nodes in order; stops at the first that fails."""
        for kernel in graph:
            compute = _COMPUTE.get(kernel.op)
            status = compute(kernel, self.n_threads) if compute else Status.FAILED
            if status:
                return Status(status)
        return Status.SUCCESS


class CpuDevice(BackendDevice):
    """The processor."""

    name = "cpu"
    type = DeviceType.CPU

    def __init__(self) -> None:
        self.description = processor_name()

    def memory(self) -> tuple[int, int]:
        """Return the bytes of memory that are available, and that the machine has."""
        return host_memory()

    def supports_op(self, node: Kernel) -> bool:
        """Tell whether the node is a product of dtypes with kernels, or quantizes or decodes."""
        if node.op is Op.COPY:
            quantized = [isinstance(each, Blocks) for each in (*node.operands, node.out)]
            return sum(quantized) == 1
        return node.op in _COMPUTE and kernels.supported(node.out.dtype)

    def init_backend(self, params: str = "") -> CpuBackend:
        """Return a stream; there are no parameters."""
        return CpuBackend()


class CpuRegistry(Registry):
    """The one CPU device; it is always there."""

    name = "cpu"

    def devices(self) -> Sequence[BackendDevice]:
        """Return the device ``cpu``."""
        return (CpuDevice(),)

    def procedures(self) -> Mapping[str, Callable[..., Any]]:
        """Return ``get_features()`` and ``set_n_threads(backend, n)``."""
        return {"get_features": kernels.features, "set_n_threads": set_n_threads}


registry = CpuRegistry()


def set_n_threads(backend: Backend, n: int) -> None:
    """Set how many threads a backend may use; evaluation sets it anew before each product."""
    backend.n_threads = n


@cache
def processor_name() -> str:
    """Return the processor's model name, or the name of its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()


def host_memory() -> tuple[int, int]:
    """Return the bytes of memory that are available and that there are, 0 where not known."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        pages = os.sysconf("SC_PHYS_PAGES") if "SC_PHYS_PAGES" in os.sysconf_names else 0
        return 0, pages * os.sysconf("SC_PAGE_SIZE")
    kibibytes = {name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines)}
    return kibibytes["MemAvailable"] * 1024, kibibytes["MemTotal"] * 1024
