"""Set functions against Python's own."""

import numpy as np
import pytest
from hypothesis import strategies as st

import ggarray as xp
from conformance.standard.references import (
    COMPLEXES,
    EXTENDED,
    INTEGERS,
    LAYOUTS,
    arrays,
    check,
    elements,
    given,
    kind_of,
    repeating,
    to_array,
    values,
    wide,
)

COVERS = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


def unique(value):
    """Return distinct elements by the place they occur at first, and counts; NaN differs."""
    firsts, counts, seen = [], [], {}
    for at, each in enumerate(wide(value).ravel().tolist()):
        if each == each and each in seen:
            counts[seen[each]] += 1
        else:
            seen[each] = len(firsts)
            firsts.append(at)
            counts.append(1)
    return firsts, counts


def check_inverse(found, value):
    """Check that the inverse indices make the array again; in what order NaN are is left open."""
    inverse = np.asarray(found.inverse_indices)
    check(found.inverse_indices, inverse.astype(np.int64))
    assert inverse.shape == value.shape
    check(to_array(np.asarray(found.values)[inverse]), value, zeros=False)
    places = [
        int(each)
        for each, element in zip(inverse.flat, value.flat, strict=True)
        if element != element
    ]
    assert len(set(places)) == len(places)  # each NaN is one of its own


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data())
def test_distinct_elements(dtype, data):
    v = data.draw(values(dtype) | repeating(dtype))
    x = to_array(v, data.draw(st.sampled_from(list(LAYOUTS))))
    firsts, counts = unique(v)
    found = xp.unique_all(x)
    assert type(found)._fields == ("values", "indices", "inverse_indices", "counts")
    assert found.values.shape == found.indices.shape == found.counts.shape == (len(firsts),)
    # in whatever order, each distinct element comes with its first place and its count
    by_place = dict(zip(firsts, counts, strict=True))
    places = np.asarray(found.indices).tolist()
    assert sorted(places) == firsts
    check(found.counts, np.array([by_place[place] for place in places], np.int64))
    check(found.values, v.ravel()[places], zeros=False)
    assert found.indices.dtype == np.int64
    check_inverse(found, v)

    check(xp.unique_values(x), np.asarray(found.values), zeros=False)
    counted = xp.unique_counts(x)
    assert type(counted)._fields == ("values", "counts")
    check(counted.values, np.asarray(found.values), zeros=False)
    check(counted.counts, np.asarray(found.counts))
    inverted = xp.unique_inverse(x)
    assert type(inverted)._fields == ("values", "inverse_indices")
    check(inverted.values, np.asarray(found.values), zeros=False)
    check_inverse(inverted, v)


@pytest.mark.parametrize("dtype", [d for d in EXTENDED if kind_of(d) == "f"], ids=str)
def test_nan_is_distinct_and_zeros_are_not(dtype):
    x = to_array(np.array([np.nan, 0.0, -0.0, np.nan, 1.0, -0.0], dtype))
    found = xp.unique_all(x)
    check(found.values, np.array([0, 1, np.nan, np.nan], dtype), zeros=False)
    check(found.counts, [3, 1, 1, 1])
    assert sorted(np.asarray(found.indices).tolist()) == [0, 1, 3, 4]
    assert np.asarray(found.inverse_indices)[[1, 2, 4, 5]].tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("dtype", COMPLEXES, ids=str)
def test_complex_numbers_with_nan_are_distinct(dtype):
    z = [complex(np.nan, 1), 1j, complex(np.nan, 1), complex(0, np.nan), 1j, complex(-0.0, 1)]
    found = xp.unique_counts(to_array(np.array(z, dtype)))
    assert found.values.shape == (4,)
    assert sorted(np.asarray(found.counts).tolist()) == [1, 1, 1, 3]


@pytest.mark.parametrize("dtype", EXTENDED, ids=str)
@given(data=st.data())
def test_isin_compares_values(dtype, data):
    x, v = data.draw(arrays(dtype))
    w = data.draw(values(dtype))
    if v.size and w.size and data.draw(st.booleans()):
        w.ravel()[:1] = v.ravel()[:1]
    y = to_array(w, data.draw(st.sampled_from(list(LAYOUTS))))
    among = wide(w).ravel().tolist()
    wanted = [any(each == one for one in among) for each in wide(v).ravel().tolist()]
    wanted = np.array(wanted, bool).reshape(v.shape)
    check(xp.isin(x, y), wanted)
    check(xp.isin(x, y, invert=True), ~wanted)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(data=st.data())
def test_isin_of_integers_of_other_dtypes_and_scalars(dtype, data):
    x, v = data.draw(arrays(dtype))
    y, w = data.draw(arrays(data.draw(st.sampled_from(INTEGERS))))
    scalar = data.draw(elements(dtype) | st.sampled_from([0, -1, 2**63, 2**70, -(2**70)]))
    listed = wide(v).ravel().tolist()
    wanted = np.array([each in wide(w).ravel().tolist() for each in listed], bool)
    check(xp.isin(x, y), wanted.reshape(v.shape))
    check(xp.isin(x, scalar), np.array([each == scalar for each in listed], bool).reshape(v.shape))
    check(xp.isin(scalar, x), np.array(scalar in listed))
    check(xp.isin(scalar, x, invert=True), np.array(scalar not in listed))
