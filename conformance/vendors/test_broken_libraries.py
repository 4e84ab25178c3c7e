"""What cannot be used is refused, with its path and the reason, and nothing else is harmed."""

import itertools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import ggarray as xp
from conformance.vendors.products import DTYPES, PROGRAMS, ROUTINES, check

COMPILER = shutil.which("cc")
SOURCE = Path(__file__).parent / "naive.c"


@pytest.fixture(autouse=True)
def _short_trial(monkeypatch):
    monkeypatch.setattr("ggarray.backends.blas.probe._SECONDS", 4)


@pytest.fixture(scope="module")
def whole(paths):
    """A library that can be used."""
    (path,) = (path for library, path in paths.items() if library.package == "scipy-openblas32")
    return path


def is_refused(path, reason, devices):
    """Check that a library is refused, twice, and that others go on working after that."""
    name = f"blas:{path}"
    for use in (xp.Device, lambda name: xp.asarray([1.0], device=name)):
        with pytest.raises(ValueError, match=reason) as caught:
            use(name)
        assert str(path) in str(caught.value)
    assert name not in xp.devices()
    for device, program in zip(devices, itertools.cycle(ROUTINES)):
        check(program, "float32", device, n_threads=2)


# -- files -----------------------------------------------------------------------------------------


def text(path, whole):
    path.write_text("INPUT(libblas.so)\n")


def empty(path, whole):
    path.touch()


def half(path, whole):
    path.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])


def first_kilobyte(path, whole):
    path.write_bytes(whole.read_bytes()[:1024])


def other_architecture(path, whole):
    data = bytearray(whole.read_bytes())
    data[18:20] = (0x14).to_bytes(2, "little")  # e_machine: PowerPC
    path.write_bytes(data)


def other_width(path, whole):
    data = bytearray(whole.read_bytes())
    data[4] = 3 - data[4]  # EI_CLASS: 32 bits instead of 64
    path.write_bytes(data)


def no_file(path, whole):
    pass


def folder(path, whole):
    path.mkdir()


def pipe(path, whole):
    os.mkfifo(path)


FILES = {
    text: "file too short",
    empty: "file too short",
    no_file: "No such file",
    folder: "Is a directory",
    pipe: "did not answer",
    half: "SIG",
    first_kilobyte: "SIG",
    other_architecture: "cannot open",
    other_width: "wrong ELF class",
}


@pytest.mark.parametrize("make", FILES, ids=lambda make: make.__name__)
def test_files(make, tmp_path, whole, devices):
    path = tmp_path / "libopenblas.so"
    make(path, whole)
    is_refused(path, FILES[make], devices)


def test_relative_paths(whole, devices, monkeypatch):
    monkeypatch.chdir(whole.parent)
    for path in (whole.name, f"./{whole.name}"):
        is_refused(path, "absolute|unknown device", devices)


# -- libraries -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compile a library of loops with a fault that macros define."""
    if COMPILER is None:
        pytest.skip("there is no cc to compile broken libraries with")
    numbers = itertools.count()

    def compiled(*options):
        path = tmp_path_factory.mktemp("compiled") / f"libblas{next(numbers)}.so"
        command = [COMPILER, "-shared", "-fPIC", "-O1", "-o", path, SOURCE, *options]
        subprocess.run(command, check=True)
        return path

    return compiled


def test_the_loops_are_right_without_a_fault(compiled):
    device = xp.Device(f"blas:{compiled()}")
    for program, dtype in itertools.product(PROGRAMS, DTYPES):
        check(program, dtype, device, n_threads=2)


FAULTS = {
    "no routine": (["-DWITHOUT_GEMM", "-DWITHOUT_GEMV"], "no cblas_sgemm"),
    "one kind missing": (["-DWITHOUT_GEMV"], "gemv"),
    "wrong": (["-DSCALE=2"], "wrong"),
    "almost right": (["-DSCALE=1.01f"], "wrong"),
    "aborts": (["-DWHEN_OPENED=abort()"], "SIGABRT"),
    "crashes": (["-DWHEN_OPENED=*(volatile int *)8=0"], "SIGSEGV"),
    "exits": (["-DWHEN_OPENED=_exit(0)"], "exit code 0"),
    "fails": (['-DWHEN_OPENED=puts("no licence"),exit(3)'], "no licence"),
    "hangs": (["-DWHEN_OPENED=pause()"], "did not answer"),
    "crashes in a product": (["-DIN_PRODUCTS=abort()"], "SIGABRT"),
    "hangs in a product": (["-DIN_PRODUCTS=for(;;)pause()"], "did not answer"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault, compiled, devices):
    options, reason = FAULTS[fault]
    is_refused(compiled(*options), reason, devices)


def test_what_a_library_needs_is_missing(compiled, devices):
    needed = compiled("-DWITHOUT_GEMM", "-DWITHOUT_GEMV")
    library = compiled("-Wl,--no-as-needed", f"-L{needed.parent}", f"-l:{needed.name}")
    is_refused(library, needed.name, devices)
