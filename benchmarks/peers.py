"""Cost of small calls in several array namespaces: microseconds a call, side by side."""

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import array_api_compat
from threadpoolctl import threadpool_limits

import ggarray as xp
from benchmarks.measure import Call, alternate

PEERS = ("numpy", "ggarray", "array_api_strict", "array_api_compat.numpy", "torch")

Case = Callable[[ModuleType, Any, Any], Call]
"""Makes the call to measure, of a namespace, a vector of 10 and a matrix of 8x8 elements."""

CASES: dict[str, Case] = {
    "add(A, A)": lambda ns, v, m: lambda: ns.add(v, v),
    "A + A": lambda ns, v, m: lambda: v + v,
    "A + 1": lambda ns, v, m: lambda: v + 1,
    "A[2:5]": lambda ns, v, m: lambda: v[2:5],
    "asarray(A)": lambda ns, v, m: lambda: ns.asarray(v),
    "sum(A)": lambda ns, v, m: lambda: ns.sum(v),
    "matmul(M, M), value": lambda ns, v, m: _with_value(ns, lambda: ns.matmul(m, m)),
    "M @ M, value": lambda ns, v, m: _with_value(ns, lambda: m @ m),
}


def _with_value(ns: ModuleType, product: Call) -> Call:
    """Return the call that also waits for the product where it is recorded."""
    return (lambda: xp.evaluate(product())) if ns is xp else product


def namespaces() -> dict[str, ModuleType]:
    """Return the namespaces that can be imported, by name."""
    found = {}
    for name in PEERS:
        try:
            found[name] = importlib.import_module(name)
        except ModuleNotFoundError:
            print(f"{name} is not installed: not measured")
    return found


def main() -> None:
    """Print the table."""
    found = namespaces()
    versions = (f"{name} {getattr(ns, '__version__', '')}".strip() for name, ns in found.items())
    print("microseconds a call, one thread, thread CPU time, medians;", ", ".join(versions))
    print(f"vector of 10, matrix of 8x8, float64; array_api_compat {array_api_compat.__version__}")
    print(" " * 20, *(f"{name:>22}" for name in found))
    operands = {
        name: (ns.ones(10, dtype=ns.float64), ns.ones((8, 8), dtype=ns.float64))
        for name, ns in found.items()
    }
    with xp.num_threads(1), threadpool_limits(1):
        for title, case in CASES.items():
            calls = [case(ns, *operands[name]) for name, ns in found.items()]
            medians = alternate(*calls)
            print(f"{title:<20}", *(f"{each * 1e6:>22.2f}" for each in medians), flush=True)
