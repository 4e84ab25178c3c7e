"""Fixtures that all tests may use."""

import signal
import sys
from pathlib import Path

import pytest

import ggarray as xp

sys.path.insert(0, str(Path(__file__).parent))

from doubles import NumpyRegistry

# Tests press Ctrl-C; a job that was started in the background has been told to ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

REGISTRY = NumpyRegistry()
xp.register_backend(REGISTRY)


@pytest.fixture
def counting():
    """The counting device's backend, its books empty."""
    backend = REGISTRY.counting.backend
    backend.computed.clear()
    return backend


@pytest.fixture
def failing():
    """The backend whose next outcomes a test sets in `outcomes`."""
    backend = REGISTRY.failing.backend
    backend.computed.clear()
    backend.outcomes.clear()
    yield backend
    backend.outcomes.clear()


@pytest.fixture(params=["cpu", "blas"])
def device(request):
    """Each device that every machine of the tests has."""
    return request.param
