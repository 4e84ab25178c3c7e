"""Users' code: devices, threads, options, and quantized weights."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np

import ggarray as xp
from ggarray import Array


def devices(x: Array) -> None:
    assert_type(xp.devices(), tuple[xp.Device, ...])
    assert_type(xp.get_default_device(), xp.Device)
    xp.set_default_device("cpu")
    xp.set_default_device(xp.Device("blas"))
    with xp.default_device("cpu") as device:
        assert_type(device, xp.Device)
    by_device: dict[xp.Device, list[Array]] = {x.device: [x]}
    names: list[str] = [device for device in by_device]
    x.to_device(names[0])
    if x.device == "cpu":
        xp.show_config()


def threads() -> None:
    assert_type(xp.get_num_threads(), int)
    xp.set_num_threads(4)
    with xp.num_threads(1):
        pass


def options() -> None:
    assert_type(xp.get_options(), dict[str, Any])
    xp.set_options(max_pending_nodes=100)
    with xp.options(lazy=False), xp.num_threads(2):
        pass


def quantization(x: Array) -> None:
    weights = xp.quantize(x, xp.q8_0)
    assert_type(weights, Array)
    assert_type(xp.dequantize(weights, xp.float64), Array)
    assert_type(x @ weights.mT, Array)
    data = xp.quantized_bytes(weights)
    assert_type(data, np.ndarray[Any, np.dtype[np.uint8]])
    assert_type(xp.quantized_from_bytes(data, xp.q8_0, x.shape, device="cpu"), Array)
    assert_type(xp.q4_1.block_size, int)
    assert_type(xp.q4_0.name, str)


def weights_of_a_model(path: Path) -> Array:
    try:
        model = xp.load_gguf(path, device="cpu", mmap=False)
    except xp.GGUFError as error:
        raise SystemExit(str(error)) from error
    for name, weight in model.items():
        assert_type(name, str)
        assert_type(weight, Array)
    assert_type(model.metadata["general.architecture"], Any)
    return model["token_embd.weight"]


def profiling(x: Array, path: Path) -> None:
    with xp.profile() as p:
        xp.evaluate(x @ x)
    assert_type(p, xp.Profile)
    assert_type(p[0].duration, int)
    assert_type(sum(event.bytes_read for event in p), int)
    p.to_chrome_trace(path)


def errors(x: Array) -> None:
    try:
        xp.evaluate(x)
    except xp.BackendError as error:
        assert_type(error, xp.BackendError)
    warning: type[UserWarning] = xp.Warning
    assert issubclass(warning, UserWarning)
