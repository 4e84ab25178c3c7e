"""Processes of their own: running a script, or pip, in one; what one tells; how a child ends."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

TESTS = str(Path(__file__).parent)


def run_script(script, **environment):
    """Run a script, which may import what tests may, and return what it prints.

    The script fails where any of its asserts does; `environment` adds to the variables that the
    tests themselves have, without those of ggarray.
    """
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("GGARRAY_")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**inherited, "PYTHONPATH": TESTS, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def peak_mebibytes():
    """Return the most memory that this process has had; a parent's does not count."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak) // 1024


def ends_well(child):
    """Wait for a child process; one that hangs is killed."""
    deadline = time.monotonic() + 20
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)
    return os.waitstatus_to_exitcode(done[1]) == 0


def install(source, folder):
    """Install a distribution into a folder, without a network; return the folder."""
    options = "--quiet --no-deps --no-build-isolation --no-index --disable-pip-version-check"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options.split(), "--target", folder, source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder
