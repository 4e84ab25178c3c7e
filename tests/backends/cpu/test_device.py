import os

import gguf
import numpy as np
import pytest

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import q8_0
from ggarray.backends.cpu import device as cpu_device, kernels, registry
from ggarray.interface import DeviceType, Kernel, Op, Status, Tensor


@pytest.fixture
def device():
    (device,) = registry.devices()
    return device


@pytest.fixture
def backend(device):
    return device.init_backend()


def test_the_device(device):
    assert (device.name, device.type) == ("cpu", DeviceType.CPU)
    assert device.description
    free, total = device.memory()
    page = os.sysconf("SC_PAGE_SIZE")
    assert 0 < free <= total
    assert abs(total - os.sysconf("SC_PHYS_PAGES") * page) < 0.01 * total


def test_matmul(backend):
    a, b, out = np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4), np.empty((2, 4), int)
    assert backend.graph_compute([Kernel(Op.MATMUL, (a, b), out)]) is Status.SUCCESS
    assert out.tolist() == [[20, 23, 26, 29], [56, 68, 80, 92]]


def test_outer_product(backend):
    a, b, out = np.array([[1.5], [-0.0]]), np.array([[2.0], [np.inf], [3]]), np.empty((2, 3))
    assert backend.graph_compute([Kernel(Op.OUT_PROD, (a, b), out)]) is Status.SUCCESS
    assert np.array_equal(out, [[3, np.inf, 4.5], [0, np.nan, 0]], equal_nan=True)
    assert np.signbit(out[1]).tolist() == [True, np.signbit(out[1, 1]), True]


def test_decoding(backend):
    encoded = gguf.quantize(np.ones((2, 32), "f"), gguf.GGMLQuantizationType.Q8_0)
    blocks, out = Blocks.from_bytes(encoded, q8_0, (2, 32)), np.empty((2, 32), "f")
    assert backend.graph_compute([Kernel(Op.COPY, (blocks,), out)]) is Status.SUCCESS
    assert np.array_equal(out, gguf.dequantize(encoded, gguf.GGMLQuantizationType.Q8_0))


def test_the_first_failure_ends_a_graph(backend, monkeypatch):
    statuses = [Status.SUCCESS, Status.ABORTED, Status.SUCCESS]
    seen = []

    def matmul(a, b, out, n_threads):
        seen.append(n_threads)
        return int(statuses[len(seen) - 1])

    monkeypatch.setattr(kernels, "matmul", matmul)
    backend.n_threads = 3
    x = np.ones((2, 2))
    graph = [Kernel(Op.MATMUL, (x, x), np.empty((2, 2))) for _ in statuses]
    assert backend.graph_compute(graph) is Status.ABORTED
    assert seen == [3, 3]


def tensor(dtype):
    return Tensor((2, 2), np.dtype(dtype), (8, 4))


@pytest.mark.parametrize("dtype", "bhilqBHILQefdFD")
def test_products_of_every_dtype_are_supported(device, dtype):
    x = tensor(dtype)
    assert device.supports_op(Kernel(Op.MATMUL, (x, x), x))
    assert device.supports_op(Kernel(Op.OUT_PROD, (x, x), x))


def test_what_is_not_supported(device):
    x, text = tensor("f"), tensor("U4")
    assert not device.supports_op(Kernel(Op.MATMUL, (text, text), text))
    assert not device.supports_op(Kernel(Op.ADD, (x, x), x))
    assert not device.supports_op(Kernel(Op.COPY, (x,), x))


def test_procedures(backend):
    assert registry.get_proc_address("get_features")() == kernels.features()
    registry.get_proc_address("set_n_threads")(backend, 5)
    assert backend.n_threads == 5


def test_a_system_without_proc(monkeypatch):
    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr("pathlib.Path.read_text", missing)
    assert cpu_device.processor_name.__wrapped__()
    page = os.sysconf("SC_PAGE_SIZE")
    assert cpu_device.host_memory() == (0, os.sysconf("SC_PHYS_PAGES") * page)
