"""T5, BART and Whisper: an encoder of the whole input, and a decoder that attends to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lattend.cost.models.encoder_decoder import EncoderDecoder
from lattend.cost.models.families.family import CAUSAL, FULL
from lattend.cost.models.families.text import build_model, head_dim, unknown_head
from lattend.cost.models.fields import MISSING, Fields
from lattend.cost.models.model import Model
from lattend.cost.models.parts import (
    HEAD,
    OTHER,
    Attention,
    ModelLayer,
    ModelPart,
    gated,
    norms,
    plain,
    projections,
    table,
)
from lattend.cost.models.spans import AttentionSpan


def t5(fields: Fields) -> Model:
    """No biases; the first layer of either side has a table of relative positions."""
    width, heads, size = fields.size("d_model"), fields.size("num_heads"), fields.size("d_kv")
    feed_forward, words = _t5_feed_forward(fields, width)
    buckets = table("relative positions", fields.usual(32, "relative_attention_num_buckets"), heads)
    matrices = projections(width, heads, heads, size)
    own = (*matrices, *feed_forward)
    crossing = (matrices[0], matrices[3])
    inner, outer = norms(width, *("layer norm",) * 2), norms(width, *("layer norm",) * 3)
    layers, decoders = fields.layers("num_layers"), fields.optional("num_decoder_layers")

    def stack(parts: tuple[ModelPart, ...], span: AttentionSpan, count: int) -> tuple[ModelLayer, ...]:
        attention = Attention(span, heads, heads, size, size)
        first, other = ModelLayer((*parts, buckets), attention, words), ModelLayer(parts, attention, words)
        return (first, *(other,) * (count - 1))

    encoder = stack((*own, *inner), FULL, layers)
    decoder = stack((*own, *crossing, *outer), CAUSAL, decoders or layers)
    around = norms(width, "encoder's last norm"), norms(width, "last norm")
    return _both_sides(fields, width, encoder, around[0], decoder, around[1])


def bart(fields: Fields) -> Model:
    """Learned positions on both sides, two more than are used, and a norm after them."""
    if not fields.flag("tie_word_embeddings", True):
        raise fields.wrong("tie_word_embeddings", "true: tables that are not shared are not counted", False)
    width, positions = fields.size("d_model"), fields.size("max_position_embeddings")
    around = (table("positions", positions + 2, width), *norms(width, "norm of the tables", bias=True))
    limits = {"encoder_longest": positions, "longest": positions}
    return _plain_sides(fields, width, around, around, key_bias=True, **limits)


def whisper(fields: Fields) -> Model:
    """Two convolutions on the sound's frames, two frames a position; keys without biases."""
    width, mel = fields.size("d_model"), fields.size("num_mel_bins")
    inputs, targets = fields.size("max_source_positions"), fields.size("max_target_positions")
    frames, taps = 2 * inputs, 3
    before = (
        ModelPart(
            "convolution of frames",
            OTHER,
            (taps * mel + 1) * width,
            mel * width,
            rows=(taps * frames - 2, taps * frames),  # one tap beyond either end reads padding
            leads=True,
        ),
        ModelPart(
            "convolution of pairs",
            OTHER,
            (taps * width + 1) * width,
            width * width,
            rows=(taps * inputs - 1, taps * inputs),
        ),
        table("encoder's positions", inputs, width),
        *norms(width, "encoder's last norm", bias=True),
    )
    after = (table("positions", targets, width), *norms(width, "last norm", bias=True))
    limits = {"encoder_longest": inputs, "longest": targets, "fixed": inputs}
    return _plain_sides(fields, width, before, after, key_bias=False, **limits)


def _plain_sides(
    fields: Fields,
    width: int,
    around_encoder: Sequence[ModelPart],
    around_decoder: Sequence[ModelPart],
    *,
    key_bias: bool,
    **limits: int,
) -> Model:
    """Layers with biases and two matrices of a feed-forward, as BART and Whisper have them."""
    layers: list[tuple[ModelLayer, ...]] = []
    for side, span in {"encoder": FULL, "decoder": CAUSAL}.items():
        heads, hidden = fields.size(f"{side}_attention_heads"), fields.size(f"{side}_ffn_dim")
        size = head_dim(fields, width, heads)
        matrices = projections(width, heads, heads, size, bias=True, out_bias=True, key_bias=key_bias)
        more = (matrices[0], matrices[3]) if side == "decoder" else ()
        names = ("layer norm",) * (3 if side == "decoder" else 2)
        parts = (*matrices, *more, *plain(width, hidden), *norms(width, *names, bias=True))
        layer = ModelLayer(parts, Attention(span, heads, heads, size, size), f"{hidden:,} wide")
        layers.append((layer,) * fields.layers(f"{side}_layers"))
    return _both_sides(fields, width, layers[0], around_encoder, layers[1], around_decoder, **limits)


def _both_sides(
    fields: Fields,
    width: int,
    encoder: tuple[ModelLayer, ...],
    around_encoder: Sequence[ModelPart],
    decoder: tuple[ModelLayer, ...],
    around_decoder: Sequence[ModelPart],
    *,
    encoder_longest: int | None = None,
    longest: int | None = None,
    fixed: int | None = None,
) -> Model:
    """Both sides, the table of tokens and the head that gives a score for each of them.

    Each layer of the decoder has matrices for keys and values of the encoder's output, as for its own.
    """
    vocabulary = fields.size("vocab_size")
    outside = [table("tokens", vocabulary, width), *around_decoder]
    head, named = "no head", fields.architecture
    if named is None or named.endswith("ForConditionalGeneration"):
        shares = fields.flag("tie_word_embeddings", True)
        product = width * vocabulary
        outside.append(ModelPart("output head", HEAD, 0 if shares else product, product))
        head = "language model" + (", head shared with the table" if shares else "")
    elif not named.endswith("Model") or named.endswith("EncoderModel"):
        raise unknown_head(fields, named, "…ForConditionalGeneration and …Model")
    last = decoder[-1]
    keyed = tuple(part for part in last.parts if part.name in ("key", "value"))
    attention = None if last.attention is None else replace(last.attention, span=FULL)
    named_encoder = f"{fields.family} encoder", fields.where, "no head", width
    return build_model(
        fields,
        head,
        width,
        decoder,
        outside,
        EncoderDecoder,
        longest=longest,
        encoder=Model(*named_encoder, encoder, tuple(around_encoder), encoder_longest),
        cross=(ModelLayer(keyed, attention, "none"),) * len(decoder),
        fixed=fixed,
    )


def _t5_feed_forward(fields: Fields, width: int) -> tuple[tuple[ModelPart, ...], str]:
    hidden, kind = fields.size("d_ff"), fields.get("feed_forward_proj")
    if kind is not MISSING and not isinstance(kind, str):
        raise fields.wrong("feed_forward_proj", "a text such as relu or gated-gelu", kind)
    if kind is not MISSING and kind.startswith("gated"):
        return gated(width, hidden), f"{hidden:,} wide, gated"
    return plain(width, hidden, bias=False), f"{hidden:,} wide"
