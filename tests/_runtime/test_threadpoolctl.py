"""Limits of threadpoolctl hold for ggarray's own threads, and leave nothing behind."""

import ctypes
import os
import pickle
import shutil
import threading

import pytest
from scripts import run_script

import ggarray as xp
from ggarray._runtime import threads
from ggarray._runtime.thread_limits import register_with_threadpoolctl
from ggarray.backends.cpu import _kernels

threadpoolctl = pytest.importorskip("threadpoolctl")
threadpool_limits = threadpoolctl.threadpool_limits


@pytest.fixture(autouse=True)
def process(monkeypatch):
    """Let a test set the process's number of threads; no cap may be left behind."""
    monkeypatch.setattr(threads, "_process", 5)
    yield
    left = threads.caps.copy()
    threads.caps.clear()
    assert left == {}


def ours():
    """Return threadpoolctl's controller of our threads alone."""
    return threadpoolctl.ThreadpoolController().select(internal_api="ggarray")


def info():
    (found,) = ours().info()
    return found


def test_info():
    assert info() == {
        "user_api": "blas",
        "internal_api": "ggarray",
        "num_threads": 5,
        "prefix": "_kernels",
        "filepath": os.path.realpath(_kernels.__file__),
        "version": xp.__version__,
    }
    assert info() in threadpoolctl.threadpool_info()
    with xp.num_threads(3):
        assert info()["num_threads"] == 3


def test_registering_again_does_no_harm():
    register_with_threadpoolctl()
    assert len(ours()) == 1
    with threadpool_limits(1):
        assert xp.get_num_threads() == 1
    assert xp.get_num_threads() == 5


def test_a_library_of_the_same_name(tmp_path):
    stranger = tmp_path / "_kernels.so"
    shutil.copy(_kernels.__file__, stranger)
    ctypes.CDLL(str(stranger))
    assert info()["filepath"] == os.path.realpath(_kernels.__file__)


LIMITS = {
    "all": lambda: threadpool_limits(limits=1),
    "blas": lambda: threadpool_limits(1, user_api="blas"),
    "controller": lambda: threadpoolctl.ThreadpoolController().limit(limits=1, user_api="blas"),
    "controller of ours": lambda: ours().limit(limits=1),
    "decorator": lambda: threadpool_limits.wrap(limits=1),
    "by prefix": lambda: threadpool_limits({"_kernels": 1}),
    "by library": lambda: threadpool_limits([{**info(), "num_threads": 1}]),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name):
    with LIMITS[name]():
        assert xp.get_num_threads() == info()["num_threads"] == 1
        with xp.num_threads(8):
            assert xp.get_num_threads() == 1
    assert xp.get_num_threads() == info()["num_threads"] == 5


@pytest.mark.parametrize("limits", [{"limits": 1, "user_api": "openmp"}, {"limits": None}])
def test_limits_of_others(limits):
    with threadpool_limits(**limits):
        assert xp.get_num_threads() == 5
        xp.set_num_threads(7)
    assert xp.get_num_threads() == 7


def test_a_limit_only_lowers():
    with threadpool_limits(9):
        assert xp.get_num_threads() == 5
        with xp.num_threads(12):
            assert xp.get_num_threads() == 9


def test_one_thread_is_always_left():
    with ours().limit(limits=0):
        assert xp.get_num_threads() == 1


def test_nested_limits():
    with xp.num_threads(8), threadpool_limits(2):
        with threadpool_limits(4):
            assert xp.get_num_threads() == 4
            with threadpool_limits(3):
                assert xp.get_num_threads() == 3
            assert xp.get_num_threads() == 4
        assert xp.get_num_threads() == 2
    assert xp.get_num_threads() == 5


def test_an_exception_ends_the_limit():
    with pytest.raises(ZeroDivisionError), threadpool_limits(1):
        _ = 1 / 0
    assert xp.get_num_threads() == 5


def test_a_number_that_is_set_meanwhile():
    with threadpool_limits(2):
        xp.set_num_threads(9)
        assert xp.get_num_threads() == 2
    assert xp.get_num_threads() == 9
    with xp.num_threads(3):
        limit = threadpool_limits(1)
    limit.restore_original_limits()
    assert xp.get_num_threads() == 9


def test_a_lasting_limit():
    before = threadpoolctl.threadpool_info()
    threadpool_limits(2)
    xp.set_num_threads(9)
    with threadpool_limits(1):
        assert xp.get_num_threads() == 1
    assert xp.get_num_threads() == 2
    threadpool_limits(before)
    assert xp.get_num_threads() == 9


def test_other_threads_are_limited():
    seen = []

    def work():
        with xp.num_threads(8):
            seen.append(xp.get_num_threads())

    for limit in (2, None):
        with ours().limit(limits=limit):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    assert seen == [2, 8]


def test_limits_of_two_threads_end_in_the_order_of_their_beginning():
    entered, go_on = threading.Event(), threading.Event()

    def work():
        with ours().limit(limits=2):
            entered.set()
            go_on.wait(30)

    thread = threading.Thread(target=work)
    with ours().limit(limits=1):
        thread.start()
        assert entered.wait(30)
        assert xp.get_num_threads() == 1
    assert xp.get_num_threads() == 2
    go_on.set()
    thread.join()
    assert xp.get_num_threads() == 5


def test_a_limit_ended_by_another_thread():
    limit = ours().limit(limits=1)
    thread = threading.Thread(target=limit.restore_original_limits)
    thread.start()
    thread.join()
    assert xp.get_num_threads() == 5


def test_the_number_is_an_integer_elsewhere():
    number = info()["num_threads"]
    assert f"{number} {number!r} {number + 1}" == "5 5 6"
    assert type(pickle.loads(pickle.dumps(number))) is int


def test_the_limit_counts_when_evaluating(counting):
    x = xp.ones((2, 2), device="counting")
    with threadpool_limits(2):
        product = x @ x
        xp.evaluate(x @ x)
        assert counting.n_threads == 2
    xp.evaluate(product)
    assert counting.n_threads == 5


def test_no_more_threads_compute():
    script = """
        import os
        import ggarray as xp
        from threadpoolctl import threadpool_limits

        def n_tasks_after_product():
            xp.evaluate(x @ x)
            return len(os.listdir("/proc/self/task"))

        x = xp.ones((400, 400), device="cpu")
        xp.set_num_threads(3)
        before = len(os.listdir("/proc/self/task"))
        with threadpool_limits(1):
            print(n_tasks_after_product() - before)
        print(n_tasks_after_product() - before)
    """
    assert run_script(script).split() == ["0", "2"]


IMPORTS = {
    "ggarray first": "import ggarray as xp; xp.devices(); import threadpoolctl",
    "ggarray first, devices later": "import ggarray as xp; import threadpoolctl; xp.devices()",
    "threadpoolctl first": "import threadpoolctl; import ggarray as xp; xp.devices()",
    "libraries have been listed": (
        "import threadpoolctl; from ggarray.backends.cpu import _kernels;"
        "threadpoolctl.threadpool_info(); import ggarray as xp; xp.devices()"
    ),
    "threadpoolctl twice": (
        "import ggarray as xp; xp.devices(); import importlib, threadpoolctl;"
        "from ggarray._runtime.thread_limits import register_with_threadpoolctl;"
        "importlib.reload(threadpoolctl); register_with_threadpoolctl()"
    ),
}
LIMIT = """
xp.set_num_threads(4)
(found,) = (i for i in threadpoolctl.threadpool_info() if i["internal_api"] == "ggarray")
with threadpoolctl.threadpool_limits(1):
    print(xp.get_num_threads())
print(xp.get_num_threads())
"""


@pytest.mark.parametrize("name", IMPORTS)
def test_imports(name):
    assert run_script(IMPORTS[name] + LIMIT).split() == ["1", "4"]


ABSENT = {
    "not installed": "None",
    "too old": "types.ModuleType('threadpoolctl')",
}


@pytest.mark.parametrize("name", ABSENT)
def test_without_threadpoolctl(name):
    script = f"""
        import sys, types
        sys.modules["threadpoolctl"] = {ABSENT[name]}
        import ggarray as xp
        xp.set_num_threads(2)
        print(float((xp.ones((2, 2)) @ xp.ones(2))[0]), xp.get_num_threads())
    """
    assert run_script(script).split() == ["2.0", "2"]


def test_a_forked_child_has_the_limit_and_ends_it():
    script = """
        import os, warnings
        import ggarray as xp
        from threadpoolctl import threadpool_limits

        warnings.simplefilter("ignore", DeprecationWarning)
        x = xp.ones((400, 400), device="cpu")
        xp.set_num_threads(3)
        with threadpool_limits(2):
            child = os.fork()
            assert xp.get_num_threads() == 2
            assert float((x @ x)[0, 0]) == 400
        assert xp.get_num_threads() == 3
        if child:
            assert os.waitpid(child, 0)[1] == 0
    """
    run_script(script)
