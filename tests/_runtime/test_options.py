"""Options: one table, checked, and local to threads and tasks within `options`."""

import asyncio
import re
import threading

import pytest
from scripts import run_script

import ggarray as xp
from ggarray._runtime import options as module
from ggarray._runtime.options import OPTIONS, REWRITES, Settings

DEFAULTS = {"lazy": True, "max_pending_nodes": 10_000, "max_pending_bytes": 256 << 20}
DEFAULTS |= {"fallback": "cpu", "source_lines": True, "memory_limit": None}
DEFAULTS |= {"fuse": frozenset(REWRITES), "weight_cache": 1 << 30, "libgomp_threads": False}


@pytest.fixture(autouse=True)
def process(monkeypatch):
    """Let a test set the process's options."""
    monkeypatch.setattr(module, "_process", None)
    for option in OPTIONS.values():
        if option.environment:
            monkeypatch.delenv(option.environment, raising=False)


def test_defaults():
    assert xp.get_options() == DEFAULTS


def test_every_option_is_documented():
    assert Settings._fields == tuple(OPTIONS)
    for name in OPTIONS:
        assert f"``{name}``" in xp.set_options.__doc__


def test_get_options_is_a_copy():
    xp.get_options()["lazy"] = False
    assert xp.get_options() == DEFAULTS


def test_set_options():
    xp.set_options(lazy=False, max_pending_nodes=5)
    expected = {**DEFAULTS, "lazy": False, "max_pending_nodes": 5}
    assert xp.get_options() == expected
    xp.set_options(lazy=True)
    assert xp.get_options() == {**expected, "lazy": True}
    xp.set_options()
    assert xp.get_options() == {**expected, "lazy": True}


SETTERS = {
    "set_options": xp.set_options,
    "options": lambda **chosen: xp.options(**chosen).__enter__(),
}


@pytest.mark.parametrize("setter", SETTERS)
def test_unknown_name(setter):
    with pytest.raises(ValueError, match="unknown option 'lasy'") as caught:
        SETTERS[setter](lazy=False, lasy=False)
    for name in OPTIONS:
        assert name in str(caught.value)
    assert xp.get_options() == DEFAULTS


BAD = [
    ("lazy", 2),
    ("lazy", 1),
    ("lazy", None),
    ("lazy", "maybe"),
    ("max_pending_nodes", 0),
    ("max_pending_nodes", -1),
    ("max_pending_nodes", 1.5),
    ("max_pending_nodes", True),
    ("max_pending_nodes", "x"),
    ("max_pending_bytes", 0),
    ("max_pending_bytes", None),
    ("fallback", "blas"),
    ("fallback", True),
    ("memory_limit", 0),
    ("source_lines", "perhaps"),
    ("memory_limit", "much"),
    ("weight_cache", -1),
    ("weight_cache", None),
    ("weight_cache", False),
    ("weight_cache", 0.5),
    ("fuse", None),
    ("fuse", 1),
    ("fuse", "all"),
    ("fuse", ""),
    ("fuse", "copies,"),
    ("fuse", "true,copies"),
    ("fuse", {"copies", "epilogue"}),
    ("fuse", ["copies", 1]),
]


@pytest.mark.parametrize("setter", SETTERS)
@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_value(setter, name, value):
    other = "max_pending_bytes" if name != "max_pending_bytes" else "max_pending_nodes"
    with pytest.raises(ValueError, match=f"option {name} is .*{re.escape(repr(value))}"):
        SETTERS[setter](**{other: 7, name: value})
    assert xp.get_options() == DEFAULTS


FUSE = [
    (True, REWRITES),
    (False, ()),
    ("on", REWRITES),
    ("No", ()),
    ("0", ()),
    ("copies", ["copies"]),
    ("epilogues, copies", ["copies", "epilogues"]),
    ({"dead_code"}, ["dead_code"]),
    (["copies", "copies"], ["copies"]),
    (("copies", "dead_code"), ["copies", "dead_code"]),
    (frozenset(), ()),
]


@pytest.mark.parametrize(("value", "names"), FUSE)
def test_fuse_is_a_set_of_names(value, names):
    with xp.options(fuse=value):
        assert xp.get_options() == {**DEFAULTS, "fuse": frozenset(names)}


@pytest.mark.parametrize(("text", "names"), [row for row in FUSE if isinstance(row[0], str)])
def test_fuse_in_the_environment(monkeypatch, text, names):
    monkeypatch.setenv("GGARRAY_FUSE", text)
    assert xp.get_options() == {**DEFAULTS, "fuse": frozenset(names)}


def test_what_was_given_for_fuse_may_change():
    names = {"copies"}
    xp.set_options(fuse=names)
    names.add("no such")
    assert xp.get_options()["fuse"] == {"copies"}
    xp.set_options(**xp.get_options())


@pytest.mark.parametrize("given", ["options", "environment"])
def test_unknown_rewrites_are_told_the_known(monkeypatch, given):
    if given == "environment":
        monkeypatch.setenv("GGARRAY_FUSE", "no such")
    with pytest.raises(ValueError, match=r"option fuse is .*'no such'") as caught:
        xp.set_options(**{"fuse": {"no such"}} if given == "options" else {})
    assert all(name in str(caught.value) for name in REWRITES)
    assert ("GGARRAY_FUSE" in str(caught.value)) == (given == "environment")


def test_every_rewrite_is_documented():
    assert all(f"``{name}``" in xp.set_options.__doc__ for name in REWRITES)


def test_no_weights_may_be_kept():
    xp.set_options(weight_cache=0)
    assert xp.get_options()["weight_cache"] == 0


def test_options_nest():
    with xp.options(lazy=False):
        with xp.options(max_pending_nodes=7):
            assert xp.get_options() == {**DEFAULTS, "lazy": False, "max_pending_nodes": 7}
            with xp.options(lazy=True):
                assert xp.get_options() == {**DEFAULTS, "max_pending_nodes": 7}
        assert xp.get_options() == {**DEFAULTS, "lazy": False}
        with pytest.raises(ZeroDivisionError), xp.options(lazy=True):
            _ = 1 / 0
        assert not xp.get_options()["lazy"]
    assert xp.get_options() == DEFAULTS


def test_the_process_shows_through():
    with xp.options(max_pending_nodes=7):
        xp.set_options(lazy=False, max_pending_nodes=9)
        assert xp.get_options() == {**DEFAULTS, "lazy": False, "max_pending_nodes": 7}
    assert xp.get_options() == {**DEFAULTS, "lazy": False, "max_pending_nodes": 9}


def test_lazy_counts_when_recording():
    x = xp.ones((2, 2))
    with xp.options(lazy=False):
        assert not xp.is_pending(x @ x)
        with xp.options(lazy=True):
            product = x @ x
        assert xp.is_pending(product)
    assert xp.is_pending(x @ x)


def test_threads_do_not_leak():
    inside, checked = threading.Event(), threading.Event()
    seen = []

    def work():
        with xp.options(lazy=False):
            inside.set()
            checked.wait(30)
            seen.append(xp.get_options()["lazy"])

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(30)
    here = xp.get_options()["lazy"]
    checked.set()
    thread.join()
    assert (here, seen) == (True, [False])


def test_tasks_do_not_leak():
    async def task(n):
        with xp.options(max_pending_nodes=n):
            await asyncio.sleep(0)
            return xp.get_options()["max_pending_nodes"]

    async def main():
        return await asyncio.gather(*map(task, [4, 3, 2]))

    assert asyncio.run(main()) == [4, 3, 2]
    assert xp.get_options() == DEFAULTS


TEXTS = {"1": True, "True": True, "on": True, "yes": True, "0": False, "FALSE": False, "no": False}


@pytest.mark.parametrize("text", TEXTS)
def test_environment(monkeypatch, text):
    monkeypatch.setenv("GGARRAY_LAZY", text)
    assert xp.get_options() == {**DEFAULTS, "lazy": TEXTS[text]}


def test_environment_of_a_program():
    script = """
        import ggarray as xp
        x = xp.ones((2, 2))
        print(xp.is_pending(x @ x))
        xp.set_options(lazy=True)
        print(xp.is_pending(x @ x))
    """
    assert run_script(script, GGARRAY_LAZY="off").split() == ["False", "True"]


def test_bad_environment_is_an_error_at_first_use():
    script = """
        import ggarray as xp
        x = xp.ones((2, 2))
        for use in (xp.get_options, lambda: x @ x):
            try:
                use()
            except ValueError as error:
                print(error)
    """
    lines = run_script(script, GGARRAY_LAZY="maybe").splitlines()
    assert len(lines) == 2
    for line in lines:
        assert "GGARRAY_LAZY" in line
        assert "'maybe'" in line
