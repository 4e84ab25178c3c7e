"""Profiles: what was computed, by whom, and how long it took."""

import math
import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Protocol, overload

from ggarray._quantized.blocks import stored
from ggarray._runtime.devices import Device
from ggarray._runtime.table import aligned_table
from ggarray._runtime.threads import get_num_threads
from ggarray.interface import PRODUCTS, BackendDevice, Op, Tensor, Value

if TYPE_CHECKING:
    from ggarray._graph.ir import Vertex
    from ggarray._graph.node import Node

_ROWS = 20  # events that a table shows


@dataclass(frozen=True, slots=True)
class Event:
    """One node that was computed.

    Attributes
    ----------
    op : Op
    operands : tuple of (shape, dtype)
        As they were recorded; the backend may have got them converted.
    shape, dtype
        Of the value.
    device : Device
        Of the value; it decides who may compute it.
    backend : str
        Who did: the name of a backend's device, or ``host`` for what is not a product.
    start, duration : int
        In nanoseconds, the start on the clock of `time.perf_counter_ns`. Converting operands is
        part of it, waiting for another thread's evaluation is not.
    bytes_read, bytes_written : int
        Of the operands and of the value; what broadcasting repeats counts once. 0 for a view.
    multiply_adds : int
        Of a product, in its dtype; 0 for what is not one.
    threads : int
        How many the backend was allowed; 1 on the host.
    step : int or None
        Place in the plan, from 0; None for a node that was computed alone, without a plan.
    thread : int
        The operating system's number of the thread that asked for the value.
    thread_name : str
        Python's name of that thread.
    """

    op: Op
    operands: tuple[tuple[tuple[int, ...], Any], ...]
    shape: tuple[int, ...]
    dtype: Any
    device: Device
    backend: str
    start: int
    duration: int
    bytes_read: int
    bytes_written: int
    multiply_adds: int
    threads: int
    step: int | None
    thread: int
    thread_name: str

    @property
    def operations(self) -> int:
        """Two for each multiply-add; of complex numbers, eight."""
        return self.multiply_adds * (8 if self.dtype.kind == "c" else 2)


class _TextFile(Protocol):
    def write(self, text: str, /) -> object: ...


class Profile(Sequence[Event]):
    """What was computed within a ``with`` block of `profile`; ``str()`` of it is a table.

    A sequence of events, in the order in which they ended. An event is a frozen dataclass: ``op``,
    ``operands`` (pairs of shape and dtype), ``shape``, ``dtype``, ``device``, ``backend`` (who
    computed it; ``host`` for what is not a product), ``start`` and ``duration`` (nanoseconds of
    `time.perf_counter_ns`), ``bytes_read``, ``bytes_written``, ``multiply_adds``, ``threads`` (how
    many were allowed), ``step`` (the place in its plan; None if it was computed alone), ``thread``
    and ``thread_name``.

    Examples
    --------
    >>> x = xp.ones((2, 3), device="cpu")
    >>> with xp.profile() as p:
    ...     xp.evaluate((x @ x.T)[0] + 2 * (x @ x[0]))
    >>> [(event.step, event.op.value, event.backend, event.shape) for event in p]
    [(0, 'matmul', 'cpu', (2, 2)), (1, 'view', 'host', (2,)), (2, 'matmul', 'cpu', (2,)),
     (3, 'scale', 'host', (2,)), (4, 'add', 'host', (2,))]
    >>> p[0].multiply_adds, p[0].bytes_read, p[0].bytes_written
    (12, 96, 32)
    """

    def __init__(self) -> None:
        self._events: list[Event] = []

    @overload
    def __getitem__(self, at: int) -> Event: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Event]: ...
    def __getitem__(self, at: int | slice) -> Event | Sequence[Event]:
        return self._events[at]

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} events>"

    def __str__(self) -> str:
        events = self[:]
        if not events:
            return "nothing was computed"
        longest = sorted(range(len(events)), key=lambda at: events[at].duration)[-_ROWS:]
        rows = (_event_row(events[at]) for at in sorted(longest))
        more = [f"... and {len(events) - _ROWS} shorter ones"] if len(events) > _ROWS else []
        totals = aligned_table(_TOTAL_COLUMNS + _RATES, _total_rows(events))
        return "\n".join([*aligned_table(_EVENT_COLUMNS + _RATES, rows), *more, "", *totals])

    def chrome_trace(self) -> dict[str, Any]:
        """Return the events in the trace-event format.

        Returns
        -------
        dict
            To be written as JSON, which Perfetto and ``chrome://tracing`` open.

        Examples
        --------
        >>> with xp.profile() as p:
        ...     xp.evaluate(xp.ones((2, 2), device="cpu") @ xp.ones((2, 2), device="cpu"))
        >>> [(each["ph"], each["name"]) for each in p.chrome_trace()["traceEvents"]]
        [('M', 'process_name'), ('M', 'thread_name'), ('X', 'matmul')]
        """
        pid = os.getpid()
        events = self[:]
        names = {event.thread: event.thread_name for event in events}
        return {
            "traceEvents": [
                _metadata("process_name", "ggarray", pid=pid),
                *(_metadata("thread_name", name, pid=pid, tid=tid) for tid, name in names.items()),
                *(_complete(event, pid) for event in events),
            ],
            "displayTimeUnit": "ns",
        }

    def to_chrome_trace(self, file: str | os.PathLike[str] | _TextFile) -> None:
        """Write the events as a file that Perfetto and ``chrome://tracing`` open.

        Parameters
        ----------
        file : str, path or text file
            A path is written anew.

        Raises
        ------
        OSError
            The file cannot be written.

        Examples
        --------
        >>> with xp.profile() as p:
        ...     xp.evaluate(xp.ones((2, 2)) @ xp.ones((2, 2)))
        >>> p.to_chrome_trace("products.json")
        """
        import json  # not for every import of ggarray

        text = json.dumps(self.chrome_trace())
        if isinstance(file, (str, os.PathLike)):
            Path(file).write_text(text, encoding="utf-8")
        else:
            file.write(text)


profiles: set[Profile] = set()
"""The profiles active anywhere in the process. Empty nearly always: evaluation tests that first."""

_here: ContextVar[tuple[Profile, ...]] = ContextVar("ggarray_profiles", default=())


@contextmanager
def profile() -> Iterator[Profile]:
    """Record what is computed within a ``with`` block, by this thread or asyncio task alone.

    That is every node of the graph that is computed then, wherever it was recorded: products, and
    the views, sums, scalings and conversions recorded with them. Calls that NumPy computes at once
    are not in it, nor are `quantize` and `dequantize`. Of blocks within each other all record.
    Tasks started within the block, and functions it passes to `asyncio.to_thread`, belong to it
    until it ends.

    Returns
    -------
    context manager
        Its value is a `Profile`. After an error or Ctrl-C it has what had been computed.

    Examples
    --------
    >>> x = xp.ones((4, 4), device="cpu")
    >>> with xp.profile() as p:
    ...     y = x @ x
    ...     total = xp.sum(y)
    >>> len(p), p[0].op.value, p[0].backend, p[0].multiply_adds
    (1, 'matmul', 'cpu', 64)
    >>> print(p)  # doctest: +ELLIPSIS
    op      operands                     result         device  backend  step  threads ...
    matmul  float64(4, 4) float64(4, 4)  float64(4, 4)  cpu     cpu         - ...
    <BLANKLINE>
    backend  op      count  ...
    cpu      matmul      1  ...
    all                  1  ...
    """
    made = Profile()
    token = _here.set((*_here.get(), made))
    try:
        profiles.add(made)
        yield made
    finally:
        profiles.discard(made)
        _here.reset(token)


def record(
    node: "Node | Vertex",
    operands: Sequence[Value | Tensor],
    device: BackendDevice | None,
    step: int | None,
    start: int,
) -> None:
    """Enter a node that has been computed just now into the profiles that are active here."""
    duration = perf_counter_ns() - start
    here = [each for each in _here.get() if each in profiles]
    if not here:
        return
    moves = node.op is not Op.VIEW
    event = Event(
        op=node.op,
        operands=tuple((each.shape, each.dtype) for each in operands),
        shape=node.shape,
        dtype=node.dtype,
        device=node.device,
        backend=device.name if device is not None else "host",
        start=start,
        duration=duration,
        bytes_read=sum(map(_stored_bytes, operands)) if moves else 0,
        bytes_written=math.prod(node.shape) * node.dtype.itemsize if moves else 0,
        multiply_adds=multiply_adds(node, operands),
        threads=get_num_threads() if device is not None else 1,
        step=step,
        thread=threading.get_native_id(),
        thread_name=threading.current_thread().name,
    )
    for each in here:
        each._events.append(event)


def _stored_bytes(value: Value | Tensor) -> int:
    """Return the bytes of a value, those that broadcasting repeats once."""
    if isinstance(value, Tensor) and value.axis is not None:
        return value.nbytes
    data = value if isinstance(value, Tensor) else stored(value)
    axes = zip(data.shape, data.strides, strict=True)
    size: int = math.prod(length if stride else min(length, 1) for length, stride in axes)
    return size * int(data.dtype.itemsize)


def multiply_adds(node: "Node | Vertex", operands: Sequence[Any]) -> int:
    """Return the multiply-adds of a product; 0 of any other node."""
    if node.op not in PRODUCTS:
        return 0
    inner: int = operands[0].shape[-1] if node.op is Op.MATMUL else 1
    return inner * math.prod(node.shape)


def _complete(event: Event, pid: int) -> dict[str, Any]:
    """Return a complete event of the trace-event format; its times are in microseconds."""
    return {
        "name": event.op.value,
        "cat": event.backend,
        "ph": "X",
        "ts": event.start / 1e3,
        "dur": event.duration / 1e3,
        "pid": pid,
        "tid": event.thread,
        "args": {
            "operands": _operands(event),
            "result": _text(event.shape, event.dtype),
            "device": str(event.device),
            "bytes read": event.bytes_read,
            "bytes written": event.bytes_written,
            "multiply-adds": event.multiply_adds,
            "threads": event.threads,
            **({"step": event.step} if event.step is not None else {}),
        },
    }


def _metadata(name: str, value: str, **ids: int) -> dict[str, Any]:
    return {"name": name, "ph": "M", **ids, "args": {"name": value}}


def _operands(event: Event) -> str:
    return " ".join(starmap(_text, event.operands))


def _text(shape: tuple[int, ...], dtype: Any) -> str:
    return f"{dtype}{shape}"


# Tables: names of columns, those of numbers to the right.

_RATES = (">us", ">GFLOP/s", ">GB/s")
_EVENT_COLUMNS = ("<op", "<operands", "<result", "<device", "<backend", ">step", ">threads")
_TOTAL_COLUMNS = ("<backend", "<op", ">count", ">share")


def _event_row(event: Event) -> tuple[str, ...]:
    return (
        event.op.value,
        _operands(event),
        _text(event.shape, event.dtype),
        str(event.device),
        event.backend,
        "-" if event.step is None else str(event.step),
        str(event.threads),
        *_rates([event]),
    )


def _total_rows(events: Sequence[Event]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each backend and operation, those that took longest first; then the sum."""
    groups: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        groups[event.backend, event.op.value].append(event)
    longest_first = sorted(groups.items(), key=lambda item: -_duration(item[1]))
    for names, group in [*longest_first, (("all", ""), events)]:
        share = _duration(group) / max(_duration(events), 1)
        yield (*names, str(len(group)), f"{share:.1%}", *_rates(group))


def _duration(events: Iterable[Event]) -> int:
    return sum(event.duration for event in events)


def _rates(events: Sequence[Event]) -> tuple[str, ...]:
    """Return microseconds, GFLOP/s and GB/s; the last two are operations and bytes a nanosecond."""
    duration = _duration(events)
    amounts = (
        sum(event.operations for event in events),
        sum(event.bytes_read + event.bytes_written for event in events),
    )
    rates = (f"{amount / max(duration, 1):.2f}" if amount else "-" for amount in amounts)
    return (f"{duration / 1e3:.1f}", *rates)
