"""Capturing what is pending as data: leaves, vertices, outputs, and keys that are equal."""

import numpy as np
import pytest
from doubles import others
from recorded import (
    captured,
    constant,
    graph_of,
    node_of,
    order_of,
    outputs_of,
    quantized,
    random_arrays,
)

import ggarray as xp
from ggarray._graph import residence
from ggarray._graph.ir import Graph, Rewriter, Vertex, capture
from ggarray._graph.node import Node
from ggarray.interface import Op, Tensor

VALUE = np.array([[1.0, 2.0], [3.0, 4.0]])


@pytest.fixture
def x():
    return xp.asarray(VALUE, device="counting")


# -- keys ---------------------------------------------------------------------------------------


def program(a, b):
    product = a @ b
    return product.T @ a + 2.0 * product, product


def test_equal_programs_have_equal_keys(x):
    other = xp.asarray(VALUE + 1, device="counting")
    one, same = program(x, x), program(other, other)
    assert captured(*one).key == captured(*same).key
    assert hash(captured(*one).key) == hash(captured(*same).key)
    assert captured(*one).graph() == captured(*same).graph()


CHANGES = {
    "shape": lambda x: program(*[xp.ones((3, 3), device="counting")] * 2),
    "strides": lambda x: program(x, x.T),
    "dtype": lambda x: program(x, xp.ones((2, 2), dtype=xp.float32, device="counting")),
    "device": lambda x: program(*[xp.ones((2, 2), device="cpu")] * 2),
    "aliasing": lambda x: program(x, x + 0),
    "constness": lambda x: program(*[constant(VALUE, "counting")] * 2),
    "what is held": lambda x: program(x, x)[:1],
    "operation": lambda x: (x @ x).T @ x - 2.0 * (x @ x),
    "scalar": lambda x: (x @ x).T @ x + 3.0 * (x @ x),
    "view": lambda x: (x @ x)[::-1] @ x + 2.0 * (x @ x),
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_programs_have_other_keys(x, name):
    changed = CHANGES[name](x)
    arrays = changed if isinstance(changed, tuple) else (changed,)
    one = program(x, x)
    assert captured(*arrays).key != captured(*one).key


def test_a_type_of_scalar_is_no_other_number(x):
    """True, 1 and 1.0 are one key; they are equal factors, too."""
    for factor in (2, 2.0):
        product = factor * (x @ x)
        np.testing.assert_array_equal(np.asarray(product), 2 * VALUE @ VALUE)
        assert product.dtype == np.float64


# -- leaves -------------------------------------------------------------------------------------


def n_leaves(*operands):
    """Return how many leaves operands of products are."""
    products = [operand @ operand for operand in operands]
    return len(captured(*products).leaves)


def test_one_leaf_for_one_layout_of_memory(x):
    rows = xp.asarray(np.arange(12.0).reshape(3, 2, 2), device="counting")
    assert n_leaves(x, x) == 1
    assert n_leaves(x, x[:], x[:, :], x[0:2], xp.reshape(x, (2, 2))) == 1
    assert n_leaves(x.T, x.T, x.mT) == 1
    assert n_leaves(rows[1], rows[1]) == 1
    assert n_leaves(x, x.T) == 2
    assert n_leaves(x, x[::-1]) == 2
    assert n_leaves(rows[0], rows[1]) == 2
    assert n_leaves(rows, rows[0]) == 2
    assert n_leaves(x, x + 0) == 2


def test_memory_of_one_layout_and_two_dtypes():
    memory = np.array([[1, -2], [3, 4]]).tobytes()
    values = [np.frombuffer(memory, dtype).reshape(2, 2) for dtype in (np.int64, np.uint64)]
    products = [each @ each for each in map(xp.asarray, values)]
    assert len(captured(*products).leaves) == 2
    xp.evaluate(*products)
    for product, value in zip(products, values, strict=True):
        np.testing.assert_array_equal(np.asarray(product), value @ value)


def test_a_quantized_square_and_its_transpose_are_two_leaves():
    weights, _ = quantized(np.ones((32, 32)))
    a = xp.ones((2, 32), dtype=xp.float32, device="cpu")
    assert len(captured(a @ weights, a @ weights.mT).leaves) == 3
    assert len(captured(a @ weights.mT, 2 * (a @ weights.mT)).leaves) == 2
    (_, leaf), _, _ = captured(a @ weights.mT).graph()
    assert (leaf.shape, leaf.dtype, leaf.axis, leaf.constant) == ((32, 32), xp.q8_0, 0, True)
    assert leaf.strides == (34, 34)


def test_which_leaves_are_constant(x):
    read_only = np.ones((2, 2))
    read_only.flags.writeable = False
    operands = {
        "bytes": (constant(VALUE, "counting"), True),
        "their transpose": (constant(VALUE, "counting").T, True),
        "an Array": (x, False),
        "a read-only array": (xp.asarray(read_only, device="counting"), False),
        "a read-only view": (xp.broadcast_to(x[0], (2, 2)), False),
    }
    found = {}
    for name, (operand, _) in operands.items():
        (leaf, *_), _, _ = captured(operand @ x).graph()
        found[name] = leaf.constant
    assert found == {name: expected for name, (_, expected) in operands.items()}


def test_what_has_been_computed_is_a_leaf(x):
    product = x @ x
    end = product @ x
    xp.evaluate(product)
    leaves, vertices, outputs = captured(end).graph()
    assert (len(leaves), len(vertices), outputs) == (2, 1, (0,))
    assert vertices[0].operands == (~0, ~1)
    np.testing.assert_array_equal(captured(end).leaves[0], VALUE @ VALUE)


def test_where_copies_of_a_constant_are():
    others()
    weights = constant(VALUE, "far")
    for copies in (set(), {"far"}):
        product = weights @ xp.ones((2, 2), device="far")
        (leaf, _), _, _ = captured(product).graph()
        assert leaf.resident == copies
        xp.evaluate(product)
    assert residence.residents(np.asarray(VALUE)) == frozenset()


# -- vertices -----------------------------------------------------------------------------------


def test_vertices_are_what_was_recorded(x):
    end = xp.linalg.outer(2.0 * (x @ x[0]) - x[1], x[0])
    graph = captured(end).graph()
    device = xp.Device("counting")
    double = np.dtype(np.float64)
    assert graph.vertices == (
        Vertex(Op.MATMUL, (~0, ~1), (2,), double, device, (2, 1), origin=0),
        Vertex(Op.SCALE, (0,), (2,), double, device, 2.0, origin=1),
        Vertex(Op.ADD, (1, ~2), (2,), double, device, True, origin=2),
        Vertex(Op.OUT_PROD, (2, ~1), (2, 2), double, device, origin=3),
    )
    assert graph.outputs == (3,)
    assert graph.readers() == [[1], [2], [3], []]
    assert graph.tensor(~1) == Tensor((2,), double, (8,))
    assert graph.tensor(3) == Tensor((2, 2), double, (16, 8))
    assert graph.tensors()[0] == Tensor((2,), double, (8,))


def test_a_view_has_the_strides_of_what_it_views(x):
    graph = captured((x @ x).T @ x).graph()
    assert graph.tensor(1) == Tensor((2, 2), np.dtype(np.float64), (8, 16))


def test_a_reader_counts_once_for_each_time_it_reads(x):
    square = x @ x
    assert captured(square + square, square @ x).graph().readers() == [[1, 1, 2], [], []]


@pytest.mark.parametrize("seed", range(10))
def test_numpy_computes_random_graphs(x, seed):
    arrays = random_arrays(x, seed)
    taken = captured(*arrays)
    graph = taken.graph()
    for at, vertex in enumerate(graph.vertices):
        assert vertex.origin == at
        assert all(ref < at for ref in vertex.operands)
    expected = outputs_of(graph, taken.leaves)
    for node, value in zip(taken.outputs, expected, strict=True):
        xp.evaluate(*arrays)
        np.testing.assert_allclose(node.value, value, rtol=1e-4)


# -- outputs ------------------------------------------------------------------------------------


def test_outputs_are_what_the_program_can_still_see(x):
    held = x @ x
    end = held @ x @ x
    assert captured(end).graph().outputs == (0, 2)
    del held
    assert captured(end).graph().outputs == (2,)


def test_what_a_later_node_reads_is_an_output(x):
    square = x @ x
    first, second = square @ x, square + square
    del square
    assert captured(first).graph().outputs == (0, 1)
    assert captured(second).graph().outputs == (0, 1)
    assert captured(first, second).graph().outputs == (1, 2)
    del second
    assert captured(first).graph().outputs == (1,)


def test_what_a_view_of_memory_reads_later_is_an_output(x):
    view = (x @ x)[:]
    other = view.T @ x
    del view
    assert captured(other).graph().outputs == (2,)
    first = (x @ x)[:]
    second = first[0] @ x
    assert captured(first).graph().outputs == (0, 1)
    assert captured(first, second).graph().outputs == (0, 1, 3)


def test_updates_of_memory_are_outputs(x):
    total = xp.zeros((2, 2), device="counting")
    total += x @ x
    result = total @ x
    graph = captured(result).graph()
    assert [vertex.op for vertex in graph.vertices] == [Op.MATMUL, Op.ADD, Op.MATMUL]
    assert graph.outputs == (1, 2)


def test_what_was_asked_for_is_an_output_before_any_array_stands_for_it(x):
    value = x._read()
    device = xp.Device("counting")
    first = Node(Op.MATMUL, (value, value), (2, 2), value.dtype, device, (2, 2))
    second = Node(Op.ADD, (first, value), (2, 2), value.dtype, device, False)
    assert capture([first]).graph().outputs == (0,)
    assert capture([first, second]).outputs == [second]
    with xp.options(lazy=False):
        assert not xp.is_pending(2.0 * (x @ x) + x)


def test_the_nodes_of_outputs(x):
    held = x @ x
    end = held @ x
    assert captured(end).outputs == [node_of(held), node_of(end)] == order_of(end)


# -- rewriting ----------------------------------------------------------------------------------


def test_a_rewriter_renumbers(x):
    graph = graph_of(x @ x @ x)
    rewriter = Rewriter(graph)
    for vertex in graph.vertices:
        copy = Vertex(Op.COPY, (rewriter.ref(vertex.operands[0]),), (2, 2), vertex.dtype, "cpu")
        place = rewriter.add(copy)
        moved = rewriter.moved(vertex)
        rewriter.settle(rewriter.add(moved._replace(operands=(place, moved.operands[1]))))
    made = rewriter.finish()
    assert [vertex.operands for vertex in made.vertices] == [(~0,), (0, ~0), (1,), (2, ~0)]
    assert made.outputs == (3,)
    assert made.leaves is graph.leaves
    np.testing.assert_array_equal(outputs_of(made, [VALUE])[0], np.linalg.matrix_power(VALUE, 3))


def test_a_rewriter_may_merge_outputs(x):
    one, other = x @ x, x @ x
    graph = captured(one, other).graph()
    rewriter = Rewriter(graph)
    place = rewriter.add(graph.vertices[0])
    rewriter.settle(place)
    rewriter.settle(place)
    assert rewriter.finish() == Graph(graph.leaves, graph.vertices[:1], (0, 0))
