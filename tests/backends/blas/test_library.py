"""Opening a library by its path, whatever its names are, and what lies beside it."""

import ctypes
import logging
import subprocess
import sys

import pytest

from ggarray.backends.blas._shim import ffi
from ggarray.backends.blas.library import Library, UnusableLibraryError

from .fake_blas import ILP64, MARKS, SPELLINGS, needing


def is_refused(path, *reasons):
    with pytest.raises(UnusableLibraryError) as caught:
        Library(path)
    for reason in (str(path), *reasons):
        assert reason in str(caught.value)


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("integers", [(), ILP64], ids=["LP64", "ILP64"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling(fake, spelling, integers):
    prefix, suffix, _ = (option.partition("=")[2] for option in SPELLINGS[spelling])
    path = fake(*SPELLINGS[spelling], *integers, marks=MARKS["openblas"])
    library = Library(path)
    assert library.path == path
    assert library.spelling[:2] == (prefix, suffix)
    assert library.is_ilp64() == (integers == ILP64)
    opened = ctypes.CDLL(path)
    for routine, addresses in (
        ("gemm", library.table("cblas_?gemm")),
        ("gemv", library.table("cblas_?gemv")),
    ):
        for letter, address in zip("sdcz", addresses, strict=True):
            symbol = getattr(opened, f"{prefix}cblas_{letter}{routine}{suffix}")
            assert int(ffi.cast("intptr_t", address)) == ctypes.cast(symbol, ctypes.c_void_p).value
    assert library.table("cblas_?syrk") == [ffi.NULL] * 4
    assert library.text("openblas_get_config").startswith("OpenBLAS 0.3.99")
    assert library.number("openblas_get_parallel") == 1
    assert library.has("openblas_get_config")
    assert not library.has("openblas_get_confi")


def test_names_that_mean_64_bits_come_first(fake):
    """MKL has both: cblas_sgemm, whose width the environment chooses, and cblas_sgemm_64."""
    wide = fake(*SPELLINGS["_64"], *ILP64)
    library = Library(fake(*needing(wide)))
    assert library.spelling.suffix == "_64"
    assert library.is_ilp64()
    assert library.find_exactly("cblas_sgemm") not in (ffi.NULL, library.find("cblas_sgemm"))


def test_without_isamax_integers_are_as_wide_as_the_spelling_says(fake):
    assert not Library(fake("-DWITHOUT_ISAMAX")).is_ilp64()
    assert Library(fake("-DWITHOUT_ISAMAX", *SPELLINGS["_64"], *ILP64)).is_ilp64()


def test_names_are_those_of_others_or_exactly_so(fake):
    path = fake(*SPELLINGS["64_"], marks="int MKL_Own_Name(void) { return 7; }")
    library = Library(path)
    assert library.find("MKL_Own_Name") == ffi.NULL
    assert library.find_exactly("MKL_Own_Name") != ffi.NULL
    assert library.has("MKL_Own_Name")
    assert library.has("cblas_sgemm")
    assert library.find_exactly("cblas_sgemm") == ffi.NULL


def test_what_is_not_there_is_nothing(fake):
    library = Library(fake())
    assert library.text("nothing") == ""
    assert library.number("nothing") == 0
    assert library.numbers("nothing") == ""


def test_text_of_any_bytes(fake):
    library = Library(fake(marks=r'const char *text(void) { return "a\xff b"; }'))
    assert library.text("text") == "a\N{REPLACEMENT CHARACTER} b"


@pytest.mark.parametrize("integer", ["int", "int64_t"])
def test_versions_in_numbers_of_any_width(fake, integer):
    body = "*a = 3, *b = 0, *c = 12;"
    three = f"void three({integer} *a, {integer} *b, {integer} *c) {{ {body} }}"
    more = f"void more({integer} *a, {integer} *b, {integer} *c, char **d) {{ {body} *d = 0; }}"
    library = Library(fake(marks=three + more))
    assert library.numbers("three") == library.numbers("more") == "3.0.12"


# -- files -----------------------------------------------------------------------------------------


def test_no_relative_paths(fake, monkeypatch):
    path = fake()
    monkeypatch.chdir(path.parent)
    for relative in (path.relative_to(path.parent), path.parent.relative_to("/") / path.name):
        is_refused(relative, "absolute")


def test_what_is_no_library(machine):
    path = machine / "lib.so"
    is_refused(path, "No such file")
    path.write_text("INPUT(libblas.so)\n")
    is_refused(path, "file too short")
    path.write_bytes(b"!<arch>\n" * 1000)
    is_refused(path, "invalid ELF header")
    path.unlink()
    path.mkdir()
    is_refused(path)


@pytest.mark.parametrize("place", [4, 18], ids=["bits", "architecture"])
def test_libraries_for_other_machines(fake, place):
    path = fake()
    data = bytearray(path.read_bytes())
    data[place] ^= 3
    path.write_bytes(data)
    is_refused(path)


def test_no_blas(fake, compile_blas, machine):
    is_refused(fake("-DWITHOUT_GEMM"), "cblas_sgemm")
    is_refused(compile_blas(machine / "libempty.so", source="int nothing;"), "cblas_sgemm")


@pytest.mark.parametrize("name", ["with space.so", "ünïcode.so"])
def test_any_file_name(compile_blas, machine, name):
    assert Library(compile_blas(machine / name)).path == machine / name
    is_refused(machine / f"no {name}", "No such file")


# -- what a library needs --------------------------------------------------------------------------


def needed(compile_blas, path, *options, source="int fake_needed = 7;"):
    """Write a library that says its own name, as the loader asks for it."""
    return compile_blas(path, f"-Wl,-soname,{path.name}", *options, source=source)


@pytest.mark.parametrize("place", [".", ".."])
def test_needed_libraries_beside_and_above(compile_blas, machine, caplog, place):
    folder = machine / "lib" / "threads"
    other = needed(compile_blas, machine / "elsewhere" / f"libneeded{len(place)}.so.3")
    path = compile_blas(folder / "lib.so", *needing(other))
    is_refused(path, other.name, "cannot open")
    found = (folder / place).resolve() / other.name
    other.rename(found)
    with caplog.at_level(logging.DEBUG, "ggarray"):
        assert Library(path).has("fake_needed")
    assert f"{path} needs {found}" in caplog.text


def test_needed_libraries_two_folders_above_are_not(compile_blas, machine):
    other = needed(compile_blas, machine / "libtoofar.so")
    is_refused(compile_blas(machine / "a" / "b" / "lib.so", *needing(other)), other.name)


def test_what_needed_libraries_need(compile_blas, machine):
    last = needed(compile_blas, machine / "liblast.so")
    middle = needed(compile_blas, machine / "libmiddle.so", *needing(last), source="int middle;")
    path = compile_blas(machine / "lib.so", *needing(middle), *needing(last))
    last.rename(machine / "hidden")
    is_refused(path, "liblast.so")
    (machine / "hidden").rename(last)
    library = Library(path)
    assert library.has("fake_needed")
    assert library.has("middle")


@pytest.mark.parametrize("content", [b"", b"INPUT(libother.so)", b"no library" * 1000])
def test_needed_libraries_that_are_none(compile_blas, machine, content):
    other = needed(compile_blas, machine / "libnone.so")
    path = compile_blas(machine / "lib.so", *needing(other))
    other.write_bytes(content)
    is_refused(path, "libnone.so")


def test_needed_libraries_of_another_name(compile_blas, machine):
    """What was found goes by its own name, so that the loader still misses the one it wants."""
    other = needed(compile_blas, machine / "libwanted.so")
    path = compile_blas(machine / "lib.so", *needing(other))
    compile_blas(other, source="int fake_needed;")
    is_refused(path, "libwanted.so")


def test_nothing_is_needed_from_the_current_directory(compile_blas, machine, monkeypatch):
    other = needed(compile_blas, machine / "here" / "libhere.so")
    path = compile_blas(machine / "lib" / "lib.so", *needing(other))
    monkeypatch.chdir(other.parent)
    is_refused(path, other.name)


# -- symbols of other libraries --------------------------------------------------------------------


@pytest.mark.parametrize("deep", [True, False])
def test_its_own_symbols_come_first(compile_blas, machine, monkeypatch, deep):
    name = f"fake_symbol_{deep}"
    others = f"int {name}(void) {{ return 1; }}"
    ctypes.CDLL(compile_blas(machine / "libothers.so", source=others), ctypes.RTLD_GLOBAL)
    path = compile_blas(
        machine / "lib.so",
        marks=f"int {name}(void) {{ return 2; }} int called(void) {{ return {name}(); }}",
    )
    if not deep:
        monkeypatch.setenv("GGARRAY_BLAS_DEEPBIND", "0")
    assert Library(path).number("called") == (2 if deep else 1)


def test_libgomp_is_told_by_the_file(on_openmp, fake):
    assert not Library(fake()).runs_on_libgomp()
    assert Library(on_openmp("libgomp")).runs_on_libgomp()
    assert not Library(on_openmp("libomp")).runs_on_libgomp()


# -- the shim --------------------------------------------------------------------------------------


def test_a_shim_of_another_version_is_refused():
    code = "import ggarray._version as v; v.__version__ = '99'\nimport ggarray.backends.blas"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "ImportError: the compiled BLAS shim is of version" in run.stderr
    assert "99" in run.stderr
