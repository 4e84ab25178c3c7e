"""Graphs as data: what is to be computed, without any node or memory.

Two programs that record the same operations on arrays of the same layouts have equal graphs, and
equal graphs have one plan. Rewriting, scheduling and planning of memory work on these alone.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ggarray._graph.node import Destination, Node
from ggarray._graph.residence import NOWHERE, residents
from ggarray._quantized.blocks import Blocks
from ggarray._runtime.devices import Device
from ggarray._storage import Plain, Storage, address, is_constant, layout_key, root_of
from ggarray.interface import Op, Tensor, Value
from ggarray.interface.nodes import contiguous_strides

Ref = int
"""A value of a graph: the place of a vertex, or ``~at`` of the leaf at that place."""


class Leaf(NamedTuple):
    """A value that is there before the graph is computed.

    Attributes
    ----------
    shape, dtype, strides, axis
        As of `ggarray.interface.Tensor`.
    constant : bool
        Nobody can ever write its memory.
    resident : frozenset of str
        The devices in whose memory there is a copy of it.
    """

    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...]
    axis: int | None
    constant: bool = False
    resident: frozenset[str] = NOWHERE


class Vertex(NamedTuple):
    """One operation.

    Attributes
    ----------
    op : Op
    operands : tuple of Ref
        Of a product with a bias, the third is the bias.
    shape, dtype
        Of the value.
    device : Device
        The device that it is on.
    params : object
        As of `ggarray._graph.node.Node`.
    alpha, beta
        Of a product, as of `ggarray.interface.Kernel`.
    origin : int
        The place in the graph that was captured of the operation that it was made from.
    """

    op: Op
    operands: tuple[Ref, ...]
    shape: tuple[int, ...]
    dtype: Any
    device: Device
    params: Any = None
    alpha: complex = 1
    beta: int = 0
    origin: int = 0

    def reading(self, operands: tuple[Ref, ...]) -> "Vertex":
        """Return the vertex with these operands; it mostly has them already."""
        return self if operands == self.operands else self._replace(operands=operands)


class Graph(NamedTuple):
    """Operations in an order in which they can be computed.

    Attributes
    ----------
    leaves : tuple of Leaf
        Two that lay the same memory out alike are one.
    vertices : tuple of Vertex
        Each after its operands.
    outputs : tuple of int
        The vertices whose values are needed afterwards.
    """

    leaves: tuple[Leaf, ...]
    vertices: tuple[Vertex, ...]
    outputs: tuple[int, ...]

    def tensor(self, ref: Ref) -> Tensor:
        """Return the layout of a value."""
        if ref < 0:
            leaf = self.leaves[~ref]
            return Tensor(leaf.shape, leaf.dtype, leaf.strides, leaf.axis)
        return _tensor_of(self.vertices[ref])

    def tensors(self) -> list[Tensor]:
        """Return the layouts of the vertices' values."""
        return [_tensor_of(vertex) for vertex in self.vertices]

    def readers(self) -> list[list[int]]:
        """Return which vertices read each vertex, once for each time they do."""
        readers: list[list[int]] = [[] for _ in self.vertices]
        for at, vertex in enumerate(self.vertices):
            for ref in vertex.operands:
                if ref >= 0:
                    readers[ref].append(at)
        return readers


def _tensor_of(vertex: Vertex) -> Tensor:
    if vertex.op is Op.VIEW:
        return Tensor(vertex.shape, vertex.dtype, vertex.params[0])
    strides = contiguous_strides(vertex.shape, vertex.dtype.itemsize)
    return Tensor(vertex.shape, vertex.dtype, strides)


class Rewriter:
    """Builds a graph from the vertices of another, taken in order.

    Parameters
    ----------
    graph : Graph
        The one to be rewritten.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._vertices: list[Vertex] = []
        self._places: list[Ref] = []  # of the old graph's vertices so far

    def ref(self, old: Ref) -> Ref:
        """Return what stands for a value of the old graph in the new one."""
        return old if old < 0 else self._places[old]

    def moved(self, vertex: Vertex) -> Vertex:
        """Return a vertex of the old graph with operands of the new one."""
        return vertex.reading(tuple(map(self.ref, vertex.operands)))

    def add(self, vertex: Vertex) -> int:
        """Add a vertex to the new graph, and return its place."""
        self._vertices.append(vertex)
        return len(self._vertices) - 1

    def settle(self, place: Ref) -> None:
        """Note what stands for the next vertex of the old graph."""
        self._places.append(place)

    def finish(self) -> Graph:
        """Return the new graph, whose outputs stand for those of the old one, in their order."""
        outputs = tuple(self._places[at] for at in self._graph.outputs)
        return Graph(self._graph.leaves, tuple(self._vertices), outputs)


class Captured(NamedTuple):
    """Pending nodes as a graph in the making, and what does not belong to it.

    Attributes
    ----------
    key : tuple
        The fields of the graph's leaves, of its vertices, and its outputs: cheap to make, and equal
        where the graphs are.
    leaves : list
        The values of the leaves.
    outputs : list of Node
        The nodes whose values are needed.
    """

    key: tuple[Any, ...]
    leaves: list[Value]
    outputs: list[Node]

    def graph(self) -> Graph:
        """Return the graph."""
        leaves, vertices, outputs = self.key
        return Graph(
            tuple(map(Leaf._make, leaves)),
            tuple(Vertex._make((*each, 1, 0, at)) for at, each in enumerate(vertices)),
            outputs,
        )


def capture(order: Sequence[Node]) -> Captured:
    """Return pending nodes, each after its operands, as a graph."""
    leaves = _Leaves()
    refs: dict[int, Ref] = {}  # by identity: all nodes and their operands are alive
    vertices = []
    read = set()
    for at, node in enumerate(order):
        operands = []
        for operand in node.operands:
            key = id(operand)
            ref = refs.get(key)
            if ref is None:
                ref = refs[key] = leaves.ref(value_of(operand))
            operands.append(ref)
        read.update(operands)
        refs[id(node)] = at
        vertices.append(
            (node.op, tuple(operands), node.shape, node.dtype, node.device, node.params)
        )
    needed = Needed(order)
    # A node that no other reads is one that was asked for, even if no array stands for it yet.
    outputs = {at for at, node in enumerate(order) if at not in read or needed.after(node)}
    # So is what an output is a view of: another view of it may be recorded meanwhile.
    viewed = (vertices[at][1][0] for at in tuple(outputs) if vertices[at][0] is Op.VIEW)
    outputs.update(ref for ref in viewed if ref >= 0)
    fields = tuple(leaves.fields), tuple(vertices), tuple(sorted(outputs))
    return Captured(fields, leaves.values, [order[at] for at in sorted(outputs)])


class _Leaves:
    """The values that pending nodes read; those that lay the same memory out alike are one."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.fields: list[tuple[Any, ...]] = []
        self._layouts: dict[tuple[Any, ...], Ref] = {}

    def ref(self, value: Value) -> Ref:
        """Return the place of a value, as a Ref."""
        if isinstance(value, Blocks):
            data, axis, constant = value.data, value.axis, True
            strides = data.strides[:-1]
        else:
            data, axis = value, None
            constant = value.base is not None and is_constant(value)
            strides = value.strides
        resident = residents(value) if constant else NOWHERE
        fields = (value.shape, value.dtype, strides, axis, constant, resident)
        if data.base is None:
            layout: tuple[Any, ...] = (id(data), value.dtype, axis)
        elif _is_whole(data):
            layout = (id(root_of(data)), value.dtype, axis)
        else:
            layout = layout_key(value)
        known = self._layouts.get(layout)
        if known is not None:
            return known
        self._layouts[layout] = ~len(self.values)
        self.values.append(value)
        self.fields.append(fields)
        return ~(len(self.values) - 1)


def _is_whole(view: Plain) -> bool:
    """Tell whether a view lays out all the memory of an array just as that does."""
    root = root_of(view)
    return (
        root.base is None
        and view.shape == root.shape
        and view.strides == root.strides
        and view.dtype == root.dtype
        and address(view) == address(root)
    )


def value_of(operand: Any) -> Any:
    """Return the value of an operand that is a computed node, a destination, or a value."""
    kind = type(operand)
    if kind is Node:
        return operand.value
    return operand.array() if kind is Destination else operand


class Needed:
    """Which values are needed after nodes have been computed; asked once for each memory."""

    def __init__(self, order: Iterable[Node]) -> None:
        self._computed = set(order)
        self._read_outside: dict[Storage, bool] = {}

    def after(self, node: Node) -> bool:
        """Tell whether the program, memory or another node waits for the value."""
        if node.held or node.writes is not None:
            return True
        storage = node.storage
        if storage is None:
            return False
        if storage not in self._read_outside:
            readers = storage.pending_readers()
            self._read_outside[storage] = any(each not in self._computed for each in readers)
        return self._read_outside[storage]
