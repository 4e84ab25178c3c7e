"""Linear algebra: what defines each result, checked with NumPy in double precision."""

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, zeros_q8_0

import ggarray as xp
from ggarray import linalg

bfloat16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.float32, np.float64, np.complex64, np.complex128]
HALVES = [np.float16, bfloat16]
REAL_OF = {np.float32: np.float32, np.float64: np.float64}
REAL_OF |= {np.complex64: np.float32, np.complex128: np.float64}
COMPLEX_OF = {np.float32: np.complex64, np.float64: np.complex128}
COMPLEX_OF |= {np.complex64: np.complex64, np.complex128: np.complex128}
FACTORIZATIONS = ["cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet"]
OF_MATRICES = ["matrix_rank", "pinv", "qr", "svd", "svdvals"]


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


def wide(x):
    value = np.asarray(x)
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def eps(dtype):
    return 100 * float(xp.finfo(dtype).eps)


def close(value, expected, dtype):
    np.testing.assert_allclose(value, np.broadcast_to(expected, value.shape), atol=eps(dtype))


def shaped(x, shape, dtype, device="cpu"):
    assert type(x) is xp.Array
    assert (x.shape, x.dtype, x.device) == (shape, np.dtype(dtype), device)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def hermitian(shape, dtype):
    x = numbers(shape, dtype)
    return (x + adjoint(x)).astype(dtype)


def definite(shape, dtype):
    x = numbers(shape, dtype)
    return (x @ adjoint(x) + 2 * np.eye(shape[-1])).astype(dtype)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 0), (3, 0, 0)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_cholesky_factors_multiply_to_the_matrix(dtype, shape):
    x = definite(shape, dtype)
    for upper in (False, True):
        factor = linalg.cholesky(on_cpu(x), upper=upper)
        shaped(factor, shape, dtype)
        f = wide(factor)
        np.testing.assert_array_equal(f, np.triu(f) if upper else np.tril(f))
        close(adjoint(f) @ f if upper else f @ adjoint(f), x, dtype)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 0), (2, 0, 0)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_eigenvectors_are_scaled_by_the_matrix(dtype, shape):
    x = numbers(shape, dtype)
    values, vectors = linalg.eig(on_cpu(x))
    shaped(values, shape[:-1], COMPLEX_OF[dtype])
    shaped(vectors, shape, COMPLEX_OF[dtype])
    close(wide(x) @ wide(vectors), wide(vectors) * wide(values)[..., None, :], dtype)
    check(linalg.eigvals(on_cpu(x)), wide(values), COMPLEX_OF[dtype], eps(dtype), eps(dtype))


def test_real_eigenvalues_are_complex_too():
    result = linalg.eig(on_cpu(np.eye(2)))
    assert result._fields == ("eigenvalues", "eigenvectors")
    check(result.eigenvalues, [1, 1], np.complex128)
    check(result.eigenvectors, np.eye(2), np.complex128)
    check(linalg.eigvals(on_cpu(np.eye(2), np.float32)), [1, 1], np.complex64)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 0)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_eigh_gives_real_values_and_orthonormal_vectors(dtype, shape):
    x = hermitian(shape, dtype)
    result = linalg.eigh(on_cpu(x))
    assert result._fields == ("eigenvalues", "eigenvectors")
    values, vectors = result
    shaped(values, shape[:-1], REAL_OF[dtype])
    shaped(vectors, shape, dtype)
    q = wide(vectors)
    close((q * wide(values)[..., None, :]) @ adjoint(q), x, dtype)
    close(adjoint(q) @ q, np.eye(shape[-1]), dtype)
    check(linalg.eigvalsh(on_cpu(x)), wide(values), REAL_OF[dtype], eps(dtype), eps(dtype))


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 3, 5), (0, 3)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_qr_factors(dtype, shape):
    x = numbers(shape, dtype)
    *batch, rows, columns = shape
    for mode, inner in (("reduced", min(rows, columns)), ("complete", rows)):
        result = linalg.qr(on_cpu(x), mode=mode)
        assert result._fields == ("Q", "R")
        shaped(result.Q, (*batch, rows, inner), dtype)
        shaped(result.R, (*batch, inner, columns), dtype)
        q, r = wide(result.Q), wide(result.R)
        close(q @ r, x, dtype)
        close(adjoint(q) @ q, np.eye(inner), dtype)
        np.testing.assert_array_equal(r, np.triu(r))
    with pytest.raises(ValueError, match="mode"):
        linalg.qr(on_cpu(x), mode="r")


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 3, 5), (0, 3)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_singular_values_and_vectors(dtype, shape):
    x = numbers(shape, dtype)
    *batch, rows, columns = shape
    inner = min(rows, columns)
    for full in (True, False):
        result = linalg.svd(on_cpu(x), full_matrices=full)
        assert result._fields == ("U", "S", "Vh")
        shaped(result.U, (*batch, rows, rows if full else inner), dtype)
        shaped(result.S, (*batch, inner), REAL_OF[dtype])
        shaped(result.Vh, (*batch, columns if full else inner, columns), dtype)
        u, s, vh = (wide(part) for part in result)
        assert (np.diff(s) <= 0).all()
        assert (s >= 0).all()
        close((u[..., :inner] * s[..., None, :]) @ vh[..., :inner, :], x, dtype)
        close(adjoint(u) @ u, np.eye(u.shape[-1]), dtype)
        close(vh @ adjoint(vh), np.eye(vh.shape[-2]), dtype)
    check(linalg.svdvals(on_cpu(x)), wide(result.S), REAL_OF[dtype], eps(dtype), eps(dtype))


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 4, 4), (0, 0), (2, 0, 0)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_determinants(dtype, shape):
    x = numbers(shape, dtype)
    expected = wide(np.linalg.det(wide(x)))
    check(linalg.det(on_cpu(x)), expected, dtype, eps(dtype), eps(dtype))
    result = linalg.slogdet(on_cpu(x))
    assert result._fields == ("sign", "logabsdet")
    sign, logarithm = result
    shaped(sign, shape[:-2], dtype)
    shaped(logarithm, shape[:-2], REAL_OF[dtype])
    close(wide(sign) * np.exp(wide(logarithm)), expected, dtype)


def test_the_determinant_of_a_singular_matrix_is_zero():
    sign, logarithm = linalg.slogdet(on_cpu([[1.0, 1.0], [1.0, 1.0]]))
    check(sign, 0.0)
    check(logarithm, -np.inf)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 0)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_inverses(dtype, shape):
    x = definite(shape, dtype)
    for function in (linalg.inv, linalg.pinv):
        inverse = function(on_cpu(x))
        shaped(inverse, shape, dtype)
        close(wide(x) @ wide(inverse), np.eye(shape[-1]), dtype)


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5), (0, 3)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_pseudo_inverse_has_the_properties_of_moore_and_penrose(dtype, shape):
    x = numbers(shape, dtype)
    inverse = linalg.pinv(on_cpu(x))
    shaped(inverse, (*shape[:-2], shape[-1], shape[-2]), dtype)
    a, b = wide(x), wide(inverse)
    close(a @ b @ a, a, dtype)
    close(b @ a @ b, b, dtype)
    close(adjoint(a @ b), a @ b, dtype)
    close(adjoint(b @ a), b @ a, dtype)


def test_tolerances_are_relative_to_the_greatest_singular_value():
    diagonal = np.diag([10.0, 1.0, 1e-20])
    x = on_cpu(np.stack([diagonal, diagonal]))
    check(linalg.matrix_rank(x), [2, 2], np.int64)
    check(linalg.matrix_rank(x, rtol=0.5), [1, 1], np.int64)
    check(linalg.matrix_rank(x, rtol=on_cpu([0.5, 1e-30])), [1, 3], np.int64)
    check(linalg.pinv(x, rtol=on_cpu([0.5, 0.01])), [np.diag([0.1, 0, 0]), np.diag([0.1, 1, 0])])
    check(linalg.pinv(x[0, ...]), np.diag([0.1, 1, 0]))
    check(linalg.matrix_rank(x[0, ...]), 2, np.int64)
    check(linalg.matrix_rank(on_cpu(np.zeros((4, 0, 3)))), np.zeros(4, np.int64))
    # single precision: 3 * 2^-23 of the greatest
    single = on_cpu(np.diag([1.0, 3e-7, 1.0]), np.float32)
    check(linalg.matrix_rank(single), 2, np.int64)
    check(linalg.matrix_rank(on_cpu(np.diag([1.0, 3e-7, 1.0]))), 3, np.int64)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("a", "b"), [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3, 1)), ((3, 3), (4, 3, 2))]
)
def test_solutions_solve(dtype, a, b):
    x1, x2 = definite(a, dtype), numbers(b, dtype, seed=1)
    solution = linalg.solve(on_cpu(x1), on_cpu(x2))
    shape = np.matmul(wide(x1), wide(x2)).shape
    shaped(solution, shape, dtype)
    close(np.matmul(wide(x1), wide(solution)), x2, dtype)


def test_one_vector_is_solved_for_each_matrix_of_a_stack():
    x1, x2 = definite((2, 3, 3), np.float64), numbers(3, np.float64)
    solution = linalg.solve(on_cpu(x1), on_cpu(x2))
    shaped(solution, (2, 3), np.float64)
    close(np.einsum("bij,bj->bi", x1, wide(solution)), x2, np.float64)


def test_solve_promotes_and_raises():
    x = on_cpu(np.eye(2), np.float32)
    shaped(linalg.solve(x, on_cpu([1.0, 2.0])), (2,), np.float64)
    shaped(linalg.solve(x, on_cpu([1j, 2], np.complex64)), (2,), np.complex64)
    shaped(linalg.solve(x, on_cpu([1, 2], np.float16)), (2,), np.float32)
    for shape in ((), (3,), (3, 1), (1, 2)):
        with pytest.raises(ValueError, match="do not fit"):
            linalg.solve(x, on_cpu(np.ones(shape)))
    with pytest.raises(TypeError, match="floating"):
        linalg.solve(x, on_cpu([1, 2]))
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        linalg.solve(on_cpu(np.ones((2, 2))), on_cpu([1.0, 2.0]))


@pytest.mark.parametrize("name", [*FACTORIZATIONS, *OF_MATRICES])
def test_decompositions_raise(name):
    function = getattr(linalg, name)
    for dtype in (np.int64, np.bool_):
        with pytest.raises(TypeError, match=f"{name}: a floating array"):
            function(on_cpu(np.eye(2), dtype))
    for shape in ((), (3,)):
        with pytest.raises(ValueError, match=rf"{name}: .*matrices.* shape \("):
            function(on_cpu(np.ones(shape)))
    with pytest.raises(TypeError, match="dequantize"):
        function(zeros_q8_0((32, 32)))
    with pytest.raises(TypeError, match="Array is wanted"):
        function(np.eye(2))
    if name in FACTORIZATIONS:
        with pytest.raises(np.linalg.LinAlgError, match=r"square.*\(2, 3\)"):
            function(on_cpu(np.ones((2, 3))))


def test_what_has_no_factor_or_inverse_raises():
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        linalg.cholesky(on_cpu([[-1.0]]))
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        linalg.inv(on_cpu([[0.0]]))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_floats_are_computed_in_float32_and_rounded(dtype):
    x = on_cpu([[4, 2], [2, 3]], dtype)
    ulp = float(xp.finfo(dtype).eps)
    check(linalg.cholesky(x), [[2, 0], [1, 2**0.5]], dtype, ulp)
    check(linalg.inv(x), [[0.375, -0.25], [-0.25, 0.5]], dtype, ulp)
    check(linalg.det(x), 8.0, dtype, ulp)
    check(linalg.solve(x, on_cpu([8, 8], dtype)), [1, 2], dtype, ulp, ulp)
    check(linalg.matrix_norm(x), 33**0.5, dtype, ulp)
    check(linalg.vector_norm(x), 33**0.5, dtype, ulp)
    check(linalg.trace(x), 7.0, dtype)
    check(linalg.cross(on_cpu([1, 2, 3], dtype), on_cpu([4, 5, 6], dtype)), [-3, 6, -3], dtype)
    assert {part.dtype for part in (*linalg.svd(x), *linalg.qr(x))} == {np.dtype(dtype)}
    assert linalg.eigvals(x).dtype == np.complex64


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, np.complex128])
def test_cross_products(dtype):
    x1, x2 = numbers((4, 3), dtype), numbers((2, 1, 3), dtype, seed=1)
    levi_civita = np.zeros((3, 3, 3), dtype)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        levi_civita[i, j, k] = 1
        levi_civita[i, k, j] = np.array(-1).astype(dtype)
    a, b = np.broadcast_arrays(x1, x2)
    expected = np.einsum("ijk,abj,abk->abi", levi_civita, a, b, dtype=dtype, casting="unsafe")
    tolerance = 0.0 if np.dtype(dtype).kind in "iu" else 1e-6
    check(linalg.cross(on_cpu(x1), on_cpu(x2)), expected, dtype, tolerance, tolerance)
    first = np.moveaxis(expected[0], -1, 0)
    result = linalg.cross(on_cpu(x1.T), on_cpu(x2[0].T), axis=-2)
    check(result, first, dtype, tolerance, tolerance)


def test_cross_raises():
    with pytest.raises(ValueError, match="3"):
        linalg.cross(on_cpu([1, 2, 3]), on_cpu([1]))
    with pytest.raises(ValueError, match="3"):
        linalg.cross(on_cpu([1, 2]), on_cpu([1, 2]))
    for axis in (1, -2):
        with pytest.raises(ValueError, match="out of bounds"):
            linalg.cross(on_cpu([1, 2, 3]), on_cpu([1, 2, 3]), axis=axis)
    with pytest.raises(TypeError, match="boolean"):
        linalg.cross(on_cpu([True] * 3), on_cpu([True] * 3))


@pytest.mark.parametrize("offset", [-4, -1, 0, 2, 9])
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5), (0, 3)])
def test_diagonals_and_traces(shape, offset):
    x = numbers(shape, np.int16)
    rows, columns = shape[-2:]
    places = [(i, i + offset) for i in range(rows) if 0 <= i + offset < columns]
    picked = [x[..., i, j] for i, j in places]
    expected = np.stack(picked, -1) if picked else np.zeros((*shape[:-2], 0), np.int16)
    check(linalg.diagonal(on_cpu(x), offset=offset), expected, np.int16)
    total = expected.astype(np.int64).sum(-1)
    check(linalg.trace(on_cpu(x), offset=offset), total, np.int64)


def test_diagonal_is_a_copy_that_can_be_written():
    x = on_cpu(np.eye(2))
    linalg.diagonal(x)[0] = 5.0
    check(x, np.eye(2))


def test_the_dtype_of_traces_is_that_of_sums():
    x = np.full((2, 2), 200)
    check(linalg.trace(on_cpu(x, np.uint8)), 400, np.uint64)
    check(linalg.trace(on_cpu(x, np.float32)), 400, np.float32)
    check(linalg.trace(on_cpu(x, np.uint8), dtype=np.uint8), 144, np.uint8)
    check(linalg.trace(on_cpu(x, np.uint8), dtype=np.float64), 400, np.float64)
    for function in (linalg.trace, linalg.diagonal, linalg.matrix_norm):
        with pytest.raises(ValueError, match="matrices are wanted, not shape"):
            function(on_cpu([1.0]))


MATRIX_NORMS = {
    "fro": lambda x, s: (np.abs(x) ** 2).sum() ** 0.5,
    None: lambda x, s: (np.abs(x) ** 2).sum() ** 0.5,
    "nuc": lambda x, s: s.sum(),
    1: lambda x, s: np.abs(x).sum(0).max(),
    -1: lambda x, s: np.abs(x).sum(0).min(),
    2: lambda x, s: s.max(),
    -2: lambda x, s: s.min(),
    np.inf: lambda x, s: np.abs(x).sum(1).max(),
    -np.inf: lambda x, s: np.abs(x).sum(1).min(),
}


@pytest.mark.parametrize("ord", MATRIX_NORMS)
@pytest.mark.parametrize("dtype", [*FLOATS, np.int8])
def test_norms_of_matrices(dtype, ord):
    x = numbers((2, 3, 4), dtype)
    singular = np.linalg.svd(wide(x), compute_uv=False)
    expected = [MATRIX_NORMS[ord](wide(x[i]), singular[i]) for i in range(2)]
    result_dtype = REAL_OF.get(dtype, np.float64)
    check(linalg.matrix_norm(on_cpu(x), ord=ord), expected, result_dtype, eps(result_dtype))
    kept = np.reshape(expected, (2, 1, 1))
    result = linalg.matrix_norm(on_cpu(x), ord=ord, keepdims=True)
    check(result, kept, result_dtype, eps(result_dtype))
    with pytest.raises(ValueError, match="norm order"):
        linalg.matrix_norm(on_cpu(x), ord=3)


@pytest.mark.parametrize("ord", [0, 1, 2, 3, 0.5, -1, -2, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (-1, 0), (), (0, 1, 2)])
@pytest.mark.parametrize("dtype", [*FLOATS, np.int8])
def test_norms_of_vectors(dtype, axis, ord):
    x = numbers((2, 3, 4), dtype)
    x = np.where(x == 0, 1, x).astype(dtype)  # negative orders divide
    size = np.abs(wide(x))
    result_dtype = REAL_OF.get(dtype, np.float64)
    for keepdims in (False, True):
        options = {"axis": axis, "keepdims": keepdims}
        if ord == 0:
            expected = (size != 0).sum(**options)
        elif abs(ord) == np.inf:
            expected = size.max(**options) if ord > 0 else size.min(**options)
        else:
            expected = (size**ord).sum(**options) ** (1 / ord)
        result = linalg.vector_norm(on_cpu(x), ord=ord, **options)
        check(result, expected, result_dtype, eps(result_dtype))


def test_norms_of_scalars_and_of_nothing():
    check(linalg.vector_norm(on_cpu(-3.0)), 3.0)
    check(linalg.vector_norm(on_cpu(np.ones(0))), 0.0)
    check(linalg.matrix_norm(on_cpu(np.ones((0, 3)))), 0.0)
    with pytest.raises(ValueError, match="out of bounds"):
        linalg.vector_norm(on_cpu([1.0]), axis=1)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 10])
@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.int8, np.uint32, np.bool_])
def test_powers_multiply_the_matrix(dtype, n):
    x = (numbers((2, 3, 3), dtype) * np.array(0.5 if np.dtype(dtype).kind in "fc" else 1)).astype(
        dtype
    )
    expected = np.broadcast_to(np.eye(3, dtype=dtype), x.shape)
    for _ in range(n):
        expected = expected @ x
    tolerance = 0.0 if np.dtype(dtype).kind in "iub" else 1e-5
    check(linalg.matrix_power(on_cpu(x), n), expected, dtype, tolerance, tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [-1, -2, -5])
def test_negative_powers_multiply_the_inverse(dtype, n):
    x = definite((2, 3, 3), dtype)
    expected = np.linalg.matrix_power(np.linalg.inv(wide(x)), -n)
    check(linalg.matrix_power(on_cpu(x), n), expected, dtype, eps(dtype), eps(dtype))


def test_powers_are_recorded_with_few_products():
    x = on_cpu(np.eye(3))
    for n, products in ((2, 1), (3, 2), (8, 3), (15, 6), (1, 0), (0, 0)):
        power = linalg.matrix_power(x, n)
        assert xp.is_pending(power) == (products > 0)
        assert count(power) == products


def count(x):
    """Count the products that an array waits for."""
    seen, todo = set(), [x._pending()]
    while todo:
        node = todo.pop()
        if node is not None and id(node) not in seen:
            seen.add(id(node))
            todo.extend(each for each in node.operands if hasattr(each, "operands"))
    return len(seen)


def test_powers_are_fresh_memory():
    x = on_cpu(np.eye(2))
    for n in (0, 1):
        power = linalg.matrix_power(x, n)
        power[0, 0] = 7.0
        check(x, np.eye(2))
    recorded = linalg.matrix_power(x, 2)
    x[0, 0] = 3.0
    check(recorded, np.eye(2))


def test_matrix_power_raises():
    x = on_cpu(np.ones((2, 3)))
    for n in (0, 2, -1):
        with pytest.raises(np.linalg.LinAlgError, match=r"square.*\(2, 3\)"):
            linalg.matrix_power(x, n)
    with pytest.raises(TypeError):
        linalg.matrix_power(on_cpu(np.eye(2)), 1.5)
    with pytest.raises(TypeError, match="floating"):
        linalg.matrix_power(on_cpu([[1]]), -1)
    with pytest.raises(TypeError, match="quantized"):
        linalg.matrix_power(zeros_q8_0((32, 32)), 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int64])
def test_outer_products_are_plain_products(dtype):
    x1, x2 = numbers(4, dtype), numbers(5, dtype, seed=1)
    result = linalg.outer(on_cpu(x1), on_cpu(x2))
    assert xp.is_pending(result)
    # The four products of a complex one are rounded together or one by one.
    check(result, x1[:, None] * x2, rtol=1e-15 if dtype is np.complex128 else 0.0)


def test_outer_raises_at_the_call():
    with pytest.raises(ValueError, match=r"\(2, 2\)"):
        linalg.outer(on_cpu(np.ones((2, 2))), on_cpu([1.0]))
    with pytest.raises(TypeError, match="Array is wanted"):
        linalg.outer(on_cpu([1.0]), [1.0])


def test_the_products_of_the_extension_are_those_of_the_namespace():
    for name in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
        assert getattr(linalg, name) is getattr(xp, name)


def test_all_functions_of_the_extension_are_there():
    assert len(linalg.__all__) == 25
    for name in linalg.__all__:
        assert callable(getattr(linalg, name)), name


def test_a_pending_operand_is_computed():
    x = definite((3, 3), np.float64)
    a = on_cpu(x)
    check(linalg.inv(a @ a), np.linalg.inv(x @ x), rtol=1e-9, atol=1e-9)


def test_results_are_on_the_device_of_the_operand(device):
    x = xp.asarray(np.eye(3), device=device)
    for name in (*FACTORIZATIONS, *OF_MATRICES, "diagonal", "trace", "matrix_norm", "vector_norm"):
        result = getattr(linalg, name)(x)
        for part in result if isinstance(result, tuple) else (result,):
            assert part.device == device, name
    for n in (0, 1, 2, -1):
        assert linalg.matrix_power(x, n).device == device
    assert linalg.solve(x, x).device == device
