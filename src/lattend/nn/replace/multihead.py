"""torch.nn.MultiheadAttention under a rule, with the weights, arguments and state_dict of torch's own."""

from __future__ import annotations

from math import inf
from typing import Any

import torch
from torch import Tensor, nn

from lattend.attend.attention import attention
from lattend.attend.bias import shape_text
from lattend.errors import LattendError, TensorError, TooLarge
from lattend.rules.rule import Rule

MOST_WEIGHTS = 1 << 27


class RuleMultiheadAttention(nn.MultiheadAttention):
    """torch.nn.MultiheadAttention whose forward is lt.attention under `rule`, made by replace_attention.

    Masks mean what they mean in torch: True in key_padding_mask is padding, True in attn_mask forbids a pair.
    A pair is attended where the rule and the masks allow it. A query without keys gives zeros, where torch
    gives NaN. With need_weights the weights are those before dropout, computed for all n × m pairs.
    """

    rule: Rule

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if is_causal and attn_mask is None:
            raise LattendError(
                "is_causal=True tells torch what attn_mask holds, and none is given; "
                f'here the rule says who attends: "({self.rule.text}) and k <= q"'
            )
        batched = query.dim() == 3
        q, k, v = (self._split(x, part) for part, x in enumerate((query, key, value)))
        self._check_lengths(q.shape[2], k.shape[2])
        how: dict[str, Any] = {
            "bias": self._bias(attn_mask, q, k),
            "padding": _padding(key_padding_mask, q, k),
        }
        mixed = attention(q, k, v, self.rule, dropout=self.dropout if self.training else 0, **how)
        out = self.out_proj(mixed.movedim(1, 2).flatten(2))
        weights = self._weights(q, k, how, average_attn_weights) if need_weights else None
        if not batched:
            return out[0], None if weights is None else weights[0]
        return out if self.batch_first else out.transpose(0, 1), weights

    def extra_repr(self) -> str:
        """The rule, where the module is printed."""
        return f"rule={str(self.rule)!r}"

    def _split(self, x: Tensor, part: int) -> Tensor:
        """Queries, keys or values, [batch, heads, n, head_dim]."""
        if x.dim() not in (2, 3):
            raise TensorError(f"tokens are [n, d], or [batch, n, d] and [n, batch, d], not {shape_text(x)}")
        if self.in_proj_weight is None:  # pyright: ignore[reportUnnecessaryComparison]
            matrix = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)[part]
        else:
            matrix = self.in_proj_weight.chunk(3)[part]
        added = None if self.in_proj_bias is None else self.in_proj_bias.chunk(3)[part]
        tokens = x[None] if x.dim() == 2 else x if self.batch_first else x.transpose(0, 1)
        return nn.functional.linear(tokens, matrix, added).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _check_lengths(self, n: int, m: int) -> None:
        if n != m and "m" not in self.rule.sizes:
            raise TensorError(
                f'query has {n} tokens and key has {m}, and the rule "{self.rule.text}" is of one sequence; '
                "for two of any lengths give replace_attention lt.rule(…, cross=True)"
            )

    def _bias(self, mask: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
        """An attn_mask as it is added to the scores, [n, m] or [batch, heads, n, m]."""
        if mask is None:
            return None
        batch, heads, n, m = *q.shape[:3], k.shape[2]
        if mask.shape not in ((n, m), (batch * heads, n, m)):
            raise TensorError(
                f"attn_mask is ({n}, {m}), or ({batch * heads}, {n}, {m}) with one for each head of each "
                f"element of the batch, not {shape_text(mask)}"
            )
        mask = mask.unflatten(0, (batch, heads)) if mask.dim() == 3 else mask
        if mask.dtype != torch.bool:
            return mask
        return torch.zeros(mask.shape, dtype=q.dtype, device=mask.device).masked_fill(mask, -inf)

    def _weights(self, q: Tensor, k: Tensor, how: dict[str, Any], averaged: bool) -> Tensor:
        batch, heads, n, m = *q.shape[:3], k.shape[2]
        if batch * heads * n * m > MOST_WEIGHTS:
            raise TooLarge(
                f"the weights of {n:,} × {m:,} pairs in {heads} heads are more than {MOST_WEIGHTS:,} "
                "numbers; call the module with need_weights=False"
            )
        units = torch.eye(m, dtype=q.dtype, device=q.device).expand(batch, heads, m, m)
        found = attention(q, k, units, self.rule, **how)
        return found.mean(1) if averaged else found


def _padding(mask: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
    """Which keys are real, from torch's mask, where True or -inf is padding."""
    if mask is None:
        return None
    if mask.dim() == 1:
        mask = mask[None]
    if mask.shape != (q.shape[0], k.shape[2]):
        raise TensorError(
            f"key_padding_mask is ({q.shape[0]}, {k.shape[2]}), True where a key is padding, "
            f"not {shape_text(mask)}"
        )
    if mask.dtype == torch.bool:
        return ~mask
    _check_only_padding(mask)
    return mask == 0


NOT_ONLY_PADDING = (
    "key_padding_mask holds numbers besides 0 and -inf, which torch adds to the scores of a key; "
    "lt.attention leaves keys out: give a mask of bool, True where a key is padding"
)


def _check_only_padding(mask: Tensor) -> None:
    """Raises unless a mask of floating numbers, which torch would add to the scores, only forbids keys.

    A compiled program raises torch's RuntimeError, when it runs.
    """
    only = ((mask == 0) | (mask == -inf)).all()
    if torch.compiler.is_compiling():
        torch._assert_async(only, NOT_ONLY_PADDING)  # pyright: ignore
    elif not bool(only):
        raise TensorError(NOT_ONLY_PADDING)


def why_not(module: nn.MultiheadAttention) -> str | None:
    """Why the module cannot run under a rule, or None when it can."""
    if module.bias_k is not None:
        return "add_bias_kv=True adds a learned key, which no rule attends to"
    if module.add_zero_attn:
        return "add_zero_attn=True adds a key of zeros, which no rule attends to"
    return None


def put_rule(module: nn.MultiheadAttention, rule: Rule) -> None:
    """Makes the module run under the rule."""
    # A TransformerEncoderLayer then calls forward, and not a fused layer, which knows no rule
    module._qkv_same_embed_dim = False
    module.__class__ = RuleMultiheadAttention
    module.rule = rule  # pyright: ignore[reportArgumentType]
