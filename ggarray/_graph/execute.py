"""Evaluation: computes nodes into fresh memory, then publishes all values together.

Until the last step nothing that the program can see changes: after an error or Ctrl-C the nodes
are pending as before, and evaluating them again gives the result.
"""

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np

from ggarray._graph import products
from ggarray._graph.node import Destination, Node, address, part, pending
from ggarray._graph.schedule import (
    ALIGNMENT,
    Block,
    Plan,
    choose,
    choose_for,
    is_chain,
    is_pending,
    pending_order,
    schedule,
)
from ggarray._graph.source import location
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import QuantizedDType
from ggarray._runtime.options import settings
from ggarray._runtime.plugins import candidates
from ggarray._runtime.profile import profiles, record
from ggarray._runtime.threads import get_num_threads
from ggarray._storage import Plain, adopt
from ggarray.interface import PRODUCTS, BackendDevice, BackendError, Kernel, Op, Value

# One evaluation at a time: who needs a node that another thread computes waits for it here, and
# two thread pools are never busy at once.
evaluation = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child must not inherit the lock of a thread it lacks
    os.register_at_fork(
        before=evaluation.acquire,
        after_in_parent=evaluation.release,
        after_in_child=evaluation.release,
    )


def evaluate(targets: Sequence[Node]) -> None:
    """Compute the nodes that are still pending, together, and what they need."""
    if not targets:
        return
    with evaluation:
        for node in targets:
            if node.value is not None and node.writes is not None:
                _deliver(node)  # an interrupt came between
        order = pending_order(targets)
        options = settings()
        if options.fallback == "error":
            _check_backends(order)
        limit = options.memory_limit
        if not order:
            return
        first, last = order[0], order[-1]
        if first is last or is_chain(order):  # the short path: no plan
            if limit is not None and first.op is not Op.VIEW:
                _check_memory(first.nbytes, limit, order)
            _give(last, _compute(first, first.operands) if first is last else _run_chain(order))
            _close(last)
        else:
            plan = schedule(order)
            if limit is not None:
                _check_memory(plan.nbytes, limit, order)
            _publish(order, _run(plan))


def evaluate_pending() -> None:
    """Compute everything pending that the program can still see."""
    nodes = (ref() for ref in list(pending))
    evaluate([node for node in nodes if node is not None and (node.held or node.writes)])


def _check_backends(order: list[Node]) -> None:
    """Raise BackendError if a product would be left to our kernels by its device's own backend."""
    for node in order:
        preferred, cpu = candidates(node.device)
        if node.op in PRODUCTS and preferred and choose(node) is cpu:
            a, b = (f"{operand.dtype}{operand.shape}" for operand in node.operands)
            error = BackendError(
                f"{node.device} does not take {node.op.value} of {a} and {b}, and the option"
                " fallback is 'error'"
            )
            _note_source(error, node)
            raise error


def _note_source(error: Exception, node: Node) -> None:
    if node.source is not None:
        error.add_note(f"recorded at {location(node.source)}")


def _check_memory(nbytes: int, limit: int, order: list[Node]) -> None:
    """Raise MemoryError if an evaluation takes more memory than is allowed."""
    if nbytes > limit:
        raise MemoryError(
            f"evaluating {len(order)} pending operations takes {nbytes} bytes,"
            f" the option memory_limit allows {limit}"
        )


def _run_chain(order: list[Node]) -> Value:
    """Return the value of the last node, each computed in the place of the one before."""
    first, *rest = order
    value = _compute(first, first.operands, at=0)
    for at, node in enumerate(rest, start=1):
        assert not isinstance(value, Blocks)
        operands = [value if is_pending(each) else each for each in node.operands]
        value = _compute(node, operands, value, at=at)
    return value


def _run(plan: Plan) -> dict[Node, Value]:
    """Return the values that are needed after a plan."""
    values: dict[Node, Value] = {}
    chunks = [_aligned(size) for size in plan.chunks]
    for at, step in enumerate(plan.steps):
        if step.node.value is None:  # else a signal handler has asked for it in between
            operands = [
                values.get(each, each) if type(each) is Node else each
                for each in step.node.operands
            ]
            out: Any = values.get(step.replaces) if step.replaces is not None else None
            if out is None and step.block is not None:
                out = _memory_of(step.block, chunks)
            values[step.node] = _compute(step.node, operands, out, step.device, at)
        for node in step.last_use:
            values.pop(node, None)
    return values


def _memory_of(block: Block, chunks: Sequence[Plain]) -> Plain:
    """Return the array of a block: its part of a chunk, or memory of its own."""
    if block.place is None:
        return np.empty(block.shape, block.dtype)
    chunk, offset = block.place
    return np.ndarray(block.shape, block.dtype, chunks[chunk], offset)


def _aligned(size: int) -> Plain:
    """Return bytes at an address that is a multiple of the alignment of plans."""
    data = np.empty(size + ALIGNMENT, np.uint8)
    start = -address(data) % ALIGNMENT
    return data[start : start + size]


def _compute(
    node: Node,
    operands: Iterable[Any],
    out: Plain | None = None,
    device: BackendDevice | None = None,
    at: int | None = None,
) -> Value:
    """Return the value of a node whose operands have been computed.

    It is written to `out`, or to fresh memory. A plan says who computes it in which step `at`.
    """
    values = [value_of(operand) for operand in operands]
    start = perf_counter_ns() if profiles else 0
    if node.op is Op.VIEW:
        out = _view(node, values[0])
    else:
        if out is None:
            out = np.empty(node.shape, node.dtype)
        if node.op in PRODUCTS:
            a, b = values
            kernel = _kernel(node, a, b, out)
            device = device or choose_for(kernel, node.device)
            try:
                products.run(kernel, device, get_num_threads())
            except Exception as error:
                _note_source(error, node)
                raise
        else:
            _ON_HOST[node.op](node, values, out)
    if start:
        record(node, values, device, at, start)
    return out


def value_of(operand: Any) -> Any:
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
    with evaluation:
        products.run(kernel, choose_for(kernel, device), get_num_threads())


def _converted(operand: Value, node: Node) -> Value:
    """Return an operand of a product as kernels take it: in the product's dtype, or quantized."""
    if type(operand) is Blocks:
        if products.stays_quantized(operand, node.dtype):
            return operand
        operand = dequantize(operand, node.device)
    assert not isinstance(operand, Blocks)
    return operand if operand.dtype == node.dtype else operand.astype(node.dtype)


def _view(node: Node, base: Plain) -> Plain:
    strides, offset, writeable = node.params
    view = part(base, node.shape, strides, offset, node.dtype)
    view.flags.writeable = writeable
    return view


# The host's part: what is neither a product nor a view. Each takes the node, its operands, and
# memory for the value, which may be that of an operand.


def _copy(node: Node, operands: list[Any], out: Plain) -> None:
    np.copyto(out, operands[0], casting="unsafe")


def _add(node: Node, operands: list[Any], out: Plain) -> None:
    combine = np.subtract if node.params else np.add
    combine(operands[0], operands[1], out=out, casting="same_kind")


def _scale(node: Node, operands: list[Any], out: Plain) -> None:
    if node.params is None:
        np.negative(operands[0], out=out)
    else:
        np.multiply(operands[0], node.params, out=out)


_ON_HOST: dict[Op, Callable[[Node, list[Any], Plain], None]] = {
    Op.COPY: _copy,
    Op.ADD: _add,
    Op.SCALE: _scale,
}


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
