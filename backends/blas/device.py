"""The devices ``blas`` and ``blas:<vendor>``: products by a vendor's library.

A device takes the products that its library computes faster than our kernels do; the others, and
outer products (whose every element is one exact multiplication), are left to ``cpu``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import QuantizedDType
from ggarray.backends.blas._shim import ffi, lib
from ggarray.backends.blas.vendors import NO_BATCH, TYPES, Vendor, find_numpy_openblas
from ggarray.backends.cpu import kernels
from ggarray.backends.cpu.device import host_memory, set_n_threads
from ggarray.interface import Backend, BackendDevice, DeviceType, Flag, Kernel, Op, Registry, Status

_Array = np.ndarray[Any, Any]

# Products (or batches) of fewer multiply-adds are left to our kernels, by dtype: alone they take as
# long, and a graph of them is one call (``python -m benchmarks upgrades graphs`` measures both).
_LEAST_WORK = {"f": 1 << 12, "d": 1 << 12, "F": 1 << 10, "D": 1 << 10}

# With fewer rows (or columns) than this against quantized weights, or in small products with
# them, our kernels are faster, as they do not write the decoded weights down.
_LEAST_BATCH = 17
_LEAST_WORK_QUANTIZED = 1 << 22

# Quantized weights are decoded and multiplied in panels of about this many bytes, which the
# caches hold; a panel's width is a multiple of every format's block.
_PANEL_BYTES = 1 << 21
_PANEL_WIDTH = 256

_NO_MEMORY = np.empty(0, np.float32)

# Bound once: looking them up costs as much as a small product.
_shim_matmul = lib.shim_matmul
_from_buffer = ffi.from_buffer
_COPY_A, _COPY_B = lib.SHIM_COPY_A, lib.SHIM_COPY_B
_COPIES = _COPY_A | _COPY_B
_EMPTY = lib.SHIM_EMPTY
_SUCCESS, _FAILED = Status.SUCCESS, Status.FAILED
_MATMUL = Op.MATMUL
_COMPUTE = Flag.COMPUTE
_and = int.__and__  # Flag's own is slow
_NULL = ffi.NULL

_INT32_MAX = 2**31 - 1


class BlasBackend(Backend):
    """Computes matrix products with one vendor's library."""

    def __init__(self, name: str, vendor: Vendor) -> None:
        self.name = name
        self._handle = vendor.handle
        self._memory = _NO_MEMORY

    def graph_compute(self, graph: Sequence[Kernel]) -> Status:
        """Compute the nodes in order; stops at the first that fails."""
        try:
            for kernel in graph:
                if kernel.flags is not _COMPUTE and not _and(kernel.flags, _COMPUTE):
                    continue
                if kernel.op is not _MATMUL:
                    return _FAILED
                a, b = kernel.operands
                if type(a) is Blocks or type(b) is Blocks:
                    status = self._by_panels(a, b, kernel)
                elif kernel.bias is None and kernel.alpha == 1:
                    status = self._multiply(a, b, kernel.out)
                else:
                    status = self._add(a, b, kernel.out, kernel.alpha, kernel.beta, kernel.bias)
                if status:
                    return Status(status)
        except MemoryError:
            return Status.ALLOC_FAILED
        return _SUCCESS

    def _add(
        self, a: _Array, b: _Array, out: _Array, alpha: complex, beta: int, bias: _Array | None
    ) -> int:
        """Compute ``alpha * (a @ b) + beta * bias``."""
        if out.dtype.char not in TYPES or not a.dtype == b.dtype == out.dtype:
            return _FAILED
        if alpha != 1 and 1 in out.shape[-2:]:
            # Libraries scale a vector before they multiply it, and then it may underflow.
            return self._multiply(a, b, out) or _finish(out, alpha, beta, bias)
        if bias is not None and beta > 0:
            np.copyto(out, bias)
        elif bias is not None:  # negative of NumPy 2.4 is wrong for some strides
            np.subtract(-0.0, bias, out=out)
        epilogue = ffi.new("shim_epilogue *", ((alpha.real, alpha.imag), bias is not None))
        return self._multiply(a, b, out, epilogue)

    def _multiply(self, a: _Array, b: _Array, out: _Array, epilogue: Any = _NULL) -> int:
        """Compute ``alpha * (a @ b)``, and add what `out` holds if the epilogue says so."""
        dtype = out.dtype
        type_ = TYPES.get(dtype.char)
        if type_ is None:
            return _FAILED
        if (a.dtype is not dtype or b.dtype is not dtype) and not a.dtype == b.dtype == dtype:
            return _FAILED
        size = dtype.itemsize
        a_strides, b_strides = a.strides, b.strides
        if len(out.shape) == 2:
            m, n = out.shape
            dims, batch = 0, NO_BATCH
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
            a = np.array(a, order="C") if status & _COPY_A else a
            b = np.array(b, order="C") if status & _COPY_B else b
            return self._multiply(a, b, out, epilogue)
        return status

    def _by_panels(self, a: Any, b: Any, kernel: Kernel) -> int:
        """Compute where one of a and b is quantized, a panel of its rows or columns at a time."""
        out, bias = kernel.out, kernel.bias
        on_left = type(a) is Blocks
        axis = -2 if on_left else -1
        length = out.shape[axis]
        weights = a if on_left else b
        row_bytes = max(1, weights.size // max(1, length) * 4)
        width = max(1, _PANEL_BYTES // row_bytes // _PANEL_WIDTH) * _PANEL_WIDTH
        # a signal handler may compute another product meanwhile, so the memory is taken
        memory, self._memory = self._memory, _NO_MEMORY
        try:
            for start in range(0, length, width):
                part = slice(start, min(start + width, length))
                key = (..., part, slice(None)) if on_left else (..., part)
                blocks = weights if width >= length else weights[key]
                if memory.size < blocks.size:
                    memory = np.empty(blocks.size, np.float32)
                panel = _as_decoded(memory, blocks)
                left, right = (panel, b) if on_left else (a, panel)
                status = kernels.to_float(blocks, panel, self.n_threads)
                added = bias if bias is None or bias.shape[axis] == 1 else bias[key]
                status = status or self._add(
                    left, right, out[key], kernel.alpha, kernel.beta, added
                )
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


def _finish(out: _Array, alpha: complex, beta: int, bias: _Array | None) -> int:
    """Compute ``alpha * out + beta * bias`` in place."""
    with np.errstate(all="ignore"):  # infinities are values like others
        np.multiply(out, alpha, out=out)
        if bias is not None:
            (np.add if beta > 0 else np.subtract)(out, bias, out=out)
    return _SUCCESS


class BlasDevice(BackendDevice):
    """A vendor's library on the processor.

    Parameters
    ----------
    name : str
        The device's name.
    vendor : Vendor
        The library.
    """

    type = DeviceType.ACCEL

    def __init__(self, name: str, vendor: Vendor) -> None:
        self.name = name
        self.description = vendor.description
        self._vendor = vendor

    def memory(self) -> tuple[int, int]:
        """Return the bytes of memory that are available, and that the machine has."""
        return host_memory()

    def supports_op(self, node: Kernel) -> bool:
        """Tell whether the node is a matrix product that the library computes faster than we."""
        if node.op is not Op.MATMUL:
            return False
        a, b = node.operands
        out = node.out
        dtype = out.dtype
        work = out.size * a.shape[-1]
        if type(a.dtype) is QuantizedDType:
            worth = out.shape[-1] >= _LEAST_BATCH and work >= _LEAST_WORK_QUANTIZED
            plain: tuple[Any, ...] = (b, out)
        elif type(b.dtype) is QuantizedDType:
            worth = out.shape[-2] >= _LEAST_BATCH and work >= _LEAST_WORK_QUANTIZED
            plain = (a, out)
        else:
            worth = work >= _LEAST_WORK.get(dtype.char, math.inf)
            plain = (a, b, out)
        if not worth or plain[0].dtype != dtype or plain[1].dtype != dtype:
            return False
        return self._vendor.ilp64 or _fits_32_bits(*plain)

    def init_backend(self, params: str = "") -> BlasBackend:
        """Return a stream; there are no parameters."""
        return BlasBackend(self.name, self._vendor)


def _fits_32_bits(*matrices: Any) -> bool:
    """Tell whether 32-bit integers can state all lengths, and all strides in elements."""
    return all(
        abs(value) <= _INT32_MAX
        for x in matrices
        for value in (*x.shape, *(stride // x.dtype.itemsize for stride in x.strides))
    )


class BlasRegistry(Registry):
    """The vendor libraries that were found; none may be."""

    name = "blas"

    def devices(self) -> Sequence[BackendDevice]:
        """Return ``blas`` and ``blas:<vendor>``, nothing where no library was found."""
        vendor = find_numpy_openblas()
        if vendor is None:
            return ()
        return BlasDevice("blas", vendor), BlasDevice(f"blas:{vendor.name}", vendor)

    def procedures(self) -> Mapping[str, Callable[..., Any]]:
        """Return ``set_n_threads(backend, n)``."""
        return {"set_n_threads": set_n_threads}


registry = BlasRegistry()
