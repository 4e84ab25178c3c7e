"""NumPy's spellings in the namespace, against NumPy."""

import inspect
import pickle

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, on_cpu, pending, zeros_q8_0

import ggarray as xp

VALUE = numbers((3, 4), np.float64)
HOLES = np.where(VALUE > 0.8, np.nan, VALUE)
CUBE = numbers((2, 3, 4), np.float32, 1)
WHOLE = numbers((3, 4), np.int16, 2)

# Names, and calls that are right for all of these names.
REDUCTIONS = ["nanmax", "nanmin", "nansum", "nanprod", "nanmean", "nanmedian", "nanstd", "nanvar"]
REDUCTIONS += ["nanargmax", "nanargmin", "median"]
CASES = [
    *[(name, (HOLES,), {}) for name in REDUCTIONS],
    *[(name, (HOLES,), {"axis": 1}) for name in REDUCTIONS],
    *[(name, (CUBE,), {"axis": -1, "keepdims": True}) for name in REDUCTIONS],
    *[(name, (WHOLE, 0), {}) for name in REDUCTIONS],
    *[(name, (CUBE,), {"axis": (0, 2)}) for name in REDUCTIONS if "arg" not in name],
    *[(name, (HOLES,), {"axis": 0, "ddof": 1}) for name in ("nanstd", "nanvar")],
    ("nansum", (HOLES,), {"dtype": np.float32}),
    ("nansum", (HOLES,), {"where": VALUE < 0, "initial": 2.0}),
    *[(name, (VALUE,), {}) for name in ("cumsum", "cumprod", "diagonal", "trace")],
    *[(name, (WHOLE,), {"axis": 1}) for name in ("cumsum", "cumprod")],
    *[(name, (CUBE, 1), {"axis1": 1, "axis2": 2}) for name in ("diagonal", "trace")],
    *[(name, ((VALUE, WHOLE),), {}) for name in ("hstack", "vstack")],
    *[(name, ([VALUE[0], WHOLE[1]],), {}) for name in ("hstack", "vstack")],
    ("pad", (VALUE, 1), {}),
    ("pad", (CUBE, ((0, 1), (2, 0), (1, 1))), {"constant_values": 5}),
    ("pad", (WHOLE, 2), {"mode": "wrap"}),
    ("pad", (WHOLE, 2, "edge"), {}),
    ("kron", (VALUE, WHOLE[:2, :2]), {}),
    ("cross", (VALUE[:, :3], WHOLE[:, 1:]), {}),
    ("gradient", (VALUE,), {"axis": 1}),
    ("gradient", (VALUE[0], np.array([0.0, 1.0, 3.0, 4.0])), {"edge_order": 2}),
    ("isclose", (VALUE, VALUE + 1e-9), {}),
    ("isclose", (HOLES, HOLES), {"equal_nan": True}),
    ("isclose", (CUBE, 0.5), {"rtol": 0.5}),
    ("dot", (VALUE, WHOLE.T), {}),
    ("dot", (VALUE, WHOLE[0]), {}),
    ("dot", (CUBE, VALUE.T), {}),
    ("dot", (VALUE[0], np.swapaxes(CUBE, 1, 2)), {}),
    ("outer", (VALUE, WHOLE[0]), {}),
    ("einsum", ("ij,kj->ik", VALUE, WHOLE), {}),
    ("einsum", ("bij->bj", CUBE), {}),
    ("einsum", ("bij,kj,bil->kl", CUBE, VALUE, CUBE), {"optimize": "greedy"}),
    ("transpose", (CUBE,), {}),
    ("transpose", (CUBE, (1, 0, 2)), {}),
    ("transpose", (CUBE,), {"axes": [-1, 0, 1]}),
    *[("concatenate", ((VALUE, WHOLE),), {"axis": axis}) for axis in (0, 1, -1, None)],
    ("concatenate", ([CUBE, CUBE], 2), {}),
]


def convert(x, make):
    """Arguments with Arrays in place of NumPy's arrays."""
    if isinstance(x, np.ndarray):
        return make(x)
    return type(x)(convert(each, make) for each in x) if isinstance(x, (tuple, list)) else x


def pending_or_plain(value):
    """An array that waits for a product where that gives the very same values."""
    wait = value.ndim == 2 and value.dtype.kind == "f" and np.isfinite(value).all()
    return pending(value) if wait else on_cpu(value)


@pytest.mark.parametrize("make", [on_cpu, pending_or_plain], ids=["plain", "pending"])
@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_values(name, args, kwargs, make):
    expected = getattr(np, name)(*args, **kwargs)
    kwargs = {key: convert(each, make) for key, each in kwargs.items()}
    check(getattr(xp, name)(*convert(args, make), **kwargs), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("x", "y", "close"), [(1.0, 1.0 + 1e-9, True), (1.0, 1.1, False)])
def test_allclose_gives_a_bool(x, y, close):
    assert xp.allclose(on_cpu([x, x]), on_cpu([y, x])) is close


@pytest.mark.parametrize("name", ["nansum", "nanmax", "cumsum", "median", "pad", "trace"])
@pytest.mark.parametrize("where", ["cpu", "blas"])
def test_results_are_where_the_arguments_are(name, where):
    args = (1,) if name == "pad" else ()
    with xp.default_device({"cpu": "blas", "blas": "cpu"}[where]):
        assert getattr(xp, name)(xp.asarray(VALUE, device=where), *args).device == where


def test_results_go_into_an_array_that_is_given():
    out = xp.zeros(4, device="cpu")
    assert xp.nansum(on_cpu(HOLES), axis=0, out=out) is out
    check(out, np.nansum(HOLES, axis=0))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["nansum", "nanmax", "median", "cumsum"])
def test_half_precision_stays(name, dtype):
    value = numbers((3, 4), dtype)
    result = getattr(xp, name)(on_cpu(value))
    assert result.dtype == dtype
    expected = getattr(np, name)(value.astype(np.float64))
    np.testing.assert_allclose(np.asarray(result).astype(np.float64), expected, 0, 0.1)


@pytest.mark.parametrize(
    "name", sorted({name for name, _, _ in CASES} - {"dot", "outer", "transpose"})
)
def test_quantized_arrays_raise(name):
    """But for products and views, which are defined."""
    q = zeros_q8_0((32, 64))
    args = {"einsum": ("ij->ji", q), "pad": (q, 1), "concatenate": ((q, q), 1)}
    args |= dict.fromkeys(("cross", "isclose", "kron"), (q, q))
    args |= dict.fromkeys(("hstack", "vstack"), ((q, q),))
    with pytest.raises(TypeError, match=r"dequantize|blocks|quantized"):
        getattr(xp, name)(*args.get(name, (q,)))


def test_quantized_arrays_have_products_and_views():
    weights = xp.quantize(on_cpu(numbers((4, 64), np.float32)), xp.q8_0)
    decoded = np.asarray(weights.astype(xp.float32))
    assert xp.transpose(weights).dtype == xp.q8_0
    x = numbers((3, 64), np.float32, 1)
    check(xp.dot(on_cpu(x), xp.transpose(weights)), x @ decoded.T, rtol=1e-5, atol=1e-5)


def test_gradients_along_all_axes_are_a_tuple():
    for slope, expected in zip(xp.gradient(on_cpu(VALUE)), np.gradient(VALUE), strict=True):
        check(slope, expected)


def test_windows_are_views_where_numpy_has_them():
    x = on_cpu(VALUE)
    windows = xp.lib.stride_tricks.sliding_window_view(x, 2, axis=1)
    x[0, 0] = 7.0
    changed = np.asarray(x)
    expected = np.stack([changed[:, :-1], changed[:, 1:]], axis=-1)
    np.testing.assert_array_equal(np.asarray(windows), expected)
    product = windows @ on_cpu(np.ones(2))
    assert not xp.is_pending(product)
    check(product, expected.sum(axis=-1))


def test_transposes_of_pending_arrays_are_pending():
    x = xp.transpose(pending(VALUE))
    assert xp.is_pending(x)
    check(x, VALUE.T)


def test_array_copies_unless_told_otherwise():
    x = on_cpu(VALUE)
    y = xp.array(x)
    y[0] = 0.0
    check(x, VALUE)
    assert xp.array(x, copy=None) is x
    check(xp.array([1, 2], dtype=xp.float32, device="cpu"), [1, 2], np.float32)
    check(xp.array([[1, 2], [3, 4]], np.int8, device="cpu"), [[1, 2], [3, 4]], np.int8)
    assert xp.array(VALUE, device="blas").device == "blas"
    shared = VALUE.copy()
    xp.array(shared, copy=False)[0, 0] = 5.0
    assert shared[0, 0] == 5.0


@pytest.mark.parametrize("name", sorted({name for name, _, _ in CASES} | {"allclose", "array"}))
def test_names_are_exported_and_pickled(name):
    function = getattr(xp, name)
    assert name in xp.__all__
    assert function.__name__ == name
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("name", ["nansum", "pad", "median", "einsum"])
def test_signatures_are_those_of_numpy(name):
    assert inspect.signature(getattr(xp, name)) == inspect.signature(getattr(np, name))
