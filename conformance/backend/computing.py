"""One case on one device: computing it in memory that is watched, and judging what is there."""

import math
from functools import partial

import numpy as np

from conformance.backend.cases import FLOAT32, QUANTIZED, decoded
from conformance.backend.layouts import poison
from conformance.backend.placing import memory_of, placing
from conformance.standard.references import HALVES, eps_of, kind_of, wide
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.reference import FROM_FLOAT
from ggarray.interface import Kernel, Op, Status, Tensor

PADDINGS = (0, 3)
"""Elements between the rows of a result."""

THREADS = (1, 2)

_MARGIN = 4096  # bytes round a result
# A marked memory, for results up to a size; 251 is no power of two, so that shifts are seen.
_MARKS = np.resize(np.arange(251, dtype=np.uint8), 1 << 22)

# What a product with quantized weights may be off by: ggml's limit for its backends.
_QUANTIZED_LIMIT = 5e-4
# No element may be off by so many times what is admitted of all on the average.
_FARTHEST = 6


def encodes(case, operands):
    """Tell whether the result is blocks, which always have contiguous memory of their own."""
    return case.op is Op.COPY and not isinstance(operands[0], Blocks)


class Result:
    """A place for a result, in memory whose every other byte is known.

    Attributes
    ----------
    out : numpy.ndarray or Blocks
        The place; plain values in it are NaN, or -1.
    """

    def __init__(self, case, operands, padding):
        self._shape, self._dtype = _shape_of(case, operands)
        self._padding = padding
        self._memory = self._marked()
        self._values = self._place(self._memory)
        self._values[...] = poison((1,), self._values.dtype)
        self.out = Blocks(self._values, case.dtype) if encodes(case, operands) else self._values

    def _marked(self):
        rows = math.prod(self._shape[:-1])
        used = rows * (self._shape[-1] + self._padding) * self._dtype.itemsize
        return _MARKS[: used + 2 * _MARGIN].copy()

    def _place(self, memory):
        """Return the array of the result within memory like ours."""
        *outer, length = self._shape
        strides = [self._dtype.itemsize]
        for inner in reversed([*outer[1:], length + self._padding] if outer else []):
            strides.insert(0, strides[0] * inner)
        return np.ndarray(self._shape, self._dtype, memory, _MARGIN, strides)

    def put(self, place):
        """Have the place, and a margin round it, placed where a device has its values."""
        tensor = Tensor.like(self.out)
        *outer, length = tensor.shape
        whole = tensor._replace(shape=(*outer, length + self._padding)).contiguous()
        place.watch(self._memory, _MARGIN, whole)

    def check_surroundings(self):
        """Raise AssertionError if anything but the place has been written to."""
        expected = self._marked()
        self._place(expected)[...] = self._values
        assert self._memory.tobytes() == expected.tobytes(), "bytes beside the result were written"

    def check_untouched(self):
        """Raise AssertionError if anything has been written."""
        self.check_surroundings()
        before = np.empty_like(self._values)
        before[...] = poison((1,), self._dtype)
        assert self._values.tobytes() == before.tobytes(), "the result was written to"


def _shape_of(case, operands):
    """Return shape and dtype of the result's memory."""
    if case.op is Op.COPY:
        (x,) = operands
        if isinstance(x, Blocks):
            return x.shape, FLOAT32
        *outer, length = x.shape
        blocks = length // case.dtype.block_size
        return (*outer, blocks, case.dtype.block_bytes), np.dtype(np.uint8)
    a, b = operands
    dtype = case.epilogue.dtype or case.plain_dtype
    if case.op is Op.OUT_PROD:
        return (a.shape[0], b.shape[0]), dtype
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (*batch, a.shape[-2], b.shape[-1]), dtype


def is_in_tree(device):
    """Tell whether a device is ggarray's own: it is also given what it refuses."""
    return type(device).__module__.startswith("ggarray.backends.")


def supported(device, kernel):
    """Ask a device whether it computes a kernel; the answer must not depend on values."""
    answer = device.supports_op(kernel)
    assert answer in (True, False)
    first, *others = kernel.operands
    pending = Tensor.like(first), *map(Tensor.like, others)
    bias = None if kernel.bias is None else Tensor.like(kernel.bias)
    for operands in ((pending[0], *others), pending):
        out = Tensor.like(kernel.out)
        asked = Kernel(kernel.op, operands, out, kernel.alpha, kernel.beta, bias, kernel.flags)
        assert device.supports_op(asked) == answer, "another answer while values are pending"
    return bool(answer)


def finished(stream, graph):
    """Have a graph computed; return the status once all is done."""
    status = stream.graph_compute(graph)
    ended = stream.synchronize()
    return status or ended


def compute(device, stream, kernel, result, n_threads=1):
    """Compute one kernel; return the status. What it reads must stay as it is."""
    read = [*kernel.operands, *([] if kernel.bias is None else [kernel.bias])]
    before = [memory_of(value).tobytes() for value in read]
    stream.n_threads = n_threads
    with placing(device) as place:
        result.put(place)
        status = finished(stream, (place.kernel(kernel),))
        place.fetch()
    for value, memory in zip(read, before, strict=True):
        assert memory_of(value).tobytes() == memory, "an operand was written to"
    return status


def check_case(device, stream_of, case, seed, tally, nmse=0.0):
    """Try a case in all layouts of the result that the device takes; return how many these are.

    ggarray's own devices get the others too: these fail and write nothing, or are right.

    Parameters
    ----------
    device : BackendDevice
    stream_of : callable
        Returns the stream of a device.
    case : Case
    seed : int
    tally : callable
        Told of each layout whether the device takes it.
    nmse : float
        What floats may be off by, if it is more than rounding in their dtype leaves.
    """
    operands = case.operands(seed)
    bias, check_values = None, None
    taken = 0
    for padding in (0,) if encodes(case, operands) else PADDINGS:
        result = Result(case, operands, padding)
        bias = case.bias(result.out.shape, seed) if bias is None else bias
        takes = supported(device, case.kernel(operands, bias, result.out))
        tally(takes)
        taken += takes
        for n_threads in THREADS if takes or is_in_tree(device) else ():
            result = Result(case, operands, padding)
            kernel = case.kernel(operands, bias, result.out)
            status = compute(device, stream_of(device), kernel, result, n_threads)
            result.check_surroundings()
            if takes or status == Status.SUCCESS:
                assert status == Status.SUCCESS, f"returned {status!r}"
                check_values = check_values or judge(case, operands, bias, nmse)
                check_values(result.out)
            else:
                assert status == Status.FAILED, f"returned {status!r}"
                result.check_untouched()
    return taken


# -- judging --------------------------------------------------------------------------------------


@np.errstate(all="ignore")
def judge(case, operands, bias=None, nmse=0.0):
    """Return what raises AssertionError of a result that is not what the operation gives.

    Integers have to be equal modulo two to the power of their bits; outer products of real numbers
    are rounded once. The square of another error is measured by what that of the result would be
    if the terms of the sum were independent, ``a**2 @ b**2``: small sums of large terms count as
    these. Scaling, a bias and another dtype may be rounded each.
    """
    if case.op is Op.COPY:
        return _judge_of_copy(case, *operands)
    a, b = map(decoded, operands)
    dtype, (alpha, beta, _, out_dtype) = a.dtype, case.epilogue
    if kind_of(dtype) in "iu":
        value = _product(case.op, a.astype(np.uint64), b.astype(np.uint64))
        value = value * np.uint64(alpha % 2**64)
        if bias is not None:
            value = value + np.uint64(beta % 2**64) * bias.astype(np.uint64)
        return partial(np.testing.assert_array_equal, value.astype(dtype))
    if case.op is Op.OUT_PROD and kind_of(dtype) == "f" and case.is_plain and not nmse:
        return partial(_check_same_bits, a * b.T)
    k = a.shape[-1] if case.op is Op.MATMUL else 1
    limit = _QUANTIZED_LIMIT if case.dtype in QUANTIZED else _limit(dtype, k)
    a, b = wide(a), wide(b)
    value = _product(case.op, a, b)
    sizes = _product(case.op, np.abs(a) ** 2, np.abs(b) ** 2)
    if alpha != 1:
        value, sizes = alpha * value, abs(alpha) ** 2 * sizes
        limit += _limit(dtype, 0)
    if bias is not None:
        value, sizes = value + beta * wide(bias), sizes + np.abs(wide(bias)) ** 2
        limit += _limit(dtype, 0)
    if out_dtype is not None:
        limit += _limit(out_dtype, 0)
    return partial(_check_near, value, sizes, max(limit, nmse))


def _product(op, a, b):
    return np.matmul(a, b) if op is Op.MATMUL else a * b.T


def _limit(dtype, k):
    """Return the mean square error of sums of k terms in any order, over their mean square."""
    unit = eps_of(dtype) / 2
    return 2 * unit**2 * (1 if dtype in HALVES else k + 4)  # halves are added in float32


def _check_same_bits(expected, result):
    unknown = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result), unknown)
    bits = f"u{expected.dtype.itemsize}"
    known = np.where(unknown, expected, result)
    np.testing.assert_array_equal(known.view(bits), expected.view(bits))


@np.errstate(all="ignore")
def _check_near(expected, sizes, limit, result):
    result = wide(result)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(result), finite)
    if result.dtype.kind == "f":  # which part of a complex number is infinite depends on the order
        np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
        infinite = np.isinf(expected)
        np.testing.assert_array_equal(result[infinite], expected[infinite])
    off, sizes = np.abs(result - expected)[finite] ** 2, sizes[finite]
    assert off.sum() <= limit * sizes.sum(), (
        f"the mean square error is {float(off.sum() / sizes.sum()):.2g}, not {limit:.2g}"
    )
    far = off > _FARTHEST**2 * limit * sizes
    assert not far.any(), f"{far.sum()} of {far.size} elements are far off"


def _judge_of_copy(case, x):
    if isinstance(x, Blocks):
        values = wide(decoded(x))
        sizes = np.full(x.shape, np.max(np.abs(values), initial=0) ** 2)
        return partial(_check_near, values, sizes, _limit(FLOAT32, 1))
    rows = x.reshape(-1, case.dtype.block_size)
    best = decoded(Blocks(FROM_FLOAT[case.dtype](rows)[:, None], case.dtype))
    return partial(_check_encoded, x, np.sum((wide(best.reshape(rows.shape)) - rows) ** 2))


def _check_encoded(x, best, out):
    error = np.sum((wide(decoded(out)) - x) ** 2)
    assert error <= 1.01 * best, f"the mean square error is {float(error / best):.3g} times ggml's"
