"""``python -m benchmarks [calls] [graphs] ...``: run the benchmarks, all by default.

``python -m benchmarks vendors blas:mkl ...`` measures these devices.
"""

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

for name in [name for name in sys.argv[1:] if ":" not in name] or MAINS:
    MAINS[name]()
