"""Backends that ask a callback whether to stop."""

import pytest

from conformance.backend.computing import finished
from conformance.backend.graphs import Graph
from conformance.backend.placing import placing
from ggarray._runtime import plugins
from ggarray.interface import Status


@pytest.fixture
def set_callback(device, pytestconfig):
    """Set what a stream asks."""
    set_callback = plugins.registry_of(device.name).get_proc_address("set_abort_callback")
    if set_callback is None:
        pytest.skip(f"{device.name} asks nobody")
    Graph().needs(device)
    backend = plugins.stream(device)
    yield lambda *arguments: set_callback(backend, *arguments)
    set_callback(backend, None)


@pytest.fixture
def place(device):
    """Place values where the device takes them."""
    with placing(device) as place:
        yield place


def test_abort(device, set_callback, place, nmse):
    backend, graph = plugins.stream(device), Graph()
    kernels = [place.kernel(each) for each in graph.kernels]
    for _ in range(2):
        set_callback(lambda user_data: True)
        assert finished(backend, kernels) == Status.ABORTED
        set_callback(None)
        assert finished(backend, kernels) == Status.SUCCESS
    place.fetch()
    graph.check(nmse)


def test_abort_between_nodes(device, set_callback, place, nmse):
    backend, graph, answers = plugins.stream(device), Graph(), [False, True]
    kernels = [place.kernel(each) for each in graph.kernels]
    set_callback(lambda user_data: user_data.pop(0) if user_data else True, answers)
    assert finished(backend, kernels) == Status.ABORTED
    assert not answers
    set_callback(None)
    assert finished(backend, kernels) == Status.SUCCESS
    place.fetch()
    graph.check(nmse)


def test_no_abort(device, set_callback, place, nmse):
    backend, graph, asked = plugins.stream(device), Graph(), []
    kernels = [place.kernel(each) for each in graph.kernels]
    set_callback(lambda user_data: asked.append(user_data), "for the callback")
    assert finished(backend, kernels) == Status.SUCCESS
    assert set(asked) == {"for the callback"}
    place.fetch()
    graph.check(nmse)
