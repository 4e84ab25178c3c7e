"""Backends known to this process: the built-in ones, installed ones, those registered at run time.

Installed backends are found by their entry points when devices are first needed. One that fails is
left out whole, and everything else works without it.
"""

import importlib
import logging
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from ggarray._runtime.thread_limits import register_with_threadpoolctl
from ggarray.interface import API_VERSION, Async, Backend, BackendDevice, BackendError, Registry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_BUILT_IN = ("ggarray.backends.cpu", "ggarray.backends.blas")
_GROUP = "ggarray.backends"
CPU = "cpu"

_logger = logging.getLogger("ggarray")
_lock = threading.RLock()
_complete = False  # all backends have been looked for
_generation = 0  # how often backends have been registered
_devices: dict[str, BackendDevice] = {}
_registries: dict[str, Registry] = {}  # by device
_known: dict[str, Registry] = {}  # by name
_streams: dict[str, Backend] = {}

failures: dict[str, str] = {}
"""Why an installed backend is left out, by its entry point and distribution."""


def register_backend(registry: Registry) -> None:
    """Make the devices of a backend known to this process; `ggarray.interface` shows a whole one.

    Installed backends need no such call: an entry point of the group ``ggarray.backends`` in the
    metadata of a distribution names a module's Registry object, as in
    ``"numpy" = "some_package.numpy:registry"``, and the module is imported when a process first
    needs a device. It must not create arrays meanwhile. A backend that fails there is left out: the
    logger ``ggarray`` warns, and ``ggarray.show_config()`` says why.

    Parameters
    ----------
    registry : ggarray.interface.Registry
        Its devices are named in ``ggarray.devices()`` from now on.

    Raises
    ------
    BackendError
        The registry was made for another version of the interface.
    TypeError
        It is no Registry object, or one of its devices is no BackendDevice.
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
    _register(_checked(registry))


def _checked(registry: Any) -> Registry:
    if not isinstance(registry, Registry):
        raise TypeError(f"a backend is a ggarray.interface.Registry object, not {registry!r}")
    if registry.api_version != API_VERSION:
        raise BackendError(
            f"backend {registry.name!r} was made for version {registry.api_version} of"
            f" ggarray.interface; this is version {API_VERSION}"
        )
    return registry


def _register(registry: Registry) -> None:
    global _generation
    with _lock:
        found: dict[str, BackendDevice] = {}
        for device in registry.devices():
            if not isinstance(device, BackendDevice):
                raise TypeError(f"backend {registry.name!r}: {device!r} is no BackendDevice")
            if device.name in _devices or device.name in found:
                raise ValueError(
                    f"backend {registry.name!r}: a device {device.name!r} is registered already"
                )
            found[device.name] = device
        lines = [f"device {name}: {each.description}" for name, each in found.items()]
        _devices.update(found)
        _registries.update(dict.fromkeys(found, registry))
        _known.setdefault(registry.name, registry)
        candidates.cache_clear()
        _generation += 1
    for line in lines:
        _logger.debug("%s", line)


def backend_devices() -> dict[str, BackendDevice]:
    """Return the devices of all backends by name, the CPU first; looks for them at first."""
    global _complete
    if not _complete:
        with _lock:
            if not _devices:  # else an installed backend asks while this thread imports it
                try:
                    for module in _BUILT_IN:
                        _register(_built_in(module))
                    _register_installed()
                    register_with_threadpoolctl()
                except BaseException:  # Ctrl-C, or no kernels: the next call looks again
                    _devices.clear()
                    _registries.clear()
                    _known.clear()
                    failures.clear()
                    raise
                _complete = True
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


def _register_installed() -> None:
    """Register what installed distributions bring, in the order of the registries' names.

    Of several builds of one backend the one with the best score is taken; if it fails, the next.
    """
    from importlib.metadata import entry_points  # slow, and `import ggarray` does without

    found: Iterable[EntryPoint] = ()
    with _left_out("all, as entry points cannot be read"):
        found = entry_points(group=_GROUP)
    builds = []
    for entry_point in found:
        distribution = entry_point.dist
        assert distribution is not None
        origin = f"{entry_point.name} of {distribution.name} {distribution.version}"
        with _left_out(origin):
            registry = _checked(entry_point.load())
            builds.append((str(registry.name), int(registry.score()), origin, registry))
    builds.sort(key=lambda build: (build[0], -build[1]))
    taken = set()
    for name, score, origin, registry in builds:
        if score <= 0 or name in taken:
            _logger.debug("installed backend not needed: %s, whose score is %d", origin, score)
            continue
        with _left_out(origin):
            _register(registry)
            taken.add(name)


@contextmanager
def _left_out(origin: str) -> Iterator[None]:
    """Note and log a failure within the block instead of raising it."""
    try:
        yield
    except (Exception, SystemExit) as error:
        failures[origin] = " ".join(f"{type(error).__name__}: {error}".split())
        traceback = _logger.isEnabledFor(logging.DEBUG)
        _logger.warning(
            "installed backend left out: %s: %s", origin, failures[origin], exc_info=traceback
        )


def failures_like(device: str) -> str:
    """Return the end of a message that there is no such device: failures that may be the reason.

    Their origins have a word in common with its name.
    """
    return "".join(
        f"; installed backend left out: {origin}: {error}"
        for origin, error in failures.items()
        if _words(origin) & _words(device)
    )


def _words(text: str) -> set[str]:
    return set(re.findall("[a-z]+", text.lower()))


def find_device(name: str) -> BackendDevice | None:
    """Return the device of a name, also one that its backend makes for that name; None if none.

    Raises
    ------
    BackendError
        It cannot be used.
    """
    device = backend_devices().get(name)
    registry = _known.get(name.partition(":")[0])
    if device is None and registry is not None:
        device = registry.find_device(name)
        if device is None:
            return None
        device.open()
        with _lock:
            device = _devices.setdefault(name, device)
            _registries.setdefault(name, registry)
    elif device is not None:
        device.open()
    return device


def registries() -> list[Registry]:
    """Return the registries of all backends."""
    backend_devices()
    return list(_known.values())


def registry_of(device: str) -> Registry:
    """Return the registry that has brought a device, for its extra functions."""
    backend_devices()
    return _registries[device]


def generation() -> int:
    """Return a number that changes whenever a backend is registered."""
    return _generation


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
                backend = _checked_stream(device)
                _streams[device.name] = backend
    return backend


def _checked_stream(device: BackendDevice) -> Backend:
    """Return a new stream of a device whose claims fit together."""
    memory = device.buffer_type
    if not memory.is_host and memory.device is not device:
        raise BackendError(
            f"device {device.name!r} has memory of type {memory.name!r}, which names another device"
        )
    backend = device.init_backend()
    if isinstance(backend, Async) != device.asynchronous:
        raise BackendError(
            f"device {device.name!r} says asynchronous = {device.asynchronous}, but its stream is"
            f" {'' if isinstance(backend, Async) else 'not '}Async"
        )
    return backend
