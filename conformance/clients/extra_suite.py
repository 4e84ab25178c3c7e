"""array-api-extra's own tests, run on ggarray.

``python -m conformance.clients.extra_suite --sources CHECKOUT`` needs a checkout of
data-apis/array-api-extra, which is only read: the tests run in a copy that knows one backend more.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import copy, copytree
from tempfile import TemporaryDirectory

from conformance.clients.upstream import conclude
from conformance.reports import Report, run_pytest

_BACKENDS = Path("src", "array_api_extra", "_lib", "_backends.py")
_BEHIND_MEMBERS = "    @property\n    def modname"
_MEMBER = '    GGARRAY = "ggarray"\n\n'

KNOWN = {
    "tests/main/test_set.py::TestNUnique::test_delegates": (
        "nunique is to be the library's own, which it is for libraries that are named there"
    ),
}
"""Tests that fail with good reason."""


def run(sources: Path) -> Report:
    """Run the tests of a checkout."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("src", "tests"):
            copytree(sources / name, folder / name)
        copy(sources / "pyproject.toml", folder)
        backends = folder / _BACKENDS
        before, found, behind = backends.read_text().partition(_BEHIND_MEMBERS)
        if not found:
            raise ValueError(f"{sources / _BACKENDS} has no place for one more backend")
        backends.write_text(before + _MEMBER + found + behind)
        arguments = ["--quiet", "-k", "ggarray", "tests/main"]
        return run_pytest(arguments, folder, PYTHONPATH=str(folder / "src"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tests, print what came of them, and return an exit status."""
    parser = argparse.ArgumentParser(prog="python -m conformance.clients.extra_suite")
    parser.add_argument("--sources", type=Path, required=True, help="the checkout")
    return conclude("array-api-extra", run(parser.parse_args(argv).sources), KNOWN)


if __name__ == "__main__":
    sys.exit(main())
