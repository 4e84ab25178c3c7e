"""The methods of NumPy's arrays, against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, on_cpu, pending, zeros_q8_0

import ggarray as xp

VALUE = numbers((3, 4), np.float64)
COMPLEX = numbers((2, 3), np.complex128, 1)
WHOLE = numbers((2, 3, 4), np.int32, 2)
MAKERS = pytest.mark.parametrize("make", [on_cpu, pending], ids=["plain", "pending"])

CALLS = {
    "astype": lambda x: x.astype(np.float32),
    "astype to int": lambda x: x.astype("int64"),
    "copy": lambda x: x.copy(),
    "ravel": lambda x: x.ravel(),
    "flatten": lambda x: x.flatten(),
    "reshape": lambda x: x.reshape(2, 6),
    "reshape to a tuple": lambda x: x.reshape((4, 3)),
    "reshape to one axis": lambda x: x.reshape(-1),
    "reshape to a length of NumPy's": lambda x: x.reshape(np.int64(12)),
    "squeeze": lambda x: x[:1, :, None].squeeze(),
    "squeeze of one axis": lambda x: x[:1, :, None].squeeze(-1),
    "squeeze of two axes": lambda x: x[:1, :, None].squeeze((0, 2)),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "transpose": lambda x: x.transpose(),
    "transpose to an order": lambda x: x.transpose(1, 0),
    "transpose to a tuple": lambda x: x.transpose((-1, 0)),
    "transpose of one axis": lambda x: x[0].transpose(0),
    "transpose of an axis of NumPy's": lambda x: x[0].transpose(np.int64(0)),
    "transpose to None": lambda x: x.transpose(None),
    "clip": lambda x: x.clip(-0.5, 0.5),
    "clip from one side": lambda x: x.clip(max=0.25),
    "conj": lambda x: x.conj(),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "argsort": lambda x: x.argsort(),
    "argsort along an axis": lambda x: x.argsort(axis=0),
    "diagonal": lambda x: x.diagonal(),
    "diagonal beside it": lambda x: x.diagonal(1),
    "trace": lambda x: x.trace(),
    "nonzero": lambda x: x.clip(0, None).nonzero()[1],
    "repeat": lambda x: x.repeat(2),
    "repeat along an axis": lambda x: x.repeat(np.array([1, 0, 2]), axis=0),
    "round": lambda x: x.round(),
    "round to decimals": lambda x: x.round(2),
    "view": lambda x: x.view(np.int64),
    "view of greater elements": lambda x: x.view(complex),
    "view of smaller elements": lambda x: x.view("uint16"),
    "take": lambda x: x.take([0, 5, -1]),
    "take along an axis": lambda x: x.take(np.array([[0, 1]]), axis=1),
    "dot": lambda x: x.dot(np.arange(4.0)),
    **{
        f"{name} {kwargs}": lambda x, name=name, kwargs=kwargs: getattr(x, name)(**kwargs)
        for name in ("max", "mean", "min", "prod", "std", "sum", "var", "all", "any")
        for kwargs in ({}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}, {"axis": ()})
    },
    **{
        f"{name} {kwargs}": lambda x, name=name, kwargs=kwargs: getattr(x, name)(**kwargs)
        for name in ("argmax", "argmin")
        for kwargs in ({}, {"axis": 1}, {"axis": 0, "keepdims": True})
    },
    **{
        f"{name} {kwargs}": lambda x, name=name, kwargs=kwargs: getattr(x, name)(**kwargs)
        for name in ("cumsum", "cumprod")
        for kwargs in ({}, {"axis": 1}, {"axis": 0, "dtype": np.float32})
    },
    "sum to a dtype": lambda x: x.sum(axis=0, dtype=np.float32),
    "prod to a dtype": lambda x: x.prod(dtype=np.float32),
    "std of a sample": lambda x: x.std(axis=0, ddof=1),
    "var of a sample": lambda x: x.var(ddof=1),
}


@MAKERS
@pytest.mark.parametrize("name", CALLS)
def test_methods(name, make):
    expected = CALLS[name](VALUE)
    check(CALLS[name](make(VALUE)), expected, rtol=1e-6 if expected.dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("name", sorted(set(CALLS) & {"real", "imag", "conj", "ravel", "sum {}"}))
def test_methods_of_complex_arrays(name):
    check(CALLS[name](on_cpu(COMPLEX)), CALLS[name](COMPLEX), rtol=1e-14)


def test_methods_of_arrays_with_more_axes():
    x = on_cpu(WHOLE)
    check(x.transpose(2, 0, 1), WHOLE.transpose(2, 0, 1))
    check(x.swapaxes(0, -1), WHOLE.swapaxes(0, -1))
    check(x.diagonal(1, 2, 1), WHOLE.diagonal(1, 2, 1))
    check(x.trace(0, 1, 2), WHOLE.trace(0, 1, 2))
    check(x.sum((0, 2)), WHOLE.sum((0, 2)))
    check(x.cumsum(), WHOLE.cumsum())
    check(x.dot(on_cpu(WHOLE[0].T)), WHOLE.dot(WHOLE[0].T))


@pytest.mark.parametrize("name", ["sum", "max", "T", "reshape", "copy", "round", "cumsum", "dot"])
def test_methods_stay_on_the_device(name):
    x = xp.asarray(VALUE, device="blas")
    with xp.default_device("cpu"):
        calls = {"T": lambda: x.T, "reshape": lambda: x.reshape(12), "dot": lambda: x.dot(x.T)}
        assert calls.get(name, getattr(x, name))().device == "blas"


def test_products_and_views_of_pending_arrays_are_pending():
    assert xp.is_pending(on_cpu(VALUE).dot(on_cpu(VALUE).T))
    for name in ("transpose", "ravel", "reshape"):
        x = pending(VALUE)
        assert xp.is_pending(getattr(x, name)(*([4, 3] if name == "reshape" else [])))


# -- views and copies ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["ravel", "reshape", "transpose", "swapaxes", "squeeze", "real", "view"]
)
def test_views_share_memory(name):
    arguments = {"reshape": (4, 3), "swapaxes": (0, 1), "view": (np.float64,)}.get(name, ())
    x = on_cpu(COMPLEX if name == "real" else VALUE)
    member = getattr(x, name)
    view = member(*arguments) if callable(member) else member
    x[0, 0] = 7.0
    assert float(view[(0,) * view.ndim]) == 7.0


@pytest.mark.parametrize("name", ["copy", "flatten", "astype", "clip", "take", "repeat"])
def test_copies_do_not(name):
    arguments = {"astype": (np.float64,), "take": ([0],), "repeat": (1,)}.get(name, ())
    x = on_cpu(VALUE)
    copied = getattr(x, name)(*arguments)
    x[0, 0] = 7.0
    assert float(copied[(0,) * copied.ndim]) == VALUE[0, 0]


def test_astype_without_a_copy_is_the_array_itself():
    x = on_cpu(VALUE)
    assert x.astype(np.float64, copy=False) is x
    assert x.astype(np.float32, copy=False).dtype == np.float32


def test_the_diagonal_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        on_cpu(VALUE).diagonal()[0] = 1.0


@MAKERS
def test_writes_through_a_view_as_another_dtype_change_no_product_recorded_before(make):
    x = make(COMPLEX)
    parts = x.view(np.float64)
    of_x, of_parts = x @ on_cpu(np.eye(3, dtype=np.complex128)), parts @ on_cpu(np.eye(6))
    assert xp.is_pending(of_x)
    assert xp.is_pending(of_parts)
    expected = COMPLEX.copy()
    parts[0, 1] = expected.imag[0, 0] = 7.0
    check(x, expected)
    x[1, 2] = expected[1, 2] = 5.0
    check(parts, expected.view(np.float64))
    check(of_x, COMPLEX)
    check(of_parts, COMPLEX.view(np.float64))


def test_a_view_as_another_dtype_sees_an_update_that_waits():
    x = on_cpu(VALUE)
    before = x.view(np.int64)
    x += pending(VALUE)
    assert xp.is_pending(x)
    check(before, (2 * VALUE).view(np.int64))
    x += pending(VALUE)
    check(x.view(np.int64), (3 * VALUE).view(np.int64))


@pytest.mark.parametrize(
    "dtype", [xp.q8_0, ">f8", object, "datetime64[s]", np.matrix, None], ids=str
)
def test_there_is_no_view_as_a_dtype_of_no_array(dtype):
    with pytest.raises(TypeError):
        on_cpu(VALUE).view(dtype)


def test_there_is_no_view_where_elements_would_not_fit():
    with pytest.raises(ValueError, match="contiguous"):
        on_cpu(VALUE).T.view(np.float32)
    with pytest.raises(ValueError, match="divisor"):
        on_cpu(np.ones(3, np.float32)).view(np.float64)


# -- in place -----------------------------------------------------------------------------------


@MAKERS
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda x: x.sort(), np.sort(VALUE)),
        (lambda x: x.sort(axis=0), np.sort(VALUE, axis=0)),
        (lambda x: x.fill(2.5), np.full((3, 4), 2.5)),
        (lambda x: x.fill(on_cpu(3)), np.full((3, 4), 3.0)),
    ],
    ids=["sort", "sort along an axis", "fill", "fill with an array"],
)
def test_methods_that_write_change_no_product_recorded_before(make, change, expected):
    x = make(VALUE)
    product = x @ on_cpu(np.eye(4))
    assert change(x) is None
    check(product, VALUE)
    check(x, expected)


# -- Python's own -------------------------------------------------------------------------------


@MAKERS
def test_scalars_and_lists_of_python(make):
    x = make(VALUE)
    assert x.tolist() == VALUE.tolist()
    assert type(x.to_numpy()) is np.ndarray
    np.testing.assert_array_equal(x.to_numpy(), VALUE)
    assert (x.item(5), x.item(1, 2)) == (VALUE.item(5), VALUE.item(1, 2))
    assert type(x[1:2, 2:3].item()) is float
    assert x.tobytes() == VALUE.tobytes()
    assert x.T.tobytes() == VALUE.T.tobytes()
    with pytest.raises(ValueError, match="size 1"):
        x.item()


@pytest.mark.parametrize(
    ("value", "kind"), [(3, int), (True, bool), (1.5, float), (2j, complex)], ids=str
)
def test_item_is_of_pythons_type(value, kind):
    assert type(on_cpu(value).item()) is kind
    assert on_cpu(value).item() == value


def test_half_precision_and_quantized_arrays():
    x = on_cpu([1.5, -0.25], ml_dtypes.bfloat16)
    check(x.sum(), 1.25, ml_dtypes.bfloat16)
    check(x.max(), 1.5, ml_dtypes.bfloat16)
    assert float(x.item(0)) == 1.5
    q = zeros_q8_0((2, 32))
    assert (q.copy().dtype, q.transpose().shape, q.reshape(1, 2, 32).shape) == (
        xp.q8_0,
        (32, 2),
        (1, 2, 32),
    )
    assert q.reshape(64).shape == (64,)
    check(q.astype(xp.float32), np.zeros((2, 32), np.float32))
    with pytest.raises(TypeError, match="dequantize"):
        q.view(np.uint8)
    for name in ("sum", "tolist", "item", "cumsum", "argmax", "sort", "tobytes", "conj"):
        with pytest.raises(TypeError, match="dequantize"):
            getattr(q, name)()
