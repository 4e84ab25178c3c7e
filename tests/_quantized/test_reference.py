"""Reference conversions, compared bit for bit with those of the gguf package."""

from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.reference import FROM_FLOAT, TO_FLOAT, dequantize_blocks
from ggarray._quantized.traits import BY_NAME, QuantizedDType, q4_0, q4_1, q8_0

each_dtype = pytest.mark.parametrize("dtype", BY_NAME.values(), ids=str)


def ggml_type(dtype: QuantizedDType) -> gguf.GGMLQuantizationType:
    return gguf.GGMLQuantizationType(dtype.type_id)


def magnitudes(smallest: float, largest: float) -> st.SearchStrategy[float]:
    return st.floats(smallest, largest, width=32) | st.floats(-largest, -smallest, width=32)


# Beyond these a difference or a reciprocal overflows, and gguf casts what is not finite. The sign
# of zero is gguf's own matter, too.
ordinary = (
    st.just(0.0) | magnitudes(2.0**-100, 2.0**126) | st.integers(-20, 20).map(lambda i: i / 2)
)


def test_every_dtype_has_both_conversions() -> None:
    assert set(TO_FLOAT) == set(FROM_FLOAT) == set(BY_NAME.values())


@each_dtype
@given(data=st.data())
def test_decoding_is_that_of_gguf(dtype: QuantizedDType, data: st.DataObject) -> None:
    raw = data.draw(hnp.arrays(np.uint8, (3, dtype.block_bytes)))
    with np.errstate(all="ignore"):
        expected = gguf.dequantize(raw, ggml_type(dtype))
    decoded = TO_FLOAT[dtype](raw)
    assert decoded.dtype == np.float32
    np.testing.assert_array_equal(decoded, expected)


@each_dtype
@given(data=st.data())
def test_encoding_is_that_of_gguf(dtype: QuantizedDType, data: st.DataObject) -> None:
    x = data.draw(hnp.arrays(np.float32, (3, dtype.block_size), elements=ordinary))
    with np.errstate(all="ignore"):
        expected = gguf.quantize(x, ggml_type(dtype))
    np.testing.assert_array_equal(FROM_FLOAT[dtype](x), expected)


@each_dtype
def test_many_random_blocks(dtype: QuantizedDType) -> None:
    rng = np.random.default_rng(7)
    x = rng.standard_normal((4000, dtype.block_size), np.float32)
    x *= np.float32(10) ** rng.integers(-6, 4, (4000, 1)).astype(np.float32)
    expected = gguf.quantize(x, ggml_type(dtype))
    encoded = FROM_FLOAT[dtype](x)
    np.testing.assert_array_equal(encoded, expected)
    np.testing.assert_array_equal(
        TO_FLOAT[dtype](encoded), gguf.dequantize(expected, ggml_type(dtype))
    )


@each_dtype
def test_no_blocks(dtype: QuantizedDType) -> None:
    assert TO_FLOAT[dtype](np.empty((0, dtype.block_bytes), np.uint8)).shape == (
        0,
        dtype.block_size,
    )
    encoded = FROM_FLOAT[dtype](np.empty((0, dtype.block_size), np.float32))
    assert encoded.shape == (0, dtype.block_bytes)


# What ggml's C code writes (observed from its library) where gguf has no defined answer.
NEGATIVE_ZERO, ONE, INFINITY = b"\x00\x80", b"\x00\x3c", b"\x00\x7c"
EDGES: list[tuple[QuantizedDType, float, bytes]] = [
    (q4_0, 0.0, NEGATIVE_ZERO + b"\x88" * 16),
    (q4_0, -0.0, NEGATIVE_ZERO + b"\x88" * 16),
    (q4_0, 1e-45, NEGATIVE_ZERO + b"\x88" * 16),
    (q4_0, 1e-38, NEGATIVE_ZERO + b"\x00" * 16),
    (q4_1, 0.0, b"\0\0" + b"\0\0" + b"\0" * 16),
    (q4_1, -0.0, b"\0\0" + NEGATIVE_ZERO + b"\0" * 16),
    (q4_1, 1.0, b"\0\0" + ONE + b"\0" * 16),
    (q4_1, 1e38, b"\0\0" + INFINITY + b"\0" * 16),
    (q8_0, -0.0, b"\0\0" + b"\0" * 32),
    (q8_0, 1e-38, b"\0\0" + b"\0" * 32),
    (q8_0, 1e38, INFINITY + b"\x7f" * 32),
]


@pytest.mark.parametrize(("dtype", "value", "expected"), EDGES)
def test_constant_blocks_at_the_edges(dtype: QuantizedDType, value: float, expected: bytes) -> None:
    x = np.full((1, dtype.block_size), value, np.float32)
    assert FROM_FLOAT[dtype](x).tobytes() == expected


def test_the_first_zero_decides_the_sign_of_the_minimum() -> None:
    x = np.tile(np.array([0.0, -0.0], np.float32), (1, 16))
    assert FROM_FLOAT[q4_1](x).tobytes() == bytes(20)
    assert FROM_FLOAT[q4_1](-x).tobytes() == b"\0\0" + NEGATIVE_ZERO + bytes(16)


def test_a_range_beyond_float32_has_no_finite_scale() -> None:
    x = np.tile(np.array([3e38, -3e38], np.float32), (1, 16))
    encoded = FROM_FLOAT[q4_1](x)
    assert encoded[0, :4].tobytes() == INFINITY + b"\x00\xfc"


@each_dtype
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_dequantize_blocks_along_any_axis(dtype: QuantizedDType, axis: int) -> None:
    rng = np.random.default_rng(axis)
    rows = gguf.quantize(rng.standard_normal((2, 3, 64), np.float32), ggml_type(dtype))
    expected: np.ndarray[Any, Any] = np.moveaxis(gguf.dequantize(rows, ggml_type(dtype)), -1, axis)
    data = np.moveaxis(rows.reshape(2, 3, 2, dtype.block_bytes), 2, axis)
    decoded = dequantize_blocks(Blocks(data, dtype, axis))
    assert decoded.shape == expected.shape
    np.testing.assert_array_equal(decoded, expected)


def test_dequantize_blocks_of_no_elements() -> None:
    blocks = Blocks(np.empty((0, 2, q4_1.block_bytes), np.uint8), q4_1)
    assert dequantize_blocks(blocks).shape == (0, 64)
