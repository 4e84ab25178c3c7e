"""Memory of a device: where tensors lie, and how their bytes get in and out."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ggarray._quantized.blocks import Blocks
from ggarray.interface.nodes import Tensor, Value
from ggarray.interface.outcome import Status

if TYPE_CHECKING:
    from ggarray.interface.devices import BackendDevice

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
"""Bytes in host memory: one axis, contiguous."""


class Usage(Enum):
    """What a buffer is for.

    ``WEIGHTS`` holds constants, and a node is computed where they are; ``COMPUTE`` the values of
    one evaluation; ``ANY`` is what has not been said.

    Examples
    --------
    >>> from ggarray.interface import Usage
    >>> Usage.WEIGHTS
    <Usage.WEIGHTS: 1>
    """

    ANY = 0
    WEIGHTS = 1
    COMPUTE = 2


class Buffer(ABC):
    """One piece of memory of a buffer type.

    Parameters
    ----------
    buffer_type : BufferType
        What it was made by.
    size : int
        Bytes.

    Examples
    --------
    >>> from ggarray.interface import HOST
    >>> buffer = HOST.alloc(100)
    >>> buffer.size, buffer.usage
    (100, <Usage.ANY: 0>)
    """

    usage = Usage.ANY

    def __init__(self, buffer_type: "BufferType", size: int) -> None:
        self.buffer_type = buffer_type
        self.size = size

    @property
    @abstractmethod
    def base(self) -> int:
        """Address of the first byte; of memory that is not the host's, what the device calls it.

        Examples
        --------
        >>> from ggarray.interface import HOST
        >>> HOST.alloc(100).base % 64
        0
        """

    @abstractmethod
    def set_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Write bytes of a tensor, when this returns they are there.

        Parameters
        ----------
        tensor : Tensor
            A contiguous one in this buffer.
        data : numpy.ndarray of uint8
            The bytes, one axis.
        offset : int
            Where in the tensor the first goes.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, Tensor
        >>> a = Tensor((4,), np.dtype(np.uint8), (1,), buffer=HOST.alloc(100), offset=64)
        >>> a.buffer.set_tensor(a, np.arange(4, dtype=np.uint8))
        """

    @abstractmethod
    def get_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Read bytes of a tensor.

        Parameters
        ----------
        tensor : Tensor
            A contiguous one in this buffer.
        data : numpy.ndarray of uint8
            Filled; one axis.
        offset : int
            Where in the tensor the first is.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, Tensor
        >>> a = Tensor((4,), np.dtype(np.uint8), (1,), buffer=HOST.alloc(100))
        >>> a.buffer.clear(7)
        >>> data = np.empty(2, np.uint8)
        >>> a.buffer.get_tensor(a, data)
        >>> data
        array([7, 7], dtype=uint8)
        """

    def init_tensor(self, tensor: Tensor) -> Status:
        """Get ready for a tensor that will lie here; called once it has its place.

        Parameters
        ----------
        tensor : Tensor
            In this buffer; not a view of another one.

        Returns
        -------
        Status
            SUCCESS, which is all that is done unless a backend says otherwise.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, Tensor
        >>> buffer = HOST.alloc(64)
        >>> buffer.init_tensor(Tensor((4,), np.dtype(np.uint8), (1,), buffer=buffer))
        <Status.SUCCESS: 0>
        """
        return Status.SUCCESS

    def memset_tensor(
        self, tensor: Tensor, value: int, offset: int = 0, size: int | None = None
    ) -> None:
        """Set bytes of a tensor to one value; goes by `set_tensor` unless a backend knows better.

        Parameters
        ----------
        tensor : Tensor
            A contiguous one in this buffer.
        value : int
            Of each byte, 0 to 255.
        offset, size : int
            Which bytes; as many as there are without a size.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, Tensor
        >>> a = Tensor((4,), np.dtype(np.uint8), (1,), buffer=HOST.alloc(100))
        >>> a.buffer.memset_tensor(a, 7)
        """
        size = tensor.nbytes - offset if size is None else size
        self.set_tensor(tensor, np.full(size, value, np.uint8), offset)

    def copy_tensor(self, source: Tensor, target: Tensor) -> bool:
        """Copy a tensor of another buffer to one in this, if there is a direct way.

        Parameters
        ----------
        source : Tensor
            A contiguous one in any buffer.
        target : Tensor
            One of its shape and dtype in this buffer.

        Returns
        -------
        bool
            False if there is no direct way, and nothing was done: always, unless a backend says
            otherwise.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, Tensor
        >>> a = Tensor((4,), np.dtype(np.uint8), (1,), buffer=HOST.alloc(100))
        >>> a.buffer.copy_tensor(a, a._replace(offset=64))
        True
        """
        return False

    def clear(self, value: int = 0) -> None:
        """Set all bytes to one value.

        Parameters
        ----------
        value : int
            0 to 255.

        Examples
        --------
        >>> from ggarray.interface import HOST
        >>> HOST.alloc(100).clear()
        """
        whole = Tensor((self.size,), np.dtype(np.uint8), (1,), buffer=self)
        self.memset_tensor(whole, value)

    def reset(self) -> None:
        """Forget what `init_tensor` has noted; called before a buffer is used for other tensors.

        Examples
        --------
        >>> from ggarray.interface import HOST
        >>> HOST.alloc(100).reset()
        """
        return

    def free(self) -> None:
        """Give the memory back; nothing in it is used afterwards.

        Examples
        --------
        >>> from ggarray.interface import HOST
        >>> HOST.alloc(100).free()
        """
        return


class BufferType(ABC):
    """A kind of memory; it allocates buffers.

    Parameters
    ----------
    name : str
        What users call it.
    device : BackendDevice or None
        Whose memory it is; None for the host's.
    is_host : bool
        True promises that buffers are host memory at `Buffer.base`, in which tensors have the
        layout they say. Then ggarray reads and writes them itself, and the devices that take
        host memory take them too.
    alignment : int
        The places of tensors are multiples of so many bytes.
    max_size : int
        The most bytes of one buffer.

    Examples
    --------
    >>> from ggarray.interface import HOST
    >>> HOST.name, HOST.is_host, HOST.alignment
    ('host', True, 64)
    """

    def __init__(
        self,
        name: str,
        device: "BackendDevice | None" = None,
        *,
        is_host: bool = False,
        alignment: int = 64,
        max_size: int = sys.maxsize,
    ) -> None:
        self.name = name
        self.device = device
        self.is_host = is_host
        self.alignment = alignment
        self.max_size = max_size

    @abstractmethod
    def alloc(self, size: int) -> Buffer:
        """Return a new buffer, whose base is a multiple of the alignment.

        Parameters
        ----------
        size : int
            Bytes; more than `max_size` only for a single tensor that is larger.

        Returns
        -------
        Buffer
            Of undefined content.

        Raises
        ------
        MemoryError
            There is not so much.

        Examples
        --------
        >>> from ggarray.interface import HOST
        >>> HOST.alloc(100).size
        100
        """

    def alloc_size(self, tensor: Tensor) -> int:
        """Return how many bytes a tensor takes here; its own unless a backend says otherwise.

        Parameters
        ----------
        tensor : Tensor
            A contiguous one in no buffer.

        Returns
        -------
        int
            At least the bytes of its elements.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, Tensor
        >>> HOST.alloc_size(Tensor((2, 3), np.dtype(np.float64), (24, 8)))
        48
        """
        return tensor.nbytes

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class HostBuffer(Buffer):
    """Host memory.

    Parameters
    ----------
    buffer_type : BufferType
        What it counts as.
    memory : numpy.ndarray of uint8
        The memory, of one axis.

    Examples
    --------
    >>> import numpy as np
    >>> from ggarray.interface import HOST, HostBuffer
    >>> HostBuffer(HOST, np.empty(100, np.uint8)).size
    100
    """

    def __init__(self, buffer_type: "BufferType", memory: Bytes) -> None:
        super().__init__(buffer_type, memory.size)
        self.memory = memory

    @classmethod
    def at(cls, buffer_type: BufferType, address: int, size: int) -> "HostBuffer":
        """Return a buffer over memory that somebody else owns.

        Parameters
        ----------
        buffer_type : BufferType
            What it counts as.
        address, size : int
            Where it is, and its bytes. The owner keeps it alive.

        Returns
        -------
        HostBuffer
            What is written to it is in that memory.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, HostBuffer
        >>> memory = np.arange(4, dtype=np.uint8)
        >>> HostBuffer.at(HOST, memory.__array_interface__["data"][0], 4).memory
        array([0, 1, 2, 3], dtype=uint8)
        """
        from ctypes import c_uint8  # only devices of their own memory need it

        return cls(buffer_type, np.ctypeslib.as_array((c_uint8 * size).from_address(address)))

    @property
    def base(self) -> int:
        """Address of the first byte.

        Examples
        --------
        >>> from ggarray.interface import HOST
        >>> HOST.alloc(100).base % 64
        0
        """
        return int(self.memory.__array_interface__["data"][0])

    def array(self, tensor: Tensor) -> Value:
        """Return a tensor as an array over its memory, or as blocks.

        Parameters
        ----------
        tensor : Tensor
            In this buffer.

        Returns
        -------
        numpy.ndarray or Blocks
            Valid as long as the memory is.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, Tensor
        >>> a = Tensor((4,), np.dtype(np.uint8), (1,), buffer=HOST.alloc(100))
        >>> a.buffer.clear(7)
        >>> a.buffer.array(a)
        array([7, 7, 7, 7], dtype=uint8)
        """
        memory, offset = self.memory, tensor.offset
        if tensor.axis is None:
            return np.ndarray(tensor.shape, tensor.dtype, memory, offset, tensor.strides)
        lengths = list(tensor.shape)
        lengths[tensor.axis] //= tensor.dtype.block_size
        shape, strides = (*lengths, tensor.dtype.block_bytes), (*tensor.strides, 1)
        data = np.ndarray(shape, np.uint8, memory, offset, strides)
        return Blocks(data, tensor.dtype, tensor.axis)

    def _part(self, tensor: Tensor, offset: int, size: int) -> Bytes:
        start = tensor.offset + offset
        if offset < 0 or offset + size > tensor.nbytes or start + size > self.size:
            raise ValueError(
                f"{size} bytes from byte {offset} on are not within a tensor of {tensor.nbytes}"
                f" bytes at {tensor.offset} of a buffer of {self.size}"
            )
        return self.memory[start : start + size]

    def set_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Write bytes of a tensor.

        Parameters
        ----------
        tensor : Tensor
            A contiguous one in this buffer.
        data : numpy.ndarray of uint8
            The bytes, one axis.
        offset : int
            Where in the tensor the first goes.

        Raises
        ------
        ValueError
            They reach beyond the tensor or the buffer; nothing is written.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, Tensor
        >>> a = Tensor((4,), np.dtype(np.uint8), (1,), buffer=HOST.alloc(100), offset=64)
        >>> a.buffer.set_tensor(a, np.arange(4, dtype=np.uint8))
        """
        self._part(tensor, offset, data.size)[...] = data

    def get_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Read bytes of a tensor.

        Parameters
        ----------
        tensor : Tensor
            A contiguous one in this buffer.
        data : numpy.ndarray of uint8
            Filled; one axis.
        offset : int
            Where in the tensor the first is.

        Raises
        ------
        ValueError
            They reach beyond the tensor or the buffer.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, Tensor
        >>> a = Tensor((4,), np.dtype(np.uint8), (1,), buffer=HOST.alloc(100))
        >>> a.buffer.get_tensor(a, np.empty(4, np.uint8))
        """
        data[...] = self._part(tensor, offset, data.size)

    def copy_tensor(self, source: Tensor, target: Tensor) -> bool:
        """Copy a tensor of another host buffer to one in this.

        Parameters
        ----------
        source : Tensor
            A contiguous one in any buffer.
        target : Tensor
            One of its shape and dtype in this buffer.

        Returns
        -------
        bool
            False if the other buffer is none of host memory.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, Tensor
        >>> a = Tensor((4,), np.dtype(np.uint8), (1,), buffer=HOST.alloc(100))
        >>> a.buffer.copy_tensor(a, a._replace(offset=64))
        True
        """
        if not isinstance(source.buffer, HostBuffer):
            return False
        source.buffer.get_tensor(source, self._part(target, 0, target.nbytes))
        return True


class HostBufferType(BufferType):
    """Host memory, aligned to a line of any cache.

    Parameters
    ----------
    name : str
        What users call it.
    device : BackendDevice or None
        The device that knows this memory best; None for that of every program.
    max_size : int
        The most bytes of one buffer.

    Examples
    --------
    >>> from ggarray.interface import HostBufferType
    >>> HostBufferType("pinned").alloc(10).base % 64
    0
    """

    def __init__(
        self,
        name: str = "host",
        device: "BackendDevice | None" = None,
        *,
        max_size: int = sys.maxsize,
    ) -> None:
        super().__init__(name, device, is_host=True, max_size=max_size)

    def alloc(self, size: int) -> HostBuffer:
        """Return a new buffer.

        Parameters
        ----------
        size : int
            Bytes.

        Returns
        -------
        HostBuffer
            Of undefined content.

        Raises
        ------
        MemoryError
            There is not so much.

        Examples
        --------
        >>> from ggarray.interface import HOST
        >>> HOST.alloc(100).size
        100
        """
        data = np.empty(size + self.alignment, np.uint8)
        start = -data.__array_interface__["data"][0] % self.alignment
        return HostBuffer(self, data[start:][:size])  # an empty [start:start] would begin at 0


HOST = HostBufferType()
"""The host's memory, where the values of all arrays are."""


class MultiBuffer(Buffer):
    """Several buffers that are one to their owner.

    Parameters
    ----------
    buffers : sequence of Buffer
        At least one, all of one type. Tensors lie in them, not in this.

    Examples
    --------
    >>> from ggarray.interface import HOST, MultiBuffer, Usage
    >>> both = MultiBuffer([HOST.alloc(100), HOST.alloc(50)])
    >>> both.size
    150
    >>> both.usage = Usage.WEIGHTS
    >>> both.buffers[1].usage
    <Usage.WEIGHTS: 1>
    """

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        super().__init__(buffers[0].buffer_type, sum(each.size for each in buffers))
        self.buffers = tuple(buffers)

    @property
    def base(self) -> int:
        """Address of the first byte of the first buffer.

        Examples
        --------
        >>> from ggarray.interface import HOST, MultiBuffer
        >>> MultiBuffer([HOST.alloc(100)]).base % 64
        0
        """
        return self.buffers[0].base

    @property
    def usage(self) -> Usage:
        """What the buffers are for; setting it sets it on all.

        Examples
        --------
        >>> from ggarray.interface import HOST, MultiBuffer
        >>> MultiBuffer([HOST.alloc(100)]).usage
        <Usage.ANY: 0>
        """
        return self.buffers[0].usage

    @usage.setter
    def usage(self, usage: Usage) -> None:
        for each in self.buffers:
            each.usage = usage

    def set_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Write bytes of a tensor, to the buffer that it is in.

        Parameters
        ----------
        tensor : Tensor
            A contiguous one.
        data : numpy.ndarray of uint8
            The bytes, one axis.
        offset : int
            Where in the tensor the first goes.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, MultiBuffer, Tensor
        >>> a = Tensor((4,), np.dtype(np.uint8), (1,), buffer=HOST.alloc(100))
        >>> MultiBuffer([a.buffer]).set_tensor(a, np.arange(4, dtype=np.uint8))
        """
        _of(tensor).set_tensor(tensor, data, offset)

    def get_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Read bytes of a tensor, from the buffer that it is in.

        Parameters
        ----------
        tensor : Tensor
            A contiguous one.
        data : numpy.ndarray of uint8
            Filled; one axis.
        offset : int
            Where in the tensor the first is.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, MultiBuffer, Tensor
        >>> a = Tensor((4,), np.dtype(np.uint8), (1,), buffer=HOST.alloc(100))
        >>> MultiBuffer([a.buffer]).get_tensor(a, np.empty(4, np.uint8))
        """
        _of(tensor).get_tensor(tensor, data, offset)

    def clear(self, value: int = 0) -> None:
        """Set all bytes of all buffers to one value.

        Parameters
        ----------
        value : int
            0 to 255.

        Examples
        --------
        >>> from ggarray.interface import HOST, MultiBuffer
        >>> MultiBuffer([HOST.alloc(100)]).clear()
        """
        for each in self.buffers:
            each.clear(value)

    def reset(self) -> None:
        """Reset all buffers.

        Examples
        --------
        >>> from ggarray.interface import HOST, MultiBuffer
        >>> MultiBuffer([HOST.alloc(100)]).reset()
        """
        for each in self.buffers:
            each.reset()

    def free(self) -> None:
        """Free all buffers.

        Examples
        --------
        >>> from ggarray.interface import HOST, MultiBuffer
        >>> MultiBuffer([HOST.alloc(100)]).free()
        """
        for each in self.buffers:
            each.free()


def _of(tensor: Tensor) -> Buffer:
    if tensor.buffer is None:
        raise ValueError(f"a tensor of shape {tensor.shape} lies in no buffer")
    return tensor.buffer


class TensorAllocator:
    """Gives tensors their places in a buffer, one after the other; nothing is given back.

    Parameters
    ----------
    buffer : Buffer
        An empty one.

    Examples
    --------
    >>> import numpy as np
    >>> from ggarray.interface import HOST, Tensor, TensorAllocator
    >>> allocator = TensorAllocator(HOST.alloc(200))
    >>> a = Tensor((5,), np.dtype(np.float64), (8,))
    >>> [allocator.alloc(a).offset, allocator.alloc(a).offset]
    [0, 64]
    """

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self._used = 0

    def alloc(self, tensor: Tensor) -> Tensor:
        """Return the tensor in its place, the buffer being ready for it.

        Parameters
        ----------
        tensor : Tensor
            A contiguous one in no buffer.

        Returns
        -------
        Tensor
            The same layout, with its buffer and offset.

        Raises
        ------
        MemoryError
            There is not so much room left, or the buffer could not be made ready.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, Tensor, TensorAllocator
        >>> allocator = TensorAllocator(HOST.alloc(200))
        >>> allocator.alloc(Tensor((5,), np.dtype(np.float64), (8,))).buffer.size
        200
        """
        buffer = self.buffer
        size, offset = buffer.buffer_type.alloc_size(tensor), self._used
        if offset + size > buffer.size:
            raise MemoryError(
                f"a tensor of {size} bytes does not fit: {offset} of {buffer.size} bytes of a"
                f" buffer of {buffer.buffer_type.name} are taken"
            )
        placed = tensor._replace(buffer=buffer, offset=offset)
        init_tensor(placed)
        self._used = aligned(offset + size, buffer.buffer_type.alignment)
        return placed


def init_tensor(tensor: Tensor) -> None:
    """Have the buffer of a tensor made ready for it; MemoryError if that fails."""
    buffer = _of(tensor)
    if buffer.init_tensor(tensor) != Status.SUCCESS:
        raise MemoryError(
            f"a buffer of {buffer.buffer_type.name} takes no tensor of {tensor.dtype}{tensor.shape}"
        )


def aligned(size: int, alignment: int) -> int:
    """Return the least multiple of the alignment that is not less than `size`."""
    return -(-size // alignment) * alignment


def alloc_tensors(
    tensors: Iterable[Tensor], buffer_type: BufferType, usage: Usage = Usage.ANY
) -> tuple[Buffer, tuple[Tensor, ...]]:
    """Allocate tensors, such as the weights of a model, one after the other.

    Parameters
    ----------
    tensors : iterable of Tensor
        Contiguous ones in no buffer.
    buffer_type : BufferType
        Of the memory; where its `max_size` is less than all need, there are several buffers.
    usage : Usage
        What the memory is for.

    Returns
    -------
    Buffer
        Owner of the memory.
    tuple of Tensor
        The tensors in their places.

    Raises
    ------
    MemoryError
        There is not so much memory; what was allocated has been freed.

    Examples
    --------
    >>> import numpy as np
    >>> from ggarray.interface import HostBufferType, Tensor, Usage, alloc_tensors
    >>> small = HostBufferType("small", max_size=100)
    >>> a = Tensor((5,), np.dtype(np.float64), (8,))
    >>> owner, placed = alloc_tensors([a, a, a], small, Usage.WEIGHTS)
    >>> [each.size for each in owner.buffers], [each.offset for each in placed]
    ([40, 40, 40], [0, 0, 0])
    """
    groups = _groups(tensors, buffer_type)
    buffers: list[Buffer] = []
    placed: list[Tensor] = []
    try:
        buffers += (buffer_type.alloc(size) for size, _ in groups)
        for buffer, (_, group) in zip(buffers, groups, strict=True):
            placed += map(TensorAllocator(buffer).alloc, group)
    except BaseException:
        for each in buffers:
            each.free()
        raise
    owner = buffers[0] if len(buffers) == 1 else MultiBuffer(buffers)
    owner.usage = usage
    return owner, tuple(placed)


def _groups(tensors: Iterable[Tensor], buffer_type: BufferType) -> list[tuple[int, list[Tensor]]]:
    """Return how many bytes each of the buffers for tensors takes, and what lies in it."""
    groups: list[tuple[int, list[Tensor]]] = []
    for tensor in tensors:
        size = buffer_type.alloc_size(tensor)
        end = aligned(groups[-1][0], buffer_type.alignment) + size if groups else 0
        if groups and end <= buffer_type.max_size:
            groups[-1][1].append(tensor)
            groups[-1] = end, groups[-1][1]
        else:
            groups.append((size, [tensor]))
    return groups or [(0, [])]


def copy_tensor(source: Tensor, target: Tensor) -> None:
    """Copy a tensor to another buffer: directly if there is a way, else through host memory.

    Parameters
    ----------
    source, target : Tensor
        Contiguous ones of one shape and dtype, in buffers.

    Raises
    ------
    ValueError
        Their bytes differ in number, or one lies in no buffer.

    Examples
    --------
    >>> import numpy as np
    >>> from ggarray.interface import HOST, HostBufferType, Tensor, copy_tensor
    >>> a = Tensor((4,), np.dtype(np.uint8), (1,), buffer=HOST.alloc(4))
    >>> a.buffer.clear(7)
    >>> b = a._replace(buffer=HostBufferType("other").alloc(4))
    >>> copy_tensor(a, b)
    >>> b.buffer.array(b)
    array([7, 7, 7, 7], dtype=uint8)
    """
    if source.nbytes != target.nbytes:
        raise ValueError(
            f"{source.dtype}{source.shape} has {source.nbytes} bytes and cannot be copied to"
            f" {target.dtype}{target.shape} of {target.nbytes}"
        )
    if not _of(target).copy_tensor(source, target):
        data = np.empty(source.nbytes, np.uint8)
        _of(source).get_tensor(source, data)
        _of(target).set_tensor(target, data)
