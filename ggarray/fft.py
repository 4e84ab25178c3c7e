"""Fourier transforms: the fft extension of the standard, through `scipy.fft`.

Transforms use as many threads as products do. float32 and complex64 are transformed in single
precision, float16 and bfloat16 too; integers and bool in double precision. Every transform
evaluates its operand and gives an Array on its device.

Examples
--------
>>> x = xp.asarray([1.0, 2.0, 3.0, 4.0])
>>> xp.fft.irfft(xp.fft.rfft(x))
Array([1., 2., 3., 4.], dtype=float64, device='cpu')
"""

import importlib
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any, Literal, Protocol

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ggarray._array import Array, wrap
from ggarray._dtypes import DTypeLike, is_real_floating, to_dtype
from ggarray._namespace._calls import narrow, read, read_wide
from ggarray._runtime.devices import as_device
from ggarray._runtime.threads import get_num_threads
from ggarray._storage import Plain

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

Norm = Literal["backward", "ortho", "forward"]


class Transform(Protocol):
    """A transform along one axis."""

    def __call__(
        self, x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
    ) -> Array: ...


class TransformN(Protocol):
    """A transform along several axes."""

    def __call__(
        self,
        x: Array,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> Array: ...


@cache
def _scipy() -> ModuleType:
    """Return scipy.fft, imported when the first transform needs it."""
    return importlib.import_module("scipy.fft")


_ONE_AXIS = """{summary}

Parameters
----------
x : Array
    {operand}, at least one axis.
n : int, optional
    {length}
axis : int
    The axis to transform along.
norm : {{"backward", "ortho", "forward"}}
    Which direction divides: the inverse one by the length, both by its root, or the forward one.

Returns
-------
Array
    {result}, of the precision of `x`.

Raises
------
ValueError
    There is no such axis, no element to transform, or `norm` is another word.
TypeError
    {refused}

Examples
--------
>>> xp.fft.{name}(xp.asarray({x}))
Array({outcome}, dtype={dtype}, device='cpu')
"""

_MANY_AXES = """{summary}

Parameters
----------
x : Array
    {operand}, at least one axis.
s : sequence of int, optional
    For each of `axes`: {length}
    -1 takes the axis as it is.
axes : sequence of int, optional
    All axes if None, or the last ones if there is `s`.
norm : {{"backward", "ortho", "forward"}}
    Which direction divides: the inverse one by the number of elements, both by its root, or the
    forward one.

Returns
-------
Array
    {result}, of the precision of `x`.

Raises
------
ValueError
    There is no such axis, none at all, one twice, no element to transform, `s` and `axes` differ in
    length, or `norm` is another word.
TypeError
    {refused}

Examples
--------
>>> xp.fft.{name}(xp.asarray({x}))
Array({outcome}, dtype={dtype}, device='cpu')
"""

# What a transform takes and gives.
_COMPLEX = {
    "operand": "Complex; real elements have no imaginary part",
    "length": "Elements taken: the axis is cut, or filled with zeros.",
    "result": "Complex",
    "refused": "`x` is quantized, or no Array.",
    "dtype": "complex128",
}
_FROM_REAL = {
    **_COMPLEX,
    "operand": "Real",
    "result": "Complex, the last transformed axis n // 2 + 1 long",
    "refused": "`x` is complex or quantized, or no Array.",
}
_TO_REAL = {
    **_COMPLEX,
    "operand": "Complex, the half that determines the rest",
    "length": "Length of the result; 2 * (m - 1) from m elements by default.",
    "result": "Real",
    "dtype": "float64",
}


def _along_axis(name: str, summary: str, kind: dict[str, str], x: str, outcome: str) -> Transform:
    """Return the transform along one axis that scipy.fft has under this name.

    The last two are its example: the elements of an operand, and those of the result as printed.
    """

    def transform(
        x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
    ) -> Array:
        value = read_wide(x)
        at = normalize_axis_index(axis, value.ndim)
        if n is not None and n < 1:  # scipy's irfft and hfft take 0
            raise ValueError(f"{name}: a transform has at least one element, not {n}")
        result = getattr(_scipy(), name)(value, n, at, norm, workers=get_num_threads())
        return wrap(narrow(result, x.dtype), x.device)

    _describe(transform, _ONE_AXIS, name=name, summary=summary, x=x, outcome=outcome, **kind)
    return transform


def _along_axes(name: str, summary: str, kind: dict[str, str], x: str, outcome: str) -> TransformN:
    """Return the transform along several axes that scipy.fft has under this name."""

    def transform(
        x: Array,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> Array:
        value = read_wide(x)
        along = _axes(value, s, axes)
        result = getattr(_scipy(), name)(value, s, along, norm, workers=get_num_threads())
        return wrap(narrow(result, x.dtype), x.device)

    length = kind["length"][0].lower() + kind["length"][1:]
    kind = {**kind, "length": length}
    _describe(transform, _MANY_AXES, name=name, summary=summary, x=x, outcome=outcome, **kind)
    return transform


def _axes(value: Plain, s: Sequence[int] | None, axes: Sequence[int] | None) -> tuple[int, ...]:
    """Return the axes to transform along; ValueError if there is none."""
    if axes is None:
        first = 0 if s is None else value.ndim - len(s)
        axes = range(first, value.ndim)
    along = normalize_axis_tuple(axes, value.ndim)
    if not along:
        raise ValueError(f"at least one axis is transformed: axes {axes} of shape {value.shape}")
    return along


def _describe(function: Any, template: str, **words: str) -> None:
    function.__name__ = function.__qualname__ = words["name"]
    function.__doc__ = template.format(**words)


# fmt: off
fft = _along_axis("fft", """Fourier transform along an axis.

Element k of the result is the sum over m of ``x[m] * exp(-2j * pi * k * m / n)``.""",
    _COMPLEX, "[1.0, 2.0, 3.0, 4.0]", "[10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j]")
ifft = _along_axis("ifft", """Inverse of `fft`.

Element m of the result is the mean over k of ``x[k] * exp(2j * pi * k * m / n)``.""",
    _COMPLEX, "[10, -2 + 2j, -2, -2 - 2j]", "[1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j]")
rfft = _along_axis("rfft", """Fourier transform of real elements along an axis.

These are the first elements of `fft`; the others are conjugates of them.""",
    _FROM_REAL, "[1.0, 2.0, 3.0, 4.0]", "[10.+0.j, -2.+2.j, -2.+0.j]")
irfft = _along_axis("irfft", "Inverse of `rfft`.",
    _TO_REAL, "[10, -2 + 2j, -2]", "[1., 2., 3., 4.]")
hfft = _along_axis("hfft", """Fourier transform of a signal with Hermitian symmetry.

Such a signal has ``x[n - m] == conj(x[m])``; its first half is given.""",
    _TO_REAL, "[1.0, 2.0, 1.0]", "[ 6.,  0., -2.,  0.]")
ihfft = _along_axis("ihfft", "Inverse of `hfft`.",
    _FROM_REAL, "[6.0, 0.0, -2.0, 0.0]", "[1.+0.j, 2.+0.j, 1.+0.j]")
fftn = _along_axes("fftn", "Fourier transform along several axes.",
    _COMPLEX, "[[1.0, 2.0], [3.0, 4.0]]", "[[10.+0.j, -2.+0.j], [-4.+0.j,  0.+0.j]]")
ifftn = _along_axes("ifftn", "Inverse of `fftn`.",
    _COMPLEX, "[[10.0, -2.0], [-4.0, 0.0]]", "[[1.+0.j, 2.+0.j], [3.+0.j, 4.+0.j]]")
rfftn = _along_axes("rfftn", "Fourier transform of real elements along several axes.",
    _FROM_REAL, "[[1.0, 2.0], [3.0, 4.0]]", "[[10.+0.j, -2.+0.j], [-4.+0.j,  0.+0.j]]")
irfftn = _along_axes("irfftn", "Inverse of `rfftn`.",
    _TO_REAL, "[[10.0, -2.0], [-4.0, 0.0]]", "[[1., 2.], [3., 4.]]")
# fmt: on


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None
) -> Array:
    """Return the frequencies of `fft`: 0, 1, ..., -2, -1 over `n` * `d`, in cycles a unit of `d`.

    Parameters
    ----------
    n : int
        Length of the transform, at least 1.
    d : float
        Distance between samples, not 0.
    dtype : dtype, optional
        Real floating; the default one if None.
    device : Device or str, optional
        The default device if None.

    Returns
    -------
    Array
        Shape (`n`,), in the order of the elements of `fft`.

    Raises
    ------
    ValueError
        `n` is less than 1, or there is no such device.
    TypeError
        `dtype` is not real floating.
    ZeroDivisionError
        `d` is 0.

    Examples
    --------
    >>> xp.fft.fftfreq(4, d=0.5)
    Array([ 0. ,  0.5, -1. , -0.5], dtype=float64, device='cpu')
    """
    return _frequencies(np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None
) -> Array:
    """Return the frequencies of `rfft`: 0, 1, ..., n // 2 over `n` * `d`, in cycles a unit of `d`.

    Parameters
    ----------
    n : int
        Length of the real signal, at least 1.
    d : float
        Distance between samples, not 0.
    dtype : dtype, optional
        Real floating; the default one if None.
    device : Device or str, optional
        The default device if None.

    Returns
    -------
    Array
        Shape (`n` // 2 + 1,), in the order of the elements of `rfft`.

    Raises
    ------
    ValueError
        `n` is less than 1, or there is no such device.
    TypeError
        `dtype` is not real floating.
    ZeroDivisionError
        `d` is 0.

    Examples
    --------
    >>> xp.fft.rfftfreq(4, d=0.5)
    Array([0. , 0.5, 1. ], dtype=float64, device='cpu')
    """
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(function: Any, n: int, d: float, dtype: Any, device: str | None) -> Array:
    where = as_device(device)
    target = to_dtype(np.float64 if dtype is None else dtype)
    if not is_real_floating(target):
        raise TypeError(f"frequencies are of a real floating dtype, not {target}")
    if n < 1:
        raise ValueError(f"a transform has at least one element, not {n}")
    return wrap(function(n, d).astype(target, copy=False), where)


def fftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Return a copy with the zero frequency in the middle of each axis.

    Parameters
    ----------
    x : Array
        Of any dtype.
    axes : int or sequence of int, optional
        All axes if None.

    Returns
    -------
    Array
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.fft.fftshift(xp.fft.fftfreq(4))
    Array([-0.5 , -0.25,  0.  ,  0.25], dtype=float64, device='cpu')
    """
    return _shifted(np.fft.fftshift, x, axes)


def ifftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Return a copy with the zero frequency first: the inverse of `fftshift`.

    Parameters
    ----------
    x : Array
        Of any dtype.
    axes : int or sequence of int, optional
        All axes if None.

    Returns
    -------
    Array
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError
        There is no such axis.
    TypeError
        `x` is quantized, or no Array.

    Examples
    --------
    >>> xp.fft.ifftshift(xp.asarray([-0.5, -0.25, 0.0, 0.25]))
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float64, device='cpu')
    """
    return _shifted(np.fft.ifftshift, x, axes)


def _shifted(function: Any, x: Array, axes: int | Sequence[int] | None) -> Array:
    value = read(x)
    along = normalize_axis_tuple(
        range(value.ndim) if axes is None else axes, value.ndim, allow_duplicate=True
    )
    return wrap(function(value, along) if along else value.copy(), x.device)
