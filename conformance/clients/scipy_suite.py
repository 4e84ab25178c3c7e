"""SciPy's own tests that take any array library, run on ggarray as its wheel brings them.

``python -m conformance.clients.scipy_suite [MODULE ...]`` runs those of the subpackages named, all
of them by default. This module is also the plugin by which SciPy's pytest learns of ggarray.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import scipy

import ggarray
from conformance.clients.upstream import conclude, run_installed

FOLDER = Path(scipy.__file__).parent
MODULES = [
    "cluster",
    "constants",
    "differentiate",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "spatial",
    "special",
    "stats",
]

_DEVICE = "SciPy computes a part with NumPy and leaves that on the default device"
_MESSAGE = "asks for the message of a library that is named there"
KNOWN = {
    "differentiate/tests/test_differentiate.py::TestDerivative::test_initial_step": (
        "takes logspace from the namespace, where the standard has none"
    ),
    "ndimage/tests/test_filters.py::TestVectorizedFilter::test_input_validation": _MESSAGE,
    "stats/tests/test_correlation.py::TestChatterjeeXi::test_input_validation": _MESSAGE,
    "stats/tests/test_correlation.py::TestSpearmanRho::test_input_validation": _MESSAGE,
    "stats/tests/test_device_dtype.py::test_combine_pvalues": _DEVICE,
    "stats/tests/test_device_dtype.py::test_entropy": _DEVICE,
    "stats/tests/test_device_dtype.py::test_hypothesis_tests": _DEVICE,
    "stats/tests/test_device_dtype.py::test_quantile": _DEVICE,
}
"""Tests that fail with good reason."""


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give tests that take a namespace ggarray alone, and those that take devices its devices."""
    if "xp" not in metafunc.fixturenames:
        return
    from scipy.conftest import xp_known_backends  # pytest has loaded it by now

    xp_known_backends.add("ggarray")
    backend = pytest.param(ggarray, id="ggarray", marks=pytest.mark.array_api_backends)
    parametrize = metafunc.parametrize

    def with_ggarray(names: Any, values: Any, *args: Any, **kwargs: Any) -> None:
        parametrize(names, [backend] if names == "xp" else values, *args, **kwargs)

    metafunc.parametrize = with_ggarray  # type: ignore[method-assign]
    if "devices" in metafunc.fixturenames:  # SciPy's own adds a list to what is a tuple by now
        parametrize("devices", [[*ggarray.devices(), None]])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tests, print what came of them, and return an exit status."""
    parser = argparse.ArgumentParser(prog="python -m conformance.clients.scipy_suite")
    parser.add_argument("modules", nargs="*", default=MODULES, metavar="MODULE")
    folders = [str(FOLDER / name) for name in parser.parse_args(argv).modules]
    selected = ["-m", "array_api_backends and not slow and not xslow"]
    report = run_installed(FOLDER, "conformance.clients.scipy_suite", [*selected, *folders])
    return conclude(f"SciPy {scipy.__version__}", report, KNOWN)


if __name__ == "__main__":
    sys.exit(main())
