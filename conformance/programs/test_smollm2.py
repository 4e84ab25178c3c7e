"""SmolLM2-135M-Instruct on every namespace: tokens and logits against exact products.

The expected tokens were made by a NumPy float64 program from weights decoded by the PyPI package
gguf, greedily, without a token in front.
"""

import functools
from typing import NamedTuple

import numpy as np
import pytest

from conformance.programs.llama import Llama, generate
from conformance.programs.loading import open_decoded, open_ggarray
from conformance.programs.model_file import SHA256, find_model, sha256
from conformance.programs.reference import reference_logits
from conformance.programs.sampling import greedy
from conformance.programs.tokenizer import Tokenizer, chat_prompt

pytestmark = pytest.mark.model

QUESTION = "Explain in one sentence what a matrix product is."
EOS = 2


class Case(NamedTuple):
    text: str
    ids: list[int]
    continuation: list[int]


CASES = {
    "capital": Case(
        "The capital of France is",
        [504, 3575, 282, 4649, 314],
        [
            7042, 30, 198, 198, 504, 2988, 314, 42, 216, 34, 32, 33,
            40, 29, 32, 33, 29, 34, 34, 216, 33, 34, 42, 33,
        ],
    ),
    "chat": Case(
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        f"<|im_end|>\n<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n",
        [
            1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28,
            7018, 411, 407, 19712, 8182, 2, 198, 1, 4093, 198, 36971, 281, 582, 6330,
            732, 253, 6736, 1406, 314, 30, 2, 198, 1, 520, 9531, 198,
        ],
        [
            49, 6736, 1406, 314, 253, 7132, 4953, 338, 11473,
            827, 18771, 411, 26147, 480, 10561, 18771, 30, EOS,
        ],
    ),
    "code": Case(
        "def fibonacci(n):\n    ",
        [1604, 3987, 46477, 24, 94, 727, 2367],
        [
            753, 3987, 46477, 24, 94, 727, 466, 585, 304, 1758, 216, 32,
            42, 7396, 1003, 216, 33, 466, 4698, 304, 1758, 216, 33, 42,
        ],
    ),
}  # fmt: skip

OPENERS = {
    "ggarray:cpu": lambda path: open_ggarray(path, "cpu"),
    "ggarray:blas": lambda path: open_ggarray(path, "blas"),
    "numpy": lambda path: open_decoded(path, "numpy"),
    "array_api_strict": lambda path: open_decoded(path, "array_api_strict"),
}
DECODED_LIMIT = 6
"""Tokens that the namespaces without quantized arrays continue: they read five times as much."""


@pytest.fixture(scope="module")
def path():
    return find_model()


@pytest.fixture(scope="module", params=OPENERS)
def model(path, request):
    return Llama(*OPENERS[request.param](path))


@pytest.fixture(scope="module")
def metadata(path):
    return open_ggarray(path).metadata


@functools.cache
def _judged(name):
    """Return the reference's logits before each token of a continuation."""
    case = CASES[name]
    logits = reference_logits(find_model(), case.ids + case.continuation[:-1])
    return logits[len(case.ids) - 1 :]


def test_file_is_the_published_one(path):
    assert sha256(path) == SHA256


@pytest.mark.parametrize("name", CASES)
def test_tokenizer_gives_the_known_ids(metadata, name):
    tokenizer = Tokenizer(metadata)
    assert tokenizer.encode(CASES[name].text) == CASES[name].ids


def test_tokenizer_reads_its_answer(metadata):
    assert Tokenizer(metadata).decode(CASES["chat"].continuation) == (
        "A matrix product is a mathematical operation that combines two matrices by multiplying"
        " their respective matrices."
    )


def test_chat_template_gives_the_known_prompt(metadata):
    messages = [{"role": "user", "content": QUESTION}]
    assert chat_prompt(metadata, messages) == CASES["chat"].text


@pytest.mark.parametrize("name", CASES)
def test_greedy_tokens_and_every_logit_equal_the_reference(model, request, name):
    case = CASES[name]
    namespace = request.node.callspec.params["model"]
    limit = len(case.continuation) if namespace.startswith("ggarray") else DECODED_LIMIT
    seen = []

    def choose(logits):
        seen.append(np.asarray(logits, dtype=np.float64))
        return greedy(logits)

    tokens = list(generate(model, case.ids, choose, limit=limit, stop=EOS))
    assert tokens == case.continuation[:limit]
    for logits, expected in zip(seen, _judged(name)[:limit], strict=True):
        assert np.max(np.abs(logits - expected)) <= 1e-5 * np.ptp(expected)
