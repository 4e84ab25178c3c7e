"""Where a device wants the values of kernels: host memory as it is, wrapped, or copied to its own.

Values are made in host memory, and what a kernel has done is looked at there.
"""

from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ggarray._quantized.blocks import Blocks
from ggarray.interface import HOST, Kernel, Tensor, Usage, alloc_tensors

BYTE = np.dtype(np.uint8)


@contextmanager
def placing(device):
    """Give a way to place values where a device takes them; their memory goes afterwards."""
    if device.supports_buffer_type(HOST):
        place = InPlace(device)
    else:
        place = (Wrapped if device.caps.buffer_from_host_ptr else Copied)(device)
    try:
        yield place
    finally:
        place.free()


class InPlace:
    """Host memory as it is."""

    def __init__(self, device):
        self.device = device

    def kernel(self, kernel):
        """Return the kernel for the device."""
        bias = None if kernel.bias is None else self.value(kernel.bias)
        operands = tuple(map(self.value, kernel.operands))
        out = self.value(kernel.out)
        return Kernel(kernel.op, operands, out, kernel.alpha, kernel.beta, bias, kernel.flags)

    def value(self, value):
        """Return an operand or a result in its place."""
        return value

    def watch(self, memory, margin, tensor):
        """Place bytes that have a tensor in them, with a margin on both sides of it.

        To be called before `kernel`, for bytes beside the tensor to be placed beside it.
        """

    def fetch(self):
        """Have in host memory what the device has in its own."""

    def free(self):
        """Give memory back."""


class Wrapped(InPlace):
    """Host memory in buffers of the device, one for each piece of memory."""

    def __init__(self, device):
        super().__init__(device)
        self._buffers = {}

    def value(self, value):
        memory = memory_of(value)
        start, size = address(memory), memory.size
        if (start, size) not in self._buffers:
            self._buffers[start, size] = self.device.buffer_from_host_ptr(start, size, size)
        return Tensor.like(value, buffer=self._buffers[start, size], offset=address(value) - start)

    def free(self):
        for buffer in self._buffers.values():
            buffer.free()


class Piece(NamedTuple):
    """Host memory, and the tensor that is its copy."""

    memory: np.ndarray
    tensor: Tensor


class Copied(InPlace):
    """Memory of the device.

    A contiguous value is a tensor there; of another one, all the memory that it is a view of is.
    """

    def __init__(self, device):
        super().__init__(device)
        self._pieces = []
        self._owners = []

    def value(self, value):
        piece = self._piece_with(value)
        if piece is None:
            memory = bytes_of(value)
            if memory is None:
                memory = memory_of(value)
                self._add([memory], [bytes_like(memory)])
            else:
                self._add([memory], [Tensor.like(value)])
            piece = self._pieces[-1]
        at = piece.tensor
        offset = at.offset + address(value) - address(piece.memory)
        return Tensor.like(value, buffer=at.buffer, offset=offset)

    def watch(self, memory, margin, tensor):
        end = margin + tensor.nbytes
        parts = memory[margin:end], memory[:margin], memory[end:]
        self._add(parts, [tensor, *map(bytes_like, parts[1:])])

    def _add(self, memories, tensors):
        owner, placed = alloc_tensors(tensors, self.device.buffer_type, Usage.COMPUTE)
        self._owners.append(owner)
        for memory, tensor in zip(memories, placed, strict=True):
            tensor.buffer.set_tensor(tensor, memory)
            self._pieces.append(Piece(memory, tensor))

    def _piece_with(self, value):
        low, high = bounds_of(value)
        for piece in self._pieces:
            start = address(piece.memory)
            if start <= low and high <= start + piece.memory.size:
                return piece
        return None

    def fetch(self):
        for memory, tensor in self._pieces:
            tensor.buffer.get_tensor(tensor, memory)

    def free(self):
        for owner in self._owners:
            owner.free()


def _plain(value):
    return value.data if isinstance(value, Blocks) else value


def address(value):
    """Return the address of the first element."""
    return _plain(value).__array_interface__["data"][0]


def bounds_of(value):
    """Return the addresses of the first byte and behind the last one."""
    return byte_bounds(_plain(value)) if _plain(value).size else (address(value),) * 2


def memory_of(value):
    """Return all of the memory that a value is in, as bytes."""
    memory = _plain(value)
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    return _flat(memory if memory.flags.c_contiguous else memory.T)


def bytes_of(value):
    """Return the bytes of a value that is contiguous; None of another one."""
    tensor = Tensor.like(value)
    if tensor.strides != tensor.contiguous().strides:
        return None
    memory = memory_of(value)
    start = address(value) - address(memory)
    return memory[start : start + tensor.nbytes]


def _flat(memory):
    assert memory.flags.c_contiguous
    return memory.reshape(-1).view(BYTE)


def bytes_like(memory):
    """Return the tensor of as many bytes."""
    return Tensor(memory.shape, BYTE, (1,))
