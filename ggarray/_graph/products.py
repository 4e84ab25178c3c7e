"""How a product becomes kernels: operands as matrices, and panels of the result.

A product that takes long runs as panels of rows, columns or batches, so that Python gets a turn
between them and Ctrl-C is answered. The inner dimension is never split: a panel's values are those
of the whole product, but for the rounding of another kernel. Libraries pack all of an operand for
each panel, so theirs are large, and are computed aside.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ggarray._graph import aside
from ggarray._quantized.blocks import Blocks
from ggarray._runtime.plugins import stream
from ggarray._storage import Plain
from ggarray.interface import (
    Backend,
    BackendDevice,
    BackendError,
    Kernel,
    Op,
    Status,
    Tensor,
)

_PANEL_SECONDS = 0.04
_ASIDE_SECONDS = 1.0
_SMALL = 1 << 24  # multiply-adds that no backend needs long for
_FIRST = 1 << 26  # the first panel, before a backend's speed is known
_ALIGN = 64  # panels are whole tiles of any kernel

# Multiply-adds a second that were seen, by backend, dtype and kind of operands.
_speed: dict[tuple[Any, ...], float] = {}


def stays_quantized(blocks: Blocks | Tensor, dtype: Any) -> bool:
    """Tell whether kernels of a product of `dtype` take these blocks; else they are decoded."""
    axis = blocks.axis
    return axis is not None and bool(dtype == np.float32) and axis >= blocks.ndim - 2


def as_matrix(operand: Any, left: bool) -> Any:
    """Return a vector operand of a matrix product as a row (left) or a column (right)."""
    if len(operand.shape) != 1:
        return operand
    length = operand.shape[0]
    if isinstance(operand, Tensor):
        (stride,) = operand.strides
        shape, strides, axis = (
            ((1, length), (0, stride), 1) if left else ((length, 1), (stride, 0), 0)
        )
        axis_of_blocks = None if operand.axis is None else axis
        return operand._replace(shape=shape, strides=strides, axis=axis_of_blocks)
    if isinstance(operand, Blocks):
        row = operand.reshape((1, length))
        return row if left else row.permute((1, 0))
    return operand[None, :] if left else operand[:, None]


def as_column(operand: Any) -> Any:
    """Return a vector operand of an outer product as a column."""
    return as_matrix(operand, left=False)


def run(kernel: Kernel, device: BackendDevice, n_threads: int) -> None:
    """Compute a kernel on a device that works in host memory, and wait for it.

    Raises
    ------
    BackendError
        The backend failed.
    MemoryError
        The backend had not enough memory.
    KeyboardInterrupt
        Ctrl-C was pressed; some panels may have been computed.
    """
    backend = stream(device)
    backend.n_threads = n_threads
    if kernel.op is Op.COPY or _work(kernel) <= _SMALL:
        _compute(kernel, backend)
    else:
        _run_in_panels(kernel, backend, (device.name, n_threads))


def _run_in_panels(kernel: Kernel, backend: Backend, key: tuple[Any, ...]) -> None:
    """Compute a long product; Python gets a turn after each panel."""
    kernel = backend.prepare(kernel)
    seconds = _ASIDE_SECONDS if backend.runs_aside else _PANEL_SECONDS
    key = (*key, kernel.op, *(operand.dtype for operand in kernel.operands))
    parts = [kernel]
    while parts:
        most = int(_speed[key] * seconds) if key in _speed else _FIRST
        panel = parts.pop()
        halves = _split(panel, most)
        if halves is not None:
            parts += reversed(halves)
            continue
        start = time.perf_counter()
        if backend.runs_aside and _work(panel) > _speed.get(key, 0) * _PANEL_SECONDS:
            aside.run(partial(_compute, panel, backend))
        else:
            _compute(panel, backend)
        _speed[key] = _work(panel) / max(time.perf_counter() - start, 1e-6)


def _compute(kernel: Kernel, backend: Backend) -> None:
    status = backend.graph_compute((kernel,))
    if status != Status.SUCCESS:
        raise_for(status, (kernel,), backend)


def raise_for(status: Status, kernels: Sequence[Kernel], backend: Backend) -> NoReturn:
    """Raise what a status other than SUCCESS of a graph becomes."""
    if status == Status.ABORTED:
        raise KeyboardInterrupt
    what = "a copy"
    if kernels:
        operands = " and ".join(f"{each.dtype}{each.shape}" for each in kernels[0].operands)
        what = f"{kernels[0].op.value} of {operands}"
    if len(kernels) > 1:
        what = f"one of {len(kernels)} nodes, of which the first is {what},"
    if status == Status.ALLOC_FAILED:
        raise MemoryError(f"{backend.name}: not enough memory for {what}")
    raise BackendError(f"{backend.name}: {what} failed")


def _work(kernel: Kernel) -> int:
    """Return the multiply-adds of a kernel."""
    inner: int = kernel.operands[0].shape[-1]
    size: int = kernel.out.size
    return size * (inner or 1)


def _split(kernel: Kernel, most: int) -> tuple[Kernel, Kernel] | None:
    """Return a first panel of about `most` multiply-adds, and what is left; None if that is all.

    Both may have to be split again.
    """
    work = _work(kernel)
    if work <= most + most // 4:
        return None
    a, b = kernel.operands
    out = kernel.out
    if out.ndim > 2:
        if out.shape[0] == 1:
            operands = _of_batch(a, out, 0), _of_batch(b, out, 0)
            return _split(_part(kernel, operands, 0), most)
        at = max(1, out.shape[0] * most // work)
        head, tail = (
            _part(kernel, (_of_batch(a, out, part), _of_batch(b, out, part)), part)
            for part in (slice(0, at), slice(at, None))
        )
        return head, tail
    rows, columns = out.shape
    by_rows = kernel.op is Op.OUT_PROD or (
        not isinstance(b, Blocks) and (isinstance(a, Blocks) or rows >= columns)
    )
    extent = rows if by_rows else columns
    align = max([_ALIGN, *(each.dtype.block_size for each in (a, b) if isinstance(each, Blocks))])
    at = max(align, extent * most // work // align * align)
    if at >= extent:
        return None
    parts = (slice(0, at), slice(at, None))
    if by_rows:
        head, tail = (_part(kernel, (a[part], b), part) for part in parts)
    else:
        head, tail = (_part(kernel, (a, b[:, part]), slice(None), part) for part in parts)
    return head, tail


def _part(kernel: Kernel, operands: tuple[Any, Any], *key: Any) -> Kernel:
    """Return the kernel that computes ``out[key]`` of another from these operands."""
    bias = kernel.bias
    if bias is not None:
        at = zip(key, bias.shape, kernel.out.shape, strict=False)
        bias = bias[tuple(_of_bias(part, have != want) for part, have, want in at)]
    out = kernel.out[key]
    return Kernel(kernel.op, operands, out, kernel.alpha, kernel.beta, bias, kernel.flags)


def _of_bias(part: Any, repeats: bool) -> Any:
    """Return the key to one axis of a bias that goes with this one of the result."""
    if not repeats:
        return part
    return slice(None) if isinstance(part, slice) else 0


def _of_batch(operand: Any, out: Plain, key: Any) -> Any:
    """Return the part of an operand that goes with ``out[key]``."""
    if operand.ndim < out.ndim:
        return operand
    if operand.shape[0] == 1:
        return operand if isinstance(key, slice) else operand[0]
    return operand[key]
