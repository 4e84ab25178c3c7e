"""Streams: what computes the nodes of a device, in order."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ggarray.interface.buffers import Bytes
from ggarray.interface.nodes import Kernel, Tensor
from ggarray.interface.outcome import Status


class Backend(ABC):
    """A stream that computes nodes on its device.

    ``n_threads`` is set before each call of `graph_compute`: the number of threads it may use.
    ``runs_aside`` says that a call may be made on another thread, and be left to end by itself
    after Ctrl-C: then a long product is computed in a few calls of up to a second, else in many.

    Examples
    --------
    >>> from ggarray.backends.cpu import registry
    >>> stream = registry.devices()[0].init_backend()
    >>> stream.n_threads
    1
    """

    name: str
    n_threads: int = 1
    runs_aside: bool = False

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

    def synchronize(self) -> Status:
        """Return when everything asked for is done; at once where `graph_compute` waits itself.

        Returns
        -------
        Status
            Of what was asked for since the last call: SUCCESS, or the first failure.

        Examples
        --------
        >>> from ggarray.backends.cpu import registry
        >>> registry.devices()[0].init_backend().synchronize()
        <Status.SUCCESS: 0>
        """
        return Status.SUCCESS

    def prepare(self, node: Kernel) -> Kernel:
        """Return a node that computes the same in the same memory, which this stream would rather.

        Asked once about a product that takes long, before it is computed in panels: weights may be
        there in a form that serves all panels.

        Parameters
        ----------
        node : Kernel
            One that the device said it supports; operands have their values.

        Returns
        -------
        Kernel
            The node itself unless a backend says otherwise.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.backends.cpu import registry
        >>> from ggarray.interface import Kernel, Op
        >>> kernel = Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)))
        >>> registry.devices()[0].init_backend().prepare(kernel) is kernel
        True
        """
        return node


class Plans(ABC):
    """Optional group of a stream: graphs that it prepares once and computes often.

    Without it each graph is handed to `Backend.graph_compute`.

    Examples
    --------
    >>> from ggarray.backends.cpu import registry
    >>> from ggarray.interface import Plans
    >>> isinstance(registry.devices()[0].init_backend(), Plans)
    True
    """

    @abstractmethod
    def graph_plan_create(self, graph: Sequence[Kernel]) -> Any:
        """Prepare a graph.

        Parameters
        ----------
        graph : sequence of Kernel
            As for `Backend.graph_compute`.

        Returns
        -------
        object
            The plan; it is used in one evaluation at a time. It has the memory of `graph` for one
            computation, and is updated before the next.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.backends.cpu import registry
        >>> from ggarray.interface import Kernel, Op
        >>> stream = registry.devices()[0].init_backend()
        >>> kernel = Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)))
        >>> plan = stream.graph_plan_create([kernel])
        >>> stream.graph_plan_compute(plan)
        <Status.SUCCESS: 0>
        >>> stream.graph_plan_free(plan)
        """

    @abstractmethod
    def graph_plan_update(self, plan: Any, graph: Sequence[Kernel]) -> None:
        """Make a plan that of another graph, which differs in the memory of its tensors alone.

        Parameters
        ----------
        plan : object
            From `graph_plan_create`.
        graph : sequence of Kernel
            As many nodes of the same operations, dtypes, shapes and strides.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.backends.cpu import registry
        >>> from ggarray.interface import Kernel, Op
        >>> stream = registry.devices()[0].init_backend()
        >>> kernel = Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)))
        >>> plan = stream.graph_plan_create([kernel])
        >>> other = Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)))
        >>> stream.graph_plan_update(plan, [other])
        >>> stream.graph_plan_compute(plan)
        <Status.SUCCESS: 0>
        >>> other.out
        array([[3., 3.],
               [3., 3.]])
        """

    @abstractmethod
    def graph_plan_compute(self, plan: Any) -> Status:
        """Compute the graph of a plan.

        Parameters
        ----------
        plan : object
            From `graph_plan_create`.

        Returns
        -------
        Status
            As of `Backend.graph_compute`.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.backends.cpu import registry
        >>> from ggarray.interface import Kernel, Op
        >>> stream = registry.devices()[0].init_backend()
        >>> kernel = Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)))
        >>> plan = stream.graph_plan_create([kernel])
        >>> stream.graph_plan_compute(plan)
        <Status.SUCCESS: 0>
        >>> kernel.out
        array([[3., 3.],
               [3., 3.]])
        """

    @abstractmethod
    def graph_plan_free(self, plan: Any) -> None:
        """Give a plan back; it is not used afterwards.

        Parameters
        ----------
        plan : object
            From `graph_plan_create`.

        Examples
        --------
        >>> import numpy as np
        >>> from ggarray.backends.cpu import registry
        >>> from ggarray.interface import Kernel, Op
        >>> stream = registry.devices()[0].init_backend()
        >>> kernel = Kernel(Op.MATMUL, (np.ones((2, 3)), np.ones((3, 2))), np.empty((2, 2)))
        >>> plan = stream.graph_plan_create([kernel])
        >>> stream.graph_plan_free(plan)
        """


class GraphOptimize(ABC):
    """Optional group of a stream: a say in the order of the nodes, before they get their memory.

    Examples
    --------
    >>> from ggarray.backends.cpu import registry
    >>> from ggarray.interface import GraphOptimize
    >>> isinstance(registry.devices()[0].init_backend(), GraphOptimize)
    False
    """

    @abstractmethod
    def graph_optimize(
        self, graph: Sequence[Kernel], add_alloc_dep: Callable[[int, int], None]
    ) -> Sequence[int]:
        """Return the order in which the nodes of a graph are to be computed.

        Called when a plan is made; plans are kept for graphs like theirs.

        Parameters
        ----------
        graph : sequence of Kernel
            Nodes that follow each other, with a `Tensor` in place of each value. An operand that
            is the result of another of them, or a view of it, has the ``buffer`` of that one's
            ``out``; it stands for memory that is not there yet.
        add_alloc_dep : callable
            ``add_alloc_dep(node, until)`` keeps the memory of a node until after another one, for
            a backend that computes nodes at the same time. Both are places in the order returned.

        Returns
        -------
        sequence of int
            A permutation of the places in `graph`, each node after those whose values it reads.

        Examples
        --------
        >>> from ggarray.interface import GraphOptimize
        >>> class AsTheyCome(GraphOptimize):
        ...     def graph_optimize(self, graph, add_alloc_dep):
        ...         return range(len(graph))
        >>> list(AsTheyCome().graph_optimize([None, None], None))
        [0, 1]
        """


class Async(ABC):
    """Optional group of a stream: calls return before what they ask for is done.

    So does `Backend.graph_compute` then, and `Backend.synchronize` tells how it all went. What is
    asked of one stream happens in order. The memory of tensors and of the host stays alive until it
    is done. Without this group, copies and computations are done when the calls return.

    Examples
    --------
    >>> from ggarray.backends.cpu import registry
    >>> from ggarray.interface import Async
    >>> isinstance(registry.devices()[0].init_backend(), Async)
    False
    """

    @abstractmethod
    def set_tensor_async(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Write bytes of a tensor when it is their turn.

        Parameters
        ----------
        tensor : Tensor
            A contiguous one in a buffer of the device.
        data : numpy.ndarray of uint8
            The bytes, one axis; they do not change meanwhile.
        offset : int
            Where in the tensor the first goes.

        Examples
        --------
        A stream that is a thread:

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> import numpy as np
        >>> from ggarray.interface import HOST, Tensor
        >>> thread = ThreadPoolExecutor(1)
        >>> def set_tensor_async(tensor, data, offset=0):
        ...     thread.submit(tensor.buffer.set_tensor, tensor, data, offset)
        >>> a = Tensor((4,), np.dtype(np.uint8), (1,), buffer=HOST.alloc(4))
        >>> set_tensor_async(a, np.arange(4, dtype=np.uint8))
        >>> thread.shutdown()
        >>> a.buffer.array(a)
        array([0, 1, 2, 3], dtype=uint8)
        """

    @abstractmethod
    def get_tensor_async(self, tensor: Tensor, data: Bytes, offset: int = 0) -> None:
        """Read bytes of a tensor when it is their turn.

        Parameters
        ----------
        tensor : Tensor
            A contiguous one in a buffer of the device.
        data : numpy.ndarray of uint8
            Filled; one axis.
        offset : int
            Where in the tensor the first is.

        Examples
        --------
        A stream that is a thread:

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> import numpy as np
        >>> from ggarray.interface import HOST, Tensor
        >>> thread = ThreadPoolExecutor(1)
        >>> def get_tensor_async(tensor, data, offset=0):
        ...     thread.submit(tensor.buffer.get_tensor, tensor, data, offset)
        >>> a = Tensor((4,), np.dtype(np.uint8), (1,), buffer=HOST.alloc(4))
        >>> a.buffer.clear(7)
        >>> data = np.zeros(2, np.uint8)
        >>> get_tensor_async(a, data)
        >>> thread.shutdown()
        >>> data
        array([7, 7], dtype=uint8)
        """

    def copy_tensor_async(self, source_stream: "Backend", source: Tensor, target: Tensor) -> bool:
        """Copy a tensor of another stream's device to one of this, if there is a direct way.

        Parameters
        ----------
        source_stream : Backend
            Where the value is computed; the copy waits for what has been asked of it so far.
        source, target : Tensor
            Contiguous ones of one shape and dtype.

        Returns
        -------
        bool
            False if there is no direct way, and nothing was asked for: always, unless a backend
            says otherwise.

        Examples
        --------
        >>> from ggarray.interface import Async
        >>> Async.copy_tensor_async(None, None, None, None)
        False
        """
        return False

    def event_record(self, event: Any) -> None:
        """Mark this place in the stream; an event is recorded once.

        Parameters
        ----------
        event : object
            From `Events.event_new` of the device.

        Raises
        ------
        NotImplementedError
            The device has no `Events`.

        Examples
        --------
        A stream that is a thread:

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from threading import Event
        >>> thread = ThreadPoolExecutor(1)
        >>> def event_record(event):
        ...     event.clear()
        ...     thread.submit(event.set)
        >>> event = Event()
        >>> event_record(event)
        >>> event.wait()
        True
        >>> thread.shutdown()
        """
        raise NotImplementedError

    def event_wait(self, event: Any) -> None:
        """Have the stream wait for an event before it does what is asked for from now on.

        Parameters
        ----------
        event : object
            Recorded in a stream of this device.

        Raises
        ------
        NotImplementedError
            The device has no `Events`.

        Examples
        --------
        A stream that is a thread:

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from threading import Event
        >>> thread = ThreadPoolExecutor(1)
        >>> def event_wait(event):
        ...     thread.submit(event.wait)
        >>> event = Event()
        >>> event_wait(event)
        >>> later = thread.submit(event.is_set)
        >>> event.set()
        >>> later.result()
        True
        >>> thread.shutdown()
        """
        raise NotImplementedError
