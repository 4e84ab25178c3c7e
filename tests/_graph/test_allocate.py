"""Planning memory: nothing that is needed at the same time overlaps, and little is wasted."""

import random
from itertools import combinations
from statistics import mean

import hypothesis
import pytest
from hypothesis import strategies as st

from ggarray._graph import allocate
from ggarray._graph.allocate import Interval, Layout, Place, lay_out

# Which of the two ways to place values is taken.
WAYS = pytest.mark.parametrize("waste", [-1, 1 << 60], ids=["by size", "by time"])


@st.composite
def intervals(draw):
    first = draw(st.integers(0, 30))
    return Interval(draw(st.integers(0, 3000)), first, first + draw(st.integers(0, 12)))


def aligned(size, alignment):
    return -(-size // alignment) * alignment


def most_alive(values, alignment=1):
    """The largest sum of values that are needed at one time: less memory cannot do."""
    steps = {step for each in values for step in (each.first, each.last)}
    return max(
        sum(aligned(each.size, alignment) for each in values if each.first <= step <= each.last)
        for step in steps
    )


def check(values, layout, alignment, max_size):
    assert len(layout.places) == len(values)
    for value, (chunk, offset) in zip(values, layout.places, strict=True):
        if value.size:
            assert offset % alignment == 0
            assert offset + value.size <= layout.chunks[chunk]
    for (a, at), (b, bt) in combinations(zip(values, layout.places, strict=True), 2):
        together = a.first <= b.last and b.first <= a.last and a.size and b.size
        if together and at.chunk == bt.chunk:
            assert at.offset + a.size <= bt.offset or bt.offset + b.size <= at.offset
    for at, size in enumerate(layout.chunks):
        within = [
            aligned(value.size, alignment)
            for value, place in zip(values, layout.places, strict=True)
            if place.chunk == at
        ]
        assert size % alignment == 0
        assert max_size is None or size <= max_size or size == max(within)


@WAYS
@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(
    st.lists(intervals(), max_size=40), st.sampled_from([1, 64]), st.sampled_from([None, 64, 4096])
)
def test_values_alive_together_do_not_overlap(waste, values, alignment, max_size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(allocate, "_WASTE", waste)
        check(values, lay_out(values, alignment, max_size), alignment, max_size)


@WAYS
def test_memory_is_used_again(waste, monkeypatch):
    monkeypatch.setattr(allocate, "_WASTE", waste)
    chain = [Interval(100, at, at + 1) for at in range(50)]
    assert lay_out(chain, 10).chunks == (200,)
    assert lay_out([Interval(64, 0, 0), Interval(64, 0, 0)], 64, 64).chunks == (64, 64)
    assert lay_out([], 64) == Layout((), ())
    assert lay_out([Interval(0, 0, 5)], 64) == Layout((Place(0, 0),), ())


def test_freed_neighbours_become_one_hole():
    values = [Interval(10, 0, 1), Interval(10, 0, 1), Interval(10, 0, 1), Interval(30, 2, 3)]
    assert lay_out(values, 10).chunks == (30,)


def random_values(seed, spread):
    rng = random.Random(seed)
    count = rng.choice([20, 100, 300])
    sizes = {
        "uniform": lambda: rng.randint(64, 100_000),
        "magnitudes": lambda: int(2 ** rng.uniform(6, 22)),
        "few": lambda: rng.choice([4096, 16_384, 65_536, 1 << 20]),
    }
    return [
        Interval(sizes[spread](), at, min(count - 1, at + 1 + int(rng.expovariate(1 / 6))))
        for at in range(count)
    ]


@pytest.mark.parametrize("spread", ["uniform", "magnitudes", "few"])
def test_the_plan_needs_little_more_than_what_is_alive(spread):
    ratios = []
    for seed in range(40):
        values = random_values(seed, spread)
        ratios.append(sum(lay_out(values, 64).chunks) / most_alive(values, 64))
    assert min(ratios) >= 1
    assert mean(ratios) <= 1.1


def test_many_values_that_live_long_are_planned_soon():
    count = 5000
    values = [Interval(256, at, 2 * count - at) for at in range(count)]
    assert lay_out(values, 64).chunks == (256 * count,)
