"""Scaling, bias and conversions become parts of a product, and nothing does that may not."""

import ml_dtypes
import numpy as np
import pytest
from graphs import Building, always, check_kernel, never

from ggarray._graph.ir import Leaf
from ggarray._graph.optimize.epilogues import epilogues
from ggarray._quantized.traits import q8_0
from ggarray.interface import Op

X, C, ROW, COLUMN, ELEMENT, V, LONG = ~0, ~1, ~2, ~3, ~4, ~5, ~6

DTYPES = ["e", "f", "d", "F", "D", "b", "B", "q"]


def making(dtype="d"):
    g = Building(dtype)
    g.leaf(3, 3), g.leaf(3, 3), g.leaf(3), g.leaf(3, 1), g.leaf(), g.leaf(3), g.leaf(2, 3, 3)
    return g


def fused(graph, takes=always):
    """Return the graph after the rewrite, in which kernels are sound."""
    found = epilogues(graph, takes)
    for vertex in found.vertices:
        if vertex.op in (Op.MATMUL, Op.OUT_PROD):
            check_kernel(found, vertex)
    return found


PRODUCTS = {
    "matmul": lambda g, **fields: g.matmul(X, X, **fields),
    "outer": lambda g, **fields: g.outer(V, V, **fields),
    "batch": lambda g, **fields: g.matmul(LONG, X, **fields),
}
product_of_kind = pytest.mark.parametrize("kind", PRODUCTS)


def only_signs(dtype, kind):
    """Tell whether nothing but the sign of these products is changed."""
    return kind == "outer" and dtype not in "bBq"


@product_of_kind
@pytest.mark.parametrize("dtype", DTYPES)
def test_scaling(dtype, kind):
    product = PRODUCTS[kind]
    if only_signs(dtype, kind):
        g = making(dtype)
        assert stays(g.graph(g.scale(product(g), 3)))
        return
    g, want = making(dtype), making(dtype)
    assert fused(g.graph(g.scale(product(g), 3))) == want.graph(product(want, alpha=3))


MINUS_ONE = {"e": -1, "f": -1, "d": -1, "b": -1, "B": 255, "q": -1}


@product_of_kind
@pytest.mark.parametrize("dtype", MINUS_ONE)
def test_minus(dtype, kind):
    product = PRODUCTS[kind]
    g, want = making(dtype), making(dtype)
    minus = MINUS_ONE[dtype]
    assert fused(g.graph(g.scale(product(g)))) == want.graph(product(want, alpha=minus))


@product_of_kind
@pytest.mark.parametrize("bias", [C, ROW, COLUMN, ELEMENT])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums(dtype, bias, kind):
    product = PRODUCTS[kind]
    sums = [
        (lambda g: g.add(product(g), bias), {"beta": 1}),
        (lambda g: g.add(bias, product(g)), {"beta": 1}),
        (lambda g: g.add(product(g), bias, True), {"beta": -1}),
    ]
    if dtype not in "FD":
        minus = MINUS_ONE[dtype]
        sums.append((lambda g: g.add(bias, product(g), True), {"alpha": minus, "beta": 1}))
    for add, fields in sums:
        g, want = making(dtype), making(dtype)
        if only_signs(dtype, kind):
            assert stays(g.graph(add(g)))
            continue
        assert fused(g.graph(add(g))) == want.graph(product(want, bias=bias, **fields))


def test_minus_after_a_bias():
    for subtract, beta in ((False, -1), (True, 1)):
        g, want = making(), making()
        graph = g.graph(g.scale(g.add(g.scale(g.matmul(X, X), 2.0), C, subtract)))
        assert fused(graph) == want.graph(want.matmul(X, X, C, alpha=-2.0, beta=beta))


def test_everything_at_once():
    g, want = making("f"), making("f")
    product = g.add(C, g.scale(g.scale(g.matmul(X, X)), 3.0), True)
    graph = g.graph(g.scale(g.copy(g.scale(product), "d")))
    product = want.matmul(X, X, C, alpha=3.0, beta=1, dtype="d")
    assert fused(graph) == want.graph(product)


def test_vectors_are_scaled_and_converted_but_not_added_to():
    for a, b in ((X, V), (V, X), (V, V)):
        g, want = making(), making()
        graph = g.graph(g.copy(g.scale(g.matmul(a, b), 2.0), "f"))
        assert fused(graph) == want.graph(want.matmul(a, b, alpha=2.0, dtype="f"))
        g = making()
        graph = g.graph(g.add(g.matmul(a, b), ELEMENT))
        assert epilogues(graph, always) is graph


def test_the_bias_may_be_computed_before():
    g, want = making(), making()
    graph = g.graph(g.add(g.matmul(X, C), g.transposed(g.scale(C))))
    bias = want.transposed(want.scale(C))
    assert fused(graph) == want.graph(want.matmul(X, C, bias, beta=1))


def test_of_two_products_one_is_the_bias_of_the_other():
    def taken(biased):
        g = making()
        graph = g.graph(g.add(g.matmul(X, X), g.scale(g.matmul(C, C), 2.0)))
        return fused(graph, lambda _, v: len(v.operands) == 2 or v.operands[0] in biased)

    want = making()
    bias = want.matmul(C, C, alpha=2.0)
    assert taken({X, C}) == want.graph(want.matmul(X, X, bias, beta=1))
    want = making()
    bias = want.matmul(X, X)
    assert taken({C}) == want.graph(want.matmul(C, C, bias, alpha=2.0, beta=1))


def test_a_product_of_a_product():
    g, want = making(), making()
    graph = g.graph(g.add(g.matmul(g.scale(g.matmul(X, X), 2.0), C), ROW))
    expected = want.graph(want.matmul(want.matmul(X, X, alpha=2.0), C, ROW, beta=1))
    assert fused(graph) == expected


def test_quantized_operands():
    g, want = Building("f"), Building("f")
    for each in (g, want):
        each.leaves += [Leaf((3, 32), np.dtype("f"), (128, 4), None)]
        each.leaves += [Leaf((32, 3), q8_0, (34, 34), 0)]
        each.leaf(3)
    graph = g.graph(g.copy(g.add(g.scale(g.matmul(~0, ~1), 2.0), ~2), "d"))
    expected = want.graph(want.matmul(~0, ~1, ~2, alpha=2.0, beta=1, dtype="d"))
    assert epilogues(graph, always) == expected


@pytest.mark.parametrize(
    ("dtype", "factor", "alpha"),
    [
        ("e", 1 / 3, float(np.float16(1 / 3))),
        ("f", 0.1, float(np.float32(0.1))),
        ("f", 2**24 + 1, 2.0**24),
        ("d", 0.1, 0.1),
        ("F", 0.1, complex(np.complex64(0.1))),
        ("D", 1j, 1j),
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16(0.1), float(ml_dtypes.bfloat16(0.1))),
    ],
)
def test_factors_are_those_of_the_dtype(dtype, factor, alpha):
    g, want = making(dtype), making(dtype)
    found = fused(g.graph(g.scale(g.matmul(X, X), factor)))
    assert found == want.graph(want.matmul(X, X, alpha=alpha))
    assert type(found.vertices[0].alpha) in (int, float, complex)


@pytest.mark.parametrize("dtype", "bB")
def test_integers_wrap(dtype):
    smallest = {"b": -128, "B": 1}[dtype]
    negated = {"b": -128, "B": 255}[dtype]
    g, want = making(dtype), making(dtype)
    graph = g.graph(g.scale(g.scale(g.matmul(X, X), smallest)))
    assert fused(graph) == want.graph(want.matmul(X, X, alpha=negated))


# -- what stays ------------------------------------------------------------------------------------


def stays(graph, takes=always):
    return epilogues(graph, takes) is graph


@product_of_kind
def test_a_product_that_is_needed_elsewhere(kind):
    product = PRODUCTS[kind]
    readers = {
        "an output": lambda g, p: (p, g.scale(p)),
        "read twice": lambda g, p: (g.scale(p), g.copy(p, "f")),
        "added to itself": lambda g, p: (g.add(p, p),),
        "seen through a view": lambda g, p: (g.transposed(p), g.scale(p)),
        "scaled through a view": lambda g, p: (g.scale(g.transposed(p)),),
    }
    for name, read in readers.items():
        g = making()
        graph = g.graph(*read(g, product(g)))
        assert stays(graph), name


def test_what_has_been_absorbed_is_needed_elsewhere():
    g, want = making(), making()
    scaled = g.scale(g.matmul(X, X), 2.0)
    graph = g.graph(scaled, g.add(scaled, C))
    scaled = want.matmul(X, X, alpha=2.0)
    assert fused(graph) == want.graph(scaled, want.add(scaled, C))


@pytest.mark.parametrize("first", [2.0, 0.5])
def test_a_second_factor(first):
    g, want = making(), making()
    graph = g.graph(g.scale(g.scale(g.matmul(X, X), first), 4.0))
    expected = want.graph(want.scale(want.matmul(X, X, alpha=first), 4.0))
    assert fused(graph) == expected


def test_a_factor_or_a_sum_after_a_bias():
    for after in (lambda g, x: g.scale(x, 2.0), lambda g, x: g.add(x, ROW)):
        g, want = making(), making()
        graph = g.graph(after(g, g.add(g.matmul(X, X), C)))
        assert fused(graph) == want.graph(after(want, want.matmul(X, X, C, beta=1)))


@pytest.mark.parametrize(
    ("dtype", "factor"),
    [
        ("e", 1e-10),
        ("f", 1e-50),
        ("f", 1e50),
        ("d", float("inf")),
        ("d", float("nan")),
        ("F", 1e50),
        ("F", 1 + 1e-20),
        ("F", 1 + 0j),
        ("D", 1),
        ("D", -1.0),
    ],
)
def test_factors_that_are_none(dtype, factor):
    g = making(dtype)
    assert stays(g.graph(g.scale(g.matmul(X, X), factor)))


@pytest.mark.parametrize("dtype", "FD")
def test_signs_of_complex_products(dtype):
    for read in (
        lambda g, p: g.scale(p),
        lambda g, p: g.add(C, p, True),
    ):
        g = making(dtype)
        assert stays(g.graph(read(g, g.matmul(X, X))))
        g, want = making(dtype), making(dtype)
        graph = g.graph(read(g, g.scale(g.matmul(X, X), 2j)))
        (vertex,) = fused(graph).vertices
        assert vertex.alpha == -2j
        g, want = making(dtype), making(dtype)
        graph = g.graph(g.scale(g.add(g.matmul(X, X), C)))
        assert fused(graph) == want.graph(want.scale(want.matmul(X, X, C, beta=1)))


@pytest.mark.parametrize(("dtype", "other"), [("f", "d"), ("e", "f"), ("d", "e"), ("d", "f")])
def test_what_is_added_to_a_converted_product(dtype, other):
    for order in (1, -1):
        g = making(dtype)
        wide = g.copy(g.matmul(X, X), other)
        found = epilogues(g.graph(g.add(*(wide, g.leaf(3, 3, dtype=other))[::order])), always)
        assert [vertex.op for vertex in found.vertices] == [Op.MATMUL, Op.ADD]


@pytest.mark.parametrize(
    ("dtype", "other"), [("f", "d"), ("d", "f"), ("b", "h"), ("q", "i"), ("f", "F"), ("F", "f")]
)
def test_sums_in_another_dtype(dtype, other):
    for order in (1, -1):
        g = making(dtype)
        bias = g.leaf(3, 3, dtype=other)
        assert stays(g.graph(g.add(*(g.matmul(X, X), bias)[::order])))


def test_sums_of_another_shape():
    g = making()
    assert stays(g.graph(g.add(g.matmul(X, X), LONG)))
    g = making("b")
    assert stays(g.graph(g.add(g.outer(V, V), LONG)))


def test_sums_on_another_device():
    g = making()
    product = g.matmul(X, X)
    g.device = "blas"
    assert stays(g.graph(g.add(product, C)))


@pytest.mark.parametrize(
    ("dtype", "others"), [("f", "deF"), ("d", "f"), ("F", "D"), ("b", "hf"), ("F", "f"), ("q", "d")]
)
def test_conversions_within_a_kind_of_floating_numbers(dtype, others):
    for other in others:
        g, want = making(dtype), making(dtype)
        graph = g.graph(g.copy(g.matmul(X, X), other))
        kinds = np.dtype(dtype).kind + np.dtype(other).kind
        if kinds in ("ff", "cc"):
            assert fused(graph) == want.graph(want.matmul(X, X, dtype=other))
        else:
            assert stays(graph)


def test_conversions_of_outer_products():
    g = making("f")
    assert stays(g.graph(g.copy(g.outer(V, V), "d")))


def test_bfloat16_is_a_floating_dtype():
    g, want = making(ml_dtypes.bfloat16), making(ml_dtypes.bfloat16)
    graph = g.graph(g.copy(g.matmul(X, X), "f"))
    assert fused(graph) == want.graph(want.matmul(X, X, dtype="f"))


def test_what_is_done_after_a_conversion():
    for after in (
        lambda g, x: g.scale(x, 2.0),
        lambda g, x: g.add(x, bias_of(g)),
        lambda g, x: g.copy(x, "d"),
        lambda g, x: g.copy(x, "e"),
    ):
        g, want = making(), making()
        graph = g.graph(after(g, g.copy(g.matmul(X, X), "f")))
        assert fused(graph) == want.graph(after(want, want.matmul(X, X, dtype="f")))


def bias_of(g):
    return g.leaf(3, 3, dtype="f")


def test_only_what_is_taken():
    g, want = making(), making()
    graph = g.graph(g.copy(g.add(g.scale(g.matmul(X, X), 2.0), C), "f"))
    assert stays(graph, never)
    asked = []

    def takes(over, vertex):
        assert over is graph
        asked.append(vertex)
        return vertex.dtype == np.float64

    expected = want.graph(want.copy(want.matmul(X, X, C, alpha=2.0, beta=1), "f"))
    assert fused(graph, takes) == expected
    steps = [(vertex.alpha, vertex.beta, vertex.dtype.char) for vertex in asked]
    assert steps == [(2.0, 0, "d"), (2.0, 1, "d"), (2.0, 1, "f")]


def test_the_product_is_what_a_vertex_is_made_from():
    g = making()
    graph = g.graph(g.scale(g.add(g.matmul(X, X), C)))
    vertices = tuple(vertex._replace(origin=7 + at) for at, vertex in enumerate(graph.vertices))
    (vertex,) = fused(graph._replace(vertices=vertices)).vertices
    assert vertex.origin == 7
