"""Chunks of plans: what is kept for the next evaluation, how much, and what goes on errors."""

import numpy as np
import pytest
from doubles import others

import ggarray as xp
from ggarray._graph import memory
from ggarray.interface import HOST, Usage

KIB = 1 << 10


@pytest.fixture(autouse=True)
def nothing_kept():
    memory.release()
    yield
    memory.release()


@pytest.fixture
def far():
    device = others()["far"]
    device.happened.clear()
    device.errors.clear()
    yield device
    device.errors.clear()


def sizes(chunks):
    return {kind.name: [buffer.size for buffer in chunks[kind]] for kind in chunks}


def test_what_is_given_back_is_taken_again(far):
    own = far.buffer_type
    first = memory.take({own: (100, 50), HOST: (64,)})
    assert sizes(first) == {"far": [100, 50], "host": [64]}
    assert {buffer.usage for each in first.values() for buffer in each} == {Usage.COMPUTE}
    memory.give(first)
    assert memory.kept_bytes() == 214
    second = memory.take({own: (100, 50), HOST: (64,)})
    assert [*second[own], *second[HOST]] == [*first[own], *first[HOST]]
    assert memory.kept_bytes() == 0
    assert (far.happened["alloc"], far.happened["reset"], far.happened["free"]) == (150, 2, 0)


def test_two_users_have_two_buffers(far):
    wanted = {far.buffer_type: (100,)}
    one, other = memory.take(wanted), memory.take(wanted)
    assert one[far.buffer_type][0] is not other[far.buffer_type][0]


def test_the_smallest_that_fits_is_taken(far):
    own = far.buffer_type
    memory.give(memory.take({own: (300, 100, 200)}))
    assert sizes(memory.take({own: (90, 150, 1)})) == {"far": [100, 200, 300]}
    assert far.happened["alloc"] == 600


def test_what_is_too_small_is_freed_before_more_is_allocated(far):
    own = far.buffer_type
    memory.give(memory.take({own: (100, 200)}))
    far.errors["alloc"] = MemoryError("full")
    with pytest.raises(MemoryError):
        memory.take({own: (300,)})
    assert far.happened["free"] == 300
    assert sizes(memory.take({own: (300,)})) == {"far": [300]}


def test_an_error_while_taking_gives_back_what_was_taken(far):
    own = far.buffer_type
    memory.give(memory.take({own: (100,)}))
    far.errors["alloc"] = MemoryError("full")
    with pytest.raises(MemoryError):
        memory.take({HOST: (64,), own: (100, 50)})
    assert memory.kept_bytes() == 164
    assert far.happened["free"] == 0


def test_no_more_is_kept_than_the_limit(far, monkeypatch):
    monkeypatch.setattr(memory, "KEPT_BYTES", 250)
    own = far.buffer_type
    memory.give(memory.take({own: (100, 200, 150), HOST: (200,)}))
    assert memory.kept_bytes() == 250 + 200  # of each kind
    assert far.happened["free"] == 200
    memory.release()
    assert memory.kept_bytes() == 0
    assert far.happened["free"] == 450


def test_the_memory_of_an_evaluation_is_kept_for_the_next(far):
    x = xp.ones((8, 8), device="far")
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(x @ x @ x), np.full((8, 8), 64.0))
    assert far.happened["alloc"] == memory.kept_bytes() == 3 * 512
    assert far.happened["reset"] == 2


def test_host_memory_of_a_class_of_their_own_is_used():
    device = others()["counted"]
    device.happened.clear()
    (buffer,) = memory.take({device.buffer_type: (128,)})[device.buffer_type]
    array = memory.host_buffer(buffer).memory
    assert (array.size, array.__array_interface__["data"][0]) == (128, buffer.base)
    buffer.reset()
    assert device.happened["reset"] == 1
    memory.give({device.buffer_type: [buffer]})
    memory.release()
    assert device.happened["free"] == 128


# -- reserve ------------------------------------------------------------------------------------


def test_reserved_memory_is_used(far):
    x = xp.ones((8, 8), device="far")
    large = x @ x @ x
    xp.reserve(large)
    assert xp.is_pending(large)
    assert far.happened["alloc"] == memory.kept_bytes() == 3 * 512
    assert far.happened["set_tensor"] == 0
    xp.evaluate(x @ x)  # less
    xp.evaluate(large)
    assert far.happened["alloc"] == 3 * 512
    assert far.happened["free"] == 0


def test_reserved_memory_is_kept_beyond_the_limit(far, monkeypatch):
    monkeypatch.setattr(memory, "KEPT_BYTES", 600)
    x = xp.ones((8, 8), device="far")
    product = x @ x @ x
    xp.evaluate(product)
    assert memory.kept_bytes() == 0
    product = x @ x @ x
    xp.reserve(product)
    assert memory.kept_bytes() == 3 * 512
    xp.evaluate(product)
    assert memory.kept_bytes() == 3 * 512
    memory.release()  # forgets the reservation
    xp.evaluate(x @ x @ x)
    assert memory.kept_bytes() == 0


def test_reserving_on_the_host():
    x = xp.ones((128, 128), device="counting")  # 128 KiB, large enough to be placed
    product = x @ x @ x @ x
    xp.reserve(product)
    assert memory.kept_bytes() == 2 * 128 * KIB
    np.testing.assert_array_equal(np.asarray(product), np.full((128, 128), 128.0**3))
    assert memory.kept_bytes() == 2 * 128 * KIB


def test_reserving_for_what_is_there_or_too_much(far):
    x = xp.ones((8, 8), device="far")
    xp.reserve()
    xp.reserve(x)
    assert memory.kept_bytes() == 0
    product = x @ x
    xp.reserve(product)
    far.errors["alloc"] = MemoryError("full")
    larger = x @ x @ x
    with pytest.raises(MemoryError):
        xp.reserve(larger)
    with xp.options(memory_limit=1), pytest.raises(MemoryError, match="memory_limit"):
        xp.reserve(larger)
    assert xp.is_pending(larger)
    np.testing.assert_array_equal(np.asarray(larger), np.full((8, 8), 64.0))
