"""Devices: where products run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Self

from ggarray._runtime.plugins import CPU, backend_devices, failures_like, find_device
from ggarray.interface.outcome import BackendError


class Warning(UserWarning):
    """Something a user must see; every warning of ggarray is one of these.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", xp.Warning)  # as errors, those of ggarray alone
    """


class Device(str):
    """A device: a hashable value, equal to its name.

    Parameters
    ----------
    name : str
        One of ``devices()``.

    Raises
    ------
    ValueError
        No device of this name is there (the message lists those that are), or it cannot be used.

    Examples
    --------
    >>> device = xp.Device("cpu")
    >>> device, device == "cpu", xp.ones(2).device is device
    (ggarray.Device('cpu'), True, True)
    """

    __slots__ = ()
    _known: "dict[str, Device]" = {}  # noqa: RUF012 (one object a name)
    _named: "dict[str, Device]" = {}  # noqa: RUF012 (by programs, so they are open)

    def __new__(cls, name: str) -> Self:
        """Return the one object of this name."""
        device = cls._named.get(name)
        if device is None:
            try:
                found = find_device(name)
            except BackendError as error:
                raise ValueError(f"device {str(name)!r} cannot be used: {error}") from error
            if found is None:
                raise ValueError(
                    f"unknown device {str(name)!r}; the devices here are"
                    f" {', '.join(backend_devices())}{failures_like(name)}"
                )
            device = cls._named.setdefault(str(name), cls.listed(name))
        return device  # type: ignore[return-value]  # all are of this class

    @classmethod
    def listed(cls, name: str) -> "Device":
        """Return the object of a device that is there; unlike `Device` this opens nothing."""
        device = cls._known.get(name)
        return device or cls._known.setdefault(str(name), super().__new__(cls, name))

    def __repr__(self) -> str:
        return f"ggarray.Device({str(self)!r})"

    def __str__(self) -> str:
        return str.__str__(self)

    def __reduce__(self) -> tuple[type["Device"], tuple[str]]:
        return Device, (str(self),)


_process: Device | None = None
_local: ContextVar[Device | None] = ContextVar("ggarray_device", default=None)


def devices() -> tuple[Device, ...]:
    """Return the devices of this machine.

    Returns
    -------
    tuple of Device
        ``cpu``, then ``blas`` and ``blas:<vendor>`` where a vendor's library was found, then those
        of installed backends, then those of `register_backend`.

    Examples
    --------
    >>> xp.devices()[0]
    ggarray.Device('cpu')
    """
    return tuple(map(Device.listed, list(backend_devices())))


def as_device(device: str | None) -> Device:
    """Return `device` as a Device, the default one for None.

    Raises
    ------
    ValueError
        An unknown name; the message lists the known.
    TypeError
        Neither a device nor a string.
    """
    if device is None:
        return get_default_device()
    if type(device) is Device:
        return Device._named.get(device) or Device(device)
    if not isinstance(device, str):
        raise TypeError(f"a device is a ggarray.Device or its name, not {device!r}")
    return Device(device)


def get_default_device() -> Device:
    """Return the device on which arrays are created unless they name one.

    Returns
    -------
    Device
        What `default_device` or `set_default_device` set, else ``GGARRAY_DEVICE``, else ``blas``
        where a vendor's library was found, else ``cpu``.

    Raises
    ------
    ValueError
        ``GGARRAY_DEVICE`` names no device that is here.

    Examples
    --------
    >>> xp.get_default_device()
    ggarray.Device('cpu')
    """
    local = _local.get()
    if local is not None:
        return local
    return _process if _process is not None else _initial()


def set_default_device(device: str) -> None:
    """Set the device on which the process creates arrays from now on.

    Parameters
    ----------
    device : Device or str
        One of ``devices()``.

    Raises
    ------
    ValueError
        An unknown device; the message lists the known.
    TypeError
        Neither a device nor a string.

    Examples
    --------
    >>> xp.set_default_device("cpu")
    >>> xp.ones(2).device
    ggarray.Device('cpu')
    """
    global _process
    _process = Device(as_device(device))


@contextmanager
def default_device(device: str) -> Iterator[Device]:
    """Set the default device within a ``with`` block, for this thread or asyncio task alone.

    Parameters
    ----------
    device : Device or str
        One of ``devices()``.

    Returns
    -------
    context manager of Device
        Its ``as`` gives the device now in force.

    Yields
    ------
    Device
        The device now in force.

    Raises
    ------
    ValueError
        An unknown device; the message lists the known.
    TypeError
        Neither a device nor a string.

    Examples
    --------
    >>> with xp.default_device("cpu") as device:
    ...     x = xp.ones(2)
    >>> x.device is device
    True
    """
    chosen = Device(as_device(device))
    token = _local.set(chosen)
    try:
        yield chosen
    finally:
        _local.reset(token)


def _initial() -> Device:
    global _process
    name = os.environ.get("GGARRAY_DEVICE")
    if not name:
        _process = Device("blas" if "blas" in backend_devices() else CPU)
        return _process
    try:
        _process = Device(name)
    except ValueError as error:
        raise ValueError(f"environment variable GGARRAY_DEVICE: {error}") from None
    return _process


def _host_rank(device: str) -> int | None:
    """Return the place of a device among those that share the host's arrays; None for others."""
    if device == CPU:
        return 0
    if device == "blas":
        return 1
    return 2 if device.startswith("blas:") else None


@cache
def join(a: Device, b: Device) -> Device:
    """Return the device of an operation on arrays of devices `a` and `b`: the more specific one.

    Raises
    ------
    ValueError
        They do not mix; the message names ``to_device``.
    """
    if a is b:
        return a
    rank_a, rank_b = _host_rank(a), _host_rank(b)
    if rank_a is None or rank_b is None or rank_a == rank_b:
        raise ValueError(
            f"arrays on devices {str(a)!r} and {str(b)!r} do not mix:"
            " move one of them with to_device first"
        )
    return a if rank_a > rank_b else b
