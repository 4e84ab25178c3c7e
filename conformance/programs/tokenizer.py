"""The tokenizer of a GGUF file: byte-level BPE built from the file's own metadata.

Source of the byte alphabet and the splitting pattern: GPT-2's encoder (Radford et al. 2019); the
"smollm" variety splits digits one by one first.
"""

import codecs
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

CONTROL, USER_DEFINED = 3, 4
"""Values of tokenizer.ggml.token_type whose tokens are recognised whole in a text."""

PRE_TOKENIZERS = {"smollm": True, "gpt-2": False}
"""Known values of tokenizer.ggml.pre: whether digits are split one by one."""


def byte_alphabet() -> dict[int, str]:
    """Return GPT-2's printable character of every byte: itself, or the next from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    alphabet = {byte: chr(byte) for byte in printable}
    return alphabet | {byte: chr(256 + i) for i, byte in enumerate(others)}


class Tokenizer:
    """Text to token ids and back.

    Parameters
    ----------
    metadata : mapping
        GGUF metadata. ValueError for a kind of tokenizer other than byte-level BPE, ImportError
        when the PyPI package tokenizers is missing.
    """

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._bpe = _build(metadata)
        adds_bos = metadata.get("tokenizer.ggml.add_bos_token", False)
        self._bos = _token(metadata, "bos") if adds_bos else None
        self.eos = _token(metadata, "eos")
        self._bytes = _token_bytes(metadata)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text; special tokens written in it are recognised."""
        ids: list[int] = self._bpe.encode(text, add_special_tokens=False).ids
        return ids if self._bos is None else [self._bos, *ids]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the ids; bytes that are not UTF-8 become U+FFFD."""
        return "".join(self.stream(ids))

    def stream(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text that each id completes; a character split over ids comes with the last.

        One text more than ids comes: what an unfinished character at the end leaves (U+FFFD).
        """
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        for token in ids:
            yield decoder.decode(self._bytes[token])
        yield decoder.decode(b"", final=True)


def _build(metadata: Mapping[str, Any]) -> Any:
    try:
        import tokenizers
        from tokenizers import models, pre_tokenizers
    except ImportError:
        raise ImportError("the tokenizer needs a package: pip install tokenizers") from None

    kind, pre = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if kind != "gpt2" or pre not in PRE_TOKENIZERS:
        raise ValueError(
            f"the tokenizer is {kind!r} with pre {pre!r}; known are 'gpt2' with pre"
            f" {' or '.join(map(repr, PRE_TOKENIZERS))}"
        )
    tokens, types = _lists(metadata)
    left_right = (merge.split(" ", 1) for merge in metadata["tokenizer.ggml.merges"])
    bpe = tokenizers.Tokenizer(
        models.BPE(
            vocab={token: i for i, token in enumerate(tokens)},
            merges=[(left, right) for left, right in left_right],
        )
    )
    steps: list[Any] = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    if PRE_TOKENIZERS[pre]:
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    bpe.pre_tokenizer = pre_tokenizers.Sequence(steps)
    bpe.add_special_tokens(
        [
            tokenizers.AddedToken(token, normalized=False, special=True)
            for token, kind in zip(tokens, types, strict=True)
            if kind in (CONTROL, USER_DEFINED)
        ]
    )
    return bpe


def _lists(metadata: Mapping[str, Any]) -> tuple[list[str], list[int]]:
    """Return all tokens and their types."""
    tokens = list(metadata["tokenizer.ggml.tokens"])
    return tokens, list(metadata.get("tokenizer.ggml.token_type", [1] * len(tokens)))


def _token(metadata: Mapping[str, Any], name: str) -> int | None:
    value = metadata.get(f"tokenizer.ggml.{name}_token_id")
    return None if value is None else int(value)


def _token_bytes(metadata: Mapping[str, Any]) -> list[bytes]:
    """Return the bytes that each token stands for; none for control tokens."""
    byte_of = {character: byte for byte, character in byte_alphabet().items()}
    table = []
    for token, kind in zip(*_lists(metadata), strict=True):
        if kind == CONTROL:
            table.append(b"")
        elif kind == USER_DEFINED:
            table.append(token.encode())
        else:
            table.append(bytes(byte_of[character] for character in token))
    return table


def chat_prompt(metadata: Mapping[str, Any], messages: Sequence[Mapping[str, str]]) -> str:
    """Render the file's chat template for messages with "role" and "content".

    The template comes with the file, so it runs in Jinja's immutable sandbox only. ValueError when
    the file has none or it fails, ImportError when the PyPI package jinja2 is missing.
    """
    try:
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise ImportError("chat templates need a package: pip install jinja2") from None

    template = metadata.get("tokenizer.chat_template")
    if template is None:
        raise ValueError("the model file has no tokenizer.chat_template: give the prompt raw")
    tokens = metadata["tokenizer.ggml.tokens"]
    names = {
        f"{name}_token": tokens[token]
        for name in ("bos", "eos")
        if (token := _token(metadata, name)) is not None
    }
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    try:
        return environment.from_string(template).render(
            messages=[dict(message) for message in messages], add_generation_prompt=True, **names
        )
    except TemplateError as error:
        raise ValueError(f"the model file's chat template failed: {error}") from error
