"""The devices ``blas`` and ``blas:<library>``: products by a vendor's library.

A device takes the products that its library computes faster than our kernels do; the others, and
outer products of vectors (whose every element is one exact multiplication), are left to ``cpu``.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from ggarray._quantized.traits import QuantizedDType
from ggarray._runtime.devices import Warning
from ggarray.backends.blas import listing
from ggarray.backends.blas.discovery import Libraries
from ggarray.backends.blas.library import UnusableLibraryError
from ggarray.backends.blas.stream import BlasBackend
from ggarray.backends.blas.vendors import BY_NAME, OpenLibrary
from ggarray.backends.cpu import kernels
from ggarray.backends.cpu.device import host_memory, set_n_threads
from ggarray.interface import BackendDevice, DeviceType, Kernel, Op, Registry

# Products (or batches) of fewer multiply-adds are left to our kernels, by dtype: alone they take as
# long, and a graph of them is one call (``python -m benchmarks upgrades graphs`` measures both).
_LEAST_WORK = {"f": 1 << 12, "d": 1 << 12, "F": 1 << 10, "D": 1 << 10}

# float16 and bfloat16 our kernels convert on the way, which costs them nothing where they are
# written for the processor. Portable ones are slower than conversions and a library.
_LEAST_WORK_HALF = 1 << 16
_HALVES = ("float16", "bfloat16")

# With fewer rows (or columns) than this against quantized weights, or in small products with
# them, our kernels are faster, as they do not write the decoded weights down.
_LEAST_BATCH = 64
_LEAST_BATCH_PORTABLE = 8
_LEAST_WORK_QUANTIZED = 1 << 22

_INT32_MAX = 2**31 - 1


class BlasDevice(BackendDevice):
    """A vendor's library on the processor; it is opened when it is first used.

    Parameters
    ----------
    name : str
        The device's name.
    description : str
        What it is, before it has been opened.
    open_library : callable
        Returns the library, or raises UnusableLibraryError.
    """

    type = DeviceType.ACCEL

    def __init__(
        self, name: str, description: str, open_library: Callable[[], OpenLibrary]
    ) -> None:
        self.name = name
        self.description = description
        self._open_library = open_library

    @cached_property
    def library(self) -> OpenLibrary:
        """The library.

        Raises
        ------
        UnusableLibraryError
            It cannot be used.
        """
        library = self._open_library()
        self.description = library.description
        return library

    def open(self) -> None:
        """Open the library; warns where its kernels are not made for this processor.

        Raises
        ------
        UnusableLibraryError
            It cannot be used.
        """
        if "library" not in self.__dict__:
            complaint = listing.complaint(self.library.vendor, self.library.core)
            if complaint:
                warnings.warn(f"{self.name}: {complaint}", Warning, stacklevel=4)

    def memory(self) -> tuple[int, int]:
        """Return the bytes of memory that are available, and that the machine has."""
        return host_memory()

    def supports_op(self, node: Kernel) -> bool:
        """Tell whether the node is a product that the library computes faster than we."""
        if node.op is not Op.MATMUL and (node.op is not Op.OUT_PROD or _is_outer(node)):
            return False
        a, b = node.operands
        out = node.out
        dtype = out.dtype
        work = out.size * a.shape[-1]
        if type(a.dtype) is QuantizedDType:
            worth = _is_worth_decoding(out.shape[-1], work) and a.size <= _INT32_MAX
            plain: tuple[Any, ...] = (b, out)
        elif type(b.dtype) is QuantizedDType:
            worth = _is_worth_decoding(out.shape[-2], work) and b.size <= _INT32_MAX
            plain = (a, out)
        else:
            worth = work >= _least_work(node)
            plain = (a, b, out)
        if not worth or plain[0].dtype != dtype or plain[1].dtype != dtype:
            return False
        return self.library.ilp64 or _fits_32_bits(*plain)

    def init_backend(self, params: str = "") -> BlasBackend:
        """Return a stream; there are no parameters."""
        return BlasBackend(self.name, self.library)


def _least_work(node: Kernel) -> float:
    """Return how many multiply-adds of plain operands are worth a call of a library."""
    dtype = node.out.dtype
    least = _LEAST_WORK.get(dtype.char)
    if least is not None:
        return least
    is_half = dtype.name in _HALVES and node.plain
    return _LEAST_WORK_HALF if is_half and _ours_are_portable() else math.inf


def _is_worth_decoding(batch: int, work: int) -> bool:
    """Tell whether quantized weights are worth decoding for so many rows or columns."""
    least = _LEAST_BATCH_PORTABLE if _ours_are_portable() else _LEAST_BATCH
    return batch >= least and work >= _LEAST_WORK_QUANTIZED


@cache
def _ours_are_portable() -> bool:
    return bool(kernels.features()["isa"] == "generic")


def _is_outer(node: Kernel) -> bool:
    return bool(node.operands[0].shape[-1] <= 1)


def _fits_32_bits(*matrices: Any) -> bool:
    """Tell whether 32-bit integers can state all lengths, strides and places, in elements."""
    return all(_fits(x.shape, x.strides, x.dtype.itemsize) for x in matrices)


def _fits(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    steps = [abs(stride) // itemsize for stride in strides]
    places = sum(length * step for length, step in zip(shape[-2:], steps[-2:], strict=True))
    return places <= _INT32_MAX and max(*shape, *steps) <= _INT32_MAX


class BlasRegistry(Registry):
    """The vendor libraries that were found; none may be."""

    name = "blas"

    @cached_property
    def libraries(self) -> Libraries:
        """What was found on this machine."""
        return Libraries(parallel_for=kernels.parallel_for())

    def devices(self) -> Sequence[BackendDevice]:
        """Return ``blas`` and ``blas:<vendor>`` of each vendor found; nothing where none was.

        Raises
        ------
        ValueError
            The environment names a library that is not there or cannot be used.
        """
        libraries = self.libraries
        default = libraries.open_default()
        if default is None:
            return ()
        devices = [BlasDevice("blas", default.description, lambda: default)]
        for name in dict.fromkeys([default.vendor.name, *libraries.candidates]):
            if name == default.vendor.name:
                devices.append(BlasDevice(f"blas:{name}", default.description, lambda: default))
                continue
            path = libraries.candidates[name][0].path
            description = f"{BY_NAME[name].title}, not opened yet ({path})"
            devices.append(
                BlasDevice(f"blas:{name}", description, partial(libraries.open_vendor, name))
            )
        return devices

    def find_device(self, name: str) -> BackendDevice | None:
        """Return the device ``blas:<absolute path>`` of any library; tell why there is no other.

        Raises
        ------
        UnusableLibraryError
            The name is that of a vendor of which no library was found, or of nothing at all.
        """
        what = name.partition(":")[2]
        if name == self.name:
            how = BY_NAME["openblas"].how_to_get
            raise UnusableLibraryError(f"no library was found that can be used: {how}")
        if what in BY_NAME:
            if self.libraries.related(what):
                return BlasDevice(name, what, partial(self.libraries.open_vendor, what))
            vendor = BY_NAME[what]
            raise UnusableLibraryError(f"no {vendor.title} was found: {vendor.how_to_get}")
        path = Path(what)
        if not path.is_absolute():
            raise UnusableLibraryError(
                f"{what!r} is neither a vendor ({', '.join(sorted(BY_NAME))}) nor the absolute path"
                " of a library"
            )
        return BlasDevice(name, str(path), partial(self.libraries.open, path))

    def report(self) -> Iterator[str]:
        """Yield what was found, and how to get what was not."""
        yield from listing.lines(self.libraries)

    def procedures(self) -> Mapping[str, Callable[..., Any]]:
        """Return ``set_n_threads(backend, n)``."""
        return {"set_n_threads": set_n_threads}


registry = BlasRegistry()
