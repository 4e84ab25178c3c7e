"""Where libraries are, and which are used.

Files are looked for in the process, in wheels, and where the system's loader looks; never in the
current directory. A library is opened when it is first used, and tried in another process before.
"""

import logging
import os
import re
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ggarray.backends.blas.library import UnusableLibraryError
from ggarray.backends.blas.probe import Report, try_library
from ggarray.backends.blas.vendors import (
    ACCELERATE,
    ATLAS,
    BY_NAME,
    VENDORS,
    Accelerate,
    OpenLibrary,
    Reference,
    Vendor,
    open_library,
)

_T = TypeVar("_T")

_logger = logging.getLogger("ggarray")

VARIABLE = "GGARRAY_BLAS_LIBRARY"

# Where wheels of NumPy carry the libraries they need.
_PACKAGES = Path(np.__file__).resolve().parents[1]
_NUMPYS = (_PACKAGES / "numpy.libs", _PACKAGES / "numpy" / ".dylibs")

# Folders in which distributions keep the builds that their users choose from.
_VARIANTS = re.compile(r"(openblas|blis|atlas|blas)[\w-]*")

# In the names of files and their folders, what tells builds: those to avoid most, then others.
_BUILDS = (re.compile("openmp|gomp|openblaso"), re.compile("serial|seq|libopenblas(64_)?-r"))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that seems to be a library of a vendor; `mapped` if it is in the process already."""

    vendor: type[Vendor]
    path: Path
    mapped: bool = False


class Libraries:
    """The libraries of this machine.

    Parameters
    ----------
    environment : mapping, optional
        The environment variables, read once.
    parallel_for : cffi pointer, optional
        Runs a task on several threads, for the shim.
    """

    def __init__(
        self, environment: Mapping[str, str] = os.environ, parallel_for: Any = None
    ) -> None:
        self._environment = dict(environment)
        self._parallel_for = () if parallel_for is None else (parallel_for,)
        self._open: dict[Path, OpenLibrary] = {}

    @cached_property
    def candidates(self) -> dict[str, list[Candidate]]:
        """The files found, by the name of the vendor, the preferred one first."""
        found: dict[Path, Candidate] = {}
        for candidate in (*self._mapped(), *self._on_disk()):
            found.setdefault(_real(candidate.path), candidate)
        by_vendor: dict[str, list[Candidate]] = {}
        for candidate in found.values():
            by_vendor.setdefault(candidate.vendor.name, []).append(candidate)
        for each in by_vendor.values():
            each.sort(key=_reluctance)
        return by_vendor

    def _mapped(self) -> Iterator[Candidate]:
        for path in filter(lambda path: _HINT.search(path.name), _mapped_files()):
            yield from (Candidate(vendor, path, True) for vendor in _made_by(path))

    def _on_disk(self) -> Iterator[Candidate]:
        for vendor in VENDORS:
            wheels = (base / wheel for wheel in vendor.wheels for base in _site_packages())
            for folder in (*wheels, *self._places(vendor)):
                for path in _files(folder):
                    if re.fullmatch(vendor.files, path.name):
                        yield Candidate(vendor, path, path.parent in _NUMPYS)
        if sys.platform == "darwin":
            yield Candidate(Accelerate, ACCELERATE)  # the system has it, and shows no file
        for folder in self._loader_folders():
            for path in _files(folder):
                yield from (Candidate(vendor, path) for vendor in _made_by(path))

    def _places(self, vendor: type[Vendor]) -> Iterator[Path]:
        for place in vendor.places:
            variable = re.match(r"\{(\w+)\}", place)
            if variable:
                root = self._environment.get(variable[1], "")
                if not os.path.isabs(root):
                    continue
                place = root + place.removeprefix(variable[0])
            yield from sorted(Path("/").glob(place[1:]), reverse=True)  # newest first

    def _loader_folders(self) -> Iterator[Path]:
        """Yield where libraries are installed, and the folders of variants in there."""
        variable = "DYLD_LIBRARY_PATH" if sys.platform == "darwin" else "LD_LIBRARY_PATH"
        conda, user = self._environment.get("CONDA_PREFIX"), site.getuserbase()
        names = (
            *self._environment.get(variable, "").split(os.pathsep),
            f"{sys.prefix}/lib",
            f"{conda}/lib" if conda else "",
            f"{user}/lib",
            "/usr/local/lib",
            *(f"{base}/lib/{sysconfig.get_config_var('MULTIARCH')}" for base in ("/usr", "")),
            *("/usr/lib64", "/usr/lib", "/lib64", "/lib"),
        )
        folders = (Path(name) for name in names if os.path.isabs(name))
        for folder in dict.fromkeys(map(_real, folders)):
            yield folder
            try:
                variants = sorted(filter(_VARIANTS.fullmatch, os.listdir(folder)))
            except OSError:
                continue
            yield from (folder / name for name in variants)

    # -- what is used --

    @cached_property
    def chosen(self) -> tuple[str, Path | None]:
        """The vendor or file that the environment names for the device ``blas``; empty if none.

        Raises
        ------
        ValueError
            It is neither a vendor of which a library was found, nor an absolute path.
        """
        text = self._environment.get(VARIABLE, "")
        if os.path.isabs(text):
            return "", Path(text)
        if text and not (text in BY_NAME and self.related(text)):
            found = ", ".join(self.candidates) or "none"
            raise ValueError(
                f"environment variable {VARIABLE} is the absolute path of a library or a vendor"
                f" of which one was found (here {found}), not {text!r}"
            )
        return text, None

    def open(self, path: Path) -> OpenLibrary:
        """Return a library, opened if it is not; in another process first unless it is in this one.

        Raises
        ------
        UnusableLibraryError
            It cannot be used; the message names the path and the reason.
        """
        opened = self._open.get(path)
        if opened is None:
            if not path.is_absolute():
                raise UnusableLibraryError(f"{path} is no absolute path")
            shared = _real(path) in map(_real, (*_mapped_files(), *_numpys()))
            if not shared:
                try_library(path)
            opened = open_library(path, shared, *self._parallel_for)
            self._open[path] = opened
            _logger.debug("opened %s", opened.description)
        return opened

    def related(self, name: str) -> list[Candidate]:
        """Return the files that may be libraries of a vendor: those of whom it builds on, too."""
        return [
            candidate
            for each, candidates in self.candidates.items()
            if issubclass(BY_NAME[name], BY_NAME[each])
            for candidate in candidates
        ]

    def open_vendor(self, name: str) -> OpenLibrary:
        """Return the preferred library of a vendor that can be used.

        Raises
        ------
        UnusableLibraryError
            None can be; the message says of each why not.
        """
        reasons = []
        for candidate in self.related(name):
            try:
                opened = self.open(candidate.path)
            except UnusableLibraryError as error:
                reasons.append(str(error))
                continue
            if issubclass(opened.vendor, BY_NAME[name]):
                return opened
            reasons.append(f"{candidate.path} is {opened.vendor.title}")
        raise UnusableLibraryError("; ".join(reasons))

    def open_default(self) -> OpenLibrary | None:
        """Return the library that the environment names, else NumPy's own, else the fastest.

        Raises
        ------
        ValueError
            The one that the environment names cannot be used, or as of `chosen`.
        """
        vendor, path = self.chosen
        try:
            if path is not None:
                return self.open(path)
            if vendor:
                return self.open_vendor(vendor)
        except UnusableLibraryError as error:
            text = self._environment[VARIABLE]
            raise ValueError(f"environment variable {VARIABLE}, {text!r}: {error}") from error
        everything = [each for candidates in self.candidates.values() for each in candidates]
        for candidate in sorted(everything, key=_reluctance):
            if candidate.mapped and candidate.vendor not in (ATLAS, Reference):
                opened = _unless_unusable(self.open, candidate.path)
                if opened is not None:
                    return opened
        reports = map(self._first_report, self.candidates.values())
        usable = sorted(filter(None, reports), key=lambda pair: -pair[1].gflops)
        opened_or_not = (_unless_unusable(self.open, each.path) for each, _ in usable)
        return next(filter(None, opened_or_not), None)

    def _first_report(self, candidates: list[Candidate]) -> tuple[Candidate, Report] | None:
        """Return the preferred of a vendor's files that can be used, and what it is."""
        tried = ((each, _unless_unusable(try_library, each.path)) for each in candidates)
        return next(((each, report) for each, report in tried if report is not None), None)

    def loaded(self) -> list[OpenLibrary]:
        """Return the libraries that have been opened."""
        return list(self._open.values())

    def reports(self) -> Iterator[tuple[Candidate, Report | str]]:
        """Yield of each file what a trial has shown, or why it is of no use."""
        for candidates in self.candidates.values():
            for each in candidates:
                try:
                    yield each, try_library(each.path)
                except UnusableLibraryError as error:
                    yield each, str(error)


def _unless_unusable(call: Callable[..., _T], *arguments: Any) -> _T | None:
    try:
        return call(*arguments)
    except UnusableLibraryError as error:
        _logger.debug("not used: %s", error)
        return None


def _reluctance(candidate: Candidate) -> tuple[Any, ...]:
    """Return a key that is smallest for the candidate to prefer."""
    build = "/".join(_real(candidate.path).parts[-2:])
    builds = (bool(each.search(build)) for each in _BUILDS)
    numpys = candidate.mapped and candidate.path.parent in _NUMPYS
    return (not numpys, not candidate.mapped, *builds)


def _made_by(path: Path) -> Iterator[type[Vendor]]:
    """Yield the vendor that a file seems to be from, of those whose files may be anywhere.

    Links have names that several vendors use; and so have files in the folders of variants.
    """
    path = _real(path)
    for vendor in VENDORS:
        if vendor.anywhere and re.fullmatch(vendor.files, path.name):
            if vendor is not Reference or not _OTHERS.search(path.parent.name):
                yield vendor
            return


_HINT = re.compile("blas|blis|mkl|armpl|atlas")
_OTHERS = re.compile("openblas|blis|atlas|mkl|armpl|nvpl|hpc_sdk")


def _real(path: Path) -> Path:
    """Return a path without links; as it is where links lead in circles."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _numpys() -> list[Path]:
    """Return the libraries that a wheel of NumPy brings, which are in every process."""
    return [path for folder in _NUMPYS for path in _files(folder)]


def _files(folder: Path) -> list[Path]:
    """Return files of a folder whose names hint at a library."""
    try:
        return [folder / name for name in sorted(filter(_HINT.search, os.listdir(folder)))]
    except OSError:
        return []


def _site_packages() -> list[Path]:
    """Return where distributions are installed; not where Python looks for modules besides."""
    folders = (_PACKAGES, sysconfig.get_path("platlib"), site.getusersitepackages())
    return list(dict.fromkeys(_real(Path(each)) for each in folders if os.path.isabs(each)))


def _mapped_files() -> Iterator[Path]:
    """Yield each file mapped into this process once; none where the system does not tell."""
    try:
        lines = os.fsdecode(Path("/proc/self/maps").read_bytes()).split("\n")
    except OSError:
        return
    # address, permissions, offset, device, inode, path
    names = (line.split(maxsplit=5)[5] for line in lines if line.count("/"))
    yield from (path for path in map(Path, dict.fromkeys(names)) if path.is_absolute())
