"""The judge of products: it admits what rounding gives, and nothing else."""

import numpy as np
import pytest

import ggarray as xp
from conformance.standard.references import (
    FLOATS,
    HALVES,
    INTEGERS,
    eps_of,
    numbers,
    rounded,
    wide,
    wrapped,
)
from conformance.standard.rounding import Approximate


def on_cpu(value):
    return xp.asarray(value, device="cpu", copy=True)


def factors(dtype):
    return numbers(dtype, (6, 40), 1), numbers(dtype, (40, 5), 2)


@pytest.mark.parametrize("dtype", FLOATS + HALVES, ids=str)
def test_products_within_and_beyond_the_bound(dtype):
    a, b = factors(dtype)
    product = Approximate(a) @ Approximate(b)
    exact = rounded(wide(a) @ wide(b), dtype)
    product.check(on_cpu(exact), "cpu")
    scale = np.abs(wide(a)) @ np.abs(wide(b))
    assert (product.error <= 200 * eps_of(dtype) * scale).all()  # not so wide that all fits
    for factor, fits in ((0.5, True), (2.5, False)):
        value = exact.copy()
        value[3, 2] = rounded(wide(exact)[3, 2] + factor * product.error[3, 2], dtype)
        if fits:
            product.check(on_cpu(value), "cpu")
            continue
        with pytest.raises(AssertionError, match="1 of 30 wrong"):
            product.check(on_cpu(value), "cpu")


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_halves_are_rounded_once(dtype):
    a, b = factors(dtype)
    product = Approximate(a) @ Approximate(b)
    step_by_step = np.zeros((6, 5), dtype)
    for k in range(40):
        step_by_step += a[:, k : k + 1] * b[k : k + 1]
    with pytest.raises(AssertionError, match="wrong"):
        product.check(on_cpu(step_by_step), "cpu")


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_are_exact(dtype):
    a, b = factors(dtype)
    exact = wrapped(wide(a) @ wide(b), dtype)
    product = Approximate(a) @ Approximate(b)
    product.check(on_cpu(exact), "cpu")
    exact[3, 2] ^= 1
    with pytest.raises(AssertionError):
        product.check(on_cpu(exact), "cpu")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x.to_device("blas"),
        lambda x: xp.astype(x, xp.float64),
        lambda x: x[:, :4],
        lambda x: xp.where(x == x[0, 0], xp.nan, x),
        lambda x: xp.where(x == x[0, 0], xp.inf, x),
        np.asarray,
    ],
)
def test_what_is_not_as_expected_is_refused(wrong):
    a, b = factors(np.dtype(np.float32))
    product = Approximate(a) @ Approximate(b)
    x = on_cpu(a) @ on_cpu(b)
    product.check(x, "cpu")
    with pytest.raises(AssertionError):
        product.check(wrong(x), "cpu")
