"""Streams that return before what they were asked for is done, and events in them."""

from contextlib import suppress

import numpy as np
import pytest

from conformance.backend.graphs import FLOAT32, SIZE, Graph, near, value_in
from conformance.standard.references import numbers
from ggarray._runtime.plugins import stream
from ggarray.interface import Events, Kernel, Op, Status, Tensor, alloc_tensors

MATRIX = Tensor((SIZE, SIZE), FLOAT32, (), None).contiguous()
# So many products keep a stream at work for long enough: what does not wait for it is too early.
MANY = 500


def values(seed):
    return numbers(FLOAT32, (SIZE, SIZE), seed) / 8


def bytes_of(value):
    return value.reshape(-1).view(np.uint8)


def product(device, a, b, out):
    """Return a kernel of tensors in memory of the device."""
    a, b, out = (value_in(device, each) for each in (a, b, out))
    return Kernel(Op.MATMUL, (a, b), out)


@pytest.fixture
def tensors(device):
    """Five matrices in memory of the device, of which all elements are NaN."""
    if not device.asynchronous:
        pytest.skip(f"{device.name} is done when calls return")
    Graph().needs(device)
    owner, tensors = alloc_tensors([MATRIX] * 5, device.buffer_type)
    for each in tensors:
        each.buffer.memset_tensor(each, 255)
    yield tensors
    owner.free()


def drained(backend):
    """Give a stream to a test; nothing is left in it afterwards, however the test ends."""
    yield backend
    with suppress(Exception):
        backend.synchronize()


@pytest.fixture
def backend(device, tensors):
    """A stream of the device."""
    yield from drained(stream(device))


@pytest.fixture
def other(device, backend):
    """A second stream."""
    other = device.init_backend()
    if other is backend:
        pytest.skip(f"{device.name} has one stream")
    yield from drained(other)


@pytest.fixture
def event(device, backend):
    """An event of the device."""
    if not isinstance(device, Events):
        pytest.skip(f"{device.name} has no events")
    event = device.event_new()
    yield event
    device.event_free(event)


def busy(device, backend, x, w, y):
    """Have a stream compute the same product many times."""
    kernel = product(device, x, w, y)
    assert backend.graph_compute([kernel] * MANY) == Status.SUCCESS


def test_what_is_asked_of_a_stream_happens_in_order(device, backend, tensors, nmse):
    x, w, y, z, _ = tensors
    first, second, weights = map(values, range(3))
    found, last = np.empty((2, SIZE, SIZE), FLOAT32)
    backend.set_tensor_async(w, bytes_of(weights))
    backend.set_tensor_async(x, bytes_of(first))
    backend.graph_compute([product(device, x, w, y)])
    backend.set_tensor_async(x, bytes_of(second))
    backend.graph_compute((product(device, x, w, z), product(device, z, y, x)))
    backend.get_tensor_async(x, bytes_of(found))
    backend.set_tensor_async(x, bytes_of(first))
    backend.get_tensor_async(x, bytes_of(last))
    assert backend.synchronize() == Status.SUCCESS
    first, second, weights = (each.astype(np.float64) for each in (first, second, weights))
    near(found, second @ weights @ (first @ weights), nmse)
    np.testing.assert_array_equal(last, first)


def test_parts_of_tensors(backend, tensors):
    x, value = tensors[0], values(0)
    data, found = bytes_of(value), np.empty(8, np.uint8)
    cut = data.size // 3
    backend.set_tensor_async(x, data[cut:], cut)
    backend.set_tensor_async(x, data[:cut], 0)
    backend.get_tensor_async(x, found, cut - 4)
    assert backend.synchronize() == Status.SUCCESS
    np.testing.assert_array_equal(found, data[cut - 4 : cut + 4])
    whole = np.empty_like(data)
    x.buffer.get_tensor(x, whole)
    np.testing.assert_array_equal(whole, data)


def test_copies_by_way_of_host_memory_that_is_known_better(device, backend, tensors):
    if not device.caps.host_buffer:
        pytest.skip(f"{device.name} has no memory of the host")
    x, data = tensors[0], bytes_of(values(0))
    owner, (there, back) = alloc_tensors([Tensor.like(data)] * 2, device.host_buffer_type)
    there.buffer.set_tensor(there, data)
    backend.set_tensor_async(x, there.buffer.array(there))
    backend.get_tensor_async(x, back.buffer.array(back))
    assert backend.synchronize() == Status.SUCCESS
    np.testing.assert_array_equal(back.buffer.array(back), data)
    owner.free()


def test_nothing_to_wait_for(device, backend):
    for _ in range(2):
        assert backend.synchronize() == Status.SUCCESS
    assert device.init_backend().synchronize() == Status.SUCCESS


def test_copies_from_another_stream(device, backend, other, tensors, nmse):
    x, w, y, z, target = tensors
    a, b, found = values(0), values(1), np.empty((SIZE, SIZE), FLOAT32)
    backend.set_tensor_async(x, bytes_of(a))
    backend.set_tensor_async(w, bytes_of(b))
    busy(device, backend, x, w, z)
    backend.graph_compute([product(device, x, w, y)])
    copied = other.copy_tensor_async(backend, y, target)
    assert copied in (True, False)
    other.get_tensor_async(target, bytes_of(found))
    assert other.synchronize() == Status.SUCCESS
    assert backend.synchronize() == Status.SUCCESS
    if not copied:
        assert np.isnan(found).all()
        pytest.skip(f"{device.name} has no direct way")
    near(found, a.astype(np.float64) @ b, nmse)


def test_a_stream_waits_for_another_one(device, backend, other, event, tensors, nmse):
    x, w, y, z, last = tensors
    a, b, found = values(0), values(1), np.empty((SIZE, SIZE), FLOAT32)
    backend.set_tensor_async(x, bytes_of(a))
    backend.set_tensor_async(w, bytes_of(b))
    busy(device, backend, x, w, z)
    backend.graph_compute([product(device, x, w, y)])
    backend.event_record(event)
    other.event_wait(event)
    other.graph_compute([product(device, y, w, last)])
    other.get_tensor_async(last, bytes_of(found))
    assert other.synchronize() == Status.SUCCESS
    near(found, a.astype(np.float64) @ b @ b, nmse)
    assert backend.synchronize() == Status.SUCCESS


def test_the_host_waits_for_an_event(device, backend, event, tensors, nmse):
    """An event that is recorded again means the later place."""
    x, w, y, z, _ = tensors
    b = values(9)
    backend.set_tensor_async(w, bytes_of(b))
    for seed in range(3):
        a, found = values(seed), np.empty((SIZE, SIZE), FLOAT32)
        backend.set_tensor_async(x, bytes_of(a))
        busy(device, backend, x, w, z)
        backend.graph_compute([product(device, x, w, y)])
        backend.get_tensor_async(y, bytes_of(found))
        backend.event_record(event)
        device.event_synchronize(event)
        near(found, a.astype(np.float64) @ b, nmse)
        device.event_synchronize(event)
    assert backend.synchronize() == Status.SUCCESS


def test_several_events(device, backend, other, event, tensors):
    """Two streams take turns."""
    x, *_ = tensors
    turns = [event, *(device.event_new() for _ in range(5))]
    found = np.empty((len(turns), 4), np.uint8)
    data = np.arange(4 * len(turns), dtype=np.uint8).reshape(len(turns), 4)
    streams = [backend, other] * 3
    for at, turn in enumerate(turns):
        if at:
            streams[at].event_wait(turns[at - 1])
        streams[at].set_tensor_async(x, data[at])
        streams[at].get_tensor_async(x, found[at])
        streams[at].event_record(turn)
    device.event_synchronize(turns[-1])
    np.testing.assert_array_equal(found, data)
    for each in streams[:2]:
        assert each.synchronize() == Status.SUCCESS
    for turn in turns[1:]:
        device.event_free(turn)
