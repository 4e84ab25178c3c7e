"""A llama-type language model, written with the Python array API standard alone.

The namespace comes from the weights, so the same lines run on any conforming library. Weights may
be block-quantized: the model touches a matrix only by ``@``, ``.mT`` and, for the embedding,
``take`` followed by ``astype``. Token generation is bound by the number of array calls, so what
does not change between layers (rotary tables, the causal mask) is made once.

Sources: RMS norm, Zhang and Sennrich 2019; rotary positions, Su et al. 2021; gated SiLU units,
Shazeer 2020; grouped-query attention, Ainslie et al. 2023; LLaMA, Touvron et al. 2023.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import array_api_compat

from conformance.programs.sampling import Choose

Array = Any
"""An array of whichever namespace the weights belong to."""

CHUNK = 256
"""Prompt tokens taken in one pass: bounds the memory of the attention scores."""

_REQUIRED = (
    "llama.attention.head_count",
    "llama.attention.layer_norm_rms_epsilon",
    "llama.block_count",
    "llama.context_length",
    "llama.embedding_length",
)


@dataclass(frozen=True, slots=True)
class LlamaConfig:
    """Sizes and constants of a model, as its GGUF metadata states them."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_size: int
    rotary_size: int
    rotary_base: float
    epsilon: float
    context: int

    @property
    def group(self) -> int:
        """Query heads that share one key and value head."""
        return self.heads // self.kv_heads


def load_config(metadata: Mapping[str, Any]) -> LlamaConfig:
    """Read the configuration from GGUF metadata; ValueError for what this model cannot run."""
    architecture = metadata.get("general.architecture")
    if architecture != "llama":
        raise ValueError(f"the architecture is {architecture!r}, not 'llama'")
    if metadata.get("llama.rope.scaling.type", "none") != "none":
        raise ValueError("scaled rotary positions (llama.rope.scaling.type) are not supported")
    missing = [key for key in _REQUIRED if key not in metadata]
    if missing:
        raise ValueError(f"the model has no metadata {', '.join(missing)}")
    heads = int(metadata["llama.attention.head_count"])
    width = int(metadata["llama.embedding_length"])
    head_size = int(metadata.get("llama.attention.key_length", width // heads))
    config = LlamaConfig(
        layers=int(metadata["llama.block_count"]),
        width=width,
        heads=heads,
        kv_heads=int(metadata.get("llama.attention.head_count_kv", heads)),
        head_size=head_size,
        rotary_size=int(metadata.get("llama.rope.dimension_count", head_size)),
        rotary_base=float(metadata.get("llama.rope.freq_base", 10000.0)),
        epsilon=float(metadata["llama.attention.layer_norm_rms_epsilon"]),
        context=int(metadata["llama.context_length"]),
    )
    if heads % config.kv_heads:
        raise ValueError(f"{heads} query heads cannot share {config.kv_heads} key heads evenly")
    return config


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of one block; matrices are transposed, so that they stand right of ``@``."""

    attn_norm: Array
    attn_q: Array
    attn_k: Array
    attn_v: Array
    attn_output: Array
    ffn_norm: Array
    ffn_gate: Array
    ffn_up: Array
    ffn_down: Array


@dataclass(slots=True)
class Cache:
    """Keys and values of the tokens seen so far, and the rotary tables of every position.

    ``entries[i]`` belongs to layer i and has shape (2 * kv_heads, capacity, head_size): keys
    before values. ``cos`` and ``sin`` have shape (capacity, (heads + 2 * kv_heads) * head_size).
    """

    entries: list[Array]
    cos: Array
    sin: Array
    capacity: int
    length: int = 0


@dataclass(frozen=True, slots=True)
class _Span:
    """What all layers share in one pass over the tokens at positions start .. end - 1."""

    start: int
    end: int
    cos: Array
    sin: Array
    mask: Array | None


class Llama:
    """A model bound to its weights.

    Parameters
    ----------
    metadata : mapping
        GGUF metadata.
    weights : mapping of str to array
        Tensors by their GGUF names. Norms have the dtype of the computation (float32 or float64),
        matrices the same one or a quantized one. ValueError when a tensor is missing.
    """

    def __init__(self, metadata: Mapping[str, Any], weights: Mapping[str, Array]) -> None:
        self.config = load_config(metadata)
        norm = _tensor(weights, "output_norm.weight")
        self.xp: ModuleType = array_api_compat.array_namespace(norm)
        self.dtype = norm.dtype
        self.device = array_api_compat.device(norm)
        self._embedding = _tensor(weights, "token_embd.weight")
        self._head = weights.get("output.weight", self._embedding).mT
        self._norm_scale = math.sqrt(self.config.width)
        self._norm_floor = self.config.width * self.config.epsilon
        self._output_norm = norm * self._norm_scale
        self._layers = [self._layer(weights, i) for i in range(self.config.layers)]
        self._swap = self._pair_swap()

    def new_cache(self, capacity: int | None = None) -> Cache:
        """Return an empty cache for `capacity` tokens (the model's context by default)."""
        c, xp = self.config, self.xp
        n = c.context if capacity is None else min(capacity, c.context)
        shape = (2 * c.kv_heads, n, c.head_size)
        entries = [xp.zeros(shape, dtype=self.dtype, device=self.device) for _ in range(c.layers)]
        return Cache(entries, *self._rotary_tables(n), capacity=n)

    def forward(self, tokens: Sequence[int], cache: Cache) -> Array:
        """Take tokens that follow those in the cache; return the last one's logits (vocabulary,).

        ValueError when there are no tokens or the cache has no room for them.
        """
        xp = self.xp
        start, end = cache.length, cache.length + len(tokens)
        if not tokens or end > cache.capacity:
            raise ValueError(
                f"{len(tokens)} tokens after {start} do not fit a cache of {cache.capacity}"
            )
        ids = xp.asarray(tokens, dtype=xp.int64, device=self.device)
        x = xp.astype(xp.take(self._embedding, ids, axis=0), self.dtype)
        cos, sin = cache.cos[start:end, :], cache.sin[start:end, :]
        span = _Span(start, end, cos, sin, self._causal_mask(start, end))
        for layer, entries in zip(self._layers, cache.entries, strict=True):
            x = x + self._attention(layer, self._normalized(x, layer.attn_norm), entries, span)
            x = x + _feed_forward(xp, layer, self._normalized(x, layer.ffn_norm))
        cache.length = end
        last = self._normalized(x[-1:, :], self._output_norm)
        return (last @ self._head)[0, :]

    def prefill(
        self,
        tokens: Sequence[int],
        cache: Cache,
        advance: Callable[[int], object] = lambda count: None,
    ) -> Array:
        """Take a prompt of any length, `CHUNK` tokens a pass; return the last token's logits.

        `advance` is called with the number of tokens after each pass but the last.
        """
        last = (len(tokens) - 1) // CHUNK * CHUNK
        for start in range(0, last, CHUNK):
            self.forward(tokens[start : start + CHUNK], cache)
            advance(CHUNK)
        return self.forward(tokens[max(last, 0) :], cache)

    def _layer(self, weights: Mapping[str, Array], index: int) -> Layer:
        def matrix(name: str) -> Array:
            return _tensor(weights, f"blk.{index}.{name}.weight").mT

        def norm(name: str) -> Array:
            return _tensor(weights, f"blk.{index}.{name}.weight") * self._norm_scale

        return Layer(
            attn_norm=norm("attn_norm"),
            attn_q=matrix("attn_q"),
            attn_k=matrix("attn_k"),
            attn_v=matrix("attn_v"),
            attn_output=matrix("attn_output"),
            ffn_norm=norm("ffn_norm"),
            ffn_gate=matrix("ffn_gate"),
            ffn_up=matrix("ffn_up"),
            ffn_down=matrix("ffn_down"),
        )

    def _pair_swap(self) -> Array:
        """Return the indexes that exchange elements 2i and 2i + 1 of all heads' features."""
        c = self.config
        features = (c.heads + 2 * c.kv_heads) * c.head_size
        indexes = [i ^ 1 for i in range(features)]
        return self.xp.asarray(indexes, dtype=self.xp.int64, device=self.device)

    def _rotary_tables(self, positions: int) -> tuple[Array, Array]:
        """Return factors for features and for swapped features, each (positions, features).

        Query heads carry the attention's 1 / sqrt(head_size) too; values pass unchanged. Angles
        are computed by `math` in double precision: float32 would lose the far positions.
        """
        c, xp = self.config, self.xp
        cosines, sines = _rotary_rows(c, positions)
        cos = xp.asarray(cosines, dtype=self.dtype, device=self.device)
        sin = xp.asarray(sines, dtype=self.dtype, device=self.device)
        scale = 1 / math.sqrt(c.head_size)
        tables = []
        for turn, keep in ((cos, xp.ones_like), (sin, xp.zeros_like)):
            parts = [xp.tile(turn * scale, (1, c.heads)), xp.tile(turn, (1, c.kv_heads))]
            parts.append(xp.tile(keep(turn), (1, c.kv_heads)))
            tables.append(xp.concat(parts, axis=1))
        return tables[0], tables[1]

    def _causal_mask(self, start: int, end: int) -> Array | None:
        """Return 0 where a query sees a key, else -inf; rows are (token, query head of a group)."""
        if end - start == 1:
            return None
        xp, group, device = self.xp, self.config.group, self.device
        rows = xp.arange(start * group, end * group, dtype=xp.int64, device=device) // group
        columns = xp.arange(end, dtype=xp.int64, device=device)
        seen = rows[:, None] >= columns[None, :]
        zero = xp.zeros((), dtype=self.dtype, device=device)
        hidden = xp.full((), -math.inf, dtype=self.dtype, device=device)
        return xp.where(seen, zero, hidden)

    def _normalized(self, x: Array, weight: Array) -> Array:
        """RMS norm: x / sqrt(mean(x^2) + eps) * w; `weight` is w * sqrt(width)."""
        squares = self.xp.sum(x * x, axis=-1, keepdims=True)
        return x * (squares + self._norm_floor) ** -0.5 * weight

    def _attention(self, layer: Layer, x: Array, entries: Array, span: _Span) -> Array:
        """Causal attention of x (tokens, width) over `entries`, to which x's own are added."""
        c, xp = self.config, self.xp
        features = xp.concat([x @ layer.attn_q, x @ layer.attn_k, x @ layer.attn_v], axis=-1)
        swapped = xp.take(features, self._swap, axis=-1)
        turned = features * span.cos + swapped * span.sin
        own = self._by_head(turned[:, c.heads * c.head_size :], 2 * c.kv_heads, 1)
        entries[:, span.start : span.end, :] = own
        keys = entries[: c.kv_heads, : span.end, :]
        values = entries[c.kv_heads :, : span.end, :]

        # One batched product per key head; the group's query heads are further rows of it.
        queries = self._by_head(turned[:, : c.heads * c.head_size], c.kv_heads, c.group)
        scores = queries @ keys.mT
        if span.mask is not None:
            scores = scores + span.mask
        exponentials = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
        mixed = exponentials @ values / xp.sum(exponentials, axis=-1, keepdims=True)
        return self._by_token(mixed, x.shape[0]) @ layer.attn_output

    def _by_head(self, x: Array, heads: int, rows: int) -> Array:
        """Return (tokens, heads * rows * head_size) as (heads, tokens * rows, head_size)."""
        xp, count, size = self.xp, x.shape[0], self.config.head_size
        if count > 1:
            x = xp.permute_dims(xp.reshape(x, (count, heads, rows * size)), (1, 0, 2))
        return xp.reshape(x, (heads, count * rows, size))

    def _by_token(self, x: Array, count: int) -> Array:
        """Return (heads, count * rows, head_size) as (count, heads * rows * head_size)."""
        xp, features = self.xp, math.prod(x.shape) // count
        if count > 1:
            heads = x.shape[0]
            x = xp.permute_dims(xp.reshape(x, (heads, count, features // heads)), (1, 0, 2))
        return xp.reshape(x, (count, features))


def _feed_forward(xp: ModuleType, layer: Layer, x: Array) -> Array:
    """(silu(x G) * x U) D, where silu(g) = g / (1 + exp(-g)) = h + h tanh(h) with h = g / 2.

    The form with tanh cannot overflow.
    """
    half = (x @ layer.ffn_gate) * 0.5
    return ((half + half * xp.tanh(half)) * (x @ layer.ffn_up)) @ layer.ffn_down


def _tensor(weights: Mapping[str, Array], name: str) -> Array:
    if name not in weights:
        raise ValueError(f"the model has no tensor {name!r}")
    return weights[name]


def _rotary_rows(c: LlamaConfig, positions: int) -> tuple[list[list[float]], list[list[float]]]:
    """Return one head's factors per position: cos, cos, ... and -sin, sin, ... by pairs."""
    frequencies = [c.rotary_base ** (-i / c.rotary_size) for i in range(0, c.rotary_size, 2)]
    rest = c.head_size - c.rotary_size
    cosines, sines = [], []
    for position in range(positions):
        angles = [position * f for f in frequencies]
        cos = [x for a in angles for x in (math.cos(a),) * 2]
        sin = [x for s in map(math.sin, angles) for x in (-s, s)]
        cosines.append(cos + [1.0] * rest)
        sines.append(sin + [0.0] * rest)
    return cosines, sines


def generate(
    model: Llama,
    prompt: Sequence[int],
    choose: Choose,
    *,
    limit: int,
    stop: int | None = None,
    advance: Callable[[int], object] = lambda count: None,
) -> Iterator[int]:
    """Yield up to `limit` tokens that follow the prompt; the `stop` token is the last if it comes.

    Fewer come when the model's context is full. ValueError for a prompt that does not fit it.
    `advance` hears of the prompt's tokens, as in `Llama.prefill`.
    """
    cache = model.new_cache(len(prompt) + limit)
    logits = model.prefill(prompt, cache, advance)
    for _ in range(limit):
        token = choose(logits)
        yield token
        if token == stop or cache.length == cache.capacity:
            return
        logits = model.forward([token], cache)
