"""Arrays through DLPack, both ways."""

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, on_cpu, pending, zeros_q8_0

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
DLPACK = [np.bool_, np.int8, np.int64, np.uint16, np.float16, np.float32, np.complex128]
VALUE = numbers((3, 4), np.float64)


MAKERS = pytest.mark.parametrize("make", [on_cpu, pending], ids=["plain", "pending"])


@pytest.mark.parametrize("dtype", DLPACK)
def test_dlpack_to_numpy_shares_memory(dtype):
    value = numbers((3, 4), dtype)
    x = on_cpu(value)
    assert x.__dlpack_device__() == (1, 0)
    given = np.from_dlpack(x)
    np.testing.assert_array_equal(given, value)
    assert given.dtype == value.dtype
    assert np.shares_memory(given, np.asarray(x))
    x[0] = 1
    np.testing.assert_array_equal(given[0], np.ones(4, dtype))


@pytest.mark.parametrize("dtype", DLPACK)
def test_dlpack_from_numpy_shares_memory(dtype):
    given = numbers((3, 4), dtype)
    expected = given.copy()
    for copied in (None, False):
        x = xp.from_dlpack(given, device="cpu", copy=copied)
        assert x.device == "cpu"
        np.testing.assert_array_equal(np.asarray(x), expected)
        assert x.dtype == given.dtype
        assert np.shares_memory(np.asarray(x), given)
    independent = xp.from_dlpack(given, device="cpu", copy=True)
    given[0] = 1
    np.testing.assert_array_equal(np.asarray(x)[0], given[0])
    check(independent, expected)


@MAKERS
def test_dlpack_of_pending_arrays_and_views(make):
    np.testing.assert_array_equal(np.from_dlpack(make(VALUE)), VALUE)
    np.testing.assert_array_equal(np.from_dlpack(make(VALUE).T[1:]), VALUE.T[1:])


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (None, "dltensor"),
        ((0, 8), "dltensor"),
        ((1, 0), "dltensor_versioned"),
        ((1, 9), "dltensor_versioned"),
    ],
)
def test_dlpack_versions(version, name):
    capsule = on_cpu(VALUE).__dlpack__(max_version=version)
    assert f'"{name}"' in repr(capsule)


class Capsule:
    """An exporter of a capsule that a call gave."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("device_asked", [None, (1, 0)])
@pytest.mark.parametrize("copied", [None, False, True])
def test_dlpack_copies_as_asked(copied, device_asked):
    x = on_cpu(VALUE)
    capsule = x.__dlpack__(copy=copied, dl_device=device_asked, max_version=(1, 0))
    given = np.from_dlpack(Capsule(capsule))
    np.testing.assert_array_equal(given, VALUE)
    assert np.shares_memory(given, np.asarray(x)) == (not copied)


def test_dlpack_raises():
    for wrong in ((2, 0), (1, 1)):
        with pytest.raises(BufferError, match="CPU"):
            on_cpu(VALUE).__dlpack__(dl_device=wrong)
    for copied in (None, True):
        with pytest.raises(BufferError, match="bfloat16"):
            on_cpu([1.0], bfloat16).__dlpack__(copy=copied)
    with pytest.raises((BufferError, TypeError), match="dequantize"):
        zeros_q8_0((1, 32)).__dlpack__()
    with pytest.raises(TypeError, match="__dlpack__"):
        xp.from_dlpack([1.0])


def test_dlpack_of_read_only_memory():
    given = VALUE.copy()
    given.flags.writeable = False
    x = xp.from_dlpack(given)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1.0
    repeated = xp.broadcast_to(on_cpu(VALUE[0]), (3, 4))
    assert not np.from_dlpack(repeated).flags.writeable
    with pytest.raises(BufferError, match="readonly"):
        repeated.__dlpack__()
    writable = xp.from_dlpack(given, copy=True)
    writable[0] = 1.0
    np.testing.assert_array_equal(given, VALUE)


def test_dlpack_between_arrays():
    x = on_cpu(VALUE)
    same = xp.from_dlpack(x)
    same[0] = 1.0
    check(x[0], np.ones(4))
    copied = xp.from_dlpack(x, device="blas", copy=True)
    copied[0] = 2.0
    assert copied.device == "blas"
    check(x[0], np.ones(4))


def test_memory_given_out_through_dlpack_is_shared_until_it_dies():
    x = on_cpu(VALUE)
    given = np.from_dlpack(x)
    assert not xp.is_pending(x @ x.T)
    given[...] = 2.0
    check(x @ x.T, np.full((3, 3), 16.0))
    del given
    assert xp.is_pending(x @ x.T)


def test_products_of_memory_of_others_do_not_wait():
    given = VALUE.copy()
    x = xp.from_dlpack(given, device="cpu")
    product = x @ x.T
    assert not xp.is_pending(product)
    given[...] = 0.0
    check(product, VALUE @ VALUE.T, rtol=1e-12)
    independent = xp.from_dlpack(given, copy=True)
    assert xp.is_pending(independent @ independent.T)
