"""DeepSeek V2 and V3: keys and values are made from a small latent vector, which is all the cache keeps."""

from __future__ import annotations

from lattend.cost.models.families import mixtures
from lattend.cost.models.families.shared import CAUSAL, decoder, norms
from lattend.cost.models.fields import Fields
from lattend.cost.models.model import Model
from lattend.cost.models.parts import PROJECTIONS, Attention, ModelLayer, ModelPart, linear, norm


def deepseek(fields: Fields) -> Model:
    """Latent attention with its two low-rank paths, and experts after the first layers.

    Counted as it is trained and as a prompt is read: the latent is multiplied out to keys and values once a
    token. Layers that predict further tokens (num_nextn_predict_layers) are not part of the model.
    """
    width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    plain, rotary = fields.size("qk_nope_head_dim"), fields.size("qk_rope_head_dim")
    value, latent = fields.size("v_head_dim"), fields.size("kv_lora_rank")
    bias = fields.flag("attention_bias", False)
    parts = [
        *_query(fields, width, heads * (plain + rotary), bias=bias),
        linear("latent", PROJECTIONS, width, latent + rotary, bias=bias),
        norm("latent norm", latent),
        linear("keys and values of the latent", PROJECTIONS, latent, heads * (plain + value)),
        linear("output", PROJECTIONS, heads * value, width, bias=bias),
        *norms(width, "layer norm", "layer norm"),
    ]
    attention = Attention(CAUSAL, heads, heads, plain + rotary, value, latent + rotary, latent)
    mlp_bias = fields.flag("mlp_bias", False) if fields.family == "deepseek_v2" else False
    layers: list[ModelLayer] = []
    for index in range(fields.layers("num_hidden_layers")):
        inner, words = mixtures.deepseek(fields, width, index, bias=mlp_bias)
        layers.append(ModelLayer((*parts, *inner), attention, words))
    further = fields.optional("num_nextn_predict_layers", "num_mtp_layers", least=0)
    if further:
        word = "layer that predicts" if further == 1 else "layers that predict"
        fields.notes.append(f"{further} more {word} further tokens, which a run leaves out, not counted")
    return decoder(fields, width, layers, tied=False, extra=norms(width, "last norm"))


def _query(fields: Fields, width: int, outputs: int, *, bias: bool) -> tuple[ModelPart, ...]:
    rank = fields.optional("q_lora_rank")
    if rank is None:
        return (linear("query", PROJECTIONS, width, outputs),)
    return (
        linear("query's latent", PROJECTIONS, width, rank, bias=bias),
        norm("query's norm", rank),
        linear("query of its latent", PROJECTIONS, rank, outputs),
    )
