"""The tables of the conformance report, made from given results."""

import pytest

from conformance.clients.refusals import Refusal
from conformance.reports import Report, Result
from conformance.status import chapters, libraries, page, refused, table

FINE = Report(
    0,
    (
        Result("array_api_tests/test_linalg.py::test_qr", "passed"),
        Result("array_api_tests/test_linalg.py::test_svd", "passed"),
        Result("array_api_tests/test_array_object.py::test_getitem[x]", "passed"),
    ),
)
MIXED = Report(
    1,
    (
        Result("array_api_tests/test_linalg.py::test_qr", "failed"),
        Result("array_api_tests/test_linalg.py::test_svd", "skipped", "flaky"),
        Result("array_api_tests/test_linalg.py::test_inv", "xfailed"),
        Result("array_api_tests/test_fft.py", "error"),
    ),
)


def test_a_suite_has_a_row_a_chapter_and_a_column_a_device():
    assert chapters({"cpu": FINE, "blas": MIXED}).splitlines() == [
        "| chapter | cpu | blas |",
        "| --- | --- | --- |",
        "| array object | 1 passed | nothing ran |",
        "| fft | nothing ran | 1 error |",
        "| linalg | 2 passed | 1 failed, 1 skipped, 1 xfailed (flaky) |",
        "| all | 3 passed | 1 failed, 1 error, 1 skipped, 1 xfailed |",
    ]


def test_rows_do_not_depend_on_the_order_of_the_tests():
    turned = Report(1, MIXED.results[::-1])
    assert chapters({"cpu": turned, "blas": FINE}) == chapters({"cpu": MIXED, "blas": FINE})


def test_a_run_that_was_not_made_says_why():
    assert chapters({"cpu": FINE, "blas": "no such device"}).splitlines()[2:] == [
        "| array object | 1 passed | not run |",
        "| linalg | 2 passed | not run |",
        "| all | 3 passed | not run: no such device |",
    ]
    assert chapters({"cpu": "no suite", "blas": "no suite"}).splitlines()[2:] == [
        "| all | not run: no suite | not run: no suite |",
    ]


@pytest.mark.parametrize("report", [Report(4, ()), Report(2, FINE.results)])
def test_a_run_that_broke_off_says_so(report):
    last = chapters({"cpu": report}).splitlines()[-1]
    assert f"pytest ended with exit status {report.exit_status}" in last


def test_clients_are_listed_with_their_versions():
    here = Result("conformance/clients/test_sklearn.py::test_pca", "passed")
    both = Result("conformance/clients/test_dlpack_peers.py::test_numpy", "passed")
    away = Result("conformance/clients/test_torch.py", "skipped", "could not import 'torch'")
    installed = {"sklearn": ("scikit-learn", "1.9.1"), "dask": ("dask", "1")}
    assert libraries({"cpu": Report(0, (here, both, away))}, installed).splitlines() == [
        "| library | version | cpu |",
        "| --- | --- | --- |",
        "| dlpack peers |  | 1 passed |",
        "| scikit-learn | 1.9.1 | 1 passed |",
        "| torch |  | 1 skipped (could not import 'torch') |",
        "| all |  | 2 passed, 1 skipped |",
    ]


def test_refusals_are_sorted():
    first = Refusal("dask", "1.0", "slices", "because")
    second = Refusal("xarray", "2.0", "means", "of its own")
    assert refused([second, first]).splitlines()[2:] == [
        "| dask | 1.0 | slices | because |",
        "| xarray | 2.0 | means | of its own |",
    ]
    assert refused([]) == "None is known.\n"


def test_text_cannot_break_out_of_its_cell():
    assert table(["a"], [["x | y\n z"]]).splitlines()[2:] == [r"| x \| y z |"]


def test_the_page_has_its_sections_in_order():
    facts = {"ggarray": "0.1", "NumPy": "2.4"}
    text = page(facts, official="OFFICIAL\n", own="OWN\n", clients="CLIENTS\n", refusals="WHY\n")
    places = ["| ggarray | 0.1 |", "| NumPy | 2.4 |", "\nOFFICIAL\n", "\nOWN\n", "\nCLIENTS\n"]
    found = [text.index(place) for place in [*places, "\nWHY\n"]]
    assert found == sorted(found)
