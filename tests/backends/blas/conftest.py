"""Libraries for the tests of this folder."""

from itertools import count

import pytest

from .fake_blas import LIBGOMP, Compiler, needing

_openmp_numbers = count()  # the loader takes what has a name for what has it already


@pytest.fixture(scope="session")
def compile_blas(tmp_path_factory):
    """Write a fake library to a path."""
    return Compiler(tmp_path_factory.mktemp("compiled"))


@pytest.fixture
def machine(tmp_path_factory):
    """A folder whose name says nothing of libraries, unlike that of a test."""
    return tmp_path_factory.mktemp("machine")


@pytest.fixture
def fake(compile_blas, machine):
    """Compile a fake library that only this test has."""
    numbers = count()

    def fake(*options, **arguments):
        return compile_blas(machine / f"{next(numbers)}" / "libfake.so", *options, **arguments)

    return fake


@pytest.fixture
def on_openmp(compile_blas, machine):
    """Compile a library that runs on OpenMP, which is its own: ``libgomp`` or ``libomp``."""

    def on_openmp(openmp, *options, **arguments):
        path = machine / f"{next(_openmp_numbers)}" / f"{openmp}-{next(_openmp_numbers)}.so"
        compile_blas(path, f"-Wl,-soname,{path.name}", source=LIBGOMP)
        return compile_blas(path.parent / "lib.so", *needing(path), *options, **arguments)

    return on_openmp
