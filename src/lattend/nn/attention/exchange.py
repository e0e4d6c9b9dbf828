"""Weights from torch.nn.MultiheadAttention, and back to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lattend.errors import LattendError, NamingError
from lattend.rules.language.expr import Truth
from lattend.rules.reader import RuleLike

if TYPE_CHECKING:
    from lattend.nn.attention.attention import MultiHeadAttention


def from_torch(
    kind: type[MultiHeadAttention], module: nn.MultiheadAttention, rule: RuleLike, values: Mapping[str, int]
) -> MultiHeadAttention:
    """The layer with copies of a module's weights: heads of embed_dim / num_heads numbers."""
    if not isinstance(module, nn.MultiheadAttention):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NamingError(f"from_torch takes a torch.nn.MultiheadAttention, not {type(module).__name__}")
    if module.bias_k is not None:
        raise LattendError("add_bias_kv=True adds a learned key, which no rule attends to")
    if module.add_zero_attn:
        raise LattendError("add_zero_attn=True adds a key of zeros, which no rule attends to")
    if module.dropout and module.training:
        raise LattendError(
            f"dropout = {module.dropout} drops weights in training, which this layer does not: "
            "module.eval() first, or set module.dropout = 0"
        )
    heads, d, width = module.num_heads, module.embed_dim, module.head_dim
    matrices = _matrices(module)
    biased = module.in_proj_bias is not None
    widths = {} if module._qkv_same_embed_dim else {"d_keys": module.kdim, "d_values": module.vdim}
    options: dict[str, Any] = {"device": matrices[0].device, "dtype": matrices[0].dtype, **widths, **values}
    layer = kind(d, width, width, d, heads, rule, bias=biased, out_bias=biased, **options)
    pairs: list[tuple[Any, Tensor]] = [
        (into, _by_heads(rows, heads))
        for into, rows in zip((layer.W_q, layer.W_k, layer.W_v), matrices, strict=True)
    ]
    pairs.append((layer.W_out, module.out_proj.weight.T.unflatten(0, (heads, width))))
    if biased:
        parts = module.in_proj_bias.unflatten(0, (3, heads, width)).unbind(0)
        pairs += list(zip((layer.b_q, layer.b_k, layer.b_v), parts, strict=True))
        pairs.append((layer.b_out, module.out_proj.bias))
    _copy(pairs)
    return layer


def to_torch(layer: MultiHeadAttention) -> nn.MultiheadAttention:
    """The module with copies of the layer's weights; a bias that the layer has not is zeros there."""
    W_q, W_k = layer.W_q, layer.W_k
    d, heads = layer.d_in, layer.head_count
    width = d // heads
    if d % heads:
        raise LattendError(f"torch cuts d_in = {d} into heads alike, and {heads} heads do not divide it")
    for name, needed in (("d_hidden", width), ("d_head_out", width), ("d_out", d)):
        found = getattr(layer, name)
        if found != needed:
            raise LattendError(
                f"torch's heads have d_in/heads = {d}/{heads} = {width} numbers and its output d_in = {d}: "
                f"{name} must be {needed}, and is {found}"
            )
    if W_q is None or W_k is None or type(layer.encoding).__name__ != "Encoding":
        raise LattendError(f"torch's attention has no encoding, and this layer has {_name(layer)}")
    rule = next(iter(layer.rules.values()))
    if rule.condition != Truth(True):
        raise LattendError(
            f'torch takes a mask with each call and keeps none: the rule "{rule.text}" would be lost; '
            "its mask is rule.mask(n=…), True where a query attends to a key, and torch wants the opposite"
        )
    if layer.scale != width**-0.5:
        raise LattendError(
            f"torch scales by 1/√{width}, and this layer by {layer.scale:g}: put the factor into W_q"
        )
    biased = any(b is not None for b in (layer.b_q, layer.b_k, layer.b_v, layer.b_out))
    kind: dict[str, Any] = {"device": W_q.device, "dtype": W_q.dtype}
    other = {} if (layer.d_keys, layer.d_values) == (d, d) else {"kdim": layer.d_keys, "vdim": layer.d_values}
    module = nn.MultiheadAttention(d, heads, bias=biased, batch_first=True, **other, **kind)
    pairs = list(zip(_matrices(module), (_as_rows(W) for W in (W_q, W_k, layer.W_v)), strict=True))
    pairs.append((module.out_proj.weight, layer.W_out.flatten(0, 1).T))
    if biased:
        zeros = torch.zeros(d, **kind)
        parts = [zeros if b is None else b.flatten() for b in (layer.b_q, layer.b_k, layer.b_v)]
        pairs.append((module.in_proj_bias, torch.cat(parts)))
        pairs.append((module.out_proj.bias, zeros if layer.b_out is None else layer.b_out))
    _copy(pairs)
    return module


def _matrices(module: nn.MultiheadAttention) -> tuple[Tensor, Tensor, Tensor]:
    """The three projections, rows are outputs."""
    if module._qkv_same_embed_dim:
        W_q, W_k, W_v = module.in_proj_weight.chunk(3)
        return W_q, W_k, W_v
    return module.q_proj_weight, module.k_proj_weight, module.v_proj_weight


def _by_heads(rows: Tensor, heads: int) -> Tensor:
    """[heads * D, d] → [heads, d, D]."""
    return rows.unflatten(0, (heads, -1)).mT


def _as_rows(W: Tensor) -> Tensor:
    """[heads, d, D] → [heads * D, d]."""
    return W.mT.flatten(0, 1)


def _copy(pairs: list[tuple[Any, Tensor]]) -> None:
    with torch.no_grad():
        for into, found in pairs:
            into.copy_(found)


def _name(layer: MultiHeadAttention) -> str:
    return type(layer.encoding).__name__.lower()
