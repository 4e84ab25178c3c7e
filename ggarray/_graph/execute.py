"""Evaluation: computes nodes into fresh memory, then publishes all values together.

Until the last step nothing that the program can see changes: after an error or Ctrl-C the nodes
are pending as before, and evaluating them again gives the result.
"""

import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter_ns
from typing import Any

import numpy as np

from ggarray._graph import aside, host, memory, products
from ggarray._graph.assign import choose_for, is_direct, takes
from ggarray._graph.ir import Captured, Vertex, capture, value_of
from ggarray._graph.lower import lower
from ggarray._graph.node import Node, pending
from ggarray._graph.optimize import optimize
from ggarray._graph.order import is_chain, pending_order
from ggarray._graph.plan import Plan
from ggarray._graph.plan_cache import Kept, kept_plan
from ggarray._graph.run import run
from ggarray._graph.schedule import schedule
from ggarray._graph.source import location
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import QuantizedDType
from ggarray._runtime import plugins
from ggarray._runtime.options import Settings, settings
from ggarray._runtime.profile import profiles, record
from ggarray._runtime.threads import get_num_threads
from ggarray._storage import Plain, adopt, root_of
from ggarray.interface import HOST, PRODUCTS, BackendError, Kernel, Op, Value

# One evaluation at a time: who needs a node that another thread computes waits for it here, and
# two thread pools are never busy at once.
evaluation = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child must not inherit the lock of a thread it lacks
    os.register_at_fork(
        before=evaluation.acquire,
        after_in_parent=evaluation.release,
        after_in_child=evaluation.release,
    )

# Where the last value of a chain is larger, rewriting it saves more than a plan costs.
_WORTH_REWRITING = 1 << 16


_nothing = nullcontext()


def exclusively() -> AbstractContextManager[Any]:
    """Return what lets no other evaluation in; who waits for a call aside lets that one in."""
    return _nothing if aside.is_here() else evaluation


def evaluate(targets: Sequence[Node]) -> None:
    """Compute the nodes that are still pending, together, and what they need."""
    if not targets:
        return
    with exclusively():
        if aside.is_busy() and not aside.is_here():
            aside.wait()
        for node in targets:
            if node.value is not None and node.writes is not None:
                _deliver(node)  # an interrupt came between
        options = settings()
        while order := pending_order(targets):
            # A signal handler may compute some of these nodes meanwhile, and then write to memory
            # that others read. What was computed here is of no use then.
            try:
                values = _computed(order, options)
            except Exception:
                if _are_pending(order):
                    raise
                continue
            if _are_pending(order):
                _publish(order, values)
                if _are_computed(targets):
                    return


def _are_pending(nodes: Sequence[Node]) -> bool:
    return all([node.value is None for node in nodes])


def _are_computed(nodes: Sequence[Node]) -> bool:
    return not any([node.value is None for node in nodes])


def evaluate_pending() -> None:
    """Compute everything pending that the program can still see."""
    nodes = (ref() for ref in list(pending))
    evaluate([node for node in nodes if node is not None and (node.held or node.writes)])


def _computed(order: list[Node], options: Settings) -> dict[Node, Value]:
    """Return the values that are needed after nodes have been computed."""
    first, last = order[0], order[-1]
    if options.fallback == "error":
        _check_backends(order, _planned(capture(order), options).plan)
    alone = first is last
    small = last.nbytes < _WORTH_REWRITING or not options.fuse
    if options.memory_limit is None and (alone or (small and is_chain(order))):
        computed = _alone(order)
        if computed is not None:
            return computed
    captured = capture(order)
    kept = _planned(captured, options)
    _check_memory(kept.plan, options.memory_limit, order)
    values = run(kept, captured.leaves, lambda error, made: _note_sources(error, made, order))
    return dict(zip(captured.outputs, values, strict=True))


def _planned(captured: Captured, options: Settings) -> Kept:
    """Return the plan for a graph: one that was kept, or a new one."""
    key = captured.key, options.fuse, get_num_threads(), plugins.generation()
    return kept_plan(key, lambda: schedule(optimize(lower(captured.graph()), takes, options.fuse)))


def plan_of(order: list[Node]) -> Plan:
    """Return the plan by which nodes would be computed together."""
    return _planned(capture(order), settings()).plan


def reserve(targets: Sequence[Node]) -> None:
    """Allocate the memory that values share when the nodes are computed together; keep it."""
    with exclusively():
        order = pending_order(targets)
        if order:
            plan = plan_of(order)
            _check_memory(plan, settings().memory_limit, order)
            memory.reserve(plan.chunks)


def _check_backends(order: list[Node], plan: Plan) -> None:
    """Raise BackendError if a product would be left to our kernels by its device's own backend."""
    for split in plan.splits:
        for step in split.steps:
            vertex = step.vertex
            preferred, cpu = plugins.candidates(vertex.device)
            if vertex.op in PRODUCTS and preferred and split.device is cpu:
                node = order[vertex.origin]
                a, b = (f"{operand.dtype}{operand.shape}" for operand in node.operands)
                error = BackendError(
                    f"{node.device} does not take {node.op.value} of {a} and {b}, and the option"
                    " fallback is 'error'"
                )
                _note_sources(error, [vertex], order)
                raise error


_RECORDED = "recorded at "
_LINES = 5  # that an error names


def _note_sources(error: BaseException, made: Sequence[Vertex], order: Sequence[Node]) -> None:
    """Add to an error where operations were recorded, unless it says so already."""
    if any(note.startswith(_RECORDED) for note in getattr(error, "__notes__", ())):
        return
    sources = (order[vertex.origin].source for vertex in made)
    lines = list(dict.fromkeys(location(source) for source in sources if source is not None))
    more = [f"{len(lines) - _LINES} other lines"] if len(lines) > _LINES else []
    if lines:
        error.add_note(_RECORDED + ", ".join(lines[:_LINES] + more))


def _check_memory(plan: Plan, limit: int | None, order: list[Node]) -> None:
    """Raise MemoryError if an evaluation takes more memory than is allowed."""
    if limit is not None and plan.nbytes > limit:
        raise MemoryError(
            f"evaluating {len(order)} pending operations takes {plan.nbytes} bytes,"
            f" the option memory_limit allows {limit}"
        )


# The short path, for a node alone and for a chain of small ones: no graph, no plan.


def _alone(order: list[Node]) -> dict[Node, Value] | None:
    """Return the value of the last node, each computed in the place of the one before.

    Where that is a view, what it is a view of has its value, too. None if a device is to compute
    it that does not do so in host memory, or not at once.
    """
    if len(order) == 1:
        made = _compute(order[0], order[0].operands)
        return None if made is None else {order[0]: made}
    before: Node | None = None
    value: Plain | None = None
    values: dict[Node, Value] = {}
    operands_of = [node.operands for node in order]  # a signal handler may compute nodes meanwhile
    for at, (node, operands) in enumerate(zip(order, operands_of, strict=True)):
        made = _compute(node, [value if each is before else each for each in operands], value, at)
        if made is None:
            return None
        assert not isinstance(made, Blocks)  # products, and what is made of them, are plain
        if node.op is not Op.VIEW:
            values.clear()
        values[node] = made
        before, value = node, made
    return values


def _compute(
    node: Node, operands: Iterable[Any], out: Plain | None = None, at: int | None = None
) -> Value | None:
    """Return the value of a node whose operands have been computed.

    It is written to `out`, or to fresh memory; None as of `_alone`.
    """
    values = [value_of(operand) for operand in operands]
    start = perf_counter_ns() if profiles else 0
    device = None
    try:
        if node.op is Op.VIEW:
            out = host.view(values[0], node.shape, node.params)
        else:
            if out is None:
                out = np.empty(node.shape, node.dtype)
            if node.op in PRODUCTS:
                a, b = values
                kernel = _kernel(node, a, b, out)
                device = choose_for(kernel, node.device)
                if device.buffer_type is not HOST or device.asynchronous:
                    return None
                products.run(kernel, device, get_num_threads())
            else:
                host.COMPUTE[node.op](node.params, values, out)
    except Exception as error:
        if node.source is not None:
            error.add_note(_RECORDED + location(node.source))
        raise
    if start:
        record(node, values, device, at, start)
    return out


def _kernel(node: Node, a: Value, b: Value, out: Plain) -> Kernel:
    """Return the kernel of a product: operands in its dtype or quantized, vectors as matrices."""
    if a.dtype is not node.dtype:
        a = _converted(a, node)
    if b.dtype is not node.dtype:
        b = _converted(b, node)
    if node.op is Op.OUT_PROD:
        return Kernel(node.op, (products.as_column(a), products.as_column(b)), out)
    if type(a) is Blocks and type(b) is Blocks:
        b = dequantize(b, node.device)
    if len(a.shape) == 1:
        a = products.as_matrix(a, left=True)
    if len(b.shape) == 1:
        b = products.as_matrix(b, left=False)
    return Kernel(node.op, (a, b), out.reshape(node.params) if node.params != node.shape else out)


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
    with exclusively():
        choice = choose_for(kernel, device)
        if not is_direct(choice):
            _, choice = plugins.candidates(device)
        products.run(kernel, choice, get_num_threads())


def _converted(operand: Value, node: Node) -> Value:
    """Return an operand of a product as kernels take it: in the product's dtype, or quantized."""
    if type(operand) is Blocks:
        if node.op is Op.MATMUL and products.stays_quantized(operand, node.dtype):
            return operand
        operand = dequantize(operand, node.device)
    assert not isinstance(operand, Blocks)
    return operand if operand.dtype == node.dtype else operand.astype(node.dtype)


def _publish(order: list[Node], values: dict[Node, Value]) -> None:
    """Make the values known. An interrupt in between leaves a state that another try completes."""
    for node in order:
        if node in values:
            _give(node, values[node])
    for node in order:
        if node.value is not None:  # else nobody needs it any more, or it will be computed again
            _close(node)


def _give(node: Node, value: Value) -> None:
    """Give a node its value, unless a signal handler has had it computed in between.

    If that has been done for what a view is of, the value is no view of it: it has to be made anew.
    """
    if node.value is not None or (node.op is Op.VIEW and not _is_view_of(value, node.operands)):
        return
    if node.storage is not None and node.writes is None and type(value) is np.ndarray:
        adopt(node.storage, value)
    node.value = value


def _is_view_of(value: Any, operands: tuple[Any, ...]) -> bool:
    (base,) = map(value_of, operands)
    return base is not None and root_of(value) is root_of(base)


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
    if destination is None:  # a signal handler has done it
        return
    target, storage = destination.array(), destination.storage
    if node.writes is destination:
        np.copyto(target, node.value)  # type: ignore[arg-type]  # sums are plain
    if node.writes is destination:  # else a later update has taken over, which reads this value
        node.writes = None
        node.value = target
        storage.written(node)
