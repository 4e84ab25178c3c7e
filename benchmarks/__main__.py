"""``python -m benchmarks [calls] [model]``: run the benchmarks, all by default."""

import sys

from benchmarks import calls, model

MAINS = {"calls": calls.main, "model": model.main}

for name in sys.argv[1:] or MAINS:
    MAINS[name]()
