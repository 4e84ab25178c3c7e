"""Running a plan: memory, copies, and the calls of backends, in order."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ggarray._graph import aside, host, memory, products, residence
from ggarray._graph.assign import is_direct, kernel_from
from ggarray._graph.copying import fetch, send
from ggarray._graph.flights import Flights, Note
from ggarray._graph.ir import Ref, Vertex
from ggarray._graph.plan import Plan, Split, Step
from ggarray._graph.plan_cache import Handles, Kept
from ggarray._quantized.blocks import Blocks, stored
from ggarray._runtime.options import settings
from ggarray._runtime.plugins import stream
from ggarray._runtime.profile import profiles, record
from ggarray._runtime.threads import get_num_threads
from ggarray._storage import Plain, address
from ggarray.interface import (
    HOST,
    Backend,
    BackendDevice,
    Buffer,
    BufferType,
    Flag,
    HostBuffers,
    Kernel,
    Op,
    Plans,
    Status,
    Tensor,
    Value,
)
from ggarray.interface.buffers import init_tensor
from ggarray.interface.nodes import contiguous_strides

_Placing = Callable[[Split, Ref], Any]


def run(kept: Kept, leaves: Sequence[Value], note: Note) -> list[Value]:
    """Compute a plan; return the values of its outputs.

    Parameters
    ----------
    kept : Kept
        The plan.
    leaves : sequence of numpy.ndarray or Blocks
        The values of the graph's leaves.
    note : callable
        Adds to an error where vertices of the graph were recorded.

    Raises
    ------
    BackendError, MemoryError, KeyboardInterrupt
        A backend failed, had not enough memory, or was stopped.
    """
    if kept.busy:  # a signal handler came between, so the streams' own plans are in use
        return _Evaluation(kept.plan, leaves, note).outputs()
    kept.busy = True
    try:
        return _Evaluation(kept.plan, leaves, note, kept.handles if kept.uses else None).outputs()
    finally:
        kept.busy = False
        kept.uses += 1
        if kept.dropped:
            kept.free()


class _Evaluation:
    """The values of a plan while it is computed."""

    def __init__(
        self, plan: Plan, leaves: Sequence[Value], note: Note, handles: Handles | None = None
    ) -> None:
        self.plan = plan
        self.note = note
        self.handles = handles
        # By Ref: vertices from the front, leaves from the back.
        self.here: list[Any] = [*[None] * len(plan.graph.vertices), *reversed(leaves)]
        self.there: dict[BufferType, dict[Ref, Tensor]] = {}
        self.n_threads = get_num_threads()
        self.chunks: memory.Chunks = {}
        self.flights = Flights(note)
        self.residents: list[residence.Resident] = []  # in use, so not to go
        self.placed: list[tuple[Value, BufferType, residence.Resident]] = []
        self.wraps: list[Buffer] = []  # over memory of the host, to be freed after a split

    def outputs(self) -> list[Value]:
        """Compute everything, and return the values of the outputs."""
        for outer in _active:  # what its streams have done is not to be told to this one
            outer.flights.settle()
        while _abandoned and not aside.is_here():
            _abandoned[-1].give_back()
            _abandoned.pop()
        _active.append(self)
        try:
            with self._noting(self.plan.graph.vertices):
                self.chunks = memory.take(self.plan.chunks)
            for number, split in enumerate(self.plan.splits):
                with self._noting([step.vertex for step in split.steps]):
                    self._run_split(number, split)
            with self._noting(self.plan.graph.vertices):
                self.flights.land_all()
            self._keep_constants()
            return [self._value(at) for at in self.plan.graph.outputs]
        finally:
            _active.remove(self)
            try:
                if aside.is_busy():  # after Ctrl-C; what is computed there may be in this memory
                    _abandoned.append(self)
                else:
                    self.give_back()
            except BaseException:  # Ctrl-C, again
                _abandoned.append(self)
                raise

    def give_back(self) -> None:
        """Give the chunks back, once nobody can write to them any more."""
        aside.wait()
        self.flights.end()
        self._free_wraps()
        memory.give(self.chunks)

    def _free_wraps(self) -> None:
        while self.wraps:
            self.wraps.pop().free()

    def _keep_constants(self) -> None:
        """Enter the copies of constants in the books, which are there by now."""
        for value, buffer_type, resident in self.placed:
            residence.keep(value, buffer_type, resident)
        if self.placed:
            residence.trim(settings().weight_cache)

    @contextmanager
    def _noting(self, vertices: Sequence[Vertex]) -> Iterator[None]:
        """Add to an error where the operations that it comes from were recorded."""
        try:
            yield
        except Exception as error:
            self.note(error, vertices or self.plan.graph.vertices)
            raise

    def _run_split(self, number: int, split: Split) -> None:
        self.flights.leave_host_memory(None if split.device is None else stream(split.device))
        if split.copies:
            self._make_copies(split)
        if split.device is not None:
            self._by_backend(number, split, split.device)
            return
        for step in split.steps:
            self._on_host(step)
            self._release(step)

    def _release(self, step: Step) -> None:
        for ref in step.last_use:
            self.here[ref] = None

    # -- the host's steps --

    def _on_host(self, step: Step) -> None:
        vertex = step.vertex
        if vertex.op is Op.VIEW:
            self._view_on_host(step)
            return
        operands = [self._value(ref) for ref in vertex.operands]
        out = None if step.replaces is None else self.here[step.replaces]
        if out is None:
            out = self._array(step.block)
        start = perf_counter_ns() if profiles else 0
        host.COMPUTE[vertex.op](vertex.params, operands, out)
        self.here[step.at] = out
        if start:
            record(vertex, operands, None, self._places[step.at], start)

    def _view_on_host(self, step: Step) -> None:
        """Make a view of a value that the host has; others are made where they are wanted."""
        (base,) = step.vertex.operands
        if self.here[base] is not None:
            start = perf_counter_ns() if profiles else 0
            value = self._value(step.at)
            if start:
                record(step.vertex, [self.here[base]], None, self._places[step.at], start)
            self.here[step.at] = value

    def _value(self, ref: Ref) -> Any:
        """Return a value that the host has, or a view of one."""
        value = self.here[ref]
        if value is None:
            vertex = self.plan.graph.vertices[ref]
            value = host.view(self._value(vertex.operands[0]), vertex.shape, vertex.params)
            self.here[ref] = value
        return value

    def _array(self, block: int | None) -> Plain:
        """Return the array of a block in host memory: its part of a chunk, or its own memory."""
        assert block is not None
        if self.plan.blocks[block].place is None:
            tensor = self.plan.blocks[block].tensor
            return np.empty(tensor.shape, tensor.dtype)
        placed = self._tensor(block)
        assert placed.buffer is not None
        array = memory.host_buffer(placed.buffer).array(placed)
        assert not isinstance(array, Blocks)
        return array

    # -- a backend's steps --

    def _by_backend(self, number: int, split: Split, device: BackendDevice) -> None:
        if split.memory is not HOST:
            place = self._place_there
        else:
            place = self._place_direct if device.supports_buffer_type(HOST) else self._place_wrapped
        kernels: list[Kernel] = []
        steps: list[Step] = []
        for step in split.steps:
            if step.vertex.op is not Op.VIEW:
                kernels.append(self._kernel(step, split, place))
                steps.append(step)
            elif split.memory is HOST:
                self._view_on_host(step)
            if profiles and kernels:  # one by one
                start = perf_counter_ns()
                (kernel,), (step,) = kernels, steps
                kernel.flags |= Flag.INPUT | Flag.OUTPUT
                self._call(number, split, device, kernels, steps)
                if device.asynchronous:
                    self.flights.land(stream(device))
                record(step.vertex, kernel.operands, device, self._places[step.at], start)
                kernels, steps = [], []
        if kernels:
            self._call(number, split, device, kernels, steps)
        self._free_wraps()
        for step in split.steps:
            self._release(step)

    def _call(
        self,
        number: int,
        split: Split,
        device: BackendDevice,
        kernels: list[Kernel],
        steps: list[Step],
    ) -> None:
        """Have the stream of a device compute kernels of a split, together."""
        backend = stream(device)
        if device.asynchronous:
            vertices = [step.vertex for step in steps]
            in_host_memory = split.memory is HOST
            self.flights.add(backend, kernels, vertices, in_host_memory=in_host_memory)
        if len(kernels) == 1 and is_direct(device):
            products.run(kernels[0], device, self.n_threads)
            return
        backend.n_threads = self.n_threads
        status = self._whole(number, backend, kernels)
        if status != Status.SUCCESS:
            products.raise_for(status, kernels, backend)

    @cached_property
    def _places(self) -> dict[int, int]:
        """The places of vertices among the steps of the plan; only profiles ask for them."""
        return {step.at: place for place, step in enumerate(self.plan.steps)}

    def _kernel(self, step: Step, split: Split, place: _Placing) -> Kernel:
        """Return the kernel of a step, its operands and result being where the device has them."""
        vertex = step.vertex
        operands = [place(split, ref) for ref in vertex.operands]
        if split.memory is HOST:
            self.here[step.at] = self._array(step.block)
        else:
            self.there.setdefault(split.memory, {})[step.at] = self._tensor(step.block)
        out = place(split, step.at)
        if vertex.op is Op.MATMUL and vertex.params != vertex.shape:
            out = _reshaped(out, vertex.params)
        kernel = kernel_from(vertex, operands, out)
        kernel.flags = step.flags
        return kernel

    def _place_direct(self, split: Split, ref: Ref) -> Any:
        return self._value(ref)

    def _place_wrapped(self, split: Split, ref: Ref) -> Tensor:
        """Return a value of the host as a tensor in a buffer of the device over its memory."""
        value = self._value(ref)
        device = split.device
        assert isinstance(device, HostBuffers)
        data = stored(value)
        low, high = byte_bounds(data)
        buffer = device.buffer_from_host_ptr(low, high - low, high - low)
        if device.asynchronous:
            held, staging = [value], [buffer]
            self.flights.add(stream(device), held=held, staging=staging, in_host_memory=True)
        else:
            self.wraps.append(buffer)
        return Tensor.like(value, buffer=buffer, offset=address(data) - low)

    def _place_there(self, split: Split, ref: Ref) -> Tensor:
        """Return a value that is in the device's memory, or a view of one."""
        there = self.there[split.memory]
        if ref not in there:
            vertex = self.plan.graph.vertices[ref]
            base = self._place_there(split, vertex.operands[0])
            strides, offset, _ = vertex.params
            there[ref] = base._replace(
                shape=vertex.shape, strides=strides, offset=base.offset + offset
            )
        return there[ref]

    def _tensor(self, block: int | None) -> Tensor:
        """Return the place of a block in the memory of a device."""
        assert block is not None
        planned = self.plan.blocks[block]
        place = planned.place
        assert place is not None
        buffer = self.chunks[planned.buffer_type][place.chunk]
        placed = planned.tensor._replace(buffer=buffer, offset=place.offset)
        init_tensor(placed)
        return placed

    def _whole(self, number: int, backend: Backend, kernels: list[Kernel]) -> Status:
        """Compute the kernels of a split in one call."""
        if self.handles is None or profiles or not isinstance(backend, Plans):
            return backend.graph_compute(kernels)
        known = self.handles.get(number)
        if known is None:
            handle = backend.graph_plan_create(kernels)
            self.handles[number] = backend, handle
        else:
            handle = known[1]
            try:
                backend.graph_plan_update(handle, kernels)
            except BaseException:
                del self.handles[number]
                backend.graph_plan_free(handle)
                raise
        return backend.graph_plan_compute(handle)

    # -- copies --

    def _make_copies(self, split: Split) -> None:
        if split.memory is HOST:
            pairs = []
            for copy in split.copies:
                out = self.here[copy.value] = self._array(copy.block)
                places = (there.get(copy.value) for there in self.there.values())
                pairs.append((next(place for place in places if place is not None), out))
            fetch(pairs, self.flights)
            return
        device = split.device
        assert device is not None
        there = self.there.setdefault(split.memory, {})
        if any(copy.block is None for copy in split.copies):
            residence.trim(settings().weight_cache)
        for copy in split.copies:
            if copy.block is None:
                there[copy.value] = self._constant(copy.value, device, split.memory)
            else:
                tensor = there[copy.value] = self._tensor(copy.block)
                value = self._value(copy.value)
                send(device, tensor, value, self.flights, may_change=copy.value >= 0)

    def _constant(self, ref: Ref, device: BackendDevice, buffer_type: BufferType) -> Tensor:
        """Return the copy of a constant in the memory of a device, made if need be."""
        value = self.here[ref]
        resident = residence.find(value, buffer_type)
        if resident is None:
            resident = residence.place(
                value,
                buffer_type,
                lambda tensor, data: send(device, tensor, data, self.flights, may_change=False),
            )
            self.placed.append((value, buffer_type, resident))
        self.residents.append(resident)
        return resident.tensor


_active: list[_Evaluation] = []
"""The evaluations that are under way: one, and those of signal handlers within it."""

_abandoned: list[_Evaluation] = []
"""Those that nobody has waited for to the end: until then their memory is not used again."""


def _reshaped(out: Any, shape: tuple[int, ...]) -> Any:
    """Return a contiguous result as a matrix, or a stack of matrices."""
    if isinstance(out, Tensor):
        strides = contiguous_strides(shape, out.dtype.itemsize)
        return out._replace(shape=shape, strides=strides)
    return out.reshape(shape)
