"""What is said of libraries, and which of them are said to be slow here."""

from pathlib import Path

import pytest

from ggarray.backends.blas import listing
from ggarray.backends.blas.discovery import Candidate
from ggarray.backends.blas.probe import Report
from ggarray.backends.blas.vendors import BY_NAME, VENDORS

GENERATIONS = ("SSE3", "AVX", "AVX2", "AVX512")
OPENBLAS, BLIS = BY_NAME["openblas"], BY_NAME["blis"]


@pytest.fixture
def processor(monkeypatch):
    """Let the processor have the vector instructions of all generations up to one."""
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)

    def processor(best):
        known = GENERATIONS[: GENERATIONS.index(best) + 1] if best else ()
        features = {name: name in known for name in GENERATIONS}
        monkeypatch.setattr(listing, "processor_features", lambda: features)

    return processor


@pytest.mark.parametrize("core", ["Prescott", "NEHALEM", "Core2", "generic", "Opteron_SSE3"])
@pytest.mark.parametrize(
    ("best", "slow"),
    [(None, False), ("SSE3", False), ("AVX", False), ("AVX2", True), ("AVX512", True)],
)
def test_old_kernels(processor, core, best, slow):
    processor(best)
    for vendor in (OPENBLAS, BLIS):
        said = listing.complaint(vendor, core)
        assert bool(said) == slow
        if slow:
            assert f"for {core}, but the processor has {best}" in said
            assert vendor.title in said


@pytest.mark.parametrize(("best", "slow"), [("AVX", False), ("AVX2", False), ("AVX512", True)])
def test_kernels_for_avx(processor, best, slow):
    processor(best)
    assert bool(listing.complaint(OPENBLAS, "Sandybridge")) == slow


@pytest.mark.parametrize("core", ["Haswell", "Zen", "SkylakeX", "Cooperlake", "", "skx", "armv8"])
@pytest.mark.parametrize("best", [None, *GENERATIONS])
def test_kernels_that_are_as_good_as_any(processor, core, best):
    processor(best)
    assert listing.complaint(OPENBLAS, core) == ""


def test_what_helps(processor, monkeypatch):
    processor("AVX512")
    assert "OPENBLAS_CORETYPE=Haswell makes" in listing.complaint(OPENBLAS, "Prescott")
    assert "OPENBLAS" not in listing.complaint(BLIS, "generic")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    assert "OPENBLAS_CORETYPE has chosen them" in listing.complaint(OPENBLAS, "Prescott")
    assert "OPENBLAS" not in listing.complaint(BLIS, "generic")


# -- the table -------------------------------------------------------------------------------------

GOOD = Report("openblas", "0.3.99", "Haswell", True, "pthreads", ["batch", "int8"], False, 91.6)


class Opened:
    """What is asked of a library that is open."""

    def __init__(self, path):
        self.path = Path(path)


class Found:
    """What is asked of the libraries of a machine."""

    def __init__(self, *reports, loaded=()):
        self._reports = [
            (Candidate(BY_NAME[vendor], Path(path), mapped), report)
            for vendor, path, mapped, report in reports
        ]
        self._loaded = loaded
        self.candidates = {each.vendor.name: [each] for each, _ in self._reports}

    def reports(self):
        return iter(self._reports)

    def loaded(self):
        return list(map(Opened, self._loaded))


def rows(found):
    """Return what lines tell of files, with one space between words, and the other lines."""
    title, columns, *lines = (" ".join(line.split()) for line in listing.lines(found))
    assert title.startswith("BLAS libraries (* in this process)")
    assert columns == "device library integers threads GFLOP/s has file"
    table = dict(line.rsplit(maxsplit=1)[::-1] for line in lines if line.endswith(".so"))
    return table, [line for line in lines if not line.endswith(".so")]


def test_nothing_was_found():
    table, others = rows(Found())
    assert table == {}
    assert others == [f"no {vendor.title} found: {vendor.how_to_get}" for vendor in VENDORS]


def test_files_and_what_they_are(processor):
    processor("AVX512")
    table, others = rows(
        Found(
            ("openblas", "/numpy/lib.so", True, GOOD),
            ("openblas", "/other/lib.so", False, GOOD._replace(ilp64=False, extras=[])),
            ("blis", "/blis.so", False, GOOD._replace(vendor="blis", version="1.0", core="")),
            ("mkl", "/mkl.so", False, "/mkl.so ended with SIGSEGV"),
            loaded=["/blis.so"],
        )
    )
    assert table == {
        "/numpy/lib.so": "* blas:openblas OpenBLAS 0.3.99 Haswell ILP64 pthreads 92 batch, int8",
        "/other/lib.so": "OpenBLAS 0.3.99 Haswell LP64 pthreads 92",
        "/blis.so": "* blas:blis BLIS 1.0 ILP64 pthreads 92 batch, int8",
    }
    assert others[0] == "of no use: /mkl.so ended with SIGSEGV"
    missing = [vendor for vendor in VENDORS if vendor.name not in ("openblas", "blis", "mkl")]
    assert others[1:] == [f"no {vendor.title} found: {vendor.how_to_get}" for vendor in missing]


def test_columns_are_aligned():
    reference = GOOD._replace(vendor="reference", gflops=0.7)
    found = Found(("openblas", "/a.so", True, GOOD), ("reference", "/b.so", False, reference))
    titles, first, second = list(listing.lines(found))[1:4]
    end = titles.index("GFLOP/s") + len("GFLOP/s")
    assert first[:end].endswith("  92")
    assert second[:end].endswith("  1")
    assert titles.index("file") == first.index("/a.so") == second.index("/b.so")


def test_remarks(processor):
    processor("AVX2")
    _, others = rows(
        Found(
            ("openblas", "/old.so", False, GOOD._replace(core="Prescott")),
            ("reference", "/lossy.so", False, GOOD._replace(vendor="reference", loses_nan=True)),
        )
    )
    assert others[0].startswith("/old.so: its kernels are those for Prescott")
    assert others[1] == "/lossy.so loses NaN: used for finite numbers only"


def test_a_device_is_named_once_by_a_library_that_can_be_used():
    table, _ = rows(
        Found(
            ("openblas", "/first.so", False, "/first.so ended with SIGSEGV"),
            ("openblas", "/second.so", False, GOOD),
            ("openblas", "/third.so", False, GOOD),
        )
    )
    assert table["/second.so"].startswith("blas:openblas OpenBLAS")
    assert table["/third.so"].startswith("OpenBLAS")


def test_a_file_of_another_vendor_is_not_the_device_of_its_name():
    """A file libcblas.so seems to be ATLAS's, and then turns out to be another's."""
    table, _ = rows(Found(("atlas", "/libcblas.so", False, GOOD._replace(vendor="reference"))))
    assert "blas:atlas" not in table["/libcblas.so"]
