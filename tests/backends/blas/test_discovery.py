"""Which files are found, and which of them is used."""

import logging
from pathlib import Path

import pytest

from ggarray.backends.blas import discovery
from ggarray.backends.blas.discovery import VARIABLE, Candidate, Libraries
from ggarray.backends.blas.library import UnusableLibraryError
from ggarray.backends.blas.probe import Report
from ggarray.backends.blas.vendors import BY_NAME

from .fake_blas import MARKS, Books

SLOW = "-DIN_GEMM=if(n>=256)usleep(20000)"


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch, machine):
    """Show nothing of the machine that the tests run on."""
    listed = discovery._files
    monkeypatch.setattr(
        discovery, "_files", lambda folder: listed(folder) if machine in folder.parents else []
    )
    monkeypatch.setattr(discovery, "_mapped_files", lambda: iter(()))
    monkeypatch.setattr(discovery, "_site_packages", lambda: [machine / "site-packages"])
    monkeypatch.setattr(discovery, "_NUMPYS", (machine / "site-packages" / "numpy.libs",))


@pytest.fixture
def place(compile_blas, machine):
    """Write libraries of a vendor to paths within the machine."""

    def place(*names, vendor="openblas", options=()):
        paths = [machine / name for name in names]
        for path in paths:
            compile_blas(path, *options, marks=MARKS[vendor])
        return paths[0] if len(paths) == 1 else paths

    return place


@pytest.fixture
def touch(machine):
    """Write empty files to paths within the machine."""

    def touch(*names):
        paths = [machine / name for name in names]
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return paths

    return touch


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


def libraries(machine, *folders, **environment):
    """Return what there is, if the loader looks into these folders."""
    folders = [str(machine / folder) for folder in folders or ["lib"]]
    return Libraries({"LD_LIBRARY_PATH": ":".join(folders), **environment})


def found(libraries):
    """Return the paths by vendor, in order of preference."""
    return {
        name: [candidate.path for candidate in candidates]
        for name, candidates in libraries.candidates.items()
    }


def mapped(monkeypatch, *paths):
    """Let the process have these files open."""
    monkeypatch.setattr(discovery, "_mapped_files", lambda: iter(paths))


# -- where it is looked for ------------------------------------------------------------------------


def test_nothing():
    nothing = Libraries({})
    assert nothing.candidates == {}
    assert nothing.open_default() is None
    assert nothing.loaded() == []
    assert list(nothing.reports()) == []


def test_the_loaders_path(machine, touch):
    paths = touch("b/libopenblas.so.0", "a/libopenblas.so.0", "a/libblis.so.4", "c/libopenblas.so")
    assert found(libraries(machine, "b", "missing", "a")) == {
        "openblas": paths[:2],
        "blis": [paths[2]],
    }


@pytest.mark.parametrize("entry", ["", ".", "lib", "lib/..", "./lib"])
def test_the_current_directory_is_not_looked_into(machine, touch, monkeypatch, entry):
    touch(
        "libopenblas.so",
        "lib/libopenblas.so",
        "scipy_openblas64/__init__.py",
        "scipy_openblas64/lib/libscipy_openblas64_.so",
        "numpy.libs/libscipy_openblas64_-1234.so",
        "openblas-pthread/libopenblas.so",
    )
    monkeypatch.chdir(machine)
    monkeypatch.syspath_prepend("")
    monkeypatch.syspath_prepend(str(machine))
    for text in (entry, f"{entry}:{machine / 'missing'}:{entry}", f":{entry}:"):
        environment = {"LD_LIBRARY_PATH": text, "CONDA_PREFIX": entry, "MKLROOT": entry}
        assert Libraries(environment).candidates == {}


def test_conda(machine, touch):
    (path,) = touch("conda/lib/libopenblas.so.0")
    assert found(Libraries({"CONDA_PREFIX": str(machine / "conda")})) == {"openblas": [path]}


def test_the_prefix_of_python(machine, touch, monkeypatch):
    (path,) = touch("prefix/lib/libmkl_rt.so.2")
    monkeypatch.setattr("sys.prefix", str(machine / "prefix"))
    assert found(Libraries({})) == {"mkl": [path]}


def test_the_users_base(machine, touch, monkeypatch):
    (path,) = touch("user/lib/libmkl_rt.so.2")
    monkeypatch.setattr("site.getuserbase", lambda: str(machine / "user"))
    assert found(Libraries({})) == {"mkl": [path]}


WHEELS = {
    "openblas": (
        "numpy.libs/libscipy_openblas64_-32a4b2a6.so",
        "scipy.libs/libscipy_openblas-6cdc3b4a.so",
        "scipy_openblas64/lib/libscipy_openblas64_.so",
        "scipy_openblas32/lib/libscipy_openblas.so",
    ),
    "nvpl": ("nvpl/lib/libnvpl_blas_lp64_gomp.so.0",),
}


@pytest.mark.parametrize("vendor", WHEELS)
def test_wheels(touch, vendor):
    paths = touch(*(f"site-packages/{name}" for name in WHEELS[vendor]))
    assert found(Libraries({})) == {vendor: paths}


PLACES = {
    "mkl": ("MKLROOT", "lib/libmkl_rt.so.2", "lib/intel64/libmkl_rt.so"),
    "aocl": ("AOCL_ROOT", "lib/libblis-mt.so.5"),
    "armpl": ("ARMPL_DIR", "lib/libarmpl_lp64_mp.so"),
}


@pytest.mark.parametrize("vendor", PLACES)
def test_variables_of_vendors(machine, touch, vendor):
    variable, *names = PLACES[vendor]
    paths = touch(*(f"root/{name}" for name in names))
    assert found(Libraries({variable: str(machine / "root")})) == {vendor: paths}
    for text in ("", "root", str(machine / "elsewhere")):
        assert Libraries({variable: text}).candidates == {}


def test_variables_that_are_not_set_name_no_place(machine, touch, monkeypatch):
    """``{MKLROOT}/lib`` is not ``/lib`` then."""
    (path,) = touch("lib/libmkl_rt.so.2")
    monkeypatch.setattr(BY_NAME["mkl"], "places", (f"{{MKLROOT}}{machine}/lib",))
    assert Libraries({}).candidates == {}
    assert Libraries({"MKLROOT": ""}).candidates == {}
    assert found(Libraries({"MKLROOT": "/."})) == {"mkl": [path]}


def test_the_newest_of_a_place_comes_first(machine, touch, monkeypatch):
    old, new = touch("sdk/24.1/lib/libmkl_rt.so.2", "sdk/24.9/lib/libmkl_rt.so.2")
    monkeypatch.setattr(BY_NAME["mkl"], "places", (f"{machine}/sdk/*/lib",))
    assert found(Libraries({})) == {"mkl": [new, old]}


def test_places_have_files_of_their_vendor_only(machine, touch, monkeypatch):
    """NVHPC's is called libblas.so, which only there is no reference BLAS."""
    names = ("libblas.so.0", "liblapack.so.0", "libblas_lp64.so", "libopenblas.so")
    paths = touch(*(f"place/{name}" for name in names))
    monkeypatch.setattr(BY_NAME["nvhpc"], "places", (f"{machine}/place",))
    assert found(Libraries({})) == {"nvhpc": [paths[0], paths[2]]}


FILES = {
    "openblas": (
        "libopenblas.so",
        "libopenblas.so.0",
        "libopenblasp-r0.3.21.so",
        "libopenblas64_.so.0",
        "libscipy_openblas.so",
    ),
    "blis": ("libblis.so.4", "libblis64.so.4", "libblis-mt.so"),
    "mkl": ("libmkl_rt.so", "libmkl_rt.so.2"),
    "nvpl": ("libnvpl_blas_ilp64_seq.so.0",),
    "atlas": ("libptcblas.so.3", "libtatlas.so.3", "libsatlas.so"),
    "flexiblas": ("libflexiblas.so.3", "libflexiblas64.so.3"),
    "armpl": ("libarmpl.so", "libarmpl_ilp64.so", "libarmpl_mp.so"),
    "reference": ("libblas.so.3", "libblas64.so.3"),
}


@pytest.mark.parametrize("vendor", FILES)
def test_names_of_files(machine, touch, vendor):
    paths = touch(*(f"lib/{name}" for name in FILES[vendor]))
    assert found(libraries(machine)) == {vendor: sorted(paths)}


@pytest.mark.parametrize(
    "name",
    [
        "libopenblas.a",
        "libopenblas.la",
        "libopenblas.so.debug",
        "libopenblas.so.0.txt",
        "libopenblas.pc",
        "libblis.a",
        "libmkl_core.so.2",
        "libmkl_rt.a",
        "libcublas.so.12",
        "libnvblas.so.12",
        "libgslcblas.so.0",
        "libclblast.so.1",
        "libblasfeo.so",
        "libflexiblas_api.so",
        "liblapack.so.3",
        "libblas.a",
        "openblas.so",
    ],
)
def test_names_of_other_files(machine, touch, name):
    touch(f"lib/{name}")
    assert libraries(machine).candidates == {}


# -- variants and links ----------------------------------------------------------------------------


def test_variants_of_debian(machine, touch):
    """Links lead to the variants that their user has chosen; in there one file has many names."""
    lib = machine / "lib"
    serial, openmp, pthread = touch(
        "lib/openblas-serial/libopenblas-r0.3.21.so",
        "lib/openblas-openmp/libopenblasp-r0.3.21.so",
        "lib/openblas-pthread/libopenblasp-r0.3.21.so",
    )
    for variant in (serial, openmp, pthread):
        link(variant.with_name("libopenblas.so.0"), variant.name)
    link(lib / "libopenblas.so.0", openmp.with_name("libopenblas.so.0"))
    chosen, *_ = touch(
        *(f"lib/{each}/libblas.so.3" for each in ("openblas-pthread", "openblas-serial", "atlas"))
    )
    link(lib / "libblas.so.3", chosen)
    reference, atlas, blis = touch(
        "lib/blas/libblas.so.3.11.0", "lib/libcblas.so.3", "lib/blis-pthread/libblis.so.4.0.0"
    )
    link(reference.with_name("libblas.so.3"), reference.name)
    there = {
        name: [path.resolve() for path in paths]
        for name, paths in found(libraries(machine)).items()
    }
    assert there == {
        "openblas": [pthread, serial, openmp],
        "blis": [blis],
        "atlas": [atlas],
        "reference": [reference],
    }


@pytest.mark.parametrize(
    ("best", "middle", "worst"),
    [
        ("openblas-pthread/libopenblas.so", "openblas-serial/libopenblas.so", None),
        ("openblas-serial/libopenblas.so", None, "openblas-openmp/libopenblas.so"),
        ("libopenblasp-r0.3.28.so", "libopenblas-r0.3.28.so", "libopenblaso-r0.3.28.so"),
        ("libopenblas-z.so", "libopenblas_seq.so", "libopenblas_gomp.so"),
        ("blis-pthread/libblis.so.4", "blis-serial/libblis.so.4", "blis-openmp/libblis.so.4"),
    ],
)
def test_builds_on_openmp_come_last_and_those_for_one_thread_before(
    machine, touch, best, middle, worst
):
    paths = touch(*(f"lib/{name}" for name in (best, middle, worst) if name))
    assert list(found(libraries(machine)).values()) == [paths]


def test_the_folders_above_do_not_matter(machine, touch):
    """A build is told by the file and its folder, not by where a user keeps them."""
    first, second = touch("sequoia/openmp/lib/libopenblas.so", "lib/libopenblas.so.0")
    assert found(libraries(machine, "sequoia/openmp/lib", "lib")) == {"openblas": [first, second]}
    (path,) = touch("mkl-atlas/lib/libblas.so.3")
    assert found(libraries(machine, "mkl-atlas/lib")) == {"reference": [path]}


def test_a_link_is_the_file_that_it_leads_to(machine, touch):
    (path,) = touch("lib/libopenblas.so.0")
    for name in ("libblas.so.3", "libcblas.so.3", "libopenblas.so", "libmkl_rt.so"):
        link(machine / "lib" / name, path)
    assert [[each.resolve() for each in paths] for paths in found(libraries(machine)).values()] == [
        [path]
    ]
    assert list(libraries(machine).candidates) == ["openblas"]


def test_links_that_lead_nowhere_or_in_circles(machine, place):
    path = place("lib/libopenblas.so.0")
    link(machine / "lib" / "libblis.so.4", "nowhere")
    link(machine / "lib" / "libmkl_rt.so", "libmkl_rt.so")
    link(machine / "circle", "circle")
    there = libraries(machine, "circle", "lib")
    assert path in found(there)["openblas"]
    assert there.open_default().path == path


def test_one_folder_by_two_names(machine, touch):
    (path,) = touch("lib/libopenblas.so.0")
    link(machine / "lib64", "lib")
    assert found(libraries(machine, "lib64", "lib")) == {"openblas": [path]}


# -- what is in the process ------------------------------------------------------------------------


def test_numpys_library_comes_first_then_those_of_others(machine, touch, monkeypatch):
    numpys, others, on_disk = touch(
        "site-packages/numpy.libs/libopenblas_openmp.so",
        "else/libopenblas_serial.so",
        "lib/libopenblas.so",
    )
    mapped(monkeypatch, Path("/lib/x86_64/libc.so.6"), others, numpys)
    there = libraries(machine)
    assert found(there) == {"openblas": [numpys, others, on_disk]}
    assert [each.mapped for each in there.candidates["openblas"]] == [True, True, False]


def test_numpys_library_where_the_system_tells_nothing(touch):
    (path,) = touch("site-packages/numpy.libs/libscipy_openblas64_-1.so")
    assert Libraries({}).candidates == {
        "openblas": [Candidate(BY_NAME["openblas"], path, mapped=True)]
    }


def test_files_that_have_been_deleted(monkeypatch):
    mapped(monkeypatch, Path("/lib/libopenblas.so (deleted)"))
    assert Libraries({}).candidates == {}


def test_mapped_files(monkeypatch):
    monkeypatch.undo()
    files = list(discovery._mapped_files())
    assert len(set(files)) == len(files)
    assert any(path.name.startswith("libc") for path in files)
    assert all(path.is_absolute() for path in files)


# -- opening ---------------------------------------------------------------------------------------


@pytest.fixture
def trials(monkeypatch):
    """Count the libraries that are tried in another process."""
    tried, try_library = [], discovery.try_library

    def counted(path):
        tried.append(path)
        return try_library(path)

    monkeypatch.setattr(discovery, "try_library", counted)
    return tried


def test_a_library_is_opened_once_and_tried_before(place, trials):
    path = place("lib/libopenblas.so")
    there = Libraries({})
    opened = there.open(path)
    assert opened.path == path
    assert there.open(path) is opened
    assert there.loaded() == [opened]
    assert trials == [path]


@pytest.mark.parametrize("where", ["lib/libblis.so", "site-packages/numpy.libs/libblis.so"])
def test_a_library_of_the_process_is_not_tried(place, trials, monkeypatch, where):
    path = place(where, vendor="blis", options=["-DTHREADS=-1"])
    if where.startswith("lib"):
        mapped(monkeypatch, path)
    opened = Libraries({}).open(path)
    assert opened.vendor.name == "blis"
    assert Books(path).sets == 0
    assert trials == []


def test_what_crashes_is_not_opened_here(place):
    path = place("lib/libopenblas.so", options=["-DWHEN_OPENED=abort()"])
    there = Libraries({})
    with pytest.raises(UnusableLibraryError, match="SIGABRT"):
        there.open(path)
    assert there.loaded() == []


def test_relative_paths_are_not_opened(place, machine, monkeypatch):
    place("libopenblas.so")
    monkeypatch.chdir(machine)
    with pytest.raises(UnusableLibraryError, match=r"libopenblas\.so is no absolute path"):
        Libraries({}).open(Path("libopenblas.so"))


@pytest.mark.parametrize("by", ["its path", "another path"])
def test_settings_of_a_library_that_others_use_stay(place, machine, monkeypatch, by):
    path = place("lib/libblis.so.4", vendor="blis", options=["-DTHREADS=-1"])
    books = Books(path)  # opens it
    mapped(monkeypatch, path)
    named = link(machine / "libother.so", path) if by == "another path" else path
    Libraries({}).open(named)
    assert books.threads == -1


def test_of_a_vendor_the_first_that_can_be_used(machine, place, touch):
    place("a/libopenblas.so", options=["-DGEMM_FACTOR=2"])
    place("b/libopenblas.so", options=["-DWHEN_OPENED=abort()"])
    place("c/libopenblas.so", vendor="blis")
    place("d/libopenblas.so", "e/libopenblas.so")
    opened = libraries(machine, *"abcde").open_vendor("openblas")
    assert opened.path == machine / "d" / "libopenblas.so"
    with pytest.raises(UnusableLibraryError) as caught:
        libraries(machine, *"abc").open_vendor("openblas")
    for reason in (
        f"{machine}/a/libopenblas.so computes wrong products",
        f"{machine}/b/libopenblas.so ended the process that tried it with SIGABRT",
        f"{machine}/c/libopenblas.so is BLIS",
    ):
        assert reason in str(caught.value)


def test_a_vendor_that_builds_on_another_is_both(machine, place):
    path = place("lib/libblis.so.4", vendor="aocl")
    assert libraries(machine).open_vendor("blis").path == path


# -- the default -----------------------------------------------------------------------------------


def test_numpys_library_is_the_default(machine, place, monkeypatch, trials):
    numpys, others = place(
        "site-packages/numpy.libs/libopenblas-1.so", "lib/libopenblas.so", options=[SLOW]
    )
    place("lib/libmkl_rt.so", vendor="mkl")
    mapped(monkeypatch, others, numpys)
    there = libraries(machine)
    opened = there.open_default()
    assert opened.path == numpys
    assert there.loaded() == [opened]
    assert trials == []


@pytest.mark.parametrize(
    "fault",
    ["-DGEMM_FACTOR=2", "-DWITHOUT_GEMM", "-DWITHOUT_ZGEMV", "-Dopenblas_get_num_threads=x"],
)
def test_a_mapped_library_that_cannot_be_used_is_passed_over(
    machine, place, monkeypatch, caplog, fault
):
    numpys = place("site-packages/numpy.libs/libopenblas-1.so", options=[fault])
    others, _ = place("else/libopenblas.so", "lib/libopenblas.so")
    mapped(monkeypatch, numpys, others)
    with caplog.at_level(logging.DEBUG, "ggarray"):
        assert libraries(machine).open_default().path == others
    assert f"not used: {numpys}" in caplog.text


@pytest.mark.parametrize("vendor", ["atlas", "reference"])
def test_slow_libraries_are_no_default_because_they_are_mapped(machine, place, monkeypatch, vendor):
    name = {"atlas": "libtatlas.so.3", "reference": "libblas.so.3"}[vendor]
    slow = place(f"slow/{name}", vendor=vendor, options=[SLOW])
    mapped(monkeypatch, slow)
    fast = place("lib/libopenblas.so")
    assert libraries(machine).open_default().path == fast
    assert Libraries({}).open_default().path == slow


@pytest.mark.parametrize("fastest", ["openblas", "mkl", "blis"])
def test_without_one_of_numpy_the_fastest_is_the_default(machine, place, fastest):
    names = {"openblas": "libopenblas.so", "mkl": "libmkl_rt.so.2", "blis": "libblis.so.4"}
    paths = {
        vendor: place(f"lib/{name}", vendor=vendor, options=[] if vendor == fastest else [SLOW])
        for vendor, name in names.items()
    }
    place("lib/libblas.so.3", vendor="reference", options=["-DWHEN_OPENED=abort()"])
    there = libraries(machine)
    assert there.open_default().path == paths[fastest]
    assert [opened.path for opened in there.loaded()] == [paths[fastest]]


def test_a_broken_library_hides_no_other_of_its_vendor(machine, place):
    place("a/libopenblas.so", options=["-DWHEN_OPENED=abort()"])
    path = place("b/libopenblas.so")
    assert libraries(machine, "a", "b").open_default().path == path


def test_where_nothing_can_be_used_there_is_no_default(machine, place, touch):
    place("lib/libopenblas.so", options=["-DGEMM_FACTOR=2"])
    touch("lib/libmkl_rt.so")
    assert libraries(machine).open_default() is None


# -- the environment variable ----------------------------------------------------------------------


def test_a_path(machine, place, monkeypatch):
    path = place("anywhere/of any name", vendor="mkl")
    mapped(monkeypatch, place("site-packages/numpy.libs/libopenblas.so"))
    there = libraries(machine, **{VARIABLE: str(path)})
    assert there.chosen == ("", path)
    opened = there.open_default()
    assert (opened.vendor.name, opened.path) == ("mkl", path)
    assert [each.path for each in there.loaded()] == [path]


def test_a_vendor(machine, place, monkeypatch):
    place("a/libblis.so.4", options=["-DWHEN_OPENED=abort()"])
    path = place("b/libblis.so.4", vendor="blis")
    mapped(monkeypatch, place("site-packages/numpy.libs/libopenblas.so"))
    there = libraries(machine, "a", "b", **{VARIABLE: "blis"})
    assert there.chosen == ("blis", None)
    assert there.open_default().path == path


def test_an_empty_variable_chooses_nothing(machine, place):
    path = place("lib/libopenblas.so")
    there = libraries(machine, **{VARIABLE: ""})
    assert there.chosen == ("", None)
    assert there.open_default().path == path


@pytest.mark.parametrize("text", ["mkl", "nonsense", "lib/libopenblas.so", "./libopenblas.so", " "])
def test_wrong_values(machine, place, monkeypatch, text):
    place("lib/libopenblas.so")
    monkeypatch.chdir(machine)
    there = libraries(machine, **{VARIABLE: text})
    with pytest.raises(ValueError, match=VARIABLE) as caught:
        there.open_default()
    assert "here openblas" in str(caught.value)
    assert repr(text) in str(caught.value)
    with pytest.raises(ValueError, match="here none"):
        Libraries({VARIABLE: text}).open_default()


def test_the_variable_may_name_a_vendor_whose_library_has_the_name_of_another(machine, place):
    path = place("lib/libblis.so.4", vendor="aocl")
    assert libraries(machine, **{VARIABLE: "aocl"}).open_default().path == path


def test_what_the_variable_names_has_to_be_usable(machine, place):
    wrong = place("lib/libopenblas.so", options=["-DGEMM_FACTOR=2"])
    for text in (str(wrong), "openblas"):
        with pytest.raises(ValueError, match=VARIABLE) as caught:
            libraries(machine, **{VARIABLE: text}).open_default()
        assert f"{wrong} computes wrong products" in str(caught.value)


# -- reports ---------------------------------------------------------------------------------------


def test_reports(machine, place, touch):
    good = place("a/libopenblas.so")
    bad = place("b/libopenblas.so", options=["-DGEMM_FACTOR=2"])
    (none,) = touch("a/libmkl_rt.so")
    there = libraries(machine, "a", "b")
    by_path = {candidate.path: report for candidate, report in there.reports()}
    assert list(by_path) == [none, good, bad]
    assert isinstance(by_path[good], Report)
    assert (by_path[good].vendor, by_path[good].version) == ("openblas", "0.3.99")
    assert by_path[bad] == f"{bad} computes wrong products"
    assert "file too short" in by_path[none]
    assert there.loaded() == []
