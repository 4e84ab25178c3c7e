"""Whatever is recorded, shared, written or dropped, values are as if computed at the call."""

import threading

import numpy as np
import pytest
from random_programs import MismatchError, Program

import ggarray as xp
from ggarray import _storage
from ggarray._graph.node import pending
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
