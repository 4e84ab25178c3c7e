"""Tries a library in a process of its own, which it may crash or hang without harm."""

import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import _cffi_backend

from ggarray import _version
from ggarray.backends.blas._shim import lib
from ggarray.backends.blas.library import UnusableLibraryError
from ggarray.backends.blas.vendors import open_library

_SECONDS = 60  # a library that takes longer hangs
_SIZE = 256  # of the matrices whose product is timed
_TRIAL = "GGARRAY_BLAS_TRIAL"  # set in the process that tries a library
_MARK = "ggarray reports "  # libraries may print, too

# The child needs few modules: to import the whole package takes longer than the trial does.
_CHILD = """
import sys, types
sys.path.append(sys.argv[2])
for name, folder in zip(sys.argv[3::2], sys.argv[4::2]):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
from ggarray.backends.blas.probe import report
report(sys.argv[1])
"""


class Report(NamedTuple):
    """What a trial has shown.

    The first fields are as of `ggarray.backends.blas.vendors.OpenLibrary`, but the vendor's name;
    gflops is the speed of a float32 product of 256 x 256 matrices on one thread.
    """

    vendor: str
    version: str
    core: str
    ilp64: bool
    threading: str
    extras: list[str]
    loses_nan: bool
    gflops: float


def try_library(path: Path) -> Report:
    """Open a library in another process, and compute with it; once, unless the file changes.

    Raises
    ------
    UnusableLibraryError
        It cannot be opened, computes wrongly, crashes or hangs.
    """
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        changed = 0  # there may be no such file, or one of those that only the loader sees
    found = _tried(path, changed)
    if isinstance(found, str):
        raise UnusableLibraryError(found)
    return found


@cache
def _tried(path: Path, _changed: int) -> Report | str:
    """Return what a trial has shown, or why the library is of no use."""
    if os.environ.get(_TRIAL):  # a program that calls itself Python has started itself
        return f"{path} is not tried within a trial"
    child = [
        sys.executable,
        "-P",
        "-c",
        _CHILD,
        str(path),
        str(Path(_cffi_backend.__file__).parent),
    ]
    package, backends = Path(_version.__file__).parent, Path(__file__).parents[1]
    for name, folder in (
        ("ggarray", package),
        ("ggarray.interface", package / "interface"),
        ("ggarray.backends", backends),
        ("ggarray.backends.blas", backends / "blas"),
    ):
        child += [name, str(folder)]
    try:
        run = subprocess.run(
            child,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
            env={**os.environ, _TRIAL: "1"},
        )
    except (OSError, TypeError, ValueError) as error:
        return f"{path} cannot be tried in another process, by {sys.executable!r}: {error}"
    except subprocess.TimeoutExpired:
        return f"{path} did not answer within {_SECONDS} seconds"
    answers = [line for line in run.stdout.splitlines() if line.startswith(_MARK)]
    if run.returncode == 0 and answers:
        found = json.loads(answers[-1].removeprefix(_MARK))
        return found if isinstance(found, str) else Report(*found)
    if run.returncode < 0:
        return f"{path} ended the process that tried it with {_signal_name(-run.returncode)}"
    said = (run.stderr + run.stdout).strip() or "nothing"
    return (
        f"{path} ended the process that tried it (exit code {run.returncode}), which said:"
        f" {said[-500:]}"
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def report(path: str) -> None:
    """Print what a library is, or why it is of no use, as JSON in a marked line."""
    try:
        opened = open_library(Path(path))
        found: Report | str = Report(
            opened.vendor.name,
            opened.version,
            opened.core,
            opened.ilp64,
            opened.threading,
            list(opened.extras),
            opened.loses_nan,
            2e-9 * _SIZE**3 / lib.shim_seconds(opened.handle, 1, _SIZE),
        )
    except UnusableLibraryError as error:
        found = str(error)
    print(f"\n{_MARK}{json.dumps(found)}", flush=True)
    os._exit(0)  # some libraries crash when they are closed
