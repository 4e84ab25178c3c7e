"""The C level: how a product is laid out for the routines, and what they are tried with."""

from typing import NamedTuple

import numpy as np
import pytest

from ggarray.backends.blas._shim import ffi, lib
from ggarray.backends.blas.discovery import Libraries
from ggarray.backends.blas.vendors import open_library
from ggarray.backends.cpu import kernels

from .fake_blas import EVERYTHING, ILP64, MARKS, Books

TYPES = {"f": lib.SHIM_S, "d": lib.SHIM_D, "F": lib.SHIM_C, "D": lib.SHIM_Z}
COPY_A, COPY_B = lib.SHIM_COPY_A, lib.SHIM_COPY_B
LARGE = 2**31


def handle_of(path):
    """Return the handle of a library, which is never too slow, and its books, which are empty."""
    handle = open_library(path, parallel_for=kernels.parallel_for()).handle
    handle.seconds = 1
    books = Books(path)
    for name in ("gemm", "gemv", "syrk", "dot", "batch", "products", "errors", "sets"):
        setattr(books, name, 0)
    return handle, books


@pytest.fixture(params=[(), ILP64], ids=["LP64", "ILP64"])
def fakes(request, fake):
    """A library with all routines."""
    return handle_of(fake(*EVERYTHING, *request.param, marks=MARKS["openblas"]))


@pytest.fixture
def narrow(fake):
    """A library with 32-bit integers."""
    return handle_of(fake(*EVERYTHING))


def matmul(handle, a, b, out, n_threads=1, epilogue=ffi.NULL):
    """Call shim_matmul with NumPy's arrays, whose batches broadcast already."""
    sizes = out.shape[:-2]
    strides = [stride for x in (a, b, out) for stride in x.strides[:-2]]
    return lib.shim_matmul(
        handle, n_threads, TYPES[out.dtype.char],
        *(ffi.cast("void *", x.__array_interface__["data"][0]) for x in (a, b, out)),
        *out.shape[-2:], a.shape[-1], *a.strides[-2:], *b.strides[-2:], out.strides[-2],
        len(sizes), ffi.new("int64_t[]", [*sizes, *strides]), epilogue,
    )  # fmt: skip


def numbers(*shape, dtype="f"):
    """Return small whole numbers, whose products have no rounding."""
    x = np.arange(np.prod(shape)).reshape(shape) % 7 - 3
    return (x * (1 + 2j) if dtype in "FD" else x).astype(dtype)


def check(handle, a, b, n_threads=1):
    """Check one product that is computed."""
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(x, (*shape, *x.shape[-2:])) for x in (a, b))
    out = np.full((*shape, a.shape[-2], b.shape[-1]), np.nan, a.dtype)
    assert matmul(handle, a, b, out, n_threads) == lib.SHIM_SUCCESS
    np.testing.assert_array_equal(out, a @ b)


# -- which routine computes ------------------------------------------------------------------------


def calls(books):
    return {name: getattr(books, name) for name in ("gemm", "gemv", "syrk", "dot", "batch")}


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(
    ("m", "n", "k", "routine"),
    [
        (4, 5, 6, "gemm"),
        (4, 5, 1, "gemm"),
        (1, 5, 6, "gemv"),
        (4, 1, 6, "gemv"),
        (4, 1, 1, "gemv"),
        (1, 1, 6, "dot"),
        (1, 1, 1, "dot"),
    ],
)
def test_shapes(fakes, dtype, m, n, k, routine):
    handle, books = fakes
    check(handle, numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype))
    assert calls(books) == {**dict.fromkeys(calls(books), 0), routine: 1}
    check(handle, numbers(k, m, dtype=dtype).T, numbers(n, k, dtype=dtype).T)
    assert calls(books) == {**dict.fromkeys(calls(books), 0), routine: 2}
    assert books.errors == 0


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("rows", "routine"), [(127, "gemm"), (128, "syrk"), (130, "syrk")])
def test_gram_matrices(fakes, dtype, rows, routine):
    handle, books = fakes
    x = numbers(rows, 3, dtype=dtype)
    y = numbers(3, rows, dtype=dtype)
    for each in (x, y.T, x[:, :1], x[:, :2], np.tile(x, (1, 2))[:, :3]):
        check(handle, each, each.T)
    assert calls(books) == {**dict.fromkeys(calls(books), 0), routine: 5}
    other = x.copy()
    check(handle, x, other.T)
    assert books.gemm == (1 if routine == "syrk" else 6)
    assert books.errors == 0


def test_gram_matrices_write_to_their_place_only(fakes):
    handle, books = fakes
    x = numbers(130, 3)
    memory = np.full((132, 140), 7, "f")
    assert matmul(handle, x, x.T, memory[1:-1, 4:-6]) == lib.SHIM_SUCCESS
    assert books.syrk == 1
    np.testing.assert_array_equal(memory[1:-1, 4:-6], x @ x.T)
    memory[1:-1, 4:-6] = 7
    assert (memory == 7).all()


def test_batches_of_gram_matrices(fakes):
    handle, books = fakes
    x = numbers(3, 128, 5)
    check(handle, x, x.mT)
    assert calls(books) == {"gemm": 0, "gemv": 0, "syrk": 3, "dot": 0, "batch": 0}
    check(handle, x[::-1], x.mT)  # one of them is
    assert (books.syrk, books.gemm) == (4, 2)
    check(handle, np.broadcast_to(x[:1], x.shape), x.mT)
    assert (books.syrk, books.gemm) == (5, 4)


@pytest.mark.parametrize("dtype", "fD")
@pytest.mark.parametrize(
    ("m", "n", "k", "count", "by_batch"),
    [
        (4, 5, 6, 3, False),  # too few
        (4, 5, 6, 4, True),
        (4, 5, 6, 50, True),
        (4, 5, 1, 50, True),
        (1, 5, 6, 50, False),
        (4, 1, 6, 50, False),
        (40, 41, 41, 4, False),  # too large
    ],
)
def test_batches(fakes, dtype, m, n, k, count, by_batch):
    handle, books = fakes
    a, b = numbers(count, m, k, dtype=dtype), numbers(count, k, n, dtype=dtype)
    check(handle, a, b)
    a, b = np.ascontiguousarray(a.mT).mT, np.ascontiguousarray(b.mT).mT
    check(handle, a, b)
    assert (books.batch, books.products) == ((2, 2 * count) if by_batch else (0, 0))
    assert books.gemm + books.gemv == (0 if by_batch else 2 * count)
    assert books.errors == 0


def test_batches_of_several_axes(fakes):
    handle, books = fakes
    a, b = numbers(2, 3, 5, 4, 6), numbers(2, 3, 5, 6, 3)
    check(handle, a, b)
    assert (books.batch, books.products, books.gemm) == (6, 30, 0)
    check(handle, a[:, ::-1, ::2], b[:, :, 2:])  # three of the last axis
    assert (books.batch, books.gemm) == (6, 18)
    assert books.errors == 0


@pytest.mark.parametrize("which", ["reversed", "shared a", "overlapping", "result apart"])
def test_batches_that_are_no_batch_of_the_library(fakes, which):
    handle, books = fakes
    a, b, out = numbers(6, 4, 6), numbers(6, 6, 3), np.empty((6, 4, 3), "f")
    if which == "reversed":
        a = a[::-1]
    elif which == "shared a":
        a = np.broadcast_to(a[0], a.shape)
    elif which == "overlapping":
        a = np.lib.stride_tricks.as_strided(a, strides=(24, 24, 4))
    else:
        out = np.empty((6, 4, 5), "f")[:, :, :3][::-1]
    assert matmul(handle, a, b, out) == lib.SHIM_SUCCESS
    np.testing.assert_array_equal(out, a @ b)
    assert (books.batch, books.gemm, books.errors) == (0, 6, 0)


def test_batches_that_follow_each_other_are_one_product(fakes):
    handle, books = fakes
    b = numbers(6, 5)
    check(handle, numbers(2, 3, 4, 6), b)
    check(handle, numbers(50, 1, 6), b)
    check(handle, numbers(3, 50, 6)[:, ::7], b)  # rows 7 apart within, but not between
    check(handle, numbers(2, 1, 3, 4, 6), b)
    assert calls(books) == {"gemm": 1 + 1 + 3 + 1, "gemv": 0, "syrk": 0, "dot": 0, "batch": 0}
    assert books.errors == 0


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("m", [1, 2])
def test_batches_apart_by_no_whole_number_of_elements(fakes, dtype, m):
    """Complex numbers are as good as aligned where their parts are."""
    handle, books = fakes
    part = np.dtype(dtype.lower())
    record = np.dtype([("rows", dtype, (m, 6)), ("odd", part)])
    packed = np.zeros(5, record)
    packed["rows"] = numbers(5, m, 6, dtype=dtype)
    a, b = packed["rows"], numbers(6, 4, dtype=dtype)
    if dtype in "FD":
        assert a.strides[0] % a.itemsize
    check(handle, a, b)
    check(handle, a, np.broadcast_to(b, (5, 6, 4)).copy())
    assert books.errors == 0


@pytest.mark.parametrize("count", [4, 5, 100])
def test_small_products_on_several_threads(fake, count):
    handle, books = handle_of(fake("-DIN_GEMM=meet()", marks=MARKS["openblas"]))
    a, b = numbers(count, 64, 64), numbers(count, 64, 64)
    books.expected = 2
    check(handle, a, b, n_threads=2)
    assert books.callers == 2
    assert books.gemm == count
    assert (books.sets, books.least_set, books.threads) == (2, 1, 4)


@pytest.mark.parametrize(("count", "used", "callers"), [(7, 2, 1), (8, 1, 2)])
def test_of_many_large_products_each_thread_computes_some(fake, count, used, callers):
    handle, books = handle_of(fake("-DIN_GEMM=meet()", marks=MARKS["openblas"]))
    a, b = numbers(count, 128, 64), numbers(count, 64, 128)
    books.expected = callers
    check(handle, a, b, n_threads=2)
    assert (books.gemm, books.used, books.callers) == (count, used, callers)
    assert books.threads == 4


def test_batches_of_the_library_on_several_threads(fakes):
    handle, books = fakes
    a, b = numbers(1000, 32, 8), numbers(1000, 8, 32)
    check(handle, a, b, n_threads=2)
    assert books.products == 1000
    assert books.gemm == 0
    assert books.errors == 0
    assert books.threads == 4


# -- threads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("marks", ["openblas", "blis"])
def test_the_number_of_threads_is_lowered_for_the_call_at_most(fake, marks):
    handle, books = handle_of(fake(marks=MARKS[marks]))
    a = numbers(256, 256)
    for n_threads, set_by_others, used in [
        (1, 4, 1),
        (2, 4, 2),
        (4, 4, 4),
        (9, 4, 4),
        (2, 1, 1),
        (1, 1, 1),
        (9, 2, 2),
    ]:
        books.threads, books.sets, books.used = set_by_others, 0, 0
        check(handle, a, a, n_threads)
        assert books.used == used
        assert books.threads == set_by_others
        assert books.sets == (2 if used < set_by_others else 0)


def test_a_library_that_is_to_use_few_threads(fake):
    handle, books = handle_of(fake(marks=MARKS["openblas"]))
    handle.most_threads = 1
    a = numbers(256, 256)
    check(handle, a, a, 4)
    assert (books.used, books.threads) == (1, 4)


@pytest.mark.parametrize(("size", "used"), [(10, 1), (64, 1), (128, 4), (256, 4)])
def test_small_products_use_few_threads(fake, size, used):
    handle, books = handle_of(fake(marks=MARKS["openblas"]))
    a = numbers(size, size)
    check(handle, a, a, 4)
    assert (books.used, books.threads) == (used, 4)


@pytest.mark.parametrize("slow", ["together", "alone"])
def test_of_threads_that_wait_for_each_other_one_goes_on_alone(fake, slow):
    """Which is slow and which fast is clear, and time passes slower than the next trial comes."""
    pauses = (300000, 50000) if slow == "together" else (0, 300000)
    slowly = "if(fake_expected)usleep(fake_threads>1?{}:{})".format(*pauses)
    handle, books = handle_of(fake(f"-DIN_GEMM={slowly}", marks=MARKS["openblas"]))
    books.expected = 1
    a = numbers(128, 128)
    used = []
    for seconds in (1, 1, 0, 0, 0, 0):  # that a multiply-add should take
        handle.seconds = seconds
        check(handle, a, a, 4)
        used.append(books.used)
        assert books.threads == 4
    assert used == [4, 4, 1, *([1] * 3 if slow == "together" else [4] * 3)]


def test_without_routines_for_threads_their_number_stays(fake):
    handle, books = handle_of(fake())
    a = numbers(256, 256)
    check(handle, a, a, 1)
    assert (books.used, books.sets) == (4, 0)


# -- what is not computed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("m", "n", "k", "sizes"),
    [(0, 2, 3, ()), (2, 0, 3, ()), (2, 3, 0, ()), (2, 2, 2, (0,)), (2, 2, 2, (3, 0, 2))],
)
def test_empty(fakes, m, n, k, sizes):
    handle, books = fakes
    a, b = np.ones((*sizes, m, k), "f"), np.ones((*sizes, k, n), "f")
    out = np.full((*sizes, m, n), 7, "f")
    assert matmul(handle, a, b, out) == lib.SHIM_EMPTY
    assert (out == 7).all()
    assert sum(calls(books).values()) == 0


def test_too_many_axes(fakes):
    handle, books = fakes
    out = ffi.new("float[]", 1)
    for dims, status in ((64, lib.SHIM_SUCCESS), (65, lib.SHIM_FAILED)):
        batch = ffi.new("int64_t[]", [*[1] * dims, *[0] * 3 * dims])
        arguments = (out, out, out, 1, 1, 1, 4, 4, 4, 4, 4, dims, batch, ffi.NULL)
        assert lib.shim_matmul(handle, 1, lib.SHIM_S, *arguments) == status
    assert books.dot == 1


@pytest.mark.parametrize(
    ("offset_a", "offset_b", "batch", "expected"),
    [
        (0, 0, (2, 16, 16, 16), lib.SHIM_SUCCESS),
        (1, 0, (2, 16, 16, 16), COPY_A),
        (0, 2, (2, 16, 16, 16), COPY_B),
        (0, 0, (2, 17, 18, 16), COPY_A | COPY_B),
    ],
)
def test_unaligned_operands_are_to_be_copied(fakes, offset_a, offset_b, batch, expected):
    handle, _ = fakes
    memory = [np.zeros(64, np.uint8) for _ in range(3)]
    a, b, out = (ffi.from_buffer(x) for x in memory)
    status = lib.shim_matmul(
        handle, 1, lib.SHIM_S, a + offset_a, b + offset_b, out,
        2, 2, 2, 8, 4, 8, 4, 8, 1, ffi.new("int64_t[]", batch), ffi.NULL,
    )  # fmt: skip
    assert status == expected


X = numbers(8, 8)
LAYOUTS = {
    "rows apart": (X[::2, :4], True),
    "columns apart": (X.T[:4, ::2], True),
    "rows and columns apart": (X[::2, ::2], False),
    "rows reversed": (X[::-1], False),
    "columns reversed": (X[:, ::-1], False),
    "one row for all": (np.broadcast_to(X[:1], (4, 8)), False),
    "one number for all": (np.broadcast_to(X[:1, :1], (4, 8)), False),
    "overlapping rows": (np.lib.stride_tricks.as_strided(X, (4, 8), (16, 4)), False),
    "a row of every second": (X[:1, ::2], True),
    "a row reversed": (X[:1, ::-1], False),
    "a column reversed": (X[::-1, :1], False),
    "a column": (X[:, :1], True),
    "a column of every second": (X[::2, :1], True),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_that_blas_has_no_name_for_are_to_be_copied(fakes, layout):
    handle, books = fakes
    x, known = LAYOUTS[layout]
    for operands, status in (
        ((x, numbers(x.shape[1], 3)), COPY_A),
        ((numbers(3, x.shape[0]), x), COPY_B),
        ((x, x.T), COPY_A | COPY_B),
    ):
        out = np.full((operands[0].shape[0], operands[1].shape[1]), 7, "f")
        assert matmul(handle, *operands, out) == (lib.SHIM_SUCCESS if known else status)
        np.testing.assert_array_equal(out, np.matmul(*operands) if known else 7)
    assert books.errors == 0
    assert (sum(calls(books).values()) > 0) == known


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((LARGE, 2, 2), (8, 4, 8, 4, 8)),
        ((2, LARGE, 2), (8, 4, 4 * LARGE, 4, 4 * LARGE)),
        ((2, 2, LARGE), (4 * LARGE, 4, 8, 4, 8)),
        ((2, 2, 2), (4 * LARGE, 4, 8, 4, 8)),
        ((2, 2, 2), (8, 4, 4, 4 * LARGE, 8)),
        ((2, 2, 2), (8, 4, 8, 4, 4 * LARGE)),
        ((2, 1, 2), (8, 4, 4 * LARGE, 4, 4)),
        ((2, 2, 2), (2 * LARGE, 4, 8, 4, 8)),  # an element of the second row
        ((2, 2, 2), (8, 4, 4, 2 * LARGE, 8)),
        ((2, 2, 2), (8, 4, 8, 4, 2 * LARGE)),
        ((1 << 16, 2, 1 << 15), (1 << 17, 4, 8, 4, 8)),
    ],
)
def test_32_bits_refuse_what_they_cannot_state(narrow, shape, strides):
    handle, books = narrow
    a, b, out = (ffi.new("float[]", [1, 2, 3, 4]) for _ in range(3))
    arguments = (handle, 1, lib.SHIM_S, a, b, out)
    no_batch = ffi.new("int64_t[]", 1)
    large = lib.shim_matmul(*arguments, *shape, *strides, 0, no_batch, ffi.NULL)
    assert large == lib.SHIM_FAILED
    assert list(out) == [1, 2, 3, 4]
    assert sum(calls(books).values()) == 0
    small = lib.shim_matmul(*arguments, 2, 2, 2, 8, 4, 8, 4, 8, 0, no_batch, ffi.NULL)
    assert small == lib.SHIM_SUCCESS
    assert list(out) == [7, 10, 15, 22]


@pytest.mark.parametrize(
    ("count", "m", "n", "k", "a_step"),
    [
        (1024, 4096, 1024, 1024, 4096 * 1024),  # as one product it would be too large
        (5, 128, 4, 4, LARGE),  # apart as a call for a batch cannot state
    ],
)
def test_batches_that_32_bits_can_state_one_at_a_time(fake, count, m, n, k, a_step):
    """Nothing is read or written, as there is not so much memory."""
    handle, books = handle_of(fake(*EVERYTHING, "-DIN_GEMM=if(m>100)return"))
    memory = ffi.cast("float *", 1 << 20)
    b_step = 0 if count > 5 else n * k
    batch = ffi.new("int64_t[]", [count, 4 * a_step, 4 * b_step, 4 * m * n])
    status = lib.shim_matmul(
        handle, 1, lib.SHIM_S, memory, memory, memory,
        m, n, k, 4 * k, 4, 4 * n, 4, 4 * n, 1, batch, ffi.NULL,
    )  # fmt: skip
    assert status == lib.SHIM_SUCCESS
    assert (books.gemm, books.batch) == (count, 0)


# -- what is multiplied and added ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("alpha", [1, -2, 0.5])
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("shape", [(4, 5, 6), (128, 128, 3), (1, 5, 6), (4, 1, 6), (1, 1, 6)])
@pytest.mark.parametrize("batch", [(), (5,)])
def test_epilogues(fakes, dtype, alpha, add, shape, batch):
    handle, books = fakes
    m, n, k = shape
    if 1 in (m, n):
        alpha = 1
    elif dtype in "FD":
        alpha *= 1 - 2j
    a, b = numbers(*batch, m, k, dtype=dtype), numbers(*batch, k, n, dtype=dtype)
    if m == n == 128:
        b = a.mT
    before = numbers(*batch, m, n, dtype=dtype)
    out = before.copy() if add else np.full(before.shape, np.nan, dtype)
    alpha = complex(alpha)
    epilogue = ffi.new("shim_epilogue *", ((alpha.real, alpha.imag), add))
    assert matmul(handle, a, b, out, 1, epilogue) == lib.SHIM_SUCCESS
    factor = alpha if dtype in "FD" else alpha.real
    np.testing.assert_array_equal(out, factor * (a @ b) + (before if add else 0))
    assert books.errors == 0


# -- trials ----------------------------------------------------------------------------------------


class Routine(NamedTuple):
    """The number of a routine, where its addresses are, and their names."""

    number: int
    table: str
    symbols: tuple[str, ...]


def four(table):
    return table, tuple(f"cblas_{letter}{table}" for letter in "sdcz")


DOTS = ("cblas_sdot", "cblas_ddot", "cblas_cdotu_sub", "cblas_zdotu_sub")
ROUTINES = {
    "GEMM": Routine(lib.SHIM_GEMM, *four("gemm")),
    "GEMV": Routine(lib.SHIM_GEMV, *four("gemv")),
    "DOT": Routine(lib.SHIM_DOT, "dot", DOTS),
    "SYRK": Routine(lib.SHIM_SYRK, *four("syrk")),
    "BATCH": Routine(lib.SHIM_BATCH, *four("gemm_batch_strided")),
}


@pytest.mark.parametrize("type_", range(lib.SHIM_TYPES))
@pytest.mark.parametrize("routine", ROUTINES)
def test_what_is_right_is_found_right(fakes, routine, type_):
    for handle in (fakes[0], Libraries().open_default().handle):
        assert lib.shim_check(handle, ROUTINES[routine].number, type_) == lib.SHIM_RIGHT


ALWAYS = ("2", "1.01", "(sum==0?2:1)/2.0")
TRANSPOSED = {  # or only where an operand is
    **dict.fromkeys(("GEMM", "BATCH"), ("(1+(a_trans!=NO_TRANS))", "(1+(b_trans!=NO_TRANS))")),
    **dict.fromkeys(("GEMV", "SYRK"), ("(1+(trans!=NO_TRANS))", "(1+(trans==NO_TRANS))")),
}


@pytest.mark.parametrize(
    ("routine", "factor"),
    [(each, factor) for each in ROUTINES for factor in (*ALWAYS, *TRANSPOSED.get(each, ()))],
)
def test_what_is_wrong_is_found_wrong(fakes, fake, routine, factor):
    """Tried are routines of a library that would be refused, or done without, as a whole."""
    handle, _ = fakes
    names = ["REAL_BATCH", "COMPLEX_BATCH"] if routine == "BATCH" else [routine]
    integers = ILP64 if handle.ilp64 else ()
    path = fake(*EVERYTHING, *integers, *(f"-D{name}_FACTOR={factor}" for name in names))
    table, symbols = ROUTINES[routine].table, ROUTINES[routine].symbols
    library = lib.shim_open(str(path).encode(), True)
    setattr(handle, table, [lib.shim_symbol(library, name.encode()) for name in symbols])
    for type_ in range(lib.SHIM_TYPES):
        assert lib.shim_check(handle, ROUTINES[routine].number, type_) & lib.SHIM_WRONG


@pytest.mark.parametrize("by", ["GEMM", "GEMV"])
@pytest.mark.parametrize("lost", ["(x)==0", "(y)==0", "(x)!=(x)", "(y)!=(y)"])
def test_what_loses_nan_is_found_out(fake, by, lost):
    handle, _ = handle_of(fake(f"-DIS_LOST_BY_{by}(x,y)=({lost})"))
    for routine in ("GEMM", "GEMV"):
        expected = lib.SHIM_LOSES_NAN if routine == by else lib.SHIM_RIGHT
        for type_ in range(lib.SHIM_TYPES):
            assert lib.shim_check(handle, ROUTINES[routine].number, type_) == expected


def test_how_long_a_product_takes(fakes):
    handle, books = fakes
    assert 0 < lib.shim_seconds(handle, 1, 64) < 60
    assert books.gemm == 5
    assert books.errors == 0
