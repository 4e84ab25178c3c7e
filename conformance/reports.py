"""pytest in a process of its own, and what came of each test."""

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")

_PYTEST_OPTIONS = ["--continue-on-collection-errors", "-p", "no:cacheprovider"]

# Variables that would change what a run means without a trace in its report.
_MEDDLING = ("ARRAY_API_TESTS_", "PYTEST_ADDOPTS")


@dataclass(frozen=True)
class Result:
    """What came of one test, or of a module that could not be collected."""

    test: str
    """Its id, as pytest writes it."""
    outcome: str
    reason: str = ""
    """Why it was skipped."""

    @property
    def module(self) -> str:
        """The name of its module: ``linalg`` for ``array_api_tests/test_linalg.py::test_qr``."""
        return Path(self.test.partition("::")[0]).stem.removeprefix("test_")


@dataclass(frozen=True)
class Report:
    """What came of a run: pytest's exit status, and its results in the order of the run."""

    exit_status: int
    results: tuple[Result, ...]


def counted(results: Iterable[Result]) -> str:
    """Say how many results there are of each outcome: ``36 passed, 1 failed``."""
    counts = Counter(each.outcome for each in results)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])


def run_pytest(
    arguments: Iterable[str], folder: Path, *, json_file: Path | None = None, **environment: str
) -> Report:
    """Run pytest in a folder, its progress on our own terminal.

    Parameters
    ----------
    arguments : iterable of str
        What pytest is given beside the options for its report.
    folder : Path
        Where it starts.
    json_file : Path, optional
        Where the report of pytest-json-report shall stay.
    **environment : str
        Variables for the run; those of the official suite and of pytest are not inherited.
    """
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(_MEDDLING)}
    with TemporaryDirectory() as scratch:
        written = json_file.resolve() if json_file else Path(scratch, "report.json")
        written.unlink(missing_ok=True)  # pytest writes none where it cannot even start
        options = ["--json-report", f"--json-report-file={written}"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *_PYTEST_OPTIONS, *options, *arguments],
            cwd=folder,
            env=inherited | environment,
            check=False,
        )
        data = json.loads(written.read_text()) if written.exists() else {}
    return Report(done.returncode, results(data))


def results(data: dict[str, Any]) -> tuple[Result, ...]:
    """The results in a report of pytest-json-report."""
    uncollected = [each for each in data.get("collectors", ()) if each["outcome"] != "passed"]
    return tuple(
        Result(each["nodeid"], each["outcome"], _reason(each))
        for each in [*uncollected, *data.get("tests", ())]
    )


def _reason(entry: dict[str, Any]) -> str:
    if entry["outcome"] != "skipped":
        return ""
    stages = (entry, entry.get("setup", {}), entry.get("call", {}))
    told = next(stage["longrepr"] for stage in stages if "longrepr" in stage)
    _file, _line, message = ast.literal_eval(told)  # pytest's triple, as text
    return str(message).removeprefix("Skipped: ")
