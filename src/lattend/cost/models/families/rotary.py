"""Llama and those like it: rotary positions, grouped-query attention, a gated feed-forward, or experts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from lattend.cost.models.families import mixtures
from lattend.cost.models.families.shared import (
    CAUSAL,
    decoder,
    head_dim,
    kv_heads_of,
    norms,
    projections,
    spans,
)
from lattend.cost.models.fields import MISSING, Fields
from lattend.cost.models.model import Model
from lattend.cost.models.parts import OTHER, Attention, ModelLayer, ModelPart, norm
from lattend.cost.models.spans import AttentionSpan

Spans = Callable[[Fields, int], tuple[AttentionSpan, ...]]
FeedForward = Callable[
    [Fields, int, int], tuple[tuple[ModelPart, ...], str]
]  # of one layer: parts, and words


def all_causal(fields: Fields, layers: int) -> tuple[AttentionSpan, ...]:
    """No windows."""
    return (CAUSAL,) * layers


def one_window(usual: int | None) -> Spans:
    """The same `sliding_window` in every layer; null is none."""

    def found(fields: Fields, layers: int) -> tuple[AttentionSpan, ...]:
        return spans(fields, layers, lambda _: "sliding_attention", fields.window("sliding_window", usual))

    return found


def every(step: int, window: int) -> Spans:
    """Full attention in every `step`-th layer, windows in the others."""

    def found(fields: Fields, layers: int) -> tuple[AttentionSpan, ...]:
        pace = fields.optional("sliding_window_pattern") or step
        kind = {True: "full_attention", False: "sliding_attention"}
        width = fields.window("sliding_window", window)
        return spans(fields, layers, lambda place: kind[(place + 1) % pace == 0], width)

    return found


def only_if_used(policy: Literal["above", "even below", "all"]) -> Spans:
    """Windows only with `use_sliding_window`: from max_window_layers on, in even layers below it, in all."""

    def found(fields: Fields, layers: int) -> tuple[AttentionSpan, ...]:
        used = fields.flag("use_sliding_window", False)
        window = fields.window("sliding_window", 4096) if used else None
        first = fields.usual(28, "max_window_layers") if used and policy != "all" else 0

        def kind(place: int) -> str:
            below = place % 2 == 0 and place < first
            return (
                "sliding_attention"
                if (below if policy == "even below" else place >= first)
                else "full_attention"
            )

        return spans(fields, layers, kind, window)

    return found


def gemma3_spans(fields: Fields, layers: int) -> tuple[AttentionSpan, ...]:
    """Windows in five of six layers; with use_bidirectional_attention, w // 2 keys to each side, or all."""
    windows = every(6, 4096)(fields, layers)
    if not fields.flag("use_bidirectional_attention", False):
        return windows
    return tuple(
        AttentionSpan("band", s.keys // 2) if s.kind == "window" else AttentionSpan("full") for s in windows
    )


def llama4_spans(fields: Fields, layers: int) -> tuple[AttentionSpan, ...]:
    """Chunks in layers with rotary positions, full attention in those without, by default every fourth."""
    step = fields.optional("no_rope_layer_interval") or 4
    rotary = fields.list_of("no_rope_layers", int) or [int((p + 1) % step != 0) for p in range(layers)]
    return spans(fields, layers, lambda place: "chunked_attention" if rotary[place] else "full_attention")


def dense_feed_forward(fields: Fields, width: int, place: int) -> tuple[tuple[ModelPart, ...], str]:
    """Gate, up and down, and their words."""
    return mixtures.dense(fields, width, bias=fields.flag("mlp_bias", False))


@dataclass(frozen=True)
class Style:
    """In what a family differs: field names stand for what the config says."""

    spans: Spans = all_causal
    feed_forward: FeedForward = dense_feed_forward
    grouped: bool = True  # whether num_key_value_heads must be there; otherwise there are as many as heads
    size: int | None = None  # of a head, where head_dim is missing; None: width over heads
    bias: bool | str = False  # of queries, keys and values
    out_bias: bool | str = False
    inner_norm: Literal["", "head", "all"] = ""  # of queries and keys: one head's numbers, or all
    layer_norms: int = 2
    tied: bool = False
    sinks: bool = False  # a learned score a head
    usual: tuple[tuple[str, int], ...] = ()  # sizes that published files leave out


_GEMMA = Style(size=256, bias="attention_bias", out_bias="attention_bias", tied=True)
_QWEN3 = Style(bias="attention_bias", out_bias="attention_bias", inner_norm="head")
_OLMO2 = Style(grouped=False, bias="attention_bias", out_bias="attention_bias", inner_norm="all")
STYLES = {
    "llama": Style(grouped=False, bias="attention_bias", out_bias="attention_bias"),
    "mistral": Style(spans=one_window(4096)),
    "qwen2": Style(spans=only_if_used("above"), bias=True),
    "qwen3": replace(_QWEN3, spans=only_if_used("above"), size=128),
    "phi3": Style(spans=one_window(None), grouped=False),
    "gemma": _GEMMA,
    "gemma2": replace(_GEMMA, spans=every(2, 4096), layer_norms=4),
    "gemma3_text": replace(
        _GEMMA,
        spans=gemma3_spans,
        inner_norm="head",
        layer_norms=4,
        usual=(("vocab_size", 262_208), ("num_attention_heads", 8), ("num_key_value_heads", 4)),
    ),
    "olmo2": _OLMO2,
    "olmo3": replace(_OLMO2, spans=every(4, 4096)),
    "mixtral": Style(spans=one_window(None), feed_forward=mixtures.mixtral),
    "qwen2_moe": Style(spans=only_if_used("even below"), bias="qkv_bias", feed_forward=mixtures.qwen2),
    "qwen3_moe": replace(_QWEN3, spans=only_if_used("all"), feed_forward=mixtures.qwen3),
    "llama4_text": Style(
        spans=llama4_spans,
        size=128,
        bias="attention_bias",
        out_bias="attention_bias",
        feed_forward=mixtures.llama4,
    ),
    "gpt_oss": Style(
        spans=every(2, 128),
        size=64,
        bias="attention_bias",
        out_bias="attention_bias",
        sinks=True,
        feed_forward=mixtures.gpt_oss,
    ),
}
BIASED = ("qwen2_moe", "gpt_oss")  # whose biases are there unless the config says no


def rotary(fields: Fields) -> Model:
    """A model of one of the STYLES."""
    style = STYLES[fields.family]
    for name, value in style.usual:
        if fields.get(name) is MISSING:
            fields.defaults[name] = fields.data[name] = value
    if fields.family in ("gemma", "gemma2"):
        fields.refuse("use_bidirectional_attention", "only causal attention is known for this family")
    width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    kv_heads = _kv_heads(fields, heads, style)
    size = fields.optional("head_dim")
    if size is None:
        size = fields.usual(style.size, "head_dim") if style.size else head_dim(fields, width, heads)
    count = fields.layers("num_hidden_layers")
    parts = [
        *projections(
            width,
            heads,
            kv_heads,
            size,
            bias=_says(fields, style.bias),
            out_bias=_says(fields, style.out_bias),
        ),
        *norms(width, *("layer norm",) * style.layer_norms),
    ]
    if style.inner_norm:
        many = (1, 1) if style.inner_norm == "head" else (heads, kv_heads)
        parts += [norm("query norm", many[0] * size), norm("key norm", many[1] * size)]
    if style.sinks:
        parts.append(ModelPart("sinks", OTHER, heads))
    layers: list[ModelLayer] = []
    for index, span in enumerate(style.spans(fields, count)):
        inner, words = style.feed_forward(fields, width, index)
        attention = Attention(span, heads, kv_heads, size, size)
        layers.append(ModelLayer((*parts, *inner), attention, words))
    return decoder(fields, width, layers, tied=style.tied, extra=norms(width, "last norm"))


def _kv_heads(fields: Fields, heads: int, style: Style) -> int:
    if style.grouped and fields.get("num_key_value_heads") is MISSING:
        fields.size("num_key_value_heads")
    return kv_heads_of(fields, heads)


def _says(fields: Fields, bias: bool | str) -> bool:
    return fields.flag(bias, fields.family in BIASED) if isinstance(bias, str) else bias
