"""The streams of both devices: calls are noted, and a thread does what they ask for in order."""

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np

from ggarray.interface import (
    Async,
    Backend,
    Flag,
    GraphOptimize,
    Kernel,
    Plans,
    Status,
    Tensor,
    copy_tensor,
)
from ggarray.interface.buffers import Bytes
from ggarray_plugin_backends.reference.arithmetic import compute


class Worker:
    """A thread that does one thing after the other; it starts when there is a first one.

    What fails does not keep it from the next thing: somebody may wait for that.
    """

    def __init__(self) -> None:
        self._process = 0  # whose thread it is: a child of that process has no thread yet
        self._tasks: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._outcome: Status | BaseException = Status.SUCCESS

    def ask(self, task: Callable[[], Any]) -> None:
        """Have something done; it fails by what it raises, or by the Status that it returns."""
        if self._process != os.getpid():
            self._tasks, self._outcome = SimpleQueue(), Status.SUCCESS
            threading.Thread(target=self._work, args=(self._tasks,), daemon=True).start()
            self._process = os.getpid()
        self._tasks.put(task)

    def _work(self, tasks: "SimpleQueue[Callable[[], Any]]") -> None:
        while True:
            self._do(tasks.get())  # a variable would keep the last task's memory alive

    def _do(self, task: Callable[[], Any]) -> None:
        try:
            outcome = task()
        except BaseException as error:
            self._note(error)
        else:
            self._note(outcome)

    def _note(self, outcome: Any) -> None:
        if self._outcome == Status.SUCCESS and isinstance(outcome, (Status, BaseException)):
            self._outcome = outcome

    def finish(self) -> Status:
        """Return when all is done; tell of the first failure, and forget it."""
        if self._process == os.getpid():
            done = threading.Event()
            self.ask(done.set)
            done.wait()
        outcome, self._outcome = self._outcome, Status.SUCCESS
        if isinstance(outcome, Status):
            return outcome
        try:
            raise outcome
        finally:
            del outcome  # its traceback has this variable, which would keep both


class Mark:
    """A place in a stream, which that has or has not reached: the place recorded last."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.reached.set()  # who waits for what is recorded nowhere need not wait


class Stream(Backend, Async):
    """Computes with `arithmetic.compute`, when it is its turn."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.should_stop: Callable[[], Any] = bool  # which answers False
        self.worker = Worker()

    def graph_compute(self, graph: Sequence[Kernel]) -> Status:
        """Have nodes computed; how it went is what `synchronize` tells."""
        self.worker.ask(partial(self.compute, tuple(graph)))
        return Status.SUCCESS

    def compute(self, graph: Sequence[Kernel]) -> Status:
        """Compute nodes in order; in the worker's thread."""
        with np.errstate(all="ignore"):  # infinities and NaNs are values like others
            for kernel in graph:
                if self.should_stop():
                    return Status.ABORTED
                if Flag.COMPUTE in kernel.flags:
                    compute(kernel)
        return Status.SUCCESS

    def synchronize(self) -> Status:
        """Return when everything asked for is done, with the first failure."""
        return self.worker.finish()

    def set_tensor_async(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Have bytes of a tensor written."""
        self.worker.ask(partial(tensor.buffer.set_tensor, tensor, data, offset))

    def get_tensor_async(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Have bytes of a tensor read."""
        self.worker.ask(partial(tensor.buffer.get_tensor, tensor, data, offset))

    def copy_tensor_async(self, source_stream: Backend, source: Tensor, target: Tensor) -> bool:
        """Have a tensor copied, if another stream of these computes it."""
        if not isinstance(source_stream, Stream):
            return False
        computed = Mark()
        source_stream.event_record(computed)
        self.event_wait(computed)
        self.worker.ask(partial(copy_tensor, source, target))
        return True

    def event_record(self, event: Mark) -> None:
        """Mark this place, and no longer the one marked before."""
        event.reached = threading.Event()
        self.worker.ask(event.reached.set)

    def event_wait(self, event: Mark) -> None:
        """Go on once another stream has reached the place that is marked now."""
        self.worker.ask(event.reached.wait)


class Plan:
    """A graph to be computed; its memory is let go once that has been asked for."""

    def __init__(self, graph: Sequence[Kernel]) -> None:
        self.kinds = list(map(_kind, graph))
        self.graph: tuple[Kernel, ...] | None = tuple(graph)


def _kind(kernel: Kernel) -> tuple[Any, ...]:
    tensors = (*kernel.operands, kernel.out, *([] if kernel.bias is None else [kernel.bias]))
    layouts = [Tensor.like(each, buffer=None, offset=0) for each in tensors]
    return kernel.op, kernel.alpha, kernel.beta, kernel.flags, layouts


class ReferenceBackend(Stream, Plans):
    """The stream of ``reference``. There is nothing to prepare but a copy of the list of nodes."""

    def graph_plan_create(self, graph: Sequence[Kernel]) -> Plan:
        """Keep a graph."""
        return Plan(graph)

    def graph_plan_update(self, plan: Plan, graph: Sequence[Kernel]) -> None:
        """Take the memory of another graph of the same kind."""
        if list(map(_kind, graph)) != plan.kinds:
            raise ValueError("a plan is for nodes of the same operations, dtypes and layouts")
        plan.graph = tuple(graph)

    def graph_plan_compute(self, plan: Plan) -> Status:
        """Have the graph computed, once in the memory that it is in."""
        graph, plan.graph = plan.graph, None
        if graph is None:
            raise ValueError("a plan is updated before it is computed again")
        return self.graph_compute(graph)

    def graph_plan_free(self, plan: Plan) -> None:
        """Let the memory of the graph go."""
        plan.graph = None


class RemoteBackend(Stream, GraphOptimize):
    """The stream of ``reference:remote``."""

    def graph_optimize(
        self, graph: Sequence[Kernel], add_alloc_dep: Callable[[int, int], None]
    ) -> Sequence[int]:
        """Return the nodes in groups, as a device wants them that computes a group at one time.

        In a group, none reads the value of another. So until the group is done, memory that one
        of them reads or writes is no other's.
        """
        reads = _reads(graph)
        levels: list[int] = []
        for operands in reads:
            levels.append(1 + max((levels[each] for each in operands), default=0))
        order = sorted(range(len(graph)), key=levels.__getitem__)
        place = {at: place for place, at in enumerate(order)}
        last = {levels[at]: place for place, at in enumerate(order)}
        for at in order:
            for used in (at, *reads[at]):
                add_alloc_dep(place[used], last[levels[at]])
        return order


def _reads(graph: Sequence[Kernel]) -> list[list[int]]:
    """Return of each node the nodes whose values it reads."""
    writer: dict[int, int] = {}
    reads = []
    for at, kernel in enumerate(graph):
        values = (*kernel.operands, kernel.bias)
        reads.append([writer[key] for each in values for key in _keys(each) if key in writer])
        writer.update(dict.fromkeys(_keys(kernel.out), at))
    return reads


def _keys(tensor: Any) -> list[int]:
    """Return what tells a value from others: the tensor, or what stands for its memory."""
    return [id(each) for each in (tensor, getattr(tensor, "buffer", None)) if each is not None]
