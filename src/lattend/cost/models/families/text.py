"""Text models: text.toml says how each family is built, and this builds the model of a config."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lattend.cost.models.families.family import CAUSAL, TEXT, Experts, Family, family_spans, read_flag
from lattend.cost.models.fields import MISSING, Fields
from lattend.cost.models.model import Model
from lattend.cost.models.parts import (
    HEAD,
    ONCE,
    OTHER,
    PROJECTIONS,
    Attention,
    ModelLayer,
    ModelPart,
    experts,
    gated,
    linear,
    norm,
    norms,
    plain,
    projections,
    table,
)
from lattend.errors import LattendError

FeedForward = tuple[tuple[ModelPart, ...], str]  # parts, and words about them


def text_model(fields: Fields) -> Model:
    """The model of a config whose family is in text.toml."""
    family = TEXT[fields.family]
    for name, value in family.usual.items():
        if fields.get(name) is MISSING:
            fields.defaults[name] = fields.data[name] = value
    for name, why in family.refuses.items():
        fields.refuse(name, why)
    width, heads = fields.size(*family.width), fields.size(*family.heads)
    count, has_norms = fields.layers(*family.layers), read_flag(fields, family.has_norms)
    bias = read_flag(fields, family.norm_bias)
    parts, attention = _attention(fields, family, width, heads)
    layers: list[ModelLayer] = []
    for layer_index, span in enumerate(family_spans(fields, family, count)):
        inner, words = _feed_forward(fields, family, width, layer_index)
        first = family.first_norms if layer_index == 0 else None
        names = ("layer norm",) * (family.layer_norms if first is None else first) if has_norms else ()
        own = (*parts, *inner, *norms(width, *names, bias=bias))
        layers.append(ModelLayer(own, replace(attention, span=span), words))
    tables, longest, inner_width = _tables(fields, family, width, bias=bias)
    if has_norms and read_flag(fields, family.last_norm) and not read_flag(fields, family.no_last_norm):
        tables += norms(width, "last norm", bias=bias)
    head, head_parts = _head(fields, family, width, inner_width)
    return build_model(fields, head, width, layers, [*tables, *head_parts], longest=longest)


def _attention(
    fields: Fields, family: Family, width: int, heads: int
) -> tuple[tuple[ModelPart, ...], Attention]:
    """The parts of one layer's attention, and its sizes."""
    bias = read_flag(fields, family.bias)
    if family.latent:
        return _latent_attention(fields, width, heads, bias=bias)
    if family.kv_heads == "needed" and fields.get("num_key_value_heads") is MISSING:
        fields.size("num_key_value_heads")
    kv_heads = kv_heads_of(fields, heads) if family.kv_heads else heads
    size = fields.optional("head_dim") if family.kv_heads else None
    if size is None:
        usual = family.head_dim
        size = fields.usual(usual, "head_dim") if usual else head_dim(fields, width, heads)
    out_bias = read_flag(fields, family.out_bias)
    parts = [*projections(width, heads, kv_heads, size, bias=bias, out_bias=out_bias)]
    if family.inner_norm in ("head", "all"):
        many = (1, 1) if family.inner_norm == "head" else (heads, kv_heads)
        parts += [norm("query norm", many[0] * size), norm("key norm", many[1] * size)]
    elif family.inner_norm and fields.flag(family.inner_norm, False):
        parts += norms(head_dim(fields, width, heads), "query norm", "key norm", bias=True)
    if family.sinks:
        parts.append(ModelPart("sinks", OTHER, heads))
    return tuple(parts), Attention(CAUSAL, heads, kv_heads, size, size)


def _latent_attention(
    fields: Fields, width: int, heads: int, *, bias: bool
) -> tuple[tuple[ModelPart, ...], Attention]:
    """Attention as DeepSeek has it: keys and values are made of a latent, which is all the cache keeps.

    Counted as it is trained and as a prompt is read: the latent is multiplied out to keys and values once a
    token. Layers that predict further tokens (num_nextn_predict_layers) are not part of the model.
    """
    plain_dim, rotary = fields.size("qk_nope_head_dim"), fields.size("qk_rope_head_dim")
    value, latent = fields.size("v_head_dim"), fields.size("kv_lora_rank")
    rank, outputs = fields.optional("q_lora_rank"), heads * (plain_dim + rotary)
    query = [linear("query", PROJECTIONS, width, outputs)]
    if rank is not None:
        query = [
            linear("query's latent", PROJECTIONS, width, rank, bias=bias),
            norm("query's norm", rank),
            linear("query of its latent", PROJECTIONS, rank, outputs),
        ]
    further = fields.optional("num_nextn_predict_layers", "num_mtp_layers", least=0)
    if further:
        word = "layer that predicts" if further == 1 else "layers that predict"
        fields.notes.append(f"{further} more {word} further tokens, which a run leaves out, not counted")
    parts = (
        *query,
        linear("latent", PROJECTIONS, width, latent + rotary, bias=bias),
        norm("latent norm", latent),
        linear("keys and values of the latent", PROJECTIONS, latent, heads * (plain_dim + value)),
        linear("output", PROJECTIONS, heads * value, width, bias=bias),
    )
    return parts, Attention(CAUSAL, heads, heads, plain_dim + rotary, value, latent + rotary, latent)


def _feed_forward(fields: Fields, family: Family, width: int, layer_index: int) -> FeedForward:
    """The parts of one layer's feed-forward: a dense one, or a router and its experts."""
    mixture = family.experts
    if mixture is not None and _has_experts(fields, mixture, layer_index):
        return _mixture(
            fields, mixture, width, read_flag(fields, family.mlp_bias) if family.latent else False
        )
    bias = read_flag(fields, family.mlp_bias) if mixture is None or family.latent else False
    if family.hidden_times:
        hidden = fields.optional(*family.hidden) or family.hidden_times * width
    else:
        hidden = fields.size(*family.hidden)
    if family.feed_forward == "plain":
        return plain(width, hidden, bias=bias), f"{hidden:,} wide"
    return gated(width, hidden, bias=bias), f"gated, {hidden:,} wide"


def _has_experts(fields: Fields, mixture: Experts, layer_index: int) -> bool:
    match mixture.layers:
        case "some":
            without: list[int] = fields.list_of("mlp_only_layers", int) or []
            step = fields.optional("decoder_sparse_step") or 1
            return layer_index not in without and (layer_index + 1) % step == 0
        case "interleaved":
            step = fields.optional("interleave_moe_layer_step") or 1
            mixed = fields.list_of("moe_layers", int)
            return layer_index in mixed if mixed is not None else (layer_index + 1) % step == 0
        case "after the first":
            return layer_index >= (fields.optional("first_k_dense_replace", least=0) or 0)
        case _:
            return True


def _mixture(fields: Fields, mixture: Experts, width: int, shared_bias: bool) -> FeedForward:
    """A router and its experts, with shared ones beside them."""
    if mixture.note and mixture.note not in fields.notes:
        fields.notes.append(mixture.note)
    more: tuple[ModelPart, ...] = ()
    shared = fields.size(mixture.shared) if mixture.shared else 0
    if shared:
        shared *= fields.size(mixture.shared_count) if mixture.shared_count else 1
        name = "shared experts" if mixture.shared_count else "shared expert"
        more = gated(width, shared, bias=shared_bias, name=name)
    if mixture.shared_gate:
        more = (*more, linear("shared expert's gate", OTHER, width, 1))
    count, chosen = fields.size(*mixture.count), fields.size("num_experts_per_tok")
    hidden = fields.size(mixture.hidden)
    if chosen > count:
        raise fields.wrong("num_experts_per_tok", f"at most the {count} experts", chosen)
    router = linear("router", OTHER, width, count, bias=mixture.bias)
    words = f"{chosen} of {count} experts, {hidden:,} wide" + (f"; shared, {shared:,} wide" if shared else "")
    return (router, experts(count, chosen, width, hidden, bias=mixture.bias), *more), words


# What stands around the layers


def _tables(
    fields: Fields, family: Family, width: int, *, bias: bool
) -> tuple[list[ModelPart], int | None, int]:
    """The tables, how many positions are learned, and the width of the table of tokens."""
    inner = (fields.optional(family.table_width) or width) if family.table_width else width
    tables, longest = [table("tokens", fields.size("vocab_size"), inner)], None
    if family.positions:
        longest = fields.size(*family.positions)
        tables.append(table("positions", longest + family.more_positions, width))
    if family.padding:
        padding = fields.optional(family.padding, least=0)
        longest = (longest or 0) - 1 - (1 if padding is None else padding)
    if family.table_norm:
        tables.append(norm("norm of the tables", width, bias=bias))
    if family.types:
        tables.append(table("types", fields.usual(family.types, "type_vocab_size"), width))
    if inner != width:
        tables.append(linear("table to width", OTHER, inner, width))
        tables.append(linear("width to table", OTHER, width, inner))
    return tables, longest, inner


def _head(fields: Fields, family: Family, width: int, inner: int) -> tuple[str, list[ModelPart]]:
    """The head of the class in `architectures`, or of the usual one: what it is called, and its parts."""
    named = fields.architecture or family.usual_class
    kind = next((kind for ending, kind in family.classes.items() if named.endswith(ending)), None)
    if kind is None:
        *others, last = (f"…{ending}" for ending in family.classes)
        raise unknown_head(fields, named, f"{', '.join(others)} and {last}")
    if kind == "none":
        return "no head", []
    pooler = linear("pooler", OTHER, width, width, bias=True, rows=ONCE)
    if kind == "pooler":
        return "no head, with pooler", [pooler]
    if kind.endswith("classifier") or kind == "last token":
        return _classifier(fields, family, kind, width if kind != "last token" else inner, pooler)
    vocabulary, tied = fields.size("vocab_size"), fields.flag("tie_word_embeddings", family.tied)
    words = "language model" + (", head shared with the table" if tied else "")
    product = inner * vocabulary
    scores = ModelPart("output head", HEAD, 0 if tied else product, product)
    bias = ModelPart("head's bias", HEAD, vocabulary if read_flag(fields, family.scores_bias) else 0)
    if kind == "causal":
        return f"causal {words}", [scores, *([bias] if bias.parameters else [])]
    dense = linear("head's dense", HEAD, width, width, bias=read_flag(fields, family.dense_bias))
    parts = [dense, norm("head's norm", width, bias=read_flag(fields, family.norm_bias)), bias, scores]
    if kind == "pretraining":
        pair = linear("next sentence", HEAD, width, 2, bias=True, rows=ONCE)
        return "masked language model and next sentence", [*parts, pooler, pair]
    return f"{'causal' if fields.flag('is_decoder', False) else 'masked'} {words}", parts


def _classifier(
    fields: Fields, family: Family, kind: str, width: int, pooler: ModelPart
) -> tuple[str, list[ModelPart]]:
    """A score for each label: of every token, the last one counting, or once a sequence."""
    labels = fields.labels()
    once = None if kind == "last token" else ONCE
    parts = [linear("classifier", HEAD, width, labels, bias=once is not None, rows=once)]
    if kind == "pooled classifier":
        parts.insert(0, pooler)
    if kind in ("dense classifier", "normed classifier"):
        bias = read_flag(fields, family.dense_bias)
        parts.insert(0, linear("classifier's dense", HEAD, width, width, bias=bias, rows=ONCE))
    if kind == "normed classifier":
        parts.insert(1, norm("head's norm", width, bias=read_flag(fields, family.norm_bias)))
    return f"classifier of {labels:,}", parts


# What all families share


def head_dim(fields: Fields, width: int, heads: int) -> int:
    """Width over heads, which must be whole."""
    if width % heads:
        raise LattendError(f"{fields.where}: a width of {width} is not a multiple of {heads} heads")
    return width // heads


def kv_heads_of(fields: Fields, heads: int) -> int:
    """Heads of keys and values, a divisor of the heads; as many where the config does not say."""
    kv_heads = fields.optional("num_key_value_heads") or heads
    if heads % kv_heads:
        raise fields.wrong("num_key_value_heads", f"a divisor of the {heads} heads", kv_heads)
    return kv_heads


def build_model(
    fields: Fields,
    head: str,
    width: int,
    layers: Sequence[ModelLayer],
    outside: Sequence[ModelPart],
    kind: type[Model] = Model,
    **more: Any,
) -> Model:
    """The model of these parts, with what the fields noted on the way."""
    return kind(
        family=fields.family,
        source=fields.where,
        head=head,
        width=width,
        layers=tuple(layers),
        outside=tuple(outside),
        defaults=tuple(fields.defaults.items()),
        notes=tuple(fields.notes),
        **more,
    )


def unknown_head(fields: Fields, named: str, known: str) -> LattendError:
    """The error for a class whose head is not known."""
    return LattendError(
        f"{fields.where} is a {named}, whose head is not known for {fields.family}; known are {known}: "
        "give config(…, architectures=[…]) to count one of those"
    )
