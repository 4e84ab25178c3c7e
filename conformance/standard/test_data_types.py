"""Data type functions against array_api_strict, IEEE 754 and Python's conversions."""

import itertools

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import strategies as st

import ggarray as xp
from conformance.standard.references import (
    BOOL,
    COMPLEXES,
    DEVICE,
    DTYPES,
    EXTENDED,
    HALVES,
    INTEGERS,
    NUMERIC,
    REALS,
    SIGNED,
    UNSIGNED,
    arrays,
    check,
    given,
    is_half,
    kind_of,
    part_of,
    rounded,
    wide,
    wrapped,
)

COVERS = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

PAIRS = pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param(*each, id="-".join(map(str, each)))
        for each in itertools.product(DTYPES, DTYPES)
    ],
)


def of_strict(dtype):
    return getattr(strict, np.dtype(dtype).name)


def strict_result_type(*arguments):
    """Return what array_api_strict gives for dtypes and scalars; None where it has no rule."""
    arguments = [of_strict(each) if isinstance(each, np.dtype) else each for each in arguments]
    try:
        return np.dtype(strict.result_type(*arguments)._np_dtype)
    except TypeError:
        return None


# -- promotion ----------------------------------------------------------------------------------


@PAIRS
def test_promotion_of_dtypes_and_arrays(a, b):
    x, y = xp.ones(2, dtype=a, device=DEVICE), xp.ones(1, dtype=b, device=DEVICE)
    wanted = strict_result_type(a, b)
    found = xp.result_type(a, b)
    if wanted is not None:
        assert found == wanted
    for arguments in ((x, y), (a, y), (x, b), (a.type, b.type), (a, b, a, y)):
        assert xp.result_type(*arguments) == found
    assert xp.where(xp.ones(2, dtype=bool, device=DEVICE), x, y).dtype == found


@PAIRS
def test_casts_that_promotion_allows(a, b):
    x = xp.ones(2, dtype=a)
    wanted = strict_result_type(a, b)
    if wanted is not None:
        assert xp.can_cast(a, b) is (wanted == b)
        assert xp.can_cast(x, b) is xp.can_cast(a.type, b.type) is (wanted == b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("scalar", [True, 1, 1.0, 1j], ids=repr)
def test_python_scalars_are_weak(dtype, scalar):
    wanted = strict_result_type(dtype, scalar)
    if wanted is not None:
        for other in (dtype, xp.ones(2, dtype=dtype)):
            assert xp.result_type(other, scalar) == wanted
            assert xp.result_type(scalar, other) == wanted
            assert xp.result_type(scalar, other, scalar, other) == wanted
        if kind_of(dtype) != "b":
            assert (xp.ones(2, dtype=dtype) * scalar).dtype == wanted


def test_half_floats_promote():
    float16, bfloat16 = HALVES
    assert xp.result_type(float16, bfloat16) == xp.float32
    assert xp.result_type(bfloat16, xp.ones(1, dtype=float16), bfloat16) == xp.float32
    for half in HALVES:
        assert xp.result_type(half, half) == half
        for scalar in (True, 1, 2.5):
            assert xp.result_type(half, scalar) == half
        assert xp.result_type(half, 1j) == xp.complex64
        for wider in (*REALS, *COMPLEXES):
            assert xp.result_type(half, wider) == wider
            assert xp.can_cast(half, wider)
            assert not xp.can_cast(wider, half)
        assert not xp.can_cast(half, xp.int64)
        assert xp.can_cast(xp.bool, half)
    assert not xp.can_cast(float16, bfloat16)
    assert not xp.can_cast(bfloat16, float16)


@pytest.mark.parametrize("bad", ["no dtype", None, [1.0], object()], ids=str)
def test_what_is_no_dtype_raises(bad):
    with pytest.raises(TypeError):
        xp.result_type(xp.float32, bad)
    with pytest.raises(TypeError):
        xp.can_cast(xp.float32, bad)
    with pytest.raises(TypeError):
        xp.astype(xp.ones(1), bad)


# -- kinds --------------------------------------------------------------------------------------

KINDS = {
    "bool": BOOL,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGERS,
    "real floating": (*REALS, *HALVES),
    "complex floating": COMPLEXES,
    "numeric": (*NUMERIC, *HALVES),
}


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data())
def test_isdtype_of_any_union(dtype, data):
    union = data.draw(st.lists(st.sampled_from([*KINDS, *EXTENDED]), min_size=1, max_size=4))
    wanted = [dtype in KINDS[each] if isinstance(each, str) else dtype == each for each in union]
    assert xp.isdtype(dtype, tuple(union)) is any(wanted)
    assert xp.isdtype(dtype.type, union[0]) is wanted[0]
    assert xp.isdtype(xp.ones(1, dtype=dtype).dtype, union[0]) is wanted[0]


@pytest.mark.parametrize("kind", ["float", "integer", "", ("bool", "no kind")], ids=str)
def test_unknown_kinds_raise(kind):
    with pytest.raises(ValueError, match="kind"):
        xp.isdtype(xp.float32, kind)


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
def test_dtypes_are_equal_to_themselves_alone(dtype):
    found = xp.ones(1, dtype=dtype).dtype
    assert found == dtype
    assert found == dtype.type
    assert hash(found) == hash(dtype)
    assert sum(found == other for other in EXTENDED) == 1
    assert np.dtype(found) == dtype
    # numpy.dtype("float64") == None, so the namespace's names are classes
    assert (getattr(xp, dtype.name) == None) is False  # noqa: E711


# -- limits -------------------------------------------------------------------------------------

# Bits of the exponent and of the fraction.
FORMATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}


@pytest.mark.parametrize("dtype", [*REALS, *COMPLEXES, *HALVES], ids=str)
def test_finfo_of_dtypes_and_arrays(dtype):
    part = part_of(dtype)
    exponent, fraction = FORMATS[part.name]
    bias = 2 ** (exponent - 1) - 1
    largest = (2 - 2.0**-fraction) * 2.0**bias
    for argument in (dtype, dtype.type, xp.ones((2, 0), dtype=dtype)):
        info = xp.finfo(argument)
        assert info.bits == 8 * part.itemsize
        assert (info.max, info.min) == (largest, -largest)
        assert info.eps == 2.0**-fraction
        assert info.smallest_normal == 2.0 ** (1 - bias)
        assert info.dtype == part
        assert {type(getattr(info, name)) for name in ("eps", "max", "min")} == {float}
        assert type(info.smallest_normal) is float
        assert type(info.bits) is int


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_iinfo_of_dtypes_and_arrays(dtype):
    bits = 8 * dtype.itemsize
    lowest = -(2 ** (bits - 1)) if dtype.kind == "i" else 0
    for argument in (dtype, dtype.type, xp.ones((), dtype=dtype)):
        info = xp.iinfo(argument)
        assert (info.bits, info.min, info.max) == (bits, lowest, lowest + 2**bits - 1)
        assert info.dtype == dtype
        assert {type(info.bits), type(info.min), type(info.max)} == {int}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_limits_of_the_wrong_kind_raise(dtype):
    for of, kinds in ((xp.finfo, "fc"), (xp.iinfo, "iu")):
        if kind_of(dtype) not in kinds:
            for argument in (dtype, xp.ones(1, dtype=dtype)):
                with pytest.raises((TypeError, ValueError)):
                    of(argument)


# -- casts --------------------------------------------------------------------------------------


def cast(value, target):
    """Return a NumPy array in a dtype, by Python's conversions of each element."""
    exact = wide(value)
    if kind_of(target) == "b":
        return np.array([bool(each) for each in exact.flat], bool).reshape(exact.shape)
    if kind_of(target) in "iu":
        whole = np.array([int(each) for each in exact.flat], object).reshape(exact.shape)
        return wrapped(whole, target)
    return rounded(exact if kind_of(value.dtype) in "fc" else exact.astype(np.longdouble), target)


@pytest.mark.parametrize("to", EXTENDED, ids=str)
@pytest.mark.parametrize("from_", EXTENDED, ids=str)
@given(data=st.data(), examples=10)
def test_astype_between_all_dtypes(from_, to, data):
    floating = kind_of(from_) in "fc"
    limits = {}
    if floating and kind_of(to) in "iu":  # what no integer of that dtype is, is not specified
        ends = np.iinfo(to)
        limits = {"low": max(ends.min, -(2**10)), "high": min(ends.max // 2, 2**10)}
    elif kind_of(from_) in "iu" and kind_of(to) in "fc":
        limits = {"low": -(2**7), "high": 2**7}
    x, v = data.draw(arrays(from_, **limits))
    if kind_of(from_) == "c" and kind_of(to) not in "cb":
        with pytest.raises(TypeError):
            xp.astype(x, to)
        return
    with np.errstate(all="ignore"):  # beyond the range, and NaN that signals
        result = xp.astype(x, to)
        check(result, cast(v, to))
    assert result is not x


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
def test_astype_copies_unless_it_is_told_not_to(dtype):
    x = xp.ones((2, 3), dtype=dtype, device=DEVICE)
    copied = xp.astype(x, dtype)
    copied[0, 0] = 0
    check(x, np.ones((2, 3), dtype))
    assert xp.astype(x, dtype, copy=False) is x
    other = np.dtype(np.int8 if is_half(dtype) else np.float16)
    if kind_of(dtype) != "c":
        assert xp.astype(x, other, copy=False) is not x
    moved = xp.astype(x, dtype, device="blas")
    check(moved, np.ones((2, 3), dtype), device="blas")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [*REALS, *COMPLEXES, *HALVES], ids=str)
def test_truth_of_floats(dtype):
    v = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-4, 2.0]).astype(dtype)
    check(xp.astype(xp.asarray(v, device=DEVICE), bool), [False, False, *[True] * 5])
