"""Which backend computes a product, and why."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ggarray._graph.ir import Graph, Vertex
from ggarray._graph.products import as_column, as_matrix
from ggarray._quantized.traits import QuantizedDType
from ggarray._runtime.plugins import candidates, generation
from ggarray.interface import (
    HOST,
    PRODUCTS,
    BackendDevice,
    BufferType,
    HostBuffers,
    Kernel,
    Offload,
    Op,
    Tensor,
)
from ggarray.interface.nodes import contiguous_strides


class Choice(NamedTuple):
    """Who computes a node, and why that one."""

    device: BackendDevice
    reason: str


def works_in(device: BackendDevice) -> BufferType:
    """Return the memory of a device's operands and results: the host's if it can be."""
    if device.supports_buffer_type(HOST):
        return HOST
    if isinstance(device, HostBuffers) and device.takes_host_ptr:
        return HOST
    return device.buffer_type


def is_direct(device: BackendDevice) -> bool:
    """Tell whether a device computes in host memory, and has done so when a call returns."""
    return not device.asynchronous and device.supports_buffer_type(HOST)


def is_computed_by_backend(graph: Graph, vertex: Vertex) -> bool:
    """Tell whether a backend computes this: products, and what decodes blocks."""
    if vertex.op is not Op.COPY:
        return vertex.op in PRODUCTS
    return isinstance(graph.tensor(vertex.operands[0]).dtype, QuantizedDType)


def kernel_of(graph: Graph, vertex: Vertex) -> Kernel:
    """Return the kernel of a vertex that a backend computes, with tensors for values.

    Operands have been converted: they are quantized, or of the product's dtype.
    """
    return _kernel(_asked(graph, vertex))


class _Question(NamedTuple):
    """What the choice of a backend depends on: a vertex, with layouts in place of operands."""

    op: Op
    shape: tuple[int, ...]
    dtype: Any
    device: str
    params: Any
    alpha: complex
    beta: int
    operands: tuple[Tensor, ...]
    weights: tuple[frozenset[str], ...]  # of each constant operand, where there are copies of it


def _asked(graph: Graph, vertex: Vertex) -> _Question:
    op, refs, shape, dtype, device, params, alpha, beta, _ = vertex
    leaves = [graph.leaves[~ref] for ref in refs if ref < 0]
    weights = tuple([leaf.resident for leaf in leaves if leaf.constant])
    operands = tuple([graph.tensor(ref) for ref in refs])
    return _Question(op, shape, dtype, device, params, alpha, beta, operands, weights)


def _kernel(asked: _Question) -> Kernel:
    shape = asked.params if asked.op is Op.MATMUL else asked.shape
    out = Tensor(shape, asked.dtype, contiguous_strides(shape, asked.dtype.itemsize))
    return kernel_from(asked, asked.operands, out)


def kernel_from(vertex: Vertex | _Question, values: Sequence[Any], out: Any) -> Kernel:
    """Return the kernel of a vertex: vectors are matrices, a bias has all axes of `out`."""
    if vertex.op is Op.COPY:
        return Kernel(Op.COPY, (values[0],), out)
    a, b = values[:2]
    if vertex.op is Op.OUT_PROD:
        operands = as_column(a), as_column(b)
    else:
        operands = as_matrix(a, left=True), as_matrix(b, left=False)
    if len(values) == 2 and vertex.alpha == 1:
        return Kernel(vertex.op, operands, out)
    bias = with_axes(values[2], out.ndim) if len(values) > 2 else None
    return Kernel(vertex.op, operands, out, vertex.alpha, vertex.beta, bias)


def with_axes(value: Any, ndim: int) -> Any:
    """Return an array or tensor with leading axes of length 1, as many as are missing."""
    missing = ndim - value.ndim
    if not missing:
        return value
    if isinstance(value, Tensor):
        shape, strides = (1,) * missing + value.shape, (0,) * missing + value.strides
        return value._replace(shape=shape, strides=strides)
    return value[(None,) * missing]


def choose(graph: Graph, vertex: Vertex) -> Choice:
    """Return who computes a vertex: the first backend of its device to take it, else the CPU."""
    preferred, cpu = candidates(vertex.device)
    if not preferred:
        return Choice(cpu, f"it computes all products of device {vertex.device}")
    device, reason = _answer(_asked(graph, vertex), generation())
    return Choice(device or cpu, reason)


def takes(graph: Graph, vertex: Vertex) -> bool:
    """Tell whether a backend of the vertex's own device computes it in one."""
    device, _ = _answer(_asked(graph, vertex), generation())
    return device is not None


@lru_cache(maxsize=4096)  # backends decide by what is asked alone, so each is asked once
def _answer(asked: _Question, _generation: int) -> tuple[BackendDevice | None, str]:
    """Return the first backend of a device to take what is asked, if one does, and why."""
    preferred, cpu = candidates(asked.device)
    kernel = _kernel(asked)
    refusals = []
    for device in preferred or (cpu,):
        why_not = _refusal(device, kernel, asked)
        if why_not is None:
            return device, f"device {asked.device} takes this {_what(kernel)}"
        refusals.append(why_not)
    return None, "; ".join(refusals)


def forget() -> None:
    """Ask backends again."""
    _answer.cache_clear()


def choose_for(kernel: Kernel, device: str) -> BackendDevice:
    """Return the first backend of the device that computes the kernel; the CPU always can."""
    preferred, cpu = candidates(device)
    for choice in preferred:
        if choice.supports_op(kernel):
            return choice
    return cpu


def _refusal(device: BackendDevice, kernel: Kernel, asked: _Question) -> str | None:
    """Return why a device does not compute a kernel; None if it does."""
    if not device.supports_op(kernel):
        if device.supports_op(_large(kernel)):
            return f"{device.name} takes {_what(kernel)}, but does these shapes worse or not at all"
        return f"{device.name} takes no {_what(kernel)}"
    if not isinstance(device, Offload) or works_in(device) is HOST:
        return None
    if all(device.name in residents for residents in asked.weights):
        return None  # where the weights are
    if device.offload_op(kernel):
        return None
    return f"{device.name} takes this {_what(kernel)}, but does not find it worth copying weights"


def _what(kernel: Kernel) -> str:
    dtypes = dict.fromkeys(str(each.dtype) for each in kernel.operands)
    return f"{kernel.op.value} of {' and '.join(dtypes)}"


_LARGE = 4096  # rows and columns of a product that is worth any backend's while


def _large(kernel: Kernel) -> Kernel:
    """Return a large kernel of the same kind, to ask a backend about."""
    inner = _LARGE if kernel.op is Op.MATMUL else 1
    shapes = (_LARGE, inner), (inner, _LARGE) if kernel.op is Op.MATMUL else (_LARGE, 1)
    operands = tuple(
        _matrix(shape, each.dtype) for shape, each in zip(shapes, kernel.operands, strict=False)
    )
    return Kernel(kernel.op, operands, _matrix((_LARGE, _LARGE), kernel.out.dtype))


def _matrix(shape: tuple[int, int], dtype: Any) -> Tensor:
    axis = 1 if isinstance(dtype, QuantizedDType) else None
    return Tensor(shape, dtype, (0, 0), axis).contiguous()
