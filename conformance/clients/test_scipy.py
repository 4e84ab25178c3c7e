"""SciPy with SCIPY_ARRAY_API=1: what its functions give for Arrays against NumPy's arrays."""

import importlib

import array_api_strict
import numpy as np
import pytest
import scipy
from scipy import integrate, interpolate, linalg, signal, special, stats
from scipy._lib._array_api import xp_capabilities_table
from scipy.spatial.transform import Rotation

import ggarray as xp
from conformance.clients.comparing import Given, arrive, assert_matches
from conformance.clients.refusals import REFUSALS
from conformance.clients.scipy_cases import CASES, DATA, KEEP_DEVICE, TOLERANCES

MODULES = """
cluster.hierarchy cluster.vq constants differentiate fft integrate interpolate linalg ndimage
optimize optimize.elementwise signal signal.windows special stats
"""


def supported():
    """The public functions that SciPy's table says take arrays of any library, by name."""
    for name in MODULES.split():
        module = importlib.import_module(f"scipy.{name}")
        for function in module.__all__:
            entry = getattr(module, function)
            if getattr(entry, "__hash__", None) and entry in xp_capabilities_table:
                limits = xp_capabilities_table[entry]
                if not limits["np_only"] and not limits["out_of_scope"]:
                    yield f"{name}.{function}"


def function_of(title):
    """The name of the function of a case, which may have a note."""
    return title.partition(" ")[0]


@pytest.mark.parametrize("title", CASES)
def test_functions(title, device):
    work = CASES[title]
    result = work(Given(DATA, xp, device))
    where = device if function_of(title) in KEEP_DEVICE else None
    tolerance = TOLERANCES.get(title, 1e-10)
    assert_matches(result, work(Given(DATA)), where, tolerance, tolerance)


def test_every_supported_function_has_a_case():
    functions = set(supported())
    assert len(functions) > 400
    refused = {"signal.cspline2d", "signal.impulse"}
    assert functions - {function_of(title) for title in CASES} == refused


def test_functions_that_keep_the_device_have_cases():
    assert {function_of(title) for title in CASES} >= KEEP_DEVICE


def test_functions_may_write_into_what_they_broadcast(device):
    def clipped(x):
        x[x > 3.0] = 3.0
        return xp.exp(-x)

    low, high = arrive(np.array([0.0, 1.0]), device), arrive(np.array([2.0, 3.0]), device)
    areas = integrate.tanhsinh(clipped, low, high).integral
    assert_matches(areas, np.exp([0.0, -1.0]) - np.exp([-2.0, -3.0]), None)


def _linear_algebra(x):
    m = x[:, None] * x + xp.eye(len(x))
    return [f(m) for f in (linalg.det, linalg.inv, linalg.eigvalsh, linalg.cholesky, linalg.expm)]


def _numpy_statistics(x):
    return [stats.norm.pdf(x), stats.linregress(x, x**2).slope, stats.kendalltau(x, -x).statistic]


def _numpy_signals(x):
    return [signal.welch(x, nperseg=8)[1], signal.find_peaks(x)[0]]


def assert_numpy(results):
    """All of them are NumPy's, and none an Array."""
    assert all(isinstance(each, (np.ndarray, np.generic)) for each in results)


def _impulse(x):
    with pytest.raises(TypeError, match="Multiple namespaces"):
        signal.impulse((x[:1], x[:2]))


def _neighbours(x):
    with pytest.raises(NotImplementedError, match="neighbors"):
        interpolate.RBFInterpolator(x[:, None], x, neighbors=3)


def _reduce(x):
    def reduced(x):
        rotations = Rotation.from_quat(x.__array_namespace__().reshape(x[:20], (5, 4)))
        return np.asarray(rotations.reduce(rotations[:2]).as_quat())

    value = np.asarray(x)
    strict = reduced(array_api_strict.asarray(value))
    np.testing.assert_allclose(reduced(x), strict)
    assert not np.allclose(strict, reduced(value))


def _devices(x):
    assert special.erf(x).device == xp.get_default_device() != x.device


REFUSED = {
    "linalg, but for block_diag, fiedler and orthogonal_procrustes": (
        lambda x: assert_numpy(_linear_algebra(x))
    ),
    "stats: distributions, linregress and others that SciPy documents for NumPy alone": (
        lambda x: assert_numpy(_numpy_statistics(x))
    ),
    "signal: welch, find_peaks and others that SciPy documents for NumPy alone": (
        lambda x: assert_numpy(_numpy_signals(x))
    ),
    "signal.cspline2d": lambda x: assert_numpy([signal.cspline2d(x[:, None] * x)]),
    "signal.impulse": _impulse,
    "interpolate.RBFInterpolator with neighbors": _neighbours,
    "spatial.transform.Rotation.reduce with one of two groups": _reduce,
    "devices, where a function is computed by NumPy": _devices,
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what, device):
    REFUSED[what](arrive(DATA["photo"][0], device))


def test_each_refusal_is_tested():
    lines = [each for each in REFUSALS if each.library == "scipy"]
    assert {each.what for each in lines} == set(REFUSED)
    assert {each.version for each in lines} == {scipy.__version__}
