"""Operators in every form, and conversions to Python's scalars.

What the operations give is in the tables of `test_elementwise`; special cases of the operators are
in `test_special_cases`, and ``@`` is in `test_products`.
"""

import math
import operator
from math import inf, nan

import numpy as np
import pytest
from hypothesis import strategies as st

import ggarray as xp
from conformance.standard.references import (
    COMPLEXES,
    EXTENDED,
    INTEGERS,
    LAYOUTS,
    REALS,
    arrays,
    check,
    elements,
    eps_of,
    given,
    kind_of,
    rounded,
    several,
    to_array,
    values,
    wide,
)
from conformance.standard.test_elementwise import BINARY, UNARY, expect, partners, promoted

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# A method without underscores, its function of two operands, and the function of the namespace.
BOTH = {
    "add": (operator.add, "add"),
    "sub": (operator.sub, "subtract"),
    "mul": (operator.mul, "multiply"),
    "truediv": (operator.truediv, "divide"),
    "and": (operator.and_, "bitwise_and"),
    "or": (operator.or_, "bitwise_or"),
    "xor": (operator.xor, "bitwise_xor"),
}
COMPARISONS = {
    "eq": (operator.eq, "equal"),
    "ne": (operator.ne, "not_equal"),
    "lt": (operator.lt, "less"),
    "le": (operator.le, "less_equal"),
    "gt": (operator.gt, "greater"),
    "ge": (operator.ge, "greater_equal"),
}
# These take operands of their own.
OTHERS = {
    "floordiv": (operator.floordiv, "floor_divide"),
    "mod": (operator.mod, "remainder"),
    "pow": (operator.pow, "pow"),
    "lshift": (operator.lshift, "bitwise_left_shift"),
    "rshift": (operator.rshift, "bitwise_right_shift"),
}
ONE = {
    "abs": (operator.abs, "abs"),
    "neg": (operator.neg, "negative"),
    "pos": (operator.pos, "positive"),
    "invert": (operator.invert, "bitwise_invert"),
}
CONVERSIONS = ("bool", "complex", "float", "index", "int")
COVERS = [f"Array.__{form}{name}__" for name in BOTH | OTHERS for form in ("", "r", "i")]
COVERS += [f"Array.__{name}__" for name in [*COMPARISONS, *ONE, *CONVERSIONS]]

ARITHMETIC = BOTH | OTHERS


def in_place(name):
    return getattr(operator, f"i{name}")


def cases(table, rows=BINARY):
    return [
        pytest.param(name, dtype, id=f"{name}-{dtype}")
        for name, (_, function) in table.items()
        for dtype in EXTENDED
        if kind_of(dtype) in rows[function].kinds
    ]


@pytest.mark.parametrize(("name", "dtype"), cases(ONE, UNARY))
@given(data=st.data())
def test_operators_of_one_array(name, dtype, data):
    operate, function = ONE[name]
    row = UNARY[function]
    x, v = data.draw(arrays(dtype))
    expected, tolerances = expect(row, row.reference(wide(v)), dtype)
    check(operate(x), expected, **tolerances)
    check(x, v)


@pytest.mark.parametrize(("name", "dtype"), cases(BOTH | COMPARISONS))
@given(data=st.data(), examples=10)
def test_operators_of_two_arrays(name, dtype, data):
    operate, function = (BOTH | COMPARISONS)[name]
    row = BINARY[function]
    other = data.draw(st.sampled_from(partners(dtype, row.kinds)))
    (x, v), (y, w) = data.draw(several(dtype, other, low=row.low, high=row.high))
    common = promoted(dtype, other)
    a, b = np.broadcast_arrays(wide(v.astype(common)), wide(w.astype(common)))
    expected, tolerances = expect(row, row.reference(a, b), common)
    check(operate(x, y), expected, **tolerances)
    # NumPy's arrays are operands too, on either side
    check(operate(x, w), expected, **tolerances)
    check(operate(v, y), expected, **tolerances)


@pytest.mark.parametrize(("name", "dtype"), cases(BOTH | COMPARISONS))
@given(data=st.data(), examples=10)
def test_operators_of_an_array_and_a_scalar(name, dtype, data):
    operate, function = (BOTH | COMPARISONS)[name]
    row = BINARY[function]
    x, v = data.draw(arrays(dtype, low=row.low, high=row.high))
    scalar = data.draw(elements(dtype, low=row.low, high=row.high))
    w = np.full(v.shape, rounded(scalar, dtype) if kind_of(dtype) in "fc" else scalar, dtype)
    expected, tolerances = expect(row, row.reference(wide(v), wide(w)), dtype)
    check(operate(x, scalar), expected, **tolerances)
    check(operate(x, rounded(scalar, dtype)[()]), expected, **tolerances)  # of NumPy
    expected, tolerances = expect(row, row.reference(wide(w), wide(v)), dtype)
    check(operate(scalar, x), expected, **tolerances)
    check(operate(rounded(scalar, dtype)[()], x), expected, **tolerances)


@pytest.mark.parametrize(("name", "dtype"), cases(BOTH))
@given(data=st.data(), examples=10)
def test_operators_in_place(name, dtype, data):
    function = BOTH[name][1]
    row = BINARY[function]
    v = data.draw(values(dtype, low=row.low, high=row.high))
    y, w = data.draw(arrays(dtype, v.shape[1:], low=row.low, high=row.high))
    a, b = np.broadcast_arrays(wide(v), wide(w))
    if a.shape != v.shape:  # of no axes: the other one is too
        a = b = wide(v)
    expected, tolerances = expect(row, row.reference(a, b), dtype)
    layouts = [each for each in LAYOUTS if each != "broadcast"]  # which is read-only
    for other in (y, w, *(w[()] for _ in range(w.ndim == 0))):
        x = whole = to_array(v, data.draw(st.sampled_from(layouts)))
        part = x[...]
        x = in_place(name)(x, other)
        assert x is whole
        check(x, expected, **tolerances)
        check(part, expected, **tolerances)  # views see it


# -- operators whose second operand has a domain of its own --------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", OTHERS)
@given(data=st.data(), examples=10)
def test_other_operators_of_integers(name, dtype, data):
    operate, function = OTHERS[name]
    x, v = data.draw(arrays(dtype, low=0, high=9))
    bits = 8 * dtype.itemsize
    y, w = data.draw(arrays(dtype, v.shape, low=1, high=min(bits - 1, 9)))
    expected = np.array(operate(wide(v), wide(w)) % 2**bits, np.uint64).astype(dtype)
    for result in (operate(x, y), operate(x, w), operate(v, y), getattr(xp, function)(x, y)):
        check(result, expected)
    changed = whole = to_array(v)
    changed = in_place(name)(changed, y)
    assert changed is whole
    check(changed, expected)
    check(operate(x, 3), np.array(operate(wide(v), 3) % 2**bits, np.uint64).astype(dtype))
    check(operate(3, y), np.array(operate(3, wide(w)) % 2**bits, np.uint64).astype(dtype))
    changed = in_place(name)(to_array(v), 3)
    check(changed, np.array(operate(wide(v), 3) % 2**bits, np.uint64).astype(dtype))


@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("name", ["floordiv", "mod", "pow"])
@given(data=st.data())
def test_other_operators_of_floats(name, dtype, data):
    # small integers and their halves: quotients and powers are exact
    operate = OTHERS[name][0]
    halves = values(np.int8, low=1, high=16).map(lambda v: (v / 2).astype(dtype))
    v = data.draw(halves)
    x = to_array(v, data.draw(st.sampled_from(list(LAYOUTS))))
    w = np.full(v.shape, data.draw(st.sampled_from([1.0, 2.0, 3.0])), dtype)
    expected = operate(v.astype(np.float64), w.astype(np.float64)).astype(dtype)
    changed = in_place(name)(to_array(v), to_array(w))
    for result in (operate(x, to_array(w)), operate(x, w), operate(v, to_array(w)), changed):
        check(result, expected)
    check(operate(x, 2.0), operate(v.astype(np.float64), 2.0).astype(dtype))
    check(operate(2.0, x), operate(2.0, v.astype(np.float64)).astype(dtype), rtol=4 * eps_of(dtype))


# -- kinds --------------------------------------------------------------------------------------

RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
# A scalar of each kind, in Python and in NumPy.
SCALARS = [(True, 0), (1, 1), (1.5, 2), (1.5 + 1j, 3), (np.float32(1.5), 2), (np.complex64(1j), 3)]


@pytest.mark.parametrize("layout", ["plain", "pending"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "pow"])
@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
def test_in_place_operators_do_not_change_the_kind(dtype, name, layout):
    v = np.array([1, 0, 1]).astype(dtype)
    others = [np.ones(3, other) for other in EXTENDED]
    operands = [(to_array(w), RANKS[kind_of(w.dtype)]) for w in others]
    for other, rank in operands + [each for each in SCALARS if each[1] > 1]:
        if rank <= RANKS[kind_of(dtype)]:
            continue
        x = whole = to_array(v, layout)
        with pytest.raises(TypeError):
            x = in_place(name)(x, other)
        assert x is whole
        check(x, v)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_true_division_in_place_of_integers_raises(dtype):
    x = to_array(np.array([4, 2], dtype))
    with pytest.raises(TypeError):
        x /= 2
    check(x, np.array([4, 2], dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "floordiv", "mod", "pow", "and", "or", "xor"]
)
def test_scalars_out_of_range_overflow_in_every_form(name, dtype):
    v = np.array([1, 2, 3], dtype)
    operate, ends = ARITHMETIC[name][0], np.iinfo(dtype)
    for layout in ("plain", "pending"):
        for scalar in (int(ends.min) - 1, int(ends.max) + 1, 2**70):
            x = to_array(v, layout)
            for form in (operate, in_place(name), lambda a, b: operate(b, a)):
                with pytest.raises(OverflowError):
                    form(x, scalar)
            check(x, v)


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
def test_the_dtypes_of_results_with_scalars(dtype):
    rank = RANKS[kind_of(dtype)]
    for scalar, scalar_rank in SCALARS[:4]:
        if kind_of(dtype) == "b" or scalar_rank > rank:
            continue
        x = xp.ones(2, dtype=dtype)
        assert (x * scalar).dtype == dtype
        assert (scalar * x).dtype == dtype
    if kind_of(dtype) == "f":
        wider = np.complex128 if dtype == np.float64 else np.complex64
        assert (xp.ones(2, dtype=dtype) * 1j).dtype == wider


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("other", [None, [1, 2], object()], ids=["None", "list", "object"])
def test_operands_of_other_types_raise(name, other):
    x = xp.asarray([1, 2])
    for form in (ARITHMETIC[name][0], in_place(name)):
        with pytest.raises(TypeError):
            form(x, other)
    with pytest.raises(TypeError):
        ARITHMETIC[name][0](other, x)


@pytest.mark.parametrize("name", BOTH)
def test_in_place_operators_do_not_change_the_shape(name):
    dtype = np.bool_ if name in ("and", "or", "xor") else np.float64
    for shape, other in (((3,), (2, 3)), ((1, 3), (2, 1)), ((), (1,)), ((2, 1), (2, 2))):
        x = to_array(np.ones(shape, dtype))
        with pytest.raises(ValueError, match="broadcast"):
            in_place(name)(x, to_array(np.ones(other, dtype)))
        check(x, np.ones(shape, dtype))


# -- conversions --------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data(), examples=10)
def test_conversions_to_scalars(dtype, layout, data):
    v = data.draw(values(dtype, (), finite=True))
    x, exact = to_array(v, layout), wide(v)[()]
    assert bool(x) is bool(exact)
    kind = kind_of(dtype)
    if kind != "c":
        assert float(x) == float(exact)
        assert int(x) == int(exact)
        assert type(int(x)) is int
    if kind in "iu":
        assert operator.index(x) == int(exact)
    assert complex(x) == complex(exact)
    assert type(complex(x)) is complex


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_conversions_of_special_floats(dtype):
    def x(value):
        return xp.asarray(value, dtype=dtype)

    assert bool(x(nan)) is bool(x(inf)) is bool(x(-inf)) is True
    assert bool(x(0.0)) is bool(x(-0.0)) is False
    assert complex(x(inf)) == complex(inf, 0)
    assert complex(x(-inf)) == complex(-inf, 0)
    assert math.isnan(complex(x(nan)).real)
    assert math.copysign(1, float(x(-0.0))) == -1
    assert int(x(-0.0)) == 0
    assert int(x(-1.75)) == -1
    with pytest.raises(OverflowError):
        int(x(inf))
    with pytest.raises(ValueError, match="NaN"):
        int(x(nan))


@pytest.mark.parametrize("dtype", COMPLEXES, ids=str)
def test_a_complex_number_is_true_if_a_part_is(dtype):
    for z in (complex(0, nan), complex(nan, 0), 1j, 1 + 0j):
        assert bool(xp.asarray(z, dtype=dtype)) is True
    assert bool(xp.asarray(complex(-0.0, 0.0), dtype=dtype)) is False
    for convert in (int, float):
        with pytest.raises(TypeError):
            convert(xp.asarray(1j, dtype=dtype))
