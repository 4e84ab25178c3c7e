"""Profiles: which events they have, whose they are, and how they are written down."""

import asyncio
import contextvars
import dataclasses
import io
import json
import math
import os
import signal
import threading
import time
import weakref
from itertools import groupby, pairwise

import numpy as np
import pytest

import ggarray as xp
from ggarray._runtime import profile as module
from ggarray._runtime.profile import Event
from ggarray.interface import Op, Status


@pytest.fixture(autouse=True)
def none_left():
    """No profile stays active after its block."""
    yield
    assert not module.profiles
    assert module._here.get() == ()


def ones(*shape, dtype=xp.float64, device="counting"):
    return xp.ones(shape, dtype=dtype, device=device)


def q8_0(*shape):
    return xp.quantize(ones(*shape, dtype=xp.float32, device="cpu"), xp.q8_0)


def ops(profile):
    return [event.op.value for event in profile]


def by_step(profile):
    """The operations of one plan; views are made when the product after them is."""
    return {event.step: event.op.value for event in profile}


def in_thread(work, *args):
    """Run in a thread of its own, whose context is new."""
    thread = threading.Thread(target=work, args=args, name="worker")
    thread.start()
    thread.join()


# What one event says. For each product: op, bytes read, bytes written, multiply-adds.
PRODUCTS = {
    "matrices": (lambda: ones(2, 3) @ ones(3, 5), "matmul", 8 * (6 + 15), 8 * 10, 2 * 3 * 5),
    "vectors": (lambda: ones(7) @ ones(7), "matmul", 8 * 14, 8, 7),
    "matrix and vector": (lambda: ones(2, 3) @ ones(3), "matmul", 8 * (6 + 3), 8 * 2, 2 * 3),
    "batches": (
        lambda: ones(4, 2, 3) @ ones(4, 3, 5),
        "matmul",
        8 * 4 * (6 + 15),
        8 * 4 * 10,
        4 * 2 * 3 * 5,
    ),
    "broadcast batches": (
        lambda: ones(4, 1, 2, 3) @ ones(6, 3, 5),
        "matmul",
        8 * (4 * 6 + 6 * 15),
        8 * 24 * 10,
        24 * 2 * 3 * 5,
    ),
    "repeated rows": (
        lambda: xp.broadcast_to(ones(3), (100, 3)) @ ones(3, 5),
        "matmul",
        8 * (3 + 15),
        8 * 500,
        1500,
    ),
    "empty": (lambda: ones(0, 3) @ ones(3, 5), "matmul", 8 * 15, 0, 0),
    "empty inside": (lambda: ones(2, 0) @ ones(0, 5), "matmul", 0, 8 * 10, 0),
    "outer": (lambda: xp.linalg.outer(ones(3), ones(5)), "out_prod", 8 * (3 + 5), 8 * 15, 15),
    "complex": (
        lambda: ones(2, 3, dtype=xp.complex64) @ ones(3, 5, dtype=xp.complex64),
        "matmul",
        8 * (6 + 15),
        8 * 10,
        30,
    ),
    "mixed": (
        lambda: ones(2, 3, dtype=xp.float32) @ ones(3, 5),
        "matmul",
        4 * 6 + 8 * 15,
        8 * 10,
        30,
    ),
    "quantized": (
        lambda: ones(2, 64, dtype=xp.float32, device="cpu") @ q8_0(5, 64).mT,
        "matmul",
        4 * 128 + 5 * 2 * 34,  # a block of 32 is 34 bytes
        4 * 10,
        2 * 64 * 5,
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_product(name):
    make, op, bytes_read, bytes_written, multiply_adds = PRODUCTS[name]
    product = make()
    operands = product._pending().operands
    with xp.profile() as p:
        xp.evaluate(product)
    (event,) = p
    assert event.op == op
    assert event.operands == tuple((each.shape, each.dtype) for each in operands)
    assert (event.shape, event.dtype) == (product.shape, product.dtype)
    assert event.device is product.device
    assert event.backend == product.device
    assert (event.bytes_read, event.bytes_written) == (bytes_read, bytes_written)
    assert event.multiply_adds == multiply_adds
    assert event.operations == multiply_adds * (8 if name == "complex" else 2)
    assert event.step is None


# What is recorded with a pending product x of shape (4, 4), and how many arrays of its size the
# host reads and writes.
HOST = {
    "view": (lambda x: x.T[1:], "view", 0, 0),
    "copy": (lambda x: xp.astype(x, xp.float32), "copy", 1, 0.5),
    "add": (lambda x: x + ones(4, 4), "add", 2, 1),
    "subtract a row": (lambda x: x - ones(4), "add", 1.25, 1),
    "scale": (lambda x: 3 * x, "scale", 1, 1),
    "negative": (lambda x: -x, "scale", 1, 1),
}


@pytest.mark.parametrize("name", HOST)
def test_on_host(name):
    make, op, read, written = HOST[name]
    with xp.profile() as p, xp.num_threads(3):
        result = make(ones(4, 4) @ ones(4, 4))
        xp.evaluate(result)
    product, event = p
    assert (product.op, product.step, product.backend, product.threads) == (
        "matmul",
        0,
        "counting",
        3,
    )
    assert (event.op, event.step, event.backend, event.threads) == (op, 1, "host", 1)
    assert event.operands[0] == ((4, 4), np.float64)
    assert (event.shape, event.dtype) == (result.shape, result.dtype)
    assert event.device == "counting"
    assert (event.bytes_read, event.bytes_written) == (read * 128, written * 128)
    assert event.multiply_adds == 0


def test_update_in_place():
    total = ones(4, 4)
    with xp.profile() as p:
        total += ones(4, 4) @ ones(4, 4)
        np.testing.assert_array_equal(np.asarray(total), np.full((4, 4), 5.0))
    assert ops(p) == ["matmul", "add"]
    assert (p[1].bytes_read, p[1].bytes_written) == (256, 128)


def test_steps_of_two_plans():
    x = ones(2, 2)
    with xp.profile() as p:
        xp.evaluate(x @ x @ x, x.T @ x)
        xp.evaluate(x @ x)
        xp.evaluate(xp.linalg.outer(x[0], x[1]) @ x)
    assert [event.step for event in p] == [0, 1, 2, None, 0, 1]


def test_who_computed_it():
    small, large = ones(2, 2, device="blas"), ones(64, 64, device="blas")
    with xp.profile() as p:
        xp.evaluate(small @ small)
        xp.evaluate(large @ large)
        xp.evaluate(small @ small, large @ large)
    assert [event.backend for event in p] == ["cpu", "blas", "cpu", "blas"]
    assert {event.device for event in p} == {xp.Device("blas")}


# When and where something counts.


def test_what_counts_is_when_it_is_computed():
    x = ones(2, 2)
    before, after = x @ x, xp.linalg.outer(x[0], x[0])
    with xp.profile() as p:
        never = x @ x
        xp.evaluate(before, before)
        xp.evaluate(before)
    xp.evaluate(after, never)
    assert ops(p) == ["matmul"]


def test_eager_calls_do_not_count():
    x = ones(4, 32, dtype=xp.float32, device="cpu")
    with xp.profile() as p:
        xp.sum(x + x)
        xp.sort(x)
        xp.dequantize(xp.quantize(x, xp.q8_0))
        _ = np.asarray(x).T @ np.asarray(x)
    assert len(p) == 0
    with xp.profile() as p, xp.options(lazy=False):
        _ = x @ x.T
    assert [(event.op, event.step) for event in p] == [(Op.MATMUL, None)]


def test_within_each_other():
    x = ones(2, 2)
    with xp.profile() as outer:
        xp.evaluate(x @ x)
        with xp.profile() as inner:
            xp.evaluate(xp.linalg.outer(x[0], x[0]))
        xp.evaluate(x @ x)
    xp.evaluate(x @ x)
    assert ops(outer) == ["matmul", "out_prod", "matmul"]
    assert list(inner) == [outer[1]]


def test_threads_do_not_leak():
    x = ones(2, 2)
    theirs = []

    def work():
        xp.evaluate(x @ x)
        with xp.profile() as p:
            xp.evaluate(xp.linalg.outer(x[0], x[0]))
        theirs.append((p, threading.get_native_id()))

    with xp.profile() as p:
        in_thread(work)
        xp.evaluate(x @ x)
    ((other, native_id),) = theirs
    assert ops(p) == ["matmul"]
    assert ops(other) == ["out_prod"]
    assert (p[0].thread, p[0].thread_name) == (
        threading.get_native_id(),
        threading.current_thread().name,
    )
    assert (other[0].thread, other[0].thread_name) == (native_id, "worker")


def test_tasks_do_not_leak():
    x = ones(2, 2)

    async def task(count):
        with xp.profile() as p:
            for _ in range(count):
                await asyncio.sleep(0)
                xp.evaluate(x @ x)
            await asyncio.sleep(0)
        return len(p)

    async def main():
        return await asyncio.gather(*map(task, [1, 3, 2]))

    assert asyncio.run(main()) == [1, 3, 2]


def test_what_a_block_starts_belongs_to_it_until_it_ends():
    x = ones(2, 2)

    def work():
        xp.evaluate(x @ x)

    async def main():
        ended = asyncio.Event()

        async def task():
            work()
            await ended.wait()
            work()

        with xp.profile() as p:
            started = asyncio.create_task(task())
            await asyncio.to_thread(work)
        with xp.profile() as other:
            ended.set()
            await started
        return p, other

    p, other = asyncio.run(main())
    assert ops(p) == ["matmul", "matmul"]
    assert ops(other) == []


def test_many_threads_of_one_block():
    x = ones(2, 2)

    def work():
        for _ in range(50):
            xp.evaluate(x @ x)

    with xp.profile() as p:
        contexts = [contextvars.copy_context() for _ in range(4)]
        threads = [threading.Thread(target=context.run, args=(work,)) for context in contexts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(p) == 200
    check_trace(p.chrome_trace(), p)
    for event, later in pairwise(sorted(p, key=lambda event: event.start)):
        assert event.start + event.duration <= later.start  # one evaluation at a time


# Errors.


@pytest.mark.parametrize("outcome", [Status.FAILED, Status.ALLOC_FAILED, Status.ABORTED])
def test_error_in_the_middle(failing, outcome):
    x = ones(2, 2, device="failing")
    product = (x @ x).T @ x @ x
    failing.outcomes[:] = [Status.SUCCESS, outcome]
    with pytest.raises((xp.BackendError, MemoryError, KeyboardInterrupt)), xp.profile() as p:
        xp.evaluate(product)
    assert by_step(p) == {0: "matmul", 1: "view"}
    with xp.profile() as again:
        np.testing.assert_array_equal(np.asarray(product), np.full((2, 2), 8.0))
    assert by_step(again) == {0: "matmul", 1: "view", 2: "matmul", 3: "matmul"}
    assert len(again) == 4
    assert len(p) == 2


def test_control_c(counting, monkeypatch):
    compute = counting.graph_compute

    def graph_compute(graph):
        if len(counting.computed) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return compute(graph)

    monkeypatch.setattr(counting, "graph_compute", graph_compute)
    x = ones(2, 2)
    with xp.profile() as p, pytest.raises(KeyboardInterrupt):
        xp.evaluate(x @ x @ x @ x @ x)
    assert ops(p) == ["matmul", "matmul"]


# Times.


def test_times(counting, monkeypatch):
    compute, naps = counting.graph_compute, [0.05, 0.0, 0.02]

    def graph_compute(graph):
        time.sleep(naps[len(counting.computed)])
        return compute(graph)

    monkeypatch.setattr(counting, "graph_compute", graph_compute)
    x = ones(2, 2)
    start = time.perf_counter_ns()
    with xp.profile() as p:
        xp.evaluate(x @ x @ x @ x)
    end = time.perf_counter_ns()
    assert [event.duration >= nap * 1e9 for event, nap in zip(p, naps, strict=True)] == [True] * 3
    assert start <= p[0].start
    assert p[-1].start + p[-1].duration <= end
    for event, later in pairwise(p):
        assert event.start + event.duration <= later.start


def test_values_are_not_kept(counting, monkeypatch):
    outs = []
    compute = counting.graph_compute

    def graph_compute(graph):
        outs.extend(weakref.ref(kernel.out) for kernel in graph)
        return compute(graph)

    monkeypatch.setattr(counting, "graph_compute", graph_compute)
    x = ones(2, 2)
    with xp.profile() as p:
        xp.evaluate(x @ x)
    assert len(p) == len(outs) == 1
    assert outs[0]() is None


# How a profile is read.


def an_event(op, backend, duration, **changes):
    made = Event(
        op=op,
        operands=(((2, 3), np.dtype(np.float32)), ((3, 4), xp.q8_0)),
        shape=(2, 4),
        dtype=np.dtype(np.float32),
        device=xp.Device("blas"),
        backend=backend,
        start=5_000_000,
        duration=duration,
        bytes_read=0,
        bytes_written=0,
        multiply_adds=0,
        threads=2,
        step=None,
        thread=17,
        thread_name="MainThread",
    )
    return dataclasses.replace(made, **changes)


def profile_of(*events):
    made = xp.Profile()
    made._events.extend(events)
    return made


def test_sequence():
    events = [an_event(Op.MATMUL, "cpu", at) for at in range(3)]
    p = profile_of(*events)
    assert (len(p), list(p), p[0], p[-1]) == (3, events, events[0], events[2])
    assert p[1:] == events[1:]
    assert events[2] in p
    assert repr(p) == "<Profile of 3 events>"
    with pytest.raises(dataclasses.FrozenInstanceError):
        p[0].duration = 5


def test_table():
    first = an_event(
        Op.MATMUL, "blas", 1_500_000, multiply_adds=3_000_000, bytes_read=1_000_000, step=0
    )
    last = an_event(Op.MATMUL, "blas", 500_000, bytes_written=500_000, step=11)
    view = an_event(Op.VIEW, "host", 500, operands=first.operands[:1], threads=1)
    # GFLOP/s is operations a nanosecond, two a multiply-add; GB/s is bytes a nanosecond
    assert str(profile_of(first, view, last)).splitlines() == [
        "op      operands                  result         device  backend  step  threads"
        "      us  GFLOP/s  GB/s",
        "matmul  float32(2, 3) q8_0(3, 4)  float32(2, 4)  blas    blas        0        2"
        "  1500.0     4.00  0.67",
        "view    float32(2, 3)             float32(2, 4)  blas    host        -        1"
        "     0.5        -     -",
        "matmul  float32(2, 3) q8_0(3, 4)  float32(2, 4)  blas    blas       11        2"
        "   500.0        -  1.00",
        "",
        "backend  op      count   share      us  GFLOP/s  GB/s",
        "blas     matmul      2  100.0%  2000.0     3.00  0.75",
        "host     view        1    0.0%     0.5        -     -",
        "all                  3  100.0%  2000.5     3.00  0.75",
    ]


def test_table_of_many_has_the_longest():
    durations = list(np.random.default_rng(0).permutation(100) * 1000)
    text = str(profile_of(*(an_event(Op.ADD, "host", int(each)) for each in durations)))
    shown, totals = text.split("\n\n")
    _, *rows, more = shown.splitlines()
    longest = [each / 1e3 for each in durations if each >= 80_000]
    assert [float(row.split()[-3]) for row in rows] == longest
    assert more == "... and 80 shorter ones"
    assert totals.splitlines()[-1].split() == ["all", "100", "100.0%", "4950.0", "-", "-"]


def test_totals_agree_with_the_events():
    x, y = ones(64, 64, device="blas"), ones(64, 64, dtype=xp.int64, device="blas")
    with xp.profile() as p:
        xp.evaluate((x @ x).T @ x + 2 * (x @ x), y @ y, xp.linalg.outer(x[0], x[0]))
    totals = str(p).split("\n\n")[1].splitlines()[1:]
    by_name = sorted(p, key=lambda event: (event.backend, event.op))
    expected = {
        names: list(group)
        for names, group in groupby(by_name, lambda event: (event.backend, event.op))
    }
    seen = {tuple(row.split()[:2]): row.split()[2:] for row in totals[:-1]}
    assert seen.keys() == expected.keys()
    duration = sum(event.duration for event in p)
    for names, (count, share, us, *_) in seen.items():
        group = sum(event.duration for event in expected[names])
        assert int(count) == len(expected[names])
        assert float(us) == pytest.approx(group / 1e3, abs=0.051)
        assert float(share[:-1]) == pytest.approx(100 * group / duration, abs=0.051)
    assert totals[-1].split()[:3] == ["all", str(len(p)), "100.0%"]


def test_nothing_computed():
    with xp.profile() as p:
        pass
    assert str(p) == "nothing was computed"
    assert repr(p) == "<Profile of 0 events>"
    check_trace(p.chrome_trace(), p)


def test_no_time_at_all():
    text = str(profile_of(an_event(Op.VIEW, "host", 0), an_event(Op.ADD, "host", 0, bytes_read=8)))
    assert "inf" not in text
    assert "nan" not in text


# The trace-event format.


def check_trace(trace, profile):
    """Check all that the format demands of an object with complete and metadata events."""
    assert json.loads(json.dumps(trace, allow_nan=False)) == trace
    assert trace["displayTimeUnit"] in ("ms", "ns")
    named = {"process_name": set(), "thread_name": set()}
    complete = []
    for event in trace["traceEvents"]:
        assert event["ph"] in ("X", "M")
        assert isinstance(event["name"], str)
        assert type(event["pid"]) is int
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            assert isinstance(event["args"]["name"], str)
            named[event["name"]].add((event["pid"], event.get("tid")))
            continue
        assert type(event["tid"]) is int
        assert isinstance(event["cat"], str)
        assert event["cat"]
        for time_of in ("ts", "dur"):
            assert isinstance(event[time_of], (int, float))
            assert event[time_of] >= 0
            assert math.isfinite(event[time_of])
        complete.append(event)
    assert len(complete) == len(profile)
    assert named["process_name"] == {(os.getpid(), None)}
    assert named["thread_name"] == {(event["pid"], event["tid"]) for event in complete}
    assert {event["pid"] for event in complete} <= {os.getpid()}
    for traced, event in zip(complete, profile, strict=True):
        assert (traced["name"], traced["tid"]) == (event.op.value, event.thread)
        assert traced["ts"] == pytest.approx(event.start / 1000, abs=1e-3)
        assert traced["dur"] == pytest.approx(event.duration / 1000, abs=1e-3)


def a_profile():
    x = ones(64, 64, device="blas")
    with xp.profile() as p:
        xp.evaluate((x @ x).T @ x + x)
        xp.evaluate(ones(2, 64, dtype=xp.float32, device="cpu") @ q8_0(5, 64).mT)
        in_thread(contextvars.copy_context().run, lambda: xp.evaluate(x @ x))
    return p


def test_trace():
    p = a_profile()
    trace = p.chrome_trace()
    check_trace(trace, p)
    names = {
        event["tid"]: event["args"]["name"]
        for event in trace["traceEvents"]
        if event["name"] == "thread_name"
    }
    assert names == {p[0].thread: threading.current_thread().name, p[-1].thread: "worker"}
    *planned, quantized, alone = trace["traceEvents"][3:]
    product, view, *_ = sorted(planned, key=lambda event: event["args"]["step"])
    assert product["cat"] == "blas"
    assert product["args"] == {
        "operands": "float64(64, 64) float64(64, 64)",
        "result": "float64(64, 64)",
        "device": "blas",
        "bytes read": 65536,
        "bytes written": 32768,
        "multiply-adds": 262144,
        "threads": xp.get_num_threads(),
        "step": 0,
    }
    assert (view["cat"], view["args"]["step"]) == ("host", 1)
    assert quantized["args"]["operands"] == "float32(2, 64) q8_0(64, 5)"
    assert "step" not in alone["args"]


def test_trace_files(tmp_path):
    p = a_profile()
    text = io.StringIO()
    p.to_chrome_trace(text)
    p.to_chrome_trace(tmp_path / "one.json")
    (tmp_path / "two.json").write_text("x" * 1_000_000)
    p.to_chrome_trace(str(tmp_path / "two.json"))
    written = [text.getvalue(), *((tmp_path / f"{n}.json").read_text() for n in ("one", "two"))]
    assert [json.loads(each) for each in written] == [p.chrome_trace()] * 3
    with pytest.raises(FileNotFoundError):
        p.to_chrome_trace(tmp_path / "nowhere" / "one.json")
