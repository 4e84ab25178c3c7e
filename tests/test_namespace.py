"""The namespace against the names and signatures of the array API standard 2025.12.

`standard_2025_12.json` has what the standard's function stubs say: by table and name, a list of
[parameter, kind, whether it has a default]. Methods are without their first parameter.
"""

import importlib
import inspect
import json
import types
from pathlib import Path

import numpy as np
import pytest

import ggarray as xp
from ggarray import fft, linalg

STANDARD = json.loads((Path(__file__).parent / "standard_2025_12.json").read_text())
OWNERS = {
    "main": xp,
    "linalg": linalg,
    "fft": fft,
    "info": xp.__array_namespace_info__(),
    "methods": xp.Array,
}
FUNCTIONS = [(table, name) for table in OWNERS for name in STANDARD[table]]
KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "either",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "variadic",
}
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES = ["bool", *INTEGERS, "float32", "float64", "complex64", "complex128"]

# The standard names these in its chapter on operators; its stubs do not have them.
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "pow", "mod", "matmul"]
OPERATORS += ["and", "or", "xor", "lshift", "rshift"]


def parameters(table, name):
    """The parameters of what we have, as the data file lists them."""
    signature = inspect.signature(getattr(OWNERS[table], name))
    found = [
        [each.name, KINDS[each.kind], each.default is not inspect.Parameter.empty]
        for each in signature.parameters.values()
    ]
    return found[1:] if table == "methods" else found


@pytest.mark.parametrize(("table", "name"), FUNCTIONS)
def test_every_function_of_the_standard_takes_its_parameters(table, name):
    wanted = STANDARD[table][name]
    names = {each[0] for each in wanted}
    found = parameters(table, name)
    assert [each for each in found if each[0] in names] == wanted
    # what we add has to be optional, or a program of the standard could not call it
    assert all(has_default for added, _, has_default in found if added not in names)


@pytest.mark.parametrize("name", sorted(set(STANDARD["main"]) | set(STANDARD["constants"])))
def test_every_name_of_the_standard_is_exported(name):
    assert name in xp.__all__
    assert hasattr(xp, name)


@pytest.mark.parametrize("module", [linalg, fft], ids=["linalg", "fft"])
def test_extensions_export_the_functions_of_the_standard(module):
    table = module.__name__.removeprefix("ggarray.")
    assert set(STANDARD[table]) <= set(module.__all__)


@pytest.mark.parametrize("name", ["matmul", "matrix_transpose", "tensordot", "vecdot"])
def test_linalg_has_the_products_of_the_main_namespace(name):
    assert getattr(linalg, name) is getattr(xp, name)


@pytest.mark.parametrize("name", STANDARD["attributes"])
def test_arrays_have_the_attributes_of_the_standard(name):
    x = xp.asarray(np.ones((2, 3)))
    assert isinstance(getattr(xp.Array, name), property)
    with pytest.raises(AttributeError):
        setattr(x, name, None)


@pytest.mark.parametrize("form", ["__{}__", "__r{}__", "__i{}__"])
@pytest.mark.parametrize("name", OPERATORS)
def test_arrays_have_every_form_of_the_operators(name, form):
    method = getattr(xp.Array, form.format(name))
    assert len(inspect.signature(method).parameters) == 2


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


def test_constants_have_their_values():
    assert (xp.e, xp.pi, xp.inf) == (2.718281828459045, 3.141592653589793, float("inf"))
    assert xp.nan != xp.nan
    assert xp.newaxis is None
    assert all(type(each) is float for each in (xp.e, xp.pi, xp.inf, xp.nan))


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


@pytest.mark.parametrize("name", ["abs", "add", "matmul", "negative", "reshape", "sum"])
def test_functions_tell_their_name_and_what_they_do(name):
    function = getattr(xp, name)
    assert function.__name__ == name
    assert len(inspect.getdoc(function).split()) > 1
