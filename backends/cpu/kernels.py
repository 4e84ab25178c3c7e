"""The Python face of the C kernels, for the cpu and the blas backends.

Operands are NumPy arrays of any strides, or `Blocks` of a quantized dtype. Every function that
computes returns a status as `ggarray.interface.Status` numbers it: 0 success, 1 failed (a dtype
or combination without a kernel), 2 allocation failed, 3 aborted. Shapes are the caller's duty.
"""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import BY_TYPE_ID
from ggarray._version import __version__
from ggarray.backends.cpu._kernels import ffi, lib

__all__ = [
    "features",
    "from_float",
    "matmul",
    "out_prod",
    "set_abort",
    "supported",
    "to_float",
]

_Array: TypeAlias = np.ndarray[Any, Any]

_built = ffi.string(lib.gg_version()).decode()
if _built != __version__:
    raise ImportError(
        f"the compiled kernels are of version {_built} but ggarray is {__version__}: "
        "reinstall ggarray so that both are built together"
    )

_from_buffer = ffi.from_buffer
_matmul_2d = lib.gg_matmul_2d
_NO_ISA: int = lib.GG_NO_ISA
_FAILED: int = lib.GG_FAILED

_CODES: dict[Any, int] = {
    np.dtype(np.float32): lib.GG_F32,
    np.dtype(np.float64): lib.GG_F64,
    np.dtype(np.complex64): lib.GG_C64,
    np.dtype(np.complex128): lib.GG_C128,
    np.dtype(np.int8): lib.GG_I8,
    np.dtype(np.int16): lib.GG_I16,
    np.dtype(np.int32): lib.GG_I32,
    np.dtype(np.int64): lib.GG_I64,
    np.dtype(np.uint8): lib.GG_U8,
    np.dtype(np.uint16): lib.GG_U16,
    np.dtype(np.uint32): lib.GG_U32,
    np.dtype(np.uint64): lib.GG_U64,
    np.dtype(np.float16): lib.GG_F16,
}
try:
    from ml_dtypes import bfloat16 as _bfloat16
except ImportError:
    pass
else:
    _CODES[np.dtype(_bfloat16)] = lib.GG_BF16

_BF16: int = lib.GG_BF16
_FLOAT32 = np.dtype(np.float32)
_DECODED = frozenset({lib.GG_F16, _BF16})
_BLOCKED = frozenset(q for q in BY_TYPE_ID.values() if lib.gg_block_size(q.type_id))


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
    if lib.gg_isa_name() == ffi.NULL:
        _select_isa()
    isa = ffi.string(lib.gg_isa_name()).decode()
    return {"isa": isa, "usable": tuple(_usable_isas()), "version": _built}


def supported(dtype: Any) -> bool:
    """Return whether products with operands of `dtype` have a kernel.

    Parameters
    ----------
    dtype : numpy.dtype or QuantizedDType
    """
    return dtype in _CODES or dtype in _BLOCKED


def set_abort(on: bool) -> None:
    """While on, running and new computations stop early and return status 3.

    Computations that are short enough to be one piece of work may still end with success.
    """
    lib.gg_set_abort(on)


def _pointer(x: _Array) -> Any:
    """Return the address of the first element; the buffer protocol is the quickest way to it."""
    flags = x.flags
    if flags.c_contiguous:
        return _from_buffer(x)
    if flags.f_contiguous:
        return _from_buffer(x.T)
    return ffi.cast("char *", x.__array_interface__["data"][0])


def matmul(a: _Array | Blocks, b: _Array | Blocks, out: _Array, n_threads: int = 1) -> int:
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
    code = _CODES.get(dtype)
    if code is None:
        return _FAILED
    if not (a.dtype is dtype is b.dtype or (_computes_in(a, dtype) and _computes_in(b, dtype))):
        return _FAILED
    if out.ndim != 2:
        return _matmul_of_batch(a, b, out, code, n_threads)
    m, n = out.shape
    a_pointer, a_type, a_axis, a_row, a_column = _matrix(a, code)
    b_pointer, b_type, b_axis, b_row, b_column = _matrix(b, code)
    status: int = _matmul_2d(
        a_pointer, a_type, a_axis,
        b_pointer, b_type, b_axis,
        _pointer(out.view(np.uint16) if code == _BF16 else out), code, m, n, a.shape[1],
        a_row, a_column, b_row, b_column, out.strides[0],
        n_threads,
    )  # fmt: skip
    if status == _NO_ISA:
        _select_isa()
        return matmul(a, b, out, n_threads)
    return status


def _matrix(x: _Array | Blocks, code: int) -> tuple[Any, int, int, int, int]:
    """Return address, type, blocked axis (from the end), row stride and column stride."""
    if isinstance(x, Blocks):
        data = x.data
        row, column, _ = data.strides
        return _pointer(data), x.dtype.type_id, x.axis - 2, row, column
    if code == _BF16:  # has no buffer protocol
        x = x.view(np.uint16)
    row, column = x.strides
    return _pointer(x), code, 0, row, column


def _bytes_of(x: _Array | Blocks) -> _Array:
    """Return an array with x's address and strides that has a buffer protocol."""
    if isinstance(x, Blocks):
        return x.data[..., 0]
    return x.view(np.uint16) if _CODES[x.dtype] == _BF16 else x


def _operand(x: _Array | Blocks, code: int, batch: int) -> tuple[Any, list[int], list[int]]:
    """Return how gg_matmul takes an operand of a product with `batch` leading axes.

    That is its address; type, blocked axis (from the end), row stride and column stride; and the
    strides along the batch axes, 0 where it is broadcast.
    """
    if isinstance(x, Blocks):
        data = x.data
        strides = data.strides[:-1]
        kind = [x.dtype.type_id, x.axis - len(strides)]
    else:
        data = x if code != _BF16 else x.view(np.uint16)
        strides = data.strides
        kind = [code, 0]
    leading = len(strides) - 2
    shape = x.shape
    steps = [0] * (batch - leading)
    steps += [0 if shape[axis] == 1 else strides[axis] for axis in range(leading)]
    return _pointer(data), [*kind, *strides[leading:]], steps


def _decoded_if_batch_is_blocked(x: _Array | Blocks, n_threads: int) -> _Array | Blocks:
    """Return x, or float32 where whole blocks would span several products."""
    if not isinstance(x, Blocks) or x.axis >= x.ndim - 2:
        return x
    plain = np.empty(x.shape, np.float32)
    to_float(x, plain, n_threads)
    return plain


def _computes_in(x: _Array | Blocks, dtype: np.dtype[Any]) -> bool:
    if isinstance(x, Blocks):
        return bool(dtype == _FLOAT32) and supported(x.dtype)
    same: bool = x.dtype == dtype
    return same


def _matmul_of_batch(
    a: _Array | Blocks, b: _Array | Blocks, out: _Array, code: int, n_threads: int
) -> int:
    """Compute products with batch axes; see `matmul`."""
    a = _decoded_if_batch_is_blocked(a, n_threads)
    b = _decoded_if_batch_is_blocked(b, n_threads)
    *batch, m, n = out.shape
    a_pointer, a_layout, a_steps = _operand(a, code, len(batch))
    b_pointer, b_layout, b_steps = _operand(b, code, len(batch))
    out_pointer, (_, _, out_row, _), out_steps = _operand(out, code, len(batch))
    sizes = [m, n, a.shape[-1], code, out_row, len(batch)]
    parameters = [*sizes, *a_layout, *b_layout, *batch, *a_steps, *b_steps, *out_steps]
    status: int = lib.gg_matmul(
        a_pointer, b_pointer, out_pointer, ffi.new("int64_t[]", parameters), n_threads
    )
    if status == _NO_ISA:
        _select_isa()
        return _matmul_of_batch(a, b, out, code, n_threads)
    return status


def out_prod(a: _Array, b: _Array, out: _Array, n_threads: int = 1) -> int:
    """Compute ``out[i, j] = a[i] * b[j]``, each a single rounded multiplication.

    Parameters
    ----------
    a, b : numpy.ndarray
        One axis, any strides, of out's dtype.
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
    code = _CODES.get(out.dtype)
    if code is None or a.dtype != out.dtype or b.dtype != out.dtype:
        return _FAILED
    if lib.gg_isa_name() == ffi.NULL:
        _select_isa()
    return int(
        lib.gg_out_prod(
            code,
            _pointer(_bytes_of(a)),
            _pointer(_bytes_of(b)),
            _pointer(_bytes_of(out)),
            *out.shape,
            *a.strides,
            *b.strides,
            out.strides[0],
            n_threads,
        )
    )


def to_float(x: _Array | Blocks, out: _Array, n_threads: int = 1) -> int:
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
    if isinstance(x, Blocks):
        code, row, known = x.dtype.type_id, x.axis, supported(x.dtype)
    else:
        code, row = _CODES.get(x.dtype, -1), x.ndim - 1
        known = code in _DECODED
    if out.dtype != np.float32 or not known:
        return _FAILED
    if lib.gg_isa_name() == ffi.NULL:
        _select_isa()
    source = _bytes_of(x)
    outer = [axis for axis in range(x.ndim) if axis != row]
    parameters = [code, len(outer), source.shape[row], source.strides[row], out.strides[row]]
    parameters += [x.shape[axis] for axis in outer]
    parameters += [source.strides[axis] for axis in outer]
    parameters += [out.strides[axis] for axis in outer]
    return int(
        lib.gg_to_float(
            _pointer(source), _pointer(out), ffi.new("int64_t[]", parameters), n_threads
        )
    )


def from_float(x: _Array, out: Blocks, n_threads: int = 1) -> int:
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
    if not supported(out.dtype) or x.dtype != np.float32:
        return _FAILED
    if x.shape != out.shape or not (x.flags.c_contiguous and out.data.flags.c_contiguous):
        raise ValueError(
            f"quantizing to {out.dtype} needs C-contiguous rows of the same shape, not {x.shape}"
            f" with strides {x.strides} and {out.shape} with {out.data.strides}"
        )
    source = ffi.cast("float *", _from_buffer(x))
    status: int = lib.gg_from_float(
        out.dtype.type_id, source, _from_buffer(out.data), x.size, n_threads
    )
    return status
