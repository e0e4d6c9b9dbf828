"""Encoders with a decoder: parameters, products and caches equal those of transformers' own models."""

from __future__ import annotations

from typing import Any

import pytest
from cost.models import hugging
from cost.models.hugging import torch, transformers
from cost.models.small import ENCODER_DECODER, Fields

from lattend.cost.models import config, mfu, serving
from lattend.cost.models.encoder_decoder import EncoderDecoder
from lattend.errors import DomainError, LattendError

SHORT, LONG = 11, 17  # of the decoder, and of the encoder


def build(fields: Fields, device: str = "meta") -> Any:
    """transformers' model of these fields."""
    named = fields.get("architectures", ["ForConditionalGeneration"])[0]
    given = {key: value for key, value in fields.items() if key != "architectures"}
    special = {**hugging.SPECIAL, "decoder_start_token_id": 0}
    made = transformers.AutoConfig.for_model(**given, **special)
    kind = "AutoModel" if named.endswith("Model") else "AutoModelForSeq2SeqLM"
    if fields["model_type"] == "whisper":
        kind = "AutoModelForSpeechSeq2Seq"
    torch.manual_seed(0)
    with torch.device(device):
        return getattr(transformers, kind).from_config(made, attn_implementation="eager")


def inputs(fields: Fields, batch: int) -> dict[str, Any]:
    torch.manual_seed(1)
    heard = {"decoder_input_ids": torch.randint(1, 53, (batch, SHORT))}
    if fields["model_type"] == "whisper":
        return {**heard, "input_features": torch.rand(batch, fields["num_mel_bins"], 2 * LONG)}
    return {**heard, "input_ids": torch.randint(1, 53, (batch, LONG))}


def priced(fields: Fields) -> EncoderDecoder:
    model = config(fields)
    assert isinstance(model, EncoderDecoder)
    return model


@pytest.mark.parametrize("name", ENCODER_DECODER)
def test_parameters(name: str) -> None:
    model, theirs = priced(ENCODER_DECODER[name]), build(ENCODER_DECODER[name])
    assert model.parameters == hugging.parameters(theirs)
    tables = {"shared", "embed_tokens", "embed_positions"}
    result = {
        id(one): one.numel() for part, one in theirs.named_parameters() if tables & set(part.split("."))
    }
    assert model.embedding == sum(result.values())


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("name", ENCODER_DECODER)
def test_products(name: str, checkpointing: bool) -> None:
    """torch's own counter, on eager attention."""
    from torch.utils.flop_counter import FlopCounterMode

    fields = ENCODER_DECODER[name]
    model, theirs = priced(fields), build(fields, "cpu")
    given = inputs(fields, batch=2)
    if not checkpointing:
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            theirs.eval()(**given, use_cache=False)
        work = model.forward(SHORT, batch=2, encoder_length=LONG)
        assert 2 * work.multiply_adds.dense == counter.get_total_flops()
    work = model.training(SHORT, batch=2, checkpointing=checkpointing, encoder_length=LONG)
    ran = hugging.products(theirs, given, training=True, checkpointing=checkpointing)
    assert work.multiply_adds.dense == ran


@pytest.mark.parametrize("name", ["t5", "bart", "whisper"])
def test_the_two_caches(name: str) -> None:
    """What transformers holds after the decoder has read: its own keys, and those of the encoder's output."""
    fields = ENCODER_DECODER[name]
    model, theirs = priced(fields), build(fields, "cpu").eval()
    with torch.no_grad():
        held = theirs(**inputs(fields, batch=3), use_cache=True).past_key_values
    for ours, cache in (
        (model.cache(SHORT, 3, 4), held.self_attention_cache),
        (model.cross_cache(LONG, 3, 4), held.cross_attention_cache),
    ):
        assert ours == sum(x.nbytes for layer in cache.layers for x in (layer.keys, layer.values))


def test_needed_by_hand() -> None:
    """t5, one layer a side: n = 5 tokens attend to 15 pairs of their own and to 5 × 3 of the encoder."""
    model = priced({**ENCODER_DECODER["t5"], "num_layers": 1})
    work = model.forward(5, encoder_length=3)
    each = 4 * (7 + 7)
    assert work["encoder attention"].needed == 3 * 3 * each
    assert work["decoder attention"].needed == 15 * each
    assert work["cross attention"].needed == 5 * 3 * each
    assert work["cross projections"].needed == 3 * 2 * 24 * 28
    assert work["cross attention"].executed == 64 * 64 * each
    # conv of stride 1: 34 frames × 3 taps less 2 beyond the ends; of stride 2: 17 × 3 less 1
    heard = priced(ENCODER_DECODER["whisper"]).forward(SHORT)["encoder other"]
    assert heard.needed == (34 * 3 - 2) * 5 * 24 + (17 * 3 - 1) * 24 * 24


def test_published() -> None:
    """t5-small, flan-t5-base (whose head is not shared), bart-large and whisper-tiny."""
    small = {"vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
    assert config({"model_type": "t5", **small}).parameters == 60_506_624
    base = {**small, "d_model": 768, "num_layers": 12, "num_heads": 12, "feed_forward_proj": "gated-gelu"}
    flan = config({"model_type": "t5", **base, "tie_word_embeddings": False})
    assert flan.parameters == 247_577_856
    sides = {f"{side}_{key}": n for side in ("encoder", "decoder") for key, n in _LARGE.items()}
    bart = {"model_type": "bart", "vocab_size": 50265, "d_model": 1024, "max_position_embeddings": 1024}
    assert config({**bart, **sides}).parameters == 406_291_456
    tiny = {"layers": 4, "attention_heads": 6, "ffn_dim": 1536}
    sides = {f"{side}_{key}": n for side in ("encoder", "decoder") for key, n in tiny.items()}
    whisper = {"model_type": "whisper", "vocab_size": 51865, "d_model": 384, "num_mel_bins": 80}
    whisper |= {"max_source_positions": 1500, "max_target_positions": 448}
    assert config({**whisper, **sides}).parameters == 37_760_640


_LARGE = {"layers": 12, "attention_heads": 16, "ffn_dim": 4096}


def test_what_it_prints() -> None:
    text = str(priced(ENCODER_DECODER["whisper"]).report().text())
    assert "whisper: language model, head shared with the table; encoder of 3 and decoder of 2 layers" in text
    assert "KV cache: 96 numbers a token of the decoder, over all layers" in text  # 2 layers, 2 × 24
    assert (
        "KV cache of the cross-attention: 96 numbers a position of the encoder's input, written once" in text
    )
    assert "encoder length: 17, set by the config, decoder at most 31" in text
    assert priced(ENCODER_DECODER["t5"]).json()["cross_cache_numbers"] == 3 * 2 * 28
    assert priced(ENCODER_DECODER["t5"]).forward(9).heading == "t5, forward, encoder length 9, length 9"


def test_what_is_refused() -> None:
    model = priced(ENCODER_DECODER["whisper"])
    with pytest.raises(DomainError, match="takes 17 positions, not 9: leave encoder_length out"):
        model.forward(8, encoder_length=9)
    with pytest.raises(DomainError, match="length must be at least 1, got 0"):
        priced(ENCODER_DECODER["t5"]).forward(8, encoder_length=0)
    with pytest.raises(DomainError, match="of which serving is not priced; parameters, forward"):
        serving(model)
    with pytest.raises(DomainError, match="of which utilisation is not priced"):
        mfu(model, tokens_per_s=1, peak="H100", length=8)
    with pytest.raises(DomainError, match="of which other rules are not priced"):
        model.with_rule("causal")
    with pytest.raises(DomainError, match="of which formulas are not priced") as error:
        model.formulas()
    assert "in a terminal, lattend cost config.json prices it" in error.value.reason  # what the page says
    with pytest.raises(DomainError, match="say which, as in cross_cache"):
        priced(ENCODER_DECODER["t5"]).cross_cache()
    with pytest.raises(LattendError, match="T5EncoderModel, whose head is not known for t5; known are …ForC"):
        config(ENCODER_DECODER["t5"], architectures=["T5EncoderModel"])
    with pytest.raises(LattendError, match="tables that are not shared are not counted"):
        config(ENCODER_DECODER["bart"], tie_word_embeddings=False)
