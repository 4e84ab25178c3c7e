"""What a backend is.

A backend computes the nodes of a graph for one device. Its three objects follow ggml's: a
`Registry` names the devices it found on this machine, a `BackendDevice` says what a device is and
which nodes it can compute, and a `Backend` (a stream on that device) computes them. Register one
with `ggarray.register_backend`, or name the Registry in an entry point of the group
``ggarray.backends``.

Every value lives in host memory: operands are NumPy arrays, or `Blocks` of a quantized dtype.

Examples
--------
A whole backend; the CPU computes what it does not:

>>> import numpy as np
>>> from ggarray import interface
>>> class NumpyBackend(interface.Backend):
...     name = "numpy"
...
...     def graph_compute(self, graph):
...         for kernel in graph:
...             np.matmul(*kernel.operands, out=kernel.out)
...         return interface.Status.SUCCESS
>>> class NumpyDevice(interface.BackendDevice):
...     name, description, type = "numpy", "NumPy's products", interface.DeviceType.ACCEL
...
...     def memory(self):
...         return (0, 0)
...
...     def supports_op(self, node):
...         plain = all(each.dtype == node.out.dtype for each in node.operands)
...         return plain and node.op is interface.Op.MATMUL
...
...     def init_backend(self, params=""):
...         return NumpyBackend()
>>> class NumpyRegistry(interface.Registry):
...     name = "numpy"
...
...     def devices(self):
...         return [NumpyDevice()]
>>> xp.register_backend(NumpyRegistry())
>>> x = xp.ones((2, 2), device="numpy")
>>> x @ x
Array([[2., 2.],
       [2., 2.]], dtype=float64, device='numpy')
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, IntEnum, StrEnum
from typing import Any, NamedTuple

import numpy as np

from ggarray._quantized.blocks import Blocks

API_VERSION = 2

Value = np.ndarray[Any, Any] | Blocks
"""What a node's operand holds: a plain array, or the blocks of a quantized one."""


class BackendError(RuntimeError):
    """A backend failed, is not there, or was built for another version of this interface.

    Examples
    --------
    >>> issubclass(xp.BackendError, RuntimeError)
    True
    """


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


class Status(IntEnum):
    """Outcome of a computation; anything but SUCCESS leaves the graph pending.

    Examples
    --------
    >>> from ggarray.interface import Status
    >>> Status.SUCCESS, Status.ABORTED
    (<Status.SUCCESS: 0>, <Status.ABORTED: 3>)
    """

    SUCCESS = 0
    FAILED = 1
    ALLOC_FAILED = 2
    ABORTED = 3


class DeviceType(Enum):
    """Kind of a device; an ACCEL helps the CPU and shares its memory.

    Examples
    --------
    >>> from ggarray.backends.cpu import registry
    >>> registry.devices()[0].type
    <DeviceType.CPU: 'cpu'>
    """

    CPU = "cpu"
    GPU = "gpu"
    IGPU = "igpu"
    ACCEL = "accel"


class Tensor(NamedTuple):
    """Stands for a value that has not been computed: what `BackendDevice.supports_op` may ask.

    Parameters
    ----------
    shape : tuple of int
        Lengths of the axes.
    dtype : numpy.dtype or QuantizedDType
        Of its elements.
    strides : tuple of int
        Bytes from one place to the next along each axis.

    Examples
    --------
    >>> import numpy as np
    >>> from ggarray.interface import Tensor
    >>> a = Tensor((2, 3), np.dtype(np.float64), (24, 8))
    >>> a.ndim, a.size
    (2, 6)
    """

    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...]

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


class Kernel:
    """One node with its memory, ready to be computed.

    Parameters
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

    Examples
    --------
    >>> import numpy as np
    >>> from ggarray.interface import Kernel, Op
    >>> kernel = Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)))
    >>> kernel.op.value
    'matmul'
    """

    __slots__ = ("op", "operands", "out")

    def __init__(self, op: Op, operands: tuple[Any, ...], out: Any) -> None:
        self.op = op
        self.operands = operands
        self.out = out


class Registry(ABC):
    """The devices that one backend found on this machine.

    Examples
    --------
    >>> from ggarray.backends.cpu import registry
    >>> registry.name, registry.api_version
    ('cpu', 2)
    """

    name: str
    api_version: int = API_VERSION

    @abstractmethod
    def devices(self) -> "Sequence[BackendDevice]":
        """Return the devices present, the best first; called once, when first needed.

        Returns
        -------
        sequence of BackendDevice
            Of names that no other backend has.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> [device.name for device in registry.devices()]
        ['cpu']
        """

    def score(self) -> int:
        """Return how well this build of the backend suits this machine; 0 where it is of no use.

        Asked once of the registries that entry points of installed distributions name, before
        `devices`: of those with the same ``name`` the best is taken. `ggarray.register_backend`
        does not ask.

        Returns
        -------
        int
            1 unless a backend says otherwise.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> registry.score()
        1
        """
        return 1

    def get_proc_address(self, name: str) -> Callable[..., Any] | None:
        """Return the backend's extra function of this name, for users of that backend.

        Parameters
        ----------
        name : str
            One of ``procedures()``.

        Returns
        -------
        callable or None
            None if there is no such function.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> callable(registry.get_proc_address("get_features"))
        True
        """
        return self.procedures().get(name)

    def procedures(self) -> Mapping[str, Callable[..., Any]]:
        """Return the backend's extra functions by name.

        Returns
        -------
        mapping of str to callable
            Empty unless a backend says otherwise.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> sorted(registry.procedures())
        ['get_features', 'set_n_threads']
        """
        return {}


class BackendDevice(ABC):
    """One device: what it is, and what it can compute.

    Examples
    --------
    >>> from ggarray.backends.cpu import registry
    >>> device = registry.devices()[0]
    >>> device.name, device.type
    ('cpu', <DeviceType.CPU: 'cpu'>)
    """

    name: str
    description: str
    type: DeviceType

    @abstractmethod
    def memory(self) -> tuple[int, int]:
        """Return free and total memory in bytes.

        Returns
        -------
        tuple of two int
            (0, 0) where nothing is known.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> free, total = registry.devices()[0].memory()
        >>> free <= total
        True
        """

    @abstractmethod
    def supports_op(self, node: Kernel) -> bool:
        """Tell whether the device computes this node.

        Decide by the operation and by the dtypes, shapes and strides of ``node.operands`` and
        ``node.out`` alone: the operands' values may not have been computed yet.

        Parameters
        ----------
        node : Kernel
            The node, perhaps with a `Tensor` in place of a value.

        Returns
        -------
        bool
            False leaves the node to another device, in the end to the CPU, which computes every
            one.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.backends.cpu import registry
        >>> from ggarray.interface import Kernel, Op
        >>> kernel = Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)))
        >>> registry.devices()[0].supports_op(kernel)
        True
        """

    @abstractmethod
    def init_backend(self, params: str = "") -> "Backend":
        """Return a stream on this device; called once, when first needed.

        Parameters
        ----------
        params : str
            For the backend to read; empty unless its user says otherwise.

        Returns
        -------
        Backend
            The stream that computes this device's nodes.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> registry.devices()[0].init_backend().name
        'cpu'
        """


class Backend(ABC):
    """A stream that computes nodes on its device.

    ``n_threads`` is set before each call of `graph_compute`: the number of threads it may use.

    Examples
    --------
    >>> from ggarray.backends.cpu import registry
    >>> stream = registry.devices()[0].init_backend()
    >>> stream.n_threads
    1
    """

    name: str
    n_threads: int = 1

    @abstractmethod
    def graph_compute(self, graph: Sequence[Kernel]) -> Status:
        """Compute the nodes in order, and fill the ``out`` of each.

        Parameters
        ----------
        graph : sequence of Kernel
            Nodes that the device said it supports; operands have their values.

        Returns
        -------
        Status
            SUCCESS once every ``out`` is filled. FAILED becomes a `BackendError`, ALLOC_FAILED a
            MemoryError, ABORTED a KeyboardInterrupt; all arrays are then pending as before.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.backends.cpu import registry
        >>> from ggarray.interface import Kernel, Op
        >>> kernel = Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)))
        >>> registry.devices()[0].init_backend().graph_compute([kernel])
        <Status.SUCCESS: 0>
        >>> kernel.out
        array([[3., 3.],
               [3., 3.]])
        """

    def synchronize(self) -> None:
        """Return when everything asked for is done; at once where `graph_compute` waits itself.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> registry.devices()[0].init_backend().synchronize()
        """
        return
