"""What NumPy's and Python's users expect of an array, row by row, on plain and pending arrays."""

import copy
import json
import math
import operator
import random
import statistics

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, on_cpu, pending, zeros_q8_0

import ggarray as xp

VALUE = numbers((3, 4), np.float64)
SQUARE = numbers((3, 3), np.float64, 1)
NUMBERS = np.array([3.0, -1.5, 2.0])
MAKERS = pytest.mark.parametrize("make", [on_cpu, pending], ids=["plain", "pending"])

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv]
ARITHMETIC += [operator.mod, operator.pow]
BITWISE = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv]
IN_PLACE += [operator.imod, operator.ipow]
UFUNCS = [np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.power]
UFUNCS += [np.maximum, np.minimum, np.hypot, np.arctan2, np.copysign, np.fmod, np.logaddexp]
UFUNCS += [np.equal, np.less, np.greater_equal, np.logical_and, np.logical_xor]


def named(functions):
    return pytest.mark.parametrize("function", functions, ids=lambda each: each.__name__)


def scalars(make, values=NUMBERS):
    """The elements of a vector as arrays of no axes: products that wait, or plain ones."""
    if make is on_cpu:
        return [on_cpu(each) for each in values]
    one = on_cpu(np.ones(1))
    waiting = [xp.vecdot(one, on_cpu([each])) for each in values]
    assert all(map(xp.is_pending, waiting))
    return waiting


# -- with NumPy's arrays ------------------------------------------------------------------------


@MAKERS
@named([*ARITHMETIC, *COMPARISONS, *UFUNCS])
@pytest.mark.parametrize("dtype", [np.float32, np.int32], ids=["float32", "int32"])
def test_operators_and_ufuncs_with_ndarrays_are_symmetric(function, make, dtype):
    mine = np.abs(VALUE) + 0.5
    theirs = (np.abs(VALUE[::-1]) * 3 + 1).astype(dtype)
    check(function(make(mine), theirs), function(mine, theirs))
    check(function(theirs, make(mine)), function(theirs, mine))
    check(function(make(mine), make(mine)), function(mine, mine))
    check(function(make(mine), theirs[0]), function(mine, theirs[0]))
    check(function(theirs[0, 0], make(mine)), function(theirs[0, 0], mine))


@named([*BITWISE, np.bitwise_and, np.left_shift, np.gcd])
def test_operators_of_integers_with_ndarrays_are_symmetric(function):
    mine, theirs = numbers((3, 4), np.uint8) % 5, numbers((3, 4), np.int16, 1) % 5
    check(function(on_cpu(mine), theirs), function(mine, theirs))
    check(function(theirs, on_cpu(mine)), function(theirs, mine))
    check(function(on_cpu(mine), 3), function(mine, 3))
    check(function(2, on_cpu(mine)), function(2, mine))


@pytest.mark.parametrize("where", ["cpu", "blas", "counting"])
def test_results_with_ndarrays_are_on_the_device(where):
    x = xp.asarray(SQUARE, device=where)
    for result in (
        x + SQUARE,
        SQUARE + x,
        x @ SQUARE,
        SQUARE @ x,
        np.add(SQUARE, x),
        np.less(SQUARE, x),
    ):
        assert (type(result), result.device) == (xp.Array, where)


@MAKERS
@pytest.mark.parametrize(
    "product", [operator.matmul, np.matmul, np.dot], ids=["@", "matmul", "dot"]
)
def test_products_with_ndarrays_are_recorded_in_both_orders(make, product):
    for result in (product(make(VALUE), SQUARE[[0, 1, 2, 0]]), product(VALUE.T, make(SQUARE))):
        assert xp.is_pending(result)
    check(product(make(VALUE), VALUE.T), VALUE @ VALUE.T, rtol=1e-14, atol=1e-14)
    check(product(VALUE.T, make(VALUE)), VALUE.T @ VALUE, rtol=1e-14, atol=1e-14)


@MAKERS
@named([*IN_PLACE, operator.imatmul])
def test_in_place_operators_keep_the_left_side(function, make):
    left, right = np.abs(SQUARE) + 1, np.abs(SQUARE[::-1]) + 0.5
    expected = function(left.copy(), right)
    mine = on_cpu(left)
    for other in (right, make(right)):
        mine = on_cpu(left)
        assert function(mine, other) is mine
        check(mine, expected, rtol=1e-14)
    theirs = left.copy()
    assert function(theirs, make(right)) is theirs
    np.testing.assert_allclose(theirs, expected, 1e-14)


class Measured(np.ndarray):
    """A subclass that answers for ufuncs itself, as arrays with units do."""

    def __array_ufunc__(self, *args, **kwargs):
        return "theirs"


@named([*ARITHMETIC, *COMPARISONS, operator.matmul, *UFUNCS])
def test_subclasses_that_answer_themselves_do_so_in_both_orders(function):
    x, other = on_cpu(SQUARE), SQUARE.view(Measured)
    assert function(x, other) == function(other, x) == "theirs"


@named([*ARITHMETIC, *COMPARISONS, np.add, np.hypot])
def test_masks_stay_in_both_orders(function):
    mine, masked = np.abs(SQUARE), np.ma.array(np.abs(SQUARE.T), mask=SQUARE > 0)
    for operands in ((on_cpu(mine), masked), (masked, on_cpu(mine))):
        result = function(*operands)
        expected = function(*(mine if type(each) is xp.Array else each for each in operands))
        assert type(result) is np.ma.MaskedArray
        np.testing.assert_array_equal(result.mask, expected.mask)
        np.testing.assert_allclose(result.compressed(), expected.compressed())


@pytest.mark.parametrize(
    "other",
    [
        np.ones(3, np.longdouble),
        np.longdouble(2),
        np.array([1.5, 2, 3], object),
        np.timedelta64(1, "s"),
    ],
    ids=["longdouble", "longdouble scalar", "object", "timedelta64"],
)
@pytest.mark.parametrize("multiply", [operator.mul, np.multiply])
def test_dtypes_of_numpy_alone_raise_in_both_orders(multiply, other):
    x = on_cpu(np.ones(3, np.int64))
    for operands in ((x, other), (other, x)):
        with pytest.raises(TypeError, match="ggarray has no"):
            multiply(*operands)


@MAKERS
def test_ndarrays_take_arrays_as_indexes_and_as_values(make):
    theirs = VALUE.copy()
    np.testing.assert_array_equal(theirs[on_cpu([2, 0])], VALUE[[2, 0]])
    np.testing.assert_array_equal(theirs[on_cpu(VALUE > 0)], VALUE[VALUE > 0])
    np.testing.assert_array_equal(theirs[on_cpu(1)], VALUE[1])
    theirs[...] = make(VALUE * 2)
    np.testing.assert_array_equal(theirs, VALUE * 2)
    theirs[0, 0] = scalars(make)[0]
    assert theirs[0, 0] == NUMBERS[0]


@MAKERS
def test_conversion_to_ndarrays(make):
    given = np.asarray(make(VALUE))
    assert type(given) is np.ndarray
    np.testing.assert_array_equal(given, VALUE)
    assert np.asarray(make(VALUE), dtype=np.float32).dtype == np.float32
    np.testing.assert_array_equal(np.array([make(VALUE), make(VALUE)]), np.array([VALUE, VALUE]))
    assert np.array(scalars(make)).tolist() == NUMBERS.tolist()
    np.testing.assert_array_equal(np.from_dlpack(make(VALUE)), VALUE)


@MAKERS
def test_assertions_of_numpy(make):
    np.testing.assert_allclose(make(VALUE), VALUE)
    np.testing.assert_array_equal(VALUE, make(VALUE), strict=False)
    np.testing.assert_array_almost_equal_nulp(make(VALUE), VALUE)
    np.testing.assert_array_less(make(VALUE), VALUE + 1)
    assert np.array_equal(make(VALUE), VALUE)
    assert np.allclose(VALUE, make(VALUE))
    with pytest.raises(AssertionError, match="Mismatched"):
        np.testing.assert_allclose(make(VALUE), VALUE + 1)
    with pytest.raises(AssertionError, match="Mismatched"):
        np.testing.assert_array_equal(make(VALUE), VALUE + 1)


@MAKERS
def test_what_numpy_asks_of_an_array(make):
    assert (np.ndim(make(VALUE)), np.shape(make(VALUE)), np.size(make(VALUE))) == (2, (3, 4), 12)
    assert not np.isscalar(scalars(make)[0])
    assert np.iterable(make(VALUE))
    assert not np.iscomplexobj(make(VALUE))
    assert np.isrealobj(make(VALUE))
    assert np.result_type(make(VALUE), np.float32) == np.float64
    x = make(VALUE)
    assert np.shares_memory(x, x[1:])


# -- numbers of Python --------------------------------------------------------------------------


@MAKERS
def test_numbers(make):
    for x, value in zip(scalars(make), NUMBERS.tolist(), strict=True):
        assert (float(x), int(x), complex(x), bool(x)) == (value, int(value), value, True)
        assert (math.floor(x), math.ceil(x)) == (math.floor(value), math.ceil(value))
    assert math.sqrt(scalars(make)[0]) == math.sqrt(3.0)
    assert math.fsum(scalars(make)) == math.fsum(NUMBERS)
    assert not bool(on_cpu(0.0))
    assert complex(on_cpu(1 + 2j)) == 1 + 2j


@pytest.mark.parametrize("convert", [float, int, complex, operator.index, round, math.sqrt])
def test_arrays_with_axes_are_no_numbers(convert):
    for x in (on_cpu([1]), on_cpu([1, 2])):
        with pytest.raises(TypeError):
            convert(x)


def test_whole_numbers_index_and_count():
    x = on_cpu(2)
    assert operator.index(x) == 2
    assert (list(range(5))[x], "abcd"[: int(x)], "abcd"[:x]) == (2, "ab", "ab")
    assert list(range(x)) == [0, 1]
    assert (hex(x), bin(x), chr(on_cpu(65)), math.factorial(on_cpu(5))) == ("0x2", "0b10", "A", 120)
    with pytest.raises(TypeError):
        operator.index(on_cpu(2.0))


@MAKERS
def test_rounding(make):
    x = scalars(make, np.array([2.718281828, -1.5]))
    assert round(x[0], 2) == 2.72
    assert (round(x[0]), round(x[1])) == (3, -2)
    assert type(round(x[0])) is int
    assert type(round(x[0], 1)) is float
    with pytest.raises(TypeError, match="method round"):
        round(make(VALUE))


@MAKERS
def test_division_with_remainder(make):
    for numerator, denominator in ((make(VALUE), 0.7), (0.7, make(VALUE)), (make(VALUE), VALUE[0])):
        quotient, remainder = divmod(numerator, denominator)
        plain = [np.asarray(each) for each in (numerator, denominator)]
        check(quotient, np.floor_divide(*plain))
        check(remainder, np.remainder(*plain))
    with pytest.raises(TypeError):
        divmod(make(VALUE), "a")


@MAKERS
def test_formatting_of_numbers(make):
    three, minus, _ = scalars(make)
    assert f"{three:.2f} {minus:+.1e} {three:8.3f}|{minus}" == "3.00 -1.5e+00    3.000|-1.5"
    assert ("%.1f %d" % (three, three), "{:g}".format(minus)) == ("3.0 3", "-1.5")  # noqa: UP031, UP032
    assert f"{on_cpu(7):>4d}|{on_cpu(255):x}" == "   7|ff"
    assert f"{on_cpu(1 + 2j):.1f}" == "1.0+2.0j"
    assert f"{on_cpu(True)}" == "True"
    assert f"{on_cpu(1.5, ml_dtypes.bfloat16):.2f}" == "1.50"
    with pytest.raises(TypeError, match="unsupported format string"):
        format(make(VALUE), ".2f")


@MAKERS
def test_text(make):
    assert str(make(VALUE)) == f"{make(VALUE)}" == str(VALUE)
    assert str(scalars(make)[1]) == "-1.5"
    assert repr(scalars(make)[1]) == "Array(-1.5, dtype=float64, device='cpu')"
    q = zeros_q8_0((2, 32))
    assert str(q) == f"{q}" == repr(q) == "Array(shape=(2, 32), dtype=q8_0, device='cpu')"


@MAKERS
def test_statistics_and_json(make):
    assert statistics.fmean(make(SQUARE)[0]) == statistics.fmean(SQUARE[0])
    assert statistics.median(scalars(make)) == statistics.median(NUMBERS)
    assert json.dumps([float(x) for x in scalars(make)]) == "[3.0, -1.5, 2.0]"
    assert json.dumps(make(VALUE).tolist()) == json.dumps(VALUE.tolist())


# -- sequences of Python ------------------------------------------------------------------------


@MAKERS
def test_iteration(make):
    x = make(VALUE)
    assert len(x) == 3
    for row, expected in zip(x, VALUE, strict=True):
        check(row, expected)
    first, *rest = x
    check(first, VALUE[0])
    assert len(rest) == 2
    for row, expected in zip(reversed(make(VALUE)), VALUE[::-1], strict=True):
        check(row, expected)
    for element, expected in zip(make(SQUARE)[0], SQUARE[0], strict=True):
        check(element, expected)
    assert [at for at, _ in enumerate(make(VALUE))] == [0, 1, 2]
    for nothing in (len, list, reversed):
        with pytest.raises(TypeError):
            nothing(scalars(make)[0])


@MAKERS
def test_functions_of_sequences(make):
    check(sum(make(VALUE)), VALUE[0] + VALUE[1] + VALUE[2])
    row = make(SQUARE)[0]
    assert [float(x) for x in sorted(row)] == sorted(SQUARE[0])
    assert (float(max(row)), float(min(row))) == (max(SQUARE[0]), min(SQUARE[0]))
    assert any(x > 1e3 for x in row) is False
    assert all(row < 1e3)
    mine, theirs = on_cpu(np.arange(9)), np.arange(9)
    for sequence in (mine, theirs):
        random.Random(0).shuffle(sequence)
    check(mine, theirs)


@MAKERS
def test_membership(make):
    x = make(VALUE)
    assert VALUE[1, 2] in x
    assert make(VALUE)[1, 2] in x
    assert 9.0 not in x
    assert np.nan not in on_cpu([np.nan])
    for stranger in ("a", None, object()):
        assert stranger not in x


@MAKERS
def test_copies(make):
    for copied in (copy.copy(make(VALUE)), copy.deepcopy(make(VALUE)), make(VALUE).copy()):
        check(copied, VALUE)
    x = make(VALUE)
    nested = copy.deepcopy({"x": [x]})
    x[0] = 0.0
    check(nested["x"][0], VALUE)


def test_arrays_are_no_keys_and_have_no_truth_but_one():
    with pytest.raises(TypeError, match="unhashable"):
        {on_cpu(1)}
    with pytest.raises(ValueError, match="ambiguous"):
        bool(on_cpu([1, 2]))
