"""``python -m benchmarks [calls] [graphs] ...``: run the benchmarks, all by default."""

import sys

from benchmarks import calls, graphs, memory, model, peers, upgrades, vendors

MAINS = {
    "calls": calls.main,
    "graphs": graphs.main,
    "upgrades": upgrades.main,
    "vendors": vendors.main,
    "memory": memory.main,
    "peers": peers.main,
    "model": model.main,
}

for name in sys.argv[1:] or MAINS:
    MAINS[name]()
