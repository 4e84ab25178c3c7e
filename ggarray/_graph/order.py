"""Which pending nodes have to be computed, and in which order."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ggarray._graph.ir import Needed
from ggarray._graph.node import Node
from ggarray.interface import Op

# What the host may compute into the memory of an operand.
IN_PLACE = frozenset({Op.ADD, Op.SCALE, Op.COPY})


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
        in_place = node.op in IN_PLACE and _may_replace(node, before)
        if not in_place and node.op is not Op.VIEW:
            return False
        if any(is_pending(each) and each is not before for each in node.operands):
            return False
        needed = needed or Needed(order)
        if needed.after(before):
            return False
    return True


def _may_replace(node: Node, operand: Node) -> bool:
    """Tell whether the value of `node` may be written over that of an operand used up by it."""
    return (
        operand.op is not Op.VIEW
        and operand.shape == node.shape
        and operand.dtype == node.dtype
        and not any(reader.op is Op.VIEW for reader in operand.books().pending_readers())
    )
