"""Manipulation functions against index arithmetic on NumPy arrays, of every dtype and layout."""

import itertools

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ggarray as xp
from conformance.standard.references import (
    DEVICE,
    EXTENDED,
    LAYOUTS,
    arrays,
    axes_of,
    broadcastable,
    check,
    given,
    shapes,
    to_array,
    values,
)
from conformance.standard.test_data_types import strict_result_type

COVERS = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip"]
COVERS += ["moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile"]
COVERS += ["unstack"]

OF_EVERY_DTYPE = pytest.mark.parametrize("dtype", EXTENDED, ids=str)


# -- broadcasting -------------------------------------------------------------------------------


@OF_EVERY_DTYPE
@given(data=st.data())
def test_broadcasting_of_arrays(dtype, data):
    of = data.draw(broadcastable(3))
    pairs = [data.draw(arrays(dtype, shape)) for shape in of]
    shape = np.broadcast_shapes(*of)
    assert xp.broadcast_shapes(*of) == shape
    found = xp.broadcast_arrays(*(x for x, _ in pairs))
    assert type(found) is tuple
    for result, (x, v) in zip(found, pairs, strict=True):
        wanted = np.empty(shape, dtype)
        wanted[...] = v
        check(result, wanted)
        check(xp.broadcast_to(x, shape), wanted)
        check(xp.broadcast_to(x, (2, *shape)), np.stack([wanted, wanted]))


BROADCASTS = [
    ((), (), ()),
    ((1,), (3,), (3,)),
    ((0,), (1,), (0,)),
    ((2, 1), (3,), (2, 3)),
    ((4, 1, 0), (5, 1), (4, 5, 0)),
]


@pytest.mark.parametrize(("a", "b", "result"), BROADCASTS)
def test_broadcast_shapes(a, b, result):
    found = xp.broadcast_shapes(a, b)
    assert found == xp.broadcast_shapes(b, a) == xp.broadcast_shapes(a, b, a, ()) == result
    assert type(found) is tuple
    assert all(type(length) is int for length in found)
    assert xp.broadcast_shapes(a) == a


def test_broadcast_shapes_of_none_is_that_of_no_axes():
    assert xp.broadcast_shapes() == ()


@pytest.mark.parametrize(("a", "b"), [((2,), (3,)), ((0,), (2,)), ((2, 1), (3, 2))])
def test_shapes_that_do_not_broadcast_raise(a, b):
    with pytest.raises(ValueError, match="broadcast"):
        xp.broadcast_shapes(a, b)
    with pytest.raises(ValueError, match="broadcast"):
        xp.broadcast_arrays(xp.ones(a), xp.ones(b))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("a", "b"), [((2,), (3,)), ((2,), ()), ((2, 3), (3,)), ((0,), (2,))])
def test_arrays_broadcast_to_greater_shapes_alone(a, b, layout):
    with pytest.raises(ValueError, match=r"broadcast|more dimensions"):
        xp.broadcast_to(to_array(np.ones(a), layout), b)


# -- axes ---------------------------------------------------------------------------------------


@OF_EVERY_DTYPE
@given(data=st.data())
def test_axes_in_another_order(dtype, data):
    x, v = data.draw(arrays(dtype))
    order = data.draw(st.permutations(range(v.ndim)))
    signed = tuple(data.draw(st.sampled_from([axis, axis - v.ndim])) for axis in order)
    wanted = np.empty([v.shape[axis] for axis in order], dtype)
    for index in np.ndindex(*v.shape):
        wanted[tuple(index[axis] for axis in order)] = v[index]
    check(xp.permute_dims(x, signed), wanted)
    if order:
        # one axis to a place: the others keep their order
        source, place = signed[0], data.draw(st.integers(-v.ndim, v.ndim - 1))
        others = [axis for axis in range(v.ndim) if axis != order[0]]
        others.insert(place % v.ndim, order[0])
        check(xp.moveaxis(x, source, place), v.transpose(others))
        check(xp.moveaxis(x, signed, tuple(range(v.ndim))), wanted)
    check(xp.moveaxis(x, (), ()), v)


@OF_EVERY_DTYPE
@given(data=st.data())
def test_axes_of_length_one_come_and_go(dtype, data):
    x, v = data.draw(arrays(dtype, shapes(max_dims=3)))
    count = data.draw(st.integers(0, 3))
    ndim = v.ndim + count
    places = data.draw(st.permutations(range(ndim)))[:count]
    signed = tuple(data.draw(st.sampled_from([place, place - ndim])) for place in places)
    lengths = iter(v.shape)
    shape = [1 if place in places else next(lengths) for place in range(ndim)]
    longer = xp.expand_dims(x, signed)
    check(longer, v.reshape(shape))
    check(xp.squeeze(longer, signed), v)
    if len(places) == 1:
        check(xp.expand_dims(x, signed[0]), v.reshape(shape))
        check(xp.squeeze(longer, signed[0]), v)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_wrong_axes_raise_as_the_standard_says(layout):
    x = to_array(np.ones((2, 1, 3)), layout)
    for axis in (4, -5, (0, 5), (-6, 0)):
        with pytest.raises(IndexError):
            xp.expand_dims(x, axis)
    for axis in ((0, 0), (1, -4)):
        with pytest.raises(ValueError, match="axis"):
            xp.expand_dims(x, axis)
    for axis in (0, 2, -1, (0, 1)):
        with pytest.raises(ValueError, match=r"squeeze|select"):
            xp.squeeze(x, axis)
    for axis in (3, -4, (1, 3)):
        with pytest.raises((IndexError, ValueError)):
            xp.squeeze(x, axis)
    for order in ((0, 1), (0, 1, 1), (0, 1, 2, 2), (0, 1, -2)):
        with pytest.raises(ValueError, match="ax"):
            xp.permute_dims(x, order)
    for order in ((0, 1, 3), (0, 1, -4)):
        with pytest.raises((IndexError, ValueError)):
            xp.permute_dims(x, order)
    for source, place in (((0, 1), (0,)), ((0, 0), (1, 2)), ((0, 1), (2, 2))):
        with pytest.raises(ValueError, match="ax"):
            xp.moveaxis(x, source, place)
    for function in (xp.flip, xp.unstack):
        with pytest.raises((IndexError, ValueError)):
            function(x, axis=3)
    for function in (xp.roll, xp.repeat):
        with pytest.raises((IndexError, ValueError)):
            function(x, 1, axis=-4)
    for function in (xp.concat, xp.stack):
        with pytest.raises((IndexError, ValueError)):
            function([x, x], axis=4)


# -- elements elsewhere -------------------------------------------------------------------------


@OF_EVERY_DTYPE
@given(data=st.data())
def test_flip_and_roll(dtype, data):
    x, v = data.draw(arrays(dtype))
    axis = data.draw(axes_of(v.ndim, several=True))
    chosen = range(v.ndim) if axis is None else np.atleast_1d(np.array(axis, int)) % max(v.ndim, 1)
    places = list(np.indices(v.shape))
    for each in chosen:
        places[each] = v.shape[each] - 1 - places[each]
    check(xp.flip(x, axis=axis), v[tuple(places)] if v.ndim else v)

    number = len(axis) if isinstance(axis, tuple) else 1
    shifts = data.draw(st.lists(st.integers(-7, 7), min_size=number, max_size=number))
    shift = tuple(shifts) if isinstance(axis, tuple) else shifts[0]
    if axis is None:
        wanted = v.ravel()[(np.arange(v.size) - shift) % max(v.size, 1)].reshape(v.shape)
        check(xp.roll(x, shift), wanted)
    elif v.ndim:
        places = list(np.indices(v.shape))
        for each, by in zip(chosen, shifts, strict=True):
            places[each] = (places[each] - by) % max(v.shape[each], 1)
        check(xp.roll(x, shift, axis=axis), v[tuple(places)])


def test_shifts_and_axes_go_together():
    v = np.arange(12).reshape(3, 4)
    both = v[np.ix_((np.arange(3) - 1) % 3, (np.arange(4) - 1) % 4)]
    check(xp.roll(to_array(v), 1, axis=(0, 1)), both)
    check(xp.roll(to_array(v), (3, -2), axis=(1, 1)), v[:, (np.arange(4) - 1) % 4])
    with pytest.raises(ValueError, match="shape mismatch"):
        xp.roll(to_array(v), (1, 2, 3), axis=(0, 1))


@OF_EVERY_DTYPE
@given(data=st.data())
def test_repeat(dtype, data):
    x, v = data.draw(arrays(dtype, shapes(min_dims=1)))
    axis = data.draw(axes_of(v.ndim))
    whole, at = (v.ravel(), 0) if axis is None else (v, axis)
    length = whole.shape[at]
    times = data.draw(values(np.int64, (length,), low=0, high=3))
    places = [place for place, number in enumerate(times) for _ in range(number)]
    wanted = np.take(whole, np.array(places, int), at)
    layout = data.draw(st.sampled_from(list(LAYOUTS)))
    check(xp.repeat(x, to_array(times, layout), axis=axis), wanted)
    number = data.draw(st.integers(0, 3))
    places = [place for place in range(length) for _ in range(number)]
    wanted = np.take(whole, np.array(places, int), at)
    check(xp.repeat(x, number, axis=axis), wanted)
    check(xp.repeat(x, xp.asarray([number], device=DEVICE), axis=axis), wanted)


def test_repeat_raises():
    x = xp.ones((2, 3))
    for times in (-1, xp.asarray([1, -1, 1]), xp.asarray([1, 2])):
        with pytest.raises(ValueError, match=r"negative|broadcast"):
            xp.repeat(x, times, axis=1)


@OF_EVERY_DTYPE
@given(data=st.data())
def test_tile(dtype, data):
    x, v = data.draw(arrays(dtype, shapes(max_dims=3, max_side=3)))
    times = tuple(data.draw(st.lists(st.integers(0, 3), max_size=4)))
    ndim = max(len(times), v.ndim)
    shape = (1,) * (ndim - v.ndim) + v.shape
    times_all = (1,) * (ndim - len(times)) + times
    lengths = [n * t for n, t in zip(shape, times_all, strict=True)]
    index = np.ix_(*(np.arange(n) % max(m, 1) for n, m in zip(lengths, shape, strict=True)))
    check(xp.tile(x, times), v.reshape(shape)[index] if ndim else v)


# -- shapes -------------------------------------------------------------------------------------


@st.composite
def factors(draw, size):
    """Shapes of so many elements."""
    if not size:
        return draw(shapes().filter(lambda shape: 0 in shape))
    shape = []
    while size > 1 and len(shape) < 5:
        shape.append(draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0])))
        size //= shape[-1]
    if size > 1 or draw(st.booleans()):
        shape.append(size)
    return tuple(draw(st.permutations(shape)))


@OF_EVERY_DTYPE
@given(data=st.data())
def test_reshape(dtype, data):
    x, v = data.draw(arrays(dtype))
    shape = data.draw(factors(v.size))
    wanted = np.empty(shape, dtype)
    for place, index in enumerate(np.ndindex(*shape)):
        wanted[index] = v[np.unravel_index(place, v.shape)] if v.ndim else v
    for copy in (None, True):
        check(xp.reshape(x, shape, copy=copy), wanted)
    if shape and v.size:
        at = data.draw(st.integers(0, len(shape) - 1))
        check(xp.reshape(x, (*shape[:at], -1, *shape[at + 1 :])), wanted)
    copied = xp.reshape(x, shape, copy=True)
    copied[...] = 0
    check(x, v)


@OF_EVERY_DTYPE
def test_reshape_without_a_copy_is_a_view_or_raises(dtype):
    x = to_array(np.zeros((2, 3), dtype))
    xp.reshape(x, (6,), copy=False)[4] = 1
    check(x, np.array([[0, 0, 0], [0, 1, 0]]).astype(dtype))
    with pytest.raises(ValueError, match="copy"):
        xp.reshape(x.T, (6,), copy=False)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(5,), (4, 2), (), (-1, 4), (-1, -1), (-2, -3), (0, -1)], ids=str)
def test_other_numbers_of_elements_raise(shape, layout):
    with pytest.raises(ValueError, match=r"shape|specify one unknown"):
        xp.reshape(to_array(np.ones((2, 3)), layout), shape)


# -- several arrays -----------------------------------------------------------------------------


@OF_EVERY_DTYPE
@given(data=st.data())
def test_concat_and_stack(dtype, data):
    v = data.draw(values(dtype, shapes(min_dims=1)))
    axis = data.draw(st.integers(-v.ndim, v.ndim - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, v.shape[axis]), max_size=3)))
    bounds = itertools.pairwise([0, *cuts, v.shape[axis]])
    parts = [np.take(v, np.arange(*each), axis) for each in bounds]
    layout = data.draw(st.sampled_from(list(LAYOUTS)))
    joined = [to_array(part, layout) for part in parts]
    check(xp.concat(joined, axis=axis), v)
    check(xp.concat(tuple(joined), axis=axis), v)
    flat = [each for part in parts for each in part.ravel()]
    check(xp.concat(joined, axis=None), np.array(flat, dtype))
    if axis % v.ndim == 0:
        check(xp.concat(joined), v)

    slices = [to_array(np.take(v, at, axis), layout) for at in range(v.shape[axis])]
    if slices:
        check(xp.stack(slices, axis=axis), v)
    apart = xp.unstack(to_array(v, layout), axis=axis)
    assert type(apart) is tuple
    assert len(apart) == v.shape[axis]
    for at, part in enumerate(apart):
        check(part, np.take(v, at, axis))


@pytest.mark.parametrize("function", [xp.concat, xp.stack])
@given(dtypes=st.lists(st.sampled_from(EXTENDED[:-2]), min_size=2, max_size=3))
def test_joined_arrays_promote(function, dtypes):
    wanted = strict_result_type(*dtypes)
    if wanted is not None:
        joined = function([xp.ones(2, dtype=dtype, device=DEVICE) for dtype in dtypes])
        shape = (2 * len(dtypes),) if function is xp.concat else (len(dtypes), 2)
        check(joined, np.ones(shape, wanted))


@pytest.mark.parametrize("function", [xp.concat, xp.stack])
def test_arrays_that_do_not_fit_raise(function):
    for shapes_ in ([(2, 3), (3, 2)], [(2,), (2, 1)], []):
        with pytest.raises(ValueError, match=r"dimension|shape|array"):
            function([xp.ones(shape) for shape in shapes_])
    with pytest.raises(ValueError, match=r"dimension|ax"):
        xp.concat([xp.ones(()), xp.ones(())])


def test_arrays_of_no_axes_are_joined_flat_and_stacked():
    x, y = to_array(np.float32(1)), to_array(np.float32(2))
    wanted = np.array([1, 2], np.float32)
    check(xp.concat([x, y], axis=None), wanted)
    check(xp.stack([x, y]), wanted)
    check(xp.stack([x, y], axis=-1), wanted)
    with pytest.raises((IndexError, ValueError)):
        xp.unstack(x)


@given(shape=hnp.array_shapes(min_dims=0, max_dims=2, min_side=0))
def test_lists_are_shapes_too(shape):
    x = xp.ones(shape, device=DEVICE)
    check(xp.reshape(x, list(shape)), np.ones(shape))
    check(xp.broadcast_to(x, [2, *shape]), np.ones((2, *shape)))
