"""Gradients from parts of larger tensors: of some queries, whose rows lie apart from head to head."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lattend.attend import operator
from lattend.attend.call import BackwardInputs
from lattend.rules.reader import read_rule

RULES = {"window": "k <= q and q - k <= 9", "causal": "k <= q", "parts": "k < 2 or k <= q and q - k <= 5"}


def gradients(kernel: str, text: str, inputs: BackwardInputs) -> Any:
    rule = read_rule(text)
    n = inputs.q.shape[2]
    how = (None, None, None, None, 0.0, None, None, kernel, True)
    return operator.gradients(inputs, False, rule.at(n=n).key, [n], [], None, [], *how)[:3]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")  # Triton's interpreter
@pytest.mark.parametrize("text", RULES.values(), ids=list(RULES))
@pytest.mark.parametrize("kernel", ["dense", "cpu", "native", "sdpa", "triton"])
def test_rows_may_lie_apart(kernel: str, text: str) -> None:
    if kernel == "sdpa" and text != RULES["causal"]:
        pytest.skip("torch's own attention takes causal blocks")
    torch.manual_seed(0)
    whole = [torch.randn(2, 2, 40, 16) for _ in range(5)]
    grad, q, k, v, out = (x[:, :, 3:30] for x in whole)
    lse, grad_lse = (torch.randn(2, 2, 40) + 5)[..., 5:32], torch.randn(2, 2, 40)[..., 1:28]
    inputs = BackwardInputs(grad, None if kernel == "sdpa" else grad_lse, q, k, v, out, lse)
    together = BackwardInputs(*(None if x is None else x.contiguous() for x in inputs))
    wanted = gradients("dense", text, together)
    for found in (gradients(kernel, text, inputs), gradients(kernel, text, together)):
        for one, want in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, want, rtol=1e-4, atol=1e-5)
