"""How things are measured: ours and the peer's alternately, medians, CPU time on one thread."""

import statistics
import time
from collections.abc import Callable
from typing import Any

Call = Callable[[], Any]


def seconds_a_call(call: Call, clock: Callable[[], float], at_least: float = 0.02) -> float:
    """Return the time of one call, measured over as many calls as take `at_least` seconds."""
    calls = 1
    while True:
        start = clock()
        for _ in range(calls):
            call()
        elapsed = clock() - start
        if elapsed >= at_least:
            return elapsed / calls
        calls = max(calls + 1, int(calls * 1.3 * at_least / max(elapsed, 1e-9)))


def alternate(
    *calls: Call, clock: Callable[[], float] = time.thread_time, repeats: int = 15
) -> tuple[float, ...]:
    """Return the median of each call, in seconds; they take turns."""
    times: tuple[list[float], ...] = tuple([] for _ in calls)
    for _ in range(repeats):
        for call, into in zip(calls, times, strict=True):
            into.append(seconds_a_call(call, clock))
    return tuple(statistics.median(each) for each in times)


def row(name: str, ours: float, peer: float, scale: float = 1e6, unit: str = "us") -> str:
    """Return one line of a table."""
    return f"{name:<44} {ours * scale:>12.3f} {peer * scale:>12.3f} {unit:<4} {ours / peer:>8.2f}"


HEADER = f"{'':<44} {'ggarray':>12} {'NumPy':>12} {'':<4} {'ratio':>8}"
