"""Choosing the next token from logits, on any namespace."""

import math
import random
from collections.abc import Callable
from typing import Any

import array_api_compat

Choose = Callable[[Any], int]
"""Takes logits of shape (vocabulary,) and returns a token."""


def greedy(logits: Any) -> int:
    """Return the most likely token; the first among equals."""
    xp = array_api_compat.array_namespace(logits)
    return int(xp.argmax(logits))


class TopK:
    """Draw among the `k` most likely tokens, by the softmax of logits / temperature.

    The draw is Python's own, so that every namespace draws the same tokens from a seed.
    ValueError unless `k` >= 1 and `temperature` > 0.
    """

    def __init__(self, k: int, temperature: float, seed: int) -> None:
        if k < 1 or not temperature > 0:
            raise ValueError(f"k must be at least 1 and temperature positive: {k}, {temperature}")
        self._k = k
        self._temperature = temperature
        self._random = random.Random(seed)

    def __call__(self, logits: Any) -> int:
        """Return a token drawn from logits of shape (vocabulary,)."""
        xp = array_api_compat.array_namespace(logits)
        order = xp.argsort(logits, descending=True)[: self._k]
        best = xp.take(logits, order)
        tokens = [int(order[i]) for i in range(order.shape[0])]
        values = [float(best[i]) / self._temperature for i in range(order.shape[0])]
        weights = [math.exp(v - values[0]) for v in values]
        return self._random.choices(tokens, weights)[0]
