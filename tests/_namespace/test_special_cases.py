"""How functions that mend NumPy's special cases behave; the cases are in conformance/standard."""

from math import inf, isnan, nan

import numpy as np
import pytest
from values import check, on_cpu

import ggarray as xp
from ggarray import _special_cases as special_cases

MENDED = ["expm1", "log1p", "sign", "tan", "tanh"]


def test_no_axes_give_an_array_of_no_axes():
    for name in (*MENDED, "imag", "real"):
        for dtype in (np.float32, np.complex64):
            result = getattr(xp, name)(on_cpu(0.5, dtype))
            assert type(result) is xp.Array
            assert result.shape == ()
            assert result.dtype == (np.float32 if name in ("imag", "real") else dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", MENDED)
def test_functions_leave_their_argument_as_it_was(name):
    z = np.array([complex(-0.0, 0.0), complex(3, 4), complex(inf, 1), complex(nan, 0)])
    x = on_cpu(z)
    getattr(xp, name)(x)
    assert np.asarray(x).tobytes() == z.tobytes()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arguments_that_overflow_are_as_infinite_ones():
    check(xp.expm1(on_cpu([1000 + 0j])), [complex(inf, 0)])
    check(xp.tanh(on_cpu([complex(inf, 1e30), 1000 + 1j])), [1 + 0j, 1 + 0j])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_functions_that_are_small_near_zero_are_accurate_there(dtype):
    z = np.array([1e-12 + 1e-12j, -3e-13 + 2e-12j, 4e-12, 1e-15j])
    eps = np.finfo(dtype).eps
    check(xp.log1p(on_cpu(z.astype(dtype))), z - z * z / 2, dtype, 4 * eps)
    check(xp.expm1(on_cpu(z.astype(dtype))), z + z * z / 2, dtype, 4 * eps)
    # the magnitude of 1 + z is 1 here, but for its last bits
    z = np.array([-1e-5 + 0.004472119j, -0.4 + 0.49j, 0.49 + 0.49j]).astype(dtype)
    exact = z.astype(np.clongdouble)
    a, b = exact.real, exact.imag
    expected = np.log1p(a * (2 + a) + b * b) / 2 + 1j * np.arctan2(b, 1 + a)
    check(xp.log1p(on_cpu(z)), expected.astype(dtype), dtype, 4 * eps)


def test_floor_divide_writes_to_out_only_what_its_dtype_takes():
    out = np.array([inf, 7.0], np.float32)
    assert special_cases.floor_divide(out, np.array(2.0), out=out) is out
    np.testing.assert_array_equal(out, [inf, 3.0])
    with pytest.raises(TypeError):
        special_cases.floor_divide(np.array([1, 2]), inf, out=np.array([1, 2]))


def test_floor_divide_of_finite_operands_by_infinity_does_not_warn():
    xp.floor_divide(on_cpu([inf, 1.0]), on_cpu([3.0, -inf]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("b", [0.0, 3.0, -3.0, inf, -inf, nan])
@pytest.mark.parametrize("a", [0.0, 2.0, -2.0, inf, -inf, nan])
def test_floor_divide_of_float16_is_that_of_float32(a, b):
    half, single = on_cpu([a, 9.0], np.float16), on_cpu([a, 9.0], np.float32)
    result, wanted = xp.floor_divide(half, b), xp.floor_divide(single, b)
    assert result.dtype == np.float16
    np.testing.assert_array_equal(np.asarray(result), np.asarray(wanted))


# What 0.5 is the exponent of, in shapes that NumPy takes the square root in, or not.
ROOTS = {
    "scalar": 0.5,
    "no axes": np.array(0.5),
    "one element": np.array([0.5]),
    "broadcast": np.broadcast_to(np.array(0.5), (3, 4)),
    "a column": np.array([[0.5], [3.0], [0.5]]),
    "as many": np.full((3, 4), 0.5),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("exponent", ROOTS.values(), ids=ROOTS)
def test_roots_of_zero_and_infinity_as_powers(exponent):
    x = np.array([[-inf, -0.0, 4.0, -1.0]] * 3)
    cubes = np.broadcast_to(np.asarray(exponent) == 3, x.shape)
    expected = np.where(cubes, [-inf, -0.0, 64.0, -1.0], [inf, 0.0, 2.0, nan])
    for out in (None, x.copy()):
        base = x if out is None else out
        result = special_cases.power(base, exponent, out=out)
        assert out is None or result is out
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result[cubes]), np.signbit(expected[cubes]))
        zeros = result == 0
        np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(expected[zeros]))


def test_powers_of_other_dtypes_are_those_of_numpy():
    check(xp.pow(on_cpu([4, 9]), 0.5), [2.0, 3.0])
    check(xp.pow(on_cpu([4, 9], np.int8), on_cpu([2, 1], np.int8)), [16, 9], np.int8)
    check(xp.pow(on_cpu([-4 + 0j]), 0.5), [2j], rtol=1e-15)
    check(xp.pow(on_cpu([4.0], np.float32), 0.5), [2.0], np.float32)
    check(xp.pow(2.0, on_cpu([0.5, 0.5], np.float32)), np.sqrt([2, 2], dtype=np.float32))
    with pytest.raises(TypeError):
        special_cases.power(np.array([4]), 0.5, out=np.array([4]))


def test_floor_divide_of_integers_is_that_of_python():
    values = [-7, -1, 0, 5, 127]
    for divisor in (-3, 2, 5):
        result = xp.floor_divide(on_cpu(values, np.int8), divisor)
        assert result.dtype == np.int8
        assert [int(each) for each in result] == [value // divisor for value in values]


def test_the_sign_of_bfloat16_zero_is_zero():
    pytest.importorskip("ml_dtypes")
    result = xp.sign(on_cpu([-0.0, 0.0, -3.0, nan], xp.bfloat16))
    found = [float(each) for each in result]
    assert found[:3] == [0.0, 0.0, -1.0]
    assert isnan(found[3])
    assert not np.signbit(np.asarray(result)[:2]).any()


def test_imaginary_part_of_real_elements_is_zeros_that_can_be_written():
    x = on_cpu([1.0, 2.0])
    part = xp.imag(x)
    part[0] = 5.0
    check(part, [5.0, 0.0])
    check(x, [1.0, 2.0])
