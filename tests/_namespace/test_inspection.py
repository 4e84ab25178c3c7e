"""What the namespace says of itself is true."""

import numpy as np
import pytest

import ggarray as xp

NAMES = {
    "bool": ["bool"],
    "signed integer": ["int8", "int16", "int32", "int64"],
    "unsigned integer": ["uint8", "uint16", "uint32", "uint64"],
    "real floating": ["float32", "float64"],
    "complex floating": ["complex64", "complex128"],
}
NAMES["integral"] = NAMES["signed integer"] + NAMES["unsigned integer"]
NAMES["numeric"] = NAMES["integral"] + NAMES["real floating"] + NAMES["complex floating"]


@pytest.fixture
def info():
    return xp.__array_namespace_info__()


def test_capabilities_are_those_that_arrays_have(info):
    capabilities = info.capabilities()
    x = xp.asarray([1, 0, 2])
    assert capabilities["boolean indexing"] is True
    assert x[x > 0].shape == (2,)
    assert capabilities["data-dependent shapes"] is True
    assert xp.nonzero(x)[0].shape == (2,)
    most = capabilities["max dimensions"]
    assert xp.ones((1,) * most).ndim == most
    with pytest.raises(ValueError, match="dimension"):
        xp.ones((1,) * (most + 1))


def test_default_device_follows_what_is_set(info):
    assert info.default_device() == xp.empty(1).device
    with xp.default_device("cpu"):
        assert info.default_device() == "cpu"


def test_devices_are_those_of_the_namespace(info):
    assert info.devices() == xp.devices()
    assert type(info.devices()) is tuple
    for device in info.devices():
        assert xp.empty(1, device=device).device == device


def test_default_dtypes_are_those_of_created_arrays(info, device):
    for dtypes in (info.default_dtypes(), info.default_dtypes(device=device)):
        assert dtypes["real floating"] == xp.asarray(1.0, device=device).dtype
        assert dtypes["complex floating"] == xp.asarray(1j, device=device).dtype
        assert dtypes["integral"] == xp.asarray(1, device=device).dtype
        assert dtypes["indexing"] == xp.argmax(xp.asarray([1], device=device)).dtype
        assert len(dtypes) == 4


@pytest.mark.parametrize("kind", NAMES)
def test_dtypes_of_a_kind_are_those_of_the_standard(info, kind, device):
    dtypes = info.dtypes(kind=kind, device=device)
    assert sorted(dtypes) == sorted(NAMES[kind])
    for name, dtype in dtypes.items():
        assert dtype == getattr(xp, name)
        assert xp.empty(1, dtype=dtype, device=device).dtype == dtype


def test_dtypes_without_a_kind_are_all_and_kinds_add_up(info):
    assert sorted(info.dtypes()) == sorted(NAMES["bool"] + NAMES["numeric"])
    assert list(info.dtypes(kind=("bool", "real floating"))) == ["bool", "float32", "float64"]
    assert info.dtypes(kind=()) == {}


def test_answers_can_be_changed_without_harm(info):
    info.dtypes().clear()
    info.default_dtypes().clear()
    assert len(info.dtypes()) == 13
    assert info.default_dtypes()["integral"] == np.int64


def test_an_unknown_kind_or_device_is_named(info):
    with pytest.raises(ValueError, match=r"'float'.*real floating"):
        info.dtypes(kind="float")
    with pytest.raises(ValueError, match="'float'"):
        info.dtypes(kind=("bool", "float"))
    for method in (info.dtypes, info.default_dtypes):
        with pytest.raises(ValueError, match="'nowhere'"):
            method(device="nowhere")
