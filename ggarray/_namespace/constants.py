"""Constants."""

import math

e = math.e
"""Euler's number."""

inf = math.inf
"""Positive infinity."""

nan = math.nan
"""Not a number."""

newaxis = None
"""Puts a new axis of length 1 into an index."""

pi = math.pi
"""Circumference of a circle of diameter 1."""
