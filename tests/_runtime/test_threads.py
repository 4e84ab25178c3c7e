"""How many threads products use, and that it changes no value."""

import asyncio
import os
import threading

import numpy as np
import pytest
from scripts import run_script

import ggarray as xp
from ggarray._runtime import threads as module
from ggarray._runtime.threads import _cgroup_quota, available_processors


@pytest.fixture(autouse=True)
def process(monkeypatch):
    """Let a test set the process's number of threads."""
    monkeypatch.setattr(module, "_process", None)
    monkeypatch.setattr(module, "caps", {})
    monkeypatch.delenv("GGARRAY_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    module._default.cache_clear()
    yield
    module._default.cache_clear()


def test_default():
    assert xp.get_num_threads() == available_processors() >= 1


def test_set():
    xp.set_num_threads(5)
    assert xp.get_num_threads() == 5
    xp.set_num_threads(np.int64(1))
    assert xp.get_num_threads() == 1
    seen = []
    thread = threading.Thread(target=lambda: seen.append(xp.get_num_threads()))
    thread.start()
    thread.join()
    assert seen == [1]


def test_context_manager():
    xp.set_num_threads(5)
    with xp.num_threads(2):
        with xp.num_threads(3):
            assert xp.get_num_threads() == 3
        assert xp.get_num_threads() == 2
        xp.set_num_threads(7)
        assert xp.get_num_threads() == 2
        with pytest.raises(ZeroDivisionError), xp.num_threads(4):
            _ = 1 / 0
        assert xp.get_num_threads() == 2
    assert xp.get_num_threads() == 7


def test_caps():
    xp.set_num_threads(5)
    module.caps.update({1: 4, 2: 7})
    assert xp.get_num_threads() == 4
    with xp.num_threads(9):
        assert xp.get_num_threads() == 4
        del module.caps[1]
        assert xp.get_num_threads() == 7
    assert xp.get_num_threads() == 5


@pytest.mark.parametrize(
    ("text", "expected"), [("1", 1), ("3", 3), ("3,2", 3), (" 2 ", 2), ("99", 4), ("0", 4), ("", 4)]
)
def test_openmps_number_limits_the_default(monkeypatch, text, expected):
    monkeypatch.setattr(module, "available_processors", lambda: 4)
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert xp.get_num_threads() == expected
    xp.set_num_threads(6)
    assert xp.get_num_threads() == 6


@pytest.mark.parametrize("text", ["many", "-1"])
def test_openmps_number_that_is_none_is_left_to_openmp(monkeypatch, text):
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert xp.get_num_threads() == available_processors()


def test_ggarrays_own_number_comes_before_openmps(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("GGARRAY_NUM_THREADS", "3")
    assert xp.get_num_threads() == 3


SETTERS = {
    "set_num_threads": xp.set_num_threads,
    "num_threads": lambda n: xp.num_threads(n).__enter__(),
}


@pytest.mark.parametrize("name", SETTERS)
@pytest.mark.parametrize(
    ("n", "error"),
    [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError), (None, TypeError)],
)
def test_bad_numbers(name, n, error):
    xp.set_num_threads(3)
    with pytest.raises(error):
        SETTERS[name](n)
    assert xp.get_num_threads() == 3


def test_threads_do_not_leak():
    xp.set_num_threads(1)
    inside, checked = threading.Event(), threading.Event()
    seen = []

    def work():
        with xp.num_threads(4):
            inside.set()
            checked.wait(30)
            seen.append(xp.get_num_threads())

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(30)
    here = xp.get_num_threads()
    checked.set()
    thread.join()
    assert (here, seen) == (1, [4])


def test_tasks_do_not_leak():
    xp.set_num_threads(1)

    async def task(n):
        with xp.num_threads(n):
            await asyncio.sleep(0)
            return xp.get_num_threads()

    async def main():
        return await asyncio.gather(*map(task, [4, 3, 2]))

    assert asyncio.run(main()) == [4, 3, 2]
    assert xp.get_num_threads() == 1


def test_environment(monkeypatch):
    monkeypatch.setenv("GGARRAY_NUM_THREADS", "3")
    assert xp.get_num_threads() == 3
    xp.set_num_threads(2)
    assert xp.get_num_threads() == 2


@pytest.mark.parametrize("text", ["0", "-2", "1.5", "many"])
def test_bad_environment(monkeypatch, text):
    monkeypatch.setenv("GGARRAY_NUM_THREADS", text)
    for _ in range(2):
        with pytest.raises(ValueError, match="GGARRAY_NUM_THREADS") as caught:
            xp.get_num_threads()
        assert repr(text) in str(caught.value)
    with xp.num_threads(2):
        assert xp.get_num_threads() == 2


def test_bad_environment_is_an_error_at_first_use():
    script = """
        import ggarray as xp
        x = xp.ones((2, 2), device="cpu")
        product = x @ x
        try:
            xp.evaluate(product)
        except ValueError as error:
            print(error)
        assert xp.is_pending(product)
        xp.set_num_threads(1)
        assert float(product[0, 0]) == 2
    """
    assert "GGARRAY_NUM_THREADS" in run_script(script, GGARRAY_NUM_THREADS="many")


def test_affinity():
    script = """
        import os
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        import ggarray as xp
        print(xp.get_num_threads())
    """
    assert run_script(script).split() == ["1"]


VERSION_2 = {
    "max 100000\n": None,
    "150000 100000\n": 1.5,
    "50000 100000\n": 0.5,
    "800000 50000\n": 16,
    "100000 0\n": None,
}
VERSION_1 = {
    ("-1\n", "100000\n"): None,
    ("200000\n", "100000\n"): 2,
    ("25000\n", "100000\n"): 0.25,
    ("100000\n", "0\n"): None,
    ("", ""): None,
}


def write_version_1(root, quota, period):
    (root / "cpu").mkdir()
    (root / "cpu/cpu.cfs_quota_us").write_text(quota)
    (root / "cpu/cpu.cfs_period_us").write_text(period)


@pytest.mark.parametrize("text", VERSION_2)
def test_quota_of_version_2(tmp_path, text):
    (tmp_path / "cpu.max").write_text(text)
    assert _cgroup_quota(tmp_path) == VERSION_2[text]


@pytest.mark.parametrize("texts", VERSION_1)
def test_quota_of_version_1(tmp_path, texts):
    write_version_1(tmp_path, *texts)
    assert _cgroup_quota(tmp_path) == VERSION_1[texts]


def test_quota_of_both_or_none(tmp_path):
    assert _cgroup_quota(tmp_path) is None
    write_version_1(tmp_path, "300000", "100000")
    (tmp_path / "cpu.max").write_text("100000 100000")
    assert _cgroup_quota(tmp_path) == 1
    (tmp_path / "cpu.max").write_text("what is this\n")
    assert _cgroup_quota(tmp_path) == 3


@pytest.mark.parametrize(
    ("quota", "processors"), [(None, 4), (0.5, 1), (1, 1), (2.5, 2), (4, 4), (64, 4)]
)
def test_processors_are_limited_by_the_quota(monkeypatch, quota, processors):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {1, 3, 5, 6}, raising=False)
    monkeypatch.setattr(module, "_cgroup_quota", lambda _: quota)
    assert available_processors() == processors


def test_a_system_without_affinity(monkeypatch):
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr(module, "_cgroup_quota", lambda _: None)
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert available_processors() == 6
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert available_processors() == 1


def test_the_number_counts_when_evaluating(counting):
    x = xp.ones((2, 2), device="counting")
    with xp.num_threads(2):
        product = x @ x
    with xp.num_threads(3):
        xp.evaluate(product)
        assert counting.n_threads == 3
        with xp.num_threads(5):
            xp.evaluate(x @ x)
        assert counting.n_threads == 5


SHAPES = [((130, 257), (257, 190)), ((1, 4000), (4000, 300)), ((3, 64, 65), (65, 66))]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16", "int32", "uint64"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_products_are_the_same_with_more_threads(dtype, shapes):
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape) * 9 for shape in shapes)
    a, b = (xp.asarray(x.astype(dtype), device="cpu") for x in (a, b))
    assert_same_bytes(lambda: a @ b)


def test_outer_products_are_the_same_with_more_threads():
    a, b = (xp.asarray(np.random.default_rng(n).random(n), device="cpu") for n in (400, 777))
    assert_same_bytes(lambda: xp.linalg.outer(a, b))


@pytest.mark.parametrize("columns", [1, 40])
def test_quantized_products_are_the_same_with_more_threads(columns):
    rng = np.random.default_rng(2)
    w = xp.asarray(rng.standard_normal((300, 512)).astype("f"), device="cpu")
    w = xp.quantize(w, xp.q4_0)
    x = xp.asarray(rng.standard_normal((512, columns)).astype("f"), device="cpu")
    assert_same_bytes(lambda: w @ x)


def assert_same_bytes(product):
    results = []
    for n in (1, 2):
        with xp.num_threads(n):
            results.append(np.asarray(product()))
    assert np.any(results[0])
    assert results[0].tobytes() == results[1].tobytes()


def test_available_processors_without_a_quota(monkeypatch):
    monkeypatch.setattr(module, "_cgroup_quota", lambda root: None)
    assert available_processors() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    assert available_processors() == os.cpu_count()
