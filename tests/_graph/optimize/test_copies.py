"""Copies to the same dtype are left out where only products and sums read them."""

import pytest
from graphs import Building

from ggarray._graph.optimize.copies import copies
from ggarray.interface import Op


def both():
    """Two graphs in the making that have the same leaf: before, and what is expected."""
    before, after = Building(), Building()
    x = before.leaf(3, 4)
    assert after.leaf(3, 4) == x
    return before, after, x


def test_products_read_the_original():
    before, after, x = both()
    before = before.graph(before.matmul(before.copy(before.transposed(x)), x))
    assert copies(before) == after.graph(after.matmul(after.transposed(x), x))


def test_sums_and_scalings_and_conversions_too():
    g, want, x = both()
    turned = g.transposed(x)
    outputs = [g.scale(g.copy(turned), 2.0), g.copy(g.copy(turned), "f")]
    outputs.append(g.add(g.copy(turned), g.copy(turned)))
    turned = want.transposed(x)
    expected = [want.scale(turned, 2.0), want.copy(turned, "f"), want.add(turned, turned)]
    assert copies(g.graph(*outputs)) == want.graph(*expected)


def test_a_bias_too():
    g, want, x = both()
    square = g.leaf(3, 3)
    assert want.leaf(3, 3) == square
    turned = g.copy(g.transposed(square))
    graph = g.graph(g.matmul(x, g.transposed(x), turned, beta=1))
    turned = want.transposed(square)
    assert copies(graph) == want.graph(want.matmul(x, want.transposed(x), turned, beta=1))


def test_copies_of_copies():
    g, want, x = both()
    copy = g.copy(g.copy(g.copy(x)))
    graph = g.graph(g.matmul(g.transposed(x), copy), g.copy(g.copy(x)))
    expected = want.graph(want.matmul(want.transposed(x), x), want.copy(x))
    assert copies(graph) == expected


def test_an_output_stays():
    g, _, x = both()
    copy = g.copy(x)
    graph = g.graph(copy, g.matmul(g.transposed(x), copy))
    assert copies(graph) is graph


def test_what_an_output_is_a_view_of_stays():
    g, _, x = both()
    copy = g.copy(g.scale(x))
    graph = g.graph(g.transposed(copy), g.matmul(copy, g.transposed(x)))
    assert copies(graph) is graph


def test_views_read_a_copy_that_lies_otherwise():
    g, _, x = both()
    copy = g.copy(g.transposed(x))  # as reshape makes it
    flat = g.view(copy, lambda layout: layout.reshape((12,), 8))
    graph = g.graph(g.matmul(flat, flat))
    assert copies(graph) is graph


def test_views_read_the_original_that_lies_as_the_copy_does():
    g, want, x = both()
    flat = g.view(g.copy(g.scale(x)), lambda layout: layout.reshape((12,), 8))
    graph = g.graph(g.matmul(flat, flat))
    flat = want.view(want.scale(x), lambda layout: layout.reshape((12,), 8))
    assert copies(graph) == want.graph(want.matmul(flat, flat))


@pytest.mark.parametrize(("dtype", "between"), [("d", "f"), ("f", "d"), ("f", "e")])
def test_a_conversion_stays(dtype, between):
    g = Building(dtype)
    x = g.leaf(3, 3)
    graph = g.graph(g.matmul(g.copy(g.copy(x, between), dtype), x))
    assert copies(graph) is graph


@pytest.mark.parametrize(
    ("strides", "several"), [((8, 24), 0), ((32, 8), 0), ((48, 16), 1), ((0, 0), 1), ((16, 48), 1)]
)
def test_several_products_read_one_copy_of_what_lies_apart(strides, several):
    for readers in (1, 2):
        g = Building()
        x, apart = g.leaf(3, 3), g.leaf(3, 3, strides=strides)
        copy = g.copy(apart)
        graph = g.graph(*(g.matmul(copy, x) for _ in range(readers)))
        left = [vertex for vertex in copies(graph).vertices if vertex.op is Op.COPY]
        assert len(left) == (several if readers == 2 else 0)
