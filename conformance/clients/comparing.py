"""The same work on ggarray's arrays and on NumPy's, and how the results compare."""

import numpy as np

import ggarray as xp

_LARGEST = 600  # of a last axis that is multiplied with the identity


class Given:
    """Data as arrays of a namespace: each attribute gives a new array of that name.

    Parameters
    ----------
    data : dict of numpy.ndarray
        The arrays by name.
    xp : module
        numpy or ggarray.
    device : str, optional
        Where ggarray's arrays are. Those that are products of finite numbers with the identity are
        pending, so the clients meet values that nobody has computed.
    """

    def __init__(self, data, xp=np, device=None):
        self._data = data
        self.xp = xp
        self.device = device

    def __getattr__(self, name):
        return self.array(self._data[name])

    def array(self, values, dtype=None):
        """Return these values as an array of the namespace."""
        value = np.array(values, dtype)
        return value if self.xp is np else arrive(value, self.device)


def arrive(value, device):
    """Return a NumPy array as an Array, pending where a product with the identity gives it."""
    x = xp.asarray(value, device=device)
    if value.dtype.kind not in "fc" or not value.ndim or value.shape[-1] > _LARGEST:
        return x
    if not np.isfinite(value).all():
        return x
    return x @ xp.eye(value.shape[-1], dtype=value.dtype, device=device)


def assert_matches(result, expected, device, rtol=1e-10, atol=1e-12):
    """Compare what a client gives for Arrays with what it gives for NumPy's arrays.

    Where NumPy's is an array the result is an Array of the same shape and dtype, on `device` unless
    that is None. Elements that are not floating are equal; sequences are compared by member.
    """
    if isinstance(expected, (np.ndarray, np.generic)):
        assert type(result) is xp.Array
        assert device is None or result.device == device
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        if expected.dtype.kind in "fc":
            np.testing.assert_allclose(np.asarray(result), expected, rtol, atol)
        else:
            np.testing.assert_array_equal(np.asarray(result), expected)
    elif isinstance(expected, (tuple, list)):
        assert len(result) == len(expected)
        for each, wanted in zip(result, expected, strict=True):
            assert_matches(each, wanted, device, rtol, atol)
    elif isinstance(expected, float):
        assert isinstance(result, float)
        np.testing.assert_allclose(result, expected, rtol, atol)
    else:
        assert type(result) is type(expected)
        assert result == expected
