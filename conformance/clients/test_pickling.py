"""Arrays that leave the process: pickle, copy, multiprocessing, and joblib's own ways."""

import copy
import multiprocessing
import pickle

import joblib
import ml_dtypes
import numpy as np
import pytest

import ggarray as xp
from conformance.clients.comparing import arrive, assert_matches

_RNG = np.random.default_rng(6)
VALUE = _RNG.standard_normal((6, 32))
LARGE = _RNG.standard_normal((300, 600))  # joblib maps what is above a megabyte from a file


DTYPES = {
    "bool": np.bool_,
    "int8": np.int8,
    "int64": np.int64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "complex64": np.complex64,
}

# What leaves, made on a device, and its value.
ARRAYS = {
    "plain": (lambda device: xp.asarray(VALUE, device=device), VALUE),
    "pending": (lambda device: arrive(VALUE, device), VALUE),
    "view": (lambda device: xp.asarray(VALUE, device=device)[::-2, 1:], VALUE[::-2, 1:]),
    "view of a pending one": (lambda device: arrive(VALUE, device).T[3:, ::2], VALUE.T[3:, ::2]),
    "read-only": (
        lambda device: xp.broadcast_to(xp.asarray(VALUE[0], device=device), VALUE.shape),
        np.broadcast_to(VALUE[0], VALUE.shape),
    ),
    "empty": (lambda device: xp.zeros((0, 3), device=device), np.zeros((0, 3))),
    "of no axes": (lambda device: xp.asarray(1.5, device=device), np.array(1.5)),
}
for _name, _dtype in DTYPES.items():
    _value = VALUE.astype(_dtype)
    ARRAYS[_name] = (lambda device, value=_value: xp.asarray(value, device=device), _value)

WAYS = {
    **{
        f"protocol {each}": lambda x, each=each: pickle.loads(pickle.dumps(x, each))
        for each in range(2, 6)
    },
    "copy": copy.copy,
    "deepcopy": lambda x: copy.deepcopy([x])[0],
}


def gram(x):
    """Return the products of all rows, pending."""
    return x @ x.mT


def quantized(device):
    """Return a quantized array."""
    return xp.quantize(xp.asarray(VALUE, dtype=xp.float32, device=device), xp.q8_0)


def assert_same_blocks(result, expected):
    """Compare two quantized arrays."""
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    assert result.device == expected.device
    np.testing.assert_array_equal(xp.quantized_bytes(result), xp.quantized_bytes(expected))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_come_back(name, way, device):
    make, value = ARRAYS[name]
    x = make(device)
    result = WAYS[way](x)
    assert_matches(result, np.asarray(value), device, 0, 0)
    assert_matches(x, np.asarray(value), device, 0, 0)


@pytest.mark.parametrize("way", WAYS)
def test_what_comes_back_is_a_copy_that_can_be_written(way, device):
    x = xp.broadcast_to(arrive(VALUE[0], device), VALUE.shape)
    result = WAYS[way](x)
    result[0, 0] = 5.0
    assert_matches(result[0, 0], np.float64(5.0), device)
    assert_matches(x, np.broadcast_to(VALUE[0], VALUE.shape), device, 0, 0)


@pytest.mark.parametrize("way", WAYS)
def test_quantized_arrays_come_back(way, device):
    assert_same_blocks(WAYS[way](quantized(device)), quantized(device))


def test_arrays_that_are_one_stay_one(device):
    x = arrive(VALUE, device)
    first, second = pickle.loads(pickle.dumps((x, x)))
    assert first is second


# -- processes ----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["spawn", "fork"])
def pool(request):
    """A process started in each of the ways."""
    if request.param not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {request.param} on this platform")
    with multiprocessing.get_context(request.param).Pool(1) as pool:
        yield pool


# Arrays of two axes whose products are computed elsewhere, and how far these may be rounded.
ROUNDING = {
    "pending": 1e-12,
    "view": 1e-12,
    "read-only": 1e-12,
    "int64": 0.0,
    "complex64": 1e-5,
    "float32": 1e-5,
    "float16": 1e-2,
    "bfloat16": 5e-2,
}


# From Python 3.12 on a fork beside threads is told to be a danger; ours come through it.
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_products_in_another_process(pool, device):
    arrays = [ARRAYS[name][0](device) for name in ROUNDING]
    for name, result in zip(ROUNDING, pool.map(gram, arrays), strict=True):
        value = ARRAYS[name][1]
        wide = value.astype(np.complex128)
        assert (result.device, result.dtype) == (device, value.dtype)
        product = np.asarray(result).astype(np.complex128)
        np.testing.assert_allclose(product, wide @ wide.T, ROUNDING[name], ROUNDING[name])


def test_quantized_arrays_in_another_process(pool, device):
    (result,) = pool.map(copy.copy, [quantized(device)])
    assert_same_blocks(result, quantized(device))


# -- joblib -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def workers():
    """Two processes of joblib's."""
    with joblib.Parallel(n_jobs=2, backend="loky") as parallel:
        yield parallel


@pytest.mark.parametrize("value", [VALUE, LARGE], ids=["small", "mapped"])
def test_products_in_joblib_workers(workers, value, device):
    x = arrive(value, device)
    results = workers(joblib.delayed(gram)(each) for each in (x, x[:5, :], x.mT[:5, :]))
    expected = [each @ each.T for each in (value, value[:5], value.T[:5])]
    assert_matches(results, expected, device)


@pytest.mark.parametrize("compress", [0, 3])
@pytest.mark.parametrize("name", ARRAYS)
def test_joblib_files(name, compress, device, tmp_path):
    make, value = ARRAYS[name]
    joblib.dump({"x": make(device)}, tmp_path / "x.joblib", compress=compress)
    assert_matches(joblib.load(tmp_path / "x.joblib")["x"], np.asarray(value), device, 0, 0)


def test_joblib_files_of_quantized_arrays(device, tmp_path):
    joblib.dump(quantized(device), tmp_path / "w.joblib")
    assert_same_blocks(joblib.load(tmp_path / "w.joblib"), quantized(device))


def test_joblib_files_as_maps(device, tmp_path):
    joblib.dump(arrive(LARGE, device), tmp_path / "x.joblib")
    x = joblib.load(tmp_path / "x.joblib", mmap_mode="r")
    assert_matches(x, LARGE, device, 0, 0)
    assert_matches(gram(x), LARGE @ LARGE.T, device)
    with pytest.raises(ValueError, match="read-only"):
        x[0, 0] = 1.0


def test_hashes_tell_values_and_devices_apart(workers, device):
    x = arrive(VALUE, device)
    same = joblib.hash(x)
    assert joblib.hash(xp.asarray(VALUE, device=device)) == same
    assert workers([joblib.delayed(joblib.hash)(x)]) == [same]
    other = x.to_device("cpu" if device == "blas" else "blas")
    changed = copy.copy(x)
    changed[0, 0] += 1.0
    strangers = [other, changed, x[:5, :], xp.astype(x, xp.float32)]
    assert len({same, *map(joblib.hash, strangers)}) == 5


def test_memory_computes_once_for_equal_values(device, tmp_path):
    calls = []

    def product(x):
        calls.append(x)
        return gram(x)

    cached = joblib.Memory(tmp_path, verbose=0).cache(product)
    for _ in range(2):
        assert_matches(cached(arrive(VALUE, device)), VALUE @ VALUE.T, device)
    assert len(calls) == 1
    assert_matches(cached(arrive(2 * VALUE, device)), 4 * (VALUE @ VALUE.T), device)
    assert len(calls) == 2
