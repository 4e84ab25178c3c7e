"""What came of each test, told from what pytest wrote and from runs of small modules."""

import pytest

from conformance.reports import Report, Result, counted, results, run_pytest

WRITTEN = {
    "collectors": [
        {"nodeid": "", "outcome": "passed", "result": []},
        {
            "nodeid": "clients/test_away.py",
            "outcome": "skipped",
            "result": [],
            "longrepr": """('/x/test_away.py', 2, "Skipped: no module named 'away'")""",
        },
        {"nodeid": "clients/test_broken.py", "outcome": "failed", "longrepr": "SyntaxError"},
    ],
    "tests": [
        {"nodeid": "test_fft.py::test_ifft", "outcome": "passed", "call": {"outcome": "passed"}},
        {
            "nodeid": "test_fft.py::test_fft[a::b/c.py]",
            "outcome": "skipped",
            "setup": {"outcome": "skipped", "longrepr": "('/x/test_fft.py', 7, 'Skipped: flaky')"},
        },
        {
            "nodeid": "test_fft.py::test_rfft",
            "outcome": "skipped",
            "setup": {"outcome": "passed"},
            "call": {"outcome": "skipped", "longrepr": "('/x/test_fft.py', 9, 'Skipped: slow')"},
        },
        {
            "nodeid": "test_fft.py::test_hfft",
            "outcome": "xfailed",
            "setup": {"outcome": "passed"},
            "call": {"outcome": "skipped", "longrepr": "..."},
        },
    ],
}


def test_results_are_those_of_the_tests_and_of_modules_without_any():
    assert results(WRITTEN) == (
        Result("clients/test_away.py", "skipped", "no module named 'away'"),
        Result("clients/test_broken.py", "failed"),
        Result("test_fft.py::test_ifft", "passed"),
        Result("test_fft.py::test_fft[a::b/c.py]", "skipped", "flaky"),
        Result("test_fft.py::test_rfft", "skipped", "slow"),
        Result("test_fft.py::test_hfft", "xfailed"),
    )
    assert [each.module for each in results(WRITTEN)] == ["away", "broken", *4 * ["fft"]]
    assert counted(results(WRITTEN)) == "1 passed, 1 failed, 3 skipped, 1 xfailed"


def test_nothing_is_counted_of_nothing():
    assert results({}) == ()
    assert counted(()) == ""


MODULE = """
import os
import pytest

@pytest.mark.parametrize("device", ["cpu", "blas"])
def test_on(device):
    assert os.environ["GGARRAY_DEVICE"] == device

def test_variables():
    assert "ARRAY_API_TESTS_SKIP_DTYPES" not in os.environ
    assert os.environ["HOME_OF_THE_TEST"] == "here"

def test_skipped():
    pytest.skip("it's late")

@pytest.mark.xfail(reason="known")
def test_xfailed():
    raise ValueError

@pytest.fixture
def broken():
    raise ValueError

def test_error(broken):
    pass
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a module of tests, and one that cannot be collected."""
    (tmp_path / "test_small.py").write_text(MODULE)
    (tmp_path / "test_torn.py").write_text("import no_module_has_this_name")
    monkeypatch.setenv("ARRAY_API_TESTS_SKIP_DTYPES", "float32")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    monkeypatch.setenv("HOME_OF_THE_TEST", "there")
    return tmp_path


def test_a_run_reports_every_test(folder, capfd):
    kept = folder / "report.json"
    environment = {"GGARRAY_DEVICE": "blas", "HOME_OF_THE_TEST": "here"}
    report = run_pytest(["--quiet"], folder, json_file=kept, **environment)
    assert report.exit_status == pytest.ExitCode.TESTS_FAILED
    assert {each.test.removeprefix("test_small.py::"): each.outcome for each in report.results} == {
        "test_torn.py": "failed",
        "test_on[cpu]": "failed",
        "test_on[blas]": "passed",
        "test_variables": "passed",
        "test_skipped": "skipped",
        "test_xfailed": "xfailed",
        "test_error": "error",
    }
    assert "it's late" in {each.reason for each in report.results}
    assert kept.exists()
    assert "1 xfailed" in capfd.readouterr().out  # pytest's own progress


def test_a_run_that_cannot_start_has_no_results(folder, capfd):
    report = run_pytest(["--no-such-option"], folder)
    assert report == Report(pytest.ExitCode.USAGE_ERROR, ())
    assert "--no-such-option" in capfd.readouterr().err


def test_an_earlier_report_is_not_taken_for_this_run(folder, capfd):
    kept = folder / "report.json"
    run_pytest(["test_small.py"], folder, json_file=kept, GGARRAY_DEVICE="cpu")
    assert run_pytest(["--no-such-option"], folder, json_file=kept).results == ()


@pytest.mark.parametrize("device", ["cpu", "blas"])
def test_only_the_tests_of_one_device_run(folder, capfd, device, pytestconfig):
    report = run_pytest(
        ["test_small.py", "-p", "conformance.one_device"],
        folder,
        GGARRAY_DEVICE=device,
        PYTHONPATH=str(pytestconfig.rootpath),
    )
    ran = [each.test for each in report.results if "test_on" in each.test]
    assert ran == [f"test_small.py::test_on[{device}]"]
    assert len(report.results) == 5
