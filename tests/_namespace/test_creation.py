"""Creation functions: values, dtypes, devices, and whose memory it is."""

import array
import gc

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, zeros_q8_0

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
STANDARD = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
)
DTYPES = [*(np.dtype(name) for name in STANDARD.split()), np.dtype(np.float16), bfloat16]


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


class Speaks:
    """Passes on some of the protocols of an array, and no others."""

    def __init__(self, value, *names):
        for name in names:
            setattr(type(self), name, property(lambda _, name=name: getattr(value, name)))


def speaking(value, *names):
    return type("Foreign", (Speaks,), {})(value, *names)


# -- asarray --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj", "dtype"),
    [
        (True, "bool"),
        (3, "int64"),
        (2.5, "float64"),
        (1 + 2j, "complex128"),
        ([1, 2.5], "float64"),
        ([[True], [False]], "bool"),
        (((1, 2), (3, 4j)), "complex128"),
        ([], "float64"),
        ([[], []], "float64"),
        (range(3), "int64"),
        (np.float32(2.5), "float32"),
    ],
)
def test_asarray_of_scalars_and_sequences(obj, dtype, device):
    check(xp.asarray(obj, device=device), np.array(obj), dtype, device=device)
    check(xp.asarray(obj, device=device, copy=True), np.array(obj), dtype, device=device)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_asarray_gives_the_dtype_that_is_named(dtype):
    check(xp.asarray([0, 1], dtype=dtype, device="cpu"), np.array([0, 1], dtype))
    check(xp.asarray([0, 1], dtype=dtype.type, device="cpu"), np.array([0, 1], dtype))
    x = numbers((2, 3), dtype)
    check(xp.asarray(x, device="cpu"), x)


def test_asarray_of_sequences_of_arrays():
    x = on_cpu([1, 2], np.float32)
    check(xp.asarray([x, x], device="cpu"), [[1, 2], [1, 2]], np.float32)
    check(xp.asarray([[x[0], 5.0], [xp.sum(x), x[1]]], device="cpu"), [[1, 5], [3, 2]], np.float64)
    check(xp.asarray([on_cpu(1), on_cpu(2)], dtype=np.int8, device="cpu"), [1, 2], np.int8)
    product = on_cpu(np.eye(2)) @ on_cpu(np.eye(2))
    check(xp.asarray([product], device="cpu"), [np.eye(2)])


def test_asarray_of_an_array_is_the_array():
    x = on_cpu([1.0, 2.0])
    assert xp.asarray(x) is x
    assert xp.asarray(x, dtype=xp.float64, device="cpu") is x
    assert xp.asarray(x, copy=False) is x
    check(xp.asarray(x, dtype=xp.float32), [1.0, 2.0], np.float32)
    copied = xp.asarray(x, copy=True)
    copied[0] = 9.0
    check(x, [1.0, 2.0])
    check(xp.asarray(x, device="blas"), [1.0, 2.0], device="blas")
    for changes in ({"dtype": xp.float32}, {"device": "blas"}):
        with pytest.raises(ValueError, match="copy"):
            xp.asarray(x, copy=False, **changes)


def test_asarray_of_a_pending_array_leaves_it_pending():
    product = on_cpu(np.eye(2)) @ on_cpu(np.eye(2))
    assert xp.asarray(product) is product
    assert xp.is_pending(product)


def test_asarray_of_a_quantized_array():
    x = zeros_q8_0((2, 32))
    assert xp.asarray(x) is x
    check(xp.asarray(x, dtype=xp.float32), np.zeros((2, 32), np.float32))


def test_asarray_copies_the_memory_of_others_once():
    theirs = np.array([[1.0, 2.0], [3.0, 4.0]])
    for copy in (None, True):
        x = xp.asarray(theirs, copy=copy, device="cpu")
        product = x @ x
        assert xp.is_pending(product)
        theirs[0, 0] = 100.0
        check(product, [[7.0, 10.0], [15.0, 22.0]])
        theirs[0, 0] = 1.0


@pytest.mark.parametrize("make", [np.array, lambda x: array.array("d", x)], ids=["numpy", "buffer"])
def test_asarray_without_a_copy_shares_and_products_do_not_wait(make):
    theirs = make([1.0, 2.0])
    x = xp.asarray(theirs, copy=False, device="cpu")
    product = x @ x
    assert not xp.is_pending(product)
    theirs[0] = 5.0
    assert float(x[0]) == 5.0
    x[1] = 7.0
    assert theirs[1] == 7.0
    assert float(product) == 5.0
    del theirs
    gc.collect()
    np.testing.assert_array_equal(np.asarray(x), [5.0, 7.0])


@pytest.mark.parametrize(
    ("obj", "dtype"),
    [
        ([1.0], None),
        (1.0, None),
        (np.float64(1.0), None),
        (np.ones(2), np.float32),
        (np.ones(2, ">f8" if np.little_endian else "<f8"), None),
    ],
)
def test_asarray_without_a_copy_fails_where_one_is_needed(obj, dtype):
    with pytest.raises(ValueError, match="copy"):
        xp.asarray(obj, dtype=dtype, copy=False)


@pytest.mark.parametrize("copy", [None, False])
def test_asarray_of_bytes_in_an_array_shares_and_products_wait(copy):
    theirs = np.frombuffer(np.array([[1.0, 2.0], [3.0, 4.0]]).tobytes()).reshape(2, 2)
    x = xp.asarray(theirs, device="cpu", copy=copy)
    assert np.shares_memory(np.asarray(x), theirs)
    product = x @ x
    assert xp.is_pending(product)
    np.testing.assert_array_equal(np.asarray(product), [[7.0, 10.0], [15.0, 22.0]])
    with pytest.raises(ValueError, match="read-only"):
        x[0, 0] = 1.0
    check(xp.asarray(theirs, dtype=np.float32, device="cpu"), theirs, np.float32)
    ours = xp.asarray(theirs, copy=True, device="cpu")
    ours[0, 0] = 9.0
    assert theirs[0, 0] == 1.0


def test_asarray_of_other_kinds_of_memory():
    check(xp.asarray(bytearray(b"ab"), device="cpu"), [97, 98], np.uint8)
    check(xp.asarray(memoryview(b"ab"), device="cpu"), [97, 98], np.uint8)
    check(xp.asarray(array.array("f", [1.5]), device="cpu"), [1.5], np.float32)
    check(xp.asarray(np.array([1.5, 2.0], ">f4"), device="cpu"), [1.5, 2.0], np.float32)
    check(xp.asarray(np.ma.array([1.0, 2.0]), device="cpu"), [1.0, 2.0])
    misaligned = np.frombuffer(b"x" + np.array([1.5, 2.5]).tobytes(), offset=1)
    check(xp.asarray(misaligned, device="cpu"), [1.5, 2.5])


@pytest.mark.parametrize(
    "names", [("__array__",), ("__array_interface__",), ("__dlpack__", "__dlpack_device__")]
)
def test_asarray_of_arrays_of_other_libraries(names):
    theirs = np.array([1.0, 2.0], np.float32)
    foreign = speaking(theirs, *names)
    x = xp.asarray(foreign, device="cpu")
    theirs[0] = 9.0
    check(x, [1.0, 2.0], np.float32)
    shared = xp.asarray(foreign, copy=False)
    theirs[1] = 8.0
    assert float(shared[1]) == 8.0


def test_asarray_copies_of_libraries_that_do_not_know_of_copies():
    class Old:
        def __array__(self, dtype=None):
            return given

    given = numbers((3, 4), np.float64)
    expected = given.copy()
    x = xp.asarray(Old(), device="cpu")
    given[...] = 0.0
    check(x, expected)


@pytest.mark.parametrize("bad", [None, "a", b"ab", [None], ["1", "2"], object(), {1, 2}])
def test_asarray_of_what_has_no_dtype(bad):
    with pytest.raises(TypeError, match="no dtype"):
        xp.asarray(bad)


@pytest.mark.parametrize("dtype", ["M8[s]", "S2", np.longdouble, None])
def test_asarray_of_dtypes_that_arrays_do_not_have(dtype):
    with pytest.raises(TypeError):
        xp.asarray(np.zeros(2, dtype or [("a", "f4")]))


@pytest.mark.parametrize(
    ("obj", "dtype"),
    [(300, "uint8"), ([-1], "uint16"), (2**70, None), ([1, 2**70], None), ([2**63], "int64")],
)
def test_integers_out_of_range_overflow(obj, dtype):
    with pytest.raises(OverflowError):
        xp.asarray(obj, dtype=dtype)


def test_asarray_of_bad_sequences_and_dtypes():
    with pytest.raises(ValueError, match="inhomogeneous"):
        xp.asarray([[1], [1, 2]])
    with pytest.raises(TypeError):
        xp.asarray([1j], dtype=xp.float64)
    with pytest.raises(TypeError, match="q8_0"):
        xp.asarray([1.0] * 32, dtype=xp.q8_0)
    with pytest.raises(ValueError, match="nowhere"):
        xp.asarray([1.0], device="nowhere")


# -- from_dlpack ----------------------------------------------------------------------------------


def test_from_dlpack_shares_the_memory_of_others():
    theirs = np.array([1.0, 2.0])
    for copy in (None, False):
        x = xp.from_dlpack(theirs, copy=copy)
        assert x.device == xp.get_default_device()
        assert not xp.is_pending(x @ x)
        theirs[0] = 5.0
        assert float(x[0]) == 5.0
        theirs[0] = 1.0
    copied = xp.from_dlpack(theirs, copy=True, device="cpu")
    theirs[0] = 5.0
    check(copied, [1.0, 2.0])
    assert xp.is_pending(copied @ copied)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_from_dlpack_of_an_array_shares_on_any_device(dtype, device):
    x = on_cpu(numbers((2, 3), dtype))
    assert xp.from_dlpack(x).device == "cpu"
    for copy in (None, False):
        shared = xp.from_dlpack(x, device=device, copy=copy)
        check(shared, np.asarray(x), dtype, device=device)
        x[0, 0] = 1 if int(xp.real(shared)[0, 0]) == 0 else 0
        check(shared, np.asarray(x), dtype, device=device)
    copied = xp.from_dlpack(x, device=device, copy=True)
    before = np.array(x)
    x[0, 0] = 1 if int(xp.real(x)[0, 0]) == 0 else 0
    check(copied, before, dtype, device=device)


def test_from_dlpack_of_a_pending_array_and_writes_through_it():
    a = on_cpu([[1.0, 2.0], [3.0, 4.0]])
    product = a @ a
    shared = xp.from_dlpack(product)
    again = product @ product
    shared[0, 0] = 0.0
    check(product, [[0.0, 10.0], [15.0, 22.0]])
    check(again, [[199.0, 290.0], [435.0, 634.0]])


def test_from_dlpack_of_what_does_not_speak_it():
    for bad in ([1.0], 1.0, None):
        with pytest.raises(TypeError, match="__dlpack__"):
            xp.from_dlpack(bad)
    with pytest.raises(TypeError, match="quantized"):
        xp.from_dlpack(zeros_q8_0((2, 32)))
    with pytest.raises(ValueError, match="nowhere"):
        xp.from_dlpack(np.ones(2), device="nowhere")


# -- by shape -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), 3, (0,), (2, 3), [2, 3], (2, 0, 4), np.int64(2)], ids=str)
def test_arrays_by_shape(shape, device):
    for name, args in (("zeros", ()), ("ones", ()), ("full", (2.5,))):
        expected = getattr(np, name)(shape, *args)
        check(getattr(xp, name)(shape, *args, device=device), expected, device=device)
    assert xp.empty(shape, device=device).shape == np.empty(shape).shape
    assert xp.empty(shape, device=device).dtype == np.float64


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arrays_by_shape_and_dtype(dtype, device):
    check(xp.zeros(2, dtype=dtype, device=device), np.array([0, 0], dtype), device=device)
    check(xp.ones(2, dtype=dtype, device=device), np.array([1, 1], dtype), device=device)
    check(xp.full(2, 1, dtype=dtype, device=device), np.array([1, 1], dtype), device=device)
    check(xp.eye(2, dtype=dtype, device=device), np.array([[1, 0], [0, 1]], dtype), device=device)
    assert xp.empty(2, dtype=dtype, device=device).dtype == dtype


def test_arrays_like_another(device):
    x = xp.ones((2, 3), dtype=np.int16, device=device)
    other = "cpu" if device == "blas" else "blas"
    for name, args, value in (("zeros_like", (), 0), ("ones_like", (), 1), ("full_like", (7,), 7)):
        function = getattr(xp, name)
        check(function(x, *args), np.full((2, 3), value), np.int16, device=device)
        check(function(x, *args, dtype=np.float32), np.full((2, 3), value), "f4", device=device)
        check(function(x, *args, device=other), np.full((2, 3), value), np.int16, device=other)
    empty = xp.empty_like(x)
    assert (empty.shape, empty.dtype, empty.device) == (x.shape, x.dtype, x.device)


def test_arrays_like_another_do_not_read_it():
    product = on_cpu(np.eye(2, dtype=np.float32)) @ on_cpu(np.eye(2, dtype=np.float32))
    check(xp.zeros_like(product), np.zeros((2, 2), np.float32))
    assert xp.is_pending(product)
    check(xp.ones_like(zeros_q8_0((2, 32)), dtype=xp.float32), np.ones((2, 32), np.float32))


@pytest.mark.parametrize(
    ("fill", "dtype"), [(True, "bool"), (3, "int64"), (2.5, "float64"), (1j, "complex128")]
)
def test_full_takes_the_dtype_of_its_fill_value(fill, dtype):
    check(xp.full((2, 2), fill, device="cpu"), [[fill, fill], [fill, fill]], dtype)


def test_full_takes_arrays_as_fill_values():
    check(xp.full((2, 2), on_cpu(3, np.int8), device="cpu"), [[3, 3], [3, 3]], np.int8)
    check(xp.full((2, 2), on_cpu([1.0, 2.0]), device="cpu"), [[1, 2], [1, 2]], np.float64)
    check(xp.full_like(on_cpu([1, 2]), on_cpu(7.0)), [7, 7], np.int64)


def test_bad_shapes_and_fill_values():
    for function in (xp.zeros, xp.ones, xp.empty, lambda shape: xp.full(shape, 1)):
        with pytest.raises(ValueError, match="negative"):
            function((2, -1))
        with pytest.raises(TypeError):
            function(2.5)
    for fill, dtype in ((300, np.uint8), (2**70, None)):
        with pytest.raises(OverflowError):
            xp.full(2, fill, dtype=dtype)
    with pytest.raises(TypeError, match="no dtype"):
        xp.full(2, "a")
    for function in (xp.zeros, xp.ones, xp.empty):
        with pytest.raises(TypeError, match="q8_0"):
            function(32, dtype=xp.q8_0)
        with pytest.raises(TypeError, match="datetime64"):
            function(2, dtype="M8[s]")
    with pytest.raises(TypeError, match="Array"):
        xp.zeros_like(np.ones(2))


@pytest.mark.parametrize("k", [-2, 0, 1, 5])
def test_eye_of_any_shape_and_diagonal(k):
    for n_rows, n_cols in ((3, None), (2, 4), (4, 2), (0, 3)):
        columns = n_rows if n_cols is None else n_cols
        expected = [[float(j - i == k) for j in range(columns)] for i in range(n_rows)]
        check(xp.eye(n_rows, n_cols, k=k, device="cpu"), np.reshape(expected, (n_rows, columns)))


# -- by range -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args", [(5,), (0,), (-3,), (2, 7), (7, 2), (7, 2, -2), (1, 10, 3), (-4, 4, 5)], ids=str
)
@pytest.mark.parametrize("dtype", [None, np.int8, np.float32, bfloat16], ids=str)
def test_arange_is_range(args, dtype):
    expected = np.array(list(range(*args)), dtype or np.int64)
    check(xp.arange(*args, dtype=dtype, device="cpu"), expected)


def test_arange_of_floats():
    check(xp.arange(2.0, device="cpu"), [0.0, 1.0])
    check(xp.arange(0, 1, 0.25, device="cpu"), [0.0, 0.25, 0.5, 0.75])
    check(xp.arange(1, step=0.5, stop=2, device="cpu"), [1.0, 1.5])
    check(xp.arange(0, 1, 0.25, dtype=np.float32, device="cpu"), [0, 0.25, 0.5, 0.75], np.float32)
    exact = np.arange(1000, 1010).astype(bfloat16)  # steps of 1 round away when they are added up
    check(xp.arange(1000, 1010, dtype=bfloat16, device="cpu"), exact)


def test_arange_out_of_range_overflows():
    check(xp.arange(256, dtype=np.uint8, device="cpu"), list(range(256)), np.uint8)
    check(xp.arange(2**63, 2**63 + 2, dtype=np.uint64, device="cpu"), [2**63, 2**63 + 1], np.uint64)
    for args in ((300,), (-1, 3), (3, -3, -1)):
        with pytest.raises(OverflowError):
            xp.arange(*args, dtype=np.uint8)
    with pytest.raises(ZeroDivisionError):
        xp.arange(0, 1, 0)


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("num", [0, 1, 2, 5])
def test_linspace_is_evenly_spaced(num, endpoint):
    gaps = max(num - 1 if endpoint else num, 1)
    for start, stop, dtype in ((0, 1, None), (3.0, -1.5, np.float32), (0, 1 + 2j, None)):
        expected = [start + (stop - start) * i / gaps for i in range(num)]
        result_dtype = dtype or (np.complex128 if isinstance(stop, complex) else np.float64)
        result = xp.linspace(start, stop, num, dtype=dtype, endpoint=endpoint, device="cpu")
        check(result, np.array(expected, result_dtype), result_dtype, 1e-6, 1e-15)


def test_linspace_of_integers_rounds_down():
    check(xp.linspace(0, 10, 5, dtype=np.int32, device="cpu"), [0, 2, 5, 7, 10], np.int32)
    with pytest.raises(ValueError, match="non-negative"):
        xp.linspace(0, 1, -1)


# -- from arrays ----------------------------------------------------------------------------------


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("lengths", [(3,), (2, 3), (2, 3, 4), (0, 2)], ids=str)
def test_meshgrid_copies_coordinates(lengths, indexing):
    vectors = [np.arange(n, dtype=np.int16) + 10 * i for i, n in enumerate(lengths)]
    arrays = [on_cpu(vector) for vector in vectors]
    grids = xp.meshgrid(*arrays, indexing=indexing)
    assert type(grids) is tuple
    axes = list(range(len(lengths)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = [1, 0]
    shape = [lengths[axis] for axis in axes]
    for i, grid in enumerate(grids):
        along = [1] * len(axes)
        along[axes.index(i)] = -1
        check(grid, np.broadcast_to(vectors[i].reshape(along), shape), np.int16)
        grid[...] = 99
    for vector, x in zip(vectors, arrays, strict=True):
        check(x, vector)


def test_meshgrid_of_nothing_and_of_bad_indexing():
    assert xp.meshgrid() == ()
    with pytest.raises(ValueError, match="indexing"):
        xp.meshgrid(on_cpu([1]), indexing="yx")
    with pytest.raises(TypeError, match="Array"):
        xp.meshgrid([1, 2])


@pytest.mark.parametrize("k", [-5, -1, 0, 1, 5])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.complex64, bfloat16], ids=str)
def test_triangles_keep_one_side_of_a_diagonal(dtype, k):
    x = np.ones((2, 3, 4), dtype)
    rows, columns = np.mgrid[:3, :4]
    lower, upper = columns - rows <= k, columns - rows >= k
    check(xp.tril(on_cpu(x), k=k), np.broadcast_to(lower, x.shape).astype(dtype))
    check(xp.triu(on_cpu(x), k=k), np.broadcast_to(upper, x.shape).astype(dtype))


def test_triangles_are_copies_of_matrices():
    x = on_cpu(np.ones((2, 2)))
    for function in (xp.tril, xp.triu):
        function(x, k=0)[0, 0] = 9.0
        with pytest.raises(ValueError, match=r"\(3,\)"):
            function(on_cpu(np.ones(3)))
        with pytest.raises(TypeError, match="quantized"):
            function(zeros_q8_0((2, 32)))
    check(x, np.ones((2, 2)))
