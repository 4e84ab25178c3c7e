"""Every function of array-api-extra, compared with NumPy's own function of the kind."""

import array_api_extra as xpx
import numpy as np
import pytest

import ggarray as xp
from conformance.clients.comparing import Given, arrive, assert_matches

_RNG = np.random.default_rng(0)
DATA = {
    "x": _RNG.standard_normal(9),
    "m": _RNG.standard_normal((4, 5)),
    "z": _RNG.standard_normal((2, 3)) + 1j * _RNG.standard_normal((2, 3)),
    "single": _RNG.standard_normal((3, 4)).astype(np.float32),
    "holes": np.array([[1.0, np.nan, 3.0], [np.inf, -np.inf, 5.0]]),
    "labels": np.array([3, 1, 0, 1, 2]),
    "others": np.array([1, 2, 2, 7]),
    "weights": np.array([1, 2, 1, 3, 1]),
    "sorted": np.sort(_RNG.standard_normal((3, 6)), axis=-1),
    "sought": _RNG.standard_normal((3, 2)),
}


# A function's name, its work on the data, and NumPy's.
CASES = [
    ("angle", lambda g: xpx.angle(g.z), lambda g: np.angle(g.z)),
    ("angle", lambda g: xpx.angle(g.z, deg=True), lambda g: np.angle(g.z, deg=True)),
    (
        "apply_where",
        lambda g: xpx.apply_where(g.m > 0, g.m, lambda x: x * 2, lambda x: -x),
        lambda g: np.where(g.m > 0, g.m * 2, -g.m),
    ),
    (
        "apply_where",
        lambda g: xpx.apply_where(g.m > 0, (g.m, g.m), lambda x, y: x * y, fill_value=-1.0),
        lambda g: np.where(g.m > 0, g.m * g.m, -1.0),
    ),
    ("atleast_nd", lambda g: xpx.atleast_nd(g.x, ndim=3), lambda g: g.x[None, None]),
    ("cov", lambda g: xpx.cov(g.m), lambda g: np.cov(g.m)),
    ("cov", lambda g: xpx.cov(g.z), lambda g: np.cov(g.z)),
    (
        "cov",
        lambda g: xpx.cov(g.m, correction=0, fweights=g.weights),
        lambda g: np.cov(g.m, ddof=0, fweights=g.weights),
    ),
    ("create_diagonal", lambda g: xpx.create_diagonal(g.x), lambda g: np.diag(g.x)),
    (
        "create_diagonal",
        lambda g: xpx.create_diagonal(g.single, offset=-2),
        lambda g: np.stack([np.diag(row, -2) for row in g.single]),
    ),
    ("deg2rad", lambda g: xpx.deg2rad(g.m), lambda g: np.deg2rad(g.m)),
    ("isclose", lambda g: xpx.isclose(g.x, g.x + 1e-9), lambda g: np.full(9, True)),
    (
        "isclose",
        lambda g: xpx.isclose(g.holes, g.holes, equal_nan=True),
        lambda g: np.full((2, 3), True),
    ),
    ("isin", lambda g: xpx.isin(g.labels, g.others), lambda g: np.isin(g.labels, g.others)),
    (
        "isin",
        lambda g: xpx.isin(g.labels, g.others, invert=True),
        lambda g: ~np.isin(g.labels, g.others),
    ),
    ("kron", lambda g: xpx.kron(g.m, g.single), lambda g: np.kron(g.m, g.single)),
    ("kron", lambda g: xpx.kron(g.x, g.m), lambda g: np.kron(g.x, g.m)),
    ("nan_to_num", lambda g: xpx.nan_to_num(g.holes), lambda g: np.nan_to_num(g.holes)),
    (
        "nan_to_num",
        lambda g: xpx.nan_to_num(g.holes, fill_value=7.0),
        lambda g: np.nan_to_num(g.holes, nan=7.0),
    ),
    ("nanmax", lambda g: xpx.nanmax(g.holes, axis=0), lambda g: np.nanmax(g.holes, axis=0)),
    ("nanmean", lambda g: xpx.nanmean(g.holes[:1, :]), lambda g: np.float64(2.0)),
    ("nanmin", lambda g: xpx.nanmin(g.holes, axis=1), lambda g: np.nanmin(g.holes, axis=1)),
    ("nansum", lambda g: xpx.nansum(g.holes[:1, :]), lambda g: np.float64(4.0)),
    ("nunique", lambda g: xpx.nunique(g.labels), lambda g: np.int64(4)),
    ("one_hot", lambda g: xpx.one_hot(g.labels, 4), lambda g: np.eye(4)[g.labels]),
    (
        "one_hot",
        lambda g: xpx.one_hot(g.labels, 4, dtype=g.xp.float32, axis=0),
        lambda g: np.eye(4, dtype=np.float32)[:, g.labels],
    ),
    ("pad", lambda g: xpx.pad(g.m, 2), lambda g: np.pad(g.m, 2)),
    (
        "pad",
        lambda g: xpx.pad(g.m, ((1, 0), (0, 3)), constant_values=5.0),
        lambda g: np.pad(g.m, ((1, 0), (0, 3)), constant_values=5.0),
    ),
    ("rad2deg", lambda g: xpx.rad2deg(g.m), lambda g: np.rad2deg(g.m)),
    (
        "searchsorted",
        lambda g: xpx.searchsorted(g.sorted, g.sought, side="right"),
        lambda g: np.stack(
            [np.searchsorted(*pair, "right") for pair in zip(g.sorted, g.sought, strict=True)]
        ),
    ),
    (
        "setdiff1d",
        lambda g: xpx.setdiff1d(g.labels, g.others),
        lambda g: np.setdiff1d(g.labels, g.others),
    ),
    ("sinc", lambda g: xpx.sinc(g.m), lambda g: np.sinc(g.m)),
    (
        "union1d",
        lambda g: xpx.union1d(g.labels, g.others),
        lambda g: np.union1d(g.labels, g.others),
    ),
    (
        "unravel_index",
        lambda g: xpx.unravel_index(g.labels, (2, 2)),
        lambda g: np.unravel_index(g.labels, (2, 2)),
    ),
    (
        "diag_indices",
        lambda g: xpx.diag_indices(3, ndim=3, device=g.device, xp=g.xp),
        lambda g: np.diag_indices(3, 3),
    ),
    (
        "tril_indices",
        lambda g: xpx.tril_indices(3, offset=1, m=5, device=g.device, xp=g.xp),
        lambda g: np.tril_indices(3, 1, 5),
    ),
    (
        "triu_indices",
        lambda g: xpx.triu_indices(4, offset=-1, device=g.device, xp=g.xp),
        lambda g: np.triu_indices(4, -1),
    ),
]

TESTED_APART = {
    "argpartition",
    "at",
    "broadcast_shapes",
    "default_dtype",
    "expand_dims",
    "lazy_apply",
    "partition",
    "testing",
}


@pytest.mark.parametrize(("name", "work", "numpy_work"), CASES, ids=[case[0] for case in CASES])
def test_functions(name, work, numpy_work, device):
    result = work(Given(DATA, xp, device))
    assert_matches(result, numpy_work(Given(DATA)), device, rtol=1e-12)


def test_every_function_is_tested():
    functions = {case[0] for case in CASES} | TESTED_APART
    assert functions == set(xpx.__all__) - {"__version__"}


@pytest.mark.parametrize("kth", [0, 2, 4])
def test_partitions(kth, device):
    value = DATA["m"]
    smaller = np.sort(value, axis=-1)[:, : kth + 1]
    x = arrive(value, device)
    parted = xpx.partition(x, kth)
    assert_matches(xp.sort(parted[:, : kth + 1]), smaller, device, 0, 0)
    places = xpx.argpartition(x, kth)
    taken = xp.take_along_axis(x, places[:, : kth + 1])
    assert_matches(xp.sort(taken), smaller, device, 0, 0)


def test_functions_that_the_standard_has_by_now(device):
    with pytest.warns(DeprecationWarning, match="xp.expand_dims"):
        result = xpx.expand_dims(arrive(DATA["x"], device), axis=(0, 2))
    assert_matches(result, DATA["x"][None, :, None], device)
    with pytest.warns(DeprecationWarning, match="xp.broadcast_shapes"):
        assert xpx.broadcast_shapes((3, 1), (4,), (), xp=xp) == (3, 4)


def test_default_dtypes(device):
    for kind, expected in (("real floating", np.float64), ("complex floating", np.complex128)):
        assert xpx.default_dtype(xp, kind, device=device) == expected
    assert xpx.default_dtype(xp, "integral") == xpx.default_dtype(xp, "indexing") == np.int64


UPDATES = {
    "set": lambda x, y: y,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}
PLACES = {
    "element": (1, 2),
    "row": 1,
    "slices": (slice(None, None, -1), slice(1, 4)),
    "mask": np.abs(DATA["m"]) > 0.5,
    "indices": (np.array([0, 2]), np.array([1, 3])),
}


@pytest.mark.parametrize("copied", [None, True, False])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", UPDATES)
def test_updates(name, place, copied, device):
    before = np.abs(DATA["m"])
    expected = before.copy()
    expected[PLACES[place]] = UPDATES[name](before[PLACES[place]], 1.5)
    x = arrive(before, device)
    key = PLACES[place]
    if place == "mask":
        key = xp.asarray(key, device=device)
    elif place == "indices":
        key = tuple(xp.asarray(each, device=device) for each in key)
    recorded = x @ x.T
    result = getattr(xpx.at(x)[key], name)(1.5, copy=copied)
    assert_matches(result, expected, device, rtol=1e-15)
    assert (result is x) == (copied is not True)
    assert_matches(x, before if copied else expected, device, rtol=1e-15)
    assert_matches(recorded, before @ before.T, device)  # of the values before the update


def test_updates_keep_the_dtype_or_raise(device):
    x = xp.asarray([1, 2, 3], device=device)
    assert_matches(xpx.at(x, 0).add(5), np.array([6, 2, 3]), device)
    with pytest.raises(TypeError):
        xpx.at(x, slice(None)).add(1.5)
    with pytest.raises(ValueError, match="read-only"):
        xpx.at(xp.broadcast_to(x, (2, 3)), (0, 0)).set(5)


def test_lazy_apply(device):
    x = arrive(DATA["m"], device)

    def on_numpy(value, factor):
        assert type(value) is np.ndarray
        return value.cumsum(axis=1) * factor, value.sum(axis=0)

    shapes = [(4, 5), (5,)]
    results = xpx.lazy_apply(on_numpy, x, factor=2.0, shape=shapes, as_numpy=True)
    expected = on_numpy(DATA["m"], 2.0)
    assert_matches(results, expected, device)

    def on_arrays(value):
        assert type(value) is xp.Array
        return value @ value.T

    assert_matches(xpx.lazy_apply(on_arrays, x), DATA["m"] @ DATA["m"].T, device)


def test_assertions(device):
    x = arrive(DATA["m"], device)
    xpx.testing.assert_equal(x, xp.asarray(DATA["m"], device=device))
    xpx.testing.assert_close(x @ xp.eye(5, device=device), x)
    xpx.testing.assert_close_nulp(x, xp.nextafter(x, xp.asarray(9.0, device=device)))
    xpx.testing.assert_less(x, x + 1)
    for assertion, actual, desired in (
        (xpx.testing.assert_equal, x, x + 1e-9),
        (xpx.testing.assert_close, x, x + 1e-3),
        (xpx.testing.assert_close_nulp, x, x + 1e-3),
        (xpx.testing.assert_less, x, x),
        (xpx.testing.assert_equal, x, DATA["m"]),
        (xpx.testing.assert_equal, x, xp.astype(x, xp.float32)),
        (xpx.testing.assert_equal, x, x[None]),
        (xpx.testing.assert_equal, x, x.to_device("cpu" if device == "blas" else "blas")),
    ):
        with pytest.raises(AssertionError):
            assertion(actual, desired)


xpx.testing.lazy_xp_function(xpx.kron)


def test_functions_marked_for_lazy_libraries_run_as_they_are(request, device):
    before = xpx.kron
    with xpx.testing.patch_lazy_xp_functions(request, xp=xp):
        assert xpx.kron is before
        assert_matches(xpx.kron(arrive(DATA["x"], device), 2.0), DATA["x"] * 2, device)
