"""Small libraries that are compiled for a test, and the marks of the vendors."""

import ctypes
import os
import re
import shutil
import subprocess
from itertools import count
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")

EVERYTHING = ("-DWITH_SYRK", "-DWITH_DOT", "-DWITH_BATCH")
ILP64 = ("-DINT=int64_t",)
SPELLINGS = {
    "plain": ("-DPREFIX=", "-DSUFFIX=", "-DFORTRAN=_"),
    "_64": ("-DPREFIX=", "-DSUFFIX=_64", "-DFORTRAN=_64_"),
    "scipy_": ("-DPREFIX=scipy_", "-DSUFFIX=", "-DFORTRAN=_"),
    "scipy_ 64_": ("-DPREFIX=scipy_", "-DSUFFIX=64_", "-DFORTRAN=_64_"),
    "64_": ("-DPREFIX=", "-DSUFFIX=64_", "-DFORTRAN=_64_"),
    "$NEWLAPACK": ("-DPREFIX=", "-DSUFFIX=$NEWLAPACK", "-DFORTRAN=$NEWLAPACK"),
    "$NEWLAPACK$ILP64": ("-DPREFIX=", "-DSUFFIX=$NEWLAPACK$ILP64", "-DFORTRAN=$NEWLAPACK$ILP64"),
}

# What tells the vendors' libraries from others, in C.
MARKS = {
    "openblas": """
        const char *NAME(openblas_get_config)(void) { return "OpenBLAS 0.3.99 NO_AFFINITY"; }
        const char *NAME(openblas_get_corename)(void) { return "Penryn"; }
        int NAME(openblas_get_parallel)(void) { return 1; }
        void NAME(openblas_set_num_threads)(int n) { fake_set(n); }
        int NAME(openblas_get_num_threads)(void) { return fake_threads; }
    """,
    "mkl": """
        /* The layer that is in use once one has been asked for, or anything else called. */
        int fake_layer = -1;
        static int in_use(int layer) { return fake_layer < 0 ? fake_layer = layer : fake_layer; }
        static int by_environment(void)
        {
            const char *name = getenv("MKL_THREADING_LAYER"), *names = "isxgt";
            return name && *name ? strchr(names, *name | 32) - names : 3;
        }
        void MKL_Get_Version_String(char *text, int size)
        {
            snprintf(text, size, "Intel(R) oneAPI Math Kernel Library Version 2099.1-Product");
        }
        int MKL_Set_Threading_Layer(int layer) { return in_use(layer); }
        void MKL_Set_Num_Threads(int n) { in_use(by_environment()), fake_set(n); }
        int MKL_Get_Max_Threads(void) { return in_use(by_environment()), fake_threads; }
    """,
    "blis": """
        char *bli_info_get_version_str(void) { return "9.1"; }
        int bli_arch_query_id(void) { return 7; }
        const char *bli_arch_string(int id) { return id == 7 ? "skx" : "?"; }
        long bli_info_get_enable_openmp(void) { return 0; }
        long bli_info_get_enable_pthreads(void) { return 1; }
        void bli_thread_set_num_threads(int64_t n) { fake_set(n); }
        int64_t bli_thread_get_num_threads(void) { return fake_threads; }
    """,
    "nvpl": """
        int nvpl_blas_get_version(void) { return 10203; }
        void nvpl_blas_set_num_threads(int n) { fake_set(n); }
        int nvpl_blas_get_max_threads(void) { return fake_threads; }
    """,
    "atlas": "void ATL_buildinfo(void) {}",
    "flexiblas": """
        void flexiblas_get_version(int *major, int *minor, int *patch)
        {
            *major = 3, *minor = 4, *patch = 5;
        }
        #ifndef BACKEND
        #define BACKEND "NETLIB"
        #endif
        int flexiblas_current_backend(char *name, size_t size)
        {
            return snprintf(name, size, "%s", BACKEND);
        }
        void flexiblas_set_num_threads(int n) { fake_set(n); }
        int flexiblas_get_num_threads(void) { return fake_threads; }
    """,
    "armpl": """
        void armplversion(int *major, int *minor, int *patch, const char **build)
        {
            *major = 24, *minor = 10, *patch = 1, *build = "a build";
        }
    """,
    "armpl of 64 bits": """
        void armplversion(int64_t *major, int64_t *minor, int64_t *patch, const char **build)
        {
            *major = 24, *minor = 10, *patch = 1, *build = "a build";
        }
    """,
    "accelerate": "void BLASSetThreading(void) {}",
    "reference": "",
}
MARKS["aocl"] = MARKS["blis"].replace('"9.1"', '"AOCL-BLIS 9.1.0, a build"') + (
    "void bli_aocl_enable_instruction_query(void) {}"
)

# Two that run on OpenMP; and what is called like one, but has a number of threads to itself.
_USES = "void GOMP_parallel(void); void *fake_uses(void) { return &GOMP_parallel; }"
for _vendor, _model in (("openblas", "parallel"), ("blis", "enable_openmp")):
    _runs_on = re.compile(rf"({_model}\)?\(void\) {{ return) \d")
    MARKS[f"{_vendor} on OpenMP"] = _runs_on.sub(r"\1 2", MARKS[_vendor]) + _USES
LIBGOMP = """
    static __thread int threads = 4;
    int fake_omp_sets;
    void GOMP_parallel(void) {}
    void omp_set_num_threads(int n) { threads = n, fake_omp_sets++; }
    int omp_get_max_threads(void) { return threads; }
"""


def needing(path):
    """Return the options of a library that needs another, by its own name or else its path."""
    return "-Wl,--no-as-needed", path


class Compiler:
    """Compiles libraries; the same one only once, but nobody gets the same file."""

    def __init__(self, folder):
        self._folder = folder
        self._numbers = count()
        self._compiled = {}

    def __call__(self, path, *options, marks="", source=None):
        """Write a library to a path: of the source of this folder and marks, or of another."""
        text = f'#include "{SOURCE}"\n{marks}' if source is None else source
        compiled = self._compiled.get((text, options))
        if compiled is None:
            compiled = self._folder / f"{next(self._numbers)}.so"
            command = [*os.environ.get("CC", "cc").split(), "-x", "c", "-", "-x", "none"]
            command += ["-w", "-O1", "-shared", "-fPIC", "-o", compiled, *options]
            subprocess.run(command, input=text, text=True, check=True)
            self._compiled[text, options] = compiled
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(compiled, path)
        return path


class Books:
    """The variables ``fake_...`` of a library that is open in this process."""

    def __init__(self, path):
        object.__setattr__(self, "_library", ctypes.CDLL(str(path)))

    def _variable(self, name):
        return ctypes.c_int.in_dll(self._library, f"fake_{name}")

    def __getattr__(self, name):
        return self._variable(name).value

    def __setattr__(self, name, value):
        self._variable(name).value = value
