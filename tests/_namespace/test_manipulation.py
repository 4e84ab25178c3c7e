"""Manipulation functions against NumPy, for plain, pending and quantized arrays."""

import gguf
import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, zeros_q8_0

import ggarray as xp

bfloat16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = [np.bool_, np.int8, np.uint64, np.float16, bfloat16, np.float32, np.complex128]
VALUE = numbers((2, 3, 4), np.float64)
ROW = numbers((1, 3, 1), np.float64)

# name: (function of the namespace, NumPy's, value, whether it is a view, whether a pending one is)
CASES = {
    "broadcast_to": (
        lambda x: xp.broadcast_to(x, (2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4)), ROW, False, True
    ),
    "broadcast_to more axes": (
        lambda x: xp.broadcast_to(x, [5, 2, 3, 4]), lambda x: np.broadcast_to(x, (5, 2, 3, 4)), VALUE, False, True
    ),
    "expand_dims": (lambda x: xp.expand_dims(x, axis=1), lambda x: np.expand_dims(x, 1), VALUE, True, True),
    "expand_dims behind": (lambda x: xp.expand_dims(x, -1), lambda x: np.expand_dims(x, -1), VALUE, True, True),
    "expand_dims twice": (
        lambda x: xp.expand_dims(x, (0, -2)), lambda x: np.expand_dims(x, (0, -2)), VALUE, True, True
    ),
    "flip": (xp.flip, np.flip, VALUE, True, False),
    "flip one": (lambda x: xp.flip(x, axis=-1), lambda x: np.flip(x, -1), VALUE, True, False),
    "flip two": (lambda x: xp.flip(x, axis=(0, 2)), lambda x: np.flip(x, (0, 2)), VALUE, True, False),
    "moveaxis": (lambda x: xp.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), VALUE, True, True),
    "moveaxis two": (
        lambda x: xp.moveaxis(x, (0, 1), (-1, 0)), lambda x: np.moveaxis(x, (0, 1), (-1, 0)), VALUE, True, True
    ),
    "permute_dims": (
        lambda x: xp.permute_dims(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1), VALUE, True, True
    ),
    "permute_dims negative": (
        lambda x: xp.permute_dims(x, (-1, 1, 0)), lambda x: x.transpose(2, 1, 0), VALUE, True, True
    ),
    "repeat": (lambda x: xp.repeat(x, 2), lambda x: np.repeat(x, 2), VALUE, False, False),
    "repeat along": (lambda x: xp.repeat(x, 3, axis=1), lambda x: np.repeat(x, 3, 1), VALUE, False, False),
    "repeat each": (
        lambda x: xp.repeat(x, xp.asarray([0, 2, 1]), axis=-2), lambda x: np.repeat(x, [0, 2, 1], -2), VALUE, False, False
    ),
    "reshape": (lambda x: xp.reshape(x, (4, 6)), lambda x: x.reshape(4, 6), VALUE, True, True),
    "reshape to a vector": (lambda x: xp.reshape(x, [-1]), lambda x: x.reshape(-1), VALUE, True, True),
    "reshape by -1": (lambda x: xp.reshape(x, (3, -1, 2)), lambda x: x.reshape(3, 4, 2), VALUE, True, True),
    "reshape without copy": (
        lambda x: xp.reshape(x, (6, 4), copy=False), lambda x: x.reshape(6, 4), VALUE, True, True
    ),
    "reshape with copy": (
        lambda x: xp.reshape(x, (6, 4), copy=True), lambda x: x.reshape(6, 4), VALUE, False, False
    ),
    "reshape of a transpose": (
        lambda x: xp.reshape(x.mT, (2, 12)), lambda x: x.mT.reshape(2, 12), VALUE, False, False
    ),
    "roll": (lambda x: xp.roll(x, 5), lambda x: np.roll(x, 5), VALUE, False, False),
    "roll along": (lambda x: xp.roll(x, -1, axis=1), lambda x: np.roll(x, -1, 1), VALUE, False, False),
    "roll two": (
        lambda x: xp.roll(x, (1, -2), axis=(0, 2)), lambda x: np.roll(x, (1, -2), (0, 2)), VALUE, False, False
    ),
    "squeeze": (lambda x: xp.squeeze(x, axis=0), lambda x: x[0], ROW, True, True),
    "squeeze two": (lambda x: xp.squeeze(x, (0, -1)), lambda x: x[0, :, 0], ROW, True, True),
    "tile": (lambda x: xp.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3)), VALUE, False, False),
    "tile more axes": (lambda x: xp.tile(x, (2, 1, 1, 2)), lambda x: np.tile(x, (2, 1, 1, 2)), VALUE, False, False),
    "tile fewer axes": (lambda x: xp.tile(x, (2,)), lambda x: np.tile(x, (2,)), VALUE, False, False),
    "concat": (
        lambda x: xp.concat([x, x[:1]]), lambda x: np.concatenate([x, x[:1]]), VALUE, False, False
    ),
    "concat along": (
        lambda x: xp.concat((x, x, x), axis=-1), lambda x: np.concatenate([x, x, x], -1), VALUE, False, False
    ),
    "concat flattened": (
        lambda x: xp.concat([x, x[0]], axis=None), lambda x: np.concatenate([x, x[0]], None), VALUE, False, False
    ),
    "stack": (lambda x: xp.stack([x, x]), lambda x: np.stack([x, x]), VALUE, False, False),
    "stack behind": (
        lambda x: xp.stack((x, x), axis=-1), lambda x: np.stack([x, x], -1), VALUE, False, False
    ),
}  # fmt: skip
NAMES = pytest.mark.parametrize("name", CASES)


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


def pending(value):
    """A pending array of this value, of 2 or more axes."""
    x = on_cpu(np.eye(value.shape[-2]), value.dtype) @ on_cpu(value)
    assert xp.is_pending(x)
    return x


def quantized(shape):
    """A quantized array and what gguf decodes it to."""
    data = gguf.quantize(numbers(shape, np.float32), gguf.GGMLQuantizationType.Q8_0)
    x = xp.quantized_from_bytes(data, xp.q8_0, shape, device="cpu")
    return x, gguf.dequantize(data, gguf.GGMLQuantizationType.Q8_0)


MAKERS = pytest.mark.parametrize("make", [on_cpu, pending], ids=["plain", "pending"])


@NAMES
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_shapes_and_dtypes(name, dtype, device):
    function, reference, value, *_ = CASES[name]
    value = numbers(value.shape, dtype)
    check(function(xp.asarray(value, device=device)), reference(value), device=device)


@NAMES
@pytest.mark.parametrize("dtype", [np.int8, np.float64, bfloat16], ids=str)
def test_of_pending_arrays(name, dtype):
    function, reference, value, _, waits = CASES[name]
    value = numbers(value.shape, dtype)
    result = function(pending(value))
    assert xp.is_pending(result) == waits
    check(result, reference(value))


@NAMES
def test_of_views(name):
    function, reference, value, *_ = CASES[name]
    wider = np.repeat(value, 2, axis=-1)
    view = on_cpu(wider)[::-1, ..., ::2]
    if name == "reshape without copy":
        with pytest.raises(ValueError, match="copy"):
            function(view)
    else:
        check(function(view), reference(wider[::-1, ..., ::2]))


@NAMES
@MAKERS
def test_views_alias_and_copies_do_not(name, make):
    function, reference, value, is_view, _ = CASES[name]
    x = make(value)
    result = function(x)
    x[...] = 5.0
    expected = (
        np.full_like(reference(value), 5.0) if is_view or "broadcast" in name else reference(value)
    )
    check(result, expected)
    if "broadcast" not in name:
        result[...] = 6.0
        check(x, np.full_like(value, 6.0 if is_view else 5.0))


@NAMES
def test_of_empty_arrays(name):
    function, reference, value, *_ = CASES[name]
    if not name.startswith(("broadcast", "reshape", "repeat each", "squeeze")):
        value = value[:, :0]
        check(function(on_cpu(value)), reference(value))


def test_broadcast_results_are_read_only():
    for x in (
        xp.broadcast_to(on_cpu(ROW), (2, 3, 4)),
        *xp.broadcast_arrays(on_cpu(ROW), on_cpu(VALUE))[:1],
    ):
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 1.0


@MAKERS
def test_broadcast_arrays(make):
    results = xp.broadcast_arrays(make(ROW), make(VALUE), on_cpu(1, np.int8))
    assert isinstance(results, tuple)
    for result, expected in zip(results, np.broadcast_arrays(ROW, VALUE, np.int8(1)), strict=True):
        check(result, expected)
    assert xp.broadcast_arrays() == ()


@pytest.mark.parametrize(
    "shapes", [((2, 3), (3,)), ((1,), (0,)), ((4, 1), (1, 5), ()), ((),), ()], ids=str
)
def test_broadcast_shapes(shapes):
    assert xp.broadcast_shapes(*shapes) == np.broadcast_shapes(*shapes)


@MAKERS
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unstack(make, axis):
    x = make(VALUE)
    parts = xp.unstack(x, axis=axis)
    assert isinstance(parts, tuple)
    for part, expected in zip(parts, np.unstack(VALUE, axis=axis), strict=True):
        check(part, expected)
    parts[0][...] = 7.0
    check(xp.unstack(x, axis=axis)[0], np.full_like(parts[0], 7.0))


def test_reshape_to_and_from_no_axes_and_empty():
    check(xp.reshape(on_cpu([5]), ()), 5)
    check(xp.reshape(on_cpu(5), (1, -1)), [[5]])
    check(xp.reshape(on_cpu(np.zeros((0, 3))), (3, 0, 2)), np.zeros((3, 0, 2)))
    check(xp.reshape(on_cpu(np.zeros((0, 3))), (-1, 3)), np.zeros((0, 3)))
    check(xp.reshape(on_cpu(np.zeros((0, 2))) @ on_cpu(np.ones((2, 3))), (-1, 3)), np.zeros((0, 3)))


PROMOTIONS = [
    (np.int8, np.uint8, np.int16),
    (np.float32, np.float64, np.float64),
    (np.float32, np.complex64, np.complex64),
    (np.float16, bfloat16, np.float32),
    (np.float32, bfloat16, np.float32),
]


@pytest.mark.parametrize(("first", "second", "expected"), PROMOTIONS, ids=str)
@pytest.mark.parametrize("function", [xp.concat, xp.stack], ids=["concat", "stack"])
def test_joined_arrays_promote(function, first, second, expected):
    a, b = numbers((2, 3), first), numbers((2, 3), second)
    joined = np.concatenate if function is xp.concat else np.stack
    check(function([on_cpu(a), on_cpu(b)]), joined([a.astype(expected), b.astype(expected)]))
    check(function([pending(a), on_cpu(b)]), joined([a.astype(expected), b.astype(expected)]))


@pytest.mark.parametrize(
    "function", [xp.concat, xp.stack, lambda each: xp.broadcast_arrays(*each)[1]]
)
def test_arrays_of_several_devices(function):
    x, y = on_cpu(VALUE), xp.asarray(VALUE, device="blas")
    assert function([x, y]).device == "blas"


# -- quantized arrays ---------------------------------------------------------------------------

OF_QUANTIZED = {
    "concat": (lambda x: xp.concat([x, x[:1]]), lambda x: np.concatenate([x, x[:1]])),
    "concat along": (lambda x: xp.concat([x, x], axis=1), lambda x: np.concatenate([x, x], 1)),
    "moveaxis": (lambda x: xp.moveaxis(x, -1, 0), lambda x: np.moveaxis(x, -1, 0)),
    "permute_dims": (lambda x: xp.permute_dims(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    "reshape": (lambda x: xp.reshape(x, (6, 64)), lambda x: x.reshape(6, 64)),
    "reshape by -1": (lambda x: xp.reshape(x, (3, -1, 64)), lambda x: x.reshape(3, 2, 64)),
    "stack": (lambda x: xp.stack([x, x]), lambda x: np.stack([x, x])),
    "stack behind": (lambda x: xp.stack([x, x], axis=-1), lambda x: np.stack([x, x], -1)),
    "unstack": (lambda x: xp.unstack(x)[1], lambda x: x[1]),
}


@pytest.mark.parametrize("name", OF_QUANTIZED)
def test_of_quantized_arrays(name):
    function, reference = OF_QUANTIZED[name]
    x, decoded = quantized((2, 3, 64))
    result = function(x)
    assert (result.dtype, result.device) == (xp.q8_0, "cpu")
    assert result.shape == reference(decoded).shape
    check(xp.dequantize(result), reference(decoded), np.float32)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: xp.concat([x, x], axis=-1),
        lambda x: xp.concat([x, x], axis=None),
        lambda x: xp.concat([x, on_cpu(np.zeros((2, 64)))]),
        lambda x: xp.stack([x, on_cpu(np.zeros((2, 64)))]),
        lambda x: xp.concat([x, x.mT]),
        lambda x: xp.reshape(x, (4, 2, 16)),
        lambda x: xp.unstack(x, axis=1),
        lambda x: xp.broadcast_to(x, (3, 2, 64)),
        xp.flip,
        lambda x: xp.roll(x, 1),
        lambda x: xp.repeat(x, 2),
        lambda x: xp.tile(x, (2, 1)),
    ],
)
def test_quantized_arrays_are_refused_elsewhere(function):
    with pytest.raises(TypeError, match="dequantize"):
        function(zeros_q8_0((2, 64)))


# -- errors -------------------------------------------------------------------------------------

WRONG = [
    (lambda x: xp.broadcast_to(x, (2, 3, 5)), ValueError),
    (lambda x: xp.broadcast_to(x, (3, 4)), ValueError),
    (lambda x: xp.broadcast_arrays(x, on_cpu(np.zeros(3))), ValueError),
    (lambda x: xp.concat([x, on_cpu(np.zeros((2, 3)))]), ValueError),
    (lambda x: xp.concat([x, x[:, :2]]), ValueError),
    (lambda x: xp.concat([x, x], axis=3), ValueError),
    (lambda x: xp.concat([]), ValueError),
    (lambda x: xp.stack([]), ValueError),
    (lambda x: xp.stack([x, x[:1]]), ValueError),
    (lambda x: xp.stack([x, x], axis=5), ValueError),
    (lambda x: xp.expand_dims(x, axis=4), IndexError),
    (lambda x: xp.expand_dims(x, axis=-5), IndexError),
    (lambda x: xp.expand_dims(x, axis=(0, 0)), ValueError),
    (lambda x: xp.flip(x, axis=3), IndexError),
    (lambda x: xp.moveaxis(x, 3, 0), IndexError),
    (lambda x: xp.moveaxis(x, (0, 1), (0,)), ValueError),
    (lambda x: xp.moveaxis(x, (0, 0), (0, 1)), ValueError),
    (lambda x: xp.permute_dims(x, (0, 1)), ValueError),
    (lambda x: xp.permute_dims(x, (0, 0, 1)), ValueError),
    (lambda x: xp.permute_dims(x, (0, 1, 3)), IndexError),
    (lambda x: xp.repeat(x, -1), ValueError),
    (lambda x: xp.repeat(x, on_cpu([1, 2]), axis=1), ValueError),
    (lambda x: xp.reshape(x, (5, 5)), ValueError),
    (lambda x: xp.reshape(x, (-1, 5)), ValueError),
    (lambda x: xp.reshape(x, (-1, -1)), ValueError),
    (lambda x: xp.reshape(x, (-2, -12)), ValueError),
    (lambda x: xp.reshape(x, (24.0,)), TypeError),
    (lambda x: xp.reshape(x.mT, (24,), copy=False), ValueError),
    (lambda x: xp.roll(x, 1, axis=3), IndexError),
    (lambda x: xp.squeeze(x, axis=0), ValueError),
    (lambda x: xp.squeeze(x, axis=3), IndexError),
    (lambda x: xp.unstack(x, axis=3), IndexError),
]


@MAKERS
@pytest.mark.parametrize(("function", "kind"), WRONG)
def test_wrong_arguments_raise(function, kind, make):
    with pytest.raises(kind):
        function(make(VALUE))


def test_messages_name_the_shapes():
    x = on_cpu(VALUE)
    with pytest.raises(ValueError, match=r"\(2, 3, 4\).*\(5, 5\)"):
        xp.reshape(x, (5, 5))
    with pytest.raises(ValueError, match=r"axis 1 of shape \(2, 3, 4\)"):
        xp.squeeze(x, axis=1)
    with pytest.raises(ValueError, match=r"\(0, 1\).*\(2, 3, 4\)"):
        xp.permute_dims(x, (0, 1))
