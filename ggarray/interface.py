"""What a backend is.

A backend computes the nodes of a graph for one device. Its three objects follow ggml's: a
`Registry` names the devices it found on this machine, a `BackendDevice` says what a device is and
which nodes it can compute, and a `Backend` (a stream on that device) computes them. Register one
with `ggarray.register_backend`.

Every value lives in host memory: operands are NumPy arrays, or `Blocks` of a quantized dtype.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Any

import numpy as np

from ggarray._quantized.blocks import Blocks

API_VERSION = 2

Value = np.ndarray[Any, Any] | Blocks
"""What a node's operand holds: a plain array, or the blocks of a quantized one."""


class BackendError(RuntimeError):
    """A backend failed, is not there, or was built for another version of this interface."""


class Op(StrEnum):
    """The closed list of graph operations."""

    MATMUL = "matmul"
    OUT_PROD = "out_prod"
    VIEW = "view"
    COPY = "copy"
    ADD = "add"
    SCALE = "scale"


PRODUCTS = frozenset({Op.MATMUL, Op.OUT_PROD})
"""The operations that backends compute; the host computes the others."""


class Status(IntEnum):
    """Outcome of a computation; anything but SUCCESS leaves the graph pending."""

    SUCCESS = 0
    FAILED = 1
    ALLOC_FAILED = 2
    ABORTED = 3


class DeviceType(Enum):
    """Kind of a device; an ACCEL helps the CPU and shares its memory."""

    CPU = "cpu"
    GPU = "gpu"
    IGPU = "igpu"
    ACCEL = "accel"


@dataclass(frozen=True, slots=True)
class Tensor:
    """Stands for a value that has not been computed: what `BackendDevice.supports_op` may ask.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype or QuantizedDType
    strides : tuple of int
        In bytes.
    """

    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class Kernel:
    """One node with its memory, ready to be computed.

    Attributes
    ----------
    op : Op
        ``MATMUL``, ``OUT_PROD``, or ``COPY`` from or to a quantized dtype.
    operands : tuple of numpy.ndarray or Blocks
        MATMUL: ``a`` of shape (..., m, k) and ``b`` of shape (..., k, n), whose leading dimensions
        broadcast. OUT_PROD: ``a`` (m, 1) and ``b`` (n, 1). A plain operand has the dtype of
        ``out`` and any strides; a quantized one goes with a float32 ``out``, one a product.
        COPY: quantized blocks for a float32 ``out``, or float32 values for quantized ones.
        `BackendDevice.supports_op` may see a `Tensor` in place of a value.
    out : numpy.ndarray or Blocks
        Where the result goes: (..., m, n) or (m, n), unit stride along the last axis. Its content
        is undefined before, and overlaps no operand.
    """

    __slots__ = ("op", "operands", "out")

    def __init__(self, op: Op, operands: tuple[Any, ...], out: Any) -> None:
        self.op = op
        self.operands = operands
        self.out = out


class Registry(ABC):
    """The devices that one backend found on this machine."""

    name: str
    api_version: int = API_VERSION

    @abstractmethod
    def devices(self) -> "Sequence[BackendDevice]":
        """Return the devices present, the best first; called once, when first needed."""

    def get_proc_address(self, name: str) -> Callable[..., Any] | None:
        """Return the backend's extra function of this name, or None; for users of that backend."""
        return self.procedures().get(name)

    def procedures(self) -> Mapping[str, Callable[..., Any]]:
        """Return the backend's extra functions by name."""
        return {}


class BackendDevice(ABC):
    """One device: what it is, and what it can compute."""

    name: str
    description: str
    type: DeviceType

    @abstractmethod
    def memory(self) -> tuple[int, int]:
        """Return free and total memory in bytes; (0, 0) where nothing is known."""

    @abstractmethod
    def supports_op(self, node: Kernel) -> bool:
        """Tell whether the device computes this node.

        Decide by the operation and by the dtypes, shapes and strides of ``node.operands`` and
        ``node.out`` alone: the operands' values may not have been computed yet.
        """

    @abstractmethod
    def init_backend(self, params: str = "") -> "Backend":
        """Return a stream on this device; called once, when first needed."""


class Backend(ABC):
    """A stream that computes nodes on its device.

    ``n_threads`` is set before each call of `graph_compute`: the number of threads it may use.
    """

    name: str
    n_threads: int = 1

    @abstractmethod
    def graph_compute(self, graph: Sequence[Kernel]) -> Status:
        """Compute the nodes in order, and fill the ``out`` of each."""

    def synchronize(self) -> None:
        """Return when everything asked for is done; at once where `graph_compute` waits itself."""
        return
