import os

import gguf
import ml_dtypes
import numpy as np
import pytest
from cpu_graphs import check, every_kind, memory_of, run_as_graph, run_as_plan

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import q4_0, q4_1, q8_0
from ggarray.backends.cpu import kernels, machine, registry
from ggarray.interface import (
    HOST,
    Caps,
    DeviceType,
    Flag,
    HostBuffers,
    Kernel,
    Op,
    Status,
    Tensor,
)

both_ways = pytest.mark.parametrize("run", [run_as_graph, run_as_plan])


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


def test_host_memory_is_taken_in_place(device, backend):
    assert isinstance(device, HostBuffers)
    assert device.host_buffer_type is None
    assert device.buffer_type is HOST
    assert device.caps == Caps(buffer_from_host_ptr=True)
    memory = np.zeros(128)
    address = memory.__array_interface__["data"][0]
    buffer = device.buffer_from_host_ptr(address, memory.nbytes, memory.nbytes)
    assert (buffer.base, buffer.size) == (address, memory.nbytes)
    assert device.supports_buffer_type(buffer.buffer_type)
    out = buffer.array(Tensor((2, 3), np.dtype(float), (24, 8), buffer=buffer, offset=64))
    kernel = Kernel(Op.MATMUL, (np.ones((2, 4)), np.ones((4, 3))), out)
    assert backend.graph_compute([kernel]) is Status.SUCCESS
    assert memory.tolist() == [0] * 8 + [4] * 6 + [0] * 114


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


def test_every_kind_of_node(backend):
    cases = every_kind(6)
    assert backend.graph_compute([case.kernel for case in cases]) is Status.SUCCESS
    for case in cases:
        check(case, case.kernel.out)


def test_nodes_without_the_flag_are_passed_over(backend):
    x = np.ones((2, 2))
    flags = [Flag.COMPUTE, Flag(0), Flag.INPUT | Flag.OUTPUT, Flag.OUTPUT | Flag.COMPUTE]
    graph = [Kernel(Op.MATMUL, (x, x), np.zeros((2, 2)), flags=each) for each in flags]
    assert backend.graph_compute(graph) is Status.SUCCESS
    assert [kernel.out.sum() for kernel in graph] == [8, 0, 0, 8]


def test_what_is_passed_over_need_not_be_computable(backend):
    x = np.ones((2, 2))
    graph = [Kernel(Op.ADD, (x, x), x.copy(), alpha=3, flags=Flag.OUTPUT)]
    for run in (run_as_graph, run_as_plan):
        assert run(backend, graph) is Status.SUCCESS
    assert (graph[0].out == 1).all()


# ---- what is supported ------------------------------------------------------------------------


def tensor(dtype, shape=(32, 32), axis=None):
    return Tensor(shape, dtype, (), axis).contiguous()


@pytest.mark.parametrize("dtype", [*"bhilqBHILQefdFD", ml_dtypes.bfloat16])
def test_products_of_every_dtype_are_supported(device, dtype):
    x = tensor(np.dtype(dtype))
    assert device.supports_op(Kernel(Op.MATMUL, (x, x), x))
    column = tensor(np.dtype(dtype), (32, 1))
    assert device.supports_op(Kernel(Op.OUT_PROD, (column, column), x))
    assert not device.supports_op(Kernel(Op.OUT_PROD, (x, x), x))


@pytest.mark.parametrize("qdtype", [q4_0, q4_1, q8_0], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_quantized_nodes_are_told_by_their_dtypes(device, qdtype, axis):
    plain, blocks = tensor(np.dtype("f")), tensor(qdtype, axis=axis)
    half, double = tensor(np.dtype("e")), tensor(np.dtype("d"))
    values = Blocks(np.zeros((32, 1, qdtype.block_bytes), np.uint8), qdtype)
    for quantized in (blocks, values):
        assert device.supports_op(Kernel(Op.MATMUL, (plain, quantized), plain))
        assert device.supports_op(Kernel(Op.MATMUL, (quantized, plain), plain))
        assert device.supports_op(Kernel(Op.COPY, (quantized,), plain))
        assert device.supports_op(Kernel(Op.COPY, (plain,), quantized))
        assert not device.supports_op(Kernel(Op.COPY, (quantized,), quantized))
        assert not device.supports_op(Kernel(Op.COPY, (quantized,), double))
        assert not device.supports_op(Kernel(Op.COPY, (half,), quantized))
        assert not device.supports_op(Kernel(Op.MATMUL, (double, quantized), double))
        assert not device.supports_op(Kernel(Op.MATMUL, (half, quantized), half))
        assert not device.supports_op(Kernel(Op.MATMUL, (plain, quantized), quantized))
        assert not device.supports_op(Kernel(Op.OUT_PROD, (plain, quantized), plain))


def refused():
    """Return nodes that have no kernel, by what is wrong with them."""
    x, halves = np.ones((32, 32), "f"), np.ones((32, 32), "e")
    text, objects = np.zeros((32, 32), "U4"), np.zeros((32, 32), object)
    times = np.zeros((32, 32), "M8[s]")
    blocks = Blocks(np.zeros((32, 1, 34), np.uint8), q8_0)
    column = Blocks(np.zeros((1, 1, 34), np.uint8), q8_0).mT
    two = (x, x)
    return {
        "alpha": Kernel(Op.MATMUL, two, x.copy(), alpha=2),
        "negative alpha": Kernel(Op.MATMUL, two, x.copy(), alpha=-1),
        "bias": Kernel(Op.MATMUL, two, x.copy(), beta=1, bias=x),
        "alpha of an outer product": Kernel(Op.OUT_PROD, (x[:, :1],) * 2, x.copy(), alpha=2),
        "bias of an outer product": Kernel(Op.OUT_PROD, (x[:, :1],) * 2, x.copy(), beta=-1, bias=x),
        "alpha of a copy": Kernel(Op.COPY, (blocks,), x.copy(), alpha=2),
        "wider out": Kernel(Op.MATMUL, two, np.ones((32, 32))),
        "narrower out": Kernel(Op.MATMUL, two, halves.copy()),
        "wider out of an outer product": Kernel(Op.OUT_PROD, (x[:, :1],) * 2, np.ones((32, 32))),
        "operands of two dtypes": Kernel(Op.MATMUL, (x, halves), x.copy()),
        "quantized for float64": Kernel(Op.MATMUL, (x.astype("d"), blocks), np.ones((32, 32))),
        "quantized column": Kernel(Op.OUT_PROD, (x[:, :1], column), x.copy()),
        "plain copy": Kernel(Op.COPY, (x,), x.copy()),
        "decoding to float64": Kernel(Op.COPY, (blocks,), np.ones((32, 32))),
        "text": Kernel(Op.MATMUL, (text, text), text.copy()),
        "objects": Kernel(Op.MATMUL, (objects, objects), objects.copy()),
        "times": Kernel(Op.OUT_PROD, (times[:, :1],) * 2, times.copy()),
        "addition": Kernel(Op.ADD, two, x.copy()),
        "scaling": Kernel(Op.SCALE, (x,), x.copy(), alpha=2),
    }


@both_ways
@pytest.mark.parametrize("name", refused())
def test_a_node_without_a_kernel_ends_a_graph_and_is_not_written_to(device, backend, run, name):
    kernel = refused()[name]
    assert not device.supports_op(kernel)
    x = np.ones((2, 2))
    first, last = (Kernel(Op.MATMUL, (x, x), np.zeros((2, 2))) for _ in range(2))
    before = memory_of(kernel.out).tobytes()
    assert run(backend, [first, kernel, last]) is Status.FAILED
    assert memory_of(kernel.out).tobytes() == before
    assert (first.out.sum(), last.out.sum()) == (8, 0)


# ---- the backend's own functions ----------------------------------------------------------------


def test_procedures(backend):
    assert sorted(registry.procedures()) == [
        "get_features",
        "set_abort_callback",
        "set_n_threads",
        "set_threadpool",
        "threadpool_free",
        "threadpool_new",
    ]
    registry.get_proc_address("set_n_threads")(backend, 5)
    assert backend.n_threads == 5


def products(n_nodes):
    x = np.ones((2, 2))
    return [Kernel(Op.MATMUL, (x, x), np.zeros((2, 2))) for _ in range(n_nodes)]


@both_ways
def test_a_callback_is_asked_before_each_node_and_ends_the_graph(backend, run):
    graph, asked = products(5), []

    def callback(limit):
        asked.append([bool(kernel.out.any()) for kernel in graph])
        return len(asked) > limit

    set_abort_callback = registry.get_proc_address("set_abort_callback")
    set_abort_callback(backend, callback, 2)
    assert run(backend, graph) is Status.ABORTED
    assert asked == [[i < n for i in range(5)] for n in range(3)]
    assert [kernel.out.sum() for kernel in graph] == [8, 8, 0, 0, 0]
    set_abort_callback(backend, callback, 10)
    assert run(backend, graph) is Status.SUCCESS
    assert [kernel.out.sum() for kernel in graph] == [8] * 5
    set_abort_callback(backend, None)
    asked.clear()
    assert run(backend, graph) is Status.SUCCESS
    assert not asked


@both_ways
def test_what_a_callback_raises_ends_the_graph(backend, run):
    graph = products(3)

    def callback(data):
        assert data is None
        if graph[0].out.any():
            raise LookupError("enough")
        return False

    registry.get_proc_address("set_abort_callback")(backend, callback)
    with pytest.raises(LookupError, match="enough"):
        run(backend, graph)
    assert [kernel.out.sum() for kernel in graph] == [8, 0, 0]


@both_ways
def test_the_abort_of_all_streams_ends_a_graph(backend, run):
    graph = products(3)

    def callback(_):
        kernels.set_abort(bool(graph[1].out.any()))
        return False

    registry.get_proc_address("set_abort_callback")(backend, callback)
    try:
        assert run(backend, graph) is Status.ABORTED
    finally:
        kernels.set_abort(False)
    assert [kernel.out.sum() for kernel in graph] == [8, 8, 0]


# By NumPy's names, what it finds out by itself.
FEATURES = {
    "SSE3": "SSE3",
    "SSSE3": "SSSE3",
    "AVX": "AVX",
    "AVX2": "AVX2",
    "F16C": "F16C",
    "FMA3": "FMA",
    "AVX512F": "AVX512",
    "AVX512VBMI": "AVX512_VBMI",
    "AVX512VNNI": "AVX512_VNNI",
    "ASIMD": "NEON",
    "ASIMDHP": "FP16_VA",
    "ASIMDDP": "DOTPROD",
    "SVE": "SVE",
    "VXE": "VXE",
}


def test_features_are_those_that_numpy_finds():
    from numpy._core._multiarray_umath import __cpu_features__ as found

    features = registry.get_proc_address("get_features")()
    assert features.items() >= kernels.features().items()
    if not any(machine.processor_features().values()):
        pytest.skip("the system tells nothing")
    known = [name for name in FEATURES if name in found]
    assert known
    for name in known:
        assert features[FEATURES[name]] is bool(found[name]), name


CPUINFO = {
    "s390x": (
        "vendor_id       : IBM/S390\n# processors    : 2\n"
        "features\t: esan3 zarch stfle msa ldisp eimm dfp edat te vx vxd vxe gs vxe2 nnpa\n",
        {"VXE", "NNPA"},
    ),
    "aarch64": (
        "processor\t: 0\nBogoMIPS\t: 243.75\n"
        "Features\t: fp asimd evtstrm aes crc32 atomics fphp asimdhp asimddp sve i8mm\n",
        {"NEON", "ARM_FMA", "FP16_VA", "DOTPROD", "SVE", "MATMUL_INT8"},
    ),
    "x86_64": (
        "processor\t: 0\nflags\t\t: fpu sse sse2 pni avx_vnni\nbugs\t\t: avx\n"
        "processor\t: 1\nflags\t\t: fpu avx2\n",
        {"SSE3", "AVX_VNNI"},
    ),
    "riscv64": ("processor\t: 0\nisa\t\t: rv64imafdc\nflags\t: avx\n", set()),
}


@pytest.mark.parametrize("name", CPUINFO)
def test_features_by_architecture(monkeypatch, name):
    text, expected = CPUINFO[name]
    monkeypatch.setattr("platform.machine", lambda: name)
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_, **__: text)
    features = machine.processor_features.__wrapped__()
    assert {name for name, has in features.items() if has} == expected
    assert set(map(type, features.values())) == {bool}


def test_a_system_without_proc(monkeypatch):
    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr("pathlib.Path.read_text", missing)
    assert machine.processor_name.__wrapped__()
    assert not any(machine.processor_features.__wrapped__().values())
    page = os.sysconf("SC_PAGE_SIZE")
    assert machine.host_memory() == (0, os.sysconf("SC_PHYS_PAGES") * page)
