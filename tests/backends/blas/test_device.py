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
from ggarray.interface import DeviceType, Flag, Kernel, Op, Status, Tensor

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


def product(backend, a, b, alpha=1, beta=0, bias=None):
    """Compute a product into memory full of NaN, between sentinels which must stay."""
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    dtype = np.float32 if Blocks in (type(a), type(b)) else a.dtype
    memory = np.full((*shape[:-2], shape[-2] + 2, shape[-1] + 3), 7, dtype)
    out = memory[..., 1:-1, 2:-1]
    out.fill(np.nan)
    kernel = Kernel(Op.MATMUL, (a, b), out, alpha, beta, bias)
    assert backend.graph_compute([kernel]) is Status.SUCCESS
    result = out.copy()
    out.fill(7)
    assert (memory == 7).all()
    return result


def assert_close(actual, a, b, alpha=1, beta=0, bias=0):
    dtype = actual.dtype.char
    wide = "D" if dtype in "FD" else "d"
    a, b = a.astype(wide), b.astype(wide)
    bound = TOLERANCE[dtype] * (abs(alpha) * (np.abs(a) @ np.abs(b)) + np.abs(bias))
    expected = alpha * (a @ b) + beta * np.asarray(bias, wide)
    assert (np.abs(actual - expected) <= bound).all()


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


# -- epilogues -------------------------------------------------------------------------------------

FACTORS = {"f": [1, -1, -0.375], "F": [1, -1, 0.5, 1j, 0.5 - 1.25j]}
FACTORS |= {"d": FACTORS["f"], "D": FACTORS["F"]}


def biases(dtype, shape, seed=2):
    """Return what may be added to a result of this shape, with its sign; nothing is, too."""
    rows, columns = shape[-2:]
    lengths = {(rows, columns), (1, columns), (rows, 1), (1, 1)}
    yield 0, None
    for number, matrix in enumerate(sorted(lengths)):
        for batch in {(1,) * (len(shape) - 2), shape[:-2]}:
            yield (-1) ** number, normal((*batch, *matrix), dtype, seed + number)
    whole = normal((*shape[:-2], columns, 2 * rows), dtype, seed)
    yield -1, whole[..., ::-2].mT
    yield 1, np.broadcast_to(whole[..., :1, :1], shape)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("m", "n", "k"), [*SHAPES, (5, 7, 0), (1, 7, 0), (5, 1, 0), (40, 1, 50)])
def test_epilogues(backend, dtype, m, n, k):
    a, b = normal((m, k), dtype), normal((k, n), dtype, seed=1)
    names = ["C", "F", "every second", "unaligned"] if k else ["C"]
    for alpha in FACTORS[dtype]:
        for beta, bias in biases(dtype, (m, n)):
            bias_before = None if bias is None else bias.copy()
            for name in names:
                left, right = (layouts(x)[name] if k else x for x in (a, b))
                actual = product(backend, left, right, alpha, beta, bias)
                assert_close(actual, a, b, alpha, beta, 0 if bias is None else bias)
            assert bias is None or (bias == bias_before).all()


@pytest.mark.parametrize("dtype", "fD")
@pytest.mark.parametrize(
    ("a_batch", "b_batch"), [((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 1, 4), (5, 1)), ((0,), ())]
)
@pytest.mark.parametrize(("m", "n", "k"), [(4, 6, 5), (1, 6, 5), (4, 1, 5), (1, 1, 5), (4, 6, 0)])
def test_epilogues_of_batches(backend, dtype, a_batch, b_batch, m, n, k):
    a, b = normal((*a_batch, m, k), dtype), normal((*b_batch, k, n), dtype, seed=1)
    shape = (*np.broadcast_shapes(a_batch, b_batch), m, n)
    for alpha in FACTORS[dtype]:
        for beta, bias in biases(dtype, shape):
            actual = product(backend, a, b, alpha, beta, bias)
            assert_close(actual, a, b, alpha, beta, 0 if bias is None else bias)


@pytest.mark.parametrize("on_left", [False, True])
@pytest.mark.parametrize("length", [257, 320])  # of panels, the last has one row or column
def test_epilogues_of_quantized_weights(backend, monkeypatch, on_left, length):
    monkeypatch.setattr("ggarray.backends.blas.device._PANEL_BYTES", 1)  # panels of 256
    encoded = gguf.quantize(normal((length, 64), "f"), GGUF_TYPES[q4_1])
    decoded = gguf.dequantize(encoded, GGUF_TYPES[q4_1])
    blocks = Blocks.from_bytes(encoded, q4_1, (length, 64))
    x = normal((33, 64), "f", seed=1)
    quantized, plain = (
        ((blocks, x.T), (decoded, x.T)) if on_left else ((x, blocks.mT), (x, decoded.T))
    )
    shape = (length, 33) if on_left else (33, length)
    for alpha in FACTORS["f"]:
        for beta, bias in biases("f", shape):
            actual = product(backend, *quantized, alpha, beta, bias)
            assert_close(actual, *plain, alpha, beta, 0 if bias is None else bias)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("m", "n"), [(40, 50), (1, 50), (40, 1), (1, 1)])
def test_factors_that_underflow_with_an_operand_alone(backend, dtype, m, n):
    alpha = small = 1e-25 if dtype in "fF" else 1e-250
    large = 1 / small
    for left, right in ((small, large), (large, small)):
        a, b = np.full((m, 33), left, dtype), np.full((33, n), right, dtype)
        bias = np.full((1, n), alpha, dtype)
        np.testing.assert_allclose(product(backend, a, b, alpha), 33 * alpha, rtol=1e-5)
        np.testing.assert_allclose(product(backend, a, b, alpha, -1, bias), 32 * alpha, rtol=1e-5)


def special(shape, dtype, seed):
    """Return numbers of which some are infinite or NaN."""
    rng = np.random.default_rng(seed)
    x = normal(shape, dtype, seed)
    x[rng.random(shape) < 0.02] = np.inf
    x[rng.random(shape) < 0.02] = -np.inf
    x[rng.random(shape) < 0.02] = np.nan
    x[rng.random(shape) < 0.2] = 0
    return x


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize(("m", "n"), [(40, 50), (1, 50), (40, 1)])
@pytest.mark.parametrize("transposed", [False, True])
def test_special_values_of_products_with_epilogues(backend, dtype, m, n, transposed):
    a, b = special((m, 9), dtype, 0), special((9, n), dtype, 1)
    left, right = (np.asfortranarray(x) for x in (a, b)) if transposed else (a, b)
    for alpha in FACTORS[dtype]:
        for beta, bias in biases(dtype, (m, n)):
            bias = None if bias is None else special(bias.shape, dtype, 3)
            with np.errstate(all="ignore"):
                terms = (a[:, :, None] * b[None]).sum(axis=1) * alpha
                expected = terms if bias is None else terms + beta * bias
            actual = product(backend, left, right, alpha, beta, bias)
            np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", "FD")
@pytest.mark.parametrize(("m", "n", "k"), [(40, 50, 9), (1, 50, 9), (40, 1, 9), (4, 5, 0)])
def test_special_values_of_a_complex_bias_keep_their_parts(backend, dtype, m, n, k):
    bias = normal((m, n), dtype)
    bias.real[::2], bias.imag[:, ::3] = np.inf, -np.inf
    bias[-1, -1] = np.nan
    a, b = normal((m, k), dtype), normal((k, n), dtype)
    for alpha in FACTORS[dtype]:
        for beta in (1, -1):
            actual, expected = product(backend, a, b, alpha, beta, bias), alpha * (a @ b)
            for part, into, added in (
                (actual.real, expected.real, bias.real),
                (actual.imag, expected.imag, bias.imag),
            ):
                np.testing.assert_allclose(part, into + beta * added, rtol=1e-3, atol=1e-3)


def test_nodes_that_are_not_to_be_computed(backend):
    a, out = normal((4, 4), "f"), [np.full((4, 4), 7, "f") for _ in range(4)]
    flags = [Flag.OUTPUT, Flag.COMPUTE, Flag.INPUT | Flag.OUTPUT, Flag.INPUT | Flag.COMPUTE]
    graph = [Kernel(Op.MATMUL, (a, a), x, flags=flag) for x, flag in zip(out, flags, strict=True)]
    assert backend.graph_compute(graph) is Status.SUCCESS
    for x, computed in zip(out, [False, True, False, True], strict=True):
        assert (x == 7).all() == (not computed)
        assert not computed or (assert_close(x, a, a) is None)


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


def test_results_of_another_dtype_are_refused(device):
    plain = node(512, 512, 512)
    for char in "dFDe":
        other = plain.out._replace(dtype=np.dtype(char))
        assert not device.supports_op(Kernel(Op.MATMUL, plain.operands, other))
        wide = node(512, 512, 512, "d")
        assert device.supports_op(wide)
        mixed = (plain.operands[0], wide.operands[1])
        assert not device.supports_op(Kernel(Op.MATMUL, mixed, wide.out))


@pytest.mark.parametrize("dtype", "fdFD")
def test_epilogues_are_taken_where_the_product_is(device, dtype):
    bias = Tensor((1, 512), np.dtype(dtype), (0, np.dtype(dtype).itemsize))
    for size in (4, 512):
        plain = node(size, size, size, dtype)
        for alpha, beta, added in ((0.5, 0, None), (1, 1, bias), (-1, -1, bias)):
            kernel = Kernel(Op.MATMUL, plain.operands, plain.out, alpha, beta, added)
            assert device.supports_op(kernel) == device.supports_op(plain)


@pytest.mark.parametrize("axis", [0, 1])
def test_quantized_tensors_are_judged_as_blocks_are(device, axis):
    weights = Tensor((1024, 1024), q8_0, (0, 0), axis).contiguous()
    for rows, supported in ((1, False), (512, True)):
        x = Tensor((rows, 1024), np.dtype("f"), (0, 0)).contiguous()
        assert device.supports_op(Kernel(Op.MATMUL, (x, weights), x)) == supported
        wide = x._replace(dtype=np.dtype("d")).contiguous()
        assert not device.supports_op(Kernel(Op.MATMUL, (x, weights), wide))


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
