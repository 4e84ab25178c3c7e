"""Products in panels: every value is right, and what the panels are."""

import math

import numpy as np
import pytest
from doubles import NumpyBackend, NumpyDevice
from hypothesis import given, settings, strategies as st

import ggarray as xp
from ggarray._graph import products
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.reference import dequantize_blocks
from ggarray._quantized.traits import q4_1, q8_0
from ggarray.backends.cpu import registry
from ggarray.interface import Backend, BackendError, Flag, Kernel, Op, Status, Tensor

(CPU,) = registry.devices()


class Panels(Backend):
    """The CPU's stream, of which every call is kept."""

    name = "panels"

    def __init__(self):
        self.kernels = []
        self.backend = CPU.init_backend()

    def graph_compute(self, graph):
        self.kernels += graph
        self.backend.n_threads = self.n_threads
        return self.backend.graph_compute(graph)


@pytest.fixture
def panels(monkeypatch):
    """Make every product long, and every panel as small as it may be."""
    backend = Panels()
    monkeypatch.setattr(products, "stream", lambda device: backend)
    monkeypatch.setattr(products, "_SMALL", 0)
    monkeypatch.setattr(products, "_FIRST", 1)
    monkeypatch.setattr(products, "_PANEL_SECONDS", 0)
    monkeypatch.setattr(products, "_speed", {})
    return backend


def normal(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def quantized(shape, dtype, seed=0):
    """Return random blocks along the last axis, of scales that are no special values."""
    rng = np.random.default_rng(seed)
    blocks = (*shape[:-1], shape[-1] // dtype.block_size)
    data = rng.integers(0, 256, (*blocks, dtype.block_bytes), np.uint8)
    data[..., :2] = rng.uniform(0.1, 1, (*blocks, 1)).astype("<f2").view(np.uint8)
    if dtype is q4_1:
        data[..., 2:4] = rng.uniform(-9, 9, (*blocks, 1)).astype("<f2").view(np.uint8)
    return Blocks(data, dtype)


def plain(operand):
    value = dequantize_blocks(operand) if isinstance(operand, Blocks) else operand
    return value.astype(np.float64)


def run(a, b, op=Op.MATMUL):
    """Compute a product with `products.run`; check its values and return them."""
    x, y = plain(a), plain(b)
    expected = x @ y if op is Op.MATMUL else x * y.T
    magnitude = np.abs(x) @ np.abs(y) if op is Op.MATMUL else np.abs(expected)
    dtype = np.float32 if isinstance(a, Blocks) else b.dtype
    dtype = np.float32 if isinstance(b, Blocks) else dtype
    out = np.full(expected.shape, np.nan, dtype)
    products.run(Kernel(op, (a, b), out), CPU, 2)
    error = np.abs(out - expected)
    assert np.all(error <= 64 * np.finfo(dtype).eps * magnitude)
    return out


def assert_cover(panels, out):
    """Check that the panels are parts of `out` that have no element in common, and all of them."""
    seen = np.zeros(out.shape, int)
    first = out.__array_interface__["data"][0]
    for kernel in panels.kernels:
        part = kernel.out
        offset = part.__array_interface__["data"][0] - first
        assert np.shares_memory(part, out) or not out.size
        np.ndarray(part.shape, int, seen, offset * 8 // out.itemsize, scaled(part, 8))[...] += 1
    assert np.all(seen == 1)


def scaled(part, itemsize):
    """Return the strides of an array like `part` of elements of another size."""
    return [stride * itemsize // part.itemsize for stride in part.strides]


def shapes_of(panels):
    return [kernel.out.shape for kernel in panels.kernels]


def test_rows(panels):
    a, b = normal((300, 40)), normal((40, 30), seed=1)
    assert_cover(panels, run(a, b))
    assert shapes_of(panels) == [(64, 30)] * 4 + [(44, 30)]
    assert panels.n_threads == 2


def test_columns(panels):
    a, b = normal((30, 40)), normal((40, 300), seed=1)
    assert_cover(panels, run(a, b))
    assert shapes_of(panels) == [(30, 64)] * 4 + [(30, 44)]


def test_strided_operands(panels):
    a, b = normal((40, 300)).T[::-1], normal((30, 80), seed=1).T[::2]
    assert_cover(panels, run(a, b))
    assert len(panels.kernels) == 5


@pytest.mark.parametrize("rows", [1, 63, 64])
def test_fewer_rows_than_a_panel_has(panels, rows):
    run(normal((rows, 40)), normal((40, 1), seed=1))
    assert shapes_of(panels) == [(rows, 1)]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((5, 70, 8), (5, 8, 30)),
        ((5, 70, 8), (8, 30)),
        ((70, 8), (5, 8, 30)),
        ((1, 70, 8), (5, 8, 30)),
        ((5, 70, 8), (1, 8, 30)),
        ((2, 1, 70, 8), (3, 8, 30)),
        ((3, 70, 8), (2, 1, 8, 30)),
        ((1, 1, 70, 8), (1, 1, 8, 30)),
        ((1, 3, 70, 8), (8, 130)),
    ],
)
def test_batches(panels, a, b):
    out = run(normal(a), normal(b, seed=1))
    assert_cover(panels, out)
    assert len(panels.kernels) >= out.size / (64 * 130)
    assert len(panels.kernels) > 1


def test_batches_together(panels, monkeypatch):
    monkeypatch.setattr(products, "_FIRST", 2 * 70 * 30 * 8)
    monkeypatch.setattr(products, "_PANEL_SECONDS", 0)
    run(normal((5, 70, 8)), normal((5, 8, 30), seed=1))
    assert shapes_of(panels)[0] == (2, 70, 30)


@pytest.mark.parametrize("dtype", [q4_1, q8_0])
@pytest.mark.parametrize("columns", [1, 7, 200])
def test_quantized_on_the_left(panels, dtype, columns):
    assert_cover(panels, run(quantized((150, 64), dtype), normal((64, columns), "f")))
    assert shapes_of(panels) == [(64, columns), (64, columns), (22, columns)]


@pytest.mark.parametrize("dtype", [q4_1, q8_0])
@pytest.mark.parametrize("rows", [1, 7, 200])
def test_quantized_on_the_right(panels, dtype, rows):
    weights = quantized((150, 64), dtype).permute((1, 0))
    assert_cover(panels, run(normal((rows, 64), "f"), weights))
    assert shapes_of(panels) == [(rows, 64), (rows, 64), (rows, 22)]


def test_panels_of_the_blocked_axis(panels):
    weights = quantized((40, 160), q8_0)
    run(normal((9, 40), "f"), weights)
    assert shapes_of(panels) == [(9, 64), (9, 64), (9, 32)]
    panels.kernels.clear()
    run(weights.permute((1, 0)), normal((40, 9), "f"))
    assert shapes_of(panels) == [(64, 9), (64, 9), (32, 9)]


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize("left", [True, False])
def test_batches_of_quantized(panels, axes, left):
    blocks = quantized((96, 32, 64), q8_0)
    weights = xp.quantized_from_bytes(blocks.data, xp.q8_0, blocks.shape, device="cpu")
    weights, w = xp.permute_dims(weights, axes), plain(blocks).transpose(axes)
    batch, m, n = w.shape
    x = normal((batch, n, 5) if left else (batch, 5, m), "f")
    array = xp.asarray(x, device="cpu")
    product = np.asarray(weights @ array if left else array @ weights)
    expected, magnitude = (
        (f(w) @ f(x.astype("d")) if left else f(x.astype("d")) @ f(w))
        for f in (np.positive, np.abs)
    )
    assert np.all(np.abs(product - expected) <= 64 * np.finfo("f").eps * magnitude)
    assert sum(kernel.op is Op.MATMUL for kernel in panels.kernels) > 1


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize(("rows", "columns"), [(300, 5), (200, 300), (20, 300), (65, 1)])
def test_outer_products(panels, dtype, rows, columns):
    a, b = normal((rows, 1), dtype), normal((columns, 1), dtype, seed=1)
    out = run(a, b, Op.OUT_PROD)
    assert_cover(panels, out)
    np.testing.assert_array_equal(out, a * b.T)
    assert all(part[0] == min(64, rows) for part in shapes_of(panels)[:-1])
    assert len(panels.kernels) == math.ceil(rows / 64)


class Forgetful(dict):
    """Speeds that nobody remembers."""

    def __contains__(self, key):
        return False


class Shapes(Backend):
    """A stream that only keeps what it is asked for."""

    def __init__(self):
        self.kernels = []

    def graph_compute(self, graph):
        self.kernels += graph
        return Status.SUCCESS


def panels_of(op, a, b, out, most):
    """Return the panels of about `most` multiply-adds of a product without values."""
    stream = Shapes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "stream", lambda device: stream)
        patch.setattr(products, "_SMALL", most)
        patch.setattr(products, "_FIRST", most)
        patch.setattr(products, "_speed", Forgetful())
        a, b, out = (np.broadcast_to(np.empty(1, "f"), shape) for shape in (a, b, out))
        products.run(Kernel(op, (a, b), out), CPU, 1)
    return stream.kernels


@settings(deadline=None)
@given(
    batch=st.lists(st.integers(1, 5), max_size=2),
    rows=st.integers(1, 500),
    columns=st.integers(1, 500),
    inner=st.integers(1, 100),
    most=st.integers(10**4, 10**8),
)
def test_panels_of_any_product(batch, rows, columns, inner, most):
    out = (*batch, rows, columns)
    panels = panels_of(Op.MATMUL, (*batch, rows, inner), (*batch, inner, columns), out, most)
    for panel in panels:
        *_, m, n = panel.out.shape
        assert panel.operands[0].shape[-2:] == (m, inner)
        assert panel.operands[1].shape[-2:] == (inner, n)
        one_tile = panel.out.size == m * n and min(m, n) <= 64
        assert one_tile or panel.out.size * inner <= most + most // 4
    assert sum(panel.out.size for panel in panels) == math.prod(out)


@settings(deadline=None)
@given(st.integers(65, 5000), st.integers(1, 64), st.integers(1, 10**6))
def test_every_panel_but_the_last_is_whole_tiles(long, short, most):
    for op, a, b, axis in [
        (Op.MATMUL, (long, 3), (3, short), 0),
        (Op.MATMUL, (short, 3), (3, long), 1),
        (Op.OUT_PROD, (long, 1), (short, 1), 0),
    ]:
        out = (long, short) if axis == 0 else (short, long)
        shapes = [panel.out.shape for panel in panels_of(op, a, b, out, most)]
        lengths = [shape[axis] for shape in shapes if shape[1 - axis] == short]
        assert all(length % 64 == 0 for length in lengths[:-1])
        if len(lengths) == len(shapes):
            assert sum(lengths) == long
        else:  # what was left is short and wide, and may be cut the other way
            assert sum(math.prod(shape) for shape in shapes) == long * short
            assert all(shape[axis] == long - sum(lengths) for shape in shapes[len(lengths) :])


def test_speed_sets_the_size_of_panels(panels, monkeypatch):
    a, b = normal((640, 4)), normal((4, 8), seed=1)
    monkeypatch.setattr(products, "_FIRST", 640 * 4 * 8)
    run(a, b)
    assert shapes_of(panels) == [(640, 8)]
    ((key, speed),) = products._speed.items()
    assert speed > 0
    panels.kernels.clear()
    # so that the next panel is of 130 rows, which are two tiles
    monkeypatch.setattr(products, "_PANEL_SECONDS", 130 * 4 * 8 / speed * 1.0001)
    run(a, b)
    assert shapes_of(panels)[0] == (128, 8)
    assert list(products._speed) == [key]


def test_speeds_are_kept_apart(panels):
    run(normal((9, 4)), normal((4, 8)))
    run(normal((9, 4), "f"), normal((4, 8), "f"))
    run(quantized((9, 32), q8_0), normal((32, 8), "f"))
    run(normal((9, 32), "f"), quantized((32, 32), q8_0))
    run(normal((9, 1)), normal((8, 1)), Op.OUT_PROD)
    assert len(products._speed) == 5


def test_short_products_are_one_call(panels, monkeypatch):
    monkeypatch.setattr(products, "_SMALL", 300 * 40 * 30)
    run(normal((300, 40)), normal((40, 30)))
    assert shapes_of(panels) == [(300, 30)]
    assert products._speed == {}
    run(normal((301, 40)), normal((40, 30)))
    assert len(panels.kernels) == 1 + 5


@pytest.mark.parametrize("shapes", [((0, 3), (3, 200)), ((200, 3), (3, 0)), ((200, 0), (0, 200))])
def test_no_elements(panels, shapes):
    out = run(*(normal(shape) for shape in shapes))
    assert not np.any(out)
    assert_cover(panels, out)


def test_decoding_is_one_call(panels):
    blocks, out = quantized((300, 64), q8_0), np.empty((300, 64), "f")
    products.run(Kernel(Op.COPY, (blocks,), out), CPU, 1)
    np.testing.assert_array_equal(out, dequantize_blocks(blocks))
    assert len(panels.kernels) == 1


@pytest.fixture
def double(panels, monkeypatch):
    """A device of NumPy, also in panels."""
    device = NumpyDevice("of products")
    monkeypatch.setattr(products, "stream", lambda device: device.backend)
    return device


@pytest.mark.parametrize("panel", [0, 2])
@pytest.mark.parametrize(
    ("outcome", "error", "message"),
    [
        (Status.FAILED, BackendError, r"of products: matmul of float64\(.*4\) and .* failed"),
        (Status.ALLOC_FAILED, MemoryError, r"of products: .*matmul of float64\(.*4\)"),
        (Status.ABORTED, KeyboardInterrupt, "^$"),
        (7, BackendError, "of products"),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
        (OSError("gone"), OSError, "gone"),
    ],
)
def test_outcomes(double, outcome, error, message, panel):
    double.backend.outcomes[:] = [Status.SUCCESS] * panel + [outcome]
    out = np.empty((300, 5))
    kernel = Kernel(Op.MATMUL, (np.ones((300, 4)), np.ones((4, 5))), out)
    with pytest.raises(error, match=message):
        products.run(kernel, double, 1)
    assert len(double.backend.computed) == panel  # and none after it
    products.run(kernel, double, 1)
    assert np.all(out == 4)


def test_vectors_as_matrices():
    vector = np.arange(6)[::2]
    row, column = (products.as_matrix(vector, left) for left in (True, False))
    assert (row.tolist(), column.tolist()) == ([[0, 2, 4]], [[0], [2], [4]])
    stand_in = Tensor(vector.shape, vector.dtype, vector.strides)
    for left, matrix in ((True, row), (False, column)):
        tensor = products.as_matrix(stand_in, left)
        assert (tensor.shape, tensor.dtype) == (matrix.shape, matrix.dtype)
        long = matrix.shape.index(3)
        assert tensor.strides[long] == matrix.strides[long]
    blocks = quantized((64,), q8_0)
    expected = dequantize_blocks(blocks)
    left, right = (products.as_matrix(blocks, left) for left in (True, False))
    np.testing.assert_array_equal(dequantize_blocks(left), expected[None, :])
    np.testing.assert_array_equal(dequantize_blocks(right), expected[:, None])
    for matrix in (row, left, Tensor((2, 3), vector.dtype, (24, 8))):
        assert products.as_matrix(matrix, left=True) is matrix


EPILOGUES = {  # shapes of operands and of what is added
    "all": ((300, 4), (4, 70), (300, 70)),
    "a row": ((300, 4), (4, 70), (1, 70)),
    "a column": ((300, 4), (4, 70), (300, 1)),
    "one number": ((70, 4), (4, 300), (1, 1)),
    "a row of panels of columns": ((70, 4), (4, 300), (1, 300)),
    "a column of panels of columns": ((70, 4), (4, 300), (70, 1)),
    "batches": ((5, 90, 4), (4, 70), (5, 90, 70)),
    "one for all batches": ((5, 90, 4), (4, 70), (1, 90, 70)),
    "a number each": ((5, 90, 4), (5, 4, 70), (5, 1, 1)),
    "batches of batches": ((2, 3, 90, 4), (4, 70), (1, 3, 1, 70)),
}


@pytest.mark.parametrize("beta", [1, -1])
@pytest.mark.parametrize("name", EPILOGUES)
def test_what_is_done_to_a_product_is_done_to_its_panels(panels, monkeypatch, name, beta):
    backend = NumpyBackend("panels")
    monkeypatch.setattr(panels, "backend", backend)
    a, b, bias = (normal(shape, seed=at) for at, shape in enumerate(EPILOGUES[name]))
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    out = np.full(shape, np.nan, np.float32)
    products.run(Kernel(Op.MATMUL, (a, b), out, 2.5, beta, bias), CPU, 1)
    np.testing.assert_allclose(out, 2.5 * (a @ b) + beta * bias, rtol=1e-5, atol=1e-5)
    assert_cover(panels, out)
    assert len(backend.computed) > 1
    assert {kernel.flags for kernel in panels.kernels} == {Flag.COMPUTE}
