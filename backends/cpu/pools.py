"""Thread pools that streams may have to themselves."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any
from weakref import WeakSet

from ggarray.backends.cpu._kernels import ffi, lib
from ggarray.interface import Backend, BackendError

__all__ = ["ThreadPool"]

_lock = Lock()


class ThreadPool:
    """Threads for the work of one or more streams, instead of those that all others share.

    They sleep while there is nothing to do, and are started when they are first wanted; also in
    the child of a fork, where there are none at first. They end with `free`, or with this object.

    Parameters
    ----------
    n_threads : int
        At most so many compute together, the caller among them.

    Raises
    ------
    ValueError
        There are no pools of so many threads.
    """

    def __init__(self, n_threads: int) -> None:
        if not 1 <= n_threads <= lib.GG_MAX_THREADS:
            raise ValueError(
                f"a thread pool has 1 to {lib.GG_MAX_THREADS} threads, not {n_threads}"
            )
        pool = lib.gg_pool_new(n_threads)
        if pool == ffi.NULL:
            raise MemoryError(f"no memory for a pool of {n_threads} threads")
        self.n_threads = n_threads
        self._pool: Any = ffi.gc(pool, lib.gg_pool_free)
        self._streams: WeakSet[Backend] = WeakSet()
        self._serving = 0

    def __repr__(self) -> str:
        state = "freed" if self._pool is None else "paused" if self.paused else "ready"
        return f"<ThreadPool of {self.n_threads}, {state}>"

    def _alive(self) -> Any:
        if self._pool is None:
            raise BackendError("this thread pool has been freed")
        return self._pool

    @property
    def paused(self) -> bool:
        """True while the threads sleep at once when idle, rather than wait actively for a moment.

        The next computation on the pool ends it.
        """
        return bool(lib.gg_pool_is_paused(self._alive()))

    def give(self, stream: Backend) -> None:
        """Become a stream's pool, and resume.

        Raises
        ------
        BackendError
            The pool has been freed.
        """
        with _lock:
            lib.gg_pool_resume(self._alive())
            self._streams.add(stream)

    def take_back(self, stream: Backend) -> None:
        """Be a stream's pool no more, and pause."""
        with _lock:
            self._streams.discard(stream)
            lib.gg_pool_pause(self._alive())

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Have what this thread computes in the context computed by the pool."""
        with _lock:
            pool = self._alive()
            self._serving += 1
        before = lib.gg_pool_use(pool)
        try:
            yield
        finally:
            lib.gg_pool_use(before)
            with _lock:
                self._serving -= 1

    def free(self) -> None:
        """End the threads, and return when they have ended.

        Raises
        ------
        BackendError
            A stream uses the pool, or it has been freed.
        """
        with _lock:
            pool = self._alive()
            if self._serving or self._streams:
                raise BackendError(
                    f"a stream uses this thread pool of {self.n_threads}: give the stream another"
                    " one, or None, before it is freed"
                )
            self._pool = None
        ffi.release(pool)
