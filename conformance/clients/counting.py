"""A device that counts the products it computes, to see that clients' products run on devices."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ggarray as xp
from ggarray._runtime import plugins

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from doubles import NumpyRegistry


@contextmanager
def counting_device() -> Iterator[list[object]]:
    """Have a device ``counting`` for a while; give the list of what it has computed."""
    registry = NumpyRegistry()
    xp.register_backend(registry)
    try:
        yield registry.counting.backend.computed
    finally:
        for device in registry.devices():
            plugins._devices.pop(device.name)
            plugins._streams.pop(device.name, None)
