"""Cost of calls: eager ones, recording, and products from call to value; against NumPy."""

import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

import ggarray as xp
from benchmarks.measure import HEADER, alternate, row
from ggarray._runtime.plugins import backend_devices


def eager() -> Iterator[str]:
    """Small eager calls."""
    a, x = np.ones(10), xp.ones(10)
    cases = {
        "add(x, x), 10 elements": (lambda: xp.add(x, x), lambda: np.add(a, a)),
        "x + x, 10 elements": (lambda: x + x, lambda: a + a),
        "x + 1.0, 10 elements": (lambda: x + 1.0, lambda: a + 1.0),
        "1.0 + x, 10 elements": (lambda: 1.0 + x, lambda: 1.0 + a),
        "x // 2.0, 10 elements": (lambda: x // 2.0, lambda: a // 2.0),
        "x += 0.0, 10 elements": (lambda: x.__iadd__(0.0), lambda: a.__iadd__(0.0)),
        "exp(x), 10 elements": (lambda: xp.exp(x), lambda: np.exp(a)),
        "astype(x, float32)": (lambda: xp.astype(x, xp.float32), lambda: a.astype(np.float32)),
        "reshape(x, (2, 5))": (lambda: xp.reshape(x, (2, 5)), lambda: np.reshape(a, (2, 5))),
        "concat([x, x])": (lambda: xp.concat([x, x]), lambda: np.concat([a, a])),
        "x[2:5]": (lambda: x[2:5], lambda: a[2:5]),
        "x[3]": (lambda: x[3], lambda: a[3]),
        "asarray(x)": (lambda: xp.asarray(x), lambda: np.asarray(a)),
        "asarray([1.0, 2.0])": (lambda: xp.asarray([1.0, 2.0]), lambda: np.asarray([1.0, 2.0])),
        "asarray(ndarray), a copy": (lambda: xp.asarray(a), lambda: np.array(a)),
        "np.asarray(x)": (lambda: np.asarray(x), lambda: np.asarray(a)),
        "sum(x)": (lambda: xp.sum(x), lambda: np.sum(a)),
    }
    for name, (ours, peer) in cases.items():
        yield row(name, *alternate(ours, peer))


def products(device: str) -> Iterator[str]:
    """Products on one thread, from the call to the value; and recording alone."""
    rng = np.random.default_rng(0)
    for n in (8, 64, 1024):
        a = rng.standard_normal((n, n), np.float32)
        x = xp.asarray(a, device=device)

        def ours(x: xp.Array = x) -> None:
            xp.evaluate(x @ x)

        yield row(
            f"matmul {n}x{n} float32, {device}",
            *alternate(ours, lambda a=a: a @ a, repeats=15 if n < 1024 else 7),
        )
        if n == 8:
            with xp.options(max_pending_nodes=1 << 30):
                yield row("record 8x8, dropped", *alternate(lambda x=x: x @ x, lambda a=a: a @ a))


def import_time() -> str:
    """Return the seconds that importing ggarray takes after NumPy's import."""

    def seconds(modules: str) -> float:
        code = (
            "import time, numpy; start = time.perf_counter()\n"
            f"{modules}; print(time.perf_counter() - start)"
        )
        command = [sys.executable, "-c", code]
        runs = (subprocess.run(command, capture_output=True, check=True) for _ in range(7))
        return min(float(run.stdout) for run in runs)

    return f"import ggarray after numpy: {seconds('import ggarray') * 1e3:.0f} ms (best of 7)"


def bytes_per_node(count: int = 5000) -> str:
    """Return the bytes that a pending product of a chain takes."""
    step = xp.ones((2, 2))
    chain = step
    with xp.options(max_pending_nodes=1 << 30, max_pending_bytes=1 << 60):
        tracemalloc.start()
        for _ in range(count):
            chain = chain @ step
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        del chain
    return f"bytes a pending product: {used / count:.0f}"


def main() -> None:
    """Print the tables."""
    blas = backend_devices().get("blas")
    print(f"NumPy's BLAS: {blas.description if blas else 'not found'}")
    print(f"one thread, thread CPU time, {time.strftime('%Y-%m-%d')}, {os.cpu_count()} processors")
    print(HEADER)
    with xp.num_threads(1), threadpool_limits(1):
        for line in eager():
            print(line)
        for device in ("cpu", "blas"):
            for line in products(device):
                print(line, flush=True)
    print(import_time())
    print(bytes_per_node())
