"""Quantized weights in the form that a library takes: decoded, and kept for the next product."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ggarray import _weight_cache
from ggarray._quantized.blocks import Blocks
from ggarray._runtime.options import settings

_Array = np.ndarray[Any, Any]

FLOAT32 = np.dtype(np.float32)


def decoded(blocks: Blocks, decode: Callable[[Blocks, _Array], int]) -> _Array | None:
    """Return constant weights decoded, or None where the caller is to decode parts of them.

    The first use of weights is only noted. From the second on they are decoded as a whole and kept,
    if they fit into the option ``weight_cache`` (see `ggarray._weight_cache.admit`). Weights and
    their transpose are decoded once.

    Parameters
    ----------
    blocks : Blocks
        The weights.
    decode : callable
        Writes the elements of the blocks it is given, which may be the transpose, to an array of
        their shape; returns 0 if it has.

    Returns
    -------
    numpy.ndarray of float32 or None
        Read-only, in the shape of `blocks`, the elements of each block next to each other if blocks
        run along one of the last two axes. None if it is not kept, `decode` failed, or there is no
        memory for it.
    """
    if blocks.axis == blocks.ndim - 2:
        turned = decoded(blocks.mT, decode)
        return None if turned is None else turned.mT
    limit = settings().weight_cache
    _weight_cache.trim(limit)
    found: _Array | None = _weight_cache.find(blocks, FLOAT32)
    nbytes = blocks.size * FLOAT32.itemsize
    if found is None and _weight_cache.admit(blocks, FLOAT32, nbytes, limit):
        found = _decoded(blocks, decode)
    return found


def _decoded(blocks: Blocks, decode: Callable[[Blocks, _Array], int]) -> _Array | None:
    """Decode weights and keep them; what fails or is interrupted leaves nothing behind."""
    try:
        values = np.empty(blocks.shape, FLOAT32)
    except MemoryError:
        return None
    if decode(blocks, values):
        return None
    values.flags.writeable = False
    _weight_cache.keep(blocks, FLOAT32, values)
    return values
