"""Epilogues: what is done to a product becomes a part of it, so that it is written once."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ggarray._dtypes import is_real_floating
from ggarray._graph.ir import Graph, Vertex
from ggarray._graph.optimize.dead_code import dead_code
from ggarray._quantized.traits import QuantizedDType
from ggarray.interface import PRODUCTS, Op

Takes = Callable[[Graph, Vertex], bool]
"""Tells whether a backend computes a vertex, of operands of a graph, in one."""


def epilogues(graph: Graph, takes: Takes) -> Graph:
    """Return the graph in which products are scaled, added to and converted as they are computed.

    ``alpha * (A @ B)``, ``-(A @ B)``, ``A @ B + C``, ``A @ B - C``, ``C - A @ B``, what these make
    of each other, and ``astype`` become one vertex, with C its third operand. The preconditions, of
    each step:

    - Nothing else reads the product: it is no output, and no view reads it.
    - The result has the shape and the device of the product, and C its dtype. A product that C is
      added to has dropped no axis of a vector.
    - One factor at most: a second might overflow or underflow with the first. It is finite and not
      0 in the product's dtype, and comes before C. A change of sign is exact, before and after C.
    - Of complex numbers no factor is 1 or -1: the sign of an infinity may be changed, or it may be
      multiplied by ``-1+0j``, which gives NaN, and kernels may do either.
    - Outer products are rounded once, and so is each thing that is done to them: unless they are
      of integers, only their sign is changed.
    - ``astype`` comes last but for signs, and once, from real to real or from complex to complex.
    - `takes` is true of what the vertex becomes; of integers, too.

    Integers wrap, so they come out the same. Of other numbers roundings are left out and none is
    added: the product is not rounded before it is scaled, added to or widened, and narrowed it is
    rounded once instead of twice. So what would overflow in between need not. A zero may get the
    other sign.
    """
    readers = graph.readers()
    vertices = list(graph.vertices)
    outputs = set(graph.outputs)
    free: set[int] = set()  # products that one vertex reads and nobody else
    for at, vertex in enumerate(graph.vertices):
        fused = _fused(graph, vertices, vertex, free, takes)
        if fused is not None:
            vertices[at] = fused
        if vertices[at].op in PRODUCTS and len(readers[at]) == 1 and at not in outputs:
            free.add(at)
    changed = graph._replace(vertices=tuple(vertices))
    return graph if changed == graph else dead_code(changed)


def _fused(
    graph: Graph, vertices: list[Vertex], vertex: Vertex, free: set[int], takes: Takes
) -> Vertex | None:
    """Return the product that a vertex and the product that it reads become; None if they do not.

    Operands are those of the graph: whatever becomes of them, their layouts do not change.
    """
    absorb = _ABSORB.get(vertex.op)
    if absorb is None:
        return None
    for place, ref in enumerate(vertex.operands):
        if ref in free and _may_become(vertices[ref], vertex):
            fused = absorb(graph, vertices[ref], vertex, place)
            if fused is not None and takes(graph, fused):
                return fused
    return None


def _may_become(product: Vertex, vertex: Vertex) -> bool:
    """Tell whether a product may take part in what a vertex makes of it, whatever that is."""
    if product.shape != vertex.shape or product.device != vertex.device:
        return False
    if product.op is Op.MATMUL or product.dtype.kind in "iu":
        return True
    return vertex.op is Op.SCALE and vertex.params is None


def _scaled(graph: Graph, product: Vertex, vertex: Vertex, _: int) -> Vertex | None:
    """Return the product with the factor or the sign of a SCALE."""
    if vertex.params is None:
        return _negative(product)
    if len(product.operands) > 2 or product.alpha not in (1, -1) or _is_converted(graph, product):
        return None
    factor = _in_dtype(vertex.params, product.dtype)
    if not np.isfinite(factor) or factor == 0 or _is_unit(factor, product):
        return None
    scaled = product._replace(alpha=factor.item())
    return _negative(scaled) if product.alpha == -1 else scaled


def _added(graph: Graph, product: Vertex, vertex: Vertex, place: int) -> Vertex | None:
    """Return the product with the other operand of an ADD as its bias."""
    bias = vertex.operands[1 - place]
    if len(product.operands) > 2 or product.params not in (None, product.shape):
        return None
    if graph.tensor(bias).dtype != product.dtype or _is_converted(graph, product):
        return None
    subtract = bool(vertex.params)
    signed = _negative(product) if subtract and place == 1 else product
    if signed is None:
        return None
    beta = -1 if subtract and place == 0 else 1
    return signed._replace(operands=(*product.operands, bias), beta=beta)


def _converted(graph: Graph, product: Vertex, vertex: Vertex, _: int) -> Vertex | None:
    """Return the product in the dtype of a COPY."""
    dtypes = product.dtype, vertex.dtype
    real = all(is_real_floating(dtype) for dtype in dtypes)
    if not real and any(dtype.kind != "c" for dtype in dtypes):
        return None
    return None if _is_converted(graph, product) else product._replace(dtype=vertex.dtype)


_ABSORB: dict[Op, Callable[[Graph, Vertex, Vertex, int], Vertex | None]] = {
    Op.SCALE: _scaled,
    Op.ADD: _added,
    Op.COPY: _converted,
}


def _negative(product: Vertex) -> Vertex | None:
    """Return the product with all signs changed; see `epilogues` for complex ones."""
    if _is_unit(product.alpha, product):
        return None
    alpha = -product.alpha
    if product.dtype.kind in "iu":  # -128 of 8 bits stays what it is, and -1 without a sign is 255
        alpha = np.negative(_in_dtype(product.alpha, product.dtype)).item()
    return product._replace(alpha=alpha, beta=-product.beta)


def _is_unit(factor: Any, product: Vertex) -> bool:
    return product.dtype.kind == "c" and factor in (1, -1)


def _is_converted(graph: Graph, product: Vertex) -> bool:
    """Tell whether a product has another dtype than its operands."""
    dtypes = [graph.tensor(ref).dtype for ref in product.operands]
    return any(not isinstance(each, QuantizedDType) and each != product.dtype for each in dtypes)


def _in_dtype(number: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return a number as one element of an array of a dtype, which is what it is multiplied by."""
    with np.errstate(all="ignore"):
        return np.array([number]).astype(dtype)
