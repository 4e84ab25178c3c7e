"""A product as NumPy computes it in the widest dtype of its kind, rounded once."""

import numpy as np

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.reference import dequantize_blocks
from ggarray.interface import Kernel, Op, Value
from ggarray_plugin_backends.reference.memory import array_of


def compute(kernel: Kernel) -> None:
    """Fill the ``out`` of a product: scaled, with what is added to it, and in out's dtype."""
    a, b = (widened(array_of(operand)) for operand in kernel.operands)
    value = np.matmul(a, b) if kernel.op is Op.MATMUL else a * b.T
    if kernel.alpha != 1:
        value = value * np.asarray(kernel.alpha).astype(value.dtype)
    if kernel.bias is not None:
        bias = widened(array_of(kernel.bias))
        value = value + bias if kernel.beta > 0 else value - bias
    array_of(kernel.out)[...] = narrowed(value, kernel.out.dtype)


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
