"""From which size on a vendor's library computes a product sooner than ggarray's kernels.

The device ``blas`` takes products from the sizes that its module states; these are the measurements
behind them. A ratio above 1 says that the library is faster.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import ggarray as xp
from benchmarks.measure import alternate
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import BY_NAME
from ggarray._runtime.plugins import backend_devices, stream
from ggarray.interface import Kernel, Op

_SIZES = (4, 8, 12, 16, 24, 32, 48, 64, 128, 256)
_ROWS = (1, 4, 8, 16, 17, 32, 64, 128, 256, 512)


def _ratio(kernel: Kernel) -> float:
    """Return the time of our kernels over that of the library."""
    streams = [stream(backend_devices()[name]) for name in ("cpu", "blas")]
    for each in streams:
        each.n_threads = 1
    ours, vendor = alternate(*(partial(each.graph_compute, (kernel,)) for each in streams))
    return ours / vendor


def _square(n: int, dtype: Any) -> Kernel:
    a, b = np.random.default_rng(0).standard_normal((2, n, n)).astype(dtype)
    return Kernel(Op.MATMUL, (a, b), np.empty((n, n), dtype))


def _quantized(rows: int, name: str) -> Kernel:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((1024, 1024)).astype(np.float32)
    data = xp.quantized_bytes(xp.quantize(xp.asarray(weights), BY_NAME[name]))
    blocks = Blocks.from_bytes(data, BY_NAME[name], weights.shape)
    x = rng.standard_normal((rows, 1024)).astype(np.float32)
    return Kernel(Op.MATMUL, (x, blocks.mT), np.empty((rows, 1024), np.float32))


def tables() -> Iterator[str]:
    """Yield the lines of the tables."""
    yield f"{'n x n by n x n':<16}" + "".join(f"{n:>8}" for n in _SIZES)
    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        ratios = (_ratio(_square(n, dtype)) for n in _SIZES)
        yield f"{np.dtype(dtype).name:<16}" + "".join(f"{ratio:>8.2f}" for ratio in ratios)
    yield ""
    yield f"{'n x 1024 by q':<16}" + "".join(f"{n:>8}" for n in _ROWS)
    for name in ("q4_0", "q8_0"):
        ratios = (_ratio(_quantized(n, name)) for n in _ROWS)
        yield f"{name:<16}" + "".join(f"{ratio:>8.2f}" for ratio in ratios)


def main() -> None:
    """Print the tables."""
    print("time of ggarray's kernels over that of the vendor's library, one thread")
    if "blas" not in backend_devices():
        print("no vendor's library was found")
        return
    with xp.num_threads(1), threadpool_limits(1):
        for line in tables():
            print(line, flush=True)
