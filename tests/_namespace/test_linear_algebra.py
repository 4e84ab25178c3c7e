"""Products against sums of products in double precision, or in whole numbers for integers."""

import itertools
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, zeros_q8_0

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float32", "float64", "complex64", "complex128"]
HALVES = ["float16", bfloat16]
DTYPES = [*INTEGERS, *HALVES, *FLOATS]
SHAPES = [
    ((2, 3), (3, 4)),
    ((1, 1), (1, 1)),
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((4, 1, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (4, 3, 2)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((33, 17), (17, 41)),
    ((2, 0), (0, 3)),
    ((0,), (0,)),
    ((0, 3), (3, 2)),
    ((2, 3), (3, 0)),
    ((0, 2, 3), (3, 4)),
    ((3, 1, 0), (0, 2)),
]


def on(value, device, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device=device)


def on_cpu(value, dtype=None):
    return on(value, "cpu", dtype)


def wide(x):
    """The values in a dtype that holds their products: float64, complex128, Python integers."""
    return x.astype({"c": np.complex128, "i": object, "u": object}.get(x.dtype.kind, np.float64))


def sums_of_products(a, b, axes):
    """Contract the last axes of wide arrays with the first ones, without any BLAS."""
    products = a.reshape(a.shape + (1,) * (b.ndim - axes)) * b
    return products.sum(axis=tuple(range(a.ndim - axes, a.ndim))) if axes else products


def wrapped(value, dtype):
    """Whole numbers wrapped round to the range of an integer dtype."""
    bits = 8 * dtype.itemsize
    value = np.asarray(np.asarray(value, object) & (2**bits - 1))
    return value.astype(np.uint64).astype(f"uint{bits}").view(dtype)


def product_of(a, b):
    """NumPy's shapes for matmul, of products summed one by one."""
    a, b = wide(a), wide(b)
    left, right = a.ndim == 1, b.ndim == 1
    a, b = a[None] if left else a, b[:, None] if right else b
    with np.errstate(invalid="ignore", over="ignore"):
        result = (a[..., :, :, None] * b[..., None, :, :]).sum(axis=-2)
    result = result[..., 0, :] if left else result
    return result[..., 0] if right else result


def matches(result, expected, dtype, device="cpu"):
    """Exactly for integers; for floats of moderate size, within roundings of the dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        check(result, wrapped(expected, dtype), device=device)
    else:
        eps = float(ml_dtypes.finfo(dtype).eps)
        tolerance = 64 * eps if dtype.itemsize > 2 else eps
        check(result, expected, dtype, rtol=tolerance, atol=tolerance, device=device)


# -- matmul -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_matmul(dtype, shapes, device):
    a, b = (numbers(shape, dtype, seed) for seed, shape in enumerate(shapes))
    product = xp.matmul(on(a, device), on(b, device))
    assert xp.is_pending(product)
    matches(product, product_of(a, b), dtype, device)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_products_wrap_round(dtype, device):
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    a = rng.integers(limits.min, limits.max, (5, 40), dtype, endpoint=True)
    b = rng.integers(limits.min, limits.max, (40, 6), dtype, endpoint=True)
    matches(on(a, device) @ on(b, device), product_of(a, b), dtype, device)
    matches(xp.vecdot(on(a, device), on(b.T[:5], device)), np.diag(product_of(a, b)), dtype, device)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("inner", [7, 300])
def test_half_products_are_rounded_once_from_float32(dtype, inner, device):
    rng = np.random.default_rng(inner)
    a = rng.integers(-50, 50, (9, inner)).astype(dtype)  # their sums are exact in float32
    b = rng.integers(-50, 50, (inner, 11)).astype(dtype)
    exact = product_of(a, b)
    product = on(a, device) @ on(b, device)
    with np.errstate(over="ignore"):
        check(product, exact.astype(np.float32).astype(dtype), device=device)
    assert (np.asarray(product).astype(np.float64) != exact).any()


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products_of_truth_values(shapes, device):
    a, b = (numbers(shape, np.bool_, seed) for seed, shape in enumerate(shapes))
    expected = product_of(a.astype(np.int64), b.astype(np.int64)).astype(bool)
    check(on(a, device) @ on(b, device), expected, device=device)


MIXED = {
    ("bool", "int8"): "int8",
    ("int8", "uint8"): "int16",
    ("int32", "int64"): "int64",
    ("uint64", "int64"): "float64",
    ("int32", "float32"): "float64",
    ("int8", "float16"): "float16",
    ("float32", "float64"): "float64",
    ("float32", "complex64"): "complex64",
    ("float64", "complex64"): "complex128",
    ("float16", "float32"): "float32",
    ("float16", bfloat16): "float32",
    ("float32", bfloat16): "float32",
    ("float64", bfloat16): "float64",
    ("complex64", bfloat16): "complex64",
}


@pytest.mark.parametrize(("dtypes", "expected"), list(MIXED.items()), ids=str)
def test_mixed_dtypes_promote(dtypes, expected, device):
    for first, second in (dtypes, dtypes[::-1]):
        a, b = numbers((3, 5), first, 1), numbers((5, 4), second, 2)
        x, y = on(a, device), on(b, device)
        reference = product_of(a.astype(expected), b.astype(expected))
        matches(x @ y, reference, expected, device)
        matches(xp.tensordot(x, y, axes=1), reference, expected, device)
        outer = wide(a[0].astype(expected))[:, None] * wide(b[0].astype(expected))
        matches(xp.linalg.outer(x[0, :], y[0, :]), outer, expected, device)


VIEWS = {
    "reversed": lambda x: x[::-1, ::-1],
    "transposed": lambda x: x.swapaxes(0, 1) if isinstance(x, np.ndarray) else x.T,
    "stepped": lambda x: x[::2, ::2],
    "rows reversed, columns stepped": lambda x: x[::-1, 1::2],
}


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int16", "float16", bfloat16], ids=str)
@pytest.mark.parametrize("views", list(itertools.product(VIEWS, VIEWS)), ids=str)
def test_operands_may_be_views(views, dtype, device):
    left, right = (VIEWS[view] for view in views)
    a, b = numbers((8, 8), dtype, 1), numbers((8, 8), dtype, 2)
    size = min(left(a).shape[1], right(b).shape[0])
    product = left(on(a, device))[:, :size] @ right(on(b, device))[:size]
    matches(product, product_of(left(a)[:, :size], right(b)[:size]), dtype, device)


def test_operands_may_be_repeated_views(device):
    row, b = numbers((4,), np.float64), numbers((4, 3), np.float64, 1)
    repeated = xp.broadcast_to(on(row, device), (5, 2, 4))
    matches(repeated @ on(b, device), product_of(np.broadcast_to(row, (5, 2, 4)), b), float, device)
    matches(on(row[::-1], device)[::-1] @ on(b, device), row @ b, float, device)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", bfloat16], ids=str)
def test_products_of_what_is_not_finite(dtype, device):
    special = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]).astype(dtype)
    a, b = special[:, None], special[None, :]
    expected = product_of(a, b)
    check(on(a, device) @ on(b, device), expected, dtype, device=device)
    check(
        xp.tensordot(on(special, device), on(special, device), axes=0),
        expected,
        dtype,
        device=device,
    )
    matrix = numbers((5, 6), dtype)
    matrix[1, 2], matrix[3, 0] = np.nan, np.inf
    other = numbers((6, 4), dtype, 1)
    matches(on(matrix, device) @ on(other, device), product_of(matrix, other), dtype, device)


def test_the_product_of_no_terms_is_zero_whatever_the_memory_held(device):
    for shape_a, shape_b in (((3, 0), (0, 4)), ((2, 3, 0), (0, 4)), ((0,), (0,))):
        a, b = np.zeros(shape_a), np.zeros(shape_b)
        check(on(a, device) @ on(b, device), np.zeros(np.matmul(a, b).shape), device=device)


@pytest.mark.parametrize("dtype", ["numpy.float32", "numpy.float16", "ml_dtypes.bfloat16"])
def test_the_first_product_of_a_process(dtype, device):
    program = f"""
import ml_dtypes, numpy, ggarray
x = ggarray.asarray(numpy.eye(2).astype({dtype}), device={device!r})
assert ggarray.all(x @ x == x)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_products_of_products(device):
    a, b, c = (numbers((4, 4), np.float64, seed) for seed in range(3))
    x, y, z = (on(each, device) for each in (a, b, c))
    product = (x @ y).T @ (z @ x)[:, 1:]
    matches(product, product_of(product_of(a, b).T, product_of(c, a)[:, 1:]), float, device)


def test_the_more_specific_device_computes():
    a = on_cpu(np.eye(2))
    for function in (xp.matmul, xp.tensordot, xp.vecdot):
        assert function(a, a.to_device("blas")).device == "blas"
        assert function(a.to_device("blas"), a).device == "blas"


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3), (4, 5)),
        ((3,), (4,)),
        ((2, 3), (2,)),
        ((3,), (2, 5)),
        ((2, 2, 3), (3, 3, 4)),
        ((), (3,)),
        ((3, 3), ()),
        ((), ()),
    ],
    ids=str,
)
def test_matmul_of_shapes_that_do_not_fit_raises(shapes):
    with pytest.raises(ValueError, match="matmul") as error:
        xp.matmul(*(on_cpu(np.zeros(shape)) for shape in shapes))
    assert all(str(shape) in str(error.value) for shape in shapes)


# -- tensordot ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("axes", [0, 1, 2])
def test_tensordot_over_a_number_of_axes(axes, dtype, device):
    a, b = numbers((2, 3, 4), dtype, 1), numbers({0: (5,), 1: (4, 5), 2: (3, 4, 2)}[axes], dtype, 2)
    result = xp.tensordot(on(a, device), on(b, device), axes=axes)
    assert xp.is_pending(result)
    matches(result, sums_of_products(wide(a), wide(b), axes), dtype, device)


@pytest.mark.parametrize(
    ("shape_a", "shape_b", "axes"),
    [
        ((2, 3, 4), (4, 3, 2), ((0,), (2,))),
        ((2, 3, 4), (4, 3, 2), ([2, 1], [0, 1])),
        ((2, 3, 4), (4, 3, 2), ((-1, 0), (0, -1))),
        ((2, 3, 4), (4, 3, 2), ((0, 1, 2), (2, 1, 0))),
        ((2, 3, 4), (5,), ((), ())),
        ((2, 3, 2), (2, 2, 5), ((2, 0), (1, 0))),
        ((2, 0, 4), (4, 0, 2), ((1,), (1,))),
        ((2, 0, 4), (4, 3), ((2,), (0,))),
        ((), (), 0),
        ((3,), (3,), 1),
        ((2, 3), (2, 3), 2),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex64"])
def test_tensordot_over_named_axes(shape_a, shape_b, axes, dtype, device):
    a, b = numbers(shape_a, dtype, 1), numbers(shape_b, dtype, 2)
    expected = np.tensordot(a, b, axes)
    matches(xp.tensordot(on(a, device), on(b, device), axes=axes), expected, dtype, device)
    if a.ndim > 1:
        pending = on(np.eye(a.shape[-2]), device, dtype) @ on(a, device)
        matches(xp.tensordot(pending, on(b, device), axes=axes), expected, dtype, device)


def test_tensordot_of_truth_values(device):
    a, b = numbers((2, 3), np.bool_, 1), numbers((3, 4), np.bool_, 2)
    expected = np.tensordot(a.astype(int), b.astype(int), 1).astype(bool)
    check(xp.tensordot(on(a, device), on(b, device), axes=1), expected, device=device)
    outer = xp.tensordot(on(a, device), on(b, device), axes=0)
    check(outer, np.multiply.outer(a, b), device=device)


@pytest.mark.parametrize(
    ("axes", "kind"),
    [
        (1, ValueError),
        (2, ValueError),
        (3, ValueError),
        (-1, ValueError),
        (((0,), (0,)), ValueError),
        (((0, 1), (0,)), ValueError),
        (((2,), (0,)), ValueError),
        (((0, 0), (1, 1)), ValueError),
    ],
    ids=str,
)
def test_tensordot_raises(axes, kind):
    with pytest.raises(kind):
        xp.tensordot(on_cpu(np.zeros((2, 3))), on_cpu(np.zeros((4, 2))), axes=axes)


def test_tensordot_names_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"tensordot.*\(2, 3\).*\(4, 5\)"):
        xp.tensordot(on_cpu(np.zeros((2, 3))), on_cpu(np.zeros((4, 5))), axes=1)


# -- vecdot -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("shape_a", "shape_b", "axis"),
    [
        ((4,), (4,), -1),
        ((3, 4), (3, 4), -1),
        ((3, 4), (4,), -1),
        ((4, 3), (4, 3), 0),
        ((4, 3), (4, 3), -2),
        ((2, 1, 4), (3, 4), -1),
        ((0,), (0,), -1),
        ((3, 0), (3, 0), -1),
        ((0, 4), (0, 4), -1),
    ],
    ids=str,
)
def test_vecdot(shape_a, shape_b, axis, dtype, device):
    a, b = numbers(shape_a, dtype, 1), numbers(shape_b, dtype, 2)
    expected = (np.moveaxis(np.conj(wide(a)), axis, -1) * np.moveaxis(wide(b), axis, -1)).sum(-1)
    result = xp.vecdot(on(a, device), on(b, device), axis=axis)
    assert xp.is_pending(result)
    matches(result, expected, dtype, device)


def test_vecdot_conjugates_the_first_operand_only(device):
    a, b = on([1j, 2.0], device), on([1.0, 3j], device)
    check(xp.vecdot(a, b), -1j + 6j, device=device)
    check(xp.vecdot(b, a), 1j - 6j, device=device)
    check(a, [1j, 2.0], device=device)


def test_vecdot_of_pending_arrays(device):
    a = numbers((3, 3), np.complex128)
    x = on(np.eye(3), device, np.complex128) @ on(a, device)
    matches(xp.vecdot(x, x), (np.abs(a) ** 2).sum(-1), np.complex128, device)


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        (((3,), (4,)), -1),
        (((2, 3), (4, 3)), -1),
        (((2, 3), (2, 3)), 2),
        (((), (3,)), -1),
        (((3, 1), (3, 4)), -1),
    ],
    ids=str,
)
def test_vecdot_raises(shapes, axis):
    with pytest.raises(ValueError, match=r"vecdot|broadcast|axis"):
        xp.vecdot(*(on_cpu(np.zeros(shape)) for shape in shapes), axis=axis)


# -- matrix_transpose, and what is refused --------------------------------------------------------


def test_matrix_transpose():
    value = numbers((2, 3, 4), np.float32)
    x = on_cpu(value)
    view = xp.matrix_transpose(x)
    check(view, value.swapaxes(1, 2))
    view[0, 1, 2] = 9.0
    assert float(x[0, 2, 1]) == 9.0
    product = on_cpu(value) @ on_cpu(numbers((4, 5), np.float32))
    assert xp.is_pending(xp.matrix_transpose(product))
    assert xp.matrix_transpose(zeros_q8_0((2, 64))).shape == (64, 2)
    with pytest.raises(ValueError, match=r"\(3,\)"):
        xp.matrix_transpose(on_cpu(np.zeros(3)))


@pytest.mark.parametrize("other", [[[1.0]], np.eye(2), 2.0, None], ids=repr)
@pytest.mark.parametrize("name", ["matmul", "tensordot", "vecdot"])
def test_products_take_arrays_only(name, other):
    x = on_cpu(np.eye(2))
    for operands in ((x, other), (other, x)):
        with pytest.raises(TypeError, match="Array is wanted"):
            getattr(xp, name)(*operands)
    with pytest.raises(TypeError, match="Array is wanted"):
        xp.matrix_transpose(other)
