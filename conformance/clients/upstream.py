"""The own tests of client libraries, run on ggarray: what their runs share."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from conformance.reports import Report, counted, run_pytest

_ROOT = Path(__file__).parents[2]
_SHORT = ("failed", "error")


def run_installed(folder: Path, plugin: str, arguments: Iterable[str]) -> Report:
    """Run tests that a library's wheel has brought.

    Parameters
    ----------
    folder : Path
        Where the library is.
    plugin : str
        The module of ours by which its pytest learns of ggarray.
    arguments : iterable of str
        For pytest.
    """
    # No configuration: in a virtual environment within a checkout, pytest would find ours.
    options = ["--quiet", "--disable-warnings", "-c", os.devnull, f"--rootdir={folder}"]
    return run_pytest(
        [*options, "-p", plugin, "-k", "ggarray", *arguments],
        _ROOT,
        PYTHONDONTWRITEBYTECODE="1",
        SCIPY_ARRAY_API="1",
    )


def conclude(title: str, report: Report, known: Mapping[str, str]) -> int:
    """Print what came of a run and return an exit status.

    Parameters
    ----------
    title : str
        What ran.
    report : Report
        What came of it.
    known : mapping of str to str
        The tests that fail with good reason for some of their parameters, and the reason.

    Returns
    -------
    int
        0 if just those fail of the tests that ran, and there were any.
    """
    ran = {_function(each.test) for each in report.results}
    failed = {each.test for each in report.results if each.outcome in _SHORT}
    unknown = sorted(test for test in failed if _function(test) not in known)
    explained = {_function(test) for test in failed} & known.keys()
    print(f"{title}: {counted(report.results) or 'nothing ran'}")
    for test in sorted(explained):
        print(f"  known: {test}: {known[test]}")
    stale = sorted(ran & known.keys() - explained)
    for label, tests in (("failed", unknown), ("fails no longer", stale)):
        for test in tests:
            print(f"  {label}: {test}")
    complete = report.exit_status in (0, 1)  # 1: tests failed
    return int(not ran or not complete or bool(unknown or stale))


def _function(test: str) -> str:
    """Return the id of a test without its parameters."""
    return test.partition("[")[0]
