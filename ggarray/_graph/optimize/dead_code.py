"""Dead code: what nobody needs is not computed."""

from ggarray._graph.ir import Graph, Rewriter


def dead_code(graph: Graph) -> Graph:
    """Return the graph without the vertices that no output needs.

    There is no precondition, and the values of outputs do not change.
    """
    needed = set(graph.outputs)
    for at in reversed(range(len(graph.vertices))):
        if at in needed:
            needed.update(graph.vertices[at].operands)
    if needed.issuperset(range(len(graph.vertices))):
        return graph
    rewriter = Rewriter(graph)
    for at, vertex in enumerate(graph.vertices):
        if at in needed:
            rewriter.settle(rewriter.add(rewriter.moved(vertex)))
        else:
            rewriter.settle(len(graph.vertices))  # nobody asks for it: there is no such vertex
    return rewriter.finish()
