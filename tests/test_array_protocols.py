"""Protocols of an Array: copying, pickling, NumPy's, devices, and how it shows."""

import copy
import gc
import pickle

import ml_dtypes
import numpy as np
import pytest
from scripts import run_script
from values import check, numbers, on_cpu, pending, zeros_q8_0

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
VALUE = numbers((3, 4), np.float64)
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


MAKERS = pytest.mark.parametrize("make", [on_cpu, pending], ids=["plain", "pending"])


def waits(x):
    """Whether a product of `x` waits, as it must where nobody else can write its memory."""
    return xp.is_pending(x @ x.T)


# -- the object ---------------------------------------------------------------------------------


def test_arrays_are_not_hashable_nor_made_by_the_class():
    with pytest.raises(TypeError, match="unhashable"):
        hash(on_cpu(1))
    with pytest.raises(TypeError, match="asarray"):
        xp.Array()
    with pytest.raises(AttributeError):
        on_cpu(1).anything = 1


@MAKERS
def test_repr_shows_values_dtype_and_device(make):
    text = repr(make(np.array([[1.5, 2.0]], np.float32)))
    assert text == "Array([[1.5, 2. ]], dtype=float32, device='cpu')"


def test_repr_of_other_kinds():
    assert repr(on_cpu(3, np.int8)) == "Array(3, dtype=int8, device='cpu')"
    assert repr(on_cpu([True])) == "Array([ True], dtype=bool, device='cpu')"
    assert repr(zeros_q8_0((2, 32))) == "Array(shape=(2, 32), dtype=q8_0, device='cpu')"
    assert "bfloat16" in repr(on_cpu([1.0], bfloat16))
    assert "..." in repr(xp.zeros(10_000))


@pytest.mark.parametrize("version", ["2021.12", "2022.12", "2023.12", "2024.12", "2025.12", None])
def test_versions_of_the_namespace(version):
    assert on_cpu(1).__array_namespace__(api_version=version) is xp


def test_an_unknown_version_raises():
    with pytest.raises(ValueError, match=r"'2020.06'.*2025.12"):
        on_cpu(1).__array_namespace__(api_version="2020.06")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("dtype", [np.float64, np.int8, bfloat16], ids=str)
@MAKERS
def test_copies_are_independent(make, dtype, copied):
    value = numbers((3, 4), dtype)
    x = make(value)
    y = copied(x)
    y[0] = 0
    check(x, value)
    x[1] = 1
    check(y[1], value[1])
    assert waits(y)


def test_copies_of_quantized_arrays():
    x = zeros_q8_0((2, 32))
    y = copy.deepcopy([x, x])[0]
    assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
    np.testing.assert_array_equal(xp.quantized_bytes(y), xp.quantized_bytes(x))


# -- pickle -------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float64, np.complex64, bfloat16], ids=str)
def test_pickle(dtype, protocol, device):
    value = numbers((3, 4), dtype)
    x = xp.asarray(value, device=device)
    y = pickle.loads(pickle.dumps(x, protocol))
    check(y, value, device=device)
    y[0] = 0
    check(x, value, device=device)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pickle_of_pending_arrays_and_views(protocol):
    for x, expected in ((pending(VALUE), VALUE), (on_cpu(VALUE).T[::-1], VALUE.T[::-1])):
        y = pickle.loads(pickle.dumps(x, protocol))
        check(y, expected)
        assert waits(y)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pickle_of_quantized_arrays(protocol):
    x = xp.quantize(on_cpu(numbers((2, 64), np.float32)), xp.q8_0)
    y = pickle.loads(pickle.dumps(x, protocol))
    assert (y.shape, y.dtype, y.device) == ((2, 64), xp.q8_0, "cpu")
    assert y.dtype is xp.q8_0
    np.testing.assert_array_equal(xp.quantized_bytes(y), xp.quantized_bytes(x))


@MAKERS
def test_pickle_out_of_band_copies_nothing_on_the_way_out(make):
    x = make(VALUE)
    buffers = []
    text = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert sum(buffer.raw().nbytes for buffer in buffers) == VALUE.nbytes
    assert np.shares_memory(np.frombuffer(buffers[0]), np.asarray(x))
    y = pickle.loads(text, buffers=buffers)
    np.testing.assert_array_equal(np.asarray(y), VALUE)


def test_pickle_out_of_band_from_memory_of_others_is_right_when_that_is_written():
    buffers = []
    text = pickle.dumps(on_cpu(np.eye(3)), 5, buffer_callback=buffers.append)
    memory = [bytearray(buffer.raw()) for buffer in buffers]
    y = pickle.loads(text, buffers=memory)
    before = np.asarray(y).copy()
    product = y @ y
    memory[0][:8] = np.array([5.0]).tobytes()
    np.testing.assert_array_equal(np.asarray(product), before @ before)


def test_pickle_out_of_band_from_constant_memory():
    buffers = []
    text = pickle.dumps(on_cpu(VALUE), 5, buffer_callback=buffers.append)
    y = pickle.loads(text, buffers=[bytes(buffer.raw()) for buffer in buffers])
    np.testing.assert_array_equal(np.asarray(y), VALUE)
    assert waits(y)


# -- NumPy --------------------------------------------------------------------------------------


@MAKERS
def test_asarray_shares_memory_both_ways(make):
    x = make(VALUE)
    given = np.asarray(x)
    assert type(given) is np.ndarray
    assert np.shares_memory(given, np.asarray(x))
    given[0, 0] = 5.0
    assert float(x[0, 0]) == 5.0
    x[1, 1] = 6.0
    assert given[1, 1] == 6.0


def test_products_wait_again_when_what_was_given_out_is_gone():
    x = on_cpu(VALUE)
    given = np.asarray(x)
    row = given[0]
    del given
    assert not waits(x)
    del row
    gc.collect()
    assert waits(x)


def test_giving_memory_out_computes_what_waits_to_read_it():
    x = on_cpu(VALUE)
    product = x @ x.T
    np.asarray(x)[...] = 0.0
    check(product, VALUE @ VALUE.T, rtol=1e-12, atol=1e-12)


@MAKERS
def test_array_with_arguments(make):
    x = make(VALUE)
    copied = np.array(x, copy=True)
    copied[...] = 0.0
    check(x, VALUE)
    assert np.shares_memory(np.array(x, copy=False), np.asarray(x))
    single = np.asarray(x, dtype=np.float32)
    np.testing.assert_array_equal(single, VALUE.astype(np.float32))
    assert not np.shares_memory(single, np.asarray(x))
    with pytest.raises(ValueError, match="needs a copy"):
        np.array(x, dtype=np.float32, copy=False)
    assert np.shares_memory(np.array(x, dtype=np.float64, copy=False), np.asarray(x))


def test_bfloat16_and_quantized_arrays_in_numpy():
    assert np.asarray(on_cpu([1.5], bfloat16)).dtype == bfloat16
    assert np.asarray(on_cpu([1.5], bfloat16), dtype=np.float64)[0] == 1.5
    with pytest.raises(TypeError, match="dequantize"):
        np.asarray(zeros_q8_0((1, 32)))


@MAKERS
@pytest.mark.parametrize(
    ("ufunc", "count"),
    [(np.add, 2), (np.subtract, 2), (np.sqrt, 1), (np.divmod, 2), (np.modf, 1), (np.isnan, 1)],
)
def test_ufuncs_give_arrays(make, ufunc, count):
    value = np.abs(VALUE) + 1
    results = ufunc(*[make(value)] * count)
    expected = ufunc(*[value] * count)
    if not isinstance(results, tuple):
        results, expected = (results,), (expected,)
    for result, wanted in zip(results, expected, strict=True):
        check(result, wanted)


@MAKERS
def test_ufuncs_mix_operands_and_take_keywords(make):
    x = make(VALUE)
    check(np.add(x, VALUE), VALUE + VALUE)
    check(np.add(VALUE[0], x), VALUE[0] + VALUE)
    check(np.add(x, 1, dtype=np.float32), np.add(VALUE, 1, dtype=np.float32))
    check(np.add.reduce(x, axis=0), VALUE.sum(axis=0))
    check(np.add.accumulate(x, axis=1), VALUE.cumsum(axis=1))
    check(np.multiply.outer(x, x), np.multiply.outer(VALUE, VALUE))
    blas = xp.asarray(VALUE, device="blas")
    assert np.add(x, blas).device == np.add(blas, x).device == "blas"


def test_ufuncs_write_into_arrays_and_ndarrays():
    x = on_cpu(VALUE)
    for out in (on_cpu(VALUE), VALUE.copy()):
        assert np.add(x, 1, out=out) is out
        np.testing.assert_array_equal(np.asarray(out), VALUE + 1)
    given = VALUE.copy()
    given += x
    np.testing.assert_array_equal(given, 2 * VALUE)


def test_ufuncs_take_arrays_as_where():
    result = np.add.reduce(on_cpu(VALUE), axis=None, where=on_cpu(VALUE > 0))
    np.testing.assert_allclose(float(result), VALUE[VALUE > 0].sum())


def test_ufunc_at_changes_no_product_recorded_before():
    x = on_cpu(np.eye(3))
    product = x @ x
    np.add.at(x, (0, 0), 5.0)
    check(product, np.eye(3))
    check(x, np.diag([6.0, 1.0, 1.0]))


@pytest.mark.parametrize("name", ["cpu", "blas", "counting"])
def test_matmul_with_ndarrays_is_recorded(name):
    x = xp.asarray(VALUE, device=name)
    given = VALUE.T.copy()
    products = [x @ given, np.matmul(x, given), given.T @ x.T, np.matmul(given.T, x.T)]
    given[...] = 0.0  # each has its own copy
    for product in products:
        check(product, VALUE @ VALUE.T, rtol=1e-12, atol=1e-12, device=name)


def test_priority_is_above_that_of_ndarray_subclasses():
    class Sub(np.ndarray):
        __array_priority__ = 10.0

    sub = VALUE.view(Sub)
    assert type(sub + on_cpu(VALUE)) is xp.Array
    assert type(on_cpu(VALUE) + sub) is xp.Array


# -- devices ------------------------------------------------------------------------------------


@MAKERS
def test_to_device(make):
    x = make(VALUE)
    assert x.to_device("cpu") is x
    y = x.to_device("blas")
    check(y, VALUE, device="blas")
    y[0] = 0.0
    check(x, VALUE)
    check(y.to_device(x.device)[1:], VALUE[1:])


def test_to_device_of_quantized_arrays_shares_their_blocks():
    x = zeros_q8_0((2, 32))
    y = x.to_device("blas")
    assert (y.device, y.dtype, y.shape) == ("blas", xp.q8_0, (2, 32))
    assert np.shares_memory(x._source.data, y._source.data)


def test_to_device_raises():
    with pytest.raises(ValueError, match=r"'gpu'.*cpu"):
        on_cpu(1).to_device("gpu")
    with pytest.raises(ValueError, match="stream"):
        on_cpu(1).to_device("blas", stream=1)
    with pytest.raises(TypeError, match="device"):
        on_cpu(1).to_device(1)


def test_quantized_arrays_do_not_share_buffers_that_may_change():
    w = xp.quantize(xp.ones((2, 32)), xp.q8_0)
    buffers = []
    data = pickle.dumps(w, protocol=5, buffer_callback=buffers.append)
    mutable = [bytearray(buffer.raw()) for buffer in buffers]
    again = pickle.loads(data, buffers=mutable)
    product = again @ xp.ones(32, dtype=xp.float32)
    mutable[0][:] = bytes(len(mutable[0]))
    np.testing.assert_allclose(np.asarray(product), [32.0, 32.0], rtol=1e-3)


def test_first_product_of_a_process_may_be_of_bfloat16():
    script = (
        "import ggarray as xp\n"
        "x = xp.ones((2, 2), dtype=xp.bfloat16, device='cpu')\n"
        "print(float((x @ x)[0, 1]))"
    )
    assert run_script(script) == "2.0\n"
