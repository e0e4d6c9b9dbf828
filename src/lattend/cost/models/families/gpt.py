"""GPT-2, GPT-NeoX, OPT and Phi: layer norms and biases, a feed-forward of two matrices."""

from __future__ import annotations

from typing import Any

from lattend.cost.models.families.shared import (
    CAUSAL,
    decoder,
    head_dim,
    kv_heads_of,
    norms,
    plain_layer,
    projections,
)
from lattend.cost.models.fields import Fields
from lattend.cost.models.model import Model
from lattend.cost.models.parts import (
    OTHER,
    Attention,
    ModelLayer,
    ModelPart,
    linear,
    norm,
    plain,
    table,
)


def gpt2(fields: Fields) -> Model:
    """Learned positions; the head is the table of tokens."""
    fields.refuse("add_cross_attention", "cross-attention to an encoder is not counted")
    width, heads = fields.size("n_embd", "hidden_size"), fields.size("n_head", "num_attention_heads")
    hidden = fields.optional("n_inner") or 4 * width
    positions = fields.size("n_positions", "max_position_embeddings")
    layer = plain_layer(fields, width, heads, hidden, CAUSAL)
    layers = (layer,) * fields.layers("n_layer", "num_hidden_layers")
    extra = (table("positions", positions, width), *norms(width, "last norm", bias=True))
    return decoder(fields, width, layers, tied=True, extra=extra, longest=positions)


def gpt_neox(fields: Fields) -> Model:
    """Rotary positions; attention and feed-forward side by side, which changes no count."""
    width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    bias = fields.flag("attention_bias", True)
    how: dict[str, Any] = {"attention_bias": bias, "out_bias": bias}
    layer = plain_layer(fields, width, heads, fields.size("intermediate_size"), CAUSAL, **how)
    layers = (layer,) * fields.layers("num_hidden_layers")
    return decoder(fields, width, layers, tied=False, extra=norms(width, "last norm", bias=True))


def opt(fields: Fields) -> Model:
    """Learned positions, two more than are used; the small table of one size is projected to the width."""
    width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    positions = fields.size("max_position_embeddings")
    bias, weights = fields.flag("enable_bias", True), fields.flag("layer_norm_elementwise_affine", True)
    how: dict[str, Any] = {"bias": bias, "attention_bias": bias, "out_bias": bias, "has_norms": weights}
    layer = plain_layer(fields, width, heads, fields.size("ffn_dim"), CAUSAL, **how)
    inner = fields.optional("word_embed_proj_dim") or width
    extra: list[ModelPart] = [table("positions", positions + 2, width)]
    if inner != width:
        extra += [
            linear("table to width", OTHER, inner, width),
            linear("width to table", OTHER, width, inner),
        ]
    before = fields.flag("do_layer_norm_before", True) and not fields.flag("_remove_final_layer_norm", False)
    if before and weights:
        extra += norms(width, "last norm", bias=True)
    layers = (layer,) * fields.layers("num_hidden_layers")
    return decoder(fields, width, layers, tied=True, extra=extra, embedding_width=inner, longest=positions)


def phi(fields: Fields) -> Model:
    """Rotary positions; attention and feed-forward side by side after one norm; a head with biases."""
    width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    kv_heads, size = kv_heads_of(fields, heads), fields.optional("head_dim") or head_dim(fields, width, heads)
    hidden = fields.size("intermediate_size")
    parts = [
        *projections(width, heads, kv_heads, size, bias=True, out_bias=True),
        *plain(width, hidden),
        *norms(width, "layer norm", bias=True),
    ]
    if fields.flag("qk_layernorm", False):
        inner = head_dim(fields, width, heads)
        parts += [norm("query norm", inner, bias=True), norm("key norm", inner, bias=True)]
    layer = ModelLayer(tuple(parts), Attention(CAUSAL, heads, kv_heads, size, size), f"{hidden:,} wide")
    layers = (layer,) * fields.layers("num_hidden_layers")
    last = norms(width, "last norm", bias=True)
    return decoder(fields, width, layers, tied=False, extra=last, head_bias=True)
