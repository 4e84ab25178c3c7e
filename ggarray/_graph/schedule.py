"""Scheduling: which nodes must be computed, in which order, by whom. A plan is data."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ggarray._graph.node import Destination, Node, contiguous_strides
from ggarray._graph.products import as_matrix, stays_quantized
from ggarray._quantized.blocks import Blocks
from ggarray._runtime.plugins import candidates
from ggarray._storage import Plain, Storage
from ggarray.interface import PRODUCTS, BackendDevice, Kernel, Op, Tensor


class Step(NamedTuple):
    """One node of a plan.

    Attributes
    ----------
    node : Node
    device : BackendDevice or None
        Who computes it; None for the host.
    last_use : tuple of Node
        Nodes whose value nothing needs after this step.
    """

    node: Node
    device: BackendDevice | None
    last_use: tuple[Node, ...]


class Plan(NamedTuple):
    """Steps in the order in which they are computed."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "\n".join(
            f"{at:>4}  {step.node.op.value:<8}  {step.device.name if step.device else 'host':<10}"
            f"  {step.node.dtype}{step.node.shape}"
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


def schedule(order: list[Node]) -> Plan:
    """Return the plan for pending nodes, given each after its operands."""
    last_reader = {each: node for node in order for each in node.operands if is_pending(each)}
    needed = _Needed(order)
    steps = []
    for node in order:
        last_use = tuple(
            each
            for each in {each for each in node.operands if is_pending(each)}
            if last_reader[each] is node and not needed.after(each)
        )
        steps.append(Step(node, choose(node) if node.op in PRODUCTS else None, last_use))
    return Plan(tuple(steps))


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
    if not preferred:
        return cpu
    a, b = (_expected(operand, node) for operand in node.operands)
    if isinstance(a, Blocks) and isinstance(b, Blocks):
        b = Tensor(b.shape, node.dtype, contiguous_strides(b.shape, node.dtype.itemsize))
    operands = as_matrix(a, left=node.op is Op.MATMUL), as_matrix(b, left=False)
    shape = node.shape if node.op is Op.OUT_PROD else node.params
    out = Tensor(shape, node.dtype, contiguous_strides(shape, node.dtype.itemsize))
    return choose_for(Kernel(node.op, operands, out), node.device)


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
