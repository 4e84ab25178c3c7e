"""Small graphs of products of float32, whose nodes read what others have written."""

import numpy as np
import pytest

from conformance.backend.layouts import poison
from conformance.standard.references import numbers
from ggarray.interface import HOST, Flag, Kernel, Op

FLOAT32 = np.dtype(np.float32)
SIZE = 64


class Graph:
    """Three products in host memory; nothing is computed yet.

    Attributes
    ----------
    kernels : list of Kernel
    """

    def __init__(self, seed=0, *, scaled=False):
        a, b, c, row = (numbers(FLOAT32, (SIZE, SIZE), 4 * seed + at) / 8 for at in range(4))
        first, second, third = self.outs = [poison((SIZE, SIZE), FLOAT32) for _ in range(3)]
        row = row[:1]
        epilogue = {"alpha": 0.5, "beta": -1, "bias": row} if scaled else {}
        kept = Flag.OUTPUT | Flag.COMPUTE
        self.kernels = [
            Kernel(Op.MATMUL, (a, b), first, flags=Flag.INPUT | Flag.COMPUTE),
            Kernel(Op.MATMUL, (first, c.mT), second, flags=kept),
            Kernel(Op.MATMUL, (first.mT, second), third, flags=kept, **epilogue),
        ]
        a, b, c = (each.astype(np.float64) for each in (a, b, c))
        second = a @ b @ c.mT
        third = (a @ b).mT @ second
        self.expected = [None, second, 0.5 * third - row if scaled else third]

    def skipped(self):
        """Return the kernels as nodes that are not to be computed."""
        return [
            Kernel(each.op, each.operands, each.out, flags=each.flags & ~Flag.COMPUTE)
            for each in self.kernels
        ]

    def check_untouched(self):
        """Raise AssertionError if any result has been written."""
        for out in self.outs:
            assert out.tobytes() == poison(out.shape, out.dtype).tobytes(), "a result was written"

    def needs(self, device):
        """Skip the test where the device leaves one of the products to others."""
        if not all(map(device.supports_op, self.kernels)):
            pytest.skip(f"{device.name} leaves it to others")

    def check(self, nmse):
        """Compare the results that are needed after the graph."""
        for out, expected in zip(self.outs[1:], self.expected[1:], strict=True):
            near(out, expected, nmse)


def near(result, expected, nmse):
    """Compare with the result of some products in double precision."""
    error = np.mean((result - expected) ** 2)
    assert error <= max(1e-11, 10 * nmse) * np.mean(expected**2)


def value_in(device, tensor):
    """Return a tensor in memory of the device as a kernel of that takes it."""
    return tensor.buffer.array(tensor) if device.supports_buffer_type(HOST) else tensor
