"""The libraries that are tried: where each is, and what ggarray should find out about it."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from conformance.vendors.debian import RUNTIME, failure


class MissingError(Exception):
    """A library is not there, and should be."""


class NotDownloadedError(MissingError):
    """The package of a library could not be downloaded."""


class Library(NamedTuple):
    """One build of BLAS.

    Attributes
    ----------
    package : str
        Of Debian, or a distribution of PyPI.
    file : str
        A pattern: the library within the package's folder, or its name in the distribution.
    title : str
        The vendor as people write it.
    ilp64 : bool
        Its integers have 64 bits, else 32.
    """

    package: str
    file: str
    title: str
    ilp64: bool = False

    @property
    def is_debian(self) -> bool:
        """Whether the package is one of Debian's."""
        return "/" in self.file

    def path(self, folder: Path) -> Path:
        """Return the library's path; `folder` is where Debian's packages are unpacked.

        Raises
        ------
        MissingError
            It is not there.
        """
        found = self._unpacked(folder) if self.is_debian else self._installed()
        if not found:
            raise MissingError(f"there is no {self.file} in {self.package}")
        return found[0]

    def _unpacked(self, folder: Path) -> list[Path]:
        for package in (self.package, *RUNTIME):
            if reason := failure(folder, package):
                raise NotDownloadedError(f"{package} could not be downloaded: {reason}")
        if not (folder / self.package).is_dir():
            raise MissingError(f"python -m conformance.vendors.debian {folder} has not been run")
        return sorted((folder / self.package).glob(self.file))

    def _installed(self) -> list[Path]:
        try:
            files = distribution(self.package).files or ()
        except PackageNotFoundError:
            raise MissingError(f"{self.package} of PyPI is not installed") from None
        return [Path(str(each.locate())).resolve() for each in files if each.match(self.file)]

    def __str__(self) -> str:
        return self.package


LIBRARIES = (
    Library("scipy-openblas32", "libscipy_openblas.so", "OpenBLAS"),
    Library("scipy-openblas64", "libscipy_openblas64_.so", "OpenBLAS", ilp64=True),
    Library("mkl", "libmkl_rt.so*", "MKL", ilp64=True),  # its names that end in _64 are taken
    Library("libopenblas0-pthread", "usr/lib/*/openblas-pthread/libopenblas.so.0", "OpenBLAS"),
    Library("libopenblas0-openmp", "usr/lib/*/openblas-openmp/libopenblas.so.0", "OpenBLAS"),
    Library("libopenblas0-serial", "usr/lib/*/openblas-serial/libopenblas.so.0", "OpenBLAS"),
    Library(
        "libopenblas64-0-pthread",
        "usr/lib/*/openblas64-pthread/libopenblas64.so.0",
        "OpenBLAS",
        ilp64=True,
    ),
    Library("libblis4-pthread", "usr/lib/*/blis-pthread/libblis.so.4", "BLIS"),
    Library("libblis4-openmp", "usr/lib/*/blis-openmp/libblis.so.4", "BLIS"),
    Library("libblis64-4-pthread", "usr/lib/*/blis64-pthread/libblis64.so.4", "BLIS", ilp64=True),
    Library("libatlas3-base", "usr/lib/*/atlas/libblas.so.3", "ATLAS"),
    Library("libblas3", "usr/lib/*/blas/libblas.so.3", "reference BLAS"),
    Library("libblas64-3", "usr/lib/*/blas64/libblas64.so.3", "reference BLAS", ilp64=True),
)
