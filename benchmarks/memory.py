"""Memory of evaluations: what the plan says, and by how much the process grows."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np

import ggarray as xp
from ggarray._graph.execute import plan_of
from ggarray._graph.order import pending_order

_SIZE = 1024  # rows and columns; a value takes 4 MiB
_MIB = 1 << 20


def _random_sum(seed: int, count: int = 40) -> xp.Array:
    """Return a pending array that random products, views and sums lead to."""
    rng = random.Random(seed)
    values = [xp.asarray(np.ones((_SIZE, _SIZE), np.float32) / _SIZE)]
    for _ in range(count):
        a, b = rng.choices(values[-6:], k=2)
        values.append(rng.choice([a @ b, a @ b.T, a @ b + a, 2.0 * (b @ a)]))
    return values[-1]


def _peak() -> int:
    """Return the most bytes that this process has had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak) * 1024


def _measure(seed: int) -> None:
    """Print a line for one graph, in a process that has computed such products before."""
    xp.evaluate(_random_sum(seed, count=1))
    array = _random_sum(seed)
    plan = plan_of(pending_order([array._pending()]))
    values = sum(block.nbytes for block in plan.blocks)
    before = _peak()
    xp.evaluate(array)
    grown = _peak() - before
    numbers = (len(plan.steps), values, plan.nbytes, grown)
    print(*(f"{number / (_MIB if at else 1):>12.0f}" for at, number in enumerate(numbers)))


def main() -> None:
    """Print the table; each graph is computed in a process of its own."""
    print(f"products of {_SIZE}x{_SIZE} float32, MiB")
    print(*(f"{name:>12}" for name in ("steps", "all values", "planned", "grown by")))
    for seed in range(5):
        sys.stdout.flush()
        subprocess.run([sys.executable, "-m", "benchmarks.memory", str(seed)], check=True)


if __name__ == "__main__":
    _measure(int(sys.argv[1]))
