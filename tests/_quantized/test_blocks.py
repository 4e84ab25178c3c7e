"""Blocks moved about, compared with NumPy moving the decoded elements about."""

import pickle
from collections.abc import Callable
from typing import Any

import gguf
import numpy as np
import pytest

from ggarray._quantized.blocks import Blocks, concat, stack
from ggarray._quantized.traits import QuantizedDType, q4_0, q4_1, q8_0


def decode(blocks: Blocks) -> np.ndarray[Any, Any]:
    """Decode with the gguf package, whatever the blocked axis."""
    if not blocks.size:
        return np.empty(blocks.shape, np.float32)
    rows = np.ascontiguousarray(np.moveaxis(blocks.data, blocks.axis, -2))
    rows = rows.reshape(*rows.shape[:-2], -1)
    decoded = gguf.dequantize(rows, gguf.GGMLQuantizationType(blocks.dtype.type_id))
    return np.moveaxis(decoded, -1, blocks.axis)


def make(shape: tuple[int, ...], axis: int = -1, dtype: QuantizedDType = q4_1) -> Blocks:
    """Random blocks whose decoded elements differ from each other."""
    axis %= len(shape)
    others = shape[:axis] + shape[axis + 1 :]
    x = np.random.default_rng(3).standard_normal((*others, shape[axis]), np.float32)
    raw = gguf.quantize(x, gguf.GGMLQuantizationType(dtype.type_id))
    data = raw.reshape(*others, shape[axis] // dtype.block_size, dtype.block_bytes)
    return Blocks(np.moveaxis(data, -2, axis), dtype, axis)


def same(result: Blocks, expected: np.ndarray[Any, Any]) -> None:
    assert isinstance(result, Blocks)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(decode(result), expected)


class TestAttributes:
    @pytest.mark.parametrize("dtype", [q4_0, q4_1, q8_0], ids=str)
    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_they_describe_the_elements(self, dtype: QuantizedDType, axis: int) -> None:
        shape = [3, 4, 5]
        shape[axis] = 96
        blocks = make(tuple(shape), axis, dtype)
        assert blocks.shape == tuple(shape) == decode(blocks).shape
        assert (blocks.ndim, blocks.axis, blocks.dtype) == (3, axis, dtype)
        assert blocks.size == decode(blocks).size
        assert blocks.nbytes == blocks.size // 32 * dtype.block_bytes

    def test_repr_tells_shape_dtype_and_axis(self) -> None:
        assert repr(make((32, 2), 0)) == "Blocks(shape=(32, 2), dtype=q4_1, axis=0)"

    def test_negative_axis(self) -> None:
        assert Blocks(np.zeros((2, 3, 20), np.uint8), q4_1, -2).axis == 0

    def test_equality_is_identity(self) -> None:
        blocks = make((2, 32))
        assert blocks == blocks
        assert blocks != Blocks(blocks.data, q4_1)
        assert len({blocks, Blocks(blocks.data, q4_1)}) == 2

    def test_nothing_can_be_assigned(self) -> None:
        blocks = make((2, 32))
        with pytest.raises(AttributeError):
            blocks.axis = 0  # type: ignore[misc]
        with pytest.raises(ValueError, match="read-only"):
            blocks.data[0] = 0

    def test_the_array_handed_in_stays_writable(self) -> None:
        data = np.zeros((2, 1, 20), np.uint8)
        blocks = Blocks(data, q4_1)
        assert np.shares_memory(blocks.data, data)
        assert data.flags.writeable

    def test_bytes_of_a_block_are_made_contiguous(self) -> None:
        data = np.asfortranarray(make((4, 64)).data)
        blocks = Blocks(data, q4_1)
        assert blocks.data.strides[-1] == 1
        same(blocks, decode(make((4, 64))))

    @pytest.mark.parametrize("axis", [0, 1])
    def test_pickle(self, axis: int) -> None:
        blocks = make((64, 32), axis)
        copy = pickle.loads(pickle.dumps(blocks))
        assert (copy.dtype, copy.axis) == (q4_1, axis)
        assert not copy.data.flags.writeable
        same(copy, decode(blocks))

    @pytest.mark.parametrize("shape", [(20,), (2, 18), ()])
    def test_data_of_a_wrong_shape(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match=r"\(\.\.\., blocks, 20\), not"):
            Blocks(np.zeros(shape, np.uint8), q4_1)

    def test_data_of_a_wrong_dtype(self) -> None:
        with pytest.raises(TypeError, match="int8"):
            Blocks(np.zeros((1, 20), np.int8), q4_1)

    @pytest.mark.parametrize("axis", [2, -3])
    def test_no_such_axis(self, axis: int) -> None:
        with pytest.raises(ValueError, match="axis"):
            Blocks(np.zeros((2, 1, 20), np.uint8), q4_1, axis)


class TestFromBytes:
    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, np.array])
    def test_of_any_buffer(self, kind: Callable[[Any], Any]) -> None:
        blocks = make((3, 64))
        raw = blocks.data.tobytes() if kind is not np.array else blocks.data.reshape(3, -1)
        same(Blocks.from_bytes(kind(raw), q4_1, (3, 64)), decode(blocks))

    def test_does_not_copy(self) -> None:
        data = np.zeros(120, np.uint8)
        assert np.shares_memory(Blocks.from_bytes(data, q4_1, [3, 64]).data, data)

    @pytest.mark.parametrize("shape", [(0, 64), (4, 0)])
    def test_of_no_elements(self, shape: tuple[int, ...]) -> None:
        assert Blocks.from_bytes(b"", q4_1, shape).shape == shape

    @pytest.mark.parametrize("n_bytes", [0, 119, 121])
    def test_wrong_number_of_bytes(self, n_bytes: int) -> None:
        message = rf"q4_1 of shape \(3, 64\) needs 120 bytes, not {n_bytes}$"
        with pytest.raises(ValueError, match=message):
            Blocks.from_bytes(bytes(n_bytes), q4_1, (3, 64))

    @pytest.mark.parametrize("shape", [(3, 33), (64, 3), ()])
    def test_no_multiple_of_the_block(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match="multiple of the block of q4_1, 32"):
            Blocks.from_bytes(bytes(120), q4_1, shape)

    def test_negative_lengths(self) -> None:
        with pytest.raises(ValueError, match="negative"):
            Blocks.from_bytes(bytes(40), q4_1, (-1, -64))

    @pytest.mark.parametrize("data", [np.zeros(5, np.float32), 40, "text"])
    def test_what_is_no_bytes(self, data: Any) -> None:
        with pytest.raises(TypeError):
            Blocks.from_bytes(data, q4_1, (32,))


class TestPermute:
    @pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (-1, 1, 0)])
    @pytest.mark.parametrize("axis", [0, 2])
    def test_any_order_is_a_view(self, axes: tuple[int, ...], axis: int) -> None:
        blocks = make((64, 2, 32), axis)
        result = blocks.permute(axes)
        same(result, decode(blocks).transpose(axes))
        assert np.shares_memory(result.data, blocks.data)

    def test_mt_exchanges_the_last_two(self) -> None:
        blocks = make((2, 3, 64))
        same(blocks.mT, np.swapaxes(decode(blocks), 1, 2))
        same(blocks.mT.mT, decode(blocks))

    def test_mt_of_a_vector(self) -> None:
        with pytest.raises(ValueError, match=r"\(32,\)"):
            _ = make((32,)).mT

    @pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2), (0, 1, 2), (-3, 0)])
    def test_no_permutation(self, axes: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match=r"\(2, 32\)"):
            make((2, 32)).permute(axes)


MASK = np.array([True, False, True])
# For shape (3, 4, 64), blocked along the last axis.
KEYS_LAST: list[Any] = [
    (),
    ...,
    0,
    -1,
    np.int64(2),
    np.array(1),
    slice(None, None, -1),
    (1, 2),
    (slice(1, 3), slice(None, None, 2)),
    (..., slice(32, 64)),
    (..., slice(-32, None)),
    (0, 0, slice(32)),
    (..., slice(64, 64)),
    (..., slice(40, 8)),
    (..., slice(32, 1000)),
    None,
    (None, 1, None, ..., None),
    (..., None),
    [2, 0],
    [],
    np.array([[2, 0], [1, 1]]),
    np.array([2, 0], np.uint8),
    (slice(None), [3, 3, 0]),
    ([2, 0], [1, 3]),
    ([[2], [0]], [1, 3], slice(32)),
    (0, [1, 3]),
    ([1, 2], 0),
    ([0, 1], None, [2, 3]),
    (0, None, [2, 3]),
    (None, [0, 1], slice(None, 2)),
    (0, [1, 3], ..., slice(None)),
    MASK,
    (MASK, 1),
    (..., np.array([True, False, False, True]), slice(0, 32)),
    np.arange(12).reshape(3, 4) % 5 == 0,
]
# For shape (3, 64, 4), blocked along the middle axis.
KEYS_MIDDLE: list[Any] = [
    0,
    (slice(None), slice(32)),
    (..., 1),
    ([0, 2], slice(None), [1, 3]),
    (1, slice(32, None), [1, 3]),
    ([1, 2], slice(None), 0),
    (..., [[1], [3]]),
    ([[1, 2]], ...),
    (..., MASK[:, None][:2, 0].repeat(2)),
    (None, [0, 1], None),
]
# For shape (64, 3, 4), blocked along the first axis.
KEYS_FIRST: list[Any] = [
    slice(32),
    (slice(None), 0),
    (slice(None), 0, [1, 3]),
    (slice(None), 0, ..., [1, 3]),
    (slice(None), [0, 2], None, [1, 3]),
    (slice(None), MASK),
    (None, ..., [[0, 1]]),
]


class TestGetitem:
    @pytest.mark.parametrize("key", KEYS_LAST, ids=repr)
    def test_blocked_last(self, key: Any) -> None:
        blocks = make((3, 4, 64))
        same(blocks[key], decode(blocks)[key])

    @pytest.mark.parametrize("key", KEYS_MIDDLE, ids=repr)
    def test_blocked_in_the_middle(self, key: Any) -> None:
        blocks = make((3, 64, 4), 1)
        same(blocks[key], decode(blocks)[key])

    @pytest.mark.parametrize("key", KEYS_FIRST, ids=repr)
    def test_blocked_first(self, key: Any) -> None:
        blocks = make((64, 3, 4), 0)
        same(blocks[key], decode(blocks)[key])

    @pytest.mark.parametrize("key", [1, (..., slice(32, 64)), (slice(None, None, -1), None)])
    def test_basic_keys_give_views(self, key: Any) -> None:
        blocks = make((3, 4, 64))
        assert np.shares_memory(blocks[key].data, blocks.data)

    @pytest.mark.parametrize(
        "last",
        [0, slice(1, 33), slice(0, 33), slice(0, 64, 2), slice(None, None, -1), [0, 1]],
        ids=repr,
    )
    def test_keys_that_cut_blocks(self, last: Any) -> None:
        with pytest.raises(TypeError, match=r"axis 2 of shape \(3, 4, 64\).*dequantize"):
            make((3, 4, 64))[..., last]

    def test_a_mask_over_blocks(self) -> None:
        with pytest.raises(TypeError, match="dequantize"):
            make((2, 32))[np.ones((2, 32), np.bool_)]

    @pytest.mark.parametrize(
        "key",
        [
            3,
            (0, -5),
            [3],
            (0, 0, slice(None), 0),
            (..., ...),
            (0, ..., 0, ...),
            np.array([True, False]),
            ([0, 1], [0, 1, 2]),
            1.5,
            "name",
            True,
            np.array([1.0]),
        ],
        ids=repr,
    )
    def test_keys_that_are_wrong_for_any_array(self, key: Any) -> None:
        blocks = make((3, 4, 64))
        with pytest.raises(IndexError):
            blocks[key]


class TestTake:
    @pytest.mark.parametrize("indices", [[2, 0, 2, -1], [], 1, [[0, 1], [2, 1]]])
    @pytest.mark.parametrize("axis", [0, 1, -2])
    def test_along_unblocked_axes(self, indices: Any, axis: int) -> None:
        indices = np.array(indices, np.int64)
        blocks = make((3, 4, 64))
        same(blocks.take(indices, axis), decode(blocks).take(indices, axis))

    @pytest.mark.parametrize("axis", [2, -1])
    def test_along_the_blocked_axis(self, axis: int) -> None:
        with pytest.raises(TypeError, match="dequantize"):
            make((3, 4, 64)).take([0], axis)

    def test_out_of_range(self) -> None:
        with pytest.raises(IndexError, match="out of bounds"):
            make((3, 64)).take([3])
        with pytest.raises(IndexError, match="axis"):
            make((3, 64)).take([0], 2)


class TestReshape:
    @pytest.mark.parametrize(
        "shape",
        [
            (12, 64),
            (2, 6, 64),
            (3, 4, 64),
            (-1, 64),
            (4, 3, -1),
            (1, 12, 1, 64),
            (24, 32),
            (768,),
            (-1,),
        ],
    )
    def test_blocked_last(self, shape: tuple[int, ...]) -> None:
        blocks = make((3, 4, 64))
        same(blocks.reshape(shape), decode(blocks).reshape(shape))

    @pytest.mark.parametrize("shape", [(3, 2, 64, 2, 2), (6, 64, 4), (1, 6, 64, -1)])
    def test_blocked_in_the_middle(self, shape: tuple[int, ...]) -> None:
        blocks = make((6, 64, 4), 1)
        same(blocks.reshape(shape), decode(blocks).reshape(shape))

    def test_a_view_where_strides_allow(self) -> None:
        blocks = make((3, 4, 64))
        assert np.shares_memory(blocks.reshape((12, 64)).data, blocks.data)

    def test_of_permuted_axes(self) -> None:
        blocks = make((3, 4, 64)).permute((1, 0, 2))
        same(blocks.reshape((12, 64)), decode(blocks).reshape(12, 64))

    @pytest.mark.parametrize("shape", [(3, 0), (2, 0, 32), (0, 32), (0, 64, 1)])
    def test_of_no_elements(self, shape: tuple[int, ...]) -> None:
        blocks = Blocks.from_bytes(b"", q4_1, (0, 64))
        same(blocks.reshape(shape), np.empty(shape))

    @pytest.mark.parametrize("shape", [(12, 4, 16), (3, 64, 4), (256, 3), (32, 24, 1)])
    def test_that_cuts_blocks(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(TypeError, match=r"\(3, 4, 64\).*dequantize"):
            make((3, 4, 64)).reshape(shape)

    def test_that_cuts_blocks_elsewhere(self) -> None:
        with pytest.raises(TypeError, match=r"axis 0.*dequantize"):
            make((64, 32), 0).reshape((2048,))

    @pytest.mark.parametrize(
        "shape", [(3, 4, 32), (5, -1), (-1, -1, 64), (-3, -4, 64), (0, -1), ()]
    )
    def test_of_another_size(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match=r"\(3, 4, 64\) to"):
            make((3, 4, 64)).reshape(shape)


@pytest.mark.parametrize(("shape", "axis"), [((3, 4, 64), 2), ((64, 4), 0), ((2, 64, 3), 1)])
def test_as_rows(shape: tuple[int, ...], axis: int) -> None:
    blocks = make(shape, axis)
    rows = blocks.as_rows()
    assert rows.shape == (blocks.size // 64, 2, 20)
    expected = np.moveaxis(decode(blocks), axis, -1).reshape(-1, 64)
    same(Blocks(rows, q4_1), expected)


class TestJoin:
    @pytest.mark.parametrize("axis", [0, 1, -2])
    def test_concat(self, axis: int) -> None:
        blocks = make((3, 3, 64))
        parts = [blocks, blocks[(slice(None),) * (axis % 3) + (slice(1),)]]
        same(concat(parts, axis), np.concatenate([decode(x) for x in parts], axis))

    @pytest.mark.parametrize("blocked", [0, 1])
    @pytest.mark.parametrize("axis", [0, 1, 2, -1])
    def test_stack(self, blocked: int, axis: int) -> None:
        parts = [make((32, 64), blocked), make((32, 64), blocked)]
        same(stack(parts, axis), np.stack([decode(x) for x in parts], axis))

    def test_concat_along_blocks(self) -> None:
        with pytest.raises(TypeError, match="dequantize"):
            concat([make((2, 32)), make((2, 32))], 1)

    @pytest.mark.parametrize("join", [concat, stack])
    def test_of_different_kinds(self, join: Callable[..., Blocks]) -> None:
        with pytest.raises(TypeError, match=r"q4_1 .* and q8_0 .*dequantize"):
            join([make((2, 32)), make((2, 32), dtype=q8_0)])
        with pytest.raises(TypeError, match=r"axis 0 and .*axis 1.*dequantize"):
            join([make((32, 32), 0), make((32, 32), 1)])

    @pytest.mark.parametrize("join", [concat, stack])
    def test_of_wrong_shapes(self, join: Callable[..., Blocks]) -> None:
        with pytest.raises(ValueError, match=r"\(2, 32\), \(2, 64\)"):
            join([make((2, 32)), make((2, 64))])
        with pytest.raises(ValueError, match="axes"):
            join([make((2, 32)), make((1, 2, 32))])
        with pytest.raises(ValueError, match="at least one"):
            join([])
        with pytest.raises(ValueError, match="axis"):
            join([make((2, 32))], 5)
