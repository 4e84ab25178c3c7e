"""Lowering: the conversions that products need become operations of the graph."""

from typing import Any

import numpy as np

from ggarray._graph.ir import Graph, Ref, Rewriter, Vertex
from ggarray._graph.products import stays_quantized
from ggarray._quantized.traits import QuantizedDType
from ggarray.interface import PRODUCTS, Op

_FLOAT32 = np.dtype(np.float32)


def lower(graph: Graph) -> Graph:
    """Return the graph in which operands of products are as kernels take them.

    Each is quantized, or of the product's dtype; at most one of a product is quantized. A value
    that several products need in one dtype is converted once.
    """
    if all(_is_low(graph, vertex) for vertex in graph.vertices):
        return graph
    lowered = _Lowering(graph)
    for vertex in graph.vertices:
        lowered.settle(lowered.add(lowered.converted(vertex)))
    return lowered.finish()


def _is_low(graph: Graph, vertex: Vertex) -> bool:
    """Tell whether nothing has to be converted for an operation; so for nearly all."""
    if vertex.op not in PRODUCTS:
        return True
    places = ((graph.vertices[ref] if ref >= 0 else graph.leaves[~ref]) for ref in vertex.operands)
    return all(place.dtype is vertex.dtype for place in places)


class _Lowering(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._old = graph
        self._conversions: dict[tuple[Ref, Any], Ref] = {}

    def converted(self, vertex: Vertex) -> Vertex:
        """Return a vertex of the old graph, its operands being those of the new one, converted."""
        moved = self.moved(vertex)
        if vertex.op not in PRODUCTS:
            return moved
        a, b = vertex.operands
        left = self._operand(vertex, a, self._may_stay(vertex, a))
        both = left == self.ref(a) and _is_quantized(self._old, a)
        right = self._operand(vertex, b, self._may_stay(vertex, b) and not both)
        return moved._replace(operands=(left, right))

    def _may_stay(self, vertex: Vertex, ref: Ref) -> bool:
        tensor = self._old.tensor(ref)
        return vertex.op is Op.MATMUL and stays_quantized(tensor, vertex.dtype)

    def _operand(self, vertex: Vertex, old: Ref, may_stay: bool) -> Ref:
        """Return an operand as the kernel takes it."""
        ref, dtype = self.ref(old), self._old.tensor(old).dtype
        if isinstance(dtype, QuantizedDType):
            if may_stay:
                return ref
            ref, dtype = self._copy(vertex, old, ref, _FLOAT32), _FLOAT32
        return ref if dtype == vertex.dtype else self._copy(vertex, old, ref, vertex.dtype)

    def _copy(self, vertex: Vertex, old: Ref, ref: Ref, dtype: Any) -> Ref:
        known = self._conversions.get((ref, dtype))
        if known is None:
            shape = self._old.tensor(old).shape
            copy = Vertex(Op.COPY, (ref,), shape, dtype, vertex.device, origin=vertex.origin)
            known = self._conversions[ref, dtype] = self.add(copy)
        return known


def _is_quantized(graph: Graph, ref: Ref) -> bool:
    return isinstance(graph.tensor(ref).dtype, QuantizedDType)
