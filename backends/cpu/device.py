"""The device ``cpu``: our own kernels, for every product and every dtype."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from ggarray._quantized.blocks import Blocks
from ggarray.backends.cpu import kernels
from ggarray.backends.cpu.machine import host_memory, processor_features, processor_name
from ggarray.backends.cpu.plans import Plan, computes
from ggarray.backends.cpu.pools import ThreadPool
from ggarray.interface import (
    HOST,
    Backend,
    BackendDevice,
    DeviceType,
    Flag,
    HostBuffer,
    HostBuffers,
    Kernel,
    Op,
    Plans,
    Registry,
    Status,
)

__all__ = ["CpuBackend", "CpuDevice", "CpuRegistry", "host_memory", "registry", "set_n_threads"]


def _matmul(kernel: Kernel, n_threads: int) -> int:
    a, b = kernel.operands
    return kernels.matmul(a, b, kernel.out, n_threads)


def _out_prod(kernel: Kernel, n_threads: int) -> int:
    a, b = kernel.operands
    return kernels.out_prod(a, b, kernel.out, n_threads)


def _copy(kernel: Kernel, n_threads: int) -> int:
    (source,) = kernel.operands
    if isinstance(kernel.out, Blocks):
        return kernels.from_float(source, kernel.out, n_threads)
    return kernels.to_float(source, kernel.out, n_threads)


_RUN: dict[Op, Callable[[Kernel, int], int]] = {
    Op.MATMUL: _matmul,
    Op.OUT_PROD: _out_prod,
    Op.COPY: _copy,
}

# Bound once: looking them up costs a small product more.
_SUCCESS, _FAILED, _ABORTED = Status.SUCCESS, Status.FAILED, Status.ABORTED
_COMPUTE = int(Flag.COMPUTE)
_and = int.__and__  # IntFlag's own is slow


class CpuBackend(Plans, Backend):
    """Computes with the kernels of `ggarray.backends.cpu.kernels`."""

    name = "cpu"

    def __init__(self) -> None:
        self._pool: ThreadPool | None = None
        self._abort: Callable[[], bool] | None = None

    def graph_compute(self, graph: Sequence[Kernel]) -> Status:
        """Compute the nodes in order; stops at the first that fails."""
        pool = self._pool
        if pool is None:
            return self._compute(graph)
        with pool.serving():
            return self._compute(graph)

    def _compute(self, graph: Sequence[Kernel]) -> Status:
        for kernel in graph:
            if not _and(kernel.flags, _COMPUTE):
                continue
            if self._abort is not None and self._abort():
                return _ABORTED
            run = _RUN.get(kernel.op)
            if run is None or kernel.bias is not None or kernel.alpha != 1:
                return _FAILED
            status = run(kernel, self.n_threads)
            if status:
                return Status(status)
        return _SUCCESS

    def graph_plan_create(self, graph: Sequence[Kernel]) -> Plan:
        """Prepare a graph."""
        return Plan(graph)

    def graph_plan_update(self, plan: Plan, graph: Sequence[Kernel]) -> None:
        """Give a plan the memory of another graph for its next evaluation."""
        plan.update(graph)

    def graph_plan_compute(self, plan: Plan) -> Status:
        """Compute a plan's graph; stops at the first node that fails."""
        pool = self._pool
        with pool.serving() if pool is not None else nullcontext():
            return Status(plan.compute(self.n_threads, self._abort))

    def graph_plan_free(self, plan: Plan) -> None:
        """Let go of the memory that a plan has."""
        plan.let_go()

    def set_abort_callback(self, callback: Callable[[Any], Any] | None, user_data: Any) -> None:
        """Ask ``callback(user_data)`` before each node, or nobody."""
        self._abort = None if callback is None else lambda: bool(callback(user_data))

    def set_threadpool(self, pool: ThreadPool | None) -> None:
        """Compute on a pool, or on the threads that all share; the pool before is paused."""
        before = self._pool
        if before is pool:
            return
        if pool is not None:
            pool.give(self)
        self._pool = pool
        if before is not None:
            before.take_back(self)


class CpuDevice(HostBuffers, BackendDevice):
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
        return computes(node)

    def init_backend(self, params: str = "") -> CpuBackend:
        """Return a stream; there are no parameters."""
        return CpuBackend()

    def buffer_from_host_ptr(self, address: int, size: int, max_tensor_size: int) -> HostBuffer:
        """Return a buffer over the memory; tensors may be as large as it."""
        return HostBuffer.at(HOST, address, size)


class CpuRegistry(Registry):
    """The one CPU device; it is always there."""

    name = "cpu"

    def devices(self) -> Sequence[BackendDevice]:
        """Return the device ``cpu``."""
        return (CpuDevice(),)

    def procedures(self) -> Mapping[str, Callable[..., Any]]:
        """Return functions for those who use this backend in particular.

        ``get_features()``, ``set_n_threads(backend, n)``, ``set_abort_callback(backend, callback,
        user_data=None)``, ``threadpool_new(n_threads)``, ``threadpool_free(pool)`` and
        ``set_threadpool(backend, pool)``.
        """
        return {
            "get_features": get_features,
            "set_abort_callback": set_abort_callback,
            "set_n_threads": set_n_threads,
            "set_threadpool": set_threadpool,
            "threadpool_free": ThreadPool.free,
            "threadpool_new": ThreadPool,
        }


registry = CpuRegistry()


def get_features() -> dict[str, Any]:
    """Return what the kernels use, and by ggml's names which features the processor has.

    Returns
    -------
    dict
        ``isa``, ``usable`` and ``version`` of `kernels.features`; the others are True or False.
    """
    return {**kernels.features(), **processor_features()}


def set_n_threads(backend: Backend, n: int) -> None:
    """Set how many threads a backend may use; evaluation sets it anew before each product."""
    backend.n_threads = n


def set_abort_callback(
    backend: CpuBackend, callback: Callable[[Any], Any] | None, user_data: Any = None
) -> None:
    """Have a backend ask before each node whether to stop.

    Parameters
    ----------
    backend : CpuBackend
        A stream of the device ``cpu``.
    callback : callable or None
        ``callback(user_data)`` is true to end the computation with `Status.ABORTED`; what it
        raises ends it too. None asks nobody.
    user_data : object
        For the callback.
    """
    backend.set_abort_callback(callback, user_data)


def set_threadpool(backend: CpuBackend, pool: ThreadPool | None) -> None:
    """Have a backend compute on a pool of threads.

    The pool that it leaves is paused, the new one resumed. Several backends may use one pool.

    Parameters
    ----------
    backend : CpuBackend
        A stream of the device ``cpu``.
    pool : ThreadPool or None
        From ``threadpool_new``; it limits how many threads a computation has. None for the threads
        that all backends share.

    Raises
    ------
    BackendError
        The pool has been freed.
    """
    backend.set_threadpool(pool)
