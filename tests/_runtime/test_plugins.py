"""Backends of others: what is registered, what is refused, who computes."""

import threading

import numpy as np
import pytest
from doubles import NumpyDevice, NumpyRegistry
from scripts import run_script

import ggarray as xp
from ggarray._runtime import plugins
from ggarray.interface import API_VERSION, Op, Registry

A = np.arange(12.0).reshape(3, 4)
B = np.arange(20.0).reshape(4, 5) - 7


class Devices(Registry):
    """Some devices."""

    name = "some"

    def __init__(self, *devices):
        self._devices = devices

    def devices(self):
        return self._devices


class Choosy(NumpyDevice):
    """Computes products of at most so many rows; keeps what it was asked about."""

    def __init__(self, name, rows):
        super().__init__(name)
        self.rows = rows
        self.asked = []

    def supports_op(self, node):
        self.asked.append(node)
        return super().supports_op(node) and node.out.shape[-2] <= self.rows


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Forget after the test what it has registered."""
    monkeypatch.setattr(plugins, "_devices", dict(plugins.backend_devices()))
    monkeypatch.setattr(plugins, "_streams", dict(plugins._streams))
    yield
    plugins.candidates.cache_clear()


@pytest.mark.parametrize("version", [API_VERSION - 1, API_VERSION + 1])
def test_another_version(version):
    registry = Devices(NumpyDevice("of another version"))
    registry.api_version = version
    before = xp.devices()
    with pytest.raises(xp.BackendError, match="'some'") as caught:
        xp.register_backend(registry)
    assert str(version) in str(caught.value)
    assert str(API_VERSION) in str(caught.value)
    assert xp.devices() == before


@pytest.mark.parametrize("name", ["cpu", "blas", "counting"])
def test_a_name_that_is_taken(name):
    before = xp.devices()
    known = plugins.backend_devices()[name]
    with pytest.raises(ValueError, match=f"'some'.*{name!r}"):
        xp.register_backend(Devices(NumpyDevice("taken with it"), NumpyDevice(name)))
    assert xp.devices() == before
    assert plugins.backend_devices()[name] is known
    with pytest.raises(ValueError, match="unknown device"):
        xp.Device("taken with it")


def test_registering_twice():
    registry = Devices(NumpyDevice("twice"))
    xp.register_backend(registry)
    with pytest.raises(ValueError, match="'twice'"):
        xp.register_backend(registry)


def test_a_registry_that_fails():
    class Broken(Registry):
        name = "broken"

        def devices(self):
            raise OSError("no driver")

    before = xp.devices()
    with pytest.raises(OSError, match="no driver"):
        xp.register_backend(Broken())
    assert xp.devices() == before


@pytest.mark.parametrize("what", [NumpyRegistry, NumpyDevice("a device"), "numpy", None])
def test_what_is_no_registry(what):
    before = xp.devices()
    with pytest.raises(TypeError, match="Registry object"):
        xp.register_backend(what)
    assert xp.devices() == before


def test_what_is_no_device():
    before = xp.devices()
    with pytest.raises(TypeError, match=r"'some'.*NumpyDevice'> is no BackendDevice"):
        xp.register_backend(Devices(NumpyDevice("beside it"), NumpyDevice))
    assert xp.devices() == before


def test_a_device_without_a_description():
    before = xp.devices()

    class Undescribed(NumpyDevice):
        @property
        def description(self):
            raise OSError("no driver")

    with pytest.raises(OSError, match="no driver"):
        xp.register_backend(Devices(Undescribed("undescribed")))
    assert xp.devices() == before


def test_who_registers_a_backend_does_not_ask_for_its_score():
    class Unsuited(Devices):
        def score(self):
            return 0

    xp.register_backend(Unsuited(NumpyDevice("unsuited")))
    assert xp.devices()[-1] == "unsuited"


def test_a_registered_device_computes():
    device = NumpyDevice("registered")
    before = xp.devices()
    xp.register_backend(Devices(device, NumpyDevice("registered with it")))
    assert xp.devices() == (*before, "registered", "registered with it")
    a, b = xp.asarray(A, device="registered"), xp.asarray(B, device="registered")
    np.testing.assert_array_equal(np.asarray(a @ b), A @ B)
    outer = xp.linalg.outer(a[0], b[0])
    np.testing.assert_array_equal(np.asarray(outer), np.outer(A[0], B[0]))
    assert outer.device == "registered"
    assert device.backend.computed == [Op.MATMUL, Op.OUT_PROD]


def test_no_device_at_all():
    before = xp.devices()
    xp.register_backend(Devices())
    assert xp.devices() == before


@pytest.mark.parametrize("lazy", [True, False])
def test_what_a_device_refuses_is_computed_by_the_cpu(lazy):
    device = Choosy("picky", rows=0)
    xp.register_backend(Devices(device))
    a, b = xp.asarray(A, device="picky"), xp.asarray(B, device="picky")
    with xp.options(lazy=lazy):
        product = a @ b
        chain = product @ b.T - xp.linalg.outer(a[:, 0], b[:, 0])
    expected = A @ B @ B.T - np.outer(A[:, 0], B[:, 0])
    np.testing.assert_array_equal(np.asarray(chain), expected)
    assert product.device == chain.device == "picky"
    assert len(device.asked) >= 3
    assert device.backend.computed == []


def test_each_product_of_a_plan_has_its_own_backend():
    device = Choosy("picky", rows=3)
    xp.register_backend(Devices(device))
    a, b = xp.asarray(A, device="picky"), xp.asarray(B, device="picky")
    small = a @ b  # 3 rows
    large = b @ small.T  # 4 rows
    again = a @ large  # 3 rows
    np.testing.assert_array_equal(np.asarray(again), A @ B @ (A @ B).T)
    assert device.backend.computed == [Op.MATMUL, Op.MATMUL]


def test_what_a_device_is_asked_about():
    device = Choosy("picky", rows=9)
    xp.register_backend(Devices(device))
    a, b = xp.asarray(A, device="picky"), xp.asarray(B, device="picky")
    weights = xp.quantize(xp.ones((5, 32), dtype=xp.float32, device="picky"), xp.q8_0)
    device.asked.clear()
    xp.evaluate((a @ b).T @ a[:, 1])
    xp.evaluate(xp.linalg.outer(a[:, 0], b[0]) + a @ b)
    xp.evaluate(weights @ xp.ones((32, 2), dtype=xp.float32, device="picky"))
    shapes = {tuple(x.shape for x in (*node.operands, node.out)) for node in device.asked}
    large = {each for each in shapes if each[-1] == (4096, 4096)}  # to say why it refuses
    assert shapes - large == {
        ((3, 4), (4, 5), (3, 5)),
        ((5, 3), (3, 1), (5, 1)),  # a vector is a column
        ((3, 1), (5, 1), (3, 5)),  # two of an outer product are, too
        ((5, 32), (32, 2), (5, 2)),
    }
    for node in device.asked:
        for x in (*node.operands, node.out):
            assert x.ndim == len(x.shape)
            assert x.size == np.prod(x.shape)
            if x.dtype != xp.q8_0:
                assert x.dtype == node.out.dtype
                assert len(x.strides) == x.ndim


def test_a_stream_is_made_once():
    made = []

    class Slow(NumpyDevice):
        def init_backend(self, params=""):
            made.append(params)
            return self.backend

    xp.register_backend(Devices(Slow("slow")))
    assert made == []
    x = xp.ones((2, 2), device="slow")
    products = [x @ x for _ in range(4)]
    threads = [threading.Thread(target=xp.evaluate, args=[each]) for each in products]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [""]
    assert all(float(each[0, 0]) == 2 for each in products)


def test_procedures():
    assert NumpyRegistry().get_proc_address("get_features") is None

    class Able(NumpyRegistry):
        def procedures(self):
            return {"answer": lambda: 42}

    assert Able().get_proc_address("answer")() == 42
    assert Able().get_proc_address("question") is None


def test_nothing_is_looked_for_at_import():
    script = """
        import sys
        import ggarray as xp
        print([name for name in sys.modules if name.startswith("ggarray.backends.")])
        xp.devices()
        print("ggarray.backends.cpu" in sys.modules)
    """
    assert run_script(script).splitlines() == ["[]", "True"]
