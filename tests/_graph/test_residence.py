"""Copies of constants on devices: made once, dropped with the constant or by the limit."""

import gc

import numpy as np
import pytest
from doubles import others
from recorded import constant, quantized
from values import numbers

import ggarray as xp
from ggarray import _weight_cache
from ggarray._graph import residence

VALUE = numbers((16, 16), np.float32)
BYTES = VALUE.nbytes


@pytest.fixture(autouse=True)
def none_kept():
    residence.trim(0)
    yield
    residence.trim(0)


@pytest.fixture(params=["far", "late", "staged", "narrow"])
def device(request):
    found = others()[request.param]
    found.happened.clear()
    return found


def weights_on(device, seed=0):
    values = numbers((16, 16), np.float32, seed)
    return constant(values, device.name), values


def product_with(weights, device):
    """Compute a product with weights; return what it is, and the bytes that were sent for it."""
    before = device.happened["set_tensor"]
    a = xp.ones((1, 16), dtype=xp.float32, device=device.name)
    value = np.asarray(a @ weights)
    return value, device.happened["set_tensor"] - before - 64  # less those of `a`


def check(weights, values, device, sent):
    value, found = product_with(weights, device)
    np.testing.assert_allclose(value, np.ones((1, 16)) @ values.astype(float), rtol=1e-4, atol=1e-5)
    assert found == sent


def test_a_constant_is_sent_once(device):
    weights, values = weights_on(device)
    for sent in (BYTES, 0, 0):
        check(weights, values, device, sent)
    assert residence.resident_bytes() == BYTES
    assert residence.residents(weights._np) == {device.name}


def test_its_transpose_is_another(device):
    """The layout there is row-major."""
    weights, values = weights_on(device)
    check(weights, values, device, BYTES)
    check(weights.T, values.T, device, BYTES)
    check(weights.T, values.T, device, 0)


def test_quantized_weights_are_sent_as_blocks(device):
    weights, decoded = quantized(numbers((32, 32), float), device=device.name)
    for sent in (32 * 34, 0):
        before = device.happened["set_tensor"]
        a = xp.ones((1, 32), dtype=xp.float32, device=device.name)
        value = np.asarray(a @ weights.mT)
        assert device.happened["set_tensor"] - before == 128 + sent
        np.testing.assert_allclose(value, np.ones((1, 32)) @ decoded.T, rtol=1e-4, atol=1e-4)


def test_two_devices_have_copies_of_their_own():
    far, late = others()["far"], others()["late"]
    values = np.frombuffer(VALUE.tobytes(), np.float32).reshape(16, 16)
    for device in (far, late):
        for sent in (BYTES, 0):
            check(xp.asarray(values, device=device.name), VALUE, device, sent)
    assert residence.residents(values) == {"far", "late"}
    assert residence.resident_bytes() == 2 * BYTES


def test_other_forms_of_a_constant_are_no_copies(device):
    weights, values = weights_on(device)
    check(weights, values, device, BYTES)
    _weight_cache.keep(weights._np, "decoded", np.zeros(100))
    assert residence.resident_bytes() == BYTES
    assert residence.residents(weights._np) == {device.name}


def test_a_copy_goes_with_the_constant(device):
    weights, values = weights_on(device)
    check(weights, values, device, BYTES)
    freed = device.happened["free"]
    del weights
    gc.collect()
    assert residence.resident_bytes() == 0
    assert device.happened["free"] - freed == BYTES
    assert _weight_cache._kept == {}


def test_constants_that_come_and_go_at_one_address(device):
    for seed in range(20):
        weights, values = weights_on(device, seed)
        check(weights, values, device, BYTES)
        del weights
    assert residence.resident_bytes() == 0


def test_those_used_longest_ago_go_first():
    device = others()["far"]
    with xp.options(weight_cache=2 * BYTES):
        first, second, third = (weights_on(device, seed) for seed in range(3))
        for weights, sent in ((first, BYTES), (second, BYTES), (first, 0), (third, BYTES)):
            check(*weights, device, sent)
        assert residence.resident_bytes() == 2 * BYTES
        for weights, sent in ((first, 0), (third, 0), (second, BYTES)):
            check(*weights, device, sent)


def test_what_is_larger_than_the_limit_is_sent_each_time(device):
    weights, values = weights_on(device)
    freed = device.happened["free"]
    with xp.options(weight_cache=BYTES - 1):
        for _ in range(2):
            check(weights, values, device, BYTES)
    assert residence.resident_bytes() == 0
    gc.collect()
    assert device.happened["free"] - freed >= 2 * BYTES


def test_a_lower_limit_holds_from_the_next_evaluation_with_constants(device):
    weights, values = weights_on(device)
    other, others_values = weights_on(device, 1)
    for each in ((weights, values), (other, others_values)):
        check(*each, device, BYTES)
    with xp.options(weight_cache=BYTES):
        assert residence.resident_bytes() == 2 * BYTES
        check(other, others_values, device, 0)
        assert residence.resident_bytes() == BYTES
    check(weights, values, device, BYTES)


def test_each_constant_has_memory_of_its_own(device):
    weights = [weights_on(device, seed) for seed in range(3)]
    a = xp.ones((1, 16), dtype=xp.float32, device=device.name)
    products = [a @ each for each, _ in weights]
    xp.evaluate(*products)
    assert residence.resident_bytes() == 3 * BYTES
    expected = [np.ones((1, 16)) @ values.astype(float) for _, values in weights]
    np.testing.assert_allclose([*map(np.asarray, products)], expected, rtol=1e-4, atol=1e-5)
    weights.pop(0)
    gc.collect()
    assert residence.resident_bytes() == 2 * BYTES
    weights.clear()
    gc.collect()
    assert residence.resident_bytes() == 0


@pytest.mark.parametrize("what", ["alloc", "init_tensor", "set_tensor"])
def test_an_error_while_copying_keeps_nothing(what):
    device = others()["far"]
    weights, values = weights_on(device)
    a = xp.ones((1, 16), dtype=xp.float32, device="far")
    product = a @ weights
    xp.reserve(product)  # so that what fails is the memory of the weights
    device.errors[what] = MemoryError("full")
    with pytest.raises(MemoryError) as caught:
        xp.evaluate(product)
    assert f"recorded at {__file__}" in caught.value.__notes__[0]
    assert xp.is_pending(product)
    assert residence.resident_bytes() == 0
    assert residence.residents(weights._np) == frozenset()
    check(weights, values, device, BYTES)


def test_copies_in_use_are_not_freed_by_the_limit():
    """A handler computes with other weights while these are in use."""
    device = others()["far"]
    (weights, values), (other, others_values) = weights_on(device), weights_on(device, 1)
    called = []

    def before():
        if not called:
            called.append(None)
            check(other, others_values, device, BYTES)

    device.backend.before = before
    try:
        with xp.options(weight_cache=BYTES):
            a = xp.ones((1, 16), dtype=xp.float32, device="far")
            np.testing.assert_allclose(
                np.asarray(a @ weights), np.ones((1, 16)) @ values, rtol=1e-4, atol=1e-5
            )
    finally:
        device.backend.before = None
    assert called


def test_a_handler_that_needs_the_same_constant_while_it_is_sent(monkeypatch):
    device = others()["far"]
    here = [weights_on(device)]
    called = []
    happens = device.happens

    def interrupted(what, nbytes=1):
        if what == "set_tensor" and nbytes == BYTES and not called:
            called.append(None)
            check(*here[0], device, BYTES)
        happens(what, nbytes)

    monkeypatch.setattr(device, "happens", interrupted)
    product_with(here[0][0], device)
    assert called
    check(*here[0], device, 0)
    here.clear()
    gc.collect()
    assert residence.resident_bytes() == 0
