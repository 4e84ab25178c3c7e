"""Products as small programs, which run on a device and on NumPy's float64 or complex128.

The programs have no subtraction, so that on absolute values they give what an error is measured by.
"""

import itertools
import operator
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

import ggarray as xp
from conformance.standard.references import numbers

DTYPES = ("float32", "float64", "complex64", "complex128")


class Program(NamedTuple):
    """A function of arrays, and their shapes."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    function: Callable[..., Any] = operator.matmul

    def __str__(self) -> str:
        return self.name


SIDES = (1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100, 129, 256, 300)
RECTANGLES = (
    (1, 300, 7),
    (1, 7, 300),
    (300, 1, 300),
    (300, 129, 1),
    (2, 300, 129),
    (129, 300, 2),
    (5, 7, 3),
    (37, 300, 41),
    (300, 3, 65),
)

GEMM = Program("a @ b", ((65, 300), (300, 129)))
GEMV = Program("a @ vector", ((300, 200), (200,)))
DOT = Program("vector @ vector", ((20_000,), (20_000,)))
GRAM = Program("x.T @ x", ((300, 150),), lambda x: x.T @ x)
BATCH = Program("many small products", ((64, 9, 7), (64, 7, 8)))

PROGRAMS = (
    *(Program(f"{n} x {n}", ((n, n), (n, n))) for n in SIDES),
    *(Program(f"{m} x {k} x {n}", ((m, k), (k, n))) for m, k, n in RECTANGLES),
    GEMM,
    Program("a.T @ b", ((130, 65), (130, 77)), lambda a, b: a.T @ b),
    Program("a @ b.T", ((65, 130), (77, 130)), lambda a, b: a @ b.T),
    Program("a.T @ b.T", ((130, 65), (77, 130)), lambda a, b: a.T @ b.T),
    Program("(a @ b).T", ((65, 130), (130, 77)), lambda a, b: (a @ b).T),
    Program("parts", ((130, 260), (65, 300)), lambda a, b: a[::2, 130:] @ b[:, 20:150].T),
    Program("backwards", ((65, 130), (130, 77)), lambda a, b: a[::-1, ::-1] @ b[::-1]),
    GRAM,
    Program("x @ x.T", ((200, 90),), lambda x: x @ x.T),
    Program("x.T @ x of few columns", ((300, 17),), lambda x: x.T @ x),
    Program("x.mT @ x of a batch", ((3, 90, 140),), lambda x: x.mT @ x),
    GEMV,
    Program("vector @ a", ((300,), (300, 200))),
    Program("a.T @ vector", ((300, 200), (300,)), lambda a, x: a.T @ x),
    Program("vector @ a.T", ((200,), (300, 200)), lambda x, a: x @ a.T),
    Program("a @ every third", ((129, 100), (300,)), lambda a, x: a @ x[::3]),
    Program("a @ vector backwards", ((129, 100), (100,)), lambda a, x: a @ x[::-1]),
    DOT,
    Program("every second @ vector", ((600,), (300,)), lambda x, y: x[::2] @ y),
    Program("batch @ batch", ((4, 33, 65), (4, 65, 17))),
    Program("batch @ b", ((4, 33, 65), (65, 17))),
    Program("a @ batch", ((33, 65), (2, 3, 65, 17))),
    Program("batches that broadcast", ((3, 1, 20, 30), (1, 4, 30, 25))),
    Program("batch @ batch.mT", ((4, 33, 65), (4, 17, 65)), lambda a, b: a @ b.mT),
    Program("batch of vectors", ((5, 1, 200), (5, 200, 60))),
    BATCH,
    Program("a @ b + row", ((65, 130), (130, 77), (77,)), lambda a, b, c: a @ b + c),
    Program("column + a @ b", ((65, 130), (130, 77), (65, 1)), lambda a, b, c: c + a @ b),
    Program("a @ b + c", ((65, 130), (130, 77), (65, 77)), lambda a, b, c: a @ b + c),
    Program("scaled", ((65, 130), (130, 77), (65, 77)), lambda a, b, c: 0.375 * (a @ b) + c),
    Program("a @ vector + c", ((300, 200), (200,), (300,)), lambda a, x, c: a @ x + c),
    Program("a @ b @ c", ((65, 90), (90, 70), (70, 33)), lambda a, b, c: a @ b @ c),
)

ROUTINES = (GEMM, GEMV, DOT, GRAM, BATCH)
"""A program for each routine of a library."""


@cache
def operands(program: Program, dtype: str) -> tuple[Any, ...]:
    """Return the NumPy arrays that a program is given."""
    return tuple(numbers(np.dtype(dtype), shape, seed) for seed, shape in enumerate(program.shapes))


@cache
def _expected(program: Program, dtype: str) -> tuple[Any, Any]:
    """Return what a program gives, and how far off each element may be."""
    values = operands(program, dtype)
    wide = np.result_type(dtype, np.float64)
    expected = program.function(*(value.astype(wide) for value in values))
    size = program.function(*(np.abs(value.astype(wide)) for value in values))
    longest = max(side for shape in program.shapes for side in shape)
    return expected, 4 * longest * np.finfo(dtype).eps * size


def computed(program: Program, dtype: str, device: str) -> Any:
    """Return the Array that a program gives on a device, not computed yet."""
    return program.function(
        *(xp.asarray(value, device=device) for value in operands(program, dtype))
    )


def compare(result: Any, program: Program, dtype: str) -> None:
    """Raise AssertionError unless the Array of a program is right."""
    expected, bound = _expected(program, dtype)
    assert result.dtype == np.dtype(dtype)
    assert result.shape == expected.shape
    off = np.abs(np.asarray(result) - expected)
    assert (off <= bound).all(), (
        f"{program} in {dtype} on {result.device}: {(~(off <= bound)).sum()} of {off.size} wrong"
    )


def check(program: Program, dtype: str, device: str, n_threads: int = 1) -> None:
    """Raise AssertionError unless a program is right on a device."""
    with xp.num_threads(n_threads):
        result = computed(program, dtype, device)
        assert result.device == device
        compare(result, program, dtype)


def check_routines(device: str, n_threads: int = 2) -> None:
    """Raise AssertionError unless each routine of a device's library is right."""
    for program, dtype in itertools.product(ROUTINES, DTYPES):
        check(program, dtype, device, n_threads)


def digest(device: str) -> str:
    """Return a digest of every bit that the routines of a device's library give in one thread.

    Libraries add in orders of their own, so that two rarely round alike.
    """
    bits = sha256()
    with xp.num_threads(1), xp.options(fallback="error"):
        for program, dtype in itertools.product(ROUTINES, DTYPES):
            bits.update(np.asarray(computed(program, dtype, device)).tobytes())
    return bits.hexdigest()
