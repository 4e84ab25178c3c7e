"""Elementwise functions against Python's math and cmath."""

import cmath
import inspect
import math
import operator
from math import inf, nan

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, zeros_q8_0

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
HALVES = [np.dtype(np.float16), bfloat16]
WIDE = [-2.75, -1.0, -0.3, 0.0, 0.4, 1.0, 2.5, 3.75]
UNIT = [-0.9, -0.25, 0.0, 0.5, 0.99]
POSITIVE = [0.2, 1.0, 2.0, 30.5]

# A function of a float, or two for one of a complex number, and arguments.
UNARY = {
    "abs": (abs, abs, WIDE),
    "acos": (math.acos, cmath.acos, UNIT),
    "acosh": (math.acosh, cmath.acosh, [1.0, 1.5, 20.0]),
    "asin": (math.asin, cmath.asin, UNIT),
    "asinh": (math.asinh, cmath.asinh, WIDE),
    "atan": (math.atan, cmath.atan, WIDE),
    "atanh": (math.atanh, cmath.atanh, UNIT),
    "ceil": (lambda x: float(math.ceil(x)), None, WIDE),
    "conj": (lambda x: x, lambda z: z.conjugate(), WIDE),
    "cos": (math.cos, cmath.cos, WIDE),
    "cosh": (math.cosh, cmath.cosh, WIDE),
    "exp": (math.exp, cmath.exp, WIDE),
    "expm1": (math.expm1, lambda z: cmath.exp(z) - 1, WIDE),
    "floor": (lambda x: float(math.floor(x)), None, WIDE),
    "imag": (lambda x: 0.0, lambda z: z.imag, WIDE),
    "log": (math.log, cmath.log, POSITIVE),
    "log10": (math.log10, cmath.log10, POSITIVE),
    "log1p": (math.log1p, lambda z: cmath.log(1 + z), POSITIVE),
    "log2": (math.log2, lambda z: cmath.log(z) / math.log(2), POSITIVE),
    "negative": (operator.neg, operator.neg, WIDE),
    "positive": (operator.pos, operator.pos, WIDE),
    "real": (lambda x: x, lambda z: z.real, WIDE),
    "reciprocal": (lambda x: 1 / x, lambda z: 1 / z, POSITIVE),
    "round": (lambda x: float(round(x)), None, [*WIDE, 0.5, 1.5, -0.5]),
    "sign": (lambda x: float((x > 0) - (x < 0)), lambda z: z / abs(z), WIDE),
    "sin": (math.sin, cmath.sin, WIDE),
    "sinh": (math.sinh, cmath.sinh, WIDE),
    "sqrt": (math.sqrt, cmath.sqrt, POSITIVE),
    "square": (lambda x: x * x, lambda z: z * z, WIDE),
    "tan": (math.tan, cmath.tan, WIDE),
    "tanh": (math.tanh, cmath.tanh, WIDE),
    "trunc": (lambda x: float(math.trunc(x)), None, WIDE),
}
TESTS = {
    "isfinite": math.isfinite,
    "isinf": math.isinf,
    "isnan": math.isnan,
    "logical_not": operator.not_,
    "signbit": lambda x: math.copysign(1, x) < 0,
}
ARITHMETIC = {
    "add": operator.add,
    "atan2": math.atan2,
    "copysign": math.copysign,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "hypot": math.hypot,
    "logaddexp": lambda a, b: math.log(math.exp(a) + math.exp(b)),
    "maximum": max,
    "minimum": min,
    "multiply": operator.mul,
    "nextafter": math.nextafter,
    "pow": lambda a, b: abs(a) ** b,
    "remainder": operator.mod,
    "subtract": operator.sub,
}
COMPARISONS = {
    "equal": operator.eq,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "less": operator.lt,
    "less_equal": operator.le,
    "not_equal": operator.ne,
}
LOGICAL = {
    "logical_and": lambda a, b: bool(a and b),
    "logical_or": lambda a, b: bool(a or b),
    "logical_xor": lambda a, b: bool(a) != bool(b),
}
BITS = {
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": lambda a, b: a << b,
    "bitwise_right_shift": lambda a, b: a >> b,
}


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, *HALVES], ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_real_functions_are_those_of_math(name, dtype):
    function, _, arguments = UNARY[name]
    x = np.array(arguments, dtype)
    expected = [function(float(each)) for each in x]
    eps = 4 * xp.finfo(dtype).eps
    check(getattr(xp, name)(on_cpu(x)), np.array(expected, dtype), dtype, eps, eps)


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("name", [name for name, row in UNARY.items() if row[1] is not None])
def test_complex_functions_are_those_of_cmath(name, dtype):
    function = UNARY[name][1]
    x = np.array([0.3 + 0.4j, -1.5 + 2j, 0.25 - 3j, 2.0 + 0.1j], dtype)
    expected = np.array([function(complex(each)) for each in x])
    eps = xp.finfo(dtype).eps
    result_dtype = dtype if expected.dtype.kind == "c" else x.real.dtype
    check(getattr(xp, name)(on_cpu(x)), expected.astype(result_dtype), result_dtype, 8 * eps, eps)


@pytest.mark.parametrize("name", ["ceil", "floor", "round", "trunc"])
def test_integers_are_whole_already(name):
    for dtype in (np.int8, np.int64, np.uint64):
        x = numbers((5,), dtype)
        check(getattr(xp, name)(on_cpu(x)), x)


def test_parts_of_complex_numbers_are_rounded_on_their_own():
    check(xp.round(on_cpu([1.5 + 2.5j, -0.6 - 1.2j])), [2 + 2j, -1 - 1j])


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, *HALVES], ids=str)
def test_tests_of_elements(name, dtype):
    arguments = [inf, -inf, nan, 0.0, -0.0, 1.5, -2.0]
    expected = [bool(TESTS[name](each)) for each in arguments]
    check(getattr(xp, name)(on_cpu(arguments, dtype)), expected, np.bool_)


@pytest.mark.parametrize("name", ["isfinite", "isinf", "isnan"])
def test_tests_of_complex_elements_look_at_both_parts(name):
    arguments = [complex(1, inf), complex(nan, 1), complex(inf, nan), 1 + 2j]
    expected = [getattr(cmath, name)(each) for each in arguments]
    check(getattr(xp, name)(on_cpu(arguments)), expected, np.bool_)


@pytest.mark.parametrize("name", ARITHMETIC | COMPARISONS | LOGICAL)
def test_functions_of_two_floats_are_those_of_python(name):
    function = (ARITHMETIC | COMPARISONS | LOGICAL)[name]
    a = [abs(each) for each in WIDE] if name == "pow" else WIDE
    b = [1.5, -0.4, 2.0, 3.0, 0.4, -2.0, 0.5, -3.75]
    expected = [function(x, y) for x, y in zip(a, b, strict=True)]
    dtype = np.float64 if name in ARITHMETIC else np.bool_
    elementwise = getattr(xp, name)
    check(elementwise(on_cpu(a), on_cpu(b)), expected, dtype, 1e-15, 1e-15)
    check(elementwise(on_cpu(a), 1.5), [function(x, 1.5) for x in a], dtype, 1e-15, 1e-15)
    check(elementwise(1.5, on_cpu(b)), [function(1.5, y) for y in b], dtype, 1e-15, 1e-15)


@pytest.mark.parametrize("name", BITS)
def test_bits_of_integers_are_those_of_python(name):
    a, b = [-7, 0, 5, 50], [3, 1, 2, 0]
    for dtype in (np.int8, np.int32, np.int64):
        expected = [BITS[name](x, y) for x, y in zip(a, b, strict=True)]
        check(getattr(xp, name)(on_cpu(a, dtype), on_cpu(b, dtype)), expected, dtype)
        check(getattr(xp, name)(on_cpu(a, dtype), 1), [BITS[name](x, 1) for x in a], dtype)
    check(xp.bitwise_invert(on_cpu(a, np.int16)), [~x for x in a], np.int16)


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", *LOGICAL])
def test_truth_values(name):
    pairs = [(False, False), (False, True), (True, False), (True, True)]
    expected = [(BITS | LOGICAL)[name](*pair) for pair in pairs]
    a, b = np.array(pairs).T
    check(getattr(xp, name)(on_cpu(a), on_cpu(b)), expected, np.bool_)
    check(xp.bitwise_invert(on_cpu(a)), ~a)


def test_integers_wrap_as_those_of_numpy_do():
    check(xp.add(on_cpu([250], np.uint8), on_cpu([10], np.uint8)), [4], np.uint8)
    check(xp.multiply(on_cpu([100], np.int8), 2), [-56], np.int8)
    check(xp.square(on_cpu([2**40])), [2**80 % 2**64], np.int64)


@pytest.mark.parametrize("other", [np.dtype(np.int16), np.dtype(np.float32)], ids=str)
def test_operands_broadcast_and_promote(other):
    a, b = np.array([[1], [2]], np.int8), np.array([3, 4, 5], other)
    dtype = np.int16 if other.kind == "i" else np.float32
    check(xp.add(on_cpu(a), on_cpu(b)), [[4, 5, 6], [5, 6, 7]], dtype)


# A dtype, a Python scalar and the dtype of the sum.
WEAK = [
    (np.int8, 1, np.int8),
    (np.uint64, 1, np.uint64),
    (np.float32, 1, np.float32),
    (np.float32, 1.0, np.float32),
    (np.float32, True, np.float32),
    (np.float32, 1j, np.complex64),
    (np.float16, 1.0, np.float16),
    (bfloat16, 1, bfloat16),
    (bfloat16, 1.0, bfloat16),
    (bfloat16, 1j, np.complex64),
]


@pytest.mark.parametrize(("dtype", "scalar", "expected"), WEAK)
def test_python_scalars_are_weak(dtype, scalar, expected):
    x = on_cpu([1, 2], dtype)
    for sums in (xp.add(x, scalar), xp.add(scalar, x)):
        check(sums, np.array([1 + scalar, 2 + scalar]).astype(expected))
    assert xp.maximum(x, 1).dtype == x.dtype


def test_python_integers_out_of_range_overflow():
    with pytest.raises(OverflowError):
        xp.multiply(on_cpu([1], np.uint8), -1)
    with pytest.raises(OverflowError):
        xp.add(300, on_cpu([1], np.int8))


def test_sums_differences_scalings_and_negatives_of_pending_arrays_wait():
    a, b = numbers((3, 4), np.float64), numbers((4, 5), np.float64, 1)
    c = numbers((3, 5), np.float64, 2)
    product = a @ b
    for result, expected in (
        (xp.add(on_cpu(a) @ on_cpu(b), on_cpu(c)), product + c),
        (xp.subtract(on_cpu(c), on_cpu(a) @ on_cpu(b)), c - product),
        (xp.multiply(on_cpu(a) @ on_cpu(b), 3.0), product * 3),
        (xp.multiply(2, on_cpu(a) @ on_cpu(b)), product * 2),
        (xp.negative(on_cpu(a) @ on_cpu(b)), -product),
    ):
        assert xp.is_pending(result)
        check(result, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ["real", "imag"])
def test_parts_are_views(name):
    x = on_cpu([1 + 2j, 3 + 4j])
    getattr(xp, name)(x)[0] = 9.0
    check(getattr(xp, name)(x), [9.0, 3.0] if name == "real" else [9.0, 4.0])


@pytest.mark.parametrize("name", ["positive", "conj", "round", "ceil", "abs"])
def test_other_results_have_memory_of_their_own(name):
    x = on_cpu([1.0, 2.0])
    getattr(xp, name)(x)[0] = 9.0
    check(x, [1.0, 2.0])


# -- clip -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, np.float64, *HALVES], ids=str)
def test_clip_with_scalars_keeps_the_dtype(dtype):
    x = np.array([0, 1, 4, 7, 9], dtype)
    check(xp.clip(on_cpu(x), 1, 7), [1, 1, 4, 7, 7], dtype)
    check(xp.clip(on_cpu(x), min=4), [4, 4, 4, 7, 9], dtype)
    check(xp.clip(on_cpu(x), max=4), [0, 1, 4, 4, 4], dtype)
    check(xp.clip(on_cpu(x), 4, None), [4, 4, 4, 7, 9], dtype)
    check(xp.clip(on_cpu(x)), x, dtype)


def test_clip_with_arrays_broadcasts():
    x = on_cpu([[1, 5, 9], [2, 6, 10]], np.float32)
    low, high = on_cpu([[2.0], [4.0]]), on_cpu([3, 9, 9])
    check(xp.clip(x, low, high), [[2, 5, 9], [3, 6, 9]], np.float32)
    check(xp.clip(on_cpu(5.0), on_cpu([1, 6]), 9), [5.0, 6.0])


def test_clip_of_integers_with_limits_that_their_dtype_does_not_have():
    x = on_cpu([0, 100, 255], np.uint8)
    check(xp.clip(x, -5, 4550), [0, 100, 255], np.uint8)
    check(xp.clip(x, -(2**70), 2**70), [0, 100, 255], np.uint8)
    check(xp.clip(x, on_cpu([-1, 120, 300]), on_cpu(2**40)), [0, 120, 255], np.uint8)
    big = 2**63 + 1
    check(xp.clip(on_cpu([big, 3], np.uint64), on_cpu([-1, -1]), None), [big, 3], np.uint64)
    check(xp.clip(on_cpu([big, 3], np.uint64), 0, big - 1), [big - 1, 3], np.uint64)
    check(xp.clip(on_cpu([-3, 5], np.int8), on_cpu(0, np.uint64)), [0, 5], np.int8)


def test_clip_of_nan_and_infinity():
    check(xp.clip(on_cpu([nan, -inf, inf, 0.5]), 0, 1), [nan, 0.0, 1.0, 0.5])
    check(xp.clip(on_cpu([1.0, 2.0]), on_cpu([nan, 0.0]), 5.0), [nan, 2.0])
    check(xp.clip(on_cpu([1.0, 2.0], np.float32), -inf, 1e300), [1.0, 2.0], np.float32)


def test_clip_never_gives_its_argument():
    x = on_cpu([1.0, 2.0])
    xp.clip(x)[0] = 9.0
    xp.clip(x, 0, 5)[0] = 9.0
    check(x, [1.0, 2.0])


def test_clip_refuses_limits_of_a_higher_kind():
    for x, limit in ((on_cpu([1]), 0.5), (on_cpu([1.0]), 1j), (on_cpu([1]), on_cpu([0.5]))):
        with pytest.raises(TypeError, match="clip"):
            xp.clip(x, limit)
    with pytest.raises(TypeError, match="clip"):
        xp.clip(on_cpu([1.0]), max="a")


# -- errors and signatures ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*UNARY, *TESTS, "bitwise_invert", "clip"])
def test_one_array_is_wanted(name):
    function = getattr(xp, name)
    for bad in (1.0, [1.0], np.ones(2)):
        with pytest.raises(TypeError, match="Array"):
            function(bad)
    assert function.__name__ == name
    assert function.__doc__
    first = next(iter(inspect.signature(function).parameters.values()))
    assert (first.name, first.kind) == ("x", first.POSITIONAL_ONLY)


@pytest.mark.parametrize("name", UNARY)
def test_quantized_arrays_are_refused(name):
    with pytest.raises(TypeError, match="dequantize"):
        getattr(xp, name)(zeros_q8_0((2, 32)))


@pytest.mark.parametrize("name", ARITHMETIC | COMPARISONS | LOGICAL | BITS)
def test_two_operands_are_wanted_of_which_one_is_an_array(name):
    function = getattr(xp, name)
    for bad in ((1, 2), (on_cpu([1]), None), (on_cpu([1]), [1])):
        with pytest.raises(TypeError):
            function(*bad)
    with pytest.raises(TypeError, match="dequantize"):
        function(zeros_q8_0((2, 32)), on_cpu(1))
    assert function.__name__ == name
    assert [(p.name, p.kind) for p in inspect.signature(function).parameters.values()] == [
        ("x1", inspect.Parameter.POSITIONAL_ONLY),
        ("x2", inspect.Parameter.POSITIONAL_ONLY),
    ]


def test_devices_join_or_do_not():
    x = xp.asarray([1.0], device="cpu")
    assert xp.add(x, xp.asarray([1.0], device="blas")).device == "blas"
    assert xp.floor_divide(x, xp.asarray([1.0], device="blas")).device == "blas"
    assert xp.clip(x, xp.asarray([1.0], device="blas")).device == "blas"
    foreign = xp.asarray([1.0], device="counting")
    for function in (xp.add, xp.floor_divide, xp.clip, xp.equal):
        with pytest.raises(ValueError, match="to_device"):
            function(x, foreign)


def test_bool_has_no_negative():
    with pytest.raises(TypeError):
        xp.negative(on_cpu([True]))
