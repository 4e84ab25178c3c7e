"""Names and signatures of the standard, and that every name is tested somewhere in this folder.

`standard_2025_12.json` has what the standard's function stubs say: by table and name, a list of
[parameter, kind, whether it has a default]. Methods are without their first parameter.
"""

import importlib
import inspect
import math
import pkgutil

import pytest

import conformance.standard as suite
import ggarray as xp
from conformance.standard.references import STANDARD
from ggarray import fft, linalg

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

# The standard names these in its chapter on operators; its stubs do not have them.
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "pow", "mod", "matmul"]
OPERATORS += ["and", "or", "xor", "lshift", "rshift"]
FORMS = ["__{}__", "__r{}__", "__i{}__"]

# How modules write the names of a table in COVERS.
PREFIXES = {"main": "", "linalg": "linalg.", "fft": "fft.", "info": "info.", "methods": "Array."}
COVERS = [*STANDARD["constants"]]

# Where we take more than the standard asks for, since NumPy's callers give it.
LOOSER = {
    "diff": [
        ["x", "positional", False],
        ["n", "either", True],
        ["axis", "keyword", True],
        ["prepend", "keyword", True],
        ["append", "keyword", True],
    ],
    "where": [
        ["condition", "positional", False],
        ["x1", "positional", True],
        ["x2", "positional", True],
    ],
}


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
    wanted = LOOSER.get(name, STANDARD[table][name])
    names = {each[0] for each in STANDARD[table][name]}
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


@pytest.mark.parametrize("name", sorted(set(STANDARD["linalg"]) & set(STANDARD["main"])))
def test_linalg_has_the_products_of_the_main_namespace(name):
    assert getattr(linalg, name) is getattr(xp, name)


@pytest.mark.parametrize("name", STANDARD["attributes"])
def test_arrays_have_the_attributes_of_the_standard(name):
    x = xp.ones((2, 3))
    assert isinstance(getattr(xp.Array, name), property)
    with pytest.raises(AttributeError):
        setattr(x, name, None)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OPERATORS)
def test_arrays_have_every_form_of_the_operators(name, form):
    method = getattr(xp.Array, form.format(name))
    assert len(inspect.signature(method).parameters) == 2


def test_constants_have_their_values():
    assert (xp.e, xp.pi, xp.inf) == (math.e, math.pi, math.inf)
    assert math.isnan(xp.nan)
    assert xp.newaxis is None
    assert all(type(each) is float for each in (xp.e, xp.pi, xp.inf, xp.nan))


@pytest.mark.parametrize("name", STANDARD["main"])
def test_functions_say_what_they_do(name):
    function = getattr(xp, name)
    assert function.__name__ == name
    assert len(inspect.getdoc(function).split()) > 1


def test_every_name_of_the_standard_is_covered_by_a_module_of_the_suite():
    modules = [
        importlib.import_module(f"{suite.__name__}.{each.name}")
        for each in pkgutil.iter_modules(suite.__path__)
    ]
    covered = {name for module in modules for name in getattr(module, "COVERS", ())}
    wanted = {prefix + name for table, prefix in PREFIXES.items() for name in STANDARD[table]}
    wanted |= {f"Array.{form.format(name)}" for name in OPERATORS for form in FORMS}
    wanted |= {f"Array.{name}" for name in STANDARD["attributes"]} | set(STANDARD["constants"])
    assert sorted(wanted - covered) == []
    assert sorted(covered - wanted) == []
