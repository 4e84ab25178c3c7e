"""Limits that threadpoolctl, where it is installed, puts on the number of threads.

It knows a library by the name of a file that the process has loaded; ggarray by that of its
kernels. So limits hold that are set once those are loaded: by the first array, or `devices`.
"""

import importlib
import operator
import os
from threading import get_ident
from typing import Any, Self

from ggarray._runtime.threads import caps, get_num_threads
from ggarray._version import __version__

_KERNELS = "ggarray.backends.cpu._kernels"


class _InForce(int):
    """The number of threads in force, which remembers what cap its thread had put on it.

    Whoever sets a limit reads the number first, and sets it again at the end. What comes back then
    is the cap: the program may have changed its own number meanwhile, which stays.
    """

    _thread: int
    _cap: int | None

    def __new__(cls) -> Self:
        self = super().__new__(cls, get_num_threads())
        self._thread = get_ident()
        self._cap = caps.get(self._thread)
        return self

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)  # to another process it is a number

    def put_back(self) -> None:
        if self._cap is None:
            caps.pop(self._thread, None)
        else:
            caps[self._thread] = self._cap


class _Controller:
    """What a controller of threadpoolctl is for ggarray's own threads, beside the base class."""

    user_api = "blas"
    internal_api = "ggarray"
    filename_prefixes = ("_kernels",)
    check_symbols = ("PyInit__kernels",)

    filepath: str
    dynlib: Any

    def set_additional_attributes(self) -> None:
        """Refuse libraries of others that have the same name: there is no symbol in None."""
        if self.filepath != os.path.realpath(str(importlib.import_module(_KERNELS).__file__)):
            self.dynlib = None

    def get_version(self) -> str:
        return __version__

    def get_num_threads(self) -> int:
        return _InForce()

    def set_num_threads(self, num_threads: int) -> None:
        if isinstance(num_threads, _InForce):
            num_threads.put_back()
        else:
            caps[get_ident()] = max(1, operator.index(num_threads))


def register_with_threadpoolctl() -> None:
    """Have threadpoolctl control ggarray's own threads, if it is installed; again does no harm."""
    try:
        from threadpoolctl import LibController, register  # type: ignore[import-untyped]
    except ImportError:  # or a version without controllers of others
        return
    register(type("GGArrayController", (_Controller, LibController), {}))
