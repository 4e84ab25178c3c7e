"""Quantized arrays: values and bytes against the gguf package, and what is refused."""

import pickle

import gguf
import numpy as np
import pytest

import ggarray as xp

FORMATS = {
    xp.q4_0: gguf.GGMLQuantizationType.Q4_0,
    xp.q4_1: gguf.GGMLQuantizationType.Q4_1,
    xp.q8_0: gguf.GGMLQuantizationType.Q8_0,
}
ERRORS = {xp.q4_0: 0.15, xp.q4_1: 0.1, xp.q8_0: 0.01}


@pytest.fixture
def weights():
    return np.random.default_rng(3).standard_normal((6, 96)).astype(np.float32)


@pytest.fixture(params=FORMATS, ids=str)
def qdtype(request):
    return request.param


def decoded(weights, qdtype):
    return gguf.dequantize(gguf.quantize(weights, FORMATS[qdtype]), FORMATS[qdtype])


def test_quantize_gives_the_bytes_of_gguf(weights, qdtype, device):
    w = xp.quantize(xp.asarray(weights, device=device), qdtype)
    assert (w.shape, w.dtype, w.device) == (weights.shape, qdtype, device)
    np.testing.assert_array_equal(xp.quantized_bytes(w), gguf.quantize(weights, FORMATS[qdtype]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_dequantize_and_astype(weights, qdtype, device, dtype):
    w = xp.quantize(xp.asarray(weights, device=device), qdtype)
    expected = decoded(weights, qdtype).astype(getattr(xp, dtype))
    for back in (xp.dequantize(w, getattr(xp, dtype)), xp.astype(w, getattr(xp, dtype))):
        assert back.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(back), expected)


def test_astype_quantizes(weights, qdtype):
    w = xp.astype(xp.asarray(weights), qdtype)
    np.testing.assert_array_equal(xp.quantized_bytes(w), gguf.quantize(weights, FORMATS[qdtype]))


def test_bytes_round_trip(weights, qdtype):
    data = gguf.quantize(weights, FORMATS[qdtype])
    for source in (data, data.tobytes(), bytearray(data.tobytes())):
        w = xp.quantized_from_bytes(source, qdtype, weights.shape)
        np.testing.assert_array_equal(np.asarray(xp.dequantize(w)), decoded(weights, qdtype))
    data[:] = 0  # the array has its own copy
    assert np.any(xp.quantized_bytes(w))


def test_products(weights, qdtype, device):
    w = xp.quantize(xp.asarray(weights, device=device), qdtype)
    d = decoded(weights, qdtype).astype(np.float64)
    x = np.random.default_rng(4).standard_normal((3, 96)).astype(np.float32)
    y = np.random.default_rng(5).standard_normal((6, 4)).astype(np.float32)
    scale = np.abs(x) @ np.abs(d).T
    cases = [
        (xp.asarray(x, device=device) @ w.mT, x @ d.T),
        (xp.asarray(x[0], device=device) @ w.mT, x[0] @ d.T),
        (w @ xp.asarray(x.T.copy(), device=device), d @ x.T),
        (w @ xp.asarray(x[0], device=device), d @ x[0]),
        (w.mT @ xp.asarray(y, device=device), d.T @ y),
        (w @ w.mT, d @ d.T),
        (xp.tensordot(w, xp.asarray(x, device=device), axes=((1,), (1,))), d @ x.T),
        (w[0] @ xp.asarray(x[1], device=device), d[0] @ x[1]),
    ]
    for result, expected in cases:
        assert xp.is_pending(result)
        assert result.dtype == xp.float32
        np.testing.assert_allclose(np.asarray(result), expected, atol=1e-5 * scale.max())


def test_product_with_float64(weights, qdtype, device):
    w = xp.quantize(xp.asarray(weights, device=device), qdtype)
    x = np.random.default_rng(4).standard_normal((3, 96))
    result = xp.asarray(x, device=device) @ w.mT
    assert result.dtype == xp.float64
    np.testing.assert_allclose(
        np.asarray(result), x @ decoded(weights, qdtype).astype(np.float64).T, rtol=1e-12
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_product_with_half(weights, qdtype, device, dtype):
    w = xp.quantize(xp.asarray(weights, device=device), qdtype)
    x = np.ones((2, 96)).astype(getattr(xp, dtype))
    result = xp.asarray(x, device=device) @ w.mT
    assert result.dtype == xp.float32
    expected = np.ones((2, 96)) @ decoded(weights, qdtype).astype(np.float64).T
    np.testing.assert_allclose(np.asarray(result), expected, atol=1e-4)


@pytest.mark.parametrize("dtype", [xp.int32, xp.bool, xp.complex64])
def test_product_with_others_is_refused(weights, qdtype, dtype):
    w = xp.quantize(xp.asarray(weights), qdtype)
    with pytest.raises(TypeError, match="quantized"):
        xp.ones((2, 96), dtype=dtype) @ w.mT


def test_indexing_and_rearranging(weights, qdtype):
    w = xp.quantize(xp.asarray(weights), qdtype)
    d = decoded(weights, qdtype)
    ids = xp.asarray([4, 0, 4])
    cases = [
        (w[2], d[2]),
        (w[1:5:2], d[1:5:2]),
        (w[:, 32:96], d[:, 32:96]),
        (w[xp.asarray([1, 1])], d[[1, 1]]),
        (xp.take(w, ids, axis=0), d[[4, 0, 4]]),
        (w.mT, d.T),
        (w.T, d.T),
        (xp.permute_dims(w, (1, 0)), d.T),
        (xp.reshape(w, (2, 3, 96)), d.reshape(2, 3, 96)),
        (xp.concat([w, w[:2]]), np.concatenate([d, d[:2]])),
        (xp.stack([w, w], axis=1), np.stack([d, d], axis=1)),
        (w.to_device("cpu"), d),
        (pickle.loads(pickle.dumps(w)), d),
    ]
    for result, expected in cases:
        assert result.dtype is qdtype
        assert result.shape == expected.shape
        np.testing.assert_array_equal(np.asarray(xp.dequantize(result)), expected)
    assert "q" in repr(w)


def test_eager_functions_say_dequantize(weights, qdtype):
    w = xp.quantize(xp.asarray(weights), qdtype)
    for function in (xp.exp, xp.sum, np.asarray, lambda w: w + 1, lambda w: w[0, 0], float):
        with pytest.raises(TypeError, match=r"dequantize|scalar"):
            function(w)
    with pytest.raises(TypeError, match="dequantize"):
        w[0, 0] = 1


def test_axis_that_is_no_multiple_of_the_block(qdtype):
    with pytest.raises(ValueError, match=r"\(4, 33\).*block.*32"):
        xp.quantize(xp.ones((4, 33)), qdtype)
    with pytest.raises(ValueError, match=r"\(4, 33\).*32"):
        xp.quantized_from_bytes(b"", qdtype, (4, 33))


def test_elements_that_are_not_finite(qdtype):
    for bad in (np.nan, np.inf, 1e300):
        x = np.ones((2, 32))
        x[1, 5] = bad
        with np.errstate(over="ignore"), pytest.raises(ValueError, match="not finite"):
            xp.quantize(xp.asarray(x), qdtype)


def test_elements_too_large_for_the_scale():
    with pytest.raises(ValueError, match="too large"):
        xp.quantize(xp.full((1, 32), 1e8, dtype=xp.float32), xp.q4_0)


def test_wrong_dtypes(qdtype):
    with pytest.raises(TypeError, match="int64"):
        xp.quantize(xp.ones((1, 32), dtype=xp.int64), qdtype)
    with pytest.raises(TypeError, match="quantized dtype"):
        xp.quantize(xp.ones((1, 32)), xp.float32)
    with pytest.raises(TypeError, match="quantized dtype"):
        xp.quantized_from_bytes(bytes(34), xp.int8, (34,))
    with pytest.raises(TypeError, match="not quantized"):
        xp.dequantize(xp.ones((1, 32)))
    with pytest.raises(TypeError, match="not quantized"):
        xp.quantized_bytes(xp.ones((1, 32)))
