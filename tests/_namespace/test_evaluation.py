"""Evaluating, and looking at what waits to be."""

import threading
import weakref

import numpy as np
import pytest
from values import zeros_q8_0

import ggarray as xp
from ggarray._graph.node import pending
from ggarray._storage import registry, writers
from ggarray.interface import HOST, Op

VALUE = np.array([[1.0, 2.0], [3.0, 4.0]])


@pytest.fixture
def x():
    return xp.asarray(VALUE, device="counting")


def books():
    """What is known of memory and of pending nodes."""
    memory = {key: (dict(each.readers), each.writer) for key, each in registry.items()}
    return memory, set(writers), {ref for ref in pending if ref() is not None}


# -- evaluate and is_pending --------------------------------------------------------------------


def test_evaluated_together(x, counting):
    square = x @ x
    fourth, other = square @ square, x.T @ x
    xp.evaluate(fourth, other)
    assert counting.computed == [Op.MATMUL] * 3
    assert not any(map(xp.is_pending, (square, fourth, other)))
    np.testing.assert_array_equal(np.asarray(fourth), np.linalg.matrix_power(VALUE, 4))
    np.testing.assert_array_equal(np.asarray(other), VALUE.T @ VALUE)


def test_memory_that_an_update_is_to_change_is_pending(x):
    total = xp.ones((2, 2), device="counting")
    part = total[0]
    assert not xp.is_pending(part)
    total += x @ x
    assert xp.is_pending(total)
    assert xp.is_pending(part)
    xp.evaluate(part)
    assert not xp.is_pending(total)
    np.testing.assert_array_equal(np.asarray(part), 1 + (VALUE @ VALUE)[0])


def test_what_is_there_stays(x, counting):
    xp.evaluate()
    xp.evaluate(x, zeros_q8_0((1, 32)))
    assert counting.computed == []


@pytest.mark.parametrize("function", [xp.evaluate, xp.is_pending, xp.graph, xp.reserve])
@pytest.mark.parametrize("wrong", [VALUE, 1.0, "x", None, [1.0]])
def test_what_is_no_array(x, function, wrong):
    with pytest.raises(TypeError, match="Array is wanted"):
        function(wrong)
    if function is not xp.is_pending:
        with pytest.raises(TypeError, match="Array is wanted"):
            function(x, wrong)


# -- reserve ------------------------------------------------------------------------------------


def test_reserving_computes_nothing_and_keeps_nothing_alive(x, counting):
    operand = xp.ones((2, 2), device="counting")
    memory = weakref.ref(operand._np)
    product = (x @ operand) @ x
    before = books()
    xp.reserve(x, product, zeros_q8_0((1, 32)))
    assert books() == before
    assert xp.is_pending(product)
    assert counting.computed == []
    del operand, product
    assert memory() is None


def test_reserved_memory_is_enough_for_what_takes_less(counting, monkeypatch):
    large, small = xp.ones((200, 200), device="counting"), xp.ones((100, 100), device="counting")
    xp.reserve(large @ large @ large)
    monkeypatch.setattr(type(HOST), "alloc", None)  # no more is asked for
    for x, n in ((large, 200), (small, 100), (large, 200)):
        np.testing.assert_array_equal(np.asarray(x @ x @ x), np.full((n, n), float(n * n)))
    assert len(counting.computed) == 6


# -- graph --------------------------------------------------------------------------------------


def test_graph_of_what_is_there(x):
    assert [len(xp.graph(*arrays)) for arrays in ([], [x], [x, zeros_q8_0((1, 32))])] == [0] * 3


def test_graph_of_several_arrays(x):
    square = x @ x
    first, second = square + x, square @ x
    assert [node.op for node in xp.graph(second, first)] == [Op.MATMUL, Op.MATMUL, Op.ADD]
    assert [node.op for node in xp.graph(first, x, first)] == [Op.MATMUL, Op.ADD]


def test_graph_of_memory_that_an_update_is_to_change(x):
    total = xp.ones((3, 2), device="counting")
    first, rest, other = total[0], total[1:], xp.ones(2, device="counting")
    rest += x @ x
    for array in (total, first, rest):
        assert [node.op for node in xp.graph(array)] == [Op.MATMUL, Op.ADD]
    assert len(xp.graph(other)) == 0


def test_looking_changes_nothing(x, counting):
    total = xp.ones((2, 2), device="counting")
    product = x @ x
    view = product.T[:1]
    total -= 2.0 * product
    end = view @ total
    arrays = product, view, total, end
    before = books()
    graph = xp.graph(*arrays)
    texts = str(graph), repr(graph), graph.explain(), graph.to_dot(), graph._repr_html_()
    assert all(texts)
    assert books() == before
    assert counting.computed == []
    assert all(map(xp.is_pending, arrays))
    p = VALUE @ VALUE
    t = 1 - 2 * p
    for array, expected in zip(arrays, (p, p.T[:1], t, p.T[:1] @ t), strict=True):
        np.testing.assert_array_equal(np.asarray(array), expected)
    assert counting.computed == [Op.MATMUL] * 2
    assert (str(graph), repr(graph), graph.explain(), graph.to_dot()) == texts[:4]


def test_the_plan_of_a_graph(x):
    product = x @ x
    total = 2.0 * product - x
    value = "float64(2, 2)".ljust(24)
    assert xp.graph(product.T, total).plan.splitlines() == [
        "split 0 on counting",
        f"   0  %0     matmul    counting    {value}  kept;"
        " device counting takes this matmul of float64",
        f"   1  %1     view      counting    {value}  view; a view: no element moves",
        "split 1 on host",
        f"   2  %2     scale     host        {value}  kept; a scaling: NumPy computes it",
        f"   3  %3     add       host        {value}  kept; a sum: NumPy computes it",
    ]
    assert xp.graph(x).plan == xp.graph().plan == ""


def test_a_graph_keeps_nothing_alive(x, counting):
    operand = xp.ones((2, 2), device="counting")
    memory = weakref.ref(operand._np)
    product = x @ operand
    node = weakref.ref(product._pending())
    graph = xp.graph(product)
    del operand, product
    assert memory() is None
    assert node() is None
    assert counting.computed == []
    assert [each.expression for each in graph] == ["x0 @ x1"]


def test_a_graph_of_ten_thousand_nodes(x):
    with xp.options(max_pending_nodes=10**6):
        power = x @ x
        for _ in range(9_999):
            power = power @ x
    graph = xp.graph(power)
    assert len(graph) == 10_000
    assert all(node.operands[0] == node.index - 1 for node in graph[1:])


def test_looking_waits_for_an_evaluation(x, counting, monkeypatch):
    """No node may be seen that is half done."""
    product = (x @ x) @ x
    found = []
    looking = threading.Thread(target=lambda: found.append(xp.graph(product)))
    compute = counting.graph_compute

    def graph_compute(kernels):
        if not counting.computed:
            looking.start()
        looking.join(0.05)
        assert not found
        return compute(kernels)

    monkeypatch.setattr(counting, "graph_compute", graph_compute)
    xp.evaluate(product)
    looking.join()
    assert [len(graph) for graph in found] == [0]
