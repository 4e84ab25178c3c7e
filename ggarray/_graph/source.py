"""Where in the user's program a node was recorded."""

import sys
from types import CodeType

Source = tuple[CodeType, int]
"""The code that called us, and the index of the instruction that did: cheap to take."""

_OURS = __name__.partition(".")[0] + "."

# Recording is always at least so many calls deep: frames that need not be looked at.
_DEPTH = 4


def caller() -> Source | None:
    """Return where the innermost frame that is not ours is; None if every frame is ours."""
    frame = sys._getframe(_DEPTH)
    while frame.f_globals.get("__name__", "").startswith(_OURS):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def location(source: Source) -> str:
    """Return the file and the line of a source, as ``file:line``."""
    code, at = source
    lines = (line for begin, end, line in code.co_lines() if begin <= at < end)
    return f"{code.co_filename}:{next(lines, None) or code.co_firstlineno}"
