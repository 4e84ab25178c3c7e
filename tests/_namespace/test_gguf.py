"""load_gguf: constant, quantized arrays of a file; damaged files."""

import gguf
import numpy as np
import pytest

import ggarray as xp


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    writer.add_uint32("answer", 42)
    writer.add_array("words", ["a", "b"])
    writer.add_tensor("plain", rng.standard_normal((3, 64)).astype(np.float32))
    matrix = gguf.quantize(
        rng.standard_normal((5, 64)).astype(np.float32), gguf.GGMLQuantizationType.Q8_0
    )
    writer.add_tensor("matrix", matrix, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tmp_path / "model.gguf"


@pytest.mark.parametrize("mmap", [True, False])
def test_loads_names_values_and_metadata(path, device, mmap):
    model = xp.load_gguf(path, device=device, mmap=mmap)
    assert set(model) == {"plain", "matrix"}
    assert len(model) == 2
    assert model.metadata["answer"] == 42
    assert model.metadata["words"] == ["a", "b"]
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(
        np.asarray(model["plain"]), rng.standard_normal((3, 64)).astype(np.float32)
    )
    assert model["matrix"].dtype is xp.q8_0
    assert model["matrix"].device == device


def test_weights_are_constant_and_products_wait(path):
    model = xp.load_gguf(path)
    outside = np.asarray(model["plain"])
    assert not outside.flags.writeable
    product = model["plain"] @ model["matrix"].mT
    assert xp.is_pending(product)
    assert product.shape == (3, 5)
    with pytest.raises(ValueError, match="read-only"):
        model["plain"][0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        model["plain"] += 1.0
    assert model["plain"].to_device("cpu")._np.base is not None  # shared, not copied


def test_damaged_and_missing_files(path, tmp_path):
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(xp.GGUFError, match="damaged"):
        xp.load_gguf(damaged)
    damaged.write_bytes(b"PK\x03\x04 something else")
    with pytest.raises(xp.GGUFError, match=r"damaged\.gguf"):
        xp.load_gguf(damaged)
    with pytest.raises(FileNotFoundError):
        xp.load_gguf(tmp_path / "missing.gguf")
    with pytest.raises(ValueError, match="unknown device"):
        xp.load_gguf(path, device="abacus")
