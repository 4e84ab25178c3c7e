"""Memory of a device: where tensors lie, and how their bytes get in and out."""

import sys

import numpy as np
import pytest

from conformance.backend.cases import PLAIN, QUANTIZED
from conformance.backend.computing import finished
from conformance.backend.layouts import poison
from conformance.backend.placing import BYTE, address, memory_of
from conformance.standard.references import numbers
from ggarray._runtime.plugins import stream
from ggarray.interface import (
    HOST,
    Async,
    BufferType,
    Events,
    HostBuffer,
    Kernel,
    MultiBuffer,
    Op,
    Status,
    Tensor,
    TensorAllocator,
    Usage,
    alloc_tensors,
    copy_tensor,
)

DTYPES = (*PLAIN, *QUANTIZED)
FLOAT32 = np.dtype(np.float32)

# Devices whose buffers may be larger are not tried with more than one.
_LIMIT = 1 << 28


def tensor(dtype, *shape):
    """Return a contiguous tensor in no buffer."""
    axis = len(shape) - 1 if dtype in QUANTIZED else None
    return Tensor(shape, dtype, (), axis).contiguous()


def some(dtype):
    """Return a tensor of a few rows."""
    return tensor(dtype, 5, 2 * dtype.block_size if dtype in QUANTIZED else 7)


def random_bytes(tensor, seed=0):
    return np.random.default_rng(seed).integers(0, 256, tensor.nbytes, np.uint8)


def read(tensor):
    """Return the bytes of a tensor."""
    data = np.empty(tensor.nbytes, np.uint8)
    tensor.buffer.get_tensor(tensor, data)
    return data


def fill(tensors):
    """Set tensors to random bytes; return these."""
    values = [random_bytes(each, at) for at, each in enumerate(tensors)]
    for each, value in zip(tensors, values, strict=True):
        each.buffer.set_tensor(each, value)
    return values


def check(tensors, values):
    for each, value in zip(tensors, values, strict=True):
        np.testing.assert_array_equal(read(each), value)


@pytest.fixture(params=["the device", "the host"])
def buffer_type(device, request):
    """The memory of operands and results, and that of the host which a device knows better."""
    if request.param == "the device":
        return device.buffer_type
    if not device.caps.host_buffer:
        pytest.skip(f"{device.name} has no memory of the host")
    return device.host_buffer_type


@pytest.fixture
def place(buffer_type):
    """Allocate tensors; their memory is given back after the test."""
    owners = []

    def place(*tensors, usage=Usage.ANY):
        owner, placed = alloc_tensors(tensors, buffer_type, usage)
        owners.append(owner)
        return placed

    yield place
    for owner in owners:
        owner.free()


def test_groups_are_what_the_caps_say(device, pytestconfig):
    caps = device.caps
    assert caps == device.props.caps
    assert caps.events == isinstance(device, Events)
    assert caps.asynchronous or not caps.events, "events are marks in asynchronous streams"
    if caps.host_buffer:
        assert device.host_buffer_type.is_host
    assert device.supports_buffer_type(device.buffer_type)
    assert device.supports_buffer_type(HOST) == device.buffer_type.is_host
    if not pytestconfig.getoption("--idle"):
        assert caps.asynchronous == isinstance(stream(device), Async)


def test_description(device, buffer_type):
    assert isinstance(buffer_type, BufferType)
    assert isinstance(buffer_type.name, str)
    assert buffer_type.device in (device, None if buffer_type is HOST else device)
    assert buffer_type.alignment & (buffer_type.alignment - 1) == 0 < buffer_type.alignment
    assert buffer_type.max_size > 0


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 100_001])
def test_buffers(buffer_type, size):
    buffers = [buffer_type.alloc(size) for _ in range(3)]
    for buffer in buffers:
        assert buffer.buffer_type is buffer_type
        assert buffer.size >= size
        assert buffer.base % buffer_type.alignment == 0
        assert buffer.usage is Usage.ANY
        buffer.usage = Usage.COMPUTE
        assert buffer.usage is Usage.COMPUTE
    first, second, third = sorted(buffers, key=lambda buffer: buffer.base)
    assert first.base + size <= second.base
    assert second.base + size <= third.base
    for buffer in buffers:
        buffer.free()


def test_sizes_of_tensors(buffer_type):
    for dtype in DTYPES:
        for each in (some(dtype), tensor(dtype, 0, 3, 0), tensor(dtype, 3, 0)):
            assert buffer_type.alloc_size(each) >= each.nbytes


@pytest.mark.parametrize("usage", Usage)
def test_values_come_back(place, usage):
    tensors = place(*map(some, DTYPES), tensor(BYTE, 0), *map(some, DTYPES), usage=usage)
    assert all(each.buffer.usage is usage for each in tensors)
    check(tensors, fill(tensors))


def test_parts_of_values(place):
    before, x, behind = tensors = place(*[tensor(FLOAT32, 40)] * 3)
    values = fill(tensors)
    for offset, size in [(0, 4), (4, 152), (156, 4), (100, 0)]:
        data = random_bytes(tensor(BYTE, size), offset)
        x.buffer.set_tensor(x, data, offset)
        values[1][offset : offset + size] = data
        check(tensors, values)
        part = np.empty(size, np.uint8)
        x.buffer.get_tensor(x, part, offset)
        np.testing.assert_array_equal(part, data)
    x.buffer.memset_tensor(x, 200, 8, 20)
    values[1][8:28] = 200
    check(tensors, values)
    x.buffer.memset_tensor(x, 3, 100)
    values[1][100:] = 3
    check(tensors, values)
    x.buffer.memset_tensor(x, 255)
    values[1][:] = 255
    check((before, x, behind), values)


def test_clearing(place):
    tensors = place(*map(some, DTYPES))
    fill(tensors)
    for value in (255, 0):
        for buffer in {each.buffer for each in tensors}:
            buffer.clear(value)
        for each in tensors:
            assert (read(each) == value).all()
    tensors[0].buffer.clear(7)
    tensors[0].buffer.clear()
    assert not read(tensors[0]).any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies(buffer_type, place, dtype):
    owner, here = alloc_tensors([some(dtype)] * 3, HOST)
    there, also_there = place(*[some(dtype)] * 3), place(*[some(dtype)] * 3)
    values = fill(here)
    fill(there)
    others = fill(also_there)
    for source, target in [(here, there), (there, also_there), (also_there, there)]:
        copy_tensor(source[1], target[1])
        np.testing.assert_array_equal(read(target[1]), values[1])
    check(also_there, [others[0], values[1], others[2]])
    here[1].buffer.clear()
    copy_tensor(there[1], here[1])
    np.testing.assert_array_equal(read(here[1]), values[1])
    owner.free()


def test_direct_copies(buffer_type, place):
    """Where a buffer says that there is a direct way it has copied; else it has done nothing."""
    owner, (here,) = alloc_tensors([some(FLOAT32)], HOST)
    (there,), (also_there,) = place(some(FLOAT32)), place(some(FLOAT32))
    for source, target in [(here, there), (there, also_there), (there, here), (there, there)]:
        value, before = fill([source, target]) if source is not target else fill([source]) * 2
        copied = target.buffer.copy_tensor(source, target)
        assert copied in (True, False)
        np.testing.assert_array_equal(read(target), value if copied else before)
    owner.free()


def test_more_than_a_buffer_holds(buffer_type, place):
    limit = buffer_type.max_size
    if limit > _LIMIT:
        which = "of any size" if limit == sys.maxsize else f"of up to {limit} bytes"
        pytest.skip(f"{buffer_type.name} has buffers {which}")
    part = tensor(BYTE, limit // 3)
    tensors = place(part, part, part, part, tensor(BYTE, limit), part)
    buffers = {each.buffer for each in tensors}
    assert len(buffers) > 2
    assert all(buffer.size <= limit for buffer in buffers)
    check(tensors, fill(tensors))
    owner, placed = alloc_tensors([part] * 5, buffer_type, Usage.WEIGHTS)
    assert isinstance(owner, MultiBuffer)
    assert all(each.buffer.usage is Usage.WEIGHTS for each in placed)
    check(placed, fill(placed))
    owner.clear(5)
    assert all((read(each) == 5).all() for each in placed)
    owner.free()
    check(tensors, fill(tensors))


def test_one_tensor_that_is_larger(buffer_type, place):
    if buffer_type.max_size > _LIMIT:
        pytest.skip(f"{buffer_type.name} has buffers of any size, or large ones")
    tensors = place(tensor(BYTE, 10), tensor(BYTE, buffer_type.max_size + 1000))
    check(tensors, fill(tensors))


def test_too_much_memory(buffer_type, place):
    for size in (1 << 60, 1 << 62):
        with pytest.raises(MemoryError):
            buffer_type.alloc(size)
    tensors = place(some(FLOAT32))  # that was no end of it
    check(tensors, fill(tensors))


def test_memory_is_given_back(device, buffer_type):
    """One after the other, buffers may take more memory than there is."""
    _, total = device.memory()
    if not total or buffer_type.is_host:
        pytest.skip(f"{device.name} does not say how much memory {buffer_type.name} has")
    size = min(buffer_type.max_size, -(-total // 64))
    for _ in range(total // size + 1):
        buffer_type.alloc(size).free()


def test_memory_is_used_again(buffer_type):
    """A buffer that is reset takes other tensors."""
    sizes = [buffer_type.alloc_size(some(dtype)) for dtype in DTYPES]
    room = sum(-(-size // buffer_type.alignment) * buffer_type.alignment for size in sizes)
    buffer = buffer_type.alloc(room)
    for dtypes in (DTYPES, DTYPES[::-1], DTYPES[:3]):
        allocator = TensorAllocator(buffer)
        tensors = [allocator.alloc(some(dtype)) for dtype in dtypes]
        for each in tensors:
            assert each.offset % buffer_type.alignment == 0
        check(tensors, fill(tensors))
        buffer.reset()
    buffer.free()


def test_host_memory_is_where_it_is_said_to_be(buffer_type, place):
    if not buffer_type.is_host:
        pytest.skip(f"{buffer_type.name} is not the host's")
    tensors = place(*map(some, PLAIN))
    values = fill(tensors)
    for each, value in zip(tensors, values, strict=True):
        memory = HostBuffer.at(HOST, each.buffer.base + each.offset, each.nbytes).memory
        np.testing.assert_array_equal(memory, value)
        memory[...] = 7
        assert (read(each) == 7).all()


# -- memory of the host in buffers of a device ----------------------------------------------------


@pytest.fixture
def wrap(device):
    """Wrap arrays in buffers of the device."""
    if not device.caps.buffer_from_host_ptr:
        pytest.skip(f"{device.name} takes no memory of the host in place")

    def wrap(array):
        memory = memory_of(array)
        start = address(memory)
        buffer = device.buffer_from_host_ptr(start, memory.size, array.nbytes)
        assert device.supports_buffer_type(buffer.buffer_type)
        assert buffer.size >= memory.size
        return Tensor.like(array, buffer=buffer, offset=address(array) - start)

    return wrap


def test_wrapped_memory(wrap):
    rows = numbers(FLOAT32, (6, 5), 0)
    x = wrap(rows[2:4])
    np.testing.assert_array_equal(read(x), rows[2:4].reshape(-1).view(np.uint8))
    expected = numbers(FLOAT32, (2, 5), 1)
    x.buffer.set_tensor(x, expected.reshape(-1).view(np.uint8))
    np.testing.assert_array_equal(rows[2:4], expected)
    expected = np.concatenate([numbers(FLOAT32, (6, 5), 0)[:2], expected])
    np.testing.assert_array_equal(rows[:4], expected)
    owner, (there,) = alloc_tensors([Tensor.like(rows[2:4])], HOST)
    copy_tensor(x, there)
    np.testing.assert_array_equal(read(there), rows[2:4].reshape(-1).view(np.uint8))
    owner.free()
    x.buffer.free()
    np.testing.assert_array_equal(rows[:4], expected)


def test_product_in_wrapped_memory(device, wrap):
    if not _takes(device):
        pytest.skip(f"{device.name} leaves it to others")
    if device.supports_buffer_type(HOST):
        pytest.skip(f"{device.name} takes arrays")
    a, b = numbers(FLOAT32, (64, 64), 0), numbers(FLOAT32, (64, 64), 1)
    out = poison((64, 64), FLOAT32)
    kernel = Kernel(Op.MATMUL, (wrap(a), wrap(b.mT)), wrap(out))
    assert finished(stream(device), [kernel]) == Status.SUCCESS
    _check_product(a, b.mT, out)


# -- a product as evaluation computes it ----------------------------------------------------------


def _takes(device):
    matrix = tensor(FLOAT32, 64, 64)
    return device.supports_op(Kernel(Op.MATMUL, (matrix, matrix), matrix))


def _check_product(a, b, out):
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.mean((out - expected) ** 2) <= 5e-4 * np.mean(expected**2)


def test_product_in_memory_of_the_device(device):
    """Operands that stay as weights do, in memory of their own, and results that come and go."""
    if not _takes(device):
        pytest.skip(f"{device.name} leaves it to others")
    matrix = tensor(FLOAT32, 64, 64)
    weights, (w,) = alloc_tensors([matrix], device.buffer_type, Usage.WEIGHTS)
    owner, (x, y) = alloc_tensors([matrix] * 2, device.buffer_type, Usage.COMPUTE)
    is_array = device.supports_buffer_type(HOST)
    x_, y_, w_ = ((each.buffer.array(each) if is_array else each) for each in (x, y, w))
    b = numbers(FLOAT32, (64, 64), 0)
    w.buffer.set_tensor(w, b.reshape(-1).view(np.uint8))
    for seed in (1, 2, 3):
        a = numbers(FLOAT32, (64, 64), seed)
        x.buffer.set_tensor(x, a.reshape(-1).view(np.uint8))
        kernel = Kernel(Op.MATMUL, (x_, w_), y_)
        assert finished(stream(device), [kernel]) == Status.SUCCESS
        _check_product(a, b, read(y).view(FLOAT32).reshape(64, 64))
        owner.reset()
        for each in (x, y):
            assert each.buffer.init_tensor(each) == Status.SUCCESS
    np.testing.assert_array_equal(read(w).view(FLOAT32).reshape(64, 64), b)
    weights.free()
    owner.free()
