"""Dropout of a part of a larger call: the pairs that the whole would drop, on every kernel, both passes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lattend.attend.call.dropout import kept, new_seed, placed_seed
from lattend.attend.call.options import KernelOptions
from lattend.attend.operators.attention_operator import forward
from lattend.attend.operators.operator_arguments import OperatorCall
from lattend.rules.reader import read_rule

RATE = 0.4
HEADS, FIRST = 2, 1  # two of four heads, from the second on
QUERIES, KEYS = torch.tensor([9, 10, 11, 29, 30]), torch.tensor([3, 4, 8, 9, 13, 14])


def run(kernel: str, seed: torch.Tensor, q: Any, k: Any, v: Any) -> torch.Tensor:
    rule = read_rule("full").at(m=6)
    placed = placed_seed(seed, QUERIES.to(seed.device), KEYS.to(seed.device), (HEADS, 4, FIRST))
    options = KernelOptions(dropout=RATE, kernel=kernel)
    call = OperatorCall(rule.key, [5, 6], [], None, [], seed=placed, options=options)
    return forward(q, k, v, call)[0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")  # Triton's interpreter
@pytest.mark.parametrize("kernel", ["dense", "cpu", "reference", "triton"])
def test_a_part_drops_what_the_whole_does(kernel: str) -> None:
    device = "cuda" if kernel == "triton" and torch.cuda.is_available() else "cpu"
    seed = new_seed(torch.zeros(1, device=device))
    members = (torch.arange(3)[:, None] * 4 + torch.arange(HEADS) + FIRST).view(3, HEADS, 1, 1)
    there = kept(seed, RATE, *(x.to(device) for x in (members, QUERIES[:, None], KEYS)))
    q, k = (torch.zeros(3, HEADS, n, 16, device=device) for n in (5, 6))
    v = torch.eye(6, 16, device=device).expand(3, HEADS, 6, 16).contiguous().requires_grad_()
    out = run(kernel, seed, q, k, v)
    assert torch.equal(out[..., :6] > 0, there)
    assert 0 < there.sum() < there.numel()
    weights = torch.autograd.grad(out.sum(), v)[0][
        ..., 0
    ]  # of each key, the sum of its weights that are kept
    torch.testing.assert_close(weights, there.sum(-2) / 6 / (1 - RATE), rtol=1e-5, atol=1e-6)
