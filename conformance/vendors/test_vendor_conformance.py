"""The suite for backends, for all libraries in one process.

One process computes half of the kernels, and another, with the libraries in the opposite order, the
other half.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.vendors.products import DTYPES

ROOT = Path(__file__).parents[2]
SECONDS = 500
ORDERS = {"in order": 1, "backwards": -1}


@pytest.fixture(scope="module")
def runs(devices, tmp_path_factory):
    """A process of pytest for each order, and the file it writes to; they run at the same time."""
    started = {}
    for half, (order, step) in enumerate(ORDERS.items()):
        log = tmp_path_factory.mktemp("conformance") / "log.txt"
        plugins = ["-p", "conformance.vendors.vendor_cases", "-p", "no:cacheprovider"]
        # Those that add one term after the other are further off, in sums that are tried once.
        options = [
            "-rfE",
            "--nmse=1e-28",
            f"--half={half}",
            *(f"--device={device}" for device in devices[::step]),
        ]
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "conformance/backend", "-q", *plugins, *options],
                cwd=ROOT,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        started[order] = process, log
    yield started
    for process, _ in started.values():
        process.kill()
        process.wait()


@pytest.mark.parametrize("order", ORDERS)
def test_backend_conformance(order, runs, devices):
    process, log = runs[order]
    status = process.wait(SECONDS)
    told = log.read_text()
    assert status == 0, told[-10_000:]
    for device in devices:
        (line,) = re.findall(f"^{re.escape(device)} matmul: (.*)$", told, re.MULTILINE)
        for dtype in DTYPES:
            assert dtype in line
