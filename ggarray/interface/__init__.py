"""What a backend is.

A backend computes the nodes of a graph for one device. Its three objects follow ggml's: a
`Registry` names the devices it found on this machine, a `BackendDevice` says what a device is and
which nodes it can compute, and a `Backend` (a stream on that device) computes them. Register one
with `ggarray.register_backend`, or name the Registry in an entry point of the group
``ggarray.backends``.

Every value of a program lives in host memory: operands are NumPy arrays, or `Blocks` of a
quantized dtype. A device of its own memory names a `BufferType`, and ggarray copies values to and
from the `Buffer` objects that it allocates. What else a device or a stream may offer is in groups,
classes to be inherited too: `HostBuffers`, `Offload` and `Events` of a device, `Plans`,
`GraphOptimize` and `Async` of a stream.

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
...         arrays = all(each.dtype == node.out.dtype for each in node.operands)
...         return arrays and node.plain and node.op is interface.Op.MATMUL
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

from ggarray.interface.buffers import (
    HOST,
    Buffer,
    BufferType,
    HostBuffer,
    HostBufferType,
    MultiBuffer,
    TensorAllocator,
    Usage,
    alloc_tensors,
    copy_tensor,
)
from ggarray.interface.devices import (
    API_VERSION,
    BackendDevice,
    Caps,
    DeviceType,
    Events,
    HostBuffers,
    Offload,
    Props,
    Registry,
)
from ggarray.interface.nodes import PRODUCTS, Flag, Kernel, Op, Tensor, Value
from ggarray.interface.outcome import BackendError, Status
from ggarray.interface.streams import Async, Backend, GraphOptimize, Plans

__all__ = [
    "API_VERSION",
    "HOST",
    "PRODUCTS",
    "Async",
    "Backend",
    "BackendDevice",
    "BackendError",
    "Buffer",
    "BufferType",
    "Caps",
    "DeviceType",
    "Events",
    "Flag",
    "GraphOptimize",
    "HostBuffer",
    "HostBufferType",
    "HostBuffers",
    "Kernel",
    "MultiBuffer",
    "Offload",
    "Op",
    "Plans",
    "Props",
    "Registry",
    "Status",
    "Tensor",
    "TensorAllocator",
    "Usage",
    "Value",
    "alloc_tensors",
    "copy_tensor",
]
