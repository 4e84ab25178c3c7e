"""array-api-compat takes ggarray for a namespace of its own, which needs no wrapper."""

import array_api_compat
import array_api_strict
import numpy as np
import pytest

import ggarray as xp

CHECKS = {name for name in dir(array_api_compat) if name.startswith("is_")}
LIBRARY_CHECKS = sorted(CHECKS - {"is_array_api_obj", "is_lazy_array", "is_writeable_array"})


@pytest.fixture
def x(device):
    """A pending array."""
    product = xp.asarray([1.0, 2.0, 3.0], device=device) @ xp.eye(3, device=device)
    assert xp.is_pending(product)
    return product


@pytest.mark.parametrize("use_compat", [None, False])
@pytest.mark.parametrize("version", [None, "2021.12", "2024.12", "2025.12"])
def test_the_namespace_is_ggarray_itself(x, version, use_compat):
    arrays = (x, 1.0, None, xp.asarray([True]), 2j)
    namespace = array_api_compat.array_namespace(
        *arrays, api_version=version, use_compat=use_compat
    )
    assert namespace is xp
    assert xp.is_pending(x)


def test_there_is_no_wrapper_to_ask_for(x):
    with pytest.raises(ValueError, match="wrapper"):
        array_api_compat.array_namespace(x, use_compat=True)


@pytest.mark.parametrize("stranger", [np.ones(3), array_api_strict.ones(3)])
def test_arrays_of_two_libraries_have_no_namespace(x, stranger):
    with pytest.raises(TypeError, match="Multiple namespaces"):
        array_api_compat.array_namespace(x, stranger)


@pytest.mark.parametrize("name", LIBRARY_CHECKS)
def test_ggarray_is_taken_for_no_other_library(x, name):
    asked = xp if name.endswith("_namespace") else x
    assert getattr(array_api_compat, name)(asked) is False
    assert xp.is_pending(x)


def test_there_are_library_checks():
    assert {"is_numpy_namespace", "is_numpy_array", "is_torch_array"} <= set(LIBRARY_CHECKS)


def test_what_arrays_are(x):
    assert array_api_compat.is_array_api_obj(x)
    assert array_api_compat.is_writeable_array(x)
    assert array_api_compat.size(x) == 3
    assert array_api_compat.size(x[1:, None]) == 2
    assert array_api_compat.size(xp.empty((0, 4))) == 0


def test_arrays_are_not_lazy_for_they_have_a_truth_value(x):
    assert not array_api_compat.is_lazy_array(x)
    assert not array_api_compat.is_lazy_array(x[:0])
    assert not array_api_compat.is_lazy_array(xp.asarray(1))


def test_devices(x, device):
    assert array_api_compat.device(x) is x.device
    assert array_api_compat.device(x) == device
    assert array_api_compat.to_device(x, device) is x
    for other in xp.devices():
        moved = array_api_compat.to_device(x, other)
        assert moved.device == other
        np.testing.assert_array_equal(np.asarray(moved), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="stream"):
        array_api_compat.to_device(x, "cpu" if device == "blas" else "blas", stream=1)
