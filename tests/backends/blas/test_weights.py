"""Decoded weights: when they are kept, how they lie, that they never outlive what they decode."""

import gguf
import numpy as np
import pytest

import ggarray as xp
from ggarray import _weight_cache
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import q4_0, q4_1, q8_0
from ggarray.backends.blas.weights import decoded
from ggarray.backends.cpu import kernels

TYPES = {
    q4_0: gguf.GGMLQuantizationType.Q4_0,
    q4_1: gguf.GGMLQuantizationType.Q4_1,
    q8_0: gguf.GGMLQuantizationType.Q8_0,
}


@pytest.fixture(autouse=True)
def nothing_kept():
    _weight_cache.trim(0)
    yield
    _weight_cache.trim(0)


def encoded(shape, dtype=q8_0, seed=0):
    """Return the bytes of blocks along the last axis, and what they stand for."""
    values = np.random.default_rng(seed).standard_normal(shape, np.float32)
    data = gguf.quantize(values, TYPES[dtype])
    return data, gguf.dequantize(data, TYPES[dtype])


def weights(shape, dtype=q8_0, seed=0):
    data, values = encoded(shape, dtype, seed)
    return Blocks.from_bytes(data, dtype, shape), values


class Decoder:
    """Decodes as the device does, and counts how often."""

    def __init__(self):
        self.calls = 0

    def __call__(self, blocks, out):
        self.calls += 1
        return kernels.to_float(blocks, out)


@pytest.fixture
def decode():
    return Decoder()


def check(blocks, values, decode, calls):
    """Use weights that are kept, decoded for the last time at an earlier call or now."""
    found = decoded(blocks, decode)
    np.testing.assert_array_equal(found, values)
    assert found.dtype == np.float32
    assert decode.calls == calls
    return found


# -- what is kept -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(32,), (5, 64), (2, 3, 64), (2, 1, 3, 32), (1, 32)])
def test_kept_from_the_second_use_on(decode, dtype, shape):
    blocks, values = weights(shape, dtype)
    assert decoded(blocks, decode) is None
    assert decode.calls == 0
    first = check(blocks, values, decode, 1)
    assert first.flags.c_contiguous
    assert check(blocks, values, decode, 1) is first
    assert _weight_cache.kept_bytes() == 4 * values.size


def test_nobody_writes_to_what_is_kept(decode):
    blocks, values = weights((5, 64))
    decoded(blocks, decode)
    for each, its_values in ((blocks, values), (blocks.mT, values.mT)):
        with pytest.raises(ValueError, match="read-only"):
            check(each, its_values, decode, 1)[0, 0] = 1


@pytest.mark.parametrize("shape", [(5, 64), (2, 3, 64), (1, 32)])
@pytest.mark.parametrize("first", ["weights", "transpose"])
def test_weights_and_their_transpose_are_one(decode, shape, first):
    blocks, values = weights(shape)
    both = [(blocks, values), (blocks.mT, values.mT)]
    one, other = both if first == "weights" else reversed(both)
    assert decoded(one[0], decode) is None
    found = check(*other, decode, 1)
    assert np.shares_memory(check(*one, decode, 1), found)
    assert check(blocks.mT, values.mT, decode, 1).mT.flags.c_contiguous
    assert _weight_cache.kept_bytes() == 4 * values.size


def test_blocks_along_another_axis(decode):
    blocks, values = weights((3, 5, 64))
    for axes in ((2, 0, 1), (1, 2, 0), (2, 1, 0)):
        calls = decode.calls
        turned = blocks.permute(axes)
        assert decoded(turned, decode) is None
        check(turned, values.transpose(axes), decode, calls + 1)


def test_parts_of_weights_are_others(decode):
    blocks, values = weights((5, 64))
    for calls, key in enumerate([..., slice(2, 5), slice(None, 3), (slice(None), slice(32, 64))]):
        assert decoded(blocks[key], decode) is None
        check(blocks[key], values[key], decode, calls + 1)
    assert _weight_cache.kept_bytes() == 4 * (5 + 3 + 3) * 64 + 4 * 5 * 32


def test_bytes_of_another_format_are_others(decode):
    """One piece of memory is 17 blocks of 18 bytes, or 9 of 34."""
    data = np.frombuffer(bytes(18 * 17), np.uint8)
    for calls, dtype in enumerate((q4_0, q8_0)):
        blocks = Blocks(data.reshape(1, -1, dtype.block_bytes), dtype)
        assert decoded(blocks, decode) is None
        check(blocks, np.zeros(blocks.shape), decode, calls + 1)


# -- the limit ----------------------------------------------------------------------------------


def test_without_a_cache_nothing_is_kept(decode):
    blocks, _ = weights((5, 64))
    with xp.options(weight_cache=0):
        for _ in range(4):
            assert decoded(blocks, decode) is None
    assert (decode.calls, _weight_cache.kept_bytes()) == (0, 0)


def test_a_lower_limit_frees_at_the_next_use(decode):
    (blocks, values), (other, other_values) = weights((5, 64)), weights((2, 64), seed=1)
    for each, its_values, calls in ((blocks, values, 1), (other, other_values, 2)):
        decoded(each, decode)
        check(each, its_values, decode, calls)
    with xp.options(weight_cache=4 * 5 * 64):
        check(other, other_values, decode, 2)
        assert _weight_cache.kept_bytes() == 4 * 2 * 64
        assert decoded(blocks, decode) is None
    with xp.options(weight_cache=0):
        assert decoded(other, decode) is None
    assert _weight_cache.kept_bytes() == 0


def test_of_more_layers_than_fit_some_stay(decode):
    layers = [weights((4, 32), seed=seed) for seed in range(10)]
    with xp.options(weight_cache=3 * 4 * 4 * 32):
        for turn in range(5):
            found = [decoded(blocks, decode) for blocks, _ in layers]
            assert [each is not None for each in found] == [turn > 0] * 3 + [False] * 7
            for (_, values), each in zip(layers, found, strict=True):
                assert each is None or (each == values).all()
    assert decode.calls == 3


# -- what fails ---------------------------------------------------------------------------------


def test_what_fails_leaves_nothing(decode):
    blocks, values = weights((5, 64))

    def stopped(blocks, out):
        raise KeyboardInterrupt

    decoded(blocks, decode)
    assert decoded(blocks, lambda blocks, out: 3) is None
    assert decoded(blocks, decode) is None  # its use before is forgotten
    with pytest.raises(KeyboardInterrupt):
        decoded(blocks, stopped)
    assert _weight_cache.kept_bytes() == 0
    assert decoded(blocks, decode) is None
    check(blocks, values, decode, 1)


def test_no_memory(decode):
    rows = np.broadcast_to(np.zeros((1, 34), np.uint8), (1 << 45, 1, 34))
    blocks = Blocks(rows, q8_0)
    with xp.options(weight_cache=1 << 60):
        for _ in range(3):
            assert decoded(blocks, decode) is None
    assert (decode.calls, _weight_cache.kept_bytes()) == (0, 0)


def test_a_handler_that_needs_the_same_weights_while_they_are_decoded(decode):
    blocks, values = weights((5, 64))
    found = []

    def interrupted(blocks, out):
        found.append([decoded(blocks.mT, decode), decoded(blocks, decode)])
        return decode(blocks, out)

    decoded(blocks, decode)
    np.testing.assert_array_equal(decoded(blocks, interrupted), values)
    ((first, second),) = found
    assert first is None  # a first use, as the handler sees it
    np.testing.assert_array_equal(second, values)
    assert _weight_cache.kept_bytes() == 4 * values.size
    check(blocks, values, decode, 2)


# -- weights that go ----------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["callback", "nothing"])
def test_other_weights_at_the_same_address(decode, monkeypatch, by):
    if by == "nothing":  # Ctrl-C came in the callback
        monkeypatch.setattr(_weight_cache, "_forget", lambda use: None)
    memory = bytearray(5 * 2 * 34)
    for turn in range(4):
        data, values = encoded((5, 64), seed=turn)
        memory[:] = data.tobytes()
        blocks = Blocks.from_bytes(memory, q8_0, (5, 64))
        if by == "callback":
            assert _weight_cache.kept_bytes() == 0
            assert decoded(blocks, decode) is None
        found = decoded(blocks, decode)
        if found is None:
            found = decoded(blocks, decode)
        np.testing.assert_array_equal(found, values)
        check(blocks.mT, values.T, decode, turn + 1)
        del blocks


def test_views_keep_what_is_decoded(decode):
    blocks, values = weights((5, 64))
    decoded(blocks, decode)
    check(blocks, values, decode, 1)
    turned = blocks.mT
    del blocks
    check(turned, values.mT, decode, 1)
    del turned
    assert _weight_cache.kept_bytes() == 0


@pytest.mark.parametrize("mapped", [True, False])
def test_weights_of_a_file(decode, tmp_path, mapped):
    data, values = encoded((2, 5, 64))
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    for name, raw in zip("ab", data, strict=True):
        writer.add_tensor(name, raw, raw_dtype=TYPES[q8_0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    arrays = xp.load_gguf(path, device="blas", mmap=mapped)
    tensors = {name: array._source for name, array in arrays.items()}
    del arrays
    for calls, (name, its_values) in enumerate(zip("ab", values, strict=True), 1):
        assert decoded(tensors[name], decode) is None
        check(tensors[name], its_values, decode, calls)
    del tensors["a"]
    check(tensors["b"].mT, values[1].T, decode, 2)
    tensors.clear()
    assert _weight_cache.kept_bytes() == 0


# -- programs -----------------------------------------------------------------------------------


def product(x, array, values):
    """Check products with weights, more often than it takes to keep them."""
    for _ in range(3):
        actual = np.asarray(xp.asarray(x, device="blas") @ array.mT)
        expected = x.astype(np.float64) @ values.T
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.fixture
def x():
    return np.random.default_rng(9).standard_normal((64, 256), np.float32)


def test_weights_that_are_replaced(x):
    for seed in range(8):
        plain = np.random.default_rng(seed).standard_normal((256, 256), np.float32)
        array = xp.quantize(xp.asarray(plain, device="blas"), xp.q8_0)
        values = gguf.dequantize(gguf.quantize(plain, TYPES[q8_0]), TYPES[q8_0])
        product(x, array, values)
        product(x[:, :128], array[:, :128], values[:, :128])
    del array
    assert _weight_cache.kept_bytes() == 0


def test_writing_to_where_weights_come_from(x):
    plain = np.random.default_rng(0).standard_normal((256, 256), np.float32)
    source = xp.asarray(plain, device="blas")
    array = xp.quantize(source, xp.q8_0)
    data, values = encoded((256, 256))
    raw = data.copy()
    from_bytes = xp.quantized_from_bytes(raw, xp.q8_0, (256, 256), device="blas")
    for each in (array, from_bytes):
        product(x, each, values)
    source[...] = 0.0
    raw[...] = 0
    xp.quantized_bytes(array)[...] = 0
    for each in (array, from_bytes):
        product(x, each, values)


def test_weights_are_not_written_to(x):
    plain = np.random.default_rng(0).standard_normal((256, 256), np.float32)
    array = xp.quantize(xp.asarray(plain, device="blas"), xp.q8_0)
    _, values = encoded((256, 256))
    product(x, array, values)
    with pytest.raises(TypeError, match="quantized"):
        array[0] = 0.0
    with pytest.raises(TypeError, match="quantized"):
        array *= 2.0
    with pytest.raises(TypeError, match="quantized"):
        np.asarray(array)
    with pytest.raises(TypeError, match="quantized"):
        np.from_dlpack(array)
    product(x, array, values)
