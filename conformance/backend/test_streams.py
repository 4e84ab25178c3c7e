"""Graphs of several kernels, devices as they describe themselves, and what none computes."""

import numpy as np
import pytest

from conformance.backend.cases import CASES, PLAIN, Case
from conformance.backend.computing import Result, compute, is_in_tree, judge, supported
from conformance.standard.references import kind_of, numbers
from ggarray._runtime.plugins import stream
from ggarray.interface import DeviceType, Kernel, Op, Status


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
        device.supports_op(Kernel(case.op, operands, Result(case, operands, 0).out))
        for case in CASES
        if (operands := case.operands(0))
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
    assert stream(device).graph_compute(several(graph)) == Status.SUCCESS
    for case, operands, result in checks:
        result.check_surroundings()
        judge(case, operands, nmse)(result.out)


def test_stream(device, pytestconfig):
    if pytestconfig.getoption("--idle"):
        pytest.skip("it need have none")
    backend = stream(device)
    assert isinstance(backend.name, str)
    for none in ((), []):
        assert backend.graph_compute(none) == Status.SUCCESS
    backend.synchronize()


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
    assert compute(stream(device), kernel) == Status.FAILED
    np.testing.assert_array_equal(kernel.out, np.ones((32, 32), dtype))
