"""Fixtures of the conformance suite."""

import pytest


@pytest.fixture(params=["cpu", "blas"], scope="session")
def device(request):
    """Each device that every machine has: for tests of products."""
    return request.param
