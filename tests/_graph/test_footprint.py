"""How much memory plans take beside the values that are needed at one time."""

import random
from statistics import mean

import numpy as np
import pytest
from doubles import others
from recorded import ALL, plan_of, used

import ggarray as xp
from conformance.programs.llama import Llama
from conformance.programs.loading import open_ggarray
from conformance.programs.reference import reference_logits
from conformance.programs.tiny_model import vocabulary, write_tiny_model
from ggarray._graph import execute, memory, plan_cache, schedule, split

LENGTHS = (64, 192, 320, 1024, 1500)


def random_matrices(seed, device):
    """Return pending matrices of many shapes, made of products and of what is done to them."""
    rng = random.Random(seed)
    leaves = {
        (rows, columns): xp.zeros((rows, columns), device=device)
        for rows in LENGTHS
        for columns in LENGTHS
    }
    steps = [
        lambda a, b: a @ b,
        lambda a, b: a @ b + leaves[a.shape[0], b.shape[1]],
        lambda a, b: b.T @ a.T,
        lambda a, b: 0.5 * (a @ b),
        lambda a, b: (a @ b)[::-1],
    ]
    values = [leaves[rng.choice(LENGTHS), rng.choice(LENGTHS)] for _ in range(4)]
    for _ in range(40):
        a = rng.choice(values[-10:])
        fitting = [each for each in values if each.shape[0] == a.shape[1]]
        b = rng.choice([*fitting, leaves[a.shape[1], rng.choice(LENGTHS)]])
        values.append(rng.choice(steps)(a, b))
    return values[-3:]


def ratios(plan):
    """Return of each memory the bytes of chunks beside those of the values alive together."""
    uses, _, _ = used(plan)
    found = {}
    for buffer_type, sizes in plan.chunks.items():
        alive = [0] * (len(plan.steps) + 1)
        for at, block in enumerate(plan.blocks):
            if block.place is not None and block.buffer_type is buffer_type:
                for step in range(min(uses[at]), max(uses[at]) + 1):
                    alive[step] += block.nbytes
        found[buffer_type.name] = sum(sizes) / max(alive)
    return found


@pytest.mark.parametrize("fuse", [(), ALL], ids=["as recorded", "fused"])
@pytest.mark.parametrize("device", ["counting", "counted", "far"])
def test_plans_take_little_more_than_what_is_alive(device, fuse):
    others()
    found = []
    for seed in range(40):
        arrays = [each for each in random_matrices(seed, device) if xp.is_pending(each)]
        found += ratios(plan_of(*arrays, fuse=fuse)).values()
    assert len(found) >= 40
    assert min(found) >= 1
    assert mean(found) <= 1.1


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    write_tiny_model(path, seed=7)
    return path


@pytest.mark.parametrize("device", ["far", "narrow", "late"])
def test_plans_of_a_language_model(device, path, monkeypatch):
    others()
    plan_cache.drop_all()
    for module in (schedule, split):
        monkeypatch.setattr(module, "WORTH_PLACING", 1)
    monkeypatch.setattr(execute, "_alone", lambda order: None)
    plans = {}
    planned = execute._planned

    def watched(captured, options):
        kept = planned(captured, options)
        plans[id(kept)] = kept
        return kept

    monkeypatch.setattr(execute, "_planned", watched)
    model = Llama(*open_ggarray(path, device))
    tokens = np.random.default_rng(0).integers(3, len(vocabulary()), 33).tolist()
    logits = np.asarray(model.prefill(tokens, model.new_cache()))
    expected = reference_logits(path, tokens)[-1]
    assert np.max(np.abs(logits - expected)) <= 1e-5 * np.ptp(expected)
    found = [ratio for kept in plans.values() for ratio in ratios(kept.plan).values()]
    assert len(plans) >= 9
    assert len(found) >= 9
    assert mean(found) <= 1.1
    plan_cache.drop_all()
    memory.release()
