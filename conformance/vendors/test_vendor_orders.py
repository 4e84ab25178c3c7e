"""What was loaded before decides nothing: each library runs its own code.

Equal products of two libraries are rounded in different ways, and a library rounds in the same way
each time. So its bits tell whether a library has run, however it got its routines: MKL makes the
Fortran names of BLAS known to all that is loaded after it, and others call theirs by these names.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance.vendors.orders import take

SCIPY = "import:scipy.linalg.blas"


@pytest.fixture(scope="module")
def alone(names):
    """What each device gives in a process where it is alone."""
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(take, ([device] for device in names.values()))
    return {device: digest for each in found for device, digest in each.items()}


def test_bits_tell_the_vendors_apart(names, alone):
    mkl = alone[names["mkl"]]
    others = {package: alone[device] for package, device in names.items() if package != "mkl"}
    assert mkl not in others.values()
    different = ["scipy-openblas32", "libblis4-pthread", "libatlas3-base", "libblas3"]
    found = [others[package] for package in different if package in others]
    assert len(set(found)) == len(found)


ORDERS = {
    "scipy first, mkl last": lambda mkl, others: [SCIPY, *others, mkl],
    "mkl first, scipy last": lambda mkl, others: [mkl, *others, SCIPY],
    "mkl in the middle, backwards": lambda mkl, others: [*others[4:], mkl, *others[:4]][::-1],
    "mkl is there for all": lambda mkl, others: [_for_all(mkl), *others, mkl],
    "each is there for all": lambda mkl, others: [mkl, *others, *map(_for_all, others[::-1])],
}


def _for_all(device):
    return device.replace("blas:", "global:", 1)


@pytest.mark.parametrize("order", ORDERS)
def test_orders(order, names, alone):
    others = [device for package, device in names.items() if package != "mkl"]
    steps = ORDERS[order](names["mkl"], others)
    assert take([*steps, "fork:"]) == alone


def test_another_library_is_there_for_all(names, alone):
    if "libblis4-pthread" not in names:
        pytest.skip("libblis4-pthread could not be downloaded")
    rest = [device for package, device in names.items() if package != "libblis4-pthread"]
    steps = [_for_all(names["libblis4-pthread"]), *rest]
    assert take(steps) == {device: alone[device] for device in rest}


def test_threads_of_libgomp_where_they_are_asked_for(names):
    take([device.replace("blas:", "libgomp:", 1) for device in names.values()])
