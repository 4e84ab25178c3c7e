"""Showing graphs: tables as text and HTML, the DOT language, drawings."""

import dataclasses
import html
import os
import pickle
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import ggarray as xp

# -- reading the DOT language, as its grammar has it --------------------------------------------

TOKEN = re.compile(r'\s*(?:(->)|([{}\[\],=])|([A-Za-z_]\w*|\d+)|"((?:[^"\\]|\\.)*)")', re.DOTALL)


def tokens(source):
    at, source = 0, source.strip()
    while at < len(source):
        token = TOKEN.match(source, at)
        assert token, f"no DOT: {source[at:]!r}"
        at = token.end()
        kind = token.lastindex
        yield kind, token[kind]


def parse(source):
    """Return the attributes of each node, and the edges with theirs."""
    words = list(tokens(source))
    assert words[:2] == [(3, "digraph"), (2, "{")]
    assert words[-1] == (2, "}")
    nodes, edges, rest = {}, [], words[2:-1]
    while rest:
        (kind, name), *rest = rest
        assert kind == 3
        if rest and rest[0] == (1, "->"):
            (kind, other), *rest = rest[1:]
            assert kind == 3
            attributes, rest = attributes_of(rest)
            edges.append((name, other, attributes))
        else:
            attributes, rest = attributes_of(rest)
            assert name not in nodes
            nodes[name] = attributes
    return nodes, edges


def attributes_of(words):
    attributes = {}
    if words and words[0] == (2, "["):
        separator = (2, "[")
        while separator != (2, "]"):
            (_, key), equals, (_, value), separator = words[1:5]
            assert equals == (2, "=")
            assert separator in [(2, ","), (2, "]")]
            attributes[key] = value
            words = words[4:]
        words = words[1:]
    return attributes, words


def shown(label):
    """Return the text that Graphviz shows for a label: escapes, then entities."""
    unescaped = re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), label)
    return html.unescape(unescaped)


def test_the_reader_refuses_what_is_no_dot():
    for source in [
        'digraph { a [label="b"c"] }',
        'digraph { a [label="b\\"] }',
        "digraph { a -> }",
    ]:
        with pytest.raises((AssertionError, ValueError)):
            parse(source)
    assert shown(r"a\nb\\n\"&amp;") == 'a\nb\\n"&'


# -- graphs to show -----------------------------------------------------------------------------


@pytest.fixture
def x():
    return xp.asarray(np.array([[1.0, 2.0], [3.0, 4.0]]), device="counting")


@pytest.fixture
def graph(x):
    """A product, its sum with an operand, and an update of other memory."""
    total = xp.asarray(np.ones((2, 2), np.float64), device="counting")
    total += x @ x + x
    return xp.graph(total)


def chain(x, length):
    with xp.options(max_pending_nodes=10**6):
        power = x @ x
        for _ in range(length - 1):
            power = power @ x
    return xp.graph(power)


ODD = '<b>"\\od&amp;d\n'


@pytest.fixture
def odd(graph):
    """A graph with a backend whose name has all that languages give a meaning."""
    return xp.Graph(tuple(dataclasses.replace(node, backend=ODD) for node in graph))


# -- as data ------------------------------------------------------------------------------------


def test_sequence(graph):
    assert len(graph) == 3
    assert list(graph) == [graph[0], graph[1], graph[-1]] == list(graph.nodes)
    assert graph[1:] == graph.nodes[1:]
    with pytest.raises(IndexError):
        graph[3]
    assert not xp.graph()


def test_equal_programs_have_equal_graphs(x):
    graph = xp.graph(x @ x)
    assert graph == xp.graph(x @ x) == xp.graph(x.T @ x.T)
    assert graph not in (xp.graph(x @ x.T), xp.graph(x @ x + x), xp.graph())


def test_immutable_and_pickled(graph):
    with pytest.raises(AttributeError):
        graph.nodes = ()
    with pytest.raises(AttributeError):
        graph[0].held = True
    assert pickle.loads(pickle.dumps(graph)) == graph


# -- as text ------------------------------------------------------------------------------------


def test_table(graph):
    assert str(graph).splitlines() == [
        "node  value              dtype    shape   device    backend   bytes  multiply-adds  held",
        "%0    x0 @ x0            float64  (2, 2)  counting  counting     32              8  no",
        "%1    %0 + x0            float64  (2, 2)  counting  host         32              0  no",
        "%2    x1[...] = x1 + %1  float64  (2, 2)  counting  host         32              0  yes",
        "",
        "leaf  dtype    shape   bytes",
        "x0    float64  (2, 2)     32",
        "x1    float64  (2, 2)     32",
    ]


def test_one_line(graph):
    assert repr(graph) == "<Graph of 3 nodes and 2 leaves, 8 multiply-adds>"
    assert repr(xp.graph()) == "<Graph of 0 nodes and 0 leaves, 0 multiply-adds>"


def test_explanation(graph):
    assert graph.explain().splitlines() == [
        "node  value              backend   why",
        "%0    x0 @ x0            counting  device counting takes this matmul of float64",
        "%1    %0 + x0            host      a sum: NumPy computes it",
        "%2    x1[...] = x1 + %1  host      a sum: NumPy computes it",
    ]


def test_nothing():
    nothing = xp.graph()
    assert str(nothing) == nothing.explain() == "nothing is pending"
    assert nothing._repr_html_() == "<p>nothing is pending</p>"
    assert nothing._repr_svg_() is None
    assert parse(nothing.to_dot()) == ({}, [])


@pytest.mark.parametrize(("length", "left_out"), [(100, None), (101, 1), (10_000, 9_900)])
def test_long_tables_are_shortened_in_the_middle(x, length, left_out):
    graph = chain(x, length)
    lines = str(graph).splitlines()
    head, *rows = lines[: lines.index("")]
    names = [line.split()[0] for line in rows]
    first, last = [f"%{at}" for at in range(50)], [f"%{at}" for at in range(length - 50, length)]
    if left_out is None:
        assert names == first + last
    else:
        assert names == [*first, "...", *last]
        assert rows[50] == f"... {left_out} nodes left out ..."
    columns = [match.start() for match in re.finditer(r"\S+", head)]
    assert all(row[columns[1] - 1] == " " for row in rows if not row.startswith("..."))
    assert len(graph.explain().splitlines()) == 1 + length


def test_many_leaves_are_shortened_too(x):
    graph = xp.graph(*[xp.ones((2, 2), device="counting") @ x for _ in range(150)])
    assert "\n... 51 leaves left out ...\n" in str(graph)
    assert '<td colspan="4">... 51 leaves left out ...</td>' in graph._repr_html_()


# -- as DOT -------------------------------------------------------------------------------------


def test_dot(graph):
    nodes, edges = parse(graph.to_dot())
    assert {name: shown(each["label"]) for name, each in nodes.items()} == {
        "x0": "x0\nfloat64 (2, 2)",
        "x1": "x1\nfloat64 (2, 2)",
        "n0": "%0 = x0 @ x0\nfloat64 (2, 2)\ncounting",
        "n1": "%1 = %0 + x0\nfloat64 (2, 2)\nhost",
        "n2": "%2 = x1[...] = x1 + %1\nfloat64 (2, 2)\nhost",
    }
    assert [name for name, each in nodes.items() if each.get("shape") == "box"] == ["x0", "x1"]
    assert [name for name, each in nodes.items() if "penwidth" in each] == ["n2"]
    solid = [edge[:2] for edge in edges if "style" not in edge[2]]
    assert sorted(solid) == [("n0", "n1"), ("n1", "n2")] + [("x0", "n0")] * 2 + [
        ("x0", "n1"),
        ("x1", "n2"),
    ]
    assert [edge[:2] for edge in edges if edge[2].get("style") == "dashed"] == [("n2", "x1")]


def test_dot_of_odd_names(odd):
    nodes, _ = parse(odd.to_dot())
    for name in ("n0", "n1", "n2"):
        assert shown(nodes[name]["label"]).endswith("\n" + ODD)


def test_dot_of_a_long_graph(x):
    nodes, edges = parse(chain(x, 2000).to_dot())
    assert len(nodes) == 2001
    assert len(edges) == 4000


# -- in notebooks -------------------------------------------------------------------------------

without_dot = pytest.fixture(lambda monkeypatch: monkeypatch.setenv("PATH", ""))


@pytest.fixture
def with_dot(tmp_path, monkeypatch):
    """Put a program named dot into the path that draws nothing and keeps what it was given."""
    program = tmp_path / "dot"
    program.write_text(
        f'#!/bin/sh\ncat > "{tmp_path}/source"\necho "$@" > "{tmp_path}/arguments"\necho "<svg/>"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep + os.environ["PATH"])
    return tmp_path


def tables(text):
    """Return the tables of an HTML text as lists of rows of cells."""
    return [
        [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
        for table in ElementTree.fromstring(f"<div>{text}</div>").iter("table")
    ]


@pytest.mark.usefixtures("without_dot")
def test_html_where_nothing_draws(graph):
    assert graph._repr_svg_() is None
    nodes, leaves = tables(graph._repr_html_())
    text = [re.split(r"\s{2,}", line) for line in str(graph).splitlines()]
    assert [nodes, leaves] == [text[:4], text[5:]]


@pytest.mark.usefixtures("without_dot")
def test_html_of_odd_names(odd):
    nodes, _ = tables(odd._repr_html_())
    assert [row[5] for row in nodes[1:]] == [ODD] * 3


@pytest.mark.usefixtures("with_dot")
def test_html_without_the_package(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "graphviz", None)  # importing it raises ImportError
    assert graph._repr_svg_() is None
    assert len(tables(graph._repr_html_())) == 2


def test_drawing(graph, with_dot):
    pytest.importorskip("graphviz")
    assert graph._repr_svg_().strip() == "<svg/>"
    assert graph._repr_html_() is None  # a notebook would prefer it
    assert (with_dot / "source").read_text().strip() == graph.to_dot()
    assert "-Tsvg" in (with_dot / "arguments").read_text().split()


def test_only_what_can_be_seen_is_drawn(x, with_dot):
    pytest.importorskip("graphviz")
    assert chain(x, 100)._repr_svg_() is not None
    long = chain(x, 101)
    assert long._repr_svg_() is None
    nodes, _ = tables(long._repr_html_())
    assert len(nodes) == 102
    assert nodes[51] == ["... 1 nodes left out ..."]
