"""Scheduling: in what memory the values of a graph are, until when, and what is copied."""

from collections.abc import Iterable, Sequence

from ggarray._graph.allocate import Interval, lay_out
from ggarray._graph.ir import Graph, Ref, Vertex
from ggarray._graph.order import IN_PLACE
from ggarray._graph.plan import Block, Copy, Plan, Split, Step
from ggarray._graph.split import WORTH_PLACING, Group, split
from ggarray.interface import HOST, BufferType, Flag, Op, Tensor


def schedule(graph: Graph) -> Plan:
    """Return the plan for a graph whose operands have been converted."""
    tensors = graph.tensors()
    return _Planner(graph, tensors, split(graph, tensors)).plan()


def _is_small(block: Block) -> bool:
    """Tell whether a block has memory of its own although others could use that later."""
    return block.nbytes < WORTH_PLACING and block.buffer_type.is_host


class _Planner:
    """Goes through the groups in order, and notes what each reads and writes, and when."""

    def __init__(self, graph: Graph, tensors: Sequence[Tensor], groups: Sequence[Group]) -> None:
        self.graph = graph
        self.tensors = tensors
        self.groups = groups
        self.roots = _roots(graph)
        self.reads = [self._read_by(vertex) for vertex in graph.vertices]
        order = [at for group in groups for at in group.vertices]
        self.last_reads: dict[int, int] = {}  # the step that reads a value last, also by a view
        for step, at in enumerate(order):
            for ref in self.reads[at]:
                self.last_reads[ref] = step
        self.step_of = {at: step for step, at in enumerate(order)}
        self.viewed = {root for at, root in enumerate(self.roots) if root != at}
        self.outputs = {*graph.outputs, *(self.roots[at] for at in graph.outputs)}
        self.blocks: list[Block] = []
        # Where a value is: its block in each memory, None for a constant that is kept there.
        self.places: dict[Ref, dict[BufferType, int | None]] = {}

    def _root_of(self, ref: Ref) -> Ref:
        return self.roots[ref] if ref >= 0 else ref

    def _read_by(self, vertex: Vertex) -> tuple[int, ...]:
        """Return the vertices that one reads: its operands, and what they are views of."""
        refs = {ref: None for ref in vertex.operands if ref >= 0}
        for ref in tuple(refs):
            if self.roots[ref] >= 0:
                refs[self.roots[ref]] = None
        return tuple(refs)

    def plan(self) -> Plan:
        """Return the plan."""
        splits = []
        start = 0
        for group in self.groups:
            copies = self._copies(group, start)
            steps = self._steps(group, start)
            splits.append(Split(group.device, group.memory, copies, steps))
            start += len(steps)
        results = self._results(start)
        if results:
            splits.append(Split(None, HOST, results, ()))
        chunks = self._lay_out()
        return Plan(self.graph, tuple(splits), tuple(self.blocks), chunks)

    def _copies(self, group: Group, start: int) -> tuple[Copy, ...]:
        """Note which values from outside a group have to be copied for it."""
        if group.memory is HOST and len(self.groups) == 1:
            return ()
        own = set(group.vertices)
        wanted: dict[Ref, None] = {}
        for at in group.vertices:
            vertex = self.graph.vertices[at]
            if vertex.op is not Op.VIEW:
                wanted.update(dict.fromkeys(map(self._root_of, vertex.operands)))
        return tuple(
            self._copy(root, group.memory, start)
            for root in wanted
            if root not in own and not self._is_in(root, group.memory)
        )

    def _is_in(self, root: Ref, memory: BufferType) -> bool:
        return (root < 0 and memory is HOST) or memory in self.places.get(root, ())

    def _copy(self, root: Ref, memory: BufferType, before: int) -> Copy:
        """Note the copy of a value to other memory, before a step."""
        here = self.places.setdefault(root, {})
        if root < 0 and self.graph.leaves[~root].constant:
            here[memory] = None
            return Copy(root, memory, None)
        for number in here.values():
            if number is not None:
                self.blocks[number].last = max(self.blocks[number].last, before)
        tensor = self.tensors[root] if root >= 0 else self.graph.tensor(root).contiguous()
        here[memory] = self._add(tensor, memory, before)
        return Copy(root, memory, here[memory])

    def _add(self, tensor: Tensor, memory: BufferType, step: int) -> int:
        self.blocks.append(Block(tensor, memory, memory.alloc_size(tensor), step, step))
        return len(self.blocks) - 1

    def _steps(self, group: Group, start: int) -> tuple[Step, ...]:
        steps = []
        end = start + len(group.vertices) - 1
        own = set(group.vertices)
        for step, (at, reason) in enumerate(zip(group.vertices, group.reasons, strict=True), start):
            vertex = self.graph.vertices[at]
            last_use = self._last_use(at, step)
            block, replaces = self._block(group, at, step, last_use)
            self._note_reads(group, at, step, end)
            flags = self._flags(at, own, end)
            steps.append(Step(at, vertex, reason, last_use, block, replaces, flags))
        for node, until in group.keep_until:
            longer = self.blocks[self._block_of(node, group.memory)]
            longer.last = max(longer.last, self.step_of[until])
        return tuple(steps)

    def _flags(self, at: int, own: set[int], end: int) -> Flag:
        """Return what a backend may know of a vertex in a split that ends with a step."""
        flags = Flag.COMPUTE
        if not any(ref in own for ref in self.reads[at]):
            flags |= Flag.INPUT
        if at in self.outputs or self.last_reads.get(at, 0) > end:
            flags |= Flag.OUTPUT
        return flags

    def _block_of(self, ref: Ref, memory: BufferType) -> int:
        block = self.places[self._root_of(ref)][memory]
        assert block is not None
        return block

    def _last_use(self, at: int, step: int) -> tuple[int, ...]:
        return tuple(
            ref
            for ref in self.reads[at]
            if self.last_reads[ref] == step and ref not in self.outputs
        )

    def _block(
        self, group: Group, at: int, step: int, last_use: Iterable[int]
    ) -> tuple[int | None, int | None]:
        """Return where a value goes, and the operand that it replaces, whose place it takes."""
        vertex = self.graph.vertices[at]
        if vertex.op is Op.VIEW:
            return None, None
        if group.device is None and vertex.op in IN_PLACE:
            for ref in last_use:
                if self._may_replace(vertex, ref):
                    block = self._block_of(ref, HOST)
                    self.places[at] = {HOST: block}
                    return block, ref
        memory = group.memory
        if memory is HOST and group.device is not None and group.device.buffer_type.is_host:
            memory = group.device.buffer_type
        block = self._add(self.tensors[at], memory, step)
        self.places[at] = {group.memory: block}
        return block, None

    def _may_replace(self, vertex: Vertex, ref: int) -> bool:
        """Tell whether a value may be written over that of an operand which it uses up."""
        operand = self.graph.vertices[ref]
        return (
            operand.op is not Op.VIEW
            and ref not in self.viewed
            and operand.shape == vertex.shape
            and operand.dtype == vertex.dtype
        )

    def _note_reads(self, group: Group, at: int, step: int, end: int) -> None:
        """Note until when the blocks that a step uses are needed."""
        for root in map(self._root_of, (at, *self.graph.vertices[at].operands)):
            here = self.places.get(root)
            number = None if here is None else here.get(group.memory)
            if number is not None:
                block = self.blocks[number]
                # Memory of its own goes when the backend has been called for all the group.
                last = end if group.device is not None and _is_small(block) else step
                block.last = max(block.last, last)

    def _results(self, end: int) -> tuple[Copy, ...]:
        """Note which results have to be copied to host memory at the end, and keep all."""
        roots = dict.fromkeys(self.roots[at] for at in self.graph.outputs)
        copies = [
            self._copy(root, HOST, end)
            for root in roots
            if root >= 0 and not self._is_in(root, HOST)
        ]
        for root in roots:
            if root >= 0:
                self.blocks[self._block_of(root, HOST)].kept = True
        return tuple(copies)

    def _lay_out(self) -> dict[BufferType, tuple[int, ...]]:
        """Give blocks their places in chunks, by type of memory."""
        shared: dict[BufferType, list[Block]] = {}
        for block in self.blocks:
            if not (block.buffer_type.is_host and block.kept) and not _is_small(block):
                shared.setdefault(block.buffer_type, []).append(block)
        chunks = {}
        for buffer_type, blocks in shared.items():
            layout = lay_out(
                [Interval(max(each.nbytes, 1), each.first, each.last) for each in blocks],
                buffer_type.alignment,
                buffer_type.max_size,
            )
            for block, place in zip(blocks, layout.places, strict=True):
                block.place = place
            chunks[buffer_type] = layout.chunks
        return chunks


def _roots(graph: Graph) -> list[Ref]:
    """Return for each vertex the value in whose memory it is: itself unless it is a view."""
    roots: list[Ref] = []
    for at, vertex in enumerate(graph.vertices):
        if vertex.op is Op.VIEW:
            (base,) = vertex.operands
            roots.append(roots[base] if base >= 0 else base)
        else:
            roots.append(at)
    return roots
