"""The runner of the official suite, on a suite of three tests in its place."""

import shutil
import subprocess

import pytest

from conformance.official import Suite, main, shortcomings, summary
from conformance.reports import Report, Result

CONFTEST = """
def pytest_addoption(parser):
    parser.addoption("--max-examples", type=int)
    parser.addoption("--disable-deadline", action="store_true")
"""
MODULE = """
import os
import pytest

def test_options(pytestconfig):
    assert pytestconfig.getoption("--max-examples") == 7
    assert pytestconfig.getoption("--disable-deadline")
    assert os.environ["ARRAY_API_TESTS_MODULE"] == "ggarray"
    assert os.environ["GGARRAY_DEVICE"] == "cpu"

@pytest.mark.skip(reason="flaky")
def test_flaky():
    pass
"""
SPECIAL_CASES = """
from pathlib import Path

def test_special_case():
    with open({log!r}, "a") as log:
        log.write("ran ")
"""
STANDARD_LACKS = """
import pytest

@pytest.mark.skip(reason="linalg not found in array module")
def test_linalg():
    pass
"""


@pytest.fixture
def checkout(tmp_path):
    """A suite with an option of each kind, a test that it skips, and special cases."""
    tests = tmp_path / "suite" / "array_api_tests"
    tests.mkdir(parents=True)
    (tmp_path / "suite" / "array-api" / "spec").mkdir(parents=True)
    (tmp_path / "suite" / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "suite" / "conftest.py").write_text(CONFTEST)
    (tests / "test_options.py").write_text(MODULE)
    log = str(tmp_path / "log")
    (tests / "test_special_cases.py").write_text(SPECIAL_CASES.format(log=log))
    return tmp_path / "suite"


def run(checkout, *arguments):
    return main(["--suite", str(checkout), "--device", "cpu", "--max-examples", "7", *arguments])


def test_what_the_suite_skips_as_flaky_is_no_failure(checkout, capfd):
    assert run(checkout) == 0
    assert "on cpu, 7 examples: 2 passed, 1 skipped\n" in capfd.readouterr().out


def test_skips_as_flaky_can_be_enabled_and_the_checkout_stays(checkout, capfd):
    assert run(checkout, "--enable-skipped") == 0
    assert "on cpu, 7 examples: 3 passed\n" in capfd.readouterr().out
    assert 'reason="flaky"' in (checkout / "array_api_tests" / "test_options.py").read_text()


def test_a_flaky_test_that_stays_skipped_though_enabled_is_a_failure(checkout, capfd):
    module = checkout / "array_api_tests" / "test_options.py"
    module.write_text(module.read_text().replace('(reason="flaky")', '("flaky")'))
    assert run(checkout) == 0
    assert run(checkout, "--enable-skipped") == 1
    assert "  skipped: array_api_tests/test_options.py::test_flaky flaky" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("def test_it(): raise ValueError", "failed: array_api_tests/test_more.py::test_it"),
        (
            "import pytest\n@pytest.mark.xfail\ndef test_it(): raise ValueError",
            "xfailed: array_api_tests/test_more.py::test_it",
        ),
        (STANDARD_LACKS, "skipped: array_api_tests/test_more.py::test_linalg linalg not found"),
        ("import no_module_has_this_name", "failed: array_api_tests/test_more.py"),
    ],
    ids=["failed", "xfailed", "skipped", "not collected"],
)
def test_whatever_did_not_pass_is_a_failure(checkout, capfd, body, told):
    (checkout / "array_api_tests" / "test_more.py").write_text(body)
    assert run(checkout) == 1
    assert f"\n  {told}" in capfd.readouterr().out


def test_special_cases_are_repeated(checkout, capfd):
    assert run(checkout, "--repeat-special-cases", "2") == 0
    assert (checkout.parent / "log").read_text().split() == 3 * ["ran"]
    assert "\nspecial cases, 2 of 2: 1 passed\n" in capfd.readouterr().out


def test_other_arguments_are_for_pytest(checkout, capfd):
    assert run(checkout, "-k", "special", "array_api_tests/test_special_cases.py") == 0
    assert "on cpu, 7 examples: 1 passed\n" in capfd.readouterr().out
    assert run(checkout, "-k", "no_test_has_this_name") == 1
    assert "nothing ran\n  pytest ended with exit status 5" in capfd.readouterr().out


def test_the_report_can_be_kept(checkout, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(checkout, "--json", "kept.json")
    assert '"passed": 2' in (tmp_path / "kept.json").read_text()


@pytest.mark.parametrize("missing", [".", "array_api_tests", "array-api/spec"])
def test_an_incomplete_checkout_says_what_to_clone(checkout, capsys, missing):
    shutil.rmtree(checkout / missing)
    with pytest.raises(SystemExit) as stopped:
        run(checkout)
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "git clone https://github.com/data-apis/array-api-tests, check out 55fcc60" in told


def test_an_unknown_device_is_named(checkout, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--suite", str(checkout), "--device", "abacus"])
    assert stopped.value.code == 2
    assert "abacus" in capsys.readouterr().err


def test_commits_are_those_of_the_two_repositories(checkout):
    def git(*arguments):
        identity = ["-c", "user.name=N", "-c", "user.email=n@example.org"]
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=checkout, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    assert Suite(checkout).commit == "not known: no git repository"
    git("init", "--quiet")
    git("add", "conftest.py")
    git("commit", "--quiet", "--message=first")
    commit = git("rev-parse", "HEAD")[:12]
    assert Suite(checkout).commit == commit
    (checkout / "conftest.py").write_text("changed")
    assert Suite(checkout).commit == f"{commit}-dirty"
    assert Suite(checkout).standard_commit == "not known: no git repository"


def test_a_summary_has_a_line_for_each_shortcoming():
    report = Report(
        1,
        (
            Result("a.py::test_1", "passed"),
            Result("a.py::test_2", "failed"),
            Result("a.py::test_3", "skipped", "flaky"),
            Result("a.py::test_4", "skipped", "not found"),
        ),
    )
    short = shortcomings(report, flaky_may_skip=True)
    assert [each.test for each in short] == ["a.py::test_2", "a.py::test_4"]
    assert summary("the suite", report, short).splitlines() == [
        "the suite: 1 passed, 1 failed, 2 skipped",
        "  failed: a.py::test_2",
        "  skipped: a.py::test_4 not found",
    ]
    assert len(shortcomings(report, flaky_may_skip=False)) == 3
