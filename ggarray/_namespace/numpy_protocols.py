"""NumPy's ufuncs and functions called with Arrays: on their values, with Arrays as results.

Products go to the namespace's own functions, so that they are recorded. A function that writes to
an argument gets memory that may be written now, and one that gives memory away gets it as whoever
asks for it does. A result in the memory of somebody else is known to be shared.
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ggarray import _special_cases as special_cases
from ggarray._array import Array, binary, wrap
from ggarray._dtypes import plain_dtype
from ggarray._namespace.numpy_products import PRODUCTS, contract
from ggarray._numpy_methods import answers_itself
from ggarray._runtime.devices import Device, get_default_device, join
from ggarray._storage import Plain, borrow, root_of

# The standard's special cases hold through NumPy's names too.
_SPECIAL_CASES: dict[np.ufunc, Callable[..., Any]] = {
    np.expm1: special_cases.expm1,
    np.floor_divide: special_cases.floor_divide,
    np.log1p: special_cases.log1p,
    np.power: special_cases.power,
    np.sign: special_cases.sign,
    np.tan: special_cases.tan,
    np.tanh: special_cases.tanh,
}

# What NumPy's functions of these names tell needs no value.
_INSPECTIONS: dict[Callable[..., Any], Callable[[Array], Any]] = {
    np.ndim: lambda x: x.ndim,
    np.shape: lambda x: x.shape,
    np.size: lambda x: x.size,
}

_WRITERS = (
    # They write to an argument other than `out` ...
    *(np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask),
    # ... or do so if they are told to.
    *(np.nan_to_num, np.median, np.nanmedian),
    *(np.percentile, np.nanpercentile, np.quantile, np.nanquantile),
)

# NumPy hides from the result of the first whose memory it is; the others hand it to a callback.
_GIVERS = (np.lib.stride_tricks.sliding_window_view, np.apply_along_axis, np.apply_over_axes)

_Access = Callable[[Array], Plain]

# What goes the short way that operators go, which records and knows bfloat16 beside a float.
_OPERANDS = frozenset({Array, np.ndarray, bool, int, float, complex})

# How a function gets at the memory of its arguments, if not by reading.
_ACCESS: dict[Callable[..., Any], _Access] = {
    **dict.fromkeys(_WRITERS, Array._write),
    **dict.fromkeys(_GIVERS, Array._share),
}


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Any) -> Any:
    """Apply a NumPy ufunc or a method of it; NotImplemented beside arrays of other libraries."""
    plain_call = method == "__call__" and not kwargs
    function = _SPECIAL_CASES.get(ufunc, ufunc) if plain_call else getattr(ufunc, method)
    if plain_call and _is_binary(ufunc) and all(type(each) in _OPERANDS for each in inputs):
        return binary(function, *inputs)
    operands = (*inputs, *kwargs.get("out", ()))
    if any(answers_itself(type(each), "__array_ufunc__") for each in operands):
        return NotImplemented
    call = _Call((inputs, kwargs))
    if plain_call and ufunc in PRODUCTS:
        return PRODUCTS[ufunc](*call.arrays(inputs))
    return call.run(function, inputs, kwargs, Array._write if method == "at" else Array._read)


def apply_function(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    device: Device | None = None,
) -> Any:
    """Call a NumPy function with Arrays among its arguments; arrays it returns are Arrays.

    They are on the device of the arguments; where there is no Array, on `device`, or the default.
    One of several that has a dtype of NumPy's alone, such as object, stays NumPy's.

    Raises
    ------
    TypeError
        The result is one array, of a dtype that is NumPy's alone.
    """
    inspection = _INSPECTIONS.get(function)
    if inspection is not None and len(args) == 1 and isinstance(args[0], Array) and not kwargs:
        return inspection(args[0])
    call = _Call((args, kwargs), device)
    place = _place_of_out(function)
    product = _product(call, function, args, kwargs, place)
    if product is not None:
        return product
    # Arrays where `call` does not look, as in a deque, would lead back here, and for ever.
    implementation = getattr(function, "_implementation", function)
    return call.run(implementation, args, kwargs, _ACCESS.get(function, Array._read), place)


def _product(
    call: "_Call",
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    place_of_out: int | None,
) -> Array | None:
    """Return the product of two arrays that this call asks for; None if it asks for another."""
    if function is np.einsum:
        if len(args) != 3 or not isinstance(args[0], str) or kwargs.keys() - {"optimize"}:
            return None
        return contract(args[0], *call.arrays(args[1:]))
    product = PRODUCTS.get(function)
    if product is None or len(args) < 2:
        return None
    named = dict(kwargs)
    out = named.pop("out", None)
    if place_of_out is not None:
        out = next(iter(args[place_of_out:]), out)
    return product(*call.arrays(args[:2]), *args[2:place_of_out], **named) if out is None else None


@cache
def _place_of_out(function: Callable[..., Any]) -> int | None:
    """Return the place of the argument `out` if it may be given without its name."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:  # written in C: before 2.4 NumPy does not tell
        return {np.concatenate: 2, np.dot: 2}.get(function)
    for place, each in enumerate(parameters):
        if each.name == "out" and each.kind is each.POSITIONAL_OR_KEYWORD:
            return place
    return None


def _is_binary(ufunc: np.ufunc) -> bool:
    """Tell whether this is a ufunc of two elements that gives one."""
    return ufunc.nin == 2 and ufunc.nout == 1 and ufunc.signature is None


class _Call:
    """A call of a NumPy function: the device of its arguments, and whose memory they have."""

    def __init__(self, arguments: Any, device: Device | None = None) -> None:
        self._written: dict[int, Any] = {}
        self._foreign: dict[int, Plain] = {}
        self._found: Device | None = None
        self._find_device(arguments)
        self.device = self._found or device or get_default_device()

    def _find_device(self, argument: Any) -> None:
        """Join the device of an Array, or of Arrays within others, with those found before."""
        if isinstance(argument, Array):
            found = self._found
            self._found = argument.device if found is None else join(found, argument.device)
        elif isinstance(argument, (tuple, list)):
            for each in argument:
                self._find_device(each)
        elif isinstance(argument, dict):
            self._find_device(tuple(argument.values()))

    def arrays(self, operands: tuple[Any, ...]) -> tuple[Array, ...]:
        """Return operands as Arrays, others' memory copied: it may be written at any time."""
        return tuple(x if isinstance(x, Array) else self._copied(x) for x in operands)

    def _copied(self, x: Any) -> Array:
        value = np.array(x)
        return wrap(value.astype(plain_dtype(value.dtype), copy=False), self.device)

    def run(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        access: _Access = Array._read,
        place_of_out: int | None = None,
    ) -> Any:
        """Call `function` on the values of Arrays and return its results as Arrays."""
        write = Array._write
        values = [
            self._value(each, write if place == place_of_out else access)
            for place, each in enumerate(args)
        ]
        named = {
            name: self._value(each, write if name == "out" else access)
            for name, each in kwargs.items()
        }
        return self._result(function(*values, **named))

    def _value(self, argument: Any, access: _Access) -> Any:
        """Return an argument with NumPy arrays in place of Arrays, and note whose they are."""
        if isinstance(argument, (tuple, list)):
            values = [self._value(each, access) for each in argument]
            return tuple(values) if isinstance(argument, tuple) else values
        if isinstance(argument, Array):
            value = access(argument)
        elif isinstance(argument, np.generic) or not hasattr(type(argument), "__array__"):
            return argument
        else:
            value = argument if isinstance(argument, np.ndarray) else np.asarray(argument)
            root = root_of(value)
            self._foreign[id(root)] = root
        if access is Array._write:
            self._written[id(value)] = argument
        return value

    def _result(self, result: Any, among: bool = False) -> Any:
        """Return a result, or one among several, with Arrays in place of NumPy's arrays.

        What has been written comes back as it was given.
        """
        if id(result) in self._written:
            return self._written[id(result)]
        if isinstance(result, (np.ndarray, np.generic)):
            return self._array(result, among)
        if isinstance(result, (tuple, list)):
            results = [self._result(each, among=True) for each in result]
            return type(result)(*results) if hasattr(result, "_fields") else type(result)(results)
        return result

    def _array(self, value: Any, among: bool) -> Any:
        """Return an Array of NumPy's array; itself where an Array would lose its mask."""
        if isinstance(value, np.ma.MaskedArray):
            return value
        try:
            dtype = plain_dtype(value.dtype)
        except TypeError:
            if among:
                return value
            raise
        if dtype != value.dtype:  # of the other byte order
            value = value.astype(dtype)
        foreign = isinstance(value, np.ndarray) and id(root_of(value)) in self._foreign
        return wrap(borrow(value) if foreign else value, self.device)
