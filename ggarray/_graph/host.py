"""What the host computes itself: everything but products.

Each function takes the parameters of the operation (see `ggarray._graph.node.Node`), its operands,
and memory for the value, which may be that of an operand.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ggarray._graph.node import part
from ggarray._storage import Plain
from ggarray.interface import Op


def _copy(params: Any, operands: Sequence[Any], out: Plain) -> None:
    np.copyto(out, operands[0], casting="unsafe")


def _add(params: Any, operands: Sequence[Any], out: Plain) -> None:
    combine = np.subtract if params else np.add
    combine(operands[0], operands[1], out=out, casting="same_kind")


def _scale(params: Any, operands: Sequence[Any], out: Plain) -> None:
    if params is None:
        np.negative(operands[0], out=out)
    else:
        np.multiply(operands[0], params, out=out)


COMPUTE: dict[Op, Callable[[Any, Sequence[Any], Plain], None]] = {
    Op.COPY: _copy,
    Op.ADD: _add,
    Op.SCALE: _scale,
}


def view(base: Plain, shape: tuple[int, ...], params: Any) -> Plain:
    """Return what a VIEW of `base` is."""
    strides, offset, writeable = params
    found = part(base, shape, strides, offset, base.dtype)
    found.flags.writeable = writeable
    return found
