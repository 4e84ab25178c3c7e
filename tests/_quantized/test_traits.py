"""The table of quantized dtypes, compared with the one of the gguf package."""

import copy
import pickle

import gguf
import numpy as np
import pytest

from ggarray._quantized import traits
from ggarray._quantized.traits import BY_NAME, BY_TYPE_ID, QuantizedDType

DTYPES = list(BY_NAME.values())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sizes_and_ids_are_those_of_ggml(dtype: QuantizedDType) -> None:
    ggml_type = gguf.GGMLQuantizationType[dtype.name.upper()]
    assert dtype.type_id == ggml_type
    assert (dtype.block_size, dtype.block_bytes) == gguf.GGML_QUANT_SIZES[ggml_type]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_each_has_a_name_everywhere(dtype: QuantizedDType) -> None:
    assert getattr(traits, dtype.name) is BY_NAME[dtype.name] is BY_TYPE_ID[dtype.type_id]
    assert str(dtype) == dtype.name
    assert repr(dtype) == f"ggarray.{dtype.name}"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_pickle_and_copy_keep_identity(dtype: QuantizedDType) -> None:
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is copy.copy(dtype) is dtype


def test_equality_is_identity() -> None:
    assert len(set(DTYPES)) == len(DTYPES)
    assert traits.q4_1 != traits.q4_0
    assert traits.q4_1 != np.dtype(np.float32)
    assert np.dtype(np.float32) != traits.q4_1


def test_numpy_refuses_it() -> None:
    with pytest.raises(TypeError, match="q4_1"):
        np.dtype(traits.q4_1)  # type: ignore[call-overload]


def test_it_is_immutable() -> None:
    with pytest.raises(AttributeError):
        traits.q4_1.block_size = 64  # type: ignore[misc]
