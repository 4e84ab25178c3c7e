"""Plans: graphs that are prepared once, and computed often in one call of C."""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from ggarray._quantized.blocks import Blocks
from ggarray.backends.cpu import kernels, operands
from ggarray.backends.cpu._kernels import ffi, lib
from ggarray.interface import BackendError, Flag, Kernel, Op, Tensor

__all__ = ["Plan", "computes"]

_NULL = ffi.NULL
_SUCCESS: int = lib.GG_SUCCESS
_ABORTED: int = lib.GG_ABORTED
_COMPUTE = int(Flag.COMPUTE)
_and = int.__and__  # IntFlag's own is slow, and every node asks for it

# After so many microseconds a call of C returns between two nodes, so that Python sees signals.
_CALL_LIMIT = 50_000

# Where a node that is refused would have its memory: nothing looks there.
_NOWHERE = ffi.new("char *")


def computes(node: Kernel) -> bool:
    """Tell whether there is a kernel for a node, by its operation and dtypes."""
    if node.alpha != 1 or node.bias is not None:
        return False
    out = node.out.dtype
    dtypes = [each.dtype for each in node.operands]
    if node.op is Op.MATMUL:
        return out in operands.CODES and all(operands.computes_in(each, out) for each in dtypes)
    if node.op is Op.OUT_PROD:
        columns = node.operands[0].shape[-1]
        return columns == 1 and out in operands.CODES and all(each == out for each in dtypes)
    if node.op is Op.COPY:
        (source,) = dtypes
        return operands.decodes(source, out) or operands.encodes(source, out)
    return False


class Plan:
    """The jobs of a graph, and for one evaluation the memory that they work in.

    Parameters
    ----------
    graph : sequence of Kernel
        The graph; its memory is that of the first evaluation.
    """

    def __init__(self, graph: Sequence[Kernel]) -> None:
        kernels.require_isa()
        self._address: list[Callable[[Any], Any]] = []
        self._jobs: list[tuple[int, int, int, int, Any]] = []
        self._blocks: list[int] = []  # their places
        self._decoded: list[tuple[int, tuple[int, ...]]] = []  # place of the blocks, shape
        self._held: tuple[list[Any], list[Any]] | None = None  # values, and those decoded
        self._seen: list[ref[Any] | None] = []
        self._n_values = sum(len(kernel.operands) + 1 for kernel in graph)
        for kernel in graph:
            self._prepare(kernel)
        self._c_jobs = ffi.new("gg_job[]", self._jobs)
        self._addresses = ffi.new("void *[]", self._n_values + len(self._decoded))
        self.update(graph)

    def _prepare(self, kernel: Kernel) -> None:
        """Append the jobs of a node; each names its memory by place."""
        first = len(self._address)
        values: list[Any] = [*kernel.operands, kernel.out]
        places = list(range(first, first + len(values)))
        self._blocks += [first + i for i, value in enumerate(values) if isinstance(value, Blocks)]
        if not computes(kernel):
            self._address += [lambda _: _NOWHERE] * len(values)
            self._jobs.append((0, places[0], places[0], places[-1], _NULL))
            return
        self._address += [operands.address_of(value) for value in values]
        if kernel.op is Op.MATMUL:
            for i, value in enumerate(values):
                if operands.is_blocked_in_batch(value):
                    values[i], places[i] = self._decode(value, places[i])
        self._append(*_job(kernel.op, values), places)

    def _decode(self, blocks: Blocks, place: int) -> tuple[Tensor, int]:
        """Append a job that decodes blocks; return the layout of its result, and its place."""
        plain = Tensor(blocks.shape, operands.FLOAT32, ()).contiguous()
        decoded = self._n_values + len(self._decoded)
        self._decoded.append((place, blocks.shape))
        self._append(lib.GG_TO_FLOAT, operands.to_float_parameters(blocks, plain), [place, decoded])
        return plain, decoded

    def _append(self, op: int, parameters: list[int], places: list[int]) -> None:
        a, b, out = places[0], places[-2], places[-1]
        self._jobs.append((op, a, b, out, ffi.new("int64_t[]", parameters)))

    def update(self, graph: Sequence[Kernel]) -> None:
        """Take the memory of another graph for the next evaluation.

        Parameters
        ----------
        graph : sequence of Kernel
            Of the same operations, dtypes, shapes and strides.

        Raises
        ------
        ValueError
            It has more operands, or fewer.
        """
        values: list[Any] = []
        for kernel in graph:
            if _and(kernel.flags, _COMPUTE):
                values += (*kernel.operands, kernel.out)
            else:
                values += [None] * (len(kernel.operands) + 1)
        if len(values) != self._n_values:
            raise ValueError(
                f"a plan for {self._n_values} operands and results cannot be that of a graph with"
                f" {len(values)}"
            )
        for place in self._blocks:
            if values[place] is not None:
                values[place] = values[place].data
        self._hold(values)

    def _hold(self, values: list[Any]) -> None:
        """Keep arrays alive and note their addresses; None stands for those of a skipped node."""
        addresses = self._addresses
        # one by one: a list of so many pointers would set the garbage collector to work
        for place, value in enumerate(values):
            addresses[place] = _NULL if value is None else self._address[place](value)
        decoded = [
            None if values[place] is None else np.empty(shape, np.float32)
            for place, shape in self._decoded
        ]
        for place, plain in enumerate(decoded, len(values)):
            addresses[place] = _NULL if plain is None else ffi.from_buffer(plain)
        self._held = values, decoded

    def _hold_again(self) -> None:
        values = [None if each is None else each() for each in self._seen]
        pairs = zip(self._seen, values, strict=True)
        if any(each is not None and value is None for each, value in pairs):
            raise BackendError("the memory of a plan is gone: update it to compute it again")
        self._hold(values)

    def let_go(self) -> None:
        """Keep no memory alive; only know it again as long as somebody else keeps it."""
        if self._held is not None:
            values, _ = self._held
            self._seen = [None if value is None else ref(value) for value in values]
            self._held = None

    def compute(self, n_threads: int, abort: Callable[[], bool] | None = None) -> int:
        """Compute the graph, and keep its memory alive no longer.

        Parameters
        ----------
        n_threads : int
            At most so many threads, the caller among them.
        abort : callable, optional
            Asked before each node; True ends the computation.

        Returns
        -------
        int
            0 success, 1 a node without a kernel, 2 allocation failed, 3 aborted.

        Raises
        ------
        BackendError
            The graph has been computed before, and some of its memory is gone.
        """
        if self._held is None:
            self._hold_again()
        done = ffi.new("int64_t *")
        n_jobs = len(self._jobs)
        limit = _CALL_LIMIT if abort is None else 0
        try:
            while done[0] < n_jobs:
                if abort is not None and abort():
                    return _ABORTED
                status: int = lib.gg_graph_compute(
                    self._c_jobs, n_jobs, self._addresses, limit, n_threads, done
                )
                if status:
                    return status
        finally:
            self.let_go()
        return _SUCCESS


def _job(op: Op, values: list[Any]) -> tuple[int, list[int]]:
    """Return the number of a job and its parameters."""
    if op is Op.MATMUL:
        return lib.GG_MATMUL, operands.matmul_parameters(*values)
    if op is Op.OUT_PROD:
        return lib.GG_OUT_PROD, operands.out_prod_parameters(*values)
    if isinstance(values[-1], Blocks):
        return lib.GG_FROM_FLOAT, operands.from_float_parameters(*values)
    return lib.GG_TO_FLOAT, operands.to_float_parameters(*values)
