"""The standard's special cases, written down from its sentences, at every dtype that has them."""

import cmath
import warnings
from math import copysign, inf, nan

import numpy as np
import pytest

import ggarray as xp

REALS = [np.float32, np.float64]
COMPLEXES = [np.complex64, np.complex128]

# An argument, and real and imaginary part of the result; None: only the magnitude is specified.
EXPM1 = [
    (complex(0.0, 0.0), 0.0, 0.0),
    (complex(-0.0, 0.0), 0.0, 0.0),
    (complex(2.0, inf), nan, nan),
    (complex(2.0, nan), nan, nan),
    (complex(inf, 0.0), inf, 0.0),
    (complex(-inf, 1.0), -1.0, 0.0),
    (complex(-inf, 2.0), -1.0, 0.0),
    (complex(-inf, 4.0), -1.0, -0.0),
    (complex(inf, 1.0), inf, inf),
    (complex(inf, 2.0), -inf, inf),
    (complex(inf, 4.0), -inf, -inf),
    (complex(-inf, inf), -1.0, 0.0),
    (complex(inf, inf), inf, nan),
    (complex(-inf, nan), -1.0, 0.0),
    (complex(inf, nan), inf, nan),
    (complex(nan, 0.0), nan, 0.0),
    (complex(nan, 1.0), nan, nan),
    (complex(nan, inf), nan, nan),
    (complex(nan, nan), nan, nan),
    (complex(1000.0, 0.0), inf, 0.0),  # as of (inf, 0)
]
TANH = [
    (complex(0.0, 0.0), 0.0, 0.0),
    (complex(2.0, inf), nan, nan),
    (complex(2.0, nan), nan, nan),
    (complex(inf, 1.0), 1.0, 0.0),
    (complex(inf, 2.0), 1.0, 0.0),
    (complex(inf, 1e30), 1.0, 0.0),
    (complex(-inf, 2.0), -1.0, 0.0),
    (complex(inf, inf), 1.0, 0.0),
    (complex(inf, nan), 1.0, 0.0),
    (complex(nan, 0.0), nan, 0.0),
    (complex(nan, 1.0), nan, nan),
    (complex(nan, nan), nan, nan),
]
SIGN = [
    (complex(0.0, 0.0), 0.0, 0.0),
    (complex(-0.0, -0.0), 0.0, 0.0),
    (complex(nan, 1.0), nan, nan),
    (complex(1.0, nan), nan, nan),
    (complex(inf, nan), nan, nan),
    (complex(nan, inf), nan, nan),
    (complex(3.0, -4.0), 0.6, -0.8),
    (complex(-7.0, 0.0), -1.0, 0.0),
]
# tan(z) = -1j * tanh(1j * z)
TAN = [(complex(z.imag, -z.real), im, -re) for z, re, im in TANH]

CASES = [
    (name, *case)
    for name, cases in [("expm1", EXPM1), ("tanh", TANH), ("tan", TAN), ("sign", SIGN)]
    for case in cases
]
SIGN_IS_FREE = {
    ("expm1", complex(-inf, inf)),
    ("expm1", complex(-inf, nan)),
    ("tanh", complex(inf, inf)),
    ("tanh", complex(inf, nan)),
    ("tan", complex(inf, -inf)),
    ("tan", complex(nan, -inf)),
}


def same(a, b):
    """Equal, signs of zeros included; NaN is NaN."""
    return (a != a and b != b) or (a == b and copysign(1, a) == copysign(1, b))


def apply(name, z, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return complex(getattr(xp, name)(xp.asarray([z, 1], dtype=dtype))[0])


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize(("name", "z", "re", "im"), CASES)
def test_complex_special_cases_and_their_conjugates(name, z, re, im, dtype):
    result, mirrored = apply(name, z, dtype), apply(name, z.conjugate(), dtype)
    eps = np.finfo(dtype).eps
    for actual, real, imag in ((result, re, im), (mirrored, re, -im)):
        zero = real == imag == 0 and name == "sign"  # of which the standard gives no mirror image
        assert same(actual.real, real) or abs(actual.real - real) <= eps * abs(real)
        free = zero or str(z) in {str(each) for at, each in SIGN_IS_FREE if at == name}
        if imag == 0 and free:
            assert actual.imag == 0
        else:
            assert same(actual.imag, imag) or abs(actual.imag - imag) <= eps * abs(imag)


@pytest.mark.parametrize("name", ["tanh", "tan"])
@pytest.mark.parametrize("dtype", COMPLEXES)
def test_tanh_and_tan_are_odd(name, dtype):
    parts = [0.0, -0.0, 1.0, 2.0, -2.0, inf, -inf]
    for z in (complex(a, b) for a in parts for b in parts):
        result, negated = apply(name, z, dtype), apply(name, -z, dtype)
        assert same(result.real, -negated.real)
        assert same(result.imag, -negated.imag)


@pytest.mark.parametrize(("name", "function"), [("tanh", cmath.tanh), ("tan", cmath.tan)])
def test_finite_complex_values_are_those_of_cmath(name, function):
    for z in (0.3 + 2j, -1.5 - 0.2j, 1e-9 + 3j):
        assert abs(apply(name, z, np.complex128) - function(z)) <= 1e-15 * abs(function(z))
    assert abs(apply("expm1", 0.3 + 2j, np.complex128) - (cmath.exp(0.3 + 2j) - 1)) < 1e-15
    tiny = apply("expm1", 1e-12 + 1e-12j, np.complex128)
    assert abs(tiny - (1e-12 + 1e-12j + 1e-24j)) < 1e-27


def test_no_axes_give_an_array_of_no_axes():
    for name in ("expm1", "tanh", "tan", "sign", "imag", "real"):
        for dtype in (np.float32, np.complex64):
            result = getattr(xp, name)(xp.asarray(0.5, dtype=dtype))
            assert type(result) is xp.Array
            assert result.shape == ()


def test_functions_leave_their_argument_as_it_was():
    z = xp.asarray([complex(-0.0, 0.0), complex(3, 4)])
    before = np.array(z)
    for name in ("expm1", "tanh", "tan", "sign"):
        apply(name, complex(-0.0, 0.0), np.complex128)
        getattr(xp, name)(z)
        assert np.asarray(z).tobytes() == before.tobytes()


# Of x1 // x2; floor of the IEEE quotient.
FLOOR_DIVIDE = [
    (inf, 3.0, inf),
    (inf, -3.0, -inf),
    (-inf, 3.0, -inf),
    (-inf, -3.0, inf),
    (inf, 0.0, inf),
    (inf, -0.0, -inf),
    (3.0, inf, 0.0),
    (3.0, -inf, -0.0),
    (-3.0, inf, -0.0),
    (-3.0, -inf, 0.0),
    (0.0, -inf, -0.0),
    (inf, inf, nan),
    (inf, -inf, nan),
    (nan, inf, nan),
    (inf, nan, nan),
    (7.0, 2.0, 3.0),
    (-7.0, 2.0, -4.0),
    (1.0, 0.0, inf),
    (-1.0, 0.0, -inf),
    (0.0, 0.0, nan),
    (-0.0, 2.0, -0.0),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [*REALS, np.float16])
@pytest.mark.parametrize(("a", "b", "expected"), FLOOR_DIVIDE)
def test_floor_divide_is_the_floor_of_the_quotient(a, b, expected, dtype):
    x, y = xp.asarray([a, 9.0], dtype=dtype), xp.asarray([b, 4.0], dtype=dtype)
    for result in (xp.floor_divide(x, y), xp.floor_divide(x, b), xp.floor_divide(a, y)):
        assert result.dtype == dtype
        assert same(float(result[0]), expected)
    assert float(xp.floor_divide(x, y)[1]) == 2.0
    assert same(float(xp.floor_divide(x[0], y[0])), expected)


def test_floor_divide_writes_to_out_only_what_its_dtype_takes():
    from ggarray import _special_cases as special_cases

    out = np.array([inf, 7.0], np.float32)
    assert special_cases.floor_divide(out, np.array(2.0), out=out) is out
    np.testing.assert_array_equal(out, [inf, 3.0])
    with pytest.raises(TypeError):
        special_cases.floor_divide(np.array([1, 2]), inf, out=np.array([1, 2]))


def test_floor_divide_of_finite_operands_by_infinity_does_not_warn():
    xp.floor_divide(xp.asarray([inf, 1.0]), xp.asarray([3.0, -inf]))


def test_floor_divide_of_integers_is_that_of_python():
    values = [-7, -1, 0, 5, 127]
    for divisor in (-3, 2, 5):
        result = xp.floor_divide(xp.asarray(values, dtype=np.int8), divisor)
        assert result.dtype == np.int8
        assert [int(each) for each in result] == [value // divisor for value in values]


def test_imaginary_part_of_real_elements_is_zeros_that_can_be_written():
    x = xp.asarray([1.0, 2.0])
    part = xp.imag(x)
    part[0] = 5.0
    np.testing.assert_array_equal(np.asarray(part), [5.0, 0.0])
    np.testing.assert_array_equal(np.asarray(x), [1.0, 2.0])
