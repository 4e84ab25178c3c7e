"""When products run: not before their value is needed, once each, and not at all if dropped."""

import gc
import pickle

import numpy as np
import pytest
from scripts import run_script

import ggarray as xp
from ggarray._graph.node import pending
from ggarray.interface import Op, Status

A = np.arange(12.0).reshape(3, 4)
B = np.arange(20.0).reshape(4, 5) - 7


@pytest.fixture
def a():
    return xp.asarray(A, device="counting")


@pytest.fixture
def b():
    return xp.asarray(B, device="counting")


RECORDED = {
    "matmul": (lambda a, b: xp.matmul(a, b), A @ B),
    "@": (lambda a, b: a @ b, A @ B),
    "linalg.matmul": (lambda a, b: xp.linalg.matmul(a, b), A @ B),
    "tensordot": (lambda a, b: xp.tensordot(a, b, axes=1), A @ B),
    "vecdot": (lambda a, b: xp.vecdot(a, b[:, 0]), A @ B[:, 0]),
    "outer": (lambda a, b: xp.linalg.outer(a[0, :], b[0, :]), np.outer(A[0], B[0])),
    "transpose": (lambda a, b: (a @ b).T, (A @ B).T),
    "mT": (lambda a, b: (a @ b).mT, (A @ B).T),
    "matrix_transpose": (lambda a, b: xp.matrix_transpose(a @ b), (A @ B).T),
    "permute_dims": (lambda a, b: xp.permute_dims(a @ b, (1, 0)), (A @ B).T),
    "reshape": (lambda a, b: xp.reshape(a @ b, (5, -1)), (A @ B).reshape(5, 3)),
    "broadcast_to": (
        lambda a, b: xp.broadcast_to(a @ b, (2, 3, 5)),
        np.broadcast_to(A @ B, (2, 3, 5)),
    ),
    "expand_dims": (lambda a, b: xp.expand_dims(a @ b, axis=1), (A @ B)[:, None]),
    "squeeze": (lambda a, b: xp.squeeze((a @ b)[:1], axis=0), (A @ B)[0]),
    "slice": (lambda a, b: (a @ b)[1:, ::-2], (A @ B)[1:, ::-2]),
    "row": (lambda a, b: (a @ b)[-1], (A @ B)[-1]),
    "new axis": (lambda a, b: (a @ b)[..., None], (A @ B)[..., None]),
    "add": (lambda a, b: (a @ b) + (a @ b)[0], A @ B + (A @ B)[0]),
    "subtract": (lambda a, b: b[0] - a @ b, B[0] - A @ B),
    "scale": (lambda a, b: 2.5 * (a @ b), 2.5 * (A @ B)),
    "negative": (lambda a, b: -(a @ b), -(A @ B)),
    "astype": (lambda a, b: xp.astype(a @ b, xp.float32), (A @ B).astype(np.float32)),
    "chain": (lambda a, b: a @ b @ b.T @ a.T, A @ B @ B.T @ A.T),
}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded(name, a, b, counting):
    function, expected = RECORDED[name]
    result = function(a, b)
    assert xp.is_pending(result)
    assert counting.computed == []
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    xp.evaluate(result)
    assert not xp.is_pending(result)
    np.testing.assert_array_equal(np.asarray(result), expected)


READS = {
    "asarray": np.asarray,
    "from_dlpack": np.from_dlpack,
    "repr": repr,
    "bool": lambda x: bool(x[0, 0]),
    "int": lambda x: int(x[0, 0]),
    "float": lambda x: float(x[0, 0]),
    "complex": lambda x: complex(x[0, 0]),
    "pickle": pickle.dumps,
    "eager function": xp.exp,
    "comparison": lambda x: x == 1,
    "sum": xp.sum,
    "boolean index": lambda x: x[x > 0],
    "list": lambda x: [float(each) for row in x for each in row],
}


@pytest.mark.parametrize("name", READS)
def test_read_computes_once(name, a, b, counting):
    product = a @ b
    READS[name](product)
    assert counting.computed == [Op.MATMUL]
    READS[name](product)
    assert counting.computed == [Op.MATMUL]


def test_shared_product_is_computed_once(a, b, counting):
    product = a @ b
    left, right = product + 1.0 * product, product.T @ product
    xp.evaluate(left, right)
    assert counting.computed == [Op.MATMUL, Op.MATMUL]
    xp.evaluate(product)
    assert counting.computed == [Op.MATMUL, Op.MATMUL]


def test_equal_products_are_computed_once_and_are_two_arrays(a, b, counting):
    first, second = a @ b, a @ b
    xp.evaluate(first, second)
    assert counting.computed == [Op.MATMUL]
    first[0, 0] = 99
    np.testing.assert_array_equal(np.asarray(second), A @ B)
    with xp.options(fuse=False):
        first, second = a @ b, a @ b
        xp.evaluate(first, second)
    assert counting.computed == [Op.MATMUL] * 3


def test_unheld_product_is_kept_for_a_later_reader(a, b, counting):
    product = a @ b
    first, second = product @ b.T, product @ b.T
    del product
    xp.evaluate(first)
    xp.evaluate(second)
    assert len(counting.computed) == 3
    np.testing.assert_array_equal(np.asarray(second), A @ B @ B.T)


def test_dropped_product_is_never_computed(a, b, counting):
    dropped = a @ b
    del dropped
    gc.collect()
    np.asarray(a @ b)
    assert counting.computed == [Op.MATMUL]


def test_write_computes_readers_first(a, b, counting):
    product = a @ b
    a[0, :] = 0
    assert counting.computed == [Op.MATMUL]
    np.testing.assert_array_equal(np.asarray(product), A @ B)


def test_write_elsewhere_computes_nothing(a, b, counting):
    product = a @ b
    other = xp.zeros(3, device="counting")
    other[0] = 1
    assert xp.is_pending(product)
    assert counting.computed == []


def test_product_of_shared_memory_is_computed_at_the_call(a, b, counting):
    outside = np.asarray(a)
    product = a @ b
    assert counting.computed == [Op.MATMUL]
    outside[0, 0] = 99
    np.testing.assert_array_equal(np.asarray(product), A @ B)
    del outside
    later = a @ b
    assert xp.is_pending(later)


def test_copy_false_shares_and_so_computes_at_the_call(b, counting):
    outside = A.copy()
    shared = xp.asarray(outside, copy=False, device="counting")
    product = shared @ b
    assert counting.computed == [Op.MATMUL]
    outside[0, 0] = 99
    assert shared[0, 0] == 99
    np.testing.assert_array_equal(np.asarray(product), A @ B)


def test_in_place_update_is_recorded_and_seen_through_views(a, b, counting):
    total = xp.zeros((3, 5), device="counting")
    corner = total[1:, 1:]
    total += a @ b
    assert counting.computed == []
    assert xp.is_pending(total)
    assert xp.is_pending(corner)
    np.testing.assert_array_equal(np.asarray(corner), (A @ B)[1:, 1:])
    np.testing.assert_array_equal(np.asarray(total), A @ B)
    assert counting.computed == [Op.MATMUL]


def test_update_of_a_pending_array_leaves_its_old_readers(a, b, counting):
    product = a @ b
    before = product @ b.T
    product += a @ b
    after = product @ b.T
    assert counting.computed == []
    np.testing.assert_array_equal(np.asarray(before), A @ B @ B.T)
    np.testing.assert_array_equal(np.asarray(after), 2 * (A @ B @ B.T))


def test_update_of_dropped_memory_is_never_computed(a, b, counting):
    total = xp.zeros((3, 5), device="counting")
    total += a @ b
    del total
    np.asarray(a)
    assert counting.computed == []


def test_update_with_its_own_product(device):
    x = xp.asarray(np.eye(3) + 1, device=device)
    expected = np.asarray(x).copy()
    for _ in range(3):
        x += x @ x
        expected += expected @ expected
    np.testing.assert_allclose(np.asarray(x), expected)


def test_lazy_option(a, b, counting):
    with xp.options(lazy=False):
        product = a @ b
    assert not xp.is_pending(product)
    assert counting.computed == [Op.MATMUL]


def test_too_many_pending_nodes_are_computed(a, counting):
    others = len(pending)  # that other tests have left
    operands = [xp.asarray(B + at, device="counting") for at in range(11)]
    with xp.options(max_pending_nodes=others + 10):
        products = [a @ each for each in operands]
        assert len(counting.computed) >= 10
    np.testing.assert_array_equal(np.asarray(products[-1]), A @ (B + 10))


def test_failure_leaves_everything_pending(failing):
    a, b = xp.asarray(A, device="failing"), xp.asarray(B, device="failing")
    total = xp.zeros((3, 5), device="failing")
    product = a @ b
    square = product @ product.T
    total += product
    for outcome, error in [
        (Status.FAILED, xp.BackendError),
        (Status.ALLOC_FAILED, MemoryError),
        (Status.ABORTED, KeyboardInterrupt),
        (OSError("gone"), OSError),
    ]:
        failing.outcomes[:] = [Status.SUCCESS, outcome]
        with pytest.raises(error):
            xp.evaluate(square, total)
        assert all(xp.is_pending(x) for x in (product, square, total))
    failing.outcomes.clear()
    np.testing.assert_array_equal(np.asarray(square), A @ B @ (A @ B).T)
    np.testing.assert_array_equal(np.asarray(total), A @ B)


def test_error_names_backend_and_shapes(failing):
    failing.outcomes[:] = [Status.FAILED]
    product = xp.asarray(A, device="failing") @ xp.asarray(B, device="failing")
    with pytest.raises(xp.BackendError, match=r"failing: matmul of float64\(3, 4\).*\(4, 5\)"):
        xp.evaluate(product)


def test_loop_that_never_reads_is_bounded():
    peak = run_script(
        """
        import ggarray as xp
        from scripts import peak_mebibytes
        u, v = xp.ones(1024, dtype=xp.float32), xp.ones(1024, dtype=xp.float32)
        a = xp.zeros((1024, 1024), dtype=xp.float32)
        with xp.options(max_pending_nodes=100):
            for step in range(20):
                a = a + xp.linalg.outer(u, v)
            before = peak_mebibytes()
            for step in range(400):
                a = a + xp.linalg.outer(u, v)
            assert float(a[3, 4]) == 420
        print(peak_mebibytes() - before)
        """
    )
    assert int(peak) < 100  # MiB; 400 matrices are 1,600


def test_operands_that_nobody_holds_are_bounded():
    peak = run_script(
        """
        import ggarray as xp
        from scripts import peak_mebibytes
        products = []
        with xp.options(max_pending_bytes=64 << 20):
            for step in range(64):
                x = xp.ones((4, 1 << 20))  # 32 MiB that only the pending node keeps
                products.append(x @ xp.ones((1 << 20, 1)))
        assert all(float(p[0, 0]) == 1 << 20 for p in products)
        print(peak_mebibytes())
        """
    )
    assert int(peak) < 600  # MiB; all operands are 2,560


@pytest.mark.parametrize("read", [True, False])
def test_long_chain_neither_recurses_nor_leaks(read):
    out = run_script(
        f"""
        import gc, sys
        import ggarray as xp
        from ggarray._graph.node import pending
        xp.set_options(max_pending_nodes=1_000_000, max_pending_bytes=1 << 40)
        step = xp.asarray([[0., 1.], [1., 0.]])
        x = xp.asarray([[1., 2.]])
        for _ in range(100_000):
            x = x @ step
        assert xp.is_pending(x)
        if {read}:
            assert [float(each) for each in x[0]] == [1., 2.]
        del x
        gc.collect()
        print(len(pending))
        """
    )
    assert int(out) == 0


def test_large_memory_behind_small_views_is_bounded():
    peak = run_script(
        """
        import ggarray as xp
        from scripts import peak_mebibytes
        products = []
        with xp.options(max_pending_bytes=64 << 20):
            for step in range(64):
                x = xp.ones((1, 4 << 20))  # 32 MiB, of which the product reads two elements
                products.append(x[:, :2] @ xp.ones((2, 1)))
        assert all(float(p[0, 0]) == 2 for p in products)
        print(peak_mebibytes())
        """
    )
    assert int(peak) < 600  # MiB; all operands are 2,048
