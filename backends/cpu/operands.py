"""How the C kernels take operands: type codes, addresses, sizes and strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import BY_TYPE_ID, QuantizedDType
from ggarray.backends.cpu._kernels import ffi, lib
from ggarray.interface import Tensor

__all__ = [
    "BF16",
    "CODES",
    "DECODED",
    "FLOAT32",
    "Array",
    "Operand",
    "address_of",
    "computes_in",
    "decodes",
    "encodes",
    "from_float_parameters",
    "is_blocked_in_batch",
    "matmul_parameters",
    "matrix",
    "memory",
    "out_prod_parameters",
    "pointer",
    "supported",
    "to_float_parameters",
]

Array: TypeAlias = np.ndarray[Any, Any]
Operand: TypeAlias = Array | Blocks | Tensor

CODES: dict[Any, int] = {
    np.dtype(np.float32): lib.GG_F32,
    np.dtype(np.float64): lib.GG_F64,
    np.dtype(np.complex64): lib.GG_C64,
    np.dtype(np.complex128): lib.GG_C128,
    np.dtype(np.int8): lib.GG_I8,
    np.dtype(np.int16): lib.GG_I16,
    np.dtype(np.int32): lib.GG_I32,
    np.dtype(np.int64): lib.GG_I64,
    np.dtype(np.uint8): lib.GG_U8,
    np.dtype(np.uint16): lib.GG_U16,
    np.dtype(np.uint32): lib.GG_U32,
    np.dtype(np.uint64): lib.GG_U64,
    np.dtype(np.float16): lib.GG_F16,
}
try:
    from ml_dtypes import bfloat16 as _bfloat16
except ImportError:
    pass
else:
    CODES[np.dtype(_bfloat16)] = lib.GG_BF16

BF16: int = lib.GG_BF16
FLOAT32 = np.dtype(np.float32)
DECODED = frozenset({lib.GG_F16, BF16})
_BLOCKED = frozenset(q for q in BY_TYPE_ID.values() if lib.gg_block_size(q.type_id))
_UINT16 = np.dtype(np.uint16)

_from_buffer = ffi.from_buffer
_cast = ffi.cast


def supported(dtype: Any) -> bool:
    """Return whether products with operands of `dtype` have a kernel.

    Parameters
    ----------
    dtype : numpy.dtype or QuantizedDType
    """
    return dtype in CODES or dtype in _BLOCKED


def computes_in(operand: Any, out: np.dtype[Any]) -> bool:
    """Return whether an operand of one dtype goes into products of another."""
    if isinstance(operand, QuantizedDType):
        return out == FLOAT32 and operand in _BLOCKED
    return bool(operand == out)


def decodes(source: Any, out: Any) -> bool:
    """Return whether `to_float` takes blocks of one dtype to another."""
    return source in _BLOCKED and out == FLOAT32


def encodes(source: Any, out: Any) -> bool:
    """Return whether `from_float` takes values of one dtype to another."""
    return out in _BLOCKED and source == FLOAT32


def memory(x: Array | Blocks) -> Array:
    """Return an array with x's address and strides that has a buffer protocol."""
    if isinstance(x, Blocks):
        return x.data
    return x.view(_UINT16) if CODES[x.dtype] == BF16 else x


def pointer(x: Array) -> Any:
    """Return the address of the first element; the buffer protocol is the quickest way to it."""
    flags = x.flags
    if flags.c_contiguous:
        return _from_buffer(x)
    if flags.f_contiguous:
        return _from_buffer(x.T)
    return _cast("char *", x.__array_interface__["data"][0])


def address_of(x: Array | Blocks) -> Callable[[Array], Any]:
    """Return the quickest function for addresses of arrays like x, or like the data of blocks."""
    flags = memory(x).flags
    plain: Callable[[Any], Any] = pointer
    if flags.c_contiguous:
        plain = _from_buffer
    elif flags.f_contiguous:
        plain = _transposed_pointer
    if isinstance(x, Blocks) or CODES[x.dtype] != BF16:
        return plain
    return lambda half: plain(half.view(_UINT16))


def _transposed_pointer(x: Array) -> Any:
    return _from_buffer(x.T)


def matrix(x: Array | Blocks, code: int) -> tuple[Any, int, int, int, int]:
    """Return address, type, blocked axis (from the end), row stride and column stride."""
    if isinstance(x, Blocks):
        data = x.data
        row, column, _ = data.strides
        return pointer(data), x.dtype.type_id, x.axis - 2, row, column
    if code == BF16:  # has no buffer protocol
        x = x.view(_UINT16)
    row, column = x.strides
    return pointer(x), code, 0, row, column


def is_blocked_in_batch(x: Array | Blocks) -> bool:
    """Return whether whole blocks span several products: these are to be decoded first."""
    return isinstance(x, Blocks) and x.axis < x.ndim - 2


def _layout(x: Operand, code: int, batch: int) -> tuple[list[int], list[int]]:
    """Return how gg_matmul takes an operand of a product with `batch` leading axes.

    That is type, blocked axis (from the end), row stride and column stride; and the strides along
    the batch axes, 0 where it is broadcast.
    """
    if isinstance(x, Blocks):
        strides = x.data.strides[:-1]
        kind = [x.dtype.type_id, x.axis - len(strides)]
    else:
        strides = x.strides
        kind = [code, 0]
    leading = len(strides) - 2
    shape = x.shape
    steps = [0] * (batch - leading)
    steps += [0 if shape[axis] == 1 else strides[axis] for axis in range(leading)]
    return [*kind, *strides[leading:]], steps


def matmul_parameters(a: Operand, b: Operand, out: Array) -> list[int]:
    """Return the parameters of gg_matmul."""
    *batch, m, n = out.shape
    code, dims = CODES[out.dtype], len(batch)
    a_layout, a_steps = _layout(a, code, dims)
    b_layout, b_steps = _layout(b, code, dims)
    sizes = [m, n, a.shape[-1], code, out.strides[-2], dims]
    return [*sizes, *a_layout, *b_layout, *batch, *a_steps, *b_steps, *out.strides[:-2]]


def out_prod_parameters(a: Array, b: Array, out: Array) -> list[int]:
    """Return type, m, n and the strides of gg_out_prod, for a and b of one axis or one column."""
    return [CODES[out.dtype], *out.shape, a.strides[0], b.strides[0], out.strides[0]]


def to_float_parameters(x: Array | Blocks, out: Array | Tensor) -> list[int]:
    """Return the parameters of gg_to_float."""
    if isinstance(x, Blocks):
        code, row, source = x.dtype.type_id, x.axis, x.data
    else:
        code, row, source = CODES[x.dtype], x.ndim - 1, x
    outer = [axis for axis in range(x.ndim) if axis != row]
    parameters = [code, len(outer), source.shape[row], source.strides[row], out.strides[row]]
    parameters += [x.shape[axis] for axis in outer]
    parameters += [source.strides[axis] for axis in outer]
    parameters += [out.strides[axis] for axis in outer]
    return parameters


def from_float_parameters(x: Array, out: Blocks) -> list[int]:
    """Return type and number of elements of gg_from_float.

    Raises
    ------
    ValueError
        The elements, or the blocks, do not lie side by side, or their shapes differ.
    """
    if x.shape != out.shape or not (x.flags.c_contiguous and out.data.flags.c_contiguous):
        raise ValueError(
            f"quantizing to {out.dtype} needs C-contiguous rows of the same shape, not {x.shape}"
            f" with strides {x.strides} and {out.shape} with {out.data.strides}"
        )
    return [out.dtype.type_id, x.size]
