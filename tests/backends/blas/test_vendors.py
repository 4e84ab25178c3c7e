import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ggarray.backends.blas import vendors
from ggarray.backends.blas._shim import ffi, lib
from ggarray.backends.blas.vendors import (
    NO_BATCH,
    TYPES,
    OpenBLAS,
    UnusableLibraryError,
    check_nan,
    find_numpy_openblas,
    numpy_libraries,
)


def numpy_says(key):
    config = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return config[key]


def test_the_library_is_the_one_numpy_was_built_with():
    vendor = find_numpy_openblas()
    assert vendor.name == "openblas"
    assert str(vendor.path) in Path("/proc/self/maps").read_text()
    assert numpy_says("version").startswith(vendor.version.removesuffix(".0"))
    assert vendor.ilp64 == ("USE64BITINT" in numpy_says("openblas configuration"))
    assert vendor.core
    assert f"OpenBLAS {vendor.version} ({vendor.core}, " in vendor.description


def test_it_is_looked_for_once():
    assert find_numpy_openblas() is find_numpy_openblas()


def test_libraries_beside_numpy_where_the_system_tells_nothing(monkeypatch):
    mapped = numpy_libraries("openblas")
    monkeypatch.setattr(vendors, "_mapped_files", lambda: iter(()))
    assert mapped[0] in numpy_libraries("openblas")
    assert numpy_libraries("no such library") == []


def test_libraries_of_numpy_come_first(monkeypatch):
    own = find_numpy_openblas().path
    other = Path("/somewhere/libopenblas.so.0")
    monkeypatch.setattr(vendors, "_mapped_files", lambda: iter((other, Path("/lib/x.so"), own)))
    assert numpy_libraries("openblas") == [own, other]


def test_unusable_libraries_are_passed_over(monkeypatch, caplog):
    libc = next(path for path in vendors._mapped_files() if path.name.startswith("libc"))
    missing = Path("/no/such/openblas.so")
    own = find_numpy_openblas().path
    monkeypatch.setattr(vendors, "numpy_libraries", lambda word: [missing, libc, own])
    with caplog.at_level(logging.DEBUG, "ggarray"):
        assert find_numpy_openblas.__wrapped__().path == own
    assert "/no/such/openblas.so" in caplog.text
    assert "has no cblas_sgemm" in caplog.text


def test_no_library_at_all(monkeypatch):
    monkeypatch.setattr(vendors, "numpy_libraries", lambda word: [])
    assert find_numpy_openblas.__wrapped__() is None


def test_openmp_builds_are_refused(monkeypatch):
    monkeypatch.setattr(vendors._Symbols, "number", lambda self, name: 2)
    with pytest.raises(UnusableLibraryError, match="OpenMP"):
        OpenBLAS.open(find_numpy_openblas().path)


def test_only_openblas_sets_its_threads_like_openblas(monkeypatch):
    find = vendors._Symbols.find
    monkeypatch.setattr(
        vendors._Symbols,
        "find",
        lambda self, name: ffi.NULL if "num_threads" in name else find(self, name),
    )
    with pytest.raises(UnusableLibraryError, match="no OpenBLAS"):
        OpenBLAS.open(find_numpy_openblas().path)


# Stand-ins for libraries with narrow integers or a wrong product; cblas_sgemm stores 5.
FAKE = r"""
#include <stdint.h>
#define GEMM(letter, scalar, type)                                                              \
    void cblas_##letter##gemm(int o, int ta, int tb, int32_t m, int32_t n, int32_t k, scalar x, \
                              const void *a, int32_t lda, const void *b, int32_t ldb, scalar y, \
                              type *c, int32_t ldc)                                             \
    { for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) c[i * ldc + j] = 5; }
#define GEMV(letter) void cblas_##letter##gemv(void) {}
GEMM(s, float, float) GEMM(d, double, double)
GEMM(c, const void *, _Complex float) GEMM(z, const void *, _Complex double)
GEMV(s) GEMV(d) GEMV(c) GEMV(z)
int32_t isamax_(const int32_t *n, const float *x, const int32_t *step)
{
    int32_t best = 0;
    for (int32_t i = 0; i < *n; i++)
        if (!best || x[i * *step] > x[(best - 1) * *step]) best = i + 1;
    return best;
}
void openblas_set_num_threads(int n) {}
int openblas_get_num_threads(void) { return 1; }
"""


@pytest.fixture(scope="module")
def narrow_library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("narrow")
    (folder / "fake.c").write_text(FAKE)
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-w", "-shared", "-fPIC", "fake.c", "-o", "libfake_openblas.so"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "libfake_openblas.so"


def test_narrow_integers_are_recognized(narrow_library):
    assert not vendors._Symbols(narrow_library).is_ilp64()
    assert vendors._Symbols(find_numpy_openblas().path).is_ilp64() == find_numpy_openblas().ilp64


def test_a_library_that_loses_nan_is_refused(narrow_library):
    with pytest.raises(UnusableLibraryError, match="wrong about NaN"):
        OpenBLAS.open(narrow_library)


def test_nothing_is_opened_by_a_relative_name(narrow_library, monkeypatch):
    monkeypatch.chdir(narrow_library.parent)
    with pytest.raises(UnusableLibraryError):
        OpenBLAS.open(Path(narrow_library.name))


def test_numpys_library_passes_the_checks():
    check_nan(find_numpy_openblas().handle)


LARGE = 2**31


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((LARGE, 2, 2), (8, 4, 8, 4, 8)),
        ((2, LARGE, 2), (8, 4, 4 * LARGE, 4, 4 * LARGE)),
        ((2, 2, LARGE), (4 * LARGE, 4, 8, 4, 8)),
        ((2, 2, 2), (4 * LARGE, 4, 8, 4, 8)),
        ((2, 2, 2), (8, 4, 4, 4 * LARGE, 8)),
        ((2, 2, 2), (8, 4, 8, 4, 4 * LARGE)),
        ((2, 1, 2), (8, 4, 4 * LARGE, 4, 4)),
    ],
)
def test_narrow_integers_refuse_what_they_cannot_state(narrow_library, shape, strides):
    handle = ffi.new("shim_vendor *")
    symbols = vendors._Symbols(narrow_library)
    handle.gemm, handle.gemv = symbols.table("gemm"), symbols.table("gemv")
    handle.set_threads = symbols.find("openblas_set_num_threads")
    handle.get_threads = symbols.find("openblas_get_num_threads")
    a, b, out = (ffi.new("float[]", 4) for _ in range(3))
    arguments = (handle, 1, TYPES["f"], a, b, out)
    small = lib.shim_matmul(*arguments, 2, 2, 2, 8, 4, 8, 4, 8, 0, NO_BATCH, ffi.NULL)
    assert small == lib.SHIM_SUCCESS
    assert list(out) == [5, 5, 5, 5]
    out[0] = 0
    large = lib.shim_matmul(*arguments, *shape, *strides, 0, NO_BATCH, ffi.NULL)
    assert large == lib.SHIM_FAILED
    assert list(out) == [0, 5, 5, 5]


@pytest.mark.parametrize(
    ("offset_a", "offset_b", "batch", "expected"),
    [
        (0, 0, (2, 16, 16, 16), lib.SHIM_SUCCESS),
        (1, 0, (2, 16, 16, 16), lib.SHIM_COPY_A),
        (0, 2, (2, 16, 16, 16), lib.SHIM_COPY_B),
        (0, 0, (2, 17, 18, 16), lib.SHIM_COPY_A | lib.SHIM_COPY_B),
    ],
)
def test_unaligned_operands_are_to_be_copied(offset_a, offset_b, batch, expected):
    memory = [np.zeros(64, np.uint8) for _ in range(3)]
    a, b, out = (ffi.from_buffer(x) for x in memory)
    status = lib.shim_matmul(
        find_numpy_openblas().handle, 1, TYPES["f"], a + offset_a, b + offset_b, out,
        2, 2, 2, 8, 4, 8, 4, 8, 1, ffi.new("int64_t[]", batch), ffi.NULL,
    )  # fmt: skip
    assert status == expected


def test_a_shim_of_another_version_is_refused():
    code = (
        "import ggarray._version as v; v.__version__ = '99'\nimport ggarray.backends.blas.vendors"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "ImportError" in run.stderr
    assert "99" in run.stderr
