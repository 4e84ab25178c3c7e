"""The judge of results refuses what is wrong, and layouts have the values they are given."""

from math import inf, nan

import numpy as np
import pytest

import ggarray as xp
from conformance.standard.references import (
    DEVICE,
    EXTENDED,
    LAYOUTS,
    check,
    kind_of,
    reduced,
    rounded,
    to_array,
    wide,
    wrapped,
)

# A value, and one that is not it however wide the tolerance.
DIFFERENT = [
    (1.0, 2.0),
    (0.0, -0.0),
    (inf, -inf),
    (inf, 1e30),
    (1e30, inf),
    (nan, 1.0),
    (1.0, nan),
    (inf, nan),
    (complex(1, 0.0), complex(1, -0.0)),
    (complex(inf, 1), complex(1e30, 1)),
    (complex(inf, 1), complex(inf, 2)),
    (complex(nan, 1), complex(1, nan)),
    (complex(nan, 0.0), complex(nan, -0.0)),
]


@pytest.mark.parametrize(("value", "other"), DIFFERENT)
def test_other_values_are_refused(value, other):
    for tolerances in ({}, {"rtol": 1e-3, "atol": 1e-3}):
        check(to_array(np.array([value, 5])), np.array([value, 5]), **tolerances)
        with pytest.raises(AssertionError):
            check(to_array(np.array([value, 5])), np.array([other, 5]), **tolerances)


def test_tolerances_are_relative_and_absolute():
    x = to_array(np.array([1000.0, complex(inf, 1000)]))
    check(x, np.array([1001.0, complex(inf, 1001)]), rtol=2e-3)
    check(x, np.array([1001.0, complex(inf, 1001)]), atol=2.0)
    check(to_array(np.array([0.0, 1e-9])), np.array([-0.0, 0.0]), atol=1e-8, zeros=False)
    for tolerances in ({"rtol": 1e-4}, {"atol": 0.5}):
        with pytest.raises(AssertionError):
            check(x, np.array([1001.0, complex(inf, 1001)]), **tolerances)


def test_other_classes_dtypes_shapes_and_devices_are_refused():
    v = np.ones(3)
    for result, expected in (
        (v, v),
        (to_array(v), np.ones(3, np.float32)),
        (to_array(v), np.ones((1, 3))),
        (xp.ones(3, device="blas"), v),
        (to_array(np.array([1, 2])), np.array([1, 3])),
    ):
        with pytest.raises(AssertionError):
            check(result, expected)


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_have_the_values_they_are_given(layout, dtype):
    for shape in ((), (0,), (3,), (2, 0), (2, 3, 2)):
        v = (np.arange(np.prod(shape, dtype=int)) % 3).reshape(shape).astype(dtype)
        x = to_array(v, layout)
        assert x.device == DEVICE
        if layout == "pending" and kind_of(dtype) not in "bc":
            assert xp.is_pending(x)
        check(x, v)
    whole = to_array(np.arange(6.0).reshape(2, 3), layout)
    assert np.asarray(whole).flags.c_contiguous is (layout in ("plain", "broadcast", "pending"))


def test_integers_are_wrapped_and_floats_rounded():
    exact = wide(np.array([2**64 - 1], np.uint64))
    assert wrapped(exact + 2, np.uint64).tolist() == [1]
    assert wrapped(exact, np.int8).tolist() == [-1]
    assert wrapped(np.array([128, -129], object), np.int8).tolist() == [-128, 127]
    assert rounded(np.longdouble(1e30), np.float16) == inf
    assert wide(np.array(0.1, np.float32)) == float(np.float32(0.1))


def test_reductions_take_the_elements_along_axes():
    v = np.arange(12).reshape(2, 3, 2)
    for axis in (None, 0, -1, (0, 2), ()):
        for keepdims in (False, True):
            wanted = v.sum(axis, keepdims=keepdims)
            found = reduced(lambda group: group.sum(), v, axis, keepdims)
            np.testing.assert_array_equal(found, wanted)
            assert found.shape == wanted.shape
