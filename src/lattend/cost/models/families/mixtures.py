"""Mixtures of experts: a router sends each token to a few of many feed-forwards; some have shared ones too.

Each function gives the parts of one layer's feed-forward and a few words about it.
"""

from __future__ import annotations

from lattend.cost.models.fields import Fields
from lattend.cost.models.parts import OTHER, ModelPart, experts, gated, linear

Found = tuple[tuple[ModelPart, ...], str]
LOCAL, ROUTED = ("num_local_experts", "num_experts"), ("n_routed_experts", "num_experts")


def dense(fields: Fields, width: int, name: str = "intermediate_size", *, bias: bool = False) -> Found:
    """No experts: gate, up and down."""
    hidden = fields.size(name)
    return gated(width, hidden, bias=bias), f"gated, {hidden:,} wide"


def mixtral(fields: Fields, width: int, place: int) -> Found:
    """Experts in every layer."""
    return _mixed(fields, width, LOCAL, "intermediate_size")


def qwen2(fields: Fields, width: int, place: int) -> Found:
    """Experts and a shared one whose output is gated; the layers that mlp_only_layers names are dense."""
    if not _has_experts(fields, place):
        return dense(fields, width)
    shared = fields.size("shared_expert_intermediate_size")
    more = (*gated(width, shared, name="shared expert"), linear("shared expert's gate", OTHER, width, 1))
    return _mixed(fields, width, LOCAL[::-1], "moe_intermediate_size", shared, more)


def qwen3(fields: Fields, width: int, place: int) -> Found:
    """Experts; the layers that mlp_only_layers names are dense."""
    if not _has_experts(fields, place):
        return dense(fields, width)
    return _mixed(fields, width, LOCAL[::-1], "moe_intermediate_size")


def gpt_oss(fields: Fields, width: int, place: int) -> Found:
    """Experts with biases in every layer."""
    return _mixed(fields, width, LOCAL, "intermediate_size", bias=True)


def llama4(fields: Fields, width: int, place: int) -> Found:
    """Experts and a shared one in moe_layers, or in every interleave_moe_layer_step-th layer."""
    step = fields.optional("interleave_moe_layer_step") or 1
    mixed = fields.list_of("moe_layers", int)
    if not (place in mixed if mixed is not None else (place + 1) % step == 0):
        return dense(fields, width, "intermediate_size_mlp")
    note = "transformers' own code runs every expert on every token; here a token goes where it is sent"
    if note not in fields.notes:
        fields.notes.append(note)
    hidden = fields.size("intermediate_size")
    more = gated(width, hidden, name="shared expert")
    return _mixed(fields, width, LOCAL, "intermediate_size", hidden, more)


def deepseek(fields: Fields, width: int, place: int, *, bias: bool) -> Found:
    """Experts and shared ones, after the first dense layers."""
    if place < (fields.optional("first_k_dense_replace", least=0) or 0):
        return dense(fields, width, bias=bias)
    shared = fields.size("n_shared_experts") * fields.size("moe_intermediate_size")
    more = gated(width, shared, bias=bias, name="shared experts")
    return _mixed(fields, width, ROUTED, "moe_intermediate_size", shared, more)


def _mixed(
    fields: Fields,
    width: int,
    counts: tuple[str, ...],
    hidden_name: str,
    shared: int = 0,
    more: tuple[ModelPart, ...] = (),
    *,
    bias: bool = False,
) -> Found:
    """A router and its experts, and `more` parts, among them shared experts of this width."""
    count, chosen, hidden = fields.size(*counts), fields.size("num_experts_per_tok"), fields.size(hidden_name)
    if chosen > count:
        raise fields.wrong("num_experts_per_tok", f"at most the {count} experts", chosen)
    router = linear("router", OTHER, width, count, bias=bias)
    words = f"{chosen} of {count} experts, {hidden:,} wide" + (f"; shared, {shared:,} wide" if shared else "")
    return (router, experts(count, chosen, width, hidden, bias=bias), *more), words


def _has_experts(fields: Fields, place: int) -> bool:
    without: list[int] = fields.list_of("mlp_only_layers", int) or []
    step = fields.optional("decoder_sparse_step") or 1
    return place not in without and (place + 1) % step == 0
