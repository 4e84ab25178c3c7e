"""The Python face of the C kernels, for the cpu and the blas backends.

Operands are NumPy arrays of any strides, or `Blocks` of a quantized dtype. Every function that
computes returns a status as `ggarray.interface.Status` numbers it: 0 success, 1 failed (a dtype
or combination without a kernel), 2 allocation failed, 3 aborted. Shapes are the caller's duty.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ggarray._quantized.blocks import Blocks
from ggarray._version import __version__
from ggarray.backends.cpu._kernels import ffi, lib
from ggarray.backends.cpu.operands import (
    BF16,
    CODES,
    DECODED,
    FLOAT32,
    Array,
    computes_in,
    from_float_parameters,
    is_blocked_in_batch,
    matmul_parameters,
    matrix,
    memory,
    out_prod_parameters,
    pointer,
    supported,
    to_float_parameters,
)

__all__ = [
    "features",
    "from_float",
    "matmul",
    "out_prod",
    "parallel_for",
    "require_isa",
    "set_abort",
    "supported",
    "to_float",
]

_built = ffi.string(lib.gg_version()).decode()
if _built != __version__:
    raise ImportError(
        f"the compiled kernels are of version {_built} but ggarray is {__version__}: "
        "reinstall ggarray so that both are built together"
    )

_matmul_2d = lib.gg_matmul_2d
_NO_ISA: int = lib.GG_NO_ISA
_FAILED: int = lib.GG_FAILED


def _select_isa() -> None:
    """Choose the instruction set: GGARRAY_CPU_ISA, else the best that this machine has."""
    wanted = os.environ.get("GGARRAY_CPU_ISA", "")
    if lib.gg_select_isa(wanted.encode() if wanted else ffi.NULL):
        raise ValueError(
            f"GGARRAY_CPU_ISA is {wanted!r}, but this machine knows {', '.join(_usable_isas())}"
        )


def _usable_isas() -> list[str]:
    names: list[str] = []
    while (name := lib.gg_usable_isa(len(names))) != ffi.NULL:
        names.append(ffi.string(name).decode())
    return names


def require_isa() -> None:
    """Choose the instruction set unless that is done.

    Raises
    ------
    ValueError
        GGARRAY_CPU_ISA names an instruction set that is unknown or that this machine lacks.
    """
    if lib.gg_isa_name() == ffi.NULL:
        _select_isa()


def features() -> dict[str, Any]:
    """Return what the kernels use on this machine.

    Returns
    -------
    dict
        ``isa``: the instruction set in use; ``usable``: those that GGARRAY_CPU_ISA may name;
        ``version``: the version of the compiled kernels.

    Raises
    ------
    ValueError
        GGARRAY_CPU_ISA names an instruction set that is unknown or that this machine lacks.
    """
    require_isa()
    isa = ffi.string(lib.gg_isa_name()).decode()
    return {"isa": isa, "usable": tuple(_usable_isas()), "version": _built}


def set_abort(on: bool) -> None:
    """While on, running and new computations stop early and return status 3.

    Computations that are short enough to be one piece of work may still end with success.
    """
    lib.gg_set_abort(on)


def parallel_for() -> Any:
    """Return the address of gg_parallel_for, for other compiled code to run on the same threads."""
    return ffi.addressof(lib, "gg_parallel_for")


def matmul(a: Array | Blocks, b: Array | Blocks, out: Array, n_threads: int = 1) -> int:
    """Compute ``out[..., m, n] = a[..., m, k] @ b[..., k, n]``.

    Integers wrap around as NumPy's do. float16 and bfloat16 are summed over the whole of k in
    float32 and rounded once, to nearest even. How a result is summed depends on the shapes only,
    not on the number of threads.

    Parameters
    ----------
    a, b : numpy.ndarray or Blocks
        At least two axes, the leading ones broadcast against `out`. Arrays have out's dtype and
        any strides; Blocks, blocked along any axis, need an `out` of float32 and are decoded on
        the fly.
    out : numpy.ndarray
        Overwritten; the elements of a row are next to each other, other axes may be strided.
        Shares no memory with the operands.
    n_threads : int
        At most so many threads, the caller among them.

    Returns
    -------
    int
        0 success, 1 dtypes without a kernel, 2 allocation failed, 3 aborted.

    Raises
    ------
    ValueError
        At the first use: GGARRAY_CPU_ISA is wrong.
    """
    dtype = out.dtype
    code = CODES.get(dtype)
    if code is None:
        return _FAILED
    same = a.dtype is dtype is b.dtype
    if not (same or (computes_in(a.dtype, dtype) and computes_in(b.dtype, dtype))):
        return _FAILED
    if out.ndim != 2:
        return _matmul_of_batch(a, b, out, n_threads)
    m, n = out.shape
    a_pointer, a_type, a_axis, a_row, a_column = matrix(a, code)
    b_pointer, b_type, b_axis, b_row, b_column = matrix(b, code)
    status: int = _matmul_2d(
        a_pointer, a_type, a_axis,
        b_pointer, b_type, b_axis,
        pointer(out.view(np.uint16) if code == BF16 else out), code, m, n, a.shape[1],
        a_row, a_column, b_row, b_column, out.strides[0],
        n_threads,
    )  # fmt: skip
    if status == _NO_ISA:
        _select_isa()
        return matmul(a, b, out, n_threads)
    return status


def _decoded_if_batch_is_blocked(x: Array | Blocks, n_threads: int) -> Array | Blocks:
    if not is_blocked_in_batch(x):
        return x
    plain = np.empty(x.shape, FLOAT32)
    to_float(x, plain, n_threads)
    return plain


def _matmul_of_batch(a: Array | Blocks, b: Array | Blocks, out: Array, n_threads: int) -> int:
    """Compute products with batch axes; see `matmul`."""
    require_isa()
    a = _decoded_if_batch_is_blocked(a, n_threads)
    b = _decoded_if_batch_is_blocked(b, n_threads)
    return int(
        lib.gg_matmul(
            pointer(memory(a)),
            pointer(memory(b)),
            pointer(memory(out)),
            ffi.new("int64_t[]", matmul_parameters(a, b, out)),
            n_threads,
        )
    )


def out_prod(a: Array, b: Array, out: Array, n_threads: int = 1) -> int:
    """Compute ``out[i, j] = a[i] * b[j]``, each a single rounded multiplication.

    Parameters
    ----------
    a, b : numpy.ndarray
        One axis, or one column; any strides; of out's dtype.
    out : numpy.ndarray
        Two axes, overwritten; the elements of a row are next to each other.
    n_threads : int
        At most so many threads, the caller among them.

    Returns
    -------
    int
        0 success, 1 dtypes without a kernel, 2 allocation failed, 3 aborted.

    Raises
    ------
    ValueError
        At the first use: GGARRAY_CPU_ISA is wrong.
    """
    if out.dtype not in CODES or a.dtype != out.dtype or b.dtype != out.dtype:
        return _FAILED
    require_isa()
    code, *layout = out_prod_parameters(a, b, out)
    pointers = (pointer(memory(a)), pointer(memory(b)), pointer(memory(out)))
    return int(lib.gg_out_prod(code, *pointers, *layout, n_threads))


def to_float(x: Array | Blocks, out: Array, n_threads: int = 1) -> int:
    """Decode `x` to float32.

    Parameters
    ----------
    x : Blocks, or numpy.ndarray of float16 or bfloat16
        At least one axis; any strides.
    out : numpy.ndarray of float32
        Of x's shape and any strides; overwritten.
    n_threads : int
        At most so many threads, the caller among them.

    Returns
    -------
    int
        0 success, 1 a dtype without a kernel, 3 aborted.

    Raises
    ------
    ValueError
        At the first use: GGARRAY_CPU_ISA is wrong.
    """
    known = supported(x.dtype) if isinstance(x, Blocks) else CODES.get(x.dtype) in DECODED
    if out.dtype != FLOAT32 or not known:
        return _FAILED
    require_isa()
    parameters = ffi.new("int64_t[]", to_float_parameters(x, out))
    return int(lib.gg_to_float(pointer(memory(x)), pointer(out), parameters, n_threads))


def from_float(x: Array, out: Blocks, n_threads: int = 1) -> int:
    """Quantize along the last axis, as ggml's reference quantizers do, byte for byte.

    Parameters
    ----------
    x : numpy.ndarray of float32
        C-contiguous and finite; its last axis is a multiple of the block.
    out : Blocks
        Of x's shape, blocked along the last axis and C-contiguous; nobody has seen it yet, so
        that it is filled although blocks are read-only to everybody else.
    n_threads : int
        At most so many threads, the caller among them.

    Returns
    -------
    int
        0 success, 1 a dtype without a quantizer, 3 aborted.

    Raises
    ------
    ValueError
        The layouts are not as above.
    """
    if not supported(out.dtype) or x.dtype != FLOAT32:
        return _FAILED
    code, size = from_float_parameters(x, out)
    source = ffi.cast("float *", pointer(x))
    return int(lib.gg_from_float(code, source, pointer(out.data), size, n_threads))
