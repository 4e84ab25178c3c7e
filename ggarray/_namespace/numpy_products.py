"""Products by NumPy's names: recorded as the standard's are."""

import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from ggarray import linalg
from ggarray._array import Array, permute
from ggarray._namespace._calls import require
from ggarray._namespace.linear_algebra import matmul, tensordot, vecdot
from ggarray._namespace.manipulation import reshape


def dot(a: Array, b: Array, /) -> Array:
    """Dot product as NumPy defines it: over the last axis of `a` and the last but one of `b`.

    Parameters
    ----------
    a, b : Array
        Of no axes, the product is a multiplication; a one-dimensional `b` is contracted along its
        axis.

    Returns
    -------
    Array
        The axes of `a` that remain, then those of `b`; recorded unless it is a multiplication.

    Raises
    ------
    ValueError
        The lengths of the contracted axes differ.

    Examples
    --------
    >>> x = xp.asarray([1.0, 2.0])
    >>> xp.dot(x, x)
    Array(5., dtype=float64, device='cpu')
    """
    require(a, b)
    if not a.ndim or not b.ndim:
        return a * b
    if b.ndim == 1 or a.ndim == b.ndim == 2:
        return matmul(a, b)
    return tensordot(a, b, axes=((a.ndim - 1,), (b.ndim - 2,)))


def outer(a: Array, b: Array, /) -> Array:
    """Outer product of the elements of two arrays; recorded.

    Parameters
    ----------
    a, b : Array
        Any shapes: they are flattened. ``linalg.outer`` takes vectors only.

    Returns
    -------
    Array
        Shape (a.size, b.size).

    Examples
    --------
    >>> xp.outer(xp.asarray([1, 2]), xp.asarray([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int64, device='cpu')
    """
    require(a, b)
    return linalg.outer(reshape(a, (-1,)), reshape(b, (-1,)))


def contract(subscripts: str, a: Array, b: Array, /) -> Array | None:
    """Return the product that ``einsum`` of two operands is; None where it is no plain product.

    Labels of both operands are batches if they are of the result, else they are summed over. No
    product are: a sum over a label of one operand, diagonals, lengths that broadcast, an ellipsis,
    and a multiplication of elements other than an outer one.
    """
    inputs, arrow, wanted = subscripts.replace(" ", "").partition("->")
    labels_a, _, labels_b = inputs.partition(",")
    if not arrow:
        counts = Counter(labels_a + labels_b)
        wanted = "".join(sorted(label for label in counts if counts[label] == 1))
    in_a, in_b, in_result = set(labels_a), set(labels_b), set(wanted)
    if "." in subscripts or (len(labels_a), len(labels_b)) != (a.ndim, b.ndim):
        return None
    if (len(in_a), len(in_b), len(in_result)) != (a.ndim, b.ndim, len(wanted)):
        return None  # a label is repeated
    if in_a ^ in_b != in_result - (in_a & in_b):
        return None  # a label of one operand is summed over, or of none is wanted
    lengths = dict(zip(labels_a, a.shape, strict=True))
    if any(lengths.setdefault(*each) != each[1] for each in zip(labels_b, b.shape, strict=True)):
        return None
    batch = [label for label in wanted if label in in_a & in_b]
    summed = [label for label in labels_a if label in in_b - in_result]
    rows = [label for label in labels_a if label not in in_b]
    columns = [label for label in labels_b if label not in in_a]
    if batch and not summed:
        return None

    def arranged(x: Array, labels: str, *groups: list[str]) -> Array:
        order = tuple(labels.index(label) for group in (batch, *groups) for label in group)
        shape = [lengths[label] for label in batch]
        shape += [math.prod(lengths[label] for label in group) for group in groups]
        return reshape(permute(x, order), shape)

    if summed:
        product = matmul(
            arranged(a, labels_a, rows, summed), arranged(b, labels_b, summed, columns)
        )
    else:
        product = linalg.outer(arranged(a, labels_a, rows), arranged(b, labels_b, columns))
    found = batch + rows + columns
    product = reshape(product, tuple(lengths[label] for label in found))
    return permute(product, tuple(found.index(label) for label in wanted))


def _inner(a: Array, b: Array, /) -> Array:
    """Product over the last axes of both; of an array of no axes, a multiplication."""
    return tensordot(a, b, axes=((-1,), (-1,))) if a.ndim and b.ndim else a * b


def _vdot(a: Array, b: Array, /) -> Array:
    """Product of the flattened arrays, the first conjugated."""
    return vecdot(reshape(a, (-1,)), reshape(b, (-1,)))


def _tensordot(
    a: Array, b: Array, /, axes: SupportsIndex | Sequence[Sequence[int] | SupportsIndex] = 2
) -> Array:
    """Tensor contraction as NumPy spells it: an axis may be named without a sequence."""
    if isinstance(axes, SupportsIndex):
        return tensordot(a, b, axes=operator.index(axes))
    first, second = (
        (operator.index(each),) if isinstance(each, SupportsIndex) else tuple(each) for each in axes
    )
    return tensordot(a, b, axes=(first, second))


PRODUCTS: dict[Callable[..., Any], Callable[..., Array]] = {
    np.dot: dot,
    np.inner: _inner,
    np.matmul: matmul,
    np.outer: outer,
    np.tensordot: _tensordot,
    np.vdot: _vdot,
    np.vecdot: vecdot,
    np.linalg.matmul: matmul,
    np.linalg.outer: linalg.outer,
    np.linalg.tensordot: tensordot,
    np.linalg.vecdot: vecdot,
}
"""Ours for NumPy's functions and ufuncs of two arrays."""
