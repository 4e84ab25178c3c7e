"""Buffers: where tensors lie, what is read and written, and whose memory it is when that fails."""

import sys

import numpy as np
import pytest

import ggarray as xp
from ggarray.interface import (
    HOST,
    Buffer,
    BufferType,
    HostBuffer,
    HostBufferType,
    MultiBuffer,
    Status,
    Tensor,
    TensorAllocator,
    Usage,
    alloc_tensors,
    copy_tensor,
)

BYTE = np.dtype(np.uint8)


class FarBuffer(Buffer):
    """Memory that the host does not see; it does no more than a backend has to."""

    def __init__(self, buffer_type, size):
        super().__init__(buffer_type, size)
        self._far = bytearray(size)

    @property
    def base(self):
        return 0

    def set_tensor(self, tensor, data, offset=0):
        start = tensor.offset + offset
        self._far[start : start + data.size] = data.tobytes()

    def get_tensor(self, tensor, data, offset=0):
        start = tensor.offset + offset
        data[...] = np.frombuffer(self._far[start : start + data.size], BYTE)

    def init_tensor(self, tensor):
        return Status.FAILED if tensor.dtype == self.buffer_type.refused else Status.SUCCESS

    def reset(self):
        self.buffer_type.resets += 1

    def free(self):
        self.buffer_type.live.remove(self)


class FarType(BufferType):
    """Keeps the books; takes no tensors of `refused`, and has room for `room` buffers."""

    def __init__(self, refused=None, room=100, **more):
        super().__init__("far", **more)
        self.live, self.resets, self.refused, self.room = [], 0, refused, room

    def alloc(self, size):
        if len(self.live) == self.room:
            raise MemoryError("no more")
        buffer = FarBuffer(self, size)
        self.live.append(buffer)
        return buffer


def in_bytes(length, buffer=None, offset=0):
    return Tensor((length,), BYTE, (1,), buffer=buffer, offset=offset)


def contents(buffer):
    data = np.empty(buffer.size, np.uint8)
    buffer.get_tensor(in_bytes(buffer.size, buffer), data)
    return data.tobytes()


@pytest.fixture(params=[HOST, HostBufferType("other"), FarType()], ids=["host", "other", "far"])
def buffer_type(request):
    return request.param


# -- bytes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 4097])
def test_alloc(size):
    buffers = [HOST.alloc(size) for _ in range(5)]
    for buffer in buffers:
        assert (buffer.size, buffer.buffer_type, buffer.usage) == (size, HOST, Usage.ANY)
        assert buffer.base % HOST.alignment == 0
    for at, buffer in enumerate(buffers):
        buffer.clear(at)
    assert [contents(buffer) for buffer in buffers] == [bytes([at]) * size for at in range(5)]


def test_alloc_of_more_than_there_is():
    with pytest.raises(MemoryError):
        HOST.alloc(1 << 62)


def test_set_and_get(buffer_type):
    buffer = buffer_type.alloc(16)
    buffer.clear(9)
    tensor = in_bytes(8, buffer, 4)
    buffer.set_tensor(tensor, np.arange(8, dtype=np.uint8))
    buffer.set_tensor(tensor, np.array([70, 80], np.uint8), 5)
    assert contents(buffer) == bytes([9] * 4 + [0, 1, 2, 3, 4, 70, 80, 7] + [9] * 4)
    part = np.empty(3, np.uint8)
    buffer.get_tensor(tensor, part, 4)
    assert part.tolist() == [4, 70, 80]


def test_memset_and_clear(buffer_type):
    buffer = buffer_type.alloc(12)
    buffer.clear()
    tensor = in_bytes(8, buffer, 2)
    buffer.memset_tensor(tensor, 1)
    buffer.memset_tensor(tensor, 2, 5)
    buffer.memset_tensor(tensor, 3, 1, 2)
    assert contents(buffer) == bytes([0, 0, 1, 3, 3, 1, 1, 2, 2, 2, 0, 0])
    buffer.clear(255)
    assert contents(buffer) == bytes([255] * 12)


@pytest.mark.parametrize(
    ("at", "offset", "size"), [(0, 0, 9), (0, 4, 5), (0, 9, 1), (0, -1, 2), (9, 0, 8), (17, 0, 0)]
)
def test_bytes_beyond_a_tensor_or_its_buffer(at, offset, size):
    buffer = HOST.alloc(16)
    buffer.clear(1)
    tensor, data = in_bytes(8, buffer, at), np.zeros(size, np.uint8)
    for use in (
        lambda: buffer.set_tensor(tensor, data, offset),
        lambda: buffer.get_tensor(tensor, data, offset),
        lambda: buffer.memset_tensor(tensor, 0, offset, size),
    ):
        with pytest.raises(ValueError, match="not within a tensor of 8"):
            use()
    assert contents(buffer) == bytes([1] * 16)
    assert not data.any()


def test_memory_of_somebody_else():
    memory = np.zeros(64, np.uint8)
    address = memory.__array_interface__["data"][0]
    buffer = HostBuffer.at(HOST, address + 8, 16)
    assert (buffer.base, buffer.size, buffer.buffer_type) == (address + 8, 16, HOST)
    buffer.clear(7)
    assert memory.tolist() == [0] * 8 + [7] * 16 + [0] * 40
    memory[8:] = 3
    assert contents(buffer) == bytes([3] * 16)
    assert contents(HostBuffer.at(HOST, address, 0)) == b""


# -- arrays ----------------------------------------------------------------------------------------


def stored(x):
    """Return a buffer with the bytes of a contiguous array from byte 64 on."""
    buffer = HOST.alloc(64 + x.nbytes)
    buffer.set_tensor(in_bytes(x.nbytes, buffer, 64), x.reshape(-1).view(np.uint8))
    return buffer


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, xp.bfloat16, np.complex128])
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.T,
        lambda x: x[1:, ::-2],
        lambda x: np.broadcast_to(x[:, 1:2], (3, 4, 5)),
        lambda x: x[3, 4, ...],
        lambda x: x[:0],
    ],
    ids=["whole", "transposed", "backwards", "broadcast", "one", "none"],
)
def test_array(dtype, view):
    x = np.arange(20).reshape(4, 5).astype(dtype)
    buffer, part = stored(x), view(x)
    begin = part.__array_interface__["data"][0] - x.__array_interface__["data"][0]
    found = buffer.array(Tensor.like(part, buffer=buffer, offset=64 + begin))
    np.testing.assert_array_equal(found, part)
    assert (found.dtype, found.strides) == (part.dtype, part.strides)
    buffer.clear(0)
    assert not found.any()


@pytest.mark.parametrize("dtype", [xp.q4_0, xp.q8_0], ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_array_of_blocks(dtype, axis):
    x = np.random.default_rng(0).integers(0, 256, (2, 3, 8, dtype.block_bytes)).astype(np.uint8)
    buffer, part = stored(x), x[:, 1:, ::2]
    lengths, begin = [2, 2, 4], 64 + x.strides[1]
    lengths[axis] *= 32
    tensor = Tensor(tuple(lengths), dtype, part.strides[:-1], axis, buffer, begin)
    found = buffer.array(tensor)
    assert (found.shape, found.dtype, found.axis) == (tuple(lengths), dtype, axis)
    assert Tensor.like(found, buffer=buffer, offset=begin) == tensor
    np.testing.assert_array_equal(found.data, part)
    assert np.shares_memory(found.data, buffer.memory)


# -- places ----------------------------------------------------------------------------------------


def places(tensors):
    return [tensor.offset for tensor in tensors]


@pytest.mark.parametrize("alignment", [1, 64, 256])
def test_allocator(alignment):
    buffer = FarType(alignment=alignment).alloc(1000)
    allocator = TensorAllocator(buffer)
    tensors = [allocator.alloc(in_bytes(length)) for length in (1, 64, 65, 0, 2)]
    assert all(tensor.buffer is buffer for tensor in tensors)
    expected = {1: [0, 1, 65, 130, 130], 64: [0, 64, 128, 256, 256], 256: [0, 256, 512, 768, 768]}
    assert places(tensors) == expected[alignment]


def test_allocator_takes_nothing_when_it_fails():
    allocator = TensorAllocator(FarType(refused=np.dtype(np.int8)).alloc(128))
    with pytest.raises(MemoryError, match="129 bytes does not fit: 0 of 128"):
        allocator.alloc(in_bytes(129))
    assert allocator.alloc(in_bytes(3)).offset == 0
    with pytest.raises(MemoryError, match="takes no tensor of int8"):
        allocator.alloc(Tensor((3,), np.dtype(np.int8), (1,)))
    with pytest.raises(MemoryError, match="65 bytes does not fit: 64 of 128"):
        allocator.alloc(in_bytes(65))
    assert allocator.alloc(in_bytes(64)).offset == 64


def test_allocator_asks_how_much_a_tensor_takes():
    class Padded(FarType):
        def alloc_size(self, tensor):
            return tensor.nbytes + 64

    _, tensors = alloc_tensors([in_bytes(64)] * 3, Padded())
    assert places(tensors) == [0, 128, 256]


@pytest.mark.parametrize(
    ("max_size", "lengths", "groups"),
    [
        (sys.maxsize, [1, 2, 3], [[1, 2, 3]]),
        (128, [64, 64, 1, 63], [[64, 64], [1, 63]]),
        (127, [64, 64, 63], [[64], [64, 63]]),
        (100, [10, 300, 10, 10], [[10], [300], [10, 10]]),
        (100, [300, 0], [[300], [0]]),
        (100, [5, 0], [[5, 0]]),
        (100, [300], [[300]]),
        (100, [], [[]]),
    ],
)
def test_alloc_tensors(max_size, lengths, groups):
    buffer_type = FarType(max_size=max_size)
    owner, tensors = alloc_tensors(map(in_bytes, lengths), buffer_type, Usage.WEIGHTS)
    found = [
        [each.nbytes for each in tensors if each.buffer is buffer] for buffer in buffer_type.live
    ]
    assert found == groups
    assert [each.nbytes for each in tensors] == lengths
    assert owner.usage is Usage.WEIGHTS
    assert isinstance(owner, MultiBuffer) == (len(groups) > 1)
    for buffer in buffer_type.live:
        mine = [each for each in tensors if each.buffer is buffer]
        assert buffer.usage is Usage.WEIGHTS
        assert places(mine) == list(range(0, 64 * len(mine), 64))
        assert buffer.size == (places(mine)[-1] + mine[-1].nbytes if mine else 0)
    owner.free()
    assert not buffer_type.live


def test_alloc_tensors_frees_what_it_has_got():
    tensors = [in_bytes(60)] * 3
    buffer_type = FarType(room=2, max_size=100)
    with pytest.raises(MemoryError, match="no more"):
        alloc_tensors(tensors, buffer_type)
    assert not buffer_type.live
    buffer_type = FarType(refused=np.dtype(np.int8), max_size=100)
    with pytest.raises(MemoryError, match="takes no tensor"):
        alloc_tensors([*tensors, Tensor((60,), np.dtype(np.int8), (1,))], buffer_type)
    assert not buffer_type.live


def test_several_buffers_as_one():
    buffer_type = FarType(max_size=100)
    owner, tensors = alloc_tensors([in_bytes(60)] * 2, buffer_type)
    first, second = owner.buffers
    assert (owner.size, owner.buffer_type, owner.usage) == (120, buffer_type, Usage.ANY)
    owner.clear(5)
    assert contents(first) == contents(second) == bytes([5] * 60)
    owner.set_tensor(tensors[1], np.array([1, 2], np.uint8), 4)
    owner.memset_tensor(tensors[1], 9, 58)
    assert contents(second) == bytes([5] * 4 + [1, 2] + [5] * 52 + [9] * 2)
    assert contents(first) == bytes([5] * 60)
    data = np.empty(3, np.uint8)
    owner.get_tensor(tensors[1], data, 4)
    assert data.tolist() == [1, 2, 5]
    first.usage = second.usage = Usage.COMPUTE
    assert owner.usage is Usage.COMPUTE
    owner.reset()
    assert buffer_type.resets == 2
    near = MultiBuffer([HOST.alloc(4), HOST.alloc(8)])
    assert near.base == near.buffers[0].base


# -- copies ----------------------------------------------------------------------------------------


class Direct(FarBuffer):
    """Copies from its own kind without the host."""

    def set_tensor(self, tensor, data, offset=0):
        raise AssertionError("by way of the host")

    def copy_tensor(self, source, target):
        size, begin, end = source.nbytes, source.offset, target.offset
        self._far[end : end + size] = source.buffer._far[begin : begin + size]
        return True


@pytest.mark.parametrize("of", [HOST, FarType()], ids=["host", "far"])
@pytest.mark.parametrize("to", [HOST, FarType()], ids=["host", "far"])
def test_copy(of, to):
    source, target = of.alloc(16), to.alloc(24)
    source.set_tensor(in_bytes(16, source), np.arange(16, dtype=np.uint8))
    target.clear(99)
    copy_tensor(in_bytes(8, source, 4), in_bytes(8, target, 12))
    assert contents(target) == bytes([99] * 12 + list(range(4, 12)) + [99] * 4)


def test_copy_goes_directly_if_it_can():
    source, target = FarType().alloc(8), Direct(FarType(), 8)
    source.clear(7)
    copy_tensor(in_bytes(8, source), in_bytes(8, target))
    near = HOST.alloc(8)
    assert contents(target) == bytes([7] * 8)
    assert near.copy_tensor(in_bytes(8, source), in_bytes(8, near)) is False
    near.clear(1)
    assert near.copy_tensor(in_bytes(4, near), in_bytes(4, near, 4)) is True


def test_copy_within_a_buffer_overlaps():
    buffer = HOST.alloc(8)
    buffer.set_tensor(in_bytes(8, buffer), np.arange(8, dtype=np.uint8))
    copy_tensor(in_bytes(6, buffer), in_bytes(6, buffer, 2))
    assert contents(buffer) == bytes([0, 1, 0, 1, 2, 3, 4, 5])


def test_copies_that_cannot_be():
    buffer = HOST.alloc(8)
    here = in_bytes(8, buffer)
    with pytest.raises(ValueError, match="8 bytes and cannot be copied to"):
        copy_tensor(here, in_bytes(7, buffer))
    for source, target in [(here, in_bytes(8)), (in_bytes(8), here)]:
        with pytest.raises(ValueError, match="lies in no buffer"):
            copy_tensor(source, target)
    with pytest.raises(ValueError, match="not within a tensor"):
        copy_tensor(here, in_bytes(8, HOST.alloc(7)))
