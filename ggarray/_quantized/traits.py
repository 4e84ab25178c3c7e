"""The type-traits table: what each block-quantized dtype is called and how large its blocks are.

A quantized dtype stores `block_size` consecutive elements of one axis as `block_bytes` bytes: a
scale or two, then small integer codes. Names, ids and sizes are those of ggml's type table
(https://github.com/ggml-org/ggml, ``ggml_type`` and ``type_traits``), so that bytes can be
exchanged with GGUF files unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

__all__ = ["BY_NAME", "BY_TYPE_ID", "QuantizedDType", "q4_0", "q4_1", "q8_0"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QuantizedDType:
    """One block-quantized dtype. There is one instance of each, compared by identity.

    It is not a NumPy dtype: ``np.dtype(q4_1)`` raises TypeError.

    Attributes
    ----------
    name : str
        ggml's name, such as ``"q4_1"``; also the name of the constant in this module.
    type_id : int
        ggml's number of the type, which GGUF files store.
    block_size : int
        Elements in a block.
    block_bytes : int
        Bytes in a block.

    Examples
    --------
    >>> xp.q4_1.block_size, xp.q4_1.block_bytes  # 5 bits an element
    (32, 20)
    >>> xp.quantize(xp.ones((2, 64)), xp.q4_1).dtype is xp.q4_1
    True
    """

    name: str
    type_id: int
    block_size: int
    block_bytes: int

    kind: ClassVar[str] = "q"
    """Told apart from every `numpy.dtype` by its kind."""

    def __repr__(self) -> str:
        return f"ggarray.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        # A string makes pickle and copy look the constant up here, so identity survives both.
        return self.name


q4_0 = QuantizedDType("q4_0", type_id=2, block_size=32, block_bytes=18)
"""4 bits and one scale: x = d * (code - 8)."""

q4_1 = QuantizedDType("q4_1", type_id=3, block_size=32, block_bytes=20)
"""4 bits, a scale and a minimum: x = d * code + m."""

q8_0 = QuantizedDType("q8_0", type_id=8, block_size=32, block_bytes=34)
"""8 bits and one scale: x = d * code."""

BY_NAME: dict[str, QuantizedDType] = {dtype.name: dtype for dtype in (q4_0, q4_1, q8_0)}
"""Every quantized dtype by its ggml name."""

BY_TYPE_ID: dict[int, QuantizedDType] = {dtype.type_id: dtype for dtype in BY_NAME.values()}
"""Every quantized dtype by its ggml type id."""
