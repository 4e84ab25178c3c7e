"""Linear algebra: the linalg extension of the standard.

The products are recorded, `matrix_power` with them; all else evaluates its operands.

Examples
--------
>>> a = xp.asarray([[2.0, 0.0], [0.0, 4.0]])
>>> xp.linalg.solve(a, a @ xp.asarray([1.0, 2.0]))
Array([1., 2.], dtype=float64, device='cpu')
"""

import operator
from typing import Literal

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ggarray._array import Array, astype, matmul as _matmul, outer as _outer, wrap
from ggarray._dtypes import DTypeLike, is_half, promote, to_dtype
from ggarray._namespace._calls import device_of, narrow, read, read_wide
from ggarray._namespace.data_types import finfo
from ggarray._namespace.decompositions import (
    check_square,
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    give,
    matrices,
    qr,
    slogdet,
    square,
    svd,
    svdvals,
)
from ggarray._namespace.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from ggarray._namespace.statistical import sum as _sum
from ggarray._storage import Plain

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Cross product of vectors of three elements.

    Parameters
    ----------
    x1, x2 : Array
        Numeric, of length 3 along `axis`; the other axes broadcast.
    axis : int
        The axis of the vectors.

    Returns
    -------
    Array
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    ValueError
        A length along `axis` is not 3, the other axes do not broadcast, there is no such axis, or
        the devices do not mix.
    TypeError
        Arrays of bool, or quantized ones.

    Examples
    --------
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    Array([0, 0, 1], dtype=int64, device='cpu')
    """
    device = device_of(x1, x2)
    a, b = read_wide(x1), read_wide(x2)
    for value in (a, b):
        normalize_axis_index(axis, value.ndim)
    product = np.linalg.cross(a, b, axis=axis)
    return wrap(narrow(product, promote(x1.dtype, x2.dtype)), device)


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Copy of the diagonals of matrices.

    Parameters
    ----------
    x : Array
        Shape (..., M, N).
    offset : int
        How far above the main diagonal; negative below.

    Returns
    -------
    Array
        Shape (..., K) with K the length of the diagonal.

    Raises
    ------
    ValueError
        `x` has fewer than two axes.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int64, device='cpu')
    """
    value = read(x)
    if value.ndim < 2:
        raise ValueError(f"diagonal: matrices are wanted, not shape {value.shape}")
    return wrap(np.diagonal(value, offset, -2, -1).copy(), x.device)


def inv(x: Array, /) -> Array:
    """Inverses of square matrices.

    Parameters
    ----------
    x : Array
        Shape (..., M, M), floating.

    Returns
    -------
    Array
        Of the shape and dtype of `x`.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: the matrices are not square, or one is singular.
    TypeError
        `x` is not floating.

    Examples
    --------
    >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float64, device='cpu')
    """
    return give(np.linalg.inv(square("inv", x)), x)


def matrix_norm(
    x: Array,
    /,
    *,
    keepdims: bool = False,
    ord: int | float | Literal["fro", "nuc"] | None = "fro",
) -> Array:
    """Norms of matrices.

    Parameters
    ----------
    x : Array
        Shape (..., M, N); integers count as float64.
    keepdims : bool
        Keep the last two axes, of length 1.
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf} or None
        Frobenius (also for None), sum of singular values, greatest or least sum of a column,
        greatest or least singular value, greatest or least sum of a row.

    Returns
    -------
    Array
        Real, of the precision of `x`.

    Raises
    ------
    ValueError
        Another `ord`, or `x` has fewer than two axes.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.linalg.matrix_norm(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., dtype=float64, device='cpu')
    >>> xp.linalg.matrix_norm(xp.asarray([[3.0, 0.0], [0.0, 4.0]]), ord="nuc")
    Array(7., dtype=float64, device='cpu')
    """
    value = read_wide(x)
    if value.ndim < 2:
        raise ValueError(f"matrix_norm: matrices are wanted, not shape {value.shape}")
    return give(np.linalg.norm(value, ord, (-2, -1), keepdims), x)


def matrix_power(x: Array, n: int, /) -> Array:
    """Power of square matrices; recorded for `n` >= 0.

    Parameters
    ----------
    x : Array
        Shape (..., M, M), of any plain dtype for `n` >= 0, else floating.
    n : int
        The identity for 0; below 0 a power of the inverse.

    Returns
    -------
    Array
        Of the shape and dtype of `x`.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: the matrices are not square, or one is singular and `n` negative.
    TypeError
        `n` is not an integer, `x` is quantized, or not floating and `n` negative.

    Examples
    --------
    >>> x = xp.linalg.matrix_power(xp.asarray([[1, 1], [1, 0]]), 10)  # Fibonacci numbers
    >>> xp.is_pending(x)
    True
    >>> x
    Array([[89, 55],
           [55, 34]], dtype=int64, device='cpu')
    """
    exponent = operator.index(n)
    device, dtype, shape = device_of(x), to_dtype(x.dtype), x.shape
    check_square("matrix_power", shape)
    if exponent == 0:
        return wrap(np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape).copy(), device)
    base = inv(x) if exponent < 0 else x
    power = _power(base, abs(exponent))
    return astype(x, dtype) if power is x else power


def _power(base: Array, exponent: int) -> Array:
    """Return `base` to an exponent of at least 1, by its binary digits from the lowest."""
    while not exponent & 1:
        base = _matmul(base, base)
        exponent >>= 1
    power = base
    while exponent := exponent >> 1:
        base = _matmul(base, base)
        if exponent & 1:
            power = _matmul(power, base)
    return power


def matrix_rank(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Count the singular values of matrices that are not negligible.

    Parameters
    ----------
    x : Array
        Shape (..., M, N), floating.
    rtol : float or Array, optional
        What is negligible, relative to the greatest singular value; an Array broadcasts with the
        leading axes. max(M, N) times the epsilon of the dtype if None.

    Returns
    -------
    Array
        Shape (...), of int64.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: there are fewer than two axes.
    TypeError
        `x` is not floating.

    Examples
    --------
    >>> xp.linalg.matrix_rank(xp.asarray([[1.0, 2.0], [2.0, 4.0]]))
    Array(1, dtype=int64, device='cpu')
    """
    rank = np.linalg.matrix_rank(matrices("matrix_rank", x), rtol=_tolerance(rtol, x))
    return wrap(rank, device_of(x, rtol))


def outer(x1: Array, x2: Array, /) -> Array:
    """Products of all elements of a vector with all of another; recorded.

    Parameters
    ----------
    x1, x2 : Array
        Shapes (M,) and (N,).

    Returns
    -------
    Array
        Shape (M, N).

    Raises
    ------
    ValueError
        An operand has not one axis, or the devices do not mix.
    TypeError
        The dtypes have no product.

    Examples
    --------
    >>> xp.linalg.outer(xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0]))
    Array([[3., 4.],
           [6., 8.]], dtype=float64, device='cpu')
    """
    device_of(x1)
    device_of(x2)
    return _outer(x1, x2)


def pinv(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Pseudo-inverses (Moore-Penrose) of matrices.

    Parameters
    ----------
    x : Array
        Shape (..., M, N), floating.
    rtol : float or Array, optional
        Singular values up to this, relative to the greatest one, count as zero; an Array
        broadcasts with the leading axes. max(M, N) times the epsilon of the dtype if None.

    Returns
    -------
    Array
        Shape (..., N, M), of the dtype of `x`.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: there are fewer than two axes.
    TypeError
        `x` is not floating.

    Examples
    --------
    >>> xp.linalg.pinv(xp.asarray([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float64, device='cpu')
    """
    inverse = np.linalg.pinv(matrices("pinv", x), rtol=_tolerance(rtol, x))  # type: ignore[arg-type]
    return wrap(narrow(inverse, x.dtype), device_of(x, rtol))


def _tolerance(rtol: float | Array | None, x: Array) -> float | Plain | None:
    """Return a relative tolerance as NumPy takes it; None is left to it unless x is half."""
    if rtol is None and is_half(x.dtype):
        return float(max(x.shape[-2:]) * finfo(x.dtype).eps)
    return read_wide(rtol) if isinstance(rtol, Array) else rtol


def solve(x1: Array, x2: Array, /) -> Array:
    """Solution of systems of linear equations.

    Parameters
    ----------
    x1 : Array
        Shape (..., M, M), floating: the coefficients.
    x2 : Array
        Shape (M,), or (..., M, K): the right sides, floating.

    Returns
    -------
    Array
        X with ``x1 @ X = x2``, of the shape of `x2` (broadcast) and the promoted dtype.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: matrices are not square, or one is singular.
    ValueError
        The shapes do not fit, or the devices do not mix.
    TypeError
        An operand is not floating.

    Examples
    --------
    >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0]))
    Array([1. , 0.5], dtype=float64, device='cpu')
    """
    device = device_of(x1, x2)
    a, b = square("solve", x1), read_wide(x2)
    if b.dtype.kind not in "fc":
        raise TypeError(f"solve: a floating array is wanted, not one of {b.dtype}: see astype")
    if not b.ndim or b.shape[-2 if b.ndim > 1 else -1] != a.shape[-1]:
        raise ValueError(f"solve: shapes {a.shape} and {b.shape} do not fit")
    return wrap(narrow(np.linalg.solve(a, b), promote(x1.dtype, x2.dtype)), device)


def trace(x: Array, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sum the diagonals of matrices.

    Parameters
    ----------
    x : Array
        Shape (..., M, N).
    offset : int
        How far above the main diagonal; negative below.
    dtype : dtype, optional
        Elements are cast to it first; by default small integers go to the default (unsigned)
        integer dtype, and others stay.

    Returns
    -------
    Array
        Shape (...).

    Raises
    ------
    ValueError
        `x` has fewer than two axes.
    TypeError
        `x` is quantized or no Array, or there is no such dtype.

    Examples
    --------
    >>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]]))
    Array(5, dtype=int64, device='cpu')
    """
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Array,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: int | float = 2,
) -> Array:
    """Norms of vectors along one axis or several.

    Parameters
    ----------
    x : Array
        Integers count as float64.
    axis : int or tuple of int, optional
        All axes if None: the norm of the flattened array.
    keepdims : bool
        Keep the axes, of length 1.
    ord : int or float
        The order: 2 Euclidean, 1 sum of absolute values, inf the greatest and -inf the least of
        them, 0 the number of elements that are not zero.

    Returns
    -------
    Array
        Real, of the precision of `x`.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.linalg.vector_norm(xp.asarray([3.0, -4.0]))
    Array(5., dtype=float64, device='cpu')
    >>> xp.linalg.vector_norm(xp.asarray([3.0, -4.0]), ord=xp.inf)
    Array(4., dtype=float64, device='cpu')
    """
    value = read_wide(x)
    norm = np.linalg.vector_norm(value, axis=axis, keepdims=keepdims, ord=ord)  # type: ignore[arg-type]
    return give(norm, x)
