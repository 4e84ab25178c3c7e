"""Plans that are kept for graphs that come again, as those of a loop do.

The key of a plan is all that it depends on: the graph, the rewrites, the number of threads, and
which backends there are. Whoever changes one of them gets another plan.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ggarray._graph.assign import forget
from ggarray._graph.plan import Plan
from ggarray.interface import Plans

MAX_PLANS = 256
MAX_STEPS = 20_000


Handles = dict[int, tuple[Plans, Any]]
"""What streams have made of the splits of a plan, by the number of the split."""


class Kept:
    """A plan, and what the streams of its devices have made of it.

    Attributes
    ----------
    plan : Plan
    steps : int
        How many the plan has.
    uses : int
        How often it has been computed.
    handles : Handles
        The streams' own plans.
    busy : bool
        An evaluation is using it; one within that, of a signal handler, does without the handles.
    dropped : bool
        It is not kept any more, so that who uses it frees the handles.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.steps = len(plan.graph.vertices)
        self.uses = 0
        self.handles: Handles = {}
        self.busy = False
        self.dropped = False

    def free(self) -> None:
        """Give the streams' own plans back."""
        while self.handles:
            _, (backend, handle) = self.handles.popitem()
            backend.graph_plan_free(handle)


class PlanCacheInfo(NamedTuple):
    """How the plans that were kept have served so far."""

    hits: int
    misses: int
    plans: int
    steps: int

    def __str__(self) -> str:
        return (
            f"{self.plans} kept, of {self.steps} steps; used again {self.hits} times,"
            f" made {self.misses} times"
        )


_kept: dict[Any, Kept] = {}
"""The plans that are kept, the one used last at the end."""
_counts = {"hits": 0, "misses": 0}


def kept_plan(key: Any, make: Callable[[], Plan]) -> Kept:
    """Return the plan of a key, made if there is none."""
    kept = _kept.get(key)
    if kept is not None:
        _counts["hits"] += 1
        _kept[key] = _kept.pop(key, kept)  # used last, so dropped last
        return kept
    _counts["misses"] += 1
    made = Kept(make())
    if made.steps > MAX_STEPS:
        return made
    kept = _kept.setdefault(key, made)  # a signal handler may have made one meanwhile
    while len(_kept) > MAX_PLANS or _steps() > MAX_STEPS:
        _drop_oldest()
    return kept


def _steps() -> int:
    return sum(kept.steps for kept in list(_kept.values()))


def _drop_oldest() -> None:
    kept = _kept.pop(next(iter(_kept)), None)
    if kept is not None:
        kept.dropped = True
        if not kept.busy:
            kept.free()


def info() -> PlanCacheInfo:
    """Return how the plans that were kept have served so far."""
    return PlanCacheInfo(_counts["hits"], _counts["misses"], len(_kept), _steps())


def drop_all() -> None:
    """Drop all plans."""
    while _kept:
        _drop_oldest()


def clear() -> None:
    """Drop all plans, what backends have answered while they were made, and the counts."""
    drop_all()
    forget()
    _counts.update(hits=0, misses=0)
