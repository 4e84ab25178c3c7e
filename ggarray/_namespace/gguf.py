"""Loading GGUF files: the weights of a model as arrays."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from ggarray._array import Array, wrap, wrap_blocks
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.gguf_reader import read_gguf
from ggarray._runtime.devices import Device, as_device


class GGUFArrays(Mapping[str, Array]):
    """The tensors of a GGUF file by name, and its ``metadata``.

    Attributes
    ----------
    metadata : mapping
        The file's key-value pairs: Python scalars and strings, lists of strings, NumPy arrays.
    """

    def __init__(self, arrays: dict[str, Array], metadata: Mapping[str, Any]) -> None:
        self._arrays = arrays
        self.metadata = metadata

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"<GGUF file of {len(self)} arrays, {len(self.metadata)} metadata entries>"


def load_gguf(
    path: str | os.PathLike[str], device: str | None = None, *, mmap: bool = True
) -> GGUFArrays:
    """Load the tensors of a GGUF file.

    The file is mapped, not copied: its arrays are read-only and constant, so that products of them
    can wait, and quantized tensors stay as they are in the file.

    Parameters
    ----------
    path : str or path-like
        A GGUF file of version 2 or 3.
    device : Device or str, optional
        Where products of the arrays run; the default device if None.
    mmap : bool
        False reads the whole file into memory instead.

    Returns
    -------
    GGUFArrays
        A mapping of names to arrays of shape (..., ne1, ne0), with ``.metadata``.

    Raises
    ------
    GGUFError
        The file is truncated, damaged, or no GGUF file, or has a tensor of an unknown type.
    OSError
        The file cannot be read.
    ValueError
        An unknown device.

    Notes
    -----
    The format is specified at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.

    Examples
    --------
    >>> weights = xp.load_gguf("model.gguf", device="cpu")
    >>> weights["token_embd.weight"]
    Array(shape=(4, 64), dtype=q8_0, device='cpu')
    >>> weights.metadata["general.architecture"]
    'llama'
    """
    where = as_device(device)
    file = read_gguf(path, use_mmap=mmap)
    arrays = {name: _as_array(value, where) for name, value in file.tensors.items()}
    return GGUFArrays(arrays, file.metadata)


def _as_array(value: Any, device: Device) -> Array:
    return wrap_blocks(value, device) if isinstance(value, Blocks) else wrap(value, device)
