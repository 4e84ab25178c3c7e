"""Plans that are kept: for which graphs, how many, and what streams have made of them."""

import weakref

import numpy as np
import pytest
from doubles import NumpyDevice, others
from recorded import constant

import ggarray as xp
from ggarray._graph import execute, plan_cache
from ggarray._graph.plan_cache import info
from ggarray._runtime import plugins
from ggarray.interface import Registry

VALUE = np.array([[1.0, 2.0], [3.0, 4.0]])


@pytest.fixture(autouse=True)
def none_kept():
    plan_cache.clear()
    yield
    plan_cache.clear()


@pytest.fixture
def planning():
    """The device whose stream has plans of its own, its books empty."""
    device = others()["planning"]
    device.happened.clear()
    device.errors.clear()
    yield device
    device.errors.clear()
    device.backend.before = None


def ones(*shape, device="counting", dtype=xp.float64):
    return xp.ones(shape, device=device, dtype=dtype)


def program(a, b):
    product = a @ b
    return product.T @ a + 2.0 * product


def compute(a, b):
    xp.evaluate(program(a, b))


def test_equal_programs_have_one_plan():
    for at in range(3):
        a = VALUE + at
        x = xp.asarray(a, device="counting")
        np.testing.assert_array_equal(np.asarray(program(x, x)), (a @ a).T @ a + 2 * (a @ a))
    assert info() == (2, 1, 1, 5)


def test_looking_and_reserving_use_it_too():
    x = ones(2, 2)
    end = program(x, x)
    assert xp.graph(end).plan
    xp.reserve(end)
    xp.evaluate(end)
    assert info()[:2] == (2, 1)


class Another(Registry):
    """A backend that no product of these tests is for."""

    name = "another"

    def devices(self):
        return [NumpyDevice("another")]


def registered():
    if "another" not in xp.devices():
        xp.register_backend(Another())
    compute(ones(2, 2), ones(2, 2))


def held():
    a = ones(2, 2)
    b = ones(2, 2)
    product = a @ b
    xp.evaluate(product.T @ a + 2.0 * product)


def within(context):
    with context:
        compute(ones(2, 2), ones(2, 2))


OTHERS = {
    "shape": lambda: compute(ones(3, 3), ones(3, 3)),
    "strides": lambda: compute(ones(2, 2), ones(2, 2).T),
    "dtype": lambda: compute(ones(2, 2), ones(2, 2, dtype=xp.float32)),
    "device": lambda: compute(ones(2, 2, device="cpu"), ones(2, 2, device="cpu")),
    "aliasing": lambda: compute(*[ones(2, 2)] * 2),
    "constness": lambda: compute(ones(2, 2), constant(np.ones((2, 2)), "counting")),
    "held values": held,
    "fuse": lambda: within(xp.options(fuse=False)),
    "one rewrite": lambda: within(xp.options(fuse={"copies"})),
    "threads": lambda: within(xp.num_threads(xp.get_num_threads() + 1)),
    "a registered backend": registered,
}


@pytest.fixture
def known(monkeypatch):
    """Forget after the test what it has registered."""
    monkeypatch.setattr(plugins, "_devices", dict(plugins.backend_devices()))
    monkeypatch.setattr(plugins, "_streams", dict(plugins._streams))
    yield
    plugins.candidates.cache_clear()


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("name", OTHERS)
def test_another_plan_for_another(name):
    compute(ones(2, 2), ones(2, 2))
    compute(ones(2, 2), ones(2, 2))
    assert info()[:2] == (1, 1)
    OTHERS[name]()
    assert info()[:2] == (1, 2)
    OTHERS[name]()
    assert info()[:2] == (2, 2)


def test_options_that_do_not_matter_to_a_plan():
    compute(ones(2, 2), ones(2, 2))
    for options in ({"memory_limit": 10**6}, {"lazy": True}, {"weight_cache": 0}):
        within(xp.options(**options))
    assert info()[:2] == (3, 1)


def test_where_copies_of_weights_are_matters():
    weights = constant(VALUE, others()["choosy"].name)
    a = ones(8, 2, device="choosy")
    xp.evaluate(a @ weights, a @ weights.T)  # 8 rows: by the cpu
    xp.evaluate(ones(9, 2, device="choosy") @ weights)
    xp.evaluate(a @ weights, a @ weights.T)  # the first is there now
    assert info()[1] == 3


def test_a_chain_and_a_lone_product_need_none():
    x = ones(2, 2)
    xp.evaluate(x @ x)
    xp.evaluate(2.0 * (x @ x) + x)
    assert info() == (0, 0, 0, 0)


# -- how many -----------------------------------------------------------------------------------


def run_chain(n_products):
    x = ones(2, 2)
    end = x @ x
    for _ in range(n_products - 1):
        end = end @ x
    xp.evaluate(end)


def test_the_plan_used_longest_ago_is_dropped_first(monkeypatch):
    monkeypatch.setattr(plan_cache, "MAX_PLANS", 3)
    for n in (2, 3, 4, 2, 5):
        run_chain(n)
    assert info() == (1, 4, 3, 2 + 4 + 5)
    run_chain(2)
    assert info()[:2] == (2, 4)
    run_chain(3)
    assert info()[:2] == (2, 5)


def test_plans_of_many_steps_are_few(monkeypatch):
    monkeypatch.setattr(plan_cache, "MAX_STEPS", 10)
    for n in (3, 4, 5):
        run_chain(n)
    assert info()[2:] == (2, 9)
    run_chain(11)  # too long to keep
    assert info()[2:] == (2, 9)
    run_chain(10)
    assert info()[2:] == (1, 10)


def test_text_of_the_info():
    run_chain(3)
    run_chain(3)
    assert str(info()) == "1 kept, of 3 steps; used again 1 times, made 1 times"


def test_a_plan_keeps_no_operand_alive():
    x = ones(2, 2)
    memory = weakref.ref(x._read())
    xp.evaluate(x @ x @ x)
    del x
    assert memory() is None
    assert info().plans == 1


# -- what streams make of them ------------------------------------------------------------------


def planned(device="planning", scale=1.0, n=2):
    x = xp.asarray(scale * VALUE, device=device)
    end = x @ x
    for _ in range(n - 1):
        end = end @ x
    np.testing.assert_allclose(np.asarray(end), np.linalg.matrix_power(scale * VALUE, n + 1))


def happened(device, *names):
    return tuple(device.happened[name] for name in names)


BOOKS = "create", "update", "compute", "free plan"


def test_a_plan_of_the_streams_own_is_made_at_the_second_use(planning):
    seen = []
    for at in range(4):
        planned(scale=1.0 + at)
        seen.append(happened(planning, *BOOKS))
    assert seen == [(0, 0, 0, 0), (1, 0, 1, 0), (1, 1, 2, 0), (1, 2, 3, 0)]
    plan_cache.drop_all()
    assert happened(planning, *BOOKS) == (1, 2, 3, 1)


def test_plans_of_the_streams_own_go_with_the_plan(planning, monkeypatch):
    monkeypatch.setattr(plan_cache, "MAX_PLANS", 2)
    for n in (2, 2, 3, 3):
        planned(n=n)
    assert happened(planning, "create", "free plan") == (2, 0)
    planned(n=4)
    assert happened(planning, "create", "free plan") == (2, 1)
    planned(n=5)
    assert happened(planning, "create", "free plan") == (2, 2)


def test_one_for_each_split(planning):
    for _ in range(3):
        x = xp.asarray(VALUE, device="planning")
        total = (x @ x @ x) * 2.0
        with xp.options(fuse=False):
            np.testing.assert_array_equal(
                np.asarray(total @ x), 2 * np.linalg.matrix_power(VALUE, 4)
            )
        del total
    assert happened(planning, *BOOKS) == (2, 2, 4, 0)


def test_within_an_evaluation_another_does_without(planning):
    """As one of a signal handler, which may come when the plan is in use."""
    planned()
    planned()
    calls = []

    def before():
        if not calls:
            calls.append(None)
            planned(scale=3.0)

    planning.backend.before = before
    planned()
    assert calls
    assert happened(planning, "create", "update", "compute") == (1, 1, 2)
    planning.backend.before = None
    planned()
    assert happened(planning, *BOOKS) == (1, 2, 3, 0)


def test_what_is_dropped_while_it_is_used_is_freed_afterwards(planning):
    planned()
    freed = []

    def drop():
        plan_cache.drop_all()
        freed.append(planning.happened["free plan"])

    planning.backend.before = drop
    planned()
    planning.backend.before = None
    assert freed == [0, 0]
    assert happened(planning, "create", "free plan") == (1, 1)
    planned()
    assert info().plans == 1


@pytest.mark.parametrize("error", [OSError("gone"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", ["create", "update", "compute"])
def test_a_stream_that_fails_to_plan(planning, call, error):
    for _ in range({"create": 1, "update": 2, "compute": 2}[call]):
        planned()
    x = xp.asarray(VALUE, device="planning")
    end = x @ x @ x
    planning.errors[call] = error
    with pytest.raises(type(error)):
        xp.evaluate(end)
    assert xp.is_pending(end)
    np.testing.assert_array_equal(np.asarray(end), np.linalg.matrix_power(VALUE, 3))
    planned()
    plan_cache.drop_all()
    created, freed = happened(planning, "create", "free plan")
    assert created == freed
    assert created == (2 if call == "update" else 1)


def test_a_plan_that_cannot_be_made_is_not_kept(monkeypatch):
    def fail(graph):
        raise ZeroDivisionError

    x = ones(2, 2)
    with monkeypatch.context() as patch:
        patch.setattr(execute, "schedule", fail)
        with pytest.raises(ZeroDivisionError):
            xp.evaluate(x @ x @ x)
    run_chain(2)
    assert info() == (0, 2, 1, 2)
