"""What products cost on each vendor's library, beside NumPy and beside the library called directly.

``python -m benchmarks vendors [device ...]``: devices such as ``blas:mkl`` or
``blas:/usr/lib/libblis.so.4``; all of ``blas:<vendor>`` by default. Ratios above 1 say that ggarray
is faster. The direct call is one of CBLAS from Python, into fresh memory as the others; of a batch
it is one call for each product, made in a loop of C where the library has no routine for all.
"""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import ggarray as xp
from benchmarks.measure import alternate
from ggarray._runtime.plugins import backend_devices
from ggarray.backends.blas._shim import ffi, lib

_ROW_MAJOR, _NO_TRANS, _TRANS = 101, 111, 112
_TYPES = {"f": 0, "d": 1}
_MOST_SECONDS = 4.0  # for one product; slower libraries are not waited for


class Case(NamedTuple):
    """A product: its name, dtype, and the shapes of a (perhaps transposed memory) and b."""

    name: str
    dtype: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    gram: bool = False

    @property
    def work(self) -> float:
        """Multiply-adds."""
        return float(np.prod(self.a)) * self.b[-1]


CASES = (
    *(Case(f"{n}", dtype, (n, n), (n, n)) for dtype in "fd" for n in (256, 512, 1024, 2048, 4096)),
    Case("512 x 32", "f", (512, 32, 32), (512, 32, 32)),
    Case("512 x 32", "d", (512, 32, 32), (512, 32, 32)),
    Case("gemv 4096", "f", (4096, 4096), (4096, 1)),
    Case("outer 4096", "f", (4096, 1), (1, 4096)),
    Case("x.T@x 1024", "f", (1024, 1024), (1024, 1024), gram=True),
    Case("x.T@x 1024", "d", (1024, 1024), (1024, 1024), gram=True),
    Case("8", "f", (8, 8), (8, 8)),
)


def _direct(library: Any, case: Case, a: Any, b: Any) -> Callable[[], Any] | None:
    """Return a call of the library's own routine for the product; None for a batch."""
    if len(case.a) > 2:
        return None
    integer = "int64_t" if library.ilp64 else "int32_t"
    scalar = {"f": "float", "d": "double"}[case.dtype]
    routine = ffi.cast(
        f"void (*)(int, int, int, {integer}, {integer}, {integer}, {scalar}, void *, {integer},"
        f" void *, {integer}, {scalar}, void *, {integer})",
        library.handle.gemm[_TYPES[case.dtype]],
    )
    gemv = ffi.cast(
        f"void (*)(int, int, {integer}, {integer}, {scalar}, void *, {integer}, void *,"
        f" {integer}, {scalar}, void *, {integer})",
        library.handle.gemv[_TYPES[case.dtype]],
    )
    (m, k), n = case.a, case.b[-1]
    shape = (m, n)
    a_pointer, b_pointer = ffi.from_buffer(a.T if case.gram else a), ffi.from_buffer(b)
    trans = _TRANS if case.gram else _NO_TRANS

    def by_gemv() -> None:
        out = np.empty(shape, case.dtype)
        gemv(_ROW_MAJOR, _NO_TRANS, m, k, 1, a_pointer, k, b_pointer, 1, 0, ffi.from_buffer(out), 1)

    def by_gemm() -> None:
        out = np.empty(shape, case.dtype)
        sizes = (m, n, k, 1, a_pointer, k, b_pointer, n, 0, ffi.from_buffer(out), n)
        routine(_ROW_MAJOR, trans, _NO_TRANS, *sizes)

    return by_gemv if n == 1 else by_gemm


def _line(name: str, case: Case, threads: int) -> str:
    device = backend_devices()[name]
    library = device.library  # type: ignore[attr-defined]
    rng = np.random.default_rng(0)
    a = rng.standard_normal(case.a).astype(case.dtype)
    b = rng.standard_normal(case.b).astype(case.dtype)
    if case.gram:
        a = b.T
    y = xp.asarray(b, device=name)
    x = y.T if case.gram else xp.asarray(a, device=name)
    calls: list[Callable[[], Any]] = [lambda: xp.evaluate(x @ y), lambda: a @ b]
    direct = _direct(library, case, a, b)
    if direct is not None:
        calls.append(direct)
    # of one thread the time that it ran, which may be another one than this
    clock = time.process_time if threads == 1 else time.perf_counter
    repeats = 3 if case.work > 1 << 32 else 9
    ours, numpys, *directs = alternate(*calls, clock=clock, repeats=repeats)
    speed = 2e-9 * case.work / ours
    against = "".join(f"{each / ours:>9.2f}" for each in (numpys, *directs))
    title = f"{np.dtype(case.dtype).name} {case.name}"
    return f"{title:<20}{threads:>8}{ours * 1e6:>12.1f}{speed:>9.1f}{against}"


def tables(names: list[str]) -> Iterator[str]:
    """Yield the lines of a table for each device."""
    for name in names:
        device = xp.Device(name)
        library = backend_devices()[device].library  # type: ignore[attr-defined]
        yield f"{name}: {library.description}"
        titles = ("threads", "us", "GFLOP/s", "NumPy/", "direct/")
        yield f"{'':<20}{titles[0]:>8}{titles[1]:>12}" + "".join(f"{t:>9}" for t in titles[2:])
        speed = 2e-9 * 256**3 / lib.shim_seconds(library.handle, 1, 256)
        for case in CASES:
            if 2e-9 * case.work / speed > _MOST_SECONDS:
                continue
            for threads in (1, 2):
                with xp.num_threads(threads), threadpool_limits(threads):
                    yield _line(device, case, threads)
        yield ""


def main() -> None:
    """Print the tables."""
    named = [name for name in sys.argv[1:] if ":" in name]
    names = named or [name for name in xp.devices() if name.startswith("blas:")]
    for line in tables(names):
        print(line, flush=True)
