"""Backends known to this process: the built-in ones and those registered at run time."""

import importlib
import logging
import threading
from functools import cache

from ggarray.interface import API_VERSION, Backend, BackendDevice, BackendError, Registry

# In the order of preference; the CPU comes last in every choice, and is always able.
_BUILT_IN = ("ggarray.backends.cpu", "ggarray.backends.blas")
CPU = "cpu"

_logger = logging.getLogger("ggarray")
_lock = threading.RLock()
_devices: dict[str, BackendDevice] = {}
_streams: dict[str, Backend] = {}


def register_backend(registry: Registry) -> None:
    """Make the devices of a backend known to this process; `ggarray.interface` shows a whole one.

    Parameters
    ----------
    registry : ggarray.interface.Registry
        Its devices are named in ``ggarray.devices()`` from now on.

    Raises
    ------
    BackendError
        The registry was made for another version of the interface.
    ValueError
        A device of that name is known already; nothing is registered.

    Examples
    --------
    >>> from ggarray.backends import cpu
    >>> xp.register_backend(cpu.registry)
    Traceback (most recent call last):
        ...
    ValueError: backend 'cpu': a device 'cpu' is registered already
    """
    backend_devices()
    _register(registry)


def _register(registry: Registry) -> None:
    if registry.api_version != API_VERSION:
        raise BackendError(
            f"backend {registry.name!r} was made for version {registry.api_version} of"
            f" ggarray.interface; this is version {API_VERSION}"
        )
    with _lock:
        found: dict[str, BackendDevice] = {}
        for device in registry.devices():
            if device.name in _devices or device.name in found:
                raise ValueError(
                    f"backend {registry.name!r}: a device {device.name!r} is registered already"
                )
            found[device.name] = device
        _devices.update(found)
        candidates.cache_clear()
    for name, device in found.items():
        _logger.debug("device %s: %s", name, device.description)


def backend_devices() -> dict[str, BackendDevice]:
    """Return the devices of all backends by name; looks for the built-in ones when first asked."""
    if CPU not in _devices:
        with _lock:
            if CPU not in _devices:
                for module in reversed(_BUILT_IN):
                    _register(_built_in(module))
                _devices[CPU] = _devices.pop(CPU)
    return _devices


def _built_in(module: str) -> Registry:
    try:
        registry: Registry = importlib.import_module(module).registry
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{error.name} is missing: ggarray's kernels have not been compiled here."
            " Install ggarray with pip install . (or pip install -e .)"
        ) from error
    return registry


@cache
def candidates(device: str) -> tuple[tuple[BackendDevice, ...], BackendDevice]:
    """Return who may compute nodes of this device, the best first, and the CPU, who always can."""
    known = backend_devices()
    own, cpu = known[device], known[CPU]
    return (() if own is cpu else (own,)), cpu


def stream(device: BackendDevice) -> Backend:
    """Return the stream of a device, made when first needed."""
    backend = _streams.get(device.name)
    if backend is None:
        with _lock:
            backend = _streams.get(device.name)
            if backend is None:
                backend = _streams[device.name] = device.init_backend()
    return backend
