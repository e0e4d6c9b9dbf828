"""Attention of diffusers under a rule: a processor for modules with to_q, to_k, to_v and to_out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from lattend.attend.attention import attention
from lattend.errors import LattendError
from lattend.rules.rule import Rule

PARTS = ("to_q", "to_k", "to_v", "to_out", "heads", "processor", "set_processor")
PLAIN = ("AttnProcessor", "AttnProcessor2_0", "RuleProcessor")  # those that do what RuleProcessor does


@dataclass
class RuleProcessor:
    """What replace_attention gives to an attention module of diffusers: lt.attention under `rule`.

    Images [batch, channels, rows, cols] become tokens row by row, as diffusers does it.
    """

    rule: Rule

    def __call__(
        self,
        attn: Any,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        temb: Tensor | None = None,
    ) -> Tensor:
        if encoder_hidden_states is not None or attention_mask is not None:
            raise LattendError(
                f'the rule "{self.rule.text}" is of self-attention, and says who attends: '
                "encoder_hidden_states and attention_mask cannot be given with it"
            )
        residual, shape = hidden_states, hidden_states.shape
        x = hidden_states if attn.spatial_norm is None else attn.spatial_norm(hidden_states, temb)
        x = x.flatten(2).transpose(1, 2) if len(shape) == 4 else x
        x = x if attn.group_norm is None else attn.group_norm(x.transpose(1, 2)).transpose(1, 2)
        q, k, v = (
            make(x).unflatten(-1, (attn.heads, -1)).transpose(1, 2)
            for make in (attn.to_q, attn.to_k, attn.to_v)
        )
        q = q if attn.norm_q is None else attn.norm_q(q)
        k = k if attn.norm_k is None else attn.norm_k(k)
        mixed = attention(q, k, v, self.rule, scale=attn.scale)
        out = attn.to_out[1](attn.to_out[0](mixed.transpose(1, 2).flatten(2)))
        out = out.transpose(1, 2).reshape(shape) if len(shape) == 4 else out
        return (out + residual if attn.residual_connection else out) / attn.rescale_output_factor


def has_processor(module: nn.Module) -> bool:
    """Whether the module has the parts of diffusers' attention."""
    return all(hasattr(module, name) for name in PARTS)


def is_cross(module: nn.Module) -> bool:
    """Whether the module attends to another sequence, as to the prompt."""
    return bool(getattr(module, "is_cross_attention", False))


def why_not(module: Any) -> str | None:
    """Why the module cannot run under a rule, or None when it can."""
    found = type(module.processor).__name__
    if found in PLAIN:
        return None
    return f"its processor is {found}; {' and '.join(PLAIN[:2])} are known to be attention and no more"


def put_rule(module: Any, rule: Rule) -> None:
    """Makes the module run under the rule."""
    module.set_processor(RuleProcessor(rule))
