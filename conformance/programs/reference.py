"""The judge: the same model in NumPy float64, by loops and without a cache.

It shares no code with `conformance.programs.llama`. Weights are decoded by the PyPI package gguf,
layer by layer, so that only one is held in float64.
"""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, dequantize
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def reference_logits(path: Path, tokens: Sequence[int]) -> Floats:
    """Return the logits after every token, shape (tokens, vocabulary)."""
    decoder = _decoder(path)
    embedding = decoder.weight("token_embd")
    x = np.stack([embedding[token] for token in tokens])
    for layer in range(decoder.number("block_count")):
        x += _attention(decoder, f"blk.{layer}.", x)
        x += _feed_forward(decoder, f"blk.{layer}.", x)
    x = _rms_norm(decoder, x, "output_norm")
    head = decoder.weight("output") if "output.weight" in decoder.tensors else embedding
    return _product(x, head)


class _Decoder:
    """Decoded tensors and numbers of a GGUF file."""

    def __init__(self, reader: GGUFReader) -> None:
        self.fields = reader.fields
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}

    def number(self, key: str) -> Any:
        return self.fields[f"llama.{key}"].contents()

    def weight(self, name: str) -> Floats:
        tensor = self.tensors[f"{name}.weight"]
        return np.asarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float64)


@functools.cache
def _decoder(path: Path) -> _Decoder:
    """Open a file once: reading its tokenizer's lists takes seconds."""
    return _Decoder(GGUFReader(path))


def _product(x: Floats, weight: Floats) -> Floats:
    """Return x @ weight.T, weights being stored by output."""
    return np.asarray(x @ weight.T)


def _rms_norm(decoder: _Decoder, x: Floats, name: str) -> Floats:
    epsilon = decoder.number("attention.layer_norm_rms_epsilon")
    mean_square = np.mean(x**2, axis=1, keepdims=True)
    normalized: Floats = decoder.weight(name) * (x * (mean_square + epsilon) ** -0.5)
    return normalized


def _rotated(decoder: _Decoder, head: Floats) -> Floats:
    """Turn element pairs (2i, 2i + 1) of a head, shape (tokens, size), as complex numbers."""
    size = decoder.number("rope.dimension_count")
    frequencies = decoder.number("rope.freq_base") ** (-2 * np.arange(size // 2) / size)
    turned = head.copy()
    for position, row in enumerate(head):
        pairs = row[0:size:2] + 1j * row[1:size:2]
        pairs = pairs * np.exp(1j * position * frequencies)
        turned[position, 0:size:2] = pairs.real
        turned[position, 1:size:2] = pairs.imag
    return turned


def _attention(decoder: _Decoder, prefix: str, x: Floats) -> Floats:
    h = _rms_norm(decoder, x, prefix + "attn_norm")
    q, k, v = (_product(h, decoder.weight(f"{prefix}attn_{name}")) for name in "qkv")
    heads = decoder.number("attention.head_count")
    shared = heads // decoder.number("attention.head_count_kv")
    size = q.shape[1] // heads
    mixed = np.zeros_like(q)
    for head in range(heads):
        own = slice(head * size, (head + 1) * size)
        common = slice(head // shared * size, (head // shared + 1) * size)
        query, key = _rotated(decoder, q[:, own]), _rotated(decoder, k[:, common])
        for t in range(len(x)):
            scores = key[: t + 1] @ query[t] / np.sqrt(size)
            probabilities = np.exp(scores - scores.max())
            mixed[t, own] = probabilities / probabilities.sum() @ v[: t + 1, common]
    return _product(mixed, decoder.weight(prefix + "attn_output"))


def _feed_forward(decoder: _Decoder, prefix: str, x: Floats) -> Floats:
    h = _rms_norm(decoder, x, prefix + "ffn_norm")
    gate = _product(h, decoder.weight(prefix + "ffn_gate"))
    up = _product(h, decoder.weight(prefix + "ffn_up"))
    return _product(gate / (1 + np.exp(-gate)) * up, decoder.weight(prefix + "ffn_down"))
