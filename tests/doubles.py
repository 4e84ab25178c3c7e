"""Test doubles: devices that count, fail, do not mix or have memory of their own, all of NumPy."""

import weakref
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from threading import Event

import numpy as np

import ggarray as xp
from ggarray._graph.node import part
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.reference import dequantize_blocks
from ggarray._storage import address, root_of
from ggarray.interface import (
    HOST,
    PRODUCTS,
    Async,
    Backend,
    BackendDevice,
    Buffer,
    BufferType,
    DeviceType,
    Events,
    GraphOptimize,
    HostBuffer,
    HostBuffers,
    HostBufferType,
    Offload,
    Op,
    Plans,
    Registry,
    Status,
    Tensor,
)


class NumpyBackend(Backend):
    """Computes kernels with NumPy and keeps count of them."""

    def __init__(self, name):
        self.name = name
        self.computed = []
        self.outcomes = []  # statuses to return instead of computing, the next first
        self.before = None  # called before each kernel, as a signal handler may be

    def interrupt(self):
        if self.before is not None:
            self.before()

    def graph_compute(self, graph):
        return self.compute(graph, self.interrupt)

    def compute(self, graph, before_each=lambda: None):
        for kernel in graph:
            before_each()
            if self.outcomes:
                status = self.outcomes.pop(0)
                if isinstance(status, BaseException):
                    raise status
                if status is not Status.SUCCESS:
                    return status
            self.computed.append(kernel.op)
            compute(kernel)
        return Status.SUCCESS


def compute(kernel):
    """Compute a product, in the steps that it would have taken if each had been recorded alone."""
    a, b = map(plain, kernel.operands)
    value = np.matmul(a, b) if kernel.op is Op.MATMUL else a * b.T
    if kernel.alpha != 1:
        value = value * np.array([kernel.alpha]).astype(value.dtype)
    if kernel.bias is not None:
        value = value + plain(kernel.bias) if kernel.beta == 1 else value - plain(kernel.bias)
    array_of(kernel.out)[...] = value


def plain(value):
    """Return the array that an operand is, or stands for."""
    value = array_of(value)
    return dequantize_blocks(value) if isinstance(value, Blocks) else value


def array_of(value):
    return value.buffer.array(value) if isinstance(value, Tensor) else value


class NumpyDevice(BackendDevice):
    """A device of its own memory space as far as mixing goes."""

    type = DeviceType.ACCEL
    description = "NumPy, counted"
    fuses = False  # takes products that are scaled, added to or converted

    def __init__(self, name, backend=NumpyBackend):
        self.name = name
        self.backend = backend(name)
        self.happened = Counter()  # calls, and bytes where they are about bytes
        self.errors = {}  # to be raised, by what happens: one, or of several in turn some None

    def memory(self):
        return (0, 0)

    def supports_op(self, node):
        return node.op in PRODUCTS and (self.fuses or node.plain)

    def init_backend(self, params=""):
        return self.backend

    def happens(self, what, nbytes=1):
        """Keep count of a call; raise what a test wants it to."""
        error = self.errors.pop(what, None)
        if isinstance(error, list):
            error, *more = error
            if more:
                self.errors[what] = more
        if error is not None:
            raise error
        self.happened[what] += nbytes


class NumpyRegistry(Registry):
    """The devices ``counting`` and ``failing``."""

    name = "doubles"

    def __init__(self):
        self.counting = NumpyDevice("counting")
        self.failing = NumpyDevice("failing")

    def devices(self):
        return [self.counting, self.failing]


# -- memory of their own ------------------------------------------------------------------------


class OwnType(BufferType):
    """Memory of a device; its buffers keep count of what is asked of them."""

    def __init__(self, device, **kinds):
        super().__init__(device.name, device, **kinds)

    def alloc(self, size):
        self.device.happens("alloc", size)
        buffer = OwnBuffer(self, HOST.alloc(size))
        buffer.spoil()
        return buffer


class OwnBuffer(Buffer):
    """Host memory that goes by another name; tensors lie only where `init_tensor` said so."""

    def __init__(self, buffer_type, inside):
        super().__init__(buffer_type, inside.size)
        self._inside = inside
        self._device = buffer_type.device
        self._tensors = set()

    @property
    def base(self):
        return self._inside.base if self.buffer_type.is_host else 1 << 60

    def spoil(self):
        self._tensors.clear()
        self._inside.clear(255)  # not a number, or -1

    def init_tensor(self, tensor):
        self._device.happens("init_tensor")
        size = self.buffer_type.alloc_size(tensor)
        assert tensor.offset % self.buffer_type.alignment == 0
        assert tensor.offset + size <= self.size
        self._tensors.add((tensor.offset, tensor.offset + size))
        return Status.SUCCESS

    def array(self, tensor):
        """Return the array of a tensor that is within one that `init_tensor` has seen."""
        array = self._inside.array(tensor)
        data = array.data if isinstance(array, Blocks) else array
        low, high = np.lib.array_utils.byte_bounds(data)
        low, high = low - self._inside.base, high - self._inside.base
        assert not data.size or any(low >= begin and high <= end for begin, end in self._tensors)
        return array

    def set_tensor(self, tensor, data, offset=0):
        self._device.happens("set_tensor", data.size)
        self.array(tensor)
        self._inside.set_tensor(tensor, data, offset)

    def get_tensor(self, tensor, data, offset=0):
        self._device.happens("get_tensor", data.size)
        self.array(tensor)
        self._inside.get_tensor(tensor, data, offset)

    def reset(self):
        self._device.happens("reset")
        self.spoil()

    def free(self):
        self._device.happens("free", self.size)
        self.spoil()
        self._inside = None


class FarDevice(NumpyDevice):
    """A device whose memory nobody else can read."""

    fuses = True

    def __init__(self, name, backend=NumpyBackend, **kinds):
        super().__init__(name, backend)
        self.backend.device = self
        self.buffer_type = OwnType(self, **{"alignment": 256, **kinds})


class WrappingDevice(HostBuffers, FarDevice):
    """A device that computes in the host's memory, by way of buffers of its own."""

    def buffer_from_host_ptr(self, address, size, max_tensor_size):
        self.happens("wrap")
        assert 0 <= max_tensor_size <= size
        buffer = LentBuffer(self.buffer_type, HostBuffer.at(HOST, address, size))
        buffer._tensors.add((0, size))
        return buffer


class LentBuffer(OwnBuffer):
    """Memory of the host that a device works in, and leaves as it is."""

    def free(self):
        self._device.happens("let go")
        self._inside = None


def lent(data):
    """Return what gives an array again, which whoever lent it keeps alive meanwhile."""
    root = weakref.ref(root_of(data))
    layout = data.shape, data.strides, address(data) - address(root_of(data)), data.dtype

    def array():
        assert root() is not None, "the memory has gone before it was used"
        return part(root(), *layout)

    return array


class LateBackend(Async, NumpyBackend):
    """A stream that does nothing before it is waited for; then comes what may interrupt it."""

    def __init__(self, name):
        super().__init__(name)
        self.asked = deque()
        self.status = Status.SUCCESS
        self.error = None

    def ask(self, function, *arguments):
        self.asked.append(partial(function, *arguments))

    def graph_compute(self, graph):
        self.interrupt()
        self.ask(self._compute, graph)
        return Status.SUCCESS

    def _compute(self, graph):
        self.status = self.status or self.compute(graph)

    def set_tensor_async(self, tensor, data, offset=0):
        data = lent(data)
        self.ask(lambda: tensor.buffer.set_tensor(tensor, data(), offset))

    def get_tensor_async(self, tensor, data, offset=0):
        data = lent(data)
        self.ask(lambda: tensor.buffer.get_tensor(tensor, data(), offset))

    def event_record(self, event):
        self.ask(event.set)

    def event_wait(self, event):
        self.ask(event.wait)

    def synchronize(self):
        self.device.happens("synchronize")
        while self.asked:
            self.do_next()
        status, self.status = self.status, Status.SUCCESS
        error, self.error = self.error, None
        if error is not None:
            raise error
        return status

    def do_next(self):
        self.interrupt()
        if self.asked:  # else an evaluation within has waited for it all
            try:
                self.asked.popleft()()
            except Exception as error:  # told when all is done
                self.error = self.error or error


class ThreadBackend(LateBackend):
    """A stream that is a thread."""

    def __init__(self, name):
        super().__init__(name)
        self._thread = ThreadPoolExecutor(1)

    def ask(self, function, *arguments):
        self.asked.append(self._thread.submit(function, *arguments).result)


class LateDevice(FarDevice):
    """A far device whose streams are asynchronous."""

    asynchronous = True

    def __init__(self, name, backend=LateBackend, **kinds):
        super().__init__(name, backend, **kinds)


class MarkedDevice(Events, LateDevice):
    """A late device whose streams can be waited for up to a mark."""

    def event_new(self):
        self.happens("event")
        return Event()

    def event_synchronize(self, event):
        while not event.is_set():
            self.backend.do_next()


class StagedDevice(HostBuffers, MarkedDevice):
    """A marked device that has host memory for values on their way."""

    takes_host_ptr = False
    host_buffer_type = HostBufferType("staging")


class LateWrappingDevice(WrappingDevice):
    """A wrapping device whose streams are asynchronous."""

    asynchronous = True


class LateHostDevice(NumpyDevice):
    """An asynchronous device that computes in the host's memory."""

    asynchronous = True

    def __init__(self, name):
        super().__init__(name, LateBackend)
        self.backend.device = self


class PlanningBackend(Plans, NumpyBackend):
    """A stream with plans of its own: lists, which it keeps count of."""

    def graph_plan_create(self, graph):
        self.device.happens("create")
        return list(graph)

    def graph_plan_update(self, plan, graph):
        self.device.happens("update")
        assert [each.op for each in plan] == [each.op for each in graph]
        plan[:] = graph

    def graph_plan_compute(self, plan):
        self.device.happens("compute")
        return self.graph_compute(plan)

    def graph_plan_free(self, plan):
        self.device.happens("free plan")
        plan.clear()


class OrderingBackend(GraphOptimize, NumpyBackend):
    """A stream with a say in the order of nodes: what a test wants it to say."""

    order = None  # called with kernels and `add_alloc_dep`

    def graph_optimize(self, graph, add_alloc_dep):
        self.device.happens("optimize")
        return range(len(graph)) if self.order is None else self.order(graph, add_alloc_dep)


class ChoosyDevice(Offload, FarDevice):
    """A far device that finds few products worth copying weights."""

    def offload_op(self, node):
        return node.out.shape[-2] > 8


class OthersRegistry(Registry):
    """Devices of all kinds of memory and streams."""

    name = "others"

    def devices(self):
        self.found = {
            each.name: each
            for each in (
                FarDevice("far"),
                FarDevice("narrow", max_size=4096),
                FarDevice("counted", alignment=64, is_host=True),
                WrappingDevice("wrapping"),
                LateDevice("late"),
                MarkedDevice("marked"),
                MarkedDevice("thread", ThreadBackend),
                StagedDevice("staged"),
                LateHostDevice("late host"),
                LateWrappingDevice("late wrapping", LateBackend),
                FarDevice("planning", PlanningBackend),
                FarDevice("ordering", OrderingBackend),
                ChoosyDevice("choosy"),
            )
        }
        return list(self.found.values())


@cache
def others():
    """Return the devices of `OthersRegistry` by name; they are registered at the first call."""
    registry = OthersRegistry()
    xp.register_backend(registry)
    return registry.found


HELD = (
    *("far", "narrow", "counted", "wrapping"),
    *("late", "marked", "thread", "staged", "late host", "late wrapping"),
)
"""The names of those that differ in where and when they compute."""
