"""Memory that ggarray shares with torch and jax through DLPack, both ways and without a copy."""

import numpy as np
import pytest

import ggarray as xp
from conformance.clients.comparing import arrive, assert_matches

_RNG = np.random.default_rng(7)
VALUE = _RNG.standard_normal((4, 6))
DTYPES = (np.int8, np.uint8, np.int32, np.int64, np.float16, np.float32, np.float64, np.complex64)


def place(x):
    """The address of an array's first element."""
    return np.asarray(x).__array_interface__["data"][0]


@pytest.fixture(params=DTYPES, ids=lambda dtype: dtype.__name__)
def value(request):
    """Numbers of each dtype that both sides have."""
    return (9 * abs(VALUE)).astype(request.param)


# -- torch --------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def torch():
    return pytest.importorskip("torch")


def test_torch_reads_and_writes_our_memory(torch, value, device):
    x = xp.asarray(value, device=device)
    tensor = torch.from_dlpack(x)
    assert tensor.data_ptr() == place(x)
    assert tuple(tensor.shape) == x.shape
    tensor[0] = 3
    value[0] = 3
    assert_matches(x, value, device, 0, 0)
    x[1] = 4
    np.testing.assert_array_equal(tensor[1].numpy(), np.full(6, 4, value.dtype))


def test_we_read_and_write_torch_memory(torch, value, device):
    tensor = torch.from_numpy(value.copy())
    x = xp.from_dlpack(tensor, device=device)
    assert place(x) == tensor.data_ptr()
    assert_matches(x, value, device, 0, 0)
    tensor[0] = 3
    value[0] = 3
    assert_matches(x, value, device, 0, 0)
    x[1] = 4
    np.testing.assert_array_equal(tensor[1].numpy(), np.full(6, 4, value.dtype))


def test_pending_arrays_and_views_in_torch(torch, device):
    x = arrive(VALUE, device)
    np.testing.assert_array_equal(torch.from_dlpack(x).numpy(), VALUE)
    part = x.T[1:, ::2]
    tensor = torch.from_dlpack(part)
    assert tensor.data_ptr() == place(part)
    np.testing.assert_array_equal(tensor.numpy(), VALUE.T[1:, ::2])


def test_products_of_torch_memory_are_of_what_it_was(torch, device):
    tensor = torch.from_numpy(VALUE.copy())
    x = xp.from_dlpack(tensor, device=device)
    product = x @ x.T
    tensor.zero_()
    assert_matches(product, VALUE @ VALUE.T, device)


def test_products_recorded_before_torch_writes_are_of_what_was(torch, device):
    x = xp.asarray(VALUE, device=device)
    product = x @ x.T
    torch.from_dlpack(x).zero_()
    assert_matches(product, VALUE @ VALUE.T, device)
    assert_matches(x, np.zeros_like(VALUE), device)


def test_products_wait_again_when_torch_has_let_go(torch, device):
    x = xp.asarray(VALUE, device=device)
    tensor = torch.from_dlpack(x)
    assert not xp.is_pending(x @ x.T)
    del tensor
    assert xp.is_pending(x @ x.T)


def test_memory_outlives_the_array_that_gave_it(torch, device):
    tensor = torch.from_dlpack(arrive(VALUE, device))
    np.testing.assert_array_equal((tensor + 0).numpy(), VALUE)


def test_copies_from_torch(torch, device):
    tensor = torch.from_numpy(VALUE.copy())
    for x in (xp.from_dlpack(tensor, device=device, copy=True), xp.asarray(tensor, device=device)):
        assert place(x) != tensor.data_ptr()
        assert_matches(x, VALUE, device, 0, 0)
        assert xp.is_pending(x @ x.T)


def test_tensors_that_need_gradients_are_not_shared(torch):
    tensor = torch.ones(3, requires_grad=True)
    with pytest.raises(BufferError):
        xp.from_dlpack(tensor)


# -- jax ----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def jnp():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax.numpy


def aligned(value):
    """Return a copy of an array at an address that jax does not have to copy from."""
    memory = np.empty(value.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copied = memory[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    copied[...] = value
    return copied


def test_jax_reads_our_memory(jnp, value, device):
    x = xp.from_dlpack(aligned(value), device=device)
    array = jnp.from_dlpack(x)
    assert array.unsafe_buffer_pointer() == place(x)
    assert array.dtype == value.dtype
    np.testing.assert_array_equal(np.asarray(array), value)


def test_we_read_jax_memory_which_nobody_may_write(jnp, value, device):
    array = jnp.asarray(value)
    x = xp.from_dlpack(array, device=device)
    assert place(x) == array.unsafe_buffer_pointer()
    assert_matches(x, value, device, 0, 0)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 3
    copied = xp.from_dlpack(array, device=device, copy=True)
    copied[0] = 3
    np.testing.assert_array_equal(np.asarray(array), value)


def test_pending_arrays_and_products_with_jax(jnp, device):
    x = arrive(VALUE, device)
    array = jnp.from_dlpack(x)
    np.testing.assert_array_equal(np.asarray(array), VALUE)
    product = xp.from_dlpack(array @ array.T, device=device) @ (x @ x.T)
    gram = VALUE @ VALUE.T
    assert_matches(product, gram @ gram, device)
