"""Programs of products: what follows a product, what writes to its operands, errors and reads."""

import copy
import operator
import pickle

import numpy as np
import pytest
from hypothesis import strategies as st

import ggarray as xp
from conformance.standard.references import (
    BFLOAT16,
    HALVES,
    NUMERIC,
    check,
    given,
    kind_of,
    to_array,
)
from conformance.standard.rounding import SIDES, Approximate, matrices

COVERS = ("matmul", "tensordot", "vecdot", "linalg.outer", "Array.__matmul__", "Array.__imatmul__")


# -- what follows a product ----------------------------------------------------------------------

# Kinds of dtypes, and what runs on Arrays and on Approximate values; `of` is the namespace or the
# class. What follows a product is recorded with it where a product can absorb it.
PROGRAMS = {
    "a @ b @ c": ("iufc", lambda of, a, b, c: a @ b @ c),
    "a @ (b @ c)": ("iufc", lambda of, a, b, c: a @ (b @ c)),
    "c + a @ b": ("iufc", lambda of, a, b, c: c + a @ b),
    "a @ b - c": ("iufc", lambda of, a, b, c: a @ b - c),
    "a @ b + b @ c": ("iufc", lambda of, a, b, c: a @ b + b @ c),
    "2 * (a @ b) * 3": ("iufc", lambda of, a, b, c: 2 * (a @ b) * 3),
    "0.1 * (a @ b)": ("fc", lambda of, a, b, c: 0.1 * (a @ b)),
    "1.5 * c - 0.7 * (a @ b)": ("fc", lambda of, a, b, c: 1.5 * c - 0.7 * (a @ b)),
    "-(a @ b)": ("iufc", lambda of, a, b, c: -(a @ b)),
    "(a @ b).mT @ c": ("iufc", lambda of, a, b, c: (a @ b).mT @ c),
    "(a @ b)[1:, ::-1] + c[1:, :]": (
        "iufc",
        lambda of, a, b, c: (a @ b)[1:, ::-1] + c[1:, :],
    ),
    "c[:1, :] + a @ b": ("iufc", lambda of, a, b, c: c[:1, :] + a @ b),
    "a[0, :] @ b @ c[:, 0]": ("iufc", lambda of, a, b, c: a[0, :] @ b @ c[:, 0]),
    "sum(a @ b)": ("iufc", lambda of, a, b, c: of.sum(a @ b, axis=0)),
    "sum(c - a @ b)": ("iufc", lambda of, a, b, c: of.sum(c - a @ b, axis=-1)),
    "float32(a @ b) @ c": ("f", lambda of, a, b, c: of.astype(a @ b, np.float32) @ c),
    "float64(a @ b) + c": ("f", lambda of, a, b, c: of.astype(a @ b, np.float64) + c),
    "float16(a @ b)": ("f", lambda of, a, b, c: of.astype(a @ b, np.float16)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@given(data=st.data(), side=st.sampled_from(SIDES[1:]))
def test_what_follows_a_product(device, name, data, side):
    kinds, program = PROGRAMS[name]
    fitting = [dtype for dtype in NUMERIC + HALVES if kind_of(dtype) in kinds]
    dtype = data.draw(st.sampled_from(fitting))
    arrays, expected = zip(
        *data.draw(matrices(device, [dtype] * 3, [(side, side)] * 3)), strict=True
    )
    program(Approximate, *expected).check(program(xp, *arrays), device)


# Each changes arrays in place, on both sides exactly, and returns all that a program can see.


def add_product(x, a, b):
    x += a @ b
    return x


def subtract_a_product_of_itself(x, a, b):
    x -= x @ x.T
    return x


def update_through_a_view(x, a, b):
    rows = x[::-1, :]
    rows += x @ a
    return x, rows


def update_a_part(x, a, b):
    part = x[1:, :]
    part -= (a @ x)[1:, :]
    return x, part


def update_a_pending_array(x, a, b):
    product = a @ b
    transposed = product.T
    transposed += x @ x
    product -= a
    return product, transposed


def products_have_read_what_was_there(x, a, b):
    before = x @ a
    x += a @ b
    after = x @ a
    x[0, 0] = 1
    return before, after, x


def write_after_recording(x, a, b):
    product = a @ x
    x[...] = product
    return product, x, x @ b


def write_through_an_export(x, a, b):
    product = x @ a
    export = np.asarray(x)
    export[0, :] = 1
    x += a @ b
    return product, x, export


def multiply_in_place(x, a, b):
    view = x.T
    product = x @ x
    x @= a
    return product, view, x


IN_PLACE = [
    add_product,
    subtract_a_product_of_itself,
    update_through_a_view,
    update_a_part,
    update_a_pending_array,
    products_have_read_what_was_there,
    write_after_recording,
    write_through_an_export,
    multiply_in_place,
]


@pytest.mark.parametrize("program", IN_PLACE)
@given(
    dtype=st.sampled_from(NUMERIC + HALVES),
    side=st.sampled_from([1, 2, 3, 9, 33]),
    pending=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_programs_that_write(device, program, dtype, side, pending, seed):
    rng = np.random.default_rng(seed)
    low = -1 if kind_of(dtype) != "u" else 0
    values = [
        (rng.integers(low, 2, (side, side)) * rng.integers(0, 2, (side, side))) for _ in "xab"
    ]
    layout = "pending" if pending else "plain"
    arrays = [to_array(value.astype(dtype), layout, device) for value in values]
    results = program(*arrays)
    expected = program(*(value.astype(np.int64) for value in values))
    if not isinstance(results, tuple):
        results, expected = (results,), (expected,)
    for result, value in zip((*results, *arrays[1:]), (*expected, *values[1:]), strict=True):
        np.testing.assert_array_equal(np.asarray(result), value.astype(dtype))


# -- errors and reads ---------------------------------------------------------------------------

ERRORS = [
    (operator.matmul, (2, 3), (4, 5)),
    (operator.matmul, (3,), (4,)),
    (operator.matmul, (2, 3), (2,)),
    (operator.matmul, (2, 2, 3), (3, 3, 4)),
    (operator.matmul, (), (3, 3)),
    (operator.matmul, (3, 3), ()),
    (operator.imatmul, (3, 3), (4, 4)),
    (operator.add, (2, 3), (4, 3)),
    (operator.sub, (2, 3), (2, 4)),
    (xp.linalg.outer, (2, 3), (3,)),
    (xp.linalg.outer, (2,), ()),
    (xp.tensordot, (2, 3), (4, 3)),
    (xp.tensordot, (2, 3), (3,)),
    (lambda x, y: xp.tensordot(x, y, axes=((0,), (-1,))), (2, 3), (2, 3)),
    (xp.vecdot, (2, 3), (2, 4)),
    (xp.vecdot, (2, 1), (2, 3)),
    (xp.vecdot, (2, 3), (4, 3)),
]


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize(("product", "shape_a", "shape_b"), ERRORS)
def test_errors_come_at_the_call_and_name_the_shapes(device, product, shape_a, shape_b, pending):
    layout = "pending" if pending else "plain"
    x, y = (to_array(np.ones(shape), layout, device) for shape in (shape_a, shape_b))
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        product(x, y)
    message = str(raised.value).replace(" ", "")
    assert all(str(shape).replace(" ", "") in message for shape in (shape_a, shape_b))
    assert xp.is_pending(x) == xp.is_pending(y) == pending
    check(x, np.ones(shape_a), device=device)


@pytest.mark.parametrize("dtype", [object, np.longdouble, "U1", "datetime64[s]"], ids=str)
def test_foreign_dtypes_have_no_products(device, dtype):
    x, other = to_array(np.eye(2), device=device), np.zeros((2, 2), dtype)
    for product in (operator.matmul, np.matmul):
        for operands in ((x, other), (other, x)):
            with pytest.raises(TypeError):
                product(*operands)


@pytest.mark.parametrize("other", [2, 2.0, [[1.0]], None, np.float64(2)], ids=repr)
def test_products_take_arrays_only(device, other):
    x = to_array(np.eye(2), device=device)
    for operands in ((x, other), (other, x)):
        with pytest.raises(TypeError):
            operator.matmul(*operands)
        for product in (xp.matmul, xp.vecdot, xp.tensordot, xp.linalg.outer):
            with pytest.raises(TypeError, match="Array is wanted"):
                product(*operands)
    with pytest.raises(TypeError):
        operator.imatmul(x, other)


@pytest.mark.parametrize("dtype", NUMERIC + HALVES, ids=str)
def test_reading_computes(device, dtype):
    x, y = (to_array(np.array(value, dtype), device=device) for value in ([1, 2], [3, 4]))
    kind = kind_of(dtype)
    scalars = [bool, complex, *([float, int] if kind != "c" else [])]
    for scalar in scalars + [operator.index] * (kind in "iu"):
        product = x @ y
        assert xp.is_pending(product)
        assert scalar(product) == (True if scalar is bool else 11)
        assert not xp.is_pending(product)
    assert bool(xp.any(xp.linalg.outer(x, y)))
    for read in (str, pickle.dumps, copy.copy, np.asarray, xp.sum, xp.from_dlpack):
        product = x @ y
        if dtype != BFLOAT16 or read is not xp.from_dlpack:  # DLPack's face has no bfloat16
            read(product)
            assert not xp.is_pending(product)
        check(product, np.array(11, dtype), device=device)
