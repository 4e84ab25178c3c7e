"""Cost of graphs of small products: recorded, then computed together; against NumPy's calls."""

import gc
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import ggarray as xp
from benchmarks.measure import HEADER, row
from ggarray._graph import plan_cache

_REPEATS = 9
_PRODUCTS = 2000  # at least so many are timed together


def _chain(operands: list[Any]) -> list[Any]:
    """Return a product of products, each of the one before."""
    y = operands[0]
    for x in operands:
        y = y @ x
    return [y]


def _apart(operands: list[Any]) -> list[Any]:
    """Return products that do not read each other."""
    x = operands[0]
    return [x @ y for y in operands]


_SHAPES = {"a chain": _chain, "apart": _apart}
_OURS = ("record", "new plan", "kept plan")


def _seconds(calls: list[Callable[[], Any]]) -> float:
    """Return the time of all calls together."""
    gc.collect()
    start = time.thread_time()
    for call in calls:
        call()
    return time.thread_time() - start


def _nothing() -> None:
    pass


def _compute(prepare: Callable[[], None], arrays: list[Any]) -> None:
    prepare()
    xp.evaluate(*arrays)


class _Times:
    """Seconds that recording, computing with a new or a kept plan, and NumPy took for a graph."""

    def __init__(self, shape: str, count: int, device: str) -> None:
        self._make, self._count = _SHAPES[shape], count
        self._arrays = [*np.random.default_rng(0).standard_normal((count, 8, 8)) / 8]
        self._operands = [xp.asarray(a, device=device) for a in self._arrays]
        self._graphs = max(1, _PRODUCTS // count)
        self._times: dict[str, list[float]] = {what: [] for what in (*_OURS, "NumPy")}

    def measure(self) -> None:
        """Take each time once; a plan is kept for good when it is used for the third time."""
        ways = ("new plan", plan_cache.drop_all, 0), ("kept plan", _nothing, 2)
        for plan, prepare, warm in ways:
            for _ in range(warm):
                xp.evaluate(*self._make(self._operands))
            made: list[list[Any]] = []
            record = partial(self._record, made)
            self._times["record"].append(_seconds([record] * self._graphs))
            computing = [partial(_compute, prepare, each) for each in made]
            self._times[plan].append(_seconds(computing))
        self._times["NumPy"].append(_seconds([lambda: self._make(self._arrays)] * self._graphs))

    def _record(self, made: list[list[Any]]) -> None:
        made.append(self._make(self._operands))

    def rows(self, name: str) -> None:
        """Print a line for each of ours, in microseconds a product."""
        nodes = self._graphs * self._count
        medians = {what: statistics.median(times) / nodes for what, times in self._times.items()}
        for what in _OURS:
            print(row(f"{name}: {what}", medians[what], medians["NumPy"]), flush=True)


def main() -> None:
    """Print the table."""
    print("8x8 float64 products on one thread, thread CPU time of one; NumPy's is a call each")
    print(HEADER)
    limits = {"max_pending_nodes": 1 << 30, "max_pending_bytes": 1 << 60}
    with xp.num_threads(1), threadpool_limits(1), xp.options(**limits):
        for device in ("cpu", "blas"):
            for shape in _SHAPES:
                for count in (2, 100, 10_000):
                    times = _Times(shape, count, device)
                    for _ in range(_REPEATS):
                        times.measure()
                    times.rows(f"{count}, {shape}, {device}")
