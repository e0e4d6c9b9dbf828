"""KVCache over ranks, against plain lists of tokens; steps that do not fit what it holds."""

from __future__ import annotations

import pytest
import torch
from gloo_ranks import Crew
from parallel_caches import messages, plays, under_autocast

K_AND_V = "TensorError: this cache takes k (1, 2, s, 8) and v (1, 2, s, 6), got "
MESSAGES = {
    "one kv head": K_AND_V + "q (1, 4, 1, 8), k (1, 1, 1, 8) and v (1, 1, 1, 6)",
    "four kv heads": K_AND_V + "q (1, 4, 1, 8), k (1, 4, 1, 8) and v (1, 4, 1, 6)",
    "a larger batch": K_AND_V + "q (2, 4, 1, 8), k (2, 2, 1, 8) and v (2, 2, 1, 6)",
    "no batch": K_AND_V + "q (0, 4, 1, 8), k (0, 2, 1, 8) and v (0, 2, 1, 6)",
    "a wider head": K_AND_V + "q (1, 4, 1, 16), k (1, 2, 1, 16) and v (1, 2, 1, 6)",
    "wider values": K_AND_V + "q (1, 4, 1, 8), k (1, 2, 1, 8) and v (1, 2, 1, 12)",
    "more heads": "TensorError: q has 8 heads, and the cache was made for 4; make it with heads=8",
    "float32": "TensorError: q is torch.float32 on cpu, and this cache torch.float64 on cpu",
    "bfloat16": "TensorError: q is torch.bfloat16 on cpu, and this cache torch.float64 on cpu",
    "mixed": "TensorError: q is float64 and v is float32; cast one: v.to(q.dtype)",
    "gradients": "TensorError: k requires a gradient, and a cache keeps none: use torch.no_grad() to decode, "
    "attention without a cache to train",
    "more queries": "TensorError: q is (1, 4, 2, 8), and beside k (1, 2, 1, 8) it must be (1, heads, 1, 8), "
    "its heads a multiple of 2",
    "no tensor": "TensorError: k must be a tensor, got list",
    "length": "DomainError: 2 positions and 2 more are beyond the 3 that this cache was made for",
    "fill: heads": "DomainError: heads = 4 is not a multiple of the 3 heads of k",
    "fill: dtypes": "TensorError: q is float64 and v is float32; cast one: v.to(q.dtype)",
    "fill: axes": "TensorError: k has shape (2, 1, 8), and a prompt takes (batch, kv_heads, n of this rank, "
    "D)",
}


@pytest.mark.parametrize("ranks", [2, 3])
def test_random_steps(crew: Crew, ranks: int) -> None:
    positions, refused = crew.run(ranks, plays, range(2))[0]
    assert positions > 300 and refused > 20


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
def test_many_random_steps(crew: Crew, ranks: int) -> None:
    crew.run(ranks, plays, range(100, 130))


def test_steps_that_do_not_fit(crew: Crew) -> None:
    assert crew.run(3, messages) == [MESSAGES] * 3


def test_steps_under_autocast(crew: Crew) -> None:
    wanted = "TensorError: q is torch.float32 on cpu, and this cache torch.bfloat16 on cpu"
    assert crew.run(2, under_autocast) == [(torch.bfloat16, wanted)] * 2
