"""Each library alone, and all of them by turns, in one process."""

import itertools
import random
from pathlib import Path

import gguf
import numpy as np
import pytest

import ggarray as xp
from conformance.standard.references import numbers
from conformance.vendors.products import (
    DTYPES,
    GEMM,
    PROGRAMS,
    ROUTINES,
    check,
    compare,
    computed,
)
from ggarray._runtime.plugins import backend_devices

QUANTIZED = {
    "q4_0": gguf.GGMLQuantizationType.Q4_0,
    "q4_1": gguf.GGMLQuantizationType.Q4_1,
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
}


def test_what_is_found_out(library, device):
    description = backend_devices()[device].description
    assert library.title in description
    assert ("ILP64" in description) == library.ilp64
    assert device.removeprefix("blas:") in description


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_products(device, program, dtype):
    for n_threads in (1, 2):
        check(program, dtype, device, n_threads)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("program", ROUTINES, ids=str)
def test_the_library_takes_what_it_is_good_at(device, program, dtype):
    with xp.options(fallback="error"):
        check(program, dtype, device, 2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(40, 50), (1, 300), (300, 1), (150, 150)])
@pytest.mark.parametrize("transposed", [False, True])
def test_what_is_not_finite_stays_in_its_places(device, m, n, dtype, transposed):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-2, 3, shape).astype(dtype) for shape in ((m, 33), (33, n)))
    a[0, 3], a[-1, 4] = np.nan, np.inf
    b[5, 0], b[6, -1], b[7, 0] = np.nan, -np.inf, np.inf
    with np.errstate(invalid="ignore"):
        expected = (a[:, :, None] * b[None]).sum(1)  # of whole numbers: exact
    x, y = (
        xp.asarray(np.asarray(v, order="F" if transposed else "C"), device=device) for v in (a, b)
    )
    found = np.asarray(x @ y)
    finite = np.isfinite(expected)
    assert not finite.all()
    np.testing.assert_array_equal(np.isfinite(found), finite)
    np.testing.assert_array_equal(found[finite], expected[finite])
    if np.isrealobj(a):
        np.testing.assert_array_equal(found, expected)


# Few rows are left to our kernels, which round x to 8 bits; of those, this is ggml's limit.
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [40, 200])
def test_factors_that_underflow_with_an_operand_alone(device, dtype, n):
    small = 1e-20 if np.finfo(dtype).bits == 32 else 1e-200
    for left, right in ((small, 1 / small), (1 / small, small)):
        a, b = np.full((n, n), left, dtype), np.full((n, n), right, dtype)
        for factor in (small**1.5, small**-1.5):
            product = (xp.asarray(a, device=device) @ xp.asarray(b, device=device)) * factor
            np.testing.assert_allclose(np.asarray(product), n * factor, rtol=1e-5)


@pytest.mark.parametrize(("rows", "limit"), [(1, 5e-4), (64, 1e-11)])
@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_weights(device, name, rows, limit):
    w, x = numbers(np.dtype("f"), (300, 512), 0), numbers(np.dtype("f"), (rows, 512), 1)
    weights = xp.quantize(xp.asarray(w, device=device), getattr(xp, name))
    stored = np.asarray(xp.quantized_bytes(weights)).reshape(300, -1)
    decoded = gguf.dequantize(stored, QUANTIZED[name]).astype("d")
    assert np.mean((decoded - w) ** 2) < 0.02 * np.mean(w**2)
    x_there = xp.asarray(x, device=device)
    for product, expected in (
        (x_there @ weights.mT, x @ decoded.T),
        (weights @ x_there.mT, decoded @ x.T),
    ):
        assert product.device == device
        off = np.asarray(product) - expected
        assert np.mean(off**2) <= limit * np.mean(expected**2)


def test_devices_by_turns(devices):
    turns = [(each, *case) for each in devices for case in itertools.product(ROUTINES, DTYPES)]
    random.Random(4).shuffle(turns)
    for device, program, dtype in turns:
        check(program, dtype, device, n_threads=2)


def test_products_of_all_devices_in_one_evaluation(devices):
    waiting = {device: computed(GEMM, "float64", device) for device in devices}
    assert all(map(xp.is_pending, waiting.values()))
    xp.evaluate(*waiting.values())
    for device, product in waiting.items():
        assert product.device == device
        compare(product, GEMM, "float64")


def test_a_chain_over_all_devices(devices):
    step = np.roll(np.eye(40), 1, axis=0)
    power = xp.asarray(np.eye(40))
    for device in devices:
        power = power.to_device(device) @ xp.asarray(step, device=device)
    np.testing.assert_array_equal(np.asarray(power), np.roll(np.eye(40), len(devices), axis=0))


def test_switching_the_default_device(devices):
    before = xp.get_default_device()
    a = np.arange(90.0 * 90).reshape(90, 90) % 11
    expected = (a[:, :, None] * a[None]).sum(1)
    try:
        for device in [*devices, "cpu", *reversed(devices)]:
            xp.set_default_device(device)
            x = xp.asarray(a)
            assert x.device == device == xp.get_default_device()
            np.testing.assert_array_equal(np.asarray(x @ x), expected)
    finally:
        xp.set_default_device(before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_mkl_by_its_name(program, dtype):
    check(program, dtype, "blas:mkl", n_threads=2)


def test_six_and_more_are_in_this_process(paths, devices):
    lines = Path("/proc/self/maps").read_text().splitlines()
    mapped = {Path(line.split(maxsplit=5)[5]) for line in lines if line.count("/")}
    assert {path.resolve() for path in paths.values()} <= mapped
    if len(paths) < 6:
        pytest.skip(f"{len(paths)} are, as the others could not be downloaded")


def test_mkl_by_its_name_is_the_one_of_the_package(names):
    description = backend_devices()[xp.Device("blas:mkl")].description
    assert names["mkl"].removeprefix("blas:") in description
