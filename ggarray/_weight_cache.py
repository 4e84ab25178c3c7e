"""Other forms of constants, kept from one evaluation to the next.

A form is a copy in the memory of a device, or the decoded elements of quantized weights. It lives
as long as the constant does, and as all forms together are within a limit. Only evaluations come
here, one at a time, and those of signal handlers within them; but constants die whenever they do,
in any thread. So each change of the books is one call of a dictionary, whose keys are hashed and
compared without running Python code, and a form is given out only while its constant lives.
"""

import weakref
from collections.abc import Hashable, Iterable
from itertools import count
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from ggarray._quantized.blocks import stored
from ggarray._storage import Plain, layout_key, root_of
from ggarray.interface import Value

_Form = TypeVar("_Form", bound=Hashable)
_Key = tuple[tuple[Any, ...], Hashable]

_MOST_NOTES = 1 << 14
"""When so many uses are noted, the older half goes: limits have room for fewer weights."""


class Thing(Protocol):
    """What can be kept."""

    @property
    def nbytes(self) -> int:
        """Bytes of its memory."""


class _Use(weakref.ref[Plain]):
    """The last use of a form of a constant, whose root it refers to."""

    __slots__ = ("key", "nbytes", "thing", "time")

    key: _Key
    thing: Any
    nbytes: int
    time: int


_kept: dict[_Key, _Use] = {}
_noted: dict[_Key, _Use] = {}
"""Last uses of forms that are not kept, oldest first."""
_clock = count()


def find(value: Value, form: Hashable) -> Any:
    """Return what is kept as a form of a constant, None if nothing is; this is a use of it."""
    use = _kept.get((layout_key(value), form))
    if use is None or use() is None:
        return None
    use.time = next(_clock)
    return use.thing


def kept_forms(value: Value, among: Iterable[_Form]) -> list[_Form]:
    """Return which of these forms of a constant are kept."""
    layout = layout_key(value)
    uses = ((form, _kept.get((layout, form))) for form in among)
    return [form for form, use in uses if use is not None and use() is not None]


def kept_bytes(kind: type = object) -> int:
    """Return the bytes of all things of a class that are kept."""
    return sum([use.nbytes for use in list(_kept.values()) if isinstance(use.thing, kind)])


def keep(value: Value, form: Hashable, thing: Thing) -> None:
    """Enter a form of a constant in the books, as used now; `trim` or `admit` keeps the limit."""
    key = layout_key(value), form
    _kept[key] = _use(value, key, thing, thing.nbytes)


def trim(limit: int) -> None:
    """Drop forms, those used longest ago first, until all together are within a limit."""
    excess = kept_bytes() - limit
    if excess <= 0:
        return
    for use in sorted(_kept.values(), key=attrgetter("time")):
        if excess <= 0:
            return
        _kept.pop(use.key, None)
        excess -= use.nbytes


def admit(value: Value, form: Hashable, nbytes: int, limit: int) -> bool:
    """Note a use of a form that is not kept; tell whether it is to be made and kept now.

    It is from the second use on, if it fits into the limit beside all that were used since the use
    before; others are dropped for it. So of more weights in turn than there is room for, the same
    ones stay; and weights that nobody uses any more make room for those in use.
    """
    if nbytes > limit:
        return False
    key = layout_key(value), form
    before = _noted.pop(key, None)
    if before is not None:
        in_use = sum([use.nbytes for use in list(_kept.values()) if use.time > before.time])
        if in_use + nbytes <= limit:
            trim(limit - nbytes)
            return True
    if len(_noted) >= _MOST_NOTES:
        for older in list(_noted)[: _MOST_NOTES // 2]:
            _noted.pop(older, None)
    _noted[key] = _use(value, key)
    return False


def _use(value: Value, key: _Key, thing: Thing | None = None, nbytes: int = 0) -> _Use:
    use = _Use(root_of(stored(value)), _forget)
    use.key, use.thing, use.nbytes, use.time = key, thing, nbytes, next(_clock)
    return use


def _forget(use: _Use) -> None:
    """Drop a form of a constant that has gone: its address may soon be that of something else.

    Where Ctrl-C comes in here the form stays in the books, and is not given out.
    """
    _kept.pop(use.key, None)
    _noted.pop(use.key, None)
