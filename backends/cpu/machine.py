"""What the operating system tells of the processor and of memory."""

import os
import platform
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["host_memory", "processor_features", "processor_name"]

# Where Linux tells of a processor's features, by architecture: an emulated one may see the file of
# its host. Then, by ggml's names of the features, the words for them.
_LINES = {"x86_64": "flags", "aarch64": "Features", "s390x": "features"}
_FEATURES = {
    "SSE3": "pni",
    "SSSE3": "ssse3",
    "AVX": "avx",
    "AVX_VNNI": "avx_vnni",
    "AVX2": "avx2",
    "F16C": "f16c",
    "FMA": "fma",
    "BMI2": "bmi2",
    "AVX512": "avx512f",
    "AVX512_VBMI": "avx512vbmi",
    "AVX512_VNNI": "avx512_vnni",
    "AVX512_BF16": "avx512_bf16",
    "AMX_INT8": "amx_int8",
    "NEON": "asimd",
    "ARM_FMA": "asimd",
    "FP16_VA": "asimdhp",
    "MATMUL_INT8": "i8mm",
    "SVE": "sve",
    "DOTPROD": "asimddp",
    "SME": "sme",
    "VXE": "vxe",
    "NNPA": "nnpa",
}


def _processor_lines(wanted: str) -> Iterator[str]:
    """Return what /proc/cpuinfo says under a name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == wanted:
            yield value.strip()


@cache
def processor_name() -> str:
    """Return the processor's model name, or the name of its architecture."""
    return next(_processor_lines("model name"), "") or platform.processor() or platform.machine()


@cache
def processor_features() -> dict[str, bool]:
    """Return which of ggml's features the processor has; False where the system does not say."""
    words = next(_processor_lines(_LINES.get(platform.machine(), "")), "").split()
    return {name: word in words for name, word in _FEATURES.items()}


def host_memory() -> tuple[int, int]:
    """Return the bytes of memory that are available and that there are, 0 where not known."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        pages = os.sysconf("SC_PHYS_PAGES") if "SC_PHYS_PAGES" in os.sysconf_names else 0
        return 0, pages * os.sysconf("SC_PAGE_SIZE")
    kibibytes = {name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines)}
    return kibibytes["MemAvailable"] * 1024, kibibytes["MemTotal"] * 1024
