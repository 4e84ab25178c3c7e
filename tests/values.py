"""Checking Arrays against what NumPy gives."""

import numpy as np

import ggarray as xp
from ggarray._storage import root_of


def check(result, expected, dtype=None, rtol=0.0, atol=0.0, device="cpu"):
    """Compare a result: class, device, shape, dtype (`expected`'s if None), values.

    Its memory has to be NumPy's own, or products of it would never wait.
    """
    expected = np.asarray(expected)
    assert type(result) is xp.Array
    assert result.device == device
    assert result.shape == expected.shape
    assert result.dtype == np.dtype(dtype or expected.dtype)
    value = np.asarray(result)
    assert root_of(result._read()).base is None
    if value.dtype.kind in "fcV":
        wide = expected.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        np.testing.assert_allclose(value.astype(wide.dtype), wide, rtol, atol)
    else:
        np.testing.assert_array_equal(value, expected)


def on_cpu(value, dtype=None):
    """Return an Array of these values on the cpu."""
    return xp.asarray(np.asarray(value, dtype), device="cpu")


def pending(value):
    """Return a pending Array of these values."""
    x = on_cpu(np.eye(len(value)), value.dtype) @ on_cpu(value)
    assert xp.is_pending(x)
    return x


def numbers(shape, dtype, seed=0):
    """Random numbers of a dtype: normal ones, whole ones of either sign, or truth values."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.kind in "fV":
        return rng.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.integers(-9 if dtype.kind == "i" else 0, 9, shape).astype(dtype)


def zeros_q8_0(shape):
    """Return a quantized array on the CPU: what most functions refuse."""
    data = np.zeros(np.prod(shape) // 32 * 34, np.uint8)
    return xp.quantized_from_bytes(data, xp.q8_0, shape, device="cpu")
