"""Opening a GGUF model on a namespace chosen by name."""

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Model(NamedTuple):
    """What a file holds: its metadata, and its tensors as arrays of one namespace."""

    metadata: Mapping[str, Any]
    weights: Mapping[str, Any]


def open_ggarray(path: Path, device: str | None = None) -> Model:
    """Map the file: matrices keep their quantized dtypes and are not copied."""
    xp: Any = importlib.import_module("ggarray")
    weights = xp.load_gguf(path, device=device)
    return Model(weights.metadata, weights)


def open_decoded(path: Path, namespace: str, dtype: str = "float32") -> Model:
    """Decode every tensor by the PyPI package gguf into arrays of `dtype`."""
    from gguf import GGUFReader, dequantize

    xp: Any = importlib.import_module(namespace)
    reader = GGUFReader(path)
    metadata = {key: field.contents() for key, field in reader.fields.items()}
    weights = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        weights[tensor.name] = xp.asarray(values, dtype=getattr(xp, dtype), copy=True)
    return Model(metadata, weights)


def _open_plain(name: str, namespace: str) -> Callable[[Path, str | None], Model]:
    def opened(path: Path, device: str | None) -> Model:
        if device not in (None, "cpu"):
            raise ValueError(f"{name} has no device {device!r}, only 'cpu'")
        return open_decoded(path, namespace)

    return opened


NAMESPACES: dict[str, Callable[[Path, str | None], Model]] = {
    "ggarray": open_ggarray,
    "numpy": _open_plain("numpy", "numpy"),
    "array_api_strict": _open_plain("array_api_strict", "array_api_strict"),
    "torch": _open_plain("torch", "array_api_compat.torch"),
}
"""Function of each namespace that opens a file on a device (None: the default one)."""
