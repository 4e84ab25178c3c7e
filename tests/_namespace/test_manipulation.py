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

# NumPy has the standard's functions too: (call in either namespace, value, whether the result is a
# view, whether that of a pending array is pending)
CASES = {
    "broadcast": (lambda ns, x: ns.broadcast_to(x, (2, 3, 4)), ROW, False, True),
    "broadcast to more axes": (lambda ns, x: ns.broadcast_to(x, [5, 2, 3, 4]), VALUE, False, True),
    "concat": (lambda ns, x: ns.concat([x, x[:1]]), VALUE, False, False),
    "concat along": (lambda ns, x: ns.concat((x, x, x), axis=-1), VALUE, False, False),
    "concat flattened": (lambda ns, x: ns.concat([x, x[0]], axis=None), VALUE, False, False),
    "expand_dims": (lambda ns, x: ns.expand_dims(x, axis=1), VALUE, True, True),
    "expand_dims behind": (lambda ns, x: ns.expand_dims(x, -1), VALUE, True, True),
    "expand_dims twice": (lambda ns, x: ns.expand_dims(x, (0, -2)), VALUE, True, True),
    "flip": (lambda ns, x: ns.flip(x), VALUE, True, False),
    "flip one": (lambda ns, x: ns.flip(x, axis=-1), VALUE, True, False),
    "flip two": (lambda ns, x: ns.flip(x, axis=(0, 2)), VALUE, True, False),
    "moveaxis": (lambda ns, x: ns.moveaxis(x, 0, -1), VALUE, True, True),
    "moveaxis two": (lambda ns, x: ns.moveaxis(x, (0, 1), (-1, 0)), VALUE, True, True),
    "permute_dims": (lambda ns, x: ns.permute_dims(x, (2, 0, 1)), VALUE, True, True),
    "permute_dims negative": (lambda ns, x: ns.permute_dims(x, (-1, 1, 0)), VALUE, True, True),
    "repeat": (lambda ns, x: ns.repeat(x, 2), VALUE, False, False),
    "repeat along": (lambda ns, x: ns.repeat(x, 3, axis=1), VALUE, False, False),
    "repeat each": (
        lambda ns, x: ns.repeat(x, ns.asarray([0, 2, 1]), axis=-2),
        VALUE,
        False,
        False,
    ),
    "reshape": (lambda ns, x: ns.reshape(x, (4, 6)), VALUE, True, True),
    "reshape to a vector": (lambda ns, x: ns.reshape(x, [-1]), VALUE, True, True),
    "reshape by -1": (lambda ns, x: ns.reshape(x, (3, -1, 2)), VALUE, True, True),
    "reshape without copy": (lambda ns, x: ns.reshape(x, (6, 4), copy=False), VALUE, True, True),
    "reshape with copy": (lambda ns, x: ns.reshape(x, (6, 4), copy=True), VALUE, False, False),
    "reshape of transpose": (lambda ns, x: ns.reshape(x.mT, (2, 12)), VALUE, False, False),
    "roll": (lambda ns, x: ns.roll(x, 5), VALUE, False, False),
    "roll along": (lambda ns, x: ns.roll(x, -1, axis=1), VALUE, False, False),
    "roll two": (lambda ns, x: ns.roll(x, (1, -2), axis=(0, 2)), VALUE, False, False),
    "squeeze": (lambda ns, x: ns.squeeze(x, axis=0), ROW, True, True),
    "squeeze two": (lambda ns, x: ns.squeeze(x, (0, -1)), ROW, True, True),
    "stack": (lambda ns, x: ns.stack([x, x]), VALUE, False, False),
    "stack behind": (lambda ns, x: ns.stack((x, x), axis=-1), VALUE, False, False),
    "tile": (lambda ns, x: ns.tile(x, (2, 1, 3)), VALUE, False, False),
    "tile more axes": (lambda ns, x: ns.tile(x, (2, 1, 1, 2)), VALUE, False, False),
    "tile fewer axes": (lambda ns, x: ns.tile(x, (2,)), VALUE, False, False),
}
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
    function, value, *_ = CASES[name]
    value = numbers(value.shape, dtype)
    check(function(xp, xp.asarray(value, device=device)), function(np, value), device=device)


@NAMES
@pytest.mark.parametrize("dtype", [np.int8, np.float64, bfloat16], ids=str)
def test_of_pending_arrays(name, dtype):
    function, value, _, waits = CASES[name]
    value = numbers(value.shape, dtype)
    result = function(xp, pending(value))
    assert xp.is_pending(result) == waits
    check(result, function(np, value))


@NAMES
def test_of_views(name):
    function, value, *_ = CASES[name]
    wider = np.repeat(value, 2, axis=-1)
    view = on_cpu(wider)[::-1, ..., ::2]
    if name == "reshape without copy":
        with pytest.raises(ValueError, match="copy"):
            function(xp, view)
    else:
        check(function(xp, view), function(np, wider[::-1, ..., ::2]))


@NAMES
@MAKERS
def test_views_alias_and_copies_do_not(name, make):
    function, value, is_view, _ = CASES[name]
    x = make(value)
    result = function(xp, x)
    x[...] = 5.0
    if is_view or name.startswith("broadcast"):
        check(result, np.full(result.shape, 5.0))
    else:
        check(result, function(np, value))
    if not name.startswith("broadcast"):
        result[...] = 6.0
        check(x, np.full(value.shape, 6.0 if is_view else 5.0))


@NAMES
def test_of_empty_arrays(name):
    function, value, *_ = CASES[name]
    if not name.startswith(("broadcast", "reshape", "repeat each", "squeeze")):
        value = value[:, :0]
        check(function(xp, on_cpu(value)), function(np, value))


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


def test_broadcast_arrays_returns_those_of_the_common_shape_themselves():
    x = on_cpu(VALUE)
    same, repeated = xp.broadcast_arrays(x, on_cpu(ROW))
    assert same is x
    same[0] = 1.0  # as writable as it was
    with pytest.raises(ValueError, match="read-only"):
        repeated[0] = 1.0


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
    product = on_cpu(np.zeros((0, 2))) @ on_cpu(np.ones((2, 3)))
    check(xp.reshape(product, (-1, 3)), np.zeros((0, 3)))


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


@pytest.mark.parametrize("function", [xp.concat, xp.stack])
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
