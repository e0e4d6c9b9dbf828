"""Small modules with the parts and the arithmetic of timm's and diffusers' attention."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


class TimmAttention(nn.Module):
    """The parts of timm.layers.Attention."""

    def __init__(self, d: int, heads: int, norm: bool = False) -> None:
        super().__init__()
        self.num_heads, self.head_dim, self.scale = heads, d // heads, (d // heads) ** -0.5
        self.qkv = nn.Linear(d, 3 * d)
        self.q_norm = nn.LayerNorm(self.head_dim) if norm else nn.Identity()
        self.k_norm = nn.LayerNorm(self.head_dim) if norm else nn.Identity()
        self.attn_drop = nn.Dropout(0.0)
        self.norm = nn.LayerNorm(d) if norm else nn.Identity()
        self.proj = nn.Linear(d, d)
        self.proj_drop = nn.Dropout(0.0)

    def forward(self, x: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        batch, n, d = x.shape
        q, k, v = self.qkv(x).reshape(batch, n, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = scaled_dot_product_attention(
            self.q_norm(q), self.k_norm(k), v, attn_mask=attn_mask, is_causal=is_causal
        )
        return self.proj_drop(self.proj(self.norm(mixed.transpose(1, 2).reshape(batch, n, d))))


class RotaryAttention(TimmAttention):
    """As timm's AttentionRope: plain attention until it is called with rope."""

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x: Tensor, rope: Tensor | None = None, attn_mask: Tensor | None = None
    ) -> Tensor:
        return super().forward(x if rope is None else x * rope, attn_mask)


class TurnedAttention(TimmAttention):
    """Does more than attention, and no part of it says so."""

    def forward(self, x: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        return super().forward(x.flip(1), attn_mask, is_causal)


class WindowAttention(TimmAttention):
    """As Swin has it: with a table of biases."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__(d, heads)
        self.relative_position_bias_table = nn.Parameter(self.qkv.weight.new_zeros(9, heads))


class AttnProcessor2_0:  # noqa: N801  (diffusers' name)
    """What diffusers' default processor computes."""

    def __call__(
        self,
        attn: Any,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        x, shape = hidden_states, hidden_states.shape
        x = x.view(*shape[:2], -1).transpose(1, 2) if len(shape) == 4 else x
        x = attn.group_norm(x.transpose(1, 2)).transpose(1, 2) if attn.group_norm is not None else x
        others = x if encoder_hidden_states is None else encoder_hidden_states
        q, k, v = (
            make(y).view(shape[0], -1, attn.heads, make.out_features // attn.heads).transpose(1, 2)
            for make, y in ((attn.to_q, x), (attn.to_k, others), (attn.to_v, others))
        )
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=attention_mask)
        out = attn.to_out[1](attn.to_out[0](mixed.transpose(1, 2).flatten(2)))
        out = out.transpose(-1, -2).reshape(shape) if len(shape) == 4 else out
        out = out + hidden_states if attn.residual_connection else out
        return out / attn.rescale_output_factor


class JointAttnProcessor2_0(AttnProcessor2_0):  # noqa: N801
    """A processor that does something else."""


class DiffusersAttention(nn.Module):
    """The parts of diffusers.models.attention_processor.Attention."""

    def __init__(self, d: int, heads: int, image: bool = False, other: int | None = None) -> None:
        super().__init__()
        self.heads, self.scale, self.is_cross_attention = heads, (d // heads) ** -0.5, other is not None
        self.to_q, self.to_k, self.to_v = nn.Linear(d, d), nn.Linear(other or d, d), nn.Linear(other or d, d)
        self.to_out = nn.ModuleList([nn.Linear(d, d), nn.Dropout(0.0)])
        self.group_norm = nn.GroupNorm(2, d) if image else None
        self.spatial_norm = self.norm_q = self.norm_k = None
        self.residual_connection, self.rescale_output_factor = image, 2.0 if image else 1.0
        self.processor: Any = AttnProcessor2_0()

    def set_processor(self, processor: Any) -> None:
        self.processor = processor

    def forward(self, hidden_states: Tensor, **given: Any) -> Tensor:
        return self.processor(self, hidden_states, **given)
