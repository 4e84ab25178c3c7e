"""NumPy's spellings beyond the standard, for the libraries that use them.

Those that the standard has under another name are that function; the rest are NumPy's functions
called with the values of Arrays.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from types import SimpleNamespace
from typing import Any

import numpy as np

from ggarray._array import Array
from ggarray._namespace import creation, manipulation
from ggarray._namespace.numpy_products import dot as dot, outer as outer
from ggarray._namespace.numpy_protocols import apply_function


def array(
    obj: Any, dtype: Any = None, *, copy: bool | None = True, device: str | None = None
) -> Array:
    """Make an array of an object: `asarray`, with a copy by default.

    Parameters
    ----------
    obj : Array, scalar, nested sequence, or an object with memory
        What to make it of.
    dtype : dtype, optional
        By default that of `obj`.
    copy : bool, optional
        True copies always, False never, and None as `asarray` does by default.
    device : Device or str, optional
        By default that of an Array, else the default one.

    Returns
    -------
    Array
        As of `asarray`.

    Raises
    ------
    ValueError
        `copy` is False and a copy is needed, or sequences differ in length.

    Examples
    --------
    >>> xp.array([1, 2], dtype=xp.float32)
    Array([1., 2.], dtype=float32, device='cpu')
    """
    return creation.asarray(obj, dtype=dtype, copy=copy, device=device)


def concatenate(arrays: Sequence[Array], axis: int | None = 0) -> Array:
    """Arrays joined along an existing axis: `concat` with a positional axis.

    Parameters
    ----------
    arrays : sequence of Array
        At least one; their other axes agree.
    axis : int or None
        None flattens them first.

    Returns
    -------
    Array
        Of the dtype that all promote to.

    Raises
    ------
    ValueError
        There is no array, or shapes differ along other axes.

    Examples
    --------
    >>> xp.concatenate((xp.ones(1), xp.zeros(2)))
    Array([1., 0., 0.], dtype=float64, device='cpu')
    """
    return manipulation.concat(arrays, axis=axis)


def transpose(a: Array, axes: Sequence[int] | None = None) -> Array:
    """View of an array with its axes in another order: `permute_dims`, by default reversed.

    Parameters
    ----------
    a : Array
        Any array; quantized and pending ones too.
    axes : sequence of int, optional
        A permutation of the axes.

    Returns
    -------
    Array
        A view.

    Raises
    ------
    ValueError
        `axes` is no permutation.

    Examples
    --------
    >>> xp.transpose(xp.ones((2, 3, 4))).shape
    (4, 3, 2)
    """
    order = reversed(range(a.ndim)) if axes is None else axes
    return manipulation.permute_dims(a, tuple(order))


_DOCSTRING = """{summary}

Parameters
----------
{parameters}
    What ``numpy.{name}`` takes, with Arrays for its arrays.

Returns
-------
{kind}
    {result}

Raises
------
TypeError
    An array is quantized.

Examples
--------
>>> xp.{name}({arguments})
{outcome}
"""


def _numpys(
    function: Callable[..., Any],
    summary: str,
    arguments: str,
    outcome: str,
    result: str = "On the device of the arguments.",
) -> Callable[..., Any]:
    """Return a NumPy function as one of the namespace; `arguments` give `outcome`, as printed."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return apply_function(function, args, kwargs)

    parameters = inspect.signature(function).parameters.values()
    call.__module__ = "ggarray"
    call.__doc__ = _DOCSTRING.format(
        name=function.__name__,
        summary=summary,
        parameters=", ".join(str(each).partition("=")[0] for each in parameters),
        kind="Array" if outcome.startswith("Array") else "bool",
        result=result,
        arguments=arguments,
        outcome=outcome,
    )
    return call


# A table: two or three lines a function.
# fmt: off
allclose = _numpys(np.allclose, "Whether all elements are close to each other.",
    "xp.asarray([1.0]), xp.asarray([1.0 + 1e-9])", "True", "A bool of Python.")
cross = _numpys(np.cross, "Cross product of vectors of three elements.",
    "xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0])",
    "Array([0, 0, 1], dtype=int64, device='cpu')")
cumprod = _numpys(np.cumprod, "Running products, by default of the flat array.",
    "xp.asarray([2, 3, 4])", "Array([ 2,  6, 24], dtype=int64, device='cpu')")
cumsum = _numpys(np.cumsum, "Running sums, by default of the flat array.",
    "xp.asarray([2, 3, 4])", "Array([2, 5, 9], dtype=int64, device='cpu')")
diag = _numpys(np.diag, "Diagonal of a matrix, or the matrix that has a vector as diagonal.",
    "xp.asarray([[1, 2], [3, 4]])", "Array([1, 4], dtype=int64, device='cpu')")
diagonal = _numpys(np.diagonal, "Diagonal of a matrix; of more axes, of each.",
    "xp.asarray([[1, 2], [3, 4]])", "Array([1, 4], dtype=int64, device='cpu')",
    "A view that cannot be written.")
einsum = _numpys(np.einsum, "Sum of products by subscripts.",
    "'ij,jk->ik', xp.asarray([[1, 2]]), xp.asarray([[3], [4]])",
    "Array([[11]], dtype=int64, device='cpu')",
    "A product of two arrays is recorded, batches too.")
gradient = _numpys(np.gradient, "Slope at each element, from those before and after it.",
    "xp.asarray([1.0, 2.0, 4.0, 7.0])", "Array([1. , 1.5, 2.5, 3. ], dtype=float64, device='cpu')",
    "Of more axes, a tuple of one slope along each.")
hstack = _numpys(np.hstack, "Arrays joined along the second axis, or along the only one.",
    "(xp.asarray([1]), xp.asarray([2, 3]))", "Array([1, 2, 3], dtype=int64, device='cpu')")
isclose = _numpys(np.isclose, "Which elements are close to each other.",
    "xp.asarray([1.0, 2.0]), xp.asarray([1.0, 2.1])",
    "Array([ True, False], dtype=bool, device='cpu')")
kron = _numpys(np.kron, "Kronecker product: each element of the first times all of the second.",
    "xp.asarray([1, 2]), xp.asarray([1, 10])",
    "Array([ 1, 10,  2, 20], dtype=int64, device='cpu')")
median = _numpys(np.median, "Median: the middle element in order, or the mean of two.",
    "xp.asarray([3.0, 1.0, 2.0])", "Array(2., dtype=float64, device='cpu')")
nanargmax = _numpys(np.nanargmax, "Index of the greatest element that is not NaN.",
    "xp.asarray([xp.nan, 1.0, 2.0])", "Array(2, dtype=int64, device='cpu')")
nanargmin = _numpys(np.nanargmin, "Index of the least element that is not NaN.",
    "xp.asarray([xp.nan, 1.0, 2.0])", "Array(1, dtype=int64, device='cpu')")
nanmax = _numpys(np.nanmax, "Greatest element that is not NaN.",
    "xp.asarray([xp.nan, 1.0, 2.0])", "Array(2., dtype=float64, device='cpu')")
nanmean = _numpys(np.nanmean, "Mean of the elements that are not NaN.",
    "xp.asarray([xp.nan, 1.0, 2.0])", "Array(1.5, dtype=float64, device='cpu')")
nanmedian = _numpys(np.nanmedian, "Median of the elements that are not NaN.",
    "xp.asarray([xp.nan, 1.0, 2.0])", "Array(1.5, dtype=float64, device='cpu')")
nanmin = _numpys(np.nanmin, "Least element that is not NaN.",
    "xp.asarray([xp.nan, 1.0, 2.0])", "Array(1., dtype=float64, device='cpu')")
nanprod = _numpys(np.nanprod, "Product of the elements that are not NaN.",
    "xp.asarray([xp.nan, 3.0, 2.0])", "Array(6., dtype=float64, device='cpu')")
nanstd = _numpys(np.nanstd, "Standard deviation of the elements that are not NaN.",
    "xp.asarray([xp.nan, 1.0, 2.0])", "Array(0.5, dtype=float64, device='cpu')")
nansum = _numpys(np.nansum, "Sum of the elements that are not NaN.",
    "xp.asarray([xp.nan, 1.0, 2.0])", "Array(3., dtype=float64, device='cpu')")
nanvar = _numpys(np.nanvar, "Variance of the elements that are not NaN.",
    "xp.asarray([xp.nan, 1.0, 2.0])", "Array(0.25, dtype=float64, device='cpu')")
pad = _numpys(np.pad, "Array with elements added at the ends of its axes.",
    "xp.asarray([1, 2]), 1", "Array([0, 1, 2, 0], dtype=int64, device='cpu')")
trace = _numpys(np.trace, "Sum of the diagonal.",
    "xp.asarray([[1, 2], [3, 4]])", "Array(5, dtype=int64, device='cpu')")
vstack = _numpys(np.vstack, "Arrays joined along the first axis, one-dimensional ones as rows.",
    "(xp.asarray([1, 2]), xp.asarray([3, 4]))",
    "Array([[1, 2],\n       [3, 4]], dtype=int64, device='cpu')")
# fmt: on

lib = SimpleNamespace(
    stride_tricks=SimpleNamespace(
        sliding_window_view=_numpys(
            np.lib.stride_tricks.sliding_window_view,
            "Windows along an axis, as a view.",
            "xp.asarray([1, 2, 3]), 2",
            "Array([[1, 2],\n       [2, 3]], dtype=int64, device='cpu')",
            "A view that cannot be written; products of shared memory do not wait.",
        )
    )
)
"""Where NumPy keeps the function, and xarray looks for it."""
