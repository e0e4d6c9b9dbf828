"""Serving: FLOPs as transformers' models run them, rules pair by pair, published bytes, times by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cost.models import hugging
from cost.models.published import PUBLISHED
from cost.models.small import LONG, TEXT

import lattend as lt
from lattend.cost.models import Serving, config, configuration, serving
from lattend.cost.models.serving_price import decode_work, generates, prefill_work
from lattend.cost.models.spans import rule_span
from lattend.draw.charts.chart import Chart
from lattend.errors import DomainError, LattendError, NamingError, TooLarge
from lattend.machines import Machine

LLAMA = PUBLISHED["Meta-Llama-3-8B"][0]
LARGE = {
    **LLAMA,
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
}
SLOW = Machine("slow", rate=1e12, bandwidth=1e11, width=2, memory=20e9, fp8=2e12)
GENERATE = [name for name, fields in TEXT.items() if generates(config(fields)) and "bert" not in name]


def test_published_parameters_and_keys_and_values_of_a_token() -> None:
    eight, seventy = config(LLAMA), config(LARGE)
    assert (eight.parameters, seventy.parameters) == (8_030_261_248, 70_553_706_496)
    assert serving(eight, 1).own.cache_bytes == 131_072
    assert serving(seventy, 1).own.cache_bytes == 327_680
    assert serving(PUBLISHED["DeepSeek-V3"][0], 1).own.cache_bytes == 70_272
    assert serving(PUBLISHED["Mixtral-8x7B-v0.1"][0], 1).own.cache_bytes == 131_072


@pytest.mark.parametrize(
    ("name", "active", "with_tables"),
    [
        ("gpt-oss-20b", 3.61, 4.19),  # its publisher says 3.6 B, without the input table
        ("DeepSeek-V3", 36.6, 37.6),  # "37 B"
        ("Mixtral-8x7B-v0.1", 12.7, 12.9),  # "12.9 B": with the table
        ("Qwen3-30B-A3B", 3.04, 3.35),  # "3.3 B": with the table
        ("Llama-4-Scout (text)", 16.1, 17.2),  # "17 B": with the table
    ],
)
def test_active_beside_what_publishers_say(name: str, active: float, with_tables: float) -> None:
    model = config(PUBLISHED[name][0])
    assert model.active / 1e9 == pytest.approx(active, rel=5e-3)
    assert (model.parameters - model.idle) / 1e9 == pytest.approx(with_tables, rel=5e-3)


def unrouted(name: str, tokens: int) -> int:
    """What transformers' Llama 4 runs more: every expert on every token."""
    experts = [part for part in config(TEXT[name]).parts if part.name == "experts"]
    return sum(part.parameters - part.used for part in experts) * tokens if "llama4" in name else 0


@pytest.mark.parametrize("name", GENERATE)
def test_a_prompt_as_transformers_runs_it(name: str) -> None:
    """The last token alone has scores; all pairs of the square are multiplied there."""
    fields = TEXT[name]
    theirs = hugging.build(fields, "cpu")
    inputs = {**hugging.forward_inputs(theirs, fields, LONG, batch=1), "logits_to_keep": 1}
    try:
        ran = hugging.products(theirs, inputs)
    except TypeError:
        pytest.skip("transformers scores every token of this family")
    work = prefill_work(config(fields), LONG)
    pairs = sum(layer.attention.multiply_adds for layer in config(fields).layers if layer.attention)
    assert sum(work.values()) - work["attention"] + pairs * LONG**2 + unrouted(name, LONG) == ran


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma3_text", "gpt_oss", "mixtral", "qwen3"])
def test_a_decoded_token_as_transformers_runs_it(name: str) -> None:
    fields, length = TEXT[name], LONG
    theirs = hugging.build(fields, "cpu").eval()
    tokens = hugging.forward_inputs(theirs, fields, length, batch=1)["input_ids"]
    with hugging.torch.no_grad():
        past = theirs(tokens[:, :-1], use_cache=True).past_key_values
        with hugging.Products() as counter:
            theirs(tokens[:, -1:], past_key_values=past, use_cache=True)
    assert sum(decode_work(config(fields), length).values()) == counter.multiplies


def test_flops_are_those_that_a_module_is_measured_at() -> None:
    fields = TEXT["llama"]
    theirs = hugging.build(fields)
    result = lt.cost.of(theirs, hugging.forward_inputs(theirs, fields, LONG, batch=1))
    model = config(fields)
    work = prefill_work(model, LONG)
    head = work["output head"] * (LONG - 1)  # a module scores every token
    assert sum(work.values()) + head == result.multiply_adds.needed


def test_latents_are_scored_as_they_are() -> None:
    """DeepSeek-V3: 128 heads score 512 + 64 numbers and mix 512; a prompt 192 and 128."""
    model = config(PUBLISHED["DeepSeek-V3"][0])
    assert decode_work(model, 1000)["attention"] == 61 * 128 * (576 + 512) * 1000
    assert prefill_work(model, 1000)["attention"] == 61 * 128 * (192 + 128) * 500_500
    # the matrices that make keys and values of a latent are multiplied to query and output instead
    assert decode_work(model, 9)["projections"] == prefill_work(model, 1)["projections"]


@pytest.mark.parametrize("text", ["strided(3)", "windowed(4)", "k <= q and (q - k <= 2 or k < 2)", "k <= q"])
@pytest.mark.parametrize("layers", [None, [1]])
def test_a_rule_pair_by_pair(text: str, layers: list[int] | None) -> None:
    model = config(LLAMA, num_hidden_layers=3)
    ruled = model.with_rule(text, layers)
    places = range(3) if layers is None else layers
    for length in (1, 2, 7, 12):
        mask = lt.rule(text).mask(n=length)
        causal = length * (length + 1) // 2
        pairs = sum(int(mask.sum()) if place in places else causal for place in range(3))
        last = sum(int(mask[-1].sum()) if place in places else length for place in range(3))
        each = 32 * (128 + 128)
        assert prefill_work(ruled, length)["attention"] == each * pairs
        assert decode_work(ruled, length)["attention"] == each * last
        kept = sum(most_in_use(text, length) if place in places else length for place in range(3))
        assert ruled.cache(length) == 2 * 2 * 8 * 128 * kept


def most_in_use(text: str, length: int) -> int:
    """While tokens come one by one: the keys that this or a later query attends to, looked for far ahead."""
    mask = lt.rule(text).mask(n=length + 40)
    return max(int(mask[query:, : query + 1].any(axis=0).sum()) for query in range(length))


@pytest.mark.parametrize("tile", [16, 64])
def test_tiles_of_a_rule_one_by_one(tile: int) -> None:
    model = config(LLAMA, num_hidden_layers=1)
    for text in ("strided(5)", "windowed(32)"):
        size = 192 // tile
        mask = lt.rule(text).mask(n=192).reshape(size, tile, size, tile).any((1, 3))
        work = model.with_rule(text).forward(192, tile=tile)["attention"]
        assert work.executed == 32 * 256 * int(np.count_nonzero(mask)) * tile**2


def test_a_rule_that_a_model_has_changes_nothing() -> None:
    """Mistral's window of 4,096 keys, and Gemma's in its own layers."""
    for name, rule, layers in (
        ("Mistral-7B-v0.1", "strided(4095)", None),
        ("gemma-2-9b", "strided(4095)", range(0, 42, 2)),
        ("gpt-oss-20b", "strided(127)", range(0, 24, 2)),
        ("Llama-4-Scout (text)", "windowed(8192)", [place for place in range(48) if (place + 1) % 4]),
    ):
        result = serving(PUBLISHED[name][0], 20_000, rule=rule, layers=layers)
        assert result.ruled is not None
        own, ruled = result.own.json(), result.ruled.json()
        assert own.pop("attention") != ruled.pop("attention")
        assert own == ruled


def test_times_by_hand() -> None:
    result = serving(LLAMA, 1000, batch=2, machine=SLOW)
    matrices = 32 * (218_112_000 - 2 * 4096)
    head, pairs = 128256 * 4096, 32 * 32 * 256
    prefill = 2 * 2 * (1000 * matrices + head + pairs * 500_500)
    assert result.own.prefill.operations == prefill
    assert (result.own.prefill.seconds, result.own.prefill.binds) == (
        pytest.approx(prefill / 1e12),
        "arithmetic",
    )
    assert result.own.decode is not None
    assert result.own.decode.operations == 2 * 2 * (matrices + head + pairs * 1000)
    moved = 2 * 7_504_924_672 + 2 * 1000 * 131_072
    assert result.own.decode.bytes == moved
    assert (result.own.decode.seconds, result.own.decode.binds) == (pytest.approx(moved / 1e11), "memory")
    assert result.own.tokens_per_s == pytest.approx(2 / result.own.decode.seconds)
    assert result.own.prefill_flops["attention"] == pytest.approx(2 * pairs * 500.5)
    assert result.own.decode_flops["projections"] == 2 * 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024)


def test_one_price_prints_itself() -> None:
    result = serving(LLAMA, 1000, machine=SLOW).own
    assert repr(result) == "<ServingPrice its own attention: 151 ms a token>"
    assert "KV cache of a sequence  131,072,000 bytes (125 MiB)" in str(result)
    assert "151 ms on slow, bound by memory" in str(result)


def test_fp8_products_run_at_their_own_rate_and_the_rest_does_not() -> None:
    result = serving(LLAMA, 1000, machine=SLOW, weights="fp8").own.prefill
    matrices, rest = 32 * (218_112_000 - 2 * 4096) * 1000, 128256 * 4096 + 32 * 32 * 256 * 500_500
    assert result.seconds == pytest.approx(2 * matrices / 2e12 + 2 * rest / 1e12)
    assert "weights fp8, its products at 2 TFLOP/s" in flat(serving(LLAMA, 9, machine=SLOW, weights="fp8"))
    four = serving(LLAMA, 1000, machine=SLOW, weights="int4").own.prefill
    assert four.seconds == serving(LLAMA, 1000, machine=SLOW).own.prefill.seconds


def flat(result: Serving) -> str:
    """What it prints, in one line."""
    return " ".join(str(result).split())


def test_how_many_sequences_fit() -> None:
    result = serving(LLAMA, 1000, machine=SLOW)
    assert result.own.fits == (20_000_000_000 - 16_060_522_496) // 131_072_000 == 30
    assert serving(LLAMA, 1000, machine=SLOW, cache="fp8").own.fits == 60
    none = serving(LLAMA, 1000, machine=SLOW, weights="fp32")
    assert none.own.fits == 0
    assert "The weights do not fit: 32.12 GB in fp32, the memory is 20 GB. 2 such machines" in flat(none)
    assert "31 sequences do not fit, 30 do" in flat(serving(LLAMA, 1000, machine=SLOW, batch=31))
    unknown = serving(LLAMA, 1000, machine="flops=1T,bandwidth=1T")
    assert (unknown.own.fits, unknown.room) == (None, None)


def test_several_machines_are_one() -> None:
    one, four = (serving(LLAMA, 1000, machine=SLOW, machines=count) for count in (1, 4))
    assert four.own.prefill.seconds == pytest.approx(one.own.prefill.seconds / 4)
    assert four.own.fits == (80_000_000_000 - 16_060_522_496) // 131_072_000
    assert "Not counted: what they send each other" in flat(four)


def test_what_makes_no_tokens_has_no_decoding() -> None:
    result = serving(PUBLISHED["bert-base-uncased (BertModel)"][0])
    assert (result.length, result.own.decode, result.own.cache_bytes) == (512, None, 0)
    assert "decoding" not in str(result)
    image = serving(PUBLISHED["vit-base-patch16-224"][0])
    assert image.length == 197
    assert 197 * sum(image.own.prefill_flops.values()) == pytest.approx(2 * 17_563_828_224)
    with pytest.raises(LattendError, match="one length, so there is no chart"):
        image.draw()
    with pytest.raises(DomainError, match="a rule here is one of sequences"):
        serving(PUBLISHED["vit-base-patch16-224"][0], rule="causal")


@pytest.mark.parametrize("name", TEXT)
def test_configurations_of_transformers_and_models_are_read(name: str) -> None:
    model, theirs = config(TEXT[name]), hugging.build(TEXT[name])
    named = "architectures" in TEXT[name]
    for source in (theirs,) if named else (theirs.config, theirs):  # a configuration alone names no head
        result = config(source)
        assert result.parameters == model.parameters
        assert [layer.attention for layer in result.layers] == [layer.attention for layer in model.layers]


def test_a_loaded_model_is_priced_with_the_rules_it_was_given() -> None:
    from lattend.integrations.transformers import RULE, set_rule

    theirs = hugging.build(TEXT["llama"])
    theirs.config._attn_implementation = "lattend"
    set_rule(theirs, "strided(3)", layers=[1])
    model = config(TEXT["llama"])
    assert RULE == configuration.RULE
    assert config(theirs).cache(9) == model.with_rule("strided(3)", [1]).cache(9) < model.cache(9)
    assert config(theirs).forward(9).parts == model.with_rule("strided(3)", [1]).forward(9).parts
    assert "the rules it was given" in str(serving(theirs, 9))
    set_rule(theirs, "sinks(2, 3)", layers=[0])
    assert "layers that drop keys keep at most 4 or 6 tokens" in str(config(theirs))  # 4; 2 and 4
    set_rule(theirs, None)
    assert config(theirs).cache(9) == model.cache(9)
    assert "drop keys" not in str(config(theirs))
    assert "its own attention" in str(serving(theirs, 9))


@pytest.mark.parametrize("rule", ["strided(3)", "sinks(2, 3)", "windowed(4)", "k <= q and (q - k) % 2 == 0"])
def test_the_most_keys_of_a_rule_are_those_of_a_long_sequence(rule: str) -> None:
    span = rule_span(rule, causal=True)
    lengths = [span.cached_keys(length) for length in (64, 128)]
    most = span.most_cached_keys
    assert lengths == [most, most] if most is not None else lengths[0] < lengths[1]


def heights(chart: Chart, length: int) -> list[float]:
    """Where the lines of a chart are at this length."""
    return [point[1] for line in chart.lines for point in line.points if point[0] == length]


def test_a_chart_has_the_numbers_of_the_table() -> None:
    result = serving(LLAMA, 8192, rule="strided(1023)")
    cache, rate, prefill = result.draw().charts
    assert result.ruled is not None
    assert heights(cache, 8192) == [1.0, 0.125]  # GiB: 8192 and 1024 tokens of 131,072 bytes
    assert heights(rate, 8192) == [result.own.tokens_per_s, result.ruled.tokens_per_s]
    assert heights(prefill, 8192) == [result.own.prefill.seconds, result.ruled.prefill.seconds]
    short: Serving = serving(PUBLISHED["gpt2"][0])
    assert max(x for x, _ in short.draw().charts[0].lines[0].points) == 1024


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({"rule": "strided"}, NamingError, r'needs a value for t: give it, as in "strided\(255\)"'),
        ({"rule": "full"}, LattendError, "which has not come yet"),
        ({"rule": "swin(7, 0)"}, LattendError, "is not one of sequences that grow: it is of images"),
        ({"rule": "k <= q and head == 0"}, LattendError, "it speaks of heads"),
        ({"rule": "k <= q and q < n - 1"}, LattendError, "it names n"),
        ({"rule": "causal", "layers": [32]}, NamingError, "there is no layer 32; layers are 0 to 31"),
        ({"machine": "TPU"}, NamingError, 'no machine is named "TPU"; there are H200'),
        ({"machine": {"flops": 1e15}}, NamingError, 'a machine is a name, such as "H100", or a text'),
        ({"weights": "fp6"}, NamingError, 'no format of weights is named "fp6"'),
        ({"cache": "int4"}, NamingError, 'no format of a KV cache is named "int4"; there are fp32, bf16'),
        ({"batch": 0}, DomainError, "batch must be at least 1, got 0"),
        ({"machines": 0}, DomainError, "at least 1, got 0"),
        ({"length": 1 << 23, "rule": "strided(7)"}, TooLarge, "at most 4,194,304 tokens are looked at"),
    ],
)
def test_what_is_wrong_is_said(more: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        _ = serving(LLAMA, **more).prices
