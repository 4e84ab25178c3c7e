"""The GGUF reader: valid files by the gguf package, and damaged and forged ones."""

import os
import struct
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import gguf_files as files
import ml_dtypes
import numpy as np
import pytest
from gguf_files import array, forged, pair, string, tensor
from hypothesis import given, strategies as st

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.gguf_reader import TENSOR_DTYPES, GGUFError, GGUFFile, read_gguf
from ggarray._quantized.traits import BY_NAME, QuantizedDType


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "sample.gguf"
    files.write_sample(path)
    return path


def read_bytes(tmp_path: Path, content: bytes) -> GGUFFile:
    path = tmp_path / "forged.gguf"
    path.write_bytes(content)
    return read_gguf(path)


def touch(file: GGUFFile) -> None:
    """Read every byte that a file has given out."""
    for value in file.tensors.values():
        (value.data if isinstance(value, Blocks) else value).tobytes()


def ones(*pairs: bytes, dims: Sequence[int] = (4, 2), **how: Any) -> bytes:
    """A file with a float32 tensor ``x`` of ones."""
    data = np.ones(dims, "<f4").tobytes()
    return forged(pairs, [tensor("x", dims)], data, **how)


@pytest.mark.parametrize("use_mmap", [True, False])
class TestValid:
    def test_scalars(self, sample: Path, use_mmap: bool) -> None:
        metadata = read_gguf(sample, use_mmap).metadata
        assert metadata["general.architecture"] == "test"
        for name, value in files.SCALARS.items():
            assert metadata[f"a.{name}"] == value
            assert type(metadata[f"a.{name}"]) is type(value)

    def test_arrays(self, sample: Path, use_mmap: bool) -> None:
        metadata = read_gguf(sample, use_mmap).metadata
        assert metadata["an.strings"] == files.STRINGS
        expected = {"int32": [1, -2, 3], "float32": [0.5, 0.25], "bool": [True, False]}
        for dtype, values in expected.items():
            found = metadata[f"an.{dtype}"]
            assert isinstance(found, np.ndarray)
            assert found.dtype == np.dtype(dtype)
            assert found.tolist() == values

    def test_plain_tensors(self, sample: Path, use_mmap: bool) -> None:
        tensors = read_gguf(sample, use_mmap).tensors
        for name, expected in files.plain_tensors().items():
            found = tensors[name]
            assert isinstance(found, np.ndarray)
            assert found.dtype == expected.dtype
            assert found.flags.aligned
            assert not found.flags.writeable
            np.testing.assert_array_equal(found, expected)

    def test_quantized_tensors(self, sample: Path, use_mmap: bool) -> None:
        tensors = read_gguf(sample, use_mmap).tensors
        for name, raw in files.quantized_tensors().items():
            found = tensors[name]
            assert isinstance(found, Blocks)
            assert (found.shape, found.axis, found.dtype) == ((3, 64), 1, BY_NAME[name])
            np.testing.assert_array_equal(found.data.reshape(raw.shape), raw)

    def test_order_is_that_of_the_file(self, sample: Path, use_mmap: bool) -> None:
        file = read_gguf(os.fspath(sample), use_mmap)
        expected = gguf.GGUFReader(sample)
        assert list(file.tensors) == [tensor.name for tensor in expected.tensors]
        assert list(file.metadata) == [k for k in expected.fields if not k.startswith("GGUF.")]

    def test_bfloat16(self, tmp_path: Path, use_mmap: bool) -> None:
        values = np.array([[1.0, -2.5, 3e38, 0.0]], ml_dtypes.bfloat16)
        path = tmp_path / "bfloat16.gguf"
        path.write_bytes(forged([], [tensor("x", (4, 1), 30)], values.tobytes()))
        found = read_gguf(path, use_mmap).tensors["x"]
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(np.asarray(found), values)


@pytest.mark.parametrize("type_id", TENSOR_DTYPES)
def test_types_are_those_of_ggml(type_id: int) -> None:
    ggml_type, dtype = gguf.GGMLQuantizationType(type_id), TENSOR_DTYPES[type_id]
    if isinstance(dtype, QuantizedDType):
        assert dtype.name == ggml_type.name.lower()
    else:
        assert gguf.GGML_QUANT_SIZES[ggml_type] == (1, dtype.itemsize)
        assert dtype.kind == ggml_type.name[0].lower()


def test_tensors_are_views_of_the_map(tmp_path: Path) -> None:
    path = tmp_path / "large.gguf"
    path.write_bytes(ones(dims=(1024, 2048)))
    tracemalloc.start()
    try:
        large = read_gguf(path).tensors["x"]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < large.nbytes / 10
    assert np.asarray(large).sum() == large.size


def test_tensors_outlive_the_name_of_the_file(tmp_path: Path) -> None:
    file = read_bytes(tmp_path, ones())
    (tmp_path / "forged.gguf").unlink()
    np.testing.assert_array_equal(np.asarray(file.tensors["x"]), np.ones((2, 4)))


def test_version_2(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, ones(version=2)).tensors["x"].shape == (2, 4)


def test_an_empty_header(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, forged()) == GGUFFile({}, {})


@pytest.mark.parametrize("alignment", [1, 2, 64, 4096])
def test_alignment(tmp_path: Path, alignment: int) -> None:
    setting = pair("general.alignment", files.UINT32, struct.pack("<I", alignment))
    found = np.asarray(read_bytes(tmp_path, ones(setting, alignment=alignment)).tensors["x"])
    np.testing.assert_array_equal(found, np.ones((2, 4)))
    assert found.flags.aligned
    assert not found.flags.writeable


@pytest.mark.parametrize(
    ("dims", "shape"), [((), ()), ((0, 3), (3, 0)), ((1, 1, 1, 2), (2, 1, 1, 1))]
)
def test_unusual_shapes(tmp_path: Path, dims: Sequence[int], shape: Sequence[int]) -> None:
    file = read_bytes(tmp_path, forged([], [tensor("x", dims)], b"\x00" * 8))
    assert file.tensors["x"].shape == shape


def test_nested_arrays(tmp_path: Path) -> None:
    inner = array(files.STRING, 1, string("a")) + array(files.STRING, 0)
    payload = array(files.ARRAY, 2, inner)
    file = read_bytes(tmp_path, forged([pair("k", files.ARRAY, payload)]))
    assert file.metadata["k"] == [["a"], []]


def test_truncated_anywhere(sample: Path, tmp_path: Path) -> None:
    content = sample.read_bytes()
    last = max(gguf.GGUFReader(sample).tensors, key=lambda tensor: tensor.data_offset)
    needed = last.data_offset + int(last.n_bytes)
    path = tmp_path / "truncated.gguf"
    path.write_bytes(content)
    for size in reversed(range(len(content))):
        os.truncate(path, size)
        if size >= needed:
            assert len(read_gguf(path).tensors) == 10
        else:
            with pytest.raises(GGUFError):
                read_gguf(path)


LENGTHS = [struct.pack("<Q", n) for n in (0, 1, 2**31, 2**32, 2**60, 2**63 - 1, 2**64 - 1)]


@given(data=st.data())
def test_any_damage_is_found_or_harmless(
    sample: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(sample.read_bytes())
    header = min(tensor.data_offset for tensor in gguf.GGUFReader(sample).tensors)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(4, header - 1))
        new = data.draw(st.binary(min_size=1, max_size=9) | st.sampled_from(LENGTHS))
        content[at : at + len(new)] = new
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    path.write_bytes(content)
    try:
        file = read_gguf(path)
    except GGUFError:
        return
    touch(file)


HUGE = [2**31, 2**60, 2**64 - 1]
DATA = bytes(64)


def nested(depth: int) -> bytes:
    payload = array(files.UINT8, 0)
    for _ in range(depth):
        payload = array(files.ARRAY, 1, payload)
    return payload


FORGED: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", r"not a GGUF file: it begins with b''"),
    "magic alone": (b"GGUF", "version at byte 4 needs 4 bytes, the file has 0 more"),
    "another format": (b"PK\x03\x04" + bytes(100), "not a GGUF file"),
    "version 1": (ones(version=1), "version 1 is not supported"),
    "version 4": (ones(version=4), "version 4 is not supported"),
    "version 0": (ones(version=0), "version 0 is not supported"),
    "a type with a name": (forged([], [tensor("w", (256,), 12)], DATA), r"'w'.* 12 \(q4_K\)"),
    "a removed type": (forged([], [tensor("w", (32,), 4)], DATA), r"'w'.* 4 \(unknown\)"),
    "an unknown type": (forged([], [tensor("w", (32,), 999)], DATA), r"'w'.* 999 \(unknown\)"),
    "value type": (forged([pair("k", 13, b"\0")]), "'k' has the unknown value type 13"),
    "item type": (forged([pair("k", 9, array(77, 0))]), "'k' has the unknown value type 77"),
    "a bool of 2": (forged([pair("k", files.BOOL, b"\2")]), "'k' holds a bool"),
    "bools of 2": (forged([pair("k", 9, array(7, 3, b"\0\1\2"))]), "'k' holds a bool"),
    "a key not UTF-8": (forged([pair(b"\xff", 0, b"\0")]), "metadata key at byte 32 .*UTF-8"),
    "a value not UTF-8": (forged([pair("k", 8, string(b"\xc3"))]), "'k' at .*UTF-8"),
    "an item not UTF-8": (
        forged([pair("k", 9, array(8, 2, string("a") + string(b"\x80")))]),
        "'k' at .*UTF-8",
    ),
    "a name not UTF-8": (forged([], [tensor(b"\xed\xa0\x80", (1,))], DATA), "name at .*UTF-8"),
    "a key twice": (forged([pair("k", 0, b"\0")] * 2), "key 'k' is there twice"),
    "a tensor twice": (
        forged([], [tensor("x", (8,)), tensor("x", (8,), 0, 32)], DATA),
        "'x' is there twice",
    ),
    "too deep": (forged([pair("k", 9, nested(2000))]), "'k' nests arrays"),
    "an offset not aligned": (
        forged([], [tensor("x", (1,), 0, 4)], DATA),
        "'x'.*4 .*aligned to 32",
    ),
    "data past the end": (forged([], [tensor("x", (9,), 0, 32)], DATA), "'x' of 36 bytes .*passes"),
    "an empty tensor past the end": (forged([], [tensor("x", (0,), 0, 96)], DATA), "passes"),
    "shared data": (
        forged([], [tensor("x", (16,)), tensor("y", (8,), 0, 32)], DATA),
        "two tensors share",
    ),
    "the same data": (forged([], [tensor("x", (8,)), tensor("y", (8,))], DATA), "share"),
    "rows of part blocks": (
        forged([], [tensor("x", (48, 2), files.Q4_1)], DATA),
        r"'x' has rows of \[48\] elements, not blocks of 32",
    ),
    "a quantized scalar": (forged([], [tensor("x", (), files.Q4_1)], DATA), "'x' has rows of"),
    "five dimensions": (forged([], [tensor("x", (1,) * 5)], DATA), "'x' has 5 dimensions"),
    "dimensions forged": (
        forged([], [string("x") + struct.pack("<I", 2**32 - 1)], DATA),
        "4294967295 dimensions",
    ),
    "a product that overflows": (forged([], [tensor("x", (2**32, 2**32))], DATA), "too large"),
    "a product that is zero": (forged([], [tensor("x", (2**62, 0, 8))], DATA), "too large"),
    "a dimension": (forged([], [tensor("x", (2**60,))], DATA), "'x' of 4611686018427387904 bytes"),
}
for n in HUGE:
    FORGED |= {
        f"{n} pairs": (forged(counts=(0, n)), f"{n} key-value pairs"),
        f"{n} tensors": (forged(counts=(n, 0)), f"{n} tensors"),
        f"a key of {n}": (
            forged(counts=(0, 1)) + struct.pack("<Q", n) + bytes(40),
            "string in a metadata key passes",
        ),
        f"a string of {n}": (
            forged([pair("k", 8, struct.pack("<Q", n) + bytes(40))]),
            "string in metadata 'k' passes",
        ),
        f"{n} strings": (forged([pair("k", 9, array(8, n, bytes(40)))]), f"{n} strings in .*'k'"),
        f"{n} arrays": (forged([pair("k", 9, array(9, n, bytes(40)))]), f"{n} arrays in .*'k'"),
        f"{n} numbers": (forged([pair("k", 9, array(6, n, bytes(40)))]), f"'k' .*{4 * n} bytes"),
        f"an offset of {n}": (
            forged([], [tensor("x", (8,), 0, n // 32 * 32)], DATA),
            "'x' .*passes",
        ),
        f"a name of {n}": (
            forged(counts=(1, 0)) + struct.pack("<Q", n) + bytes(40),
            "string in a tensor's name passes",
        ),
    }


@pytest.mark.parametrize("name", FORGED)
def test_forged_files_are_refused_at_little_cost(tmp_path: Path, name: str) -> None:
    content, message = FORGED[name]
    tracemalloc.start()
    try:
        with pytest.raises(GGUFError, match=message) as caught:
            read_bytes(tmp_path, content)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(str(tmp_path / "forged.gguf"))
    assert len(str(caught.value)) < 500
    assert peak < 1_000_000


@pytest.mark.parametrize("value", [0, 3, 48])
def test_an_alignment_that_is_no_power_of_two(tmp_path: Path, value: int) -> None:
    setting = pair("general.alignment", files.UINT32, struct.pack("<I", value))
    with pytest.raises(GGUFError, match=f"alignment is {value}, not"):
        read_bytes(tmp_path, ones(setting))


@pytest.mark.parametrize(
    "setting",
    [(files.STRING, string("32")), (files.FLOAT32, struct.pack("<f", 32.0)), (files.BOOL, b"\1")],
)
def test_an_alignment_of_a_wrong_type(tmp_path: Path, setting: tuple[int, bytes]) -> None:
    with pytest.raises(GGUFError, match="alignment is"):
        read_bytes(tmp_path, ones(pair("general.alignment", *setting)))


def test_a_long_name_is_shortened_in_messages(tmp_path: Path) -> None:
    with pytest.raises(GGUFError) as caught:
        read_bytes(tmp_path, forged([pair("k" * 100_000, 13, b"\0")]))
    assert len(str(caught.value)) < 500


def test_big_endian_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.gguf"
    files.write_sample(path, gguf.GGUFEndian.BIG)
    with pytest.raises(GGUFError, match="big-endian"):
        read_gguf(path)


def test_bfloat16_without_ml_dtypes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(GGUFError, match=r"'x' .*ml_dtypes"):
        read_bytes(tmp_path, forged([], [tensor("x", (4,), 30)], DATA))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_gguf(tmp_path / "missing.gguf")


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_gguf(tmp_path)


def test_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(GGUFError, match="regular"):
        read_gguf(tmp_path / "pipe")
