"""Data type functions: promotion, limits, kinds and casts."""

import itertools
import pickle

import gguf
import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, zeros_q8_0

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
STANDARD = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
)
DTYPES = [*(np.dtype(name) for name in STANDARD.split()), np.dtype(np.float16), bfloat16]
FLOATS = [np.dtype(np.float16), bfloat16, np.dtype(np.float32), np.dtype(np.float64)]


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


# -- astype ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", DTYPES, ids=str)
@pytest.mark.parametrize("from_", DTYPES, ids=str)
def test_astype_keeps_values_that_both_dtypes_have(from_, to):
    x = on_cpu([0, 1, 3], from_)
    if from_.kind == "c" and to.kind not in "bc":
        with pytest.raises(TypeError, match=f"{from_} to {to}"):
            xp.astype(x, to)
    else:
        check(xp.astype(x, to), np.array([0, 1, 1 if "b" in from_.kind + to.kind else 3], to))


def test_astype_copies_unless_told_not_to():
    x = on_cpu([1.0, 2.0])
    copied = xp.astype(x, xp.float64)
    copied[0] = 9.0
    check(x, [1.0, 2.0])
    assert xp.astype(x, xp.float64, copy=False) is x
    assert xp.astype(x, xp.float64, copy=False, device="cpu") is x
    check(xp.astype(x, xp.float32, copy=False), [1.0, 2.0], np.float32)


def test_astype_moves_to_a_device(device):
    x = on_cpu([1.0, 2.0])
    for copy in (True, False):
        moved = xp.astype(x, xp.float64, device=device, copy=copy)
        check(moved, [1.0, 2.0], device=device)
        check(xp.astype(x, xp.int8, device=device, copy=copy), [1, 2], np.int8, device=device)
    with pytest.raises(ValueError, match="nowhere"):
        xp.astype(x, xp.float64, device="nowhere")


def test_astype_of_a_pending_array_between_floating_dtypes_waits():
    a, b = numbers((3, 4), np.float32), numbers((4, 5), np.float32, 1)
    product = on_cpu(a) @ on_cpu(b)
    cast = xp.astype(product, xp.float64)
    assert xp.is_pending(cast)
    check(cast, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-6)


def test_astype_quantizes_and_dequantizes():
    x = numbers((2, 64), np.float32)
    blocks = gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0)
    decoded = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.Q8_0)
    quantized = xp.astype(on_cpu(x), xp.q8_0)
    assert quantized.dtype is xp.q8_0
    check(xp.astype(quantized, xp.float32), decoded)
    check(xp.astype(quantized, xp.float64), decoded, np.float64)
    check(xp.astype(quantized, xp.float16), decoded.astype(np.float16))
    assert xp.astype(quantized, xp.q8_0, copy=False) is quantized
    again = xp.astype(quantized, xp.q4_0)
    assert again.dtype is xp.q4_0
    assert again.shape == x.shape
    with pytest.raises(TypeError, match="int8"):
        xp.astype(quantized, xp.int8)
    with pytest.raises(TypeError, match="int64"):
        xp.astype(on_cpu(np.zeros(32, np.int64)), xp.q8_0)
    with pytest.raises(ValueError, match="32"):
        xp.astype(on_cpu(np.zeros(31)), xp.q8_0)


@pytest.mark.parametrize("bad", ["S3", "M8[s]", object, np.longdouble, None, "no such"])
def test_astype_to_what_arrays_do_not_have(bad):
    with pytest.raises(TypeError):
        xp.astype(on_cpu([1.0]), bad)


# -- limits ---------------------------------------------------------------------------------------

# bits of a float, of its exponent, of its fraction
FORMATS = {"float16": (16, 5, 10), "bfloat16": (16, 8, 7), "float32": (32, 8, 23)}
FORMATS["float64"] = (64, 11, 52)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_finfo_follows_from_the_format(dtype):
    bits, exponent, fraction = FORMATS[dtype.name]
    bias = 2 ** (exponent - 1) - 1
    greatest = (2 - 2.0**-fraction) * 2.0**bias
    for argument in (dtype, dtype.type, xp.zeros(2, dtype=dtype)):
        info = xp.finfo(argument)
        assert info.bits == bits
        assert info.eps == 2.0**-fraction
        assert (info.max, info.min) == (greatest, -greatest)
        assert info.smallest_normal == 2.0 ** (1 - bias)
        assert info.dtype == dtype
        for value in (info.eps, info.max, info.min, info.smallest_normal):
            assert type(value) is float
        assert type(info.bits) is int


def test_finfo_of_a_complex_dtype_is_that_of_its_parts():
    assert xp.finfo(xp.complex64) == xp.finfo(xp.float32)
    assert xp.finfo(xp.ones(1, dtype=xp.complex128)) == xp.finfo(xp.float64)


@pytest.mark.parametrize("dtype", [each for each in DTYPES if each.kind in "iu"], ids=str)
def test_iinfo_follows_from_the_bits(dtype):
    bits = 8 * dtype.itemsize
    for argument in (dtype, dtype.type, xp.zeros(2, dtype=dtype)):
        info = xp.iinfo(argument)
        assert info.bits == bits
        assert info.max == 2 ** (bits - (dtype.kind == "i")) - 1
        assert info.min == (-(2 ** (bits - 1)) if dtype.kind == "i" else 0)
        assert info.dtype == dtype
        assert {type(info.bits), type(info.max), type(info.min)} == {int}


def test_limits_of_the_wrong_kind():
    for function, dtype in ((xp.finfo, xp.int32), (xp.finfo, xp.bool), (xp.iinfo, xp.float32)):
        with pytest.raises(
            ValueError, match=f"{function.__name__} is for .* not {np.dtype(dtype)}"
        ):
            function(dtype)
    for function in (xp.finfo, xp.iinfo):
        with pytest.raises(TypeError, match="q8_0"):
            function(xp.q8_0)
        with pytest.raises(TypeError):
            function(None)


def test_limits_are_values():
    info = xp.finfo(xp.float32)
    assert pickle.loads(pickle.dumps(info)) == info
    assert hash(info) == hash(xp.finfo(np.float32))
    with pytest.raises(AttributeError):
        info.eps = 0.0


# -- kinds ----------------------------------------------------------------------------------------

KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "fV",
    "complex floating": "c",
    "numeric": "iufVc",
}


@pytest.mark.parametrize("kind", KINDS)
def test_isdtype_by_name_of_the_kind(kind):
    for dtype in DTYPES:
        assert xp.isdtype(dtype, kind) is (dtype.kind in KINDS[kind])
        assert xp.isdtype(dtype.type, kind) is (dtype.kind in KINDS[kind])
    assert xp.isdtype(xp.q8_0, kind) is False


def test_isdtype_by_dtype_and_tuple():
    for a, b in itertools.product(DTYPES, repeat=2):
        assert xp.isdtype(a, b) is (a == b)
    assert xp.isdtype(xp.float32, (xp.float64, "integral", np.float32))
    assert not xp.isdtype(xp.float32, (xp.float64, "integral"))
    assert not xp.isdtype(xp.float32, ())
    assert xp.isdtype(xp.q8_0, xp.q8_0)
    assert not xp.isdtype(xp.q8_0, xp.q4_0)
    assert not xp.isdtype(xp.float64, xp.q8_0)


def test_isdtype_of_unknown_kinds():
    with pytest.raises(ValueError, match="'float32'"):
        xp.isdtype(xp.float32, "float32")
    with pytest.raises(ValueError, match="'numbers'"):
        xp.isdtype(xp.float32, (xp.float32, "numbers"))
    for pair in ((xp.float64, None), (None, xp.float64), (xp.float64, (None,))):
        with pytest.raises(TypeError):
            xp.isdtype(*pair)


# -- promotion ------------------------------------------------------------------------------------

# Of the same kind the wider wins; signed with unsigned gives the signed one that holds both.
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
TABLE = {("float32", "complex128"): "complex128", ("float64", "complex64"): "complex128"}
for chain in (SIGNED, UNSIGNED, ["float32", "float64"], ["complex64", "complex128"]):
    TABLE |= {(a, b): chain[max(i, j)] for i, a in enumerate(chain) for j, b in enumerate(chain)}
for i, j in itertools.product(range(4), range(3)):
    TABLE[SIGNED[i], UNSIGNED[j]] = SIGNED[max(i, j + 1)]
TABLE |= {
    ("bool", "bool"): "bool",
    ("float32", "complex64"): "complex64",
    ("float64", "complex128"): "complex128",
    ("float16", "float16"): "float16",
    ("bfloat16", "bfloat16"): "bfloat16",
    ("float16", "bfloat16"): "float32",
    ("float16", "float32"): "float32",
    ("bfloat16", "float32"): "float32",
    ("bfloat16", "float64"): "float64",
    ("bfloat16", "complex64"): "complex64",
}


def dtype(name):
    return bfloat16 if name == "bfloat16" else np.dtype(name)


@pytest.mark.parametrize(("a", "b"), TABLE)
def test_result_type_and_can_cast_follow_the_table(a, b):
    result = dtype(TABLE[a, b])
    x, y = dtype(a), dtype(b)
    for pair in (
        (x, y),
        (y, x),
        (x.type, y),
        (xp.zeros(3, dtype=x), y),
        (y, xp.zeros((), dtype=x)),
    ):
        assert xp.result_type(*pair) == result
        assert isinstance(xp.result_type(*pair), np.dtype)
    assert xp.can_cast(x, y) is (result == y)
    assert xp.can_cast(xp.zeros(1, dtype=y), x) is (result == x)


# A dtype, a Python scalar and what they give.
WEAK = [
    ("bool", True, "bool"),
    ("int8", True, "int8"),
    ("int8", 1, "int8"),
    ("uint64", 1, "uint64"),
    ("float32", True, "float32"),
    ("float32", 1, "float32"),
    ("float32", 1.0, "float32"),
    ("float32", 1j, "complex64"),
    ("float64", 1j, "complex128"),
    ("complex64", 1.0, "complex64"),
    ("float16", 1.0, "float16"),
    ("bfloat16", True, "bfloat16"),
    ("bfloat16", 1, "bfloat16"),
    ("bfloat16", 1.0, "bfloat16"),
    ("bfloat16", 1j, "complex64"),
]


@pytest.mark.parametrize(("name", "scalar", "expected"), WEAK)
def test_python_scalars_are_weak(name, scalar, expected):
    for pair in (
        (dtype(name), scalar),
        (scalar, dtype(name)),
        (xp.ones(2, dtype=dtype(name)), scalar),
    ):
        assert xp.result_type(*pair) == dtype(expected)


def test_result_type_of_many_and_of_none():
    assert xp.result_type(xp.int8, xp.uint8, xp.int16, 3) == np.int16
    assert xp.result_type(bfloat16, xp.float16, xp.complex128) == np.complex128
    assert xp.result_type(xp.float32, xp.ones(2), 1j) == np.complex128
    assert xp.result_type(1, 2.0) == np.float64
    with pytest.raises(ValueError, match="at least one"):
        xp.result_type()
    with pytest.raises(TypeError):
        xp.result_type(xp.float32, None)


def test_quantized_dtypes_promote_with_themselves_only():
    x = zeros_q8_0((2, 32))
    assert xp.result_type(xp.q8_0, x, xp.q8_0) is xp.q8_0
    assert xp.can_cast(x, xp.q8_0) is True
    for other in (xp.q4_0, xp.float32, xp.int8, bfloat16, xp.ones(2)):
        with pytest.raises(TypeError, match="q8_0"):
            xp.result_type(x, other)
    with pytest.raises(TypeError, match="q8_0"):
        xp.result_type(xp.q8_0, 1.0)
    for pair in ((xp.q8_0, xp.q4_0), (x, xp.float32), (xp.float32, xp.q8_0)):
        with pytest.raises(TypeError, match="q8_0"):
            xp.can_cast(*pair)


def test_can_cast_wants_dtypes():
    assert xp.can_cast(xp.float64, xp.float32) is False
    for pair in ((None, xp.float64), (xp.float64, None), (1.0, xp.float64)):
        with pytest.raises(TypeError):
            xp.can_cast(*pair)
