"""autoray dispatching to ggarray by the names of the standard and by NumPy's."""

import autoray as ar
import numpy as np
import pytest

import ggarray as xp
from conformance.clients.comparing import Given, arrive, assert_matches
from conformance.clients.counting import counting_device
from conformance.clients.refusals import REFUSALS

_RNG = np.random.default_rng(0)
_SQUARE = _RNG.standard_normal((4, 4))
DATA = {
    "x": _RNG.standard_normal((3, 4)),
    "y": _RNG.standard_normal((4, 5)),
    "b": _RNG.standard_normal((2, 3, 4)),
    "v": _RNG.standard_normal(4),
    "unit": _RNG.random((3, 4)),
    "z": _RNG.standard_normal((3, 4)) + 1j * _RNG.standard_normal((3, 4)),
    "whole": _RNG.integers(0, 9, (3, 4)),
    "square": _SQUARE,
    "symmetric": _SQUARE @ _SQUARE.T + np.eye(4),
}

ONE_ARRAY = """
abs all any argmax argmin ceil conj cos cosh count_nonzero cumprod cumsum exp expm1 floor imag
isfinite isinf isnan log log10 log1p log2 max mean median min nansum nanmean nonzero ones_like
prod real round sign sin sinh sqrt square std sum tan tanh transpose trunc var zeros_like
"""
NOT_OF_COMPLEX = {"ceil", "floor", "trunc"}
CALLS = {
    "add": lambda g, do: do("add", g.x, g.v),
    "arange": lambda g, do: do("arange", 5, like=g.x),
    "array": lambda g, do: do("array", [1.0, 2.0], like=g.x),
    "astype": lambda g, do: do("astype", g.x, "float32"),
    "broadcast_to": lambda g, do: do("broadcast_to", g.v, (3, 4)),
    "clip": lambda g, do: do("clip", g.x, -0.5, 0.5),
    "concatenate": lambda g, do: do("concatenate", (g.x, g.x), axis=1),
    "cumsum": lambda g, do: do("cumsum", g.x, axis=0),
    "diagonal": lambda g, do: do("diagonal", g.b, axis1=1, axis2=2),
    "dot": lambda g, do: do("dot", g.x, g.y),
    "einsum": lambda g, do: do("einsum", "ij,jk->ki", g.x, g.y),
    "einsum of batches": lambda g, do: do("einsum", "bij,jk->bik", g.b, g.y),
    "equal": lambda g, do: do("equal", g.whole, 3),
    "expand_dims": lambda g, do: do("expand_dims", g.x, axis=1),
    "eye": lambda g, do: do("eye", 3, like=g.x),
    "flip": lambda g, do: do("flip", g.x, axis=1),
    "full": lambda g, do: do("full", (2, 2), 1.5, like=g.x),
    "hstack": lambda g, do: do("hstack", (g.x, g.x)),
    "hypot": lambda g, do: do("hypot", g.x, g.v),
    "isclose": lambda g, do: do("isclose", g.x, g.x + 1e-9),
    "kron": lambda g, do: do("kron", g.x, g.v),
    "linalg.cholesky": lambda g, do: do("linalg.cholesky", g.symmetric),
    "linalg.det": lambda g, do: do("linalg.det", g.square),
    "linalg.eigh": lambda g, do: do("abs", do("linalg.eigh", g.symmetric)[1]),
    "linalg.eigvalsh": lambda g, do: do("linalg.eigvalsh", g.symmetric),
    "linalg.inv": lambda g, do: do("linalg.inv", g.square),
    "linalg.matrix_rank": lambda g, do: do("linalg.matrix_rank", g.x),
    "linalg.pinv": lambda g, do: do("linalg.pinv", g.x),
    "linalg.qr": lambda g, do: do("matmul", *do("linalg.qr", g.square)),
    "linalg.slogdet": lambda g, do: do("linalg.slogdet", g.square)[1],
    "linalg.solve": lambda g, do: do("linalg.solve", g.square, g.y),
    "linalg.svd": lambda g, do: do("linalg.svd", g.x)[1],
    "logical_and": lambda g, do: do("logical_and", g.x > 0, g.whole > 3),
    "logaddexp": lambda g, do: do("logaddexp", g.x, g.v),
    "matmul": lambda g, do: do("matmul", g.x, g.y),
    "max": lambda g, do: do("max", g.x, axis=1),
    "maximum": lambda g, do: do("maximum", g.x, 0.0),
    "meshgrid": lambda g, do: list(do("meshgrid", g.v, g.v, like=g.x)),
    "moveaxis": lambda g, do: do("moveaxis", g.b, 0, -1),
    "multiply": lambda g, do: do("multiply", g.x, g.x),
    "ones": lambda g, do: do("ones", (2, 3), like=g.x),
    "outer": lambda g, do: do("outer", g.x, g.v),
    "pad": lambda g, do: do("pad", g.x, ((1, 0), (0, 2))),
    "repeat": lambda g, do: do("repeat", g.x, 2, axis=0),
    "reshape": lambda g, do: do("reshape", g.x, (2, 6)),
    "roll": lambda g, do: do("roll", g.x, 1, axis=0),
    "searchsorted": lambda g, do: do("searchsorted", do("sort", g.v), g.v),
    "sort": lambda g, do: do("sort", g.x, axis=0),
    "argsort": lambda g, do: do("argsort", g.x, axis=0),
    "squeeze": lambda g, do: do("squeeze", g.x[:1], axis=0),
    "stack": lambda g, do: do("stack", (g.x, g.x), axis=1),
    "sum": lambda g, do: do("sum", g.b, axis=(0, 2)),
    "take": lambda g, do: do("take", g.x, g.array([0, 2]), axis=1),
    "tensordot": lambda g, do: do("tensordot", g.b, g.y, axes=((2,), (0,))),
    "tensordot of a number of axes": lambda g, do: do("tensordot", g.x, g.y, axes=1),
    "tile": lambda g, do: do("tile", g.x, (2, 1)),
    "transpose": lambda g, do: do("transpose", g.b, (2, 0, 1)),
    "tril": lambda g, do: do("tril", g.square),
    "triu": lambda g, do: do("triu", g.square, k=1),
    "vstack": lambda g, do: do("vstack", (g.x, g.x)),
    "where": lambda g, do: do("where", g.x > 0, g.x, 0.0),
    "zeros": lambda g, do: do("zeros", (2, 3), dtype="float32", like=g.x),
    "ar.numpy": lambda g, do: ar.numpy.sum(ar.numpy.exp(g.x), axis=0),
    "ar.reshape": lambda g, do: ar.reshape(g.x, (4, 3)),
    "ar.conj": lambda g, do: ar.conj(g.z),
    "ar.dag": lambda g, do: ar.dag(g.z),
    "ar.real": lambda g, do: ar.real(g.z),
    "ar.imag": lambda g, do: ar.imag(g.z),
    "ar.to_numpy": lambda g, do: ar.to_numpy(g.x).tolist(),
    "inspection": lambda g, do: [ar.shape(g.x), ar.ndim(g.b), ar.size(g.x), ar.get_dtype_name(g.z)],
}
# autoray does not say where what is made is to be made.
MADE = {"arange", "array", "eye", "full", "ones", "zeros"}


@pytest.mark.parametrize("data", ["unit", "z"])
@pytest.mark.parametrize("name", ONE_ARRAY.split())
def test_functions_of_one_array(name, data, device):
    x = arrive(DATA[data], device)
    if data == "z" and name in NOT_OF_COMPLEX:
        with pytest.raises(TypeError):
            ar.do(name, x)
    else:
        assert_matches(ar.do(name, x), getattr(np, name)(DATA[data]), device)


@pytest.mark.parametrize("name", CALLS)
def test_functions(name, device):
    result, expected = CALLS[name](Given(DATA, xp, device), ar.do), CALLS[name](Given(DATA), ar.do)
    assert_matches(result, expected, None if name in MADE else device)


def test_the_backend_is_found(device):
    x = arrive(DATA["x"], device)
    assert ar.infer_backend(x) == "ggarray"
    assert ar.infer_backend_multi(DATA["x"], x) == "ggarray"
    assert ar.get_namespace(x).exp is not None
    assert_matches(ar.get_namespace(x).exp(x), np.exp(DATA["x"]), device)


@pytest.mark.parametrize(
    ("call", "n_products"),
    [
        (lambda a: ar.do("tensordot", a, a, axes=((1,), (1,))), 1),
        (lambda a: ar.do("matmul", a, ar.do("transpose", a)), 1),
        (lambda a: ar.do("einsum", "ij,kj,kl->il", a, a, a, optimize=False), 0),
        (lambda a: ar.do("einsum", "ij,ik->ijk", a, a), 0),
        (lambda a: ar.do("einsum", "ij,ik->jk", a, a), 1),
        (lambda a: ar.do("outer", a, a), 1),
    ],
)
def test_products_run_on_the_device(call, n_products):
    with counting_device() as computed:
        result = call(xp.asarray(DATA["x"], device="counting"))
        assert xp.is_pending(result) == bool(n_products)
        assert_matches(result, call(DATA["x"]), "counting")
        assert len(computed) == n_products


# -- lazy arrays and tracing --------------------------------------------------------------------


def _network(x, y):
    """A small network of products, by autoray's names."""
    hidden = ar.do("tanh", ar.do("matmul", x, y))
    return ar.do("einsum", "ij,kj->i", hidden, ar.do("abs", hidden))


def test_lazy_arrays_compute_on_arrays(device):
    arrays = arrive(DATA["x"], device), arrive(DATA["y"], device)
    lazy = _network(*map(ar.lazy.array, arrays))
    assert lazy.shape == (3,)
    assert lazy.backend == "ggarray"
    assert_matches(lazy.compute(), _network(DATA["x"], DATA["y"]), device)


def test_lazy_decompositions(device):
    x = arrive(DATA["square"], device)
    q, r = ar.do("linalg.qr", ar.lazy.array(x))
    assert_matches((q @ r).compute(), DATA["square"], device)


def test_lazy_functions_take_new_arrays(device):
    x, y = (ar.lazy.Variable(DATA[each].shape, backend="ggarray") for each in ("x", "y"))
    with ar.lazy.shared_intermediates():
        function = _network(x, y).get_function([x, y])
    for factor in (1.0, 0.5):
        expected = _network(DATA["x"] * factor, DATA["y"])
        result = function([arrive(DATA["x"] * factor, device), arrive(DATA["y"], device)])
        assert_matches(result, expected, device)


def test_compiled_functions(device):
    compiled = ar.autojit(_network)
    for factor in (1.0, 2.0):
        arrays = arrive(DATA["x"] * factor, device), arrive(DATA["y"], device)
        assert_matches(compiled(*arrays), _network(DATA["x"] * factor, DATA["y"]), device)


def test_registered_functions_are_called(device):
    def norm(x):
        return xp.linalg.vector_norm(x)

    ar.register_function("ggarray", "linalg.norm", norm)
    x = arrive(DATA["x"], device)
    assert_matches(ar.do("linalg.norm", x), np.linalg.norm(DATA["x"]), device)


# -- what autoray refuses -----------------------------------------------------------------------


def _spellings(x):
    for name in ("arccos", "arctan2", "power", "split", "linalg.expm", "random.uniform"):
        with pytest.raises(ImportError, match="couldn't find function"):
            ar.do(name, x, like="ggarray")


def _places(x):
    lazy = ar.lazy.array(x)
    for result in (ar.do("tensordot", lazy, lazy, axes=2), ar.do("sum", lazy, axis=0)):
        with pytest.raises(TypeError, match="positional"):
            result.compute()


def _device(x):
    assert ar.do("zeros", (2, 2), like=x).device == xp.get_default_device() != x.device


REFUSED = {
    "names of NumPy's that the standard spells otherwise, or has not": _spellings,
    "reductions and tensordot of lazy arrays": _places,
    "devices, where it makes an array": _device,
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what, device):
    REFUSED[what](arrive(DATA["x"], device))


def test_each_refusal_is_tested():
    lines = [each for each in REFUSALS if each.library == "autoray"]
    assert {each.what for each in lines} == set(REFUSED)
    assert {each.version for each in lines} == {ar.__version__}
