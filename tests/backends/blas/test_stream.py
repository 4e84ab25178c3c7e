"""Products: every layout, dtype and epilogue, by NumPy's library and by such with faults."""

import ctypes
import os
import signal

import gguf
import ml_dtypes
import numpy as np
import pytest

import ggarray as xp
from ggarray import _weight_cache
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import q4_0, q4_1, q8_0
from ggarray.backends.blas._shim import ffi, lib
from ggarray.backends.blas.discovery import Libraries
from ggarray.backends.blas.stream import BlasBackend
from ggarray.backends.blas.vendors import open_library
from ggarray.backends.cpu import kernels
from ggarray.interface import Flag, Kernel, Op, Status

from .fake_blas import EVERYTHING, ILP64, MARKS, Books

TOLERANCE = {"f": 1e-5, "d": 1e-13, "F": 1e-5, "D": 1e-13}
SHAPES = [(5, 7, 3), (1, 7, 3), (5, 1, 3), (1, 1, 4), (1, 1, 1), (5, 7, 1), (37, 48, 65)]
HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
GGUF_TYPES = {
    q4_0: gguf.GGMLQuantizationType.Q4_0,
    q4_1: gguf.GGMLQuantizationType.Q4_1,
    q8_0: gguf.GGMLQuantizationType.Q8_0,
}
FAKES = {
    "few routines": ("-DIS_ONE(beta)=0",),  # and it mixes parts of complex numbers
    "all routines": (*EVERYTHING, *ILP64),
    "loses NaN": (
        *EVERYTHING,
        "-DIS_LOST_BY_GEMM(x,y)=((x)==0)",
        "-DIS_LOST_BY_GEMV(x,y)=((y)==0)",
    ),
}


def stream(path, n_threads=1):
    """Return a stream of a library and its books, which are empty."""
    library = open_library(path, parallel_for=kernels.parallel_for())
    library.handle.seconds = 1  # so that its threads are never found too slow
    books = Books(path)
    for name in ("gemm", "gemv", "syrk", "dot", "batch", "products", "errors", "sets"):
        setattr(books, name, 0)
    backend = BlasBackend("blas:fake", library)
    backend.n_threads = n_threads
    return backend, books


@pytest.fixture(scope="module")
def numpys():
    """NumPy's own library."""
    return Libraries(parallel_for=kernels.parallel_for()).open_default()


@pytest.fixture(params=["numpy", *FAKES])
def backend(request, numpys, fake):
    """A stream of each library; it calls none in a way that BLAS does not allow."""
    if request.param == "numpy":
        yield BlasBackend("blas", numpys)
        return
    backend, books = stream(fake(*FAKES[request.param], marks=MARKS["openblas"]))
    yield backend
    assert books.errors == 0


@pytest.fixture
def fakes(fake):
    """A stream of a library with all routines, and its books."""
    backend, books = stream(fake(*EVERYTHING, marks=MARKS["openblas"]))
    yield backend, books
    assert books.errors == 0


def normal(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    is_complex = np.dtype(dtype).kind == "c"
    return (x + 1j * rng.standard_normal(shape) if is_complex else x).astype(dtype)


def layouts(x):
    """Return equal matrices that lie differently in memory."""
    rows, columns = x.shape
    shifted = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    shifted[...] = x
    packed = np.zeros(rows, np.dtype([("values", x.dtype, columns), ("odd", "u1")]))
    packed["values"] = x
    return {
        "C": x,
        "F": np.asfortranarray(x),
        "row panel": np.tile(x, (1, 2))[:, :columns],
        "column panel": np.asfortranarray(np.tile(x, (2, 1)))[:rows],
        "every second": np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2],
        "rows reversed": np.ascontiguousarray(x[::-1])[::-1],
        "columns reversed": np.ascontiguousarray(x[:, ::-1])[:, ::-1],
        "unaligned": shifted,
        "rows apart by no multiple": packed["values"],
    }


def compute(backend, *kernels):
    assert backend.graph_compute(kernels) is Status.SUCCESS


def product(backend, a, b, alpha=1, beta=0, bias=None, op=Op.MATMUL):
    """Compute a product into memory full of NaN, between sentinels which must stay."""
    columns = b.shape[-2 if op is Op.OUT_PROD else -1]
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], columns)
    dtype = np.float32 if Blocks in (type(a), type(b)) else a.dtype
    memory = np.full((*shape[:-2], shape[-2] + 2, shape[-1] + 3), 7, dtype)
    out = memory[..., 1:-1, 2:-1]
    out.fill(np.nan)
    compute(backend, Kernel(op, (a, b), out, alpha, beta, bias))
    result = out.copy()
    out.fill(7)
    assert (memory == 7).all()
    return result


def assert_close(actual, a, b, alpha=1, beta=0, bias=0):
    dtype = actual.dtype.char
    wide = "D" if dtype in "FD" else "d"
    a, b = a.astype(wide), b.astype(wide)
    bound = TOLERANCE[dtype] * (abs(alpha) * (np.abs(a) @ np.abs(b)) + np.abs(bias))
    expected = alpha * (a @ b) + beta * np.asarray(bias, wide)
    assert (np.abs(actual - expected) <= bound).all()


# -- layouts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_every_layout(backend, dtype, m, n, k):
    a, b = normal((m, k), dtype), normal((k, n), dtype, seed=1)
    for left in layouts(a).values():
        assert_close(product(backend, left, b), a, b)
    for right in layouts(b).values():
        assert_close(product(backend, a, right), a, b)
    for name in layouts(a):
        assert_close(product(backend, layouts(a)[name], layouts(b)[name]), a, b)


@pytest.mark.parametrize("dtype", "fD")
def test_repeated_rows_and_columns(backend, dtype):
    row, column = normal((1, 6), dtype), normal((6, 1), dtype, seed=1)
    a, b = np.broadcast_to(row, (4, 6)), np.broadcast_to(column, (6, 5))
    assert a.strides[0] == b.strides[1] == 0
    assert_close(product(backend, a, b), a, b)
    one = normal((1, 1), dtype)
    a, b = np.broadcast_to(one, (4, 6)), np.broadcast_to(one, (6, 1))
    assert_close(product(backend, a, b), a, b)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 6), (5, 1)])
def test_strides_along_axes_of_one_element_do_not_matter(backend, dtype, m, n):
    def odd(x):
        strides = [
            0 if length == 1 else stride for length, stride in zip(x.shape, x.strides, strict=True)
        ]
        return np.lib.stride_tricks.as_strided(x, x.shape, strides)

    a, b = normal((m, 1), dtype), normal((1, n), dtype, seed=1)
    out = np.full((m, n), np.nan, dtype)
    if out.size == 1:
        assert odd(out).strides == (0, 0)
    compute(backend, Kernel(Op.MATMUL, (odd(a), odd(b)), odd(out)))
    assert_close(out, a, b)


@pytest.mark.parametrize(
    ("a_batch", "b_batch"),
    [((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 1, 4), (5, 1)), ((2, 3), (1, 3)), ((1, 1), (1,))],
)
@pytest.mark.parametrize(("m", "n", "k"), [(4, 6, 5), (1, 6, 5), (4, 1, 5), (1, 1, 5)])
def test_batches_broadcast(backend, a_batch, b_batch, m, n, k):
    a, b = normal((*a_batch, m, k), "d"), normal((*b_batch, k, n), "d", seed=1)
    assert_close(product(backend, a, b), a, b)
    a_transposed, b_transposed = (np.ascontiguousarray(x.mT).mT for x in (a, b))
    assert_close(product(backend, a_transposed, b_transposed), a, b)
    reversed_batch = a[::-1] if a_batch else a
    assert_close(product(backend, reversed_batch, b), reversed_batch, b)


def test_batch_of_rows_with_contiguous_result(backend):
    a, b = normal((3, 4, 1, 5), "f"), normal((5, 6), "f", seed=1)
    out = np.full((3, 4, 1, 6), np.nan, "f")
    compute(backend, Kernel(Op.MATMUL, (a, b), out))
    assert_close(out, a, b)
    a = a.transpose(1, 0, 2, 3)
    out = np.full((4, 3, 1, 6), np.nan, "f")
    compute(backend, Kernel(Op.MATMUL, (a, b), out))
    assert_close(out, a, b)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("m", [1, 2])
def test_batches_apart_by_no_whole_number_of_elements(backend, dtype, m):
    """Complex numbers are as good as aligned where their parts are."""
    record = np.dtype([("rows", dtype, (m, 6)), ("odd", dtype.lower())])
    packed = np.zeros(5, record)
    packed["rows"] = normal((5, m, 6), dtype)
    a, b = packed["rows"], normal((6, 4), dtype, seed=1)
    assert a.strides[0] % np.dtype(dtype.lower()).itemsize == 0
    assert_close(product(backend, a, b), a, b)
    assert_close(product(backend, b.T, a.mT), b.T, a.mT)


def test_no_inner_dimension_gives_zeros(backend):
    a, b = np.empty((2, 3, 0)), np.empty((0, 4))
    assert (product(backend, a, b) == 0).all()


def test_empty_result(backend):
    assert product(backend, np.ones((0, 3)), np.ones((3, 4))).shape == (0, 4)
    assert product(backend, np.ones((0, 2, 3)), np.ones((3, 4))).shape == (0, 2, 4)


def test_nodes_are_computed_in_order(backend):
    a = normal((4, 4), "d")
    first, second = np.empty((4, 4)), np.empty((4, 4))
    compute(backend, Kernel(Op.MATMUL, (a, a), first), Kernel(Op.MATMUL, (first, a), second))
    assert_close(second, a @ a, a)


def test_address_of_foreign_memory_is_used_as_it_is(backend):
    memory = (ctypes.c_double * 4)(1, 2, 3, 4)
    a = np.frombuffer(memory).reshape(2, 2)
    assert (product(backend, a, np.eye(2)) == [[1, 2], [3, 4]]).all()


def test_memory_that_may_not_be_written_to(backend):
    a = normal((4, 4), "f")
    a.flags.writeable = False
    assert_close(product(backend, a, a.T), a, a.T)


# -- copies ----------------------------------------------------------------------------------------


@pytest.fixture
def copies(monkeypatch):
    """Tell which operands a stream has copied since it was asked last."""
    seen, without = [], BlasBackend._without

    def noted(self, status, a, b, *rest):
        seen.extend(
            x for x, flag in (("a", lib.SHIM_COPY_A), ("b", lib.SHIM_COPY_B)) if status & flag
        )
        return without(self, status, a, b, *rest)

    monkeypatch.setattr(BlasBackend, "_without", noted)

    def copies():
        copied = "".join(seen)
        seen.clear()
        return copied

    return copies


# Of layouts(): those that BLAS has a name for.
NAMED = ("C", "F", "row panel", "column panel")


@pytest.mark.parametrize("dtype", "fdFD")
def test_copies_are_made_only_of_what_blas_has_no_name_for(fakes, copies, dtype):
    backend, _ = fakes
    a, b = normal((5, 6), dtype), normal((6, 7), dtype, seed=1)
    for name, left in layouts(a).items():
        for other, right in layouts(b).items():
            assert_close(product(backend, left, right), a, b)
            assert copies() == "a" * (name not in NAMED) + "b" * (other not in NAMED)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 7, 6), (5, 1, 6), (1, 1, 6), (5, 7, 1), (1, 7, 1)])
def test_vectors_of_any_stride_forward_are_not_copied(fakes, copies, m, n, k):
    backend, _ = fakes
    a, b = normal((m, k), "d"), normal((k, n), "d", seed=1)
    for name, left in layouts(a).items():
        for other, right in layouts(b).items():
            assert_close(product(backend, left, right), a, b)
            copied = copies()
            is_vector = {"a": 1 in a.shape, "b": 1 in b.shape}
            for which, layout in (("a", name), ("b", other)):
                named = layout in NAMED or (is_vector[which] and layout == "every second")
                assert which not in copied or not named


BATCHES = {
    "contiguous": (normal((4, 5, 6), "f"), normal((4, 6, 7), "f")),
    "transposed": (normal((4, 6, 5), "f").mT, normal((4, 7, 6), "f").mT),
    "a is shared": (normal((5, 6), "f"), normal((4, 6, 7), "f")),
    "b is shared": (normal((4, 5, 6), "f"), normal((6, 7), "f")),
    "broadcast": (
        np.broadcast_to(normal((5, 6), "f"), (4, 5, 6)),
        np.broadcast_to(normal((6, 7), "f"), (4, 6, 7)),
    ),
    "one of two axes each": (normal((3, 1, 5, 6), "f"), normal((4, 6, 7), "f")),
    "reversed": (normal((4, 5, 6), "f")[::-1], normal((4, 6, 7), "f")),
    "inner axis": (
        normal((5, 4, 6), "f").transpose(1, 0, 2),
        normal((6, 4, 7), "f").transpose(1, 0, 2),
    ),
    "rows apart": (normal((4, 10, 6), "f")[:, ::2], normal((4, 6, 9), "f")[..., :7]),
    "every second": (normal((8, 5, 6), "f")[::2], normal((8, 6, 7), "f")[::2]),
    "rows of a batch": (normal((4, 1, 6), "f"), normal((6, 7), "f")),
    "rows of every second": (normal((8, 1, 6), "f")[::2], normal((6, 7), "f")),
    "one row for all": (np.broadcast_to(normal((1, 6), "f"), (4, 1, 6)), normal((6, 7), "f")),
    "rows reversed": (normal((4, 1, 6), "f")[::-1], normal((6, 7), "f")),
}


@pytest.mark.parametrize("batch", BATCHES)
def test_batches_are_not_copied(fakes, copies, batch):
    backend, _ = fakes
    a, b = BATCHES[batch]
    assert_close(product(backend, a, b), a, b)
    assert copies() == ""


def test_what_is_copied_of_a_shared_operand_is_one(fakes, monkeypatch):
    backend, _ = fakes
    row_by_row = normal((5, 6), "f")[::-1]
    shared = np.broadcast_to(row_by_row, (1000, 5, 6))
    sizes, array = [], np.array

    def noted(x, *arguments, **keywords):
        made = array(x, *arguments, **keywords)
        sizes.append(made.size)
        return made

    b = normal((1000, 6, 2), "f")
    monkeypatch.setattr(np, "array", noted)
    out = np.empty((1000, 5, 2), "f")
    compute(backend, Kernel(Op.MATMUL, (shared, b), out))
    monkeypatch.undo()
    assert_close(out, shared, b)
    assert sizes == [30]


# -- routines --------------------------------------------------------------------------------------


def calls(books):
    made = {name: getattr(books, name) for name in ("gemm", "gemv", "syrk", "dot", "batch")}
    return {name: number for name, number in made.items() if number}


@pytest.mark.parametrize("dtype", "fdFD")
def test_vectors(fakes, dtype):
    backend, books = fakes
    a, b = normal((1, 40), dtype), normal((40, 1), dtype, seed=1)
    wide = normal((40, 30), dtype, seed=2)
    for x, y in ((a, b), (np.asfortranarray(np.tile(a, (2, 1)))[:1], np.tile(b, (1, 3))[:, :1])):
        assert_close(product(backend, x, y), a, b)
        assert_close(product(backend, x, wide), a, wide)
        assert_close(product(backend, x, np.asfortranarray(wide)), a, wide)
        assert_close(product(backend, wide.T, y), wide.T, b)
    assert calls(books) == {"dot": 2, "gemv": 6}


def test_without_dots(fake):
    backend, books = stream(fake())
    a, b = normal((1, 40), "d"), normal((40, 1), "d", seed=1)
    assert_close(product(backend, a, b), a, b)
    assert calls(books) == {"gemv": 1}


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("rows", [127, 130])
@pytest.mark.parametrize("shape", ["rows", "columns", "panel", "batch"])
def test_products_with_the_transpose(backend, dtype, rows, shape):
    x = {
        "rows": normal((rows, 9), dtype),
        "columns": normal((9, rows), dtype).T,
        "panel": normal((rows, 20), dtype)[:, :9],
        "batch": normal((3, rows, 9), dtype),
    }[shape]
    result = product(backend, x, x.mT)
    assert_close(result, x, x.mT)
    if rows >= 128:
        assert (result == result.mT).all()
    bias = normal((rows, 1), dtype)
    for alpha, beta, added in ((-0.375, 0, None), (1, -1, bias), (FACTORS[dtype][-1], 1, bias)):
        actual = product(backend, x, x.mT, alpha, beta, added)
        assert_close(actual, x, x.mT, alpha, beta, 0 if added is None else added)


def test_products_with_the_transpose_take_half_the_work(fakes):
    backend, books = fakes
    x = normal((130, 9), "f")
    product(backend, x, x.T)
    product(backend, x, x.T, alpha=2)
    product(backend, x.T.copy().T, x.T)
    product(backend, *[np.concatenate([x, x])[::2]] * 2, op=Op.OUT_PROD)
    assert calls(books) == {"syrk": 3, "gemm": 1}
    product(backend, x, x.T, 1, 1, x[:, :1])  # a triangle is no place for what is added
    product(backend, x, x.T[:, ::-1][:, ::-1].copy())
    assert calls(books) == {"syrk": 3, "gemm": 3}


def test_a_matrix_times_itself_is_no_product_with_the_transpose(backend):
    x = normal((128, 128), "d")
    assert_close(product(backend, x, x), x, x)
    assert_close(product(backend, x.T, x.T), x.T, x.T)
    z = normal((128, 128), "D")
    assert_close(product(backend, z, z.conj().T), z, z.conj().T)


@pytest.mark.parametrize("dtype", "fdFD")
def test_special_values_of_products_with_the_transpose(backend, dtype):
    x = normal((130, 5), dtype)
    x[9:60] = 0
    x[3, 2] = np.nan
    if dtype in "fd":  # what complex infinities give depends on who multiplies
        x[5, 0], x[7, 1] = np.inf, -np.inf
    with np.errstate(all="ignore"):
        expected = np.sum(x[:, None, :] * x[None, :, :], axis=-1)
    np.testing.assert_allclose(product(backend, x, x.T), expected, 1e-3, 1e-3)


@pytest.mark.parametrize("dtype", "fD")
@pytest.mark.parametrize(("m", "n", "k"), [(5, 7, 3), (5, 1, 3), (1, 7, 3), (37, 48, 65)])
def test_outer_products_of_several_columns(backend, dtype, m, n, k):
    a, b = normal((m, k), dtype), normal((n, k), dtype, seed=1)
    for left in layouts(a).values():
        for right in layouts(b).values():
            assert_close(product(backend, left, right, op=Op.OUT_PROD), a, b.T)
    bias = normal((m, 1), dtype)
    assert_close(product(backend, a, b, 0.5, -1, bias, Op.OUT_PROD), a, b.T, 0.5, -1, bias)


def test_outer_products_of_vectors_are_not_computed(backend):
    """Each element is one multiplication, which keeps the sign of zero; sums do not."""
    a, out = normal((5, 1), "f"), np.empty((5, 5), "f")
    assert backend.graph_compute([Kernel(Op.OUT_PROD, (a, a), out)]) is Status.FAILED


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(
    ("m", "n", "k"), [(4, 4, 4), (32, 24, 16), (40, 40, 40), (1, 64, 64), (64, 1, 64)]
)
def test_batches_of_small_products(backend, n_threads, dtype, m, n, k):
    backend.n_threads = n_threads
    a, b = normal((2, 6, m, k), dtype), normal((2, 6, k, n), dtype, seed=1)
    assert_close(product(backend, a, b), a, b)
    assert_close(product(backend, a[:, ::-1], b[0, 0]), a[:, ::-1], b[0, 0])
    assert_close(
        product(backend, a[0, 0], b.transpose(1, 0, 2, 3)), a[0, 0], b.transpose(1, 0, 2, 3)
    )
    bias = normal((2, 6, m, n), dtype)
    if 1 not in (m, n):
        assert_close(product(backend, a, b, 0.5, -1, bias), a, b, 0.5, -1, bias)


# -- special values --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("m", "n"), [(40, 50), (1, 50), (40, 1), (1, 1)])
def test_nonfinite_operands(backend, dtype, m, n):
    a, b = np.zeros((m, 33), dtype), normal((33, n), dtype)
    b[2] = np.nan
    assert np.isnan(product(backend, a, b)).all()
    a[...] = 1
    b[2] = np.inf
    assert not np.isfinite(product(backend, a, b)).any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_library_that_loses_nan_is_used_for_finite_numbers_only(fake, value):
    backend, books = stream(fake(*FAKES["loses NaN"], marks=MARKS["openblas"]))
    finite, special_ = np.zeros((40, 33)), np.zeros((33, 50))
    special_[2, 3] = value
    bias = normal((40, 1), "d")
    expected = np.where(np.arange(50) == 3, np.nan, 0.0)[None, :] * np.ones((40, 1))
    for left, right, result in (
        (finite, special_, expected),
        (special_.T, finite.T, expected.T),
    ):
        np.testing.assert_array_equal(product(backend, left, right), result)
        np.testing.assert_array_equal(product(backend, left, right.T, op=Op.OUT_PROD), result)
    np.testing.assert_array_equal(product(backend, finite, special_, -2, -1, bias), expected - bias)
    assert calls(books) == {}
    assert_close(product(backend, finite, finite.T), finite, finite.T)
    assert_close(product(backend, finite, finite.T, -2, -1, bias), finite, finite.T, -2, -1, bias)
    assert calls(books) == {"gemm": 2}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_halves_with_a_library_that_loses_nan(fake, dtype):
    backend, books = stream(fake(*FAKES["loses NaN"], marks=MARKS["openblas"]))
    a, b = np.zeros((40, 33), dtype), np.zeros((33, 50), dtype)
    b[2, 3] = np.nan
    result = product(backend, a, b)
    np.testing.assert_array_equal(np.isnan(result), np.arange(50)[None, :] == np.full((40, 1), 3))
    assert_rounded(product(backend, b.T[:3], a.T), b.T[:3], a.T, dtype)
    assert calls(books) == {}  # as our kernels convert on the way


# -- epilogues -------------------------------------------------------------------------------------

FACTORS = {"f": [1, -1, -0.375], "F": [1, -1, 0.5, 1j, 0.5 - 1.25j]}
FACTORS |= {"d": FACTORS["f"], "D": FACTORS["F"]}


def biases(dtype, shape, seed=2):
    """Return what may be added to a result of this shape, with its sign; nothing is, too."""
    rows, columns = shape[-2:]
    lengths = {(rows, columns), (1, columns), (rows, 1), (1, 1)}
    yield 0, None
    for number, matrix in enumerate(sorted(lengths)):
        for batch in {(1,) * (len(shape) - 2), shape[:-2]}:
            yield (-1) ** number, normal((*batch, *matrix), dtype, seed + number)
    whole = normal((*shape[:-2], columns, 2 * rows), dtype, seed)
    yield -1, whole[..., ::-2].mT
    yield 1, np.broadcast_to(whole[..., :1, :1], shape)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("m", "n", "k"), [*SHAPES, (5, 7, 0), (1, 7, 0), (5, 1, 0), (40, 1, 50)])
def test_epilogues(backend, dtype, m, n, k):
    a, b = normal((m, k), dtype), normal((k, n), dtype, seed=1)
    names = ["C", "F", "every second", "unaligned"] if k else ["C"]
    for alpha in FACTORS[dtype]:
        for beta, bias in biases(dtype, (m, n)):
            bias_before = None if bias is None else bias.copy()
            for name in names:
                left, right = (layouts(x)[name] if k else x for x in (a, b))
                actual = product(backend, left, right, alpha, beta, bias)
                assert_close(actual, a, b, alpha, beta, 0 if bias is None else bias)
            assert bias is None or (bias == bias_before).all()


@pytest.mark.parametrize("dtype", "fD")
@pytest.mark.parametrize(
    ("a_batch", "b_batch"), [((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 1, 4), (5, 1)), ((0,), ())]
)
@pytest.mark.parametrize(("m", "n", "k"), [(4, 6, 5), (1, 6, 5), (4, 1, 5), (1, 1, 5), (4, 6, 0)])
def test_epilogues_of_batches(backend, dtype, a_batch, b_batch, m, n, k):
    a, b = normal((*a_batch, m, k), dtype), normal((*b_batch, k, n), dtype, seed=1)
    shape = (*np.broadcast_shapes(a_batch, b_batch), m, n)
    for alpha in FACTORS[dtype]:
        for beta, bias in biases(dtype, shape):
            actual = product(backend, a, b, alpha, beta, bias)
            assert_close(actual, a, b, alpha, beta, 0 if bias is None else bias)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("m", "n"), [(40, 50), (1, 50), (40, 1), (1, 1)])
def test_factors_that_underflow_with_an_operand_alone(backend, dtype, m, n):
    alpha = small = 1e-25 if dtype in "fF" else 1e-250
    large = 1 / small
    for left, right in ((small, large), (large, small)):
        a, b = np.full((m, 33), left, dtype), np.full((33, n), right, dtype)
        bias = np.full((1, n), alpha, dtype)
        np.testing.assert_allclose(product(backend, a, b, alpha), 33 * alpha, rtol=1e-5)
        np.testing.assert_allclose(product(backend, a, b, alpha, -1, bias), 32 * alpha, rtol=1e-5)


def special(shape, dtype, seed):
    """Return numbers of which some are infinite or NaN."""
    rng = np.random.default_rng(seed)
    x = normal(shape, dtype, seed)
    x[rng.random(shape) < 0.02] = np.inf
    x[rng.random(shape) < 0.02] = -np.inf
    x[rng.random(shape) < 0.02] = np.nan
    x[rng.random(shape) < 0.2] = 0
    return x


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize(("m", "n"), [(40, 50), (1, 50), (40, 1)])
@pytest.mark.parametrize("transposed", [False, True])
def test_special_values_of_products_with_epilogues(backend, dtype, m, n, transposed):
    a, b = special((m, 9), dtype, 0), special((9, n), dtype, 1)
    left, right = (np.asfortranarray(x) for x in (a, b)) if transposed else (a, b)
    for alpha in FACTORS[dtype]:
        for beta, bias in biases(dtype, (m, n)):
            bias = None if bias is None else special(bias.shape, dtype, 3)
            with np.errstate(all="ignore"):
                terms = (a[:, :, None] * b[None]).sum(axis=1) * alpha
                expected = terms if bias is None else terms + beta * bias
            actual = product(backend, left, right, alpha, beta, bias)
            np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", "FD")
@pytest.mark.parametrize(("m", "n", "k"), [(40, 50, 9), (1, 50, 9), (40, 1, 9), (4, 5, 0)])
def test_special_values_of_a_complex_bias_keep_their_parts(backend, dtype, m, n, k):
    bias = normal((m, n), dtype)
    bias.real[::2], bias.imag[:, ::3] = np.inf, -np.inf
    bias[-1, -1] = np.nan
    a, b = normal((m, k), dtype), normal((k, n), dtype)
    for alpha in FACTORS[dtype]:
        for beta in (1, -1):
            actual, expected = product(backend, a, b, alpha, beta, bias), alpha * (a @ b)
            for part, into, added in (
                (actual.real, expected.real, bias.real),
                (actual.imag, expected.imag, bias.imag),
            ):
                np.testing.assert_allclose(part, into + beta * added, rtol=1e-3, atol=1e-3)


# -- float16 and bfloat16 --------------------------------------------------------------------------


def assert_rounded(actual, a, b, dtype):
    """Compare halves with a product in float64, rounded once, or to the number beside it."""
    assert actual.dtype == dtype
    wide = [x.astype("d") for x in (a, b)]
    expected = wide[0] @ wide[1]
    bound = ml_dtypes.finfo(dtype).eps * np.abs(expected) + 1e-5 * (abs(wide[0]) @ abs(wide[1]))
    assert (np.abs(actual.astype("d") - expected) <= bound).all()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(("m", "n", "k"), [*SHAPES, (5, 7, 0)])
def test_halves(backend, dtype, m, n, k):
    a, b = normal((m, k), dtype), normal((k, n), dtype, seed=1)
    for name in layouts(a) if k else ["C"]:
        left, right = (layouts(x)[name] if k else x for x in (a, b))
        assert_rounded(product(backend, left, right), a, b, dtype)
        if k > 1:
            assert_rounded(product(backend, left, right.mT, op=Op.OUT_PROD), a, b, dtype)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(("a_batch", "b_batch"), [((3,), (3,)), ((3,), ()), ((2, 1), (3,))])
def test_batches_of_halves(backend, dtype, a_batch, b_batch):
    a, b = normal((*a_batch, 5, 7), dtype), normal((*b_batch, 7, 4), dtype, seed=1)
    assert_rounded(product(backend, a, b), a, b, dtype)
    assert_rounded(product(backend, b.mT, a.mT), b.mT, a.mT, dtype)
    shared = np.broadcast_to(b[..., :1, :, :] if b.ndim > 3 else b, b.shape)
    assert_rounded(product(backend, a, shared), a, shared, dtype)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_sums_of_halves_are_rounded_once(backend, dtype):
    """A sum of many small numbers would stand still if it were rounded to a half on the way."""
    a = np.full((3, 5000), 0.01, dtype)
    b = np.ones((5000, 2), dtype)
    expected = np.dtype(dtype).type(np.float32(5000 * np.float64(dtype.type(0.01))))
    assert (product(backend, a, b) == expected).all()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_special_values_of_halves(backend, dtype):
    largest = ml_dtypes.finfo(dtype).max
    a = np.array([[largest, largest], [np.nan, 0], [np.inf, 1], [-np.inf, np.inf]], dtype)
    b = np.array([[2, 1, -1], [0, 0, -1]], dtype)
    expected = [
        [np.inf, largest, -np.inf],
        [np.nan, np.nan, np.nan],
        [np.inf, np.inf, -np.inf],
        [np.nan, np.nan, np.nan],
    ]
    np.testing.assert_array_equal(product(backend, a, b).astype("d"), np.array(expected, "d"))
    tiny = np.array([[ml_dtypes.finfo(dtype).smallest_subnormal]], dtype)
    assert product(backend, tiny, np.array([[3]], dtype)) == 3 * tiny.astype("d")


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_halves_with_epilogues_are_not_computed(fakes, dtype):
    backend, _ = fakes
    a, out = normal((4, 4), dtype), np.empty((4, 4), dtype)
    for alpha, beta, bias in ((0.5, 0, None), (1, 1, a)):
        kernel = Kernel(Op.MATMUL, (a, a), out, alpha, beta, bias)
        assert backend.graph_compute([kernel]) is Status.FAILED


# -- what is not computed --------------------------------------------------------------------------


def test_nodes_that_are_not_to_be_computed(backend):
    a, out = normal((4, 4), "f"), [np.full((4, 4), 7, "f") for _ in range(4)]
    flags = [Flag.OUTPUT, Flag.COMPUTE, Flag.INPUT | Flag.OUTPUT, Flag.INPUT | Flag.COMPUTE]
    compute(
        backend,
        *(Kernel(Op.MATMUL, (a, a), x, flags=flag) for x, flag in zip(out, flags, strict=True)),
    )
    for x, computed in zip(out, [False, True, False, True], strict=True):
        assert (x == 7).all() == (not computed)
        assert not computed or (assert_close(x, a, a) is None)


@pytest.mark.parametrize(
    "dtypes", ["iii", "bbb", "ffd", "fdf", "dff", "fFF", "eff", "efe", "eef", "gggg", "OOO"]
)
@pytest.mark.parametrize("more", [(), (0.5, 0), (1, 1)])
def test_dtypes_that_libraries_do_not_know(fakes, dtypes, more):
    backend, books = fakes
    a, b, out = (np.ones((4, 4), dtype) for dtype in dtypes[:3])
    bias = out.copy() if len(more) == 2 and more[1] else None
    kernel = Kernel(Op.MATMUL, (a, b), out, *more, bias)
    assert backend.graph_compute([kernel]) is Status.FAILED
    assert calls(books) == {}


def test_other_operations(fakes):
    backend, _ = fakes
    kernel = Kernel(Op.COPY, (np.ones((4, 4), "f"),), np.empty((4, 4), "f"))
    assert backend.graph_compute([kernel]) is Status.FAILED


def test_what_follows_a_failure_is_not_computed(fakes):
    backend, _ = fakes
    a, out = normal((4, 4), "f"), np.full((4, 4), 7, "f")
    wrong = Kernel(Op.MATMUL, (a, a), np.empty((4, 4), "d"))
    right = Kernel(Op.MATMUL, (a, a), out)
    assert backend.graph_compute([wrong, right]) is Status.FAILED
    assert (out == 7).all()


def test_32_bits_refuse_long_strides(fake):
    backend, _ = stream(fake())
    a = np.ones((2, 2), "f")
    far = np.lib.stride_tricks.as_strided(a, (2, 2), (1 << 34, 4))  # never read
    out = np.full((2, 2), 7, "f")
    assert backend.graph_compute([Kernel(Op.MATMUL, (far, a), out)]) is Status.FAILED
    assert (out == 7).all()


def test_memory_that_cannot_be_had(backend, monkeypatch):
    def refuse(*_, **__):
        raise MemoryError

    a = normal((4, 4), "f")
    kernel = Kernel(Op.MATMUL, (a[::-1], a), np.empty((4, 4), "f"))
    monkeypatch.setattr("numpy.array", refuse)
    assert backend.graph_compute([kernel]) is Status.ALLOC_FAILED


# -- quantized weights -----------------------------------------------------------------------------


@pytest.fixture(params=["kept", "not kept"])
def weight_cache(request):
    """Let decoded weights be kept, or not; return how often they are to be used."""
    _weight_cache.trim(0)
    with xp.options(weight_cache=1 << 30 if request.param == "kept" else 0):
        yield 3 if request.param == "kept" else 1
    _weight_cache.trim(0)


@pytest.fixture
def small_panels(monkeypatch):
    """Decode 256 rows or columns at a time."""
    monkeypatch.setattr("ggarray.backends.blas.stream._PANEL_BYTES", 1)


def weights(shape, dtype):
    """Return quantized weights, and the numbers that they stand for."""
    encoded = gguf.quantize(normal(shape, "f"), GGUF_TYPES[dtype])
    return Blocks.from_bytes(encoded, dtype, shape), gguf.dequantize(encoded, GGUF_TYPES[dtype])


@pytest.mark.usefixtures("small_panels")
@pytest.mark.parametrize("on_left", [False, True])
@pytest.mark.parametrize("length", [257, 320])  # of panels, the last has one row or column
def test_epilogues_of_quantized_weights(backend, weight_cache, on_left, length):
    blocks, decoded = weights((length, 64), q4_1)
    x = normal((33, 64), "f", seed=1)
    quantized, plain = (
        ((blocks, x.T), (decoded, x.T)) if on_left else ((x, blocks.mT), (x, decoded.T))
    )
    shape = (length, 33) if on_left else (33, length)
    for alpha in FACTORS["f"]:
        for beta, bias in biases("f", shape):
            for _ in range(weight_cache):
                actual = product(backend, *quantized, alpha, beta, bias)
                assert_close(actual, *plain, alpha, beta, 0 if bias is None else bias)
    assert (_weight_cache.kept_bytes() > 0) == (weight_cache > 1 and not backend._loses_nan)


@pytest.mark.usefixtures("small_panels")
@pytest.mark.parametrize("dtype", [q4_0, q4_1, q8_0])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_quantized_weights(backend, weight_cache, dtype, transposed, batch):
    blocks, decoded = weights((*batch, 64, 320) if transposed else (*batch, 320, 64), dtype)
    if not transposed:
        blocks, decoded = blocks.mT, decoded.mT
    x = normal((33, 64), "f", seed=1)
    for _ in range(weight_cache):
        assert_close(product(backend, x, blocks), x, decoded)
        assert_close(product(backend, blocks.mT, x.T), decoded.mT, x.T)
        assert_close(product(backend, x, blocks.mT, op=Op.OUT_PROD), x, decoded)


def test_quantized_along_a_batch_axis(backend, weight_cache):
    blocks, decoded = weights((5, 6, 32), q8_0)
    blocks = blocks.permute((2, 0, 1))
    x = normal((6, 4), "f", seed=1)
    for _ in range(weight_cache):
        assert_close(product(backend, blocks, x), decoded.transpose(2, 0, 1), x)


@pytest.mark.parametrize("shape", [(0, 64), (4, 0)])
def test_empty_weights(backend, weight_cache, shape):
    blocks = Blocks.from_bytes(b"", q8_0, shape)
    x = normal((3, shape[1]), "f")
    for _ in range(weight_cache):
        assert (product(backend, x, blocks.mT) == np.zeros((3, shape[0]))).all()
        assert (product(backend, blocks, x.T) == np.zeros((shape[0], 3))).all()


def test_the_memory_of_panels_is_used_again(numpys, weight_cache):
    backend = BlasBackend("blas", numpys)
    for shape in ((320, 64), (64, 128), (512, 96)):
        blocks, decoded = weights(shape, q8_0)
        x = normal((33, shape[1]), "f", seed=1)
        for _ in range(weight_cache):
            assert_close(product(backend, x, blocks.mT), x, decoded.T)


@pytest.mark.parametrize("on_left", [False, True])
def test_weights_are_prepared_once_they_are_kept(numpys, on_left):
    _weight_cache.trim(0)
    backend = BlasBackend("blas", numpys)
    blocks, decoded = weights((64, 96), q8_0)
    x = normal((33, 96), "f", seed=1)
    bias = normal((1, 1), "f", seed=2)
    operands, plain = (
        ((blocks, x.T), (decoded, x.T)) if on_left else ((x, blocks.mT), (x, decoded.T))
    )
    out = np.empty((64, 33) if on_left else (33, 64), "f")
    kernel = Kernel(Op.MATMUL, operands, out, 0.5, -1, bias, Flag.COMPUTE | Flag.OUTPUT)
    with xp.options(weight_cache=0):
        for _ in range(3):
            assert backend.prepare(kernel) is kernel
    assert backend.prepare(kernel) is kernel  # their first use
    for _ in range(2):
        prepared = backend.prepare(kernel)
        assert prepared is not kernel
        assert (prepared.op, prepared.alpha, prepared.beta) == (kernel.op, 0.5, -1)
        assert prepared.out is out
        assert prepared.bias is bias
        assert prepared.flags == kernel.flags
        for actual, expected in zip(prepared.operands, plain, strict=True):
            np.testing.assert_array_equal(actual, expected)
        assert prepared.operands[on_left] is operands[on_left]
        compute(backend, prepared)
        assert_close(out, *plain, 0.5, -1, bias)
    _weight_cache.trim(0)


def test_plain_operands_are_prepared(numpys):
    backend = BlasBackend("blas", numpys)
    a = normal((4, 4), "f")
    kernel = Kernel(Op.MATMUL, (a, a), np.empty((4, 4), "f"))
    assert backend.prepare(kernel) is kernel


def test_statuses_of_decoding_are_passed_on(backend, monkeypatch, weight_cache):
    if backend._loses_nan:
        pytest.skip("our kernels compute, and decode on the way")
    blocks = Blocks.from_bytes(bytes(34 * 2), q8_0, (2, 32))
    kernel = Kernel(Op.MATMUL, (normal((3, 32), "f"), blocks.mT), np.empty((3, 2), "f"))
    monkeypatch.setattr("ggarray.backends.cpu.kernels.to_float", lambda *_: int(Status.ABORTED))
    for _ in range(weight_cache):
        assert backend.graph_compute([kernel]) is Status.ABORTED


# -- threads ---------------------------------------------------------------------------------------


def test_threads_of_numpys_library_are_limited_for_the_call_only(numpys):
    """Others use it, so what they have set is there again, and is never exceeded."""
    get = ffi.cast("int (*)(void)", numpys.handle.get_threads)
    set_ = ffi.cast("void (*)(int)", numpys.handle.set_threads)
    backend, before = BlasBackend("blas", numpys), get()
    a = normal((300, 300), "f")
    try:
        for asked, set_by_others in [(1, 2), (2, 1), (4, 2), (1, 1), (2, 2)]:
            set_(set_by_others)
            backend.n_threads = asked
            assert_close(product(backend, a, a), a, a)
            assert get() == set_by_others
    finally:
        set_(before)


@pytest.mark.parametrize(
    ("n_threads", "set_by_others", "used"), [(1, 4, 1), (3, 4, 3), (9, 4, 4), (9, 2, 2), (2, 1, 1)]
)
def test_threads_of_a_stream(fakes, n_threads, set_by_others, used):
    backend, books = fakes
    backend.n_threads = n_threads
    books.threads = set_by_others
    a = normal((256, 256), "f")
    assert_close(product(backend, a, a), a, a)
    assert (books.used, books.threads) == (used, set_by_others)


IN_USE = "-DIN_USE=omp_get_max_threads()"


def test_libgomp_has_to_be_allowed_threads(on_openmp):
    """A child that is forked afterwards would hang."""
    path = on_openmp("libgomp", IN_USE, marks=MARKS["openblas on OpenMP"])
    backend, books = stream(path, n_threads=3)
    a, many = normal((256, 256), "f"), normal((100, 64, 64), "f")
    for allowed, used in ((None, 1), (True, 3), (False, 1), (True, 3)):
        if allowed is None:
            product(backend, a, a)
        else:
            with xp.options(libgomp_threads=allowed):
                product(backend, a, a)
        assert books.used == used
        assert ffi.cast("int (*)(void)", backend._handle.get_threads)() == 4
    books.expected = 0
    with xp.options(libgomp_threads=True):
        assert_close(product(backend, many, many), many, many)
    assert books.used == 1


def test_other_openmp_may_use_threads(on_openmp):
    path = on_openmp("libomp", IN_USE, marks=MARKS["openblas on OpenMP"])
    backend, books = stream(path, n_threads=3)
    a = normal((256, 256), "f")
    for allowed in (False, True):
        with xp.options(libgomp_threads=allowed):
            product(backend, a, a)
        assert books.used == 3


@pytest.mark.parametrize("openmp", ["libgomp", "libomp"])
def test_threads_of_openmp_start_no_others(on_openmp, openmp):
    """Each thread has a number of its own, which only the calling one's is set."""
    many_used = "-DIN_GEMM=if(omp_get_max_threads()>1&&fake_expected)COUNT(fake_callers,1)"
    path = on_openmp(openmp, IN_USE, many_used, marks=MARKS["openblas on OpenMP"])
    backend, books = stream(path, n_threads=2)
    a = normal((1000, 64, 64), "f")
    books.expected = 1
    with xp.options(libgomp_threads=True):
        assert_close(product(backend, a, a), a, a)
    assert books.callers == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the parent has threads
def test_products_in_a_forked_child(numpys):
    backend = BlasBackend("blas", numpys)
    backend.n_threads = 2
    a, many = normal((300, 300), "f"), normal((100, 64, 64), "f")
    expected = [product(backend, a, a), product(backend, many, many)]
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        found = [product(backend, a, a), product(backend, many, many)]
        pairs = zip(found, expected, strict=True)
        os._exit(0 if all(np.allclose(x, y, 1e-5, 1e-3) for x, y in pairs) else 1)
    assert os.waitpid(child, 0)[1] == 0
