"""Plans: what an evaluation does, step by step, as data.

Nothing here computes anything or touches memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, count
from typing import NamedTuple

from ggarray._graph.allocate import Place
from ggarray._graph.ir import Graph, Ref, Vertex
from ggarray.interface import BackendDevice, BufferType, Flag, Tensor


@dataclass(slots=True)
class Block:
    """Memory for a value, and for values computed in place of it.

    Attributes
    ----------
    tensor : Tensor
        The layout of the values, in no buffer.
    buffer_type : BufferType
        The memory.
    nbytes : int
        Bytes of a value in such memory.
    first, last : int
        The steps of the plan that write it first and use it last. A copy is written before a step.
    kept : bool
        It is a result of the plan, so it is memory of its own.
    place : Place or None
        Where it lies in the plan's chunks; None for memory of its own.
    """

    tensor: Tensor
    buffer_type: BufferType
    nbytes: int
    first: int
    last: int
    kept: bool = False
    place: Place | None = None

    def __str__(self) -> str:
        if self.place is not None:
            return f"{self.buffer_type.name} chunk {self.place.chunk}, byte {self.place.offset}"
        return "kept" if self.kept else f"until step {self.last}"


class Copy(NamedTuple):
    """A value that a split needs in other memory than it is in.

    Attributes
    ----------
    value : Ref
        A leaf, or a vertex that is no view.
    target : BufferType
        The memory it is copied to.
    block : int or None
        Its place there among the plan's blocks; None for a constant, which is kept there.
    """

    value: Ref
    target: BufferType
    block: int | None

    def __str__(self) -> str:
        where = "for good" if self.block is None else f"block {self.block}"
        name = f"x{~self.value}" if self.value < 0 else f"%{self.value}"
        return f"copy {name} to {self.target.name}, {where}"


class Step(NamedTuple):
    """One operation of a plan.

    Attributes
    ----------
    at : int
        The vertex of the graph.
    vertex : Vertex
    reason : str
        Why the split's device computes it.
    last_use : tuple of int
        Vertices whose value nothing needs after this step.
    block : int or None
        Where its value is written to, among the plan's blocks; None for a view.
    replaces : int or None
        The vertex in whose place the value is computed: it has the same block.
    flags : Flag
        As of `ggarray.interface.Kernel`, within its split.
    """

    at: int
    vertex: Vertex
    reason: str
    last_use: tuple[int, ...]
    block: int | None
    replaces: int | None
    flags: Flag


class Split(NamedTuple):
    """Steps that one device computes together, and the copies that they need first.

    Attributes
    ----------
    device : BackendDevice or None
        None for the host.
    memory : BufferType
        That of operands and results; see `ggarray._graph.assign.works_in`.
    copies : tuple of Copy
    steps : tuple of Step
    """

    device: BackendDevice | None
    memory: BufferType
    copies: tuple[Copy, ...]
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        """Who computes it."""
        return "host" if self.device is None else self.device.name


class Plan(NamedTuple):
    """What an evaluation does.

    Attributes
    ----------
    graph : Graph
        What is computed.
    splits : tuple of Split
        In order; the last may be copies only, of results.
    blocks : tuple of Block
    chunks : dict of BufferType to tuple of int
        Bytes of each piece of memory that blocks share and that goes after the plan.
    """

    graph: Graph
    splits: tuple[Split, ...]
    blocks: tuple[Block, ...]
    chunks: dict[BufferType, tuple[int, ...]]

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all splits."""
        return tuple(step for split in self.splits for step in split.steps)

    @property
    def nbytes(self) -> int:
        """The most bytes that the plan takes at one time, in all memories together."""
        changes = [0] * (len(self.graph.vertices) + 2)
        for block in self.blocks:
            if block.place is None:
                changes[block.first] += block.nbytes
                if not block.kept:
                    changes[block.last + 1] -= block.nbytes
        shared = sum(sum(sizes) for sizes in self.chunks.values())
        copies = (copy for split in self.splits for copy in split.copies if copy.block is None)
        return shared + sum(map(self._constant_bytes, copies)) + max(accumulate(changes))

    def _constant_bytes(self, copy: Copy) -> int:
        """Return the bytes of the copy of a constant; 0 where there is one."""
        device = copy.target.device
        if device is not None and device.name in self.graph.leaves[~copy.value].resident:
            return 0
        return copy.target.alloc_size(self.graph.tensor(copy.value).contiguous())

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterable[str]:
        place = count()
        for number, split in enumerate(self.splits):
            yield f"split {number} on {split.name}"
            yield from (f"      {copy}" for copy in split.copies)
            for step in split.steps:
                vertex = step.vertex
                where = "view" if step.block is None else str(self.blocks[step.block])
                yield (
                    f"{next(place):>4}  {f'%{step.at}':<5}  {vertex.op.value:<8}  {split.name:<10}"
                    f"  {f'{vertex.dtype}{vertex.shape}':<24}  {where}; {step.reason}"
                )
        for buffer_type, sizes in self.chunks.items():
            yield f"{buffer_type.name}: {sum(sizes)} bytes in {len(sizes)} chunks"
