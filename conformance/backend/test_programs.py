"""Programs whose products run on the device, compared with the same programs on NumPy.

What the device leaves to others is computed by these: every program gives its result.
"""

import gguf
import numpy as np
import pytest

import ggarray as xp
from conformance.backend.cases import PLAIN
from conformance.standard.references import is_half, kind_of, numbers


@pytest.fixture
def on(device):
    """Make an Array of the device."""
    return lambda value: xp.asarray(value, device=device.name)


def near(result, expected, device, nmse=0.0):
    """Compare a result of some products in single precision, or of the admitted error."""
    assert result.device == device.name
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    found = np.asarray(result)
    error = np.mean(np.abs(found - expected) ** 2)
    assert error <= max(1e-11, 10 * nmse) * np.mean(np.abs(expected) ** 2)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_layers(on, device, nmse):
    x, weights = normal(20, 96), [normal(128, 96, seed=1), normal(72, 128, seed=2)]
    result, expected = on(x), x
    for w in weights:
        result = xp.maximum(result @ on(w).mT, 0)
        expected = np.maximum(expected @ w.T, 0)
    near(result, expected, device, nmse)


def test_attention_of_several_heads(on, device, nmse):
    q, k, v = (normal(2, 50, 3, 40, seed=seed) for seed in range(3))

    def attention(xp, q, k, v):
        q, k, v = (xp.permute_dims(each, (0, 2, 1, 3)) for each in (q, k, v))
        scores = xp.exp((q @ k.mT) * 0.1)
        mixed = (scores / xp.sum(scores, axis=-1, keepdims=True)) @ v
        return xp.reshape(xp.permute_dims(mixed, (0, 2, 1, 3)), (2, 50, 120))

    near(attention(xp, on(q), on(k), on(v)), attention(np, q, k, v), device, nmse)


def test_normal_equations(on, device, nmse):
    a = normal(300, 30) + 1j * normal(300, 30, seed=1)
    gram = xp.conj(on(a)).mT @ on(a)
    near(gram[::-1, 3:], (a.conj().T @ a)[::-1, 3:], device, nmse)


def test_updates_by_outer_products(on, device, nmse):
    total, expected = on(np.zeros((60, 70), np.float32)), np.zeros((60, 70), np.float32)
    for seed in range(5):
        a, b = normal(60, seed=seed), normal(70, seed=seed + 5)
        total += 0.5 * xp.linalg.outer(on(a), on(b))
        expected += np.float32(0.5) * np.outer(a, b)
    near(total, expected, device, nmse)


@pytest.mark.parametrize("dtype", [dtype for dtype in PLAIN if kind_of(dtype) in "iu"], ids=str)
def test_powers_of_integers(on, device, dtype):
    a = numbers(dtype, (33, 33), 5)
    power = on(a)
    for _ in range(3):
        power = power @ on(a).T
    assert power.device == device.name
    np.testing.assert_array_equal(np.asarray(power), a @ a.T @ a.T @ a.T)


@pytest.mark.parametrize("dtype", [dtype for dtype in PLAIN if is_half(dtype)], ids=str)
def test_halves_are_rounded_once(on, device, dtype, nmse):
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-8, 9, (40, 40)) for _ in range(2))
    result = on(a.astype(dtype)) @ on(b.astype(dtype))
    expected = (a @ b).astype(dtype)  # every sum is exact in single precision
    assert result.dtype == dtype
    found, wanted = np.asarray(result).astype(np.float32), expected.astype(np.float32)
    assert np.mean((found - wanted) ** 2) <= nmse * np.mean(wanted**2)


def test_quantized_weights(on, device, nmse):
    w, few, many = normal(256, 512), normal(1, 512, seed=1), normal(64, 512, seed=2)
    quantized = xp.quantize(on(w), xp.q8_0)
    data = np.asarray(xp.quantized_bytes(quantized)).reshape(256, -1)
    decoded = gguf.dequantize(data, gguf.GGMLQuantizationType.Q8_0)
    assert np.mean((decoded - w) ** 2) < 1e-4
    near(xp.dequantize(quantized), decoded, device)
    for x in (few, many):
        near(on(x) @ quantized.mT, x @ decoded.T, device, max(nmse, 5e-4))
        near(quantized @ on(x).mT, decoded @ x.T, device, max(nmse, 5e-4))


def test_large_products_come_in_panels(on, device, nmse):
    a, b = normal(600, 500), normal(500, 700, seed=1)
    near(on(a) @ on(b), a @ b, device, nmse)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_threads(on, device, nmse, n_threads):
    a = normal(2, 130, 130)
    with xp.num_threads(n_threads):
        product = on(a) @ on(a).mT
        near(product, a @ a.mT, device, nmse)
