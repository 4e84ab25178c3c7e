"""Graphs of every kind of node, with what NumPy in float64 and gguf say of their results."""

import ctypes
from typing import NamedTuple

import gguf
import ml_dtypes
import numpy as np

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import q4_1, q8_0
from ggarray.interface import Kernel, Op


class Case(NamedTuple):
    kernel: Kernel
    expected: np.ndarray
    bound: np.ndarray | float


def run_as_graph(backend, graph):
    return backend.graph_compute(graph)


def run_as_plan(backend, graph):
    plan = backend.graph_plan_create(graph)
    try:
        return backend.graph_plan_compute(plan)
    finally:
        backend.graph_plan_free(plan)


def memory_of(value):
    return value.data if isinstance(value, Blocks) else value


def same_layout(kernel):
    """Return a kernel of new memory with the same layout; its operands have the same values."""
    return Kernel(kernel.op, tuple(map(_moved, kernel.operands)), _moved(kernel.out))


def _moved(value):
    if isinstance(value, Blocks):
        return Blocks(_moved(value.data), value.dtype, value.axis)
    begin, end = np.lib.array_utils.byte_bounds(value)
    memory = bytearray(ctypes.string_at(begin, end - begin))
    offset = value.__array_interface__["data"][0] - begin
    return np.ndarray(value.shape, value.dtype, memory, offset, value.strides)


def product(a, b, dtype=None):
    """Return the case of a product; an operand is values, or blocks and the values in them."""
    (a, a_wide), (b, b_wide) = map(_with_wide, (a, b))
    expected = a_wide @ b_wide
    out = np.empty(expected.shape, dtype or a.dtype)
    if out.dtype.kind in "iu":
        return Case(Kernel(Op.MATMUL, (a, b), out), expected, 0)
    summed_in = np.float32 if out.dtype.itemsize == 2 else out.dtype
    bound = np.abs(a_wide) @ np.abs(b_wide) * np.finfo(summed_in).eps * (a.shape[-1] + 2)
    if out.dtype.itemsize == 2:
        bound = bound + np.abs(expected) * float(ml_dtypes.finfo(out.dtype).eps)
    return Case(Kernel(Op.MATMUL, (a, b), out), expected, bound)


def _with_wide(x):
    if isinstance(x, tuple):
        return x
    return x, x if x.dtype.kind in "iu" else x.astype(complex if x.dtype.kind == "c" else float)


def quantized(rng, shape, qdtype, order=None):
    kind = gguf.GGMLQuantizationType(qdtype.type_id)
    data = gguf.quantize(rng.standard_normal(shape).astype(np.float32), kind)
    blocks = Blocks(data.reshape(*shape[:-1], -1, qdtype.block_bytes), qdtype)
    wide = gguf.dequantize(data, kind).astype(float)
    return (blocks, wide) if order is None else (blocks.permute(order), wide.transpose(order))


def every_kind(seed):
    """Return one case for each kind of node and of layout."""
    rng = np.random.default_rng(seed)

    def values(*shape, dtype="float32"):
        x = rng.standard_normal(shape) * 4
        if np.dtype(dtype).kind == "c":
            x = x + 1j * rng.standard_normal(shape)
        return x.astype(dtype)

    bf16 = ml_dtypes.bfloat16
    weights = quantized(rng, (40, 96), q8_0)
    decoded = quantized(rng, (7, 64), q4_1)
    column, row = values(5, 1), values(9, 1)
    source = values(3, 64)
    q8 = gguf.GGMLQuantizationType.Q8_0
    return [
        product(values(8, 8), values(8, 8)),
        product(values(9, 20).T, values(11, 9).T),
        product(values(20, 30)[::2, ::-3], values(10, 7), dtype="float32"),
        product(values(3, 1, 4, 5), values(2, 5, 6)),
        product(np.broadcast_to(values(4, 5), (3, 4, 5)), values(3, 5, 2)),
        product(values(150, 90), values(90, 160)),
        product(values(1, 300), values(300, 70)),
        product(values(6, 7, dtype=bf16), values(7, 5, dtype=bf16)),
        product(values(6, 7, dtype=bf16).T, values(12, 5, dtype=bf16)[::2]),
        product(values(6, 7, dtype="float16"), values(7, 5, dtype="float16")),
        product(values(6, 7, dtype="complex64"), values(7, 5, dtype="complex64")),
        product(values(6, 7, dtype="int16"), values(7, 5, dtype="int16")),
        product(values(4, 96), (weights[0].mT, weights[1].T)),
        product(weights, values(96, 3), dtype="float32"),
        product(values(3, 40), weights),
        product(quantized(rng, (40, 6, 64), q4_1, (2, 0, 1)), values(6, 5), dtype="float32"),
        Case(
            Kernel(Op.OUT_PROD, (column, row), np.empty((5, 9), np.float32)),
            column.astype(float) * row.T.astype(float),
            1e-6 * np.abs(column * row.T),
        ),
        Case(Kernel(Op.COPY, decoded[:1], np.empty((7, 64), np.float32)), decoded[1], 0),
        Case(
            Kernel(Op.COPY, (source,), Blocks(np.empty((3, 2, 34), np.uint8), q8_0)),
            gguf.quantize(source, q8).reshape(3, 2, 34),
            0,
        ),
        product(values(3, 0), values(0, 4)),
        product(values(0, 3), values(3, 4)),
    ]


def check(case, out):
    """Compare a result with what is expected of it."""
    out = memory_of(out)
    assert out.shape == case.expected.shape
    assert (np.abs(out.astype(case.expected.dtype) - case.expected) <= case.bound).all()
