"""torch's own context parallelism on CPUs and gloo: its rings, and its FlexAttention, called from within.

`torch.distributed.tensor.experimental.context_parallel` refuses a CPU: the operator that
scaled_dot_product_attention takes there, aten._scaled_dot_product_flash_attention_for_cpu, "does not have a
sharding strategy registered" (torch 2.13), and among its rings, one for each operator, is none for it. All of
them call one template, which takes any operator; here it is given that one: torch's messages, torch's blocks,
torch's merging, with and without torch's balance. It knows causal and full attention alone.

FlexAttention's variant gathers all keys and takes any mask. On a CPU it has no gradients: "FlexAttention does
not support backward on CPU".
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

import lattend as lt

inside: Any = None
missing = ""
try:  # all of it is private: another torch may have other names
    inside = import_module("torch.distributed.tensor.experimental._context_parallel._attention")
    for name in ("_templated_ring_attention", "_templated_ring_attention_backward", "_cp_options"):
        getattr(inside, name)
except (ImportError, AttributeError) as error:
    missing = f"torch {torch.__version__} has its rings elsewhere: {error}"

POSITIONS = 2  # the axis of a tensor [batch, heads, n, D]


class Ring(torch.autograd.Function):
    """Attention of this rank's queries by torch's ring, or its all-gather; causal or full."""

    @staticmethod
    def forward(ctx: Any, how: tuple[str, bool, bool], q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        set_options(how)
        operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        out, lse = inside._templated_ring_attention(
            dist.group.WORLD, POSITIONS, operator, q, k, v, is_causal=how[1]
        )
        ctx.how = how
        ctx.save_for_backward(q, k, v, out, lse)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        set_options(ctx.how)
        operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
        q, k, v, out, lse = ctx.saved_tensors
        found = inside._templated_ring_attention_backward(
            dist.group.WORLD, POSITIONS, operator, grads[0], "grad_out", q, k, v, out, lse, ctx.how[1],
            dropout_p=0.0,
        )  # fmt: skip
        return None, *found


def set_options(how: tuple[str, bool, bool]) -> None:
    """Sets what torch keeps for the whole process: how keys travel, and whether ranks have two pieces."""
    rotate, _, balanced = how
    inside.set_rotate_method(rotate)
    inside._cp_options.enable_load_balance = balanced


def ring(rotate: str, causal: bool, balanced: bool) -> Any:
    """Attention with keys that travel by "alltoall", from rank to rank, or by "allgather", at once."""
    return lambda q, k, v: Ring.apply((rotate, causal, balanced), q, k, v)


class Flex(torch.nn.Module):
    """FlexAttention as a module, whose arguments torch's context parallelism replaces."""

    def __init__(self) -> None:
        super().__init__()
        from torch.nn.attention.flex_attention import flex_attention

        self.attend = torch.compile(flex_attention, dynamic=False)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Any) -> Any:
        return self.attend(q, k, v, block_mask=mask)


def flex(rule: lt.Rule, n: int, **numbers: int) -> Any:
    """Attention by FlexAttention and all keys, its mask cut for this rank by torch; it has no gradients."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module

    from lattend.integrations.flex import block_mask

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    style = inside._ContextParallel
    plan = style(seq_dim=POSITIONS, attention_type=style.AttentionType.FLEX)
    module = parallelize_module(Flex(), mesh, plan)
    whole = block_mask(rule, device="cpu", **(numbers or {"n": n}))
    (mask,) = inside._context_parallel_shard(mesh, [whole], [POSITIONS])
    return lambda q, k, v: module(q, k, v, mask)
