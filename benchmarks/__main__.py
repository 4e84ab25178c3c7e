"""``python -m benchmarks [calls] [graphs] ...``: run the benchmarks, all by default."""

import sys

from benchmarks import calls, graphs, memory, model, peers, upgrades

MAINS = {
    "calls": calls.main,
    "graphs": graphs.main,
    "upgrades": upgrades.main,
    "memory": memory.main,
    "peers": peers.main,
    "model": model.main,
}

for name in sys.argv[1:] or MAINS:
    MAINS[name]()
