import ctypes
import os
import signal

import gguf
import numpy as np
import pytest

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import q4_0, q4_1, q8_0
from ggarray.backends.blas import registry
from ggarray.backends.blas._shim import ffi
from ggarray.backends.blas.device import BlasDevice
from ggarray.backends.blas.vendors import find_numpy_openblas
from ggarray.interface import DeviceType, Kernel, Op, Status, Tensor

TOLERANCE = {"f": 1e-5, "d": 1e-13, "F": 1e-5, "D": 1e-13}
SHAPES = [(5, 7, 3), (1, 7, 3), (5, 1, 3), (1, 1, 4), (1, 1, 1), (5, 7, 1), (37, 48, 65)]
GGUF_TYPES = {
    q4_0: gguf.GGMLQuantizationType.Q4_0,
    q4_1: gguf.GGMLQuantizationType.Q4_1,
    q8_0: gguf.GGMLQuantizationType.Q8_0,
}


@pytest.fixture(scope="module")
def device():
    return registry.devices()[0]


@pytest.fixture
def backend(device):
    return device.init_backend()


def normal(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype in "FD" else x).astype(dtype)


def layouts(x):
    """Return equal matrices that lie differently in memory."""
    rows, columns = x.shape
    shifted = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    shifted[...] = x
    packed = np.zeros(rows, np.dtype([("values", x.dtype, columns), ("odd", "u1")]))
    packed["values"] = x
    return {
        "C": x,
        "F": np.asfortranarray(x),
        "row panel": np.tile(x, (1, 2))[:, :columns],
        "column panel": np.asfortranarray(np.tile(x, (2, 1)))[:rows],
        "every second": np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2],
        "rows reversed": np.ascontiguousarray(x[::-1])[::-1],
        "columns reversed": np.ascontiguousarray(x[:, ::-1])[:, ::-1],
        "unaligned": shifted,
        "rows apart by no multiple": packed["values"],
    }


def product(backend, a, b):
    """Compute a @ b into memory full of NaN, between sentinels which must stay."""
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    dtype = np.float32 if Blocks in (type(a), type(b)) else a.dtype
    memory = np.full((*shape[:-2], shape[-2] + 2, shape[-1] + 3), 7, dtype)
    out = memory[..., 1:-1, 2:-1]
    out.fill(np.nan)
    assert backend.graph_compute([Kernel(Op.MATMUL, (a, b), out)]) is Status.SUCCESS
    result = out.copy()
    out.fill(7)
    assert (memory == 7).all()
    return result


def assert_close(actual, a, b):
    dtype = actual.dtype.char
    wide = "D" if dtype in "FD" else "d"
    a, b = a.astype(wide), b.astype(wide)
    bound = TOLERANCE[dtype] * (np.abs(a) @ np.abs(b))
    assert (np.abs(actual - a @ b) <= bound).all()


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_every_layout(backend, dtype, m, n, k):
    a, b = normal((m, k), dtype), normal((k, n), dtype, seed=1)
    for left in layouts(a).values():
        assert_close(product(backend, left, b), a, b)
    for right in layouts(b).values():
        assert_close(product(backend, a, right), a, b)
    for name in layouts(a):
        assert_close(product(backend, layouts(a)[name], layouts(b)[name]), a, b)


@pytest.mark.parametrize("dtype", "fD")
def test_repeated_rows_and_columns(backend, dtype):
    row, column = normal((1, 6), dtype), normal((6, 1), dtype, seed=1)
    a, b = np.broadcast_to(row, (4, 6)), np.broadcast_to(column, (6, 5))
    assert a.strides[0] == b.strides[1] == 0
    assert_close(product(backend, a, b), a, b)
    one = normal((1, 1), dtype)
    a, b = np.broadcast_to(one, (4, 6)), np.broadcast_to(one, (6, 1))
    assert_close(product(backend, a, b), a, b)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 6), (5, 1)])
def test_strides_along_axes_of_one_element_do_not_matter(backend, dtype, m, n):
    def odd(x):
        strides = [
            0 if length == 1 else stride for length, stride in zip(x.shape, x.strides, strict=True)
        ]
        return np.lib.stride_tricks.as_strided(x, x.shape, strides)

    a, b = normal((m, 1), dtype), normal((1, n), dtype, seed=1)
    out = np.full((m, n), np.nan, dtype)
    if out.size == 1:
        assert odd(out).strides == (0, 0)
    kernel = Kernel(Op.MATMUL, (odd(a), odd(b)), odd(out))
    assert backend.graph_compute([kernel]) is Status.SUCCESS
    assert_close(out, a, b)


@pytest.mark.parametrize(
    ("a_batch", "b_batch"),
    [((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 1, 4), (5, 1)), ((2, 3), (1, 3)), ((1, 1), (1,))],
)
@pytest.mark.parametrize(("m", "n", "k"), [(4, 6, 5), (1, 6, 5), (4, 1, 5), (1, 1, 5)])
def test_batches_broadcast(backend, a_batch, b_batch, m, n, k):
    a, b = normal((*a_batch, m, k), "d"), normal((*b_batch, k, n), "d", seed=1)
    assert_close(product(backend, a, b), a, b)
    a_transposed, b_transposed = (np.ascontiguousarray(x.mT).mT for x in (a, b))
    assert_close(product(backend, a_transposed, b_transposed), a, b)
    reversed_batch = a[::-1] if a_batch else a
    assert_close(product(backend, reversed_batch, b), reversed_batch, b)


def test_batch_of_rows_with_contiguous_result(backend):
    a, b = normal((3, 4, 1, 5), "f"), normal((5, 6), "f", seed=1)
    out = np.full((3, 4, 1, 6), np.nan, "f")
    assert backend.graph_compute([Kernel(Op.MATMUL, (a, b), out)]) == Status.SUCCESS
    assert_close(out, a, b)
    a = a.transpose(1, 0, 2, 3)
    out = np.full((4, 3, 1, 6), np.nan, "f")
    assert backend.graph_compute([Kernel(Op.MATMUL, (a, b), out)]) == Status.SUCCESS
    assert_close(out, a, b)


def test_no_inner_dimension_gives_zeros(backend):
    a, b = np.empty((2, 3, 0)), np.empty((0, 4))
    assert (product(backend, a, b) == 0).all()


def test_empty_result(backend):
    assert product(backend, np.ones((0, 3)), np.ones((3, 4))).shape == (0, 4)
    assert product(backend, np.ones((0, 2, 3)), np.ones((3, 4))).shape == (0, 2, 4)


def test_nodes_are_computed_in_order(backend):
    a = normal((4, 4), "d")
    first, second = np.empty((4, 4)), np.empty((4, 4))
    graph = [Kernel(Op.MATMUL, (a, a), first), Kernel(Op.MATMUL, (first, a), second)]
    assert backend.graph_compute(graph) == Status.SUCCESS
    assert_close(second, a @ a, a)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("m", "n"), [(40, 50), (1, 50), (40, 1)])
def test_nonfinite_operands(backend, dtype, m, n):
    a, b = np.zeros((m, 33), dtype), normal((33, n), dtype)
    b[2] = np.nan
    assert np.isnan(product(backend, a, b)).all()
    a[...] = 1
    b[2] = np.inf
    assert not np.isfinite(product(backend, a, b)).any()


@pytest.mark.parametrize("dtype", [q4_0, q4_1, q8_0])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_quantized_weights(backend, monkeypatch, dtype, transposed, batch):
    monkeypatch.setattr("ggarray.backends.blas.device._PANEL_BYTES", 1)  # panels of 256
    shape = (*batch, 64, 320) if transposed else (*batch, 320, 64)
    encoded = gguf.quantize(normal(shape, "f"), GGUF_TYPES[dtype])
    decoded = gguf.dequantize(encoded, GGUF_TYPES[dtype])
    blocks = Blocks.from_bytes(encoded, dtype, shape)
    if not transposed:
        blocks, decoded = blocks.mT, decoded.mT
    x = normal((33, 64), "f", seed=1)
    assert_close(product(backend, x, blocks), x, decoded)
    assert_close(product(backend, blocks.mT, x.T), decoded.mT, x.T)


def test_quantized_along_a_batch_axis(backend):
    encoded = gguf.quantize(normal((5, 6, 32), "f"), GGUF_TYPES[q8_0])
    decoded = gguf.dequantize(encoded, GGUF_TYPES[q8_0])
    blocks = Blocks.from_bytes(encoded, q8_0, (5, 6, 32)).permute((2, 0, 1))
    x = normal((6, 4), "f", seed=1)
    assert_close(product(backend, blocks, x), decoded.transpose(2, 0, 1), x)


def test_statuses_of_decoding_are_passed_on(backend, monkeypatch):
    blocks = Blocks.from_bytes(bytes(34 * 2), q8_0, (2, 32))
    kernel = Kernel(Op.MATMUL, (normal((3, 32), "f"), blocks.mT), np.empty((3, 2), "f"))
    monkeypatch.setattr("ggarray.backends.cpu.kernels.to_float", lambda *_: int(Status.ABORTED))
    assert backend.graph_compute([kernel]) is Status.ABORTED


def test_memory_that_cannot_be_had(backend, monkeypatch):
    def refuse(*_, **__):
        raise MemoryError

    a = normal((4, 4), "f")
    kernel = Kernel(Op.MATMUL, (a[::-1], a), np.empty((4, 4), "f"))
    monkeypatch.setattr("numpy.array", refuse)
    assert backend.graph_compute([kernel]) is Status.ALLOC_FAILED


def test_threads_are_limited(backend):
    handle = find_numpy_openblas().handle
    get = ffi.cast("int (*)(void)", handle.get_threads)
    set_ = ffi.cast("void (*)(int)", handle.set_threads)
    before = get()
    a = normal((4, 4), "f")
    try:
        for asked, set_by_others, expected in [(1, None, 1), (2, None, 2), (2, 1, 1), (1, 2, 1)]:
            if set_by_others is not None:
                backend.n_threads = asked
                product(backend, a, a)
                set_(set_by_others)
            backend.n_threads = asked
            product(backend, a, a)
            assert get() == expected
        handle.threads = 0
        set_(1)
        backend.n_threads = 2
        product(backend, a, a)
        assert get() == 1
    finally:
        set_(before)
        handle.threads = before


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the parent has threads
def test_products_in_a_forked_child(backend):
    backend.n_threads = 2
    a = normal((300, 300), "f")
    expected = product(backend, a, a)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        same = np.allclose(product(backend, a, a), expected, 1e-5, 1e-3)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_devices():
    devices = registry.devices()
    assert [device.name for device in devices] == ["blas", "blas:openblas"]
    for device in devices:
        assert device.type is DeviceType.ACCEL
        assert device.description.startswith("OpenBLAS ")
        assert device.init_backend().name == device.name
        free, total = device.memory()
        assert 0 < free <= total


def test_no_devices_without_a_library(monkeypatch):
    monkeypatch.setattr("ggarray.backends.blas.device.find_numpy_openblas", lambda: None)
    assert registry.devices() == ()


def test_procedures(backend):
    registry.get_proc_address("set_n_threads")(backend, 3)
    assert backend.n_threads == 3
    assert registry.get_proc_address("no such") is None


def node(m, n, k, dtype="f", op=Op.MATMUL):
    def tensor(*shape):
        return Tensor(shape, np.dtype(dtype), (shape[1] * np.dtype(dtype).itemsize, 1))

    return Kernel(op, (tensor(m, k), tensor(k, n)), tensor(m, n))


def test_supported_nodes(device):
    for dtype in "fdFD":
        assert device.supports_op(node(512, 512, 512, dtype))
        assert device.supports_op(node(1, 1024, 1024, dtype))
        assert not device.supports_op(node(4, 4, 4, dtype))
        assert not device.supports_op(node(512, 512, 512, dtype, Op.OUT_PROD))
    for dtype in (np.int32, np.float16):
        assert not device.supports_op(node(512, 512, 512, dtype))


@pytest.mark.parametrize(("rows", "supported"), [(1, False), (512, True)])
def test_quantized_nodes_need_a_batch(device, rows, supported):
    weights = Blocks.from_bytes(bytes(1024 * 34 * 32), q8_0, (1024, 1024))
    x = Tensor((rows, 1024), np.dtype("f"), (4096, 4))
    out = Tensor((rows, 1024), np.dtype("f"), (4096, 4))
    assert device.supports_op(Kernel(Op.MATMUL, (x, weights.mT), out)) == supported
    x = Tensor((1024, rows), np.dtype("f"), (4 * rows, 4))
    out = Tensor((1024, rows), np.dtype("f"), (4 * rows, 4))
    assert device.supports_op(Kernel(Op.MATMUL, (weights, x), out)) == supported


def test_narrow_libraries_are_not_asked_for_long_operands():
    class Narrow:
        ilp64 = False
        description = ""

    narrow = BlasDevice("blas", Narrow())
    assert narrow.supports_op(node(1 << 20, 2, 1024))
    assert not narrow.supports_op(node(1 << 31, 2, 1024))
    far = Tensor((1024, 1024), np.dtype("f"), (1 << 34, 4))
    near = Tensor((1024, 1024), np.dtype("f"), (4096, 4))
    assert not narrow.supports_op(Kernel(Op.MATMUL, (far, near), near))


def test_address_of_foreign_memory_is_used_as_it_is(backend):
    memory = (ctypes.c_double * 4)(1, 2, 3, 4)
    a = np.frombuffer(memory).reshape(2, 2)
    assert (product(backend, a, np.eye(2)) == [[1, 2], [3, 4]]).all()
