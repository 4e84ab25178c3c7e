"""Plans of memory: what is where and until when, what is copied, and what a plan says of it."""

import random
from itertools import combinations

import numpy as np
import pytest
from doubles import HELD, others
from recorded import (
    ALL,
    PRODUCTS,
    captured,
    constant,
    graph_of,
    node_of,
    plan_of,
    quantized,
    random_arrays,
    used,
)
from values import numbers

import ggarray as xp
from ggarray import BackendError
from ggarray._graph import plan_cache, schedule as module, split
from ggarray._graph.ir import Graph
from ggarray._graph.schedule import schedule
from ggarray._storage import address
from ggarray.interface import HOST, Flag

VALUE = np.array([[1.0, 2.0], [3.0, 4.0]])
BYTES = 32
"""Of it."""
ALIGNMENT = HOST.alignment

ALSO = (*HELD, "planning", "choosy", "counting")


@pytest.fixture
def x():
    return xp.asarray(VALUE, device="counting")


@pytest.fixture
def place_all(monkeypatch):
    """Let plans place small values too."""
    plan_cache.drop_all()
    monkeypatch.setattr(module, "WORTH_PLACING", 1)
    monkeypatch.setattr(split, "WORTH_PLACING", 1)
    yield
    plan_cache.drop_all()


def on(name):
    others()
    return xp.asarray(VALUE, device=name)


def last_uses(plan):
    return [set(step.last_use) for step in plan.steps]


def spans(plan):
    """Return of each block: its memory, the steps of its first and last use, if it is kept."""
    return [(each.buffer_type.name, each.first, each.last, each.kept) for each in plan.blocks]


# -- until when values are needed ---------------------------------------------------------------


def test_value_that_the_program_holds_is_kept(x):
    held = x @ x
    end = held @ x @ x
    assert last_uses(plan_of(end)) == [set(), set(), {1}]
    assert [block.kept for block in plan_of(end).blocks] == [True, False, True]
    del held
    assert last_uses(plan_of(end)) == [set(), {0}, {1}]
    assert [block.kept for block in plan_of(end).blocks] == [False, False, True]


def test_value_that_a_later_node_needs_is_kept(x):
    square = x @ x
    first, second = square @ x, square + square
    del square
    assert last_uses(plan_of(first)) == last_uses(plan_of(second)) == [set(), set()]
    assert last_uses(plan_of(first, second)) == [set(), set(), {0}]
    del second
    assert last_uses(plan_of(first)) == [set(), {0}]


def test_update_of_memory_is_kept(x):
    total = xp.zeros((2, 2), device="counting")
    total += x @ x
    plan = plan_of(total @ x)
    assert last_uses(plan) == [set(), {0}, set()]
    assert [block.kept for block in plan.blocks] == [True, True]  # the sum replaces the product


@pytest.mark.parametrize("name", ["counting", "far"])
def test_memory_of_views_lives_with_them(name):
    x = on(name)
    rows = [(x @ x)[at] for at in range(2)]
    plan = plan_of(*rows)
    assert last_uses(plan) == [set()] * 4
    assert [step.block is None for step in plan.steps] == [False, True, False, True]
    assert [block.kept for block in plan.blocks if block.buffer_type is HOST] == [True, True]
    end = (x @ x).T @ (x @ x)
    assert last_uses(plan_of(end)) == [set(), set(), set(), {0, 1, 2}]


def test_memory_of_a_split_goes_when_the_backend_has_been_called(x):
    """Small values have memory of their own; the backend is called once for all."""
    plan = plan_of(x @ x @ x @ x + x)
    assert spans(plan) == [
        ("host", 0, 2, False),
        ("host", 1, 2, False),
        ("host", 2, 3, True),  # the sum is written over the last product
    ]
    assert plan.chunks == {}
    assert plan.nbytes == 3 * BYTES


@pytest.mark.usefixtures("place_all")
@pytest.mark.parametrize("name", ["counting", "far", "wrapping", "counted"])
def test_values_of_a_chain_take_turns_in_two_places(name):
    x = on(name)
    power = x @ x
    for _ in range(6):
        power = power @ x
    plan = plan_of(power)
    own = next(block.buffer_type for block in plan.blocks)
    copies = 1 if name == "far" else 0
    results = 1 if name == "far" else 0
    assert plan.chunks == {own: ((2 + copies) * own.alignment,)}
    assert plan.nbytes == (2 + copies) * own.alignment + BYTES
    assert len(plan.blocks) == 7 + copies + results
    places = [block.place for block in plan.blocks if block.place is not None]
    assert len({place.offset for place in places}) == 2 + copies
    np.testing.assert_array_equal(np.asarray(power), np.linalg.matrix_power(VALUE, 8))


# -- in place -----------------------------------------------------------------------------------


def test_sums_and_scalings_replace_an_operand_that_is_used_up(x):
    plan = plan_of(2.0 * (x @ x + x))
    product, total, doubled = plan.steps
    assert product.block == total.block == doubled.block
    assert [step.replaces for step in (product, total, doubled)] == [None, 0, 1]
    assert plan.nbytes == BYTES


def test_what_may_not_be_replaced(x):
    held = x @ x
    viewed = x @ x
    view = viewed[:]
    ends = {
        "the program holds it": held + x,
        "a view of it is still to be read": viewed + view,
        "it is a view": (x @ x)[:] + x,
        "it is read later": (square := x @ x) + x @ square,
        "another shape": x @ x + xp.ones((3, 2, 2), device="counting"),
        "another dtype": xp.astype(x @ x, xp.float32),
    }
    del viewed, view, square
    allowed = {"it is read later": 1}  # the other operand is
    replaced = {name: [step.replaces for step in plan_of(end).steps] for name, end in ends.items()}
    counts = {name: len([r for r in each if r is not None]) for name, each in replaced.items()}
    assert counts == {name: allowed.get(name, 0) for name in ends}


def test_a_value_twice_as_an_operand_is_replaced_once(x):
    square = x @ x
    end = square + square
    del square
    (_, total) = plan_of(end).steps
    assert total.replaces == 0
    np.testing.assert_array_equal(np.asarray(end), 2 * VALUE @ VALUE)


# -- random plans -------------------------------------------------------------------------------


def overlap(one, other):
    (chunk, begin), (other_chunk, other_begin) = one.place, other.place
    apart = begin + one.nbytes <= other_begin or other_begin + other.nbytes <= begin
    return one.buffer_type is other.buffer_type and chunk == other_chunk and not apart


def check(plan):
    """Check all that a plan of memory promises."""
    uses, blocks, roots = used(plan)
    for at, block in enumerate(plan.blocks):
        assert block.first == min(uses[at])
        assert block.last >= max(uses[at])
        if block.place is not None:
            sizes = plan.chunks[block.buffer_type]
            assert block.place.offset % block.buffer_type.alignment == 0
            assert block.place.offset + block.nbytes <= sizes[block.place.chunk]
            assert not block.kept
        assert block.place is not None or block.buffer_type.is_host
    placed = [block for block in plan.blocks if block.place is not None]
    for one, other in combinations(placed, 2):
        together = one.first <= other.last and other.first <= one.last
        assert not (together and overlap(one, other))
    for at in plan.graph.outputs:
        if roots[at] >= 0:
            host = [b for memory, b in blocks[roots[at]].items() if memory.is_host]
            assert any(plan.blocks[block].kept for block in host)
    for buffer_type, sizes in plan.chunks.items():
        largest = max(each.nbytes for each in placed if each.buffer_type is buffer_type)
        assert max(sizes) <= max(buffer_type.max_size, largest + buffer_type.alignment)
    check_last_uses(plan, roots)


def check_last_uses(plan, roots):
    readers = {}
    for step in plan.steps:
        for ref in step.vertex.operands:
            if ref >= 0:
                readers[ref] = step.at
                if roots[ref] >= 0:
                    readers[roots[ref]] = step.at
    kept = {*plan.graph.outputs, *(roots[at] for at in plan.graph.outputs)}
    expected = {}
    for at, reader in readers.items():
        if at not in kept:
            expected.setdefault(reader, set()).add(at)
    found = {step.at: set(step.last_use) for step in plan.steps if step.last_use}
    assert found == expected


@pytest.mark.parametrize("name", ALSO)
@pytest.mark.parametrize("placing", [1, 1 << 16])
def test_random_plans(name, placing, monkeypatch):
    for each in (module, split):
        monkeypatch.setattr(each, "WORTH_PLACING", placing)
    others()
    for seed in range(15):
        x = xp.asarray(numbers((3, 3), float), device=name)
        arrays = random_arrays(x, seed)
        fuse = ALL if seed % 2 else ()
        check(plan_of(*arrays, fuse=fuse))
        check(plan_of(*arrays[-2:], fuse=fuse))
        with_weights = [array @ constant(VALUE[:, :1], name) for array in [x[:, :2] @ VALUE.T]]
        check(plan_of(*arrays, *with_weights, fuse=fuse))


def test_plans_in_which_memory_is_kept_longer(monkeypatch):
    monkeypatch.setattr(split, "WORTH_PLACING", 1)
    backend = others()["ordering"].backend
    for seed in range(15):
        rng = random.Random(seed)

        def keep(graph, add_alloc_dep, rng=rng):
            for node in range(len(graph)):
                add_alloc_dep(node, rng.randrange(node, len(graph)))
            return range(len(graph))

        monkeypatch.setattr(backend, "order", keep)
        check(plan_of(*random_arrays(on("ordering"), seed, kinds=(PRODUCTS,))))


# -- copies -------------------------------------------------------------------------------------


def copies(plan):
    return [[str(copy) for copy in each.copies] for each in plan.splits]


def test_operands_are_copied_there_and_results_back():
    x = on("far")
    plan = plan_of(x @ x)
    assert copies(plan) == [["copy x0 to far, block 0"], ["copy %0 to host, block 2"]]
    assert spans(plan) == [("far", 0, 0, False), ("far", 0, 1, False), ("host", 1, 1, True)]


def test_what_the_host_computes_in_between_is_copied_to_it_and_back():
    x = on("far")
    product = x @ x
    end = ((product + x) @ x)[0]
    assert copies(plan_of(end)) == [
        ["copy x0 to far, block 0"],
        ["copy %0 to host, block 2"],
        ["copy %1 to far, block 4"],  # x is there
        ["copy %2 to host, block 6"],
    ]
    assert [block.kept for block in plan_of(end).blocks[2:]] == [True, False, False, False, True]


def test_a_value_is_copied_once():
    x, y = on("far"), on("far")
    product = x @ x
    total = product + product
    plan = plan_of(total @ x, product @ y, total.T @ y)
    targets = [copy for each in plan.splits for copy in each.copies if copy.target is not HOST]
    assert len({copy.value for copy in targets}) == len(targets) == 3


def test_constants_are_copied_for_good():
    weights = constant(VALUE, others()["far"].name)
    plan = plan_of(on("far") @ weights)
    assert copies(plan)[0] == ["copy x0 to far, block 0", "copy x1 to far, for good"]
    quantized_weights, _ = quantized(np.ones((32, 32)), device="far")
    a = xp.ones((2, 32), dtype=xp.float32, device="far")
    plan = plan_of(a @ quantized_weights.mT)
    assert copies(plan)[0] == ["copy x0 to far, block 0", "copy x1 to far, for good"]


def test_views_are_not_copied():
    x = on("far")
    plan = plan_of((x @ x).T @ x, x[::-1] @ x.T)
    assert copies(plan)[0] == [f"copy x{leaf} to far, block {block}" for leaf, block in
                               ((0, 0), (1, 1), (2, 2))]  # fmt: skip
    copied = [plan.blocks[copy.block].tensor for copy in plan.splits[0].copies]
    assert all(tensor.strides == (16, 8) for tensor in copied)


def test_a_result_that_is_a_view_brings_what_it_views():
    x = on("far")
    plan = plan_of((x @ x)[1])
    assert copies(plan)[-1] == ["copy %0 to host, block 2"]
    leaf_view = x @ x
    view = leaf_view[0]
    xp.evaluate(leaf_view)
    assert len(plan_of(view).splits) == 1  # of what is there: no copy
    assert copies(plan_of(view)) == [[]]


@pytest.mark.parametrize("name", ["counted", "wrapping", "late host", "counting"])
def test_nothing_is_copied_for_devices_that_work_in_host_memory(name):
    x = on(name)
    plan = plan_of((x @ x + x) @ constant(VALUE, name))
    assert copies(plan) == [[]] * 3
    own = {block.buffer_type for block in plan.blocks}
    assert own == ({others()["counted"].buffer_type} if name == "counted" else {HOST})


def test_memory_of_a_device_whose_chunks_are_small():
    n = 16  # 2,048 bytes, of 4,096 at most
    x = xp.ones((n, n), device=others()["narrow"].name)
    plan = plan_of(x @ x @ x @ x)
    assert plan.chunks[others()["narrow"].buffer_type] == (4096, 2048)
    large = xp.ones((32, 32), device="narrow")  # 8,192 bytes
    assert plan_of(large @ large).chunks[others()["narrow"].buffer_type] == (8192, 8192)


# -- flags --------------------------------------------------------------------------------------


def test_flags_of_a_split(x):
    held = x @ x
    middle = held @ x
    end = middle @ middle + x
    flags = [step.flags for step in plan_of(end).steps]
    everything = Flag.COMPUTE | Flag.INPUT | Flag.OUTPUT
    assert flags == [
        everything,  # the program holds it
        Flag.COMPUTE | Flag.OUTPUT,  # and this
        Flag.COMPUTE | Flag.OUTPUT,  # the host reads it
        everything,
    ]
    del held, middle
    assert [step.flags for step in plan_of(end).steps][:2] == [
        Flag.COMPUTE | Flag.INPUT,
        Flag.COMPUTE,
    ]


def test_a_value_that_a_view_needs_later_is_an_output(x):
    rows = (x @ x)[0]
    flags = {step.at: step.flags for step in plan_of(rows @ x, rows).steps}
    assert Flag.OUTPUT in flags[0]
    assert Flag.INPUT not in flags[2]


# -- what a plan says ---------------------------------------------------------------------------


def test_text(x):
    column = x[:, 0]
    plan = plan_of((x @ x)[:] + xp.linalg.outer(column, column))
    takes = "device counting takes this"
    value = "float64(2, 2)".ljust(24)
    assert str(plan).splitlines() == [
        "split 0 on counting",
        f"   0  %0     matmul    counting    {value}  until step 3; {takes} matmul of float64",
        f"   1  %1     view      counting    {value}  view; a view: no element moves",
        f"   2  %2     out_prod  counting    {value}  kept; {takes} out_prod of float64",
        "split 1 on host",
        f"   3  %3     add       host        {value}  kept; a sum: NumPy computes it",
    ]
    assert str(schedule(Graph((), (), ()))) == ""


def test_text_of_copies_and_chunks():
    x = on("far")
    plan = plan_of(2.0 * (x @ constant(VALUE, "far")))
    text = str(plan).splitlines()
    assert text[:3] == [
        "split 0 on far",
        "      copy x0 to far, block 0",
        "      copy x1 to far, for good",
    ]
    assert "far chunk 0, byte 256; device far takes this matmul of float64" in text[3]
    assert text[-1] == "far: 512 bytes in 1 chunks"
    assert str(xp.graph(2.0 * (x @ x)).plan).startswith("split 0 on far\n")


def test_planning_computes_nothing(x, counting):
    device = others()["far"]
    device.happened.clear()
    product, far = (x @ x) @ x, on("far") @ on("far")
    for array in (product, far):
        for fuse in (ALL, ()):
            assert plan_of(array, fuse=fuse).steps
        assert xp.graph(array).plan
        assert xp.is_pending(array)
    assert counting.computed == []
    assert device.happened == {}


def test_a_plan_holds_no_memory_and_no_node(x):
    end = (x @ x) @ x
    plan = plan_of(end)
    kinds = {type(node_of(end)), np.ndarray}
    stack, seen = [plan], 0
    while stack:
        each = stack.pop()
        assert type(each) not in kinds
        seen += 1
        if isinstance(each, dict):
            stack += [*each, *each.values()]
        elif isinstance(each, (tuple, list, frozenset)):
            stack += each
    assert seen > 50


def test_equal_graphs_have_equal_plans(x):
    y = xp.asarray(VALUE + 1, device="counting")
    one, same = (each @ each for each in (x, y))
    assert plan_of(one.T @ x + one) == plan_of(same.T @ y + same)


# -- limits -------------------------------------------------------------------------------------


def test_memory_limit_refuses_before_anything_runs(x, counting):
    product = (x @ x) @ x
    with (
        xp.options(memory_limit=63),
        pytest.raises(MemoryError, match="takes 64 bytes, the option memory_limit allows 63"),
    ):
        xp.evaluate(product)
    lone = x @ x
    with xp.options(memory_limit=31), pytest.raises(MemoryError, match="takes 32 bytes"):
        xp.evaluate(lone)
    assert counting.computed == []
    with xp.options(memory_limit=64):
        xp.evaluate(product)
        xp.evaluate(lone)
    assert not xp.is_pending(product)


def test_memory_limit_counts_all_memories():
    device = others()["far"]
    device.happened.clear()
    x = on("far")
    product = x @ x
    needs = 2 * 256 + BYTES  # two places there, the result here
    for call in (xp.evaluate, xp.reserve):
        with xp.options(memory_limit=needs - 1), pytest.raises(MemoryError, match=f"{needs} bytes"):
            call(product)
    assert device.happened == {}
    with xp.options(memory_limit=needs):
        np.testing.assert_array_equal(np.asarray(product), VALUE @ VALUE)


def test_fallback_can_be_an_error():
    small = xp.ones((2, 3), device="blas")
    product, large = small @ small.T, xp.ones((64, 64), device="blas") @ xp.ones((64, 64))
    refused = r"blas does not take matmul of float64\(2, 3\) and float64\(3, 2\)"
    with xp.options(fallback="error"):
        xp.evaluate(large)
        for pending in (product, product + product):
            with pytest.raises(BackendError, match=refused) as caught:
                xp.evaluate(pending)
            assert caught.value.__notes__[0].startswith(f"recorded at {__file__}:")
        xp.evaluate(xp.ones((2, 2), device="cpu") @ xp.ones((2, 2), device="cpu"))
    np.testing.assert_array_equal(np.asarray(product), np.full((2, 2), 3.0))


def test_kept_results_have_memory_of_their_own(x):
    held = x @ x
    end = held @ x
    xp.evaluate(end)
    places = [address(np.asarray(each)) for each in (held, end)]
    assert abs(places[0] - places[1]) >= BYTES
    assert captured(held @ end).graph() != graph_of((x @ x) @ x)
