"""Running plans on devices of all kinds: values, copies, errors, interruptions, what is left."""

import gc
import itertools
import threading
import weakref

import numpy as np
import pytest
from doubles import HELD, others
from recorded import constant, node_of, quantized
from values import numbers

import ggarray as xp
from ggarray import BackendError
from ggarray._graph import execute, memory, plan_cache, residence, run, schedule, split
from ggarray._graph.node import pending
from ggarray._runtime import plugins
from ggarray.interface import HOST, Op, Status

DEVICES = (*HELD, "planning", "choosy", "ordering")
FAR = ("far", "narrow", "late", "marked", "thread", "staged", "planning")
LATE = ("late", "marked", "thread", "staged", "late host", "late wrapping")

A, B = numbers((4, 6), float), numbers((6, 4), float)


@pytest.fixture(autouse=True)
def books():
    """Begin with nothing kept; end with no evaluation under way."""
    plan_cache.clear()
    memory.release()
    residence.trim(0)
    for device in others().values():
        device.happened.clear()
    yield
    for device in others().values():
        device.errors.clear()
        device.backend.before = None
        device.backend.outcomes.clear()
    assert run._active == []
    assert run._abandoned == []


@pytest.fixture(params=[1 << 16, 1], ids=["small values apart", "all placed"])
def placing(request, monkeypatch):
    """Whether small values lie in chunks."""
    for module in (schedule, split):
        monkeypatch.setattr(module, "WORTH_PLACING", request.param)


@pytest.fixture
def planned(monkeypatch):
    """No short path: every evaluation has a plan. A list of all that are used."""
    monkeypatch.setattr(execute, "_alone", lambda order: None)
    plans = []
    make = execute._planned
    monkeypatch.setattr(execute, "_planned", lambda *args: plans.append(make(*args)) or plans[-1])
    return plans


def on(device, *values):
    arrays = [xp.asarray(value, device=device) for value in values]
    return arrays if len(arrays) > 1 else arrays[0]


def close(array, expected):
    np.testing.assert_allclose(np.asarray(array), expected, rtol=1e-4, atol=1e-5)


# -- values -------------------------------------------------------------------------------------


def with_updates(m, a, b):
    total = 1.0 * b[:4]
    seen = total[1:]
    total += a @ b
    product = total @ total
    total -= product.T
    return product, total, seen


def with_host_operations(m, a, b):
    product = a @ b
    total = 2.0 * product - b[:4]
    again = total @ total + product
    return product, -again @ total, m.astype(again, m.float32)


PROGRAMS = {
    "lone": lambda m, a, b: (a @ b,),
    "chain": lambda m, a, b: (a @ b @ a @ b @ a,),
    "views": lambda m, a, b: (
        (a @ b)[::-1].T @ a,
        m.permute_dims(a @ b, (1, 0))[1:] @ m.reshape(b @ a, (4, 9)),
        m.broadcast_to((a @ b)[1], (3, 4)),
        (a @ b)[2, 1:],
    ),
    "views of operands": lambda m, a, b: (a[::2, ::-1] @ b[:, 1:], b.T @ a.T, a[1] @ b[:, 2]),
    "outputs in the middle": lambda m, a, b: (
        p := a @ b, q := p @ p, p.T, 2.0 * q, q[0] @ p, m.linalg.outer(p[0], q[0])
    ),
    "host operations": with_host_operations,
    "conversions": lambda m, a, b: (
        m.astype(a, m.float32) @ b,
        m.astype(a @ b, m.float32) @ m.astype(a, m.float32),
        m.astype(m.astype(a @ b, m.float32), m.float64) @ a,
    ),
    "epilogues": lambda m, a, b: (
        2.0 * (a @ b) + b[:4],
        a[0, :4] - a @ b,
        m.astype(-0.5 * (a @ b), m.float32),
        (a @ b + b[:4, 0]) @ a,
    ),
    "equal operations": lambda m, a, b: (a @ b, a @ b, (a @ b) @ a, (a @ b).T),
    "batches": lambda m, a, b: (
        m.broadcast_to(a, (3, 4, 6)) @ b,
        m.expand_dims(a, axis=0) @ m.broadcast_to(b, (2, 1, 6, 4)) + b[:4],
    ),
    "updates in place": with_updates,
    "nothing": lambda m, a, b: (a[:0] @ b, a[:, :0] @ b[:0] + b[:4], (a @ b[:, :0]).T @ a),
}  # fmt: skip


@pytest.mark.usefixtures("placing")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("device", DEVICES)
def test_every_device_gives_numpys_values(device, name):
    for at in range(3):  # a new plan, one that is kept, one of the stream's own
        a, b = (numbers(each.shape, float, seed=at + 5) for each in (A, B))
        expected = PROGRAMS[name](np, a, b)
        for fuse in (True, False):
            with xp.options(fuse=fuse):
                found = PROGRAMS[name](xp, *on(device, a, b))
                xp.evaluate(*found)
                for array, value in zip(found, expected, strict=True):
                    close(array, value)
                    assert array.dtype == value.dtype


@pytest.mark.parametrize("device", DEVICES)
def test_quantized_operands(device):
    weights, decoded = quantized(numbers((64, 64), float), device=device)
    other, others_values = quantized(numbers((64, 32), float, 1), xp.q4_0, device=device)
    rows = numbers((3, 64), np.float32)
    x = on(device, rows)
    for _ in range(3):
        products = (
            x @ weights.mT, x @ weights + x, (x @ weights) @ other, weights @ other,
            x @ weights[32:, :].mT, xp.linalg.outer(weights[0, :], x[0]),
        )  # fmt: skip
        wide = rows.astype(float)
        expected = (
            wide @ decoded.T, wide @ decoded + wide, wide @ decoded @ others_values,
            decoded @ others_values, wide @ decoded[32:].T, np.outer(decoded[0], wide[0]),
        )  # fmt: skip
        for product, value in zip(products, expected, strict=True):
            np.testing.assert_allclose(np.asarray(product), value, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_integers_and_complex_numbers(device):
    for dtype in (np.int64, np.uint8, np.complex128, np.complex64):
        a, b = numbers(A.shape, dtype), numbers(B.shape, dtype)
        x, y = on(device, a, b)
        with np.errstate(over="ignore"):
            close((x @ y) @ x + x, (a @ b) @ a + a)
            close(-(x @ y) * 3, -(a @ b) * 3)


@pytest.mark.parametrize("device", DEVICES)
def test_each_node_on_its_own_and_all_together(device):
    expected = with_host_operations(np, A, B)
    for order in itertools.permutations(range(3)):
        found = with_host_operations(xp, *on(device, A, B))
        for at in order:
            close(found[at], expected[at])


@pytest.mark.parametrize("device", DEVICES)
def test_profiles_of_every_device(device):
    x, y = on(device, A, B)
    end = (x @ y + y[:4]) @ x
    with xp.profile() as p:
        close(end, (A @ B + B[:4]) @ A)
    assert [event.op for event in p if event.backend == device].count(Op.MATMUL) == 2


def test_values_of_one_evaluation_on_several_devices():
    arrays, expected = [], []
    for at, device in enumerate((*DEVICES, "cpu", "blas", "counting")):
        a, b = numbers(A.shape, float, at), numbers(B.shape, float, at)
        x, y = on(device, a, b)
        arrays.append((x @ y + y[:4]) @ x)
        expected.append((a @ b + b[:4]) @ a)
    xp.evaluate(*arrays)
    for array, value in zip(arrays, expected, strict=True):
        close(array, value)


@pytest.mark.parametrize("device", LATE)
def test_memory_is_not_written_to_before_a_stream_has_copied_it(device, planned, monkeypatch):
    for module in (schedule, split):
        monkeypatch.setattr(module, "WORTH_PLACING", 1)
    x, y = on(device, A, B)
    c = 1.0 * y[:4]
    product = x @ y
    end, other = (product + c) @ c, xp.astype(xp.astype(2.0 * product, xp.float32), xp.float64)
    del product
    with xp.options(fuse=False):
        xp.evaluate(end, other)
    blocks = [planned[0].plan.blocks[planned[0].plan.steps[at].block] for at in (1, 4)]
    assert blocks[0].place == blocks[1].place  # the sum, and what is half as wide
    close(end, (A @ B + B[:4]) @ B[:4])
    close(other, 2 * A @ B)


# -- copies and memory --------------------------------------------------------------------------


def copied(plan, device):
    """Return the bytes that a plan copies to a device and back; those of constants apart."""
    sent = fetched = constants = 0
    for part in plan.splits:
        for copy in part.copies:
            size = plan.graph.tensor(copy.value).nbytes
            if copy.target is HOST:
                fetched += size
            elif copy.block is None:
                constants += size
            else:
                sent += size
    return sent, fetched, constants


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("device", FAR)
def test_what_is_copied_is_in_the_plan(device, name, planned):
    counted = others()[device].happened
    weights = constant(numbers((4, 4), float), device)
    for at in range(2):
        x, y = on(device, A, B)
        found = [*PROGRAMS[name](xp, x, y), (x @ y) @ weights]
        xp.evaluate(*[each for each in found if xp.is_pending(each)])
        for each in planned:
            sent, fetched, constants = copied(each.plan, device)
            counted["set_tensor"] -= sent + (0 if at else constants)
            counted["get_tensor"] -= fetched
        assert (counted["set_tensor"], counted["get_tensor"]) == (0, 0)
        planned.clear()


def test_operands_taken_in_place_are_not_copied():
    x, y = on("wrapping", A, B)
    close(x @ y @ x, A @ B @ A)
    happened = others()["wrapping"].happened
    assert happened["wrap"] == 6  # operands and results of two products
    assert set(happened) == {"wrap", "let go"}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("device", ["counted", "far", "narrow", "late"])
def test_a_device_gets_exactly_the_memory_of_the_plan(device, name, planned, monkeypatch):
    for module in (schedule, split):
        monkeypatch.setattr(module, "WORTH_PLACING", 1)
    found = others()[device]
    for _ in range(2):
        for array in PROGRAMS[name](xp, *on(device, A, B)):
            memory.release()
            planned.clear()
            found.happened.clear()
            if xp.is_pending(array):
                xp.evaluate(array)
            sizes = [sum(each.plan.chunks.get(found.buffer_type, ())) for each in planned]
            assert found.happened["alloc"] == sum(sizes)


def test_memory_is_asked_for_once(planned):
    device = others()["counted"]
    values = np.ones((128, 128)) / 128
    for at in range(4):
        x = on("counted", values + at / 2**10)
        end = x @ x @ x @ x @ x + x
        xp.evaluate(end)
        (kept,) = planned
        (size,) = kept.plan.chunks[device.buffer_type]
        assert device.happened["alloc"] == size == 2 * 128 * 128 * 8
        assert device.happened["free"] == 0
        planned.clear()


def test_each_split_of_a_late_stream_is_waited_for_once():
    device = others()["late"]
    x, y = on("late", A, B)
    end = x @ y @ x @ y
    xp.evaluate(end)
    assert device.happened["synchronize"] <= 2  # before the result is read, and at the end
    close(end, A @ B @ A @ B)


def test_results_of_a_marked_stream_are_waited_for_by_a_mark():
    device = others()["marked"]
    x, y = on("marked", A, B)
    with xp.options(fuse=False):
        close((x @ y + y[:4]) @ x, (A @ B + B[:4]) @ A)
    assert device.happened["event"] == 2


def test_staging_memory_is_given_back(monkeypatch):
    freed = []
    buffer_type = others()["staged"].host_buffer_type
    alloc = buffer_type.alloc

    def counted(size):
        buffer = alloc(size)
        freed.append(None)
        buffer.free = freed.pop
        return buffer

    monkeypatch.setattr(buffer_type, "alloc", counted)
    x, y = on("staged", A, B)
    close(x @ y @ constant(A, "staged"), A @ B @ A)
    assert freed == []
    others()["staged"].errors["get_tensor"] = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        xp.evaluate(x @ y)
    assert freed == []


# -- errors -------------------------------------------------------------------------------------


def program(device):
    """Return what is computed, the arrays that wait, and their values."""
    x, y = on(device, A, B)
    weights = constant(numbers((6, 6), float), device)
    total = 1.0 * y[:4]
    product = x @ y
    total += product
    end = (total @ x) @ weights
    t = B[:4] + A @ B
    return (end, total), (product, total, end), (A @ B, t, t @ A @ numbers((6, 6), float))


PLACES = {
    "alloc": FAR,
    "init_tensor": (*FAR, "counted"),
    "set_tensor": FAR,
    "get_tensor": FAR,
    "synchronize": LATE,
    "event": ("marked", "thread", "staged"),
    "wrap": ("wrapping", "late wrapping"),
}


ERRORS = (OSError("gone"), MemoryError("full"), KeyboardInterrupt("stop"))


@pytest.mark.usefixtures("placing")
@pytest.mark.parametrize(
    ("what", "device"), [(what, each) for what, names in PLACES.items() for each in names]
)
def test_an_error_anywhere_leaves_everything_pending(what, device):
    raised = []
    for after, error in itertools.product(range(4), ERRORS):
        memory.release()
        residence.trim(0)
        targets, arrays, expected = program(device)
        error = type(error)(*error.args)
        others()[device].errors[what] = [*[None] * after, error]
        try:
            xp.evaluate(*targets)
        except type(error) as caught:
            raised.append(after)
            check_raised(caught, error)
            assert all(map(xp.is_pending, arrays))
            assert residence.resident_bytes() == 0
        others()[device].errors.clear()
        for array, value in zip(arrays, expected, strict=True):
            close(array, value)
    happens = device != "counted" or schedule.WORTH_PLACING == 1  # else it gives no memory
    assert raised[:3] == [0, 0, 0][: 3 * happens]


def check_raised(caught, error):
    assert caught is error
    notes = getattr(error, "__notes__", [])
    if isinstance(error, KeyboardInterrupt):
        assert notes == []
    else:
        assert [f"recorded at {__file__}:" in note for note in notes] == [True]


OUTCOMES = {
    Status.FAILED: BackendError,
    Status.ALLOC_FAILED: MemoryError,
    Status.ABORTED: KeyboardInterrupt,
    OSError("gone"): OSError,
}


@pytest.mark.usefixtures("placing")
@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
@pytest.mark.parametrize("device", [*HELD, "planning", "ordering", "failing"])
def test_a_product_that_fails(device, outcome):
    """Of a stream that is waited for later, too."""
    backend = plugins.stream(plugins.backend_devices()[device])
    for after in range(3):
        targets, arrays, expected = program(device)
        backend.outcomes[:] = [*[Status.SUCCESS] * after, outcome]
        if isinstance(outcome, OSError):
            outcome.__notes__ = []
        with pytest.raises(OUTCOMES[outcome]) as caught:
            xp.evaluate(*targets)
        if OUTCOMES[outcome] is not KeyboardInterrupt:
            (note,) = caught.value.__notes__
            assert f"recorded at {__file__}:" in note
        assert backend.outcomes == []
        assert all(map(xp.is_pending, arrays))
        for array, value in zip(arrays, expected, strict=True):
            close(array, value)


@pytest.mark.parametrize("device", ["late", "thread", "late host"])
def test_the_first_failure_of_a_stream_is_told(device):
    x, y = on(device, A, B)
    end = x @ y @ x
    others()[device].backend.outcomes[:] = [Status.ALLOC_FAILED, Status.FAILED]
    with pytest.raises(MemoryError, match=f"{device}: .*one of 2 nodes, of which the first is mat"):
        xp.evaluate(end)
    others()[device].backend.outcomes.clear()
    close(end, A @ B @ A)


def test_a_lone_product_that_fails_names_itself():
    x, y = on("late", A, B)
    product = x @ y
    others()["late"].backend.outcomes[:] = [Status.FAILED]
    with pytest.raises(BackendError, match=r"late: matmul of float64\(4, 6\) and float64\(6, 4\)"):
        xp.evaluate(product)


def test_a_note_names_the_lines_of_a_split():
    x, y = on("far", A, B)
    end = x @ y
    for _ in range(2):
        end = end @ x @ y
    others()["far"].errors["init_tensor"] = OSError("gone")
    with pytest.raises(OSError, match="gone") as caught:
        xp.evaluate(end)
    (note,) = caught.value.__notes__
    lines = [int(each.rpartition(":")[2]) for each in note.split(", ")]
    assert lines == [lines[0], lines[0] + 2]
    with xp.options(source_lines=False):
        product = x @ y
    others()["far"].errors["init_tensor"] = OSError("gone")
    with pytest.raises(OSError, match="gone") as caught:
        xp.evaluate(product)
    assert not hasattr(caught.value, "__notes__")


def test_weights_that_did_not_arrive_are_not_kept():
    device = others()["late"]
    weights = constant(numbers((6, 6), float), "late")
    x = on("late", A)
    product = x @ weights
    device.errors["set_tensor"] = [None, OSError("gone")]  # when the stream gets to it
    with pytest.raises(OSError, match="gone"):
        xp.evaluate(product)
    assert residence.resident_bytes() == 0
    close(product, A @ numbers((6, 6), float))


@pytest.mark.parametrize("device", ["late", "late host", "late wrapping", "thread"])
def test_control_c_twice_leaves_memory_alone_that_a_stream_may_write_to(device, monkeypatch):
    abandoned = []
    monkeypatch.setattr(run, "_abandoned", abandoned)
    found = others()[device]
    x, y = on(device, A, B)
    end = x @ y @ x
    found.errors["synchronize"] = [KeyboardInterrupt(), KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        xp.evaluate(end)
    assert xp.is_pending(end)
    (evaluation,) = abandoned
    assert not {id(each) for buffers in memory._kept.values() for each in buffers} & {
        id(each) for buffers in evaluation.chunks.values() for each in buffers
    }
    close(end, A @ B @ A)  # what was asked for before is done first
    close(2.0 * (x @ y), 2 * A @ B)


# -- signal handlers ----------------------------------------------------------------------------


class Handler:
    """What a signal handler may do, called where a test wants it to be."""

    def __init__(self, device, function, times=1):
        self.function = function
        self.times = times
        self.calls = 0
        self.active = False
        plugins.stream(plugins.backend_devices()[device]).before = self

    def __call__(self):
        if self.calls < self.times and not self.active:
            self.calls += 1
            self.active = True
            try:
                self.function()
            finally:
                self.active = False


HANDLED = [*DEVICES, "counting"]


@pytest.fixture(autouse=True)
def no_handler():
    yield
    plugins.stream(plugins.backend_devices()["counting"]).before = None


@pytest.mark.usefixtures("placing")
@pytest.mark.parametrize("device", HANDLED)
def test_a_handler_that_computes_something_else(device):
    x, y = on(device, A, B)
    handler = Handler(device, lambda: close(x @ y + 0.5 * (x @ y), 1.5 * A @ B), times=3)
    with_host = with_host_operations(xp, x, y)
    for array, value in zip(with_host, with_host_operations(np, A, B), strict=True):
        close(array, value)
    assert handler.calls == 3


@pytest.mark.usefixtures("placing")
@pytest.mark.parametrize("device", HANDLED)
def test_a_handler_that_reads_what_is_being_computed(device):
    for at in range(3):
        (p, q, r), values = (with_host_operations(m, *on_) for m, on_ in
                             ((xp, on(device, A, B)), (np, (A, B))))  # fmt: skip
        arrays = (p, q, r)
        handler = Handler(device, lambda at=at, a=arrays, v=values: close(a[at], v[at]))
        xp.evaluate(q, r)
        assert handler.calls == 1
        for array, value in zip(arrays, values, strict=True):
            close(array, value)


@pytest.mark.parametrize("device", HANDLED)
def test_a_handler_that_reads_the_end_of_a_chain(device):
    x, y = on(device, A, B)
    end = 2.0 * (x @ y + y[:4])
    expected = 2 * (A @ B + B[:4])
    handler = Handler(device, lambda: close(end, expected))
    close(end, expected)
    assert handler.calls == 1


@pytest.mark.usefixtures("placing")
@pytest.mark.parametrize("device", HANDLED)
def test_a_handler_that_writes_to_an_operand(device):
    x, y = on(device, A, B)
    products = with_host_operations(xp, x, y)

    def write():
        x[0, 0] = 99.0
        y[...] = 0.0

    handler = Handler(device, write)
    xp.evaluate(*products[1:])
    assert handler.calls == 1
    for array, value in zip(products, with_host_operations(np, A, B), strict=True):
        close(array, value)
    assert float(x[0, 0]) == 99.0
    close(x @ y, np.zeros((4, 4)))


@pytest.mark.parametrize("device", HANDLED)
def test_a_handler_that_updates_what_is_being_computed(device):
    x, y = on(device, A, B)
    total = 1.0 * y[:4]
    total += x @ y
    end = total @ x

    def update():
        nonlocal total
        total += y[:4]

    Handler(device, update)
    xp.evaluate(end)
    t = B[:4] + A @ B
    close(end, t @ A)
    close(total, t + B[:4])


@pytest.mark.parametrize("device", HANDLED)
def test_a_handler_that_always_computes_something_does_not_begin_again(device):
    x, y = on(device, A, B)
    end = x @ y @ x @ y @ x
    handler = Handler(device, lambda: close(x @ y, A @ B), times=1000)
    xp.evaluate(end)
    assert 0 < handler.calls < 30
    close(end, A @ B @ A @ B @ A)


@pytest.mark.parametrize("device", HANDLED)
@pytest.mark.parametrize("outcome", [Status.FAILED, Status.ALLOC_FAILED])
def test_a_failure_within_a_handler_is_the_handlers(device, outcome):
    x, y = on(device, A, B)
    end = x @ y @ x
    backend = plugins.stream(plugins.backend_devices()[device])
    seen = []

    def fail():
        inner = x @ y
        backend.before = None
        backend.outcomes[:] = [outcome]
        with pytest.raises(OUTCOMES[outcome]):
            xp.evaluate(inner)
        close(inner, A @ B)
        seen.append(len(backend.outcomes))

    Handler(device, fail)
    close(end, A @ B @ A)
    assert seen == [0]


@pytest.mark.parametrize("device", ["late", "marked", "thread", "staged"])
def test_a_failure_is_not_told_to_a_handler(device):
    """Its own evaluation waits for what the stream has done by then."""
    x, y = on(device, A, B)
    end = x @ y @ x
    backend = others()[device].backend
    called = []

    def compute():
        if backend.status == Status.FAILED:
            close(y @ x, B @ A)
            called.append(None)

    Handler(device, compute, times=1000)
    backend.outcomes[:] = [Status.FAILED]
    with pytest.raises(BackendError):
        xp.evaluate(end)
    assert called
    assert xp.is_pending(end)
    close(end, A @ B @ A)


@pytest.mark.parametrize("device", HANDLED)
def test_an_error_of_a_handler(device):
    x, y = on(device, A, B)
    products = with_host_operations(xp, x, y)

    def fail():
        raise ZeroDivisionError

    Handler(device, fail)
    with pytest.raises(ZeroDivisionError):
        xp.evaluate(*products)
    assert all(map(xp.is_pending, products))
    for array, value in zip(products, with_host_operations(np, A, B), strict=True):
        close(array, value)


# -- what is left -------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("device", [*DEVICES, "counting"])
def test_nothing_is_kept_alive(device, fails):
    backend = plugins.stream(plugins.backend_devices()[device])
    gc.collect()
    before = {ref for ref in pending if ref() is not None}
    for _ in range(3):
        x, y = on(device, A, B)
        found = with_host_operations(xp, x, y)
        nodes = [weakref.ref(node_of(array)) for array in found]
        values = [weakref.ref(each._read()) for each in (x, y)]
        if fails:
            backend.outcomes[:] = [Status.SUCCESS, Status.FAILED]
            with pytest.raises(BackendError):
                xp.evaluate(*found)
        else:
            xp.evaluate(*found)
            values += [weakref.ref(each._read()) for each in found]
        del x, y, found
        gc.collect()
        assert [ref() for ref in (*nodes, *values)] == [None] * len((*nodes, *values))
    assert {ref for ref in pending if ref() is not None} == before


def test_results_do_not_lie_in_memory_that_is_used_again():
    for device in DEVICES:
        x, y = on(device, A, B)
        first = with_host_operations(xp, x, y)
        xp.evaluate(*first)
        second = with_host_operations(xp, *on(device, A + 1, B - 1))
        xp.evaluate(*second)
        for array, value in zip(first, with_host_operations(np, A, B), strict=True):
            close(array, value)


# -- threads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["far", "late", "thread", "staged", "planning", "wrapping"])
def test_threads_that_use_one_device(device):
    failures = []

    def work(seed):
        try:
            for at in range(10):
                a, b = numbers(A.shape, float, seed + at), numbers(B.shape, float, seed + at)
                found = with_host_operations(xp, *on(device, a, b))
                for array, value in zip(found, with_host_operations(np, a, b), strict=True):
                    close(array, value)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(100 * at,)) for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
