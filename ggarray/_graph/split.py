"""Splitting a graph: operations that one device computes together, in one call if it can."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ggarray._graph.assign import choose, is_computed_by_backend, kernel_of, works_in
from ggarray._graph.ir import Graph, Ref, Vertex
from ggarray._runtime.plugins import stream
from ggarray._runtime.profile import multiply_adds
from ggarray.interface import (
    HOST,
    PRODUCTS,
    BackendDevice,
    BackendError,
    Buffer,
    BufferType,
    GraphOptimize,
    Kernel,
    Op,
    Tensor,
)
from ggarray.interface.buffers import Bytes

# Smaller values in host memory have memory of their own while they are needed: placing them costs
# more.
WORTH_PLACING = 1 << 16

# A group that computes in host memory ends after so many multiply-adds, so that Python gets a turn,
# and after so many bytes of values that have memory of their own, which go when it ends.
_MOST_WORK = 1 << 24
_MOST_BYTES = 1 << 20

ON_HOST = {
    Op.VIEW: "a view: no element moves",
    Op.COPY: "a conversion: NumPy computes it",
    Op.ADD: "a sum: NumPy computes it",
    Op.SCALE: "a scaling: NumPy computes it",
}
"""What the host computes, and why it does."""


@dataclass
class Group:
    """Vertices that follow each other and are computed by one device.

    Attributes
    ----------
    device : BackendDevice or None
        None for the host.
    memory : BufferType
        That of operands and results.
    vertices : list of int
    reasons : list of str
        Why the device computes each.
    keep_until : list of pairs of int
        Vertices whose memory is to be kept until after another.
    """

    device: BackendDevice | None
    memory: BufferType
    vertices: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    keep_until: list[tuple[int, int]] = field(default_factory=list)


def split(graph: Graph, tensors: Sequence[Tensor]) -> list[Group]:
    """Return the vertices in groups; `tensors` are the layouts of their values."""
    groups: list[Group] = []
    work = nbytes = 0
    for at, vertex in enumerate(graph.vertices):
        if vertex.op is Op.VIEW and groups:  # no element moves, so anybody may do it
            groups[-1].vertices.append(at)
            groups[-1].reasons.append(ON_HOST[Op.VIEW])
            continue
        device, reason, more = None, "", 0
        if is_computed_by_backend(graph, vertex):
            device, reason = choose(graph, vertex)
            more = _work(graph, vertex)
        group = groups[-1] if groups else None
        full = work + more > _MOST_WORK or nbytes > _MOST_BYTES
        if group is None or group.device is not device or (full and group.memory is HOST):
            group = Group(device, HOST if device is None else works_in(device))
            groups.append(group)
            work = nbytes = 0
        group.vertices.append(at)
        group.reasons.append(reason or ON_HOST[vertex.op])
        if device is not None:
            work += more
            size = tensors[at].nbytes
            nbytes += size if size < WORTH_PLACING else 0
    return [_optimized(graph, group) for group in groups]


def _work(graph: Graph, vertex: Vertex) -> int:
    """Return the multiply-adds of a product; of a conversion its elements."""
    if vertex.op in PRODUCTS:
        return multiply_adds(vertex, [graph.tensor(ref) for ref in vertex.operands[:1]])
    return math.prod(vertex.shape)


def _optimized(graph: Graph, group: Group) -> Group:
    """Have the stream of a group's device put its nodes in order, if it wants to."""
    if group.device is None or len(group.vertices) == 1:
        return group
    backend = stream(group.device)
    if not isinstance(backend, GraphOptimize):
        return group
    computed = [at for at in group.vertices if graph.vertices[at].op is not Op.VIEW]
    kernels = _kernels(graph, computed)
    keep: list[tuple[int, int]] = []
    order = list(backend.graph_optimize(kernels, lambda node, until: keep.append((node, until))))
    if sorted(order) != list(range(len(computed))):
        raise BackendError(
            f"{backend.name}: graph_optimize gave {order}, no order of {len(computed)} nodes"
        )
    vertices = _with_views(graph, [computed[place] for place in order], group.vertices)
    places = {at: place for place, at in enumerate(vertices)}
    for at in vertices:
        for ref in graph.vertices[at].operands:
            if places.get(ref, -1) > places[at]:
                raise BackendError(
                    f"{backend.name}: graph_optimize put %{at} before %{ref}, which it reads"
                )
    why = dict(zip(group.vertices, group.reasons, strict=True))
    return Group(
        group.device,
        group.memory,
        vertices,
        [why[at] for at in vertices],
        [(computed[order[node]], computed[order[until]]) for node, until in keep],
    )


def _kernels(graph: Graph, computed: Sequence[int]) -> list[Kernel]:
    """Return kernels of which operands have the buffer of the result that they are, or view."""
    memory: dict[Ref, Buffer] = {at: _Later(HOST, 0) for at in computed}
    for at, vertex in enumerate(graph.vertices):
        if vertex.op is Op.VIEW and vertex.operands[0] in memory:
            memory[at] = memory[vertex.operands[0]]
    kernels: list[Kernel] = []
    for at in computed:
        vertex = graph.vertices[at]
        kernel = kernel_of(graph, vertex)
        buffers = [memory.get(ref) for ref in vertex.operands]
        tensors = zip(kernel.operands, buffers, strict=False)
        kernel.operands = tuple(tensor._replace(buffer=buffer) for tensor, buffer in tensors)
        if kernel.bias is not None:
            kernel.bias = kernel.bias._replace(buffer=buffers[2])
        kernel.out = kernel.out._replace(buffer=memory[at])
        kernels.append(kernel)
    return kernels


class _Later(Buffer):
    """Stands for memory that a value has not got yet."""

    @property
    def base(self) -> int:
        """There is none."""
        raise ValueError("this value has no memory yet")

    def set_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """There is nothing to write to."""
        raise ValueError("this value has no memory yet")

    def get_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """There is nothing to read."""
        raise ValueError("this value has no memory yet")


def _with_views(graph: Graph, order: Sequence[int], group: Sequence[int]) -> list[int]:
    """Return vertices in an order, and each view of the group right after what it is of."""
    inside = set(group)
    views: dict[int, list[int]] = {}
    free: list[int] = []
    for at in group:
        if graph.vertices[at].op is Op.VIEW:
            (base,) = graph.vertices[at].operands
            (views.setdefault(base, []) if base in inside else free).append(at)
    vertices = []
    stack = [*reversed(order), *reversed(free)]
    while stack:
        at = stack.pop()
        vertices.append(at)
        stack += reversed(views.get(at, ()))
    return vertices
