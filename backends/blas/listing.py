"""What libraries there are, as text; and which of them do not suit the processor."""

import os
from collections.abc import Iterator

from ggarray._runtime.table import aligned_table
from ggarray.backends.blas.discovery import Libraries
from ggarray.backends.blas.probe import Report
from ggarray.backends.blas.vendors import BY_NAME, VENDORS, Vendor
from ggarray.backends.cpu.machine import processor_features

# Generations of x86 processors by the vector instructions that they brought, and the names that
# libraries give to their kernels for them. Names that are not here are as good as any.
_FEATURES = ("SSE3", "AVX", "AVX2", "AVX512")
_CORES = (
    {"prescott", "core2", "penryn", "dunnington", "nehalem", "atom", "barcelona", "bobcat"}
    | {"athlon", "opteron", "opteron_sse3", "katmai", "coppermine", "northwood", "banias"}
    | {"generic"},
    {"sandybridge", "bulldozer", "piledriver", "steamroller"},
)

_COLUMNS = ("<", "<device", "<library", "<integers", "<threads", ">GFLOP/s", "<has", "<file")


def complaint(vendor: type[Vendor], core: str) -> str:
    """Return in a sentence that kernels are far below the processor, empty if they are not."""
    known = processor_features()
    best = max((i for i, name in enumerate(_FEATURES) if known.get(name)), default=-1)
    of_core = next((i for i, names in enumerate(_CORES) if core.lower() in names), best)
    if best - of_core < 2:
        return ""
    advice = f"a newer {vendor.title} may know the processor"
    if vendor.name == "openblas" and "OPENBLAS_CORETYPE" in os.environ:
        advice = "the environment variable OPENBLAS_CORETYPE has chosen them"
    elif vendor.name == "openblas":
        advice += ", or the environment variable OPENBLAS_CORETYPE=Haswell makes this one use AVX2"
    return (
        f"its kernels are those for {core}, but the processor has {_FEATURES[best]},"
        f" so it is several times slower than it could be: {advice}"
    )


def lines(libraries: Libraries) -> Iterator[str]:
    """Yield a table of the libraries that were found, and what brings those that were not."""
    yield (
        "BLAS libraries (* in this process); each is also the device blas:<file>;"
        " the speed is that of 256 x 256 float32 on one thread"
    )
    loaded = {opened.path for opened in libraries.loaded()}
    rows, remarks, named, reported = [], [], set(), set()
    for candidate, report in libraries.reports():
        path, name = candidate.path, candidate.vendor.name
        if isinstance(report, str):
            remarks.append(f"of no use: {report}")
            continue
        reported.add(report.vendor)
        mark = "*" if path in loaded or candidate.mapped else ""
        device = ""
        if name not in named and issubclass(BY_NAME[report.vendor], candidate.vendor):
            device = f"blas:{name}"
            named.add(name)
        rows.append((mark, device, *_facts(report), ", ".join(report.extras), str(path)))
        remark = complaint(BY_NAME[report.vendor], report.core)
        remarks += [f"{path}: {remark}"] if remark else []
        remarks += [f"{path} loses NaN: used for finite numbers only"] if report.loses_nan else []
    missing = [each for each in VENDORS if each.name not in {*libraries.candidates, *reported}]
    remarks += [f"no {vendor.title} found: {vendor.how_to_get}" for vendor in missing]
    for line in (*aligned_table(_COLUMNS, rows), *remarks):
        yield f"  {os.fsencode(line).decode(errors='replace')}"  # of names that are no text


def _facts(report: Report) -> tuple[str, ...]:
    title = " ".join(filter(None, (BY_NAME[report.vendor].title, report.version, report.core)))
    integers = "ILP64" if report.ilp64 else "LP64"
    return title, integers, report.threading, f"{report.gflops:.0f}"
