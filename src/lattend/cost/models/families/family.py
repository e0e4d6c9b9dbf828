"""Family: how to build text models of one kind from text.toml, and the keys that their layers attend to."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from lattend.cost.models.fields import Fields
from lattend.cost.models.spans import AttentionSpan

Flag = bool | str  # yes, no, or the field of a config that says so: "bias", "bias=true" by its usual value
CAUSAL, FULL = AttentionSpan("causal"), AttentionSpan("full")
LANGUAGE_MODELS = dict.fromkeys(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration"), "causal")


@dataclass(frozen=True)
class Experts:
    """A mixture: the fields that hold how many experts there are, and how wide they are."""

    count: tuple[str, ...]
    hidden: str
    bias: bool = False
    shared: str = ""  # the width of a shared expert
    shared_count: str = ""
    shared_gate: bool = False
    layers: str = "all"  # or some, interleaved, after the first; the others are dense
    note: str = ""


@dataclass(frozen=True)
class Family:
    """One family of models: the config fields that hold its sizes, and how it differs from others."""

    width: tuple[str, ...] = ("hidden_size",)
    heads: tuple[str, ...] = ("num_attention_heads",)
    layers: tuple[str, ...] = ("num_hidden_layers",)
    hidden: tuple[str, ...] = ("intermediate_size",)
    hidden_times: int = 0  # of the width, where the config does not say `hidden`
    spans: str = "causal"
    window: int | None = None
    every: int = 0
    both_sides: bool = False  # windows to both sides with use_bidirectional_attention
    kv_heads: str = "needed"  # or optional; empty: as many as heads, of width over heads numbers
    head_dim: int = 0  # where head_dim is missing; 0: width over heads
    latent: bool = False  # keys and values are made of a small vector, as in DeepSeek
    bias: Flag = False  # of queries, keys and values
    out_bias: Flag = False
    inner_norm: str = ""  # of queries and keys: of one head's numbers, of all, or where a field says so
    sinks: bool = False  # a learned score a head
    feed_forward: str = "gated"
    mlp_bias: Flag = "mlp_bias"
    experts: Experts | None = None
    has_norms: Flag = True
    norm_bias: Flag = False
    layer_norms: int = 2
    first_norms: int | None = None  # of the first layer, where it has fewer
    positions: tuple[str, ...] = ()  # learned ones
    more_positions: int = 0  # that are never used
    padding: str = ""  # positions begin after that of this token
    types: int = 0  # of tokens, where the config does not say
    table_norm: bool = False
    table_width: str = ""  # of the table of tokens, where it is not the model's
    last_norm: Flag = True
    no_last_norm: Flag = False
    tied: bool = False  # whether the head is the table where the config does not say
    dense_bias: Flag = False
    scores_bias: Flag = False
    usual_class: str = "ForCausalLM"
    classes: Mapping[str, str] = field(
        default_factory=lambda: {
            **LANGUAGE_MODELS,
            "ForSequenceClassification": "last token",
            "Model": "none",
        }
    )
    usual: Mapping[str, int] = field(default_factory=dict[str, int])  # sizes that published files leave out
    refuses: Mapping[str, str] = field(default_factory=dict[str, str])


def _read_families() -> dict[str, Family]:
    entries: dict[str, dict[str, Any]] = tomllib.loads(
        Path(__file__).with_name("text.toml").read_text(encoding="utf-8")
    )
    families: dict[str, Family] = {}
    for name, entry in entries.items():
        base = families[entry.pop("like")] if "like" in entry else Family()
        mixture = entry.pop("experts", None)
        if mixture is not None:
            entry["experts"] = Experts(**_tuples(mixture))
        families[name] = replace(base, **_tuples(entry))
    return families


def _tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(cast("list[str]", value)) if isinstance(value, list) else value
        for name, value in entry.items()
    }


TEXT = _read_families()


def read_flag(fields: Fields, flag: Flag) -> bool:
    """Whether a flag is on in this config."""
    if isinstance(flag, bool):
        return flag
    name, _, usual = flag.partition("=")
    return fields.flag(name, usual == "true")


# Which keys a layer attends to


def family_spans(fields: Fields, family: Family, layers: int) -> Sequence[AttentionSpan]:
    """The attention mask of each layer."""
    names = {True: "full_attention", False: "sliding_attention"}
    match family.spans:
        case "causal":
            return (CAUSAL,) * layers
        case "all":
            return (FULL,) * layers
        case "all unless decoder":
            return (CAUSAL if fields.flag("is_decoder", False) else FULL,) * layers
        case "window":
            window = fields.window("sliding_window", family.window)
            return _typed_spans(fields, layers, lambda _: "sliding_attention", window)
        case "every":  # full attention in every so many layers
            pace = fields.optional("sliding_window_pattern") or family.every
            window = fields.window("sliding_window", family.window)
            spans = _typed_spans(
                fields, layers, lambda layer_index: names[(layer_index + 1) % pace == 0], window
            )
            both = family.both_sides and fields.flag("use_bidirectional_attention", False)
            return _two_sided(spans) if both else spans
        case "chunks":  # full attention in layers without rotary positions, by default every fourth
            step = fields.optional("no_rope_layer_interval") or 4
            rotary = fields.list_of("no_rope_layers", int) or [
                int((p + 1) % step != 0) for p in range(layers)
            ]
            return _typed_spans(
                fields,
                layers,
                lambda layer_index: "chunked_attention" if rotary[layer_index] else "full_attention",
            )
        case "modernbert":
            step = max(1, fields.usual(3, "global_attn_every_n_layers"))
            window = fields.usual(128, "local_attention")
            return _two_sided(
                _typed_spans(fields, layers, lambda layer_index: names[layer_index % step == 0], window)
            )
        case policy:  # windows only with use_sliding_window: above max_window_layers, or in even layers below
            used = fields.flag("use_sliding_window", False)
            window = fields.window("sliding_window", 4096) if used else None
            first = fields.usual(28, "max_window_layers") if used and policy != "used" else 0

            def kind(layer_index: int) -> str:
                below = layer_index % 2 == 0 and layer_index < first
                return names[not (below if policy == "used even below" else layer_index >= first)]

            return _typed_spans(fields, layers, kind, window)


def _typed_spans(
    fields: Fields, layers: int, usual: Callable[[int], str], window: int | None = None
) -> tuple[AttentionSpan, ...]:
    """Each layer's span: by `layer_types`, or the usual type of its index; windows of None are causal."""
    types = fields.list_of("layer_types", str)
    if types is None:
        types = [usual(index) for index in range(layers)]
    if len(types) != layers:
        raise fields.wrong("layer_types", f"a list of {layers}, one a layer", f"{len(types)} of them")
    spans: dict[str, AttentionSpan] = {}
    for kind in dict.fromkeys(types):
        if kind == "full_attention" or (kind == "sliding_attention" and window is None):
            spans[kind] = CAUSAL
        elif kind == "sliding_attention" and window is not None:
            spans[kind] = AttentionSpan("window", window)
        elif kind == "chunked_attention":
            spans[kind] = AttentionSpan("chunk", fields.size("attention_chunk_size"))
        else:
            known = "full_attention, sliding_attention or chunked_attention"
            raise fields.wrong("layer_types", f"made of {known}", kind)
    return tuple(spans[kind] for kind in types)


def _two_sided(spans: Sequence[AttentionSpan]) -> tuple[AttentionSpan, ...]:
    """Windows of w keys as w // 2 to each side, and all keys in layer_index of those before."""
    return tuple(AttentionSpan("band", span.keys // 2) if span.kind == "window" else FULL for span in spans)
