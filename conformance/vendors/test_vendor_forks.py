"""Forked children compute with the libraries that their parent has used, in two threads."""

import pytest

from conformance.vendors.children import ends_well
from conformance.vendors.orders import take
from conformance.vendors.products import check_routines

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # there are threads


def test_child(device):
    check_routines(device)
    assert ends_well(check_routines, device)
    check_routines(device)


def test_child_of_a_child(device):
    check_routines(device)
    assert ends_well(test_child, device)


def test_child_that_uses_all(devices):
    for device in devices:
        check_routines(device)
    for _ in range(2):
        assert ends_well(lambda: [check_routines(device) for device in reversed(devices)])
    for device in devices:
        check_routines(device)


@pytest.mark.parametrize("before", [[], ["global:libgomp.so.1"]], ids=["alone", "on libgomp"])
@pytest.mark.parametrize("verb", ["global", "use"])
def test_mkl_that_the_program_has_loaded(names, before, verb):
    # Where GNU's OpenMP is in the process, MKL runs on it, whose threads hang after a fork.
    mkl = names["mkl"]
    take([*before, mkl.replace("blas", verb, 1), "blas:mkl", mkl, "fork:"])
