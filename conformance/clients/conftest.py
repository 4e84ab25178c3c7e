"""Client libraries doing real work on ggarray's arrays, compared with the same work on NumPy's.

Run them in a pytest of their own: SciPy decides whether it heeds other arrays when it is imported.
"""

import os
import sys

import pytest

import ggarray as xp

if "scipy" in sys.modules and "SCIPY_ARRAY_API" not in os.environ:
    raise pytest.UsageError("SciPy is there without SCIPY_ARRAY_API: run conformance/clients alone")
os.environ["SCIPY_ARRAY_API"] = "1"

pytest.register_assert_rewrite("conformance.clients.comparing")


@pytest.fixture(params=["cpu", "blas"])
def device(request):
    """The device of a test's arrays; the default one is the other, so nothing is there by luck."""
    (other,) = {"cpu", "blas"} - {request.param}
    with xp.default_device(other):
        yield request.param
