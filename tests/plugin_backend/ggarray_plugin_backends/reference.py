"""The device ``reference``: every product as NumPy computes it in double precision, rounded once.

It is slow and makes no mistakes: what another backend computes can be judged by it.
"""

from collections.abc import Sequence

import numpy as np

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.reference import dequantize_blocks
from ggarray.interface import (
    PRODUCTS,
    Backend,
    BackendDevice,
    DeviceType,
    Kernel,
    Op,
    Registry,
    Status,
    Value,
)


class ReferenceBackend(Backend):
    """Computes each node in the widest dtype of its kind."""

    name = "reference"

    def graph_compute(self, graph: Sequence[Kernel]) -> Status:
        """Compute the nodes in order."""
        with np.errstate(all="ignore"):  # infinities and NaNs are values like others
            for kernel in graph:
                a, b = (widened(operand) for operand in kernel.operands)
                product = np.matmul(a, b) if kernel.op is Op.MATMUL else a * b.T
                kernel.out[...] = narrowed(product, kernel.out.dtype)
        return Status.SUCCESS


def widened(operand: Value) -> np.ndarray:
    """Return float64 for floats, complex128 for complex numbers, integers and bools as they are.

    Integers need no more bits: their products wrap, and what is kept is exact.
    """
    if isinstance(operand, Blocks):
        operand = dequantize_blocks(operand)
    if operand.dtype.kind in "iub":
        return operand
    return operand.astype(np.complex128 if operand.dtype.kind == "c" else np.float64)


def narrowed(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return `value` in `dtype`, each element the nearest one."""
    if dtype.name == "bfloat16":  # float64 gets there by way of float32, which must make no ties
        single = value.astype(np.float32)
        below = np.where(abs(single) > abs(value), np.nextafter(single, np.float32(0)), single)
        value = (below.view(np.uint32) | (below != value)).view(np.float32)  # odd where inexact
    return value.astype(dtype)


class ReferenceDevice(BackendDevice):
    """NumPy on the processor."""

    name = "reference"
    description = "NumPy in double precision"
    type = DeviceType.ACCEL

    def memory(self) -> tuple[int, int]:
        """Return that nothing is known."""
        return 0, 0

    def supports_op(self, node: Kernel) -> bool:
        """Tell whether the node is a product."""
        return node.op in PRODUCTS

    def init_backend(self, params: str = "") -> ReferenceBackend:
        """Return a stream; there are no parameters."""
        return ReferenceBackend()


class ReferenceRegistry(Registry):
    """NumPy is always there."""

    name = "reference"

    def devices(self) -> Sequence[BackendDevice]:
        """Return the one device."""
        return [ReferenceDevice()]


registry = ReferenceRegistry()
