"""Devices: what there is on a machine, and what each can do."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from ggarray.interface.buffers import HOST, Buffer, BufferType
from ggarray.interface.nodes import Kernel
from ggarray.interface.streams import Backend

API_VERSION = 2


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


class Caps(NamedTuple):
    """Which optional groups a device has.

    Parameters
    ----------
    asynchronous : bool
        Its streams are `Async`.
    host_buffer : bool
        It has a `HostBuffers.host_buffer_type`.
    buffer_from_host_ptr : bool
        It takes host memory in place: `HostBuffers.buffer_from_host_ptr`.
    events : bool
        It has `Events`.

    Examples
    --------
    >>> from ggarray.backends.cpu import registry
    >>> registry.devices()[0].caps.events
    False
    """

    asynchronous: bool = False
    host_buffer: bool = False
    buffer_from_host_ptr: bool = False
    events: bool = False


class Props(NamedTuple):
    """All that a device tells of itself.

    Parameters
    ----------
    name, description : str
        What users call the device, and what it is in words.
    type : DeviceType
        Its kind.
    memory_free, memory_total : int
        Bytes; 0 where nothing is known.
    device_id : str or None
        Such as the address on the bus, to tell equal devices apart.
    caps : Caps
        Its optional groups.

    Examples
    --------
    >>> from ggarray.backends.cpu import registry
    >>> registry.devices()[0].props.name
    'cpu'
    """

    name: str
    description: str
    type: DeviceType
    memory_free: int
    memory_total: int
    device_id: str | None
    caps: Caps


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

    def find_device(self, name: str) -> "BackendDevice | None":
        """Return a device that `devices` does not list, as there is no end of such devices.

        Asked when a program names a device that begins with the registry's name and a colon.

        Parameters
        ----------
        name : str
            What the program calls the device.

        Returns
        -------
        BackendDevice or None
            Of that name; None unless a backend says otherwise.

        Raises
        ------
        BackendError
            There is such a device, but it cannot be used.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> registry.find_device("cpu:4") is None
        True
        """
        return None

    def report(self) -> "Iterable[str]":
        """Return lines about what was found on this machine, for `ggarray.show_config`.

        Returns
        -------
        iterable of str
            None unless a backend says otherwise.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> list(registry.report())
        []
        """
        return ()

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
        ['get_features', 'set_abort_callback', 'set_n_threads', 'set_threadpool', 'threadpool_free',
            'threadpool_new']
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
    device_id: str | None = None

    buffer_type: BufferType = HOST
    """The memory of operands and results; of most devices that of the host."""

    asynchronous: bool = False
    """Whether the streams are `Async`."""

    def supports_buffer_type(self, buffer_type: BufferType) -> bool:
        """Tell whether operands and results may be in memory of this type.

        Parameters
        ----------
        buffer_type : BufferType
            One of this or of another device.

        Returns
        -------
        bool
            True for the device's own type; if that is host memory, for all host memory.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> from ggarray.interface import HOST
        >>> registry.devices()[0].supports_buffer_type(HOST)
        True
        """
        own = self.buffer_type
        return buffer_type is own or (own.is_host and buffer_type.is_host)

    @property
    def caps(self) -> Caps:
        """Which optional groups the device has.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> registry.devices()[0].caps.asynchronous
        False
        """
        return Caps(
            asynchronous=self.asynchronous,
            host_buffer=isinstance(self, HostBuffers) and self.host_buffer_type is not None,
            buffer_from_host_ptr=isinstance(self, HostBuffers) and self.takes_host_ptr,
            events=isinstance(self, Events),
        )

    @property
    def props(self) -> Props:
        """All that the device tells of itself.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> props = registry.devices()[0].props
        >>> props.memory_free <= props.memory_total
        True
        """
        free, total = self.memory()
        return Props(self.name, self.description, self.type, free, total, self.device_id, self.caps)

    def open(self) -> None:
        """Get ready; called when a program names the device, and again whenever it does.

        A device that is named by no program has not been opened when its stream is asked for.

        Raises
        ------
        BackendError
            The device cannot be used; naming it becomes a ValueError of the same message.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> registry.devices()[0].open()
        """
        return

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


class HostBuffers:
    """Optional group of a device: host memory that it knows better than others.

    Without it, what a device of its own memory computes is copied to it and back by way of
    ordinary host memory.

    Examples
    --------
    >>> from ggarray.interface import HOST, HostBuffer, HostBuffers
    >>> class InPlace(HostBuffers):
    ...     def buffer_from_host_ptr(self, address, size, max_tensor_size):
    ...         return HostBuffer.at(HOST, address, size)
    """

    host_buffer_type: BufferType | None = None
    """Host memory from and to which copies are fast; used on the way of a copy. None if all is."""

    takes_host_ptr: bool = True
    """Whether `buffer_from_host_ptr` works. Then operands and results stay where they are."""

    def buffer_from_host_ptr(self, address: int, size: int, max_tensor_size: int) -> Buffer:
        """Return a buffer of the device over memory of the host.

        Parameters
        ----------
        address, size : int
            The memory. It stays alive until `Buffer.free`, which lets go of it and changes nothing
            in it.
        max_tensor_size : int
            Bytes of the largest tensor that will lie in it.

        Returns
        -------
        Buffer
            Of a type that the device supports.

        Raises
        ------
        NotImplementedError
            The device does not do it, and says so in `takes_host_ptr`.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.interface import HOST, HostBuffer, HostBuffers
        >>> class InPlace(HostBuffers):
        ...     def buffer_from_host_ptr(self, address, size, max_tensor_size):
        ...         return HostBuffer.at(HOST, address, size)
        >>> memory = np.zeros(4, np.uint8)
        >>> address = memory.__array_interface__["data"][0]
        >>> InPlace().buffer_from_host_ptr(address, 4, 4).clear(7)
        >>> memory
        array([7, 7, 7, 7], dtype=uint8)
        """
        raise NotImplementedError


class Offload(ABC):
    """Optional group of a device of its own memory: which nodes are worth copying their weights.

    Without it a device gets every node that it supports.

    Examples
    --------
    >>> from ggarray.backends.cpu import registry
    >>> from ggarray.interface import Offload
    >>> isinstance(registry.devices()[0], Offload)
    False
    """

    @abstractmethod
    def offload_op(self, node: Kernel) -> bool:
        """Tell whether a node is worth copying constant operands from host memory.

        Asked where the constants are not in the device's memory yet, nor can be used in place.

        Parameters
        ----------
        node : Kernel
            One that the device supports; see `BackendDevice.supports_op`.

        Returns
        -------
        bool
            False leaves the node to another device.

        Examples
        --------
        Many rows are worth it:

        >>> import numpy as np
        >>> from ggarray.interface import Kernel, Offload, Op
        >>> class Distant(Offload):
        ...     def offload_op(self, node):
        ...         return node.out.shape[-2] >= 32
        >>> kernel = Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)))
        >>> Distant().offload_op(kernel)
        False
        """


class Events(ABC):
    """Optional group of a device: marks in its streams that others can wait for.

    Without it ggarray waits for all of a stream with `Backend.synchronize`.

    Examples
    --------
    >>> from ggarray.backends.cpu import registry
    >>> from ggarray.interface import Events
    >>> isinstance(registry.devices()[0], Events)
    False
    """

    @abstractmethod
    def event_new(self) -> Any:
        """Return a new event, for `Async.event_record`.

        Returns
        -------
        object
            Of whatever kind.

        Examples
        --------
        Where streams are threads, one of theirs will do:

        >>> import threading
        >>> from ggarray.interface import Events
        >>> class Threads(Events):
        ...     def event_new(self):
        ...         return threading.Event()
        ...
        ...     def event_synchronize(self, event):
        ...         event.wait()
        >>> Threads().event_new().is_set()
        False
        """

    def event_free(self, event: Any) -> None:
        """Give back an event; nothing waits for it any more.

        Parameters
        ----------
        event : object
            From `event_new`.

        Examples
        --------
        >>> from ggarray.interface import Events
        >>> Events.event_free(None, None)
        """
        return

    @abstractmethod
    def event_synchronize(self, event: Any) -> None:
        """Return when everything before the place where the event was recorded is done.

        Parameters
        ----------
        event : object
            From `event_new`, recorded in a stream of this device.

        Examples
        --------
        >>> import threading
        >>> from ggarray.interface import Events
        >>> class Threads(Events):
        ...     def event_new(self):
        ...         return threading.Event()
        ...
        ...     def event_synchronize(self, event):
        ...         event.wait()
        >>> device = Threads()
        >>> event = device.event_new()
        >>> timer = threading.Timer(0.01, event.set)
        >>> timer.start()
        >>> device.event_synchronize(event)
        >>> event.is_set()
        True
        """
