"""Whatever is recorded, shared, written or dropped, values are as if computed at the call."""

import threading

import numpy as np
import pytest
from doubles import HELD, others
from random_programs import MismatchError, Program

import ggarray as xp
from ggarray import _storage
from ggarray._graph import execute, plan_cache, schedule, split
from ggarray._graph.node import pending
from ggarray._runtime import plugins
from ggarray.interface import Status


@pytest.mark.parametrize("device", ["cpu", "blas", "counting"])
@pytest.mark.parametrize("block", range(4))
def test_random_integer_programs(device, block):
    for seed in range(block * 100, (block + 1) * 100):
        Program(seed, device).run(60)


@pytest.mark.parametrize("device", ["cpu", "blas"])
def test_random_float_programs(device):
    for seed in range(1000, 1100):
        with np.errstate(all="ignore"):
            Program(seed, device, np.float64).run(25)


def test_random_programs_with_small_limits(device):
    with xp.options(max_pending_nodes=3):
        for seed in range(2000, 2050):
            Program(seed, device).run(60)


@pytest.fixture
def planned(monkeypatch):
    """Every evaluation has a plan, in which small values are placed, too."""
    plan_cache.drop_all()
    monkeypatch.setattr(execute, "_alone", lambda order: None)
    for module in (schedule, split):
        monkeypatch.setattr(module, "WORTH_PLACING", 1)
    yield
    plan_cache.drop_all()


OTHERS = (*HELD, "planning", "ordering")


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("fuse", [True, False])
def test_random_programs_that_are_planned(device, fuse):
    with xp.options(fuse=fuse):
        for seed in range(6000, 6050):
            Program(seed, device).run(60)
        for seed in range(6050, 6080):
            with np.errstate(all="ignore"):
                Program(seed, device, np.float64).run(25)


@pytest.mark.parametrize("name", OTHERS)
def test_random_programs_on_other_devices(name):
    others()
    for seed in range(7000, 7100):
        Program(seed, name).run(60)


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("name", OTHERS)
def test_random_programs_that_are_planned_on_other_devices(name, fuse):
    others()
    with xp.options(fuse=fuse):
        for seed in range(7100, 7150):
            Program(seed, name).run(60)
        for seed in range(7150, 7160):
            with np.errstate(all="ignore"):
                Program(seed, name, np.float64).run(25)


@pytest.mark.parametrize("name", [*OTHERS, "counting"])
def test_random_programs_with_handlers(name):
    others()
    backend = plugins.stream(plugins.backend_devices()[name])
    for seed in range(7200, 7300):
        Program(seed, name).run_interrupted(60, backend)


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("name", OTHERS)
def test_random_programs_that_are_planned_with_handlers(name):
    others()
    backend = plugins.stream(plugins.backend_devices()[name])
    for seed in range(7300, 7400):
        Program(seed, name).run_interrupted(60, backend)


@pytest.mark.parametrize("name", ["late", "thread", "late host", "far"])
def test_random_programs_on_other_devices_with_failures(name):
    backend = others()[name].backend
    rng = np.random.default_rng(6)
    for seed in range(7400, 7450):
        backend.outcomes[:] = [
            Status.FAILED if rng.random() < 0.2 else Status.SUCCESS for _ in range(40)
        ]
        Program(seed, name).run_recording_only(40)
        backend.outcomes.clear()


def test_random_eager_programs(device):
    with xp.options(lazy=False):
        for seed in range(3000, 3050):
            Program(seed, device).run(60)


def test_random_programs_with_failures(failing):
    rng = np.random.default_rng(5)
    for seed in range(4000, 4060):
        failing.outcomes[:] = [
            Status.FAILED if rng.random() < 0.2 else Status.SUCCESS for _ in range(40)
        ]
        Program(seed, "failing").run_recording_only(40)
        failing.outcomes.clear()


def test_random_programs_in_threads(device):
    failures = []

    def work(first):
        try:
            for seed in range(first, first + 40):
                Program(seed, device).run(50)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(5000 + 100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_threads_read_the_same_pending_arrays(device, counting):
    a = xp.asarray(np.arange(16).reshape(4, 4), device="counting")
    chain = [a]
    for _ in range(30):
        chain.append(chain[-1] @ a % 7 if len(chain) % 10 == 0 else chain[-1] @ a)
    expected = [np.arange(16).reshape(4, 4)]
    for _ in range(30):
        product = expected[-1] @ expected[0]
        expected.append(product % 7 if len(expected) % 10 == 0 else product)
    wrong = []

    def read(order):
        for i in order:
            if not np.array_equal(np.array(chain[i]), expected[i]):
                wrong.append(i)

    orders = [range(31), range(30, -1, -1), range(0, 31, 2), range(1, 31, 3)]
    threads = [threading.Thread(target=read, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(counting.computed) == 30


def _no_readers(monkeypatch):
    monkeypatch.setattr(_storage.Storage, "pending_readers", lambda self: [])


def _no_writer(monkeypatch):
    def forgetful(self, node):
        self.writer = node
        _storage.writers.clear()

    monkeypatch.setattr(_storage.Storage, "set_writer", forgetful)


def _no_exports(monkeypatch):
    monkeypatch.setattr(_storage.Storage, "shared", property(lambda self: False))


@pytest.mark.parametrize("fault", [_no_readers, _no_writer, _no_exports])
def test_planted_faults_are_found(monkeypatch, fault):
    fault(monkeypatch)
    found = 0
    for seed in range(200):
        try:
            Program(seed, "cpu").run(60)
        except MismatchError:
            found += 1
        except (LookupError, TypeError, ValueError):  # the books are so wrong that evaluation trips
            continue
    _storage.writers.clear()
    pending.clear()
    assert found


@pytest.fixture
def x(device):
    return xp.asarray([[1.0, 2.0], [3.0, 4.0]], device=device)


SQUARE = np.array([[7.0, 10.0], [15.0, 22.0]])


def test_update_through_a_view_of_an_evaluated_array(x):
    for read in (
        np.asarray,
        lambda p: np.asarray(p @ x) @ np.linalg.inv(np.asarray(x)),
        lambda p: np.asarray(p.T).T,
    ):
        product = x @ x
        view = product.T
        xp.evaluate(product, view)
        view += x @ x
        assert xp.is_pending(product)
        np.testing.assert_allclose(read(product), SQUARE + SQUARE.T)


def test_write_after_an_update_through_a_view(x):
    product = x @ x
    view = product[0]
    xp.evaluate(product, view)
    view += (x @ x)[0]
    product[0, 0] = 0.0
    np.testing.assert_array_equal(np.asarray(product), [[0.0, 20.0], [15.0, 22.0]])


def test_broadcast_of_a_pending_array_is_read_only(x):
    product = x @ x
    for view in (xp.broadcast_to(product, (3, 2, 2)), xp.broadcast_to(product, (2, 2))[0]):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 99.0
        with pytest.raises(ValueError, match="read-only"):
            view += 1.0
    np.testing.assert_array_equal(np.asarray(product), SQUARE)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: -p.T,
        lambda p: 2.0 * p.T,
        lambda p: p.T + p.T,
        lambda p: xp.astype(p.T, xp.float32),
        lambda p: p + p,
    ],
)
def test_reshape_is_a_view_in_the_same_cases(x, make):
    results = []
    for lazy in (True, False):
        with xp.options(lazy=lazy):
            result = make(x @ x)
            flat = xp.reshape(result, (-1,))
            flat[1] = -1000.0
            results.append(np.array(result))
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("settings", [{"lazy": False}, {"max_pending_nodes": 1}])
def test_failed_update_may_be_tried_again(failing, settings):
    a = xp.ones((2, 2), device="failing")
    total = xp.zeros((2, 2), device="failing")
    product = a @ a
    failing.outcomes[:] = [Status.FAILED]
    with xp.options(**settings):
        with pytest.raises(xp.BackendError):
            total += product
        total += product
    np.testing.assert_array_equal(np.asarray(total), np.full((2, 2), 2.0))


def test_reading_within_an_evaluation(counting, monkeypatch):
    a = xp.ones((2, 2), device="counting")
    total = xp.zeros((2, 2), device="counting")
    chain = (a @ a) @ a
    total += chain
    compute = type(counting).graph_compute
    seen = []

    def with_a_signal(self, graph):
        if not seen:
            seen.append(None)
            seen[0] = float(total[0, 0])
        return compute(self, graph)

    monkeypatch.setattr(type(counting), "graph_compute", with_a_signal)
    assert float(chain[1, 1]) == 4.0
    assert seen == [4.0]
    np.testing.assert_array_equal(np.asarray(total), np.full((2, 2), 4.0))


def test_recording_on_a_view_within_an_evaluation(counting, monkeypatch):
    a = xp.ones((2, 2), device="counting")
    view = (a @ a).T
    compute = type(counting).graph_compute
    parts = []

    def with_a_reader(self, graph):
        parts.append(view[:1])
        return compute(self, graph)

    monkeypatch.setattr(type(counting), "graph_compute", with_a_reader)
    xp.evaluate(view)
    np.testing.assert_array_equal(np.asarray(parts[0]), np.full((1, 2), 2.0))


def test_pending_halves_mix_as_computed_ones_do(device):
    halves = xp.ones((2, 2), dtype=xp.bfloat16, device=device)
    integers = xp.ones((2, 2), dtype=xp.int32, device=device)
    pending = (integers @ integers) + halves, (halves @ halves) * 1.7
    with xp.options(lazy=False):
        computed = (integers @ integers) + halves, (halves @ halves) * 1.7
    for one, other in zip(pending, computed, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
