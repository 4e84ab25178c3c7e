"""Users' code: arrays, functions and operators. Type checkers read it; nobody runs it."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, assert_type

import numpy as np

import ggarray as xp
from ggarray import Array


def creation(x: Array, foreign: np.ndarray[Any, Any]) -> None:
    assert_type(xp.asarray([[1, 2], [3, 4]], dtype=xp.float32, device="cpu"), Array)
    assert_type(xp.asarray(foreign, copy=False), Array)
    assert_type(xp.arange(0, 10, 2, dtype=xp.int8), Array)
    assert_type(xp.empty((2, 3)), Array)
    assert_type(xp.empty_like(x), Array)
    assert_type(xp.eye(2, 3, k=1, dtype=float), Array)
    assert_type(xp.from_dlpack(foreign), Array)
    assert_type(xp.full([2, 3], 1j), Array)
    assert_type(xp.full(3, x), Array)
    assert_type(xp.full_like(x, 7, dtype="int64"), Array)
    assert_type(xp.linspace(0, 1, 5, endpoint=False), Array)
    assert_type(xp.meshgrid(x, x, indexing="ij"), tuple[Array, ...])
    assert_type(xp.ones(x.shape, dtype=x.dtype, device=x.device), Array)
    assert_type(xp.ones_like(x, dtype=np.dtype(np.float16)), Array)
    assert_type(xp.tril(x, k=-1), Array)
    assert_type(xp.triu(x), Array)
    assert_type(xp.zeros(3, dtype=xp.bfloat16), Array)
    assert_type(xp.zeros_like(x), Array)


def attributes(x: Array) -> None:
    assert_type(x.dtype, np.dtype[Any] | Any)
    assert_type(x.device, xp.Device)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.ndim, int)
    assert_type(x.size, int)
    assert_type(x.itemsize, int)
    assert_type(x.nbytes, int)
    assert_type(x.T, Array)
    assert_type(x.mT, Array)
    assert_type(x.to_device("blas"), Array)
    assert_type(x.__array_namespace__(api_version="2025.12"), ModuleType)
    if x.dtype == xp.float32:
        name: str = x.dtype.name
        assert name == "float32"


def conversions(x: Array) -> None:
    assert_type(bool(x), bool)
    assert_type(int(x), int)
    assert_type(float(x), float)
    assert_type(complex(x), complex)
    assert_type(range(5)[x], int)
    assert_type(len(x), int)
    assert_type(repr(x), str)
    assert_type([each for each in x], list[Array])
    value: np.ndarray[Any, np.dtype[Any]] = np.asarray(x)
    assert_type(xp.from_dlpack(value), Array)
    np.from_dlpack(x)


def operators(x: Array, y: Array) -> None:
    assert_type(-x, Array)
    assert_type(+x, Array)
    assert_type(~x, Array)
    assert_type(abs(x), Array)
    assert_type(x + y, Array)
    assert_type(x - 1, Array)
    assert_type(x * 2.5, Array)
    assert_type(x / 1j, Array)
    assert_type(x // y, Array)
    assert_type(x % 3, Array)
    assert_type(x**2, Array)
    assert_type(x & True, Array)
    assert_type(x | y, Array)
    assert_type(x ^ y, Array)
    assert_type(x << 1, Array)
    assert_type(x >> y, Array)
    assert_type(x @ y, Array)
    assert_type(x + np.float32(1), Array)
    assert_type(x == y, Array)
    assert_type(x != 1, Array)
    assert_type(x < 1.5, Array)
    assert_type(x <= y, Array)
    assert_type(x > y, Array)
    assert_type(x >= 2, Array)


def reflected_operators(x: Array) -> None:
    assert_type(1 + x, Array)
    assert_type(1.5 - x, Array)
    assert_type(2j * x, Array)
    assert_type(1 / x, Array)
    assert_type(7 // x, Array)
    assert_type(7 % x, Array)
    assert_type(2**x, Array)
    assert_type(True & x, Array)
    assert_type(1 | x, Array)
    assert_type(1 ^ x, Array)
    assert_type(1 << x, Array)
    assert_type(1 >> x, Array)
    assert_type(1 < x, Array)  # noqa: SIM300
    assert_type(1 >= x, Array)  # noqa: SIM300


def in_place_operators(x: Array, y: Array) -> None:
    x += y
    x -= 1
    x *= 2.0
    x /= y
    x //= 2
    x %= y
    x **= 2
    x &= y
    x |= 1
    x ^= y
    x <<= 1
    x >>= y
    x @= y
    assert_type(x, Array)


def indexing(x: Array, y: Array) -> None:
    assert_type(x[0], Array)
    assert_type(x[-1, :, None, ..., ::2], Array)
    assert_type(x[y > 0], Array)
    assert_type(x[y], Array)
    assert_type(x[xp.newaxis, np.array([0, 1])], Array)
    x[0] = 1
    x[:, 1] = y
    x[y > 0] = 0.0


def elementwise(x: Array) -> None:
    assert_type(xp.abs(x), Array)
    assert_type(xp.exp(x), Array)
    assert_type(xp.add(x, 1), Array)
    assert_type(xp.pow(2.0, x), Array)
    assert_type(xp.logical_and(x, True), Array)
    assert_type(xp.maximum(x, np.float64(0)), Array)
    assert_type(xp.clip(x, 0, max=x), Array)
    assert_type(xp.negative(x), Array)


def functions_as_values(x: Array) -> None:
    activations: dict[str, Callable[[Array], Array]] = {
        "tanh": xp.tanh,
        "relu": lambda z: xp.maximum(z, 0),
        "negative": xp.negative,
    }
    assert_type(activations["tanh"](x), Array)
    combine: list[Callable[[Array, Array], Array]] = [xp.add, xp.multiply, xp.matmul]
    assert_type(combine[0](x, x), Array)
    transforms: list[Callable[[Array], Array]] = [xp.fft.fft, xp.fft.fftn, xp.linalg.inv]
    assert_type([transform(x) for transform in transforms], list[Array])


def dtypes(x: Array) -> None:
    assert_type(xp.astype(x, xp.float64, copy=False), Array)
    assert_type(xp.astype(x, xp.q4_0), Array)
    assert_type(xp.can_cast(x, xp.int8), bool)
    assert_type(xp.isdtype(x.dtype, ("real floating", xp.bool)), bool)
    assert_type(xp.finfo(xp.float32).max, float)
    assert_type(xp.finfo(x).dtype, np.dtype[Any])
    assert_type(xp.iinfo(xp.int8).min, int)
    assert_type(xp.result_type(x, xp.float32, 1.0), np.dtype[Any] | Any)
    assert_type(xp.float64, type[np.float64])
    assert_type(xp.e * xp.pi + xp.inf - xp.nan, float)


def searching_sorting_sets(x: Array) -> None:
    assert_type(xp.argmax(x, axis=0, keepdims=True), Array)
    assert_type(xp.nonzero(x), tuple[Array, ...])
    assert_type(xp.searchsorted(x, 1.5, side="right"), Array)
    assert_type(xp.where(x > 0, x, 0), Array)
    assert_type(xp.take(x, x, axis=0), Array)
    assert_type(xp.take_along_axis(x, x), Array)
    assert_type(xp.sort(x, descending=True), Array)
    assert_type(xp.argsort(x, stable=False), Array)
    assert_type(xp.isin(x, 1), Array)
    assert_type(xp.unique_all(x).inverse_indices, Array)
    assert_type(xp.unique_counts(x).counts, Array)
    values, inverse = xp.unique_inverse(x)
    assert_type(values, Array)
    assert_type(inverse, Array)
    assert_type(xp.unique_values(x), Array)


def reductions(x: Array) -> None:
    assert_type(xp.sum(x, axis=(0, 1), dtype=xp.float64), Array)
    assert_type(xp.prod(x), Array)
    assert_type(xp.max(x, axis=-1), Array)
    assert_type(xp.min(x, keepdims=True), Array)
    assert_type(xp.mean(x), Array)
    assert_type(xp.std(x, correction=1), Array)
    assert_type(xp.var(x), Array)
    assert_type(xp.all(x), Array)
    assert_type(xp.any(x, axis=0), Array)
    assert_type(xp.count_nonzero(x), Array)
    assert_type(xp.cumulative_sum(x, axis=0, include_initial=True), Array)
    assert_type(xp.cumulative_prod(x), Array)
    assert_type(xp.diff(x, prepend=x), Array)


def manipulation(x: Array) -> None:
    assert_type(xp.broadcast_arrays(x, x), tuple[Array, ...])
    assert_type(xp.broadcast_shapes((1, 2), (3, 1)), tuple[int, ...])
    assert_type(xp.broadcast_to(x, (2, 3)), Array)
    assert_type(xp.concat([x, x], axis=None), Array)
    assert_type(xp.expand_dims(x, axis=(0, 2)), Array)
    assert_type(xp.flip(x), Array)
    assert_type(xp.moveaxis(x, 0, -1), Array)
    assert_type(xp.permute_dims(x, (1, 0)), Array)
    assert_type(xp.repeat(x, 2), Array)
    assert_type(xp.reshape(x, (2, -1), copy=True), Array)
    assert_type(xp.roll(x, (1, 2), axis=(0, 1)), Array)
    assert_type(xp.squeeze(x, axis=0), Array)
    assert_type(xp.stack((x, x)), Array)
    assert_type(xp.tile(x, (2, 2)), Array)
    assert_type(xp.unstack(x), tuple[Array, ...])


def products(x: Array) -> None:
    assert_type(xp.matmul(x, x), Array)
    assert_type(xp.matrix_transpose(x), Array)
    assert_type(xp.tensordot(x, x, axes=((0,), (1,))), Array)
    assert_type(xp.vecdot(x, x, axis=0), Array)
    xp.evaluate(x, x @ x)
    assert_type(xp.is_pending(x), bool)
    pending = xp.graph(x, x @ x)
    assert_type(pending, xp.Graph)
    assert_type([node.nbytes for node in pending], list[int])
    assert_type(pending.explain(), str)


def numpys_spellings(x: Array) -> None:
    assert_type(xp.array([1, 2]), Array)
    assert_type(xp.concatenate([x, x], axis=0), Array)
    assert_type(xp.transpose(x), Array)
    assert_type(xp.dot(x, x), Array)
    assert_type(x.astype(xp.float32), Array)
    assert_type(x.reshape(2, -1), Array)
    assert_type(x.sum(axis=0), Array)
    assert_type(x.tolist(), Any)
