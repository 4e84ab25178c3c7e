"""Plans: what is computed, in which order, by whom, and until when values are kept."""

import random
import weakref
from itertools import pairwise

import numpy as np
import pytest

import ggarray as xp
from ggarray import BackendError
from ggarray._graph.node import Node, address
from ggarray._graph.schedule import ALIGNMENT, is_chain, is_pending, pending_order, schedule
from ggarray._storage import find
from ggarray.interface import Op, Status


@pytest.fixture
def x():
    return xp.asarray(np.array([[1.0, 2.0], [3.0, 4.0]]), device="counting")


def node_of(array):
    return array._pending()


def plan_of(*arrays):
    return schedule(pending_order([node_of(array) for array in arrays]))


def reads(node, operand):
    return any(each is operand for each in node.operands)


def memory(node):
    """Return the node in whose memory the value of `node` will be."""
    return node.operands[0] if node.op is Op.VIEW else node


def reads_memory(node, other):
    return any(memory(each) is memory(other) for each in node.operands if type(each) is Node)


def last_uses(plan):
    return [set(step.last_use) for step in plan.steps]


def test_order_of_a_tree(x):
    right_first = x @ (x + x)  # recorded first, used on the right
    left = x @ x
    top = left @ right_first
    assert pending_order([node_of(top)]) == [node_of(each) for each in (left, right_first, top)]


def test_order_follows_the_left_operand_down(x):
    c = x @ x
    d = x @ x
    b = c @ d
    e = x @ x
    a = b @ e
    assert pending_order([node_of(a)]) == [node_of(each) for each in (c, d, b, e, a)]


def test_each_node_once(x):
    square = x @ x
    fourth = square @ square
    both = fourth + square
    order = [node_of(each) for each in (square, fourth, both)]
    assert pending_order([node_of(both)]) == order
    assert pending_order([node_of(both)] * 2) == order
    assert pending_order([node_of(square), node_of(both)]) == order
    assert pending_order([]) == []


def test_computed_nodes_are_no_part(x):
    square = x @ x
    node = node_of(square)
    fourth = square @ square
    xp.evaluate(square)
    assert pending_order([node_of(fourth)]) == [node_of(fourth)]
    assert pending_order([node]) == []


def test_what_is_not_needed_is_no_part(x):
    square = x @ x
    other = square @ x
    wanted = square + 2 * square
    order = pending_order([node_of(wanted)])
    assert node_of(other) not in order
    assert len(order) == 3


def test_deep_chains(x):
    with xp.options(max_pending_nodes=10**6):
        power = x @ x
        for _ in range(5000):
            power = power @ x
    order = pending_order([node_of(power)])
    assert len(order) == 5001
    assert all(later.operands[0] is node for node, later in pairwise(order))


def random_arrays(x, seed):
    """Return arrays of a random graph, of which some have been let go."""
    rng = random.Random(seed)
    arrays = [x @ x]
    for _ in range(30):
        a, b = rng.choice(arrays), rng.choice([*arrays, x])
        make = [
            lambda a, b: a @ b,
            lambda a, b: a.T @ b,
            lambda a, b: a + b,
            lambda a, b: a[:],
            lambda a, b: a * 2.0,
        ]
        arrays.append(rng.choice(make)(a, b))
    del a, b
    return [each for each in arrays if rng.random() < 0.4] or arrays[-1:]


@pytest.mark.parametrize("seed", range(10))
def test_random_order_is_topological(x, seed):
    arrays = random_arrays(x, seed)
    targets = [node_of(each) for each in arrays]
    order = pending_order(targets)
    place = {node: at for at, node in enumerate(order)}
    assert len(place) == len(order)
    assert set(targets) <= set(order)
    needed = set(targets)
    for node in reversed(order):
        assert node in needed
        for operand in node.operands:
            if is_pending(operand):
                assert place[operand] < place[node]
                needed.add(operand)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("targets", [1, 3, 100])
def test_random_last_uses(x, seed, targets):
    arrays = random_arrays(x, seed)
    order = pending_order([node_of(each) for each in arrays[-targets:]])
    everything = pending_order([node_of(each) for each in arrays])
    held = {node_of(each) for each in arrays}
    plan = schedule(order)
    assert [step.node for step in plan.steps] == order
    expected = [set() for _ in order]
    for node in order:
        readers = [at for at, later in enumerate(order) if reads(later, node)]
        outside = [each for each in everything if each not in order and reads_memory(each, node)]
        if readers and node not in held and not outside:
            expected[max(readers)].add(node)
    assert last_uses(plan) == expected


def test_value_that_the_program_holds_is_kept(x):
    held = x @ x
    end = held @ x @ x
    square, cube, fourth = pending_order([node_of(end)])
    assert square is node_of(held)
    assert last_uses(plan_of(end)) == [set(), set(), {cube}]
    del held
    assert last_uses(plan_of(end)) == [set(), {square}, {cube}]
    assert fourth is node_of(end)


def test_value_that_a_later_node_needs_is_kept(x):
    square = x @ x
    node = node_of(square)
    first, second = square @ x, square + square
    del square
    assert last_uses(plan_of(first)) == [set(), set()]
    assert last_uses(plan_of(second)) == [set(), set()]
    assert last_uses(plan_of(first, second)) == [set(), set(), {node}]
    del second
    assert last_uses(plan_of(first)) == [set(), {node}]


def test_update_of_memory_is_kept(x):
    total = xp.zeros((2, 2), device="counting")
    total += x @ x
    result = total @ x
    order = pending_order([node_of(result)])
    product, update = order[:2]
    assert update.writes is not None
    assert last_uses(schedule(order)) == [set(), {product}, set()]


@pytest.fixture
def place_all(monkeypatch):
    """Let plans place small values too."""
    monkeypatch.setattr("ggarray._graph.schedule._WORTH_PLACING", 1)


def places_of(counting, monkeypatch):
    """Return a list that will get the address of each product that is computed."""
    places = []
    compute = counting.graph_compute

    def graph_compute(graph):
        (kernel,) = graph
        places.append(address(kernel.out))
        return compute(graph)

    monkeypatch.setattr(counting, "graph_compute", graph_compute)
    return places


@pytest.mark.usefixtures("place_all")
def test_values_of_a_chain_take_turns_in_two_places(x, counting, monkeypatch):
    places = places_of(counting, monkeypatch)
    power = x @ x
    for _ in range(6):
        power = power @ x
    plan = plan_of(power)
    assert plan.chunks == (2 * ALIGNMENT,)
    assert plan.nbytes == 2 * ALIGNMENT + 4 * 8
    xp.evaluate(power)
    *intermediate, last = places
    assert intermediate == 3 * intermediate[:2]
    assert all(place % ALIGNMENT == 0 for place in intermediate)
    assert last not in intermediate
    np.testing.assert_array_equal(
        np.asarray(power), np.linalg.matrix_power(np.asarray(x), 8).astype(float)
    )


def test_small_values_die_at_their_last_use(x, counting, monkeypatch):
    values, alive = [], []
    compute = counting.graph_compute

    def graph_compute(graph):
        (kernel,) = graph
        alive.append(sum(ref() is not None for ref in values))
        values.append(weakref.ref(kernel.out))
        return compute(graph)

    monkeypatch.setattr(counting, "graph_compute", graph_compute)
    power = x @ x
    for _ in range(6):
        power = power @ x
    plan = plan_of(power)
    assert plan.chunks == ()
    assert plan.nbytes == 2 * 4 * 8
    xp.evaluate(power)
    assert len(values) == 7
    assert max(alive) == 1  # the left operand; the one before it has gone


def test_sums_and_scalings_replace_an_operand_that_is_used_up(x, counting, monkeypatch):
    places = places_of(counting, monkeypatch)
    end = 2.0 * (x @ x + x)
    product, total, doubled = plan_of(end).steps
    assert product.block is total.block is doubled.block
    assert (product.replaces, total.replaces, doubled.replaces) == (None, *last_of(product, total))
    assert plan_of(end).nbytes == 4 * 8
    xp.evaluate(end)
    assert address(np.asarray(end)) == places[0]

    held = x @ x
    product, total = plan_of(held + x).steps
    assert product.block is not total.block
    product = x @ x
    end = product + product[:]
    del product
    product, view, total = plan_of(end).steps  # the view is still to be read
    assert view.block is None
    assert product.block is not total.block


def test_chains_need_no_plan(x, monkeypatch):
    def chain(*arrays):
        return is_chain(pending_order([node_of(array) for array in arrays]))

    held = x @ x
    view = (x @ x)[:]
    row = (x @ x)[0]
    update = xp.ones((2, 2), device="counting")
    update += x @ x
    lone, sums = x @ x, 2.0 * (x @ x + x) - x
    writer = find(update._np).writer
    chains = [chain(array) for array in (lone, sums, row)]
    assert chains == [True, True, True]
    assert is_chain(pending_order([writer]))
    others = [
        x @ x @ x,  # a product is in no place of another value
        held + x,  # the program can see the product
        view + x,
        x @ x + x @ x,
        x @ x + xp.ones((3, 2, 2), device="counting"),  # of another shape
    ]
    chains = [chain(array) for array in others]
    assert chains == [False] * len(others)
    assert not chain(lone, sums)
    with monkeypatch.context() as patch:
        patch.setattr("ggarray._graph.execute.schedule", None)
        for array in (lone, sums, row, update):
            xp.evaluate(array)
    matrix = np.asarray(x)
    np.testing.assert_array_equal(np.asarray(sums), 2 * (matrix @ matrix + matrix) - matrix)
    np.testing.assert_array_equal(np.asarray(row), (matrix @ matrix)[0])
    np.testing.assert_array_equal(np.asarray(update), 1 + matrix @ matrix)


def last_of(*steps):
    return [step.node for step in steps]


@pytest.mark.usefixtures("place_all")
def test_memory_of_views_lives_with_them(x):
    rows = [(x @ x)[at] for at in range(2)]
    plan = plan_of(*rows)
    assert [step.block is None for step in plan.steps] == [False, True, False, True]
    assert all(block.kept for block in plan.blocks)
    assert plan.chunks == ()
    end = (x @ x).T @ (x @ x)
    plan = plan_of(end)
    assert plan.chunks == (2 * ALIGNMENT,)


@pytest.mark.usefixtures("place_all")
@pytest.mark.parametrize("seed", range(20))
def test_random_plans_write_to_no_memory_that_is_needed(x, seed):
    plan = schedule(pending_order([node_of(each) for each in random_arrays(x, seed)[-2:]]))
    of, needed = {}, {}  # the block of each node, and the nodes for which a block is needed
    unused = {each for step in plan.steps for each in step.last_use}
    for step in plan.steps:
        node, block = step.node, step.block
        if block is None:
            block = of.get(node.operands[0])
        else:
            assert needed.get(block, set()) <= set(step.last_use)
            assert not any(nodes and overlap(block, each) for each, nodes in needed.items())
        of[node] = block
        for each in step.last_use:
            needed[of[each]].discard(each)
        if block is not None:
            needed.setdefault(block, set()).add(node)
            assert block.kept or node in unused
            assert not (block.kept and block.place)


def overlap(block, other):
    if block is other or block.place is None or other.place is None:
        return False
    (chunk, begin), (other_chunk, other_begin) = block.place, other.place
    apart = begin + block.nbytes <= other_begin or other_begin + other.nbytes <= begin
    return chunk == other_chunk and not apart


def test_memory_limit_refuses_before_anything_runs(x, counting):
    product = (x @ x) @ x
    with (
        xp.options(memory_limit=63),
        pytest.raises(MemoryError, match="takes 64 bytes, the option memory_limit allows 63"),
    ):
        xp.evaluate(product)
    lone = x @ x
    with xp.options(memory_limit=31), pytest.raises(MemoryError, match="takes 32 bytes"):
        xp.evaluate(lone)
    assert counting.computed == []
    with xp.options(memory_limit=64):
        xp.evaluate(product)
        xp.evaluate(lone)
    assert not xp.is_pending(product)


def test_fallback_can_be_an_error():
    small = xp.ones((2, 3), device="blas")
    product, large = small @ small.T, xp.ones((64, 64), device="blas") @ xp.ones((64, 64))
    refused = r"blas does not take matmul of float64\(2, 3\) and float64\(3, 2\)"
    with xp.options(fallback="error"):
        xp.evaluate(large)
        for pending in (product, product + product):
            with pytest.raises(BackendError, match=refused):
                xp.evaluate(pending)
        xp.evaluate(xp.ones((2, 2), device="cpu") @ xp.ones((2, 2), device="cpu"))
    np.testing.assert_array_equal(np.asarray(product), np.full((2, 2), 3.0))


def test_devices_of_steps(x):
    plan = plan_of((x @ x).T @ x + x)
    assert [step.device and step.device.name for step in plan.steps] == [
        "counting",
        None,
        "counting",
        None,
    ]


def test_vendor_or_cpu_by_size():
    small, large = xp.ones((2, 2), device="blas"), xp.ones((64, 64), device="blas")
    outer = xp.linalg.outer(small[0], small[0])
    whole = xp.ones((64, 64), dtype=xp.int64, device="blas")
    plan = plan_of(small @ small, large @ large, whole @ whole, outer)
    assert [step.device.name for step in plan.steps] == ["cpu", "blas", "cpu", "cpu"]


def test_text(x):
    column = x[:, 0]
    plan = plan_of((x @ x)[:] + xp.linalg.outer(column, column))
    assert str(plan).splitlines() == [
        "   0  matmul    counting    float64(2, 2)             until step 3",
        "   1  view      host        float64(2, 2)             view",
        "   2  out_prod  counting    float64(2, 2)             kept",
        "   3  add       host        float64(2, 2)             kept",
    ]
    assert str(schedule([])) == ""


def test_planning_computes_nothing(x, counting):
    product = (x @ x) @ x
    plan = plan_of(product)
    assert type(plan.steps[0].node) is Node
    assert counting.computed == []
    assert xp.is_pending(product)
    counting.outcomes[:] = [Status.SUCCESS]
    xp.evaluate(product)
    assert counting.outcomes == []
