"""Graphs that a stream prepares once and computes often."""

import pytest

from conformance.backend.graphs import Graph
from conformance.backend.placing import placing
from ggarray._runtime.plugins import stream
from ggarray.interface import Plans, Status


@pytest.fixture
def backend(device, pytestconfig):
    """A stream that has plans."""
    if pytestconfig.getoption("--idle"):
        pytest.skip(f"{device.name} need have no stream")
    backend = stream(device)
    if not isinstance(backend, Plans):
        pytest.skip(f"{device.name} has no plans")
    return backend


@pytest.fixture
def place(device):
    """Place values where the device takes them."""
    with placing(device) as place:
        yield place


def computed(backend, plan):
    """Have a plan computed; return the status once all is done."""
    status = backend.graph_plan_compute(plan)
    ended = backend.synchronize()
    return status or ended


@pytest.mark.parametrize("scaled", [False, True])
def test_plan(device, backend, place, nmse, scaled):
    graph = Graph(scaled=scaled)
    graph.needs(device)
    placed = [place.kernel(each) for each in graph.kernels]
    plan = backend.graph_plan_create(placed)
    assert computed(backend, plan) == Status.SUCCESS
    backend.graph_plan_update(plan, placed)
    assert computed(backend, plan) == Status.SUCCESS
    backend.graph_plan_free(plan)
    place.fetch()
    graph.check(nmse)


def test_plan_of_other_memory(device, backend, place, nmse):
    graphs = [Graph(seed) for seed in range(4)]
    graphs[0].needs(device)
    first, *others = [[place.kernel(each) for each in graph.kernels] for graph in graphs]
    plan = backend.graph_plan_create(first)
    assert computed(backend, plan) == Status.SUCCESS
    for other in others:
        backend.graph_plan_update(plan, other)
        assert computed(backend, plan) == Status.SUCCESS
    backend.graph_plan_free(plan)
    place.fetch()
    for graph in graphs:
        graph.check(nmse)


def test_plan_that_is_updated_first(device, backend, place, nmse):
    """The memory that a plan was made with is left alone."""
    before, graph = Graph(0), Graph(1)
    graph.needs(device)
    plan = backend.graph_plan_create([place.kernel(each) for each in before.kernels])
    backend.graph_plan_update(plan, [place.kernel(each) for each in graph.kernels])
    assert computed(backend, plan) == Status.SUCCESS
    backend.graph_plan_free(plan)
    place.fetch()
    graph.check(nmse)
    before.check_untouched()


def test_several_plans(device, backend, place, nmse):
    graphs = [Graph(seed) for seed in range(3)]
    graphs[0].needs(device)
    first, second, third = [tuple(place.kernel(each) for each in graph.kernels) for graph in graphs]
    plans = [backend.graph_plan_create(each) for each in (first, second)]
    for plan, n_threads in zip(plans, (2, 1), strict=True):
        backend.n_threads = n_threads
        assert computed(backend, plan) == Status.SUCCESS
    backend.graph_plan_free(plans[0])
    backend.graph_plan_update(plans[1], third)
    assert computed(backend, plans[1]) == Status.SUCCESS
    backend.graph_plan_free(plans[1])
    place.fetch()
    for graph in graphs:
        graph.check(nmse)


def test_nodes_that_are_to_be_skipped(device, backend, place, nmse):
    graph, idle = Graph(0), Graph(1)
    graph.needs(device)
    pairs = zip(graph.kernels, idle.skipped(), strict=True)
    mixed = [each for pair in pairs for each in pair]
    plan = backend.graph_plan_create([place.kernel(each) for each in mixed])
    assert computed(backend, plan) == Status.SUCCESS
    backend.graph_plan_free(plan)
    place.fetch()
    graph.check(nmse)
    idle.check_untouched()


def test_plan_of_nothing(backend):
    plan = backend.graph_plan_create([])
    assert computed(backend, plan) == Status.SUCCESS
    backend.graph_plan_free(plan)
