"""Devices are values; the default one is a choice of the process, a thread or a task."""

import asyncio
import base64
import copy
import pickle
import threading

import numpy as np
import pytest
from scripts import run_script

import ggarray as xp
from ggarray._runtime import devices as module

VENDOR = next(str(device) for device in xp.devices() if device.startswith("blas:"))


@pytest.fixture
def process(monkeypatch):
    """Let a test set the process's default device."""
    monkeypatch.setattr(module, "_process", xp.Device("cpu"))


def test_devices():
    found = xp.devices()
    assert type(found) is tuple
    assert all(type(device) is xp.Device for device in found)
    assert found[0] == "cpu"
    assert len(set(found)) == len(found)
    assert {"cpu", "blas", VENDOR, "counting", "failing"} <= set(found)


@pytest.mark.parametrize("name", ["cpu", "blas", "counting"])
def test_a_device_is_a_value(name):
    device = xp.Device(name)
    assert device == name
    assert name == device
    assert device != "failing"
    assert hash(device) == hash(name)
    assert {name: 1}[device] == 1
    assert {device: 1}[name] == 1
    assert repr(device) == f"ggarray.Device({name!r})"
    assert str(device) == f"{device}" == name
    assert type(str(device)) is str
    assert xp.Device(name) is xp.Device(device) is device
    assert copy.copy(device) is copy.deepcopy(device) is device


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol):
    device = xp.Device("cpu")
    assert pickle.loads(pickle.dumps(device, protocol)) is device


def test_an_array_has_the_device_itself():
    assert xp.asarray(1.0, device="counting").device is xp.Device("counting")


TAKES_A_DEVICE = {
    "Device": xp.Device,
    "set_default_device": xp.set_default_device,
    "default_device": lambda name: xp.default_device(name).__enter__(),
    "asarray": lambda name: xp.asarray(1, device=name),
    "zeros": lambda name: xp.zeros(1, device=name),
    "to_device": lambda name: xp.zeros(1).to_device(name),
}


@pytest.mark.parametrize("name", TAKES_A_DEVICE)
def test_unknown_device(name):
    before = xp.get_default_device()
    with pytest.raises(ValueError, match="unknown device 'nowhere'") as caught:
        TAKES_A_DEVICE[name]("nowhere")
    for device in xp.devices():
        assert device in str(caught.value)
    assert xp.get_default_device() is before


@pytest.mark.parametrize("name", ["asarray", "zeros", "to_device", "default_device"])
def test_what_is_no_device(name):
    with pytest.raises(TypeError, match="3"):
        TAKES_A_DEVICE[name](3)


def test_set_default_device(process):
    xp.set_default_device("counting")
    assert xp.get_default_device() is xp.Device("counting")
    assert xp.zeros(2).device == "counting"
    assert xp.asarray([1]).device == "counting"
    seen = []
    thread = threading.Thread(target=lambda: seen.append(xp.get_default_device()))
    thread.start()
    thread.join()
    assert seen == ["counting"]


def test_default_device_nests(process):
    with xp.default_device("counting") as outer:
        assert outer is xp.get_default_device() is xp.Device("counting")
        with xp.default_device(xp.Device("failing")):
            assert xp.get_default_device() == xp.zeros(1).device == "failing"
            assert xp.zeros(1, device="cpu").device == "cpu"
        assert xp.get_default_device() == "counting"
        xp.set_default_device("blas")
        assert xp.get_default_device() == "counting"
    assert xp.get_default_device() == "blas"


def test_default_device_ends_with_an_exception(process):
    with pytest.raises(ZeroDivisionError), xp.default_device("counting"):
        _ = 1 / 0
    assert xp.get_default_device() == "cpu"


def test_the_default_device_does_not_move_arrays(counting):
    x = xp.ones((2, 2), device="cpu")
    with xp.default_device("counting"):
        product = x @ x
        assert product.device == (x + 1).device == xp.zeros_like(x).device == "cpu"
        xp.evaluate(product)
    assert counting.computed == []


def test_threads_do_not_leak(process):
    inside, checked = threading.Event(), threading.Event()
    seen = []

    def work():
        with xp.default_device("counting"):
            inside.set()
            checked.wait(30)
            seen.append(xp.get_default_device())

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(30)
    here = xp.get_default_device()
    checked.set()
    thread.join()
    assert (here, seen) == ("cpu", ["counting"])


def test_tasks_do_not_leak(process):
    async def task(name):
        with xp.default_device(name):
            for _ in range(3):
                await asyncio.sleep(0)
                assert xp.get_default_device() == xp.zeros(1).device == name
        return xp.get_default_device()

    async def main():
        return await asyncio.gather(*map(task, ["counting", "failing", "blas"]))

    assert asyncio.run(main()) == ["cpu"] * 3


def test_environment():
    script = """
        import ggarray as xp
        print(xp.get_default_device(), xp.zeros(1).device)
        xp.set_default_device("blas")
        print(xp.zeros(1).device)
    """
    assert run_script(script, GGARRAY_DEVICE="cpu").split() == ["cpu", "cpu", "blas"]


def test_bad_environment_is_an_error_at_first_use():
    script = """
        import ggarray as xp
        assert xp.zeros(1, device="cpu").device == "cpu"
        for use in (xp.get_default_device, lambda: xp.zeros(1), xp.get_default_device):
            try:
                use()
            except ValueError as error:
                print(error)
        with xp.default_device("cpu"):
            assert xp.zeros(1).device == "cpu"
        xp.set_default_device("cpu")
        assert xp.zeros(1).device == "cpu"
    """
    lines = run_script(script, GGARRAY_DEVICE="nowhere").splitlines()
    assert len(lines) == 3
    for line in lines:
        assert "GGARRAY_DEVICE" in line
        assert "'nowhere'" in line
        assert "blas, " in line


def test_without_environment_a_vendor_is_preferred():
    script = "import ggarray as xp; print(xp.get_default_device())"
    assert run_script(script).split() == ["blas"]


OPERATIONS = {
    "matmul": lambda a, b: a @ b,
    "outer": lambda a, b: xp.linalg.outer(a[0], b[0]),
    "add": lambda a, b: a + b,
    "pending sum": lambda a, b: (a @ a) + (b @ b),
    "function": lambda a, b: xp.maximum(a, b),
    "concat": lambda a, b: xp.concat([a, b]),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize(
    ("a", "b", "joined"),
    [
        ("cpu", "cpu", "cpu"),
        ("cpu", "blas", "blas"),
        ("cpu", VENDOR, VENDOR),
        ("blas", "blas", "blas"),
        ("blas", VENDOR, VENDOR),
        (VENDOR, VENDOR, VENDOR),
        ("counting", "counting", "counting"),
    ],
)
def test_the_more_specific_device_wins(name, a, b, joined):
    a, b = (xp.ones((2, 2), device=device) for device in (a, b))
    assert OPERATIONS[name](a, b).device is xp.Device(joined)
    assert OPERATIONS[name](b, a).device is xp.Device(joined)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("other", ["cpu", "blas", VENDOR, "failing"])
def test_devices_that_do_not_mix(name, other):
    a, b = xp.ones((2, 2), device="counting"), xp.ones((2, 2), device=other)
    for pair in ((a, b), (b, a)):
        with pytest.raises(ValueError, match="to_device") as caught:
            OPERATIONS[name](*pair)
        assert "'counting'" in str(caught.value)
        assert repr(str(other)) in str(caught.value)


def test_values_of_another_device_are_not_assigned():
    a, b = xp.ones((2, 2), device="counting"), xp.zeros((2, 2), device="cpu")
    with pytest.raises(ValueError, match="to_device"):
        a[...] = b
    with pytest.raises(ValueError, match="to_device"):
        a += b
    assert np.asarray(a).tolist() == [[1, 1], [1, 1]]


def test_two_vendors_do_not_mix():
    script = f"""
        import ggarray as xp
        from doubles import NumpyDevice
        from ggarray.interface import Registry

        class Other(Registry):
            name = "other"
            def devices(self):
                return [NumpyDevice("blas:other")]

        xp.register_backend(Other())
        other = xp.ones((2, 2), device="blas:other")
        assert (xp.ones((2, 2), device="blas") @ other).device == "blas:other"
        try:
            xp.ones((2, 2), device="{VENDOR}") @ other
        except ValueError as error:
            print(error)
    """
    message = run_script(script)
    assert "to_device" in message
    assert VENDOR in message


def test_unpickling_where_the_device_is_absent():
    x = xp.asarray([[1.5, -2.0]], device="counting")
    w = xp.quantize(xp.ones((2, 32), dtype=xp.float32, device="counting"), xp.q8_0)
    dumps = [base64.b64encode(pickle.dumps(each)).decode() for each in (x, w)]
    script = f"""
        import base64, pickle, warnings
        import ggarray as xp
        dumps = [base64.b64decode(each) for each in {dumps}]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x, w = map(pickle.loads, dumps)
        assert [each.category for each in caught] == [xp.Warning] * 2
        for each in caught:
            assert "'counting'" in str(each.message) and "'cpu'" in str(each.message)
        assert x.device == w.device == "cpu"
        assert w.dtype == xp.q8_0
        assert [float(each) for each in x[0]] == [1.5, -2.0]
        assert bool(xp.all(xp.abs(xp.dequantize(w) - 1) < 1e-2))
    """
    run_script(script, GGARRAY_DEVICE="cpu")


def test_unpickling_where_the_device_is_there():
    x = xp.asarray([1.0, 2.0], device="counting")
    again = pickle.loads(pickle.dumps(x))
    assert again.device is x.device
    assert np.asarray(again).tolist() == [1, 2]
