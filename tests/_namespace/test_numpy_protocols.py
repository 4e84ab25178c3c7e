"""NumPy's ufuncs and functions with Arrays among their arguments, against NumPy with its own."""

import collections

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, on_cpu, pending, zeros_q8_0

import ggarray as xp
from ggarray._storage import root_of, storage_of

VALUE = numbers((3, 4), np.float64)
SQUARE = np.array([[4.0, 1.0, 2.0], [1.0, 5.0, 3.0], [2.0, 3.0, 6.0]])
WHOLE = np.array([[1, 2, 0], [0, 1, 1], [2, 0, 1]])
MAKERS = pytest.mark.parametrize("make", [on_cpu, pending], ids=["plain", "pending"])


def as_arrays(x):
    """Arguments with Arrays in place of NumPy's arrays."""
    if isinstance(x, np.ndarray):
        return on_cpu(x)
    return type(x)(as_arrays(each) for each in x) if isinstance(x, (tuple, list)) else x


def fresh(x):
    """Arguments with copies of NumPy's arrays."""
    if isinstance(x, np.ndarray):
        return x.copy()
    return type(x)(fresh(each) for each in x) if isinstance(x, (tuple, list)) else x


def arrays_in(x):
    if isinstance(x, xp.Array):
        return [x]
    return [each for item in x for each in arrays_in(item)] if isinstance(x, (tuple, list)) else []


def assert_alike(result, expected):
    """Compare results: Arrays on the cpu where NumPy has its own, and everything else as it is."""
    if isinstance(expected, (np.ndarray, np.generic)):
        assert type(result) is xp.Array
        assert (result.device, result.shape, result.dtype) == (
            "cpu",
            expected.shape,
            expected.dtype,
        )
        np.testing.assert_allclose(np.asarray(result), expected, 1e-13, 1e-13)
    elif isinstance(expected, (tuple, list)):
        assert type(result) is type(expected)
        assert len(result) == len(expected)
        for each, wanted in zip(result, expected, strict=True):
            assert_alike(each, wanted)
    else:
        assert type(result) is type(expected)
        assert result == expected or isinstance(expected, str)


# -- every function -----------------------------------------------------------------------------

FUNCTIONS = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (np, np.linalg, np.fft, np.lib.stride_tricks, np.lib.scimath)
    for name in dir(module)
    if hasattr(getattr(module, name), "_implementation") and not name.startswith(("save", "empty"))
}
ARGUMENTS = [
    *[(SQUARE,), (SQUARE[0],), (WHOLE,), (WHOLE[0],), (SQUARE > 2,), ((SQUARE, SQUARE),)],
    *[
        (SQUARE, SQUARE),
        (SQUARE[0], SQUARE[0]),
        (WHOLE, WHOLE),
        (SQUARE, WHOLE),
        (SQUARE, SQUARE[0]),
    ],
    *[
        (SQUARE, 1),
        (SQUARE[0], 2),
        (SQUARE, 0, 0),
        (SQUARE, (0, 1)),
        (SQUARE, 2, (0,)),
        (SQUARE, 3, 1),
    ],
    *[(SQUARE > 2, SQUARE), (SQUARE > 2, SQUARE, SQUARE), (SQUARE, SQUARE > 2, SQUARE)],
    *[(WHOLE[0], [SQUARE, SQUARE, SQUARE]), (SQUARE[0], WHOLE[0], SQUARE[0]), (SQUARE, WHOLE, 1)],
    *[
        (SQUARE, [SQUARE > 2], [1.0, 2.0]),
        (SQUARE, (3, 3, 3)),
        (SQUARE, (9,)),
    ],
    *[("ii->i", SQUARE), ("ij,jk", SQUARE, SQUARE), ("ij,jk,kl", WHOLE, SQUARE, SQUARE)],
]


def has_our_dtypes(x):
    if isinstance(x, (tuple, list)):
        return all(map(has_our_dtypes, x))
    return not isinstance(x, np.ndarray) or x.dtype.kind in "biufc"


def attempts(function):
    """Arguments that a function takes, and what it gives of them, where ours can have its dtype."""
    for arguments in ARGUMENTS:
        plain = fresh(arguments)
        try:
            expected = function(*plain)
        except Exception:  # not for these arguments
            continue
        if has_our_dtypes(expected):
            yield arguments, plain, expected


@pytest.mark.filterwarnings("ignore")  # NumPy warns of some arguments, whosever arrays they are
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_gives_what_it_gives_of_numpys_arrays(name):
    """Also leaves its arguments as NumPy's does, and gives no memory away unnoticed."""
    for arguments, plain, expected in attempts(FUNCTIONS[name]):
        ours = as_arrays(arguments)
        result = FUNCTIONS[name](*ours)
        if type(arguments[0]) is tuple and not arrays_in(result):
            continue  # such a function does not look into tuples for arrays that are not NumPy's
        assert_alike(result, expected)
        assert_alike(ours, plain)
        for given in arrays_in(result):
            for argument in arrays_in(ours):
                root, known = root_of(given._read()), root_of(argument._read())
                if np.shares_memory(root, known):
                    assert root is known or storage_of(known).shared


@pytest.mark.filterwarnings("ignore")
def test_nearly_every_function_is_tried():
    untried = [name for name in FUNCTIONS if not any(attempts(FUNCTIONS[name]))]
    assert len(untried) < 0.1 * len(FUNCTIONS), untried


# -- ufuncs -------------------------------------------------------------------------------------


@MAKERS
@pytest.mark.parametrize(
    ("ufunc", "count"),
    [(np.add, 2), (np.negative, 1), (np.divmod, 2), (np.modf, 1), (np.isnan, 1), (np.ldexp, 2)],
)
def test_ufuncs_write_into_arrays(make, ufunc, count):
    value = np.abs(VALUE) + 1
    operands = [value, np.full((3, 4), 2)][:count] if ufunc is np.ldexp else [value] * count
    expected = ufunc(*operands)
    expected = expected if isinstance(expected, tuple) else (expected,)
    outs = tuple(on_cpu(np.empty_like(each)) for each in expected)
    result = ufunc(
        *[make(each) if each.dtype == float else on_cpu(each) for each in operands], out=outs
    )
    for out, given, wanted in zip(
        outs, result if isinstance(result, tuple) else (result,), expected, strict=True
    ):
        assert given is out
        check(out, wanted)


def test_an_output_that_is_not_given_is_made():
    out = xp.zeros((3, 4), device="cpu")
    quotient, remainder = np.divmod(on_cpu(VALUE), 2.0, out=(out, None))
    assert quotient is out
    check(out, VALUE // 2.0)
    check(remainder, VALUE % 2.0)


def test_an_output_may_be_pending_or_an_operand_or_come_without_its_name():
    out = pending(VALUE)
    assert np.multiply(on_cpu(VALUE), 2, out) is out
    check(out, 2 * VALUE)
    assert np.add(out, out, out=out) is out
    check(out, 4 * VALUE)
    row = out[0]
    assert np.add.reduce(out, 0, None, row) is row
    check(row, (4 * VALUE).sum(axis=0), rtol=1e-15)


def test_an_output_of_numpy_is_given_back():
    out = np.empty_like(VALUE)
    assert np.add(on_cpu(VALUE), 1, out=out) is out
    np.testing.assert_array_equal(out, VALUE + 1)
    out += on_cpu(VALUE)
    np.testing.assert_array_equal(out, VALUE + 1 + VALUE)
    product = np.empty((3, 3))
    assert np.dot(on_cpu(VALUE), VALUE.T, product) is product
    np.testing.assert_allclose(product, VALUE @ VALUE.T, 1e-14)


def test_an_output_with_where_keeps_the_rest():
    out = on_cpu(np.full((3, 4), 7.0))
    np.negative(on_cpu(VALUE), out=out, where=on_cpu(VALUE > 0))
    check(out, np.where(VALUE > 0, -VALUE, 7.0))


def test_outputs_are_cast_as_numpy_does():
    out = xp.zeros((3, 4), dtype=xp.float32, device="cpu")
    check(np.add(on_cpu(VALUE), 1, out=out), (VALUE + 1).astype(np.float32))
    with pytest.raises(TypeError, match="same_kind"):
        np.add(on_cpu(VALUE), 1, out=xp.zeros((3, 4), dtype=xp.int64, device="cpu"))


WRITES = {
    "out": lambda x: np.multiply(x, 3.0, out=x),
    "out of others": lambda x: np.add(1.0, 1.0, out=x),
    "out of a function": lambda x: np.cumsum(x.copy(), axis=0, out=x),
    "out by its place": lambda x: np.take(x.copy(), [2, 1, 0], 0, x),
    "out of a reduction": lambda x: np.add.reduce(np.ones((2, 3, 3)), axis=0, out=x),
    "out of accumulate": lambda x: np.add.accumulate(x, axis=1, out=x),
    "out of clip": lambda x: np.clip(x, 0.2, 0.4, out=x),
    "out of matmul": lambda x: np.matmul(x.copy(), x.copy(), out=x),
    "out of einsum": lambda x: np.einsum("ij,jk", x.copy(), x.copy(), out=x),
    "out of concatenate": lambda x: np.concatenate([x[:1].copy(), x[1:].copy()], out=x),
    "at": lambda x: np.add.at(x, ([0, 0], [1, 1]), 5.0),
    "copyto": lambda x: np.copyto(x, 9.0),
    "copyto by name": lambda x: np.copyto(dst=x, src=x * 2, where=np.eye(3) > 0),
    "put": lambda x: np.put(x, [0, 4], [1.0, 2.0]),
    "place": lambda x: np.place(x, np.eye(3) > 0, [7.0]),
    "putmask": lambda x: np.putmask(x, np.eye(3) > 0, 7.0),
    "fill_diagonal": lambda x: np.fill_diagonal(x, 8.0),
    "put_along_axis": lambda x: np.put_along_axis(x, np.array([[0], [1], [2]]), 4.0, 1),
    "nan_to_num": lambda x: np.nan_to_num(x, copy=False, nan=6.0),
    "median": lambda x: np.median(x, 1, None, True),
    "quantile": lambda x: np.quantile(x, 0.3, overwrite_input=True),
    "imatmul of a view": lambda x: np.add(x.T, x, out=x.T),
    "a view that einsum gives": lambda x: np.einsum("ii->i", x).__setitem__(0, 5.0),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(
        x, 2, axis=1, writeable=True
    ).__setitem__(0, 5.0),
    "a callback": lambda x: np.apply_along_axis(lambda row: row.__setitem__(0, 5.0) or 0, 1, x),
    "an export": lambda x: np.asarray(x).sort(),
    "nditer": lambda x: [e.__setitem__(..., 2.0) for e in np.nditer(x, op_flags=["readwrite"])],
}


@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x.T, lambda x: x[::-1]], ids=["", "T", "-"]
)
@pytest.mark.parametrize("name", WRITES)
def test_writing_changes_the_array_and_no_product_recorded_before(name, view):
    value = np.array([[0.5, 0.1, 0.3], [0.9, np.nan, 0.2], [0.7, 0.8, 0.6]])
    changed = value.copy()
    WRITES[name](view(changed))
    x = on_cpu(value)
    product = view(x) @ on_cpu(SQUARE)
    WRITES[name](view(x))
    np.testing.assert_allclose(np.asarray(product), view(value) @ SQUARE, 1e-14)
    np.testing.assert_allclose(np.asarray(x), changed, 1e-15)
    assert not np.array_equal(value, changed)


@pytest.mark.parametrize("name", ["out", "copyto", "windows", "put", "at", "an export"])
def test_writing_comes_after_an_update_recorded_before(name):
    value = SQUARE.copy()
    x = on_cpu(value)
    x += pending(SQUARE)
    value += SQUARE
    WRITES[name](x)
    WRITES[name](value)
    check(x, value)


def test_windows_see_what_is_written_later():
    x = on_cpu(np.arange(5.0))
    windows = np.lib.stride_tricks.sliding_window_view(x, 3)
    x += pending(np.ones(5))
    np.testing.assert_array_equal(np.asarray(windows)[0], [1.0, 2.0, 3.0])
    product = windows @ on_cpu(np.ones(3))
    x[0] = 10.0
    np.testing.assert_array_equal(np.asarray(product), [6.0, 9.0, 12.0])


def test_results_in_the_memory_of_others_are_known_to_be_shared():
    mine = SQUARE.copy()

    class Holder:
        def __array__(self, dtype=None, copy=None):
            return mine

    for other in (mine, Holder(), memoryview(mine)):
        _, given = np.broadcast_arrays(on_cpu(SQUARE), other)
        product = given @ on_cpu(np.eye(3))
        before = mine.copy()
        mine[0] += 1.0
        np.testing.assert_array_equal(np.asarray(product), before)


def test_operands_of_products_may_be_written_later():
    mine = SQUARE.copy()
    x = on_cpu(SQUARE)
    products = [np.dot(x, mine), np.tensordot(x, mine, 1), np.einsum("ij,jk->ik", x, mine)]
    mine[...] = 0.0
    for product in products:
        check(product, SQUARE @ SQUARE)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: np.add.reduce(x, axis=1), VALUE.sum(axis=1)),
        (lambda x: np.maximum.accumulate(x, axis=0), np.maximum.accumulate(VALUE)),
        (lambda x: np.add.reduceat(x, on_cpu([0, 2]), axis=1), np.add.reduceat(VALUE, [0, 2], 1)),
        (lambda x: np.subtract.outer(x, x[0]), np.subtract.outer(VALUE, VALUE[0])),
        (lambda x: np.add(x, 1, dtype=np.float32), np.add(VALUE, 1, dtype=np.float32)),
        (
            lambda x: np.sum(x, where=on_cpu(VALUE > 0), initial=on_cpu(2.0)),
            VALUE[VALUE > 0].sum() + 2,
        ),
    ],
    ids=["reduce", "accumulate", "reduceat", "outer", "dtype", "where"],
)
@MAKERS
def test_methods_and_keywords_of_ufuncs(make, call, expected):
    check(call(make(VALUE)), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("ufunc", "operands", "wanted"),
    [
        (np.floor_divide, ([np.inf, 1.0], [3.0, -np.inf]), [np.inf, -0.0]),
        (np.expm1, ([complex(np.inf, 0.0)],), [complex(np.inf, 0.0)]),
        (np.tanh, ([complex(np.inf, 2.0)],), [complex(1.0, 0.0)]),
        (np.sign, ([complex(-0.0, -0.0)],), [0j]),
    ],
)
def test_special_cases_of_the_standard_hold_in_ufuncs(ufunc, operands, wanted):
    check(ufunc(*map(on_cpu, operands)), wanted)


def test_sums_by_ufuncs_are_recorded_as_those_by_operators_are():
    total = np.add(pending(VALUE), pending(VALUE))
    assert xp.is_pending(total)
    check(total, VALUE + VALUE)


# -- products -----------------------------------------------------------------------------------

FIRST, SECOND = numbers((2, 3, 4), np.float64, 1), numbers((2, 4, 3), np.float64, 2)
VECTOR = numbers(4, np.complex128, 3)
PRODUCTS = {
    "matmul": lambda a, b, v: np.matmul(a, b),
    "linalg.matmul": lambda a, b, v: np.linalg.matmul(a, b),
    "dot": lambda a, b, v: np.dot(a, b),
    "dot of matrices": lambda a, b, v: np.dot(a[0], b[0], out=None),
    "dot with a vector": lambda a, b, v: np.dot(a, v),
    "inner": lambda a, b, v: np.inner(a, a[1]),
    "outer": lambda a, b, v: np.outer(a, v, None),
    "linalg.outer": lambda a, b, v: np.linalg.outer(v, v),
    "tensordot": lambda a, b, v: np.tensordot(a, b, ((0, 2), (0, 1))),
    "tensordot over one axis": lambda a, b, v: np.tensordot(a, b, axes=(2, np.int64(1))),
    "tensordot over a number of axes": lambda a, b, v: np.tensordot(a, v, np.int64(1)),
    "tensordot over named axes": lambda a, b, v: np.tensordot(a, b, axes=[[0, 2], [0, 1]]),
    "linalg.tensordot": lambda a, b, v: np.linalg.tensordot(b, a, axes=((1,), (2,))),
    "vdot": lambda a, b, v: np.vdot(v, v * 2),
    "vecdot": lambda a, b, v: np.vecdot(v, a),
    "linalg.vecdot": lambda a, b, v: np.linalg.vecdot(v, a),
    "einsum of matrices": lambda a, b, v: np.einsum("ij,jk", a[0], b[0]),
    "einsum of batches": lambda a, b, v: np.einsum("bij, bjk -> kbi", a, b, optimize=True),
    "einsum over two axes": lambda a, b, v: np.einsum("bij,bji->", a, b),
    "einsum to an outer product": lambda a, b, v: np.einsum("ij,k->kji", a[0], v),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("where", ["cpu", "blas", "counting"])
def test_products_are_recorded_and_computed_by_the_device(name, where, counting):
    arrays = [xp.asarray(each, device=where) for each in (FIRST, SECOND, VECTOR)]
    product = PRODUCTS[name](*arrays)
    assert xp.is_pending(product)
    check(product, PRODUCTS[name](FIRST, SECOND, VECTOR), rtol=1e-12, atol=1e-12, device=where)
    assert len(counting.computed) == (where == "counting")


@pytest.mark.parametrize("operand", [3, 2.5, on_cpu(2.0), np.float32(2.0), [1.0, 2.0, 3.0, 4.0]])
def test_products_with_scalars_and_lists(operand):
    plain = np.asarray(operand)
    check(np.dot(on_cpu(VALUE), operand), np.dot(VALUE, plain), rtol=1e-14)
    if not plain.ndim:
        check(np.inner(operand, on_cpu(VALUE)), np.inner(plain, VALUE))


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.bool_, np.float32, np.complex64])
@pytest.mark.parametrize(
    "subscripts",
    [
        *["ab,bc->ac", "ab,bc->ca", "ab,bc", "ba,bc->ca", "abd,bcd->acd", "ab,cb->", "ab,ab->ab"],
        *["ab,c->cab", "ab,ab->a", "a,a", ",ab->ba", "ab,b->", "ab->ba", "aa,ab->b", "ab,bc->b"],
        *["...a,a->...", "ab,bc,cd->ad", "ab,cd->abcd", "ad,bd->dab"],
    ],
)
def test_einsum(subscripts, dtype):
    lengths = {"a": 3, "b": 3, "c": 2, "d": 4}
    labels = subscripts.replace("...", "d").partition("->")[0].split(",")
    operands = [
        numbers([lengths[label] for label in each], dtype, seed) for seed, each in enumerate(labels)
    ]
    for einsum in (np.einsum, xp.einsum):
        result = einsum(subscripts, *map(on_cpu, operands))
        check(result, np.einsum(subscripts, *operands), rtol=1e-5, atol=1e-5)


def test_einsum_of_lengths_that_broadcast_or_are_none():
    for a, b in ((np.ones((2, 1)), VALUE), (np.ones((2, 0)), np.ones((0, 3)))):
        check(np.einsum("ab,bc->ac", on_cpu(a), on_cpu(b)), np.einsum("ab,bc->ac", a, b))
    with pytest.raises(ValueError, match="could not be broadcast"):
        np.einsum("ab,bc->ac", on_cpu(VALUE), on_cpu(VALUE))


def test_einsum_takes_arguments_that_are_no_product():
    x = on_cpu(SQUARE)
    check(np.einsum(x, [0, 1], x, [1, 2], [0, 2]), SQUARE @ SQUARE)
    check(
        np.einsum("ij,jk", x, x, dtype=np.float32, casting="same_kind"),
        (SQUARE @ SQUARE).astype("f"),
    )
    path, text = np.einsum_path("ij,jk,kl", x, x, x)
    assert path[0] == "einsum_path"
    assert "Complete contraction" in text


def test_einsum_of_quantized_arrays():
    weights = xp.quantize(on_cpu(numbers((4, 64), np.float32)), xp.q8_0)
    x = on_cpu(numbers((3, 64), np.float32, 1))
    expected = np.asarray(x) @ np.asarray(weights.astype(xp.float32)).T
    check(np.einsum("ik,jk->ij", x, weights), expected, rtol=1e-5, atol=1e-5)


# -- dtypes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("scalar", [1, 1.5, True])
def test_half_precision_stays_beside_python_scalars(dtype, scalar):
    x = on_cpu(VALUE, dtype)
    for result in (np.multiply(x, scalar), np.multiply(scalar, x), np.maximum(x, scalar)):
        assert result.dtype == dtype
    wide = np.asarray(x).astype(np.float32)
    check(np.multiply(x, scalar), (wide * scalar).astype(dtype))
    check(np.exp(x), np.exp(wide).astype(dtype), rtol=2**-7)


@pytest.mark.parametrize(
    "other",
    [
        np.ones(4, np.longdouble),
        np.longdouble(1),
        np.array([1, None, 2, 3], object),
        np.array(["a", "b", "c", "d"]),
        np.timedelta64(1, "s"),
    ],
    ids=["longdouble", "longdouble scalar", "object", "str", "timedelta64"],
)
def test_other_dtypes_raise(other):
    x = on_cpu(np.ones(4, np.int64))
    with pytest.raises(TypeError):
        np.multiply(x, other)
    with pytest.raises(TypeError, match="ggarray has no"):
        np.dot(x, other)
    with pytest.raises(TypeError):
        np.multiply(x, 1, out=x, dtype=np.asarray(other).dtype)


def test_arrays_of_other_dtypes_are_made_by_nobody():
    """Libraries take the TypeError for a sign to do without."""
    x = on_cpu(VALUE)
    for make in (
        lambda: np.array(["a", "b"], like=x),
        lambda: np.full_like(x, None, dtype=object),
        lambda: np.empty_like(x, dtype=[("value", float), ("index", int)]),
        lambda: np.sum(x, dtype=np.longdouble),
    ):
        with pytest.raises(TypeError, match="ggarray has no dtype"):
            make()


def test_arguments_of_other_dtypes_come_back_beside_arrays():
    mine, nothing = np.broadcast_arrays(on_cpu(VALUE), None)
    check(mine, VALUE)
    assert (type(nothing), nothing.dtype) == (np.ndarray, object)


def test_results_are_of_native_byte_order():
    swapped = SQUARE.astype(SQUARE.dtype.newbyteorder())
    result = np.asarray(swapped, like=on_cpu(0))
    assert result.dtype.isnative
    check(result, SQUARE)
    check(np.dot(on_cpu(SQUARE), swapped), SQUARE @ SQUARE)


@pytest.mark.parametrize(
    "call",
    [
        lambda q: np.add(q, 1),
        lambda q: np.exp(q),
        lambda q: np.sum(q),
        lambda q: np.add(1, 1, out=q),
        lambda q: np.concatenate((q, q)),
        lambda q: np.array([1.0], like=q) + q,
    ],
)
def test_quantized_arrays_raise(call):
    with pytest.raises(TypeError, match="dequantize"):
        call(zeros_q8_0((2, 32)))


def test_what_is_told_without_a_value():
    x, q = pending(VALUE), zeros_q8_0((2, 32))
    assert (np.shape(x), np.ndim(x), np.size(x)) == ((3, 4), 2, 12)
    assert (np.shape(q), np.ndim(q), np.size(q)) == ((2, 32), 2, 64)
    assert xp.is_pending(x)
    assert np.size(x, 0) == np.size(x, axis=0) == 3


def test_classes_among_the_arguments_are_left_alone():
    assert np.result_type(on_cpu(VALUE), np.float32) == np.float64
    assert np.can_cast(np.int8, on_cpu(VALUE).dtype)


# -- devices ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: np.add(x, y),
        lambda x, y: np.add(x, 1, out=y),
        lambda x, y: np.concatenate((x, y)),
        lambda x, y: np.dot(x, y),
        lambda x, y: np.einsum("ij,jk", x, y),
        lambda x, y: np.copyto(y, x),
        lambda x, y: np.add.at(x, 0, y[0]),
        lambda x, y: np.sum(x, where=y > 0),
    ],
)
def test_devices_mix_as_they_do_in_operators(call):
    x = on_cpu(SQUARE)
    blas = xp.asarray(SQUARE, device="blas")
    result = call(x, blas)
    assert result is None or result.device == "blas"
    other = xp.asarray(SQUARE, device="counting")
    with pytest.raises(ValueError, match="to_device"):
        call(x, other)
    np.testing.assert_array_equal(np.asarray(other), SQUARE)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x: np.array([1, 2], like=x), np.array([1, 2])),
        (lambda x: np.asarray(SQUARE, like=x), SQUARE),
        (lambda x: np.zeros((2, 3), np.float32, like=x), np.zeros((2, 3), np.float32)),
        (lambda x: np.full(2, 3.0, like=x), np.full(2, 3.0)),
        (lambda x: np.arange(3, like=x), np.arange(3)),
        (lambda x: np.eye(2, like=x), np.eye(2)),
        (lambda x: np.frombuffer(b"\x01\x02", np.uint8, like=x), np.array([1, 2], np.uint8)),
        (lambda x: np.fromiter(range(3), np.int64, like=x), np.arange(3)),
        (lambda x: np.zeros_like(x), np.zeros((3, 4))),
        (lambda x: np.full_like(x, x[0, 0]), np.full((3, 4), VALUE[0, 0])),
    ],
)
@pytest.mark.parametrize("where", ["cpu", "blas"])
def test_arrays_like_an_array_are_on_its_device(make, expected, where):
    result = make(xp.asarray(VALUE, device=where))
    assert type(result) is xp.Array
    assert (result.device, result.dtype) == (where, expected.dtype)
    np.testing.assert_array_equal(np.asarray(result), expected)


def test_without_an_array_results_are_on_the_default_device():
    with xp.default_device("cpu"):
        check(xp.nansum(VALUE), VALUE.sum(), rtol=1e-14)


# -- arguments and results of other kinds -------------------------------------------------------


def test_named_tuples_come_and_go():
    q, r = np.linalg.qr(SQUARE)
    result = np.linalg.qr(on_cpu(SQUARE))
    assert type(result).__name__ == "QRResult"
    check(result.Q, q)
    check(np.concatenate(result), np.concatenate((q, r)))
    counted = np.unique_counts(on_cpu([2, 1, 2]))
    check(counted.values, [1, 2])
    check(counted.counts, [1, 2])


def test_containers_that_are_neither_tuple_nor_list():
    x = on_cpu(VALUE)
    check(np.vstack(collections.deque([x, x])), np.vstack([VALUE, VALUE]))
    check(np.concatenate(collections.deque([x, x])), np.concatenate([VALUE, VALUE]))
    with pytest.raises(TypeError, match="sequence"):
        np.concatenate({0: x}.values())
    check(np.block([[x, x], [x, x]]), np.block([[VALUE, VALUE], [VALUE, VALUE]]))


class Other:
    """An array of a library that answers for ufuncs and functions itself."""

    def __array_ufunc__(self, *args, **kwargs):
        return "theirs"

    def __array_function__(self, *args):
        return "theirs"


class Subclass(np.ndarray):
    """The same as a subclass of NumPy's array, as arrays with units are."""

    __array_ufunc__ = Other.__array_ufunc__
    __array_function__ = Other.__array_function__


class OptedOut:
    """Wants nothing to do with ufuncs."""

    __array_ufunc__ = None


@pytest.mark.parametrize("other", [Other(), VALUE.view(Subclass)], ids=["class", "subclass"])
def test_arrays_of_other_libraries_answer(other):
    x = on_cpu(VALUE)
    assert np.add(x, other) == np.add(other, x) == "theirs"
    assert np.matmul(x, other) == "theirs"
    assert np.add(x, 1, out=other) == "theirs"
    assert np.concatenate((x, other)) == np.concatenate((other, x)) == "theirs"


def test_where_nobody_answers_numpy_raises():
    x = on_cpu(VALUE)
    with pytest.raises(TypeError, match="does not support ufuncs"):
        np.add(x, OptedOut())
    assert x.__array_ufunc__(np.add, "__call__", x, Other()) is NotImplemented
    assert x.__array_function__(np.sum, (xp.Array, Other), (x,), {}) is NotImplemented


def test_plain_subclasses_count_as_arrays_and_masks_stay():
    matrix = np.add(on_cpu(SQUARE), SQUARE.view(type("Sub", (np.ndarray,), {})))
    check(matrix, SQUARE + SQUARE)
    masked = np.ma.array(SQUARE, mask=SQUARE > 4)
    for result in (np.add(on_cpu(SQUARE), masked), np.add(masked, on_cpu(SQUARE))):
        assert type(result) is np.ma.MaskedArray
        np.testing.assert_array_equal(result.mask, masked.mask)
        np.testing.assert_array_equal(result.compressed(), (SQUARE + SQUARE)[SQUARE <= 4])
