"""Creation functions against Python's ranges and fractions, and NumPy's layouts."""

import array
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import strategies as st

import ggarray as xp
from conformance.standard.references import (
    COMPLEXES,
    DEVICE,
    DTYPES,
    EXTENDED,
    INTEGERS,
    REALS,
    arrays,
    check,
    elements,
    eps_of,
    given,
    kind_of,
    rounded,
    shapes,
    to_array,
    values,
)

COVERS = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like"]
COVERS += ["linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like"]
COVERS += ["Array.__dlpack__", "Array.__dlpack_device__"]

DEFAULTS = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}
FLOATING = [d for d in EXTENDED if kind_of(d) in "fc"]


# -- arrays of a shape --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(shape=shapes(), data=st.data())
def test_arrays_of_a_shape(dtype, shape, data):
    fill = data.draw(elements(dtype))
    filled = np.full(shape, rounded(fill, dtype) if kind_of(dtype) in "fc" else fill, dtype)
    kwargs = {"dtype": dtype, "device": DEVICE}
    check(xp.zeros(shape, **kwargs), np.zeros(shape, dtype))
    check(xp.ones(shape, **kwargs), np.ones(shape, dtype))
    check(xp.full(shape, fill, **kwargs), filled)
    empty = xp.empty(shape, **kwargs)
    assert (empty.shape, empty.dtype, empty.device) == (shape, dtype, DEVICE)
    x = xp.zeros(shape, **kwargs)
    check(xp.zeros_like(x), np.zeros(shape, dtype))
    check(xp.ones_like(x), np.ones(shape, dtype))
    check(xp.full_like(x, fill), filled)
    like = xp.empty_like(x)
    assert (like.shape, like.dtype, like.device) == (shape, dtype, DEVICE)


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data())
def test_arrays_like_another_with_another_dtype(dtype, data):
    x, v = data.draw(arrays(np.float32))
    check(xp.zeros_like(x, dtype=dtype), np.zeros(v.shape, dtype))
    check(xp.ones_like(x, dtype=dtype), np.ones(v.shape, dtype))
    check(xp.full_like(x, 1, dtype=dtype), np.ones(v.shape, dtype))
    assert xp.empty_like(x, dtype=dtype).dtype == dtype
    moved = xp.zeros_like(x, device="blas")
    check(moved, np.zeros_like(v), device="blas")


@given(shape=shapes(), data=st.data())
def test_default_dtypes(shape, data):
    for make in (xp.empty, xp.zeros, xp.ones):
        assert make(shape).dtype == np.float64
        assert make(shape).device == xp.get_default_device()
    for kind, dtype in DEFAULTS.items():
        assert xp.full(shape, kind(1)).dtype == dtype
        assert xp.asarray(kind(1)).dtype == dtype
        assert xp.asarray([[kind(1)], [0]]).dtype == (dtype if kind is not bool else np.int64)
    assert xp.eye(2).dtype == xp.linspace(0, 1, 2).dtype == np.float64
    assert xp.linspace(0, 1j, 2).dtype == xp.linspace(1j, 0, 2).dtype == np.complex128
    assert xp.arange(3).dtype == np.int64
    assert xp.arange(3.0).dtype == xp.arange(0, 1, 0.5).dtype == np.float64


@pytest.mark.parametrize("make", [xp.empty, xp.zeros, xp.ones, lambda n, **kw: xp.full(n, 1, **kw)])
def test_bad_shapes_and_dtypes_raise(make):
    for shape in (-1, (2, -3)):
        with pytest.raises(ValueError, match="negative"):
            make(shape)
    for bad in (1.5, (2, 1.5), "2"):
        with pytest.raises(TypeError):
            make(bad)
    with pytest.raises(TypeError):
        make(2, dtype="no dtype")
    with pytest.raises(ValueError, match="device"):
        make(2, device="no device")


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_numbers_out_of_range_overflow(dtype):
    ends = np.iinfo(dtype)
    for number in (int(ends.min) - 1, int(ends.max) + 1, 2**70):
        for make in (
            lambda n: xp.full(2, n, dtype=dtype),
            lambda n: xp.full_like(xp.ones(2, dtype=dtype), n),
            lambda n: xp.asarray(n, dtype=dtype),
            lambda n: xp.asarray([0, n], dtype=dtype),
        ):
            with pytest.raises(OverflowError):
                make(number)


# -- ranges -------------------------------------------------------------------------------------

STEPS = st.integers(-7, 7).filter(bool)


@pytest.mark.parametrize("dtype", [None, *(d for d in EXTENDED if kind_of(d) in "iuf")], ids=str)
@given(start=st.integers(0, 60), stop=st.integers(0, 60), step=STEPS)
def test_arange_of_integers_is_range(dtype, start, stop, step):
    for arguments in ((stop,), (start, stop), (start, stop, step)):
        wanted = np.array([*range(*arguments)], np.int64).astype(dtype or np.int64)
        check(xp.arange(*arguments, dtype=dtype, device=DEVICE), wanted)
    wanted = np.array([*range(0, stop, abs(step))]).astype(dtype or np.int64)
    check(xp.arange(0, step=abs(step), stop=stop, dtype=dtype, device=DEVICE), wanted)


@pytest.mark.parametrize("dtype", [None, *REALS], ids=str)
@given(
    start=st.integers(-64, 64), stop=st.integers(-64, 64), step=STEPS, scale=st.sampled_from([4, 8])
)
def test_arange_of_floats(dtype, start, stop, step, scale):
    length = max(0, math.ceil(Fraction(stop - start, step)))
    wanted = [(start + at * step) / scale for at in range(length)]
    found = xp.arange(start / scale, stop / scale, step / scale, dtype=dtype, device=DEVICE)
    check(found, np.array(wanted, dtype or np.float64), zeros=False)


def test_arange_without_a_step_raises():
    with pytest.raises(ZeroDivisionError):
        xp.arange(0, 5, 0)


@pytest.mark.parametrize("dtype", [None, *FLOATING], ids=str)
@given(
    start=st.integers(-64, 64),
    stop=st.integers(-64, 64),
    num=st.integers(0, 20),
    endpoint=st.booleans(),
)
def test_linspace_is_evenly_spaced(dtype, start, stop, num, endpoint):
    parts = max(num - endpoint, 1)
    wanted = [float(start + Fraction(stop - start, parts) * at) for at in range(num)]
    target = np.dtype(dtype or np.float64)
    tolerances = {"rtol": 4 * eps_of(target), "atol": 256 * eps_of(target), "zeros": False}
    found = xp.linspace(start, stop, num, dtype=dtype, endpoint=endpoint, device=DEVICE)
    check(found, np.array(wanted).astype(target), **tolerances)
    if num:
        assert complex(found[0]) == start
    if num > 1 and endpoint:
        assert complex(found[-1]) == stop


@given(a=st.integers(-9, 9), b=st.integers(-9, 9), num=st.integers(2, 9))
def test_linspace_of_complex_numbers(a, b, num):
    start, stop = complex(a, b), complex(b, -a)
    wanted = [start + (stop - start) * at / (num - 1) for at in range(num)]
    for dtype in (None, *COMPLEXES):
        target = np.dtype(dtype or np.complex128)
        found = xp.linspace(start, stop, num, dtype=dtype, device=DEVICE)
        check(found, np.array(wanted, target), rtol=1e-6, atol=1e-5, zeros=False)
        assert complex(found[-1]) == stop


def test_linspace_of_a_negative_number_raises():
    with pytest.raises(ValueError, match="negative"):
        xp.linspace(0, 1, -1)


# -- matrices -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(rows=st.integers(0, 5), columns=st.none() | st.integers(0, 5), k=st.integers(-7, 7))
def test_eye(dtype, rows, columns, k):
    wanted = np.array(
        [[i + k == j for j in range(rows if columns is None else columns)] for i in range(rows)]
    ).reshape(rows, rows if columns is None else columns)
    check(xp.eye(rows, columns, k=k, dtype=dtype, device=DEVICE), wanted.astype(dtype))


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data(), k=st.integers(-6, 6))
def test_triangles(dtype, data, k):
    x, v = data.draw(arrays(dtype, shapes(min_dims=2)))
    i, j = np.indices(v.shape[-2:])
    check(xp.tril(x, k=k), np.where(j - i <= k, v, np.zeros((), dtype)))
    check(xp.triu(x, k=k), np.where(j - i >= k, v, np.zeros((), dtype)))
    check(x, v)


def test_triangles_are_of_matrices():
    for function in (xp.tril, xp.triu):
        for shape in ((), (3,)):
            with pytest.raises(ValueError, match="axes"):
                function(xp.ones(shape))


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data())
def test_meshgrid(dtype, data):
    vectors = data.draw(st.lists(arrays(dtype, shapes(max_dims=1, min_dims=1)), max_size=4))
    n = len(vectors)
    for indexing in ("ij", "xy"):
        found = xp.meshgrid(*(x for x, _ in vectors), indexing=indexing)
        assert type(found) is tuple
        assert len(found) == n
        order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else [*range(n)]
        shape = tuple(len(vectors[each][1]) for each in order)
        for at, (result, (_, v)) in enumerate(zip(found, vectors, strict=True)):
            place = [1] * n
            place[order.index(at)] = len(v)
            check(result, np.broadcast_to(v.reshape(place), shape))
    if vectors:
        check(xp.meshgrid(vectors[0][0])[0], vectors[0][1])


def test_meshgrid_of_another_indexing_raises():
    with pytest.raises(ValueError, match="indexing"):
        xp.meshgrid(xp.ones(2), indexing="yx")


# -- arrays of objects --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data())
def test_asarray_of_nested_sequences(dtype, data):
    v = data.draw(values(dtype, finite=True))
    listed = v.tolist()
    found = xp.asarray(listed, dtype=dtype, device=DEVICE)
    check(xp.reshape(found, v.shape), v)  # where an axis is of length 0, lists end there
    flat = v.ravel().tolist()
    if flat and all(-(2**63) <= each < 2**63 for each in flat if type(each) is int):
        assert xp.asarray(listed).dtype == DEFAULTS[type(flat[0])]


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data())
def test_asarray_of_arrays_and_copies(dtype, data):
    v = data.draw(values(dtype, shapes(min_dims=1, min_side=1), finite=True))
    x = to_array(v)
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=False) is x
    copied = xp.asarray(x, copy=True)
    check(copied, v)
    first = (0,) * v.ndim
    copied[first] = v[first] == 0
    check(x, v)
    foreign = v.copy()
    shared = xp.asarray(foreign, copy=False, device=DEVICE)
    apart = xp.asarray(foreign, copy=True, device=DEVICE)
    foreign[first] = v[first] == 0
    check(shared, foreign)
    check(apart, v)


def test_asarray_of_what_cannot_be_had_without_a_copy_raises():
    x = xp.ones(3, device=DEVICE)
    for obj, kwargs in (
        ([1.0, 2.0], {}),
        (1.0, {}),
        (x, {"dtype": xp.float32}),
        (np.ones(3), {"dtype": xp.float32}),
    ):
        with pytest.raises(ValueError, match="copy"):
            xp.asarray(obj, copy=False, **kwargs)


def test_asarray_of_the_buffer_protocol():
    memory = array.array("d", [1.0, 2.0])
    shared = xp.asarray(memory, copy=False, device=DEVICE)
    memory[0] = 5.0
    check(shared, [5.0, 2.0])
    check(xp.asarray(memoryview(b"\x01\x02"), device=DEVICE), np.array([1, 2], np.uint8))
    check(xp.asarray(bytearray(b"\x01\x02"), device=DEVICE), np.array([1, 2], np.uint8))


def test_asarray_of_ragged_sequences_raises():
    with pytest.raises(ValueError, match=r"inhomogeneous|sequence"):
        xp.asarray([[1.0], [1.0, 2.0]])


# -- exchange -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@given(data=st.data())
def test_from_dlpack_of_arrays(dtype, data):
    x, v = data.draw(arrays(dtype))
    check(xp.from_dlpack(x), v)
    check(xp.from_dlpack(x, copy=True), v)
    moved = xp.from_dlpack(x, device="blas", copy=data.draw(st.sampled_from([None, True])))
    check(moved, v, device="blas")
    # read-only memory leaves in a versioned capsule
    np.testing.assert_array_equal(np.from_dlpack(x), v)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("copy", [None, False, True])
def test_from_dlpack_shares_or_copies(dtype, copy):
    foreign = np.ones(3, dtype)
    x = xp.from_dlpack(foreign, device=DEVICE, copy=copy)
    y = xp.from_dlpack(x, copy=copy)
    foreign[1] = 0
    wanted = np.ones(3, dtype) if copy else foreign
    check(x, wanted)
    check(y, wanted)


@pytest.mark.parametrize("copy", [None, False, True])
@pytest.mark.parametrize("target", [None, *xp.devices()], ids=str)
@pytest.mark.parametrize("source", xp.devices(), ids=str)
def test_from_dlpack_between_devices(source, target, copy):
    for dtype in DTYPES:
        x = to_array(np.ones(3, dtype), device=source)
        found = xp.from_dlpack(x, device=target, copy=copy)
        check(found, np.ones(3, dtype), device=source if target is None else target)


@pytest.mark.parametrize("max_version", ["absent", None, (0, 5), (1, 0), (1, 1), (2, 0)], ids=str)
@pytest.mark.parametrize("dl_device", ["absent", None, (1, 0)], ids=str)
@pytest.mark.parametrize("copy", ["absent", None, False, True], ids=str)
def test_dlpack_takes_every_combination(max_version, dl_device, copy):
    x = xp.ones(3, device=DEVICE)
    keywords = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    capsule = x.__dlpack__(**{name: each for name, each in keywords.items() if each != "absent"})
    assert type(capsule).__name__ == "PyCapsule"
    versioned = max_version not in ("absent", None) and max_version[0] >= 1
    assert ('"dltensor_versioned"' in repr(capsule)) is versioned


def test_dlpack_to_another_device_raises():
    x = xp.ones(3, device=DEVICE)
    kind, number = x.__dlpack_device__()
    assert (int(kind), number) == (1, 0)
    for copy in (None, False):
        with pytest.raises(BufferError):
            x.__dlpack__(dl_device=(2, 0), copy=copy)


def test_from_dlpack_of_what_does_not_speak_it_raises():
    with pytest.raises(TypeError):
        xp.from_dlpack([1.0])
