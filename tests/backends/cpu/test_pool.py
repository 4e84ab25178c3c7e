"""The thread pool: what threads, forks and interruptions must not change."""

import os
import signal
import threading

import numpy as np
import pytest
from scripts import ends_well

from ggarray.backends.cpu import kernels


@pytest.fixture(scope="module")
def operands():
    rng = np.random.default_rng(0)
    return rng.standard_normal((300, 400)), rng.standard_normal((400, 500))


def product(operands, n_threads):
    a, b = operands
    out = np.empty((a.shape[0], b.shape[1]))
    assert kernels.matmul(a, b, out, n_threads) == 0
    return out


def test_more_threads_than_the_machine_has(operands):
    assert product(operands, 40).tobytes() == product(operands, 1).tobytes()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_again(operands):
    expected = product(operands, 4).tobytes()
    child = os.fork()
    if child == 0:
        same = product(operands, 4).tobytes() == expected
        os._exit(0 if same else 1)
    assert ends_well(child)
    assert product(operands, 4).tobytes() == expected


def test_calls_at_the_same_time(operands):
    expected = product(operands, 1).tobytes()
    results = []

    def work():
        for _ in range(10):
            results.append(product(operands, 3).tobytes() == expected)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 50


def test_abort_ends_a_computation_early(operands):
    a, b = operands
    out = np.empty((300, 500))
    kernels.set_abort(True)
    try:
        for n_threads in (1, 2):
            assert kernels.matmul(a, b, out, n_threads) == 3
            assert kernels.out_prod(a[0], b[0], np.empty((400, 500)), n_threads) == 3
    finally:
        kernels.set_abort(False)
    np.testing.assert_allclose(product(operands, 2), a @ b)


def test_abort_from_another_thread():
    a = np.ones((4000, 4000), np.int64)
    statuses = []
    out = np.empty_like(a)
    thread = threading.Thread(target=lambda: statuses.append(kernels.matmul(a, a, out, 2)))
    thread.start()
    kernels.set_abort(True)
    thread.join()
    kernels.set_abort(False)
    assert statuses == [3]


def test_workers_take_no_signals(operands):
    product(operands, 4)
    got = []
    old = signal.signal(signal.SIGUSR1, lambda *_: got.append(threading.get_ident()))
    try:
        for _ in range(20):
            os.kill(os.getpid(), signal.SIGUSR1)
            product(operands, 4)
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert got
    assert set(got) == {threading.main_thread().ident}
