"""Opens the libraries, all in this process, and tells at the end which ran."""

import ctypes
import faulthandler
import os
import sys
from pathlib import Path

import pytest

import ggarray as xp
from conformance.vendors.debian import RUNTIME
from conformance.vendors.libraries import LIBRARIES, MissingError, NotDownloadedError
from ggarray._runtime.plugins import backend_devices

pytest.register_assert_rewrite("conformance.vendors.products")

_TOLD = pytest.StashKey[dict]()
_STDERR = pytest.StashKey[int]()
_SECONDS = 600  # for one test


def pytest_addoption(parser):
    parser.getgroup("ggarray vendors").addoption(
        "--debian",
        type=Path,
        default=Path(sys.prefix, "vendors"),
        metavar="FOLDER",
        help="where conformance.vendors.debian has unpacked its packages",
    )


def pytest_configure(config):
    # Old libraries may not know the processor that they run on.
    config.addinivalue_line("filterwarnings", "ignore:.*its kernels are:ggarray.Warning")
    config.stash[_TOLD] = {}
    config.stash[_STDERR] = os.dup(2)  # pytest is going to capture it
    _offer_runtime(config.getoption("--debian").resolve())


def _offer_runtime(folder):
    """Let Debian's libraries find what they need.

    Processes that are started from here find it by the environment, which is too late for this one:
    here it is loaded already.
    """
    paths = [path for package, file in RUNTIME.items() for path in (folder / package).glob(file)]
    for path in paths:
        try:
            ctypes.CDLL(path.name)
        except OSError:
            ctypes.CDLL(path)
    folders = [*map(str, dict.fromkeys(path.parent for path in paths))]
    inherited = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([*folders, *filter(None, [inherited])])


@pytest.fixture(autouse=True)
def _no_hanging(pytestconfig):
    """End the run, with a traceback, where a library hangs in this process."""
    faulthandler.dump_traceback_later(_SECONDS, exit=True, file=pytestconfig.stash[_STDERR])
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def folder(pytestconfig):
    """Where Debian's packages are."""
    return pytestconfig.getoption("--debian").resolve()


@pytest.fixture(params=LIBRARIES, ids=str, scope="session")
def library(request):
    """Each library."""
    return request.param


@pytest.fixture(scope="session")
def device(library, folder, pytestconfig):
    """The name of each library's device."""
    told = pytestconfig.stash[_TOLD]
    try:
        name = f"blas:{library.path(folder)}"
        xp.Device(name)
    except NotDownloadedError as error:
        told[library] = f"SKIPPED: {error}"
        pytest.skip(str(error))
    except (MissingError, ValueError) as error:
        told[library] = f"FAILED: {error}"
        pytest.fail(str(error))
    told[library] = f"{name}: {backend_devices()[name].description}"
    return name


@pytest.fixture(scope="session")
def paths(folder):
    """The paths of the libraries that are there, by library; those of PyPI have to be."""
    found = {}
    for library in LIBRARIES:
        try:
            found[library] = library.path(folder)
        except NotDownloadedError:
            continue
        except MissingError as error:
            pytest.fail(str(error))
    return found


@pytest.fixture(scope="session")
def names(paths):
    """The device of each library that is there, by package."""
    return {library.package: f"blas:{path}" for library, path in paths.items()}


@pytest.fixture(scope="session")
def devices(names):
    """The devices of the libraries that are there, all of them open."""
    return [xp.Device(name) for name in names.values()]


def pytest_terminal_summary(terminalreporter, config):
    told = config.stash[_TOLD]
    if told:
        terminalreporter.section("libraries")
    for library in LIBRARIES:
        if library in told:
            terminalreporter.line(told[library])
