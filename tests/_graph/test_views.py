"""Layouts against the views that NumPy itself makes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import ggarray as xp
from ggarray._graph.node import part
from ggarray._graph.views import Layout
from ggarray.interface.nodes import contiguous_strides

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def start(shape):
    """Return an array whose elements are all different, and its layout."""
    array = np.arange(math.prod(shape), dtype=np.int16).reshape(shape)
    return array, Layout(shape, contiguous_strides(shape, array.itemsize), 0)


def assert_is(layout, root, view):
    """Check that the layout, laid over the memory of `root`, is the view of it."""
    assert layout.shape == view.shape
    laid = part(root, layout.shape, layout.strides, layout.offset, root.dtype)
    np.testing.assert_array_equal(laid, view)
    for length, ours, numpy in zip(view.shape, layout.strides, view.strides, strict=True):
        assert length <= 1 or view.size == 0 or ours == numpy


@settings(deadline=None)
@given(SHAPES)
def test_contiguous_strides(shape):
    root, layout = start(shape)
    assert_is(layout, root, root)


@settings(deadline=None)
@given(SHAPES, st.data())
def test_permute(shape, data):
    root, layout = start(shape)
    axes = tuple(data.draw(st.permutations(range(len(shape)))))
    assert_is(layout.permute(axes), root, root.transpose(axes))


@settings(deadline=None)
@given(SHAPES, st.data())
def test_expand(shape, data):
    root, layout = start(shape)
    axis = data.draw(st.integers(0, len(shape)))
    assert_is(layout.expand(axis), root, np.expand_dims(root, axis))


@settings(deadline=None)
@given(SHAPES, st.data())
def test_squeeze(shape, data):
    root, layout = start(shape)
    ones = [axis for axis, length in enumerate(shape) if length == 1]
    axes = data.draw(st.frozensets(st.sampled_from(ones)) if ones else st.just(frozenset()))
    assert_is(layout.squeeze(axes), root, np.squeeze(root, tuple(axes)))


@settings(deadline=None)
@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=4))
def test_broadcast(shapes):
    first, result = shapes.input_shapes[0], shapes.result_shape
    root, layout = start(first)
    assert_is(layout.broadcast(result), root, np.broadcast_to(root, result))


@settings(deadline=None)
@given(SHAPES, SHAPES)
def test_broadcast_to_any_shape(shape, target):
    root, layout = start(shape)
    try:
        expected = np.broadcast_to(root, target)
    except ValueError:
        assert layout.broadcast(target) is None
    else:
        assert_is(layout.broadcast(target), root, expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((4, 6), (24,)),
        ((4, 6), (2, 3, 4)),
        ((24,), (4, 1, 6)),
        ((1,), ()),
        ((), (1, 1)),
        ((0, 3), (3, 0, 2)),
    ],
)
def test_reshape(old, new):
    root, layout = start(old)
    assert_is(layout.reshape(new, root.itemsize), root, root.reshape(new))


def test_reshape_that_would_move_elements():
    _, layout = start((4, 6))
    assert layout.permute((1, 0)).reshape((24,), 2) is None
    assert layout.index((slice(None), slice(0, 3))).reshape((12,), 2) is None
    assert layout.index((slice(None, None, -1),)).reshape((24,), 2) is None
    assert layout.index((slice(None, None, 2),)).reshape((12,), 2) is None
    assert layout.broadcast((2, 4, 6)).reshape((48,), 2) is None


def test_reshape_of_rows_in_the_middle():
    root, layout = start((4, 6))
    rows = layout.index((slice(1, 3),))
    assert_is(rows.reshape((3, 4), 2), root, root[1:3].reshape(3, 4))


def basic_indices(shape):
    indices = hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True)
    return indices.map(lambda key: key if isinstance(key, tuple) else (key,))


@settings(deadline=None, max_examples=300)
@given(SHAPES, st.data())
def test_index(shape, data):
    root, layout = start(shape)
    key = data.draw(basic_indices(shape))
    view = root[(*key, ...) if Ellipsis not in key else key]  # never a NumPy scalar
    assert_is(layout.index(key), root, view)


INDICES = [
    (),
    (...,),
    (None,),
    (None, ..., None),
    (1,),
    (-1, ..., -2),
    (slice(None, None, -1), slice(None, None, -2)),
    (slice(-2, None), None, slice(5, 1, -3)),
    (slice(7, None), 0),
    (slice(2, 1), 0, ...),
    (slice(-100, 100), slice(100, -100, -1)),
    (..., 2),
    (0, 0, ..., 0),
]


@pytest.mark.parametrize("key", INDICES)
def test_index_like_numpy(key):
    root, layout = start((3, 4, 5))
    assert_is(layout.index(key), root, root[(*key, ...) if Ellipsis not in key else key])


NO_VIEWS = {
    "out of range": (3,),
    "out of range below": (-4,),
    "out of range later": (0, slice(None), 5),
    "too many": (0, 0, 0, 0),
    "too many slices": (slice(None),) * 4,
    "two ellipses": (..., 0, ...),
    "bool": (True,),
    "float": (1.0,),
    "text": ("x",),
    "list": ([0, 1],),
    "integer array": (np.array([0, 1]),),
    "boolean array": (np.ones(3, bool),),
    "zero step": (slice(None, None, 0),),
    "float in a slice": (slice(0, 1.5),),
}


@pytest.mark.parametrize("name", NO_VIEWS)
def test_what_is_no_view(name):
    assert start((3, 4, 5))[1].index(NO_VIEWS[name]) is None


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (3, 0, 2)])
def test_indices_of_no_elements(shape):
    root, layout = start(shape)
    for key in [(..., -1), (-1,), (slice(1, None),), (None, ..., slice(None, None, -1))]:
        try:
            view = root[key]
        except IndexError:
            assert layout.index(key) is None
        else:
            assert_is(layout.index(key), root, view)


def test_pending_products_of_no_elements():
    flat = xp.ones((0, 3)) @ xp.ones((3, 2))
    assert np.asarray(flat[:, 1]).shape == (0,)
    thin = xp.ones((2, 3)) @ xp.ones((3, 0))
    assert np.asarray(thin[1]).shape == (0,)


def test_integers_of_an_axis_of_no_length():
    _, layout = start((2, 0))
    for at in (-1, 0, 1):
        assert layout.index((0, at)) is None


STEPS = ["index", "permute", "expand", "squeeze", "broadcast", "reshape"]


def take_step(step, layout, view, data):
    """Return the layout and the array after one more view; the same where there is none."""
    ndim = view.ndim
    if step == "index":
        key = data.draw(basic_indices(view.shape))
        return layout.index(key), view[(*key, ...) if Ellipsis not in key else key]
    if step == "permute":
        axes = tuple(data.draw(st.permutations(range(ndim))))
        return layout.permute(axes), view.transpose(axes)
    if step == "expand":
        axis = data.draw(st.integers(0, ndim))
        return layout.expand(axis), np.expand_dims(view, axis)
    if step == "squeeze":
        axes = tuple(axis for axis in range(ndim) if view.shape[axis] == 1)
        return layout.squeeze(frozenset(axes)), np.squeeze(view, axes)
    if step == "broadcast":
        shape = (2, *(3 if length == 1 else length for length in view.shape))
        return layout.broadcast(shape), np.broadcast_to(view, shape)
    reshaped = layout.reshape((view.size,), view.itemsize)
    return (layout, view) if reshaped is None else (reshaped, view.reshape(-1))


@settings(deadline=None, max_examples=200)
@given(SHAPES, st.lists(st.sampled_from(STEPS), max_size=5), st.data())
def test_views_of_views(shape, steps, data):
    root, layout = start(shape)
    view = root
    for step in steps:
        if view.ndim < 7:
            layout, view = take_step(step, layout, view, data)
    assert_is(layout, root, view)
