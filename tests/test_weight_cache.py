"""The books of other forms of constants: what is kept, what goes first, what is let in."""

import sys
import threading
import weakref

import numpy as np
import pytest

from ggarray import _weight_cache
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import q8_0
from ggarray._weight_cache import admit, find, keep, kept_bytes, kept_forms, trim

FORM = "a form"


class Thing:
    """What is kept: so many bytes, and what goes with it."""

    def __init__(self, nbytes=1, holds=None):
        self.nbytes = nbytes
        self.holds = holds


@pytest.fixture(autouse=True)
def nothing_kept():
    trim(0)
    _weight_cache._noted.clear()
    yield
    trim(0)


def constant(number=0):
    return np.frombuffer(bytes([number] * 4), np.uint8)


def constants(count):
    return [constant(number) for number in range(count)]


def use(value, nbytes=1, limit=4):
    """Use a form as backends do: what is kept of it, or None; it is made where it is let in."""
    trim(limit)
    found = find(value, FORM)
    if found is None and admit(value, FORM, nbytes, limit):
        found = Thing(nbytes)
        keep(value, FORM, found)
    return found


def kept(values):
    return [at for at, value in enumerate(values) if kept_forms(value, [FORM])]


# -- what is kept -------------------------------------------------------------------------------


def test_forms_of_a_constant():
    value, other = constants(2)
    assert find(value, FORM) is None
    things = {FORM: Thing(3), np.dtype(np.float32): np.zeros(5, np.float32)}
    for form, thing in things.items():
        keep(value, form, thing)
    assert {form: find(value, form) for form in (*things, "another")} == {**things, "another": None}
    assert kept_forms(value, ["another", *things]) == [*things]
    assert kept_forms(other, things) == []
    assert (kept_bytes(), kept_bytes(Thing), kept_bytes(np.ndarray)) == (23, 3, 20)


def test_what_lays_out_the_same_memory_alike_is_the_same():
    value = np.frombuffer(bytes(4 * 34), np.uint8).reshape(4, 34)
    thing = Thing()
    keep(value, FORM, thing)
    assert find(value[:], FORM) is thing
    others = value[1:], value[:3], value.T, value[::-1], value.view(np.int8), Blocks(value, q8_0)
    assert [find(other, FORM) for other in others] == [None] * len(others)
    keep(others[-1], FORM, thing)
    assert find(Blocks(value, q8_0), FORM) is thing
    assert find(Blocks(value[:, None], q8_0), FORM) is None


def test_a_form_that_is_made_again_takes_the_place_of_the_other():
    value = constant()
    for nbytes in (2, 3):
        keep(value, FORM, Thing(nbytes))
    assert kept_bytes() == 3


def test_forms_go_with_the_memory_of_the_constant():
    value = constant()
    part = value[1:]
    thing = Thing()
    gone = weakref.ref(thing)
    keep(part, FORM, thing)
    admit(part, "another", 1, 4)
    del thing, part
    assert kept_bytes() == 1
    assert gone() is not None
    del value
    assert (kept_bytes(), gone()) == (0, None)
    assert (_weight_cache._kept, _weight_cache._noted) == ({}, {})


def test_memory_that_is_used_again_has_no_forms():
    memory = bytearray(4)
    for nbytes in (1, 2):
        value = np.frombuffer(memory, np.uint8)
        assert find(value, FORM) is None
        assert kept_forms(value, [FORM]) == []
        assert not admit(value, FORM, 1, 4)  # its first use
        keep(value, FORM, Thing(nbytes))
        assert find(value, FORM).nbytes == nbytes


def test_nor_where_a_death_was_not_noted(monkeypatch):
    """Ctrl-C came in the callback."""
    monkeypatch.setattr(_weight_cache, "_forget", lambda use: None)
    memory = bytearray(4)
    keep(np.frombuffer(memory, np.uint8), FORM, Thing(3))
    value = np.frombuffer(memory, np.uint8)
    assert kept_bytes() == 3
    assert find(value, FORM) is None
    assert kept_forms(value, [FORM]) == []
    keep(value, FORM, Thing(2))
    assert kept_bytes() == find(value, FORM).nbytes == 2


# -- what goes ----------------------------------------------------------------------------------


def test_those_used_longest_ago_go_first():
    values = constants(5)
    for nbytes, value in enumerate(values):
        keep(value, FORM, Thing(nbytes))
    find(values[1], FORM)
    left = {10: [0, 1, 2, 3, 4], 9: [1, 3, 4], 8: [1, 3, 4], 7: [1, 4], 4: [1], 1: [1], 0: []}
    for limit, expected in left.items():
        trim(limit)
        assert kept(values) == expected


def test_what_was_dropped_is_freed():
    value, thing = constant(), Thing()
    gone = weakref.ref(thing)
    keep(value, FORM, thing)
    del thing
    trim(0)
    assert gone() is None


# -- what is let in -----------------------------------------------------------------------------


def test_the_first_use_is_noted_and_the_second_lets_in():
    value, other = constants(2)
    assert [use(value) is None for _ in range(4)] == [True, False, False, False]
    assert [admit(other, FORM, 1, 4) for _ in range(4)] == [False, True, False, True]  # not made
    assert kept([value, other]) == [0]


@pytest.mark.parametrize("limit", [0, 7])
def test_what_does_not_fit_is_not_let_in(limit):
    value, small = constants(2)
    if limit:
        keep(small, FORM, Thing(3))
    assert [use(value, 8, limit) for _ in range(5)] == [None] * 5
    assert kept_bytes() == (3 if limit else 0)
    assert [use(value, 8, 8) is None for _ in range(3)] == [True, False, False]


@pytest.mark.parametrize("count", [4, 5, 9, 100])
def test_of_a_model_that_is_too_large_the_same_part_stays(count):
    model = constants(count)
    for _ in range(2):
        for value in model:
            use(value)
    for _ in range(5):
        things = [use(value) for value in model]
        assert [at for at, thing in enumerate(things) if thing is not None] == [0, 1, 2, 3]
        assert kept(model) == [0, 1, 2, 3]


def test_weights_of_several_sizes_fill_what_there_is():
    model, sizes = constants(4), (2, 1, 2, 1)
    for _ in range(5):
        for value, nbytes in zip(model, sizes, strict=True):
            use(value, nbytes)
    assert kept(model) == [0, 1, 3]


def test_an_idle_model_gives_way():
    idle, model = constants(4), constants(4)
    for _ in range(3):
        for value in idle:
            use(value)
    assert kept(idle) == [0, 1, 2, 3]
    for value in model:
        assert use(value) is None
    for number, value in enumerate(model):
        assert use(value) is not None
        assert kept(idle) == [*range(number + 1, 4)]
    assert kept(model) == [0, 1, 2, 3]


def test_models_used_in_turn_do_not_drive_each_other_out():
    model, other = constants(4), constants(4)
    for _ in range(5):
        for value in (*model, *other):
            use(value)
    assert (kept(model), kept(other)) == ([0, 1, 2, 3], [])


def test_copies_on_devices_share_the_limit():
    value, copied = constants(2)
    use(value)
    keep(copied, "device", Thing(4))
    use(value)  # the copy has been used since
    assert (kept_forms(copied, ["device"]), kept([value])) == (["device"], [])
    use(value)
    assert (kept_forms(copied, ["device"]), kept([value])) == ([], [0])


def test_a_lower_limit_frees_at_the_next_use():
    model = constants(4)
    for _ in range(2):
        for value in model:
            use(value)
    use(model[0], limit=2)
    assert kept(model) == [2, 3]
    use(model[3], limit=0)
    assert kept(model) == []


def test_notes_are_limited(monkeypatch):
    monkeypatch.setattr(_weight_cache, "_MOST_NOTES", 8)
    values = constants(100)
    for value in values:
        admit(value, FORM, 1, 4)
        assert len(_weight_cache._noted) <= 8
    assert [admit(value, FORM, 1, 4) for value in values[-4:]] == [True] * 4
    assert not admit(values[0], FORM, 1, 4)


# -- constants that die at any time -------------------------------------------------------------


@pytest.mark.parametrize("what", ["another in its place", "its constant", "the limit"])
def test_constants_that_die_with_what_is_dropped(what):
    """The callback comes while the books are being changed."""
    *held, value = constants(10)
    keep(value, FORM, Thing(holds=held[-1]))
    while held:
        keep(held.pop(), FORM, Thing(holds=held[-1:]))
    assert kept_bytes() == 10
    if what == "another in its place":
        keep(value, FORM, Thing(5))
    elif what == "its constant":
        del value
    else:
        trim(9)
    assert kept_bytes() == (5 if what == "another in its place" else 0)


def test_a_constant_that_dies_while_a_form_is_entered():
    held = constants(4)
    for at in range(4):
        keep(held[at], FORM, Thing())

    class Late:
        @property
        def nbytes(self):
            held.clear()
            return 7

    value = constant()
    keep(value, FORM, Late())
    assert kept_bytes() == 7
    assert kept([value]) == [0]


def test_constants_that_die_in_other_threads():
    numbers = range(1, 9)
    shared = {number: constant(number) for number in numbers}
    stop = threading.Event()

    def replace():
        while not stop.is_set():
            for number in numbers:
                shared[number] = constant(number)

    threads = [threading.Thread(target=replace) for _ in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for turn in range(3000):
            value = shared[numbers[turn % 8]]
            found = find(value, FORM)
            assert found is None or found.holds == value[0]
            if found is None and (turn % 3 or admit(value, FORM, 1, 4)):
                keep(value, FORM, Thing(holds=value[0]))
            trim(4)
            assert kept_bytes() <= 4
            kept_forms(value, [FORM])
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    del value
    shared.clear()
    assert (_weight_cache._kept, _weight_cache._noted) == ({}, {})
