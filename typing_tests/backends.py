"""The code of a backend's author: NumPy as a device of its own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_type

import numpy as np

import ggarray as xp
from ggarray.interface import (
    API_VERSION,
    PRODUCTS,
    Backend,
    BackendDevice,
    DeviceType,
    Kernel,
    Op,
    Registry,
    Status,
    Tensor,
)


class NumpyBackend(Backend):
    name = "numpy"

    def graph_compute(self, graph: Sequence[Kernel]) -> Status:
        for kernel in graph:
            assert_type(kernel.op, Op)
            a, b = kernel.operands
            if kernel.op is Op.OUT_PROD:
                np.multiply(a, b.T, out=kernel.out)
            else:
                np.matmul(a, b, out=kernel.out)
        return Status.SUCCESS


class NumpyDevice(BackendDevice):
    name = "numpy"
    description = "NumPy's products"
    type = DeviceType.ACCEL

    def memory(self) -> tuple[int, int]:
        return 0, 0

    def supports_op(self, node: Kernel) -> bool:
        if any(isinstance(operand, Tensor) and operand.ndim > 2 for operand in node.operands):
            return False
        return node.op in PRODUCTS

    def init_backend(self, params: str = "") -> Backend:
        return NumpyBackend()


class NumpyRegistry(Registry):
    name = "numpy"

    def devices(self) -> Sequence[BackendDevice]:
        return [NumpyDevice()]

    def procedures(self) -> Mapping[str, Callable[..., Any]]:
        return {"numpy_version": lambda: np.__version__}


def use() -> None:
    registry = NumpyRegistry()
    assert_type(registry.api_version, int)
    assert registry.api_version == API_VERSION
    assert_type(registry.get_proc_address("numpy_version"), Callable[..., Any] | None)
    stream = registry.devices()[0].init_backend()
    assert_type(stream.n_threads, int)
    kernel = Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)))
    assert_type(stream.graph_compute([kernel]), Status)
    stream.synchronize()
    xp.register_backend(registry)
