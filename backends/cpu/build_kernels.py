"""The cffi builder of `ggarray.backends.cpu._kernels`; setup.py runs it."""

import platform
import re
from pathlib import Path

from cffi import FFI

# Relative to the project's root, where builds run: this is how setuptools wants sources.
SRC = "backends/cpu/src"
ROOT = Path(__file__).resolve().parents[2]
X86_64 = platform.machine().lower() in {"x86_64", "amd64"}

PORTABLE = (
    "convert",
    "dispatch",
    "gemm",
    "gemv",
    "gemv_complex",
    "graph",
    "kernels_generic",
    "matmul",
    "out_prod",
    "pool",
    "strided",
    "traits",
    "waiting",
    "workspace",
)
ONLY_X86_64 = ("kernels_avx2", "kernels_avx512")
HEADERS = ("gg.h", "workspace.h")


def version() -> str:
    """Return the version that `ggarray/_version.py` states."""
    text = (ROOT / "ggarray" / "_version.py").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "([^"]+)"', text)
    if found is None:
        raise ValueError("ggarray/_version.py states no __version__")
    return found[1]


def declarations() -> str:
    """Return the headers as cffi reads them: without comments and preprocessor lines."""
    text = "".join((ROOT / SRC / name).read_text(encoding="utf-8") for name in HEADERS)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"^#.*$", "", text, flags=re.MULTILINE)


ffibuilder = FFI()
ffibuilder.cdef(declarations())
ffibuilder.set_source(
    "ggarray.backends.cpu._kernels",
    "".join(f'#include "{name}"\n' for name in HEADERS),
    sources=[f"{SRC}/{name}.c" for name in PORTABLE + (ONLY_X86_64 if X86_64 else ())],
    depends=[f"{SRC}/{path.name}" for path in sorted((ROOT / SRC).glob("*.h"))],
    include_dirs=[SRC],
    define_macros=[("GG_VERSION", f'"{version()}"')],
    extra_compile_args=["-std=c11", "-O3", "-fvisibility=hidden", "-ffp-contract=off"],
    libraries=["m"],
)
