"""Mixtures of experts: a router sends each token to a few of many feed-forwards; some have shared ones too.

Each function gives the parts of one layer's feed-forward and a few words about it.
"""

from __future__ import annotations

from lattend.cost.models.fields import Fields
from lattend.cost.models.parts import OTHER, ModelPart, experts, gated, linear

Found = tuple[tuple[ModelPart, ...], str]


def mixtral(fields: Fields, width: int, place: int) -> Found:
    """Experts in every layer."""
    count, chosen = _counts(fields, "num_local_experts", "num_experts")
    hidden = fields.size("intermediate_size")
    return (_router(width, count), experts(count, chosen, width, hidden)), _words(chosen, count, hidden)


def qwen2(fields: Fields, width: int, place: int) -> Found:
    """Experts and a shared one whose output is gated; the layers that mlp_only_layers names are dense."""
    if not _is_mixed(fields, place):
        return _dense(fields, width, "intermediate_size")
    count, chosen = _counts(fields, "num_experts", "num_local_experts")
    hidden, shared = fields.size("moe_intermediate_size"), fields.size("shared_expert_intermediate_size")
    parts = (
        _router(width, count),
        experts(count, chosen, width, hidden),
        *gated(width, shared, name="shared expert"),
        linear("shared expert's gate", OTHER, width, 1),
    )
    return parts, f"{_words(chosen, count, hidden)}; shared, {shared:,} wide"


def qwen3(fields: Fields, width: int, place: int) -> Found:
    """Experts; the layers that mlp_only_layers names are dense."""
    if not _is_mixed(fields, place):
        return _dense(fields, width, "intermediate_size")
    count, chosen = _counts(fields, "num_experts", "num_local_experts")
    hidden = fields.size("moe_intermediate_size")
    return (_router(width, count), experts(count, chosen, width, hidden)), _words(chosen, count, hidden)


def gpt_oss(fields: Fields, width: int, place: int) -> Found:
    """Experts with biases in every layer."""
    count, chosen = _counts(fields, "num_local_experts", "num_experts")
    hidden = fields.size("intermediate_size")
    router = linear("router", OTHER, width, count, bias=True)
    return (router, experts(count, chosen, width, hidden, bias=True)), _words(chosen, count, hidden)


def llama4(fields: Fields, width: int, place: int) -> Found:
    """Experts and a shared one in moe_layers, or in every interleave_moe_layer_step-th layer."""
    step = fields.optional("interleave_moe_layer_step") or 1
    mixed = fields.list_of("moe_layers", int)
    if not (place in mixed if mixed is not None else (place + 1) % step == 0):
        return _dense(fields, width, "intermediate_size_mlp")
    count, chosen = _counts(fields, "num_local_experts", "num_experts")
    hidden = fields.size("intermediate_size")
    note = "transformers' own code runs every expert on every token; here a token goes where it is sent"
    if note not in fields.notes:
        fields.notes.append(note)
    shared = gated(width, hidden, name="shared expert")
    parts = (_router(width, count), experts(count, chosen, width, hidden), *shared)
    return parts, f"{_words(chosen, count, hidden)}; shared, {hidden:,} wide"


def deepseek(fields: Fields, width: int, place: int, *, bias: bool) -> Found:
    """Experts and shared ones, after the first dense layers."""
    if place < (fields.optional("first_k_dense_replace", least=0) or 0):
        hidden = fields.size("intermediate_size")
        return gated(width, hidden, bias=bias), f"gated, {hidden:,} wide"
    count, chosen = _counts(fields, "n_routed_experts", "num_experts")
    hidden = fields.size("moe_intermediate_size")
    shared = fields.size("n_shared_experts") * hidden
    parts = (
        _router(width, count),
        experts(count, chosen, width, hidden),
        *gated(width, shared, bias=bias, name="shared experts"),
    )
    return parts, f"{_words(chosen, count, hidden)}; shared, {shared:,} wide"


def _counts(fields: Fields, *names: str) -> tuple[int, int]:
    count, chosen = fields.size(*names), fields.size("num_experts_per_tok")
    if chosen > count:
        raise fields.wrong("num_experts_per_tok", f"at most the {count} experts", chosen)
    return count, chosen


def _router(width: int, count: int) -> ModelPart:
    return linear("router", OTHER, width, count)


def _words(chosen: int, count: int, hidden: int) -> str:
    return f"{chosen} of {count} experts, {hidden:,} wide"


def _dense(fields: Fields, width: int, name: str) -> Found:
    hidden = fields.size(name)
    return gated(width, hidden), f"gated, {hidden:,} wide"


def _is_mixed(fields: Fields, place: int) -> bool:
    dense: list[int] = fields.list_of("mlp_only_layers", int) or []
    step = fields.optional("decoder_sparse_step") or 1
    return place not in dense and (place + 1) % step == 0
