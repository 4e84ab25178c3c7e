"""dask.array over chunks that are ggarray's arrays, against dask over NumPy's."""

import dask
import dask.array as da
import numpy as np
import pytest
from dask.base import tokenize

import ggarray as xp
from conformance.clients.comparing import Given, arrive, assert_matches
from conformance.clients.counting import counting_device
from conformance.clients.refusals import REFUSALS

_RNG = np.random.default_rng(0)
_HOLES = _RNG.standard_normal((8, 6))
_HOLES[1, 2] = np.nan
_SQUARE = _RNG.standard_normal((6, 6))
DATA = {
    "t": _RNG.standard_normal((8, 6)),
    "holes": _HOLES,
    "whole": _RNG.integers(0, 5, (8, 6)),
    "truth": _RNG.random((8, 6)) > 0.5,
    "single": _RNG.standard_normal((8, 6)).astype(np.float32),
    "row": _RNG.standard_normal(6),
    "column": np.arange(8.0),
    "positive": _SQUARE @ _SQUARE.T + 6 * np.eye(6),
}


@pytest.fixture(scope="module", autouse=True)
def _chunks_of_ggarray():
    da.register_chunk_type(xp.Array)


def chunked(g, name="t", chunks=3):
    return da.from_array(getattr(g, name), chunks=chunks)


def changed(array, key, value):
    """An array after its elements at a key have been set."""
    array[key] = value
    return array


ELEMENTWISE = {
    "add": lambda g: chunked(g) + chunked(g, "holes"),
    "scalar": lambda g: 2 * chunked(g) - 1,
    "mixed dtypes": lambda g: chunked(g, "single") * chunked(g, "whole"),
    "ndarray on the right": lambda g: chunked(g) + np.ones(6),
    "array on the right": lambda g: chunked(g) + g.row,
    "array on the left": lambda g: g.row - chunked(g),
    "compare": lambda g: chunked(g) > 0,
    "logic": lambda g: (chunked(g) > 0) & ~chunked(g, "truth"),
    "negative": lambda g: -chunked(g),
    "power": lambda g: chunked(g) ** 2,
    "floor division": lambda g: chunked(g) // 0.3,
    "divmod": lambda g: da.divmod(chunked(g), 0.3)[1],
    "da.exp": lambda g: da.exp(chunked(g)),
    "np.exp": lambda g: np.exp(chunked(g)),
    "np.add": lambda g: np.add(chunked(g), chunked(g)),
    "clip": lambda g: da.clip(chunked(g), -0.5, 0.5),
    "round": lambda g: chunked(g).round(1),
    "astype": lambda g: chunked(g).astype("float32"),
    "conj": lambda g: chunked(g).conj(),
    "where": lambda g: da.where(chunked(g) > 0, chunked(g), 0.0),
    "isnan": lambda g: da.isnan(chunked(g, "holes")),
    "nan_to_num": lambda g: da.nan_to_num(chunked(g, "holes")),
    "isin": lambda g: da.isin(chunked(g, "whole"), [1, 2]),
    "select": lambda g: da.select([chunked(g) > 0], [chunked(g)], -1.0),
    "piecewise": lambda g: da.piecewise(chunked(g, "row"), [chunked(g, "row") > 0], [1.0, 0.0]),
    "full_like": lambda g: da.full_like(chunked(g), 2.0),
}
REDUCTIONS = {
    **{
        f"{name} over {axis}": lambda g, name=name, axis=axis: getattr(da, name)(
            chunked(g, "holes" if name.startswith("nan") else "t"), axis=axis
        )
        for name in (
            *("sum", "prod", "mean", "std", "var", "max", "min", "argmax", "argmin", "ptp"),
            *("nansum", "nanmean", "nanmax", "nanstd", "nanprod", "any", "all"),
        )
        for axis in (0, 1)
    },
    **{
        f"{name} of all": lambda g, name=name: getattr(chunked(g), name)()
        for name in ("sum", "mean", "std", "max", "argmin")
    },
    "keepdims": lambda g: chunked(g).mean(axis=1, keepdims=True),
    "std of a sample": lambda g: chunked(g).std(axis=0, ddof=1),
    "sum of whole numbers": lambda g: chunked(g, "whole").sum(axis=0),
    "median": lambda g: da.median(chunked(g), axis=0),
    "nanmedian": lambda g: da.nanmedian(chunked(g, "holes"), axis=1),
    "moment": lambda g: da.moment(chunked(g), 3),
    "average": lambda g: da.average(chunked(g), axis=1, weights=abs(chunked(g, "row"))),
    "cumsum": lambda g: chunked(g).cumsum(axis=0),
    "cumsum by Blelloch": lambda g: da.cumsum(chunked(g), axis=0, method="blelloch"),
    "cumprod": lambda g: da.cumprod(chunked(g), axis=1),
    "topk": lambda g: da.topk(chunked(g, "column"), 3),
    "argtopk": lambda g: da.argtopk(chunked(g, "column"), -3),
    "count_nonzero": lambda g: da.count_nonzero(chunked(g, "whole")),
    "histogram": lambda g: da.histogram(chunked(g), bins=4, range=(-2, 2))[0],
    "bincount": lambda g: da.bincount(chunked(g, "whole").ravel(), minlength=6),
    "digitize": lambda g: da.digitize(chunked(g), np.array([-1.0, 0.0, 1.0])),
    "unique": lambda g: da.unique(chunked(g, "whole").ravel()),
    "searchsorted": lambda g: da.searchsorted(chunked(g, "column"), chunked(g, "row")),
    "cov": lambda g: da.cov(chunked(g)),
    "corrcoef": lambda g: da.corrcoef(chunked(g)),
    "coarsen": lambda g: da.coarsen(np.sum, chunked(g, chunks=(4, 6)), {0: 2}),
    "allclose": lambda g: da.allclose(chunked(g), chunked(g)),
    "of one's own": lambda g: da.reduction(
        chunked(g),
        chunk=lambda x, axis, keepdims: g.xp.sum(x, axis=axis, keepdims=keepdims),
        aggregate=lambda x, axis, keepdims: g.xp.max(x, axis=axis, keepdims=keepdims),
        dtype=float,
    ),
}
PRODUCTS = {
    "matmul": lambda g: chunked(g) @ chunked(g).T,
    "matmul with a vector": lambda g: chunked(g) @ chunked(g, "row"),
    "matmul with an array": lambda g: chunked(g) @ g.positive,
    "matmul from an array": lambda g: g.positive @ chunked(g).T,
    "matmul of batches": lambda g: da.stack([chunked(g)] * 2) @ da.stack([chunked(g).T] * 2),
    "dot": lambda g: da.dot(chunked(g), chunked(g, "row")),
    "vdot": lambda g: da.vdot(chunked(g, "row"), chunked(g, "row")),
    "outer": lambda g: da.outer(chunked(g, "row"), chunked(g, "column")),
    "tensordot": lambda g: da.tensordot(chunked(g), chunked(g), axes=((0,), (0,))),
    "tensordot of one axis": lambda g: da.tensordot(chunked(g), chunked(g).T, axes=1),
    "einsum": lambda g: da.einsum("ij,kj->ik", chunked(g), chunked(g)),
    "trace": lambda g: da.trace(chunked(g, "positive")),
}
LINALG = {
    "qr": lambda g: da.matmul(*da.linalg.qr(chunked(g, chunks=(4, 6)))),
    "tsqr": lambda g: abs(da.linalg.tsqr(chunked(g, chunks=(4, 6)))[1]),
    "svd": lambda g: da.linalg.svd(chunked(g, chunks=(4, 6)))[1],
    "svd_compressed": lambda g: da.linalg.svd_compressed(chunked(g), 6, seed=1)[1],
    "cholesky": lambda g: da.linalg.cholesky(chunked(g, "positive")),
    "norm": lambda g: da.linalg.norm(chunked(g)),
    "norm along an axis": lambda g: da.linalg.norm(chunked(g), axis=0),
    "nuclear norm": lambda g: da.linalg.norm(chunked(g, chunks=(8, 6)), "nuc"),
    "fft": lambda g: da.fft.fft(chunked(g, chunks=(3, 6))),
    "rfft": lambda g: da.fft.rfft(chunked(g, chunks=(8, 3)), axis=0),
}
SHAPES = {
    "slice": lambda g: chunked(g)[1:, ::2],
    "slice backwards": lambda g: chunked(g)[::-1],
    "row": lambda g: chunked(g)[2],
    "list": lambda g: chunked(g)[[0, 5, 2]],
    "mask": lambda g: chunked(g)[np.arange(8) > 3],
    "mask of chunks": lambda g: chunked(g, "column")[chunked(g, "column") > 2],
    "points": lambda g: chunked(g).vindex[[0, 1], [2, 3]],
    "blocks": lambda g: chunked(g).blocks[1],
    "take": lambda g: da.take(chunked(g), [0, 2], axis=1),
    "set": lambda g: changed(chunked(g), slice(2), 0.0),
    "set where": lambda g: changed(chunked(g), chunked(g) > 0, 1.0),
    "transpose": lambda g: chunked(g).T,
    "moveaxis": lambda g: da.moveaxis(chunked(g), 0, 1),
    "reshape": lambda g: chunked(g).reshape(48),
    "ravel": lambda g: chunked(g).ravel(),
    "squeeze": lambda g: chunked(g)[:1].squeeze(),
    "expand_dims": lambda g: da.expand_dims(chunked(g), 0),
    "rechunk": lambda g: chunked(g).rechunk((5, 2)),
    "concatenate": lambda g: da.concatenate([chunked(g), chunked(g)], axis=1),
    "stack": lambda g: da.stack([chunked(g), chunked(g)], axis=1),
    "block": lambda g: da.block([[chunked(g), chunked(g)]]),
    "flip": lambda g: da.flip(chunked(g), 0),
    "roll": lambda g: da.roll(chunked(g), 1, axis=0),
    "tile": lambda g: da.tile(chunked(g), (2, 1)),
    "repeat": lambda g: da.repeat(chunked(g), 2, axis=0),
    "broadcast_to": lambda g: da.broadcast_to(chunked(g, "row"), (4, 6)),
    "pad": lambda g: da.pad(chunked(g), 1, mode="constant"),
    "pad by reflection": lambda g: da.pad(chunked(g), 1, mode="reflect"),
    "tril": lambda g: da.tril(chunked(g, "positive")),
    "diag": lambda g: da.diag(chunked(g, "row")),
    "diagonal": lambda g: da.diagonal(chunked(g, "positive")),
    "diff": lambda g: da.diff(chunked(g), axis=0),
    "gradient": lambda g: da.gradient(chunked(g), axis=0),
    "insert": lambda g: da.insert(chunked(g), 1, 0.0, axis=0),
    "delete": lambda g: da.delete(chunked(g), 1, axis=0),
    "windows": lambda g: da.lib.stride_tricks.sliding_window_view(chunked(g), 2, axis=0),
}
BLOCKS = {
    "map_blocks": lambda g: chunked(g).map_blocks(g.xp.exp),
    "map_blocks of products": lambda g: da.map_blocks(
        lambda a, b: a @ b,
        chunked(g, chunks=(3, 6)),
        chunked(g, "positive", 6),
        dtype=float,
        chunks=((3, 3, 2), (6,)),
    ),
    "map_overlap": lambda g: chunked(g).map_overlap(
        lambda x: x - x.mean(), depth=1, boundary="reflect"
    ),
    "map_overlap with no boundary": lambda g: chunked(g).map_overlap(
        lambda x: x * 2, depth=1, boundary="none"
    ),
    "overlap": lambda g: da.overlap.overlap(chunked(g), depth=1, boundary=0.0),
    "blockwise": lambda g: da.blockwise(
        g.xp.multiply, "ij", chunked(g), "ij", chunked(g, "row"), "j", dtype=float
    ),
    "apply_along_axis": lambda g: da.apply_along_axis(lambda row: row.sum(), 1, chunked(g)),
    "apply_gufunc": lambda g: da.apply_gufunc(
        lambda a: g.xp.mean(a, axis=-1), "(i)->()", chunked(g, chunks=(3, 6)), output_dtypes=float
    ),
    "from_delayed": lambda g: da.from_delayed(dask.delayed(lambda: g.t)(), (8, 6), meta=g.t),
    "to_delayed": lambda g: da.from_delayed(chunked(g).to_delayed()[1, 0], (3, 3), meta=g.t),
    "persist": lambda g: (chunked(g) @ chunked(g).T).persist() + 1,
    "optimize": lambda g: dask.optimize(chunked(g) + 1)[0],
}
CASES = {
    f"{chapter}: {title}": work
    for chapter, works in {
        "elementwise": ELEMENTWISE,
        "reductions": REDUCTIONS,
        "products": PRODUCTS,
        "linalg": LINALG,
        "shapes": SHAPES,
        "blocks": BLOCKS,
    }.items()
    for title, work in works.items()
}


@pytest.mark.parametrize("title", CASES)
def test_work(title, device):
    """The threads of dask's own scheduler compute the chunks, of which many are pending."""
    result = CASES[title](Given(DATA, xp, device)).compute(scheduler="threads", num_workers=4)
    expected = CASES[title](Given(DATA)).compute(scheduler="synchronous")
    assert_matches(result, expected, device)


def test_the_chunks_are_arrays(device):
    array = chunked(Given(DATA, xp, device))
    assert type(array._meta) is type(array.T.sum(axis=0)._meta) is xp.Array
    blocks = dask.compute(*array.to_delayed().ravel())
    assert {(type(each), each.device) for each in blocks} == {(xp.Array, device)}


def test_products_run_on_the_device():
    with counting_device() as computed:
        x = xp.asarray(DATA["t"], device="counting")
        array = da.from_array(x, chunks=3)
        work = array @ array.T
        computed.clear()  # dask tries the product on empty arrays
        result = work.compute(scheduler="synchronous")
        assert_matches(result, DATA["t"] @ DATA["t"].T, "counting")
        assert len(computed) == 3 * 2 * 3


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_many_tasks_read_one_pending_array(scheduler, device):
    """Whichever thread comes first computes it, and every chunk of it is right."""
    for _ in range(10):
        pending = arrive(DATA["t"], device)
        assert xp.is_pending(pending)
        blocks = [dask.delayed(lambda x, at: x[at] @ x.T)(pending, at) for at in range(8)]
        rows = dask.compute(*blocks, scheduler=scheduler)
        assert_matches(list(rows), list(DATA["t"] @ DATA["t"].T), device)


def test_tasks_that_write_their_own_copy_disturb_no_other(device):
    def shifted(block):
        block = block.copy()
        product = block @ block.T
        block += 1.0
        return product + block @ block.T

    def expected(rows):
        return rows @ rows.T + (rows + 1) @ (rows + 1).T

    array = chunked(Given(DATA, xp, device), chunks=(2, 6))
    for _ in range(5):
        work = array.map_blocks(shifted, chunks=(2, 2), dtype=float)
        blocks = work.to_delayed().ravel()
        results = dask.compute(*blocks, scheduler="threads", num_workers=4)
        rows = [expected(DATA["t"][at : at + 2]) for at in range(0, 8, 2)]
        assert_matches(list(results), rows, device)


def test_processes_compute_chunks(device):
    array = chunked(Given(DATA, xp, device))
    result = (array @ array.T).sum(axis=0).compute(scheduler="processes", num_workers=2)
    assert_matches(result, (DATA["t"] @ DATA["t"].T).sum(axis=0), device)


def test_tokens_tell_values_dtypes_and_devices_apart(device):
    with dask.config.set({"tokenize.ensure-deterministic": True}):
        x, same = arrive(DATA["t"], device), xp.asarray(DATA["t"], device=device)
        token = tokenize(x)
        assert token == tokenize(x) == tokenize(same) == tokenize(same.copy())
        (other_device,) = {"cpu", "blas"} - {device}
        others = [same + 1, same.astype(xp.float32), same.to_device(other_device), same.T]
        tokens = {token, *map(tokenize, others), tokenize(DATA["t"])}
        assert len(tokens) == 6


# -- what dask refuses --------------------------------------------------------------------------


def _scipy(g):
    matrix, vector = chunked(g, "positive"), chunked(g, "row")
    tall, column = chunked(g, chunks=(4, 6)), chunked(g, "column", 4)
    for solved in (
        da.linalg.solve_triangular(da.tril(matrix), vector, lower=True),
        da.linalg.lstsq(tall, column)[0],
    ):
        assert type(solved.compute()) is np.ndarray
    for solve in (
        lambda: da.linalg.solve(matrix, vector),
        lambda: da.linalg.inv(matrix),
        lambda: da.linalg.lu(matrix)[2],
    ):
        with pytest.raises(TypeError, match="Multiple namespaces"):
            solve().compute()


def _percentile(g):
    with pytest.raises(TypeError, match="No dispatch"):
        da.percentile(chunked(g, "column"), 50).compute()


def _indices(g):
    assert type(da.nonzero(chunked(g, "whole"))[0].compute()) is np.ndarray


REFUSED = {
    "linalg.solve, solve_triangular, inv, lu and lstsq": _scipy,
    "percentile": _percentile,
    "nonzero and argwhere": _indices,
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what, device):
    REFUSED[what](Given(DATA, xp, device))


def test_each_refusal_is_tested():
    lines = [each for each in REFUSALS if each.library == "dask"]
    assert {each.what for each in lines} == set(REFUSED)
    assert {each.version for each in lines} == {dask.__version__}
