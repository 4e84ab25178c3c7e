"""Copies: those that only change where a value lies are left out where that does not matter."""

from ggarray._graph.ir import Graph, Ref
from ggarray._graph.optimize.dead_code import dead_code
from ggarray._graph.optimize.shown import shown
from ggarray.interface import Op


def copies(graph: Graph) -> Graph:
    """Return the graph in which copies to the same dtype are read where they were made from.

    Products and sums take operands of any strides, so that a transposed, permuted or broadcast
    operand of a product goes into its strides and flags. The preconditions: the program sees
    neither the copy nor a view of it. Views read the copy unless it lies in memory just as the
    original does, which the values of operations do. Where several vertices read it, the rows or
    columns of the original are contiguous: what others take a backend may copy each time.

    The values of outputs do not change, but for the rounding of a product that adds up in another
    order for other strides. A conversion to another dtype rounds, and stays.
    """
    kept = shown(graph)
    readers = graph.readers()
    original: dict[Ref, Ref] = {}
    vertices = []
    for at, vertex in enumerate(graph.vertices):
        operands = tuple(original.get(ref, ref) for ref in vertex.operands)
        vertices.append(vertex.reading(operands))
        if vertex.op is not Op.COPY or at in kept:
            continue
        is_view_read = any(graph.vertices[reader].op is Op.VIEW for reader in readers[at])
        if _is_original(graph, operands[0], at, is_view_read, len(readers[at])):
            original[at] = operands[0]
    return dead_code(graph._replace(vertices=tuple(vertices))) if original else graph


def _is_original(graph: Graph, source: Ref, copy: int, is_view_read: bool, n_readers: int) -> bool:
    """Tell whether the readers of a copy may as well read its source."""
    tensor = graph.tensor(source)
    dtype = graph.vertices[copy].dtype
    if tensor.axis is not None or tensor.dtype != dtype:
        return False
    if source >= 0 and graph.vertices[source].op is not Op.VIEW:
        return True
    return not is_view_read and (n_readers == 1 or dtype.itemsize in tensor.strides[-2:])
