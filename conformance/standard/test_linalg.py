"""Decompositions and what comes from them: by what defines them, and against NumPy in float64.

Bounds are those of backward error analysis: a residual is small relative to the matrix, with a
factor for its size. Half floats are computed in float32 and what they give is rounded once more.
"""

import numpy as np
import pytest
from hypothesis import strategies as st

import ggarray as xp
from conformance.standard.references import (
    BOOL,
    COMPLEXES,
    EXTENDED,
    FLOATS,
    HALVES,
    INTEGERS,
    LAYOUTS,
    NUMERIC,
    REALS,
    STACKS,
    check,
    eps_of,
    given,
    is_half,
    kind_of,
    numbers,
    part_of,
    to_array,
)
from ggarray import linalg

COVERS = (
    "linalg.cholesky",
    "linalg.cross",
    "linalg.det",
    "linalg.diagonal",
    "linalg.eig",
    "linalg.eigh",
    "linalg.eigvals",
    "linalg.eigvalsh",
    "linalg.inv",
    "linalg.matrix_norm",
    "linalg.matrix_power",
    "linalg.matrix_rank",
    "linalg.pinv",
    "linalg.qr",
    "linalg.slogdet",
    "linalg.solve",
    "linalg.svd",
    "linalg.svdvals",
    "linalg.trace",
    "linalg.vector_norm",
)

SIDES = st.sampled_from([1, 2, 3, 4, 5, 7, 12, 0])

every_floating_dtype = pytest.mark.parametrize("dtype", [*FLOATS, *HALVES], ids=str)


@st.composite
def matrices(draw, dtype, rows=SIDES, columns=None, stack=STACKS):
    """Stacks of matrices of random numbers, square without `columns`."""
    m = draw(rows)
    n = m if columns is None else draw(columns)
    return numbers(dtype, (*draw(stack), m, n), draw(st.integers(0, 2**32)))


def array(data, value, device):
    """Return an Array of these values in some layout, or pending."""
    return to_array(value, data.draw(st.sampled_from(list(LAYOUTS))), device)


def double(value):
    """Return the values in float64 or complex128."""
    value = np.asarray(value)
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def adjoint(value):
    return np.conj(np.swapaxes(value, -1, -2))


def hermitian(value):
    return ((double(value) + adjoint(double(value))) / 2).astype(value.dtype)


def definite(value):
    """Return Hermitian matrices with eigenvalues of about 1 and more, made of square ones."""
    return (double(value) @ adjoint(double(value)) + np.eye(value.shape[-1])).astype(value.dtype)


def complex_of(dtype):
    """Return the complex dtype in which eigenvalues of matrices of a floating dtype are."""
    return np.result_type(np.float32 if is_half(dtype) else dtype, np.complex64)


def described(result, shape, dtype, device):
    """Check all but the values, and return those in double precision."""
    assert type(result) is xp.Array
    assert (result.shape, result.dtype, result.device) == (shape, dtype, device)
    return double(result)


def norm(value):
    """Return the Frobenius norms of matrices."""
    return np.sqrt((np.abs(value) ** 2).sum((-2, -1)))


def near(found, expected, dtype, scale=1.0):
    """Compare matrices by the norms of their differences, relative to `scale`."""
    factor = 8 * (1 + sum(expected.shape[-2:]))
    off = norm(found - expected)
    assert (off <= factor * eps_of(dtype) * scale).all(), (off, scale)


def orthonormal(columns, dtype):
    gram = adjoint(columns) @ columns
    near(gram, np.broadcast_to(np.eye(gram.shape[-1]), gram.shape), dtype)


# -- decompositions -----------------------------------------------------------------------------


@every_floating_dtype
@given(data=st.data(), upper=st.booleans())
def test_cholesky(device, dtype, data, upper):
    value = definite(data.draw(matrices(dtype)))
    factor = linalg.cholesky(array(data, value, device), upper=upper)
    f, a = described(factor, value.shape, dtype, device), double(value)
    np.testing.assert_array_equal(f, np.triu(f) if upper else np.tril(f))
    assert (np.diagonal(f, 0, -2, -1).real > 0).all()
    near(adjoint(f) @ f if upper else f @ adjoint(f), a, dtype, norm(a))


@every_floating_dtype
@given(data=st.data())
def test_eig(device, dtype, data):
    value = data.draw(matrices(dtype))
    x = array(data, value, device)
    result = linalg.eig(x)
    assert result._fields == ("eigenvalues", "eigenvectors")
    w = described(result.eigenvalues, value.shape[:-1], complex_of(dtype), device)
    v = described(result.eigenvectors, value.shape, complex_of(dtype), device)
    a = double(value)
    near(a @ v, v * w[..., None, :], complex_of(dtype), norm(a))
    np.testing.assert_allclose((np.abs(v) ** 2).sum(-2), 1, rtol=100 * eps_of(complex_of(dtype)))
    only = described(linalg.eigvals(x), value.shape[:-1], complex_of(dtype), device)
    for each in (w, only):  # in no particular order: their sum is the trace, their product det
        powers = np.stack([each.sum(-1), (each**2).sum(-1)], -1)
        traces = np.stack([np.trace(b, axis1=-2, axis2=-1) for b in (a, a @ a)], -1)
        scale = (norm(a)[..., None] + 1) ** 2
        assert (np.abs(powers - traces) <= 200 * eps_of(complex_of(dtype)) * scale).all()


@pytest.mark.parametrize("dtype", REALS + COMPLEXES, ids=str)
def test_eigenvalues_are_complex_also_where_all_are_real(device, dtype):
    x = to_array(np.diag([1, 2, 3]).astype(dtype), device=device)
    expected = np.array([1, 2, 3], complex_of(dtype))
    check(linalg.eigvals(x), expected, device=device)
    values, vectors = linalg.eig(x)
    check(values, expected, device=device)
    check(vectors, np.eye(3, dtype=complex_of(dtype)), device=device)
    turn = to_array(np.array([[0, -1], [1, 0]], dtype), device=device)
    found = sorted(np.asarray(linalg.eigvals(turn)), key=lambda each: each.imag)
    np.testing.assert_allclose(found, [-1j, 1j], atol=4 * eps_of(dtype))


@every_floating_dtype
@given(data=st.data())
def test_eigh(device, dtype, data):
    value = hermitian(data.draw(matrices(dtype)))
    x = array(data, value, device)
    result = linalg.eigh(x)
    assert result._fields == ("eigenvalues", "eigenvectors")
    w = described(result.eigenvalues, value.shape[:-1], part_of(dtype), device)
    v = described(result.eigenvectors, value.shape, dtype, device)
    a = double(value)
    assert (np.diff(w) >= 0).all()
    near(a @ v, v * w[..., None, :], dtype, norm(a))
    orthonormal(v, dtype)
    expected = np.linalg.eigvalsh(a)[..., None]
    only = described(linalg.eigvalsh(x), value.shape[:-1], part_of(dtype), device)
    for each in (w, only):
        near(each[..., None], expected, dtype, norm(a))


@pytest.mark.parametrize("mode", [None, "reduced", "complete"])
@every_floating_dtype
@given(data=st.data())
def test_qr(device, dtype, mode, data):
    value = data.draw(matrices(dtype, columns=SIDES))
    *stack, rows, columns = value.shape
    inner = rows if mode == "complete" else min(rows, columns)
    result = linalg.qr(array(data, value, device), **({"mode": mode} if mode else {}))
    assert result._fields == ("Q", "R")
    q = described(result.Q, (*stack, rows, inner), dtype, device)
    r = described(result.R, (*stack, inner, columns), dtype, device)
    np.testing.assert_array_equal(r, np.triu(r))
    near(q @ r, double(value), dtype, norm(double(value)))
    orthonormal(q, dtype)


@pytest.mark.parametrize("full", [None, True, False])
@every_floating_dtype
@given(data=st.data())
def test_svd(device, dtype, full, data):
    value = data.draw(matrices(dtype, columns=SIDES))
    x = array(data, value, device)
    *stack, rows, columns = value.shape
    inner = min(rows, columns)
    result = linalg.svd(x, **({} if full is None else {"full_matrices": full}))
    assert result._fields == ("U", "S", "Vh")
    economic = full is False
    u = described(result.U, (*stack, rows, inner if economic else rows), dtype, device)
    s = described(result.S, (*stack, inner), part_of(dtype), device)
    vh = described(result.Vh, (*stack, inner if economic else columns, columns), dtype, device)
    a = double(value)
    near((u[..., :inner] * s[..., None, :]) @ vh[..., :inner, :], a, dtype, norm(a))
    orthonormal(u, dtype)
    orthonormal(adjoint(vh), dtype)
    expected = np.linalg.svd(a, compute_uv=False)[..., None]
    for each in (s, described(linalg.svdvals(x), (*stack, inner), part_of(dtype), device)):
        assert (each >= 0).all()
        assert (np.diff(each) <= 0).all()
        near(each[..., None], expected, dtype, norm(a))


# -- determinants, inverses, solutions ----------------------------------------------------------


@every_floating_dtype
@given(data=st.data())
def test_determinants(device, dtype, data):
    value = data.draw(matrices(dtype, rows=st.sampled_from([1, 2, 3, 4, 6, 0])))
    x = array(data, value, device)
    det = described(linalg.det(x), value.shape[:-2], dtype, device)
    result = linalg.slogdet(x)
    assert result._fields == ("sign", "logabsdet")
    sign = described(result.sign, value.shape[:-2], dtype, device)
    logabsdet = described(result.logabsdet, value.shape[:-2], part_of(dtype), device)
    rows = np.sqrt((np.abs(double(value)) ** 2).sum(-1))
    bound = 100 * eps_of(dtype) * (1 + rows).prod(-1)  # Hadamard's: no determinant is greater
    expected = np.linalg.det(double(value))
    assert (np.abs(det - expected) <= bound).all()
    assert (np.abs(sign * np.exp(logabsdet) - expected) <= bound).all()
    np.testing.assert_allclose(np.abs(sign), 1, rtol=4 * eps_of(dtype))


@pytest.mark.parametrize("dtype", FLOATS + HALVES, ids=str)
def test_singular_matrices(device, dtype):
    x = to_array(np.ones((2, 2, 2), dtype), device=device)
    check(linalg.det(x), np.zeros(2, dtype), device=device, zeros=False)
    sign, logabsdet = linalg.slogdet(x)
    check(sign, np.zeros(2, dtype), device=device, zeros=False)
    check(logabsdet, np.full(2, -np.inf, part_of(dtype)), device=device)
    for function in (
        linalg.inv,
        lambda x: linalg.solve(x, x),
        lambda x: linalg.matrix_power(x, -1),
    ):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            function(x)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        linalg.cholesky(-x)


@every_floating_dtype
@given(data=st.data())
def test_inverses(device, dtype, data):
    value = definite(data.draw(matrices(dtype)))
    x = array(data, value, device)
    a = double(value)
    identity = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    for inverse in (linalg.inv(x), linalg.matrix_power(x, -1), linalg.pinv(x)):
        b = described(inverse, value.shape, dtype, device)
        near(a @ b, identity, dtype, norm(a) * norm(b))
    square = described(linalg.matrix_power(x, -2), value.shape, dtype, device)
    near(a @ a @ square, identity, dtype, (norm(a) * norm(b)) ** 2)


@every_floating_dtype
@given(data=st.data())
def test_pseudo_inverses(device, dtype, data):
    value = data.draw(matrices(dtype, columns=SIDES))
    inverse = linalg.pinv(array(data, value, device))
    *stack, rows, columns = value.shape
    b, a = described(inverse, (*stack, columns, rows), dtype, device), double(value)
    condition = 1 + norm(a) * norm(b)  # the four properties of Moore and Penrose
    near(a @ b @ a, a, dtype, condition * norm(a))
    near(b @ a @ b, b, dtype, condition * norm(b))
    near(adjoint(a @ b), a @ b, dtype, condition)
    near(adjoint(b @ a), b @ a, dtype, condition)


def of_singular_values(dtype, values):
    """Return a matrix that has these singular values, and no zeros to see it by."""
    n = len(values)
    mirror = np.eye(n) - 2 / n  # orthogonal
    return (mirror @ np.diag(values) @ mirror).astype(dtype)


@every_floating_dtype
def test_what_is_negligible_depends_on_the_precision(device, dtype):
    eps = eps_of(dtype)
    value = np.stack([of_singular_values(dtype, each) for each in ([4, 2, 1, 0.0], [4, 0, 0, 0])])
    x = to_array(value, device=device)
    check(linalg.matrix_rank(x), np.array([3, 1]), device=device)
    check(linalg.matrix_rank(x, rtol=0.3), np.array([2, 1]), device=device)
    rtol = to_array(np.array([0.6, 0.3], np.float32), device=device)
    check(linalg.matrix_rank(x, rtol=rtol), np.array([1, 1]), device=device)
    expected = [
        of_singular_values(np.float64, each) for each in ([0.25, 0.5, 1, 0], [0.25, 0, 0, 0])
    ]
    for found in (linalg.pinv(x), linalg.pinv(x, rtol=0.1)):
        near(described(found, value.shape, dtype, device), np.stack(expected), dtype, 4.0)
    large = [of_singular_values(np.float64, each) for each in ([0.25, 0, 0, 0], [0.25, 0, 0, 0])]
    found = linalg.pinv(x, rtol=to_array(np.array([0.6, 0.3]), device=device))
    near(described(found, value.shape, dtype, device), np.stack(large), dtype, 4.0)
    diagonal = to_array(np.diag([1, 1, 5 * eps, 2 * eps]).astype(dtype), device=device)
    check(linalg.matrix_rank(diagonal), np.array(3), device=device)  # 4 eps at least
    found = np.diagonal(np.asarray(linalg.pinv(diagonal)).astype(np.complex128))
    np.testing.assert_allclose(found, [1, 1, 1 / (5 * eps), 0], rtol=8 * eps)


@every_floating_dtype
@given(data=st.data())
def test_solutions(device, dtype, data):
    value = definite(data.draw(matrices(dtype)))
    n = value.shape[-1]
    a = double(value)
    vector = numbers(dtype, (n,), 1)
    x = linalg.solve(array(data, value, device), array(data, vector, device))
    found = described(x, value.shape[:-1], dtype, device)[..., None]
    expected = np.broadcast_to(double(vector)[:, None], found.shape)
    near(a @ found, expected, dtype, norm(a) * norm(found))
    stack = data.draw(st.sampled_from([(), value.shape[:-2], *({(1,) * (value.ndim - 2)})]))
    right = numbers(dtype, (*stack, n, data.draw(st.sampled_from([1, 3, 0]))), 2)
    x = linalg.solve(array(data, value, device), array(data, right, device))
    shape = (*value.shape[:-2], *right.shape[-2:])
    found = described(x, shape, dtype, device)
    near(a @ found, np.broadcast_to(double(right), shape), dtype, norm(a) * norm(found))


def test_right_sides_of_one_axis_are_vectors_and_others_are_matrices(device):
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    x = to_array(np.stack([matrix] * 2), device=device)
    vectors = np.array([[3.0, 4.0], [5.0, 5.0]])  # as a matrix its columns are solved for
    found = linalg.solve(x, to_array(vectors, device=device))
    check(found, np.linalg.inv(matrix)[None] @ np.stack([vectors] * 2), rtol=1e-14, device=device)
    one = linalg.solve(x, to_array(vectors[0], device=device))
    check(one, np.array([[1.0, 1.0]] * 2), rtol=1e-14, device=device)
    stacked = linalg.solve(x[0, ...], to_array(np.ones((3, 2, 1)), device=device))
    check(stacked, np.array([[[0.4], [0.2]]] * 3), rtol=1e-14, device=device)


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (("float32", "float64"), "float64"),
        (("float32", "complex64"), "complex64"),
        (("float64", "complex64"), "complex128"),
        (("float16", "float32"), "float32"),
        (HALVES, "float32"),
    ],
    ids=str,
)
def test_solutions_are_of_the_promoted_dtype(device, dtypes, expected):
    for a, b in (dtypes, dtypes[::-1]):
        x, y = to_array(np.eye(2, dtype=a), device=device), to_array(np.ones(2, b), device=device)
        check(linalg.solve(x, y), np.ones(2, expected), device=device)


# -- traces, diagonals, cross products ----------------------------------------------------------


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data(), offset=st.integers(-8, 8))
def test_diagonals_and_traces(device, dtype, data, offset):
    value = data.draw(matrices(dtype, columns=SIDES))
    x = array(data, value, device)
    expected = np.diagonal(value, offset, -2, -1)
    check(linalg.diagonal(x, offset=offset), expected, device=device)
    kind = kind_of(dtype)
    total = {"i": np.int64, "b": np.int64, "u": np.uint64}.get(kind, dtype)
    if kind in "biu":
        check(linalg.trace(x, offset=offset), expected.astype(total).sum(-1, total), device=device)
    else:
        found = described(linalg.trace(x, offset=offset), value.shape[:-2], dtype, device)
        off = np.abs(found - double(expected).sum(-1))
        assert (off <= 16 * eps_of(dtype) * np.abs(double(expected)).sum(-1)).all()
    if not offset:
        check(linalg.diagonal(x), expected, device=device)


def test_traces_cast_before_they_add(device):
    x = to_array(np.full((2, 2), 255, np.uint8), device=device)
    check(linalg.trace(x), np.array(510, np.uint64), device=device)
    check(linalg.trace(x, dtype=xp.uint8), np.array(254, np.uint8), device=device)
    check(linalg.trace(x, dtype=xp.float32), np.array(510, np.float32), device=device)
    check(xp.sum(x), np.array(1020, np.uint64), device=device)
    single = to_array(np.full((2, 2), 1.5, np.float32), device=device)
    check(linalg.trace(single), np.array(3, np.float32), device=device)
    check(linalg.trace(single, dtype=xp.float64), np.array(3.0), device=device)


def test_diagonals_are_copies(device):
    x = to_array(np.eye(2), device=device)
    diagonal = linalg.diagonal(x)
    diagonal[0] = 5.0
    check(x, np.eye(2), device=device)


@pytest.mark.parametrize("dtype", [*NUMERIC, *HALVES], ids=str)
@given(data=st.data(), axis=st.integers(-3, -1))
def test_cross_products(device, dtype, data, axis):
    stacks = [(3, 2), (1, 2), (3, 1), (1, 1), (2,), ()]
    others = [stack for stack in stacks if len(stack) >= -1 - axis]
    shapes = [(3, 2), data.draw(st.sampled_from(others))]
    values = [
        numbers(dtype, (*shape[: len(shape) + 1 + axis], 3, *shape[len(shape) + 1 + axis :]), seed)
        for seed, shape in enumerate(shapes)
    ]
    x, y = (array(data, value, device) for value in values)
    (a0, a1, a2), (b0, b1, b2) = (np.moveaxis(exact(value), axis, 0) for value in values)
    expected = [a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0]
    sizes = [abs(a1 * b2) + abs(a2 * b1), abs(a2 * b0) + abs(a0 * b2), abs(a0 * b1) + abs(a1 * b0)]
    expected = np.moveaxis(np.stack(expected), 0, axis)
    found = linalg.cross(x, y, axis=axis)
    if kind_of(dtype) in "iu":
        check(found, expected.astype(dtype), device=device)
    else:
        off = np.abs(described(found, expected.shape, dtype, device) - expected)
        assert (off <= 8 * eps_of(dtype) * np.moveaxis(np.stack(sizes), 0, axis)).all()
    if axis == -1:
        check(linalg.cross(x, y), np.asarray(found), device=device)


def exact(value):
    """Return integers modulo 2^64, others in double precision."""
    return value.astype(np.uint64) if kind_of(value.dtype) in "iu" else double(value)


# -- norms --------------------------------------------------------------------------------------

MATRIX_NORMS = {
    "fro": lambda a, s: (a**2).sum() ** 0.5,
    None: lambda a, s: (a**2).sum() ** 0.5,
    "nuc": lambda a, s: s.sum(),
    1: lambda a, s: a.sum(0).max(),
    -1: lambda a, s: a.sum(0).min(),
    2: lambda a, s: s.max(),
    -2: lambda a, s: s.min(),
    np.inf: lambda a, s: a.sum(1).max(),
    -np.inf: lambda a, s: a.sum(1).min(),
}


@pytest.mark.parametrize("ord", MATRIX_NORMS)
@given(
    data=st.data(),
    dtype=st.sampled_from(FLOATS + HALVES + INTEGERS + BOOL),
    keepdims=st.booleans(),
)
def test_norms_of_matrices(device, ord, data, dtype, keepdims):
    side = st.sampled_from([1, 2, 3, 5, 8])
    value = data.draw(matrices(dtype, side, side))
    result_dtype = part_of(dtype) if kind_of(dtype) in "fc" else np.dtype(np.float64)
    options = {} if ord == "fro" and not keepdims else {"ord": ord, "keepdims": keepdims}
    found = linalg.matrix_norm(array(data, value, device), **options)
    kept = (1, 1) if keepdims else ()
    found = described(found, (*value.shape[:-2], *kept), result_dtype, device)
    wide = double(value)
    expected = np.empty(value.shape[:-2])
    for at in np.ndindex(expected.shape):
        singular = np.linalg.svd(wide[at], compute_uv=False)
        expected[at] = MATRIX_NORMS[ord](np.abs(wide[at]), singular)
    off = np.abs(found.reshape(expected.shape) - expected)
    assert (off <= 50 * eps_of(result_dtype) * norm(wide)).all()


VECTOR_NORMS = {
    0: lambda a, **axes: (a != 0).sum(**axes),
    np.inf: lambda a, **axes: a.max(**axes),
    -np.inf: lambda a, **axes: a.min(**axes),
}


@pytest.mark.parametrize("ord", [None, 0, 1, 2, 3, 0.5, -1, -2, np.inf, -np.inf], ids=str)
@given(
    data=st.data(),
    dtype=st.sampled_from(FLOATS + HALVES + INTEGERS),
    shape=st.sampled_from([(), (1,), (5,), (2, 3), (4, 1, 3), (2, 3, 2, 2)]),
    keepdims=st.booleans(),
)
def test_norms_of_vectors(device, ord, data, dtype, shape, keepdims):
    rng = np.random.default_rng(len(shape))  # no zeros: negative orders divide
    value = (rng.choice([1, 2, 3, 5], shape) * rng.choice([1, -1], shape)).astype(np.int8)
    value = np.abs(value).astype(dtype) if kind_of(dtype) == "u" else value.astype(dtype)
    each = st.integers(-len(shape), len(shape) - 1) if shape else st.just(None)
    many = st.sets(st.sampled_from(range(len(shape)))).map(tuple) if shape else st.just(())
    axis = data.draw(st.one_of(st.none(), each, many))
    options = {"axis": axis, "keepdims": keepdims} | ({} if ord is None else {"ord": ord})
    size = np.abs(double(value))
    order = 2 if ord is None else ord
    power = VECTOR_NORMS.get(order, lambda a, **axes: (a**order).sum(**axes) ** (1 / order))
    expected = np.asarray(power(size, axis=axis, keepdims=keepdims))
    result_dtype = part_of(dtype) if kind_of(dtype) in "fc" else np.dtype(np.float64)
    found = linalg.vector_norm(array(data, value, device), **options)
    check(found, expected, result_dtype, rtol=50 * eps_of(result_dtype), device=device)


def test_norms_of_what_is_not_finite(device):
    x = to_array(np.array([[1.0, np.inf], [np.nan, -3.0], [1e300, 1e300]]), device=device)
    for order, expected in {1: [np.inf, np.nan, 2e300], np.inf: [np.inf, np.nan, 1e300]}.items():
        found = linalg.vector_norm(x, axis=-1, ord=order)
        check(found, np.array(expected), device=device)
    check(linalg.vector_norm(x, axis=-1, ord=0), np.array([2.0, 2.0, 2.0]), device=device)
    for empty in ((0,), (0, 3), (2, 0)):
        nothing = to_array(np.ones(empty, np.float32), device=device)
        for order in (0, 1, 2):
            check(linalg.vector_norm(nothing, ord=order), np.float32(0), device=device)
        if len(empty) == 2:
            check(linalg.matrix_norm(nothing), np.float32(0), device=device)


# -- errors -------------------------------------------------------------------------------------

OF_SQUARE = ["cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet"]
OF_MATRICES = [*OF_SQUARE, "matrix_rank", "pinv", "qr", "svd", "svdvals"]
OF_STACKS = [*OF_MATRICES, "diagonal", "trace", "matrix_norm", "matrix_transpose"]


@pytest.mark.parametrize("name", OF_SQUARE)
@pytest.mark.parametrize("shape", [(2, 3), (3, 0), (2, 3, 4)], ids=str)
def test_matrices_have_to_be_square(device, name, shape):
    x = to_array(np.ones(shape), device=device)
    for function in (getattr(linalg, name), lambda x: linalg.matrix_power(x, 2)):
        with pytest.raises(np.linalg.LinAlgError, match=r"square .*\(.*\)"):
            function(x)


@pytest.mark.parametrize("name", OF_STACKS)
@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
def test_vectors_are_no_matrices(device, name, shape):
    with pytest.raises(ValueError, match=r"not shape \(|two axes"):
        getattr(linalg, name)(to_array(np.ones(shape), device=device))


@pytest.mark.parametrize("dtype", [*BOOL, *INTEGERS], ids=str)
def test_decompositions_are_of_floats(device, dtype):
    x = to_array(np.eye(2, dtype=dtype), device=device)
    for name in OF_MATRICES:
        with pytest.raises(TypeError, match="floating"):
            getattr(linalg, name)(x)
    y = to_array(np.eye(2), device=device)
    for operands in ((x, y), (y, x)):
        with pytest.raises(TypeError, match="floating"):
            linalg.solve(*operands)
    with pytest.raises(TypeError, match="floating"):
        linalg.matrix_power(x, -1)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (linalg.solve, [(3, 3), (2,)]),
        (linalg.solve, [(3, 3), (2, 3)]),
        (linalg.solve, [(3, 3), ()]),
        (linalg.solve, [(3, 2), (3,)]),
        (linalg.solve, [(2, 3, 3), (4, 3, 1)]),
        (linalg.cross, [(2,), (2,)]),
        (linalg.cross, [(3,), (1,)]),
        (linalg.cross, [(2, 3), (4, 3)]),
        (lambda x, y: linalg.cross(x, y, axis=0), [(2, 3), (3, 3)]),
        (lambda x, y: linalg.cross(x, y, axis=2), [(3, 3), (3, 3)]),
        (lambda x, y: linalg.vector_norm(x, axis=2), [(3, 3), ()]),
        (lambda x, y: linalg.matrix_norm(x, ord=3), [(3, 3), ()]),
        (lambda x, y: linalg.matrix_norm(x, ord="nuclear"), [(3, 3), ()]),
        (lambda x, y: linalg.qr(x, mode="full"), [(3, 3), ()]),
    ],
)
def test_arguments_that_do_not_fit(device, function, shapes):
    with pytest.raises(ValueError):  # noqa: PT011
        function(*(to_array(np.ones(shape), device=device) for shape in shapes))
