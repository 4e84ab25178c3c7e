"""The code of backends' authors: NumPy as a device, and one of its own memory and time."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, assert_type

import numpy as np

import ggarray as xp
from ggarray.interface import (
    API_VERSION,
    HOST,
    PRODUCTS,
    Async,
    Backend,
    BackendDevice,
    Buffer,
    BufferType,
    Caps,
    DeviceType,
    Events,
    Flag,
    GraphOptimize,
    HostBuffer,
    HostBuffers,
    HostBufferType,
    Kernel,
    MultiBuffer,
    Offload,
    Op,
    Plans,
    Props,
    Registry,
    Status,
    Tensor,
    TensorAllocator,
    Usage,
    Value,
    alloc_tensors,
    copy_tensor,
)

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class NumpyBackend(Backend):
    name = "numpy"

    def graph_compute(self, graph: Sequence[Kernel]) -> Status:
        for kernel in graph:
            assert_type(kernel.op, Op)
            a, b = kernel.operands
            if kernel.op is Op.OUT_PROD:
                np.multiply(a, b.T, out=kernel.out)
            else:
                np.matmul(a, b, out=kernel.out)
        return Status.SUCCESS


class NumpyDevice(BackendDevice):
    name = "numpy"
    description = "NumPy's products"
    type = DeviceType.ACCEL

    def memory(self) -> tuple[int, int]:
        return 0, 0

    def supports_op(self, node: Kernel) -> bool:
        if any(isinstance(operand, Tensor) and operand.ndim > 2 for operand in node.operands):
            return False
        return node.op in PRODUCTS

    def init_backend(self, params: str = "") -> Backend:
        return NumpyBackend()


class NumpyRegistry(Registry):
    name = "numpy"

    def devices(self) -> Sequence[BackendDevice]:
        return [NumpyDevice()]

    def procedures(self) -> Mapping[str, Callable[..., Any]]:
        return {"numpy_version": lambda: np.__version__}


def use() -> None:
    registry = NumpyRegistry()
    assert_type(registry.api_version, int)
    assert registry.api_version == API_VERSION
    assert_type(registry.get_proc_address("numpy_version"), Callable[..., Any] | None)
    stream = registry.devices()[0].init_backend()
    assert_type(stream.n_threads, int)
    kernel = Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)))
    assert_type(stream.graph_compute([kernel]), Status)
    stream.synchronize()
    xp.register_backend(registry)


class FarBuffer(Buffer):
    def __init__(self, buffer_type: BufferType, size: int) -> None:
        super().__init__(buffer_type, size)
        self.far = HOST.alloc(size)

    @property
    def base(self) -> int:
        return 0

    def set_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        self.far.set_tensor(tensor, data, offset)

    def get_tensor(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        self.far.get_tensor(tensor, data, offset)

    def init_tensor(self, tensor: Tensor) -> Status:
        return Status.ALLOC_FAILED if tensor.axis is not None else Status.SUCCESS

    def copy_tensor(self, source: Tensor, target: Tensor) -> bool:
        if not isinstance(source.buffer, FarBuffer):
            return False
        return self.far.copy_tensor(source._replace(buffer=source.buffer.far), target)

    def free(self) -> None:
        del self.far


class FarType(BufferType):
    def __init__(self, device: BackendDevice) -> None:
        super().__init__("far", device, alignment=256, max_size=1 << 30)

    def alloc(self, size: int) -> FarBuffer:
        return FarBuffer(self, size)

    def alloc_size(self, tensor: Tensor) -> int:
        return tensor.nbytes + 64


Plan = list[Kernel]


class FarStream(Backend, Async, Plans, GraphOptimize):
    name = "far"

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1)
        self.asked: list[Future[Any]] = []

    def ask(self, call: Callable[..., object], *args: object) -> None:
        self.asked.append(self.thread.submit(call, *args))

    def graph_compute(self, graph: Sequence[Kernel]) -> Status:
        for kernel in graph:
            if Flag.COMPUTE in kernel.flags:
                self.ask(self.compute, kernel)
        return Status.SUCCESS

    def compute(self, kernel: Kernel) -> None:
        a, b = map(self.near, kernel.operands)
        out = self.near(kernel.out)
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and isinstance(out, np.ndarray):
            np.matmul(a, b, out=out)

    def near(self, tensor: Tensor) -> Value:
        assert isinstance(tensor.buffer, FarBuffer)
        return tensor.buffer.far.array(tensor)

    def synchronize(self) -> Status:
        failed = any(each.exception() is not None for each in self.asked)
        self.asked.clear()
        return Status.FAILED if failed else Status.SUCCESS

    def set_tensor_async(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        assert tensor.buffer is not None
        self.ask(tensor.buffer.set_tensor, tensor, data, offset)

    def get_tensor_async(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        assert tensor.buffer is not None
        self.ask(tensor.buffer.get_tensor, tensor, data, offset)

    def copy_tensor_async(self, source_stream: Backend, source: Tensor, target: Tensor) -> bool:
        if not isinstance(source_stream, FarStream):
            return False
        event = threading.Event()
        source_stream.event_record(event)
        self.event_wait(event)
        self.ask(copy_tensor, source, target)
        return True

    def event_record(self, event: threading.Event) -> None:
        event.clear()
        self.ask(event.set)

    def event_wait(self, event: threading.Event) -> None:
        self.ask(event.wait)

    def graph_plan_create(self, graph: Sequence[Kernel]) -> Plan:
        return list(graph)

    def graph_plan_update(self, plan: Plan, graph: Sequence[Kernel]) -> None:
        plan[:] = graph

    def graph_plan_compute(self, plan: Plan) -> Status:
        return self.graph_compute(plan)

    def graph_plan_free(self, plan: Plan) -> None:
        plan.clear()

    def graph_optimize(
        self, graph: Sequence[Kernel], add_alloc_dep: Callable[[int, int], None]
    ) -> Sequence[int]:
        for at in range(1, len(graph)):
            add_alloc_dep(at - 1, at)
        return range(len(graph))


class FarDevice(BackendDevice, HostBuffers, Offload, Events):
    name = "far"
    description = "another thread"
    type = DeviceType.GPU
    device_id = "0000:01:00.0"
    asynchronous = True
    host_buffer_type = HostBufferType("pinned")
    takes_host_ptr = False

    def __init__(self) -> None:
        self.buffer_type = FarType(self)

    def memory(self) -> tuple[int, int]:
        return 1 << 30, 1 << 32

    def supports_op(self, node: Kernel) -> bool:
        return node.op is Op.MATMUL and node.plain

    def supports_buffer_type(self, buffer_type: BufferType) -> bool:
        return super().supports_buffer_type(buffer_type) or buffer_type.name == "far"

    def offload_op(self, node: Kernel) -> bool:
        return bool(node.out.shape[-2] >= 32)

    def init_backend(self, params: str = "") -> FarStream:
        return FarStream()

    def event_new(self) -> threading.Event:
        return threading.Event()

    def event_synchronize(self, event: threading.Event) -> None:
        event.wait()


def use_far_memory() -> None:
    device = FarDevice()
    assert_type(device.caps, Caps)
    assert_type(device.caps.events, bool)
    assert_type(device.props, Props)
    assert_type(device.props.device_id, str | None)
    assert_type(device.supports_buffer_type(HOST), bool)
    a = Tensor.like(np.ones((2, 3)))
    assert_type(a, Tensor)
    assert_type(a.contiguous().nbytes, int)
    owner, placed = alloc_tensors([a, a], device.buffer_type, Usage.WEIGHTS)
    assert_type(owner, Buffer)
    assert_type(placed, tuple[Tensor, ...])
    assert_type(owner.usage, Usage)
    if isinstance(owner, MultiBuffer):
        assert_type(owner.buffers, tuple[Buffer, ...])
        owner.usage = Usage.COMPUTE
    near = HOST.alloc(a.nbytes)
    assert_type(near, HostBuffer)
    assert_type(near.memory, Bytes)
    b = TensorAllocator(near).alloc(a)
    assert_type(b.buffer, Buffer | None)
    copy_tensor(placed[0], b)
    value: Value = near.array(b)
    assert_type(value.shape, tuple[int, ...] | Any)
    stream = device.init_backend()
    stream.set_tensor_async(placed[1], np.zeros(b.nbytes, np.uint8))
    event = device.event_new()
    stream.event_record(event)
    device.event_synchronize(event)
    device.event_free(event)
    assert_type(stream.synchronize(), Status)


def use_groups(device: BackendDevice, stream: Backend, graph: Sequence[Kernel]) -> None:
    if isinstance(device, HostBuffers):
        assert_type(device.host_buffer_type, BufferType | None)
        assert_type(device.buffer_from_host_ptr(0, 64, 64), Buffer)
    if isinstance(device, Offload):
        assert_type(device.offload_op(graph[0]), bool)
    if isinstance(stream, Plans):
        assert_type(stream.graph_plan_compute(stream.graph_plan_create(graph)), Status)
    if isinstance(stream, GraphOptimize):
        assert_type(stream.graph_optimize(graph, lambda node, until: None), Sequence[int])
    assert_type(graph[0].flags, Flag)
    assert_type(graph[0].trans, tuple[bool, ...])
    assert_type(graph[0].batch_strides, tuple[tuple[int, ...], ...])
