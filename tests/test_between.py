"""What signal handlers and other threads may do while something is computed."""

import sys
import threading

import numpy as np
import pytest
from values import numbers

import ggarray as xp
from ggarray._graph.node import Destination


@pytest.fixture
def x():
    return xp.asarray(np.array([[1.0, 2.0], [3.0, 4.0]]), device="counting")


X = np.array([[1.0, 2.0], [3.0, 4.0]])


def once(hooked, act):
    """Have the backend call a function before its next kernel."""

    def before():
        hooked.before = None
        act()

    hooked.before = before


@pytest.mark.parametrize("planned", [False, True])
def test_a_view_taken_meanwhile_sees_writes(x, counting, planned):
    view = ((x @ x) @ x if planned else x @ x).T
    taken = []
    once(counting, lambda: taken.append(view[0]))
    xp.evaluate(view)
    view[0, 0] = -1.0
    assert float(taken[0][0]) == -1.0


def test_an_update_recorded_while_one_is_delivered(x, monkeypatch):
    total = xp.zeros((2, 2), device="counting")
    total += x @ x
    place, more = Destination.array, [True]

    def array(self):
        found = place(self)
        if more and sys._getframe(1).f_code.co_name == "_deliver":
            more.clear()
            nonlocal total
            total += x @ x
        return found

    monkeypatch.setattr(Destination, "array", array)
    xp.evaluate(total)
    assert not more
    monkeypatch.undo()
    np.testing.assert_array_equal(np.asarray(total), 2 * (X @ X))


def test_updates_and_evaluations_in_two_threads(x):
    for _ in range(200):
        total = xp.zeros((2, 2), device="counting")
        total += x @ x
        both = threading.Barrier(2)

        def evaluate(total=total, both=both):
            both.wait()
            xp.evaluate(total)

        thread = threading.Thread(target=evaluate)
        thread.start()
        both.wait()
        total += x @ x
        thread.join()
        np.testing.assert_array_equal(np.asarray(total), 2 * (X @ X))


@pytest.mark.parametrize("shape", [(1, 32), (2, 1, 32), (3, 32)])
@pytest.mark.parametrize("device", ["cpu", "blas"])
def test_weights_and_their_transpose_together(device, shape):
    weights = numbers(shape, np.float32, 1)
    quantized = xp.quantize(xp.asarray(weights, device=device), xp.q8_0)
    decoded = np.asarray(xp.dequantize(quantized))
    a = numbers((4, 32), np.float32, 2)
    b = numbers((4, shape[-2]), np.float32, 3)
    left = xp.asarray(a, device=device) @ quantized.mT
    right = xp.asarray(b, device=device) @ quantized
    xp.evaluate(left, right)
    np.testing.assert_allclose(np.asarray(left), a @ decoded.swapaxes(-1, -2), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.asarray(right), b @ decoded, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["product", "chain"])
def test_the_memory_limit_counts_conversions(kind):
    a = xp.ones((500, 500), dtype=xp.float16)
    b = xp.ones((500, 1), dtype=xp.float32)
    value = a @ b if kind == "product" else 2.0 * (a @ b)
    with xp.options(memory_limit=100_000), pytest.raises(MemoryError, match="memory_limit"):
        xp.evaluate(value)
    assert xp.is_pending(value)
    assert float(value[0, 0]) in (500, 1000)
