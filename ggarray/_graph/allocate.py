"""Planning memory: where each value of a plan lies, decided before any memory is touched.

Values that nothing needs after the plan share a few chunks of memory: two of them overlap only
where one is not needed any more when the other is written. Nothing here knows nodes or backends.
"""

import sys
from bisect import bisect, insort
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple


class Interval(NamedTuple):
    """A value: its bytes, and the steps from its first write to its last use, both included."""

    size: int
    first: int
    last: int


class Place(NamedTuple):
    """Where a value lies: which chunk, and how many bytes after its begin."""

    chunk: int
    offset: int


class Layout(NamedTuple):
    """The places of values, one each, and the bytes of the chunks that hold them."""

    places: tuple[Place, ...]
    chunks: tuple[int, ...]


_Hole = tuple[int, int, int]
"""Free bytes: a chunk, their begin and end. The last hole of a chunk reaches beyond its size."""

# Placing by time wastes more than placing by size, but takes less time. The other way is tried
# where more than so many bytes are wasted, unless values live for more than so many steps each.
_WASTE = 1 << 16
_STEPS = 32


def lay_out(intervals: Sequence[Interval], alignment: int, max_size: int | None = None) -> Layout:
    """Place values so that no two overlap that are needed at the same time.

    Parameters
    ----------
    intervals : sequence of Interval
        The values; one of no bytes takes no room.
    alignment : int
        Every place and every chunk is a multiple of it.
    max_size : int, optional
        The most bytes of a chunk, except of one for a single value that is larger.

    Returns
    -------
    Layout
    """
    values = [(-(-size // alignment) * alignment, first, last) for size, first, last in intervals]
    most = sys.maxsize if max_size is None else max_size
    layout, needed = _by_time(values, most)
    steps = sum(last - first + 1 for _, first, last in values)
    if sum(layout.chunks) - needed <= _WASTE or steps > _STEPS * len(values):
        return layout
    other = _by_size(values, most)
    return min(layout, other, key=lambda each: sum(each.chunks))


def _by_time(values: Sequence[tuple[int, int, int]], max_size: int) -> tuple[Layout, int]:
    """Place values in the order in which they are written, each in the smallest hole.

    Returns the layout and the most bytes that are needed at one time.
    """
    places = [Place(0, 0)] * len(values)
    chunks: list[int] = []
    holes: list[_Hole] = []
    dying: list[tuple[int, int]] = []
    alive = most_alive = 0
    for at in sorted(range(len(values)), key=lambda at: values[at][1]):
        size, first, last = values[at]
        if not size:
            continue
        while dying and dying[0][0] < first:
            _, dead = heappop(dying)
            freed = values[dead][0]
            alive -= freed
            _release(holes, *places[dead], freed)
        places[at] = _take(holes, chunks, size, max_size)
        heappush(dying, (last, at))
        alive += size
        most_alive = max(most_alive, alive)
    return Layout(tuple(places), tuple(chunks)), most_alive


def _by_size(values: Sequence[tuple[int, int, int]], max_size: int) -> Layout:
    """Place the greatest first, each in the smallest hole that is there while it lives."""
    places = [Place(0, 0)] * len(values)
    chunks: list[int] = []
    alive: dict[int, list[int]] = {}  # what has been placed so far, by step
    for at in sorted(range(len(values)), key=lambda at: -values[at][0]):
        size, first, last = values[at]
        if not size:
            continue
        steps = range(first, last + 1)
        beside = {other for step in steps for other in alive.get(step, ())}
        taken = sorted((*places[each], places[each].offset + values[each][0]) for each in beside)
        places[at] = _take(_between(taken, chunks, max_size), chunks, size, max_size)
        for step in steps:
            alive.setdefault(step, []).append(at)
    return Layout(tuple(places), tuple(chunks))


def _between(taken: Iterable[_Hole], chunks: Sequence[int], max_size: int) -> list[_Hole]:
    """Return the holes that sorted pieces of chunks leave."""
    holes: list[_Hole] = []
    begins = [0] * len(chunks)
    for chunk, begin, end in taken:
        if begin > begins[chunk]:
            holes.append((chunk, begins[chunk], begin))
        begins[chunk] = max(begins[chunk], end)
    ends = ((at, begins[at], max(size, max_size)) for at, size in enumerate(chunks))
    return sorted([*holes, *ends])


def _take(holes: list[_Hole], chunks: list[int], size: int, max_size: int) -> Place:
    """Take the begin of the hole that is used up most; growing a chunk is the last resort."""
    fitting = [
        (max(0, begin + size - chunks[chunk]), end - begin, at)
        for at, (chunk, begin, end) in enumerate(holes)
        if end - begin >= size
    ]
    if fitting:
        at = min(fitting)[2]
    else:
        at = len(holes)
        holes.append((len(chunks), 0, max(size, max_size)))
        chunks.append(0)
    chunk, begin, end = holes.pop(at)
    if begin + size < end:
        holes.insert(at, (chunk, begin + size, end))
    chunks[chunk] = max(chunks[chunk], begin + size)
    return Place(chunk, begin)


def _release(holes: list[_Hole], chunk: int, begin: int, size: int) -> None:
    """Make a hole of memory that is not needed any more, one with its neighbours."""
    end = begin + size
    at = bisect(holes, (chunk, begin, end))
    if at < len(holes) and holes[at][:2] == (chunk, end):
        end = holes.pop(at)[2]
    if at and holes[at - 1][0] == chunk and holes[at - 1][2] == begin:
        begin = holes.pop(at - 1)[1]
    insort(holes, (chunk, begin, end))
