"""What is here: versions, devices, threads and options, as text."""

import platform
from collections.abc import Iterator

import numpy as np

from ggarray._runtime.devices import devices, get_default_device
from ggarray._runtime.options import get_options
from ggarray._runtime.plugins import backend_devices, failures
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
    options lazy=True, ...
    devices (* the default)
    * cpu ...
    """
    print(config_text())


def config_text() -> str:
    """Return what `show_config` prints."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield f"ggarray {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    yield f"threads {get_num_threads()} of {available_processors()} processors"
    yield "options " + ", ".join(f"{name}={value}" for name, value in get_options().items())
    yield "devices (* the default)"
    known = backend_devices()
    for name in devices():
        device = known[name]
        mark = "*" if name is get_default_device() else " "
        free, total = device.memory()
        memory = f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free" if total else ""
        yield f"{mark} {name:<16} {device.type.name:<6} {memory:<24} {device.description}"
    if failures:
        yield "installed backends left out"
        yield from (f"  {origin}: {error}" for origin, error in failures.items())
