"""Recorded programs as graphs and plans, and NumPy to compute graphs by."""

import random

import numpy as np
from numpy.lib.stride_tricks import as_strided

import ggarray as xp
from ggarray._graph.assign import takes
from ggarray._graph.ir import capture
from ggarray._graph.lower import lower
from ggarray._graph.optimize import REWRITES, optimize
from ggarray._graph.order import pending_order
from ggarray._graph.schedule import schedule
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.reference import dequantize_blocks
from ggarray.interface import Op


def node_of(array):
    """Return the node that an array waits for."""
    return array._awaited()


def order_of(*arrays):
    return pending_order([node_of(array) for array in arrays])


def captured(*arrays):
    return capture(order_of(*arrays))


def graph_of(*arrays, fuse=()):
    """Return the graph of arrays, its operands converted, after rewrites."""
    return optimize(lower(captured(*arrays).graph()), takes, fuse)


def plan_of(*arrays, fuse=()):
    return schedule(graph_of(*arrays, fuse=fuse))


def constant(values, device):
    """Return an Array over memory that nobody can ever write."""
    values = np.asarray(values)
    memory = np.frombuffer(values.tobytes(), values.dtype).reshape(values.shape)
    return xp.asarray(memory, device=device)


def quantized(values, dtype=xp.q8_0, device="cpu"):
    """Return a quantized Array, and the values that its blocks stand for."""
    weights = xp.quantize(xp.asarray(values, dtype=xp.float32, device="cpu"), dtype)
    return weights.to_device(device), np.asarray(xp.dequantize(weights)).astype(np.float64)


# -- plans --------------------------------------------------------------------------------------


def used(plan):
    """Return of each block the steps that use it, the block of each value, and roots of views."""
    roots = list(range(len(plan.graph.vertices)))
    for at, vertex in enumerate(plan.graph.vertices):
        if vertex.op is Op.VIEW:
            (base,) = vertex.operands
            roots[at] = roots[base] if base >= 0 else base
    blocks = {}  # of each value, by memory
    uses = {at: set() for at in range(len(plan.blocks))}
    now = 0
    for part in plan.splits:
        for copy in part.copies:
            for block in blocks.get(copy.value, {}).values():
                uses[block].add(now)
            if copy.block is not None:
                blocks.setdefault(copy.value, {})[part.memory] = copy.block
                uses[copy.block].add(now)
        for step in part.steps:
            if step.block is not None:
                blocks[step.at] = {part.memory: step.block}
            for ref in (step.at, *step.vertex.operands):
                root = roots[ref] if ref >= 0 else ref
                block = blocks.get(root, {}).get(part.memory)
                if block is not None:
                    uses[block].add(now)
            now += 1
    return uses, blocks, roots


# -- graphs by NumPy ----------------------------------------------------------------------------


def values_of(graph, leaves):
    """Return the values of a graph's vertices, in double precision or as wide integers."""
    leaves = [wide(leaf) for leaf in leaves]
    values = []
    for vertex in graph.vertices:
        operands = [values[ref] if ref >= 0 else leaves[~ref] for ref in vertex.operands]
        value = _COMPUTE[vertex.op](vertex, *operands)
        assert value.shape == vertex.shape
        values.append(value)
    return values


def outputs_of(graph, leaves):
    values = values_of(graph, leaves)
    return [values[at] for at in graph.outputs]


def wide(value):
    value = dequantize_blocks(value) if isinstance(value, Blocks) else value
    return value.astype({"i": np.int64, "c": np.complex128}.get(value.dtype.kind, np.float64))


def _product(vertex, a, b, bias=0):
    value = np.matmul(a, b) if vertex.op is Op.MATMUL else np.multiply.outer(a, b)
    return vertex.alpha * value + vertex.beta * bias


def _view(vertex, base):
    strides, offset, _ = vertex.params
    itemsize = vertex.dtype.itemsize
    steps = [stride // itemsize * base.itemsize for stride in strides]
    flat = np.ascontiguousarray(base).reshape(-1)[offset // itemsize :]
    return as_strided(flat, vertex.shape, steps, writeable=False)


_COMPUTE = {
    Op.MATMUL: _product,
    Op.OUT_PROD: _product,
    Op.VIEW: _view,
    Op.COPY: lambda vertex, a: a,
    Op.ADD: lambda vertex, a, b: a - b if vertex.params else a + b,
    Op.SCALE: lambda vertex, a: -a if vertex.params is None else a * vertex.params,
}


# -- random programs ----------------------------------------------------------------------------


PRODUCTS = [lambda a, b: a @ b, lambda a, b: a.T @ b, lambda a, b: a @ b.T]
VIEWS = [lambda a, b: a[:], lambda a, b: a[::-1].T, lambda a, b: b[:, ::-1]]
SUMS = [  # of what is contiguous; others have to be computed when they are recorded
    lambda a, b: a + b,
    lambda a, b: b - a,
    lambda a, b: a * 0.5,
    lambda a, b: -a,
    lambda a, b: xp.astype(xp.astype(a, xp.float32), a.dtype),
]


def random_arrays(x, seed, count=30, keep=0.4, kinds=(PRODUCTS, SUMS, VIEWS)):
    """Return pending arrays, recorded at random from a square one; some have been let go."""
    rng = random.Random(seed)
    arrays, contiguous = [x @ x], [x @ x]
    for _ in range(count):
        kind = rng.choice(kinds)
        operands = contiguous if kind is SUMS else arrays
        a, b = rng.choice(operands), rng.choice([*operands, x] if kind is SUMS else operands)
        arrays.append(rng.choice(kind)(a, b))
        if kind is not VIEWS:
            contiguous.append(arrays[-1])
    del a, b, operands, contiguous
    return [each for each in arrays if rng.random() < keep] or arrays[-1:]


ALL = frozenset(REWRITES)
