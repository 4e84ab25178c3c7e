"""Streams that have not done yet all that an evaluation has asked of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ggarray._graph.ir import Vertex
from ggarray._graph.products import raise_for
from ggarray.interface import Async, Backend, BackendDevice, Buffer, Events, Kernel, Status

Note = Callable[[BaseException, Sequence[Vertex]], None]
"""Adds to an error where vertices were recorded."""


@dataclass
class _Flight:
    """What one stream has been asked for since it was waited for.

    Attributes
    ----------
    held : list
        What must stay alive until then.
    staging : list of Buffer
        What is to be freed then.
    in_host_memory : bool
        It may read or write memory of the host that the evaluation may write.
    outcome : Status, Exception or None
        How it went, if the stream has been waited for on behalf of somebody else.
    """

    kernels: list[Kernel] = field(default_factory=list)
    vertices: list[Vertex] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)
    staging: list[Buffer] = field(default_factory=list)
    in_host_memory: bool = False
    outcome: Status | Exception | None = None

    def free(self) -> None:
        """Free what is not used any more."""
        while self.staging:
            self.staging.pop().free()


class Flights:
    """The streams that one evaluation has to wait for."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._flights: dict[Backend, _Flight] = {}

    def add(
        self,
        backend: Backend,
        kernels: Sequence[Kernel] = (),
        vertices: Sequence[Vertex] = (),
        held: Sequence[Any] = (),
        staging: Sequence[Buffer] = (),
        *,
        in_host_memory: bool = False,
    ) -> None:
        """Note that a stream is asked for something."""
        flight = self._flights.setdefault(backend, _Flight())
        if flight.outcome == Status.SUCCESS:
            flight.outcome = None
        flight.kernels += kernels
        flight.vertices += vertices
        flight.held += held
        flight.staging += staging
        flight.in_host_memory |= in_host_memory

    def land(self, backend: Backend) -> None:
        """Wait for a stream, and raise what became of its first failure.

        One that has failed is waited for again when all is settled.
        """
        flight = self._flights[backend]
        outcome = flight.outcome
        if not outcome:  # also where it was well when somebody else waited for it
            outcome = _wait_for(backend, flight)
        if outcome == Status.SUCCESS:
            del self._flights[backend]
            flight.free()
            return
        try:
            if isinstance(outcome, Exception):
                raise outcome
            raise_for(outcome, flight.kernels, backend)
        except Exception as error:
            self._note(error, flight.vertices)
            raise

    def land_all(self) -> None:
        """Wait for all streams."""
        for backend in list(self._flights):
            self.land(backend)

    def leave_host_memory(self, own: Backend | None) -> None:
        """Wait for the streams other than `own` that work in memory of the host."""
        for backend, flight in list(self._flights.items()):
            if flight.in_host_memory and backend is not own:
                self.land(backend)

    def wait(self, backend: Backend, device: BackendDevice) -> None:
        """Wait until a stream has done all so far; a failure may show when it is landed."""
        if not isinstance(device, Events) or not isinstance(backend, Async):
            self.land(backend)
            return
        event = device.event_new()
        backend.event_record(event)
        device.event_synchronize(event)
        device.event_free(event)

    def settle(self) -> None:
        """Wait for all streams; how it went is told when they are landed."""
        for backend, flight in self._flights.items():
            _wait_for(backend, flight)

    def end(self) -> None:
        """Wait for all streams, and forget how it went."""
        self.settle()
        while self._flights:
            _, flight = self._flights.popitem()
            flight.free()


def _wait_for(backend: Backend, flight: _Flight) -> Status | Exception:
    """Wait for a stream, note how it went, and return that."""
    outcome: Status | Exception
    try:
        outcome = backend.synchronize()
    except Exception as error:
        outcome = error
    if flight.outcome is None or flight.outcome == Status.SUCCESS:
        flight.outcome = outcome
    return flight.outcome
