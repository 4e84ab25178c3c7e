"""The stream that computes products with a library."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ggarray._quantized.blocks import Blocks
from ggarray._runtime.options import settings
from ggarray.backends.blas import weights
from ggarray.backends.blas._shim import ffi, lib
from ggarray.backends.blas.vendors import OpenLibrary
from ggarray.backends.cpu import kernels
from ggarray.interface import Backend, Flag, Kernel, Op, Status

__all__ = ["BlasBackend"]

_Array = np.ndarray[Any, Any]

# The type numbers of the shim.
_TYPES = {"f": lib.SHIM_S, "d": lib.SHIM_D, "F": lib.SHIM_C, "D": lib.SHIM_Z}

# Quantized weights that are not kept are decoded and multiplied in panels of about this many bytes,
# which the caches hold; a panel's width is a multiple of every format's block.
_PANEL_BYTES = 1 << 21
_PANEL_WIDTH = 256

_FLOAT32 = np.dtype(np.float32)
_NO_MEMORY = np.empty(0, np.float32)
_NO_BATCH = ffi.new("int64_t[]", 1)

# Bound once: looking them up costs as much as a small product.
_shim_matmul = lib.shim_matmul
_from_buffer = ffi.from_buffer
_COPY_A, _COPY_B = lib.SHIM_COPY_A, lib.SHIM_COPY_B
_COPIES = _COPY_A | _COPY_B
_EMPTY = lib.SHIM_EMPTY
_SUCCESS, _FAILED = Status.SUCCESS, Status.FAILED
_MATMUL, _OUT_PROD = Op.MATMUL, Op.OUT_PROD
_COMPUTE = Flag.COMPUTE
_and = int.__and__  # Flag's own is slow
_NULL = ffi.NULL


class BlasBackend(Backend):
    """Computes products with one library.

    Parameters
    ----------
    name : str
        The device's name.
    library : OpenLibrary
        What computes.
    """

    runs_aside = True

    def __init__(self, name: str, library: OpenLibrary) -> None:
        self.name = name
        self._library = library
        self._handle = library.handle
        self._loses_nan = library.loses_nan
        self._mixes_parts = library.mixes_parts
        self._on_libgomp = library.threading == "libgomp"
        self._memory = _NO_MEMORY

    def graph_compute(self, graph: Sequence[Kernel]) -> Status:
        """Compute the nodes in order; stops at the first that fails."""
        if self._on_libgomp:
            self._library.allow_libgomp_threads(settings().libgomp_threads)
        try:
            for kernel in graph:
                if kernel.flags is not _COMPUTE and not _and(kernel.flags, _COMPUTE):
                    continue
                if kernel.op is _MATMUL:
                    a, b = kernel.operands
                elif kernel.op is _OUT_PROD and kernel.operands[0].shape[-1] > 1:
                    a, b = kernel.operands[0], kernel.operands[1].mT
                else:  # also outer products of vectors: sums begin with 0, which makes +0 of -0
                    return _FAILED
                out = kernel.out
                if self._loses_nan and not (_is_finite(a) and _is_finite(b)):
                    status = kernels.matmul(a, b, out, self.n_threads) or _finish(kernel)
                elif type(a) is Blocks or type(b) is Blocks:
                    status = self._with_blocks(a, b, kernel)
                elif kernel.bias is not None or kernel.alpha != 1:
                    status = self._add(a, b, kernel)
                elif out.dtype.char in _TYPES:
                    status = self._multiply(a, b, out)
                else:
                    status = self._converted(a, b, out)
                if status:
                    return Status(status)
        except MemoryError:
            return Status.ALLOC_FAILED
        return _SUCCESS

    def prepare(self, node: Kernel) -> Kernel:
        """Return the node with decoded weights in place of quantized ones, where they are kept."""
        operands = [self._decoded(x) if type(x) is Blocks else None for x in node.operands]
        if all(x is None for x in operands):
            return node
        a, b = (y if x is None else x for x, y in zip(operands, node.operands, strict=True))
        return Kernel(node.op, (a, b), node.out, node.alpha, node.beta, node.bias, node.flags)

    def _add(self, a: _Array, b: _Array, kernel: Kernel) -> int:
        """Compute a kernel of plain operands a and b, with what is added to the product."""
        out, bias = kernel.out, kernel.bias
        if out.dtype.char not in _TYPES or not a.dtype == b.dtype == out.dtype:
            return _FAILED
        alpha, beta = kernel.alpha, kernel.beta
        is_complex = out.dtype.kind == "c"
        # A library that scales an operand makes it underflow where the product does not; all do
        # that to vectors.
        scales = self._library.vendor.scales_sums or (alpha == -1 and not is_complex)
        if alpha != 1 and (not scales or 1 in out.shape[-2:]):
            return self._multiply(a, b, out) or _finish(kernel)
        if bias is not None and is_complex and self._mixes_parts:
            return self._multiply(a, b, out) or _finish(kernel)
        if bias is not None and beta > 0:
            np.copyto(out, bias)
        elif bias is not None:  # negative of NumPy 2.4 is wrong for some strides
            np.subtract(-0.0, bias, out=out)
        epilogue = ffi.new("shim_epilogue *", ((alpha.real, alpha.imag), bias is not None))
        return self._multiply(a, b, out, epilogue)

    def _multiply(self, a: _Array, b: _Array, out: _Array, epilogue: Any = _NULL) -> int:
        """Compute ``alpha * (a @ b)``, and add what `out` holds if the epilogue says so."""
        dtype = out.dtype
        type_ = _TYPES.get(dtype.char)
        if type_ is None:
            return _FAILED
        if (a.dtype is not dtype or b.dtype is not dtype) and not a.dtype == b.dtype == dtype:
            return _FAILED
        size = dtype.itemsize
        a_strides, b_strides = a.strides, b.strides
        if len(out.shape) == 2:
            m, n = out.shape
            dims, batch = 0, _NO_BATCH
        else:
            m, n = out.shape[-2:]
            dims, batch = _batch(a, b, out)
            a_strides, b_strides = a_strides[-2:], b_strides[-2:]
        a_row, a_col = a_strides
        b_row, b_col = b_strides
        status: int = _shim_matmul(
            self._handle,
            self.n_threads,
            type_,
            _address(a, a_col == size),
            _address(b, b_col == size),
            _address(out, True),
            m,
            n,
            a.shape[-1],
            a_row,
            a_col,
            b_row,
            b_col,
            out.strides[-2],
            dims,
            batch,
            epilogue,
        )
        return self._without(status, a, b, out, epilogue) if status else _SUCCESS

    def _without(self, status: int, a: _Array, b: _Array, out: _Array, epilogue: Any) -> int:
        """Compute what the library has not computed, for the reason that the status tells."""
        if status == _EMPTY:
            if not epilogue or not epilogue.add:
                out.fill(0)
            return _SUCCESS
        if status & _COPIES:
            a = _copied(a) if status & _COPY_A else a
            b = _copied(b) if status & _COPY_B else b
            return self._multiply(a, b, out, epilogue)
        return status

    def _converted(self, a: _Array, b: _Array, out: _Array) -> int:
        """Compute a product of float16 or bfloat16, in float32 and rounded once."""
        if not a.dtype == b.dtype == out.dtype:
            return _FAILED
        a_wide, b_wide = (np.empty_like(x, _FLOAT32, subok=False) for x in (a, b))
        for x, wide in ((a, a_wide), (b, b_wide)):
            status = kernels.to_float(x, wide, self.n_threads)
            if status:
                return status
        product = np.empty(out.shape, _FLOAT32)
        status = self._multiply(a_wide, b_wide, product)
        with np.errstate(all="ignore"):  # what is too large becomes infinite
            np.copyto(out, product, casting="unsafe")
        return status

    def _decode(self, blocks: Blocks, out: _Array) -> int:
        return kernels.to_float(blocks, out, self.n_threads)

    def _decoded(self, blocks: Blocks) -> _Array | None:
        return weights.decoded(blocks, self._decode)

    def _with_blocks(self, a: Any, b: Any, kernel: Kernel) -> int:
        """Compute where one of a and b is quantized: as a whole if it is kept decoded."""
        kept = self._decoded(a if type(a) is Blocks else b)
        if kept is None:
            return self._by_panels(a, b, kernel)
        a, b = (kept, b) if type(a) is Blocks else (a, kept)
        return self._add(a, b, kernel)

    def _by_panels(self, a: Any, b: Any, kernel: Kernel) -> int:
        """Compute where one of a and b is quantized, a panel of its rows or columns at a time."""
        out, bias = kernel.out, kernel.bias
        on_left = type(a) is Blocks
        axis = -2 if on_left else -1
        length = out.shape[axis]
        blocked = a if on_left else b
        row_bytes = max(1, blocked.size // max(1, length) * 4)
        width = max(1, _PANEL_BYTES // row_bytes // _PANEL_WIDTH) * _PANEL_WIDTH
        # a signal handler may compute another product meanwhile, so the memory is taken
        memory, self._memory = self._memory, _NO_MEMORY
        try:
            for start in range(0, length, width):
                part = slice(start, min(start + width, length))
                key = (..., part, slice(None)) if on_left else (..., part)
                blocks = blocked if width >= length else blocked[key]
                if memory.size < blocks.size:
                    memory = np.empty(blocks.size, np.float32)
                panel = _as_decoded(memory, blocks)
                status = self._decode(blocks, panel)
                if status:
                    return status
                left, right = (panel, b) if on_left else (a, panel)
                added = bias if bias is None or bias.shape[axis] == 1 else bias[key]
                operands = (left, right)
                piece = Kernel(_MATMUL, operands, out[key], kernel.alpha, kernel.beta, added)
                status = self._add(left, right, piece)
                if status:
                    return status
        finally:
            self._memory = memory
        return _SUCCESS


def _as_decoded(memory: _Array, blocks: Blocks) -> _Array:
    """Return a part of memory as the array of decoded blocks."""
    memory = memory[: blocks.size]
    if blocks.axis == blocks.ndim - 2:  # the elements of a block stay together
        return memory.reshape(blocks.mT.shape).mT
    return memory.reshape(blocks.shape)


def _address(x: _Array, by_rows: bool) -> Any:
    """Return the address of an array's first element; the buffer protocol is the quickest way."""
    try:
        return _from_buffer(x if by_rows else x.T)
    except ValueError:  # not contiguous
        return ffi.cast("void *", x.__array_interface__["data"][0])


def _batch(a: _Array, b: _Array, out: _Array) -> tuple[int, Any]:
    """Return the number of batch dimensions; their sizes, then the strides of a, b and out."""
    sizes = out.shape[:-2]
    strides = (stride for x in (a, b, out) for stride in _batch_strides(x, len(sizes)))
    return len(sizes), ffi.new("int64_t[]", [*sizes, *strides])


def _batch_strides(x: _Array, dims: int) -> list[int]:
    own = zip(x.shape[:-2], x.strides[:-2], strict=True)
    return [0] * (dims + 2 - x.ndim) + [0 if length == 1 else stride for length, stride in own]


def _is_finite(x: Any) -> bool:
    """Tell whether all elements are finite numbers; what is encoded may not be."""
    return type(x) is not Blocks and x.dtype.char in _TYPES and bool(np.isfinite(x).all())


def _copied(x: _Array) -> _Array:
    """Return a contiguous copy; of matrices that are repeated in a batch, one."""
    once = [slice(None if stride else 1) for stride in x.strides[:-2]]
    return np.array(x[tuple(once)], order="C")


def _finish(kernel: Kernel) -> int:
    """Compute ``alpha * out + beta * bias`` in place."""
    out, bias = kernel.out, kernel.bias
    with np.errstate(all="ignore"):  # infinities are values like others
        if kernel.alpha != 1:
            np.multiply(out, kernel.alpha, out=out)
        if bias is not None:
            (np.add if kernel.beta > 0 else np.subtract)(out, bias, out=out)
    return _SUCCESS
