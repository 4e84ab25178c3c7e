"""Test doubles: backends that count, fail or do not mix, computing with NumPy."""

import numpy as np

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.reference import dequantize_blocks
from ggarray.interface import Backend, BackendDevice, DeviceType, Op, Registry, Status


class NumpyBackend(Backend):
    """Computes kernels with NumPy and keeps count of them."""

    def __init__(self, name):
        self.name = name
        self.computed = []
        self.outcomes = []  # statuses to return instead of computing, the next first

    def graph_compute(self, graph):
        for kernel in graph:
            if self.outcomes:
                status = self.outcomes.pop(0)
                if isinstance(status, BaseException):
                    raise status
                if status is not Status.SUCCESS:
                    return status
            self.computed.append(kernel.op)
            a, b = (dequantize_blocks(x) if isinstance(x, Blocks) else x for x in kernel.operands)
            if kernel.op is Op.MATMUL:
                kernel.out[...] = np.matmul(a, b)
            else:
                kernel.out[...] = a * b.T
        return Status.SUCCESS


class NumpyDevice(BackendDevice):
    """A device of its own memory space as far as mixing goes."""

    type = DeviceType.ACCEL
    description = "NumPy, counted"

    def __init__(self, name):
        self.name = name
        self.backend = NumpyBackend(name)

    def memory(self):
        return (0, 0)

    def supports_op(self, node):
        return node.op in (Op.MATMUL, Op.OUT_PROD)

    def init_backend(self, params=""):
        return self.backend


class NumpyRegistry(Registry):
    """The devices ``counting`` and ``failing``."""

    name = "doubles"

    def __init__(self):
        self.counting = NumpyDevice("counting")
        self.failing = NumpyDevice("failing")

    def devices(self):
        return [self.counting, self.failing]
