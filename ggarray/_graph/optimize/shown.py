"""Which values lie in memory that the program will see."""

from ggarray._graph.ir import Graph
from ggarray.interface import Op


def shown(graph: Graph) -> set[int]:
    """Return the outputs, and the vertices in whose memory outputs that are views lie."""
    found = set(graph.outputs)
    for at in reversed(range(len(graph.vertices))):
        vertex = graph.vertices[at]
        if at in found and vertex.op is Op.VIEW:
            found.update(ref for ref in vertex.operands if ref >= 0)
    return found
