"""A thread for calls that take long, so that Ctrl-C is answered while one waits for them.

What is computed there ends by itself after an interrupt; the memory that it works in is not used
again before that. Signal handlers may come here while this thread waits, so waiting takes no lock
that they could need: each waits for a lock of its own.
"""

import atexit
import contextvars
import os
import threading
from _thread import LockType, allocate_lock, get_ident
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class _Job(Generic[_T]):
    """A call, what it returned or raised, and whether it has ended."""

    def __init__(self, call: Callable[[], _T]) -> None:
        self._call: Callable[[], _T] | None = call
        self._context = contextvars.copy_context()
        self._returned: list[_T] = []
        self._raised: BaseException | None = None
        self._waiting: list[LockType] = []
        self.has_ended = False

    def run(self) -> None:
        """Make the call, unless that is done: interrupted, `wait` may ask for it once more."""
        call, self._call = self._call, None  # which may hold much
        if call is None:
            return
        try:
            self._returned.append(self._context.run(call))
        except BaseException as error:
            self._raised = error
        finally:
            del call
            self.has_ended = True
            for lock in list(self._waiting):
                lock.release()

    def wait(self) -> None:
        """Return when the call has ended."""
        lock = allocate_lock()
        lock.acquire()
        self._waiting.append(lock)
        if not self.has_ended:  # else it may have been too late for a release
            lock.acquire()

    def outcome(self) -> _T:
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised
        return self._returned.pop()


_jobs: SimpleQueue[_Job[Any]] | None = None
_last: _Job[Any] | None = None
_thread: int | None = None
_over = False  # the interpreter ends, and its other threads with it


def run(call: Callable[[], _T]) -> _T:
    """Return what a call returns, made on another thread if this is the one that signals come to.

    Raises
    ------
    KeyboardInterrupt
        Or what else a signal handler raises; the call may not have ended.
    """
    global _jobs, _last
    if _over or threading.current_thread() is not threading.main_thread():
        return call()
    if _jobs is None:
        _jobs = SimpleQueue()
        threading.Thread(target=_work, args=(_jobs,), name="ggarray", daemon=True).start()
    job = _Job(call)
    _last = job
    _jobs.put(job)
    job.wait()
    return job.outcome()


def is_here() -> bool:
    """Tell whether this is that thread: a finalizer may want a value in the middle of a call."""
    return _thread is not None and get_ident() == _thread


def is_busy() -> bool:
    """Tell whether a call has not ended, as waiting for it was interrupted."""
    return _last is not None and not _last.has_ended


def wait() -> None:
    """Return when all calls have ended."""
    if _last is not None and _jobs is not None and not _last.has_ended:
        _jobs.put(_last)  # an interrupt may have come before that was done
        _last.wait()


def _work(jobs: SimpleQueue[_Job[Any]]) -> None:
    global _thread
    _thread = get_ident()
    while True:
        jobs.get().run()


def _forget() -> None:
    """Start anew in the child of a fork, which has no other threads."""
    global _jobs, _last, _thread
    _jobs = _last = _thread = None


def _end() -> None:
    """Let the last call end before libraries are closed, and make no others aside."""
    global _over
    _over = True
    wait()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait, after_in_child=_forget)
