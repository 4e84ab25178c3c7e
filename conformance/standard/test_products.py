"""Products, recorded and run on both devices, against sums in extended precision.

Integers, truth values and outer products are compared exactly; other products within the bounds of
rounding error analysis, element by element (see `rounding`).
"""

import math
import operator

import ml_dtypes
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ggarray as xp
from conformance.standard.references import (
    BOOL,
    EXTENDED,
    FLOATS,
    HALVES,
    INTEGERS,
    LAYOUTS,
    NUMERIC,
    STACKS,
    check,
    given,
    kind_of,
    numbers,
    rounded,
    to_array,
    wide,
)
from conformance.standard.rounding import (
    PROMOTED,
    SIDES,
    Approximate,
    matrices,
    named,
    operands,
    promoted,
)

COVERS = (
    "matmul",
    "matrix_transpose",
    "tensordot",
    "vecdot",
    "linalg.matmul",
    "linalg.matrix_power",
    "linalg.matrix_transpose",
    "linalg.outer",
    "linalg.tensordot",
    "linalg.vecdot",
    "Array.T",
    "Array.mT",
    "Array.__matmul__",
    "Array.__rmatmul__",
    "Array.__imatmul__",
)

SAME = [(dtype, dtype) for dtype in EXTENDED]
MIXED = [tuple(map(named, pair)) for pair in PROMOTED]
PAIRS = SAME + MIXED + [pair[::-1] for pair in MIXED]
# By the kind of what they give: a test draws of one kind at a time.
KINDS = {kind: [pair for pair in PAIRS if kind_of(promoted(*pair)) == kind] for kind in "biufc"}

FORMS = {
    "matmul": xp.matmul,
    "linalg.matmul": xp.linalg.matmul,
    "@": operator.matmul,
    "ndarray @": lambda x, y: np.array(x) @ y,
    "@ ndarray": lambda x, y: x @ np.array(y),
    "numpy.matmul": np.matmul,
}


def lengths(count):
    return st.tuples(*[st.sampled_from(SIDES)] * count)


# -- matmul -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtypes", SAME + MIXED, ids=str)
@given(sides=lengths(3), swapped=st.booleans(), data=st.data())
def test_products_of_matrices(device, dtypes, sides, swapped, data):
    m, k, n = sides
    dtypes = dtypes[::-1] if swapped else dtypes
    (x, a), (y, b) = data.draw(matrices(device, dtypes, [(m, k), (k, n)]))
    form = data.draw(st.sampled_from(list(FORMS)))
    (a @ b).check(FORMS[form](x, y), device)


@pytest.mark.parametrize("kind", KINDS)
@given(
    shapes=hnp.mutually_broadcastable_shapes(
        signature=np.matmul.signature, max_dims=3, min_side=0, max_side=9
    ),
    data=st.data(),
)
def test_products_of_stacks_and_vectors(device, kind, shapes, data):
    dtypes = data.draw(st.sampled_from(KINDS[kind]))
    (x, a), (y, b) = data.draw(matrices(device, dtypes, shapes.input_shapes))
    product = xp.matmul(x, y)
    assert product.shape == shapes.result_shape
    (a @ b).check(product, device)


@pytest.mark.parametrize(
    "shapes",
    [
        ((1, 5000), (5000, 1)),
        ((1, 3000), (3000, 70)),
        ((70, 3000), (3000,)),
        ((300, 70), (70, 301)),
        ((257, 3), (3, 513)),
        ((5, 100, 60), (60, 40)),
        ((100, 60), (5, 60, 40)),
        ((3, 1, 60, 50), (1, 4, 50, 40)),
        ((40, 1, 30), (40, 30, 33)),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "dtype", [*HALVES, *FLOATS, np.dtype("int16"), np.dtype("uint64")], ids=str
)
def test_large_products(device, dtype, shapes):
    values = [numbers(dtype, shape, seed) for seed, shape in enumerate(shapes)]
    a, b = map(Approximate, values)
    for layout in ("plain", "transposed"):
        x, y = (to_array(value, layout, device) for value in values)
        product = x @ y
        assert xp.is_pending(product)
        (a @ b).check(product, device)


@pytest.mark.parametrize("dtype", [*HALVES, *FLOATS], ids=str)
@given(sides=lengths(3), seed=st.integers(0, 2**32), transposed=st.booleans())
def test_what_is_not_finite_stays_in_its_places(device, dtype, sides, seed, transposed):
    m, k, n = sides
    rng = np.random.default_rng(seed)
    values = []
    for shape in ((m, k), (k, n)):
        value = rng.integers(-2, 3, shape).astype(dtype)  # so that sums are exact
        if value.size:
            special = rng.choice([np.inf, -np.inf, np.nan, -0.0], 3)
            value.reshape(-1)[rng.integers(0, value.size, 3)] = special.astype(dtype)
        values.append(value)
    layout = "transposed" if transposed else "plain"
    product = np.asarray(operator.matmul(*(to_array(value, layout, device) for value in values)))
    with np.errstate(all="ignore"):
        expected = wide(values[0]) @ wide(values[1])
    found = wide(product)
    # Which part of a complex number is NaN depends on the order of its four products.
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    np.testing.assert_array_equal(found[finite], expected[finite])
    if kind_of(dtype) == "f":
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("side", [1, 3, 16, 65, 129])
@pytest.mark.parametrize("dtype", [*HALVES, *FLOATS], ids=str)
def test_the_ends_of_the_range(device, dtype, side):
    limits = ml_dtypes.finfo(rounded(1, dtype).real.dtype)
    identity = np.eye(side)
    for number in (limits.smallest_subnormal, limits.smallest_normal, limits.max):
        value = np.full((side, side), number, dtype)
        x, y = (to_array(each, device=device) for each in (value, identity.astype(dtype)))
        check(x @ y, value, device=device)
        check(y @ x, value, device=device)
    twice = to_array((2 * identity).astype(dtype), device=device)
    assert np.isposinf(np.asarray(x @ twice).real).all()
    half = to_array((identity / 2).astype(dtype), device=device)
    lost = to_array(np.full((side, side), limits.smallest_subnormal, dtype), device=device)
    check(lost @ half, np.zeros((side, side), dtype), device=device)  # a tie goes to even


# -- in place -----------------------------------------------------------------------------------

# What is cast to the dtype on the left, beside what has it already.
NARROWED = [
    ("int8", "int64"),
    ("int64", "uint8"),
    ("bfloat16", "float32"),
    ("float32", "float64"),
    ("complex64", "float64"),
]


@pytest.mark.parametrize("dtypes", SAME + [tuple(map(named, pair)) for pair in NARROWED], ids=str)
@given(m=st.sampled_from([0, 1, 2, 3, 9]), n=st.sampled_from([0, 1, 2, 3, 16, 33]), data=st.data())
def test_in_place_products(device, dtypes, m, n, data):
    value = numbers(dtypes[0], (m, n), 1)
    x = to_array(value, data.draw(st.sampled_from(["plain", "transposed", "pending"])), device)
    y, b = data.draw(operands(device, dtypes[1], (n, n)))
    view, same = x.T, x
    x @= y
    assert x is same
    expected = (Approximate(value) @ b).astype(dtypes[0])
    expected.check(x, device)
    expected.mT.check(view, device)


@pytest.mark.parametrize("other", [lambda x: x, lambda x: x.T, lambda x: x[::-1, :]])
def test_in_place_products_with_themselves(device, other):
    value = np.arange(9.0).reshape(3, 3)
    x = to_array(value, device=device)
    x @= other(x)
    check(x, value @ other(value), device=device)


@pytest.mark.parametrize(
    ("dtypes", "shape", "error"),
    [
        (("float32", "complex64"), (2, 2), TypeError),
        (("int32", "float32"), (2, 2), TypeError),
        (("int64", "uint64"), (2, 2), TypeError),
        (("float32", "float32"), (2, 3), ValueError),
        (("float32", "float32"), (3, 2), ValueError),
        (("float32", "float32"), (2,), ValueError),
        (("float32", "float32"), (1, 2, 2), ValueError),
        (("float32", "float32"), (), ValueError),
    ],
    ids=str,
)
def test_in_place_products_that_do_not_fit(device, dtypes, shape, error):
    x = to_array(np.eye(2, dtype=dtypes[0]), device=device)
    y = to_array(np.ones(shape, dtypes[1]), device=device)
    with pytest.raises(error):
        x @= y
    check(x, np.eye(2, dtype=dtypes[0]), device=device)


# -- outer, tensordot, vecdot, matrix_power -----------------------------------------------------


@pytest.mark.parametrize("dtype", [*BOOL, *INTEGERS, *HALVES, *FLOATS], ids=str)
@given(data=st.data(), sides=lengths(2), special=st.booleans())
def test_outer_products_are_single_multiplications(device, dtype, data, sides, special):
    values = [numbers(dtype, (side,), seed) for seed, side in enumerate(sides)]
    if special and kind_of(dtype) == "f":
        limits = ml_dtypes.finfo(dtype)
        ends = [0.0, -0.0, np.inf, np.nan, limits.max, limits.smallest_subnormal, 1 / 3]
        values = [np.resize(np.array(ends, dtype), side) for side in sides]
    layouts = [data.draw(st.sampled_from(list(LAYOUTS))) for _ in sides]
    x, y = map(to_array, values, layouts, [device] * 2)
    with np.errstate(all="ignore"):
        expected = np.multiply.outer(*values)
    for product in (xp.linalg.outer(x, y), xp.tensordot(x, y, axes=0)):
        if kind_of(dtype) == "c":  # four multiplications, rounded together or one by one
            a, b = map(Approximate, values)
            (a[:, None] @ b[None, :]).check(product, device)
        else:
            check(product, expected, device=device)


@st.composite
def contractions(draw):
    """Two shapes and the axes to contract, each counted from either end, or their number."""
    sides = st.sampled_from([1, 2, 2, 3, 3, 4, 5, 0])
    inner = draw(st.lists(sides, max_size=3))
    shapes, axes = [], []
    for _ in range(2):
        ndim = len(inner) + draw(st.integers(0, 2))
        at = draw(st.permutations(range(ndim)))[: len(inner)]
        shape = [draw(sides) for _ in range(ndim)]
        for axis, side in zip(at, inner, strict=True):
            shape[axis] = side
        shapes.append(tuple(shape))
        axes.append([axis - ndim * draw(st.booleans()) for axis in at])
    return shapes, tuple(axes)


@pytest.mark.parametrize("kind", KINDS)
@given(contraction=contractions(), data=st.data())
def test_tensor_contractions(device, kind, contraction, data):
    dtypes = data.draw(st.sampled_from(KINDS[kind]))
    shapes, axes = contraction
    (x, a), (y, b) = data.draw(matrices(device, dtypes, shapes))
    product = xp.tensordot(x, y, axes=axes)
    places = [[axis % len(shape) for axis in at] for at, shape in zip(axes, shapes, strict=True)]
    kept = [
        [axis for axis in range(len(shape)) if axis not in at]
        for at, shape in zip(places, shapes, strict=True)
    ]
    inner = math.prod(shapes[0][axis] for axis in places[0])
    left, right = ([shape[axis] for axis in axes] for shape, axes in zip(shapes, kept, strict=True))
    a = a.permuted(kept[0] + places[0]).reshape((math.prod(left), inner))
    b = b.permuted(places[1] + kept[1]).reshape((inner, math.prod(right)))
    (a @ b).reshape((*left, *right)).check(product, device)


@pytest.mark.parametrize("count", [1, 2, 3])
@given(data=st.data())
def test_tensor_contractions_over_a_number_of_axes(device, count, data):
    dtypes = data.draw(st.sampled_from(PAIRS))
    inner = data.draw(st.lists(st.sampled_from([1, 2, 3, 5, 9, 0]), min_size=count, max_size=count))
    left, right = (data.draw(st.lists(st.integers(1, 4), max_size=2)) for _ in range(2))
    (x, a), (y, b) = data.draw(matrices(device, dtypes, [(*left, *inner), (*inner, *right)]))
    a = a.reshape((math.prod(left), math.prod(inner)))
    b = b.reshape((math.prod(inner), math.prod(right)))
    expected = (a @ b).reshape((*left, *right))
    expected.check(xp.tensordot(x, y, axes=count), device)
    if count == 2:
        expected.check(xp.tensordot(x, y), device)


@pytest.mark.parametrize("kind", KINDS)
@given(
    stacks=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, min_side=0, max_side=4),
    side=st.sampled_from(SIDES),
    data=st.data(),
)
def test_dot_products_of_vectors(device, kind, stacks, side, data):
    dtypes = data.draw(st.sampled_from(KINDS[kind]))
    shapes = stacks.input_shapes
    axis = -1 - data.draw(st.integers(0, min(map(len, shapes))))
    places = [len(shape) + 1 + axis for shape in shapes]
    full = [(*s[:at], side, *s[at:]) for s, at in zip(shapes, places, strict=True)]
    (x, a), (y, b) = data.draw(matrices(device, dtypes, full))
    product = xp.vecdot(x, y, axis=axis)
    assert product.shape == stacks.result_shape
    (axis_last(a, axis).conj()[..., None, :] @ axis_last(b, axis)[..., None])[..., 0, 0].check(
        product, device
    )


def axis_last(a, axis):
    axes = list(range(a.value.ndim))
    axes.append(axes.pop(axis))
    return a.permuted(axes)


def test_dot_products_conjugate_the_first_vector(device):
    one, other = (to_array(np.array(value), device=device) for value in ([1j], [1 + 1j]))
    check(xp.vecdot(one, one), np.array(1 + 0j), device=device)
    check(xp.vecdot(one, other), np.array(1 - 1j), device=device)
    check(xp.vecdot(other, one), np.array(1 + 1j), device=device)


@pytest.mark.parametrize("dtype", NUMERIC + HALVES, ids=str)
@given(
    stack=STACKS,
    side=st.sampled_from([1, 2, 3, 5, 8, 17, 33, 0]),
    n=st.sampled_from(range(10)),
    data=st.data(),
)
def test_powers_of_matrices(device, dtype, stack, side, n, data):
    x, a = data.draw(operands(device, dtype, (*stack, side, side)))
    if kind_of(dtype) not in "iu":  # of norms up to about 1, so that powers stay in range
        x = xp.astype(x * (1 / max(1, side)), dtype)
        a = Approximate(np.asarray(x))
    power = np.broadcast_to(np.eye(side, dtype=a.value.dtype), a.value.shape)
    sizes = np.abs(power)
    for _ in range(n):
        power, sizes = power @ a.value, sizes @ np.abs(a.value)
    expected = Approximate(power.astype(dtype) if a.is_exact else power, dtype)
    expected = expected.accumulated(n * side, sizes).after(2 * n, sizes)
    expected.check(xp.linalg.matrix_power(x, n), device)


# -- transposes ---------------------------------------------------------------------------------


@given(
    dtype=st.sampled_from(EXTENDED),
    shape=hnp.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=4),
    data=st.data(),
)
def test_transposes(device, dtype, shape, data):
    x, _ = data.draw(operands(device, dtype, shape))
    expected = np.swapaxes(np.array(x), -1, -2)
    for transposed in (xp.matrix_transpose(x), xp.linalg.matrix_transpose(x), x.mT):
        check(transposed, expected, device=device)
    if x.ndim == 2:
        check(x.T, expected, device=device)
    else:
        with pytest.raises(ValueError, match="two-dimensional"):
            x.T  # noqa: B018
