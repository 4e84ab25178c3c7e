"""Asking for values, whether they are there, and what they wait for."""

from ggarray._array import Array
from ggarray._graph.describe import describe
from ggarray._graph.execute import evaluate as _evaluate, reserve as _reserve
from ggarray._graph.node import Node
from ggarray._graph.show import Graph
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
    _evaluate(_awaited(arrays))


def reserve(*arrays: Array) -> None:
    """Allocate now the memory that computing these arrays together will take, and keep it.

    That is the memory which intermediate values share, on the host and on devices; results get
    their own when they are computed. Later evaluations that need no more of it use it too, so that
    reserving for the largest spares the others allocating. Nothing is computed.

    Parameters
    ----------
    *arrays : Array
        Those that are not pending add nothing.

    Raises
    ------
    MemoryError
        There is not so much memory, or the option ``memory_limit`` allows less.
    TypeError
        One is no Array.

    Examples
    --------
    >>> x = xp.ones((200, 200))
    >>> y = (x @ x) @ (x @ x)
    >>> xp.reserve(y)
    >>> xp.is_pending(y)
    True
    """
    _reserve(_awaited(arrays))


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


def graph(*arrays: Array) -> Graph:
    """Return what has to be computed before these arrays can be read; computes nothing.

    Parameters
    ----------
    *arrays : Array
        Those that are not pending add nothing.

    Returns
    -------
    Graph
        The pending nodes under the arrays as they are now: a description that keeps no array alive
        and does not change any more. An evaluation in another thread is waited for.

    Raises
    ------
    TypeError
        One is no Array.

    Examples
    --------
    >>> x = xp.ones((2, 2))
    >>> y = x @ x + x
    >>> [node.op.value for node in xp.graph(y)]
    ['matmul', 'add']
    >>> xp.is_pending(y)
    True
    >>> xp.evaluate(y)
    >>> len(xp.graph(y))
    0
    """
    return describe(_awaited(arrays))


def _awaited(arrays: tuple[Array, ...]) -> list[Node]:
    """Return the nodes that must be computed before the arrays can be read."""
    require(*arrays)
    awaited = (x._awaited() for x in arrays)
    return [node for node in awaited if node is not None]
