"""All rewrites on random graphs: values, memory and operands stay what they are."""

import random
import zlib
from collections import Counter
from itertools import combinations

import hypothesis
import numpy as np
from graphs import (
    Building,
    always,
    check_kernel,
    interpret,
    magnitudes,
    never,
    random_graph,
    values_of_leaves,
)
from hypothesis import strategies as st

from ggarray._graph.optimize import REWRITES, optimize
from ggarray._graph.optimize.common_subexpressions import common_subexpressions
from ggarray._graph.optimize.copies import copies
from ggarray._graph.optimize.dead_code import dead_code
from ggarray._graph.optimize.epilogues import epilogues
from ggarray._runtime import options
from ggarray.interface import PRODUCTS, Op

EXACT = [name for name in REWRITES if name != "epilogues"]


def examples(test):
    """Run a test on many random seeds."""
    settings = hypothesis.settings(max_examples=1500, deadline=None)
    return settings(hypothesis.given(seed=st.integers(0, 10**9))(test))


def random_takes(rng):
    """Return who takes all, nothing, or the same products each time."""
    salt = rng.random()

    def often(graph, vertex):
        return zlib.crc32(repr((salt, vertex)).encode()) % 3 > 0

    return rng.choice([always, never, often])


def random_names(rng):
    return set(rng.sample(list(REWRITES), rng.choice([1, 2, 3, len(REWRITES), len(REWRITES)])))


def test_the_option_knows_the_rewrites():
    assert tuple(REWRITES) == options.REWRITES


def test_no_names_no_rewrites():
    g = Building()
    x = g.leaf(3, 3)
    graph = g.graph(g.add(g.matmul(x, g.copy(x)), g.matmul(x, x)))
    assert optimize(graph, always, set()) is graph


def test_what_one_rewrite_leaves_another_uses():
    g = Building("f")
    x, c = g.leaf(4, 4), g.leaf(4)
    g.scale(g.matmul(x, x), 3.0)  # nobody needs it
    turned = [g.copy(g.transposed(x)) for _ in range(2)]
    scaled = [g.scale(g.matmul(each, x), 0.5) for each in turned]
    first, second = g.add(g.copy(scaled[0]), c), g.matmul(scaled[1], g.matmul(x, turned[0]))
    want = Building("f")
    assert (want.leaf(4, 4), want.leaf(4)) == (x, c)
    turned = want.transposed(x)
    scaled = want.matmul(turned, x, alpha=0.5)
    expected = [want.add(scaled, c), want.matmul(scaled, want.matmul(x, turned))]
    assert optimize(g.graph(first, second), always, REWRITES) == want.graph(*expected)


def with_origins(graph):
    vertices = tuple(vertex._replace(origin=at) for at, vertex in enumerate(graph.vertices))
    return graph._replace(vertices=vertices)


def rewritten(graph, takes, names):
    """Return the graph after rewrites, of which all that it says by itself has been checked."""
    graph = with_origins(graph)
    found = optimize(graph, takes, names)
    assert found.leaves == graph.leaves
    assert len(found.vertices) <= len(graph.vertices)
    needed = set(found.outputs)
    for at, vertex in reversed(list(enumerate(found.vertices))):
        assert all(ref < at for ref in vertex.operands)
        if at in needed:
            needed.update(vertex.operands)
        if vertex.op in PRODUCTS:
            assert graph.vertices[vertex.origin].op is vertex.op
            check_kernel(found, vertex)
    assert "dead_code" not in names or needed.issuperset(range(len(found.vertices)))
    for before, after in zip(graph.outputs, found.outputs, strict=True):
        assert graph.tensor(before) == found.tensor(after)
        assert graph.vertices[before].device == found.vertices[after].device
    if takes is never:
        assert all((vertex.alpha, vertex.beta) == (1, 0) for vertex in found.vertices)
    return found


def check(graph, takes, names, seed, special=False):
    """Rewrite and compute a graph; return the pairs of outputs, whose memory has been checked."""
    found = rewritten(graph, takes, names)
    leaves = values_of_leaves(graph, seed, special)
    untouched = [x.copy() for x in leaves]
    before, after = interpret(graph, leaves), interpret(found, leaves)
    for x, y in zip(leaves, untouched, strict=True):
        np.testing.assert_array_equal(x, y)
    for i, j in combinations(range(len(before)), 2):
        together = [np.may_share_memory(*(values[i], values[j])) for values in (before, after)]
        assert together[0] == together[1]
        assert graph.outputs[i] == graph.outputs[j] or found.outputs[i] != found.outputs[j]
    assert not any(np.may_share_memory(x, y) for x in after for y in leaves)
    return list(zip(before, after, strict=True)), leaves


@examples
def test_all_but_epilogues_keep_every_bit(seed):
    rng = random.Random(seed)
    graph = random_graph(rng, rng.choice(["d", "dfe", "fd"]))
    names = {name for name in EXACT if rng.random() < 0.7}
    pairs, _ = check(graph, never, names, seed, rng.random() < 0.5)
    for x, y in pairs:
        assert x.tobytes() == y.tobytes()


@examples
def test_integers_are_exact(seed):
    rng = random.Random(seed)
    graph = random_graph(rng, rng.choice("bBiQ"))
    for x, y in check(graph, random_takes(rng), random_names(rng), seed)[0]:
        np.testing.assert_array_equal(x, y)


@examples
def test_floating_numbers_within_rounding(seed):
    rng = random.Random(seed)
    graph = random_graph(rng, rng.choice(["d", "D", "fd", "df"]))
    pairs, leaves = check(graph, random_takes(rng), random_names(rng), seed)
    single = any(vertex.dtype == np.float32 for vertex in graph.vertices)
    rounding = (2**-23 if single else 2**-52) * 4 * (len(graph.vertices) + 4)
    for (x, y), magnitude in zip(pairs, magnitudes(graph, leaves), strict=True):
        assert (np.abs(x - y) <= rounding * np.abs(magnitude)).all()


@examples
def test_special_values_stay_where_they_are(seed):
    rng = random.Random(seed)
    graph = random_graph(rng, rng.choice("dD"))
    for x, y in check(graph, random_takes(rng), random_names(rng), seed, special=True)[0]:
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
        for part in (np.real, np.imag):
            for test in (np.isnan, np.isposinf, np.isneginf):
                np.testing.assert_array_equal(test(part(x)), test(part(y)))


def test_random_graphs_are_rewritten_in_every_way():
    seen = Counter()
    for seed in range(600):
        graph = dead_code(random_graph(random.Random(seed), "fd"))
        shared = common_subexpressions(graph)
        seen["shared"] += shared != graph
        seen["copied"] += count(shared, Op.COPY) > count(graph, Op.COPY)
        seen["original"] += count(copies(graph), Op.COPY) < count(graph, Op.COPY)
        found = epilogues(graph, always)
        fused = [vertex for vertex in found.vertices if vertex.op in PRODUCTS]
        seen["alpha"] += any(vertex.alpha not in (1, -1) for vertex in fused)
        seen["minus"] += any(vertex.alpha == -1 for vertex in fused)
        seen["bias"] += any(vertex.beta == 1 for vertex in fused)
        seen["less a bias"] += any(vertex.beta == -1 for vertex in fused)
        seen["astype"] += any(v.dtype != found.tensor(v.operands[0]).dtype for v in fused)
    assert len(seen) == 8
    assert min(seen.values()) >= 5, seen


def count(graph, op):
    return [vertex.op for vertex in graph.vertices].count(op)
