"""Quantized arrays: to and from floating dtypes, to and from bytes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ggarray._array import Array, wrap, wrap_blocks
from ggarray._dtypes import DTypeLike, is_real_floating, to_dtype
from ggarray._graph.execute import dequantize as _dequantize, quantize as _quantize
from ggarray._namespace._calls import read
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import QuantizedDType
from ggarray._runtime.devices import as_device


def quantize(x: Array, dtype: QuantizedDType, /) -> Array:
    """Quantize a floating array along its last axis.

    Parameters
    ----------
    x : Array
        Of a real floating dtype; the last axis is a multiple of ``dtype.block_size``.
    dtype : QuantizedDType
        Such as ``ggarray.q8_0``. The result has the bits that ggml's reference quantizer gives.

    Returns
    -------
    Array
        Of the same shape and device.

    Raises
    ------
    ValueError
        The last axis is not a multiple of the block, or `x` has elements that are not finite in
        float32 or would not be when decoded (scales are float16).
    TypeError
        `x` is not of a real floating dtype, or `dtype` is not quantized.

    Examples
    --------
    >>> x = xp.ones((2, 64))
    >>> weights = xp.quantize(x, xp.q4_0)
    >>> weights
    Array(shape=(2, 64), dtype=q4_0, device='cpu')
    >>> x.nbytes, weights.nbytes
    (1024, 72)
    >>> x @ weights.mT  # decoded as it is multiplied
    Array([[64., 64.],
           [64., 64.]], dtype=float64, device='cpu')
    """
    _require_quantized(dtype)
    value = read(x)
    if not is_real_floating(value.dtype):
        raise TypeError(f"a real floating array can be quantized, not one of {value.dtype}")
    if not value.ndim or value.shape[-1] % dtype.block_size:
        raise ValueError(
            f"the last axis of shape {value.shape} is not a multiple of the block of"
            f" {dtype.name}, {dtype.block_size}"
        )
    single = np.ascontiguousarray(value, np.float32)
    if not np.isfinite(single).all():
        raise ValueError(f"quantize to {dtype.name}: elements are not finite in float32")
    blocks = _quantize(single, dtype, x.device)
    if not np.isfinite(_dequantize(blocks, x.device)).all():
        raise ValueError(f"quantize to {dtype.name}: elements are too large for its float16 scales")
    return wrap_blocks(blocks, x.device)


def dequantize(x: Array, dtype: DTypeLike = np.float32, /) -> Array:
    """Decode a quantized array.

    Parameters
    ----------
    x : Array
        Quantized.
    dtype : dtype
        A real floating dtype; float32 holds the decoded values exactly.

    Returns
    -------
    Array
        Of the same shape and device.

    Raises
    ------
    TypeError
        `x` is not quantized, or `dtype` is not real floating.

    Examples
    --------
    >>> weights = xp.quantize(xp.ones((2, 32)), xp.q8_0)
    >>> xp.dequantize(weights).dtype
    dtype('float32')
    >>> float(xp.dequantize(weights, xp.float64)[0, 0])
    0.99993896484375
    """
    if not isinstance(x, Array) or not isinstance(x._source, Blocks):
        raise TypeError("dequantize: the array is not quantized: see astype")
    target = to_dtype(dtype)
    if not is_real_floating(target):
        raise TypeError(f"a quantized array decodes to a real floating dtype, not {target}")
    value = _dequantize(x._source, x.device)
    return wrap(value.astype(target, copy=False), x.device)


def quantized_bytes(x: Array, /) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return a copy of the blocks of a quantized array, as ggml lays them out.

    Parameters
    ----------
    x : Array
        Quantized, its blocked axis the last.

    Returns
    -------
    numpy.ndarray of uint8
        Shape (..., bytes of a row), the blocked axis last.

    Raises
    ------
    TypeError
        `x` is not quantized, or its blocked axis is not the last: see ``permute_dims``.

    Notes
    -----
    The layout of a block of each dtype is that of ggml, in little-endian byte order
    (https://github.com/ggml-org/ggml, ``ggml-common.h``).

    Examples
    --------
    >>> weights = xp.quantize(xp.ones((2, 64)), xp.q8_0)
    >>> xp.quantized_bytes(weights).shape  # two blocks a row, of 34 bytes each
    (2, 68)
    """
    if not isinstance(x, Array) or not isinstance(x._source, Blocks):
        raise TypeError("quantized_bytes: the array is not quantized")
    blocks = x._source
    if blocks.axis != blocks.ndim - 1:
        raise TypeError(f"quantized_bytes: the blocked axis of shape {x.shape} is not the last one")
    *rows, count, size = blocks.data.shape
    return np.ascontiguousarray(blocks.data).reshape(*rows, count * size).copy()


def quantized_from_bytes(
    data: Any, dtype: QuantizedDType, shape: Sequence[int], /, *, device: str | None = None
) -> Array:
    """Make a quantized array of a copy of its blocks.

    Parameters
    ----------
    data : bytes-like or numpy.ndarray of uint8
        The blocks in row-major order, the blocked axis last.
    dtype : QuantizedDType
        Their format.
    shape : sequence of int
        Logical shape; the last axis is a multiple of ``dtype.block_size``.
    device : Device or str, optional
        The default device if None.

    Returns
    -------
    Array
        Of this shape and dtype.

    Raises
    ------
    ValueError
        The number of bytes is not what the shape takes, the last axis is no multiple of the block,
        or there is no such device.
    TypeError
        `dtype` is not quantized.

    Examples
    --------
    >>> block = bytes([0x00, 0x3C]) + bytes(range(32))  # a float16 scale of 1, then 32 codes
    >>> x = xp.quantized_from_bytes(block, xp.q8_0, (32,))
    >>> xp.dequantize(x)[:4]
    Array([0., 1., 2., 3.], dtype=float32, device='cpu')
    """
    _require_quantized(dtype)
    copied = np.array(data) if isinstance(data, np.ndarray) else bytes(data)
    return wrap_blocks(Blocks.from_bytes(copied, dtype, tuple(shape)), as_device(device))


def _require_quantized(dtype: Any) -> None:
    if not isinstance(dtype, QuantizedDType):
        raise TypeError(f"a quantized dtype such as ggarray.q8_0 is wanted, not {dtype!r}")
