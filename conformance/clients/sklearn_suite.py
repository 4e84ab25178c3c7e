"""scikit-learn's own tests of array libraries, run on ggarray as its wheel brings them.

``python -m conformance.clients.sklearn_suite`` runs them. This module is also the plugin by which
scikit-learn's pytest learns of ggarray.
"""

import sys
from pathlib import Path

import pytest
import sklearn

from conformance.clients.upstream import conclude, run_installed

FOLDER = Path(sklearn.__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    """Have the tests run on ggarray alone: they ask this function when they are collected."""
    from sklearn.utils import _array_api

    _array_api.yield_namespaces = lambda include_numpy_namespaces=True: ["ggarray"]


def main() -> int:
    """Run the tests, print what came of them, and return an exit status."""
    modules = [
        str(path)
        for path in sorted(FOLDER.rglob("test_*.py"))
        if "yield_namespace" in path.read_text()
    ]
    report = run_installed(FOLDER, "conformance.clients.sklearn_suite", modules)
    return conclude(f"scikit-learn {sklearn.__version__}", report, {})


if __name__ == "__main__":
    sys.exit(main())
