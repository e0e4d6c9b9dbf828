"""Attention as timm's vision transformers write it, under a rule: a module with qkv, num_heads and proj."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch
from torch import Tensor, nn

from lattend.attend.attention import attention
from lattend.errors import LattendError
from lattend.rules.reader import read_rule
from lattend.rules.rule import Rule

PARTS = {"qkv", "proj", "num_heads"}
KNOWN = {"qkv", "q_norm", "k_norm", "attn_drop", "norm", "proj", "proj_drop"}  # its children
MASKS = {"attn_mask", "is_causal"}  # what its forward takes besides x
TRIAL = 5  # tokens


class RuleQKVAttention(nn.Module):
    """What replace_attention makes of an attention with qkv, num_heads and proj: lt.attention under `rule`.

    Tokens are [batch, n, d]. `q_norm` and `k_norm` act on each head, `norm` on the joined heads, before proj.
    """

    rule: Rule
    qkv: nn.Module
    proj: nn.Module
    num_heads: int

    def forward(self, x: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        if attn_mask is not None or is_causal:
            raise LattendError(
                f'attn_mask and is_causal: the rule "{self.rule.text}" says who attends; write them into it'
            )
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        q, k = self._through("q_norm", q), self._through("k_norm", k)
        dropped: float = getattr(getattr(self, "attn_drop", None), "p", 0.0) if self.training else 0.0
        scale: float | None = getattr(self, "scale", None)
        mixed = attention(q, k, v, self.rule, scale=scale, dropout=dropped).transpose(1, 2).flatten(2)
        return self._through("proj_drop", self.proj(self._through("norm", mixed)))

    def extra_repr(self) -> str:
        """The rule, where the module is printed."""
        return f"rule={str(self.rule)!r}"

    def _through(self, name: str, x: Tensor) -> Tensor:
        part: Any = getattr(self, name, None)
        return x if part is None else part(x)


def is_qkv(module: nn.Module) -> bool:
    """Whether the module has the parts of timm's attention."""
    return all(hasattr(module, name) for name in PARTS) and isinstance(module.qkv, nn.Module)


def why_not(module: nn.Module) -> str | None:
    """Why the module is not plain attention, which a trial shows; None when it is."""
    if isinstance(module, RuleQKVAttention):
        return None
    others = [name for name, _ in module.named_children() if name not in KNOWN]
    others += [name for name, _ in module.named_parameters(recurse=False)]
    others += [name for name, _ in module.named_buffers(recurse=False)]
    if others:
        return f"besides qkv and proj it has {', '.join(others)}, which no rule expresses"
    taken = [name for name in list(inspect.signature(module.forward).parameters)[1:] if name not in MASKS]
    if taken:
        return f"its forward takes {', '.join(taken)}, which no rule expresses"
    return _why_not_alike(module)


def put_rule(module: nn.Module, rule: Rule) -> None:
    """Makes the module run under the rule."""
    module.__class__ = RuleQKVAttention
    module.rule = rule  # pyright: ignore[reportArgumentType]


def _why_not_alike(module: Any) -> str | None:
    """Runs it on a few tokens beside attention where all attend to all; None when the outputs agree."""
    own, ours = copy.deepcopy(module).eval(), copy.deepcopy(module).eval()
    put_rule(ours, read_rule("full"))
    weight = next(module.proj.parameters())
    width = next(module.qkv.parameters()).shape[-1]
    if weight.is_meta:
        return "its weights are on the meta device, where it cannot be tried; load them first"
    x = torch.linspace(-9, 9, TRIAL * width).view(1, TRIAL, width).sin().to(weight.device, weight.dtype)
    with torch.no_grad():
        try:
            wanted, found = own(x), ours(x)
        except (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, LattendError) as error:
            return f"it does not run on tokens (1, {TRIAL}, {width}) alone: {error}"
    tolerance = 64 * torch.finfo(weight.dtype).eps
    if wanted.shape == found.shape and torch.allclose(wanted, found, rtol=tolerance, atol=tolerance):
        return None
    return "where all tokens attend to all, its output is not proj(softmax(scale · q k^T) v)"
