"""The vendors of BLAS libraries: what tells theirs, and what each does in its own way.

A vendor is a class of declared data and a few methods. Which one a library is from is told by its
symbols, as files are renamed and linked; by their names and places libraries are only looked for.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from ggarray._runtime.threads import available_processors
from ggarray.backends.blas._shim import ffi, lib
from ggarray.backends.blas.library import Library, UnusableLibraryError

# The routines that a library may have beyond those that are called here, by what they are for.
_EXTRAS = {
    "batch": ("cblas_sgemm_batch",),
    "strided batch": ("cblas_sgemm_batch_strided",),
    "triangular gemm": ("cblas_sgemmt", "cblas_sgemmtr"),
    "bfloat16": ("cblas_sbgemm", "cblas_gemm_bf16bf16f32", "aocl_gemm_bf16bf16f32of32"),
    "float16": ("cblas_shgemm", "cblas_gemm_f16f16f32"),
    "int8": ("cblas_gemm_s8u8s32", "aocl_gemm_u8s8s32os32"),
    "packed": ("cblas_sgemm_pack", "cblas_sgemm_compute"),
}

_NO_LIMIT = 2**31 - 1
_TIMED = 128  # rows of the product that tells the speed of one thread


class Threads(NamedTuple):
    """The routines that set and tell the number of threads; `wide` takes and gives 64 bits."""

    set: str
    get: str
    wide: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class OpenLibrary:
    """A BLAS library in this process.

    Attributes
    ----------
    vendor : type of Vendor
        Whose it is.
    path : Path
        The file that was opened.
    version, core : str
        Of the library, and the processor whose kernels it chose; empty where it does not tell.
    ilp64 : bool
        Its integers have 64 bits, else 32.
    threading : str
        ``none``, ``pthreads``, ``libgomp``, or another name of what its threads run on.
    extras : tuple of str
        What other routines it has.
    loses_nan : bool
        Zero times NaN is not NaN, so it is of use for finite numbers only.
    mixes_parts : bool
        Where it adds to an infinite complex number, the other part becomes NaN.
    handle : cffi pointer to shim_vendor
        What the shim calls.
    """

    vendor: "type[Vendor]"
    path: Path
    version: str
    core: str
    ilp64: bool
    threading: str
    extras: tuple[str, ...]
    loses_nan: bool
    mixes_parts: bool
    handle: Any

    @property
    def description(self) -> str:
        """What the library is, in a line."""
        name = " ".join(filter(None, (self.vendor.title, self.version)))
        facts = (self.core, "ILP64" if self.ilp64 else "LP64", str(self.path))
        return f"{name} ({', '.join(filter(None, facts))})"

    def allow_libgomp_threads(self, allowed: bool) -> None:
        """Let a library on libgomp use threads or not; others always may."""
        self.handle.most_threads = 1 if self.threading == "libgomp" and not allowed else _NO_LIMIT


class Vendor:
    """What is known of the libraries of a vendor; this is the one of those nobody knows.

    Attributes
    ----------
    name, title : str
        As in the device ``blas:<name>``, and as people write it.
    files : str
        Regular expression of the names that its files have.
    places : tuple of str
        Absolute patterns of folders where it may be besides the usual ones; a first part in braces
        is an environment variable.
    wheels : tuple of str
        Folders in site-packages.
    anywhere : bool
        Its files have names of their own, so they are looked for where all libraries are.
    how_to_get : str
        What brings it.
    marks : tuple of str
        Routines that only its libraries have.
    threads : Threads or None
        How their number is set.
    scales_sums : bool
        gemm multiplies sums by alpha, not an operand before: that may underflow.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    files: ClassVar[str]
    places: ClassVar[tuple[str, ...]] = ()
    wheels: ClassVar[tuple[str, ...]] = ()
    anywhere: ClassVar[bool] = True
    how_to_get: ClassVar[str] = ""
    marks: ClassVar[tuple[str, ...]] = ()
    threads: ClassVar[Threads | None] = None
    scales_sums: ClassVar[bool] = False

    @classmethod
    def made(cls, library: Library) -> bool:
        """Tell whether a library is this vendor's."""
        return any(library.has(mark) for mark in cls.marks)

    @classmethod
    def prepare(cls, library: Library) -> None:
        """Do what comes before the first call; of a library that only ggarray uses."""

    @classmethod
    def version(cls, library: Library) -> str:
        """Return the version of a library, empty where it does not tell."""
        return ""

    @classmethod
    def core(cls, library: Library) -> str:
        """Return the name of the processor whose kernels are in use, empty where unknown."""
        return ""

    @classmethod
    def threading(cls, library: Library) -> str:
        """Return what its threads run on; asked after its first product."""
        if library.runs_on_libgomp():
            return "libgomp"
        routines = cls.thread_routines(library)
        return "none" if routines is None else "OpenMP" if routines is OPENMP else "its own"

    @classmethod
    def thread_routines(cls, library: Library) -> Threads | None:
        """Return the routines that set the number of threads of this library."""
        return cls.threads


class OpenBLAS(Vendor):
    """OpenBLAS, https://www.openblas.net."""

    name = "openblas"
    title = "OpenBLAS"
    files = r"lib(scipy_)?openblas[\w.+-]*\.(so(\.\d+)*|dylib)"
    places: ClassVar[tuple[str, ...]] = (
        "/opt/homebrew/opt/openblas/lib",
        "/usr/local/opt/openblas/lib",
    )
    wheels: ClassVar[tuple[str, ...]] = (
        "numpy.libs",
        "scipy.libs",
        "scipy_openblas64/lib",
        "scipy_openblas32/lib",
    )
    how_to_get = "pip install scipy-openblas64, or apt install libopenblas0-pthread"
    marks = ("openblas_get_config",)
    threads = Threads("openblas_set_num_threads", "openblas_get_num_threads")
    scales_sums = True
    _PARALLEL: ClassVar = ("none", "pthreads", "OpenMP")  # by openblas_get_parallel

    @classmethod
    def prepare(cls, library: Library) -> None:
        """Touch the working memory."""
        memory = [library.find_exactly(f"blas_memory_{verb}") for verb in ("alloc", "free")]
        if ffi.NULL not in memory:
            lib.shim_touch_memory(*memory)

    @classmethod
    def version(cls, library: Library) -> str:
        """Return the second word of the configuration."""
        words = library.text("openblas_get_config").split()
        return words[1] if words[:1] == ["OpenBLAS"] and len(words) > 1 else ""

    @classmethod
    def core(cls, library: Library) -> str:
        """Return the name of the kernels."""
        return library.text("openblas_get_corename")

    @classmethod
    def threading(cls, library: Library) -> str:
        """Return what the build says, and which OpenMP it is."""
        model = cls._PARALLEL[library.number("openblas_get_parallel")]
        return "libgomp" if model == "OpenMP" and library.runs_on_libgomp() else model

    @classmethod
    def thread_routines(cls, library: Library) -> Threads | None:
        """Return OpenMP's own where it is used: they set the number for the calling thread."""
        model = cls.threading(library)
        if model == "none":
            return None
        return OPENMP if model in ("libgomp", "OpenMP") else cls.threads


OPENMP = Threads("omp_set_num_threads", "omp_get_max_threads")


class MKL(Vendor):
    """Intel oneAPI Math Kernel Library."""

    name = "mkl"
    title = "MKL"
    files = r"libmkl_rt\.(so(\.\d+)*|\d*\.?dylib)"
    places = ("{MKLROOT}/lib", "{MKLROOT}/lib/intel64", "/opt/intel/oneapi/mkl/latest/lib*")
    how_to_get = "pip install mkl (x86-64)"
    marks = ("MKL_Get_Version_String",)
    threads = Threads("MKL_Set_Num_Threads", "MKL_Get_Max_Threads")
    _INTEL_LAYER: ClassVar = 0

    @classmethod
    def prepare(cls, library: Library) -> None:
        """Choose Intel's threads: what MKL chooses depends on what else is in the process."""
        if not os.environ.get("MKL_THREADING_LAYER"):
            routine = library.require("MKL_Set_Threading_Layer")
            ffi.cast("int (*)(int)", routine)(cls._INTEL_LAYER)

    @classmethod
    def version(cls, library: Library) -> str:
        """Return the number in the text of the version."""
        text = ffi.new("char[]", 256)
        routine = library.find_exactly("MKL_Get_Version_String")
        ffi.cast("void (*)(char *, int)", routine)(text, len(text) - 1)
        found = re.search(r"Version ([\d.]+)", ffi.string(text).decode(errors="replace"))
        return found[1] if found else ""

    @classmethod
    def threading(cls, library: Library) -> str:
        """Return the layer that is in use; the environment or MKL itself may have chosen GNU's."""
        routine = ffi.cast("int (*)(int)", library.require("MKL_Set_Threading_Layer"))
        return {0: "intel", 1: "none", 3: "libgomp"}.get(routine(cls._INTEL_LAYER), "its own")


class BLIS(Vendor):
    """BLIS, https://github.com/flame/blis."""

    name = "blis"
    title = "BLIS"
    files = r"libblis(64|-mt)?\.(so(\.\d+)*|dylib)"
    how_to_get = "apt install libblis4-pthread"
    marks = ("bli_info_get_version_str",)
    threads: ClassVar[Threads] = Threads(
        "bli_thread_set_num_threads", "bli_thread_get_num_threads", wide=True
    )
    scales_sums = True

    @classmethod
    def prepare(cls, library: Library) -> None:
        """Let it use all processors: it uses one unless it is told."""
        get = ffi.cast("int64_t (*)(void)", library.require(cls.threads.get))
        if get() < 1:
            set_ = ffi.cast("void (*)(int64_t)", library.require(cls.threads.set))
            set_(available_processors())

    @classmethod
    def version(cls, library: Library) -> str:
        """Return the version, without the name that AOCL puts before it."""
        return library.text("bli_info_get_version_str").removeprefix("AOCL-BLIS ").split(",")[0]

    @classmethod
    def core(cls, library: Library) -> str:
        """Return the name of the configuration."""
        routine = library.find_exactly("bli_arch_string")
        if routine == ffi.NULL:
            return ""
        text = ffi.cast("char *(*)(int)", routine)(library.number("bli_arch_query_id"))
        return str(ffi.string(text).decode(errors="replace"))

    @classmethod
    def threading(cls, library: Library) -> str:
        """Return what the build says, and which OpenMP it is."""
        if library.number("bli_info_get_enable_openmp"):
            return "libgomp" if library.runs_on_libgomp() else "OpenMP"
        return "pthreads" if library.number("bli_info_get_enable_pthreads") else "none"


class AOCL(BLIS):
    """AMD Optimizing CPU Libraries: AMD's BLIS."""

    name = "aocl"
    title = "AOCL-BLIS"
    anywhere = False
    scales_sums = False  # for all that is known
    places = ("{AOCL_ROOT}/lib", "/opt/AMD/aocl/*/*/lib*", "/opt/AMD/aocl/*/lib*")
    how_to_get = "AMD's installer of AOCL (x86-64), into /opt/AMD/aocl"
    marks = ("bli_aocl_enable_instruction_query",)


class NVPL(Vendor):
    """NVIDIA Performance Libraries, for aarch64."""

    name = "nvpl"
    title = "NVPL"
    files = r"libnvpl_blas_i?lp64_\w+\.so(\.\d+)*"
    places = ("/opt/nvidia/nvpl*/lib", "/opt/nvidia/hpc_sdk/Linux_aarch64/*/math_libs/nvpl/lib")
    wheels = ("nvpl/lib",)
    how_to_get = "pip install nvpl-blas (aarch64)"
    marks = ("nvpl_blas_get_version",)
    threads = Threads("nvpl_blas_set_num_threads", "nvpl_blas_get_max_threads")

    @classmethod
    def version(cls, library: Library) -> str:
        """Return the version, which is one number of two digits a part."""
        number = library.number("nvpl_blas_get_version")
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


class NVHPC(OpenBLAS):
    """The BLAS of NVIDIA's HPC compilers, which is built from OpenBLAS."""

    name = "nvhpc"
    title = "NVHPC"
    files = r"libblas(_i?lp64)?\.so(\.\d+)*"
    places = ("/opt/nvidia/hpc_sdk/Linux_*/*/compilers/lib",)
    anywhere = False
    scales_sums = False  # for all that is known
    wheels = ()
    how_to_get = "NVIDIA's installer of the HPC SDK, into /opt/nvidia/hpc_sdk"

    @classmethod
    def made(cls, library: Library) -> bool:
        """Tell by the folder."""
        return "hpc_sdk" in library.path.parts


class ATLAS(Vendor):
    """ATLAS, http://math-atlas.sourceforge.net; the number of threads is fixed when it is built."""

    name = "atlas"
    title = "ATLAS"
    files = r"lib(pt)?cblas\.so(\.\d+)*|libtatlas\.so(\.\d+)*|libsatlas\.so(\.\d+)*"
    how_to_get = "apt install libatlas3-base"
    marks = ("ATL_buildinfo", "ATL_sgemm", "ATL_xerbla")


class FlexiBLAS(Vendor):
    """FlexiBLAS, https://www.mpi-magdeburg.mpg.de/projects/flexiblas, which passes calls on."""

    name = "flexiblas"
    title = "FlexiBLAS"
    files = r"libflexiblas(64)?\.so(\.\d+)*"
    how_to_get = "dnf install flexiblas"
    marks = ("flexiblas_get_version",)
    threads = Threads("flexiblas_set_num_threads", "flexiblas_get_num_threads")

    @classmethod
    def version(cls, library: Library) -> str:
        """Return the version of FlexiBLAS itself."""
        return library.numbers("flexiblas_get_version")

    @classmethod
    def threading(cls, library: Library) -> str:
        """Return what the library runs on that it passes calls to, by the name of that."""
        name = ffi.new("char[]", 256)
        routine = library.find_exactly("flexiblas_current_backend")
        if routine != ffi.NULL:
            ffi.cast("int (*)(char *, size_t)", routine)(name, len(name) - 1)
        return "libgomp" if b"OPENMP" in ffi.string(name).upper() else "its own"


class ArmPL(Vendor):
    """Arm Performance Libraries, for aarch64."""

    name = "armpl"
    title = "Arm PL"
    files = r"libarmpl(_i?lp64)?(_mp)?\.(so|dylib)"
    places = ("{ARMPL_DIR}/lib", "/opt/arm/armpl*/lib")
    how_to_get = "Arm's installer (aarch64), into /opt/arm"
    marks = ("armplversion",)

    @classmethod
    def version(cls, library: Library) -> str:
        """Return the version."""
        return library.numbers("armplversion")

    @classmethod
    def thread_routines(cls, library: Library) -> Threads | None:
        """Return OpenMP's, which the builds for several threads use."""
        return OPENMP if library.has(OPENMP.set) else None


ACCELERATE = Path("/System/Library/Frameworks/Accelerate.framework/Accelerate")


class Accelerate(Vendor):
    """Apple's Accelerate; it uses the threads that it finds right."""

    name = "accelerate"
    title = "Accelerate"
    files = r"Accelerate"
    anywhere = False
    how_to_get = "part of macOS"
    marks = ("cblas_sgemm$NEWLAPACK", "BLASSetThreading")


class Reference(Vendor):
    """The reference BLAS of https://netlib.org, and every library that nobody else's marks tell."""

    name = "reference"
    title = "reference BLAS"
    files = r"lib(blas|cblas|blas64)\.(so(\.\d+)*|dylib)"
    how_to_get = "apt install libblas3"

    @classmethod
    def made(cls, library: Library) -> bool:
        """Take what is left."""
        return True


# The better first where nothing else decides; and those that have others' marks, too, before them.
VENDORS: tuple[type[Vendor], ...] = (
    FlexiBLAS,
    MKL,
    NVPL,
    NVHPC,
    ArmPL,
    Accelerate,
    OpenBLAS,
    AOCL,
    BLIS,
    ATLAS,
    Reference,
)
BY_NAME = {vendor.name: vendor for vendor in VENDORS}


def open_library(path: Path, shared: bool = False, parallel_for: Any = ffi.NULL) -> OpenLibrary:
    """Open a library, and learn how to call it.

    Parameters
    ----------
    path : Path
        Its absolute path.
    shared : bool
        Others use it in this process, so its settings stay as they are.
    parallel_for : cffi pointer
        Runs a task on several threads; where the library allows it, several may call it then.

    Raises
    ------
    UnusableLibraryError
        It cannot be opened, lacks a routine, or computes wrongly.
    """
    library = Library(path)
    vendor = next(each for each in VENDORS if each.made(library))
    if not shared:
        vendor.prepare(library)
    handle = ffi.new("shim_vendor *")
    handle.ilp64 = library.is_ilp64()
    for name in ("gemm", "gemv", "syrk", "gemm_batch_strided"):
        setattr(handle, name, library.table(f"cblas_?{name}"))
    dots = zip(library.table("cblas_?dot"), library.table("cblas_?dotu_sub"), strict=True)
    handle.dot = [real if real != ffi.NULL else complex_ for real, complex_ in dots]
    missing = [name for name in ("gemm", "gemv") if ffi.NULL in getattr(handle, name)]
    if missing:
        raise UnusableLibraryError(f"{path} lacks a cblas_?{missing[0]}")
    threads = vendor.thread_routines(library)
    _set_thread_routines(handle, library, threads)
    handle.most_threads = 1
    loses_nan = _loses_nan(handle, path)
    handle.seconds = lib.shim_seconds(handle, 1, _TIMED) / _TIMED**3
    threading = vendor.threading(library)
    opened = OpenLibrary(
        vendor=vendor,
        path=path,
        version=vendor.version(library),
        core=vendor.core(library),
        ilp64=bool(handle.ilp64),
        threading=threading,
        extras=tuple(name for name, any_of in _EXTRAS.items() if any(map(library.has, any_of))),
        loses_nan=loses_nan,
        mixes_parts=not (
            lib.shim_keeps_parts(handle, lib.SHIM_C) and lib.shim_keeps_parts(handle, lib.SHIM_Z)
        ),
        handle=handle,
    )
    opened.allow_libgomp_threads(False)
    if threading != "libgomp" and threads is not OPENMP:  # which sets that of one thread alone
        handle.parallel_for = parallel_for
    return opened


def _set_thread_routines(handle: Any, library: Library, threads: Threads | None) -> None:
    if threads is None:
        return
    routines = [
        next((each for each in (library.find(name), library.find_exactly(name)) if each), ffi.NULL)
        for name in (threads.set, threads.get)
    ]
    if ffi.NULL in routines:
        raise UnusableLibraryError(f"{library.path} lacks {threads.set} or {threads.get}")
    handle.set_threads, handle.get_threads = routines
    handle.wide_threads = threads.wide


def _loses_nan(handle: Any, path: Path) -> bool:
    """Try the routines; drop those that are wrong and can be done without.

    Raises
    ------
    UnusableLibraryError
        Products of small whole numbers are wrong.
    """
    for routine, name in (
        (lib.SHIM_DOT, "dot"),
        (lib.SHIM_SYRK, "syrk"),
        (lib.SHIM_BATCH, "gemm_batch_strided"),
    ):
        for type_ in range(lib.SHIM_TYPES):  # OpenBLAS 0.3.34 has two right and two wrong batches
            if lib.shim_check(handle, routine, type_) != lib.SHIM_RIGHT:
                getattr(handle, name)[type_] = ffi.NULL
    found = lib.SHIM_RIGHT
    for type_ in range(lib.SHIM_TYPES):
        found |= lib.shim_check(handle, lib.SHIM_GEMM, type_)
        found |= lib.shim_check(handle, lib.SHIM_GEMV, type_)
    if found & lib.SHIM_WRONG:
        raise UnusableLibraryError(f"{path} computes wrong products")
    return bool(found & lib.SHIM_LOSES_NAN)
