"""opt_einsum contracting ggarray's arrays, against NumPy's einsum; products run on the device."""

import numpy as np
import opt_einsum as oe
import pytest
from opt_einsum.testing import build_views, rand_equation

import ggarray as xp
from conformance.clients.comparing import arrive, assert_matches
from conformance.clients.counting import counting_device

EQUATIONS = [
    *["ij,jk->ik", "ij,kj->ik", "ij,jk->ki", "ij,jk", "ij,ij->", "i,i", "ij,j->i"],  # products
    *["i,j->ij", "ij,k->kij", "i,j,k->ijk", "ij,kl->ijkl", "a,b,c,d->dcba"],  # outer products
    *[
        "bij,bjk->bik",
        "bij,bjk->kbi",
        "abij,abjk->abik",
        "bij,bj->bi",
        "bhqd,bhkd->bhqk",
    ],  # batches
    *["ii->i", "ii->", "iij->j", "ii,i->i", "ijj,jk->ik", "ij,ji->"],  # diagonals and traces
    *["ij->ji", "ijk->kji", "ij->j", "ij->", "ijk->"],  # one operand
    *["ai,bi,ci->abc", "ij,ik,il->jkl", "ia,ib,ic,id->abcd", "i,i,i->"],  # hyperedges
    *["ij,jk,kl->il", "ij,jk,kl,lm->im", "ea,fb,abcd,gc,hd->efgh", "ab,bc,ca->"],  # chains, loops
    *["i...,i...->...", "...ij,...jk->...ik", "...,i->...i"],
    *["ij,jk,->ik", ",->", "i,->i"],
]
PATHS = ["auto", "greedy", "optimal", "dp", "branch-2", "random-greedy", False, True]


def operands(equation, device, dtype=np.float64):
    """The same random operands for NumPy and for us; an ellipsis is of two axes."""
    plain = [np.asarray(each, dtype) for each in build_views(equation.replace("...", "gh"))]
    return plain, [arrive(each, device) for each in plain]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_contractions(equation, device):
    plain, arrays = operands(equation, device)
    assert_matches(oe.contract(equation, *arrays), np.einsum(equation, *plain), device)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int64])
@pytest.mark.parametrize("equation", ["ij,jk,kl->il", "bij,bjk->bik", "ii,i->i", "ai,bi,ci->abc"])
def test_dtypes(equation, dtype, device):
    shapes = [each.shape for each in build_views(equation)]
    plain = [np.random.default_rng(at).standard_normal(each) * 9 for at, each in enumerate(shapes)]
    plain = [(each + 1j * each if dtype is np.complex128 else each).astype(dtype) for each in plain]
    result = oe.contract(equation, *(arrive(each, device) for each in plain))
    tolerance = 1e-4 if dtype is np.float32 else 1e-10
    expected = np.einsum(equation, *plain, optimize=True)
    assert_matches(result, expected, device, tolerance, tolerance * float(np.abs(expected).max()))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("equation", ["ij,jk,kl,lm->im", "ea,fb,abcd,gc,hd->efgh"])
def test_paths(equation, path, device):
    plain, arrays = operands(equation, device)
    result = oe.contract(equation, *arrays, optimize=path)
    assert_matches(result, np.einsum(equation, *plain, optimize=True), device)


@pytest.mark.parametrize("seed", range(40))
def test_random_networks(seed, device):
    equation, shapes = rand_equation(5, 3, n_out=2, d_max=4, seed=seed)
    rng = np.random.default_rng(seed)
    plain = [rng.standard_normal(shape) for shape in shapes]
    result = oe.contract(equation, *(arrive(each, device) for each in plain))
    assert_matches(result, np.einsum(equation, *plain, optimize="greedy"), device, 1e-9, 1e-9)


@pytest.mark.parametrize("backend", ["auto", "ggarray"])
def test_expressions(backend, device):
    plain, arrays = operands("ij,jk,kl->il", device)
    expression = oe.contract_expression("ij,jk,kl->il", *(each.shape for each in plain))
    assert_matches(expression(*arrays, backend=backend), np.linalg.multi_dot(plain), device)


def test_expressions_with_constants(device):
    plain, arrays = operands("ij,jk,kl->il", device)
    expression = oe.contract_expression(
        "ij,jk,kl->il", plain[0].shape, arrays[1], arrays[2], constants=[1, 2]
    )
    for factor in (1.0, 2.0):
        expected = np.linalg.multi_dot(plain) * factor
        assert_matches(expression(arrays[0] * factor), expected, device)


def test_shared_intermediates(device):
    plain, arrays = operands("ij,jk,kl->il", device)
    with oe.shared_intermediates() as cache:
        first = oe.contract("ij,jk,kl->il", *arrays)
        size = len(cache)
        second = oe.contract("ij,jk,kl->il", *arrays)
    assert len(cache) == size
    for result in (first, second):
        assert_matches(result, np.linalg.multi_dot(plain), device)


def test_numbers_instead_of_letters(device):
    plain, (x, y) = operands("ij,jk->ik", device)
    assert_matches(oe.contract(x, [0, 1], y, [1, 2], [0, 2]), plain[0] @ plain[1], device)


def test_the_path_needs_no_values(device):
    _, arrays = operands("ij,jk,kl->il", device)
    path, info = oe.contract_path("ij,jk,kl->il", *arrays)
    assert len(path) == 2
    assert info.opt_cost > 0
    assert all(map(xp.is_pending, arrays))


PRODUCTS = {
    "ij,jk->ik": 1,
    "ij,jk,kl->il": 2,
    "bij,bjk->bik": 1,
    "bhqd,bhkd,bhke->bhqe": 2,
    "i,j->ij": 1,
    "ij,ij->": 1,
    "ea,fb,abcd,gc,hd->efgh": 4,
}


@pytest.mark.parametrize("equation", PRODUCTS)
def test_products_wait_and_run_on_the_device(equation):
    plain, _ = operands(equation, "cpu")
    with counting_device() as computed:
        result = oe.contract(equation, *(xp.asarray(each, device="counting") for each in plain))
        assert xp.is_pending(result)
        assert len(computed) < PRODUCTS[equation]
        assert_matches(result, np.einsum(equation, *plain, optimize=True), "counting")
        assert len(computed) == PRODUCTS[equation]
