"""A tiny llama model in a GGUF file, made from a seed: for tests without the real one."""

from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind

from conformance.programs.tokenizer import CONTROL, byte_alphabet

LAYERS, WIDTH, HIDDEN, HEADS, KV_HEADS, HEAD_SIZE, CONTEXT = 2, 64, 96, 4, 2, 16, 64

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")

MERGES = (
    "Ġ t", "Ġ a", "i n", "h e", "r e", "o n", "e r", "Ġt he", "a t", "o r", "e n", "Ġ s", "i s",
    "e s", "Ġ w", "o u", "Ġ c", "Ġ o", "i t", "Ġo f", "a n", "Ġa n", "Ġan d", "Ġ p", "in g", "Ġ b",
    "Ġ m", "e d", "a l", "Ġ in", "Ġt o", "l l", "a r", "i on", "Ġ f", "Ã ©", "Ġ is", "o w", "Ġ d",
    "0 1", "1 2",
)  # fmt: skip
"""In the byte alphabet; "Ã ©" joins the bytes of é, and the digits' merges may never apply."""

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def vocabulary() -> list[str]:
    """Return the tokens: special ones, bytes, merges (300 in all)."""
    merged = [merge.replace(" ", "") for merge in MERGES]
    return [*SPECIAL, *byte_alphabet().values(), *merged]


def write_tiny_model(path: Path, seed: int) -> None:
    """Write the model: Q4_1 matrices, a tied Q8_0 embedding, F32 norms."""
    writer = gguf.GGUFWriter(path, "llama")
    _add_metadata(writer)
    rng = np.random.default_rng(seed)
    for name, shape, kind in _tensors():
        if kind is Kind.F32:
            writer.add_tensor(name, rng.uniform(0.5, 1.5, shape).astype(np.float32))
            continue
        values = rng.standard_normal(shape, dtype=np.float32) * np.float32(2 / shape[1] ** 0.5)
        writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensors() -> list[tuple[str, tuple[int, ...], Kind]]:
    """Return name, shape (rows, columns) and type of every tensor."""
    queries, keys = HEADS * HEAD_SIZE, KV_HEADS * HEAD_SIZE
    tensors: list[tuple[str, tuple[int, ...], Kind]] = [
        ("token_embd.weight", (len(vocabulary()), WIDTH), Kind.Q8_0),
        ("output_norm.weight", (WIDTH,), Kind.F32),
    ]
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        tensors += [(f"{block}{n}_norm.weight", (WIDTH,), Kind.F32) for n in ("attn", "ffn")]
        tensors += [
            (f"{block}{name}.weight", shape, Kind.Q4_1)
            for name, shape in {
                "attn_q": (queries, WIDTH),
                "attn_k": (keys, WIDTH),
                "attn_v": (keys, WIDTH),
                "attn_output": (WIDTH, queries),
                "ffn_gate": (HIDDEN, WIDTH),
                "ffn_up": (HIDDEN, WIDTH),
                "ffn_down": (WIDTH, HIDDEN),
            }.items()
        ]
    return tensors


def _add_metadata(writer: gguf.GGUFWriter) -> None:
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_context_length(CONTEXT)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(HEAD_SIZE)
    writer.add_layer_norm_rms_eps(1e-5)
    tokens = vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([CONTROL if token in SPECIAL else 1 for token in tokens])
    writer.add_token_merges(list(MERGES))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
