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
    TypeError
        One is no Array.

    Examples
    --------
    >>> a = xp.ones((2, 2))
    >>> x, y = a @ a, a @ a.T
    >>> xp.evaluate(x, y)
    >>> xp.is_pending(x), xp.is_pending(y)
    (False, False)
    """
    require(*arrays)
    awaited = (x._awaited() for x in arrays)
    _evaluate([node for node in awaited if node is not None])


def is_pending(x: Array, /) -> bool:
    """Tell whether the value of `x` has not been computed yet.

    Parameters
    ----------
    x : Array
        Of any dtype; a quantized one is never pending.

    Returns
    -------
    bool
        True for a recorded product until its value is computed, and for an array that a recorded
        ``+=`` or ``-=`` is still to change.

    Raises
    ------
    TypeError
        `x` is no Array.

    Examples
    --------
    >>> product = xp.ones((2, 2)) @ xp.ones((2, 2))
    >>> xp.is_pending(product)
    True
    >>> float(product[0, 0]), xp.is_pending(product)
    (2.0, False)
    """
    require(x)
    return x._awaited() is not None
