"""Evaluation: computes nodes into fresh memory, then publishes all values together.

Until the last step nothing that the program can see changes: after an error or Ctrl-C the nodes
are pending as before, and evaluating them again gives the result.
"""

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ggarray._graph import products
from ggarray._graph.node import Destination, Node, part, pending
from ggarray._graph.schedule import Step, choose_for, is_pending, pending_order, schedule
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import QuantizedDType
from ggarray._runtime.threads import get_num_threads
from ggarray._storage import Plain, adopt
from ggarray.interface import PRODUCTS, Kernel, Op, Value

# One evaluation at a time: who needs a node that another thread computes waits for it here, and
# two thread pools are never busy at once.
_evaluation = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child must not inherit the lock of a thread it lacks
    os.register_at_fork(
        before=_evaluation.acquire,
        after_in_parent=_evaluation.release,
        after_in_child=_evaluation.release,
    )


def evaluate(targets: Sequence[Node]) -> None:
    """Compute the nodes that are still pending, together, and what they need."""
    if not targets:
        return
    with _evaluation:
        for node in targets:
            if node.value is not None and node.writes is not None:
                _deliver(node)  # an interrupt came between
        order = pending_order(targets)
        if len(order) == 1:  # the short path: no plan
            (node,) = order
            _give(node, _compute(node, node.operands, None))
            _close(node)
        elif order:
            _publish(order, _run(schedule(order).steps))


def evaluate_pending() -> None:
    """Compute everything pending that the program can still see."""
    nodes = (ref() for ref in list(pending))
    evaluate([node for node in nodes if node is not None and (node.held or node.writes)])


def _run(steps: Iterable[Step]) -> dict[Node, Value]:
    values: dict[Node, Value] = {}
    for step in steps:
        if step.node.value is not None:  # a signal handler has asked for it in between
            continue
        operands = [values[each] if is_pending(each) else each for each in step.node.operands]
        values[step.node] = _compute(step.node, operands, step)
        for node in step.last_use:
            values.pop(node, None)
    return values


def _compute(node: Node, operands: Iterable[Any], step: Step | None) -> Value:
    """Return the value of a node whose operands have been computed, in fresh memory."""
    values = [_value(operand) for operand in operands]
    if node.op not in PRODUCTS:
        return _ON_HOST[node.op](node, values, _spare(node, values, step))
    out = np.empty(node.shape, node.dtype)
    a, b = values
    kernel = _kernel(node, a, b, out)
    device = choose_for(kernel, node.device) if step is None or step.device is None else step.device
    products.run(kernel, device, get_num_threads())
    return out


def _value(operand: Any) -> Any:
    """Return the value of an operand that is a computed node, a destination, or a value."""
    kind = type(operand)
    if kind is Node:
        return operand.value
    return operand.array() if kind is Destination else operand


def _kernel(node: Node, a: Value, b: Value, out: Plain) -> Kernel:
    """Return the kernel of a product: operands in its dtype or quantized, vectors as matrices."""
    if a.dtype is not node.dtype:
        a = _converted(a, node)
    if b.dtype is not node.dtype:
        b = _converted(b, node)
    if node.op is Op.OUT_PROD:
        return Kernel(node.op, (_as_column(a, node), _as_column(b, node)), out)
    if type(a) is Blocks and type(b) is Blocks:
        b = dequantize(b, node.device)
    if len(a.shape) == 1:
        a = products.as_matrix(a, left=True)
    if len(b.shape) == 1:
        b = products.as_matrix(b, left=False)
    return Kernel(node.op, (a, b), out.reshape(node.params) if node.params != node.shape else out)


def _as_column(operand: Value, node: Node) -> Plain:
    """Return a vector operand of an outer product as a plain column."""
    if isinstance(operand, Blocks):
        operand = dequantize(operand, node.device)
    return operand[:, None]


def dequantize(blocks: Blocks, device: str) -> Plain:
    """Return quantized values as a new float32 array."""
    out = np.empty(blocks.shape, np.float32)
    _copy_now(Kernel(Op.COPY, (blocks,), out), device)
    return out


def quantize(value: Plain, dtype: QuantizedDType, device: str) -> Blocks:
    """Return the blocks of a contiguous float32 array, quantized along its last axis."""
    shape = (*value.shape[:-1], value.shape[-1] // dtype.block_size, dtype.block_bytes)
    blocks = Blocks(np.empty(shape, np.uint8), dtype)
    _copy_now(Kernel(Op.COPY, (value,), blocks), device)
    return blocks


def _copy_now(kernel: Kernel, device: str) -> None:
    with _evaluation:
        products.run(kernel, choose_for(kernel, device), get_num_threads())


def _converted(operand: Value, node: Node) -> Value:
    """Return an operand of a product as kernels take it: in the product's dtype, or quantized."""
    if type(operand) is Blocks:
        if products.stays_quantized(operand, node.dtype):
            return operand
        operand = dequantize(operand, node.device)
    assert not isinstance(operand, Blocks)
    return operand if operand.dtype == node.dtype else operand.astype(node.dtype)


# The host's part: what is not a product. Each takes the node, its operands, and memory of the
# node's shape and dtype that it may write to.


def _view(node: Node, operands: list[Any], _: Plain | None) -> Plain:
    strides, offset, writeable = node.params
    view = part(operands[0], node.shape, strides, offset, node.dtype)
    view.flags.writeable = writeable
    return view


def _copy(node: Node, operands: list[Any], out: Plain | None) -> Plain:
    out = np.empty(node.shape, node.dtype) if out is None else out
    np.copyto(out, operands[0], casting="unsafe")
    return out


def _add(node: Node, operands: list[Any], out: Plain | None) -> Plain:
    out = np.empty(node.shape, node.dtype) if out is None else out
    combine = np.subtract if node.params else np.add
    combine(operands[0], operands[1], out=out, casting="same_kind")
    return out


def _scale(node: Node, operands: list[Any], out: Plain | None) -> Plain:
    out = np.empty(node.shape, node.dtype) if out is None else out
    if node.params is None:
        np.negative(operands[0], out=out)
    else:
        np.multiply(operands[0], node.params, out=out)
    return out


_ON_HOST: dict[Op, Callable[[Node, list[Any], Plain | None], Plain]] = {
    Op.VIEW: _view,
    Op.COPY: _copy,
    Op.ADD: _add,
    Op.SCALE: _scale,
}


def _spare(node: Node, operands: list[Any], step: Step | None) -> Plain | None:
    """Return the memory of an operand that nothing needs after this step, if it fits the value."""
    if step is None or not step.last_use or node.op is Op.VIEW:
        return None
    for operand, value in zip(node.operands, operands, strict=True):
        if (
            type(operand) is Node
            and operand in step.last_use
            and operand.value is None
            and operand.op is not Op.VIEW
            and value.shape == node.shape
            and value.dtype == node.dtype
            and not any(reader.op is Op.VIEW for reader in operand.books().pending_readers())
        ):
            spare: Plain = value
            return spare
    return None


def _publish(order: list[Node], values: dict[Node, Value]) -> None:
    """Make the values known. An interrupt in between leaves a state that another try completes."""
    for node in order:
        if node in values:
            _give(node, values[node])
    for node in order:
        if node.value is not None:  # else nobody needs it any more, or it will be computed again
            _close(node)


def _give(node: Node, value: Value) -> None:
    """Give a node its value, unless a signal handler has had it computed in between."""
    if node.value is None:
        if node.storage is not None and node.writes is None and type(value) is np.ndarray:
            adopt(node.storage, value)
        node.value = value


def _close(node: Node) -> None:
    """Close the books of a node that has its value; may be done again."""
    pending.discard(node.ref)
    for storage in node.reads:
        storage.readers.pop(node.ref, None)
    if node.writes is not None:
        _deliver(node)
    node.operands = node.keeps = ()
    node.reads.clear()


def _deliver(node: Node) -> None:
    """Write the value of an in-place update to where it belongs."""
    destination = node.writes
    assert destination is not None
    target = destination.array()
    np.copyto(target, node.value)  # type: ignore[arg-type]  # sums are plain
    destination.storage.set_writer(None)
    node.value = target
    node.writes = None
