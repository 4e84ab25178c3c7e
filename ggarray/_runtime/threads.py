"""How many threads a backend may use."""

import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

_process: int | None = None
_local: ContextVar[int | None] = ContextVar("ggarray_num_threads", default=None)

caps: dict[int, int] = {}
"""Limits from outside by the thread that has set them; the lowest holds, and for all threads.

Each thread writes its own, so limits of several threads may overlap and end in any order.
"""


def get_num_threads() -> int:
    """Return the number of threads that products use.

    Returns
    -------
    int
        What `num_threads` or `set_num_threads` set, else ``GGARRAY_NUM_THREADS``, else as many
        processors as the process's affinity and its control group's quota allow, but no more than
        ``OMP_NUM_THREADS``. At most a limit that threadpoolctl has set.

    Raises
    ------
    ValueError
        ``GGARRAY_NUM_THREADS`` is not a whole number from 1 up.

    Examples
    --------
    >>> with xp.num_threads(1):
    ...     xp.get_num_threads()
    1
    """
    n = _local.get()
    if n is None:
        n = _process if _process is not None else _default()
    return min(n, *caps.values()) if caps else n


def set_num_threads(n: int) -> None:
    """Set the number of threads of the process.

    Parameters
    ----------
    n : int
        At least 1. More than the processors allowed is accepted, and of no use.

    Raises
    ------
    ValueError
        `n` is less than 1.
    TypeError
        `n` is not an integer.

    Examples
    --------
    >>> xp.set_num_threads(2)
    >>> xp.get_num_threads()
    2
    """
    global _process
    _process = _checked(n)


@contextmanager
def num_threads(n: int) -> Iterator[None]:
    """Set the number of threads within a ``with`` block, for this thread or asyncio task alone.

    Parameters
    ----------
    n : int
        At least 1.

    Returns
    -------
    context manager
        The number before is back in force after the block.

    Raises
    ------
    ValueError
        `n` is less than 1.
    TypeError
        `n` is not an integer.

    Examples
    --------
    >>> with xp.num_threads(1):
    ...     xp.evaluate(xp.ones((2, 2)) @ xp.ones((2, 2)))
    """
    token = _local.set(_checked(n))
    try:
        yield
    finally:
        _local.reset(token)


def _checked(n: int) -> int:
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"the number of threads is at least 1, not {n}")
    return n


@cache
def _default() -> int:
    text = os.environ.get("GGARRAY_NUM_THREADS")
    if not text:  # joblib divides the processors among its workers by this variable of OpenMP's
        divided = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        processors = available_processors()
        return min(processors, int(divided) or processors) if divided.isdecimal() else processors
    try:
        return _checked(int(text))
    except ValueError:
        raise ValueError(
            f"environment variable GGARRAY_NUM_THREADS is a whole number from 1 up, not {text!r}"
        ) from None


def available_processors() -> int:
    """Return how many processors the affinity and the control group's quota allow, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        processors = len(os.sched_getaffinity(0))
    else:
        processors = os.cpu_count() or 1
    quota = _cgroup_quota(Path("/sys/fs/cgroup"))
    return max(1, min(processors, int(quota)) if quota is not None else processors)


def _cgroup_quota(root: Path) -> float | None:
    """Return the processors that the control group grants (version 2, then 1); None if no limit."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (root / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None  # "max" and -1 mean no limit
    return int(quota) / int(period)
