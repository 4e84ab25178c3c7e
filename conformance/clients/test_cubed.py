"""cubed with ggarray as the namespace that computes its chunks, against NumPy."""

import os
import pickle
import sys

import numpy as np
import pytest

import ggarray as xp
from conformance.clients.counting import counting_device
from conformance.clients.refusals import REFUSALS

if "cubed" in sys.modules and os.environ.get("CUBED_BACKEND_ARRAY_API_MODULE") != "ggarray":
    raise pytest.UsageError("cubed is there with another namespace: it chooses when imported")
os.environ["CUBED_BACKEND_ARRAY_API_MODULE"] = "ggarray"

import cubed
import cubed.array_api as cp
import cubed.random
from cubed.backend_array_api import namespace
from cubed.runtime.create import create_executor

# cubed asks NumPy for a function under the name of a module that has moved.
pytestmark = pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")

_RNG = np.random.default_rng(0)
_HOLES = _RNG.standard_normal((6, 4))
_HOLES[1, 2] = np.nan
DATA = {
    "t": _RNG.standard_normal((6, 4)),
    "unit": _RNG.random((6, 4)) * 0.9 + 0.05,
    "holes": _HOLES,
    "whole": _RNG.integers(0, 5, (6, 4)),
    "truth": _RNG.random((6, 4)) > 0.5,
    "row": _RNG.standard_normal(4),
    "tall": _RNG.standard_normal((8, 2)),
    "z": _RNG.standard_normal((6, 4)) + 1j * _RNG.standard_normal((6, 4)),
}


@pytest.fixture(params=["cpu", "blas"])
def device(request):
    """The process's default device: cubed names none, and its threads see no context."""
    before = xp.get_default_device()
    xp.set_default_device(request.param)
    yield request.param
    xp.set_default_device(before)


@pytest.fixture
def chunked(tmp_path):
    """Make a chunked array of data by name, all with the same settings."""
    spec = cubed.Spec(str(tmp_path), allowed_mem="200MB", reserved_mem=0)

    def make(name, chunks=2):
        value = DATA[name] if isinstance(name, str) else np.asarray(name)
        return cp.asarray(value, chunks=chunks, spec=spec)

    make.spec = spec
    return make


def check(array, expected, device):
    result = array.compute()
    expected = np.asarray(expected)
    assert (type(result), result.device) == (xp.Array, device)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(np.asarray(result), expected, 1e-12, 1e-12)


def test_the_namespace_is_ours():
    assert namespace is xp


UNARY = """
abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p
log2 log10 negative positive reciprocal round sign signbit sin sinh sqrt square tan tanh trunc
"""
BINARY = """
add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp
maximum minimum multiply nextafter not_equal pow remainder subtract
"""


@pytest.mark.parametrize("name", UNARY.split())
def test_functions_of_one_array(name, chunked, device):
    value = DATA["unit"] + (name == "acosh")
    check(getattr(cp, name)(chunked(value)), getattr(np, name)(value), device)


@pytest.mark.parametrize("name", BINARY.split())
def test_functions_of_two_arrays(name, chunked, device):
    result = getattr(cp, name)(chunked("unit"), chunked(DATA["unit"][::-1]))
    check(result, getattr(np, name)(DATA["unit"], DATA["unit"][::-1]), device)


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift"])
def test_functions_of_integers(name, chunked, device):
    result = getattr(cp, name)(chunked("whole"), chunked(DATA["whole"][::-1]))
    check(result, getattr(np, name)(DATA["whole"], DATA["whole"][::-1]), device)


T, ROW, WHOLE, TALL = (DATA[name] for name in ("t", "row", "whole", "tall"))
CASES = {
    "operators": (lambda a: 2 * a("t") - a("t") ** 2 / 3, 2 * T - T**2 / 3),
    "comparison": (lambda a: a("t") > 0, T > 0),
    "logic": (lambda a: cp.logical_and(a("t") > 0, a("truth")), (T > 0) & DATA["truth"]),
    "broadcast": (lambda a: a("t") * a("row"), T * ROW),
    "where": (lambda a: cp.where(a("t") > 0, a("t"), a("unit")), np.where(T > 0, T, DATA["unit"])),
    "clip": (lambda a: cp.clip(a("t"), -0.5, 0.5), T.clip(-0.5, 0.5)),
    "astype": (lambda a: cp.astype(a("t"), cp.float32), T.astype(np.float32)),
    "complex": (lambda a: cp.conj(a("z")) * a("z"), DATA["z"].conj() * DATA["z"]),
    "imag": (lambda a: cp.imag(a("z")), DATA["z"].imag),
    "sum": (lambda a: cp.sum(a("t"), axis=0), T.sum(axis=0)),
    "sum of all": (lambda a: cp.sum(a("whole")), WHOLE.sum()),
    "mean": (lambda a: cp.mean(a("t"), axis=1, keepdims=True), T.mean(axis=1, keepdims=True)),
    "max": (lambda a: cp.max(a("t"), axis=0), T.max(axis=0)),
    "min": (lambda a: cp.min(a("t")), T.min()),
    "prod": (lambda a: cp.prod(a("t"), axis=0), T.prod(axis=0)),
    "any": (lambda a: cp.any(a("t") > 1, axis=0), (T > 1).any(axis=0)),
    "all": (lambda a: cp.all(a("t") > -9), True),
    "argmax": (lambda a: cp.argmax(a("t"), axis=0), T.argmax(axis=0)),
    "argmin": (lambda a: cp.argmin(a("t"), axis=1), T.argmin(axis=1)),
    "count_nonzero": (lambda a: cp.count_nonzero(a("whole"), axis=0), (WHOLE != 0).sum(axis=0)),
    "cumulative_sum": (lambda a: cp.cumulative_sum(a("t"), axis=0), T.cumsum(axis=0)),
    "cumulative_prod": (lambda a: cp.cumulative_prod(a("t"), axis=1), T.cumprod(axis=1)),
    "diff": (lambda a: cp.diff(a("t"), axis=0), np.diff(T, axis=0)),
    "nansum": (lambda a: cubed.nansum(a("holes"), axis=0), np.nansum(DATA["holes"], axis=0)),
    "nanmean": (lambda a: cubed.nanmean(a("holes")), np.nanmean(DATA["holes"])),
    "matmul": (lambda a: a("t") @ a("t").T, T @ T.T),
    "matmul with a vector": (lambda a: cp.matmul(a("t"), a("row")), T @ ROW),
    "matmul of batches": (lambda a: a(T.reshape(3, 2, 4)) @ a("t").T, T.reshape(3, 2, 4) @ T.T),
    "tensordot": (lambda a: cp.tensordot(a("t"), a("t"), axes=((0,), (0,))), T.T @ T),
    "vecdot": (lambda a: cp.vecdot(a("t"), a("t")), (T * T).sum(axis=1)),
    "outer": (lambda a: cp.linalg.outer(a("row"), a("row")), np.outer(ROW, ROW)),
    "qr": (lambda a: cp.matmul(*cp.linalg.qr(a("tall", (4, 2)))), TALL),
    "svd": (
        lambda a: cp.linalg.svd(a("tall", (4, 2)), full_matrices=False)[1],
        np.linalg.svd(TALL).S,
    ),
    "svdvals": (lambda a: cp.linalg.svdvals(a("tall", (4, 2))), np.linalg.svd(TALL).S),
    "transpose": (lambda a: cp.permute_dims(a("t"), (1, 0)), T.T),
    "moveaxis": (lambda a: cp.moveaxis(a("t"), 0, 1), T.T),
    "reshape": (lambda a: cp.reshape(a("t"), (24,)), T.ravel()),
    "concat": (lambda a: cp.concat([a("t"), a("unit")], axis=1), np.hstack([T, DATA["unit"]])),
    "stack": (lambda a: cp.stack([a("t"), a("t")]), np.stack([T, T])),
    "unstack": (lambda a: cp.unstack(a("t"), axis=0)[1], T[1]),
    "squeeze": (lambda a: cp.squeeze(a("t")[:1], axis=0), T[0]),
    "expand_dims": (lambda a: cp.expand_dims(a("t"), axis=1), T[:, None]),
    "flip": (lambda a: cp.flip(a("t"), axis=0), T[::-1]),
    "roll": (lambda a: cp.roll(a("t"), 1, axis=0), np.roll(T, 1, axis=0)),
    "repeat": (lambda a: cp.repeat(a("t"), 2, axis=0), T.repeat(2, axis=0)),
    "tile": (lambda a: cp.tile(a("t"), (2, 1)), np.tile(T, (2, 1))),
    "broadcast_to": (lambda a: cp.broadcast_to(a("row"), (3, 4)), np.tile(ROW, (3, 1))),
    "meshgrid": (lambda a: cp.meshgrid(a("row"), a("row"))[1], np.tile(ROW[:, None], 4)),
    "tril": (lambda a: cp.tril(a("t")), np.tril(T)),
    "slices": (lambda a: a("t")[1:, ::2], T[1:, ::2]),
    "an index": (lambda a: a("t")[2], T[2]),
    "a list": (lambda a: a("t")[[0, 3]], T[[0, 3]]),
    "take": (lambda a: cp.take(a("t"), a([0, 2]), axis=1), T[:, [0, 2]]),
    "isin": (lambda a: cp.isin(a("whole"), a([1, 2])), np.isin(WHOLE, [1, 2])),
    "rechunk": (lambda a: a("t").rechunk((4, 3)) + a("t").rechunk((4, 3)), 2 * T),
    "arange": (lambda a: cp.arange(7, chunks=3, spec=a.spec), np.arange(7)),
    "linspace": (lambda a: cp.linspace(0, 1, 7, chunks=3, spec=a.spec), np.linspace(0, 1, 7)),
    "eye": (lambda a: cp.eye(4, chunks=2, spec=a.spec), np.eye(4)),
    "full": (lambda a: cp.full((3, 3), 2.0, chunks=2, spec=a.spec), np.full((3, 3), 2.0)),
    "map_blocks": (lambda a: cubed.map_blocks(xp.exp, a("t"), dtype=np.float64), np.exp(T)),
    "map_blocks of products": (
        lambda a: cubed.map_blocks(lambda x: x @ x, a(T[:4, :4]), dtype=np.float64),
        np.block(
            [[T[i : i + 2, j : j + 2] @ T[i : i + 2, j : j + 2] for j in (0, 2)] for i in (0, 2)]
        ),
    ),
    "apply_gufunc": (
        lambda a: cubed.apply_gufunc(
            lambda x: xp.mean(x, axis=-1), "(i)->()", a("t", (2, 4)), output_dtypes=np.float64
        ),
        T.mean(axis=1),
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_work(title, chunked, device):
    work, expected = CASES[title]
    check(work(chunked), expected, device)


def test_products_run_on_the_device(chunked):
    before = xp.get_default_device()
    with counting_device() as computed:
        xp.set_default_device("counting")
        try:
            product = chunked("t") @ chunked("t").T
            computed.clear()
            check(product, T @ T.T, "counting")
            assert len(computed) == 3 * 2 * 3
        finally:
            xp.set_default_device(before)


def test_arrays_are_computed_together(chunked, device):
    arrays = [chunked("t") + 1, cp.sum(chunked("t") @ chunked("t").T, axis=0)]
    total, row = cubed.compute(*arrays)
    assert (type(total), type(row)) == (xp.Array, xp.Array)
    np.testing.assert_allclose(np.asarray(total), T + 1)
    np.testing.assert_allclose(np.asarray(row), (T @ T.T).sum(axis=0), 1e-12, 1e-12)
    assert total.device == row.device == device


@pytest.mark.usefixtures("device")
def test_results_are_stored_and_read(chunked, tmp_path):
    path = str(tmp_path / "product.zarr")
    cubed.to_zarr(chunked("t") @ chunked("t").T, path)
    stored = cubed.from_zarr(path, spec=chunked.spec)
    np.testing.assert_allclose(np.asarray((stored * 2).compute()), 2 * T @ T.T, 1e-12, 1e-12)


def test_random_arrays(chunked, device):
    result = cubed.random.random((6, 4), chunks=2, spec=chunked.spec).compute()
    assert (type(result), result.device, result.shape) == (xp.Array, device, (6, 4))
    values = np.asarray(result)
    assert ((values >= 0) & (values < 1)).all()
    assert len(np.unique(values)) == 24


@pytest.mark.parametrize("executor", ["single-threaded", "threads", "processes"])
def test_executors(executor, chunked, device):
    product = chunked("t") @ chunked("t").T
    options = {"max_workers": 2} if executor == "processes" else None
    result = product.compute(executor=create_executor(executor, options))
    assert (type(result), result.device) == (xp.Array, device)
    np.testing.assert_allclose(np.asarray(result), T @ T.T, 1e-12, 1e-12)


def test_plans_are_pickled_with_functions_of_ours():
    for function in (xp.exp, xp.matmul, xp.nansum, xp.linalg.qr):
        assert pickle.loads(pickle.dumps(function)) is function


# -- what cubed refuses -------------------------------------------------------------------------


def _variance(chunked):
    executor = create_executor("single-threaded")
    for name in ("var", "std"):
        with pytest.raises(TypeError, match="dtype"):
            getattr(cp, name)(chunked("t")).compute(executor=executor)


def _devices(chunked):
    where = xp.get_default_device()
    (other,) = {"cpu", "blas"} - {str(where)}
    x = xp.asarray(T, device=other)
    array = cp.asarray(x, chunks=2, spec=chunked.spec)
    assert (array @ array.T).compute().device == where


REFUSED = {"var and std": _variance, "devices": _devices}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.usefixtures("device")
def test_what_is_refused(what, chunked):
    REFUSED[what](chunked)


def test_each_refusal_is_tested():
    lines = [each for each in REFUSALS if each.library == "cubed"]
    assert {each.what for each in lines} == set(REFUSED)
    assert {each.version for each in lines} == {cubed.__version__}
