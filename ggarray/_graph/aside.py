"""A thread for calls that take long, so that Ctrl-C is answered while one waits for them.

What is computed there ends by itself after an interrupt; the memory that it works in is not used
again before that.
"""

import contextvars
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class _Job(Generic[_T]):
    """A call, what it returned or raised, and whether it has ended."""

    def __init__(self, call: Callable[[], _T]) -> None:
        self._call = call
        self._context = contextvars.copy_context()
        self._returned: list[_T] = []
        self._raised: BaseException | None = None
        self.ended = threading.Event()

    def run(self) -> None:
        try:
            self._returned.append(self._context.run(self._call))
        except BaseException as error:
            self._raised = error
        finally:
            self.ended.set()

    def outcome(self) -> _T:
        if self._raised is not None:
            raise self._raised
        return self._returned[0]


_jobs: SimpleQueue[_Job[Any]] | None = None
_last: _Job[Any] | None = None


def run(call: Callable[[], _T]) -> _T:
    """Return what a call returns, made on another thread if this is the one that signals come to.

    Raises
    ------
    KeyboardInterrupt
        Or what else a signal handler raises; the call may not have ended.
    """
    global _jobs, _last
    if threading.current_thread() is not threading.main_thread():
        return call()
    if _jobs is None:
        _jobs = SimpleQueue()
        threading.Thread(target=_work, args=(_jobs,), name="ggarray", daemon=True).start()
    job = _Job(call)
    _last = job
    _jobs.put(job)
    job.ended.wait()
    return job.outcome()


def is_busy() -> bool:
    """Tell whether a call has not ended, as waiting for it was interrupted."""
    return _last is not None and not _last.ended.is_set()


def wait() -> None:
    """Return when all calls have ended."""
    if _last is not None:
        _last.ended.wait()


def _work(jobs: SimpleQueue[_Job[Any]]) -> None:
    while True:
        jobs.get().run()


def _forget() -> None:
    """Start anew in the child of a fork, which has no other threads."""
    global _jobs, _last
    _jobs = _last = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait, after_in_child=_forget)
