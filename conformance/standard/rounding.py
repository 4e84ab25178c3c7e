"""Values in extended precision, with a bound on what rounding may do to them on the way.

A program of products and sums runs on `Approximate` values as it runs on Arrays; the result admits
what any order of the same operations gives, each rounded in its dtype. Integers have no error:
they are computed modulo 2^64, of which every integer dtype keeps the last bits.
"""

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

import ggarray as xp
from conformance.standard.references import (
    BFLOAT16,
    HALVES,
    LAYOUTS,
    eps_of,
    kind_of,
    numbers,
    part_of,
    to_array,
    wide,
)

# What two dtypes give, beside one dtype with itself.
PROMOTED = {
    ("int8", "uint8"): "int16",
    ("uint16", "int32"): "int32",
    ("int8", "int64"): "int64",
    ("uint8", "int64"): "int64",
    ("uint8", "uint64"): "uint64",
    ("int64", "uint64"): "float64",
    ("int8", "float16"): "float16",
    ("int32", "float32"): "float64",
    ("float32", "float64"): "float64",
    ("float16", "float32"): "float32",
    ("float16", "float64"): "float64",
    ("float16", "bfloat16"): "float32",
    ("bfloat16", "float32"): "float32",
    ("bfloat16", "float64"): "float64",
    ("float32", "complex64"): "complex64",
    ("float64", "complex64"): "complex128",
    ("float64", "complex128"): "complex128",
    ("complex64", "complex128"): "complex128",
}


def named(dtype):
    """Return the dtype of this name, also bfloat16."""
    return BFLOAT16 if str(dtype) == "bfloat16" else np.dtype(dtype)


def promoted(a, b):
    names = str(a), str(b)
    return a if a == b else named(PROMOTED.get(names) or PROMOTED[names[::-1]])


class Approximate:
    """A value, and how far from it a result of its dtype may be, element by element."""

    __array_ufunc__ = None

    def __init__(self, value, dtype=None, error=0.0):
        value = np.asarray(value)
        self.dtype = named(value.dtype if dtype is None else dtype)
        self.is_exact = kind_of(self.dtype) in "biu"
        self.value = value.astype(np.uint64) if self.is_exact else wide(value)
        self.error = np.broadcast_to(error, self.value.shape)

    @property
    def size(self):
        """The greatest absolute values that are admitted."""
        return np.abs(self.value) + self.error

    def astype(self, dtype):
        if self.dtype == dtype:
            return self
        value = self.value
        if self.is_exact:
            value = value.astype(self.dtype)
            if kind_of(dtype) not in "iu":
                value = value.astype(np.longdouble)
        converted = Approximate(value, dtype, self.error)
        return converted.after(1, converted.size)

    def after(self, count, sizes, unit_of=None):
        """Return the value after so many roundings of results up to `sizes`, in some dtype."""
        if self.is_exact:
            return self
        dtype = unit_of or self.dtype
        unit = eps_of(dtype) / 2 + np.finfo(np.longdouble).eps / 2  # ours, and the reference's
        if kind_of(dtype) == "c":  # each part takes twice as many
            count, sizes = 2 * count, 2**0.5 * sizes
        assert count * unit < 1, "too many roundings for a bound"
        tiny = float(ml_dtypes.finfo(part_of(dtype)).smallest_subnormal)
        own = count * unit / (1 - count * unit) * sizes + count * tiny
        return Approximate(self.value, self.dtype, self.error + own)

    def accumulated(self, count, sizes):
        """Return the value after a sum of `count` terms; halves add in float32, and round once."""
        if self.dtype not in HALVES:
            return self.after(count, sizes)
        total = self.after(count, sizes, np.float32)
        return total.after(1, total.size)

    def __matmul__(self, other):
        dtype = promoted(self.dtype, other.dtype)
        a, b = self.astype(dtype), other.astype(dtype)
        if a.is_exact:
            return Approximate(a.value @ b.value, dtype)
        inherited = a.error @ b.size + np.abs(a.value) @ b.error
        product = Approximate(a.value @ b.value, dtype, inherited)
        return product.accumulated(a.value.shape[-1], a.size @ b.size)

    def __add__(self, other):
        dtype = promoted(self.dtype, other.dtype)
        a, b = self.astype(dtype), other.astype(dtype)
        return Approximate(a.value + b.value, dtype, a.error + b.error).after(1, a.size + b.size)

    def __neg__(self):
        return Approximate(np.zeros_like(self.value) - self.value, self.dtype, self.error)

    def __sub__(self, other):
        return self + -other

    def __rmul__(self, alpha):
        size = abs(alpha) * self.size
        if self.is_exact:
            alpha = np.uint64(alpha % 2**64)
        error = np.abs(alpha) * self.error
        return Approximate(alpha * self.value, self.dtype, error).after(2, size)

    __mul__ = __rmul__

    def __getitem__(self, key):
        return Approximate(self.value[key], self.dtype, self.error[key])

    def permuted(self, axes):
        return Approximate(self.value.transpose(axes), self.dtype, self.error.transpose(axes))

    @property
    def mT(self):  # noqa: N802
        *axes, rows, columns = range(self.value.ndim)
        return self.permuted((*axes, columns, rows))

    def reshape(self, shape):
        return Approximate(self.value.reshape(shape), self.dtype, self.error.reshape(shape))

    def conj(self):
        return Approximate(np.conj(self.value), self.dtype, self.error)

    def sum(self, axis):
        x = self.astype({"i": np.int64, "u": np.uint64}.get(kind_of(self.dtype), self.dtype))
        total = Approximate(x.value.sum(axis), x.dtype, x.error.sum(axis))
        return total.accumulated(x.value.shape[axis], x.size.sum(axis))

    def check(self, result, device):
        """Raise AssertionError unless a result is admitted: class, device, dtype, shape, values."""
        assert type(result) is xp.Array
        assert result.device == device
        assert result.dtype == self.dtype
        assert result.shape == self.value.shape
        found = np.asarray(result)
        if self.is_exact:
            np.testing.assert_array_equal(found, self.value.astype(self.dtype))
            return
        off = np.abs(wide(found) - self.value)
        wrong = ~(off <= self.error)
        assert not wrong.any(), (
            f"{wrong.sum()} of {wrong.size} wrong, at {np.argwhere(wrong)[:3].tolist()}:"
            f" off by {off[wrong][:3]}, not {self.error[wrong][:3]}"
        )


# -- random operands ----------------------------------------------------------------------------

# Lengths on both sides of the widths in which kernels work.
SIDES = [*range(10), 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129]


@st.composite
def operands(draw, device, dtype, shape):
    """Pairs of an Array in some layout, and of what it holds."""
    value = numbers(dtype, shape, draw(st.integers(0, 2**32)))
    if kind_of(dtype) in "fc":  # of different magnitudes
        value *= 2.0 ** np.resize(np.arange(-4, 2), shape).astype(dtype)
    layout = draw(st.sampled_from(list(LAYOUTS)))
    turned = len(shape) > 1 and draw(st.booleans())
    value = value.swapaxes(-1, -2) if turned else value
    if layout == "broadcast" and shape:
        value = np.broadcast_to(value[:1], value.shape)
    x, a = to_array(value, layout, device), Approximate(value)
    return (x.mT, a.mT) if turned else (x, a)


@st.composite
def matrices(draw, device, dtypes, shapes):
    """Pairs as `operands` gives them, one a shape."""
    return [draw(operands(device, *each)) for each in zip(dtypes, shapes, strict=True)]
