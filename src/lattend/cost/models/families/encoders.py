"""BERT, RoBERTa and DistilBERT: every token attends to every token."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lattend.cost.models.families.shared import CAUSAL, build_model, plain_layer, unknown_head
from lattend.cost.models.fields import Fields
from lattend.cost.models.model import Model
from lattend.cost.models.parts import HEAD, ONCE, OTHER, ModelLayer, ModelPart, linear, norm, table
from lattend.cost.models.spans import AttentionSpan

Head = Callable[[Fields, int], tuple[str, Sequence[ModelPart]]]  # what it is called, and its parts


def bert(fields: Fields) -> Model:
    """Tables of tokens, positions and types; a causal one with `is_decoder`.

    The head is that of the class in `architectures`; without one, BertModel: no head but a pooler.
    """
    return _with_types(fields, _bert_head, fields.size("max_position_embeddings"))


def roberta(fields: Fields) -> Model:
    """As BERT; positions begin after that of padding, so two of them are never used."""
    positions, padding = fields.size("max_position_embeddings"), fields.optional("pad_token_id", least=0)
    return _with_types(fields, _roberta_head, positions - 1 - (1 if padding is None else padding))


def _with_types(fields: Fields, head_of: Head, longest: int) -> Model:
    width, positions = fields.size("hidden_size"), fields.size("max_position_embeddings")
    fields.refuse("add_cross_attention", "cross-attention to an encoder is not counted")
    layers = (_layer(fields, width, "num_attention_heads", "intermediate_size"),)
    layers *= fields.layers("num_hidden_layers")
    tables = [*_tables(fields, width, positions), table("types", fields.usual(2, "type_vocab_size"), width)]
    head, parts = head_of(fields, width)
    return build_model(fields, head, width, layers, [*tables, *parts], longest=longest)


def distilbert(fields: Fields) -> Model:
    """As BERT, without types and without a pooler."""
    width, positions = fields.size("dim", "hidden_size"), fields.size("max_position_embeddings")
    layers = (_layer(fields, width, "n_heads", "hidden_dim"),)
    layers *= fields.layers("n_layers", "num_hidden_layers")
    named = fields.architecture or "DistilBertModel"
    if named.endswith("ForMaskedLM"):
        head, parts = _language(fields), _scores(fields, width)
    elif named.endswith("ForSequenceClassification"):
        head, parts = _classifier(fields, width)
    elif named.endswith("Model"):
        head, parts = "no head", []
    else:
        raise unknown_head(fields, named, "…Model, …ForMaskedLM and …ForSequenceClassification")
    return build_model(
        fields, head, width, layers, [*_tables(fields, width, positions), *parts], longest=positions
    )


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


def _scores(fields: Fields, width: int) -> list[ModelPart]:
    """A dense layer, a norm, and a score for each token, from the table unless it is not tied."""
    vocabulary, shared = fields.size("vocab_size"), fields.flag("tie_word_embeddings", True)
    product = width * vocabulary
    return [
        linear("head's dense", HEAD, width, width, bias=True),
        norm("head's norm", width, bias=True),
        ModelPart("head's bias", HEAD, vocabulary),
        ModelPart("output head", HEAD, 0 if shared else product, product),
    ]


def _language(fields: Fields) -> str:
    kind = "causal" if fields.flag("is_decoder", False) else "masked"
    tied = ", head shared with the table" if fields.flag("tie_word_embeddings", True) else ""
    return f"{kind} language model{tied}"


def _pooler(width: int) -> ModelPart:
    return linear("pooler", OTHER, width, width, bias=True, rows=ONCE)


def _classifier(fields: Fields, width: int) -> tuple[str, list[ModelPart]]:
    labels = fields.labels()
    return f"classifier of {labels:,}", [
        linear("classifier's dense", HEAD, width, width, bias=True, rows=ONCE),
        linear("classifier", HEAD, width, labels, bias=True, rows=ONCE),
    ]


def _bert_head(fields: Fields, width: int) -> tuple[str, Sequence[ModelPart]]:
    named = fields.architecture or "BertModel"
    if named.endswith(("ForMaskedLM", "LMHeadModel")):
        return _language(fields), _scores(fields, width)
    if named.endswith("ForPreTraining"):
        pair = linear("next sentence", HEAD, width, 2, bias=True, rows=ONCE)
        return "masked language model and next sentence", [*_scores(fields, width), _pooler(width), pair]
    if named.endswith("ForSequenceClassification"):
        labels = fields.labels()
        score = linear("classifier", HEAD, width, labels, bias=True, rows=ONCE)
        return f"classifier of {labels:,}", [_pooler(width), score]
    if named.endswith("Model"):
        return "no head, with pooler", [_pooler(width)]
    raise unknown_head(fields, named, "…Model, …ForMaskedLM, …ForPreTraining, …ForSequenceClassification")


def _roberta_head(fields: Fields, width: int) -> tuple[str, Sequence[ModelPart]]:
    named = fields.architecture or "RobertaModel"
    if named.endswith(("ForMaskedLM", "ForCausalLM")):
        return _language(fields), _scores(fields, width)
    if named.endswith("ForSequenceClassification"):
        return _classifier(fields, width)
    if named.endswith("Model"):
        return "no head, with pooler", [_pooler(width)]
    raise unknown_head(fields, named, "…Model, …ForMaskedLM and …ForSequenceClassification")
