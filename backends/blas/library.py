"""A library: its file, and its routines under the names that builds are known to give them."""

import logging
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from ggarray._version import __version__
from ggarray.backends.blas._shim import ffi, lib
from ggarray.interface.outcome import BackendError

_built = ffi.string(lib.shim_version()).decode()
if _built != __version__:
    raise ImportError(
        f"the compiled BLAS shim is of version {_built} but ggarray is {__version__}: "
        "reinstall ggarray so that both are built together"
    )

_logger = logging.getLogger("ggarray")

_LETTERS = "sdcz"  # of BLAS routines, in the order of the shim's types


class Spelling(NamedTuple):
    """What a build puts before and after the names of C routines, and after those of Fortran."""

    prefix: str
    suffix: str
    fortran: str


# A library may have several: those that are known to mean 64-bit integers come first.
_SPELLINGS = (
    Spelling("", "_64", "_64_"),
    Spelling("", "$NEWLAPACK$ILP64", "$NEWLAPACK$ILP64"),
    Spelling("", "$NEWLAPACK", "$NEWLAPACK"),
    Spelling("", "", "_"),
    Spelling("scipy_", "", "_"),
    Spelling("scipy_", "64_", "_64_"),
    Spelling("", "64_", "_64_"),
)

_MISSING = re.compile(r"(\S+): cannot open shared object file")


class UnusableLibraryError(BackendError):
    """A library cannot be opened, lacks a routine, or computes wrongly."""


class Library:
    """An open library, whose names have one spelling.

    Parameters
    ----------
    path : Path
        Its absolute path.

    Raises
    ------
    UnusableLibraryError
        It cannot be opened, or has no CBLAS.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_absolute():
            raise UnusableLibraryError(f"{path} is no absolute path")
        self.path = path
        self._library = _open(path)
        for self.spelling in _SPELLINGS:
            if self.find("cblas_sgemm") != ffi.NULL:
                return
        raise UnusableLibraryError(f"{path} has no cblas_sgemm: it is no BLAS with a C interface")

    def find(self, name: str) -> Any:
        """Return the address of a C routine, NULL where there is none."""
        return self.find_exactly(f"{self.spelling.prefix}{name}{self.spelling.suffix}")

    def find_exactly(self, name: str) -> Any:
        """Return the address of a symbol that is spelled so, or NULL."""
        return lib.shim_symbol(self._library, name.encode())

    def require(self, name: str) -> Any:
        """Return the address of a symbol that is spelled so.

        Raises
        ------
        UnusableLibraryError
            There is none.
        """
        routine = self.find_exactly(name)
        if routine == ffi.NULL:
            raise UnusableLibraryError(f"{self.path} lacks {name}")
        return routine

    def has(self, name: str) -> bool:
        """Tell whether there is a routine of this name, spelled as others are or exactly so."""
        return bool(self.find(name) != ffi.NULL or self.find_exactly(name) != ffi.NULL)

    def table(self, name: str) -> list[Any]:
        """Return the addresses of a routine for the four types; ``?`` stands for their letters."""
        return [self.find(name.replace("?", letter)) for letter in _LETTERS]

    def text(self, name: str) -> str:
        """Call a routine that returns text; empty where there is none."""
        routine = self.find(name)
        if routine == ffi.NULL:
            return ""
        text: bytes = ffi.string(ffi.cast("char *(*)(void)", routine)())
        return text.decode(errors="replace")

    def number(self, name: str) -> int:
        """Call a routine that returns an int; 0 where there is none."""
        routine = self.find(name)
        return 0 if routine == ffi.NULL else int(ffi.cast("int (*)(void)", routine)())

    def numbers(self, name: str) -> str:
        """Call a routine that gives the three parts of a version; return them with dots between."""
        routine = self.find_exactly(name)
        if routine == ffi.NULL:
            return ""
        # room for numbers of 64 bits, and for a fourth thing that some write
        parts = [ffi.new("int32_t[2]") for _ in range(4)]
        ffi.cast("void (*)(void *, void *, void *, void *)", routine)(*parts)
        return ".".join(str(part[0]) for part in parts[:3])

    def is_ilp64(self) -> bool:
        """Tell the width of integers; by the spelling where there is no ``isamax_`` to ask."""
        isamax = self.find_exactly(f"{self.spelling.prefix}isamax{self.spelling.fortran}")
        return (
            "64" in self.spelling.suffix if isamax == ffi.NULL else bool(lib.shim_is_ilp64(isamax))
        )

    def runs_on_libgomp(self) -> bool:
        """Tell whether its threads are those of GNU's OpenMP, which hang in a forked child."""
        routine = self.find_exactly("GOMP_parallel")
        if routine == ffi.NULL:
            return False
        return b"libgomp" in os.path.basename(ffi.string(lib.shim_file_of(routine)))


def _open(path: Path, above: frozenset[Path] = frozenset()) -> Any:
    """Return the handle of a library; what it needs may lie beside it, or one folder above.

    So do the libraries of a package that has been unpacked and not installed.
    """
    deep = os.environ.get("GGARRAY_BLAS_DEEPBIND") != "0"
    tried = {path, *above}  # those that wait for this one, too
    while True:
        opened = lib.shim_open(os.fsencode(path), deep)
        if opened:
            return opened
        error = ffi.string(lib.shim_error()).decode(errors="replace")
        missing = _MISSING.match(error)
        name = missing[1] if missing else ""
        beside = [folder / name for folder in path.parents[:2]]
        needed = next((each for each in beside if name and each.is_file()), None)
        if needed is None or needed in tried:
            raise UnusableLibraryError(error if str(path) in error else f"{path}: {error}")
        tried.add(needed)
        _logger.debug("%s needs %s", path, needed)
        try:
            _open(needed, frozenset(tried))
        except UnusableLibraryError as reason:
            raise UnusableLibraryError(f"{path} needs {needed}: {reason}") from None
