"""Graph: what is pending, as plain data, and how that is shown.

Nothing here holds a node or memory, so that looking at a graph keeps nothing alive.
"""

import html
import importlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from ggarray._runtime.devices import Device
from ggarray._runtime.table import aligned_table
from ggarray.interface import Op

_SHOWN = 100  # rows of a table, and nodes of a drawing
_MIDDLE = _SHOWN // 2


@dataclass(frozen=True, slots=True)
class GraphLeaf:
    """A value that is there already: what pending nodes read, or the memory that they update.

    Attributes
    ----------
    index : int
        Its number; shown as ``x0``, ``x1``, ...
    dtype : numpy.dtype or QuantizedDType
    shape : tuple of int
    nbytes : int
        Of its elements.
    """

    index: int
    dtype: Any
    shape: tuple[int, ...]
    nbytes: int

    def __str__(self) -> str:
        return f"x{self.index}"


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One operation that has not been computed.

    Attributes
    ----------
    index : int
        Its place in the graph; shown as ``%0``, ``%1``, ...
    op : Op
    operands : tuple of int and GraphLeaf
        A number is the index of another node.
    expression : str
        The operation as text. A view that is neither a reshape nor a permutation is given by its
        strides and offset, counted in elements of the memory it looks into.
    writes : GraphLeaf or None
        What the value is written to at the end, if the node is an in-place update.
    dtype, shape, device
        Of the value.
    held : bool
        True if an Array of the program stands for the value, or sees the memory it updates. Other
        values go when the last node that reads them has been computed.
    nbytes : int
        Of the value; 0 for a view, which has no memory of its own.
    multiply_adds : int
        Of a product, 0 otherwise.
    backend : str
        Who will compute it: the name of a backend's device, or ``host``.
    reason : str
        Why that one.
    source : str or None
        The file and line that recorded it; None if that was not kept. Two nodes may be equal
        wherever they were recorded.
    """

    index: int
    op: Op
    operands: "tuple[int | GraphLeaf, ...]"
    expression: str
    writes: GraphLeaf | None
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    device: Device
    held: bool
    nbytes: int
    multiply_adds: int
    backend: str
    reason: str
    source: str | None = field(compare=False)

    def __str__(self) -> str:
        return f"%{self.index}"

    @property
    def statement(self) -> str:
        """The expression, and where its value is written to."""
        return self.expression if self.writes is None else f"{self.writes}[...] = {self.expression}"


@dataclass(frozen=True, slots=True, repr=False)
class Graph(Sequence[GraphNode]):
    """What `graph` found pending: a sequence of nodes in the order they will be computed in.

    It is a description made at that time, immutable, and keeps no array alive. ``str()`` of it is
    a table, shortened in the middle if it is long. In notebooks a graph of up to 100 nodes is drawn
    where the ``graphviz`` package and its ``dot`` program are installed; others are HTML tables.

    A node is a frozen dataclass: ``index``, ``op``, ``operands`` (indexes of other nodes, or leaves
    with ``index``, ``dtype``, ``shape`` and ``nbytes``), ``expression``, ``writes`` (the leaf that
    an in-place update goes to, or None), ``dtype``, ``shape``, ``device``, ``held`` (whether the
    program can still ask for the value), ``nbytes`` (0 for a view), ``multiply_adds``, ``backend``
    (who will compute it; ``host`` for what no backend does), ``reason``, and ``source`` (the file
    and line that recorded it, or None without the option ``source_lines``).

    Parameters
    ----------
    nodes : tuple of nodes
        Each after those whose values it reads.
    plan : str
        How they will be computed together, as text: the operations after rewriting, the device of
        each and why, the splits with what is copied for them, and where in memory values go.

    Examples
    --------
    >>> x = xp.ones((2, 3))
    >>> product = x @ x.T
    >>> total = product - 0.5 * product
    >>> del product
    >>> pending = xp.graph(total)
    >>> print(pending)
    node  value     dtype    shape   device  backend  bytes  multiply-adds  held
    %0    x0 @ x1   float64  (2, 2)  cpu     cpu         32             12  no
    %1    %0 * 0.5  float64  (2, 2)  cpu     host        32              0  no
    %2    %0 - %1   float64  (2, 2)  cpu     host        32              0  yes
    <BLANKLINE>
    leaf  dtype    shape   bytes
    x0    float64  (2, 3)     48
    x1    float64  (3, 2)     48
    >>> len(pending), pending[2].operands, pending[0].multiply_adds
    (3, (0, 1), 12)
    """

    nodes: tuple[GraphNode, ...]
    plan: str = field(default="", compare=False)

    @overload
    def __getitem__(self, at: int) -> GraphNode: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[GraphNode, ...]: ...
    def __getitem__(self, at: int | slice) -> GraphNode | tuple[GraphNode, ...]:
        return self.nodes[at]

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def leaves(self) -> tuple[GraphLeaf, ...]:
        """The values that the nodes read and the memory that they update, each once.

        Examples
        --------
        >>> x = xp.ones((2, 2))
        >>> [(leaf.shape, leaf.nbytes) for leaf in xp.graph(x @ x).leaves]
        [((2, 2), 32)]
        """
        named = (each for node in self.nodes for each in (*node.operands, node.writes))
        leaves = {each.index: each for each in named if isinstance(each, GraphLeaf)}
        return tuple(leaves[index] for index in sorted(leaves))

    def explain(self) -> str:
        """Tell for each node who will compute it, and why.

        Returns
        -------
        str
            A table with a line for each node, however many there are.

        Examples
        --------
        >>> x = xp.ones((2, 2))
        >>> print(xp.graph((x @ x).T).explain())
        node  value    backend  why
        %0    x0 @ x0  cpu      it computes all products of device cpu
        %1    %0.mT    host     a view: no element moves
        """
        if not self.nodes:
            return _NOTHING
        rows = ((str(node), node.statement, node.backend, node.reason) for node in self.nodes)
        return "\n".join(aligned_table(("<node", "<value", "<backend", "<why"), rows))

    def to_dot(self) -> str:
        r"""Return the graph in the DOT language of Graphviz.

        Boxes are leaves, ellipses nodes, with a thick line where the program holds the value. An
        arrow goes from a value to who reads it, a dashed one to the memory that is updated.

        Returns
        -------
        str
            Source for the ``dot`` program, or for ``graphviz.Source``.

        Examples
        --------
        >>> x = xp.ones((2, 2))
        >>> print(xp.graph(x @ x).to_dot())
        digraph {
            x0 [shape=box, label="x0\nfloat64 (2, 2)"]
            n0 [label="%0 = x0 @ x0\nfloat64 (2, 2)\ncpu", penwidth=2]
            x0 -> n0
            x0 -> n0
        }
        """
        return "\n".join(["digraph {", *(f"    {line}" for line in self._dot_lines()), "}"])

    def _dot_lines(self) -> Iterator[str]:
        for leaf in self.leaves:
            yield f"{leaf} [shape=box, label={_quoted(leaf, f'{leaf.dtype} {leaf.shape}')}]"
        for node in self.nodes:
            texts = f"{node} = {node.statement}", f"{node.dtype} {node.shape}", node.backend
            width = ", penwidth=2" if node.held else ""
            yield f"n{node.index} [label={_quoted(*texts)}{width}]"
            for operand in node.operands:
                source = f"n{operand}" if isinstance(operand, int) else operand
                yield f"{source} -> n{node.index}"
            if node.writes is not None:
                yield f"n{node.index} -> {node.writes} [style=dashed, constraint=false]"

    def __repr__(self) -> str:
        work = sum(node.multiply_adds for node in self.nodes)
        return (
            f"<{type(self).__name__} of {len(self)} nodes and {len(self.leaves)} leaves,"
            f" {work} multiply-adds>"
        )

    def __str__(self) -> str:
        if not self.nodes:
            return _NOTHING
        return "\n".join([*_text_table(*self._node_table()), "", *_text_table(*self._leaf_table())])

    def _node_table(self) -> "_Table":
        return _NODE_COLUMNS, list(map(_node_row, self.nodes)), "nodes"

    def _leaf_table(self) -> "_Table":
        return _LEAF_COLUMNS, list(map(_leaf_row, self.leaves)), "leaves"

    def _repr_svg_(self) -> str | None:
        graphviz = self._graphviz()
        if graphviz is None:
            return None
        svg: str = graphviz.Source(self.to_dot()).pipe(format="svg", encoding="utf-8")
        return svg

    def _repr_html_(self) -> str | None:
        """Return tables; None where there is a drawing, which notebooks would not show else."""
        if self._graphviz() is not None:
            return None
        if not self.nodes:
            return f"<p>{_NOTHING}</p>"
        return _html_table(*self._node_table()) + _html_table(*self._leaf_table())

    def _graphviz(self) -> Any:
        """Return the graphviz package if it can draw this graph, else None."""
        if not 0 < len(self) <= _SHOWN or shutil.which("dot") is None:
            return None
        try:
            return importlib.import_module("graphviz")
        except ImportError:
            return None


# -- tables -------------------------------------------------------------------------------------

_Table = tuple[tuple[str, ...], list[tuple[str, ...]], str]
"""Names of columns behind their alignment; rows; what a row is about, as a plural."""

_NOTHING = "nothing is pending"

_NODE_COLUMNS = (
    "<node",
    "<value",
    "<dtype",
    "<shape",
    "<device",
    "<backend",
    ">bytes",
    ">multiply-adds",
    "<held",
)
_LEAF_COLUMNS = ("<leaf", "<dtype", "<shape", ">bytes")


def _node_row(node: GraphNode) -> tuple[str, ...]:
    return (
        str(node),
        node.statement,
        str(node.dtype),
        str(node.shape),
        str(node.device),
        node.backend,
        str(node.nbytes),
        str(node.multiply_adds),
        "yes" if node.held else "no",
    )


def _leaf_row(leaf: GraphLeaf) -> tuple[str, ...]:
    return str(leaf), str(leaf.dtype), str(leaf.shape), str(leaf.nbytes)


def _shortened(rows: list[tuple[str, ...]], noun: str) -> tuple[list[tuple[str, ...]], str]:
    """Return the rows to show, and what to say in their middle about those left out, or ""."""
    left_out = len(rows) - _SHOWN
    if left_out <= 0:
        return rows, ""
    return rows[:_MIDDLE] + rows[-_MIDDLE:], f"... {left_out} {noun} left out ..."


def _text_table(columns: tuple[str, ...], rows: list[tuple[str, ...]], noun: str) -> list[str]:
    rows, note = _shortened(rows, noun)
    head, *lines = aligned_table(columns, rows)
    if note:
        lines.insert(_MIDDLE, note)
    return [head, *lines]


def _html_table(columns: tuple[str, ...], rows: list[tuple[str, ...]], noun: str) -> str:
    rows, note = _shortened(rows, noun)
    head = _html_row("th", columns, [column[1:] for column in columns])
    lines = [_html_row("td", columns, row) for row in rows]
    if note:
        lines.insert(_MIDDLE, f'<tr><td colspan="{len(columns)}">{note}</td></tr>')
    return f"<table><thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>"


_HTML_ALIGN = {"<": "left", ">": "right"}


def _html_row(tag: str, columns: Iterable[str], texts: Iterable[str]) -> str:
    cells = (
        f'<{tag} style="text-align: {_HTML_ALIGN[column[0]]}">{html.escape(text)}</{tag}>'
        for column, text in zip(columns, texts, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


# Backslashes and ampersands begin escapes within a label.
_DOT_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "&": "&amp;"})


def _quoted(*lines: object) -> str:
    """Return lines as a quoted label in the DOT language."""
    escaped = r"\n".join(str(line).translate(_DOT_ESCAPES) for line in lines)
    return f'"{escaped}"'
