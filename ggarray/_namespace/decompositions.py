"""Matrix decompositions and what comes from them, of stacks of matrices in the last two axes.

All take floating dtypes; float16 and bfloat16 are decomposed in float32.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from ggarray._array import Array, wrap
from ggarray._namespace._calls import narrow, read_wide
from ggarray._storage import Plain


class EigResult(NamedTuple):
    """What `eig` gives."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What `eigh` gives."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What `qr` gives."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """What `slogdet` gives."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """What `svd` gives."""

    U: Array
    S: Array
    Vh: Array


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """Cholesky factor of Hermitian positive-definite matrices.

    Parameters
    ----------
    x : Array
        Shape (..., M, M), floating; the lower triangle is read.
    upper : bool
        Return the upper factor U with ``x = U^H U``, else the lower L with ``x = L L^H``.

    Returns
    -------
    Array
        Of the shape and dtype of `x`, zero in the other triangle.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: a matrix is not square, or not positive-definite.
    TypeError
        `x` is not floating.

    Examples
    --------
    >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 10.0]]))
    Array([[2., 0.],
           [1., 3.]], dtype=float64, device='cpu')
    """
    factor = np.linalg.cholesky(square("cholesky", x))
    return give(np.conj(factor.mT) if upper else factor, x)


def det(x: Array, /) -> Array:
    """Compute determinants of square matrices.

    Parameters
    ----------
    x : Array
        Shape (..., M, M), floating.

    Returns
    -------
    Array
        Shape (...), of the dtype of `x`.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: the matrices are not square.
    TypeError
        `x` is not floating.

    Examples
    --------
    >>> xp.linalg.det(xp.asarray([[2.0, 1.0], [1.0, 3.0]]))
    Array(5., dtype=float64, device='cpu')
    """
    return give(np.linalg.det(square("det", x)), x)


def eig(x: Array, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices.

    Parameters
    ----------
    x : Array
        Shape (..., M, M), floating.

    Returns
    -------
    eigenvalues : Array
        Shape (..., M), complex of the precision of `x`, in no particular order.
    eigenvectors : Array
        Shape (..., M, M), of the same dtype: column i belongs to eigenvalue i.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: the matrices are not square, or the computation does not converge.
    TypeError
        `x` is not floating.

    Examples
    --------
    >>> values, vectors = xp.linalg.eig(xp.asarray([[2.0, 0.0], [0.0, 3.0]]))
    >>> values
    Array([2.+0.j, 3.+0.j], dtype=complex128, device='cpu')
    """
    values, vectors = np.linalg.eig(square("eig", x))
    return EigResult(_complex(values, x), _complex(vectors, x))


def eigh(x: Array, /) -> EighResult:
    """Eigenvalues and orthonormal eigenvectors of Hermitian matrices.

    Parameters
    ----------
    x : Array
        Shape (..., M, M), floating; the lower triangle is read.

    Returns
    -------
    eigenvalues : Array
        Shape (..., M), real of the precision of `x`, ascending.
    eigenvectors : Array
        Shape (..., M, M), of the dtype of `x`: column i belongs to eigenvalue i.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: the matrices are not square, or the computation does not converge.
    TypeError
        `x` is not floating.

    Examples
    --------
    >>> result = xp.linalg.eigh(xp.asarray([[2.0, 1.0], [1.0, 2.0]]))
    >>> result.eigenvalues
    Array([1., 3.], dtype=float64, device='cpu')
    """
    values, vectors = np.linalg.eigh(square("eigh", x))
    return EighResult(give(values, x), give(vectors, x))


def eigvals(x: Array, /) -> Array:
    """Eigenvalues of square matrices, as `eig` gives them.

    Parameters
    ----------
    x : Array
        Shape (..., M, M), floating.

    Returns
    -------
    Array
        Shape (..., M), complex of the precision of `x`, in no particular order.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: the matrices are not square, or the computation does not converge.
    TypeError
        `x` is not floating.

    Examples
    --------
    >>> xp.linalg.eigvals(xp.asarray([[2.0, 0.0], [0.0, 3.0]]))
    Array([2.+0.j, 3.+0.j], dtype=complex128, device='cpu')
    """
    return _complex(np.linalg.eigvals(square("eigvals", x)), x)


def eigvalsh(x: Array, /) -> Array:
    """Eigenvalues of Hermitian matrices, as `eigh` gives them.

    Parameters
    ----------
    x : Array
        Shape (..., M, M), floating; the lower triangle is read.

    Returns
    -------
    Array
        Shape (..., M), real of the precision of `x`, ascending.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: the matrices are not square, or the computation does not converge.
    TypeError
        `x` is not floating.

    Examples
    --------
    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 1.0], [1.0, 2.0]]))
    Array([1., 3.], dtype=float64, device='cpu')
    """
    return give(np.linalg.eigvalsh(square("eigvalsh", x)), x)


def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """QR decomposition of matrices.

    Parameters
    ----------
    x : Array
        Shape (..., M, N), floating.
    mode : {"reduced", "complete"}
        K = min(M, N) columns of Q, or all M.

    Returns
    -------
    Q : Array
        Shape (..., M, K), with orthonormal columns.
    R : Array
        Shape (..., K, N), upper triangular.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: there are fewer than two axes.
    ValueError
        `mode` is another word.
    TypeError
        `x` is not floating.

    Examples
    --------
    >>> a = xp.asarray([[3.0, 1.0], [4.0, 2.0]])
    >>> q, r = xp.linalg.qr(a)
    >>> xp.max(xp.abs(q @ r - a)) < 1e-14
    Array(True, dtype=bool, device='cpu')
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f'qr: mode is "reduced" or "complete", not {mode!r}')
    q, r = np.linalg.qr(matrices("qr", x), mode)
    return QRResult(give(q, x), give(r, x))


def slogdet(x: Array, /) -> SlogdetResult:
    """Sign, and logarithm of the absolute value, of determinants.

    Parameters
    ----------
    x : Array
        Shape (..., M, M), floating.

    Returns
    -------
    sign : Array
        Shape (...), of the dtype of `x`: of absolute value 1, or 0 for a singular matrix.
    logabsdet : Array
        Shape (...), real of the precision of `x`; -inf for a singular matrix.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: the matrices are not square.
    TypeError
        `x` is not floating.

    Examples
    --------
    >>> sign, logarithm = xp.linalg.slogdet(xp.asarray([[0.0, 1.0], [1.0, 0.0]]))
    >>> sign, logarithm
    (Array(-1., dtype=float64, device='cpu'), Array(0., dtype=float64, device='cpu'))
    """
    sign, logarithm = np.linalg.slogdet(square("slogdet", x))
    return SlogdetResult(give(sign, x), give(logarithm, x))


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular value decomposition of matrices: ``x = U @ diag(S) @ Vh``.

    Parameters
    ----------
    x : Array
        Shape (..., M, N), floating; K = min(M, N).
    full_matrices : bool
        All M columns of U and all N rows of Vh, else K of each.

    Returns
    -------
    U : Array
        Shape (..., M, M) or (..., M, K), with orthonormal columns.
    S : Array
        Shape (..., K), real of the precision of `x`, descending.
    Vh : Array
        Shape (..., N, N) or (..., K, N), with orthonormal rows.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: there are fewer than two axes, or the computation does not converge.
    TypeError
        `x` is not floating.

    Examples
    --------
    >>> xp.linalg.svd(xp.asarray([[0.0, 2.0], [3.0, 0.0]])).S
    Array([3., 2.], dtype=float64, device='cpu')
    """
    u, s, vh = np.linalg.svd(matrices("svd", x), full_matrices)
    return SVDResult(give(u, x), give(s, x), give(vh, x))


def svdvals(x: Array, /) -> Array:
    """Singular values of matrices, descending, as `svd` gives them.

    Parameters
    ----------
    x : Array
        Shape (..., M, N), floating.

    Returns
    -------
    Array
        Shape (..., min(M, N)), real of the precision of `x`, descending.

    Raises
    ------
    numpy.linalg.LinAlgError
        A ValueError: there are fewer than two axes, or the computation does not converge.
    TypeError
        `x` is not floating.

    Examples
    --------
    >>> xp.linalg.svdvals(xp.asarray([[0.0, 2.0], [3.0, 0.0]]))
    Array([3., 2.], dtype=float64, device='cpu')
    """
    return give(np.linalg.svd(matrices("svdvals", x), compute_uv=False), x)


def matrices(name: str, x: Array) -> Plain:
    """Return the value of floating matrices.

    Raises
    ------
    TypeError
        `x` is not floating.
    numpy.linalg.LinAlgError
        `x` has fewer than two axes.
    """
    value = read_wide(x)
    if value.dtype.kind not in "fc":
        raise TypeError(f"{name}: a floating array is wanted, not one of {value.dtype}: see astype")
    if value.ndim < 2:
        raise np.linalg.LinAlgError(f"{name}: matrices are wanted, not shape {value.shape}")
    return value


def square(name: str, x: Array) -> Plain:
    """Return the value of floating square matrices, checked as in `matrices`."""
    value = matrices(name, x)
    check_square(name, value.shape)
    return value


def check_square(name: str, shape: tuple[int, ...]) -> None:
    """Raise LinAlgError if this is not the shape of square matrices."""
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise np.linalg.LinAlgError(f"{name}: square matrices are wanted, not shape {shape}")


def give(value: Any, x: Array) -> Array:
    """Return a result computed in `read_wide`'s dtype as an Array beside `x`."""
    return wrap(narrow(value, x.dtype), x.device)


def _complex(value: Plain, x: Array) -> Array:
    """Return eigenvalues or eigenvectors, complex also where NumPy found them all real."""
    return wrap(value.astype(np.result_type(value.dtype, np.complex64), copy=False), x.device)
