"""Linear algebra functions: the products, all recorded."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ggarray._array import Array, matmul as _matmul, outer as _outer, permute, wrap
from ggarray._namespace._calls import device_of, require
from ggarray._namespace.manipulation import expand_dims, reshape


def matmul(x1: Array, x2: Array, /) -> Array:
    """Matrix product of two arrays; recorded.

    Parameters
    ----------
    x1, x2 : Array
        Shapes (..., M, K) and (..., K, N), whose leading axes broadcast; a one-dimensional `x1` is
        a row, a one-dimensional `x2` a column. One or both may be quantized.

    Returns
    -------
    Array
        Shape (..., M, N) without the axis of an operand that was one-dimensional.

    Raises
    ------
    ValueError
        The shapes do not fit, an operand has no axes, or the devices do not mix.
    TypeError
        The dtypes have no product.

    Examples
    --------
    >>> a = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> product = xp.matmul(a, a)
    >>> xp.is_pending(product)  # computed where its value is needed
    True
    >>> product
    Array([[ 7., 10.],
           [15., 22.]], dtype=float64, device='cpu')
    """
    require(x1, x2)
    return _matmul(x1, x2)


def matrix_transpose(x: Array, /) -> Array:
    """Transpose of the last two axes, as a view; ValueError with fewer than two.

    Parameters
    ----------
    x : Array
        Shape (..., M, N). May be pending or quantized: it stays so.

    Returns
    -------
    Array
        Shape (..., N, M), a view.

    Raises
    ------
    ValueError
        `x` has fewer than two axes.
    TypeError
        `x` is no Array.

    Examples
    --------
    >>> xp.matrix_transpose(xp.asarray([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int64, device='cpu')
    >>> xp.matrix_transpose(xp.quantize(xp.ones((2, 32)), xp.q4_0))
    Array(shape=(32, 2), dtype=q4_0, device='cpu')
    """
    require(x)
    return x.mT


def tensordot(
    x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Array:
    """Tensor contraction over axes of `x1` and `x2`; recorded.

    Parameters
    ----------
    x1, x2 : Array
        The operands.
    axes : int or pair of sequences of int
        How many axes to contract, the last of `x1` with the first of `x2`, or which axes.

    Returns
    -------
    Array
        The axes of `x1` that remain, then those of `x2`.

    Raises
    ------
    ValueError
        Lengths of contracted axes differ, there are too few axes, or the devices do not mix.
    TypeError
        The dtypes have no product, an operand is no Array, or quantized and its blocks have to
        move.

    Examples
    --------
    >>> x1, x2 = xp.ones((2, 3, 4)), xp.ones((3, 4, 5))
    >>> xp.tensordot(x1, x2).shape
    (2, 5)
    >>> xp.tensordot(x1, x2, axes=((2,), (1,))).shape
    (2, 3, 3, 5)
    """
    require(x1, x2)
    axes1, axes2 = _contracted(x1, x2, axes)
    lengths1 = tuple(x1.shape[axis] for axis in axes1)
    lengths2 = tuple(x2.shape[axis] for axis in axes2)
    if lengths1 != lengths2:
        raise ValueError(
            f"tensordot: lengths of axes {axes1} of {x1.shape} and {axes2} of {x2.shape} differ"
        )
    kept1 = tuple(axis for axis in range(x1.ndim) if axis not in axes1)
    kept2 = tuple(axis for axis in range(x2.ndim) if axis not in axes2)
    shape1 = tuple(x1.shape[axis] for axis in kept1)
    shape2 = tuple(x2.shape[axis] for axis in kept2)
    rows, columns, inner = math.prod(shape1), math.prod(shape2), math.prod(lengths1)
    if not axes1:  # plain products, as outer gives them
        product = _outer(reshape(x1, (rows,)), reshape(x2, (columns,)))
    else:
        a = reshape(permute(x1, kept1 + axes1), (rows, inner))
        b = reshape(permute(x2, axes2 + kept2), (inner, columns))
        product = _matmul(a, b)
    return reshape(product, shape1 + shape2)


def _contracted(x1: Array, x2: Array, axes: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, (int, np.integer)):
        if axes < 0 or axes > min(x1.ndim, x2.ndim):
            raise ValueError(f"tensordot: cannot contract {axes} axes of {x1.shape}, {x2.shape}")
        return tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
    axes1, axes2 = axes
    return normalize_axis_tuple(axes1, x1.ndim), normalize_axis_tuple(axes2, x2.ndim)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Dot product of vectors along an axis, the first conjugated; recorded.

    Parameters
    ----------
    x1, x2 : Array
        Arrays whose other axes broadcast.
    axis : int
        The axis of the vectors, of the same length in both.

    Returns
    -------
    Array
        The broadcast shape without `axis`.

    Raises
    ------
    ValueError
        The lengths along `axis` differ, the other axes do not broadcast, there is no such axis, or
        the devices do not mix.
    TypeError
        The dtypes have no product, or an operand is no Array.

    Examples
    --------
    >>> xp.vecdot(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), xp.asarray([10.0, 1.0]))
    Array([12., 34.], dtype=float64, device='cpu')
    """
    require(x1, x2)
    device_of(x1, x2)
    a, b = _axis_last(x1, axis), _axis_last(x2, axis)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"vecdot: lengths along axis {axis} of {x1.shape} and {x2.shape} differ")
    if a.dtype.kind == "c":
        a = wrap(np.conj(a._read()), a.device)
    if a.ndim == b.ndim == 1:
        return _matmul(a, b)
    try:
        product = _matmul(expand_dims(a, axis=-2), expand_dims(b, axis=-1))
    except ValueError as error:
        raise ValueError(f"vecdot of shapes {x1.shape} and {x2.shape}: {error}") from error
    return reshape(product, product.shape[:-2])


def _axis_last(x: Array, axis: int) -> Array:
    (at,) = normalize_axis_tuple(axis, x.ndim)
    if at == x.ndim - 1:
        return x
    return permute(x, (*(each for each in range(x.ndim) if each != at), at))
