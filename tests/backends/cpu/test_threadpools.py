"""Thread pools of a stream's own: values, numbers of threads, life and end."""

import gc
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from cpu_graphs import run_as_graph, run_as_plan
from scripts import ends_well

from ggarray.backends.cpu import registry
from ggarray.interface import BackendError, Kernel, Op, Status

TASKS = "/proc/self/task"
counts_threads = pytest.mark.skipif(not os.path.isdir(TASKS), reason="threads are counted there")
both_ways = pytest.mark.parametrize("run", [run_as_graph, run_as_plan])

procedures = registry.procedures()
threadpool_new = procedures["threadpool_new"]
threadpool_free = procedures["threadpool_free"]
set_threadpool = procedures["set_threadpool"]
set_abort_callback = procedures["set_abort_callback"]


@pytest.fixture
def backend():
    backend = registry.devices()[0].init_backend()
    yield backend
    set_threadpool(backend, None)


def integers(seed, shape):
    return np.random.default_rng(seed).integers(-9, 10, shape)


A, B = integers(1, (300, 400)), integers(2, (400, 500))
EXPECTED = np.einsum("ik,kj->ij", A, B)


def is_right(run, backend, n_threads):
    """Compute a product that is worth as many threads as there may be."""
    backend.n_threads = n_threads
    out = np.zeros((300, 500), np.int64)
    status = run(backend, [Kernel(Op.MATMUL, (A, B), out)])
    return status is Status.SUCCESS and np.array_equal(out, EXPECTED)


def n_tasks():
    return len(os.listdir(TASKS))


@both_ways
def test_results_are_those_of_the_shared_threads(backend, run):
    pool = threadpool_new(3)
    set_threadpool(backend, pool)
    assert is_right(run, backend, 3)
    set_threadpool(backend, None)
    threadpool_free(pool)
    assert is_right(run, backend, 3)


@both_ways
@counts_threads
def test_a_pool_starts_what_is_asked_for_within_its_limit_and_ends_it(backend, run):
    before = n_tasks()
    pool = threadpool_new(4)
    set_threadpool(backend, pool)
    assert n_tasks() == before
    for n_threads, workers in ((1, 0), (2, 1), (3, 2), (40, 3), (1, 3)):
        assert is_right(run, backend, n_threads)
        assert n_tasks() == before + workers
    set_threadpool(backend, None)
    threadpool_free(pool)
    assert n_tasks() == before


@counts_threads
def test_a_pool_of_one_thread_has_no_workers(backend):
    before = n_tasks()
    set_threadpool(backend, threadpool_new(1))
    assert is_right(run_as_graph, backend, 8)
    assert n_tasks() == before


@counts_threads
def test_a_pool_that_nobody_knows_any_more_ends_its_threads():
    before = n_tasks()
    backend = registry.devices()[0].init_backend()
    set_threadpool(backend, threadpool_new(3))
    assert is_right(run_as_graph, backend, 3)
    assert n_tasks() == before + 2
    del backend
    gc.collect()
    assert n_tasks() == before


def test_other_streams_compute_elsewhere(backend):
    other = registry.devices()[0].init_backend()
    pool = threadpool_new(2)
    set_threadpool(backend, pool)
    assert is_right(run_as_graph, backend, 2)
    set_threadpool(backend, None)
    assert is_right(run_as_graph, other, 2)
    assert pool.paused  # a computation would have resumed it


# ---- pause and resume -------------------------------------------------------------------------


def test_the_pool_that_a_stream_leaves_is_paused_and_the_new_one_resumed(backend):
    first, second = threadpool_new(2), threadpool_new(2)
    set_threadpool(backend, first)
    assert is_right(run_as_graph, backend, 2)
    assert not first.paused
    set_threadpool(backend, second)
    assert (first.paused, second.paused) == (True, False)
    set_threadpool(backend, second)
    assert not second.paused
    set_threadpool(backend, first)
    assert (first.paused, second.paused) == (False, True)
    assert is_right(run_as_graph, backend, 2)
    set_threadpool(backend, None)
    assert (first.paused, second.paused) == (True, True)


def test_a_computation_resumes_a_paused_pool(backend):
    other = registry.devices()[0].init_backend()
    pool = threadpool_new(3)
    set_threadpool(other, pool)
    set_threadpool(backend, pool)
    set_threadpool(other, None)
    assert pool.paused
    for _ in range(20):
        assert is_right(run_as_graph, backend, 3)
    assert not pool.paused


def state_of_tasks():
    states = {}
    for task in os.listdir(TASKS):
        with open(f"{TASKS}/{task}/stat") as file:
            states[task] = file.read().rpartition(")")[2].split()[0]
    return states


@counts_threads
def test_the_workers_of_a_paused_pool_sleep(backend):
    before = set(state_of_tasks())
    pool = threadpool_new(4)
    set_threadpool(backend, pool)
    assert is_right(run_as_graph, backend, 4)
    set_threadpool(backend, None)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        workers = {task: state for task, state in state_of_tasks().items() if task not in before}
        if set(workers.values()) == {"S"}:
            break
    assert sorted(workers.values()) == ["S"] * 3


# ---- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [0, -1, 1025, 1 << 40])
def test_pools_that_there_cannot_be(n_threads):
    with pytest.raises(ValueError, match="1 to 1024 threads"):
        threadpool_new(n_threads)


def test_a_pool_that_a_stream_uses_cannot_be_freed(backend):
    other = registry.devices()[0].init_backend()
    pool = threadpool_new(2)
    for stream in (backend, other):
        set_threadpool(stream, pool)
    for stream in (backend, other):
        with pytest.raises(BackendError, match="a stream uses this thread pool of 2"):
            threadpool_free(pool)
        assert is_right(run_as_graph, stream, 2)
        set_threadpool(stream, None)
    threadpool_free(pool)


def test_a_stream_that_is_gone_uses_no_pool():
    pool = threadpool_new(2)
    backend = registry.devices()[0].init_backend()
    set_threadpool(backend, pool)
    del backend
    gc.collect()
    threadpool_free(pool)


@both_ways
def test_a_pool_cannot_be_freed_while_a_stream_that_has_left_it_computes(backend, run):
    pool = threadpool_new(2)
    set_threadpool(backend, pool)
    errors = []

    def callback(_):
        set_threadpool(backend, None)
        try:
            threadpool_free(pool)
        except BackendError as error:
            errors.append(str(error))
        return False

    set_abort_callback(backend, callback)
    assert is_right(run, backend, 2)
    assert len(errors) == 1
    threadpool_free(pool)


def test_a_freed_pool_cannot_be_used(backend):
    kept, freed = threadpool_new(2), threadpool_new(2)
    set_threadpool(backend, kept)
    threadpool_free(freed)
    assert "freed" in repr(freed)
    with pytest.raises(BackendError, match="has been freed"):
        threadpool_free(freed)
    with pytest.raises(BackendError, match="has been freed"):
        set_threadpool(backend, freed)
    with pytest.raises(BackendError, match="has been freed"):
        _ = freed.paused
    with pytest.raises(BackendError, match="a stream uses"):
        threadpool_free(kept)
    assert is_right(run_as_graph, backend, 2)


# ---- many at once, and forks ------------------------------------------------------------------


def test_streams_share_a_pool_and_pools_work_at_the_same_time():
    pools = [threadpool_new(2), threadpool_new(3), None]
    results = []

    def work(pool):
        backend = registry.devices()[0].init_backend()
        set_threadpool(backend, pool)
        results.extend(is_right(run_as_plan, backend, 3) for _ in range(5))
        set_threadpool(backend, None)

    threads = [threading.Thread(target=work, args=(pool,)) for pool in pools * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 30
    for pool in pools[:2]:
        threadpool_free(pool)


@both_ways
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_the_pool_of_its_stream_again(backend, run):
    pool, idle = threadpool_new(3), threadpool_new(3)
    for each in (idle, pool):
        set_threadpool(backend, each)
        assert is_right(run, backend, 3)
    child = os.fork()
    if child == 0:
        right = False
        try:
            before = n_tasks() if os.path.isdir(TASKS) else None
            right = is_right(run, backend, 3)
            right &= before is None or (before, n_tasks()) == (1, 3)
            set_threadpool(backend, None)
            threadpool_free(pool)
            threadpool_free(idle)
            right &= before is None or n_tasks() == 1
        finally:
            os._exit(0 if right else 1)
    assert ends_well(child)
    assert is_right(run, backend, 3)
    set_threadpool(backend, None)
    threadpool_free(pool)
    threadpool_free(idle)


def test_a_process_ends_with_pools_in_use():
    code = (
        "import numpy as np; from ggarray.backends.cpu import registry;"
        "from ggarray.interface import Kernel, Op; x = np.ones((400, 400));"
        "p = registry.procedures(); s = registry.devices()[0].init_backend();"
        "p['set_threadpool'](s, p['threadpool_new'](3)); s.n_threads = 3;"
        "s.graph_compute([Kernel(Op.MATMUL, (x, x), np.empty((400, 400)))])"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
