"""Whose a library is, what is known of it, and what is found out by trying."""

import logging
from pathlib import Path

import numpy as np
import pytest

from ggarray.backends.blas._shim import ffi, lib
from ggarray.backends.blas.discovery import Libraries
from ggarray.backends.blas.library import UnusableLibraryError
from ggarray.backends.blas.vendors import BY_NAME, VENDORS, available_processors, open_library

from .fake_blas import EVERYTHING, ILP64, MARKS, SPELLINGS, Books

LOSES_NAN = {
    "gemm": ["-DIS_LOST_BY_GEMM(x,y)=((x)==0)"],
    "gemm's other operand": ["-DIS_LOST_BY_GEMM(x,y)=((y)==0)"],
    "gemv": ["-DIS_LOST_BY_GEMV(x,y)=((x)==0)"],
    "gemv's vector": ["-DIS_LOST_BY_GEMV(x,y)=((y)==0)"],
}


@pytest.fixture(scope="module")
def numpys():
    """NumPy's own library."""
    return Libraries().open_default()


def numpy_says(key):
    return np.show_config(mode="dicts")["Build Dependencies"]["blas"][key]


def test_numpys_library(numpys):
    assert numpys.vendor is BY_NAME["openblas"]
    assert str(numpys.path) in Path("/proc/self/maps").read_text()
    assert numpy_says("version").startswith(numpys.version.removesuffix(".0"))
    assert numpys.ilp64 == ("USE64BITINT" in numpy_says("openblas configuration"))
    assert numpys.threading == "pthreads"
    assert numpys.core
    assert not numpys.loses_nan
    integers = "ILP64" if numpys.ilp64 else "LP64"
    assert numpys.description == (
        f"OpenBLAS {numpys.version} ({numpys.core}, {integers}, {numpys.path})"
    )


# -- whose it is -----------------------------------------------------------------------------------

# By marks: the vendor, its version, the processor of its kernels, what its threads run on.
KNOWN = {
    "openblas": ("openblas", "0.3.99", "Penryn", "pthreads"),
    "mkl": ("mkl", "2099.1", "", "intel"),
    "blis": ("blis", "9.1", "skx", "pthreads"),
    "aocl": ("aocl", "9.1.0", "skx", "pthreads"),
    "nvpl": ("nvpl", "1.2.3", "", "its own"),
    "atlas": ("atlas", "", "", None),
    "flexiblas": ("flexiblas", "3.4.5", "", "its own"),
    "armpl": ("armpl", "24.10.1", "", None),
    "armpl of 64 bits": ("armpl", "24.10.1", "", None),
    "accelerate": ("accelerate", "", "", None),
    "reference": ("reference", "", "", "none"),
}


@pytest.mark.parametrize("marks", KNOWN)
def test_vendors_are_told_by_symbols(fake, monkeypatch, marks):
    monkeypatch.delenv("MKL_THREADING_LAYER", raising=False)
    name, version, core, threading = KNOWN[marks]
    opened = open_library(fake(marks=MARKS[marks]))
    assert opened.vendor is BY_NAME[name]
    assert (opened.version, opened.core) == (version, core)
    assert threading is None or opened.threading == threading
    assert not opened.ilp64
    assert not opened.loses_nan


def test_marks_of_every_vendor_are_tried():
    assert {name for name, *_ in KNOWN.values()} | {"nvhpc"} == set(BY_NAME)


@pytest.mark.parametrize("spelling", ["64_", "scipy_ 64_", "_64"])
def test_openblas_under_other_names(fake, spelling):
    opened = open_library(fake(*SPELLINGS[spelling], *ILP64, marks=MARKS["openblas"]))
    assert opened.vendor.name == "openblas"
    assert (opened.version, opened.core, opened.threading) == ("0.3.99", "Penryn", "pthreads")
    assert opened.ilp64


@pytest.mark.parametrize("others", ["openblas", "mkl", "blis", "atlas"])
def test_flexiblas_has_the_names_of_others_too(fake, others):
    opened = open_library(fake(marks=MARKS["flexiblas"] + MARKS[others]))
    assert opened.vendor.name == "flexiblas"
    assert opened.version == "3.4.5"


@pytest.mark.parametrize(
    ("passes_to", "threading"),
    [("NETLIB", "its own"), ("OpenBLAS-OpenMP", "libgomp"), ("BLIS-PTHREAD", "its own")],
)
def test_flexiblas_runs_on_what_it_passes_calls_to(fake, passes_to, threading):
    opened = open_library(fake(f'-DBACKEND="{passes_to}"', marks=MARKS["flexiblas"]))
    assert opened.threading == threading


@pytest.mark.parametrize(("options", "mixes"), [((), False), (("-DIS_ONE(beta)=0",), True)])
def test_libraries_that_mix_parts_of_complex_numbers_are_told(fake, options, mixes):
    assert open_library(fake(*options)).mixes_parts == mixes


def test_nvhpc_is_told_by_its_folder(compile_blas, machine):
    folder = machine / "hpc_sdk" / "Linux_x86_64" / "24.9"
    path = compile_blas(folder / "compilers/lib/libblas.so", marks=MARKS["openblas"])
    assert open_library(path).vendor.name == "nvhpc"
    path = compile_blas(folder / "math_libs/nvpl/lib/libnvpl_blas.so", marks=MARKS["nvpl"])
    assert open_library(path).vendor.name == "nvpl"


def test_nvhpc_that_says_nothing(compile_blas, machine):
    opened = open_library(compile_blas(machine / "hpc_sdk" / "libblas.so"))
    assert (opened.vendor.name, opened.version, opened.core) == ("nvhpc", "", "")


def test_a_version_that_is_not_told(fake):
    marks = MARKS["openblas"].replace("OpenBLAS 0.3.99 NO_AFFINITY", "")
    assert open_library(fake(marks=marks)).version == ""


def test_blis_without_the_name_of_its_configuration(fake):
    marks = MARKS["blis"].replace("bli_arch_string", "other")
    assert open_library(fake(marks=marks)).core == ""


def test_names_and_titles():
    assert list(BY_NAME.values()) == list(VENDORS)
    assert len({vendor.title for vendor in VENDORS}) == len(VENDORS)
    assert all(vendor.how_to_get for vendor in VENDORS)
    assert VENDORS[-1] is BY_NAME["reference"]  # which is everything


def test_what_else_a_library_has(fake):
    assert open_library(fake()).extras == ()
    assert open_library(fake(*EVERYTHING)).extras == ("strided batch",)
    more = """
        void cblas_sgemm_batch(void) {}
        void cblas_sgemmtr(void) {}
        void aocl_gemm_bf16bf16f32of32(void) {}
        void cblas_shgemm(void) {}
        void cblas_gemm_s8u8s32(void) {}
        void cblas_sgemm_compute(void) {}
    """
    assert open_library(fake(marks=more)).extras == (
        "batch",
        "triangular gemm",
        "bfloat16",
        "float16",
        "int8",
        "packed",
    )


# -- what is found out -----------------------------------------------------------------------------


def addresses(opened, routine):
    return [address != ffi.NULL for address in getattr(opened.handle, routine)]


def check_all_routines(opened, found=lib.SHIM_RIGHT):
    for routine in range(lib.SHIM_ROUTINES):
        for type_ in range(lib.SHIM_TYPES):
            assert lib.shim_check(opened.handle, routine, type_) | found == found


@pytest.mark.parametrize("integers", [(), ILP64], ids=["LP64", "ILP64"])
def test_a_library_without_a_fault(fake, integers):
    opened = open_library(fake(*EVERYTHING, *integers))
    for routine in ("gemm", "gemv", "syrk", "dot", "gemm_batch_strided"):
        assert addresses(opened, routine) == [True] * 4
    assert opened.ilp64 == bool(integers)
    check_all_routines(opened)


def test_numpys_library_passes_the_checks(numpys):
    check_all_routines(numpys)


def test_a_library_with_few_routines(fake):
    opened = open_library(fake())
    for routine in ("syrk", "dot", "gemm_batch_strided"):
        assert addresses(opened, routine) == [False] * 4
    check_all_routines(opened)


@pytest.mark.parametrize(
    "fault",
    [
        "-DGEMM_FACTOR=2",
        "-DGEMM_FACTOR=1.01f",
        "-DGEMV_FACTOR=-1",
        "-DIS_ZERO(beta)=0",  # reads what out holds
        "-DIS_LOST_BY_GEMM(x,y)=(creal(x)<0)",
    ],
)
@pytest.mark.parametrize("more", [(), EVERYTHING], ids=["few routines", "all routines"])
def test_wrong_products_are_refused(fake, fault, more):
    path = fake(fault, *more)
    with pytest.raises(UnusableLibraryError, match="computes wrong products") as caught:
        open_library(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("fault", LOSES_NAN)
@pytest.mark.parametrize("more", [(), EVERYTHING], ids=["few routines", "all routines"])
def test_libraries_that_lose_nan(fake, fault, more):
    opened = open_library(fake(*LOSES_NAN[fault], *more))
    assert opened.loses_nan
    check_all_routines(opened, lib.SHIM_LOSES_NAN)


@pytest.mark.parametrize(
    ("fault", "routine", "left"),
    [
        ("-DSYRK_FACTOR=2", "syrk", [False] * 4),
        ("-DDOT_FACTOR=2", "dot", [False] * 4),
        ("-DREAL_BATCH_FACTOR=2", "gemm_batch_strided", [False, False, True, True]),
        ("-DCOMPLEX_BATCH_FACTOR=1.0i", "gemm_batch_strided", [True, True, False, False]),
        ("-DSYRK_FACTOR=(sum==0?0:1)", "syrk", [True] * 4),
    ],
)
def test_wrong_routines_are_done_without(fake, fault, routine, left):
    opened = open_library(fake(fault, *EVERYTHING))
    for each in ("syrk", "dot", "gemm_batch_strided"):
        assert addresses(opened, each) == (left if each == routine else [True] * 4)
    assert not opened.loses_nan
    check_all_routines(opened)


@pytest.mark.parametrize(
    ("fault", "missing"),
    [("-DWITHOUT_ZGEMV", "cblas_?gemv"), ("-Dcblas_dgemm=other", "cblas_?gemm")],
)
def test_missing_routines(fake, fault, missing):
    path = fake(fault)
    with pytest.raises(UnusableLibraryError) as caught:
        open_library(path)
    assert f"{path} lacks a {missing}" in str(caught.value)


# -- before the first call -------------------------------------------------------------------------


INTEL, GNU = 0, 3  # by MKL_Set_Threading_Layer


@pytest.mark.parametrize(
    ("chosen", "threading"),
    [
        (None, "intel"),
        ("", "intel"),
        ("INTEL", "intel"),
        ("GNU", "libgomp"),
        ("sequential", "none"),
        ("TBB", "its own"),
    ],
)
def test_mkl_is_told_what_threads_to_use_unless_the_user_has(fake, monkeypatch, chosen, threading):
    monkeypatch.delenv("MKL_THREADING_LAYER", raising=False)
    if chosen is not None:
        monkeypatch.setenv("MKL_THREADING_LAYER", chosen)
    path = fake(marks=MARKS["mkl"])
    assert open_library(path).threading == threading
    assert (Books(path).layer == INTEL) == (threading == "intel")


@pytest.mark.parametrize(("before", "after"), [(-1, available_processors()), (0, None), (1, 1)])
def test_blis_uses_all_processors_unless_it_is_told(fake, before, after):
    path = fake(f"-DTHREADS={before}", marks=MARKS["blis"])
    open_library(path)
    assert Books(path).threads == (after or available_processors())


def test_blis_without_threads(fake):
    """A function that is not there is not called."""
    path = fake(marks=MARKS["blis"].replace("num_threads", "others"))
    with pytest.raises(UnusableLibraryError, match="bli_thread_set_num_threads"):
        open_library(path, shared=True)


def test_openblas_touches_its_working_memory(fake):
    memory = """
        static char room[1 << 22];
        int fake_allocated, fake_freed, fake_touched;
        void *blas_memory_alloc(int what)
        {
            fake_allocated++;
            for (long i = 0; i < sizeof room; i++) room[i] = 1;
            return room;
        }
        void blas_memory_free(void *memory)
        {
            fake_freed += memory == room;
            for (long i = 0; i < sizeof room; i++) fake_touched += !room[i];
        }
    """
    path = fake(marks=MARKS["openblas"] + memory)
    open_library(path)
    books = Books(path)
    assert (books.allocated, books.freed) == (1, 1)
    assert books.touched == (1 << 21) // 4096


def test_libraries_that_others_use_are_left_alone(fake, monkeypatch):
    monkeypatch.delenv("MKL_THREADING_LAYER", raising=False)
    blis, mkl = fake("-DTHREADS=-1", marks=MARKS["blis"]), fake(marks=MARKS["mkl"])
    open_library(blis, shared=True)
    assert Books(blis).sets == 0
    opened = open_library(mkl, shared=True)
    assert Books(mkl).layer == GNU  # that which it has found right
    assert opened.threading == "libgomp"


# -- threads ---------------------------------------------------------------------------------------

THREADED = {
    "openblas": ("openblas_set_num_threads", "openblas_get_num_threads"),
    "mkl": ("MKL_Set_Num_Threads", "MKL_Get_Max_Threads"),
    "blis": ("bli_thread_set_num_threads", "bli_thread_get_num_threads"),
    "aocl": ("bli_thread_set_num_threads", "bli_thread_get_num_threads"),
    "nvpl": ("nvpl_blas_set_num_threads", "nvpl_blas_get_max_threads"),
    "flexiblas": ("flexiblas_set_num_threads", "flexiblas_get_num_threads"),
}


@pytest.mark.parametrize("marks", THREADED)
def test_the_number_of_threads_that_others_have_set_stays(fake, marks):
    path = fake(marks=MARKS[marks])
    opened = open_library(path)
    books = Books(path)
    assert books.threads == 4
    assert books.sets == 0 or books.least_set >= 1
    assert opened.handle.set_threads != ffi.NULL
    assert opened.handle.get_threads != ffi.NULL
    assert opened.handle.wide_threads == (marks in ("blis", "aocl"))


@pytest.mark.parametrize("marks", THREADED)
@pytest.mark.parametrize("missing", [0, 1])
def test_without_a_routine_for_threads(fake, marks, missing):
    name = THREADED[marks][missing]
    path = fake(marks=MARKS[marks].replace(name, "other"))
    with pytest.raises(UnusableLibraryError) as caught:
        open_library(path, shared=True)
    assert str(path) in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize("marks", ["reference", "atlas", "armpl", "accelerate"])
def test_libraries_whose_threads_cannot_be_set(fake, marks):
    handle = open_library(fake(marks=MARKS[marks])).handle
    assert handle.set_threads == handle.get_threads == ffi.NULL


def test_openblas_for_one_thread(fake):
    marks = MARKS["openblas"].replace("return 1;", "return 0;")
    opened = open_library(fake(marks=marks))
    assert opened.threading == "none"
    assert opened.handle.set_threads == ffi.NULL


PARALLEL_FOR = ffi.cast("void *", 0x1234)


@pytest.mark.parametrize(("openmp", "threading"), [("libgomp", "libgomp"), ("libomp", "OpenMP")])
@pytest.mark.parametrize("vendor", ["openblas", "blis"])
def test_openmp(on_openmp, openmp, threading, vendor):
    marks = MARKS[f"{vendor} on OpenMP"]
    path = on_openmp(openmp, marks=marks)
    opened = open_library(path, parallel_for=PARALLEL_FOR)
    assert opened.threading == threading
    books = Books(path)
    assert (books.omp_sets > 0) == (vendor == "openblas")
    # the number of OpenMP's threads is that of the calling thread alone
    several = threading != "libgomp" and vendor == "blis"
    assert opened.handle.parallel_for == (PARALLEL_FOR if several else ffi.NULL)


def test_armpl_on_openmp(on_openmp):
    opened = open_library(on_openmp("libomp", marks=MARKS["armpl"]), parallel_for=PARALLEL_FOR)
    assert opened.handle.set_threads != ffi.NULL
    assert opened.threading == "OpenMP"
    assert opened.handle.parallel_for == ffi.NULL


@pytest.mark.parametrize("marks", ["openblas", "mkl", "reference"])
def test_others_may_be_called_by_several_threads(fake, marks):
    opened = open_library(fake(marks=MARKS[marks]), parallel_for=PARALLEL_FOR)
    assert opened.handle.parallel_for == PARALLEL_FOR


def test_only_libgomp_has_to_be_allowed_threads(on_openmp, fake):
    marks = MARKS["openblas on OpenMP"]
    opened = open_library(on_openmp("libgomp", marks=marks))
    most = [opened.handle.most_threads]
    for allowed in (True, False):
        opened.allow_libgomp_threads(allowed)
        most.append(opened.handle.most_threads)
    assert most == [1, 2**31 - 1, 1]
    for other in (on_openmp("libomp", marks=marks), fake(marks=MARKS["mkl"]), fake()):
        opened = open_library(other)
        for allowed in (None, True, False):
            if allowed is not None:
                opened.allow_libgomp_threads(allowed)
            assert opened.handle.most_threads == 2**31 - 1


def test_opening_says_nothing(fake, capfd, caplog):
    with caplog.at_level(logging.INFO, "ggarray"):
        open_library(fake(*EVERYTHING, marks=MARKS["openblas"]))
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""
