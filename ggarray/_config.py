"""What is here: versions, devices, threads and options, as text."""

import platform
from collections.abc import Iterator

import numpy as np

from ggarray import _weight_cache
from ggarray._graph import plan_cache
from ggarray._graph.memory import kept_bytes
from ggarray._graph.residence import resident_bytes
from ggarray._runtime.devices import devices, get_default_device
from ggarray._runtime.options import get_options
from ggarray._runtime.plugins import CPU, backend_devices, failures, registries, registry_of
from ggarray._runtime.threads import available_processors, get_num_threads
from ggarray._version import __version__


def show_config() -> None:
    """Print the versions, devices, threads and options in force here.

    ``python -m ggarray`` prints the same.

    Examples
    --------
    >>> xp.show_config()  # doctest: +ELLIPSIS
    ggarray ..., Python ..., NumPy ...
    threads ... of ... processors
    kernels ...
    options lazy=True, ...
    devices (* the default)
    * cpu ...
    plans ...
    memory kept ...
    """
    print(config_text())


def config_text() -> str:
    """Return what `show_config` prints."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield f"ggarray {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    yield f"threads {get_num_threads()} of {available_processors()} processors"
    yield from _features()
    yield "options " + ", ".join(f"{name}={_text(value)}" for name, value in get_options().items())
    yield "devices (* the default)"
    known = backend_devices()
    for name in devices():
        device = known[name]
        mark = "*" if name is get_default_device() else " "
        free, total = device.memory()
        memory = f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free" if total else ""
        yield f"{mark} {name:<16}  {device.type.name:<6} {memory:<24} {device.description}"
    for registry in registries():
        yield from registry.report()
    yield f"plans {plan_cache.info()}"
    yield (
        f"memory kept for plans {_mebibytes(kept_bytes())},"
        f" for constants on devices {_mebibytes(resident_bytes())},"
        f" for decoded weights {_mebibytes(_weight_cache.kept_bytes(np.ndarray))}"
    )
    if failures:
        yield "installed backends left out"
        yield from (f"  {origin}: {error}" for origin, error in failures.items())


def _features() -> Iterator[str]:
    """Yield which instruction set ggarray's own kernels use, and what else the processor has."""
    get_features = registry_of(CPU).get_proc_address("get_features")
    if get_features is not None:
        features = get_features()
        names = [name for name, value in features.items() if value is True]
        yield f"kernels {features['isa']}; the processor has {' '.join(names)}"


def _text(value: object) -> str:
    """Return the value of an option; names of a set in alphabetical order."""
    return "+".join(sorted(value)) or "none" if isinstance(value, frozenset) else str(value)


def _mebibytes(nbytes: int) -> str:
    return f"{nbytes / 2**20:.1f} MiB"
