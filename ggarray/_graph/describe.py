"""Describing pending nodes: what each is, who will compute it and why. Computes nothing."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ggarray._graph.execute import evaluation, value_of
from ggarray._graph.node import Node, address, contiguous_strides, is_contiguous
from ggarray._graph.schedule import (
    Step,
    expected_kernel,
    is_pending,
    pending_order,
    schedule,
)
from ggarray._graph.show import Graph, GraphLeaf, GraphNode
from ggarray._graph.source import location
from ggarray._quantized.blocks import Blocks
from ggarray._runtime.plugins import candidates
from ggarray._runtime.profile import multiply_adds
from ggarray.interface import BackendDevice, Kernel, Op, Tensor


def describe(targets: Sequence[Node]) -> Graph:
    """Return the graph of the pending nodes that `targets` need and are.

    An evaluation in another thread is waited for: its nodes are not pending after it.
    """
    with evaluation:
        steps = schedule(pending_order(targets)).steps
        places = {step.node: at for at, step in enumerate(steps)}
        leaves = _Leaves()
        return Graph(tuple(_described(step, places, leaves) for step in steps))


class _Leaves:
    """The leaves of a graph; two arrays that lay the same memory out alike are one."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], GraphLeaf] = {}

    def of(self, operand: Any) -> GraphLeaf:
        """Return the leaf of an operand that is no pending node."""
        value = value_of(operand)
        data = value.data if isinstance(value, Blocks) else value
        key = address(data), data.shape, data.strides, value.dtype
        if key not in self._known:
            self._known[key] = GraphLeaf(len(self._known), value.dtype, value.shape, value.nbytes)
        return self._known[key]


def _described(step: Step, places: dict[Node, int], leaves: _Leaves) -> GraphNode:
    node, device = step.node, step.device
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
        backend="host" if device is None else device.name,
        reason=_ON_HOST[node.op] if device is None else _reason(node, device),
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

_ON_HOST = {
    Op.VIEW: "a view: no element moves",
    Op.COPY: "a conversion: NumPy computes it",
    Op.ADD: "a sum: NumPy computes it",
    Op.SCALE: "a scaling: NumPy computes it",
}


def _reason(node: Node, device: BackendDevice) -> str:
    """Return why a product goes to this backend."""
    preferred, _ = candidates(node.device)
    if not preferred:
        return f"it computes all products of device {node.device}"
    what = f"{node.op.value} of {' and '.join(dict.fromkeys(map(str, _dtypes(node))))}"
    if device in preferred:
        return f"device {node.device} takes this {what}"
    return "; ".join(
        f"{each.name} takes {what}, but does these shapes worse or not at all"
        if each.supports_op(_large(node))
        else f"{each.name} takes no {what}"
        for each in preferred
    )


def _dtypes(node: Node) -> list[Any]:
    """Return the dtypes of a product's operands as a backend sees them."""
    return [operand.dtype for operand in expected_kernel(node).operands]


_LARGE = 4096  # rows and columns of a product that is worth any backend's while


def _large(node: Node) -> Kernel:
    """Return a large product of the same kind, to ask a backend about."""
    inner = _LARGE if node.op is Op.MATMUL else 1
    shapes = (_LARGE, inner), (inner, _LARGE) if node.op is Op.MATMUL else (_LARGE, 1)
    operands = tuple(map(_row_major, shapes, _dtypes(node)))
    return Kernel(node.op, operands, _row_major((_LARGE, _LARGE), node.dtype))


def _row_major(shape: tuple[int, ...], dtype: Any) -> Tensor:
    # strides count elements of a quantized dtype, which have no bytes of their own
    itemsize = dtype.itemsize if isinstance(dtype, np.dtype) else 1
    return Tensor(shape, dtype, contiguous_strides(shape, itemsize))
