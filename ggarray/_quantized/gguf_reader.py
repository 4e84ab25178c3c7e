"""Read GGUF files: metadata as Python values, tensors as arrays over a read-only map of the file.

The format is specified at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md: a header
(``GGUF``, version, counts), key-value pairs, one record for each tensor, then the aligned data.
A file is not trusted: every length, count and offset is compared with what is left of the file
before anything is allocated or read, so that time and memory stay in proportion to its size.
"""

from __future__ import annotations

import itertools
import math
import mmap
import os
import stat
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ggarray._dtypes import bfloat16, to_dtype
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import BY_TYPE_ID, QuantizedDType

__all__ = ["TENSOR_DTYPES", "GGUFError", "GGUFFile", "read_gguf"]

_Value: TypeAlias = np.ndarray[Any, Any] | Blocks
_DType: TypeAlias = np.dtype[Any] | QuantizedDType

TENSOR_DTYPES: dict[int, _DType] = {
    0: np.dtype(np.float32),
    1: np.dtype(np.float16),
    24: np.dtype(np.int8),
    25: np.dtype(np.int16),
    26: np.dtype(np.int32),
    27: np.dtype(np.int64),
    28: np.dtype(np.float64),
    **BY_TYPE_ID,
}
"""The dtype of a tensor by its ggml type id (``enum ggml_type`` of ggml.h).

Id 30, bfloat16, is not in the table because its dtype exists only where ml_dtypes is installed.
"""

_BFLOAT16_ID = 30

# The names of all types, at their ids, so that an error can name what it refuses; ids that ggml
# has removed are "-".
_TYPE_NAMES = (
    "f32 f16 q4_0 q4_1 - - q5_0 q5_1 q8_0 q8_1 q2_K q3_K q4_K q5_K q6_K q8_K iq2_xxs iq2_xs"
    " iq3_xxs iq1_s iq4_nl iq3_s iq2_s iq4_xs i8 i16 i32 i64 f64 iq1_m bf16 - - - tq1_0 tq2_0"
    " - - - mxfp4 nvfp4 q1_0 q2_0"
)

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_DEFAULT_ALIGNMENT = 32
_MAX_DIMS = 4  # GGML_MAX_DIMS
_MAX_NESTING = 4  # arrays within arrays; none are known to be in use

# Value types of metadata, by id.
_NUMBERS: dict[int, np.dtype[Any]] = {
    0: np.dtype("<u1"),
    1: np.dtype("<i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"),
    7: np.dtype(np.bool_),
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}
_STRING, _ARRAY = 8, 9

# The fewest bytes that one item takes in a file: what bounds a count.
_MIN_STRING = 8
_MIN_ARRAY = 4 + 8
_MIN_PAIR = _MIN_STRING + 4 + 1
_MIN_TENSOR = _MIN_STRING + 4 + 4 + 8


class GGUFError(ValueError):
    """A file is no GGUF file, is damaged, or holds what is not supported.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("notes.txt").write_text("no weights")
    >>> xp.load_gguf("notes.txt")
    Traceback (most recent call last):
        ...
    ggarray.GGUFError: notes.txt: not a GGUF file: it begins with b'no w', not b'GGUF'
    """

    __module__ = "ggarray"


@dataclass(frozen=True, slots=True)
class GGUFFile:
    """What a GGUF file holds.

    Attributes
    ----------
    metadata : mapping of str to object
        In file order: bool, int, float, str; for an array of strings a list of str, for an array
        of numbers a 1-D NumPy array of their dtype, for an array of arrays a list of these.
    tensors : mapping of str to numpy.ndarray or Blocks
        In file order, read-only, in row-major shape: the dimensions of the file reversed.
        Quantized tensors are `Blocks`, blocked along the last axis.
    """

    metadata: Mapping[str, object]
    tensors: Mapping[str, _Value]


def read_gguf(path: str | os.PathLike[str], use_mmap: bool = True) -> GGUFFile:
    """Read a little-endian GGUF file of version 2 or 3.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    use_mmap : bool, optional
        Map the file and let the tensors be views of the map, which lives as long as any of them;
        the file must not be truncated meanwhile. If False, the file is read into memory.

    Raises
    ------
    GGUFError
        The file is not valid, or holds a type of tensor that is not supported.
    OSError
        The file cannot be opened or read.
    """
    try:
        return _parse(_Cursor(_contents(path, use_mmap)))
    except GGUFError as error:
        raise GGUFError(f"{os.fspath(path)}: {error}") from error.__cause__


def _contents(path: str | os.PathLike[str], use_mmap: bool) -> mmap.mmap | bytes:
    """Return the bytes of the file, mapped or read, once it begins as a GGUF file does."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a FIFO would wait for ever
        raise GGUFError("not a regular file")
    with open(path, "rb") as file:
        magic = file.read(len(_MAGIC))
        if magic != _MAGIC:
            raise GGUFError(f"not a GGUF file: it begins with {magic!r}, not {_MAGIC!r}")
        if use_mmap:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        file.seek(0)
        return file.read()


def _parse(cursor: _Cursor) -> GGUFFile:
    cursor.skip(len(_MAGIC), "the magic")
    _check_version(*cursor.unpack("<I", "the version"))
    n_tensors, n_pairs = cursor.unpack("<QQ", "the counts")
    metadata = _read_metadata(cursor, n_pairs)
    records = _read_records(cursor, n_tensors)
    spans = _place(records, cursor, _alignment(metadata))
    raw = np.frombuffer(cursor.buffer, np.uint8)
    placed = zip(records, spans, strict=True)
    return GGUFFile(metadata, {record.name: _value(record, raw[span]) for record, span in placed})


def _check_version(version: int) -> None:
    if version & 0xFFFF == 0 and version:
        raise GGUFError("big-endian GGUF files are not supported: convert it to little-endian")
    if version not in _VERSIONS:
        raise GGUFError(f"GGUF version {version} is not supported, only {_VERSIONS}")


class _Cursor:
    """A position in the bytes of a file, which never passes their end."""

    __slots__ = ("buffer", "position", "size")

    def __init__(self, buffer: mmap.mmap | bytes) -> None:
        self.buffer = buffer
        self.size = len(buffer)
        self.position = 0

    def skip(self, n_bytes: int, what: str) -> int:
        """Pass `n_bytes` and return where they begin."""
        start = self.position
        if n_bytes > self.size - start:
            raise GGUFError(
                f"{what} at byte {start} needs {n_bytes} bytes, the file has"
                f" {self.size - start} more"
            )
        self.position += n_bytes
        return start

    def unpack(self, form: str, what: str) -> tuple[Any, ...]:
        """Read numbers by a format of `struct`."""
        return struct.unpack_from(form, self.buffer, self.skip(struct.calcsize(form), what))

    def count(self, count: int, min_bytes: int, what: str) -> int:
        """Return `count` if so many items, of at least `min_bytes` each, fit in the rest."""
        if count * min_bytes > self.size - self.position:
            raise GGUFError(
                f"a count of {count} {what} at byte {self.position} is more than the file can hold"
            )
        return count

    def strings(self, count: int, what: str) -> list[str]:
        """Read `count` strings."""
        buffer, size, position = self.buffer, self.size, self.position
        length_at = struct.Struct("<Q").unpack_from
        strings = []
        for _ in range(self.count(count, _MIN_STRING, f"strings in {what}")):
            start = position + _MIN_STRING
            position = start + length_at(buffer, position)[0] if start <= size else start
            if position > size:
                raise GGUFError(f"a string in {what} passes the end of the file")
            try:
                strings.append(str(buffer[start:position], "utf-8"))
            except UnicodeDecodeError as error:
                raise GGUFError(f"a string in {what} at byte {start} is not UTF-8") from error
        self.position = position
        return strings

    def numbers(self, dtype: np.dtype[Any], count: int, what: str) -> np.ndarray[Any, Any]:
        """Read `count` numbers into a new array of native byte order."""
        start = self.skip(count * dtype.itemsize, what)
        stored = np.frombuffer(self.buffer, np.uint8, count * dtype.itemsize, start)
        if dtype.kind == "b" and stored.max(initial=0) > 1:
            raise GGUFError(f"{what} holds a bool that is neither 0 nor 1")
        return stored.view(dtype).astype(dtype.newbyteorder("="))


def _shown(name: str) -> str:
    """Return a name from the file, quoted and shortened, for a message."""
    return repr(name[:80])


def _read_metadata(cursor: _Cursor, count: int) -> dict[str, object]:
    metadata: dict[str, object] = {}
    for _ in range(cursor.count(count, _MIN_PAIR, "key-value pairs")):
        (key,) = cursor.strings(1, "a metadata key")
        if key in metadata:
            raise GGUFError(f"metadata key {_shown(key)} is there twice")
        what = f"metadata {_shown(key)}"
        (value_type,) = cursor.unpack("<I", what)
        metadata[key] = _read_value(cursor, value_type, what)
    return metadata


def _read_value(cursor: _Cursor, value_type: int, what: str) -> object:
    if value_type == _STRING:
        return cursor.strings(1, what)[0]
    if value_type == _ARRAY:
        return _read_array(cursor, what, _MAX_NESTING)
    return cursor.numbers(_number_dtype(value_type, what), 1, what)[0].item()


def _read_array(cursor: _Cursor, what: str, depth: int) -> object:
    if depth == 0:
        raise GGUFError(f"{what} nests arrays more than {_MAX_NESTING} deep")
    item_type, count = cursor.unpack("<IQ", what)
    if item_type == _STRING:
        return cursor.strings(count, what)
    if item_type == _ARRAY:
        cursor.count(count, _MIN_ARRAY, f"arrays in {what}")
        return [_read_array(cursor, what, depth - 1) for _ in range(count)]
    return cursor.numbers(_number_dtype(item_type, what), count, what)


def _number_dtype(value_type: int, what: str) -> np.dtype[Any]:
    if value_type not in _NUMBERS:
        raise GGUFError(f"{what} has the unknown value type {value_type}")
    return _NUMBERS[value_type]


def _alignment(metadata: Mapping[str, object]) -> int:
    alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if type(alignment) is not int or alignment <= 0 or alignment & (alignment - 1):
        raise GGUFError(f"general.alignment is {alignment!r:.40}, not a power of two")
    return alignment


@dataclass(frozen=True, slots=True)
class _Record:
    """What the file says about one tensor; `offset` counts from the start of the data."""

    name: str
    dtype: _DType
    shape: tuple[int, ...]
    offset: int
    n_bytes: int


def _read_records(cursor: _Cursor, count: int) -> list[_Record]:
    records: dict[str, _Record] = {}
    for _ in range(cursor.count(count, _MIN_TENSOR, "tensors")):
        record = _read_record(cursor)
        if record.name in records:
            raise GGUFError(f"tensor {_shown(record.name)} is there twice")
        records[record.name] = record
    return list(records.values())


def _read_record(cursor: _Cursor) -> _Record:
    (name,) = cursor.strings(1, "a tensor's name")
    what = f"tensor {_shown(name)}"
    (n_dims,) = cursor.unpack("<I", what)
    if n_dims > _MAX_DIMS:
        raise GGUFError(f"{what} has {n_dims} dimensions, more than {_MAX_DIMS}")
    *dims, type_id, offset = cursor.unpack(f"<{n_dims}QIQ", what)
    dtype = _tensor_dtype(type_id, what)
    return _Record(name, dtype, tuple(reversed(dims)), offset, _n_bytes(dims, dtype, what))


def _tensor_dtype(type_id: int, what: str) -> _DType:
    if type_id == _BFLOAT16_ID:
        try:
            return to_dtype(bfloat16())
        except ImportError as error:
            raise GGUFError(f"{what} is of bfloat16, which needs ml_dtypes (install it)") from error
    if type_id not in TENSOR_DTYPES:
        names = dict(enumerate(_TYPE_NAMES.split()))
        name = names.get(type_id, "-").replace("-", "unknown")
        known = ", ".join(str(dtype) for dtype in TENSOR_DTYPES.values())
        raise GGUFError(
            f"{what} is of ggml type {type_id} ({name}), which is not supported;"
            f" supported are {known}, bfloat16"
        )
    return TENSOR_DTYPES[type_id]


def _n_bytes(dims: Sequence[int], dtype: _DType, what: str) -> int:
    """Return the bytes that a tensor takes, its first dimension being the innermost."""
    if isinstance(dtype, QuantizedDType):
        block_size, block_bytes = dtype.block_size, dtype.block_bytes
    else:
        block_size, block_bytes = 1, dtype.itemsize
    if (dims[0] if dims else 1) % block_size:
        raise GGUFError(f"{what} has rows of {dims[:1]} elements, not blocks of {block_size}")
    # An empty tensor may not have the other dimensions out of all bounds either.
    if math.prod(max(dim, 1) for dim in dims) * block_bytes > sys.maxsize:
        raise GGUFError(f"{what} of dimensions {dims} is too large")
    return math.prod(dims) // block_size * block_bytes


def _place(records: Sequence[_Record], cursor: _Cursor, alignment: int) -> list[slice]:
    """Return where in the file the data of each record is, once it is sure to be there, alone."""
    data_start = -(-cursor.position // alignment) * alignment
    spans = []
    for record in records:
        start = data_start + record.offset
        if record.offset % alignment:
            raise GGUFError(
                f"tensor {_shown(record.name)} at offset {record.offset} is not aligned to"
                f" {alignment}"
            )
        if start + record.n_bytes > cursor.size:
            raise GGUFError(
                f"tensor {_shown(record.name)} of {record.n_bytes} bytes at byte {start} passes"
                f" the end of the file, {cursor.size}"
            )
        spans.append(slice(start, start + record.n_bytes))
    order = sorted((span.start, span.stop) for span in spans if span.start < span.stop)
    for (_, stop), (start, _) in itertools.pairwise(order):
        if start < stop:
            raise GGUFError(f"two tensors share the bytes of the file from {start}")
    return spans


def _value(record: _Record, data: np.ndarray[Any, np.dtype[np.uint8]]) -> _Value:
    """Return the read-only value of a tensor: a view of `data` wherever that can be one."""
    if isinstance(record.dtype, QuantizedDType):
        return Blocks.from_bytes(data, record.dtype, record.shape)
    # Bytes are swapped as unsigned integers: bfloat16 knows no byte order.
    bits = data.view(f"<u{record.dtype.itemsize}")
    bits = bits.astype(bits.dtype.newbyteorder("="), copy=not bits.flags.aligned)
    value = bits.view(record.dtype).reshape(record.shape)
    value.flags.writeable = False
    return value
