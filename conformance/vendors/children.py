"""Forked children."""

import os
import signal
import traceback
from collections.abc import Callable
from typing import Any

SECONDS = 60


def ends_well(function: Callable[..., object], *arguments: Any) -> bool:
    """Call a function in a forked child; return whether it does not raise, in time."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        try:
            function(*arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0
