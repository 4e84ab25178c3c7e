"""What the chapters share: reading arguments, and making functions out of NumPy's."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ggarray._array import Array, Operand, Ufunc, binary, wrap
from ggarray._dtypes import is_half
from ggarray._runtime.devices import Device, join
from ggarray._storage import Plain

Function = Callable[..., Any]


class Unary(Protocol):
    """A function of one array."""

    def __call__(self, x: Array, /) -> Array: ...


class Binary(Protocol):
    """A function of two arrays, of which one may be a scalar."""

    def __call__(self, x1: Operand, x2: Operand, /) -> Array: ...


class Kind(NamedTuple):
    """What docstrings say of functions alike: dtypes taken and given, and what else is refused.

    The last is the dtype of the result of an example.
    """

    operand: str
    result: str
    refused: str
    dtype: str


_UNARY = """{summary}

Parameters
----------
x : Array
    {operand}.

Returns
-------
Array
    Of the shape of `x`; {result}.

Raises
------
TypeError
    `x` is quantized{refused}, or no Array.

Examples
--------
>>> xp.{name}({arguments})
Array({outcome}, dtype={dtype}, device='cpu')
"""

_BINARY = """{summary}

Parameters
----------
x1, x2 : Array, Python scalar or numpy.ndarray
    {operand}.
    One at least is an Array; the shapes broadcast.

Returns
-------
Array
    Of the shape that the operands broadcast to; {result}.

Raises
------
TypeError
    One is quantized{refused}, or neither is an Array.
ValueError
    The shapes do not broadcast, or the devices do not mix.
OverflowError
    A Python integer is out of the range of the dtype that it meets.

Examples
--------
>>> xp.{name}({arguments})
Array({outcome}, dtype={dtype}, device='cpu')
"""


def require(*arrays: Any) -> None:
    """Raise TypeError unless these are Arrays."""
    for x in arrays:
        if not isinstance(x, Array):
            raise TypeError(
                f"a ggarray Array is wanted, not {type(x).__name__}: see ggarray.asarray"
            )


def read(x: Any) -> Plain:
    """Return the value of an array, computed now if it is pending.

    Raises
    ------
    TypeError
        `x` is not an Array, or is quantized.
    """
    require(x)
    value: Plain = x._read()
    return value


def read_wide(x: Any) -> Plain:
    """Return the value of an array, float16 and bfloat16 as float32, to compute in."""
    value = read(x)
    return value.astype(np.float32) if is_half(value.dtype) else value


def narrow(result: Any, dtype: np.dtype[Any]) -> Any:
    """Return a result computed by `read_wide`, back in the dtype of the operand if that is half."""
    if is_half(dtype) and result.dtype == np.float32:
        return result.astype(dtype)
    return result


def device_of(*arrays: Any) -> Device:
    """Return the device of an operation on these; what is no Array does not count.

    Raises
    ------
    ValueError
        Their devices do not mix.
    TypeError
        There is no Array among them.
    """
    device: Device | None = None
    for x in arrays:
        if isinstance(x, Array) and x._device is not device:
            device = x._device if device is None else join(device, x._device)
    if device is None:
        kinds = ", ".join(type(x).__name__ for x in arrays)
        raise TypeError(f"a ggarray Array is wanted, not {kinds}: see ggarray.asarray")
    return device


def unary(name: str, function: Function, kind: Kind, summary: str, x: str, outcome: str) -> Unary:
    """Return the function of one array that applies a NumPy function to its value.

    The last two make its example: the text of an operand (a list stands for an array of it), and
    the elements of the result as they are printed.
    """

    def elementwise(x: Array, /) -> Array:
        return wrap(function(read(x)), x._device)

    _describe(elementwise, _UNARY, name, kind, summary, (x,), outcome)
    return elementwise


def binary_of(
    name: str, ufunc: Ufunc, kind: Kind, summary: str, x1: str, x2: str, outcome: str
) -> Binary:
    """Return the function of two arrays, or an array and a scalar, that applies a NumPy ufunc.

    The last three make its example, as for `unary`.
    """

    def elementwise(x1: Any, x2: Any, /) -> Array:
        return binary(ufunc, x1, x2)

    _describe(elementwise, _BINARY, name, kind, summary, (x1, x2), outcome)
    return elementwise


def _describe(
    function: Any,
    template: str,
    name: str,
    kind: Kind,
    summary: str,
    operands: tuple[str, ...],
    outcome: str,
) -> None:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "ggarray"
    arguments = ", ".join(f"xp.asarray({x})" if x.startswith("[") else x for x in operands)
    function.__doc__ = template.format(
        name=name, summary=summary, arguments=arguments, outcome=outcome, **kind._asdict()
    )
