"""BERT, RoBERTa and DistilBERT: every token attends to every token; ModernBERT: in some layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lattend.cost.models.families.shared import (
    CAUSAL,
    build_model,
    head_dim,
    plain_layer,
    projections,
    spans,
    unknown_head,
)
from lattend.cost.models.fields import Fields
from lattend.cost.models.model import Model
from lattend.cost.models.parts import (
    HEAD,
    ONCE,
    OTHER,
    Attention,
    ModelLayer,
    ModelPart,
    gated,
    linear,
    norm,
    table,
)
from lattend.cost.models.spans import AttentionSpan

Head = tuple[str, Sequence[ModelPart]]  # what it is called, and its parts
Heads = Mapping[str, Callable[[Fields, int], Head]]  # by how the name of the class ends


def bert(fields: Fields) -> Model:
    """Tables of tokens, positions and types; a causal one with `is_decoder`.

    The head is that of the class in `architectures`; without one, BertModel: no head but a pooler.
    """
    return _with_types(fields, BERT, fields.size("max_position_embeddings"))


def roberta(fields: Fields) -> Model:
    """As BERT; positions begin after that of padding, so two of them are never used."""
    positions, padding = fields.size("max_position_embeddings"), fields.optional("pad_token_id", least=0)
    return _with_types(fields, ROBERTA, positions - 1 - (1 if padding is None else padding))


def _with_types(fields: Fields, heads: Heads, longest: int) -> Model:
    width, positions = fields.size("hidden_size"), fields.size("max_position_embeddings")
    fields.refuse("add_cross_attention", "cross-attention to an encoder is not counted")
    layers = (_layer(fields, width, "num_attention_heads", "intermediate_size"),)
    layers *= fields.layers("num_hidden_layers")
    tables = [*_tables(fields, width, positions), table("types", fields.usual(2, "type_vocab_size"), width)]
    head, parts = _head(fields, width, heads)
    return build_model(fields, head, width, layers, [*tables, *parts], longest=longest)


def distilbert(fields: Fields) -> Model:
    """As BERT, without types and without a pooler."""
    width, positions = fields.size("dim", "hidden_size"), fields.size("max_position_embeddings")
    layers = (_layer(fields, width, "n_heads", "hidden_dim"),)
    layers *= fields.layers("n_layers", "num_hidden_layers")
    head, parts = _head(fields, width, DISTILBERT)
    outside = [*_tables(fields, width, positions), *parts]
    return build_model(fields, head, width, layers, outside, longest=positions)


def modernbert(fields: Fields) -> Model:
    """Rotary positions, a gated feed-forward; windows of w // 2 keys to each side in two of three layers."""
    width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    hidden, bias = fields.size("intermediate_size"), fields.flag("attention_bias", False)
    biased = fields.flag("norm_bias", False)
    size = head_dim(fields, width, heads)
    first = (
        *projections(width, heads, heads, size, bias=bias, out_bias=bias),
        *gated(width, hidden, bias=fields.flag("mlp_bias", False)),
        norm("layer norm", width, bias=biased),
    )
    others = (*first, norm("layer norm", width, bias=biased))  # the first has none before its attention
    layers = [
        ModelLayer(
            others if index else first, Attention(span, heads, heads, size, size), f"{hidden:,} wide, gated"
        )
        for index, span in enumerate(_modern_spans(fields, fields.layers("num_hidden_layers")))
    ]
    outside = [
        table("tokens", fields.size("vocab_size"), width),
        norm("norm of the tables", width, bias=biased),
        norm("last norm", width, bias=biased),
    ]
    head, parts = _head(fields, width, MODERNBERT)
    return build_model(fields, head, width, layers, [*outside, *parts])


def _modern_spans(fields: Fields, layers: int) -> list[AttentionSpan]:
    step, reach = fields.usual(3, "global_attn_every_n_layers"), fields.usual(128, "local_attention") // 2
    kind = {True: "full_attention", False: "sliding_attention"}
    windows = spans(fields, layers, lambda place: kind[place % max(step, 1) == 0], 1)
    return [
        AttentionSpan("band", reach) if one.kind == "window" else AttentionSpan("full") for one in windows
    ]


def _layer(fields: Fields, width: int, heads_name: str, hidden_name: str) -> ModelLayer:
    heads, hidden = fields.size(heads_name, "num_attention_heads"), fields.size(hidden_name)
    causal = fields.family != "distilbert" and fields.flag("is_decoder", False)
    return plain_layer(fields, width, heads, hidden, CAUSAL if causal else AttentionSpan("full"))


def _tables(fields: Fields, width: int, positions: int) -> list[ModelPart]:
    return [
        table("tokens", fields.size("vocab_size"), width),
        table("positions", positions, width),
        norm("norm of the tables", width, bias=True),
    ]


def _scores(fields: Fields, width: int, *, bias: bool = True) -> list[ModelPart]:
    """A dense layer, a norm, and a score for each token, from the table unless it is not tied."""
    vocabulary, shared = fields.size("vocab_size"), fields.flag("tie_word_embeddings", True)
    product = width * vocabulary
    return [
        linear("head's dense", HEAD, width, width, bias=True),
        norm("head's norm", width, bias=True),
        ModelPart("head's bias", HEAD, vocabulary if bias else 0),
        ModelPart("output head", HEAD, 0 if shared else product, product),
    ]


def _head(fields: Fields, width: int, heads: Heads) -> Head:
    """The head of the class in `architectures`; that of the bare model where none is named."""
    named = fields.architecture or "Model"
    for ending, head in heads.items():
        if named.endswith(ending):
            return head(fields, width)
    endings = [f"…{ending}" for ending in heads]
    raise unknown_head(fields, named, f"{', '.join(endings[:-1])} and {endings[-1]}")


def _no_head(fields: Fields, width: int) -> Head:
    return "no head", []


def _pooler(fields: Fields, width: int) -> Head:
    return "no head, with pooler", [linear("pooler", OTHER, width, width, bias=True, rows=ONCE)]


def _language_model(fields: Fields, width: int) -> Head:
    kind = "causal" if fields.flag("is_decoder", False) else "masked"
    tied = ", head shared with the table" if fields.flag("tie_word_embeddings", True) else ""
    return f"{kind} language model{tied}", _scores(fields, width)


def _pretraining(fields: Fields, width: int) -> Head:
    pair = linear("next sentence", HEAD, width, 2, bias=True, rows=ONCE)
    parts = [*_scores(fields, width), *_pooler(fields, width)[1], pair]
    return "masked language model and next sentence", parts


def _classifier(fields: Fields, width: int, *before: ModelPart) -> Head:
    labels = fields.labels()
    score = linear("classifier", HEAD, width, labels, bias=True, rows=ONCE)
    return f"classifier of {labels:,}", [*before, score]


def _pooled_classifier(fields: Fields, width: int) -> Head:
    return _classifier(fields, width, *_pooler(fields, width)[1])


def _dense_classifier(fields: Fields, width: int) -> Head:
    dense = linear("classifier's dense", HEAD, width, width, bias=True, rows=ONCE)
    return _classifier(fields, width, dense)


def _modern_language_model(fields: Fields, width: int) -> Head:
    bias = fields.flag("classifier_bias", False)
    scores = _scores(fields, width, bias=fields.flag("decoder_bias", True))[2:]
    dense = linear("head's dense", HEAD, width, width, bias=bias)
    return _language_model(fields, width)[0], [dense, _modern_norm(fields, width), *scores]


def _modern_classifier(fields: Fields, width: int) -> Head:
    bias = fields.flag("classifier_bias", False)
    dense = linear("classifier's dense", HEAD, width, width, bias=bias, rows=ONCE)
    return _classifier(fields, width, dense, _modern_norm(fields, width))


def _modern_norm(fields: Fields, width: int) -> ModelPart:
    return norm("head's norm", width, bias=fields.flag("norm_bias", False))


BERT: Heads = {
    "ForMaskedLM": _language_model,
    "LMHeadModel": _language_model,
    "ForPreTraining": _pretraining,
    "ForSequenceClassification": _pooled_classifier,
    "Model": _pooler,
}
ROBERTA: Heads = {
    "ForMaskedLM": _language_model,
    "ForCausalLM": _language_model,
    "ForSequenceClassification": _dense_classifier,
    "Model": _pooler,
}
DISTILBERT: Heads = {
    "ForMaskedLM": _language_model,
    "ForSequenceClassification": _dense_classifier,
    "Model": _no_head,
}
MODERNBERT: Heads = {
    "ForMaskedLM": _modern_language_model,
    "ForSequenceClassification": _modern_classifier,
    "Model": _no_head,
}
