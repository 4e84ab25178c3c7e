"""Utility functions against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, zeros_q8_0

import ggarray as xp

DTYPES = [np.bool_, np.int8, np.uint64, np.float32, np.complex128, ml_dtypes.bfloat16]


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_all_and_any_are_those_of_numpy(dtype, axis, keepdims):
    x = numbers((2, 3, 4), dtype)
    x[0] = 0
    x[:, 1] = 1
    for name in ("all", "any"):
        expected = getattr(np, name)(x != 0, axis=axis, keepdims=keepdims)
        check(getattr(xp, name)(on_cpu(x), axis=axis, keepdims=keepdims), expected, np.bool_)


def test_no_elements_are_all_true_and_nan_is_true():
    check(xp.all(xp.zeros((0, 2), device="cpu")), True)
    check(xp.any(xp.zeros((0, 2), device="cpu"), axis=0), [False, False])
    check(xp.all(on_cpu([np.nan, np.inf])), True)
    check(xp.any(on_cpu([0.0, -0.0])), False)
    check(xp.any(on_cpu([0j, 1j])), True)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float64, np.complex64])
def test_diff_is_taken_n_times(dtype, axis, n):
    x = numbers((4, 5), dtype)
    expected = x
    for _ in range(n):
        ahead = expected[1:] if axis == 0 else expected[:, 1:]
        behind = expected[:-1] if axis == 0 else expected[:, :-1]
        expected = ahead ^ behind if dtype is np.bool_ else ahead - behind
    check(xp.diff(on_cpu(x), axis=axis, n=n), expected, dtype)
    check(xp.diff(on_cpu(x), n, axis=axis), expected, dtype)


@pytest.mark.parametrize("n", [0, 1])
def test_diff_puts_arrays_before_and_behind(n):
    x, before, behind = numbers((2, 3), "f8", 1), numbers((2, 1), "f8", 2), numbers((2, 2), "f8", 3)
    whole = np.concatenate([before, x, behind], axis=1)
    result = xp.diff(on_cpu(x), n=n, prepend=on_cpu(before), append=on_cpu(behind))
    check(result, whole[:, 1:] - whole[:, :-1] if n else whole)


def test_diff_of_order_0_is_a_copy():
    x = on_cpu([1.0, 2.0])
    xp.diff(x, n=0)[0] = 9.0
    check(x, [1.0, 2.0])


def test_bad_arguments():
    x = on_cpu([[1.0, 2.0]])
    for function in (xp.all, xp.any):
        with pytest.raises(ValueError, match="axis 2"):
            function(x, axis=2)
        with pytest.raises(ValueError, match="axis 0"):
            function(xp.asarray(1.0), axis=0)
        with pytest.raises(TypeError, match="quantized"):
            function(zeros_q8_0((2, 32)))
    with pytest.raises(ValueError, match="negative"):
        xp.diff(x, n=-1)
    with pytest.raises(ValueError, match="axis 3"):
        xp.diff(x, axis=3)
    with pytest.raises(ValueError, match="dimension"):
        xp.diff(x, append=on_cpu([1.0]))
    with pytest.raises(TypeError, match="Array"):
        xp.diff([1.0, 2.0])
