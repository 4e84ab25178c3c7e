"""Books of memory: what is shared, for how long, and what belongs to somebody else."""

import gc

import numpy as np
import pytest

import ggarray as xp
from ggarray._storage import borrow, export, find, is_constant, registry, root_of, storage_of


@pytest.mark.parametrize(
    "give_out",
    [
        np.asarray,
        np.from_dlpack,
        lambda x: np.asarray(x)[1:],
        lambda x: np.asarray(x).T[..., 0],
        lambda x: memoryview(np.asarray(x)),
        lambda x: xp.asarray(np.asarray(x), copy=False),
        lambda x: np.asarray(xp.asarray(np.asarray(x), copy=False)),
    ],
)
def test_memory_is_shared_while_what_was_given_out_lives(give_out):
    x = xp.ones((3, 3))
    outside = give_out(x)
    gc.collect()
    assert storage_of(x._np).shared
    assert not xp.is_pending(x @ x)
    del outside
    gc.collect()
    assert not storage_of(x._np).shared
    assert xp.is_pending(x @ x)


def test_own_memory_taken_back_is_known():
    x = xp.ones((3, 3))
    y = xp.from_dlpack(x)
    product = x @ x
    y[0, 0] = 9.0
    np.testing.assert_array_equal(np.asarray(product), np.full((3, 3), 3.0))


def test_exported_memory_is_the_same_memory():
    for dtype in (np.float64, np.float16, xp.bfloat16, np.bool_):
        value = np.ones((2, 3), dtype)
        outside = export(value)
        assert type(outside) is np.ndarray
        assert outside.dtype == dtype
        outside[0, 1] = 0
        assert value[0, 1] == 0


def test_borrowed_memory_is_shared_for_ever():
    foreign = np.ones((3, 3))
    x = xp.asarray(foreign, copy=False)
    assert np.shares_memory(x._np, foreign)
    assert storage_of(x._np).shared
    assert storage_of(x[1:]._np).shared
    assert not xp.is_pending(x @ x)


def test_read_only_views_are_not_constant():
    foreign = np.ones((3, 3))
    view = foreign.view()
    view.flags.writeable = False
    x = xp.asarray(view, copy=False)
    assert not is_constant(x._np)
    product = x @ xp.ones((3, 3))
    foreign[:] = 7
    np.testing.assert_array_equal(np.asarray(product), np.full((3, 3), 3.0))


def test_bytes_are_constant():
    x = xp.asarray(np.frombuffer(bytes(72), np.float64).reshape(3, 3))
    assert is_constant(x._np)
    assert storage_of(x._np) is None
    assert xp.is_pending(x @ x)


def test_books_are_closed_when_memory_goes():
    x = xp.ones((3, 3))
    product = x @ x
    key = id(root_of(x._np))
    assert key in registry
    del x, product
    gc.collect()
    assert key not in registry


VIEWS = {
    "basic": lambda x: x[1:, ::2],
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "broadcast_to": lambda x: xp.broadcast_to(x, (2, 3, 4)),
    "broadcast_arrays": lambda x: xp.broadcast_arrays(x, xp.ones((2, 3, 4)))[0],
    "expand_dims": lambda x: xp.expand_dims(x, axis=0),
    "squeeze": lambda x: xp.squeeze(x[None], axis=0),
    "flip": xp.flip,
    "moveaxis": lambda x: xp.moveaxis(x, 0, 1),
    "permute_dims": lambda x: xp.permute_dims(x, (1, 0)),
    "reshape": lambda x: xp.reshape(x, (-1,)),
    "unstack": lambda x: xp.unstack(x)[0],
    "real": xp.real,
    "asarray": xp.asarray,
    "astype": lambda x: xp.astype(x, x.dtype, copy=False),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_known_to_be_of_the_same_memory(name):
    x = xp.asarray(np.arange(12.0).reshape(3, 4))
    v = VIEWS[name](x)
    assert np.shares_memory(x._np, v._np)
    assert root_of(v._np) is root_of(x._np)
    product = v @ xp.ones((v.shape[-1], 2))
    expected = v._np @ np.ones((v.shape[-1], 2))
    x[...] = -1.0
    np.testing.assert_array_equal(np.asarray(product), expected)


def test_find_makes_nothing():
    value = np.ones(3)
    assert find(value) is None
    assert storage_of(value) is find(value)
    assert storage_of(borrow(value)).foreign
