"""How computing ends."""

from enum import IntEnum


class BackendError(RuntimeError):
    """A backend failed, is not there, or was built for another version of this interface.

    Examples
    --------
    >>> issubclass(xp.BackendError, RuntimeError)
    True
    """


class Status(IntEnum):
    """Outcome of a computation; anything but SUCCESS leaves the graph pending.

    Examples
    --------
    >>> from ggarray.interface import Status
    >>> Status.SUCCESS, Status.ABORTED
    (<Status.SUCCESS: 0>, <Status.ABORTED: 3>)
    """

    SUCCESS = 0
    FAILED = 1
    ALLOC_FAILED = 2
    ABORTED = 3
