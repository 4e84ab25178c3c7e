"""Scheduling: which nodes must be computed, in which order, by whom, in what memory.

A plan is data: making one computes nothing and touches no memory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from ggarray._graph.allocate import Interval, Place, lay_out
from ggarray._graph.node import Destination, Node, contiguous_strides
from ggarray._graph.products import as_matrix, stays_quantized
from ggarray._quantized.blocks import Blocks
from ggarray._runtime.plugins import candidates
from ggarray._storage import Plain, Storage
from ggarray.interface import PRODUCTS, BackendDevice, Kernel, Op, Tensor

ALIGNMENT = 64
"""Bytes that places in a plan's memory are multiples of: a line of any cache."""

# What the host may compute into the memory of an operand.
_IN_PLACE = frozenset({Op.ADD, Op.SCALE, Op.COPY})


# Smaller values have memory of their own while they are needed: placing them costs more.
_WORTH_PLACING = 1 << 16


@dataclass(eq=False, slots=True)
class Block:
    """Memory for a value, and for values computed in place of it.

    Attributes
    ----------
    shape, dtype
        Of the values.
    nbytes : int
        Bytes of a value.
    first, last : int
        The steps of the plan that write it first and use it last.
    kept : bool
        Something needs it after the plan, so it is memory of its own.
    place : Place or None
        Where it lies in the plan's chunks; None for memory of its own.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nbytes: int
    first: int
    last: int
    kept: bool = False
    place: Place | None = None

    def __str__(self) -> str:
        if self.place is not None:
            return f"chunk {self.place.chunk}, byte {self.place.offset}"
        return "kept" if self.kept else f"until step {self.last}"


class Step(NamedTuple):
    """One node of a plan.

    Attributes
    ----------
    node : Node
    device : BackendDevice or None
        Who computes it; None for the host.
    last_use : tuple of Node
        Nodes whose value nothing needs after this step.
    block : Block or None
        Where its value is written to; None for a view.
    replaces : Node or None
        The operand in whose place the value is computed: it has the same block.
    """

    node: Node
    device: BackendDevice | None
    last_use: tuple[Node, ...]
    block: Block | None
    replaces: Node | None


class Plan(NamedTuple):
    """Steps in the order in which they are computed, and the memory that they take.

    Attributes
    ----------
    steps : tuple of Step
    blocks : tuple of Block
    chunks : tuple of int
        Bytes of each piece of memory that blocks share and that goes after the plan.
    """

    steps: tuple[Step, ...]
    blocks: tuple[Block, ...]
    chunks: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The most bytes that the plan takes at one time."""
        changes = [0] * (len(self.steps) + 1)
        for block in self.blocks:
            if block.place is None:
                changes[block.first] += block.nbytes
                if not block.kept:
                    changes[block.last + 1] -= block.nbytes
        return sum(self.chunks) + max(accumulate(changes))

    def __str__(self) -> str:
        return "\n".join(
            f"{at:>4}  {step.node.op.value:<8}  {step.device.name if step.device else 'host':<10}"
            f"  {f'{step.node.dtype}{step.node.shape}':<24}  {step.block or 'view'}"
            for at, step in enumerate(self.steps)
        )


def pending_order(targets: Sequence[Node]) -> list[Node]:
    """Return the pending nodes that `targets` need and are, each after its operands."""
    if len(targets) == 1 and not any(map(is_pending, targets[0].operands)):
        return [target for target in targets if target.value is None]
    order: list[Node] = []
    done: set[Node] = set()
    stack = [target for target in reversed(targets) if target.value is None]
    while stack:
        node = stack[-1]
        waiting = [each for each in node.operands if is_pending(each) and each not in done]
        if waiting and node not in done:
            stack += reversed(waiting)  # the first operand first, its own operands before it
            continue
        stack.pop()
        if node not in done:
            done.add(node)
            order.append(node)
    return order


def is_pending(operand: Any) -> bool:
    """Tell whether an operand is a node whose value has not been computed."""
    return type(operand) is Node and operand.value is None


def is_chain(order: list[Node]) -> bool:
    """Tell whether each node but the first is computed in place of the one before, or views it.

    Such nodes, and one alone, need no plan: all share the memory of the first.
    """
    if len(order) > 1 and order[0].op is Op.VIEW:
        return False
    needed = None
    for before, node in pairwise(order):
        in_place = node.op in _IN_PLACE and _may_replace(node, before)
        if not in_place and node.op is not Op.VIEW:
            return False
        if any(is_pending(each) and each is not before for each in node.operands):
            return False
        needed = needed or _Needed(order)
        if needed.after(before):
            return False
    return True


def schedule(order: list[Node]) -> Plan:
    """Return the plan for pending nodes, given each after its operands."""
    reads = [[each for each in node.operands if is_pending(each)] for node in order]
    last_reader = {each: at for at, pending in enumerate(reads) for each in pending}
    needed = _Needed(order)
    memory = _Memory()
    steps = []
    for at, (node, pending) in enumerate(zip(order, reads, strict=True)):
        last_use = tuple(
            each
            for each in dict.fromkeys(pending)
            if last_reader[each] == at and not needed.after(each)
        )
        device = choose(node) if node.op in PRODUCTS else None
        block, replaces = memory.of_step(at, node, pending, last_use)
        steps.append(Step(node, device, last_use, block, replaces))
    chunks = memory.lay_out({each for step in steps for each in step.last_use})
    return Plan(tuple(steps), tuple(memory.blocks), chunks)


class _Memory:
    """The blocks that a plan needs, while its steps are gone through in order."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._of: dict[Node, Block] = {}  # where a node's value is, also that of a view

    def of_step(
        self, at: int, node: Node, pending: Iterable[Node], last_use: Iterable[Node]
    ) -> tuple[Block | None, Node | None]:
        """Note what step `at` reads and writes; return its block and which operand it replaces."""
        of = self._of
        for operand in pending:
            if operand in of:
                of[operand].last = at
                if node.op is Op.VIEW:
                    of[node] = of[operand]
        if node.op is Op.VIEW:
            return None, None
        if node.op in _IN_PLACE:
            for each in last_use:
                if _may_replace(node, each):
                    of[node] = of[each]
                    return of[each], each
        of[node] = Block(node.shape, node.dtype, node.nbytes, at, at)
        self.blocks.append(of[node])
        return of[node], None

    def lay_out(self, unused: set[Node]) -> tuple[int, ...]:
        """Place the blocks, return the chunks; nothing needs the values of `unused` afterwards."""
        for node, block in self._of.items():
            if node not in unused:
                block.kept = True
        shared = [each for each in self.blocks if not each.kept and each.nbytes >= _WORTH_PLACING]
        if not shared:
            return ()
        layout = lay_out(
            [Interval(each.nbytes, each.first, each.last) for each in shared], ALIGNMENT
        )
        for block, place in zip(shared, layout.places, strict=True):
            block.place = place
        return layout.chunks


def _may_replace(node: Node, operand: Node) -> bool:
    """Tell whether the value of `node` may be written over that of an operand used up by it."""
    return (
        operand.op is not Op.VIEW
        and operand.shape == node.shape
        and operand.dtype == node.dtype
        and not any(reader.op is Op.VIEW for reader in operand.books().pending_readers())
    )


class _Needed:
    """Which values are needed after the plan; asked once for all views of a piece of memory."""

    def __init__(self, order: list[Node]) -> None:
        self._planned = set(order)
        self._read_outside: dict[Storage, bool] = {}

    def after(self, node: Node) -> bool:
        """Tell whether the program, memory or a node outside the plan waits for the value."""
        if node.held or node.writes is not None:
            return True
        storage = node.storage
        if storage is None:
            return False
        if storage not in self._read_outside:
            readers = storage.pending_readers()
            self._read_outside[storage] = any(each not in self._planned for each in readers)
        return self._read_outside[storage]


def choose(node: Node) -> BackendDevice:
    """Return who computes a product that has not all its operands yet."""
    preferred, cpu = candidates(node.device)
    return choose_for(expected_kernel(node), node.device) if preferred else cpu


def expected_kernel(node: Node) -> Kernel:
    """Return what will be the kernel of a product, with a Tensor for each value not there yet."""
    left, right = node.operands
    a, b = _expected(left, node), _expected(right, node)
    if isinstance(a, Blocks) and isinstance(b, Blocks):
        b = Tensor(b.shape, node.dtype, contiguous_strides(b.shape, node.dtype.itemsize))
    operands = as_matrix(a, left=node.op is Op.MATMUL), as_matrix(b, left=False)
    shape = node.shape if node.op is Op.OUT_PROD else node.params
    out = Tensor(shape, node.dtype, contiguous_strides(shape, node.dtype.itemsize))
    return Kernel(node.op, operands, out)


def choose_for(kernel: Kernel, device: str) -> BackendDevice:
    """Return the first backend of the device that computes the kernel; the CPU always can."""
    preferred, cpu = candidates(device)
    for choice in preferred:
        if choice.supports_op(kernel):
            return choice
    return cpu


def _expected(operand: Node | Plain | Blocks | Destination, node: Node) -> Any:
    """Return what the kernel of `node` will see of an operand: plain ones in the node's dtype."""
    assert not isinstance(operand, Destination)
    if isinstance(operand, Blocks):
        if stays_quantized(operand, node.dtype):
            return operand
        strides = contiguous_strides(operand.shape, node.dtype.itemsize)
        return Tensor(operand.shape, node.dtype, strides)
    if operand.dtype == node.dtype and not isinstance(operand, Node):
        return operand
    return Tensor(operand.shape, node.dtype, operand.strides)
