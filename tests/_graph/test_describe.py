"""Descriptions of pending nodes: what each is, in text that NumPy can compute, by whom and why."""

import inspect
import random

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from values import numbers, zeros_q8_0

import ggarray as xp
from ggarray.interface import Op

VALUE = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]])


@pytest.fixture
def x():
    return xp.asarray(VALUE, device="counting")


FUNCTIONS = {
    "astype": lambda a, dtype: a.astype(dtype),
    "float32": np.float32,
    "outer": np.multiply.outer,
    "permute_dims": np.transpose,
    "reshape": np.reshape,
}


def computed(graph, *leaves):
    """Compute the nodes' texts with NumPy; return their values, and those of the leaves after."""
    names = {str(leaf): value.copy() for leaf, value in zip(graph.leaves, leaves, strict=True)}
    for node in graph:

        def view(base, strides, offset, shape=node.shape):
            flat = np.ascontiguousarray(base).reshape(-1)
            return as_strided(flat[offset:], shape, [step * flat.itemsize for step in strides])

        text = node.expression.replace("%", "n")
        names[f"n{node.index}"] = eval(text, {**FUNCTIONS, "view": view}, names)
        if node.writes is not None:
            names[str(node.writes)][...] = names[f"n{node.index}"]
    values = [names[f"n{node.index}"] for node in graph]
    return values, [names[str(leaf)] for leaf in graph.leaves]


# -- what nodes are -----------------------------------------------------------------------------


def test_nodes_in_the_order_of_computation(x):
    product = x @ x
    total = product - x
    a, b = graph = xp.graph(total)
    (leaf,) = graph.leaves
    assert (leaf.index, leaf.dtype, leaf.shape, leaf.nbytes) == (0, np.float64, (3, 3), 72)
    assert (a.index, a.op, a.operands) == (0, Op.MATMUL, (leaf, leaf))
    assert (b.index, b.op, b.operands) == (1, Op.ADD, (0, leaf))
    for node, backend in ((a, "counting"), (b, "host")):
        assert (node.shape, node.dtype, node.nbytes) == ((3, 3), np.float64, 72)
        assert (node.device, node.backend) == ("counting", backend)


def test_what_is_not_pending_is_a_leaf(x):
    product = x @ x
    end = product @ x
    xp.evaluate(product)
    (node,) = xp.graph(end)
    assert [(leaf.shape, leaf.nbytes) for leaf in node.operands] == [((3, 3), 72)] * 2
    assert node.operands[0] != node.operands[1]
    assert len(xp.graph(x, product)) == len(xp.graph()) == 0


def test_one_leaf_for_one_layout_of_memory(x):
    (node,) = xp.graph(x @ x[:, :])
    assert len(set(node.operands)) == 1
    for other in (x.T, x + 0.0):
        (node,) = xp.graph(x @ other)
        assert len(set(node.operands)) == 2


def test_quantized_leaf():
    weights = zeros_q8_0((2, 64))
    (node,) = xp.graph(xp.ones((3, 64), dtype=xp.float32, device="cpu") @ weights.mT)
    plain, blocks = node.operands
    assert (plain.dtype, plain.nbytes) == (np.float32, 3 * 64 * 4)
    assert (blocks.dtype, blocks.shape, blocks.nbytes) == (xp.q8_0, (64, 2), 2 * 2 * 34)
    assert (node.dtype, node.multiply_adds) == (np.float32, 3 * 64 * 2)


def test_quantized_square_and_its_transpose_are_two_leaves():
    weights = zeros_q8_0((32, 32))
    a = xp.ones((2, 32), dtype=xp.float32, device="cpu")
    assert len(xp.graph(a @ weights, a @ weights.mT).leaves) == 3


def test_values_that_the_program_holds(x):
    held = x @ x
    end = held @ x @ x
    assert [node.held for node in xp.graph(end)] == [True, False, True]
    del held
    assert [node.held for node in xp.graph(end)] == [False, False, True]


def test_lines_that_recorded_them(x):
    first, here = x @ x, inspect.currentframe().f_lineno
    with xp.options(source_lines=False):
        end = first @ x
    assert [node.source for node in xp.graph(end)] == [f"{__file__}:{here}", None]


PRODUCTS = {
    "matrices": (lambda a, b: a @ b, (2, 3), (3, 5), 30),
    "vectors": (lambda a, b: a @ b, (4,), (4,), 4),
    "matrix and vector": (lambda a, b: a @ b, (2, 3), (3,), 6),
    "vector and matrix": (lambda a, b: a @ b, (3,), (3, 2), 6),
    "batches": (lambda a, b: a @ b, (4, 2, 3), (3, 5), 120),
    "broadcast batches": (lambda a, b: a @ b, (4, 1, 2, 3), (6, 3, 5), 720),
    "outer": (xp.linalg.outer, (3,), (4,), 12),
    "nothing to add": (lambda a, b: a @ b, (2, 0), (0, 5), 0),
    "nothing": (lambda a, b: a @ b, (0, 3), (3, 5), 0),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex128])
def test_bytes_and_work_of_products(name, dtype):
    function, a, b, work = PRODUCTS[name]
    product = function(xp.ones(a, dtype=dtype), xp.ones(b, dtype=dtype))
    (node,) = xp.graph(product)
    assert node.multiply_adds == work
    assert (node.shape, node.nbytes) == (product.shape, product.nbytes)


def test_bytes_and_work_of_the_host(x):
    product = x @ x
    _, *others = xp.graph(product[1:] + 1 * product[:2])
    assert [node.op for node in others] == [Op.VIEW, Op.VIEW, Op.SCALE, Op.ADD]
    assert [node.nbytes for node in others] == [0, 0, 48, 48]
    assert not any(node.multiply_adds for node in others)


# -- their texts --------------------------------------------------------------------------------

EXPRESSIONS = {
    "%0 + x0": lambda p, x: p + x,
    "x0 + %0": lambda p, x: x + p,
    "%0 - x0": lambda p, x: p - x,
    "x0 - %0": lambda p, x: x - p,
    "%0 * 2.5": lambda p, x: 2.5 * p,
    "%0 * -3": lambda p, x: p * -3,
    "-%0": lambda p, x: -p,
    "astype(%0, float32)": lambda p, x: p.astype(np.float32),
    "%0.mT": lambda p, x: p.T,
    "reshape(%0, (9,))": lambda p, x: p.reshape(9),
    "reshape(%0, (3, 1, 3))": lambda p, x: p[:, None],
    "view(%0, strides=(3, 1), offset=3)": lambda p, x: p[1:],
    "view(%0, strides=(1,), offset=6)": lambda p, x: p[2],
    "view(%0, strides=(3, 2), offset=0)": lambda p, x: p[:, ::2],
    "%0 @ x0": lambda p, x: p @ x,
    "x0 @ %0": lambda p, x: x @ p,
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(x, text):
    make = EXPRESSIONS[text]
    graph = xp.graph(make(x @ x, x))
    assert [node.expression for node in graph] == ["x0 @ x0", text]
    np.testing.assert_array_equal(
        computed(graph, VALUE)[0][-1], make(VALUE @ VALUE, VALUE).astype(graph[1].dtype)
    )


def test_outer_product(x):
    column = x[:, 0]
    graph = xp.graph(xp.linalg.outer(column, column))
    assert [node.expression for node in graph] == ["outer(x0, x0)"]
    np.testing.assert_array_equal(computed(graph, VALUE[:, 0])[0][0], np.outer(*[VALUE[:, 0]] * 2))


@pytest.mark.parametrize("axes", [(0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 1, 0), (2, 0, 1)])
def test_permutations(axes):
    a, b = numbers((2, 4, 3), float), numbers((3, 5), float)
    x, y = (xp.asarray(each, device="counting") for each in (a, b))
    graph = xp.graph(xp.permute_dims(x @ y, axes))
    swapped = axes == (0, 2, 1)
    assert graph[1].expression == ("%0.mT" if swapped else f"permute_dims(%0, {axes})")
    values, _ = computed(graph, a, b)
    np.testing.assert_array_equal(values[1], (a @ b).transpose(axes))


def test_scale_factors_of_other_dtypes():
    x = xp.ones((2, 2), dtype=xp.complex64)
    assert xp.graph(x @ x * (1 + 2j))[1].expression == "%0 * (1+2j)"
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = xp.ones((2, 2), dtype=ml_dtypes.bfloat16)
    assert xp.graph(x @ x * 2)[1].expression == "%0 * 2.0"


def test_update_in_place(x):
    total = xp.asarray(np.ones((3, 3)), device="counting")
    total += x @ x
    graph = xp.graph(total)
    assert [node.statement for node in graph] == ["x0 @ x0", "x1[...] = x1 + %0"]
    product, update = graph
    assert (product.writes, update.writes) == (None, graph.leaves[1])
    assert update.held
    _, (_, memory) = computed(graph, VALUE, np.ones((3, 3)))
    np.testing.assert_array_equal(memory, np.asarray(total))


def test_updates_in_a_row(x):
    total = xp.asarray(np.ones((3, 3)), device="counting")
    total += x @ x
    total -= x @ x
    graph = xp.graph(total)
    assert [node.statement for node in graph] == [
        "x0 @ x0",
        "x1 + %0",
        "x0 @ x0",
        "x1[...] = %1 - %2",
    ]
    _, (_, memory) = computed(graph, VALUE, np.ones((3, 3)))
    np.testing.assert_array_equal(memory, np.ones((3, 3)))


def test_update_of_a_pending_array_writes_nothing(x):
    product = x @ x
    product += x
    assert [node.statement for node in xp.graph(product)] == ["x0 @ x0", "%0 + x0"]


@pytest.mark.parametrize("seed", range(20))
def test_numpy_computes_the_texts_of_random_graphs(x, seed):
    rng = random.Random(seed)
    steps = [  # none has to be computed when it is recorded
        lambda a, b: a @ b,
        lambda a, b: a[::-1].T @ b,
        lambda a, b: a @ x - b @ x,
        lambda a, b: a[:, ::-1].T,
        lambda a, b: -(a @ x),
        lambda a, b: 0.125 * (x @ a),
        lambda a, b: xp.broadcast_to(a[1], (3, 3)),
    ]
    arrays = [x @ x]
    for _ in range(12):
        arrays.append(rng.choice(steps)(rng.choice(arrays), rng.choice([*arrays, x])))
    graph = xp.graph(*arrays)
    assert [node.index for node in graph] == list(range(len(graph)))
    assert sum(node.held for node in graph) == len(arrays)
    for node in graph:
        assert all(each < node.index for each in node.operands if isinstance(each, int))
    values, _ = computed(graph, *[VALUE] * len(graph.leaves))
    held = [value for node, value in zip(graph, values, strict=True) if node.held]
    for array in arrays:
        assert any(np.allclose(value, np.asarray(array), rtol=1e-9) for value in held)


# -- who computes them, and why -----------------------------------------------------------------


def reasons(*arrays):
    return [(node.backend, node.reason) for node in xp.graph(*arrays)]


def test_products_of_the_cpu():
    x = xp.ones((2, 2), device="cpu")
    assert reasons(x @ x) == [("cpu", "it computes all products of device cpu")]


def test_products_that_a_device_takes(x):
    assert reasons(x @ x) == [("counting", "device counting takes this matmul of float64")]


def test_products_that_the_vendor_does_worse():
    small, large = (xp.ones((n, n), device="blas") for n in (2, 64))
    why = "blas takes matmul of float64, but does these shapes worse or not at all"
    assert reasons(small @ small, large @ large) == [
        ("cpu", why),
        ("blas", "device blas takes this matmul of float64"),
    ]


def test_products_that_the_vendor_lacks():
    whole, vector = xp.ones((64, 64), dtype=xp.int64, device="blas"), xp.ones(9, device="blas")
    assert reasons(whole @ whole, xp.linalg.outer(vector, vector)) == [
        ("cpu", "blas takes no matmul of int64"),
        ("cpu", "blas takes no out_prod of float64"),
    ]


def test_products_with_quantized_weights():
    weights = zeros_q8_0((256, 256)).to_device("blas")
    row, rows = (xp.ones((n, 256), dtype=xp.float32, device="blas") for n in (1, 256))
    what = "matmul of float32 and q8_0"
    assert reasons(row @ weights.mT, rows @ weights.mT) == [
        ("cpu", f"blas takes {what}, but does these shapes worse or not at all"),
        ("blas", f"device blas takes this {what}"),
    ]
    (_, both) = reasons(weights @ weights.mT)[0]
    assert both == "device blas takes this matmul of q8_0 and float32"


def test_the_host_computes_what_is_no_product(x):
    product = x @ x
    _, *others = reasons(
        product.T, -product, product + x, xp.astype(product, xp.float32), product - x
    )
    assert others == [
        ("host", "a view: no element moves"),
        ("host", "a scaling: NumPy computes it"),
        ("host", "a sum: NumPy computes it"),
        ("host", "a conversion: NumPy computes it"),
        ("host", "a sum: NumPy computes it"),
    ]


def test_who_is_named_computes(x, counting):
    product = (x @ x) @ x
    named = [node.op for node in xp.graph(product) if node.backend == "counting"]
    xp.evaluate(product)
    assert counting.computed == named
