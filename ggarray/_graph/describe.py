"""Describing pending nodes: what each is, who will compute it and why. Computes nothing."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from ggarray._graph.assign import Choice, choose
from ggarray._graph.execute import exclusively, plan_of
from ggarray._graph.ir import capture, value_of
from ggarray._graph.lower import lower
from ggarray._graph.node import Node, is_contiguous
from ggarray._graph.order import is_pending, pending_order
from ggarray._graph.show import Graph, GraphLeaf, GraphNode
from ggarray._graph.source import location
from ggarray._graph.split import ON_HOST
from ggarray._runtime.profile import multiply_adds
from ggarray._storage import layout_key
from ggarray.interface import PRODUCTS, Op


def describe(targets: Sequence[Node]) -> Graph:
    """Return the graph of the pending nodes that `targets` need and are.

    An evaluation in another thread is waited for: its nodes are not pending after it.
    """
    with exclusively():
        order = pending_order(targets)
        if not order:
            return Graph(())
        choices = _choices(order)
        places = {node: at for at, node in enumerate(order)}
        leaves = _Leaves()
        nodes = (_described(node, choices.get(at), places, leaves) for at, node in enumerate(order))
        return Graph(tuple(nodes), str(plan_of(order)))


def _choices(order: Sequence[Node]) -> dict[int, Choice]:
    """Return who would compute each product as it was recorded."""
    graph = lower(capture(order).graph())
    products = (vertex for vertex in graph.vertices if vertex.op in PRODUCTS)
    return {vertex.origin: choose(graph, vertex) for vertex in products}


class _Leaves:
    """The leaves of a graph; two arrays that lay the same memory out alike are one."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], GraphLeaf] = {}

    def of(self, operand: Any) -> GraphLeaf:
        """Return the leaf of an operand that is no pending node."""
        value = value_of(operand)
        key = layout_key(value)
        if key not in self._known:
            self._known[key] = GraphLeaf(len(self._known), value.dtype, value.shape, value.nbytes)
        return self._known[key]


def _described(
    node: Node, choice: Choice | None, places: dict[Node, int], leaves: _Leaves
) -> GraphNode:
    operands = tuple(
        places[each] if is_pending(each) else leaves.of(each) for each in node.operands
    )
    names = (f"%{each}" if isinstance(each, int) else str(each) for each in operands)
    return GraphNode(
        index=places[node],
        op=node.op,
        operands=operands,
        expression=_EXPRESSIONS[node.op](node, *names),
        writes=None if node.writes is None else leaves.of(node.writes),
        dtype=node.dtype,
        shape=node.shape,
        device=node.device,
        held=node.held or node.writes is not None,
        nbytes=0 if node.op is Op.VIEW else node.nbytes,
        multiply_adds=multiply_adds(node, node.operands),
        backend="host" if choice is None else choice.device.name,
        reason=ON_HOST[node.op] if choice is None else choice.reason,
        source=None if node.source is None else location(node.source),
    )


def _view(node: Node, base: str) -> str:
    """Return what a view is of its base, which is row-major."""
    strides, offset, _ = node.params
    under = node.operands[0]
    itemsize = node.dtype.itemsize
    if not offset and math.prod(node.shape) == math.prod(under.shape):
        if is_contiguous(node.shape, strides, itemsize):
            return f"reshape({base}, {node.shape})"
        by_stride = sorted(range(node.ndim), key=lambda axis: -strides[axis])
        back = [(node.shape[axis], strides[axis]) for axis in by_stride]
        if back == list(zip(under.shape, under.strides, strict=True)):
            axes = tuple(map(by_stride.index, range(node.ndim)))
            swapped = (*range(node.ndim - 2), node.ndim - 1, node.ndim - 2)
            return f"{base}.mT" if axes == swapped else f"permute_dims({base}, {axes})"
    steps = tuple(stride // itemsize for stride in strides)
    return f"view({base}, strides={steps}, offset={offset // itemsize})"


_EXPRESSIONS: dict[Op, Callable[..., str]] = {
    Op.MATMUL: lambda node, a, b: f"{a} @ {b}",
    Op.OUT_PROD: lambda node, a, b: f"outer({a}, {b})",
    Op.VIEW: _view,
    Op.COPY: lambda node, a: f"astype({a}, {node.dtype})",
    Op.ADD: lambda node, a, b: f"{a} {'-' if node.params else '+'} {b}",
    Op.SCALE: lambda node, a: f"-{a}" if node.params is None else f"{a} * {node.params}",
}
