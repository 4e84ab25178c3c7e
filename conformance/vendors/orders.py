"""Loads libraries in an order, in a process of its own.

A step is ``blas:NAME``, a device to compute with; ``import:MODULE``; ``global:PATH``, a library
that the program loads for itself, offering its symbols to all that is loaded later; ``use:PATH``,
one that it also computes with; ``libgomp:NAME``, a device that may use threads of GNU's OpenMP; or
``fork:``, a child in which all devices so far are used again.
"""

import ctypes
import importlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import ggarray as xp
from conformance.vendors.children import ends_well
from conformance.vendors.products import DTYPES, check_routines, digest

_ROOT = Path(__file__).parents[2]
_SECONDS = 200


def take(steps: Sequence[str]) -> dict[str, str]:
    """Take the steps in another process; return the digest of what each device gives.

    Raises
    ------
    AssertionError
        A device or NumPy is wrong at a step, or a device at the end.
    """
    done = subprocess.run(
        [sys.executable, "-m", "conformance.vendors.orders", *steps],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr[-5000:]} (exit status {done.returncode})"
    digests: dict[str, str] = json.loads(done.stdout)
    return digests


class _Process:
    """What the process has done so far."""

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}

    def step(self, step: str) -> None:
        kind, _, what = step.partition(":")
        if kind == "blas":
            check_routines(step)
            self.digests[step] = digest(step)
        else:
            getattr(self, f"_{kind}")(what)
        check_numpy()

    def check(self) -> None:
        """Raise AssertionError unless all devices compute as before."""
        for device, before in self.digests.items():
            check_routines(device)
            assert digest(device) == before, f"{device} computes in another way than before"

    def _import(self, module: str) -> None:
        importlib.import_module(module)

    def _global(self, path: str) -> None:
        ctypes.CDLL(path, ctypes.RTLD_GLOBAL)

    def _use(self, path: str) -> None:
        n, a, out = 400, np.ones((400, 400)), np.zeros((400, 400))
        one, zero = ctypes.c_double(1), ctypes.c_double(0)
        x, y = (ctypes.c_void_p(each.ctypes.data) for each in (a, out))
        gemm = ctypes.CDLL(path, ctypes.RTLD_GLOBAL).cblas_dgemm
        gemm(101, 111, 111, n, n, n, one, x, n, x, n, zero, y, n)
        assert (out == n).all()

    def _libgomp(self, name: str) -> None:
        with xp.options(libgomp_threads=True):
            check_routines(f"blas:{name}")

    def _fork(self, _: str) -> None:
        assert ends_well(self.check), "a forked child hangs or fails"
        self.check()


def check_numpy() -> None:
    """Raise AssertionError unless products of NumPy, and of SciPy if it is here, are right."""
    numbers = (np.arange(150 * 150) % 7 - 3).reshape(150, 150)
    expected = numbers @ numbers  # integers take no BLAS
    for dtype in DTYPES:
        a = numbers.astype(dtype)
        np.testing.assert_array_equal(a @ a, expected)
        if blas := sys.modules.get("scipy.linalg.blas"):
            (gemm,) = blas.get_blas_funcs(["gemm"], [a])
            np.testing.assert_array_equal(gemm(1, a, a), expected)


if __name__ == "__main__":
    process = _Process()
    for each in sys.argv[1:]:
        process.step(each)
    process.check()
    print(json.dumps(process.digests))
