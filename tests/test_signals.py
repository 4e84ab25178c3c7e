"""Ctrl-C, forks and threads in the middle of products."""

import os
import signal
import sys
import threading

import numpy as np
import pytest
from scripts import run_script

import ggarray as xp
from ggarray._graph import execute, plan_cache, products, split


@pytest.mark.parametrize(
    ("device", "dtype", "n"), [("cpu", "int64", 3000), ("cpu", "float64", 5000),
                               ("blas", "float64", 5000)]
)  # fmt: skip
def test_control_c_in_a_long_product(device, dtype, n):
    script = f"""
        import os, signal, threading, time
        import numpy as np
        import ggarray as xp

        a = xp.ones(({n}, {n}), dtype=xp.{dtype}, device="{device}")
        short, long = a[:20, :] @ a, a @ a

        def interrupt():
            time.sleep(0.3)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        sent = []
        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            xp.evaluate(short, long)
        except KeyboardInterrupt:
            print(time.monotonic() - sent[0])
        thread.join()
        assert xp.is_pending(short) and xp.is_pending(long)
        assert np.all(np.asarray(short) == {n})
        assert bool(xp.all(a == 1))
        assert xp.is_pending(long)
    """
    assert float(run_script(script, GGARRAY_NUM_THREADS="2")) < 5


@pytest.mark.parametrize("panel", [1, 2, 5])
@pytest.mark.parametrize("target", ["long", "sum", "update"])
def test_control_c_between_panels(counting, monkeypatch, panel, target):
    plan_cache.drop_all()
    monkeypatch.setattr(split, "_MOST_WORK", 0)  # each product is a split of its own
    monkeypatch.setattr(products, "_SMALL", 0)
    monkeypatch.setattr(products, "_FIRST", 1)
    monkeypatch.setattr(products, "_PANEL_SECONDS", 0)
    monkeypatch.setattr(products, "_speed", {})
    compute = counting.graph_compute

    def graph_compute(graph):
        status = compute(graph)
        if len(counting.computed) == panel:
            os.kill(os.getpid(), signal.SIGINT)
        return status

    monkeypatch.setattr(counting, "graph_compute", graph_compute)
    a, b = np.arange(1200.0).reshape(300, 4), np.arange(20.0).reshape(4, 5)
    x, y = xp.asarray(a, device="counting"), xp.asarray(b, device="counting")
    arrays = {"long": x @ y, "update": xp.ones((300, 5), device="counting")}
    arrays["sum"] = arrays["long"] + xp.linalg.outer(x[:, 0], y[0, :])
    arrays["update"] += x @ y
    expected = {"long": a @ b, "update": 1 + a @ b, "sum": a @ b + np.outer(a[:, 0], b[0])}
    with pytest.raises(KeyboardInterrupt):
        xp.evaluate(arrays[target])
    assert len(counting.computed) == panel
    assert all(xp.is_pending(array) for array in arrays.values())
    for name, array in arrays.items():
        np.testing.assert_array_equal(np.asarray(array), expected[name])


def interrupt_at_line(at):
    """Return a trace function that raises at a line of publishing, counted over all calls."""
    steps = (execute._publish, execute._give, execute._close, execute._deliver)
    codes = {step.__code__ for step in steps}
    lines = []

    def local(frame, event, argument):
        if event == "line":
            lines.append(frame.f_lineno)
            if len(lines) == at:
                raise KeyboardInterrupt
        return local

    return lambda frame, event, argument: local if frame.f_code in codes else None


def traced(trace, function):
    """Call a function under a trace function; tell whether it was interrupted."""
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("write", [False, True])
def test_control_c_while_values_are_published(write):
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    at, interrupted = 0, True
    while interrupted:
        at += 1
        x, total = xp.asarray(a), xp.ones((2, 2))
        square = x @ x
        fourth = square @ square
        total += square
        interrupted = traced(interrupt_at_line(at), lambda: xp.evaluate(fourth, total))  # noqa: B023
        expected = 1 + a @ a
        if write:
            total[0, 0] = expected[0, 0] = 77
        np.testing.assert_array_equal(np.asarray(total), expected)
        np.testing.assert_array_equal(np.asarray(fourth), a @ a @ a @ a)
        np.testing.assert_array_equal(np.asarray(square), a @ a)
        np.testing.assert_array_equal(np.asarray(x), a)
    assert at > 10


FORK = """
    import os, signal
    import numpy as np
    import ggarray as xp

    a = np.random.default_rng(0).standard_normal((400, 400))
    x = xp.asarray(a, device="{device}")

    def works():
        return np.allclose(np.asarray(x @ x), a @ a)

    xp.set_num_threads(2)
    assert works()
    waiting = x @ x
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        right = works() and np.allclose(np.asarray(waiting), a @ a) and works()
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert works() and np.allclose(np.asarray(waiting), a @ a)
"""


def test_fork(device):
    run_script(FORK.format(device=device))


FORK_WHILE_EVALUATING = """
    import os, signal, threading
    import numpy as np
    import ggarray as xp

    a = np.random.default_rng(0).standard_normal((300, 300))
    x, y = (xp.asarray(a, device="{device}") for _ in range(2))
    stop = threading.Event()
    started = threading.Event()

    def work():
        while not stop.is_set():
            xp.evaluate(y @ y)
            started.set()

    xp.set_num_threads(2)
    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    statuses = []
    for _ in range(10):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if np.allclose(np.asarray(x @ x), a @ a) else 1)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        if statuses[-1]:
            break
    stop.set()
    thread.join()
    assert statuses == [0] * 10, statuses
"""


def test_fork_while_another_thread_evaluates():
    run_script(FORK_WHILE_EVALUATING.format(device="cpu"))


def together(*functions):
    """Call functions in threads of their own that start at the same time; raise their errors."""
    barrier = threading.Barrier(len(functions))
    errors = []

    def call(function):
        barrier.wait(30)
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=[each]) for each in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error


def test_threads_that_evaluate_products_of_their_own(device):
    a = np.random.default_rng(0).standard_normal((200, 200))
    x = xp.asarray(a, device=device)

    def work():
        for _ in range(20):
            np.testing.assert_allclose(np.asarray(x @ x), a @ a)

    with xp.num_threads(2):
        together(work, work, work)


def test_threads_that_need_the_same_product(counting):
    a = np.arange(9.0).reshape(3, 3)
    x = xp.asarray(a, device="counting")
    for _ in range(20):
        counting.computed.clear()
        product = x @ x
        derived = [product @ x, product + product, product.T]
        functions = [np.asarray, np.asarray, np.asarray, np.asarray]
        arrays = [product, *derived]
        expected = [a @ a, a @ a @ a, 2 * (a @ a), (a @ a).T]

        def check(at, function=functions, arrays=arrays, expected=expected):
            np.testing.assert_array_equal(function[at](arrays[at]), expected[at])

        together(*(lambda at=at, check=check: check(at) for at in range(4)))
        assert len(counting.computed) == 2


def test_a_thread_that_writes_while_another_reads(device):
    a = np.ones((150, 150))
    x = xp.asarray(a, device=device)
    products = [x @ x for _ in range(10)]

    def write():
        x[...] = 0

    together(write, *(lambda each=each: xp.evaluate(each) for each in products))
    for each in products:
        np.testing.assert_array_equal(np.asarray(each), a @ a)
