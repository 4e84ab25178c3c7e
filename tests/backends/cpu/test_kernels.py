"""The kernels against NumPy in float64 (integers: modulo 2^bits), gguf, and each other."""

import itertools
import os
import subprocess
import sys

import gguf
import ml_dtypes
import numpy as np
import pytest

from ggarray._quantized import traits
from ggarray._quantized.blocks import Blocks
from ggarray.backends.cpu import kernels

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(t) for t in ("float32", "float64", "complex64", "complex128")]
HALVES = [np.dtype("float16"), BF16]
INTEGERS = [np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
DTYPES = FLOATS + HALVES + INTEGERS
QUANTIZED = [traits.q4_0, traits.q4_1, traits.q8_0]

SHAPES = [
    (1, 1, 1),
    (8, 8, 8),
    (7, 13, 19),
    (5, 1, 6),
    (1, 517, 70),
    (70, 517, 1),
    (1, 3, 2051),
    (3, 300, 130),
    (130, 300, 3),
    (195, 70, 33),
    (33, 513, 130),
]


def values(rng, shape, dtype):
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    x = rng.standard_normal(shape)
    if dtype.kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def product(a, b, shape=None, n_threads=1, dtype=None):
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.empty(shape or (*batch, a.shape[-2], b.shape[-1]), dtype or a.dtype)
    assert kernels.matmul(a, b, out, n_threads) == 0
    return out


def check(result, a, b):
    """Compare with the product in the widest type; the bound is that of any order of sums."""
    if result.dtype.kind in "iu":
        np.testing.assert_array_equal(result, a @ b)
        return
    wide = np.complex128 if result.dtype.kind == "c" else np.float64
    a, b = np.asarray(a).astype(wide), np.asarray(b).astype(wide)
    k = a.shape[-1]
    unit = np.finfo(np.float32 if result.dtype.itemsize == 2 else result.dtype).eps
    bound = (np.abs(a) @ np.abs(b)) * unit * (k + 2)
    if result.dtype.itemsize == 2:
        bound = bound + np.abs(a @ b) * float(ml_dtypes.finfo(result.dtype).eps) + 1e-7
    assert (np.abs(result.astype(wide) - a @ b) <= bound).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matmul_of_every_dtype_and_order(dtype, shape):
    m, k, n = shape
    rng = np.random.default_rng(m + k + n)
    a, b = values(rng, (m, k), dtype), values(rng, (k, n), dtype)
    a_columns, b_columns = np.asfortranarray(a), np.asfortranarray(b)
    for left, right in itertools.product((a, a_columns), (b, b_columns)):
        check(product(left, right), a, b)


@pytest.mark.parametrize("dtype", [np.dtype("float32"), BF16, np.dtype("int64")], ids=str)
def test_matmul_beyond_every_block_size(dtype):
    rng = np.random.default_rng(1)
    a, b = values(rng, (1030, 530), dtype), values(rng, (530, 2100), dtype)
    rows, columns = [0, 5, 191, 192, 1023, 1024, 1029], [0, 15, 16, 127, 2047, 2048, 2099]
    result = product(a, b, n_threads=2)
    check(result[rows], a[rows], b)
    check(result[:, columns], a, b[:, columns])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_no_terms_give_zeros(dtype):
    out = np.ones((2, 3, 4), dtype)
    assert kernels.matmul(np.ones((2, 3, 0), dtype), np.ones((0, 4), dtype), out) == 0
    assert not out.astype(bool).any()


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 4, 0), (0, 0, 0)])
def test_empty_results(shape):
    m, k, n = shape
    result = product(np.ones((m, k), np.float32), np.ones((k, n), np.float32))
    assert result.shape == (m, n)


@pytest.mark.parametrize("dtype", [np.dtype("float32"), BF16, np.dtype("complex64"),
                                   np.dtype("int16")], ids=str)  # fmt: skip
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 4, 5), (3, 5, 6)),
        ((3, 4, 5), (5, 6)),
        ((4, 5), (3, 5, 6)),
        ((2, 1, 4, 5), (3, 5, 6)),
        ((2, 3, 1, 5), (5, 6)),
        ((2, 1, 3, 4, 5), (1, 2, 1, 5, 6)),
        ((0, 4, 5), (5, 6)),
        ((300, 4, 5), (300, 5, 6)),
    ],
    ids=str,
)
def test_batches_are_broadcast(dtype, left, right):
    rng = np.random.default_rng(2)
    a, b = values(rng, left, dtype), values(rng, right, dtype)
    for n_threads in (1, 3):
        check(product(a, b, n_threads=n_threads), a, b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_strides(dtype):
    rng = np.random.default_rng(3)
    base = values(rng, (60, 80), dtype)
    line = values(rng, (20,), dtype)
    operands = [
        base[10:30:2, 40:60],
        base[30:10:-2, 60:40:-1],
        base[:20, ::8].T,
        base[::-6, ::4],
        np.broadcast_to(line, (10, 20)),
        np.broadcast_to(line[:10, None], (10, 20)),
    ]
    for a, b in itertools.product(operands, operands):
        check(product(a, b.T), a, b.T)


def test_any_alignment():
    rng = np.random.default_rng(4)
    for dtype in DTYPES:
        a, b = values(rng, (20, 30), dtype), values(rng, (30, 20), dtype)
        memory = np.zeros(a.nbytes + 1, np.uint8)
        memory[1:] = a.reshape(-1).view(np.uint8)
        odd = np.ndarray(a.shape, dtype, memory, 1)
        check(product(odd, b), a, b)
        check(product(b, odd), b, a)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1, 40), (40, 1), (37, 35), (5, 130)], ids=str)
def test_nothing_outside_a_panel_is_written(dtype, shape):
    m, n = shape
    rng = np.random.default_rng(5)
    a, b = values(rng, (2, m, 300), dtype), values(rng, (2, 300, n), dtype)
    whole = np.full((2, m + 20, n + 40), 77, dtype)
    panel = whole[:, 10 : m + 10, 20 : n + 20]
    assert kernels.matmul(a, b, panel, 2) == 0
    check(panel.copy(), a, b)
    inside = np.zeros(whole.shape, bool)
    inside[:, 10 : m + 10, 20 : n + 20] = True
    assert (whole[~inside] == np.asarray(77, dtype)).all()


@pytest.mark.parametrize("dtype", [*FLOATS, *HALVES], ids=str)
@pytest.mark.parametrize("shape", [(1, 70, 40), (40, 70, 1), (23, 270, 37), (4, 300, 90)], ids=str)
def test_nan_and_infinity_appear_where_the_formula_puts_them(dtype, shape):
    m, k, n = shape
    rng = np.random.default_rng(6)
    real = np.dtype(dtype.type(0).real.dtype)
    a, b = values(rng, (m, k), real), values(rng, (k, n), real)
    a[0, 0], a[-1, -1], a[m // 2, 3] = np.inf, np.nan, -np.inf
    b[0, 0], b[0, -1], b[-1, n // 2], b[3, 0] = 0, np.inf, np.inf, 0
    with np.errstate(invalid="ignore"):
        expected = (a.astype(np.float64)[:, :, None] * b.astype(np.float64)[None]).sum(axis=1)
    for left, right in itertools.product((a, np.asfortranarray(a)), (b, np.asfortranarray(b))):
        result = product(left.astype(dtype, order="K"), right.astype(dtype, order="K"))
        if dtype.kind == "c":  # infinite real parts meet zero imaginary ones: NaN, as in NumPy
            finite = np.isfinite(expected)
            assert not np.isfinite(result[~finite]).any()
            assert np.isfinite(result[finite]).all()
            continue
        result = result.astype(np.float64)
        np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
        np.testing.assert_array_equal(result == np.inf, expected == np.inf)
        np.testing.assert_array_equal(result == -np.inf, expected == -np.inf)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1024, 64), (64, 1024, 1), (20, 1024, 64)], ids=str)
def test_halves_are_summed_in_float32_and_rounded_once(dtype, shape):
    m, k, n = shape
    rng = np.random.default_rng(7)
    # Small integers: every partial sum is exact in float32, so only the last rounding is left.
    a = rng.integers(-8, 9, (m, k)).astype(dtype)
    b = rng.integers(-8, 9, (k, n)).astype(dtype)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert (np.abs(exact) > 256).any()
    np.testing.assert_array_equal(product(a, b), exact.astype(dtype))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_values_of_every_kind_are_rounded_as_numpy_rounds(dtype):
    bits = np.arange(1 << 16, dtype=np.uint16)
    every = bits.view(dtype)[np.isfinite(bits.view(dtype).astype(np.float32))]
    x = np.concatenate([every.astype(np.float32), np.float32([np.inf, -np.inf])])
    result = np.empty(x.shape, np.float32)
    assert kernels.to_float(x.astype(dtype), result) == 0
    np.testing.assert_array_equal(result, x)
    factors = np.array([1.5, 0.0009765625, 1.0078125, 3], dtype)
    out = np.empty((x.size, factors.size), dtype)
    assert kernels.out_prod(x.astype(dtype), factors, out) == 0
    with np.errstate(over="ignore"):
        expected = (x[:, None] * factors.astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(out.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(3, 130), (8, 700), (300, 64)], ids=str)
def test_results_do_not_depend_on_the_number_of_threads(dtype, shape):
    m, n = shape
    rng = np.random.default_rng(8)
    a, b = values(rng, (m, 2000), dtype), values(rng, (2000, n), dtype)
    one = product(a, b).tobytes()
    for n_threads in (2, 3, 4, 8):
        assert product(a, b, n_threads=n_threads).tobytes() == one
        assert product(a, np.asfortranarray(b), n_threads=n_threads).tobytes() == (
            product(a, np.asfortranarray(b)).tobytes()
        )


# ---- quantized --------------------------------------------------------------------------------


def gguf_type(qdtype):
    return gguf.GGMLQuantizationType(qdtype.type_id)


def quantized(rng, shape, qdtype):
    """Return Blocks and the values that gguf decodes from them."""
    data = gguf.quantize(rng.standard_normal(shape).astype(np.float32), gguf_type(qdtype))
    blocks = data.reshape(*shape[:-1], -1, qdtype.block_bytes)
    return Blocks(blocks, qdtype), gguf.dequantize(data, gguf_type(qdtype))


@pytest.mark.parametrize("qdtype", QUANTIZED, ids=str)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 8, 9, 130])
def test_activations_times_blocks(qdtype, m):
    rng = np.random.default_rng(m)
    weights, plain = quantized(rng, (70, 544), qdtype)
    x = values(rng, (m, 544), np.dtype("float32"))
    check(product(x, weights.permute((1, 0))), x, plain.T)
    check(product(weights, np.asfortranarray(x.T), dtype=np.float32), plain, x.T)
    y = values(rng, (m, 70), np.dtype("float32"))
    check(product(y, weights), y, plain)
    check(product(weights.permute((1, 0)), y.T, dtype=np.float32), plain.T, y.T)


@pytest.mark.parametrize("qdtype", QUANTIZED, ids=str)
def test_blocks_times_blocks_and_batches(qdtype):
    rng = np.random.default_rng(9)
    a, a_plain = quantized(rng, (3, 40, 96), qdtype)
    b, b_plain = quantized(rng, (2, 1, 50, 96), qdtype)
    result = product(a, b.permute((0, 1, 3, 2)), dtype=np.float32)
    check(result, a_plain, b_plain.swapaxes(2, 3))
    c, c_plain = quantized(rng, (96, 64), qdtype)
    check(product(a, c, dtype=np.float32), a_plain, c_plain)
    moved = a.permute((2, 0, 1))
    assert moved.axis == 0
    x = values(rng, (40, 5), np.dtype("float32"))
    check(product(moved, x, dtype=np.float32), a_plain.transpose(2, 0, 1), x)


@pytest.mark.parametrize("qdtype", QUANTIZED, ids=str)
def test_sliced_and_gathered_blocks(qdtype):
    rng = np.random.default_rng(10)
    weights, plain = quantized(rng, (60, 256), qdtype)
    key = (slice(50, 2, -3), slice(64, 192))
    x = values(rng, (6, 128), np.dtype("float32"))
    part = weights[key]
    check(product(x, part.permute((1, 0))), x, plain[key].T)
    out = np.empty(part.shape, np.float32)
    assert kernels.to_float(part, out, 2) == 0
    np.testing.assert_array_equal(out, plain[key])


@pytest.mark.parametrize("qdtype", QUANTIZED, ids=str)
def test_infinite_scales_and_activations(qdtype):
    rng = np.random.default_rng(11)
    weights, _ = quantized(rng, (8, 64), qdtype)
    data = weights.data.copy()
    data[3, 1, :2] = np.array(np.inf, "<f2").reshape(1).view(np.uint8)
    x = np.ones((1, 64), np.float32)
    x[0, 5] = np.inf
    with np.errstate(invalid="ignore"):
        plain = gguf.dequantize(data.reshape(8, -1), gguf_type(qdtype))
        expected = (x.astype(np.float64) * plain).sum(axis=1)[None]
    result = product(x, Blocks(data, qdtype).permute((1, 0)))
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(result), np.isinf(expected))


@pytest.mark.parametrize("qdtype", QUANTIZED, ids=str)
def test_blocks_give_the_same_on_any_number_of_threads(qdtype):
    rng = np.random.default_rng(12)
    weights, _ = quantized(rng, (700, 2048), qdtype)
    for m in (1, 5, 60):
        x = values(rng, (m, 2048), np.dtype("float32"))
        one = product(x, weights.permute((1, 0))).tobytes()
        for n_threads in (2, 3, 4, 8):
            many = product(x, weights.permute((1, 0)), n_threads=n_threads)
            assert many.tobytes() == one


@pytest.mark.parametrize("qdtype", QUANTIZED, ids=str)
def test_to_float_equals_gguf_for_any_bytes_and_strides(qdtype):
    rng = np.random.default_rng(13)
    data = rng.integers(0, 256, (3, 50, 40, qdtype.block_bytes), dtype=np.uint8)
    data[..., 1] &= 0x7B  # finite scales
    data[..., 3] &= 0x7B
    plain = gguf.dequantize(data.reshape(3, 50, -1), gguf_type(qdtype))
    blocks = Blocks(data, qdtype)
    for order in itertools.permutations(range(3)):
        moved = blocks.permute(order)
        for memory in ("C", "F"):
            out = np.empty(moved.shape, np.float32, order=memory)
            assert kernels.to_float(moved, out, 3) == 0
            np.testing.assert_array_equal(out, plain.transpose(order))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_to_float_of_strided_halves(dtype):
    rng = np.random.default_rng(14)
    x = values(rng, (50, 1300), dtype)
    for view in (x, x.T, x[::-2, 1::3]):
        out = np.empty(view.shape, np.float32)
        assert kernels.to_float(view, out, 2) == 0
        np.testing.assert_array_equal(out, view.astype(np.float32))


def rows_to_quantize(rng):
    x = rng.standard_normal((200, 128)).astype(np.float32)
    x[1] = 0
    x[3] = 1.5
    x[4] *= 1e-34  # the scale rounds to zero
    x[5] *= 3e4  # and to infinity
    x[6] = np.round(x[6])  # ties between the largest magnitudes, and of the rounding
    x[7] = np.arange(128)
    x[8] = np.arange(-64, 64) / 2
    return x * np.exp(rng.uniform(-5, 5, (200, 1))).astype(np.float32)


def unfilled(shape, qdtype):
    blocks = shape[-1] // qdtype.block_size
    return Blocks(np.zeros((*shape[:-1], blocks, qdtype.block_bytes), np.uint8), qdtype)


@pytest.mark.parametrize("qdtype", QUANTIZED, ids=str)
def test_from_float_gives_the_bytes_of_gguf(qdtype):
    x = rows_to_quantize(np.random.default_rng(15)).reshape(4, 50, 128)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = gguf.quantize(x, gguf_type(qdtype))
    out = unfilled(x.shape, qdtype)
    assert kernels.from_float(x, out, 2) == 0
    np.testing.assert_array_equal(out.data.reshape(expected.shape), expected)


def test_zeros_of_either_sign_have_the_scale_of_ggml():
    for zero in (0.0, -0.0):
        out = unfilled((32,), traits.q4_0)
        assert kernels.from_float(np.full(32, zero, np.float32), out) == 0
        assert out.data.tobytes() == b"\x00\x80" + b"\x88" * 16  # d = 0 / -8


def test_from_float_refuses_what_it_cannot_encode():
    x = np.zeros((4, 64), np.float32)
    out = unfilled((4, 32), traits.q4_0)
    with pytest.raises(ValueError, match=r"not \(4, 33\)"):
        kernels.from_float(x[:, :33].copy(), out)
    with pytest.raises(ValueError, match="C-contiguous"):
        kernels.from_float(x[:, :32], out)
    assert kernels.from_float(np.zeros((4, 32)), out) == 1


# ---- outer products ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_out_prod_is_the_plain_rounded_product(dtype):
    rng = np.random.default_rng(16)
    a, b = values(rng, (70,), dtype), values(rng, (611,), dtype)
    if dtype.kind not in "iuc":
        a[:4] = [0.0, -0.0, np.inf, np.nan]
        b[:4] = [-1.0, 0.0, -0.0, np.inf]
    if dtype.kind == "c":
        a, b = np.round(a * 16), np.round(b * 16)  # exact, so that the order does not matter
    with np.errstate(invalid="ignore"):
        wide = np.float32 if dtype.itemsize == 2 and dtype.kind not in "iu" else dtype
        expected = (a.astype(wide)[:, None] * b.astype(wide)).astype(dtype)
    whole = np.full((72, 613), 9, dtype)
    for left, right in [(a, b), (a[::-1], b[::-1])]:
        out = whole[1:-1, 1:-1]
        assert kernels.out_prod(left, right, out, 2) == 0
        turned = out if left is a else out[::-1, ::-1]
        nan = np.isnan(expected.astype(np.complex128))
        np.testing.assert_array_equal(np.isnan(turned.astype(np.complex128)), nan)
        same = np.ascontiguousarray(turned).view(f"V{dtype.itemsize}")
        assert (same == expected.view(f"V{dtype.itemsize}"))[~nan].all()
    edge = np.concatenate([whole[0], whole[-1], whole[:, 0], whole[:, -1]])
    assert (edge == np.asarray(9, dtype)).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_out_prod_of_nothing_and_broadcast(dtype):
    one = np.ones((1,), dtype)
    assert kernels.out_prod(one[:0], one, np.empty((0, 1), dtype)) == 0
    out = np.zeros((40, 30), dtype)
    both = np.broadcast_to(one, (40,)), np.broadcast_to(one, (30,))
    assert kernels.out_prod(*both, out) == 0
    assert (out == one).all()


# ---- what is refused, and instruction sets ------------------------------------------------------


def test_other_dtypes_are_refused():
    out = np.empty((2, 2), np.float32)
    x = np.ones((2, 2), np.float64)
    assert kernels.matmul(x, x, out) == 1
    assert kernels.matmul(x > 0, x > 0, out > 0) == 1
    swapped = np.ones((2, 2), np.dtype("float32").newbyteorder())
    assert kernels.matmul(swapped, swapped, swapped.copy()) == 1
    assert kernels.out_prod(x[0], x[0], out) == 1
    blocks = Blocks(np.zeros((2, 1, 18), np.uint8), traits.q4_0)
    assert kernels.matmul(blocks, np.ones((32, 2)), np.empty((2, 2))) == 1
    assert kernels.to_float(x, out) == 1


def test_supported():
    assert all(kernels.supported(dtype) for dtype in DTYPES + QUANTIZED)
    assert not kernels.supported(np.dtype(bool))
    assert not kernels.supported(np.dtype(">f4" if sys.byteorder == "little" else "<f4"))


def run_with_isa(isa, code):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "GGARRAY_CPU_ISA": isa},
        capture_output=True,
        text=True,
        check=False,
    )


FEATURES = kernels.features()
OTHER_ISAS = [isa for isa in FEATURES["usable"] if isa != FEATURES["isa"]] or ["generic"]


@pytest.mark.parametrize("isa", OTHER_ISAS)
def test_every_instruction_set(isa):
    """The tests of this file that cover every kernel, run with another instruction set."""
    names = "every_dtype or blocks or halves or to_float or formula or infinite"
    code = (
        "import sys, pytest; from ggarray.backends.cpu import kernels;"
        f"assert kernels.features()['isa'] == {isa!r};"
        f"sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-x', {__file__!r}, '-k',"
        f" '({names}) and not instruction_set']))"
    )
    done = run_with_isa(isa, code)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_unknown_instruction_set_is_named_with_those_that_are_known():
    code = (
        "import numpy as np; from ggarray.backends.cpu import kernels;"
        "x = np.ones((2, 2)); kernels.matmul(x, x, x.copy())"
    )
    done = run_with_isa("mmx", code)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ValueError: GGARRAY_CPU_ISA is 'mmx'")
    assert last.endswith("generic")
