"""The block formats in NumPy: what the bytes of each quantized dtype mean.

The layouts and the rounding are those of ggml's reference (``ggml-quants.c`` in
https://github.com/ggml-org/ggml), bit for bit. Every function works on whole blocks: encoded ones
are uint8 of shape (blocks, block_bytes), decoded ones float32 of shape (blocks, block_size).
Scales are IEEE half-precision numbers, little-endian on every machine, as in GGUF files.

A large finite number may have no finite scale: a block whose scale passes 65504 decodes to
infinities and NaNs, as it does in ggml. What to do about non-finite input is the caller's choice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import QuantizedDType, q4_0, q4_1, q8_0

__all__ = ["FROM_FLOAT", "TO_FLOAT", "dequantize_blocks"]

_Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
_Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]

_HALF = np.dtype("<f2")


def dequantize_blocks(blocks: Blocks) -> _Floats:
    """Decode `blocks` to a float32 array of their logical shape."""
    rows = blocks.as_rows()
    decoded = TO_FLOAT[blocks.dtype](rows.reshape(-1, blocks.dtype.block_bytes))
    shape = list(blocks.shape)
    length = shape.pop(blocks.axis)
    return np.moveaxis(decoded.reshape(*shape, length), -1, blocks.axis)


def _decode_q4_0(blocks: _Bytes) -> _Floats:
    """Fields d f16, 16 bytes of codes. x = d * (code - 8)."""
    return _half(blocks[:, :2]) * (_nibbles(blocks[:, 2:]) - np.float32(8))


def _decode_q4_1(blocks: _Bytes) -> _Floats:
    """Fields d f16, m f16, 16 bytes of codes. x = d * code + m."""
    return _half(blocks[:, :2]) * _nibbles(blocks[:, 4:]) + _half(blocks[:, 2:4])


def _decode_q8_0(blocks: _Bytes) -> _Floats:
    """Fields d f16, 32 signed bytes of codes. x = d * code."""
    return _half(blocks[:, :2]) * blocks[:, 2:].view(np.int8).astype(np.float32)


def _encode_q4_0(x: _Floats) -> _Bytes:
    """Scale so that the element farthest from zero, with its sign, gets code 0 (which is -8)."""
    # Adding zero makes a peak of -0 a zero: blocks of zeros of either sign get the same bytes.
    peak = _pick(x, np.abs(x).argmax(axis=1)) + np.float32(0)
    d = peak / np.float32(-8)
    return np.hstack([_half_bytes(d), _pack(x * _reciprocal(d) + np.float32(8.5))])


def _encode_q4_1(x: _Floats) -> _Bytes:
    """Divide the range from minimum to maximum in 15 steps."""
    # argmin and argmax, not min and max: of zeros of both signs, the first counts.
    low, high = _pick(x, x.argmin(axis=1)), _pick(x, x.argmax(axis=1))
    d = (high - low) / np.float32(15)
    codes = _pack((x - low) * _reciprocal(d) + np.float32(0.5))
    return np.hstack([_half_bytes(d), _half_bytes(low), codes])


def _encode_q8_0(x: _Floats) -> _Bytes:
    """Divide the largest magnitude in 127 steps; halves are rounded away from zero."""
    d = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    scaled = x * _reciprocal(d)
    whole = np.trunc(scaled)
    rounded = whole + np.trunc(np.float32(2) * (scaled - whole))
    return np.hstack([_half_bytes(d), _finite(rounded).astype(np.int8).view(np.uint8)])


def _half(field: _Bytes) -> _Floats:
    """Read a column of half-precision numbers, of shape (blocks, 2), as float32."""
    return np.ascontiguousarray(field).view(_HALF).astype(np.float32)


def _half_bytes(column: _Floats) -> _Bytes:
    return column.astype(_HALF).view(np.uint8)


def _nibbles(codes: _Bytes) -> _Floats:
    """Unpack 4-bit codes: the low halves of all bytes first, then the high halves."""
    return np.hstack([codes & np.uint8(15), codes >> np.uint8(4)]).astype(np.float32)


def _pack(values: _Floats) -> _Bytes:
    """Truncate to codes from 0 to 15 and pack them as `_nibbles` unpacks them."""
    codes = np.minimum(_finite(values), np.float32(15)).astype(np.uint8)
    low, high = np.hsplit(codes, 2)
    return low | high << np.uint8(4)


def _pick(x: _Floats, index: np.ndarray[Any, np.dtype[np.intp]]) -> _Floats:
    """Return from each row of `x` the element at `index`, as a column."""
    return np.take_along_axis(x, index[:, np.newaxis], axis=1)


def _reciprocal(d: _Floats) -> _Floats:
    """Return 1 / d, and 0 for 0."""
    return np.divide(np.float32(1), d, out=np.zeros_like(d), where=d != 0)


def _finite(values: _Floats) -> _Floats:
    """Replace what is not finite by 0.

    It comes from scales so small that their reciprocal overflows; such a block's scale is stored
    as zero, so the codes do not matter, but a cast of infinity is undefined.
    """
    return np.where(np.isfinite(values), values, np.float32(0))


def _silent(function: Callable[[np.ndarray[Any, Any]], Any]) -> Callable[..., Any]:
    return np.errstate(over="ignore", invalid="ignore", under="ignore")(function)


TO_FLOAT: dict[QuantizedDType, Callable[[_Bytes], _Floats]] = {
    q4_0: _silent(_decode_q4_0),
    q4_1: _silent(_decode_q4_1),
    q8_0: _silent(_decode_q8_0),
}
"""Decode blocks: uint8 (blocks, block_bytes) to float32 (blocks, block_size)."""

FROM_FLOAT: dict[QuantizedDType, Callable[[_Floats], _Bytes]] = {
    q4_0: _silent(_encode_q4_0),
    q4_1: _silent(_encode_q4_1),
    q8_0: _silent(_encode_q8_0),
}
"""Encode blocks: float32 (blocks, block_size) to uint8 (blocks, block_bytes)."""
