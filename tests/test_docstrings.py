"""Docstrings of everything public: complete, and their examples give what they say.

They are looked up by name in the public lists: doctest's own finder passes over functions that
factories made.
"""

import doctest
import enum
import inspect
from contextlib import chdir
from types import ModuleType

import gguf
import numpy as np
import pytest
from numpydoc.docscrape import NumpyDocString

import ggarray as xp
from ggarray import interface
from ggarray._runtime import plugins


def _members(owner):
    """Name and give what the users of a class see of it, inherited from classes of ours too."""
    for kind in owner.__mro__:
        for name, member in vars(kind).items() if kind.__module__.startswith("ggarray") else ():
            shown = callable(member) or isinstance(member, (classmethod, property))
            if shown and not name.startswith("_"):
                yield f"{owner.__name__}.{name}", getattr(owner, name)


def _listed(module, prefix):
    """Name and give what is in a module's ``__all__``, except constants and NumPy's dtypes."""
    for name in module.__all__:
        member = getattr(module, name)
        if isinstance(member, ModuleType) or getattr(member, "__module__", "numpy") != "numpy":
            yield prefix + name, member


def _of_backends():
    """Name and give the public classes and functions of the interface, and what is in them."""
    for name in interface.__all__:
        member = getattr(interface, name)
        if inspect.isclass(member) or inspect.isfunction(member):
            yield f"interface.{name}", member
        if inspect.isclass(member):
            yield from ((f"interface.{path}", each) for path, each in _members(member))


PUBLIC = dict(
    [
        ("ggarray", xp),
        ("interface", interface),
        *_listed(xp, ""),
        *_listed(xp.linalg, "linalg."),
        *_listed(xp.fft, "fft."),
        *_of_backends(),
        *_members(xp.Array),
        *_members(xp.Graph),
        *_members(xp.Profile),
        *_members(type(xp.__array_namespace_info__())),
    ]
)
every_name = pytest.mark.parametrize("name", PUBLIC)

_PREFIXES = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def _signature(member):
    """The signature that a docstring describes; None for what is not called by its users."""
    if inspect.isclass(member) and issubclass(member, (enum.Enum, BaseException)):
        return None
    return inspect.signature(member) if callable(member) else None


@every_name
def test_docstring_is_complete(name):
    member = PUBLIC[name]
    text = inspect.getdoc(member)
    doc = NumpyDocString(text)
    assert doc["Summary"] == [text.splitlines()[0]], "a summary is one line"
    assert doc["Summary"][0].endswith("."), "a summary is a sentence"
    assert doc["Examples"], "no example"
    signature = _signature(member)
    parameters = [] if signature is None else list(signature.parameters.values())
    wanted = [_PREFIXES.get(each.kind, "") + each.name for each in parameters]
    described = [each for entry in doc["Parameters"] for each in entry.name.split(", ")]
    assert described == [each for each in wanted if each != "self"]
    assert all(entry.desc for entry in doc["Parameters"])
    if inspect.isroutine(member):
        assert bool(doc["Returns"]) == (signature.return_annotation is not None)
        assert all(entry.desc for entry in doc["Returns"] + doc["Raises"])


class _Checker(doctest.OutputChecker):
    """Takes a zero for a zero: which sign an imaginary one has depends on the FFT library."""

    def check_output(self, want, got, optionflags):
        want, got = (text.replace("-0.j", "+0.j") for text in (want, got))
        return super().check_output(want, got, optionflags)


@pytest.fixture
def user(tmp_path, monkeypatch):
    """Put an example into a folder with a model, on the cpu; undo what it sets."""
    monkeypatch.setattr(plugins, "_devices", dict(plugins.backend_devices()))
    device, n_threads, options = xp.get_default_device(), xp.get_num_threads(), xp.get_options()
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    q8_0 = gguf.GGMLQuantizationType.Q8_0
    weights = gguf.quantize(np.ones((4, 64), np.float32), q8_0)
    writer.add_tensor("token_embd.weight", weights, raw_dtype=q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    xp.set_default_device("cpu")
    xp.set_options(lazy=True)
    with chdir(tmp_path):
        yield
    xp.set_default_device(device)
    xp.set_num_threads(n_threads)
    xp.set_options(**options)


@every_name
@pytest.mark.usefixtures("user")
def test_examples_give_what_they_say(name):
    text = inspect.getdoc(PUBLIC[name])
    test = doctest.DocTestParser().get_doctest(text, {"xp": xp}, name, None, None)
    runner = doctest.DocTestRunner(_Checker(), optionflags=doctest.NORMALIZE_WHITESPACE)
    report = []
    assert runner.run(test, out=report.append).attempted, "no example"
    assert not runner.failures, "".join(report)
