"""The namespace as a module: its exports, dtypes, version and extensions."""

import importlib
import types

import numpy as np
import pytest

import ggarray as xp

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES = ["bool", *INTEGERS, "float32", "float64", "complex64", "complex128"]


def test_every_name_exported_is_there_once():
    assert len(set(xp.__all__)) == len(xp.__all__)
    namespace = {}
    exec("from ggarray import *", namespace)
    assert set(xp.__all__) <= set(namespace)
    for name in xp.__all__:
        assert namespace[name] is getattr(xp, name)


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_are_the_scalar_classes_of_numpy(name):
    assert name in xp.__all__
    assert getattr(xp, name) is np.dtype(name).type


def test_the_version_of_the_standard():
    assert xp.__array_api_version__ == "2025.12"
    assert xp.ones(1).__array_namespace__(api_version=xp.__array_api_version__) is xp


@pytest.mark.parametrize("name", ["linalg", "fft"])
def test_extensions_are_modules_that_can_be_imported(name):
    module = importlib.import_module(f"ggarray.{name}")
    assert type(module) is types.ModuleType
    assert getattr(xp, name) is module
    assert name in xp.__all__


def test_the_namespace_is_a_module_and_arrays_are_of_it():
    assert type(xp) is types.ModuleType
    assert xp.Array.__module__ == "ggarray"
    assert not issubclass(xp.Array, np.ndarray)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = xp.no_such_name
