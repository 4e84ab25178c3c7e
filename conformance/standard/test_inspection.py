"""What the namespace tells about itself, what arrays tell about themselves, and devices."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

import ggarray as xp
from conformance.standard.references import (
    BOOL,
    COMPLEXES,
    DTYPES,
    EXTENDED,
    INTEGERS,
    NUMERIC,
    REALS,
    SIGNED,
    UNSIGNED,
    arrays,
    check,
    given,
    to_array,
)

COVERS = ["__array_namespace_info__", "Array.__array_namespace__", "Array.to_device"]
COVERS += [f"info.{name}" for name in ("capabilities", "default_device", "default_dtypes")]
COVERS += ["info.devices", "info.dtypes"]
COVERS += [f"Array.{name}" for name in ("device", "dtype", "mT", "ndim", "shape", "size", "T")]

INFO = xp.__array_namespace_info__()
KINDS = {
    "bool": BOOL,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGERS,
    "real floating": REALS,
    "complex floating": COMPLEXES,
    "numeric": NUMERIC,
}


def named(dtypes):
    return {dtype.name: dtype for dtype in dtypes}


def test_capabilities():
    found = INFO.capabilities()
    assert set(found) == {"boolean indexing", "data-dependent shapes", "max dimensions"}
    assert found["boolean indexing"] is found["data-dependent shapes"] is True
    limit = found["max dimensions"]
    assert type(limit) is int
    assert xp.ones((1,) * limit).ndim == limit
    with pytest.raises(ValueError, match="maximum"):
        xp.ones((1,) * (limit + 1))


def test_devices():
    devices = INFO.devices()
    assert type(devices) is tuple
    assert INFO.default_device() in devices
    assert len({hash(device) for device in devices}) == len(devices) == len(set(devices))


@pytest.mark.parametrize("device", [None, *xp.devices()], ids=str)
def test_dtypes_of_devices(device):
    defaults = INFO.default_dtypes(device=device)
    assert set(defaults) == {"real floating", "complex floating", "integral", "indexing"}
    assert xp.ones(1, device=device).dtype == defaults["real floating"]
    assert xp.asarray(1j, device=device).dtype == defaults["complex floating"]
    assert xp.asarray(1, device=device).dtype == defaults["integral"]
    assert xp.argmax(xp.ones(2, device=device)).dtype == defaults["indexing"]
    assert INFO.dtypes(device=device) == named(DTYPES)  # and no extension
    for kind, dtypes in KINDS.items():
        assert INFO.dtypes(device=device, kind=kind) == named(dtypes)
        assert INFO.dtypes(device=device, kind=(kind, "bool")) == named((*BOOL, *dtypes))
    assert INFO.dtypes(device=device, kind=()) == {}
    for name, dtype in INFO.dtypes(device=device).items():
        assert xp.empty(1, dtype=dtype, device=device).dtype == getattr(xp, name)


def test_what_is_unknown_raises():
    with pytest.raises(ValueError, match="kind"):
        INFO.dtypes(kind="float")
    with pytest.raises(ValueError, match="device"):
        INFO.dtypes(device="no device")
    with pytest.raises(ValueError, match="device"):
        INFO.default_dtypes(device="no device")


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data())
def test_attributes_of_arrays(dtype, data):
    x, v = data.draw(arrays(dtype))
    assert x.shape == v.shape
    assert type(x.shape) is tuple
    assert (x.ndim, x.size, x.dtype) == (v.ndim, math.prod(v.shape), dtype)
    assert type(x.size) is int
    assert x.device in INFO.devices()
    if v.ndim == 2:
        check(x.T, v.T)
    else:
        with pytest.raises(ValueError, match="two"):
            _ = x.T
    if v.ndim >= 2:
        check(x.mT, v.swapaxes(-1, -2))
        check(xp.matrix_transpose(x), v.swapaxes(-1, -2))
    else:
        with pytest.raises(ValueError, match="two"):
            _ = x.mT


@pytest.mark.parametrize("target", xp.devices(), ids=str)
@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data())
def test_to_device(dtype, target, data):
    x, v = data.draw(arrays(dtype))
    check(x.to_device(target), v, device=target)
    check(x.to_device(str(target), stream=None), v, device=target)
    check(x, v)


def test_to_device_raises():
    x = xp.ones(1)
    with pytest.raises(ValueError, match="device"):
        x.to_device("no device")
    with pytest.raises((TypeError, ValueError)):
        x.to_device(x.device, stream=object())


@pytest.mark.parametrize("version", ["2021.12", "2022.12", "2023.12", "2024.12", "2025.12", None])
def test_the_namespace_of_an_array(version):
    x = xp.ones(1)
    assert x.__array_namespace__() is x.__array_namespace__(api_version=version) is xp
    assert xp.__array_api_version__ == "2025.12"


@pytest.mark.parametrize("version", ["2020.12", "2030.12", "draft", ""])
def test_versions_that_are_not_served_raise(version):
    with pytest.raises(ValueError, match="version"):
        xp.ones(1).__array_namespace__(api_version=version)


# Functions with one array, whose results have to stay on its device.
STAY = ["abs", "argmax", "argsort", "any", "cumulative_sum", "exp", "flip", "isnan", "mean", "max"]
STAY += ["nonzero", "ones_like", "positive", "roll", "sort", "sum", "unique_counts", "zeros_like"]
STAY += ["count_nonzero", "diff", "empty_like", "negative", "real", "imag", "std", "unique_all"]


@pytest.mark.parametrize("target", xp.devices(), ids=str)
@pytest.mark.parametrize("name", STAY)
def test_results_stay_on_the_device(name, target):
    x = to_array(np.array([3.0, 1.0, 2.0]), device=target)
    arguments = {"roll": (1,)}.get(name, ())
    results = getattr(xp, name)(x, *arguments)
    for result in results if isinstance(results, tuple) else (results,):
        assert result.device == target
    for result in (x + 1, 1 - x, x * x, x[1:], x[0], x > 1, -x, x == x, x // 2.0):
        assert result.device == target


XPS = make_strategies_namespace(xp, api_version="2025.12")


@given(x=XPS.arrays(XPS.scalar_dtypes(), XPS.array_shapes()), data=st.data())
def test_strategies_of_hypothesis_make_arrays(x, data):
    assert type(x) is xp.Array
    axes = data.draw(XPS.valid_tuple_axes(x.ndim))
    assert xp.all(x == x, axis=axes).ndim == x.ndim - len(axes)
    key = data.draw(XPS.indices(x.shape))
    assert xp.asarray(np.asarray(x)[key]).shape == x[key].shape
