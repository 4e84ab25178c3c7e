"""Array: attributes, operators, indexing and protocols.

An Array holds either a plain value (``_np``), or a ``_source``: the pending node that will give
it, or the blocks of a quantized one. This module alone asks for evaluation: `Array._read` gives a
value that is right to read now, `Array._write` memory that may be written now, `Array._operand`
what a node recorded now has to read.
"""

import math
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from ggarray._dtypes import is_real_floating, plain_dtype, promote
from ggarray._graph import record
from ggarray._graph.execute import evaluate
from ggarray._graph.node import Node, is_contiguous
from ggarray._graph.views import Layout
from ggarray._numpy_methods import NumpyMethods, answers_itself
from ggarray._quantized.blocks import Blocks
from ggarray._runtime.devices import Device, Warning, as_device, get_default_device, join
from ggarray._special_cases import floor_divide, power
from ggarray._storage import Plain, export, find, is_constant, registry, root_of, writers
from ggarray.interface import Op

_new = object.__new__
_ndarray = np.ndarray
_ref = weakref.ref
_BOOL = np.dtype(np.bool_)

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
"""Versions of the standard that the namespace serves, the newest last."""

# What operators take beside Arrays; NumPy applies its rules for weak scalars to the Python ones.
_PYTHON_SCALARS = frozenset({bool, int, float, complex})
_REAL_SCALARS = frozenset({bool, int, float})


Ufunc = Callable[..., Any]
"""A NumPy ufunc, or a function that is called like one."""

Operand = Union["Array", complex, np.generic, np.ndarray[Any, Any]]
"""What operators take beside an Array; complex stands for bool, int and float too."""

_Operator = Callable[["Array", Operand], "Array"]


def _forward(ufunc: Ufunc) -> _Operator:
    """Return the method for ``self <operator> other``."""

    def forward(self: "Array", other: Any, /) -> Any:
        a = self._np
        if a is not None and not writers:
            kind = type(other)
            if kind is Array:
                b = other._np
                if b is not None and other._device is self._device:
                    return wrap(ufunc(a, b), self._device)
            elif kind in _PYTHON_SCALARS and a.dtype.kind != "V":
                return wrap(ufunc(a, other), self._device)
        if not _takes(other):
            return NotImplemented
        return binary(ufunc, self, other)

    return forward


def _arithmetic(ufunc: Ufunc) -> tuple[_Operator, _Operator, _Operator]:
    """Return the methods for an operator, its reflected and its in-place form."""

    def reflected(self: "Array", other: Any, /) -> Any:
        return binary(ufunc, other, self) if _takes(other) else NotImplemented

    def in_place(self: "Array", other: Any, /) -> Any:
        a = self._np
        if a is not None and type(other) in _REAL_SCALARS and a.dtype.kind != "V":
            target = self._write()
            ufunc(target, other, out=target, casting="same_kind")
            return self
        if not _takes(other):
            return NotImplemented
        device = _device_of(self, other)
        if ufunc in _SUBTRACTS and isinstance(other, Array) and _update(self, other, device, ufunc):
            return self
        value = _weak(_plain(other), self)
        if self.dtype.kind != "c" and _is_complex(value):
            raise TypeError(f"a complex result cannot be cast to {self.dtype} in place")
        target = self._write()
        ufunc(target, value, out=target, casting="same_kind")
        return self

    return _forward(ufunc), reflected, in_place


class Array(NumpyMethods):
    """An array of the namespace; made by its functions, such as `asarray` and `zeros`.

    It follows the Python array API standard. A product of arrays is *pending* until its value is
    needed; see ``ggarray.evaluate`` and ``ggarray.is_pending``.

    Examples
    --------
    >>> x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> y = x @ x + x
    >>> xp.is_pending(y)
    True
    >>> y[0, :]
    Array([ 8., 12.], dtype=float64, device='cpu')
    """

    __slots__ = ("__weakref__", "_device", "_np", "_source")
    __module__ = "ggarray"
    __hash__ = None  # type: ignore[assignment]

    _np: Plain | None
    _source: Node | Blocks | None
    _device: Device

    def __init__(self) -> None:
        raise TypeError("arrays are made by functions such as ggarray.asarray and ggarray.zeros")

    # -- values ---------------------------------------------------------------------------------

    def _read(self) -> Plain:
        """Return the value, computed now if it is pending; TypeError for a quantized array."""
        value = self._np
        if value is None:
            value = self._settle()
        if writers:
            storage = find(value)
            if storage is not None and storage.writer is not None:
                evaluate((storage.writer,))
        return value

    def _settle(self) -> Plain:
        source = self._source
        if not isinstance(source, Node):
            raise TypeError(
                f"this is not defined for a quantized array ({self.dtype}): use dequantize first"
            )
        if source.value is None:
            evaluate((source,))
        assert isinstance(source.value, _ndarray)
        self._np = source.value
        self._source = None
        return source.value

    def _write(self) -> Plain:
        """Return the memory, to be written now: what waits to read it has been computed."""
        value = self._read()
        storage = find(value) if registry else None
        if storage is not None and storage.readers:
            evaluate(storage.pending_readers())
        return value

    def _share(self) -> Plain:
        """Return the memory as a NumPy array to give out; those who get it may write it."""
        return export(self._write())

    def _operand(self) -> record.Operand:
        """Return what a node recorded now has to read."""
        value = self._np
        if value is None:
            source = self._source
            assert source is not None
            if isinstance(source, Blocks) or source.value is None:
                return source
            value = self._settle()
        return record.current(value) if writers else value

    def _awaited(self) -> Node | None:
        """Return the node that must be computed before the value can be read, or None."""
        node = self._pending()
        if node is not None or not writers or isinstance(self._source, Blocks):
            return node
        storage = find(self._np if self._np is not None else self._settle())
        return None if storage is None else storage.writer

    def _pending(self) -> Node | None:
        """Return the node that this array stands for while it has not been computed, or None."""
        source = self._source
        return source if isinstance(source, Node) and source.value is None else None

    # -- attributes -----------------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype[Any] | Any:
        """Dtype: a `numpy.dtype`, or a quantized dtype.

        Examples
        --------
        >>> xp.ones(2).dtype
        dtype('float64')
        >>> xp.quantize(xp.ones((1, 32)), xp.q8_0).dtype
        ggarray.q8_0
        """
        return (self._np if self._np is not None else self._source).dtype  # type: ignore[union-attr]

    @property
    def device(self) -> Device:
        """Device on which products of the array run.

        Examples
        --------
        >>> xp.ones(2, device="cpu").device
        ggarray.Device('cpu')
        """
        return self._device

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes; of a quantized array, in elements.

        Examples
        --------
        >>> xp.ones((2, 3)).shape
        (2, 3)
        """
        return (self._np if self._np is not None else self._source).shape  # type: ignore[union-attr]

    @property
    def ndim(self) -> int:
        """Number of axes.

        Examples
        --------
        >>> xp.ones((2, 3)).ndim
        2
        """
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements.

        Examples
        --------
        >>> xp.ones((2, 3)).size
        6
        """
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element.

        Raises
        ------
        TypeError
            The array is quantized: an element has no size of its own.

        Examples
        --------
        >>> xp.ones(2, dtype=xp.complex64).itemsize
        8
        """
        if isinstance(self._source, Blocks):
            raise TypeError(f"an element of {self.dtype} has no size of its own: see nbytes")
        itemsize: int = self.dtype.itemsize
        return itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements.

        Examples
        --------
        >>> xp.ones((2, 32), dtype=xp.float32).nbytes
        256
        >>> xp.quantize(xp.ones((2, 32)), xp.q8_0).nbytes
        68
        """
        if isinstance(self._source, Blocks):
            return self._source.nbytes
        return self.size * self.itemsize

    @property
    def T(self) -> "Array":  # noqa: N802
        """Transpose of a matrix, as a view; recorded if it is pending.

        Raises
        ------
        ValueError
            The array has not two axes.

        Examples
        --------
        >>> xp.asarray([[1, 2], [3, 4]]).T
        Array([[1, 3],
               [2, 4]], dtype=int64, device='cpu')
        """
        if len(self.shape) != 2:
            raise ValueError(f"T is for two-dimensional arrays, not shape {self.shape}: use mT")
        return permute(self, (1, 0))

    @property
    def mT(self) -> "Array":  # noqa: N802
        """Transpose of the last two axes, as a view; recorded if it is pending.

        Raises
        ------
        ValueError
            The array has fewer than two axes.

        Examples
        --------
        >>> xp.ones((2, 3, 4)).mT.shape
        (2, 4, 3)
        """
        ndim = len(self.shape)
        if ndim < 2:
            raise ValueError(f"mT needs at least two axes, not shape {self.shape}")
        return permute(self, (*range(ndim - 2), ndim - 1, ndim - 2))

    # -- protocols ------------------------------------------------------------------------------

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """Return the namespace; ValueError for a version of the standard that it does not serve."""
        if api_version is not None and api_version not in VERSIONS:
            raise ValueError(
                f"version {api_version!r} of the array API is not served; these are:"
                f" {', '.join(VERSIONS)}"
            )
        return sys.modules["ggarray"]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Plain:
        """Return the value as a NumPy array, without a copy where that is possible."""
        if dtype is None or np.dtype(dtype) == self.dtype:
            return self._read().copy() if copy else self._share()
        if copy is False:
            raise ValueError(f"{self.dtype} to {np.dtype(dtype)} needs a copy")
        return self._read().astype(dtype)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the memory as a DLPack capsule; BufferError where that is impossible."""
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError(f"ggarray exports to the CPU, (1, 0), not to device {dl_device}")
        value = self._read().copy() if copy else self._share()
        if value.dtype.kind not in "biufc":
            raise BufferError(f"DLPack has no type for {value.dtype}")
        return value.__dlpack__(stream=stream, max_version=max_version, copy=None)

    def __dlpack_device__(self) -> tuple[Any, int]:
        """Return DLPack's type and number of the device: values are in host memory, (1, 0)."""
        return _HOST

    def to_device(self, device: str, /, *, stream: Any = None) -> "Array":
        """Return the array on another device; memory that nobody can write is not copied.

        Parameters
        ----------
        device : Device or str
            One of ``ggarray.devices()``.
        stream : None
            There are no streams to choose from.

        Returns
        -------
        Array
            The array itself if it is there already. A pending array is computed first.

        Raises
        ------
        ValueError
            An unknown device, or a stream.
        TypeError
            Neither a device nor a string.

        Examples
        --------
        >>> x = xp.ones(2)
        >>> x.to_device("cpu") is x
        True
        """
        if stream is not None:
            raise ValueError("ggarray devices have no streams: stream is None")
        target = as_device(device)
        if target is self._device:
            return self
        if isinstance(self._source, Blocks):
            return wrap_blocks(self._source, target)
        value = self._read()
        return wrap(value if is_constant(value) else value.copy(), target)

    def __reduce_ex__(self, protocol: Any) -> Any:
        value = self._source if isinstance(self._source, Blocks) else self._share()
        return _unpickle, (value, str(self._device))

    def __copy__(self) -> "Array":
        if isinstance(self._source, Blocks):
            return wrap_blocks(self._source, self._device)
        return wrap(self._read().copy(), self._device)

    def __deepcopy__(self, memo: Any) -> "Array":
        return self.__copy__()

    def __repr__(self) -> str:
        if isinstance(self._source, Blocks):
            text = f"shape={self.shape}"
        else:
            text = np.array2string(self._read(), separator=", ", prefix="Array(")
        return f"Array({text}, dtype={self.dtype}, device={str(self._device)!r})"

    def __bool__(self) -> bool:
        return bool(self._read())

    def __int__(self) -> int:
        return int(self._scalar())

    def __float__(self) -> float:
        return float(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        return self._scalar().__index__()

    def _scalar(self) -> Plain:
        if self.shape:
            raise TypeError(f"only an array of no axes is a scalar, not one of shape {self.shape}")
        return self._read()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array of no axes has no length")
        return self.shape[0]

    def __iter__(self) -> "Iterator[Array]":
        return (self[at] for at in range(len(self)))

    # -- indexing -------------------------------------------------------------------------------

    def __getitem__(self, key: Any, /) -> "Array":
        value = self._np
        if value is None:
            return self._getitem_of_source(key)
        kind = type(key)
        if kind is not int and kind is not slice:
            key = plain_key(key)
        return wrap((self._read() if writers else value)[key], self._device)

    def _getitem_of_source(self, key: Any) -> "Array":
        if isinstance(self._source, Blocks):
            return wrap_blocks(self._source[plain_key(key)], self._device)
        node = self._pending()
        if node is not None:
            layout = record.layout_of(node).index(key if isinstance(key, tuple) else (key,))
            if layout is not None and layout.shape:  # NumPy copies a single element
                return wrap_node(record.view(node, layout))
        return wrap(self._read()[plain_key(key)], self._device)

    def __setitem__(self, key: Any, value: Any, /) -> None:
        key = plain_key(key)
        if isinstance(value, Array):
            join(self._device, value._device)
            value = value._read()
        self._write()[key] = value

    # -- operators ------------------------------------------------------------------------------

    __add__, __radd__, __iadd__ = _arithmetic(np.add)
    __sub__, __rsub__, __isub__ = _arithmetic(np.subtract)
    __mul__, __rmul__, __imul__ = _arithmetic(np.multiply)
    __truediv__, __rtruediv__, __itruediv__ = _arithmetic(np.true_divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _arithmetic(floor_divide)
    __mod__, __rmod__, __imod__ = _arithmetic(np.remainder)
    __pow__, __rpow__, __ipow__ = _arithmetic(power)
    __and__, __rand__, __iand__ = _arithmetic(np.bitwise_and)
    __or__, __ror__, __ior__ = _arithmetic(np.bitwise_or)
    __xor__, __rxor__, __ixor__ = _arithmetic(np.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = _arithmetic(np.left_shift)
    __rshift__, __rrshift__, __irshift__ = _arithmetic(np.right_shift)

    if TYPE_CHECKING:  # they give an Array, as the standard says; object's give bool

        def __eq__(self, other: Operand, /) -> "Array": ...  # type: ignore[override]
        def __ne__(self, other: Operand, /) -> "Array": ...  # type: ignore[override]

    else:
        __eq__ = _forward(np.equal)
        __ne__ = _forward(np.not_equal)
    __lt__ = _forward(np.less)
    __le__ = _forward(np.less_equal)
    __gt__ = _forward(np.greater)
    __ge__ = _forward(np.greater_equal)

    def __neg__(self) -> "Array":
        return negative(self)

    def __pos__(self) -> "Array":
        return wrap(np.positive(self._read()), self._device)

    def __abs__(self) -> "Array":
        return wrap(np.abs(self._read()), self._device)

    def __invert__(self) -> "Array":
        return wrap(np.invert(self._read()), self._device)

    def __matmul__(self, other: "Array | np.ndarray[Any, Any]", /) -> "Array":
        if not isinstance(other, Array):
            if not (isinstance(other, _ndarray) and _takes(other)):
                return NotImplemented
            other = _copied(other, self._device)
        return matmul(self, other)

    def __rmatmul__(self, other: "np.ndarray[Any, Any]", /) -> "Array":
        if not (isinstance(other, _ndarray) and _takes(other)):
            return NotImplemented
        return matmul(_copied(other, self._device), self)

    def __imatmul__(self, other: "Array | np.ndarray[Any, Any]", /) -> "Array":
        product = self.__matmul__(other)
        if not isinstance(product, Array):
            return NotImplemented
        if not np.can_cast(product.dtype, self.dtype, "same_kind"):
            raise TypeError(f"@= cannot cast {product.dtype} to {self.dtype}")
        if product.shape != self.shape:
            raise ValueError(f"@= cannot put shape {product.shape} into shape {self.shape}")
        self[...] = product
        return self


# -- making arrays ------------------------------------------------------------------------------


def wrap(value: Any, device: Device) -> Array:
    """Return the Array of a NumPy array, or of a NumPy scalar as an array of no axes."""
    array: Array = _new(Array)
    array._np = value if type(value) is _ndarray else np.asarray(value)
    array._source = None
    array._device = device
    return array


def wrap_blocks(blocks: Blocks, device: Device) -> Array:
    """Return the quantized Array of these blocks."""
    array: Array = _new(Array)
    array._np = None
    array._source = blocks
    array._device = device
    return array


def wrap_node(node: Node) -> Array:
    """Return the Array that stands for a node; there is one Array a node."""
    array: Array = _new(Array)
    array._np = None
    array._source = node
    array._device = node.device
    node.handle = _ref(array)
    return array


def _copied(value: Any, device: Device) -> Array:
    """Return an Array with a copy of a NumPy array that others may write to."""
    return wrap(np.array(value), device)


def _plain_or_other(value: Any) -> Any:
    """Return the value of an Array, and anything else as it is."""
    return value._read() if isinstance(value, Array) else value


def _unpickle(value: Plain | Blocks, device: str) -> Array:
    try:
        where = Device(device)
    except ValueError as error:
        where = get_default_device()
        warnings.warn(f"{error}: unpickled to {str(where)!r}", Warning, stacklevel=2)
    if isinstance(value, Blocks):
        if not is_constant(value.data):  # blocks never change
            value = Blocks(value.data.copy(), value.dtype, value.axis)
        return wrap_blocks(value, where)
    base = root_of(value).base
    if isinstance(base, memoryview) and isinstance(base.obj, bytearray):
        value = value.copy()  # pickle's own memory, which nobody else sees
    return wrap(value, where)


def plain_key(key: Any) -> Any:
    """Return an index with NumPy arrays in place of Arrays."""
    if isinstance(key, tuple):
        return tuple(_plain_or_other(each) for each in key)
    return _plain_or_other(key)


# -- operations that may be recorded ------------------------------------------------------------


def matmul(x1: Array, x2: Array) -> Array:
    """Record ``x1 @ x2``."""
    device = x1._device if x1._device is x2._device else join(x1._device, x2._device)
    a, b = x1._operand(), x2._operand()
    if a.dtype is _BOOL is b.dtype:
        return wrap(np.matmul(x1._read(), x2._read()), device)
    return wrap_node(record.matmul(a, b, device))


def outer(x1: Array, x2: Array) -> Array:
    """Record the outer product of two vectors."""
    device = x1._device if x1._device is x2._device else join(x1._device, x2._device)
    a, b = x1._operand(), x2._operand()
    if a.dtype is _BOOL is b.dtype:
        return wrap(np.multiply.outer(x1._read(), x2._read()), device)
    return wrap_node(record.outer(a, b, device))


def view(x: Array, on_layout: Callable[[Layout], Layout | None]) -> Array | None:
    """Record a view of a pending array; None if `x` is not pending or elements have to move."""
    node = x._pending()
    if node is None:
        return None
    layout = on_layout(record.layout_of(node))
    return None if layout is None else wrap_node(record.view(node, layout))


def permute(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the view of `x` with its axes in this order, a permutation of them all."""
    if x._np is not None:
        return wrap(x._read().transpose(axes), x._device)
    if isinstance(x._source, Blocks):
        return wrap_blocks(x._source.permute(axes), x._device)
    pending = view(x, lambda layout: layout.permute(axes))
    return wrap(x._read().transpose(axes), x._device) if pending is None else pending


def negative(x: Array) -> Array:
    """Return ``-x``, recorded if `x` is pending."""
    node = x._pending()
    if node is not None and _in_c_order(node):
        return wrap_node(record.scale(node, None))
    return wrap(np.negative(x._read()), x._device)


def astype(x: Array, dtype: np.dtype[Any]) -> Array:
    """Return a copy of `x` in another plain dtype, recorded if `x` is pending and both are real."""
    node = x._pending()
    if (
        node is not None
        and is_real_floating(dtype)
        and is_real_floating(node.dtype)
        and _in_c_order(node)
    ):
        return wrap_node(record.copy(node, dtype))
    return wrap(x._read().astype(dtype), x._device)


def binary(ufunc: Ufunc, x1: Any, x2: Any) -> Array:
    """Return ``ufunc(x1, x2)``, of which one may be a scalar; recorded where that is possible."""
    a = x1._np if type(x1) is Array else None
    if a is not None and not writers:
        if type(x2) is Array:
            b = x2._np
            if b is not None and x1._device is x2._device:
                return wrap(ufunc(a, b), x1._device)
        elif type(x2) in _PYTHON_SCALARS and a.dtype.kind != "V":
            return wrap(ufunc(a, x2), x1._device)
    elif type(x1) in _PYTHON_SCALARS and type(x2) is Array and not writers:
        b = x2._np
        if b is not None and b.dtype.kind != "V":
            return wrap(ufunc(x1, b), x2._device)
    device = _device_of(x1, x2)
    recorded = _RECORDED.get(ufunc)
    if recorded is not None:
        node = recorded(x1, x2, device)
        if node is not None:
            return wrap_node(node)
    result = ufunc(_weak(_plain(x1), x2), _weak(_plain(x2), x1))
    plain_dtype(result.dtype)  # TypeError for a dtype that is NumPy's alone
    return wrap(result, device)


def _weak(value: Any, beside: Any) -> Any:
    """Return a Python number as the bfloat16 that an array beside it makes of it.

    NumPy does so itself for its own dtypes.
    """
    if type(value) in (int, float) and isinstance(beside, Array) and beside.dtype.kind == "V":
        return beside.dtype.type(value)
    return value


def _device_of(x1: Any, x2: Any) -> Device:
    if not isinstance(x1, Array):
        if not isinstance(x2, Array):
            raise TypeError(f"an array is wanted, not {type(x1).__name__} and {type(x2).__name__}")
        return x2._device
    if not isinstance(x2, Array) or x1._device is x2._device:
        return x1._device
    return join(x1._device, x2._device)


def _takes(other: Any) -> bool:
    """Tell whether operators take this; units and masks of subclasses of ndarray would get lost."""
    kind = type(other)
    if kind is Array or kind is _ndarray or kind in _PYTHON_SCALARS:
        return True
    return isinstance(other, _OPERANDS) and not (
        answers_itself(kind, "__array_ufunc__") or isinstance(other, np.ma.MaskedArray)
    )


def _is_complex(value: Any) -> bool:
    """Tell whether a plain value is complex; NumPy's way to ask takes longer than the operation."""
    return isinstance(value, complex) or getattr(value, "dtype", _BOOL).kind == "c"


def _plain(x: Any) -> Any:
    if isinstance(x, Array):
        return x._read()
    if isinstance(x, _OPERANDS):
        return x
    raise TypeError(f"an array or a scalar is wanted, not {type(x).__name__}")


def _record_sum(x1: Any, x2: Any, device: Device, subtract: bool = False) -> Node | None:
    """Record a sum of two arrays of which one is pending; None otherwise."""
    if not isinstance(x1, Array) or not isinstance(x2, Array):
        return None
    a, b = x1._operand(), x2._operand()
    if not (type(a) is Node or type(b) is Node) or Blocks in (type(a), type(b)):
        return None
    kinds = a.dtype.kind + b.dtype.kind
    if (subtract and "b" in kinds) or ("V" in kinds and a.dtype != b.dtype):
        return None
    if not (_in_c_order(a) and _in_c_order(b)):
        return None
    return record.add(a, b, device, subtract)


def _in_c_order(operand: Any) -> bool:
    """Tell whether a result of this operand's shape is row-major, as recorded ones all are.

    NumPy keeps the order of the operands, and whether reshape gives a view depends on it.
    """
    if isinstance(operand, Node):
        return operand.op is not Op.VIEW or is_contiguous(
            operand.shape, operand.strides, operand.dtype.itemsize
        )
    contiguous: bool = operand.flags.c_contiguous
    return contiguous


def _record_difference(x1: Any, x2: Any, device: Device) -> Node | None:
    return _record_sum(x1, x2, device, subtract=True)


def _record_scaling(x1: Any, x2: Any, device: Device) -> Node | None:
    """Record a pending array times a scalar that leaves the dtype and no element out; else None."""
    array, alpha = (x1, x2) if isinstance(x1, Array) else (x2, x1)
    node = array._pending()
    if node is None or type(alpha) not in _SCALES[node.dtype.kind] or not alpha:
        return None
    if not _in_c_order(node):
        return None
    alpha = _weak(alpha, array)
    if node.dtype.kind in "iu":
        limits = np.iinfo(node.dtype)
        return record.scale(node, alpha) if limits.min <= alpha <= limits.max else None
    with np.errstate(all="ignore"):
        rounded = np.array(alpha).astype(node.dtype)
    return record.scale(node, alpha) if np.isfinite(rounded) and rounded else None


_SCALES: dict[str, tuple[type, ...]] = {
    "i": (int,),
    "u": (int,),
    "f": (int, float),
    "V": (int, float),  # bfloat16
    "c": (int, float, complex),
}

_RECORDED: dict[Ufunc, Callable[[Any, Any, Device], Node | None]] = {
    np.add: _record_sum,
    np.subtract: _record_difference,
    np.multiply: _record_scaling,
}

_SUBTRACTS: dict[Ufunc, bool] = {np.add: False, np.subtract: True}


def _update(x: Array, other: Array, device: Device, ufunc: Ufunc) -> bool:
    """Record ``x += other`` (or ``-=``) if one is pending and x's memory may wait; tell whether."""
    b = other._operand()
    node = x._pending()
    if isinstance(b, Blocks) or (node is None and type(b) is not Node):
        return False
    if "V" in x.dtype.kind + b.dtype.kind and x.dtype != b.dtype:
        return False
    if promote(x.dtype, b.dtype) != x.dtype or device is not x._device:
        return False
    subtract = _SUBTRACTS[ufunc]
    if node is None:
        target = x._np if x._np is not None else x._settle()
        return record.update(target, b, device, subtract)
    if _has_views(node) or np.broadcast_shapes(x.shape, b.shape) != x.shape:
        return False
    updated = record.add(node, b, device, subtract)
    node.handle = None
    updated.handle = _ref(x)
    x._source = updated
    return True


def _has_views(node: Node) -> bool:
    """Tell whether other arrays see the memory that the node's value will be in."""
    if node.op is Op.VIEW:
        return True
    readers = node.storage.pending_readers() if node.storage is not None else ()
    return any(reader.op is Op.VIEW for reader in readers)


_OPERANDS = (Array, bool, int, float, complex, np.generic, _ndarray)
_HOST = np.empty(0).__dlpack_device__()
