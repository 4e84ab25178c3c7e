"""Creation functions. Without a device they create on the default one."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ggarray._array import Array, Operand, wrap
from ggarray._dtypes import DTypeLike, is_half, plain_dtype
from ggarray._namespace._calls import device_of, read
from ggarray._namespace.data_types import astype
from ggarray._runtime.devices import as_device
from ggarray._storage import Plain, borrow, root_of

Shape = int | Sequence[int]

# What NumPy makes an array of at once; others may speak DLPack alone.
_PLAIN = frozenset({np.ndarray, list, tuple, bool, int, float, complex})  # no need to ask these
_NUMPY_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__")


def arange(
    start: int | float,
    /,
    stop: int | float | None = None,
    step: int | float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Array:
    """Evenly spaced numbers from `start`, or 0 if there is no `stop`, up to but without `stop`.

    Parameters
    ----------
    start, stop, step : int or float
        Of one number, that is `stop`. None are given if `step` leads away from `stop`.
    dtype : dtype, optional
        Real; by default int64, or float64 if a number is a float.
    device : Device or str, optional
        Where products of the array run; the default device if None.

    Returns
    -------
    Array
        One axis, ceil((`stop` - `start`) / `step`) elements.

    Raises
    ------
    OverflowError
        An integer dtype does not hold the first or the last number.
    ZeroDivisionError
        `step` is 0.
    ValueError
        There is no such device.
    TypeError
        There is no such dtype, or it is quantized.

    Examples
    --------
    >>> xp.arange(3)
    Array([0, 1, 2], dtype=int64, device='cpu')
    >>> xp.arange(0.0, 1.0, 0.25)
    Array([0.  , 0.25, 0.5 , 0.75], dtype=float64, device='cpu')
    """
    first, end = (0, start) if stop is None else (start, stop)
    target = _dtype(dtype)
    half = target is not None and is_half(target)
    value: Plain = np.arange(first, end, step, np.float64 if half else target)  # type: ignore[call-overload]
    if half:
        value = value.astype(target)
    elif value.dtype.kind in "iu" and value.size:
        last = first + (value.size - 1) * step
        np.array([int(first), int(last)], value.dtype)  # OverflowError where arange wraps
    return wrap(value, as_device(device))


def asarray(
    obj: Any,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    copy: bool | None = None,
) -> Array:
    """Make an array of an object.

    Parameters
    ----------
    obj : Array, scalar, nested sequence of scalars and Arrays, or an object with memory
        Of the last kind are NumPy arrays, whatever has the buffer protocol, and arrays of other
        libraries. An Array is returned itself where dtype and device are right.
    dtype : dtype, optional
        By default that of `obj`; bool, int64, float64 or complex128 for Python scalars.
    device : Device or str, optional
        By default that of an Array, else the default one.
    copy : bool, optional
        True copies always, and False never: it shares the memory of others, and products of shared
        memory do not wait. By default the memory of others is copied once, except that of
        ``bytes`` in a NumPy array, which nobody can write.

    Returns
    -------
    Array
        `obj` itself, or a new Array of its shape.

    Raises
    ------
    ValueError
        `copy` is False and a copy is needed, sequences differ in length, or there is no such
        device.
    OverflowError
        A Python integer is out of the range of the dtype.
    TypeError
        There is no dtype for the elements.

    Examples
    --------
    >>> xp.asarray([[1, 2], [3, 4]], dtype=xp.float32, device="cpu")
    Array([[1., 2.],
           [3., 4.]], dtype=float32, device='cpu')

    Products of memory that others can write are computed at once:

    >>> import numpy as np
    >>> a = np.ones((2, 2))
    >>> copied, shared = xp.asarray(a), xp.asarray(a, copy=False)
    >>> xp.is_pending(copied @ copied), xp.is_pending(shared @ shared)
    (True, False)
    """
    if isinstance(obj, Array):
        if dtype is None and device is None and not copy:
            return obj
        return _asarray_of_own(obj, dtype, device, copy)
    value = _value_of(obj, _dtype(dtype), copy)
    return wrap(value, as_device(device))


def _asarray_of_own(x: Array, dtype: Any, device: str | None, copy: bool | None) -> Array:
    result = astype(x, x.dtype if dtype is None else dtype, copy=bool(copy), device=device)
    if copy is False and result is not x:
        raise ValueError(
            f"asarray: {x.dtype} on {x.device} to {result.dtype} on {result.device} needs a copy"
        )
    return result


def _value_of(obj: Any, dtype: np.dtype[Any] | None, copy: bool | None) -> Plain:
    """Return the value for an Array of an object that is none."""
    plain = type(obj) in _PLAIN
    if (
        not plain
        and hasattr(obj, "__dlpack__")
        and not any(hasattr(obj, each) for each in _NUMPY_PROTOCOLS)
    ):
        obj = np.from_dlpack(obj)
    if copy is not True and _is_constant(obj) and (dtype is None or dtype == obj.dtype):
        return _known(obj.view())
    if copy is not False:
        if not plain and hasattr(obj, "__array__"):  # which need not know of copy=True
            obj = np.asarray(obj)
        return _known(np.array(obj, dtype))
    shared = np.asarray(obj, dtype, copy=False)
    if not shared.dtype.isnative:
        raise ValueError(f"asarray: the byte order of {shared.dtype} needs a copy")
    return borrow(_known(shared))


def _is_constant(obj: Any) -> bool:
    """Tell whether this is a NumPy array of ``bytes`` that can be read as it is."""
    if type(obj) is not np.ndarray or not isinstance(root_of(obj).base, bytes):
        return False
    return obj.dtype.isnative and obj.flags.aligned


def _too_large(element: Any) -> bool:
    return type(element) is int and not -(2**63) <= element < 2**64


def _known(value: Plain) -> Plain:
    """Return `value` in native byte order; an error if there is no dtype for its elements."""
    if value.dtype.kind == "O" and any(_too_large(each) for each in value.flat):
        raise OverflowError("an integer is out of the range of every dtype")
    native = plain_dtype(value.dtype)
    return value if value.dtype is native else value.astype(native, copy=False)


def empty(shape: Shape, *, dtype: DTypeLike | None = None, device: str | None = None) -> Array:
    """Make an array of arbitrary elements.

    Parameters
    ----------
    shape : int or sequence of int
        Lengths of the axes.
    dtype : dtype, optional
        By default float64.
    device : Device or str, optional
        Where products of the array run; the default device if None.

    Returns
    -------
    Array
        Of this shape, with whatever is in its memory.

    Raises
    ------
    ValueError
        A length is negative, or there is no such device.
    TypeError
        There is no such dtype, or it is quantized.

    Examples
    --------
    >>> x = xp.empty((2, 3), dtype=xp.float32)
    >>> x.shape, x.dtype
    ((2, 3), dtype('float32'))
    """
    return wrap(np.empty(shape, _dtype(dtype)), as_device(device))


def empty_like(x: Array, /, *, dtype: DTypeLike | None = None, device: str | None = None) -> Array:
    """Make an array of arbitrary elements like `x`: of its shape, dtype and device, unless given.

    Parameters
    ----------
    x : Array
        A quantized one needs `dtype`.
    dtype : dtype, optional
        By default that of `x`.
    device : Device or str, optional
        By default that of `x`.

    Returns
    -------
    Array
        Of the shape of `x`, with whatever is in its memory.

    Raises
    ------
    ValueError
        There is no such device.
    TypeError
        `x` is no Array, or the dtype is quantized or none.

    Examples
    --------
    >>> xp.empty_like(xp.ones((2, 3))).shape
    (2, 3)
    """
    dtype, device = _like(x, dtype, device)
    return empty(x.shape, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Array:
    """Make a matrix of ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : int
        Its shape; square if only one is given.
    k : int
        Which diagonal: 0 the main one, positive above it, negative below.
    dtype : dtype, optional
        By default float64.
    device : Device or str, optional
        Where products of the array run; the default device if None.

    Returns
    -------
    Array
        Shape (`n_rows`, `n_cols`).

    Raises
    ------
    ValueError
        A length is negative, or there is no such device.
    TypeError
        There is no such dtype, or it is quantized.

    Examples
    --------
    >>> xp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float64, device='cpu')
    """
    value = np.eye(n_rows, n_cols, k, np.float64 if dtype is None else plain_dtype(dtype))
    return wrap(value, as_device(device))


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """Make an array of another one through DLPack, the protocol for exchanging memory.

    Parameters
    ----------
    x : Array, or an object with ``__dlpack__``
        In the memory of the host.
    device : Device or str, optional
        By default that of an Array, else the default one.
    copy : bool, optional
        Only True copies. Otherwise memory is shared, and products of the memory of others do not
        wait.

    Returns
    -------
    Array
        Of the shape and dtype of `x`.

    Raises
    ------
    BufferError
        The memory cannot be had, or not without a copy where `copy` is False.
    TypeError
        The object does not speak DLPack, or there is no dtype for its elements.
    ValueError
        There is no such device.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.zeros(2)
    >>> x = xp.from_dlpack(a)
    >>> a[0] = 1.0  # the memory is one
    >>> x
    Array([1., 0.], dtype=float64, device='cpu')
    """
    if isinstance(x, Array):
        value = read(x)
        target = x.device if device is None else as_device(device)
        return wrap(value.copy() if copy else value, target)
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"an object with __dlpack__ is wanted, not {type(x).__name__}")
    value = _known(np.from_dlpack(x, copy=False if copy is False else None))
    return wrap(value.copy() if copy else value, as_device(device))


def full(
    shape: Shape, fill_value: Operand, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Array:
    """Make an array of equal elements.

    Parameters
    ----------
    shape : int or sequence of int
        Lengths of the axes.
    fill_value : bool, int, float, complex or Array
        The elements; an Array is broadcast.
    dtype : dtype, optional
        By default that of an Array, else bool, int64, float64 or complex128.
    device : Device or str, optional
        Where products of the array run; the default device if None.

    Returns
    -------
    Array
        Of this shape.

    Raises
    ------
    OverflowError
        `fill_value` is an integer out of the range of the dtype.
    ValueError
        A length is negative, an Array does not broadcast, or there is no such device.
    TypeError
        There is no such dtype, or it is quantized.

    Examples
    --------
    >>> xp.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int64, device='cpu')
    """
    fill = read(fill_value) if isinstance(fill_value, Array) else fill_value
    return wrap(_known(np.full(shape, fill, _dtype(dtype))), as_device(device))


def full_like(
    x: Array, /, fill_value: Operand, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Array:
    """Make an array of equal elements like `x`: of its shape, dtype and device, unless given.

    Parameters
    ----------
    x : Array
        A quantized one needs `dtype`.
    fill_value : bool, int, float, complex or Array
        The elements; an Array is broadcast.
    dtype : dtype, optional
        By default that of `x`.
    device : Device or str, optional
        By default that of `x`.

    Returns
    -------
    Array
        Of the shape of `x`.

    Raises
    ------
    OverflowError
        `fill_value` is an integer out of the range of the dtype.
    ValueError
        An Array does not broadcast, or there is no such device.
    TypeError
        `x` is no Array, or the dtype is quantized or none.

    Examples
    --------
    >>> xp.full_like(xp.ones(2, dtype=xp.float32), 7)
    Array([7., 7.], dtype=float32, device='cpu')
    """
    dtype, device = _like(x, dtype, device)
    return full(x.shape, fill_value, dtype=dtype, device=device)


def linspace(
    start: int | float | complex,
    stop: int | float | complex,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Array:
    """Make an array of `num` evenly spaced numbers.

    Parameters
    ----------
    start, stop : int, float or complex
        The first number, and the last one or what would follow it.
    num : int
        How many.
    dtype : dtype, optional
        By default float64, or complex128 if one is complex; numbers are rounded down to integers.
    device : Device or str, optional
        Where products of the array run; the default device if None.
    endpoint : bool
        Whether `stop` is the last number.

    Returns
    -------
    Array
        Shape (`num`,).

    Raises
    ------
    ValueError
        `num` is negative, or there is no such device.
    TypeError
        There is no such dtype, or it is quantized.

    Examples
    --------
    >>> xp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float64, device='cpu')
    >>> xp.linspace(0, 1, 4, endpoint=False)
    Array([0.  , 0.25, 0.5 , 0.75], dtype=float64, device='cpu')
    """
    value = np.linspace(start, stop, num, endpoint, dtype=_dtype(dtype))
    return wrap(value, as_device(device))


def meshgrid(*arrays: Array, indexing: Literal["xy", "ij"] = "xy") -> tuple[Array, ...]:
    """Coordinates of the points of a grid.

    Parameters
    ----------
    *arrays : Array
        Vectors: the coordinates along each axis.
    indexing : {"xy", "ij"}
        "ij": axis n of the results belongs to vector n; "xy": the first two are exchanged.

    Returns
    -------
    tuple of Array
        As many as vectors, all of the shape of the grid; copies.

    Raises
    ------
    ValueError
        `indexing` is something else, or the devices do not mix.
    TypeError
        One is quantized, or no Array.

    Examples
    --------
    >>> rows, columns = xp.meshgrid(xp.arange(2), xp.arange(3), indexing="ij")
    >>> rows
    Array([[0, 0, 0],
           [1, 1, 1]], dtype=int64, device='cpu')
    """
    if not arrays:
        return ()
    device = device_of(*arrays)
    values = np.meshgrid(*(read(x) for x in arrays), indexing=indexing)
    return tuple(wrap(value, device) for value in values)


def ones(shape: Shape, *, dtype: DTypeLike | None = None, device: str | None = None) -> Array:
    """Make an array of ones.

    Parameters
    ----------
    shape : int or sequence of int
        Lengths of the axes.
    dtype : dtype, optional
        By default float64.
    device : Device or str, optional
        Where products of the array run; the default device if None.

    Returns
    -------
    Array
        Of this shape.

    Raises
    ------
    ValueError
        A length is negative, or there is no such device.
    TypeError
        There is no such dtype, or it is quantized.

    Examples
    --------
    >>> xp.ones((2, 2))
    Array([[1., 1.],
           [1., 1.]], dtype=float64, device='cpu')
    """
    return wrap(np.ones(shape, _dtype(dtype)), as_device(device))


def ones_like(x: Array, /, *, dtype: DTypeLike | None = None, device: str | None = None) -> Array:
    """Make an array of ones like `x`: of its shape, dtype and device, unless given.

    Parameters
    ----------
    x : Array
        A quantized one needs `dtype`.
    dtype : dtype, optional
        By default that of `x`.
    device : Device or str, optional
        By default that of `x`.

    Returns
    -------
    Array
        Of the shape of `x`.

    Raises
    ------
    ValueError
        There is no such device.
    TypeError
        `x` is no Array, or the dtype is quantized or none.

    Examples
    --------
    >>> xp.ones_like(xp.arange(3))
    Array([1, 1, 1], dtype=int64, device='cpu')
    """
    dtype, device = _like(x, dtype, device)
    return ones(x.shape, dtype=dtype, device=device)


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Copy of matrices with zeros above a diagonal.

    Parameters
    ----------
    x : Array
        Shape (..., M, N), of any plain dtype.
    k : int
        The diagonal: 0 the main one, positive above it, negative below.

    Returns
    -------
    Array
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError
        `x` has fewer than two axes.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.tril(xp.ones((3, 3), dtype=xp.int64))
    Array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]], dtype=int64, device='cpu')
    """
    return wrap(np.tril(_matrices("tril", x), k), x.device)


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Copy of matrices with zeros below a diagonal.

    Parameters
    ----------
    x : Array
        Shape (..., M, N), of any plain dtype.
    k : int
        The diagonal: 0 the main one, positive above it, negative below.

    Returns
    -------
    Array
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError
        `x` has fewer than two axes.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.triu(xp.ones((3, 3), dtype=xp.int64), k=1)
    Array([[0, 1, 1],
           [0, 0, 1],
           [0, 0, 0]], dtype=int64, device='cpu')
    """
    return wrap(np.triu(_matrices("triu", x), k), x.device)


def zeros(shape: Shape, *, dtype: DTypeLike | None = None, device: str | None = None) -> Array:
    """Make an array of zeros.

    Parameters
    ----------
    shape : int or sequence of int
        Lengths of the axes.
    dtype : dtype, optional
        By default float64.
    device : Device or str, optional
        Where products of the array run; the default device if None.

    Returns
    -------
    Array
        Of this shape.

    Raises
    ------
    ValueError
        A length is negative, or there is no such device.
    TypeError
        There is no such dtype, or it is quantized.

    Examples
    --------
    >>> xp.zeros(3, dtype=xp.float16)
    Array([0., 0., 0.], dtype=float16, device='cpu')
    """
    return wrap(np.zeros(shape, _dtype(dtype)), as_device(device))


def zeros_like(x: Array, /, *, dtype: DTypeLike | None = None, device: str | None = None) -> Array:
    """Make an array of zeros like `x`: of its shape, dtype and device, unless given.

    Parameters
    ----------
    x : Array
        A quantized one needs `dtype`.
    dtype : dtype, optional
        By default that of `x`.
    device : Device or str, optional
        By default that of `x`.

    Returns
    -------
    Array
        Of the shape of `x`.

    Raises
    ------
    ValueError
        There is no such device.
    TypeError
        `x` is no Array, or the dtype is quantized or none.

    Examples
    --------
    >>> xp.zeros_like(xp.ones(2, dtype=xp.complex64))
    Array([0.+0.j, 0.+0.j], dtype=complex64, device='cpu')
    """
    dtype, device = _like(x, dtype, device)
    return zeros(x.shape, dtype=dtype, device=device)


def _dtype(dtype: Any) -> np.dtype[Any] | None:
    """Return a dtype that may be left out, as an `numpy.dtype`."""
    return None if dtype is None else plain_dtype(dtype)


def _like(x: Array, dtype: Any, device: str | None) -> tuple[Any, str]:
    """Return a dtype and device, those of `x` where they are left out."""
    own = device_of(x)
    return x.dtype if dtype is None else dtype, own if device is None else device


def _matrices(name: str, x: Array) -> Plain:
    value = read(x)
    if value.ndim < 2:
        raise ValueError(f"{name}: at least two axes are wanted, not shape {value.shape}")
    return value
