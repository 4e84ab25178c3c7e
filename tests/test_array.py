"""Attributes and operators of plain, pending and quantized arrays against NumPy."""

import operator

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, zeros_q8_0

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = [np.int8, np.int64, np.uint8, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]
COMPLEX = [np.complex64, np.complex128]
DTYPES = [np.bool_, *INTEGERS, *FLOATS, bfloat16, *COMPLEX]

ARITHMETIC = [operator.add, operator.sub, operator.mul]
DIVISION = [operator.truediv, operator.floordiv, operator.mod, operator.pow]
BITWISE = [operator.and_, operator.or_, operator.xor]
SHIFTS = [operator.lshift, operator.rshift]
EQUALITY = [operator.eq, operator.ne]
ORDER = [operator.lt, operator.le, operator.gt, operator.ge]

# (operator, dtype) for all that NumPy defines
CASES = [
    *((op, dtype) for op in ARITHMETIC for dtype in DTYPES if dtype is not np.bool_),
    *((op, dtype) for op in DIVISION for dtype in [*INTEGERS, *FLOATS, bfloat16]),
    *((op, dtype) for op in (operator.truediv, operator.pow) for dtype in COMPLEX),
    *((op, dtype) for op in BITWISE for dtype in [np.bool_, *INTEGERS]),
    *((op, dtype) for op in SHIFTS for dtype in INTEGERS),
    *((op, dtype) for op in EQUALITY for dtype in DTYPES),
    *((op, dtype) for op in ORDER for dtype in DTYPES if dtype not in COMPLEX),
]
IN_PLACE = {
    operator.add: operator.iadd,
    operator.sub: operator.isub,
    operator.mul: operator.imul,
    operator.truediv: operator.itruediv,
    operator.floordiv: operator.ifloordiv,
    operator.mod: operator.imod,
    operator.pow: operator.ipow,
    operator.and_: operator.iand,
    operator.or_: operator.ior,
    operator.xor: operator.ixor,
    operator.lshift: operator.ilshift,
    operator.rshift: operator.irshift,
}
OF_INTEGERS = [*ARITHMETIC, *BITWISE, operator.floordiv, operator.mod]
OF_INTEGERS += [IN_PLACE[op] for op in OF_INTEGERS]
IN_PLACE_CASES = [
    (op, dtype)
    for op, dtype in CASES
    if op in IN_PLACE and not (op is operator.truediv and dtype in INTEGERS)
]


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


def pending(value):
    """An array of this value, a matrix, that has not been computed."""
    value = np.asarray(value)
    x = on_cpu(np.eye(len(value)), value.dtype) @ on_cpu(value)
    assert xp.is_pending(x)
    return x


def operands(op, dtype):
    """Two matrices; powers, shifts and divisors are small and positive."""
    a, b = numbers((3, 3), dtype, 1), numbers((3, 3), dtype, 2)
    if op in DIVISION or op in SHIFTS:
        b = np.asarray(np.abs(b) + 1 if np.dtype(dtype).kind != "u" else b + 1).astype(dtype)
    if op in (operator.pow, *SHIFTS):
        a, b = np.abs(a).astype(dtype), (b.real.astype(np.int64) % 3 + 1).astype(dtype)
    return a, b


def expected_of(op, a, b):
    """What NumPy gives; of bfloat16, computed in float32."""
    if bfloat16 not in (a.dtype, b.dtype) or op in (*EQUALITY, *ORDER):
        return op(a, b)
    return op(a.astype(np.float32), b.astype(np.float32)).astype(bfloat16)


def matches(result, expected):
    rtol = 1e-2 if expected.dtype == bfloat16 else 1e-6  # powers may be computed another way
    check(result, expected, rtol=rtol if expected.dtype.kind in "fcV" else 0.0)


# -- attributes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [on_cpu, pending], ids=["plain", "pending"])
@pytest.mark.parametrize("dtype", [each for each in DTYPES if each is not np.bool_], ids=str)
def test_attributes(make, dtype):
    value = numbers((2, 3), dtype)
    x = make(value)
    was_pending = xp.is_pending(x)
    assert x.dtype == np.dtype(dtype)
    assert isinstance(x.dtype, np.dtype)
    assert x.device == "cpu"
    assert isinstance(x.device, xp.Device)
    assert (x.shape, x.ndim, x.size, len(x)) == ((2, 3), 2, 6, 2)
    assert (x.itemsize, x.nbytes) == (value.itemsize, value.nbytes)
    assert xp.is_pending(x) == was_pending
    check(x.T, value.T)
    check(x.mT, value.T)


@pytest.mark.parametrize("shape", [(), (4,), (2, 0, 3), (2, 3, 4, 5)])
def test_attributes_of_other_shapes(shape):
    x = on_cpu(np.zeros(shape, np.float32))
    assert (x.shape, x.ndim, x.size) == (shape, len(shape), int(np.prod(shape)))
    assert x.nbytes == 4 * x.size


def test_transposes_of_pending_arrays_wait():
    a, b = numbers((2, 3, 4), np.float64), numbers((2, 4, 5), np.float64, 1)
    product = on_cpu(a) @ on_cpu(b)
    transpose = product.mT
    assert xp.is_pending(transpose)
    assert transpose.shape == (2, 5, 3)
    check(transpose, (a @ b).mT, rtol=1e-12)


def test_transposes_are_views():
    x = on_cpu(np.zeros((2, 3)))
    x.T[2, 0] = 1.0
    x.mT[0, 1] = 2.0
    check(x, [[0.0, 0.0, 1.0], [2.0, 0.0, 0.0]])


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_t_is_for_two_axes(shape):
    with pytest.raises(ValueError, match="two-dimensional") as error:
        _ = on_cpu(np.zeros(shape)).T
    assert str(shape) in str(error.value)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_mt_needs_two_axes(shape):
    with pytest.raises(ValueError, match="at least two axes") as error:
        _ = on_cpu(np.zeros(shape)).mT
    assert str(shape) in str(error.value)


def test_attributes_of_a_quantized_array():
    x = zeros_q8_0((3, 64))
    assert (x.dtype, x.device, x.shape, x.ndim, x.size) == (xp.q8_0, "cpu", (3, 64), 2, 192)
    assert x.nbytes == 3 * 2 * 34  # ggml's block of 32: a float16 scale and 32 bytes
    assert (x.T.shape, x.mT.shape, x.T.dtype) == ((64, 3), (64, 3), xp.q8_0)
    with pytest.raises(TypeError, match="no size of its own"):
        _ = x.itemsize
    with pytest.raises(ValueError, match="two-dimensional"):
        _ = zeros_q8_0((2, 3, 32)).T
    with pytest.raises(ValueError, match="at least two axes"):
        _ = zeros_q8_0((32,)).mT


# -- operators ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_binary_operators(op, dtype):
    a, b = operands(op, dtype)
    expected = expected_of(op, a, b)
    matches(op(on_cpu(a), on_cpu(b)), expected)
    matches(op(on_cpu(a), b), expected)
    matches(op(a, on_cpu(b)), expected)
    matches(op(on_cpu(a), b[1]), expected_of(op, a, b[1]))
    if dtype is not np.bool_:
        matches(op(pending(a), on_cpu(b)), expected)
        matches(op(on_cpu(a), pending(b)), expected)
        matches(op(pending(a), pending(b)), expected)
        matches(op(a, pending(b)), expected)


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_scalars_on_the_right(op, dtype):
    a, b = operands(op, dtype)
    for scalar in (b[0, 0], b[0, 0].item()):
        matches(op(on_cpu(a), scalar), expected_of(op, a, np.full_like(a, scalar)))
        if dtype is not np.bool_:
            matches(op(pending(a), scalar), expected_of(op, a, np.full_like(a, scalar)))


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_scalars_on_the_left(op, dtype):
    a, b = operands(op, dtype)
    for scalar in (a[0, 0], a[0, 0].item()):
        matches(op(scalar, on_cpu(b)), expected_of(op, np.full_like(b, scalar), b))
        if dtype is not np.bool_:
            matches(op(scalar, pending(b)), expected_of(op, np.full_like(b, scalar), b))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_unary_operators(dtype):
    value = numbers((3, 3), dtype)
    for make in [on_cpu] if dtype is np.bool_ else [on_cpu, pending]:
        check(abs(make(value)), np.abs(value), rtol=1e-6)
        if dtype is not np.bool_:
            check(+make(value), value)
            check(-make(value), -value)
        if np.dtype(dtype).kind in "biu":
            check(~make(value), ~value)


def test_what_has_no_unary_operator_raises():
    for x in (on_cpu([1.5]), on_cpu([1j])):
        with pytest.raises(TypeError):
            operator.invert(x)
    for op in (operator.neg, operator.pos):
        with pytest.raises(TypeError):
            op(on_cpu([True]))


@pytest.mark.parametrize(("op", "dtype"), IN_PLACE_CASES)
def test_in_place_operators_keep_object_and_dtype(op, dtype):
    a, b = operands(op, dtype)
    expected = expected_of(op, a, b)
    for other in (on_cpu(b), b, pending(b) if dtype is not np.bool_ else on_cpu(b)):
        x = on_cpu(a)
        view = x[1:]
        result = IN_PLACE[op](x, other)
        assert result is x
        matches(x, expected)
        matches(view, expected[1:])
    if dtype is not np.bool_:
        x = pending(a)
        assert IN_PLACE[op](x, on_cpu(b)) is x
        matches(x, expected)


def test_in_place_matmul():
    a, b = numbers((3, 3), np.float64), numbers((3, 3), np.float64, 1)
    for make in (on_cpu, pending):
        for other in (on_cpu(b), pending(b), b):
            x = original = make(a)
            x @= other
            assert x is original
            check(x, a @ b, rtol=1e-12)
    with pytest.raises(ValueError, match="@="):
        x @= on_cpu(np.ones((3, 2)))
    with pytest.raises(TypeError):
        x @= on_cpu(np.ones((3, 3)), np.complex64)
    with pytest.raises(TypeError):
        x @= 2.0


def test_in_place_within_a_kind_casts():
    x = on_cpu(np.ones(3), np.float32)
    x += on_cpu(np.full(3, 0.5))
    check(x, np.full(3, 1.5, np.float32))
    y = on_cpu([1, 2], np.int8)
    y *= on_cpu([3, 4], np.int64)
    check(y, np.array([3, 8], np.int8))


@pytest.mark.parametrize("lazily", [False, True], ids=["plain", "pending"])
@pytest.mark.parametrize(
    ("dtype", "other"),
    [
        (np.int32, np.float32),
        (np.float32, np.complex64),
        (np.uint8, np.int8),
        (bfloat16, np.complex64),
    ],
)
def test_in_place_change_of_kind_raises(dtype, other, lazily):
    value = np.eye(2).astype(dtype)
    x = pending(value) if lazily else on_cpu(value)
    for right in (pending(np.eye(2).astype(other)), on_cpu(np.eye(2), other)):
        for op in (operator.iadd, operator.isub, operator.imul):
            with pytest.raises(TypeError):
                op(x, right)
    check(x, value)


def test_in_place_with_a_broader_shape_raises():
    for make in (on_cpu, pending):
        x = make(np.ones((1, 3)))
        for other in (on_cpu(np.ones((2, 3))), pending(np.ones((2, 3)))):
            with pytest.raises(ValueError, match=r"shape|broadcast"):
                x += other
        check(x, np.ones((1, 3)))


@pytest.mark.parametrize("make", [on_cpu, pending], ids=["plain", "pending"])
@pytest.mark.parametrize("op", OF_INTEGERS)
@pytest.mark.parametrize(("dtype", "scalar"), [(np.int8, 300), (np.uint8, -1), (np.uint64, 2**64)])
def test_a_python_integer_out_of_range_raises(op, dtype, scalar, make):
    x = make(np.ones((2, 2), dtype))
    with pytest.raises(OverflowError):
        op(x, scalar)
    check(x, np.ones((2, 2), dtype))


def test_comparisons_with_integers_out_of_range_are_exact():
    x = on_cpu([1, 100], np.int8)
    check(x < 300, [True, True])
    check(x == -1000, [False, False])


@pytest.mark.parametrize("other", [None, "1", [1, 2], (1, 2), object(), {}], ids=repr)
@pytest.mark.parametrize("make", [on_cpu, pending], ids=["plain", "pending"])
def test_other_types_are_left_to_the_other_operand(make, other):
    x = make(np.ones((2, 2)))
    for name in ("add", "radd", "iadd", "mul", "pow", "matmul", "rmatmul", "imatmul", "lt", "eq"):
        assert getattr(x, f"__{name}__")(other) is NotImplemented
    with pytest.raises(TypeError, match="unsupported operand"):
        x - other
    with pytest.raises(TypeError, match="unsupported operand"):
        x @ other
    assert (x == other) is False
    assert (x != other) is True


def test_another_class_may_define_the_operation():
    class Other:
        def __radd__(self, x):
            return "radd", x

        def __rmatmul__(self, x):
            return "rmatmul", x

    x, other = on_cpu([1.0]), Other()
    assert x + other == ("radd", x)
    assert x @ other == ("rmatmul", x)


@pytest.mark.parametrize("scalar", [2, 2.0, True, 1j, np.float64(2.0)], ids=repr)
def test_scalars_have_no_matrix_product(scalar):
    x = on_cpu(np.ones((2, 2)))
    for product in (lambda: x @ scalar, lambda: scalar @ x):
        with pytest.raises((TypeError, ValueError)):
            product()


@pytest.mark.parametrize("op", [*ARITHMETIC, operator.truediv, operator.matmul, operator.eq])
def test_the_more_specific_device_wins(op):
    a = numbers((2, 2), np.float64)
    cpu, blas = on_cpu(a), xp.asarray(a, device="blas")
    for x, y in ((cpu, blas), (blas, cpu), (cpu @ cpu, blas), (blas @ blas, cpu)):
        assert op(x, y).device == "blas"
    assert op(cpu, cpu).device == "cpu"


@pytest.mark.parametrize("op", [*ARITHMETIC, operator.truediv, operator.matmul, operator.eq])
@pytest.mark.parametrize("name", ["cpu", "blas", "counting"])
def test_a_numpy_array_goes_to_the_device_of_the_other_operand(op, name):
    value = np.eye(2) + 1
    x = xp.asarray(value, device=name)
    assert op(x, value).device == name
    assert op(value, x).device == name


@pytest.mark.parametrize("dtype", FLOATS)
def test_floor_division_of_infinity_is_the_same_on_either_side(dtype):
    a, b = np.array([np.inf, -np.inf], dtype), np.array([3.0, 3.0], dtype)  # NumPy gives NaN
    for result in (on_cpu(a) // on_cpu(b), on_cpu(a) // b, a // on_cpu(b), a[0] // on_cpu(b)):
        assert np.isinf(np.asarray(result)).all()


def test_floor_division_by_a_huge_integer():
    check(on_cpu([1.0, -1.0]) // 10**30, [0.0, -1.0])
