"""The memory of both devices.

`OwnBufferType` is memory of this process, kept to the device; host memory is wrapped as that too.
`RemoteBufferType` stands for memory that no address reaches: bytes go in and out by calls alone,
and tensors have to be announced.
"""

from itertools import count

import numpy as np

from ggarray.interface import HOST, Buffer, BufferType, HostBuffer, Status, Tensor, Value
from ggarray.interface.buffers import Bytes


def array_of(tensor: Tensor) -> Value:
    """Return what a kernel's operand or ``out`` is, for a stream to compute with."""
    return tensor.buffer.array(tensor)


class OwnBufferType(BufferType):
    """Memory that only the device's own streams reach into."""

    def alloc(self, size: int) -> HostBuffer:
        """Return a new buffer."""
        return HostBuffer(self, HOST.alloc(size).memory)


class RemoteBuffer(Buffer):
    """Memory at the end of a wire."""

    def __init__(self, buffer_type: "RemoteBufferType", size: int) -> None:
        super().__init__(buffer_type, size)
        self._base = next(buffer_type.bases)
        self._far = HOST.alloc(size)
        self._places: set[tuple[int, int]] = set()  # begins and ends of announced tensors

    @property
    def base(self) -> int:
        """What the device calls the first byte."""
        return self._base

    def init_tensor(self, tensor: Tensor) -> Status:
        """Note the place of a tensor; it has to be a right one."""
        end = tensor.offset + self.buffer_type.alloc_size(tensor)
        if tensor.offset % self.buffer_type.alignment or end > self.size:
            return Status.FAILED
        self._places.add((tensor.offset, end))
        return Status.SUCCESS

    def _announced(self, tensor: Tensor) -> Tensor:
        if not any(begin <= tensor.offset <= end for begin, end in self._places):
            raise ValueError(f"no tensor at byte {tensor.offset} has been announced")
        return tensor

    @property
    def memory(self) -> np.ndarray:
        """All bytes, as the device's own arithmetic sees them."""
        return self._far.memory

    def array(self, tensor: Tensor) -> Value:
        """Return a tensor as that sees it."""
        return self._far.array(self._announced(tensor))

    def set_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Send bytes of a tensor."""
        self._far.set_tensor(self._announced(tensor), data, offset)

    def get_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Fetch bytes of a tensor."""
        self._far.get_tensor(self._announced(tensor), data, offset)

    def copy_tensor(self, source: Tensor, target: Tensor) -> bool:
        """Copy a tensor of another such buffer without sending it over the wire."""
        if not isinstance(source.buffer, RemoteBuffer):
            return False
        far = Tensor.like(source.buffer._announced(source), buffer=source.buffer._far)
        return self._far.copy_tensor(far, self._announced(target))

    def clear(self, value: int = 0) -> None:
        """Set all bytes to one value."""
        self._far.clear(value)

    def reset(self) -> None:
        """Forget which tensors have been announced."""
        self._places.clear()

    def free(self) -> None:
        """Give the memory back; who uses it nevertheless is told."""
        self.buffer_type.buffers.discard(self)
        self._far = HOST.alloc(0)
        self.reset()


class RemoteBufferType(BufferType):
    """So many bytes of memory, for small buffers; what is in one until it is freed."""

    capacity = 1 << 28
    makes = RemoteBuffer

    def __init__(self, name: str, device: object) -> None:
        super().__init__(name, device, alignment=256, max_size=1 << 20)
        self.bases = count(1 << 60, 1 << 40)  # addresses of nothing that a process could have
        self.buffers: set[RemoteBuffer] = set()

    @property
    def left(self) -> int:
        """Bytes that are in no buffer."""
        return self.capacity - sum(each.size for each in self.buffers)

    def alloc(self, size: int) -> RemoteBuffer:
        """Return a new buffer, if there is so much memory left."""
        if size > self.left:
            raise MemoryError(f"{self.name}: {size} bytes of {self.left} are asked for")
        buffer = self.makes(self, size)
        self.buffers.add(buffer)
        return buffer

    def alloc_size(self, tensor: Tensor) -> int:
        """Return whole multiples of the alignment."""
        return -(-tensor.nbytes // self.alignment) * self.alignment
