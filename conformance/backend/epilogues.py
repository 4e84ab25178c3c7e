"""What may be done to a product on its way to memory: scaling, adding a bias, another dtype."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from conformance.backend.layouts import BATCHES, MATRICES, backwards, every_second
from conformance.standard.references import EXTENDED, kind_of, numbers


class Epilogue(NamedTuple):
    """What is done to a product on its way to memory; nothing unless it is said.

    Attributes
    ----------
    alpha, beta
        As of `ggarray.interface.Kernel`.
    bias : callable or None
        Makes it for a dtype, the shape of the result, and a seed.
    dtype : numpy.dtype or None
        Of the result, if it is not that of the operands.
    """

    alpha: complex = 1
    beta: int = 0
    bias: Callable[[Any, tuple[int, ...], int], np.ndarray] | None = None
    dtype: Any = None


NOTHING = Epilogue()


FACTORS = {"i": (-1, 3), "u": (3,), "f": (-1, 0.3, 17.0), "c": (-1, 0.3, 1j, 0.5 - 1.25j)}

BIASES = {
    "a matrix": lambda shape: shape,
    "a row": lambda shape: (*[1] * (len(shape) - 1), shape[-1]),
    "a column": lambda shape: (*[1] * (len(shape) - 2), shape[-2], 1),
    "an element": lambda shape: (1,) * len(shape),
}
"""The shape of what is added to a result of a shape."""

BIASES_OF_BATCHES = {
    **BIASES,
    "one matrix": lambda shape: (1, *shape[1:]),
    "a row of each": lambda shape: (shape[0], 1, shape[2]),
    "a column of each": lambda shape: (*shape[:2], 1),
    "an element of each": lambda shape: (shape[0], 1, 1),
}


def _bias(shape_of, layout, dtype, shape, seed):
    return layout(numbers(dtype, shape_of(shape), seed))


def added(beta, name, layout=np.asarray, shapes=BIASES, **others):
    return Epilogue(beta=beta, bias=partial(_bias, shapes[name], layout), **others)


def _special_bias(x):
    x[0, :3], x[-1, -1] = (np.inf, -np.inf, np.nan), np.inf
    return x


def epilogues(dtype):
    """Name epilogues of any product of matrices."""
    for alpha in FACTORS[kind_of(dtype)]:
        yield f"times {alpha}", Epilogue(alpha)
        yield f"times {alpha} minus a row", added(-1, "a row", alpha=alpha)
    for name in BIASES:
        yield f"plus {name}", added(1, name)
        yield f"minus {name}", added(-1, name)
    for other in EXTENDED:
        if other != dtype and kind_of(other) == kind_of(dtype) in "fc":
            yield f"as {other}", Epilogue(dtype=other)
            name = f"times -0.75 minus a matrix as {other}"
            yield name, added(-1, "a matrix", alpha=-0.75, dtype=other)


def epilogues_of_layouts(dtype):
    """Name epilogues whose bias may lie in memory in many ways."""
    for name, layout in MATRICES.items():
        yield f"plus a matrix of {name}", added(1, "a matrix", layout)
    for name in ("a row", "a column"):
        yield f"plus {name} of every second", added(1, name, every_second)
        yield f"plus {name} reversed", added(1, name, backwards(-2, -1))
    if kind_of(dtype) in "fc":
        yield "minus special values", added(-1, "a matrix", _special_bias)


def epilogues_of_batches():
    """Name epilogues of a product whose result has three axes."""
    for name in BIASES_OF_BATCHES:
        yield f"minus {name}", added(-1, name, shapes=BIASES_OF_BATCHES)
    for name, layout in BATCHES.items():
        yield f"plus a matrix of {name}", added(1, "a matrix", layout)
