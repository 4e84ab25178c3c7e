"""Which vertices a device computes together, who it is and why, and in which order."""

import random

import numpy as np
import pytest
from doubles import others
from recorded import (
    ALL,
    PRODUCTS,
    VIEWS,
    captured,
    constant,
    graph_of,
    outputs_of,
    plan_of,
    quantized,
    random_arrays,
)
from values import numbers

import ggarray as xp
from ggarray import BackendError
from ggarray._graph import plan_cache, split as module
from ggarray._graph.split import split
from ggarray.interface import HOST, Op

VALUE = np.array([[1.0, 2.0], [3.0, 4.0]])


@pytest.fixture
def x():
    return xp.asarray(VALUE, device="counting")


@pytest.fixture
def ordering():
    """The stream whose order of nodes a test sets."""
    backend = others()["ordering"].backend
    yield backend
    backend.order = None


def groups_of(*arrays, fuse=()):
    graph = graph_of(*arrays, fuse=fuse)
    return split(graph, graph.tensors())


def who(*arrays, fuse=()):
    """Return the device and the vertices of each group."""
    return [
        ("host" if group.device is None else group.device.name, group.vertices)
        for group in groups_of(*arrays, fuse=fuse)
    ]


# -- who and why --------------------------------------------------------------------------------


def test_vertices_that_follow_each_other_on_one_device_are_a_group(x):
    product = x @ x
    assert who(product @ x @ x) == [("counting", [0, 1, 2])]
    assert who(2.0 * (product @ x) + x) == [("counting", [0, 1]), ("host", [2, 3])]
    assert who((x @ x + x) @ x) == [("counting", [0]), ("host", [1]), ("counting", [2])]


def test_anybody_makes_views(x):
    product = x @ x
    assert who(product.T[0] @ x + x) == [("counting", [0, 1, 2]), ("host", [3])]
    assert who((x @ x + x)[0] @ x) == [("counting", [0]), ("host", [1, 2]), ("counting", [3])]
    held = x @ x
    view = held.T
    xp.evaluate(held)
    assert who(view @ x) == [("host", [0]), ("counting", [1])]
    assert who(product @ x + 1.0 * (x @ product[0]))[0] == ("counting", [0, 1, 2, 3])


def test_conversions_of_the_host_and_those_of_backends():
    weights, _ = quantized(np.ones((64, 64)))
    x = xp.ones((2, 64), device="cpu")
    plan = groups_of(x @ weights)  # blocks to float32, that to float64, the product
    assert [group.device and group.device.name for group in plan] == ["cpu", None, "cpu"]
    assert [reason for group in plan for reason in group.reasons] == [
        "it computes all products of device cpu",
        "a conversion: NumPy computes it",
        "it computes all products of device cpu",
    ]


def test_what_a_rewrite_makes_is_the_backends():
    x = xp.asarray(VALUE, device=others()["far"].name)
    end = 2.0 * (x @ x) + x
    assert [name for name, _ in who(end)] == ["far", "host"]
    assert [name for name, _ in who(end, fuse=ALL)] == ["far"]


MEMORIES = {
    "far": "far",
    "narrow": "narrow",
    "counted": "host",  # its own memory is the host's
    "wrapping": "host",  # takes the host's memory in place
    "late": "late",
    "staged": "staged",
    "late host": "host",
    "planning": "planning",
}


@pytest.mark.parametrize("name", MEMORIES)
def test_the_memory_in_which_a_device_works(name):
    others()
    x = xp.asarray(VALUE, device=name)
    (group,) = groups_of(x @ x @ x)
    assert (group.device.name, group.memory.name) == (name, MEMORIES[name])
    assert (group.memory is HOST) == (MEMORIES[name] == "host")


def test_vendor_or_cpu_by_size():
    small, large = xp.ones((2, 2), device="blas"), xp.ones((64, 64), device="blas")
    outer = xp.linalg.outer(small[0], small[0])
    whole = xp.ones((64, 64), dtype=xp.int64, device="blas")
    plan = plan_of(small @ small, large @ large, whole @ whole, outer)
    assert [each.name for each in plan.splits for _ in each.steps] == ["cpu", "blas", "cpu", "cpu"]
    why = "blas takes matmul of float64, but does these shapes worse or not at all"
    assert plan.steps[0].reason == why


@pytest.mark.parametrize("rows", [8, 9])
def test_a_product_goes_where_its_weights_are(rows):
    device = others()["choosy"]
    device.happened.clear()
    weights = constant(VALUE, "choosy")
    a = xp.ones((rows, 2), device="choosy")
    computes = "choosy" if rows > 8 else "cpu"
    assert who(a @ weights) == [(computes, [0])]
    reason = groups_of(a @ weights)[0].reasons[0]
    assert ("does not find it worth copying weights" in reason) == (rows == 8)
    xp.evaluate(xp.ones((9, 2), device="choosy") @ weights)
    assert who(a @ weights) == [("choosy", [0])]  # now they are there
    assert who(a @ (weights + 0)) == [("choosy", [0])]  # no constant: it is copied each time


# -- groups that end ----------------------------------------------------------------------------


def test_a_group_in_host_memory_ends_after_some_work(monkeypatch):
    monkeypatch.setattr(module, "_MOST_WORK", 2 * 8)  # of two products
    for device in ("counting", "wrapping", "far"):
        x = xp.asarray(VALUE, device=others() and device)
        groups = [vertices for _, vertices in who(x @ x @ x @ x @ x)]
        assert groups == ([[0, 1, 2, 3]] if device == "far" else [[0, 1], [2, 3]])


def test_a_group_in_host_memory_ends_after_some_bytes(x, monkeypatch):
    monkeypatch.setattr(module, "_MOST_BYTES", 32)  # one result may be beyond
    assert [vertices for _, vertices in who(x @ x @ x @ x @ x)] == [[0, 1], [2, 3]]
    monkeypatch.setattr(module, "WORTH_PLACING", 1)  # these lie in chunks
    assert [vertices for _, vertices in who(x @ x @ x @ x @ x)] == [[0, 1, 2, 3]]


# -- an order of the stream's own ---------------------------------------------------------------


def backwards(graph, add_alloc_dep):
    """An order in which the last product that reads no other is the first."""
    return sorted(range(len(graph)), key=lambda at: graph[at].out.shape, reverse=True)


def test_a_stream_puts_its_nodes_in_order(ordering):
    x, wide = (xp.ones((n, 2), device="ordering") for n in (2, 5))
    small, large = x @ x, wide @ x
    ordering.order = backwards
    assert who(small, large) == [("ordering", [1, 0])]
    assert who(small) == [("ordering", [0])]  # nothing to be put in order
    # The views of a node follow it, and those of a leaf or of another group are made where needed.
    first, second = small.T @ x, (large @ x)[1:]
    assert who(first, second) == [("ordering", [3, 4, 5, 0, 1, 2])]
    plan_cache.clear()
    xp.evaluate(first, second)
    np.testing.assert_array_equal(np.asarray(first), np.full((2, 2), 4.0))
    np.testing.assert_array_equal(np.asarray(second), np.full((4, 2), 4.0))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1], "no order of 3 nodes"),
        ([0, 0, 1], "no order of 3 nodes"),
        ([0, 1, 3], "no order of 3 nodes"),
        ([1, 0, 2], "%1 before %0, which it reads"),
    ],
)
def test_what_is_no_order(ordering, order, message):
    x = xp.asarray(VALUE, device="ordering")
    end = x @ x @ x @ x
    ordering.order = lambda graph, add_alloc_dep: order
    plan_cache.clear()
    with pytest.raises(BackendError, match=message):
        xp.evaluate(end)
    assert xp.is_pending(end)
    ordering.order = None
    np.testing.assert_array_equal(np.asarray(end), np.linalg.matrix_power(VALUE, 4))


def test_a_view_before_what_it_views_is_no_order(ordering):
    x = xp.asarray(VALUE, device="ordering")
    end = (x @ x).T @ x
    ordering.order = lambda graph, add_alloc_dep: [1, 0]
    with pytest.raises(BackendError, match="%2 before %1, which it reads"):
        groups_of(end)


def test_what_a_stream_sees(ordering):
    x = xp.ones((2, 2), device="ordering")
    seen = []
    ordering.order = lambda graph, add_alloc_dep: seen.extend(graph) or range(len(graph))
    groups_of(2.0 * (xp.linalg.outer(x[0], x[0])[::-1] @ x) + x @ x, fuse=ALL)
    outer, other, product = seen
    assert [kernel.op for kernel in seen] == [Op.OUT_PROD, Op.MATMUL, Op.MATMUL]
    assert [kernel.out.shape for kernel in seen] == [(2, 2)] * 3
    assert [each.shape for each in outer.operands] == [(2, 1)] * 2
    assert product.alpha == 2
    assert product.operands[0].strides == (-16, 8)
    # Who reads whose result is told by buffers.
    assert product.operands[0].buffer is outer.out.buffer
    assert product.bias.buffer is other.out.buffer
    assert len({kernel.out.buffer for kernel in seen}) == 3
    operands = (*outer.operands, *other.operands, product.operands[1])
    assert [each.buffer for each in operands] == [None] * 5
    for call in (outer.out.buffer.set_tensor, outer.out.buffer.get_tensor):
        with pytest.raises(ValueError, match="no memory yet"):
            call(outer.out, np.empty(32, np.uint8))


def test_memory_may_be_kept_until_after_another_node(ordering):
    x = xp.ones((2, 2), device="ordering")
    end = x @ x @ x @ x @ x
    last = [block.last for block in plan_of(end).blocks if block.first < 3]
    ordering.order = lambda graph, add_alloc_dep: add_alloc_dep(0, 3) or range(len(graph))
    kept = [block.last for block in plan_of(end).blocks if block.first < 3]
    assert last == [3, 1, 2, 3]  # x, then products until their reader
    assert kept == [3, 3, 2, 3]


def random_order(kernels, rng):
    """Return an order in which each kernel is after those whose results it reads."""
    order = []
    while len(order) < len(kernels):
        missing = {id(kernels[at].out.buffer) for at in range(len(kernels)) if at not in order}
        ready = [
            at
            for at, kernel in enumerate(kernels)
            if at not in order and not missing & {id(each.buffer) for each in kernel.operands}
        ]
        order.append(rng.choice(ready))
    return order


@pytest.mark.parametrize("seed", range(10))
def test_random_graphs_in_random_orders(ordering, seed):
    rng = random.Random(seed)
    value = numbers((3, 3), float) / 3
    x = xp.asarray(value, device="ordering")
    arrays = random_arrays(x, seed, kinds=(PRODUCTS, VIEWS))
    graph = graph_of(*arrays)
    ordering.order = lambda kernels, add_alloc_dep: random_order(kernels, rng)
    (group,) = split(graph, graph.tensors())
    assert sorted(group.vertices) == list(range(len(graph.vertices)))
    places = {at: place for place, at in enumerate(group.vertices)}
    for at in group.vertices:
        assert all(places.get(ref, -1) < places[at] for ref in graph.vertices[at].operands)
    expected = outputs_of(graph, captured(*arrays).leaves)
    outputs = captured(*arrays).outputs
    with xp.options(fuse=False):
        xp.evaluate(*arrays)
    for node, each in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(node.value, each, rtol=1e-9, atol=1e-12)
