"""The memory of plans: chunks that their values share, kept for the next evaluation.

Fresh memory costs a page fault for every page, and allocating on a device may take long, so chunks
are kept as long as all of one type together are no more than a limit.
"""

from collections.abc import Mapping

from ggarray.interface import Buffer, BufferType, HostBuffer, Usage

KEPT_BYTES = 16 << 20

Chunks = dict[BufferType, list[Buffer]]

_kept: Chunks = {}
_limits: dict[BufferType, int] = {}  # where more than KEPT_BYTES were reserved


def take(sizes: Mapping[BufferType, tuple[int, ...]]) -> Chunks:
    """Return buffers of at least these sizes, kept ones where they fit.

    Raises
    ------
    MemoryError
        There is not so much; nothing is taken.
    """
    taken: Chunks = {}
    try:
        for buffer_type, wanted in sizes.items():
            taken[buffer_type] = []
            for size in wanted:
                taken[buffer_type].append(_take(buffer_type, size))
    except BaseException:
        give(taken)
        raise
    return taken


def _take(buffer_type: BufferType, size: int) -> Buffer:
    kept = _kept.get(buffer_type, [])
    while fitting := [buffer for buffer in kept if buffer.size >= size]:
        buffer = min(fitting, key=lambda each: each.size)
        if buffer in kept:  # else a signal handler has taken it meanwhile
            kept.remove(buffer)
            buffer.reset()
            return buffer
    _free(kept)  # too small: they would be in the way of larger ones
    buffer = buffer_type.alloc(size)
    buffer.usage = Usage.COMPUTE
    return buffer


def _free(kept: list[Buffer]) -> None:
    while kept:
        kept.pop().free()


def give(chunks: Chunks) -> None:
    """Take buffers back; they are kept if there is room."""
    for buffer_type, buffers in chunks.items():
        kept = _kept.setdefault(buffer_type, [])
        limit = _limits.get(buffer_type, KEPT_BYTES)
        for buffer in buffers:
            if sum(each.size for each in kept) + buffer.size <= limit:
                kept.append(buffer)
            else:
                buffer.free()


def reserve(sizes: Mapping[BufferType, tuple[int, ...]]) -> None:
    """Allocate the chunks of a plan, and keep them from now on.

    Raises
    ------
    MemoryError
        There is not so much.
    """
    chunks = take(sizes)
    for buffer_type, buffers in chunks.items():
        size = sum(each.size for each in buffers)
        _limits[buffer_type] = max(_limits.get(buffer_type, KEPT_BYTES), size)
    give(chunks)


def kept_bytes() -> int:
    """Return the bytes of the buffers that are kept."""
    return sum(buffer.size for buffers in _kept.values() for buffer in buffers)


def release() -> None:
    """Free what is kept, and forget what was reserved."""
    _limits.clear()
    for buffers in _kept.values():
        _free(buffers)


def host_buffer(buffer: Buffer) -> HostBuffer:
    """Return a buffer of host memory, of whatever class, as one whose memory is an array."""
    if isinstance(buffer, HostBuffer):
        return buffer
    return HostBuffer.at(buffer.buffer_type, buffer.base, buffer.size)
