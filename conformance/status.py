"""The conformance report: ``python -m conformance.status --suite CHECKOUT`` writes STATUS.md.

It runs the official suite, our own and those of the client libraries on each device that every
machine has. What cannot run is told in its table.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import packages_distributions, version
from pathlib import Path

import numpy as np

import ggarray as xp
from conformance.clients.refusals import REFUSALS, Refusal
from conformance.official import EXAMPLES, Suite
from conformance.reports import Report, Result, counted, run_pytest

ROOT = Path(__file__).parents[1]
STATUS = ROOT / "conformance" / "STATUS.md"
DEVICES = ("cpu", "blas")

Row = Sequence[str]
Outcome = Report | str
"""What came of a run, or why there was none."""

PREFACE = """\
# Conformance status

`make conformance-report SUITE=<checkout>` wrote this page from the test runs it tells of. A cell
names every outcome that a test had.
"""
OFFICIAL = """
## The official suite

[data-apis/array-api-tests](https://github.com/data-apis/array-api-tests), none of its tests left
out: those that it skips as flaky have run too.
"""
OWN = """
## Our own suite

`conformance/standard`, a module a chapter of the standard. The device is the default one, and that
of the tests which name a device.
"""
CLIENTS = """
## Client libraries

`conformance/clients`, a module a library: its work on ggarray's arrays against its work on NumPy's.
A line without a version is about several libraries, or one that is not installed.
"""
REFUSED = """
## What a client refuses

Each line is held by a test, which fails as soon as the library no longer refuses.
"""


def table(head: Row, rows: Iterable[Row]) -> str:
    """Write a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(text) for text in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def told(results: Iterable[Result]) -> str:
    """Say how many results there are of each outcome, and why tests were skipped."""
    results = tuple(results)
    reasons = sorted({each.reason for each in results} - {""})
    return counted(results) + (f" ({'; '.join(reasons)})" if reasons else "")


def modules(outcomes: Mapping[str, Outcome]) -> list[str]:
    """The modules of which any run has results, sorted."""
    reports = [each for each in outcomes.values() if isinstance(each, Report)]
    return sorted({result.module for report in reports for result in report.results})


def of_module(module: str, outcome: Outcome) -> str:
    """The cell of a module in a run."""
    if isinstance(outcome, str):
        return "not run"
    return told(each for each in outcome.results if each.module == module) or "nothing ran"


def of_run(outcome: Outcome) -> str:
    """The cell of a whole run."""
    if isinstance(outcome, str):
        return f"not run: {outcome}"
    ended = f"pytest ended with exit status {outcome.exit_status}"
    complete = outcome.exit_status in (0, 1) and outcome.results  # 1: tests failed
    return counted(outcome.results) + ("" if complete else f" ({ended})")


def chapters(outcomes: Mapping[str, Outcome]) -> str:
    """The table of a suite that has a module a chapter; `outcomes` by device."""
    rows = [
        [module.replace("_", " "), *(of_module(module, each) for each in outcomes.values())]
        for module in modules(outcomes)
    ]
    return table(["chapter", *outcomes], [*rows, ["all", *map(of_run, outcomes.values())]])


def libraries(outcomes: Mapping[str, Outcome], installed: Mapping[str, tuple[str, str]]) -> str:
    """The table of the clients, which have a module a library.

    `installed` has the distribution's name and version by module.
    """
    rows = [
        [
            *installed.get(module, (module.replace("_", " "), "")),
            *(of_module(module, each) for each in outcomes.values()),
        ]
        for module in modules(outcomes)
    ]
    total = ["all", "", *map(of_run, outcomes.values())]
    return table(["library", "version", *outcomes], [*rows, total])


def refused(refusals: Iterable[Refusal]) -> str:
    """The table of what clients refuse."""
    rows = sorted((each.library, each.version, each.what, each.reason) for each in refusals)
    return table(["library", "version", "what", "why"], rows) if rows else "None is known.\n"


def page(facts: Mapping[str, str], official: str, own: str, clients: str, refusals: str) -> str:
    """Put the page together from what the runs were made with and the tables."""
    sections = (OFFICIAL, official), (OWN, own), (CLIENTS, clients), (REFUSED, refusals)
    parts = [f"{text}\n{rows}" for text, rows in sections]
    return "".join([PREFACE, "\n", table(["made with", "version"], facts.items()), *parts])


def _on_each_device(run: Callable[[str], Report]) -> dict[str, Outcome]:
    return {
        device: run(device) if device in xp.devices() else "there is no such device here"
        for device in DEVICES
    }


def _run_ours(folder: str) -> dict[str, Outcome]:
    """Run one of our own folders, alone, since clients decide at import what they heed."""
    arguments = [f"conformance/{folder}", "--quiet", "-p", "conformance.one_device"]
    return _on_each_device(lambda each: run_pytest(arguments, ROOT, GGARRAY_DEVICE=each))


def _run_official(suite: Suite | None, max_examples: int) -> dict[str, Outcome]:
    if suite is None:
        return dict.fromkeys(DEVICES, "no checkout of the suite was given")
    with suite.without_skips() as whole:
        return _on_each_device(
            lambda each: whole.run(
                each, ["--quiet", "--disable-warnings"], max_examples=max_examples
            )
        )


def main(argv: Sequence[str] | None = None) -> None:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance.status", description="Write conformance/STATUS.md."
    )
    parser.add_argument("--suite", type=Path, help="a checkout of data-apis/array-api-tests")
    parser.add_argument(
        "--max-examples",
        type=int,
        default=EXAMPLES,
        metavar="N",
        help=f"for each property ({EXAMPLES})",
    )
    args = parser.parse_args(argv)
    try:
        suite = Suite(args.suite) if args.suite else None
    except FileNotFoundError as error:
        parser.exit(2, f"{error}\n")

    facts = {"ggarray": xp.__version__, "NumPy": np.__version__}
    facts["array API standard"] = xp.__array_api_version__
    if suite:
        facts["data-apis/array-api-tests"] = suite.commit
        facts["data-apis/array-api"] = suite.standard_commit
        facts["examples a property"] = str(args.max_examples)

    official = _run_official(suite, args.max_examples)
    own = _run_ours("standard")
    clients = _run_ours("clients")
    installed = {
        package: (names[0], version(names[0]))
        for package, names in packages_distributions().items()
    }
    STATUS.write_text(
        page(
            facts,
            official=chapters(official),
            own=chapters(own),
            clients=libraries(clients, installed),
            refusals=refused(REFUSALS),
        )
    )
    print(f"written: {STATUS}")


if __name__ == "__main__":
    main()
