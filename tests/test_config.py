"""What is here, as text."""

import subprocess
import sys

import numpy as np
import pytest

import ggarray as xp
from ggarray._graph import memory, plan_cache
from ggarray._runtime import plugins


def marked(text):
    """Return the names of the devices, and of those that are marked as the default."""
    devices = text.split("devices (* the default)\n")[1].split("BLAS libraries")[0]
    lines = devices.splitlines()
    names = [line[2:].split("  ")[0] for line in lines]
    return names, [name for name, line in zip(names, lines, strict=True) if line[0] == "*"]


def test_show_config(capsys):
    with xp.num_threads(7), xp.options(max_pending_nodes=1234):
        xp.show_config()
    text = capsys.readouterr().out
    assert f"ggarray {xp.__version__}, " in text
    assert f"NumPy {np.__version__}" in text
    assert "threads 7 of " in text
    assert "lazy=True" in text
    assert "max_pending_nodes=1234" in text
    assert marked(text) == (list(xp.devices()), [xp.get_default_device()])
    assert "NumPy, counted" in text


@pytest.mark.parametrize("device", ["cpu", "blas", "counting"])
def test_the_default_is_marked(capsys, device):
    with xp.default_device(device):
        xp.show_config()
    assert marked(capsys.readouterr().out)[1] == [device]


def test_backends_that_are_left_out(capsys, monkeypatch):
    xp.show_config()
    assert "left out" not in capsys.readouterr().out
    monkeypatch.setitem(plugins.failures, "fast of fast-arrays 2.0", "OSError: no driver")
    monkeypatch.setitem(plugins.failures, "slow of slow-arrays 1.0", "OSError: no bus")
    xp.show_config()
    devices, left_out = capsys.readouterr().out.split("installed backends left out\n")
    assert marked(devices)[0] == list(xp.devices())
    assert left_out.splitlines() == [
        "  fast of fast-arrays 2.0: OSError: no driver",
        "  slow of slow-arrays 1.0: OSError: no bus",
    ]


def last_lines(capsys):
    """Return what is said of plans and of memory."""
    xp.show_config()
    return capsys.readouterr().out.splitlines()[-2:]


def test_plans_and_memory(capsys, counting):
    plan_cache.clear()
    memory.release()
    plans, kept = last_lines(capsys)
    assert plans == "plans 0 kept, of 0 steps; used again 0 times, made 0 times"
    assert kept.startswith("memory kept for plans 0.0 MiB, for constants on devices ")
    x = xp.ones((512, 512), device="counting")
    for _ in range(3):
        xp.evaluate(x @ x @ x)
    plans, kept = last_lines(capsys)
    assert plans == "plans 1 kept, of 2 steps; used again 2 times, made 1 times"
    assert kept.startswith("memory kept for plans 2.0 MiB, ")  # the value in between


def test_command():
    done = subprocess.run(
        [sys.executable, "-m", "ggarray"], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stderr == ""
    assert f"ggarray {xp.__version__}, " in done.stdout
    names, default = marked(done.stdout)
    assert {"cpu", "blas"} <= set(names) <= set(xp.devices())
    assert len(default) == 1
