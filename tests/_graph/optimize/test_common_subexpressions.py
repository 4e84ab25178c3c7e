"""Equal operations are computed once, and no two arrays of the program come to share memory."""

import pytest
from graphs import Building

from ggarray._graph.optimize.common_subexpressions import common_subexpressions
from ggarray.interface import Op


@pytest.fixture
def g():
    g = Building()
    g.leaf(3, 3)
    return g


@pytest.fixture
def want():
    want = Building()
    want.leaf(3, 3)
    return want


X = ~0

OPERATIONS = {
    "matmul": lambda g: g.matmul(X, X),
    "outer": lambda g: g.outer(~1, ~1),
    "copy": lambda g: g.copy(X, "f"),
    "add": lambda g: g.add(X, X),
    "scale": lambda g: g.scale(X, 2.0),
    "minus": lambda g: g.scale(X),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_equal_operations_are_one(g, want, name):
    operation = OPERATIONS[name]
    for each in (g, want):
        each.leaf(3)
    graph = g.graph(g.add(operation(g), operation(g)))
    once = operation(want)
    assert common_subexpressions(graph) == want.graph(want.add(once, once))


@pytest.mark.parametrize("shown", [0, 1])
@pytest.mark.parametrize("name", OPERATIONS)
def test_one_that_the_program_sees_is_the_one(g, want, name, shown):
    operation = OPERATIONS[name]
    for each in (g, want):
        each.leaf(3)
    twice = [operation(g), operation(g)]
    graph = g.graph(twice[shown], g.scale(twice[1 - shown]))
    once = operation(want)
    assert common_subexpressions(graph) == want.graph(once, want.scale(once))


def test_equal_operands_are_found_to_the_end(g, want):
    def program(g):
        return g.scale(g.add(g.matmul(g.transposed(g.scale(X, 2.0)), X), X, True), 3.0)

    graph = g.graph(g.add(program(g), program(g)))
    once = program(want)
    assert common_subexpressions(graph) == want.graph(want.add(once, once))


def test_what_differs_stays(g):
    other, vector = g.leaf(3, 3), g.leaf(3)
    outputs = [g.matmul(X, X), g.matmul(X, other), g.matmul(other, X), g.scale(X, 2.0), g.scale(X)]
    outputs += [g.add(X, other), g.add(X, other, True), g.add(other, X, True), g.copy(X, "f")]
    outputs += [g.copy(X), g.outer(vector, vector), g.matmul(X, vector), g.matmul(vector, X)]
    square = outputs[0]
    outputs += [g.transposed(square), g.view(square, lambda layout: layout.index((0,)))]
    g.device = "blas"
    outputs += [g.matmul(X, X), g.scale(X, 2.0)]
    graph = g.graph(*outputs)
    assert common_subexpressions(graph) == graph


def test_of_two_results_the_second_is_a_copy(g, want):
    graph = g.graph(g.matmul(X, X), g.matmul(X, X), g.matmul(X, X))
    once = want.matmul(X, X)
    assert common_subexpressions(graph) == want.graph(once, want.copy(once), want.copy(once))


@pytest.mark.parametrize("name", ["outer", "copy", "add", "scale", "minus"])
def test_of_two_results_as_cheap_as_a_copy_both_stay(g, name):
    g.leaf(3)
    graph = g.graph(OPERATIONS[name](g), OPERATIONS[name](g))
    assert common_subexpressions(graph) == graph


def test_vectors_are_copied_as_they_are(g, want):
    for each in (g, want):
        each.leaf(3)
    graph = g.graph(g.matmul(X, ~1), g.matmul(X, ~1))
    once = want.matmul(X, ~1)
    assert common_subexpressions(graph) == want.graph(once, want.copy(once))


def test_views_of_two_results_have_memory_of_their_own(g, want):
    first, second = g.matmul(X, X), g.matmul(X, X)
    graph = g.graph(g.transposed(first), g.transposed(second))
    once = want.matmul(X, X)
    copy = want.copy(once)
    expected = want.graph(want.transposed(once), want.transposed(copy))
    assert common_subexpressions(graph) == expected


def test_views_of_views_of_two_results_too(g, want):
    def rows(g, x):
        return g.view(g.transposed(x), lambda layout: layout.index((slice(None, 2),)))

    graph = g.graph(g.matmul(X, X), rows(g, g.matmul(X, X)))
    once = want.matmul(X, X)
    expected = want.graph(once, rows(want, want.copy(once)))
    assert common_subexpressions(graph) == expected


def test_a_result_and_a_view_of_another(g, want):
    first, second = g.matmul(X, X), g.matmul(X, X)
    graph = g.graph(second, g.transposed(first))
    once = want.matmul(X, X)
    copy = want.copy(once)
    assert common_subexpressions(graph) == want.graph(copy, want.transposed(once))


def test_two_views_of_one_result_stay_two(g):
    square = g.matmul(X, X)
    graph = g.graph(square, g.transposed(square), g.transposed(square))
    assert common_subexpressions(graph) == graph


def test_views_that_the_program_does_not_see_are_one(g, want):
    square = g.matmul(X, X)
    shown = g.transposed(square)
    graph = g.graph(
        g.matmul(g.transposed(square), X), shown, g.matmul(g.transposed(square), square)
    )
    square = want.matmul(X, X)
    view = want.transposed(square)
    expected = want.graph(want.matmul(view, X), view, want.matmul(view, square))
    assert common_subexpressions(graph) == expected


def test_what_reads_the_second_of_two_results_is_one_with_what_reads_the_first(g, want):
    def program(g, x):
        return g.matmul(g.view(x, lambda layout: layout.permute((1, 0))), X)

    first, second = g.matmul(X, X), g.matmul(X, X)
    graph = g.graph(first, second, g.add(program(g, first), program(g, second)))
    once = want.matmul(X, X)
    copy = want.copy(once)
    product = program(want, once)
    expected = want.graph(once, copy, want.add(product, product))
    assert common_subexpressions(graph) == expected


def test_it_does_not_matter_where_operations_come_from(g):
    graph = g.graph(g.matmul(X, X), g.matmul(X, X), g.scale(g.matmul(X, X)))
    vertices = tuple(vertex._replace(origin=at) for at, vertex in enumerate(graph.vertices))
    found = common_subexpressions(graph._replace(vertices=vertices))
    assert [vertex.op for vertex in found.vertices] == [Op.MATMUL, Op.COPY, Op.SCALE]
    assert [vertex.origin for vertex in found.vertices] == [0, 1, 3]
