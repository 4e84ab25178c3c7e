"""xarray over ggarray's arrays: what it gives against what it gives over NumPy's."""

import operator

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ggarray as xp
from conformance.clients.comparing import Given, arrive, assert_matches
from conformance.clients.refusals import REFUSALS

_RNG = np.random.default_rng(0)
_HOLES = _RNG.standard_normal((4, 6))
_HOLES[[1, 3, 3], [2, 0, 5]] = np.nan
DATA = {
    "t": _RNG.standard_normal((4, 6)),
    "holes": _HOLES,
    "whole": _RNG.integers(-5, 5, (4, 6)),
    "truth": _RNG.random((4, 6)) > 0.5,
    "z": _RNG.standard_normal((4, 6)) + 1j * _RNG.standard_normal((4, 6)),
    "single": _RNG.standard_normal((4, 6)).astype(np.float32),
    "row": _RNG.standard_normal(6),
    "weights": _RNG.random(6) + 0.1,
    "w": _RNG.standard_normal((6, 3)),
}
LABELS = xr.DataArray(list("aabbab"), dims="y", name="label")
DATES = pd.date_range("2020-01-30", periods=6)


def table(g, name="t"):
    """A table with coordinates along x and y."""
    coords = {"x": [10, 20, 30, 40], "y": np.arange(6.0) / 2}
    return xr.DataArray(getattr(g, name), dims=("x", "y"), coords=coords, name=name)


def row(g, name="row"):
    return xr.DataArray(getattr(g, name), dims="y", coords={"y": np.arange(6.0) / 2}, name=name)


def series(g, name="t"):
    coords = {"time": DATES}
    return xr.DataArray(getattr(g, name), dims=("x", "time"), coords=coords, name=name)


def matrix(g):
    return xr.DataArray(g.w, dims=("y", "z"), coords={"y": np.arange(6.0) / 2}, name="w")


def dataset(g):
    return xr.Dataset({"a": table(g), "b": table(g, "holes")})


def changed(array, change):
    """A copy of an array after a change."""
    array = array.copy()
    change(array)
    return array


ARITHMETIC = {
    "add": lambda g: table(g) + table(g, "holes"),
    "scalar": lambda g: 2 * table(g) - 1,
    "broadcast": lambda g: table(g) + row(g),
    "outer": lambda g: table(g).isel(y=0, drop=True) * row(g),
    "align": lambda g: table(g)[1:] + table(g)[:3],
    "ndarray on the right": lambda g: table(g) + np.ones(6),
    "ndarray on the left": lambda g: np.ones((4, 6)) - table(g),
    "array on the right": lambda g: table(g) * g.row,
    "array on the left": lambda g: g.row * table(g),
    "mixed dtypes": lambda g: table(g, "single") + table(g, "whole"),
    "float32 with a scalar": lambda g: table(g, "single") * 2.5,
    "compare": lambda g: table(g) > 0,
    "logic": lambda g: (table(g) > 0) & ~table(g, "truth"),
    "unary": lambda g: abs(-table(g)),
    "power": lambda g: table(g) ** 2,
    "floor division": lambda g: table(g) // 0.3 + table(g) % 0.3,
    "in place": lambda g: operator.iadd(table(g), 1.0),
    "np.sin": lambda g: np.sin(table(g)),
    "np.add": lambda g: np.add(table(g), row(g)),
    "real": lambda g: table(g, "z").real,
    "imag": lambda g: table(g, "z").imag,
    "conj": lambda g: table(g, "z").conj(),
    "clip": lambda g: table(g).clip(-0.5, 0.5),
    "round": lambda g: table(g).round(1),
    "astype": lambda g: table(g).astype("float32"),
    "isin": lambda g: table(g, "whole").isin(g.array([1, 2])),
    "polyval": lambda g: xr.polyval(
        row(g), xr.DataArray(g.row, dims="degree").assign_coords(degree=range(6))
    ),
}
PRODUCTS = {
    "@": lambda g: table(g) @ matrix(g),
    "dot": lambda g: xr.dot(table(g), matrix(g)),
    "dot over a dimension": lambda g: xr.dot(table(g), table(g), dim="x"),
    "dot of batches": lambda g: xr.dot(table(g), table(g).expand_dims(b=2), dim="y"),
    "dot of three": lambda g: xr.dot(table(g), matrix(g), row(g)),
    "dot over all": lambda g: xr.dot(table(g), table(g), dim=...),
    "dot to an outer product": lambda g: xr.dot(row(g), row(g).rename(y="v"), dim=[]),
    "apply_ufunc": lambda g: xr.apply_ufunc(
        operator.matmul,
        table(g),
        matrix(g),
        input_core_dims=[["x", "y"], ["y", "z"]],
        output_core_dims=[["x", "z"]],
    ),
    "cov": lambda g: xr.cov(table(g), table(g) * 2 + 1, "y"),
    "corr": lambda g: xr.corr(table(g), table(g) ** 2, "y"),
    "cross": lambda g: xr.cross(matrix(g), matrix(g) + 1, dim="z"),
}
INDEXING = {
    "isel": lambda g: table(g).isel(x=1, y=slice(None, None, -2)),
    "isel by a list": lambda g: table(g).isel(y=[0, 2], x=[3, 1]),
    "isel by a mask": lambda g: table(g).isel(x=np.array([True, False, True, True])),
    "sel": lambda g: table(g).sel(x=20),
    "sel by a slice": lambda g: table(g).sel(y=slice(0.5, 2)),
    "sel of the nearest": lambda g: table(g).sel(x=[11, 38], method="nearest"),
    "loc": lambda g: table(g).loc[20:30],
    "head": lambda g: table(g).head(x=2),
    "thin": lambda g: table(g).thin(y=2),
    "drop_isel": lambda g: table(g).drop_isel(x=[0]),
    "drop_duplicates": lambda g: table(g).drop_duplicates("x"),
    "sortby": lambda g: table(g).sortby("x", ascending=False),
    "sortby values": lambda g: table(g).sortby(row(g)),
    "reindex": lambda g: table(g).reindex(x=[20, 50, 10]),
    "reindex by the nearest": lambda g: table(g).reindex(x=[21, 39], method="nearest", tolerance=5),
    "set": lambda g: changed(table(g), lambda a: operator.setitem(a, {"x": 0}, 1.0)),
    "set an array": lambda g: changed(
        table(g), lambda a: operator.setitem(a.loc, {"x": 20}, a.isel(x=3, drop=True))
    ),
    "set an ndarray": lambda g: changed(
        table(g), lambda a: operator.setitem(a, {"y": [0, 3]}, np.zeros(2))
    ),
    "time": lambda g: series(g).sel(time="2020-02"),
}
SHAPES = {
    "transpose": lambda g: table(g).T,
    "expand_dims": lambda g: table(g).expand_dims(z=2),
    "squeeze": lambda g: table(g).isel(x=[0]).squeeze(),
    "stack": lambda g: table(g).stack(z=("x", "y")),
    "unstack": lambda g: table(g).stack(z=("x", "y")).unstack("z"),
    "broadcast_like": lambda g: row(g).broadcast_like(table(g)),
    "shift": lambda g: table(g).shift(x=1),
    "shift in whole numbers": lambda g: table(g, "whole").shift(y=-2, fill_value=0),
    "roll": lambda g: table(g).roll(x=1, y=-1),
    "pad": lambda g: table(g).pad(x=1),
    "pad by reflection": lambda g: table(g).pad(y=(1, 2), mode="reflect"),
    "pad with a number": lambda g: table(g).pad(y=1, constant_values=2.0),
    "diff": lambda g: table(g).diff("y"),
    "diff twice": lambda g: table(g).diff("y", n=2, label="lower"),
    "concat": lambda g: xr.concat([table(g), table(g, "holes")], "x"),
    "concat to a new dimension": lambda g: xr.concat([table(g), table(g)], "z"),
    "concat with a join": lambda g: xr.concat(
        [table(g)[:, :4], table(g)[:, 2:]], "z", join="outer"
    ),
    "combine_first": lambda g: table(g, "holes").combine_first(table(g)),
    "copy": lambda g: table(g).copy(deep=True),
    "copy with data": lambda g: table(g).copy(data=g.holes),
    "ones_like": lambda g: xr.ones_like(table(g)),
    "full_like": lambda g: xr.full_like(table(g), 2.5),
    "zeros_like of a dtype": lambda g: xr.zeros_like(table(g), dtype=int),
    "coordinates": lambda g: table(g).assign_coords(q=("y", g.row)).q,
}
MISSING = {
    "where": lambda g: table(g).where(table(g) > 0),
    "where of whole numbers": lambda g: table(g, "whole").where(table(g, "whole") > 0),
    "where with another": lambda g: table(g).where(table(g) > 0, 0.0),
    "xr.where": lambda g: xr.where(table(g) > 0, table(g), -1.0),
    "fillna": lambda g: table(g, "holes").fillna(0.0),
    "fillna from an array": lambda g: table(g, "holes").fillna(table(g)),
    "isnull": lambda g: table(g, "holes").isnull(),
    "notnull": lambda g: table(g, "holes").notnull(),
    "dropna": lambda g: table(g, "holes").dropna("y"),
    "count": lambda g: table(g, "holes").count("x"),
    "any": lambda g: table(g, "truth").any("x"),
    "all": lambda g: table(g, "truth").all(),
}
STATISTICS = {
    **{
        f"{name} over {dim}, skipna={skipna}": lambda g, name=name, dim=dim, skipna=skipna: getattr(
            table(g, "holes"), name
        )(dim, skipna=skipna)
        for name in ("sum", "mean", "max", "min", "prod", "std", "var", "median")
        for dim in ("x", None)
        for skipna in (None, True, False)
        if skipna is not False or name not in {"std", "var"}
    },
    **{
        f"{name} of whole numbers": lambda g, name=name: getattr(table(g, "whole"), name)("y")
        for name in ("sum", "mean", "max", "prod", "argmin")
    },
    "sum with a minimal count": lambda g: table(g, "holes").sum("x", min_count=4),
    "std of a sample": lambda g: table(g, "holes").std("x", ddof=1),
    "argmax": lambda g: table(g).argmax("y"),
    "argmax by dimension": lambda g: table(g).argmax(...)["x"],
    "argmin past NaN": lambda g: table(g, "holes").argmin("y"),
    "idxmax": lambda g: table(g).idxmax("x"),
    "quantile": lambda g: table(g).quantile(0.3, "y"),
    "quantiles past NaN": lambda g: table(g, "holes").quantile([0.2, 0.8]),
    "cumsum": lambda g: table(g).cumsum("y"),
    "cumsum past NaN": lambda g: table(g, "holes").cumsum(),
    "cumprod": lambda g: table(g, "holes").cumprod("x"),
    "differentiate": lambda g: table(g).differentiate("y"),
    "differentiate in time": lambda g: series(g).differentiate("time", datetime_unit="D"),
    "integrate": lambda g: table(g).integrate("y"),
    "cumulative_integrate": lambda g: table(g).cumulative_integrate("y"),
    "reduce": lambda g: table(g).reduce(np.sum, "x"),
    "weighted mean": lambda g: table(g, "holes").weighted(row(g, "weights")).mean("y"),
    "weighted sum": lambda g: table(g).weighted(row(g, "weights")).sum(),
    "weighted std": lambda g: table(g).weighted(row(g, "weights")).std("y"),
    "apply_ufunc": lambda g: xr.apply_ufunc(g.xp.exp, table(g)),
    "apply_ufunc of NumPy's": lambda g: xr.apply_ufunc(np.hypot, table(g), row(g)),
    "apply_ufunc with core dimensions": lambda g: xr.apply_ufunc(
        lambda a: g.xp.sum(a, axis=-1), table(g), input_core_dims=[["y"]]
    ),
}
GROUPS = {
    **{
        f"groupby {name}": lambda g, name=name: getattr(table(g, "holes").groupby(LABELS), name)()
        for name in ("sum", "mean", "max", "min", "std", "median", "count", "first", "cumsum")
    },
    "groupby map": lambda g: table(g).groupby(LABELS).map(lambda a: a - a.mean("y")),
    "groupby quantile": lambda g: table(g).groupby(LABELS).quantile(0.5),
    "groupby and subtract": lambda g: table(g).groupby(LABELS) - table(g).groupby(LABELS).mean(),
    "groupby_bins": lambda g: table(g).groupby_bins("y", [0, 1, 3], right=False).mean(),
    "groupby month": lambda g: series(g).groupby("time.month").mean(),
    "resample": lambda g: series(g).resample(time="MS").mean(),
    "resample and sum": lambda g: series(g).resample(time="2D").sum(),
    "coarsen": lambda g: table(g).coarsen(y=2).mean(),
    "coarsen and trim": lambda g: table(g).coarsen(y=4, boundary="trim").sum(),
    "coarsen two dimensions": lambda g: table(g).coarsen(x=2, y=3).max(),
    "coarsen construct": lambda g: table(g).coarsen(y=2).construct(y=("a", "b")),
    "rolling mean": lambda g: table(g).rolling(y=3).mean(),
    "rolling sum": lambda g: table(g, "holes").rolling(y=3, min_periods=1, center=True).sum(),
    "rolling max of two dimensions": lambda g: table(g).rolling(x=2, y=2).max(),
    "rolling std": lambda g: table(g).rolling(y=3).std(),
    "rolling median": lambda g: table(g).rolling(y=3).median(),
    "rolling count": lambda g: table(g, "holes").rolling(y=3).count(),
    "rolling construct": lambda g: table(g).rolling(y=3).construct("w"),
    "rolling reduce": lambda g: table(g).rolling(y=2).reduce(np.sum),
    "cumulative": lambda g: table(g).cumulative("y").sum(),
}
DATASETS = {
    "arithmetic": lambda g: (dataset(g) * 2).b,
    "mean": lambda g: dataset(g).mean("x").b,
    "to_dataset": lambda g: table(g).to_dataset("x")[10],
    "to_dataarray": lambda g: dataset(g).to_dataarray(),
    "to_stacked_array": lambda g: dataset(g).to_stacked_array("z", ["x"]),
    "merge": lambda g: xr.merge([table(g), table(g, "holes")], compat="override").holes,
    "concat": lambda g: xr.concat([dataset(g), dataset(g)], "x").a,
    "where": lambda g: dataset(g).where(table(g) > 0).a,
    "assign": lambda g: dataset(g).assign(c=lambda d: d.a.dot(d.a.rename(x="u"))).c,
    "isel": lambda g: dataset(g).isel(x=0).a,
    "map": lambda g: dataset(g).map(np.square).a,
}
VALUES = {
    "values": lambda g: table(g).values.tolist(),
    "to_numpy": lambda g: table(g).to_numpy().tolist(),
    "to_pandas": lambda g: table(g).to_pandas().to_numpy().tolist(),
    "to_dataframe": lambda g: dataset(g).to_dataframe().a.tolist(),
    "to_dict": lambda g: table(g).to_dict(),
    "item": lambda g: table(g).isel(x=0, y=0).item(),
    "float": lambda g: float(table(g).sum()),
    "equals": lambda g: [table(g).equals(table(g)), table(g).equals(table(g, "holes"))],
    "identical": lambda g: dataset(g).identical(dataset(g)),
    "allclose": lambda g: xr.testing.assert_allclose(table(g), table(g) + 1e-9),
}
CASES = {
    f"{chapter}: {title}": work
    for chapter, works in {
        "arithmetic": ARITHMETIC,
        "products": PRODUCTS,
        "indexing": INDEXING,
        "shapes": SHAPES,
        "missing": MISSING,
        "statistics": STATISTICS,
        "groups": GROUPS,
        "datasets": DATASETS,
        "values": VALUES,
    }.items()
    for title, work in works.items()
}

# xarray makes a constant or a coordinate an array of the namespace, on the default device.
WITH_CONSTANTS = """
indexing: reindex
shapes: concat with a join
missing: where with another
missing: xr.where
missing: fillna
statistics: idxmax
statistics: integrate
statistics: cumulative_integrate
statistics: weighted mean
statistics: weighted sum
statistics: weighted std
groups: rolling mean
groups: rolling sum
groups: rolling max of two dimensions
groups: cumulative
""".strip().splitlines()


@pytest.mark.parametrize("title", CASES)
def test_work(title, device):
    result, expected = CASES[title](Given(DATA, xp, device)), CASES[title](Given(DATA))
    if isinstance(expected, xr.DataArray):
        assert (result.dims, result.name) == (expected.dims, expected.name)
        xr.testing.assert_equal(result.coords.to_dataset(), expected.coords.to_dataset())
        result, expected = result.data, expected.data
    assert_matches(result, expected, None if title in WITH_CONSTANTS else device)


def test_the_work_that_is_to_lose_the_device_is_there():
    assert set(WITH_CONSTANTS) <= set(CASES)


def test_products_are_recorded(device):
    g = Given(DATA, xp, device)
    for product in (table(g) @ matrix(g), xr.dot(table(g), table(g).expand_dims(b=2), dim="y")):
        assert xp.is_pending(product.data)


@pytest.mark.parametrize("name", ["t", "whole"])
def test_repr_shows_the_array(name, device):
    array = table(Given(DATA, xp, device), name)
    text = repr(array)
    assert f"device='{device}'" in text
    assert repr(array.data).splitlines()[0] in text
    assert "<xarray.Dataset>" in repr(array.to_dataset())
    assert "Array" in array._repr_html_()


def test_writing_through_xarray_changes_no_product_recorded_before(device):
    array = table(Given(DATA, xp, device))
    product = array.data @ array.data.T
    array[{"x": 0}] = 0.0
    array.loc[{"y": 0.5}] = 1.0
    assert_matches(product, DATA["t"] @ DATA["t"].T, device)


# -- what xarray refuses ------------------------------------------------------------------------


def _points(g):
    at = xr.DataArray([0, 1], dims="p")
    with pytest.raises(TypeError, match="Vectorized indexing is not supported"):
        table(g).isel(x=at, y=at)


def _skipna(g):
    for name in ("std", "var"):
        with pytest.raises(TypeError, match="ddof"):
            getattr(table(g), name)("x", skipna=False)


def _conditions(g):
    with pytest.raises(TypeError, match="a ggarray Array is wanted"):
        table(g).where(table(g).x > 20)


def _interpolation(g):
    for result in (
        table(g).interp(y=[0.25, 1.1]),
        table(g, "holes").interpolate_na("y"),
        xr.apply_ufunc(np.sum, table(g), input_core_dims=[["y"]], vectorize=True),
    ):
        assert type(result.data) is np.ndarray


def _fits(g):
    with pytest.raises(TypeError, match="out"):
        table(g).polyfit("y", 1)


def _devices(g):
    result = table(g).where(table(g) > 0, 0.0).data
    assert result.device == ("blas" if "blas" in (g.device, xp.get_default_device()) else "cpu")


REFUSED = {
    "vectorized indexing": _points,
    "std and var with skipna=False": _skipna,
    "where with a condition on a coordinate of NumPy's": _conditions,
    "interp, interpolate_na and apply_ufunc with vectorize": _interpolation,
    "polyfit": _fits,
    "devices, where a constant of xarray's takes part": _devices,
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what, device):
    REFUSED[what](Given(DATA, xp, device))


def test_each_refusal_is_tested():
    lines = [each for each in REFUSALS if each.library == "xarray"]
    assert {each.what for each in lines} == set(REFUSED)
    assert {each.version for each in lines} == {xr.__version__}


def test_arrays_are_kept_without_a_copy(device):
    x = arrive(DATA["t"], device)
    assert xr.DataArray(x, dims=("x", "y")).data is x
