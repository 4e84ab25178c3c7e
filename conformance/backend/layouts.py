"""How values may lie in memory.

Memory round a value is NaN in floats, -1 in integers: what reads beyond it is seen in the result.
"""

import math

import numpy as np


def poison(shape, dtype):
    """Return an array of a value that spoils a product."""
    return np.full(math.prod(shape) * dtype.itemsize, 0xFF, np.uint8).view(dtype).reshape(shape)


def by_columns(x):
    return np.ascontiguousarray(x.mT).mT


def panel(x):
    *batch, rows, columns = x.shape
    inner = poison((*batch, rows + 3, columns + 5), x.dtype)[..., 1:-2, 2:-3]
    inner[...] = x
    return inner


def every_second(x):
    *batch, rows, columns = x.shape
    spread = poison((*batch, 2 * rows, 2 * columns), x.dtype)[..., ::2, ::2]
    spread[...] = x
    return spread


def backwards(*axes):
    return lambda x: np.flip(np.ascontiguousarray(np.flip(x, axes)), axes)


def unaligned(x):
    shifted = np.ndarray(x.shape, x.dtype, np.empty(x.nbytes + 1, np.uint8), 1)
    shifted[...] = x
    return shifted


MATRICES = {
    "rows": np.ascontiguousarray,
    "columns": by_columns,
    "panel": panel,
    "panel of columns": lambda x: panel(x.mT).mT,
    "every second": every_second,
    "rows reversed": backwards(-2),
    "columns reversed": backwards(-1),
    "unaligned": unaligned,
    "one row": lambda x: np.broadcast_to(x[..., :1, :], x.shape),
    "one column": lambda x: np.broadcast_to(x[..., :1], x.shape),
}
"""How a matrix may lie in memory; the last two repeat one row or column, with strides of 0."""

BATCHES = {
    "batch last": lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -1)), -1, 0),
    "batch between": lambda x: np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1),
    "batch reversed": backwards(0),
    "every second of a batch": lambda x: np.repeat(x, 2, 0)[::2],
    "one matrix": lambda x: np.broadcast_to(x[:1], x.shape),
    "panels": panel,
}
"""How a stack of matrices may."""

COLUMNS = {
    "contiguous": np.ascontiguousarray,
    "of a matrix": lambda x: panel(np.repeat(x, 2, -1))[:, :1],
    "reversed": backwards(0),
    "every second": every_second,
    "unaligned": unaligned,
    "one element": lambda x: np.broadcast_to(x[:1], x.shape),
}
"""How the operand of an outer product may."""
