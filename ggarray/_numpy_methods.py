"""What NumPy and its users expect of an array beyond the standard: methods, and dispatch to us.

Each method is the namespace's function of that name, called as NumPy's method is; where the
namespace has none, NumPy's function on the value. The standard's own methods are in `_array`.
"""

import operator
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ggarray._dtypes import to_dtype

if TYPE_CHECKING:
    from ggarray._array import Array
    from ggarray._runtime.devices import Device

Axis = int | tuple[int, ...] | None


def answers_itself(kind: type, protocol: str) -> bool:
    """Tell whether a class, neither NumPy's nor ours, has a protocol of NumPy's of its own."""
    numpys = getattr(np.ndarray, protocol)
    return not issubclass(kind, NumpyMethods) and getattr(kind, protocol, numpys) is not numpys


def _view(value: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Return the memory of `value` as elements of another dtype."""
    target = to_dtype(dtype)  # no subclass of ndarray, which NumPy's view takes too
    if dtype is None or not target.isnative:
        raise TypeError(f"view: a dtype in native byte order is wanted, not {dtype}")
    return value.view(target)


def _one_or_all(given: tuple[Any, ...]) -> Any:
    """Return the one sequence given, or None; else the integers given, as a sequence."""
    one = len(given) == 1 and not isinstance(given[0], (int, np.integer))
    return given[0] if one else given


def _protocols() -> Any:
    return sys.modules["ggarray._namespace.numpy_protocols"]


class NumpyMethods:
    """Methods that NumPy's arrays have and the standard's have not."""

    __slots__ = ()
    __array_priority__ = 1000

    if TYPE_CHECKING:

        def _read(self) -> np.ndarray[Any, Any]: ...

        def _write(self) -> np.ndarray[Any, Any]: ...

        @property
        def device(self) -> Device: ...

        @property
        def dtype(self) -> Any: ...

        @property
        def shape(self) -> tuple[int, ...]: ...

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply a NumPy ufunc to Arrays and others; the result is an Array."""
        return _protocols().apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Call a NumPy function with Arrays among its arguments; arrays it returns are Arrays."""
        if any(answers_itself(kind, "__array_function__") for kind in types):
            return NotImplemented
        return _protocols().apply_function(func, args, kwargs, self.device)

    # -- Python ---------------------------------------------------------------------------------

    def __contains__(self, element: Any) -> bool:
        return bool(np.any(self == element))

    def __divmod__(self, other: Any, /) -> tuple[Any, Any]:
        return operator.floordiv(self, other), operator.mod(self, other)

    def __rdivmod__(self, other: Any, /) -> tuple[Any, Any]:
        return operator.floordiv(other, self), operator.mod(other, self)

    def __format__(self, spec: str) -> str:
        """Format the number of an array of no axes; another array has only the empty format."""
        return super().__format__(spec) if self.shape else format(self._read()[()], spec)

    def __round__(self, ndigits: int | None = None) -> Any:
        """Return the number of an array of no axes, rounded as Python does it."""
        if self.shape:
            raise TypeError(f"an array of shape {self.shape} has a method round: see there")
        return round(self._read().item(), ndigits)

    def __str__(self) -> str:
        """Return the elements as NumPy prints them; of a quantized array, what `repr` gives."""
        return str(self._read()) if isinstance(self.dtype, np.dtype) else repr(self)

    # -- conversion -----------------------------------------------------------------------------

    def astype(self, dtype: Any, copy: bool = True) -> "Array":
        """Return the array in another dtype, as ``ggarray.astype`` does.

        Parameters
        ----------
        dtype : dtype
            A quantized dtype quantizes along the last axis.
        copy : bool
            False returns the array itself if it has that dtype.

        Returns
        -------
        Array
            Of the shape of the array.

        Raises
        ------
        TypeError
            There is no such dtype, or no cast to it: of complex elements to real ones, or of a
            quantized array to integers.
        ValueError
            The last axis is not a multiple of the block of a quantized dtype.

        Examples
        --------
        >>> xp.asarray([1.7, -1.7]).astype(xp.int64)
        Array([ 1, -1], dtype=int64, device='cpu')
        """
        return self._call("astype", dtype, copy=copy)

    def copy(self) -> "Array":
        """Return a copy; a quantized array stays so.

        Returns
        -------
        Array
            Of the shape and dtype of the array.

        Examples
        --------
        >>> x = xp.ones(2)
        >>> y = x.copy()
        >>> x[0] = 5
        >>> y
        Array([1., 1.], dtype=float64, device='cpu')
        """
        return self._call("asarray", copy=True)

    def item(self, *index: int) -> Any:
        """Return the Python scalar of an array of one element, or of the element at an index.

        Parameters
        ----------
        *index : int
            One for each axis, or a single one into the flattened array; none for the only
            element.

        Returns
        -------
        bool, int, float or complex
            The element.

        Raises
        ------
        ValueError
            There is no index and not exactly one element, or a wrong number of indices.
        IndexError
            The index is out of range.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> x = xp.asarray([[1, 2], [3, 4]])
        >>> x.item(1, 0), x.item(-1)
        (3, 4)
        """
        return self._read().item(*index)

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """Return the value as a NumPy array: what ``numpy.asarray`` gives.

        Returns
        -------
        numpy.ndarray
            It shares the memory: products of the array do not wait while it lives.

        Raises
        ------
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([1, 2]).to_numpy()
        array([1, 2])
        """
        return np.asarray(self)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python scalars.

        Returns
        -------
        list
            A list for each axis within another; of an array of no axes, the scalar.

        Raises
        ------
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return self._read().tolist()

    def tobytes(self) -> bytes:
        """Return the elements in row-major order as bytes.

        Returns
        -------
        bytes
            A copy of the memory.

        Raises
        ------
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([72, 105], dtype=xp.uint8).tobytes()
        b'Hi'
        """
        return self._read().tobytes()

    def view(self, dtype: Any) -> "Array":
        """Return the memory as elements of another dtype, as ``numpy.ndarray.view`` does.

        Parameters
        ----------
        dtype : dtype
            In native byte order, not quantized.

        Returns
        -------
        Array
            It shares the memory; the last axis is longer where elements are smaller, and
            shorter where they are greater.

        Raises
        ------
        TypeError
            There is no such dtype, or the array is quantized.
        ValueError
            The size of elements differs, and there is no last axis, it is not contiguous, or it is
            not a multiple of the new size.

        Examples
        --------
        >>> x = xp.asarray([1 + 2j, 3 + 4j])
        >>> x.view(xp.float64)
        Array([1., 2., 3., 4.], dtype=float64, device='cpu')
        """
        return self._call_numpy(_view, dtype)

    # -- shape ----------------------------------------------------------------------------------

    def flatten(self) -> "Array":
        """Return a copy with one axis.

        Returns
        -------
        Array
            The elements in row-major order.

        Raises
        ------
        TypeError
            The array is quantized and its blocks would be cut.

        Examples
        --------
        >>> xp.asarray([[1, 2], [3, 4]]).flatten()
        Array([1, 2, 3, 4], dtype=int64, device='cpu')
        """
        return self._call("reshape", (-1,), copy=True)

    def ravel(self) -> "Array":
        """Return the array with one axis, as a view where that is possible.

        Returns
        -------
        Array
            The elements in row-major order; recorded if the array is pending and this is a
            view.

        Raises
        ------
        TypeError
            The array is quantized and its blocks would be cut.

        Examples
        --------
        >>> x = xp.asarray([[1, 2], [3, 4]])
        >>> x.ravel()[0] = 5
        >>> x
        Array([[5, 2],
               [3, 4]], dtype=int64, device='cpu')
        """
        return self._call("reshape", (-1,))

    def reshape(self, *shape: Any, copy: bool | None = None) -> "Array":
        """Return the array with another shape, as ``ggarray.reshape`` does.

        Parameters
        ----------
        *shape : int or sequence of int
            The lengths, or one sequence of them; one may be -1.
        copy : bool, optional
            True copies, False raises where a view is impossible; by default a view where
            possible.

        Returns
        -------
        Array
            Of this shape.

        Raises
        ------
        ValueError
            The numbers of elements differ, or `copy` is False and elements have to move.
        TypeError
            The array is quantized and its blocks would be cut.

        Examples
        --------
        >>> xp.arange(6).reshape(2, -1)
        Array([[0, 1, 2],
               [3, 4, 5]], dtype=int64, device='cpu')
        """
        return self._call("reshape", _one_or_all(shape), copy=copy)

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> "Array":
        """Return a view without axes of length 1, as ``ggarray.squeeze`` does.

        Parameters
        ----------
        axis : int or tuple of int, optional
            The axes to leave out; by default all of length 1.

        Returns
        -------
        Array
            A view; recorded if the array is pending.

        Raises
        ------
        ValueError
            An axis is not of length 1, or there is no such axis.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.ones((1, 2, 1)).squeeze().shape
        (2,)
        >>> xp.ones((1, 2, 1)).squeeze(0).shape
        (2, 1)
        """
        if axis is None:
            axis = tuple(at for at, length in enumerate(self.shape) if length == 1)
        return self._call("squeeze", axis)

    def swapaxes(self, axis1: int, axis2: int) -> "Array":
        """Return a view with two axes in each other's place.

        Parameters
        ----------
        axis1, axis2 : int
            The axes.

        Returns
        -------
        Array
            A view.

        Raises
        ------
        ValueError
            There is no such axis.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.ones((2, 3, 4)).swapaxes(0, 2).shape
        (4, 3, 2)
        """
        return self._call_numpy(np.swapaxes, axis1, axis2)

    def transpose(self, *axes: Any) -> "Array":
        """Return a view with the axes in another order, as ``ggarray.transpose`` does.

        Parameters
        ----------
        *axes : int, sequence of int, or None
            All axes in the order of the result, or one sequence of them; by default reversed.

        Returns
        -------
        Array
            A view; recorded if the array is pending.

        Raises
        ------
        ValueError
            The axes are no permutation.

        Examples
        --------
        >>> xp.ones((2, 3, 4)).transpose(1, 0, 2).shape
        (3, 2, 4)
        """
        return self._call("transpose", _one_or_all(axes) if axes else None)

    # -- elements -------------------------------------------------------------------------------

    @property
    def real(self) -> "Array":
        """Real part, a view; real elements stay: see ``ggarray.real``.

        Raises
        ------
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([1 + 2j, 3]).real
        Array([1., 3.], dtype=float64, device='cpu')
        """
        return self._call("real")

    @property
    def imag(self) -> "Array":
        """Imaginary part, a view; 0 for real elements: see ``ggarray.imag``.

        Raises
        ------
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([1 + 2j, 3]).imag
        Array([2., 0.], dtype=float64, device='cpu')
        """
        return self._call("imag")

    def argsort(self, axis: int = -1, *, stable: bool = True) -> "Array":
        """Return the indices that sort the array along an axis, as ``ggarray.argsort`` does.

        Parameters
        ----------
        axis : int
            The axis to sort along.
        stable : bool
            Equal elements keep their order.

        Returns
        -------
        Array
            Of int64, with the shape of the array.

        Raises
        ------
        ValueError
            There is no such axis.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([3, 1, 2]).argsort()
        Array([1, 2, 0], dtype=int64, device='cpu')
        """
        return self._call("argsort", axis=axis, stable=stable)

    def clip(self, min: Any = None, max: Any = None) -> "Array":
        """Limit the elements to the range from `min` to `max`, as ``ggarray.clip`` does.

        Parameters
        ----------
        min, max : scalar or Array, optional
            The limits; they broadcast with the array.

        Returns
        -------
        Array
            A copy of its dtype.

        Raises
        ------
        TypeError
            A limit is of a kind that the dtype cannot hold, or the array is quantized.
        ValueError
            The shapes do not broadcast.

        Examples
        --------
        >>> xp.asarray([-2.0, 0.5, 3.0]).clip(0, 1)
        Array([0. , 0.5, 1. ], dtype=float64, device='cpu')
        """
        return self._call("clip", min, max)

    def conj(self) -> "Array":
        """Return the complex conjugates, as ``ggarray.conj`` does.

        Returns
        -------
        Array
            Of the shape of the array.

        Raises
        ------
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([1 + 2j]).conj()
        Array([1.-2.j], dtype=complex128, device='cpu')
        """
        return self._call("conj")

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "Array":
        """Return the diagonal of a matrix, or of each, as ``ggarray.diagonal`` does.

        Parameters
        ----------
        offset : int
            Which diagonal: above the main one if positive, below it if negative.
        axis1, axis2 : int
            The axes of the matrices.

        Returns
        -------
        Array
            A view that cannot be written; the diagonals are along its last axis.

        Raises
        ------
        ValueError
            The array has fewer than two axes, or these are not two axes of it.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> x = xp.asarray([[1, 2], [3, 4]])
        >>> x.diagonal()
        Array([1, 4], dtype=int64, device='cpu')
        >>> x.diagonal(1)
        Array([2], dtype=int64, device='cpu')
        """
        return self._call_numpy(np.diagonal, offset, axis1, axis2)

    def fill(self, value: Any) -> None:
        """Set all elements to a scalar.

        Parameters
        ----------
        value : scalar or Array of no axes
            It is cast to the dtype of the array.

        Raises
        ------
        TypeError
            The scalar is complex and the array is not, or the array is quantized.
        ValueError
            `value` has axes, or the memory is read-only.

        Examples
        --------
        >>> x = xp.zeros(3)
        >>> x.fill(2)
        >>> x
        Array([2., 2., 2.], dtype=float64, device='cpu')
        """
        self._write().fill(value)

    def nonzero(self) -> "tuple[Array, ...]":
        """Return the places of elements that are not zero, as ``ggarray.nonzero`` does.

        Returns
        -------
        tuple of Array
            An int64 Array an axis: the indices along it.

        Raises
        ------
        ValueError
            The array has no axes.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([[0, 5], [6, 0]]).nonzero()
        (Array([0, 1], dtype=int64, device='cpu'), Array([1, 0], dtype=int64, device='cpu'))
        """
        result: tuple[Array, ...] = sys.modules["ggarray"].nonzero(self)
        return result

    def repeat(self, repeats: Any, axis: int | None = None) -> "Array":
        """Return each element repeated, as ``ggarray.repeat`` does.

        Parameters
        ----------
        repeats : int, Array or sequence of int
            How often; several have a number for each place along `axis`.
        axis : int, optional
            None flattens the array first.

        Returns
        -------
        Array
            A copy.

        Raises
        ------
        ValueError
            A number is negative, there are not as many as places, or there is no such axis.
        TypeError
            The numbers are not integers, or the array is quantized.

        Examples
        --------
        >>> xp.asarray([1, 2]).repeat(2)
        Array([1, 1, 2, 2], dtype=int64, device='cpu')
        """
        return self._call("repeat", repeats, axis=axis)

    def round(self, decimals: int = 0) -> "Array":
        """Return the elements rounded to a number of decimals, as ``numpy.round`` does.

        Parameters
        ----------
        decimals : int
            Negative ones count to the left of the point.

        Returns
        -------
        Array
            The nearest number, the even one of two.

        Raises
        ------
        TypeError
            `decimals` is no integer, or the array is quantized.

        Examples
        --------
        >>> xp.asarray([1.234, 5.678]).round(1)
        Array([1.2, 5.7], dtype=float64, device='cpu')
        """
        return self._call_numpy(np.round, decimals=decimals)

    def sort(self, axis: int = -1) -> None:
        """Sort the array in place along an axis; ``ggarray.sort`` returns a copy.

        Parameters
        ----------
        axis : int
            The axis to sort along.

        Raises
        ------
        ValueError
            There is no such axis, or the memory is read-only.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> x = xp.asarray([3, 1, 2])
        >>> x.sort()
        >>> x
        Array([1, 2, 3], dtype=int64, device='cpu')
        """
        self._write().sort(axis)

    def take(self, indices: Any, axis: int | None = None) -> "Array":
        """Return the elements at indices along an axis, as ``numpy.take`` does.

        Parameters
        ----------
        indices : int, Array or sequence of int
            Negative ones count from the end; with several axes, these replace `axis`.
        axis : int, optional
            None flattens the array first.

        Returns
        -------
        Array
            A copy.

        Raises
        ------
        IndexError
            An index is out of range.
        ValueError
            There is no such axis.
        TypeError
            An array of indices is not of an integer dtype, or the array is quantized: see
            ``ggarray.take``.

        Examples
        --------
        >>> xp.asarray([[1, 2], [3, 4]]).take([0, -1])
        Array([1, 4], dtype=int64, device='cpu')
        """
        return self._call_numpy(np.take, indices, axis=axis)

    def dot(self, other: Any) -> "Array":
        """Return NumPy's dot product, recorded, as ``ggarray.dot`` does.

        Parameters
        ----------
        other : Array, numpy.ndarray or scalar
            Its last axis but one, or its only one, is contracted.

        Returns
        -------
        Array
            The axes of the array that remain, then those of `other`.

        Raises
        ------
        ValueError
            The lengths of the contracted axes differ.
        TypeError
            There is no product of these dtypes.

        Examples
        --------
        >>> x = xp.asarray([1.0, 2.0])
        >>> x.dot(x)
        Array(5., dtype=float64, device='cpu')
        """
        return self._call_numpy(np.dot, other)

    # -- reductions -----------------------------------------------------------------------------

    def all(self, axis: Axis = None, keepdims: bool = False) -> "Array":
        """Tell whether all elements, or all along axes, are true, as ``ggarray.all`` does.

        Parameters
        ----------
        axis : int or tuple of int, optional
            All axes if None.
        keepdims : bool
            Keep the axes, of length 1.

        Returns
        -------
        Array
            Of dtype bool.

        Raises
        ------
        ValueError
            There is no such axis.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([[1, 1], [0, 1]]).all(axis=1)
        Array([ True, False], dtype=bool, device='cpu')
        """
        return self._call("all", axis=axis, keepdims=keepdims)

    def any(self, axis: Axis = None, keepdims: bool = False) -> "Array":
        """Tell whether any element, or any along axes, is true, as ``ggarray.any`` does.

        Parameters
        ----------
        axis : int or tuple of int, optional
            All axes if None.
        keepdims : bool
            Keep the axes, of length 1.

        Returns
        -------
        Array
            Of dtype bool.

        Raises
        ------
        ValueError
            There is no such axis.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([[1, 1], [0, 0]]).any(axis=1)
        Array([ True, False], dtype=bool, device='cpu')
        """
        return self._call("any", axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> "Array":
        """Return the index of the first greatest element, as ``ggarray.argmax`` does.

        Parameters
        ----------
        axis : int, optional
            If None, the index is that in the flattened array.
        keepdims : bool
            Keep the axis (all axes for None), of length 1.

        Returns
        -------
        Array
            Of int64.

        Raises
        ------
        ValueError
            There are no elements to compare, or there is no such axis.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([[1, 5, 2], [7, 0, 7]]).argmax(axis=1)
        Array([1, 0], dtype=int64, device='cpu')
        """
        return self._call("argmax", axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> "Array":
        """Return the index of the first least element, as ``ggarray.argmin`` does.

        Parameters
        ----------
        axis : int, optional
            If None, the index is that in the flattened array.
        keepdims : bool
            Keep the axis (all axes for None), of length 1.

        Returns
        -------
        Array
            Of int64.

        Raises
        ------
        ValueError
            There are no elements to compare, or there is no such axis.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([[1, 5, 2], [7, 0, 7]]).argmin(axis=1)
        Array([0, 1], dtype=int64, device='cpu')
        """
        return self._call("argmin", axis=axis, keepdims=keepdims)

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> "Array":
        """Return the running products, as ``ggarray.cumprod`` does.

        Parameters
        ----------
        axis : int, optional
            None flattens the array first.
        dtype : dtype, optional
            Elements are cast to it first; by default small integers go to the default
            (unsigned) integer dtype, and others stay.

        Returns
        -------
        Array
            Of the shape of the array; one axis if `axis` is None.

        Raises
        ------
        ValueError
            There is no such axis.
        TypeError
            The array is quantized, or there is no such dtype.

        Examples
        --------
        >>> xp.asarray([2, 3, 4]).cumprod()
        Array([ 2,  6, 24], dtype=int64, device='cpu')
        """
        return self._call_numpy(np.cumprod, axis=axis, dtype=dtype)

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> "Array":
        """Return the running sums, as ``ggarray.cumsum`` does.

        Parameters
        ----------
        axis : int, optional
            None flattens the array first.
        dtype : dtype, optional
            Elements are cast to it first; by default small integers go to the default
            (unsigned) integer dtype, and others stay.

        Returns
        -------
        Array
            Of the shape of the array; one axis if `axis` is None.

        Raises
        ------
        ValueError
            There is no such axis.
        TypeError
            The array is quantized, or there is no such dtype.

        Examples
        --------
        >>> xp.asarray([2, 3, 4]).cumsum()
        Array([2, 5, 9], dtype=int64, device='cpu')
        """
        return self._call_numpy(np.cumsum, axis=axis, dtype=dtype)

    def max(self, axis: Axis = None, keepdims: bool = False) -> "Array":
        """Return the greatest element, of all or along axes, as ``ggarray.max`` does.

        Parameters
        ----------
        axis : int or tuple of int, optional
            All axes if None.
        keepdims : bool
            Keep the axes, of length 1.

        Returns
        -------
        Array
            The shape of the array without the axes.

        Raises
        ------
        ValueError
            There are no elements to compare, or there is no such axis.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([[1, 5], [7, 3]]).max(axis=1)
        Array([5, 7], dtype=int64, device='cpu')
        """
        return self._call("max", axis=axis, keepdims=keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> "Array":
        """Return the arithmetic mean, of all elements or along axes, as ``ggarray.mean`` does.

        Parameters
        ----------
        axis : int or tuple of int, optional
            All axes if None.
        keepdims : bool
            Keep the axes, of length 1.

        Returns
        -------
        Array
            The shape of the array without the axes.

        Raises
        ------
        ValueError
            There is no such axis.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([[1, 2], [3, 4]]).mean(axis=0)
        Array([2., 3.], dtype=float64, device='cpu')
        """
        return self._call("mean", axis=axis, keepdims=keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> "Array":
        """Return the least element, of all or along axes, as ``ggarray.min`` does.

        Parameters
        ----------
        axis : int or tuple of int, optional
            All axes if None.
        keepdims : bool
            Keep the axes, of length 1.

        Returns
        -------
        Array
            The shape of the array without the axes.

        Raises
        ------
        ValueError
            There are no elements to compare, or there is no such axis.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([[1, 5], [7, 3]]).min(axis=1)
        Array([1, 3], dtype=int64, device='cpu')
        """
        return self._call("min", axis=axis, keepdims=keepdims)

    def prod(self, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> "Array":
        """Return the product of elements, of all or along axes, as ``ggarray.prod`` does.

        Parameters
        ----------
        axis : int or tuple of int, optional
            All axes if None.
        dtype : dtype, optional
            Elements are cast to it first; by default small integers go to the default
            (unsigned) integer dtype, and others stay.
        keepdims : bool
            Keep the axes, of length 1.

        Returns
        -------
        Array
            The shape of the array without the axes.

        Raises
        ------
        ValueError
            There is no such axis.
        TypeError
            The array is quantized, or there is no such dtype.

        Examples
        --------
        >>> xp.asarray([[1, 2], [3, 4]]).prod(axis=1)
        Array([ 2, 12], dtype=int64, device='cpu')
        """
        return self._call("prod", axis=axis, dtype=dtype, keepdims=keepdims)

    def std(self, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> "Array":
        """Return the standard deviation, of all elements or along axes: see ``ggarray.std``.

        Parameters
        ----------
        axis : int or tuple of int, optional
            All axes if None.
        ddof : int or float
            The ``correction`` of that function: 1 for a sample.
        keepdims : bool
            Keep the axes, of length 1.

        Returns
        -------
        Array
            The shape of the array without the axes.

        Raises
        ------
        ValueError
            There is no such axis.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([1.0, 3.0]).std()
        Array(1., dtype=float64, device='cpu')
        """
        return self._call("std", axis=axis, correction=ddof, keepdims=keepdims)

    def sum(self, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> "Array":
        """Return the sum of elements, of all or along axes, as ``ggarray.sum`` does.

        Parameters
        ----------
        axis : int or tuple of int, optional
            All axes if None.
        dtype : dtype, optional
            Elements are cast to it first; by default small integers go to the default
            (unsigned) integer dtype, and others stay.
        keepdims : bool
            Keep the axes, of length 1.

        Returns
        -------
        Array
            The shape of the array without the axes.

        Raises
        ------
        ValueError
            There is no such axis.
        TypeError
            The array is quantized, or there is no such dtype.

        Examples
        --------
        >>> xp.asarray([[1, 2], [3, 4]]).sum(axis=1)
        Array([3, 7], dtype=int64, device='cpu')
        """
        return self._call("sum", axis=axis, dtype=dtype, keepdims=keepdims)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "Array":
        """Return the sum of the diagonal, or of each, as ``ggarray.trace`` does.

        Parameters
        ----------
        offset : int
            Which diagonal: above the main one if positive, below it if negative.
        axis1, axis2 : int
            The axes of the matrices.

        Returns
        -------
        Array
            The shape of the array without the two axes.

        Raises
        ------
        ValueError
            The array has fewer than two axes, or these are not two axes of it.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([[1, 2], [3, 4]]).trace()
        Array(5, dtype=int64, device='cpu')
        """
        return self._call_numpy(np.trace, offset, axis1, axis2)

    def var(self, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> "Array":
        """Return the variance, of all elements or along axes: see ``ggarray.var``.

        Parameters
        ----------
        axis : int or tuple of int, optional
            All axes if None.
        ddof : int or float
            The ``correction`` of that function: 1 for a sample.
        keepdims : bool
            Keep the axes, of length 1.

        Returns
        -------
        Array
            The shape of the array without the axes.

        Raises
        ------
        ValueError
            There is no such axis.
        TypeError
            The array is quantized.

        Examples
        --------
        >>> xp.asarray([1.0, 3.0]).var(ddof=1)
        Array(2., dtype=float64, device='cpu')
        """
        return self._call("var", axis=axis, correction=ddof, keepdims=keepdims)

    def _call(self, name: str, /, *args: Any, **kwargs: Any) -> "Array":
        """Return what the namespace's function of this name gives."""
        result: Array = getattr(sys.modules["ggarray"], name)(self, *args, **kwargs)
        return result

    def _call_numpy(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> "Array":
        """Return what NumPy's function gives of the value."""
        result: Array = _protocols().apply_function(function, (self, *args), kwargs)
        return result
