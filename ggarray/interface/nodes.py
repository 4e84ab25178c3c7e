"""What a graph is made of: operations, and the values they take and give."""

import math
from collections.abc import Sequence
from enum import IntFlag, StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import QuantizedDType

if TYPE_CHECKING:
    from ggarray.interface.buffers import Buffer

Value = np.ndarray[Any, Any] | Blocks
"""What an operand in host memory is: a plain array, or the blocks of a quantized one."""


class Op(StrEnum):
    """The closed list of graph operations.

    Examples
    --------
    >>> from ggarray.interface import Op
    >>> list(Op)[:2]
    [<Op.MATMUL: 'matmul'>, <Op.OUT_PROD: 'out_prod'>]
    """

    MATMUL = "matmul"
    OUT_PROD = "out_prod"
    VIEW = "view"
    COPY = "copy"
    ADD = "add"
    SCALE = "scale"

    __hash__ = str.__hash__  # Enum's own is a Python function, and every product asks for it


PRODUCTS = frozenset({Op.MATMUL, Op.OUT_PROD})
"""The operations that backends compute; the host computes the others."""


class Flag(IntFlag):
    """What a backend may know of a node besides its operation; the values are ggml's.

    ``INPUT``: no operand is the ``out`` of another node of the same graph. ``OUTPUT``: the value is
    read after the graph, so it has to be in ``out``; that of a node without this flag is read by
    nodes of the same graph only. ``COMPUTE``: the node is to be computed; a backend skips one
    without this flag.

    Examples
    --------
    >>> from ggarray.interface import Flag
    >>> Flag.COMPUTE in (Flag.OUTPUT | Flag.COMPUTE)
    True
    """

    INPUT = 1
    OUTPUT = 2
    COMPUTE = 16


class Tensor(NamedTuple):
    """A value as a backend may get it: its layout, and where it is if it is somewhere.

    `BackendDevice.supports_op` and `BufferType.alloc_size` get tensors without a buffer, which
    stand for values that have not been computed. A backend whose buffers are not host memory gets
    those of operands and results in its buffers.

    Parameters
    ----------
    shape : tuple of int
        Lengths of the axes.
    dtype : numpy.dtype or QuantizedDType
        Of its elements.
    strides : tuple of int
        Bytes from one place to the next along each axis; from one block to the next along the axis
        of a quantized dtype's blocks.
    axis : int or None
        The axis along which the blocks of a quantized dtype run.
    buffer : Buffer or None
        The memory that it is in.
    offset : int
        Bytes from the begin of that to the first element.

    Examples
    --------
    >>> import numpy as np
    >>> from ggarray.interface import Tensor
    >>> a = Tensor((2, 3), np.dtype(np.float64), (24, 8))
    >>> a.ndim, a.size, a.nbytes
    (2, 6, 48)
    """

    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...]
    axis: int | None = None
    buffer: "Buffer | None" = None
    offset: int = 0

    @property
    def ndim(self) -> int:
        """Number of axes.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import Tensor
        >>> Tensor((2, 3), np.dtype(np.float64), (24, 8)).ndim
        2
        """
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import Tensor
        >>> Tensor((2, 3), np.dtype(np.float64), (24, 8)).size
        6
        """
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements side by side.

        Examples
        --------
        >>> from ggarray.interface import Tensor
        >>> Tensor((2, 32), xp.q8_0, (34, 34), axis=1).nbytes
        68
        """
        if isinstance(self.dtype, QuantizedDType):
            return self.size // self.dtype.block_size * self.dtype.block_bytes
        return self.size * int(self.dtype.itemsize)

    @classmethod
    def like(cls, value: Any, **changed: Any) -> "Tensor":
        """Return the layout of an array, of blocks or of a tensor, with some fields changed.

        Parameters
        ----------
        value : numpy.ndarray, Blocks or Tensor
            What has the layout.
        **changed
            Other values for fields of the tensor.

        Returns
        -------
        Tensor
            Without a buffer, unless `value` has one or one is given.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import Tensor
        >>> Tensor.like(np.ones((2, 3)).T).strides
        (8, 24)
        """
        if isinstance(value, cls):
            return value._replace(**changed)
        blocks = isinstance(value, Blocks)
        strides = value.data.strides[:-1] if blocks else value.strides
        tensor = cls(value.shape, value.dtype, strides, value.axis if blocks else None)
        return tensor._replace(**changed) if changed else tensor

    def contiguous(self) -> "Tensor":
        """Return the tensor of this shape whose elements or blocks lie side by side, row-major.

        Returns
        -------
        Tensor
            In no buffer.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import Tensor
        >>> Tensor.like(np.ones((2, 3)).T).contiguous().strides
        (16, 8)
        """
        lengths = list(self.shape)
        if self.axis is not None:
            lengths[self.axis] //= self.dtype.block_size
        step = self.dtype.itemsize if self.axis is None else self.dtype.block_bytes
        return Tensor(self.shape, self.dtype, contiguous_strides(lengths, step), self.axis)


def contiguous_strides(lengths: Sequence[int], step: int) -> tuple[int, ...]:
    """Return the strides of a row-major array whose elements take `step` bytes."""
    if len(lengths) == 2:  # nearly always
        return (step * max(lengths[1], 1), step)
    strides = []
    for length in reversed(lengths):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


class Kernel:
    """One node with its memory, ready to be computed.

    The value is ``alpha * (a @ b) + beta * bias``; of an outer product the same with ``a @ b.T``.
    Only backends whose `BackendDevice.supports_op` takes them see an alpha or beta, or an `out` of
    another dtype; for others ggarray computes the product first and does the rest itself.

    Parameters
    ----------
    op : Op
        ``MATMUL``, ``OUT_PROD``, or ``COPY`` from or to a quantized dtype.
    operands : tuple of numpy.ndarray, Blocks or Tensor
        MATMUL: ``a`` of shape (..., m, k) and ``b`` of shape (..., k, n), whose leading dimensions
        broadcast. OUT_PROD: ``a`` (m, k) and ``b`` (n, k), for ``a @ b.T``; ggarray records outer
        products of vectors, which have one column. Plain operands have one dtype, that of
        ``out``, and any strides; a quantized one goes with float32, one a product. COPY: quantized
        blocks for a float32 ``out``, or float32 values for quantized ones. Arrays and blocks are
        host memory; a `Tensor` lies in a buffer of the device, or, where `supports_op` is asked,
        stands for a value that is not there yet.
    out : numpy.ndarray, Blocks or Tensor
        Where the result goes: (..., m, n) or (m, n), unit stride along the last axis. Its content
        is undefined before, and overlaps no operand.
    alpha : int, float or complex
        Finite and not 0; 1 unless the product is scaled. Of the operands' kind.
    beta : int
        0 without a bias, else 1 or -1.
    bias : numpy.ndarray, Tensor or None
        What is added: of the operands' dtype, of any strides, with as many axes as ``out``, each as
        long or of length 1 (a row, a column).
    flags : Flag
        What else is known of the node.

    Examples
    --------
    >>> import numpy as np
    >>> from ggarray.interface import Kernel, Op
    >>> kernel = Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)))
    >>> kernel.op.value, kernel.alpha, kernel.bias
    ('matmul', 1, None)
    """

    __slots__ = ("alpha", "beta", "bias", "flags", "op", "operands", "out")

    def __init__(
        self,
        op: Op,
        operands: tuple[Any, ...],
        out: Any,
        alpha: complex = 1,
        beta: int = 0,
        bias: Any = None,
        flags: Flag = Flag.COMPUTE,
    ) -> None:
        self.op = op
        self.operands = operands
        self.out = out
        self.alpha = alpha
        self.beta = beta
        self.bias = bias
        self.flags = flags

    @property
    def plain(self) -> bool:
        """True for a product and nothing else: no alpha, no bias, out in the operands' dtype.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import Kernel, Op
        >>> Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)), alpha=2).plain
        False
        """
        dtype = self.out.dtype
        return (
            self.alpha == 1
            and self.bias is None
            and all(
                each.dtype == dtype or isinstance(each.dtype, QuantizedDType)
                for each in self.operands
            )
        )

    @property
    def trans(self) -> tuple[bool, ...]:
        """Of each operand, whether its columns rather than its rows are contiguous.

        That is what BLAS calls a transposed operand. Of a matrix that is neither, or both, False.
        The stride of an axis of length 1 does not count.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import Kernel, Op
        >>> x = np.ones((2, 3))
        >>> Kernel(Op.MATMUL, (x.T, x), np.empty((3, 3))).trans
        (True, False)
        """
        return tuple(_is_transposed(Tensor.like(each)) for each in self.operands)

    @property
    def batch_strides(self) -> tuple[tuple[int, ...], ...]:
        """Of each operand and of out, the strides in bytes along out's leading axes.

        0 where an operand is broadcast. Strides of a quantized operand are those of its blocks.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import Kernel, Op
        >>> out = np.empty((5, 2, 2))
        >>> Kernel(Op.MATMUL, (np.ones((5, 2, 3)), np.ones((3, 2))), out).batch_strides
        ((48,), (0,), (32,))
        """
        batch = self.out.ndim - 2
        tensors = map(Tensor.like, (*self.operands, self.out))
        return tuple(_batch_strides(tensor, batch) for tensor in tensors)


def _is_transposed(x: Tensor) -> bool:
    if x.axis is not None:
        return x.axis == x.ndim - 2
    if x.ndim < 2:
        return False
    (m, n), (rows, columns), itemsize = x.shape[-2:], x.strides[-2:], x.dtype.itemsize
    in_columns = rows == itemsize or m == 1
    return m > 0 and n > 1 and in_columns and columns >= m * itemsize and columns > itemsize


def _batch_strides(x: Tensor, batch: int) -> tuple[int, ...]:
    own = zip(x.shape[:-2], x.strides[:-2], strict=True)
    steps = (0 if length == 1 else stride for length, stride in own)
    return (*[0] * (batch + 2 - x.ndim), *steps)
