"""Calls on another thread, and Ctrl-C while one waits for them."""

import os
import signal
import threading
import weakref
from contextvars import ContextVar
from functools import partial

import numpy as np
import pytest
from scripts import run_script

import ggarray as xp
from ggarray._graph import aside, plan_cache, products
from ggarray._graph.execute import exclusively
from ggarray._runtime.plugins import backend_devices, stream

variable = ContextVar("variable", default="unset")


@pytest.fixture
def gate():
    """An event that calls wait for; open at the end, whatever happens."""
    event = threading.Event()
    yield event
    event.set()
    aside.wait()


def interrupt_soon():
    """Have Ctrl-C pressed while this thread waits."""
    main = threading.main_thread().ident
    timer = threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    return timer


def test_what_a_call_returns_or_raises():
    assert aside.run(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        aside.run(lambda: 1 // 0)
    assert not aside.is_busy()


def test_a_call_is_made_on_another_thread_in_the_same_context():
    token = variable.set("set")
    try:
        thread, value = aside.run(lambda: (threading.get_ident(), variable.get()))
    finally:
        variable.reset(token)
    assert thread != threading.get_ident()
    assert value == "set"


def test_threads_that_get_no_signals_call_themselves():
    found = []
    thread = threading.Thread(target=lambda: found.append(aside.run(threading.get_ident)))
    thread.start()
    thread.join()
    assert found == [thread.ident]


def test_control_c_ends_the_waiting_and_not_the_call(gate):
    ended = []

    def call():
        gate.wait()
        ended.append(True)

    timer = interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        aside.run(call)
    timer.join()
    assert aside.is_busy()
    assert not ended
    gate.set()
    aside.wait()
    assert not aside.is_busy()
    assert ended == [True]
    assert aside.run(lambda: 6) == 6


def test_nothing_is_kept_of_a_call_that_has_ended():
    class Operand:
        pass

    operand = Operand()
    gone = weakref.ref(operand)
    aside.run(partial(lambda held: None, operand))
    del operand
    aside.run(lambda: None)  # the thread has let go of the first
    assert gone() is None


HANDLERS = """
    import signal
    import numpy as np
    import ggarray as xp
    from ggarray._graph import products

    products._SMALL = products._PANEL_SECONDS = 0  # all is computed aside
    x = xp.asarray(np.eye(20), device="blas")
    computed = []

    def handler(*_):
        computed.append(float((x @ x)[3, 3]))
        signal.setitimer(signal.ITIMER_REAL, 2e-4)  # not earlier, so that it is not interrupted

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 2e-4)
    for _ in range(2000):
        assert float((x @ x)[4, 4]) == 1
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    assert set(computed) == {1}
"""


def test_signal_handlers_may_compute_while_one_waits():
    """Also in the middle of the waiting itself."""
    run_script(HANDLERS)


def test_finalizers_may_compute_in_the_middle_of_a_call():
    x = xp.asarray(np.eye(20), device="blas")
    with exclusively():
        assert aside.run(lambda: float((x @ x)[3, 3])) == 1


END = """
    import signal, threading
    import numpy as np
    import ggarray as xp

    class Late:
        def __init__(self):
            self.x = xp.asarray(np.eye(900), device="blas")

        def __del__(self):
            print(float((self.x @ self.x)[3, 3]), flush=True)

    late = Late()
    x = xp.asarray(np.ones((3000, 3000)), device="blas")
    threading.Timer(0.3, signal.pthread_kill, (threading.get_ident(), signal.SIGINT)).start()
    try:
        while True:
            xp.evaluate(x @ x)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def test_a_program_ends_well_while_a_product_is_computed():
    assert run_script(END).split() == ["interrupted", "1.0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_a_thread_of_its_own():
    aside.run(lambda: None)
    child = os.fork()
    if child == 0:
        os._exit(aside.run(lambda: 7))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert aside.run(lambda: 8) == 8


def test_memory_is_not_used_again_while_an_interrupted_product_writes_to_it(gate, monkeypatch):
    """The product in the middle of a chain is left to end by itself, in memory of the plan."""
    plan_cache.drop_all()
    monkeypatch.setattr(products, "_SMALL", 0)
    monkeypatch.setattr(products, "_PANEL_SECONDS", 0)
    monkeypatch.setattr(products, "_speed", {})
    backend = stream(backend_devices()["blas"])
    multiply, begun = backend._multiply, threading.Event()

    def slow(a, b, out, *epilogue):
        begun.set()
        gate.wait()
        return multiply(a, b, out, *epilogue)

    a = xp.asarray(np.random.default_rng(0).standard_normal((200, 200)), device="blas")
    expected = np.asarray(a) @ np.asarray(a) @ np.asarray(a) @ np.asarray(a)
    with monkeypatch.context() as patch:
        patch.setattr(backend, "_multiply", slow)
        chain = ((a @ a) @ a) @ a
        timer = interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            xp.evaluate(chain)
        timer.join()
    assert begun.is_set()
    assert xp.is_pending(chain)
    threading.Timer(0.05, gate.set).start()
    np.testing.assert_allclose(np.asarray(chain), expected, rtol=1e-10)
    assert not aside.is_busy()
