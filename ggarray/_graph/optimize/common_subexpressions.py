"""Common subexpressions: equal operations on equal operands are computed once."""

from typing import Any

from ggarray._graph.ir import Graph, Ref, Rewriter, Vertex
from ggarray._graph.optimize.shown import shown
from ggarray.interface import Op


def common_subexpressions(graph: Graph) -> Graph:
    """Return the graph in which an operation is not repeated on the same operands.

    Arrays of the program that have memory of their own keep it: where the program sees the values
    of both operations, or views of them, the second matrix product becomes a copy of the first, and
    another operation, which costs no more than a copy, stays. Two views of one memory are one
    unless the program sees both.

    There is no precondition, and the values of outputs do not change: an operation gives the same
    bits each time.
    """
    sharing = _Sharing(graph)
    for at, vertex in enumerate(graph.vertices):
        sharing.settle(sharing.place_of(at, vertex))
    return sharing.finish()


class _Sharing(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._shown = shown(graph)
        self._taken: set[Ref] = set()  # places in the new graph whose memory the program sees
        self._firsts: dict[tuple[Any, ...], Ref] = {}
        self._same: dict[Ref, Ref] = {}  # the first vertex that has the value of a later one

    def place_of(self, at: int, vertex: Vertex) -> Ref:
        """Return what stands for a vertex of the old graph, which may be added for it."""
        is_shown = at in self._shown
        moved = self.moved(vertex)
        if vertex.op is not Op.VIEW or not is_shown:  # it matters what is read, not where
            operands = tuple(self._same.get(ref, ref) for ref in moved.operands)
            moved = moved.reading(operands)
        key = moved[:-1]  # wherever it comes from
        first = self._firsts.get(key)
        if first is None:
            place = self._firsts[key] = self.add(moved)
        elif is_shown and first in self._taken:
            place = self._again(moved, first)
        else:
            place = first
        if is_shown:
            self._taken.add(place)
        return place

    def _again(self, vertex: Vertex, first: Ref) -> Ref:
        """Add a vertex of a value that is there, but in memory that it must not share."""
        if vertex.op is Op.MATMUL:
            shape, dtype, device = vertex.shape, vertex.dtype, vertex.device
            vertex = Vertex(Op.COPY, (first,), shape, dtype, device, origin=vertex.origin)
        place = self.add(vertex)
        self._same[place] = first
        return place
