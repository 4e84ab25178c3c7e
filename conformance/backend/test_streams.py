"""Graphs of several kernels, devices as they describe themselves, and what none computes."""

import numpy as np
import pytest

from conformance.backend.cases import CASES, PLAIN, Case
from conformance.backend.computing import Result, finished, is_in_tree, judge, supported
from conformance.backend.graphs import Graph
from conformance.backend.placing import placing
from conformance.standard.references import kind_of, numbers
from ggarray._runtime.plugins import stream
from ggarray.interface import DeviceType, GraphOptimize, Kernel, Op, Status, Tensor


def test_description(device):
    assert isinstance(device.name, str)
    assert isinstance(device.description, str)
    assert isinstance(device.type, DeviceType)
    free, total = device.memory()
    assert 0 <= free <= total


def test_device_is_of_use(device, pytestconfig):
    if pytestconfig.getoption("--idle"):
        pytest.skip("it may be idle")
    assert any(
        device.supports_op(case.kernel(operands, None, Result(case, operands, 0).out))
        for case in CASES
        if case.is_plain and (operands := case.operands(0))
    ), "it leaves all work to others; --idle admits that"


# Each kernel but the first reads what the last one that the device takes has written.
CHAIN = [
    (Op.MATMUL, lambda a, b, last: (a, b)),
    (Op.MATMUL, lambda a, b, last: (last, b.T)),
    (Op.OUT_PROD, lambda a, b, last: (last[:, 3:4], last[::-1, :1])),
    (Op.MATMUL, lambda a, b, last: (b[::-1], last.T)),
    (Op.MATMUL, lambda a, b, last: (last[None], np.stack([a, b]))),
]


@pytest.mark.parametrize("several", [list, tuple])
@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_kernels_are_computed_in_order(device, dtype, several, nmse):
    a, b = numbers(dtype, (32, 32), 0), numbers(dtype, (32, 32), 1)
    if kind_of(dtype) in "fc":
        a, b = a / dtype.type(8), b / dtype.type(8)  # or the products would grow too large
    last, graph, checks = a, [], []
    for op, operands_of in CHAIN:
        case, operands = Case(op, dtype, "chain", None), operands_of(a, b, last)
        result = Result(case, operands, 0)
        kernel = Kernel(op, operands, result.out)
        if supported(device, kernel):
            graph.append(kernel)
            checks.append((case, operands, result))
            last = result.out
    if not graph:
        pytest.skip(f"{device.name} leaves it to others")
    with placing(device) as place:
        for _, _, result in checks:
            result.put(place)
        placed = several(map(place.kernel, graph))
        assert finished(stream(device), placed) == Status.SUCCESS
        place.fetch()
    for case, operands, result in checks:
        result.check_surroundings()
        judge(case, operands, nmse=nmse)(result.out)


def test_nodes_that_are_to_be_skipped(device, nmse):
    graph, idle = Graph(0), Graph(1)
    graph.needs(device)
    with placing(device) as place:
        mixed = [place.kernel(each) for each in (*idle.skipped(), *graph.kernels)]
        assert finished(stream(device), mixed) == Status.SUCCESS
        place.fetch()
    graph.check(nmse)
    idle.check_untouched()


def test_order_of_nodes(device, pytestconfig):
    """Three chains of products; each reads the one before it in its chain."""
    if pytestconfig.getoption("--idle"):
        pytest.skip("it need have no stream")
    backend = stream(device)
    if not isinstance(backend, GraphOptimize):
        pytest.skip(f"{device.name} takes nodes as they come")
    matrix = Tensor.like(np.zeros((32, 32), np.float32))
    graph, reads, kept = [], {}, []
    for chain in range(3):
        value = matrix
        for place in range(chain + 2):
            reads[len(graph)] = [len(graph) - 1] if place else []
            graph.append(Kernel(Op.MATMUL, (value, matrix), out := Tensor(*matrix)))
            value = out
    order = list(backend.graph_optimize(graph, lambda node, until: kept.append((node, until))))
    assert sorted(order) == list(range(len(graph)))
    places = {at: place for place, at in enumerate(order)}
    assert all(places[read] < places[at] for at in reads for read in reads[at])
    assert all(0 <= node <= until < len(graph) for node, until in kept)
    assert list(backend.graph_optimize(graph[:1], lambda node, until: None)) == [0]


def test_stream(device, pytestconfig):
    if pytestconfig.getoption("--idle"):
        pytest.skip("it need have none")
    backend = stream(device)
    assert isinstance(backend.name, str)
    for none in ((), []):
        assert backend.graph_compute(none) == Status.SUCCESS
        assert backend.synchronize() == Status.SUCCESS


FOREIGN = [
    *((op, np.dtype(np.float64)) for op in (Op.VIEW, Op.ADD, Op.SCALE, Op.COPY)),
    *((op, np.dtype(text)) for op in (Op.MATMUL, Op.OUT_PROD) for text in ("U4", "O", "M8[s]")),
]


@pytest.mark.parametrize(("op", "dtype"), FOREIGN)
def test_what_no_device_of_ggarray_computes(device, op, dtype):
    if not is_in_tree(device):
        pytest.skip("the interface does not say what others do")
    x = np.zeros((32, 32), dtype)
    operands = {Op.COPY: (x,), Op.OUT_PROD: (x[:, :1], x[:, :1])}.get(op, (x, x))
    kernel = Kernel(op, operands, np.ones((32, 32), dtype))
    assert not device.supports_op(kernel)
    assert finished(stream(device), [kernel]) == Status.FAILED
    np.testing.assert_array_equal(kernel.out, np.ones((32, 32), dtype))
