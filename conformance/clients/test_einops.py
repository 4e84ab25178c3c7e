"""einops.array_api on ggarray's arrays, against what NumPy's own functions give."""

import einops
import einops.array_api as ea
import numpy as np
import pytest

import ggarray as xp
from conformance.clients.comparing import Given, arrive, assert_matches
from conformance.clients.refusals import REFUSALS

_RNG = np.random.default_rng(0)
DATA = {
    "x": _RNG.standard_normal((2, 3, 4)),
    "single": _RNG.standard_normal((2, 3, 4)).astype(np.float32),
    "whole": _RNG.integers(1, 5, (2, 3, 4)),
    "images": _RNG.standard_normal((2, 8, 6, 3)),
}

# A pattern, the lengths it names, and NumPy's way to the same.
PATTERNS = [
    ("a b c -> c b a", {}, lambda x: x.transpose(2, 1, 0)),
    ("a b c -> b (a c)", {}, lambda x: x.transpose(1, 0, 2).reshape(3, 8)),
    ("a b c -> (c a b)", {}, lambda x: x.transpose(2, 0, 1).ravel()),
    ("a b (c d) -> a d b c", {"d": 2}, lambda x: x.reshape(2, 3, 2, 2).transpose(0, 3, 1, 2)),
    ("a ... -> ... a", {}, lambda x: np.moveaxis(x, 0, -1)),
    ("... c -> (...) c", {}, lambda x: x.reshape(6, 4)),
    ("a b c -> a 1 b c 1", {}, lambda x: x[:, None, :, :, None]),
    ("(a a2) b c -> a a2 b c", {"a2": 1}, lambda x: x[:, None]),
    ("a b c -> a b c", {}, lambda x: x),
]
REDUCTIONS = [
    ("a b c -> a c", {}, lambda x, f: f(x, axis=1)),
    ("a b c -> ", {}, lambda x, f: f(x)),
    ("a b c -> c a", {}, lambda x, f: f(x, axis=1).T),
    ("a b (c d) -> a d b", {"d": 2}, lambda x, f: f(x.reshape(2, 3, 2, 2), axis=2).swapaxes(1, 2)),
    ("a b c -> a () c", {}, lambda x, f: f(x, axis=1, keepdims=True)),
    ("... c -> ...", {}, lambda x, f: f(x, axis=-1)),
]
REPEATS = [
    ("a b c -> a b c k", {"k": 2}, lambda x: np.repeat(x[..., None], 2, axis=-1)),
    ("a b c -> (k a) b c", {"k": 3}, lambda x: np.tile(x, (3, 1, 1))),
    ("a b c -> a (b k) c", {"k": 2}, lambda x: np.repeat(x, 2, axis=1)),
    ("a b c -> c (a k) b", {"k": 2}, lambda x: np.repeat(x.transpose(2, 0, 1), 2, axis=1)),
]
names = pytest.mark.parametrize("name", ["x", "single", "whole"])


@names
@pytest.mark.parametrize(("pattern", "lengths", "by_numpy"), PATTERNS)
def test_rearrange(pattern, lengths, by_numpy, name, device):
    x = getattr(Given(DATA, xp, device), name)
    assert_matches(ea.rearrange(x, pattern, **lengths), by_numpy(DATA[name]), device)


@pytest.mark.parametrize(
    ("reduction", "name"),
    [
        *[(reduction, "whole") for reduction in ("sum", "max", "min", "prod")],
        *[(reduction, "single") for reduction in ("sum", "mean", "max", "min", "prod")],
        *[(reduction, "x") for reduction in ("sum", "mean", "max", "min", "prod")],
    ],
)
@pytest.mark.parametrize(("pattern", "lengths", "by_numpy"), REDUCTIONS)
def test_reduce(pattern, lengths, by_numpy, reduction, name, device):
    x = getattr(Given(DATA, xp, device), name)
    expected = by_numpy(DATA[name], getattr(np, reduction))
    tolerance = 1e-5 if name == "single" else 1e-12
    assert_matches(
        ea.reduce(x, pattern, reduction, **lengths), expected, device, tolerance, tolerance
    )


@names
@pytest.mark.parametrize(("pattern", "lengths", "by_numpy"), REPEATS)
def test_repeat(pattern, lengths, by_numpy, name, device):
    x = getattr(Given(DATA, xp, device), name)
    assert_matches(ea.repeat(x, pattern, **lengths), by_numpy(DATA[name]), device)


def test_lists_are_stacked(device):
    x, y = DATA["x"], DATA["x"] + 1
    arrays = [arrive(each, device) for each in (x, y)]
    result = ea.rearrange(arrays, "n a b c -> n c (a b)")
    assert_matches(result, np.stack([x, y]).transpose(0, 3, 1, 2).reshape(2, 4, 6), device)


def test_pack_and_unpack(device):
    parts = [DATA["x"], DATA["x"][:, :, 0], DATA["x"][:, 0, 0]]
    packed, shapes = ea.pack([arrive(each, device) for each in parts], "a *")
    assert_matches(packed, np.concatenate([each.reshape(2, -1) for each in parts], axis=1), device)
    assert_matches(ea.unpack(packed, shapes, "a *"), parts, device)


def test_asnumpy(device):
    x = ea.asnumpy(arrive(DATA["x"], device))
    assert type(x) is np.ndarray
    np.testing.assert_array_equal(x, DATA["x"])


def test_views_of_pending_arrays_are_pending(device):
    x = arrive(DATA["x"], device)
    result = ea.rearrange(x, "a b c -> a (b c)")
    assert xp.is_pending(x)
    assert xp.is_pending(result)
    assert_matches(result, DATA["x"].reshape(2, 12), device)


def test_attention(device):
    """Heads apart, products of batches, heads together: what einops is used for."""

    def attend(x, rearrange):
        heads = rearrange(x, "b t (h d) -> b h t d", h=2)
        weights = heads @ rearrange(heads, "b h t d -> b h d t")
        return rearrange(weights @ heads, "b h t d -> b t (h d)")

    result = attend(arrive(DATA["x"], device), ea.rearrange)
    assert_matches(result, attend(DATA["x"], einops.rearrange), device)


def test_pooling_of_images(device):
    result = ea.reduce(
        arrive(DATA["images"], device), "b (h h2) (w w2) c -> b c h w", "max", h2=2, w2=3
    )
    blocks = DATA["images"].reshape(2, 4, 2, 2, 3, 3)
    assert_matches(result, blocks.max(axis=(2, 4)).transpose(0, 3, 1, 2), device)


def test_wrong_patterns_name_the_shape(device):
    with pytest.raises(einops.EinopsError, match=r"\(2, 3, 4\)"):
        ea.rearrange(arrive(DATA["x"], device), "a b -> b a")


# -- what einops refuses ------------------------------------------------------------------------


def _backends(x):
    for call in (
        lambda: einops.rearrange(x, "a b c -> c b a"),
        lambda: einops.reduce(x, "a b c -> a", "sum"),
        lambda: einops.einsum(x, x, "a b c, a b c -> a"),
    ):
        with pytest.raises(RuntimeError, match="Tensor type unknown"):
            call()


REFUSED = {"einops.rearrange and the others outside einops.array_api": _backends}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what, device):
    REFUSED[what](arrive(DATA["x"], device))


def test_each_refusal_is_tested():
    lines = [each for each in REFUSALS if each.library == "einops"]
    assert {each.what for each in lines} == set(REFUSED)
    assert {each.version for each in lines} == {einops.__version__}
