"""Vendor libraries: finds a BLAS at run time and learns how to call it.

Nothing is linked. A library is opened by its absolute path, its CBLAS routines are looked up under
the names that builds of it are known to use, and a few tiny products show whether they can be
trusted: the width of the integers cannot be told from names, and some kernels lose NaN.
"""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ggarray._version import __version__
from ggarray.backends.blas._shim import ffi, lib

_built = ffi.string(lib.shim_version()).decode()
if _built != __version__:
    raise ImportError(
        f"the compiled BLAS shim is of version {_built} but ggarray is {__version__}: "
        "reinstall ggarray so that both are built together"
    )

_logger = logging.getLogger("ggarray")

# The type numbers of the shim, in which the letters of BLAS routines are ordered.
TYPES = {"f": lib.SHIM_S, "d": lib.SHIM_D, "F": lib.SHIM_C, "D": lib.SHIM_Z}
_LETTERS = "sdcz"

NO_BATCH = ffi.new("int64_t[]", 1)

# Where wheels of NumPy carry the libraries they need.
_PACKAGES = Path(np.__file__).resolve().parents[1]
_WHEEL_FOLDERS = (_PACKAGES / "numpy.libs", _PACKAGES / "numpy" / ".dylibs")

# What builds put before and after the names of routines.
_SPELLINGS = (("", ""), ("scipy_", ""), ("scipy_", "64_"), ("", "64_"), ("", "_64"))


class UnusableLibraryError(Exception):
    """A library cannot be opened, lacks a routine, or computes wrongly."""


@dataclass(frozen=True, slots=True, eq=False)
class Vendor:
    """A BLAS library in this process.

    Attributes
    ----------
    name : str
        The vendor, as in the device ``blas:<name>``.
    title : str
        The vendor, as people write it.
    path : Path
        The file that was opened.
    version, core : str
        Of the library, and the processor whose kernels it chose; empty where it does not tell.
    ilp64 : bool
        Its integers have 64 bits, else 32.
    handle : cffi pointer to shim_vendor
        What the shim calls.
    """

    name: str
    title: str
    path: Path
    version: str
    core: str
    ilp64: bool
    handle: Any

    @property
    def description(self) -> str:
        """What the library is and where it comes from, in one line."""
        own = self.path.parent in _WHEEL_FOLDERS
        facts = (
            self.core,
            "ILP64" if self.ilp64 else "LP64",
            "numpy's own copy" if own else str(self.path),
        )
        return f"{self.title} {self.version} ({', '.join(filter(None, facts))})"


class _Symbols:
    """The routines of an open library, which share one spelling of their names."""

    def __init__(self, path: Path) -> None:
        if not path.is_absolute():
            raise UnusableLibraryError(f"{path} is no absolute path")
        self._library = lib.shim_open(os.fsencode(path))
        if not self._library:
            raise UnusableLibraryError(ffi.string(lib.shim_error()).decode(errors="replace"))
        for self._prefix, self._suffix in _SPELLINGS:
            if self.find("cblas_sgemm") != ffi.NULL:
                return
        raise UnusableLibraryError(f"{path} has no cblas_sgemm")

    def find(self, name: str) -> Any:
        """Return the address of a routine, NULL where there is none."""
        return self.find_exactly(f"{self._prefix}{name}{self._suffix}")

    def find_exactly(self, name: str) -> Any:
        """Return the address of a routine whose name has no prefix and no suffix, or NULL."""
        return lib.shim_symbol(self._library, name.encode())

    def table(self, routine: str) -> list[Any]:
        """Return the addresses of a CBLAS routine for the four types."""
        found = [self.find(f"cblas_{letter}{routine}") for letter in _LETTERS]
        if ffi.NULL in found:
            raise UnusableLibraryError(f"a cblas_?{routine} is missing")
        return found

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

    def is_ilp64(self) -> bool:
        """Tell the width of integers; a library without ``isamax_`` is known to have 32 bits."""
        isamax = self.find("isamax_")
        return isamax != ffi.NULL and bool(lib.shim_is_ilp64(isamax))


class OpenBLAS:
    """How to open OpenBLAS (https://www.openblas.net), under any of the names builds give it."""

    name: ClassVar[str] = "openblas"
    title: ClassVar[str] = "OpenBLAS"
    _OPENMP: ClassVar[int] = 2  # of openblas_get_parallel

    @classmethod
    def open(cls, path: Path) -> Vendor:
        """Open the library at an absolute path.

        Raises
        ------
        UnusableLibraryError
            It is no OpenBLAS, runs on OpenMP (which hangs in a forked child), or computes wrongly.
        """
        symbols = _Symbols(path)
        handle = ffi.new("shim_vendor *")
        handle.gemm, handle.gemv = symbols.table("gemm"), symbols.table("gemv")
        handle.set_threads = symbols.find("openblas_set_num_threads")
        handle.get_threads = symbols.find("openblas_get_num_threads")
        if ffi.NULL in (handle.set_threads, handle.get_threads):
            raise UnusableLibraryError(f"{path} is no OpenBLAS")
        if symbols.number("openblas_get_parallel") == cls._OPENMP:
            raise UnusableLibraryError(f"{path} runs on OpenMP, which hangs after a fork")
        handle.ilp64 = symbols.is_ilp64()
        memory = [symbols.find_exactly(f"blas_memory_{verb}") for verb in ("alloc", "free")]
        if ffi.NULL not in memory:
            lib.shim_touch_memory(*memory)
        check_nan(handle)
        words = symbols.text("openblas_get_config").split()
        version = words[1] if words[:1] == ["OpenBLAS"] and len(words) > 1 else ""
        core = symbols.text("openblas_get_corename")
        return Vendor(cls.name, cls.title, path, version, core, bool(handle.ilp64), handle)


def check_nan(handle: Any) -> None:
    """Check that zero times NaN is NaN, and that what a result held before does not matter.

    Raises
    ------
    UnusableLibraryError
        A matrix or vector product of one of the four types fails.
    """
    for char, number in TYPES.items():
        for m, n in ((8, 8), (8, 1), (1, 8)):
            zero, nan = np.zeros((8, 8), char), np.full((8, 8), np.nan, char)
            for a, b, expected in ((zero, nan, nan), (nan, zero, nan), (zero, zero, zero)):
                out = np.full((m, n), np.nan, char)
                _multiply(handle, number, a[:m], np.ascontiguousarray(b[:, :n]), out)
                if not np.array_equal(out, expected[:m, :n], equal_nan=True):
                    raise UnusableLibraryError(f"products of type {char!r} are wrong about NaN")


def _multiply(handle: Any, number: int, a: Any, b: Any, out: Any) -> None:
    pointers = (ffi.from_buffer(x) for x in (a, b, out))
    strides = (*a.strides, *b.strides, out.strides[0])
    sizes = (*out.shape, a.shape[1])
    lib.shim_matmul(handle, 1, number, *pointers, *sizes, *strides, 0, NO_BATCH, ffi.NULL)


@cache
def find_numpy_openblas() -> Vendor | None:
    """Return the OpenBLAS that NumPy has loaded, None where there is none that can be used.

    It costs no memory: the library is in the process already, with its threads and buffers.
    """
    for path in numpy_libraries("openblas"):
        try:
            vendor = OpenBLAS.open(path)
        except UnusableLibraryError as error:
            _logger.debug("%s is not used: %s", path, error)
        else:
            _logger.debug("OpenBLAS %s found at %s", vendor.version, path)
            return vendor
    return None


def numpy_libraries(word: str) -> list[Path]:
    """Return libraries with `word` in their file names: in the process, those of NumPy first."""
    mapped = [path for path in _mapped_files() if word in path.name.lower()]
    if mapped:
        return sorted(mapped, key=lambda path: path.parent not in _WHEEL_FOLDERS)
    return [path for folder in _WHEEL_FOLDERS for path in sorted(folder.glob(f"*{word}*"))]


def _mapped_files() -> Iterator[Path]:
    """Yield each file mapped into this process once; none where the system does not tell."""
    try:
        lines = Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return
    # address, permissions, offset, device, inode, path
    names = (line.split(maxsplit=5)[5] for line in lines if line.count("/"))
    yield from (path for path in map(Path, dict.fromkeys(names)) if path.is_absolute())
