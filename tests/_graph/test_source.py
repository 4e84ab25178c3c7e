"""Errors while computing name the line of the program that recorded the operation."""

import inspect

import numpy as np
import pytest

import ggarray as xp
from ggarray import BackendError
from ggarray.interface import Status


def line():
    """The place of the caller, as errors name it."""
    frame = inspect.currentframe().f_back
    return f"{__file__}:{frame.f_lineno}"


def notes_of(failing, *arrays):
    failing.outcomes[:] = [Status.FAILED]
    with pytest.raises(BackendError, match=r"matmul of float64\(2, 2\)") as caught:
        xp.evaluate(*arrays)
    return getattr(caught.value, "__notes__", [])


@pytest.fixture
def x():
    return xp.ones((2, 2), device="failing")


def test_products_by_every_name(failing, x):
    ways = {
        "operator": lambda: (x @ x, line()),
        "function": lambda: (xp.matmul(x, x), line()),
        "numpy": lambda: (np.matmul(x, x), line()),
        "reflected": lambda: (np.ones((2, 2)) @ x, line()),
        "tensordot": lambda: (xp.tensordot(x, x, axes=1), line()),
        "power": lambda: (xp.linalg.matrix_power(x, 2), line()),
    }
    for way in ways.values():
        product, where = way()
        assert notes_of(failing, product) == [f"recorded at {where}"]


def test_the_line_of_the_product_in_a_plan(failing, x):
    first = x @ x
    where = line()
    end = 2.0 * (first + x)
    before = f"{where.rpartition(':')[0]}:{int(where.rpartition(':')[2]) - 1}"
    assert notes_of(failing, end) == [f"recorded at {before}"]


def test_lines_can_be_turned_off(failing, x):
    with xp.options(source_lines=False):
        product = x @ x
    assert notes_of(failing, product) == []


def test_code_without_a_module_is_named_too(failing, x):
    namespace = {"x": x}
    exec(compile("\n\nproduct = x @ x", "typed in", "exec"), namespace)
    assert notes_of(failing, namespace["product"]) == ["recorded at typed in:3"]
