"""One piece of memory for the work of products is kept, and grows."""

import numpy as np
import pytest

from ggarray.backends.cpu import kernels
from ggarray.backends.cpu._kernels import ffi, lib

MEBIBYTE = 1 << 20
LARGEST_KEPT = 16 * MEBIBYTE


def take(size):
    memory = lib.gg_workspace_take(size)
    assert memory != ffi.NULL
    assert int(ffi.cast("uintptr_t", memory)) % 64 == 0
    return memory


@pytest.mark.parametrize("kept_first", [False, True])  # one of them malloc would pass as well
def test_the_same_piece_is_given_again(kept_first):
    kept, other = take(MEBIBYTE), take(MEBIBYTE)
    assert kept != other
    for memory in (kept, other) if kept_first else (other, kept):
        lib.gg_workspace_give(memory)
    assert take(MEBIBYTE) == kept
    lib.gg_workspace_give(kept)


def test_the_piece_grows_and_stays_large():
    large = take(LARGEST_KEPT)
    ffi.memmove(large, b"kept", 4)
    ffi.memmove(ffi.cast("char *", large) + LARGEST_KEPT - 4, b"kept", 4)
    lib.gg_workspace_give(large)
    small = take(64)
    assert small == large
    lib.gg_workspace_give(small)
    again = take(LARGEST_KEPT)
    assert again == large
    assert ffi.buffer(again, LARGEST_KEPT)[-4:] == b"kept"
    lib.gg_workspace_give(again)


def test_larger_pieces_are_not_kept():
    kept = take(MEBIBYTE)
    lib.gg_workspace_give(kept)
    large = take(LARGEST_KEPT + 1)
    assert take(MEBIBYTE) == kept
    lib.gg_workspace_give(large)
    lib.gg_workspace_give(kept)


@pytest.mark.parametrize("is_taken", [False, True])
def test_products_work_in_the_piece_where_it_is_free(is_taken):
    size, pattern = 8 * MEBIBYTE, 0xA5
    memory = take(size)
    seen = np.frombuffer(ffi.buffer(memory, size), np.uint8)
    ffi.buffer(memory, size)[:] = bytes([pattern]) * size
    if not is_taken:
        lib.gg_workspace_give(memory)
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((300, 400)), rng.standard_normal((400, 500))
    out = np.empty((300, 500))
    assert kernels.matmul(a, b, out, 2) == 0
    np.testing.assert_allclose(out, np.einsum("ik,kj->ij", a, b))
    if not is_taken:
        assert take(size) == memory  # it was given back
    assert (seen == pattern).all() == is_taken
    lib.gg_workspace_give(memory)
