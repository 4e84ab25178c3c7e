"""Options: one documented table, the process's settings, and a context manager."""

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, NamedTuple

_NOTHING: Mapping[str, Any] = MappingProxyType({})

_TRUE = {"1": True, "true": True, "on": True, "yes": True}
_FALSE = {"0": False, "false": False, "off": False, "no": False}
_SWITCH = {**_TRUE, **_FALSE}

REWRITES = ("dead_code", "copies", "common_subexpressions", "epilogues")
"""The rewrites of graphs that ``fuse`` chooses from, in the order in which they are made."""


def _switch(name: str, value: Any) -> bool:
    if isinstance(value, str) and value.lower() in _SWITCH:
        return _SWITCH[value.lower()]
    if isinstance(value, bool):
        return value
    raise ValueError(f"option {name} is True or False, not {value!r}")


def _whole(name: str, value: Any, least: int) -> int:
    try:
        number = int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise ValueError(f"option {name} is a whole number from {least} up, not {value!r}")
    return number


def _count(name: str, value: Any) -> int:
    return _whole(name, value, 1)


def _size(name: str, value: Any) -> int:
    return _whole(name, value, 0)


def _fallback(name: str, value: Any) -> str:
    if value not in ("cpu", "error"):
        raise ValueError(f"option {name} is 'cpu' or 'error', not {value!r}")
    return str(value)


def _count_or_none(name: str, value: Any) -> int | None:
    return None if value is None else _count(name, value)


def _rewrites(name: str, value: Any) -> frozenset[str]:
    if isinstance(value, str) and value.lower() not in _SWITCH:
        chosen: Iterable[Any] = map(str.strip, value.split(","))
    elif isinstance(value, (set, frozenset, list, tuple)):
        chosen = value
    elif isinstance(value, (str, bool)):
        chosen = REWRITES if _switch(name, value) else ()
    else:
        chosen = (None,)
    names = frozenset(chosen)
    if not names.issubset(REWRITES):
        raise ValueError(
            f"option {name} is True, False or a set of {', '.join(REWRITES)}, not {value!r}"
        )
    return names


class Option(NamedTuple):
    """One row of the table: default, check, environment variable, meaning."""

    default: Any
    check: Callable[[str, Any], Any]
    environment: str | None
    meaning: str


OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        "lazy": Option(True, _switch, "GGARRAY_LAZY", "record products instead of computing them"),
        "max_pending_nodes": Option(
            10_000, _count, None, "compute everything pending when more nodes wait than this"
        ),
        "max_pending_bytes": Option(
            256 << 20, _count, None, "... or when they keep more unheld memory alive than this"
        ),
        "fallback": Option(
            "cpu", _fallback, None, "what becomes of a product that its device's backend refuses"
        ),
        "source_lines": Option(
            True, _switch, None, "name the line that recorded an operation when computing it fails"
        ),
        "memory_limit": Option(
            None, _count_or_none, None, "refuse an evaluation that takes more bytes than this"
        ),
        "fuse": Option(
            frozenset(REWRITES), _rewrites, "GGARRAY_FUSE", "rewrites of graphs that are made"
        ),
        "weight_cache": Option(
            1 << 30,
            _size,
            None,
            "bytes of other forms of constants (copies in the memories of devices, decoded weights)"
            " that are kept from one evaluation to the next",
        ),
        "libgomp_threads": Option(
            False, _switch, None, "vendor libraries on libgomp use threads, and hang after a fork"
        ),
    }
)


class Settings(NamedTuple):
    """A value for each option of the table."""

    lazy: bool
    max_pending_nodes: int
    max_pending_bytes: int
    fallback: str
    source_lines: bool
    memory_limit: int | None
    fuse: frozenset[str]
    weight_cache: int
    libgomp_threads: bool


_process: Settings | None = None
_local: ContextVar[Mapping[str, Any]] = ContextVar("ggarray_options", default=_NOTHING)


def settings() -> Settings:
    """Return the options in force here."""
    local = _local.get()
    process = _process if _process is not None else _read_environment()
    return process._replace(**local) if local else process


def _read_environment() -> Settings:
    global _process
    _process = Settings(**{name: _initial(name) for name in OPTIONS})
    return _process


def _initial(name: str) -> Any:
    option = OPTIONS[name]
    text = os.environ.get(option.environment) if option.environment else None
    if not text:
        return option.default
    try:
        return option.check(name, text)
    except ValueError as error:
        raise ValueError(f"environment variable {option.environment}: {error}") from None


def _checked(chosen: Mapping[str, Any]) -> dict[str, Any]:
    for name in chosen:
        if name not in OPTIONS:
            raise ValueError(f"unknown option {name!r}; the options are {', '.join(OPTIONS)}")
    return {name: OPTIONS[name].check(name, value) for name, value in chosen.items()}


def get_options() -> dict[str, Any]:
    """Return the options in force here, by name.

    Returns
    -------
    dict
        A copy; change options with `set_options` or `options`.

    Examples
    --------
    >>> xp.get_options()["max_pending_nodes"]
    10000
    """
    return settings()._asdict()


def set_options(**chosen: Any) -> None:
    """Set options for the process.

    Parameters
    ----------
    **chosen
        ``lazy`` (bool, default True): record products instead of computing them at the call;
        ``max_pending_nodes`` (int, 10,000) and ``max_pending_bytes`` (int, 256 MiB): recording
        computes everything pending once more nodes wait, or once they keep more memory alive that
        the program itself no longer holds; ``memory_limit`` (int or None, the default): an
        evaluation that takes more bytes raises MemoryError before anything is computed;
        ``fallback`` ("cpu", the default, or "error"): our kernels compute a product that the
        backend of its device does not take, or evaluation raises BackendError instead;
        ``source_lines`` (bool, True): an error while computing has a note that names the file and
        line which recorded the operation;
        ``fuse`` (bool or set of str, True): which rewrites are made before what was recorded is
        computed, all or none or those named, also in one string with commas between:
        ``dead_code`` (what nobody needs is left out), ``copies`` (products read the original
        instead), ``common_subexpressions`` (equal operations are computed once), ``epilogues``
        (scaling, bias and ``astype`` become parts of a product); `get_options` has a frozenset;
        ``weight_cache`` (int, 1 GiB): bytes of other forms of constants that are kept from one
        evaluation to the next: copies in the memories of devices, and quantized weights decoded
        for a library; ``libgomp_threads`` (bool, False): vendor libraries that are built on GNU's
        OpenMP run on several threads, too; they hang in a child that is forked afterwards.

    Raises
    ------
    ValueError
        An unknown name of an option or rewrite (the message lists the known), or a value out of
        range; nothing is set.

    Examples
    --------
    >>> xp.set_options(max_pending_nodes=10_000)
    >>> xp.set_options(eager=True)
    Traceback (most recent call last):
        ...
    ValueError: unknown option 'eager'; the options are lazy, max_pending_nodes, max_pending_bytes,
        fallback, source_lines, memory_limit, fuse, weight_cache, libgomp_threads
    """
    global _process
    _process = (_process or _read_environment())._replace(**_checked(chosen))


@contextmanager
def options(**chosen: Any) -> Iterator[None]:
    """Set options within a ``with`` block, for this thread or asyncio task alone.

    Parameters
    ----------
    **chosen
        As for `set_options`.

    Returns
    -------
    context manager
        The options before are back in force after the block.

    Raises
    ------
    ValueError
        As `set_options`.

    Examples
    --------
    >>> with xp.options(lazy=False):
    ...     product = xp.ones((2, 2)) @ xp.ones((2, 2))
    >>> xp.is_pending(product)
    False
    """
    token = _local.set({**_local.get(), **_checked(chosen)})
    try:
        yield
    finally:
        _local.reset(token)
