"""Tokens a second of the real language model: quantized on ggarray, decoded float32 on NumPy."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import ggarray as xp
from conformance.programs.llama import Llama
from conformance.programs.loading import Model, open_decoded, open_ggarray
from conformance.programs.model_file import find_model

PROMPT = 128
GENERATED = 16
REPEATS = 3


def speeds(model: Llama) -> tuple[float, float]:
    """Return tokens a second (wall time) of a prompt, and of generation after it."""
    cache = model.new_cache(PROMPT + GENERATED)
    tokens = [(7 * at) % 1000 + 3 for at in range(PROMPT)]
    start = time.perf_counter()
    logits = model.prefill(tokens, cache)
    np.asarray(logits)
    prompt = PROMPT / (time.perf_counter() - start)
    start = time.perf_counter()
    for token in tokens[:GENERATED]:
        np.asarray(model.forward([token], cache))
    return prompt, GENERATED / (time.perf_counter() - start)


def table(path: Path, threads: int) -> Iterator[str]:
    """Measure every namespace in turn, several times; ratios are to NumPy."""
    files: dict[str, Model] = {"numpy": open_decoded(path, "numpy")}
    files |= {device: open_ggarray(path, device) for device in ("cpu", "blas")}
    models = {name: Llama(*file) for name, file in files.items()}
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in models}
    with xp.num_threads(threads), threadpool_limits(threads):
        for _ in range(REPEATS):
            for name, model in models.items():
                seen[name].append(speeds(model))
    medians = {
        name: [statistics.median(values) for values in zip(*runs, strict=True)]
        for name, runs in seen.items()
    }
    for name, (prompt, generation) in medians.items():
        ratios = [ours / peer for ours, peer in zip(medians[name], medians["numpy"], strict=True)]
        yield (
            f"{name:<8} {threads} threads:"
            f" prompt {prompt:7.1f} tokens/s ({ratios[0]:.2f} of NumPy),"
            f" generation {generation:6.1f} tokens/s ({ratios[1]:.2f})"
        )


def main() -> None:
    """Print the table for one thread and for all."""
    print(f"SmolLM2-135M, prompt of {PROMPT} tokens; medians of {REPEATS}, wall time")
    for threads in sorted({1, xp.get_num_threads()}):
        for line in table(find_model(), threads):
            print(line, flush=True)
