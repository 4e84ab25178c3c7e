"""Reductions and cumulative functions against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, zeros_q8_0

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
AXES = [None, 0, -1, (0, 2), ()]
FLOATS = [np.float32, np.float64, np.complex64, np.complex128]
SUM_DTYPES = {
    np.bool_: np.int64,
    np.int8: np.int64,
    np.int32: np.int64,
    np.int64: np.int64,
    np.uint8: np.uint64,
    np.uint32: np.uint64,
    np.uint64: np.uint64,
    np.float32: np.float32,
    np.float64: np.float64,
    np.complex64: np.complex64,
    np.float16: np.float16,
    bfloat16: bfloat16,
}


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", SUM_DTYPES, ids=str)
def test_sum_and_prod_are_those_of_numpy_in_the_dtype_of_the_standard(dtype, axis, keepdims):
    x = numbers((2, 3, 4), dtype)
    result_dtype = np.dtype(SUM_DTYPES[dtype])
    within = np.float64 if result_dtype.kind in "fV" else result_dtype
    eps = 0.0 if result_dtype.kind in "iu" else 20 * float(xp.finfo(result_dtype).eps)
    for name in ("sum", "prod"):
        expected = getattr(np, name)(x.astype(within), axis=axis, keepdims=keepdims)
        result = getattr(xp, name)(on_cpu(x), axis=axis, keepdims=keepdims)
        check(result, expected, result_dtype, eps, eps)


@pytest.mark.parametrize("axis", [*AXES, 1, (-1, 1), (2, 0, 1)])
@pytest.mark.parametrize("name", ["max", "min", "mean", "std", "var"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, bfloat16], ids=str)
def test_reductions_are_those_of_numpy(name, dtype, axis):
    x = numbers((2, 3, 4), dtype, seed=1)
    stays = name in ("max", "min") or np.dtype(dtype).kind in "fV"
    eps = 0.0 if name in ("max", "min") else 4 * float(xp.finfo(dtype if stays else "f8").eps)
    for keepdims in (False, True):
        expected = getattr(np, name)(x.astype(np.float64), axis=axis, keepdims=keepdims)
        result = getattr(xp, name)(on_cpu(x), axis=axis, keepdims=keepdims)
        check(result, expected, dtype if stays else np.float64, eps, eps)


@pytest.mark.parametrize("correction", [0, 1, 0.5, 2.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_correction_is_subtracted_from_the_number_of_elements(correction, dtype):
    x = np.array([1, 2, 4, 9], dtype)
    variance = ((x - 4.0) ** 2).sum() / (4 - correction)
    check(xp.var(on_cpu(x), correction=correction), variance, dtype, 1e-6)
    check(xp.std(on_cpu(x), correction=correction), variance**0.5, dtype, 1e-6)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16], ids=str)
def test_half_floats_are_summed_in_float32_and_rounded_once(dtype):
    ones = np.ones(3000, dtype)  # counting one by one sticks at 256 or 2048
    check(xp.sum(on_cpu(ones)), np.array(3000).astype(dtype), dtype)
    check(xp.mean(on_cpu(ones)), 1.0, dtype)
    check(xp.var(on_cpu(ones)), 0.0, dtype)
    check(xp.sum(on_cpu(ones), dtype=np.float32), 3000.0, np.float32)
    check(xp.sum(on_cpu(np.ones(3000)), dtype=dtype), np.array(3000).astype(dtype), dtype)
    tails = xp.cumulative_sum(on_cpu(ones))[-1]
    check(tails, np.array(3000).astype(dtype), dtype)


def test_dtype_casts_before_accumulating():
    halves = on_cpu([0.5, 0.5, 1.5])
    check(xp.cumulative_sum(halves, dtype=np.int32), [0, 0, 1], np.int32)
    check(xp.sum(halves, dtype=np.int32), 1, np.int32)
    check(xp.prod(on_cpu([16, 16], np.uint8), dtype=np.uint8), 0, np.uint8)
    check(xp.prod(on_cpu([16, 16], np.uint8), dtype=np.float32), 256, np.float32)
    large = on_cpu([2**24, 1], np.float32)
    check(xp.sum(large, dtype=np.float64), 2**24 + 1, np.float64)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinity_are_kept(dtype):
    x = np.array([1, np.nan, np.inf], dtype)
    for name in ("sum", "prod", "max", "min", "mean"):
        assert np.isnan(np.asarray(getattr(xp, name)(on_cpu(x)))), name
    check(xp.sum(on_cpu([np.inf, 1.0])), np.inf)


def test_no_elements():
    empty = on_cpu(np.ones((0, 3)))
    check(xp.sum(empty), 0.0)
    check(xp.prod(empty, axis=0), np.ones(3))
    check(xp.sum(empty, axis=1), np.zeros(0))
    check(xp.max(empty, axis=1), np.zeros(0))
    for name in ("max", "min"):
        with pytest.raises(ValueError, match=r"zero-size|no identity"):
            getattr(xp, name)(empty)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "std", "var"])
def test_an_axis_has_to_be_there_and_named_once(name):
    function = getattr(xp, name)
    for x in (on_cpu(np.ones((2, 3))), on_cpu(1.0)):
        for axis in (2, -3, (0, 5)):
            with pytest.raises(ValueError, match="out of bounds"):
                function(x, axis=axis)
    with pytest.raises(ValueError, match="out of bounds"):
        function(on_cpu(1.0), axis=0)
    with pytest.raises(ValueError, match="duplicate"):
        function(on_cpu(np.ones((2, 3))), axis=(0, 0))


@pytest.mark.parametrize("include_initial", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", SUM_DTYPES, ids=str)
def test_cumulative_functions_are_those_of_numpy(dtype, axis, include_initial):
    x = numbers((3, 4), dtype, seed=2)
    result_dtype = np.dtype(SUM_DTYPES[dtype])
    within = np.float64 if result_dtype.kind in "fV" else result_dtype
    eps = 0.0 if result_dtype.kind in "iu" else 8 * float(xp.finfo(result_dtype).eps)
    for name, numpy_name, first in (("sum", "cumsum", 0), ("prod", "cumprod", 1)):
        expected = getattr(np, numpy_name)(x.astype(within), axis=axis)
        if include_initial:
            initial = np.full_like(expected.take([0], axis), first)
            expected = np.concatenate([initial, expected], axis)
        function = getattr(xp, f"cumulative_{name}")
        result = function(on_cpu(x), axis=axis, include_initial=include_initial)
        check(result, expected, result_dtype, eps, eps)


def test_cumulative_functions_of_vectors_need_no_axis():
    check(xp.cumulative_sum(on_cpu([1, 2, 3])), [1, 3, 6])
    check(xp.cumulative_prod(on_cpu([1, 2, 3])), [1, 2, 6])
    check(xp.cumulative_sum(on_cpu(np.ones(0)), include_initial=True), [0.0])
    for x in (on_cpu(1.0), on_cpu(np.ones((2, 2)))):
        with pytest.raises(ValueError, match="an axis has to be named for shape"):
            xp.cumulative_sum(x)


def test_results_are_on_the_device_of_the_operand(device):
    x = xp.asarray(np.ones((2, 2)), device=device)
    for name in ("sum", "prod", "max", "min", "mean", "std", "var"):
        assert getattr(xp, name)(x).device == device, name
    assert xp.cumulative_sum(x, axis=0).device == device


def test_a_pending_operand_is_computed():
    x = numbers((3, 3), np.float64)
    a = on_cpu(x)
    check(xp.sum(a @ a, axis=0), (x @ x).sum(0), rtol=1e-12, atol=1e-12)


def test_what_is_no_plain_array_is_refused():
    quantized = zeros_q8_0((2, 32))
    for name in ("sum", "max", "mean", "cumulative_sum"):
        function = getattr(xp, name)
        with pytest.raises(TypeError, match="dequantize"):
            function(quantized)
        with pytest.raises(TypeError, match="Array is wanted"):
            function(np.ones(3))
    with pytest.raises(TypeError, match="q8_0"):
        xp.sum(on_cpu([1.0]), dtype=xp.q8_0)
