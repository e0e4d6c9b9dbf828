"""T5, BART and Whisper: an encoder of the whole input, and a decoder that attends to it."""

from __future__ import annotations

from collections.abc import Sequence

from lattend.cost.models.encoder_decoder import EncoderDecoder
from lattend.cost.models.families.shared import CAUSAL, head_dim, norms, unknown_head
from lattend.cost.models.fields import MISSING, Fields
from lattend.cost.models.model import Model
from lattend.cost.models.parts import (
    HEAD,
    OTHER,
    PROJECTIONS,
    Attention,
    ModelLayer,
    ModelPart,
    gated,
    linear,
    plain,
    table,
)
from lattend.cost.models.spans import AttentionSpan

FULL = AttentionSpan("full")


def t5(fields: Fields) -> Model:
    """No biases; the first layer of either side has a table of relative positions."""
    width, heads, size = fields.size("d_model"), fields.size("num_heads"), fields.size("d_kv")
    feed_forward, words = _t5_feed_forward(fields, width)
    buckets = table("relative positions", fields.usual(32, "relative_attention_num_buckets"), heads)
    matrices = _matrices(width, heads * size, bias=False, key_bias=False)
    own = (*matrices, *feed_forward)
    crossing = (matrices[0], matrices[3])
    inner, outer = norms(width, *("layer norm",) * 2), norms(width, *("layer norm",) * 3)
    layers, decoders = fields.layers("num_layers"), fields.optional("num_decoder_layers")

    def stack(parts: tuple[ModelPart, ...], span: AttentionSpan, count: int) -> tuple[ModelLayer, ...]:
        attention = Attention(span, heads, heads, size, size)
        first, other = ModelLayer((*parts, buckets), attention, words), ModelLayer(parts, attention, words)
        return (first, *(other,) * (count - 1))

    decoder = stack((*own, *crossing, *outer), CAUSAL, decoders or layers)
    return _built(
        fields,
        width,
        encoder=stack((*own, *inner), FULL, layers),
        around_encoder=norms(width, "encoder's last norm"),
        decoder=decoder,
        around_decoder=norms(width, "last norm"),
        cross=_cross(matrices, Attention(FULL, heads, heads, size, size), len(decoder)),
    )


def bart(fields: Fields) -> Model:
    """Learned positions on both sides, two more than are used, and a norm after them."""
    if not fields.flag("tie_word_embeddings", True):
        raise fields.wrong("tie_word_embeddings", "true: tables that are not shared are not counted", False)
    width, positions = fields.size("d_model"), fields.size("max_position_embeddings")
    around = (table("positions", positions + 2, width), *norms(width, "norm of the tables", bias=True))
    return _plain_sides(
        fields, width, around, around, key_bias=True, encoder_longest=positions, longest=positions
    )


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
    return _plain_sides(
        fields, width, before, after, key_bias=False, encoder_longest=inputs, longest=targets, fixed=inputs
    )


def _plain_sides(
    fields: Fields,
    width: int,
    around_encoder: Sequence[ModelPart],
    around_decoder: Sequence[ModelPart],
    *,
    key_bias: bool,
    encoder_longest: int,
    longest: int,
    fixed: int | None = None,
) -> Model:
    """Layers with biases and two matrices of a feed-forward, as BART and Whisper have them."""
    matrices = _matrices(width, width, bias=True, key_bias=key_bias)
    sides: dict[str, tuple[ModelLayer, ...]] = {}
    for side, span in {"encoder": FULL, "decoder": CAUSAL}.items():
        heads, hidden = fields.size(f"{side}_attention_heads"), fields.size(f"{side}_ffn_dim")
        size = head_dim(fields, width, heads)
        more = (matrices[0], matrices[3]) if side == "decoder" else ()
        many = 3 if side == "decoder" else 2
        parts = (*matrices, *more, *plain(width, hidden), *norms(width, *("layer norm",) * many, bias=True))
        layer = ModelLayer(parts, Attention(span, heads, heads, size, size), f"{hidden:,} wide")
        sides[side] = (layer,) * fields.layers(f"{side}_layers")
    heads = fields.size("decoder_attention_heads")
    size = width // heads
    attention = Attention(FULL, heads, heads, size, size)
    return _built(
        fields,
        width,
        encoder=sides["encoder"],
        around_encoder=around_encoder,
        decoder=sides["decoder"],
        around_decoder=around_decoder,
        cross=_cross(matrices, attention, len(sides["decoder"])),
        encoder_longest=encoder_longest,
        longest=longest,
        fixed=fixed,
    )


def _built(
    fields: Fields,
    width: int,
    *,
    encoder: tuple[ModelLayer, ...],
    around_encoder: Sequence[ModelPart],
    decoder: tuple[ModelLayer, ...],
    around_decoder: Sequence[ModelPart],
    cross: tuple[ModelLayer, ...],
    encoder_longest: int | None = None,
    longest: int | None = None,
    fixed: int | None = None,
) -> Model:
    """Both sides, the table of tokens and the head that gives a score for each of them."""
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
    return EncoderDecoder(
        family=fields.family,
        source=fields.where,
        head=head,
        width=width,
        layers=decoder,
        outside=tuple(outside),
        longest=longest,
        defaults=tuple(fields.defaults.items()),
        notes=tuple(fields.notes),
        encoder=Model(
            f"{fields.family} encoder",
            fields.where,
            "no head",
            width,
            encoder,
            tuple(around_encoder),
            encoder_longest,
        ),
        cross=cross,
        fixed=fixed,
    )


def _matrices(width: int, inner: int, *, bias: bool, key_bias: bool) -> tuple[ModelPart, ...]:
    """Queries, keys, values and output."""
    return (
        linear("query", PROJECTIONS, width, inner, bias=bias),
        linear("key", PROJECTIONS, width, inner, bias=key_bias),
        linear("value", PROJECTIONS, width, inner, bias=bias),
        linear("output", PROJECTIONS, inner, width, bias=bias),
    )


def _cross(matrices: tuple[ModelPart, ...], attention: Attention, layers: int) -> tuple[ModelLayer, ...]:
    """Keys and values of the encoder's output, for each layer of the decoder."""
    return (ModelLayer((matrices[1], matrices[2]), attention, "none"),) * layers


def _t5_feed_forward(fields: Fields, width: int) -> tuple[tuple[ModelPart, ...], str]:
    hidden, kind = fields.size("d_ff"), fields.get("feed_forward_proj")
    if kind is not MISSING and not isinstance(kind, str):
        raise fields.wrong("feed_forward_proj", "a text such as relu or gated-gelu", kind)
    if kind is not MISSING and kind.startswith("gated"):
        return gated(width, hidden), f"{hidden:,} wide, gated"
    return plain(width, hidden, bias=False), f"{hidden:,} wide"
