"""Builds the extension module ``ggarray.backends.blas._shim``; named in setup.py."""

import re
import runpy
from pathlib import Path

from cffi import FFI

ROOT = Path(__file__).parents[2]
SOURCE = Path("backends/blas/src")  # setuptools wants it relative to the root

VERSION = runpy.run_path(str(ROOT / "ggarray/_version.py"))["__version__"]


def declarations(header: str) -> str:
    """Return what a C header declares, without its preprocessor lines."""
    return re.sub(r"^#.*$", "", header, flags=re.MULTILINE)


ffibuilder = FFI()
ffibuilder.cdef(declarations((ROOT / SOURCE / "shim.h").read_text()))
ffibuilder.set_source(
    "ggarray.backends.blas._shim",
    '#include "shim.h"',
    sources=[str(SOURCE / name) for name in ("check.c", "library.c", "product.c")],
    depends=[str(SOURCE / name) for name in ("product.h", "shim.h")],
    include_dirs=[str(SOURCE)],
    define_macros=[("SHIM_VERSION", f'"{VERSION}"')],
    extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden"],
    libraries=["dl", "m"],
)
