"""Gradients from parts of larger tensors: of some queries, whose rows lie apart from head to head."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

import lattend as lt
from lattend.attend.call.attention_call import BackwardInputs
from lattend.attend.call.options import KernelOptions
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.operators import attention_operator
from lattend.attend.operators.operator_arguments import OperatorCall
from lattend.rules.reader import read_rule

GPU = torch.cuda.is_available()
KERNELS = ("dense", "cpu", "native", "triton")
RULES = {"window": "k <= q and q - k <= 9", "causal": "k <= q", "parts": "k < 2 or k <= q and q - k <= 5"}


def gradients(kernel: str, text: str, inputs: BackwardInputs) -> Any:
    rule = read_rule(text)
    n = inputs.q.shape[2]
    options = KernelOptions(kernel=kernel, deterministic=kernel != "sdpa")
    call = OperatorCall(rule.at(n=n).key, [n], [], None, [], options=options)
    return attention_operator.gradients(inputs, False, call)[:3]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")  # Triton's interpreter
@pytest.mark.parametrize(("kernel", "rule"), [*product(KERNELS, RULES), ("sdpa", "causal")])
def test_rows_may_lie_apart(kernel: str, rule: str) -> None:
    """Torch's own attention takes causal blocks alone; on a CPU it reads rows where they lie."""
    text = RULES[rule]
    torch.manual_seed(0)
    device = "cuda" if GPU and kernel not in ("cpu", "native") else "cpu"
    whole = [torch.randn(2, 2, 40, 16, device=device) for _ in range(5)]
    grad, q, k, v, out = (x[:, :, 3:30] for x in whole)
    lse, grad_lse = (torch.randn(2, 2, 40, device=device) + offset for offset in (5, 0))
    lse, grad_lse = lse[..., 5:32], grad_lse[..., 1:28]
    inputs = BackwardInputs(grad, None if kernel == "sdpa" else grad_lse, q, k, v, out, lse)
    copies: list[Any] = [None if x is None else x.contiguous() for x in inputs]
    together = BackwardInputs(*copies)
    wanted = gradients("dense", text, together)
    for found in (gradients(kernel, text, inputs), gradients(kernel, text, together)):
        for one, want in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, want, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not GPU, reason="needs a GPU, where torch's log-sum-exps have room behind them")
def test_after_the_forward_pass_of_torch() -> None:
    """On 3,001 float32 keys the forward pass is torch's own, and the backward pass ours."""
    told = lt.explain("causal", n=3001, heads=2, head_dim=128, dtype="float32", device="cuda")
    assert (told.kernel, told.backward) == ("sdpa", "triton")
    torch.manual_seed(0)
    q, k, v, grad = (torch.randn(1, 2, 3001, 128, device="cuda") for _ in range(4))
    results: list[Any] = []
    for dtype, kernel in ((torch.float32, None), (torch.float64, "dense")):
        given = [x.to(dtype).requires_grad_() for x in (q, k, v)]
        out = lt.attention(given[0], given[1], given[2], "causal", kernel=kernel)
        results.append([out.detach(), *torch.autograd.grad(out, given, grad.to(dtype))])
    for found, want in zip(*results, strict=True):
        assert float((found.double() - want).norm() / want.norm()) < TOLERANCE[torch.float32]
