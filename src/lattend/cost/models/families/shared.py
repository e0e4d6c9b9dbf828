"""What families share: which keys a layer attends to, attention's matrices, what stands on the layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lattend.cost.models.fields import Fields
from lattend.cost.models.model import Model
from lattend.cost.models.parts import (
    HEAD,
    PROJECTIONS,
    Attention,
    ModelLayer,
    ModelPart,
    linear,
    norm,
    plain,
    table,
)
from lattend.cost.models.spans import AttentionSpan, Windows
from lattend.errors import LattendError

CAUSAL = AttentionSpan("causal")
LANGUAGE = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


def spans(
    fields: Fields, layers: int, usual: Callable[[int], str], window: int | None = None
) -> tuple[AttentionSpan, ...]:
    """Each layer's span: by `layer_types`, or the usual type of its place; windows of None are causal."""
    types = fields.list_of("layer_types", str)
    if types is None:
        types = [usual(index) for index in range(layers)]
    if len(types) != layers:
        raise fields.wrong("layer_types", f"a list of {layers}, one a layer", f"{len(types)} of them")
    return tuple(_span(fields, kind, window) for kind in types)


def _span(fields: Fields, kind: str, window: int | None) -> AttentionSpan:
    if kind == "full_attention" or (kind == "sliding_attention" and window is None):
        return CAUSAL
    if kind == "sliding_attention" and window is not None:
        return AttentionSpan("window", window)
    if kind == "chunked_attention":
        return AttentionSpan("chunk", fields.size("attention_chunk_size"))
    known = "full_attention, sliding_attention or chunked_attention"
    raise fields.wrong("layer_types", f"made of {known}", kind)


def projections(
    width: int,
    heads: int,
    kv_heads: int,
    size: int,
    *,
    bias: bool = False,
    out_bias: bool = False,
    rows: tuple[int, int] | None = None,
) -> tuple[ModelPart, ...]:
    """The matrices of queries, keys, values and output."""
    widths = {"query": heads * size, "key": kv_heads * size, "value": kv_heads * size}
    return (
        *(linear(name, PROJECTIONS, width, wide, bias=bias, rows=rows) for name, wide in widths.items()),
        linear("output", PROJECTIONS, heads * size, width, bias=out_bias, rows=rows),
    )


def plain_layer(
    fields: Fields,
    width: int,
    heads: int,
    hidden: int,
    span: AttentionSpan | Windows,
    *,
    bias: bool = True,
    attention_bias: bool = True,
    out_bias: bool = True,
    has_norms: bool = True,
    rows: tuple[int, int] | None = None,
    more: tuple[ModelPart, ...] = (),
) -> ModelLayer:
    """Attention, a feed-forward of two matrices and two layer norms; `rows` are those of the projections."""
    size = head_dim(fields, width, heads)
    tokens = None if rows is None else (rows[0], rows[0])
    parts = (
        *projections(width, heads, heads, size, bias=attention_bias, out_bias=out_bias, rows=rows),
        *plain(width, hidden, bias=bias, rows=tokens),
        *(norms(width, "layer norm", "layer norm", bias=True) if has_norms else ()),
        *more,
    )
    return ModelLayer(parts, Attention(span, heads, heads, size, size), f"{hidden:,} wide")


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


def decoder(
    fields: Fields,
    width: int,
    layers: Sequence[ModelLayer],
    *,
    tied: bool,
    extra: Sequence[ModelPart] = (),
    embedding_width: int | None = None,
    longest: int | None = None,
    head_bias: bool = False,
) -> Model:
    """A language model: a table of tokens, layers, and a head that gives a score for each token.

    `tied`: whether the head is the table where the config does not say.
    """
    vocabulary = fields.size("vocab_size")
    inner = embedding_width or width
    outside = [table("tokens", vocabulary, inner), *extra]
    shares = fields.flag("tie_word_embeddings", tied)
    named = fields.architecture
    if named is None or named.endswith(LANGUAGE):
        product = inner * vocabulary
        outside.append(ModelPart("output head", HEAD, 0 if shares else product, product))
        if head_bias:
            outside.append(ModelPart("head's bias", HEAD, vocabulary))
        head = "causal language model" + (", head shared with the table" if shares else "")
    elif named.endswith("ForSequenceClassification"):  # scores at every token, of which the last one is used
        labels = fields.labels()
        outside.append(linear("classifier", HEAD, inner, labels))
        head = f"classifier of {labels:,}"
    elif named.endswith("Model"):
        head = "no head"
    else:
        raise unknown_head(fields, named, "…ForCausalLM, …ForSequenceClassification and …Model")
    return build_model(fields, head, width, layers, outside, longest=longest)


def build_model(
    fields: Fields,
    head: str,
    width: int,
    layers: Sequence[ModelLayer],
    outside: Sequence[ModelPart],
    *,
    longest: int | None = None,
    image: int | None = None,
) -> Model:
    """The model of these parts, with what the fields noted on the way."""
    return Model(
        family=fields.family,
        source=fields.where,
        head=head,
        width=width,
        layers=tuple(layers),
        outside=tuple(outside),
        longest=longest,
        image=image,
        defaults=tuple(fields.defaults.items()),
        notes=tuple(fields.notes),
    )


def unknown_head(fields: Fields, named: str, known: str) -> LattendError:
    """The error for a class whose head is not known."""
    return LattendError(
        f"{fields.where} is a {named}, whose head is not known for {fields.family}; known are {known}: "
        "give config(…, architectures=[…]) to count one of those"
    )


def norms(width: int, *names: str, bias: bool = False) -> tuple[ModelPart, ...]:
    """Norms of one width."""
    return tuple(norm(name, width, bias=bias) for name in names)
