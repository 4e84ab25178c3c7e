"""Asking for values, and whether they are there."""

from ggarray._array import Array
from ggarray._graph.execute import evaluate as _evaluate
from ggarray._namespace._calls import require


def evaluate(*arrays: Array) -> None:
    """Compute pending arrays now, together.

    Parameters
    ----------
    *arrays : Array
        Those that are not pending stay as they are.

    Raises
    ------
    BackendError, MemoryError, KeyboardInterrupt
        The computation failed or was interrupted: all arrays are pending as before.
    """
    require(*arrays)
    awaited = (x._awaited() for x in arrays)
    _evaluate([node for node in awaited if node is not None])


def is_pending(x: Array, /) -> bool:
    """Tell whether the value of `x` has not been computed yet."""
    require(x)
    return x._awaited() is not None
