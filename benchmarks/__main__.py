"""``python -m benchmarks [calls] [peers] [model]``: run the benchmarks, all by default."""

import sys

from benchmarks import calls, model, peers

MAINS = {"calls": calls.main, "peers": peers.main, "model": model.main}

for name in sys.argv[1:] or MAINS:
    MAINS[name]()
