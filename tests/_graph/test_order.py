"""Which nodes are computed, in which order, and which of them need no plan."""

from itertools import pairwise

import numpy as np
import pytest
from recorded import node_of, order_of, random_arrays

import ggarray as xp
from ggarray._graph.order import is_chain, is_pending, pending_order


@pytest.fixture
def x():
    return xp.asarray(np.array([[1.0, 2.0], [3.0, 4.0]]), device="counting")


def test_order_of_a_tree(x):
    right_first = x @ (x + x)  # recorded first, used on the right
    left = x @ x
    top = left @ right_first
    assert order_of(top) == [node_of(each) for each in (left, right_first, top)]


def test_order_follows_the_left_operand_down(x):
    c = x @ x
    d = x @ x
    b = c @ d
    e = x @ x
    a = b @ e
    assert order_of(a) == [node_of(each) for each in (c, d, b, e, a)]


def test_each_node_once(x):
    square = x @ x
    fourth = square @ square
    both = fourth + square
    order = [node_of(each) for each in (square, fourth, both)]
    assert order_of(both) == order_of(both, both) == order_of(square, both) == order
    assert pending_order([]) == []


def test_computed_nodes_are_no_part(x):
    square = x @ x
    node = node_of(square)
    fourth = square @ square
    xp.evaluate(square)
    assert order_of(fourth) == [node_of(fourth)]
    assert pending_order([node]) == []
    assert pending_order([node, node]) == []


def test_what_is_not_needed_is_no_part(x):
    square = x @ x
    other = square @ x
    order = order_of(square + 2 * square)
    assert node_of(other) not in order
    assert len(order) == 3


def test_deep_chains(x):
    with xp.options(max_pending_nodes=10**6):
        power = x @ x
        for _ in range(5000):
            power = power @ x
    order = order_of(power)
    assert len(order) == 5001
    assert all(later.operands[0] is node for node, later in pairwise(order))


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
        for operand in filter(is_pending, node.operands):
            assert place[operand] < place[node]
            needed.add(operand)


# -- chains -------------------------------------------------------------------------------------


def test_chains_need_no_plan(x, monkeypatch):
    update = xp.ones((2, 2), device="counting")
    update += x @ x
    chains = {
        "lone": x @ x,
        "sums": 2.0 * (x @ x + x) - x,
        "row": (x @ x)[0],
        "view": (x @ x)[:].T,
        "update": update,
    }
    assert [name for name, array in chains.items() if not is_chain(order_of(array))] == []
    monkeypatch.setattr("ggarray._graph.execute.schedule", None)
    for array in chains.values():
        xp.evaluate(array)
    a = np.asarray(x)
    expected = [a @ a, 2 * (a @ a + a) - a, (a @ a)[0], (a @ a).T, 1 + a @ a]
    for array, value in zip(chains.values(), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(array), value)


def test_what_is_no_chain(x):
    held = x @ x
    view = (x @ x)[:]
    others = {
        "a product is in no place of another value": x @ x @ x,
        "the program can see the product": held + x,
        "a view of it is read, too": view + x,
        "two products": x @ x + x @ x,
        "of another shape": x @ x + xp.ones((3, 2, 2), device="counting"),
        "of another dtype": xp.astype(x @ x, xp.float32),
    }
    assert [name for name, array in others.items() if is_chain(order_of(array))] == []
    assert not is_chain(order_of(x @ x, x @ x))


def test_a_large_chain_is_planned_where_that_saves_memory(counting, monkeypatch):
    planned = []
    schedule = xp._graph.execute.schedule
    monkeypatch.setattr(
        "ggarray._graph.execute.schedule", lambda graph: planned.append(graph) or schedule(graph)
    )
    for n, count in ((64, 0), (90, 0), (91, 1)):  # up to 2**16 bytes
        x = xp.ones((n, n), device="counting")
        np.testing.assert_array_equal(np.asarray(2.0 * (x @ x)), np.full((n, n), 2.0 * n))
        assert len(planned) == count
