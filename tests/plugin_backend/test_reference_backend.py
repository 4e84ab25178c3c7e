"""The devices `reference` and `reference:remote`, used without ggarray's evaluation."""

import gc
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from ggarray_plugin_backends.reference.devices import ReferenceDevice, RemoteDevice
from ggarray_plugin_backends.reference.streams import Stream
from scripts import TESTS, run_script

from ggarray.interface import (
    HOST,
    Flag,
    Kernel,
    Op,
    Status,
    Tensor,
    TensorAllocator,
    Usage,
    alloc_tensors,
)

MATRIX = Tensor.like(np.zeros((8, 8)))
DEVICES = [ReferenceDevice, RemoteDevice]


def bytes_of(value):
    return value.reshape(-1).view(np.uint8)


def product(*tensors, **more):
    *operands, out = tensors
    return Kernel(Op.MATMUL, tuple(operands), out, **more)


@pytest.mark.parametrize("kind", DEVICES)
def test_a_stream_has_one_thread_once_it_is_used(kind):
    before = set(threading.enumerate())
    stream = kind().init_backend()
    assert stream.synchronize() == Status.SUCCESS
    assert set(threading.enumerate()) == before
    for _ in range(3):
        stream.graph_compute([])
        assert stream.synchronize() == Status.SUCCESS
    (thread,) = set(threading.enumerate()) - before
    assert thread.daemon


def test_the_first_failure_is_told_once():
    stream = Stream("stream")

    def fail(error):
        raise error

    seen = []
    stream.worker.ask(lambda: fail(OSError("first")))
    stream.worker.ask(lambda: Status.ABORTED)
    stream.worker.ask(lambda: seen.append("what comes afterwards is done"))
    with pytest.raises(OSError, match="first"):
        stream.synchronize()
    assert seen
    stream.worker.ask(lambda: Status.ALLOC_FAILED)
    stream.worker.ask(lambda: fail(OSError("second")))
    assert stream.synchronize() == Status.ALLOC_FAILED
    assert stream.synchronize() == Status.SUCCESS


@pytest.mark.parametrize("kind", DEVICES)
def test_memory_is_not_kept_alive(kind):
    device = kind()
    stream = device.init_backend()
    owner, (x, y) = alloc_tensors([MATRIX] * 2, device.buffer_type)
    data = np.zeros(MATRIX.nbytes, np.uint8)
    alive = [weakref.ref(owner), weakref.ref(data)]
    stream.set_tensor_async(x, data)
    stream.graph_compute([product(x, x, y)])
    assert stream.synchronize() == Status.SUCCESS
    owner.free()
    del owner, x, y, data
    gc.collect()
    assert [each() for each in alive] == [None, None]


def test_a_child_process_has_a_thread_of_its_own():
    script = """
        import os, sys, warnings
        import numpy as np
        from ggarray.interface import HOST, Kernel, Op, Status, Tensor, alloc_tensors
        from ggarray_plugin_backends.reference import registry

        warnings.simplefilter("ignore", DeprecationWarning)  # threads, and a fork
        streams = [device.init_backend() for device in registry.devices()]

        def check():
            for device, stream in zip(registry.devices(), streams):
                x = np.arange(16.0).reshape(4, 4)
                owner, (a, y) = alloc_tensors([Tensor.like(x)] * 2, device.buffer_type)
                found = np.empty((4, 4))
                stream.set_tensor_async(a, x.reshape(-1).view(np.uint8))
                stream.graph_compute([Kernel(Op.MATMUL, (a, a), y)])
                stream.get_tensor_async(y, found.reshape(-1).view(np.uint8))
                assert stream.synchronize() == Status.SUCCESS
                assert (found == x @ x).all()
                owner.free()

        check()
        for stream in streams:
            stream.worker.ask(lambda: Status.FAILED)
        child = os.fork()
        if child == 0:
            check()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert [stream.synchronize() for stream in streams] == [Status.FAILED] * 2
        check()
    """
    run_script(script, PYTHONPATH=f"{TESTS}:{Path(__file__).parent}")


def test_plans_are_of_one_kind():
    device = ReferenceDevice()
    stream = device.init_backend()
    owner, (x, y, z) = alloc_tensors([MATRIX] * 3, device.buffer_type)
    owner.clear()
    plan = stream.graph_plan_create([product(x, x, y)])
    for other in (
        [],
        [product(x, x, y)] * 2,
        [Kernel(Op.OUT_PROD, (x, x), y)],
        [product(x, x, y, alpha=2.0)],
        [product(x, x, y, beta=1, bias=z)],
        [product(x, x, y, flags=Flag(0))],
        [product(x._replace(strides=(8, 64)), x, y)],
        [product(x._replace(shape=(4, 8)), x, y._replace(shape=(4, 8)))],
        [product(x, x, y._replace(dtype=np.dtype(np.int64)))],
    ):
        with pytest.raises(ValueError, match="same operations"):
            stream.graph_plan_update(plan, other)
    stream.graph_plan_update(plan, [product(y, x, z)])
    assert stream.graph_plan_compute(plan) == stream.synchronize() == Status.SUCCESS
    with pytest.raises(ValueError, match="updated"):
        stream.graph_plan_compute(plan)
    stream.graph_plan_free(plan)


# -- memory of its own ----------------------------------------------------------------------------


def test_remote_tensors_are_announced():
    device = RemoteDevice()
    buffer = device.buffer_type.alloc(4096)
    here = MATRIX._replace(buffer=buffer)
    data = np.zeros(MATRIX.nbytes, np.uint8)
    stream = device.init_backend()

    def is_refused(tensor):
        for call in (buffer.set_tensor, buffer.get_tensor):
            with pytest.raises(ValueError, match="announced"):
                call(tensor, data)
        with pytest.raises(ValueError, match="announced"):
            buffer.copy_tensor(tensor, tensor)
        stream.graph_compute([product(tensor, tensor, tensor)])
        with pytest.raises(ValueError, match="announced"):
            stream.synchronize()

    is_refused(here)
    assert buffer.init_tensor(here) == Status.SUCCESS
    buffer.set_tensor(here, data)
    is_refused(here._replace(offset=1024))
    buffer.reset()
    is_refused(here)


def test_remote_places_are_right():
    buffer = RemoteDevice().buffer_type.alloc(1024)
    for offset, expected in [(0, "SUCCESS"), (512, "SUCCESS"), (64, "FAILED"), (768, "FAILED")]:
        status = buffer.init_tensor(MATRIX._replace(buffer=buffer, offset=offset))
        assert status == Status[expected]
    allocator = TensorAllocator(buffer)
    row = MATRIX._replace(shape=(1, 8))
    assert [allocator.alloc(row).offset for _ in range(4)] == [0, 256, 512, 768]
    with pytest.raises(MemoryError):
        allocator.alloc(row)


def test_remote_memory_ends():
    device = RemoteDevice()
    free, total = device.memory()
    assert free == total
    part = Tensor((1 << 20,), np.dtype(np.uint8), (1,))
    owner, _ = alloc_tensors([part] * 3, device.buffer_type, Usage.WEIGHTS)
    assert device.memory() == (total - (3 << 20), total)
    with pytest.raises(MemoryError, match="reference:remote"):
        alloc_tensors([part] * (total >> 20), device.buffer_type)
    assert device.memory() == (total - (3 << 20), total)
    owner.free()
    assert device.memory() == (total, total)


def test_freed_memory_is_not_used():
    device = RemoteDevice()
    owner, (x,) = alloc_tensors([MATRIX], device.buffer_type)
    owner.free()
    with pytest.raises(ValueError, match="announced"):
        x.buffer.get_tensor(x, np.empty(MATRIX.nbytes, np.uint8))


def test_host_memory_is_not_taken_as_it_is():
    for kind in DEVICES:
        device = kind()
        assert not device.supports_buffer_type(HOST)
        assert not device.supports_buffer_type(device.host_buffer_type)
    assert not RemoteDevice().supports_buffer_type(ReferenceDevice().buffer_type)


def test_what_is_worth_sending_weights():
    remote = RemoteDevice()
    for rows, expected in [(1, False), (2, True)]:
        x = MATRIX._replace(shape=(rows, 8))
        node = product(x, MATRIX, x)
        assert ReferenceDevice().offload_op(node)
        assert remote.offload_op(node) is expected
        assert remote.supports_op(node)


def test_order_of_nodes():
    """Two chains of two products, and one of both results."""
    a, b, c, d, e = (Tensor(*MATRIX) for _ in range(5))
    graph = [
        product(MATRIX, MATRIX, a),
        product(a, MATRIX, b),
        product(MATRIX, MATRIX, c),
        product(c, MATRIX, d),
        product(MATRIX, d, e, beta=1, bias=b),
    ]
    kept = set()
    order = RemoteDevice().init_backend().graph_optimize(graph, lambda *each: kept.add(each))
    assert list(order) == [0, 2, 1, 3, 4]
    # each as long as its group computes, and its operands as long
    assert kept == {(0, 1), (1, 1), (0, 3), (1, 3), (2, 3), (3, 3), (2, 4), (3, 4), (4, 4)}
    # a value in memory is known by that, through views too
    buffer = HOST.alloc(0)
    out = a._replace(buffer=buffer)
    view = out._replace(strides=(8, 64))
    graph = [product(MATRIX, MATRIX, out), product(view, MATRIX, b), product(MATRIX, MATRIX, c)]
    order = RemoteDevice().init_backend().graph_optimize(graph, lambda *each: None)
    assert list(order) == [0, 2, 1]


def test_copies_between_the_devices():
    near, far = ReferenceDevice(), RemoteDevice()
    streams = [each.init_backend() for each in (near, far)]
    x = np.random.default_rng(0).standard_normal((8, 8))
    owner, (a, b) = alloc_tensors([MATRIX] * 2, near.buffer_type)
    other, (c, d) = alloc_tensors([MATRIX] * 2, far.buffer_type)
    found = np.empty((8, 8))
    streams[0].set_tensor_async(a, bytes_of(x))
    streams[0].graph_compute([product(a, a, b)])
    assert streams[1].copy_tensor_async(streams[0], b, c)
    streams[1].graph_compute([product(c, c, d)])
    assert streams[0].copy_tensor_async(streams[1], d, a)
    streams[0].get_tensor_async(a, bytes_of(found))
    assert streams[0].synchronize() == streams[1].synchronize() == Status.SUCCESS
    np.testing.assert_allclose(found, np.linalg.matrix_power(x, 4), rtol=1e-12)
    owner.free()
    other.free()
