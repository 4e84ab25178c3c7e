"""What nodes say of their layouts, against NumPy's arrays and the addresses of single elements."""

from itertools import pairwise, product

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import ggarray as xp
from ggarray._quantized.blocks import Blocks
from ggarray.interface import HOST, Flag, Kernel, Op, Tensor

DTYPES = [np.uint8, np.float16, np.float32, np.complex128]
EXAMPLES = hypothesis.settings(max_examples=200, deadline=None)


def blocks(shape, axis=-1, dtype=xp.q4_1):
    """Blocks of zeros; their bytes are laid out with the blocked axis last."""
    lengths = list(shape)
    length = lengths.pop(axis) // dtype.block_size
    data = np.zeros((*lengths, length, dtype.block_bytes), np.uint8)
    return Blocks(np.moveaxis(data, -2, axis % len(shape)), dtype, axis)


@st.composite
def layouts(draw, shape):
    """An array of this shape whose axes lie in any order, with any steps, forwards or backwards."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([-2, -1, 1, 3])) for _ in shape]
    stored = [shape[axis] * abs(steps[axis]) for axis in order]
    whole = np.zeros(stored, draw(st.sampled_from(DTYPES))).transpose(np.argsort(order))
    x = whole[tuple(slice(None, None, step) for step in steps)]
    assert x.shape == tuple(shape)
    return x


any_shape = st.lists(st.integers(1, 3), max_size=4)


def address(x):
    return x.__array_interface__["data"][0]


# -- tensors ---------------------------------------------------------------------------------------


@EXAMPLES
@hypothesis.given(any_shape.flatmap(layouts))
def test_tensor_like_an_array(x):
    tensor = Tensor.like(x)
    assert tensor == (x.shape, x.dtype, x.strides, None, None, 0)
    assert (tensor.ndim, tensor.size, tensor.nbytes) == (x.ndim, x.size, x.nbytes)
    assert tensor.contiguous() == Tensor.like(np.empty(x.shape, x.dtype))


@pytest.mark.parametrize("dtype", [xp.q4_0, xp.q4_1, xp.q8_0], ids=str)
@pytest.mark.parametrize(
    ("shape", "axis"), [((64,), 0), ((3, 64), 1), ((96, 5), 0), ((2, 32, 3), 1)]
)
def test_tensor_like_blocks(dtype, shape, axis):
    x = blocks(shape, axis, dtype)
    tensor = Tensor.like(x)
    assert tensor == (shape, dtype, x.data.strides[:-1], x.axis, None, 0)
    assert (tensor.ndim, tensor.size, tensor.nbytes) == (x.ndim, x.size, x.nbytes)
    side_by_side = np.empty(x.data.shape, np.uint8)
    assert tensor.contiguous() == tensor._replace(strides=side_by_side.strides[:-1])


def test_tensor_like_a_tensor_keeps_its_place():
    buffer = HOST.alloc(64)
    tensor = Tensor.like(np.ones((2, 3)), buffer=buffer, offset=8)
    assert (tensor.shape, tensor.buffer, tensor.offset) == ((2, 3), buffer, 8)
    assert Tensor.like(tensor, offset=16) == tensor._replace(offset=16)
    assert tensor.contiguous() == Tensor.like(np.ones((2, 3)))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 4)])
def test_contiguous_without_elements(shape):
    tensor = Tensor.like(np.empty(shape)).contiguous()
    assert tensor.nbytes == 0
    assert all(stride > 0 for stride in tensor.strides)  # what BLAS wants of a leading dimension


# -- kernels ---------------------------------------------------------------------------------------


def is_transposed(shape, strides, itemsize):
    """Whether columns rather than rows are contiguous, by the places of all elements."""

    def contiguous(at):
        one_after_the_other = all(
            after - before == itemsize for vector in at for before, after in pairwise(vector)
        )
        ends = [(min(vector), max(vector)) for vector in at if vector]
        apart = all(last + itemsize <= first for (_, last), (first, _) in pairwise(ends))
        return one_after_the_other and apart

    (m, n), (down, right) = shape, strides
    rows = [[i * down + j * right for j in range(n)] for i in range(m)]
    columns = [[i * down + j * right for i in range(m)] for j in range(n)]
    return contiguous(columns) and not contiguous(rows)


def test_trans_by_the_places_of_elements():
    out, lengths, strides = np.empty((1, 1)), range(4), [-16, -8, 0, 4, 8, 12, 16, 24, 32]
    for shape in product(lengths, lengths):
        for steps in product(strides, strides):
            x = Tensor(shape, np.dtype(np.float64), steps)
            (trans,) = Kernel(Op.MATMUL, (x,), out).trans
            assert trans == is_transposed(shape, steps, 8), (shape, steps)


def test_trans_of_arrays():
    x, batch = np.ones((4, 4)), np.ones((3, 4, 5))
    cases = [(x, False), (x.T, True), (x[:, ::2], False), (x.T[:, 1:3], True), (batch.mT, True)]
    for a, expected in cases:
        assert Kernel(Op.MATMUL, (a, x), x).trans == (expected, False)
        assert Kernel(Op.MATMUL, (x, Tensor.like(a)), x).trans == (False, expected)


def test_trans_of_blocks_is_the_axis_they_run_along():
    rows = blocks((2, 3, 64))
    kernel = Kernel(Op.MATMUL, (rows.mT, Tensor.like(rows)), np.empty((2, 64, 64)))
    assert kernel.trans == (True, False)


def test_trans_of_vectors():
    x = np.ones(64, np.float32)
    assert Kernel(Op.COPY, (x,), blocks((64,))).trans == (False,)
    assert Kernel(Op.COPY, (blocks((64,)),), x).trans == (False,)


def matrices_of(x, batch):
    """The address of each matrix of an operand that is broadcast over the leading axes."""
    data, inner = (x.data, 3) if isinstance(x, Blocks) else (x, 2)
    wide = np.broadcast_to(data, batch + data.shape[-inner:])
    return {at: address(wide[at]) - address(data) for at in np.ndindex(batch)}


@st.composite
def batches(draw):
    """Operands and out of a product, the leading axes broadcast."""
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=3)))

    def of(matrix):
        some = batch[draw(st.integers(0, len(batch))) :]
        return (*(draw(st.sampled_from([1, length])) for length in some), *matrix)

    b = draw(layouts(of((32, 3)))) if draw(st.booleans()) else blocks(of((3, 32))).mT
    return draw(layouts(of((2, 32)))), b, draw(layouts((*batch, 2, 3)))


@EXAMPLES
@hypothesis.given(batches())
def test_batch_strides_lead_to_each_matrix(arrays):
    *operands, out = arrays
    batch = out.shape[:-2]
    found = Kernel(Op.MATMUL, tuple(operands), out).batch_strides
    for x, strides in zip(arrays, found, strict=True):
        assert len(strides) == len(batch)
        places = {at: int(np.dot(at, strides)) for at in np.ndindex(batch)}
        assert places == matrices_of(x, batch)
    a, b, c = map(Tensor.like, arrays)
    assert Kernel(Op.MATMUL, (a, b), c).batch_strides == found


F32, F64 = np.ones((2, 32), np.float32), np.ones((2, 32))


@pytest.mark.parametrize(
    ("plain", "operands", "out", "more"),
    [
        (True, (F32, F32.T), np.float32, {}),
        (True, (Tensor.like(F64), F64.T), np.float64, {}),
        (True, (F32, blocks((2, 32)).mT), np.float32, {}),
        (True, (F32, F32.T), np.float32, {"flags": Flag.INPUT | Flag.COMPUTE}),
        (False, (F32, F32.T), np.float64, {}),
        (False, (F64, F64.T), np.float32, {}),
        (False, (F32, blocks((2, 32)).mT), np.float64, {}),
        (False, (F32, F32.T), np.float32, {"alpha": 2}),
        (False, (F32, F32.T), np.float32, {"alpha": -1.0}),
        (False, (F32, F32.T), np.float32, {"beta": 1, "bias": np.ones((2, 2), np.float32)}),
    ],
)
def test_plain(plain, operands, out, more):
    assert Kernel(Op.MATMUL, operands, np.empty((2, 2), out), **more).plain is plain


def test_kernel_without_more():
    kernel = Kernel(Op.MATMUL, (F64, F64.T), np.empty((2, 2)))
    assert (kernel.alpha, kernel.beta, kernel.bias, kernel.flags) == (1, 0, None, Flag.COMPUTE)


def test_flags_are_ggmls():
    assert {flag.name: flag.value for flag in Flag} == {"INPUT": 1, "OUTPUT": 2, "COMPUTE": 16}
