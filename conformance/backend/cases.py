"""The kernels that a backend is tried with: each operation, dtype, size and layout of operands.

A case makes its operands from a seed.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import gguf
import numpy as np

from conformance.backend.epilogues import (
    NOTHING,
    Epilogue,
    added,
    epilogues,
    epilogues_of_batches,
    epilogues_of_layouts,
)
from conformance.backend.layouts import BATCHES, COLUMNS, MATRICES
from conformance.standard.references import EXTENDED, kind_of, numbers
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.reference import FROM_FLOAT
from ggarray._quantized.traits import BY_NAME
from ggarray.backends.cpu import kernels
from ggarray.interface import Kernel, Op

PLAIN = tuple(dtype for dtype in EXTENDED if kernels.supported(dtype))
QUANTIZED = tuple(BY_NAME.values())
FLOAT32 = np.dtype(np.float32)


class Case(NamedTuple):
    """Operands of one operation.

    Attributes
    ----------
    op : Op
    dtype : numpy.dtype or QuantizedDType
        The operands' dtype; the quantized one where they differ, and where values are encoded.
    name : str
    operands : callable
        Makes them from a seed.
    epilogue : Epilogue
    """

    op: Op
    dtype: Any
    name: str
    operands: Callable[[int], tuple[Any, ...]]
    epilogue: Epilogue = NOTHING

    @property
    def plain_dtype(self):
        """The dtype of operands that are not quantized."""
        return FLOAT32 if self.dtype in QUANTIZED else self.dtype

    @property
    def is_plain(self):
        """True for an operation and nothing else."""
        return self.epilogue is NOTHING

    def bias(self, shape, seed):
        """Make what is added to a result of a shape; None if nothing is."""
        make = self.epilogue.bias
        return None if make is None else make(self.plain_dtype, shape, seed + 2)

    def kernel(self, operands, bias, out):
        """Return the kernel."""
        alpha, beta = self.epilogue[:2]
        return Kernel(self.op, operands, out, alpha, beta, bias)

    def __str__(self):
        return f"{self.op.value}-{self.dtype}-{self.name}"


def decoded(operand):
    """Return the values of Blocks, as the gguf package decodes them; an array as it is."""
    if not isinstance(operand, Blocks):
        return operand
    rows = operand.as_rows().reshape(-1, operand.dtype.block_bytes)
    values = _decode(rows, operand.dtype) if len(rows) else np.empty(0, FLOAT32)
    shape = list(operand.shape)
    length = shape.pop(operand.axis)
    return np.moveaxis(values.reshape(*shape, length), -1, operand.axis)


@np.errstate(all="ignore")
def _decode(rows, dtype):
    return gguf.dequantize(rows, gguf.GGMLQuantizationType(dtype.type_id))


# -- quantized rows -------------------------------------------------------------------------------


def _odd_blocks(x):
    """Return every second row, backwards, of the inner blocks of a larger array."""
    size = x.dtype.block_size
    rows, columns = x.shape
    spread = _blocks(x.dtype, (2 * rows, columns + 2 * size), 0).data.copy()
    spread[::2, 1:-1] = x.data[::-1]
    return Blocks(spread, x.dtype)[::2, size:-size][::-1]


BLOCKS = {
    "whole": lambda x: x,
    "rows reversed": lambda x: x[::-1],
    "gathered": lambda x: x.take(np.arange(x.shape[0]) // 2),
    "odd": _odd_blocks,
}
"""How quantized rows may lie in memory."""


# -- values ---------------------------------------------------------------------------------------


def _left_special(x):
    x[..., 0, 0] = np.inf
    if x.shape[-2] > 1:
        x[..., -1, -1], x[..., x.shape[-2] // 2, 3] = np.nan, -np.inf
    return x


def _right_special(x):
    x[..., 0, 0], x[..., 0, -1], x[..., -1, x.shape[-1] // 2], x[..., 3, 0] = 0, np.inf, np.inf, 0
    return x


def _pair(dtype, shapes, layouts, seed):
    return tuple(
        layout(numbers(dtype, shape, seed + at))
        for at, (shape, layout) in enumerate(zip(shapes, layouts, strict=True))
    )


@cache
def _pool(dtype):
    """Return random blocks whose values are neither all the same nor very large."""
    rng = np.random.default_rng(dtype.type_id)
    rows = rng.integers(0, 256, (1 << 13, dtype.block_bytes), np.uint8)
    with np.errstate(all="ignore"):
        values = _decode(rows, dtype)
        return rows[(np.ptp(values, axis=1) > 0.1) & (np.abs(values).max(axis=1) < 10)]


def _blocks(dtype, shape, seed):
    """Return random blocks along the last axis."""
    *outer, length = shape
    pool = _pool(dtype)
    chosen = np.random.default_rng(seed).integers(
        0, len(pool), (*outer, length // dtype.block_size)
    )
    return Blocks(pool[chosen], dtype)


# -- products of plain operands -------------------------------------------------------------------

# Rows, columns and inner lengths, on both sides of the widths in which kernels work.
SIZES = [
    (1, 1, 1),
    (1, 1, 300),
    (1, 7, 5),
    (7, 1, 5),
    (7, 5, 1),
    (2, 3, 4),
    (8, 8, 8),
    (15, 17, 16),
    (16, 16, 16),
    (17, 15, 33),
    (31, 33, 32),
    (33, 65, 31),
    (64, 64, 64),
    (65, 63, 130),
    (6, 129, 257),
    (1, 65, 300),
    (65, 1, 300),
    (127, 257, 1),
    (66, 140, 520),
    # nothing to add up, and nothing to fill
    (3, 4, 0),
    (1, 4, 0),
    (4, 1, 0),
    (0, 4, 3),
    (4, 0, 3),
    (0, 0, 0),
]

# Beside a product of matrices, those of one row and of one column: they have kernels of their own.
LAID_OUT = [(23, 33, 31), (1, 130, 129), (130, 1, 129)]

STACKS = [
    ((3,), (3,)),
    ((3,), ()),
    ((), (3,)),
    ((1,), (3,)),
    ((3,), (1,)),
    ((2, 1), (3,)),
    ((2, 3), (1, 3)),
    ((2, 1, 3), (1, 2, 1)),
    ((1, 1), (1,)),
    ((0,), ()),
    ((0,), (1,)),
]
STACKED = [(4, 6, 5), (1, 6, 5), (4, 1, 5), (24, 31, 33)]

OUTER = [(1, 1), (1, 7), (7, 1), (33, 65), (130, 257), (0, 3), (3, 0)]


def _matrix_cases(dtype):
    as_they_are = (np.asarray, np.asarray)
    for m, n, k in SIZES:
        yield f"{m}x{n}x{k}", ((m, k), (k, n)), as_they_are
    for m, n, k in LAID_OUT:
        shapes = (m, k), (k, n)
        for name, layout in MATRICES.items():
            yield f"{m}x{n}x{k} of {name} by rows", shapes, (layout, np.asarray)
            yield f"{m}x{n}x{k} of rows by {name}", shapes, (np.asarray, layout)
            yield f"{m}x{n}x{k} of {name} by {name}", shapes, (layout, layout)
        if kind_of(dtype) in "fc":
            yield f"{m}x{n}x{k} of special values", shapes, (_left_special, _right_special)
    for m, n, k in STACKED:
        for left, right in STACKS:
            shapes = (*left, m, k), (*right, k, n)
            yield f"{m}x{n}x{k} of {left} by {right}", shapes, as_they_are
        for name, layout in BATCHES.items():
            yield f"{m}x{n}x{k} of {name}", ((3, m, k), (3, k, n)), (layout, layout)


def _outer_cases(dtype):
    for m, n in OUTER:
        yield f"{m}x{n}", ((m, 1), (n, 1)), (np.asarray, np.asarray)
    for name, layout in COLUMNS.items():
        yield f"33x65 of {name} by contiguous", ((33, 1), (65, 1)), (layout, np.asarray)
        yield f"33x65 of contiguous by {name}", ((33, 1), (65, 1)), (np.asarray, layout)
    if kind_of(dtype) in "fc":
        yield "33x65 of special values", ((33, 1), (65, 1)), (_special_column, _special_column)


def _special_column(x):
    x[:5, 0] = 0, np.inf, -np.inf, np.nan, -0.0
    return x


# -- products with quantized operands -------------------------------------------------------------

# Rows of x, columns of the weights; blocks (or the other length) of the inner axis.
ALONG_INNER = [
    (1, 1, 1),
    (1, 7, 1),
    (1, 65, 3),
    (2, 33, 2),
    (5, 7, 1),
    (9, 33, 3),
    (17, 65, 2),
    (33, 1, 2),
    (3, 4, 0),
    (0, 7, 1),
    (3, 0, 1),
]
# Rows of x, blocks of columns, the inner length.
ALONG_OUTER = [(1, 1, 1), (1, 3, 7), (5, 1, 33), (33, 2, 70), (3, 1, 0), (0, 1, 3), (3, 0, 4)]
# As many as 512 of an axis that is blocked: vendors' libraries take only large products.
LARGE = (33, 256, 512)


def _by_blocks(dtype, shape, layout, weights, lay, turn, seed):
    """Return activations of a shape and quantized weights of another one."""
    x = layout(numbers(FLOAT32, shape, seed))
    w = lay(_blocks(dtype, weights, seed + 1))
    return x, w.mT if turn else w


def _mirrored(make, seed):
    """Return the operands of the transposed product."""
    a, b = make(seed)
    return b.mT, a.mT


def _quantized_cases(dtype):
    """Name and make products whose right operand is quantized."""
    size = dtype.block_size
    whole = BLOCKS["whole"]

    def case(shape, weights, turn, layout=np.asarray, lay=whole):
        return partial(_by_blocks, dtype, shape, layout, weights, lay, turn)

    for m, n, blocks in ALONG_INNER:
        k = blocks * size
        yield f"{m}x{n}x{k} along k", case((m, k), (n, k), True)
    for m, blocks, k in ALONG_OUTER:
        n = blocks * size
        yield f"{m}x{n}x{k} along n", case((m, k), (k, n), False)
    m, n, k = LARGE
    for name in ("rows", "columns", "panel"):
        yield f"{m}x{n}x{k} along k of {name}", case((m, k), (n, k), True, MATRICES[name])
        yield f"{m}x{k}x{n} along n of {name}", case((m, n), (n, k), False, MATRICES[name])
    for m in (1, 5):
        for name, layout in MATRICES.items():
            yield f"{m}x9x{size} along k of {name}", case((m, size), (9, size), True, layout)
            yield f"{m}x{size}x9 along n of {name}", case((m, 9), (9, size), False, layout)
        for name, lay in BLOCKS.items():
            shape = (6, 2 * size)
            yield f"{m} rows by {name} along k", case((m, 2 * size), shape, True, lay=lay)
            yield f"{m} rows by {name} along n", case((m, 6), shape, False, lay=lay)
        yield f"{m} rows of special values", case((m, size), (6, size), True, _special_row)
        for left, right in STACKS[:-2]:
            shapes = (*left, m, size), (*right, 3, size)
            yield f"{m} rows of {left} by {right}", case(*shapes, True)
        between = case((3, m, size), (6, 3, size), True, lay=lambda w: w.permute((1, 0, 2)))
        yield f"{m} rows by a batch between", between


def _special_row(x):
    x[0, :3] = np.inf, 1, np.nan
    return x


# -- products that are scaled, added to and converted ---------------------------------------------

# Rows, columns and inner lengths.
WITH_EPILOGUES = [(9, 14, 12), (1, 40, 30), (40, 1, 30), (66, 140, 70), (6, 5, 0)]


def _matrix_epilogue_cases(dtype):
    for at, (m, n, k) in enumerate(WITH_EPILOGUES):
        shapes = (m, k), (k, n)
        for name, epilogue in epilogues(dtype):
            yield f"{m}x{n}x{k} {name}", shapes, epilogue
        if at == 0:
            for name, epilogue in epilogues_of_layouts(dtype):
                yield f"{m}x{n}x{k} {name}", shapes, epilogue
    for m, n, k in STACKED[:3]:
        for name, epilogue in epilogues_of_batches():
            yield f"{m}x{n}x{k} of (3,) by () {name}", ((3, m, k), (k, n)), epilogue


def _outer_epilogue_cases(dtype):
    for name, epilogue in (*epilogues(dtype), *epilogues_of_layouts(dtype)):
        yield f"9x14 {name}", ((9, 1), (14, 1)), epilogue


def _quantized_epilogue_cases(dtype):
    """Name and make products whose right operand is quantized."""
    k = 2 * dtype.block_size
    for m in (1, 5, 33):
        make = partial(_by_blocks, dtype, (m, k), np.asarray, (9, k), BLOCKS["whole"], True)
        for name in ("a matrix", "a row", "a column"):
            title = f"{m}x9x{k} along k times 0.3 minus {name}"
            yield title, make, added(-1, name, alpha=0.3)
        yield f"{m}x9x{k} along k as float16", make, Epilogue(dtype=np.dtype(np.float16))


# -- decoding and encoding ------------------------------------------------------------------------


def _decoding_cases(dtype):
    size = dtype.block_size
    for shape in [(1, size), (7, 3 * size), (3, 5, size), (0, size), (3, 0)]:
        yield f"decoding {shape}", lambda seed, shape=shape: (_blocks(dtype, shape, seed),)
    for name, lay in BLOCKS.items():
        yield f"decoding {name}", lambda seed, lay=lay: (lay(_blocks(dtype, (6, 2 * size), seed)),)
    for axes in [(0, 2, 1), (2, 0, 1), (1, 0, 2)]:
        yield (
            f"decoding axes {axes}",
            lambda seed, axes=axes: (_blocks(dtype, (3, 5, 2 * size), seed).permute(axes),),
        )


def _encoding_cases(dtype):
    if dtype not in FROM_FLOAT:
        return
    size = dtype.block_size
    for shape in [(1, size), (7, 3 * size), (3, 5, size), (0, size), (3, 0)]:
        yield f"encoding {shape}", lambda seed, shape=shape: (numbers(FLOAT32, shape, seed),)


def _all():
    for dtype in PLAIN:
        for op, cases in ((Op.MATMUL, _matrix_cases), (Op.OUT_PROD, _outer_cases)):
            for name, shapes, layouts in cases(dtype):
                yield Case(op, dtype, name, partial(_pair, dtype, shapes, layouts))
        with_epilogues = (Op.MATMUL, _matrix_epilogue_cases), (Op.OUT_PROD, _outer_epilogue_cases)
        for op, cases in with_epilogues:
            for name, shapes, epilogue in cases(dtype):
                make = partial(_pair, dtype, shapes, (np.asarray, np.asarray))
                yield Case(op, dtype, name, make, epilogue)
    for dtype in QUANTIZED:
        for name, make in _quantized_cases(dtype):
            yield Case(Op.MATMUL, dtype, f"{name} right", make)
            yield Case(Op.MATMUL, dtype, f"{name} left", partial(_mirrored, make))
        for name, make, epilogue in _quantized_epilogue_cases(dtype):
            yield Case(Op.MATMUL, dtype, f"{name} right", make, epilogue)
            yield Case(Op.MATMUL, dtype, f"{name} left", partial(_mirrored, make), epilogue)
        for cases in (_decoding_cases, _encoding_cases):
            for name, make in cases(dtype):
                yield Case(Op.COPY, dtype, name, make)


CASES = list(_all())
