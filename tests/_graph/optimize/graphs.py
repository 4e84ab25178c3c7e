"""Graphs made by hand or at random, and an interpreter of them in NumPy."""

import math

import numpy as np

from ggarray._dtypes import is_real_floating
from ggarray._graph.assign import kernel_of
from ggarray._graph.ir import Graph, Leaf, Vertex
from ggarray._graph.views import Layout
from ggarray.interface import Op
from ggarray.interface.nodes import contiguous_strides


def always(graph, vertex):
    return True


def never(graph, vertex):
    return False


class Building:
    """A graph in the making; each method adds a value and returns its Ref."""

    def __init__(self, dtype="d", device="cpu"):
        self.dtype = np.dtype(dtype)
        self.device = device
        self.leaves = []
        self.vertices = []

    def tensor(self, ref):
        return self.graph().tensor(ref)

    def leaf(self, *shape, strides=None, dtype=None):
        dtype = np.dtype(dtype or self.dtype)
        strides = strides or contiguous_strides(shape, dtype.itemsize)
        self.leaves.append(Leaf(shape, dtype, strides, None))
        return ~(len(self.leaves) - 1)

    def _add(self, op, operands, shape, dtype, params=None, **fields):
        self.vertices.append(Vertex(op, operands, shape, dtype, self.device, params, **fields))
        return len(self.vertices) - 1

    def matmul(self, a, b, bias=None, dtype=None, **fields):
        a_shape, b_shape = self.tensor(a).shape, self.tensor(b).shape
        shape = (np.empty(a_shape, "b") @ np.empty(b_shape, "b")).shape
        rows, columns = a_shape[-2:-1] or (1,), b_shape[-1:] if len(b_shape) > 1 else (1,)
        batch = np.broadcast_shapes(a_shape[:-2], b_shape[:-2])
        operands = (a, b) if bias is None else (a, b, bias)
        params = (*batch, *rows, *columns)
        dtype = np.dtype(dtype or self.tensor(a).dtype)
        return self._add(Op.MATMUL, operands, shape, dtype, params, **fields)

    def outer(self, a, b, bias=None, **fields):
        shape = self.tensor(a).shape + self.tensor(b).shape
        operands = (a, b) if bias is None else (a, b, bias)
        return self._add(Op.OUT_PROD, operands, shape, self.tensor(a).dtype, **fields)

    def view(self, a, change):
        tensor = self.tensor(a)
        layout = change(Layout(tensor.shape, tensor.strides, 0))
        params = (layout.strides, layout.offset, layout.writeable)
        return self._add(Op.VIEW, (a,), layout.shape, tensor.dtype, params)

    def transposed(self, a):
        return self.view(a, lambda layout: layout.permute(tuple(range(len(layout.shape)))[::-1]))

    def copy(self, a, dtype=None):
        tensor = self.tensor(a)
        return self._add(Op.COPY, (a,), tensor.shape, np.dtype(dtype or tensor.dtype))

    def add(self, a, b, subtract=False):
        x, y = self.tensor(a), self.tensor(b)
        shape, dtype = np.broadcast_shapes(x.shape, y.shape), np.result_type(x.dtype, y.dtype)
        return self._add(Op.ADD, (a, b), shape, dtype, subtract)

    def scale(self, a, alpha=None):
        tensor = self.tensor(a)
        return self._add(Op.SCALE, (a,), tensor.shape, tensor.dtype, alpha)

    def graph(self, *outputs):
        return Graph(tuple(self.leaves), tuple(self.vertices), outputs)


# -- what graphs mean ------------------------------------------------------------------------------


def interpret(graph, leaves):
    """Return the values of the outputs; a view of a value is a view of its array.

    Of equal operands a product is the same to the last bit, whatever their strides are.
    """
    values = []
    for vertex in graph.vertices:
        operands = [leaves[~ref] if ref < 0 else values[ref] for ref in vertex.operands]
        with np.errstate(all="ignore"):
            value = _MEANING[vertex.op](vertex, *operands)
        assert (value.shape, value.dtype) == (vertex.shape, vertex.dtype)
        values.append(value)
    return [values[at] for at in graph.outputs]


def _product(vertex, a, b, bias=None):
    assert a.dtype == b.dtype
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    wide = {"f": np.float64, "c": np.complex128}.get(a.dtype.kind, a.dtype)
    if vertex.op is Op.OUT_PROD:
        value = a.astype(wide)[:, None] * b.astype(wide)
    else:
        a, b = a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
        value = (a.astype(wide)[..., None] * b.astype(wide)[..., None, :, :]).sum(-2, dtype=wide)
        assert value.shape == vertex.params
    if vertex.alpha != 1:
        value = value * np.array([vertex.alpha]).astype(wide)
    assert (vertex.beta == 0) == (bias is None)
    if bias is not None:
        assert bias.dtype == a.dtype
        assert value.shape == vertex.shape
        value = value + bias if vertex.beta == 1 else value - bias
    return value.astype(vertex.dtype).reshape(vertex.shape)


def _view(vertex, x):
    strides, offset, _ = vertex.params
    assert x.flags.c_contiguous
    return np.ndarray(vertex.shape, vertex.dtype, x, offset, strides)


def _copy(vertex, x):
    return x.astype(vertex.dtype, order="C")


def _add(vertex, x, y):
    return np.asarray((np.subtract if vertex.params else np.add)(x, y), order="C")


def _scale(vertex, x):
    value = np.negative(x) if vertex.params is None else np.multiply(x, vertex.params)
    return np.asarray(value, order="C")


_MEANING = {
    Op.MATMUL: _product,
    Op.OUT_PROD: _product,
    Op.VIEW: _view,
    Op.COPY: _copy,
    Op.ADD: _add,
    Op.SCALE: _scale,
}


def check_kernel(graph, vertex):
    """Check that the kernel of a product is as backends may expect it."""
    kernel = kernel_of(graph, vertex)
    (dtype,) = {operand.dtype for operand in kernel.operands}
    assert np.array(kernel.alpha).astype(dtype) == kernel.alpha
    assert np.isfinite(kernel.alpha)
    assert kernel.alpha != 0
    assert dtype.kind != "u" or kernel.alpha > 0
    assert is_real_floating(dtype) == is_real_floating(kernel.out.dtype)
    assert is_real_floating(dtype) or dtype.kind == kernel.out.dtype.kind
    if kernel.bias is not None:
        assert kernel.beta in (1, -1)
        assert kernel.bias.dtype == dtype
        assert len(kernel.bias.shape) == len(kernel.out.shape)
        for length, whole in zip(kernel.bias.shape, kernel.out.shape, strict=True):
            assert length in (1, whole)


# -- random graphs ---------------------------------------------------------------------------------

FACTORS = {
    "f": [2, 0.5, -3.0, 1.0, -1],
    "c": [2, 0.5 - 1j, 1j, 1.0, -1],
    "i": [2, -128, 3, -1, 1],
    "u": [2, 255, 3, 1],
}
SHAPES = [(3, 3), (3, 3), (3, 3), (3,), (3,), (2, 3, 3), (1, 3), (3, 1), (1, 1), ()]
CHANGES = [
    lambda layout: layout.permute(tuple(range(len(layout.shape)))[::-1]),
    lambda layout: layout.index((slice(None, None, -1),)) if layout.shape else layout,
    lambda layout: layout.index((..., slice(1, None))) if layout.shape else layout,
    lambda layout: layout.expand(0),
    lambda layout: layout.broadcast((2, *layout.shape)),
]


def random_graph(rng, dtypes):
    """Return a graph of few leaves, so that operations are equal often, and any outputs."""
    making = Building(dtypes[0])
    for shape in [(3, 3), (3, 3), *rng.sample(SHAPES, 3)]:
        turned = shape == (3, 3) and rng.random() < 0.5
        strides = contiguous_strides(shape, making.dtype.itemsize)
        making.leaf(*shape, strides=strides[::-1] if turned else strides)
    refs = [~at for at in range(len(making.leaves))]
    for _ in range(rng.randint(1, 14)):
        a, b = rng.sample([rng.choice(refs[-2:]), rng.choice(refs)], 2)
        operation = rng.choice(_RANDOM)
        if refs[-1] >= 0 and rng.random() < 0.5:
            a, operation = refs[-1], rng.choice([_random_sum, _random_scaling, _random_copy])
        ref = operation(rng, making, a, b, dtypes)
        if ref is None:
            continue
        if math.prod(making.tensor(ref).shape) < 200:
            refs.append(ref)
        if rng.random() < 0.2:  # once more
            last = making.vertices[-1]
            making.vertices.append(last)
            refs.append(ref + 1)
    places = range(len(making.vertices))
    outputs = {*places[-1:], *rng.sample(places, min(len(places), rng.choice([0, 1, 2, 5])))}
    return making.graph(*sorted(outputs))


def _random_matmul(rng, making, a, b, dtypes):
    x, y = making.tensor(a), making.tensor(b)
    if not x.shape or not y.shape or x.dtype != y.dtype or 0 in x.shape + y.shape:
        return None
    if x.shape[-1] != y.shape[-2 if y.ndim > 1 else -1]:
        return None
    if not _broadcast(x.shape[:-2], y.shape[:-2]):
        return None
    return making.matmul(a, b)


def _random_outer(rng, making, a, b, dtypes):
    x, y = making.tensor(a), making.tensor(b)
    return making.outer(a, b) if x.ndim == y.ndim == 1 and x.dtype == y.dtype else None


def _random_view(rng, making, a, b, dtypes):
    if a < 0 or making.vertices[a].op is Op.VIEW:
        return None
    return making.view(a, rng.choice(CHANGES))


def _random_copy(rng, making, a, b, dtypes):
    return making.copy(a, rng.choice(dtypes))


def _random_sum(rng, making, a, b, dtypes):
    if not _broadcast(making.tensor(a).shape, making.tensor(b).shape):
        return None
    return making.add(a, b, rng.random() < 0.5)


def _random_scaling(rng, making, a, b, dtypes):
    factors = FACTORS[making.tensor(a).dtype.kind]
    return making.scale(a, rng.choice([None, None, *factors]))


def _broadcast(a, b):
    """Tell whether shapes broadcast."""
    return all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1], strict=False))


_RANDOM = [_random_matmul, _random_outer, _random_view, _random_copy, _random_sum, _random_scaling]
_RANDOM += [_random_matmul] * 4


def values_of_leaves(graph, seed, special=False):
    """Return arrays for the leaves of a graph, of which some elements may be infinite or NaN."""
    rng = np.random.default_rng(seed)
    values = []
    for leaf in graph.leaves:
        size = math.prod(leaf.shape)
        x = rng.integers(-4, 5, size) if leaf.dtype.kind in "iu" else rng.standard_normal(size)
        if leaf.dtype.kind == "c":
            x = x + 1j * rng.standard_normal(size)
        x = np.asarray(x).astype(leaf.dtype)
        if special:
            x[rng.random(size) < 0.1] = np.inf
            x[rng.random(size) < 0.02] = np.nan
        values.append(np.ndarray(leaf.shape, leaf.dtype, x, 0, leaf.strides))
    return values


def magnitudes(graph, leaves):
    """Return for each output the sum of the magnitudes of all that it is a sum of."""
    vertices = []
    for vertex in graph.vertices:
        params = _magnitude(vertex.op, vertex.params)
        alpha, beta = abs(vertex.alpha), abs(vertex.beta)
        vertices.append(vertex._replace(params=params, alpha=alpha, beta=beta))
    positive = [np.abs(x).astype(x.dtype) for x in leaves]
    return interpret(graph._replace(vertices=tuple(vertices)), positive)


def _magnitude(op, params):
    if op is Op.SCALE:
        return 1 if params is None else abs(params)
    return False if op is Op.ADD else params
