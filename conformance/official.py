"""The official test suite of the array API standard, run on ggarray.

``python -m conformance.official --suite CHECKOUT`` needs a checkout of data-apis/array-api-tests
with its submodule, the text of the standard, from which it makes part of its tests. Arguments that
are not listed by ``--help`` go to pytest. The exit status is 0 only if every test ran and passed,
but for those that the suite itself skips as flaky (``--enable-skipped`` runs these too).
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory

import ggarray as xp
from conformance.reports import Report, Result, counted, run_pytest

SUITE_URL = "https://github.com/data-apis/array-api-tests"
SUITE_COMMIT = "55fcc60179efa2680ddd6cd926ddf17b83530e2b"
EXAMPLES = 500

_PYTEST_OPTIONS = ["--override-ini=testpaths=array_api_tests", "--disable-deadline"]
_SPECIAL_CASES = ["array_api_tests/test_special_cases.py", "--quiet", "--disable-warnings"]
_FLAKY = "flaky"
_FLAKY_MARK = f'@pytest.mark.skip(reason="{_FLAKY}")\n'


@dataclass(frozen=True)
class Suite:
    """A checkout of the suite, which holds the text of the standard as its submodule."""

    checkout: Path

    def __post_init__(self) -> None:
        needed = [self.checkout / "array_api_tests", self._standard / "spec"]
        if not all(folder.is_dir() for folder in needed):
            raise FileNotFoundError(
                f"{self.checkout} is no checkout of the suite with the text of the standard:"
                f" git clone {SUITE_URL}, check out {SUITE_COMMIT[:12]}, and in it"
                " git submodule update --init"
            )

    @property
    def _standard(self) -> Path:
        return self.checkout / "array-api"

    @property
    def commit(self) -> str:
        """The commit of the suite."""
        return _commit(self.checkout)

    @property
    def standard_commit(self) -> str:
        """The commit of the standard's text."""
        return _commit(self._standard)

    def run(
        self,
        device: str,
        arguments: Sequence[str] = (),
        *,
        max_examples: int = EXAMPLES,
        json_file: Path | None = None,
    ) -> Report:
        """Run the suite on a device; `arguments` are pytest's."""
        return run_pytest(
            [*_PYTEST_OPTIONS, f"--max-examples={max_examples}", *arguments],
            self.checkout,
            json_file=json_file,
            ARRAY_API_TESTS_MODULE="ggarray",
            GGARRAY_DEVICE=device,
        )

    @contextmanager
    def without_skips(self) -> Iterator["Suite"]:
        """Copy the suite for the length of a ``with`` block, with no test marked as flaky."""
        with TemporaryDirectory() as folder:
            copied = Path(folder, "suite")
            copytree(self.checkout, copied, ignore=ignore_patterns(".git", ".hypothesis"))
            for module in copied.glob("array_api_tests/test_*.py"):
                module.write_text(module.read_text().replace(_FLAKY_MARK, ""))
            yield Suite(copied)


def _commit(repository: Path) -> str:
    """The commit that is checked out, marked where files differ from it."""
    if not (repository / ".git").exists():  # git would answer for the folder above
        return "not known: no git repository"
    return subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
        cwd=repository,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.strip()


def shortcomings(report: Report, *, flaky_may_skip: bool) -> list[Result]:
    """The results that keep a run from being a success."""
    forgiven = ("skipped", _FLAKY) if flaky_may_skip else None
    return [
        each
        for each in report.results
        if each.outcome != "passed" and (each.outcome, each.reason) != forgiven
    ]


def summary(title: str, report: Report, short: Sequence[Result]) -> str:
    """Say in a line what came of a run, and in one more each what is short of success."""
    lines = [f"{title}: {counted(report.results) or 'nothing ran'}"]
    lines += [f"  {each.outcome}: {each.test} {each.reason}".rstrip() for each in short]
    if report.exit_status and not short:
        lines.append(f"  pytest ended with exit status {report.exit_status}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.official", allow_abbrev=False, description=__doc__
    )
    parser.add_argument("--suite", type=Path, required=True, help="the checkout")
    parser.add_argument("--device", help="where products run (the default device)")
    parser.add_argument(
        "--max-examples",
        type=int,
        default=EXAMPLES,
        metavar="N",
        help=f"for each property ({EXAMPLES})",
    )
    parser.add_argument(
        "--enable-skipped", action="store_true", help="run what the suite skips as flaky as well"
    )
    parser.add_argument(
        "--repeat-special-cases",
        type=int,
        default=0,
        metavar="N",
        help="then run the special cases N times more: each run draws one example a sentence",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="where to leave pytest-json-report's report"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite as the command line says; 0 if nothing is short of success."""
    parser = _parser()
    args, pytest_arguments = parser.parse_known_args(argv)
    try:
        device = xp.Device(args.device or xp.get_default_device())
        suite = Suite(args.suite)
    except (FileNotFoundError, ValueError) as error:
        parser.exit(2, f"{error}\n")

    title = f"array-api-tests {suite.commit} on {device}, {args.max_examples} examples"
    runs = {title: (pytest_arguments, args.json)}
    for turn in range(1, args.repeat_special_cases + 1):
        runs[f"special cases, {turn} of {args.repeat_special_cases}"] = (_SPECIAL_CASES, None)

    summaries, status = [], 0
    with suite.without_skips() if args.enable_skipped else nullcontext(suite) as ready:
        for title, (arguments, json_file) in runs.items():
            report = ready.run(
                device, arguments, max_examples=args.max_examples, json_file=json_file
            )
            short = shortcomings(report, flaky_may_skip=not args.enable_skipped)
            summaries.append(summary(title, report, short))
            status |= bool(short or report.exit_status)
    print("", *summaries, sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
