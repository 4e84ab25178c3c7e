"""The compiled parts of ggarray; everything else is in pyproject.toml."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError

BUILDERS = ("backends/cpu/build_kernels.py", "backends/blas/build_shim.py")

NO_COMPILER = (
    "ggarray needs a C compiler to build its kernels: install gcc or clang "
    "(Debian: apt-get install gcc)"
)
NO_WINDOWS = "ggarray does not build on Windows: use it under the Windows Subsystem for Linux"

# Flags of single files, by name. Products may fuse a multiplication with the addition that
# follows it, no other file may; and their short loops are faster than the memcpy that the compiler
# would make of them.
PRODUCTS = ["-ffp-contract=fast", "-fno-tree-loop-distribute-patterns"]
AVX2 = [*PRODUCTS, "-mavx2", "-mfma", "-mf16c"]
AVX512 = [*AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"]
FILE_FLAGS = {
    "kernels_generic.c": PRODUCTS,
    "kernels_avx2.c": AVX2,
    "kernels_avx512.c": AVX512,
}
STRICT = ["-Wall", "-Wextra", "-Werror"] if os.environ.get("GGARRAY_WERROR") == "1" else []


def own_flags(source: str) -> list[str]:
    """Return the flags of one source file beyond those of its extension."""
    path = Path(source)
    return FILE_FLAGS.get(path.name, []) + (STRICT if path.parent.name == "src" else [])


class BuildExt(build_ext):
    """Build extensions whose files have flags of their own."""

    def build_extensions(self) -> None:
        """Compile every file with its flags, or say in one sentence what is missing."""
        self.require_compiler()
        compile_file = self.compiler._compile

        def compile_with_flags(
            obj: str, src: str, ext: str, cc_args: Any, extra_postargs: Any, pp_opts: Any
        ) -> None:
            flags = [*(extra_postargs or []), *own_flags(src)]
            compile_file(obj, src, ext, cc_args, flags, pp_opts)

        self.compiler._compile = compile_with_flags
        super().build_extensions()

    def require_compiler(self) -> None:
        """Exit when the compiler cannot compile an empty function."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "probe.c"
            source.write_text("int ggarray_probe(void) { return 0; }\n", encoding="utf-8")
            try:
                self.compiler.compile([str(source)], output_dir=folder)
            except (CompileError, OSError):
                raise SystemExit(NO_COMPILER) from None


class BuildPy(build_py):
    """Leave the build scripts, which lie beside what they build, out of the wheel."""

    def find_package_modules(self, package, package_dir):
        """Return the modules of a package that are there to be imported."""
        found = super().find_package_modules(package, package_dir)
        return [each for each in found if not each[1].startswith("build_")]


if sys.platform == "win32":
    raise SystemExit(NO_WINDOWS)

setup(
    cffi_modules=[f"{path}:ffibuilder" for path in BUILDERS if Path(path).exists()],
    cmdclass={"build_ext": BuildExt, "build_py": BuildPy},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
