"""Index keys in NumPy's language, taken apart so that one axis can be followed through them."""

from __future__ import annotations

from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Entry", "axes_used", "axis_after", "parse_key"]

Entry: TypeAlias = int | slice | np.ndarray[Any, Any] | EllipsisType | None
"""A part of a key."""


def parse_key(key: Any, shape: tuple[int, ...]) -> list[Entry]:
    """Return `key` as entries of which each selects from the next axis of `shape`, or from none.

    Every axis has its entry, a slice, an integer or an integer array: an ellipsis is written out
    as slices, and stays only where it means none (for it still stands between index arrays).

    Raises
    ------
    IndexError
        There are too many entries, a mask has another shape than its axes, or a part is no index.
    """
    parts = [_parsed(part) for part in (key if isinstance(key, tuple) else (key,))]
    free = len(shape) - sum(map(axes_used, parts))
    ellipses = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(ellipses) > 1 or free < 0:
        raise IndexError(f"too many indices or ellipses for shape {shape}: {len(parts)}")
    if free:
        where = ellipses[0] if ellipses else len(parts)
        parts[where : where + 1] = [slice(None)] * free
    entries: list[Entry] = []
    axis = 0
    for part in parts:
        used = axes_used(part)
        entries += _expanded(part, shape[axis : axis + used])
        axis += used
    return entries


def _parsed(part: Any) -> Entry:
    """Return one part of a key, with integers as int and what else NumPy takes as an array."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    array = np.asarray(part)
    if isinstance(part, list) and not part:
        array = array.astype(np.intp)
    if array.dtype.kind in "iu":
        return int(array) if array.ndim == 0 else array
    if array.dtype.kind == "b" and array.ndim > 0:
        return array
    raise IndexError(
        "only integers, slices, None, ... and arrays of integers or booleans index,"
        f" not {type(part).__name__}"
    )


def axes_used(part: Entry) -> int:
    """Count the axes that `part` selects from."""
    if isinstance(part, np.ndarray) and part.dtype.kind == "b":
        return part.ndim
    return int(part is not None and part is not Ellipsis)


def _expanded(part: Entry, lengths: tuple[int, ...]) -> list[Entry]:
    """Return `part` as entries for the axes it uses; a mask as the indices of its true elements."""
    if not isinstance(part, np.ndarray) or part.dtype.kind != "b":
        return [part]
    if part.shape != lengths:
        raise IndexError(f"a mask of shape {part.shape} does not fit axes of lengths {lengths}")
    return list(part.nonzero())


def axis_after(entries: list[Entry], position: int) -> int:
    """Find, in the result of indexing, the axis that the slice ``entries[position]`` selects from.

    NumPy puts the axes of index arrays where the arrays stand in the key, or first when something
    stands between them; integers beside arrays count as arrays.
    """
    arrays = [entry for entry in entries if isinstance(entry, np.ndarray)]
    kept = sum(entry is None or isinstance(entry, slice) for entry in entries[:position])
    if not arrays:
        return kept
    where = [i for i, entry in enumerate(entries) if isinstance(entry, int | np.ndarray)]
    adjacent = where[-1] - where[0] + 1 == len(where)
    ndim = np.broadcast(*arrays).ndim
    return kept + (ndim if not adjacent or where[0] < position else 0)
