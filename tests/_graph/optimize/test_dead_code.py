"""What no output needs is not computed."""

from graphs import Building

from ggarray._graph.optimize.dead_code import dead_code


def test_what_no_output_needs_goes():
    g = Building()
    x = g.leaf(3, 3)
    dead = g.matmul(x, x)
    used = g.matmul(x, g.transposed(x))
    g.add(dead, used)
    g.scale(used, 2.0)
    out = g.add(used, x)
    left = Building()
    assert left.leaf(3, 3) == x
    product = left.matmul(x, left.transposed(x))
    assert dead_code(g.graph(out)) == left.graph(left.add(product, x))


def test_outputs_keep_their_order():
    g = Building()
    x = g.leaf(3, 3)
    g.matmul(x, x)
    first, second = g.scale(x, 2.0), g.scale(x, 3.0)
    assert dead_code(g.graph(second, first)).outputs == (1, 0)


def test_a_graph_without_dead_code_is_the_same():
    g = Building()
    x = g.leaf(3, 3)
    graph = g.graph(g.add(g.matmul(x, x), x))
    assert dead_code(graph) is graph


def test_nothing_is_needed():
    g = Building()
    g.scale(g.matmul(g.leaf(3, 3), ~0), 2.0)
    assert dead_code(g.graph()).vertices == ()
