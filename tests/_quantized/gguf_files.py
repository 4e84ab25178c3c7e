"""GGUF files for tests: valid ones by the gguf package, forged ones byte by byte."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np

UINT8, UINT32, FLOAT32, BOOL, STRING, ARRAY = 0, 4, 6, 7, 8, 9
F32, Q4_1 = 0, 3

# The methods of GGUFWriter that add a scalar, with a value for each.
SCALARS: dict[str, bool | int | float | str] = {
    "uint8": 200,
    "int8": -100,
    "uint16": 60000,
    "int16": -30000,
    "uint32": 4_000_000_000,
    "int32": -2_000_000_000,
    "uint64": 2**64 - 1,
    "int64": -(2**63),
    "float32": 0.5,
    "float64": 0.1,
    "bool": True,
    "string": "naïve 文字",
}
STRINGS = ["", "a", "Ġword", "文字", "x" * 300]


def plain_tensors() -> dict[str, np.ndarray[Any, Any]]:
    """One tensor of each plain dtype that the gguf package writes by itself."""
    rng = np.random.default_rng(5)
    names = ["float32", "float16", "float64", "int8", "int16", "int32", "int64"]
    return {name: (100 * rng.standard_normal((2, 3, 5))).astype(name) for name in names}


def quantized_tensors() -> dict[str, np.ndarray[Any, Any]]:
    """The bytes of tensors of shape (3, 64), by the name of their type."""
    x = np.random.default_rng(6).standard_normal((3, 64), np.float32)
    types = gguf.GGMLQuantizationType
    return {name: gguf.quantize(x, types[name.upper()]) for name in ("q4_0", "q4_1", "q8_0")}


def write_sample(path: Path, endian: gguf.GGUFEndian = gguf.GGUFEndian.LITTLE) -> None:
    """Write a valid file that has a bit of everything."""
    writer = gguf.GGUFWriter(path, "test", endianess=endian)
    for name, value in SCALARS.items():
        getattr(writer, f"add_{name}")(f"a.{name}", value)
    writer.add_array("an.int32", [1, -2, 3])
    writer.add_array("an.float32", [0.5, 0.25])
    writer.add_array("an.bool", [True, False])
    writer.add_array("an.strings", STRINGS)
    for name, values in plain_tensors().items():
        writer.add_tensor(name, values)
    for name, raw in quantized_tensors().items():
        writer.add_tensor(name, raw, raw_dtype=gguf.GGMLQuantizationType[name.upper()])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str | bytes, value_type: int, payload: bytes) -> bytes:
    """A key-value pair of metadata."""
    return string(key) + struct.pack("<I", value_type) + payload


def array(item_type: int, count: int, payload: bytes = b"") -> bytes:
    """The payload of an array."""
    return struct.pack("<IQ", item_type, count) + payload


def tensor(name: str | bytes, dims: Sequence[int], type_id: int = F32, offset: int = 0) -> bytes:
    """The record of a tensor."""
    head = string(name) + struct.pack("<I", len(dims))
    return head + struct.pack(f"<{len(dims)}QIQ", *dims, type_id, offset)


def forged(
    pairs: Sequence[bytes] = (),
    tensors: Sequence[bytes] = (),
    data: bytes = b"",
    version: int = 3,
    counts: tuple[int, int] | None = None,
    alignment: int = 32,
) -> bytes:
    """The bytes of a file, whether they make sense or not; `counts` is (tensors, pairs)."""
    n_tensors, n_pairs = (len(tensors), len(pairs)) if counts is None else counts
    head = b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_pairs)
    head += b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % alignment) + data if data else head
