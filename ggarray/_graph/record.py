"""Recording: operations become nodes, after every check that can be made now.

The functions take and return *operands*: a plain array, blocks, or a node. Nothing is computed
here, except where laziness would be wrong (shared memory), or the limits of pending work are met.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ggarray._dtypes import product_dtype, promote
from ggarray._graph.execute import evaluate, evaluate_pending, exclusively
from ggarray._graph.node import Destination, Node, pending
from ggarray._graph.source import caller
from ggarray._graph.views import Layout
from ggarray._quantized.blocks import Blocks
from ggarray._runtime.devices import Device
from ggarray._runtime.options import settings
from ggarray._storage import Plain, find, root_of, storage_of, unheld_bytes, writers
from ggarray.interface import Op

Operand = Node | Plain | Blocks

_ndarray = np.ndarray


def matmul(a: Operand, b: Operand, device: Device) -> Node:
    """Record the matrix product of two operands, with the shapes that NumPy's matmul takes.

    Raises
    ------
    ValueError
        A scalar operand, or shapes that do not fit; the message has both.
    TypeError
        Dtypes that have no product.
    """
    shape_a, shape_b = a.shape, b.shape
    dtype = product_dtype(a.dtype, b.dtype)
    if len(shape_a) == 2 and len(shape_b) == 2 and shape_a[1] == shape_b[0]:
        shape = (shape_a[0], shape_b[1])
        return _add(Node(Op.MATMUL, (a, b), shape, dtype, device, shape))
    if not shape_a or not shape_b:
        raise ValueError(f"matmul: a scalar has no matrix product, shapes {shape_a} and {shape_b}")
    inner_b = shape_b[-2] if len(shape_b) > 1 else shape_b[0]
    if shape_a[-1] != inner_b:
        raise ValueError(
            f"matmul: shapes {shape_a} and {shape_b} do not fit: {shape_a[-1]} columns"
            f" against {inner_b} rows"
        )
    rows = shape_a[-2:-1]
    columns = shape_b[-1:] if len(shape_b) > 1 else ()
    try:
        batch = np.broadcast_shapes(shape_a[:-2], shape_b[:-2])
    except ValueError:
        raise ValueError(
            f"matmul: the leading axes of shapes {shape_a} and {shape_b} do not broadcast"
        ) from None
    product = (*batch, *(rows or (1,)), *(columns or (1,)))
    return _add(Node(Op.MATMUL, (a, b), (*batch, *rows, *columns), dtype, device, product))


def outer(a: Operand, b: Operand, device: Device) -> Node:
    """Record the outer product of two one-dimensional operands.

    Raises
    ------
    ValueError
        An operand is not one-dimensional; the message has both shapes.
    TypeError
        Dtypes that have no product.
    """
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise ValueError(f"outer: two vectors are wanted, not shapes {a.shape} and {b.shape}")
    dtype = product_dtype(a.dtype, b.dtype)
    shape = (a.shape[0], b.shape[0])
    return _add(Node(Op.OUT_PROD, (a, b), shape, dtype, device))


def add(a: Operand, b: Operand, device: Device, subtract: bool = False) -> Node:
    """Record ``a + b`` or ``a - b`` with broadcasting.

    Raises
    ------
    ValueError
        The shapes do not broadcast; the message has both.
    """
    try:
        shape = a.shape if a.shape == b.shape else np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise ValueError(f"shapes {a.shape} and {b.shape} do not broadcast") from None
    dtype = promote(a.dtype, b.dtype)
    return _add(Node(Op.ADD, (a, b), shape, dtype, device, subtract))


def scale(a: Node, alpha: complex | None) -> Node:
    """Record ``a * alpha``, where `alpha` does not change the dtype; None is unary minus."""
    return _add(Node(Op.SCALE, (a,), a.shape, a.dtype, a.device, alpha))


def copy(a: Node, dtype: np.dtype[Any]) -> Node:
    """Record the conversion of `a` to `dtype`, also to its own."""
    return _add(Node(Op.COPY, (a,), a.shape, dtype, a.device))


def layout_of(a: Node) -> Layout:
    """Return the layout of `a` within the memory that it will be in."""
    if a.op is Op.VIEW:
        return Layout(a.shape, *a.params)
    return Layout(a.shape, a.strides, 0)


def view(a: Node, layout: Layout) -> Node:
    """Record a view of `a` with this layout, as `layout_of` and the methods of Layout make it."""
    base = a.operands[0] if a.op is Op.VIEW and a.operands else a
    params = layout.strides, layout.offset, layout.writeable
    node = Node(Op.VIEW, (base,), layout.shape, a.dtype, a.device, params)
    node.storage = a.books()
    return _add(node)


def update(target: Plain, b: Operand, device: Device, subtract: bool) -> bool:
    """Record ``target += b`` (or ``-=``) if its memory may wait for it; tell whether it was.

    Memory that others share cannot wait, nor read-only memory; where nodes wait to read the
    memory they would have to be computed first anyhow.
    """
    with exclusively():  # who delivers an update and who records the next take turns
        storage = storage_of(target)
        if storage is None or storage.shared or not target.flags.writeable:
            return False
        if storage.pending_readers() or np.broadcast_shapes(target.shape, b.shape) != target.shape:
            return False
        before = current(target)
        waiting = before if isinstance(before, Node) else None
        destination = Destination(target)
        node = Node(
            Op.ADD, (waiting or destination, b), target.shape, target.dtype, device, subtract
        )
        node.storage = storage
        node.writes = destination
        _add(node)  # an error here leaves the memory as it was
        if node.value is None:
            storage.set_writer(node)
            if waiting is not None:  # the new update takes over
                waiting.writes = waiting.storage = None
        return True


def current(value: Plain) -> Node | Plain:
    """Return what a node recorded now has to read as `value`: the memory, or who will write it."""
    if writers:
        storage = find(value)
        if storage is not None and storage.writer is not None:
            writer = storage.writer
            if writer.writes is not None and writer.writes.covers(value):
                return writer
            evaluate([writer])
    return value


def _add(node: Node) -> Node:
    """Enter a node into the books; compute it at once where it may not wait."""
    options = settings()
    may_wait = options.lazy
    if options.source_lines:
        node.source = caller()
    new_bytes = 0
    ref = node.ref
    for operand in node.operands:
        if type(operand) is _ndarray:
            known = storage_of(operand)
            if known is None:
                continue
            storage = known
            if not storage.readers:
                new_bytes += operand.nbytes if operand.base is None else root_of(operand).nbytes
            if storage.foreign or storage.exports:
                may_wait = False
        elif type(operand) is Node:
            storage = operand.books()
            if operand.writes is not None:
                node.keeps += (operand.writes.root,)
        else:
            continue
        storage.add_reader(ref)
        node.reads.append(storage)
    if not may_wait:
        evaluate((node,))
    elif len(pending) > options.max_pending_nodes:
        evaluate_pending()
    else:
        _Looked.new_bytes += new_bytes
        if _Looked.new_bytes > _Looked.look_at:
            _limit_bytes(options.max_pending_bytes)
    return node


class _Looked:
    """When the memory that pending nodes keep alive was last looked at."""

    new_bytes = 0  # operands that became used since
    look_at = 0  # look again when there are more


def _limit_bytes(limit: int) -> None:
    """Compute everything pending if it keeps more memory alive than the limit."""
    unheld = unheld_bytes(_operands_of_pending())
    if unheld > limit:
        evaluate_pending()
        unheld = 0
    _Looked.new_bytes = 0
    # looking costs time in proportion to the nodes, so it is done only after some growth
    _Looked.look_at = max(limit - unheld, limit // 8)


def _operands_of_pending() -> Iterator[Plain]:
    for ref in list(pending):
        node = ref()
        for operand in node.operands if node is not None else ():
            value = operand.value if type(operand) is Node else operand
            if type(value) is _ndarray:
                yield value
