"""Plans compute what graphs compute, again and again, and keep nothing."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from cpu_graphs import check, every_kind, memory_of, run_as_plan, same_layout

from ggarray.backends.cpu import kernels, plans, registry
from ggarray.interface import BackendError, Flag, Kernel, Op, Plans, Status


@pytest.fixture
def backend():
    return registry.devices()[0].init_backend()


def test_the_stream_has_plans(backend):
    assert isinstance(backend, Plans)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_plan_computes_every_kind_of_node(backend, n_threads):
    cases = every_kind(1)
    backend.n_threads = n_threads
    assert run_as_plan(backend, [case.kernel for case in cases]) is Status.SUCCESS
    for case in cases:
        check(case, case.kernel.out)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_updated_plan_works_in_the_new_memory_only(backend, n_threads):
    first, second, third = every_kind(1), every_kind(2), every_kind(3)
    plan = backend.graph_plan_create([case.kernel for case in first])
    before = [memory_of(value).tobytes() for value in values_of(first)]
    backend.n_threads = n_threads
    for cases in (second, third, second):
        moved = [same_layout(case.kernel) for case in cases]
        backend.graph_plan_update(plan, moved)
        assert backend.graph_plan_compute(plan) is Status.SUCCESS
        for case, kernel in zip(cases, moved, strict=True):
            check(case, kernel.out)
    assert [memory_of(value).tobytes() for value in values_of(first)] == before


def values_of(cases):
    for case in cases:
        yield from (*case.kernel.operands, case.kernel.out)


def test_surroundings_stay_as_they_are(backend):
    whole = np.full((20, 40), 7.0)
    a, b = np.ones((5, 6)), np.ones((6, 9))
    kernel = Kernel(Op.MATMUL, (a, b), whole[3:8, 10:19])
    assert run_as_plan(backend, [kernel]) is Status.SUCCESS
    inside = np.zeros(whole.shape, bool)
    inside[3:8, 10:19] = True
    assert (whole[inside] == 6).all()
    assert (whole[~inside] == 7).all()


def chain(length, start):
    """Return a graph in which each product reads the one before, and its last result."""
    turn = np.array([[0, -1], [1, 0]])
    outs = [start, *(np.empty_like(start) for _ in range(length))]
    graph = [Kernel(Op.MATMUL, (turn, x), out) for x, out in itertools.pairwise(outs)]
    return graph, outs[-1]


def test_nodes_see_the_results_before_them(backend):
    graph, last = chain(101, np.array([[1], [0]]))
    plan = backend.graph_plan_create(graph)
    assert backend.graph_plan_compute(plan) is Status.SUCCESS
    assert last.tolist() == [[0], [1]]
    graph, last = chain(101, np.array([[0], [5]]))
    backend.graph_plan_update(plan, graph)
    assert backend.graph_plan_compute(plan) is Status.SUCCESS
    assert last.tolist() == [[-5], [0]]


def test_an_empty_plan(backend):
    assert run_as_plan(backend, []) is Status.SUCCESS


# ---- memory -----------------------------------------------------------------------------------


def watched(*, dtype="float32"):
    """Return a kernel of which nobody else holds a part, and references to its arrays."""
    a = np.full((4, 6), 2, dtype)[::2]  # strided, so that only an address is taken of it
    b, out = np.full((6, 3), 3, dtype), np.empty((2, 3), dtype)
    return Kernel(Op.MATMUL, (a, b), out), [weakref.ref(each) for each in (a, b, out)]


def are_alive(references):
    return [reference() is not None for reference in references]


def test_a_plan_keeps_its_memory_from_update_to_compute_and_no_longer(backend):
    kernel, first = watched()
    plan = backend.graph_plan_create([kernel])
    del kernel
    assert are_alive(first) == [True] * 3
    kernel, second = watched()
    backend.graph_plan_update(plan, [kernel])
    del kernel
    assert are_alive(first) == [False] * 3
    assert are_alive(second) == [True] * 3
    out = second[-1]()
    assert backend.graph_plan_compute(plan) is Status.SUCCESS
    assert out.tolist() == [[36] * 3] * 2
    del out
    assert are_alive(second) == [False] * 3


def test_a_plan_that_is_freed_keeps_nothing(backend):
    kernel, references = watched()
    plan = backend.graph_plan_create([kernel])
    del kernel
    backend.graph_plan_free(plan)
    assert are_alive(references) == [False] * 3


def stop(_):
    return True


def fail(_):
    raise LookupError


@pytest.mark.parametrize(("callback", "error"), [(stop, None), (fail, LookupError)])
def test_a_plan_that_ends_early_keeps_nothing(backend, callback, error):
    kernel, references = watched()
    plan = backend.graph_plan_create([kernel])
    del kernel
    registry.procedures()["set_abort_callback"](backend, callback)
    if error is None:
        assert backend.graph_plan_compute(plan) is Status.ABORTED
    else:
        with pytest.raises(error):
            backend.graph_plan_compute(plan)
    assert are_alive(references) == [False] * 3


def test_decoded_blocks_are_not_kept(backend, monkeypatch):
    made = []

    class Watched(np.ndarray):
        pass

    def empty(shape, dtype):
        array = np.ndarray.__new__(Watched, shape, dtype)
        made.append(weakref.ref(array))
        return array

    cases = [case for case in every_kind(4) if len(case.kernel.operands[0].shape) == 3]
    plan = backend.graph_plan_create([case.kernel for case in cases])
    monkeypatch.setattr(plans.np, "empty", empty)
    backend.graph_plan_update(plan, [case.kernel for case in cases])
    assert made
    assert all(are_alive(made))
    assert backend.graph_plan_compute(plan) is Status.SUCCESS
    assert not any(are_alive(made))


def test_a_plan_computes_again_while_its_memory_is_there(backend):
    cases = every_kind(7)
    plan = backend.graph_plan_create([case.kernel for case in cases])
    for _ in range(2):
        for case in cases:
            if case.kernel.op is Op.MATMUL:
                case.kernel.out.fill(99)
        assert backend.graph_plan_compute(plan) is Status.SUCCESS
        for case in cases:
            check(case, case.kernel.out)


@pytest.mark.parametrize("missing", range(3))
def test_a_plan_whose_memory_is_gone_is_to_be_updated(backend, missing):
    kernel, references = watched()
    plan = backend.graph_plan_create([kernel])
    assert backend.graph_plan_compute(plan) is Status.SUCCESS
    kept = [each() for each in references]
    kept[missing] = None
    del kernel
    with pytest.raises(BackendError, match="memory of a plan is gone"):
        backend.graph_plan_compute(plan)
    kernel, _ = watched()
    backend.graph_plan_update(plan, [kernel])
    assert backend.graph_plan_compute(plan) is Status.SUCCESS
    assert (kernel.out == 36).all()


def test_a_graph_of_another_length_is_refused(backend):
    kernel, _ = watched()
    plan = backend.graph_plan_create([kernel])
    for graph in ([], [kernel, kernel]):
        with pytest.raises(ValueError, match="3 operands and results"):
            backend.graph_plan_update(plan, graph)


# ---- flags ------------------------------------------------------------------------------------


def test_an_update_may_change_which_nodes_are_computed(backend):
    x = np.ones((2, 2))
    graph = [Kernel(Op.MATMUL, (x, x), np.zeros((2, 2))) for _ in range(3)]
    plan = backend.graph_plan_create(graph)
    for computed in ([True, False, True], [False, True, False], [True, True, True]):
        for kernel, each in zip(graph, computed, strict=True):
            kernel.out.fill(0)
            kernel.flags = (Flag.COMPUTE if each else Flag(0)) | Flag.OUTPUT
        backend.graph_plan_update(plan, graph)
        assert backend.graph_plan_compute(plan) is Status.SUCCESS
        assert [bool(kernel.out.all()) for kernel in graph] == computed


def test_every_kind_of_node_may_be_passed_over(backend):
    cases = every_kind(5)
    graph = [case.kernel for case in cases]
    for kernel in graph:
        kernel.flags = Flag.INPUT
    before = [memory_of(kernel.out).tobytes() for kernel in graph]
    assert run_as_plan(backend, graph) is Status.SUCCESS
    assert [memory_of(kernel.out).tobytes() for kernel in graph] == before


# ---- interruptions and threads ----------------------------------------------------------------


def test_abort_ends_a_plan_before_its_first_node(backend):
    kernel, _ = watched()
    kernel.out.fill(7)
    plan = backend.graph_plan_create([kernel])
    kernels.set_abort(True)
    try:
        assert backend.graph_plan_compute(plan) is Status.ABORTED
    finally:
        kernels.set_abort(False)
    assert (kernel.out == 7).all()


def long_graph(n_nodes):
    """Return a graph of nodes of some milliseconds, whose results are all 0 at first."""
    a = np.ones((200, 200), np.int64)
    return [Kernel(Op.MATMUL, (a, a), np.zeros_like(a)) for _ in range(n_nodes)]


def test_abort_from_another_thread_ends_a_plan_between_nodes(backend):
    graph = long_graph(2000)
    plan = backend.graph_plan_create(graph)
    statuses = []
    thread = threading.Thread(target=lambda: statuses.append(backend.graph_plan_compute(plan)))
    thread.start()
    while not graph[0].out.all():
        pass
    kernels.set_abort(True)
    thread.join()
    kernels.set_abort(False)
    assert statuses == [Status.ABORTED]
    assert not graph[-1].out.any()


def test_signals_are_seen_while_a_long_plan_computes(backend):
    graph = long_graph(2000)
    plan = backend.graph_plan_create(graph)

    def interrupt(*_):
        raise KeyboardInterrupt

    def send():
        while not graph[0].out.all():
            pass
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    old = signal.signal(signal.SIGUSR1, interrupt)
    thread = threading.Thread(target=send)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            backend.graph_plan_compute(plan)
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, old)
    assert not graph[-1].out.any()


def test_a_plan_that_returns_after_every_node_computes_all(backend, monkeypatch):
    monkeypatch.setattr(plans, "_CALL_LIMIT", 0)
    graph, last = chain(7, np.array([[1], [0]]))
    assert run_as_plan(backend, graph) is Status.SUCCESS
    assert last.tolist() == [[0], [-1]]


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted there")
def test_a_plan_has_as_many_threads_as_its_stream_when_it_computes(backend):
    pool = registry.procedures()["threadpool_new"](8)
    registry.procedures()["set_threadpool"](backend, pool)
    graph = long_graph(1)
    plan = backend.graph_plan_create(graph)
    before = len(os.listdir("/proc/self/task"))
    for n_threads in (2, 5):
        backend.n_threads = n_threads
        backend.graph_plan_update(plan, graph)
        assert backend.graph_plan_compute(plan) is Status.SUCCESS
        assert len(os.listdir("/proc/self/task")) == before + n_threads - 1


# ---- first use --------------------------------------------------------------------------------

FIRST_USE = """
import numpy as np
from ggarray.backends.cpu import registry
from ggarray.interface import Kernel, Op
x = np.full((4, 4), 2.0)
kernel = Kernel(Op.MATMUL, (x, x), np.empty((4, 4)))
backend = registry.devices()[0].init_backend()
plan = backend.graph_plan_create([kernel])
status = backend.graph_plan_compute(plan)
print(int(status), kernel.out.sum(), registry.procedures()["get_features"]()["isa"])
"""


def first_use(isa):
    return subprocess.run(
        [sys.executable, "-c", FIRST_USE],
        env={**os.environ, "GGARRAY_CPU_ISA": isa},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("isa", kernels.features()["usable"])
def test_a_plan_may_be_what_is_used_first(isa):
    done = first_use(isa)
    assert done.stdout.split() == ["0", "256.0", isa], done.stderr


def test_an_unknown_instruction_set_is_told_when_a_plan_is_made():
    done = first_use("mmx")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ValueError: GGARRAY_CPU_ISA is 'mmx'")
