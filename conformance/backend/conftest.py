"""Which devices are tried, and how much of the work they took."""

from collections import Counter, defaultdict

import pytest

import ggarray as xp
from ggarray._runtime.plugins import backend_devices

_TALLY = pytest.StashKey[Counter]()


def pytest_addoption(parser):
    group = parser.getgroup("ggarray backends")
    group.addoption(
        "--device",
        action="append",
        metavar="NAME",
        help="a device to try, perhaps several times; without it: cpu and blas",
    )
    group.addoption(
        "--nmse",
        type=float,
        default=0.0,
        metavar="LIMIT",
        help="normalised mean square error that is admitted of products of floats, for devices that"
        " compute in fewer bits than the operands have; 5e-4 is what ggml admits",
    )
    group.addoption(
        "--idle",
        action="store_true",
        help="a device may leave all work to the cpu",
    )


def pytest_configure(config):
    config.stash[_TALLY] = Counter()
    for name in config.getoption("--device") or ():
        try:
            xp.Device(name)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        names = metafunc.config.getoption("--device") or ["cpu", "blas"]
        metafunc.parametrize("device", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def device(request):
    """The device of a name."""
    return backend_devices()[request.param]


@pytest.fixture
def nmse(pytestconfig):
    """What products of floats may be off by at least."""
    return pytestconfig.getoption("--nmse")


@pytest.fixture
def tally(pytestconfig):
    """Counts kernels by device, operation, dtype, and whether the device takes them."""
    return pytestconfig.stash[_TALLY]


def pytest_terminal_summary(terminalreporter, config):
    tally = config.stash[_TALLY]
    if not tally:
        return
    terminalreporter.section("kernels that devices took")
    asked, taken, dtypes = Counter(), Counter(), defaultdict(dict)
    for (device, op, dtype, takes), count in tally.items():
        asked[device, op] += count
        if takes:
            taken[device, op] += count
            dtypes[device, op][str(dtype)] = None
    for key, count in asked.items():
        device, op = key
        terminalreporter.line(
            f"{device} {op.value}: {taken[key]} of {count}{': ' * (key in dtypes)}"
            f"{', '.join(dtypes[key])}"
        )
