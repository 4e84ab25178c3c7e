"""Rewrites: a graph becomes one that gives the same values for less work."""

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from ggarray._graph.ir import Graph
from ggarray._graph.optimize.common_subexpressions import common_subexpressions
from ggarray._graph.optimize.copies import copies
from ggarray._graph.optimize.dead_code import dead_code
from ggarray._graph.optimize.epilogues import Takes, epilogues

__all__ = ["REWRITES", "Takes", "optimize"]


# In the order in which they are made. What nobody needs goes first, as nothing is left out or
# absorbed that more than one vertex reads; none of the others leaves any behind. Copies hide that
# operands are equal, and that products have one reader. A product that is computed once for two
# readers is worth more than what its readers could have become of it.
REWRITES: Mapping[str, Callable[[Graph, Takes], Graph]] = MappingProxyType(
    {
        "dead_code": lambda graph, _: dead_code(graph),
        "copies": lambda graph, _: copies(graph),
        "common_subexpressions": lambda graph, _: common_subexpressions(graph),
        "epilogues": epilogues,
    }
)


def optimize(graph: Graph, takes: Takes, names: Collection[str]) -> Graph:
    """Return the graph after the rewrites of these names; that of no names is the graph itself.

    Parameters
    ----------
    graph : Graph
        One whose operands have been converted.
    takes : callable
        Tells whether a backend computes a vertex, of operands of a graph, in one.
    names : collection of str
        From `REWRITES`.
    """
    for name, rewrite in REWRITES.items():
        if name in names:
            graph = rewrite(graph, takes)
    return graph
