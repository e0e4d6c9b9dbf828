"""Where a NaN or an infinity may go: its own row, or rows that share a tile; never other heads or batches."""

from __future__ import annotations

from math import inf, nan

import pytest
import torch

import lattend as lt
from lattend.attend.attention import attention

KERNELS = ["reference", "dense", "cpu", "native", "triton"]
if torch.cuda.is_available():
    KERNELS = ["triton"]
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # NumPy's, in the reference and the interpreter
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
RULE = lt.rules.strided(t=3)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def given() -> list[torch.Tensor]:
    source = torch.Generator().manual_seed(0)
    return [torch.randn(2, 2, 20, 16, generator=source).to(DEVICE) for _ in range(3)]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("strange", [nan, inf, -inf])
def test_in_a_query_it_stays_in_its_row(kernel: str, strange: float) -> None:
    q, k, v = given()
    plain = attention(q, k, v, RULE, kernel=kernel)
    q[1, 0, 7, 3] = strange
    found = attention(q, k, v, RULE, kernel=kernel)
    same = torch.ones(2, 2, 20, dtype=torch.bool, device=DEVICE)
    same[1, 0, 7] = False
    torch.testing.assert_close(found[same], plain[same])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("strange", [nan, inf])
@pytest.mark.parametrize("where", ["k", "v"])
def test_in_a_key_or_value_it_stays_in_its_head(kernel: str, strange: float, where: str) -> None:
    q, k, v = given()
    plain = attention(q, k, v, RULE, kernel=kernel)
    {"k": k, "v": v}[where][1, 0, 7, 3] = strange
    found = attention(q, k, v, RULE, kernel=kernel)
    same = torch.ones(2, 2, dtype=torch.bool, device=DEVICE)
    same[1, 0] = False
    torch.testing.assert_close(found[same], plain[same])
    if kernel == "reference":
        rows = [*range(7), *range(11, 20)]  # those that do not attend to key 7
        torch.testing.assert_close(found[1, 0, rows], plain[1, 0, rows])


@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_without_keys_give_zeros_and_no_gradient(kernel: str) -> None:
    rule = lt.rule("k <= q and q - k <= 3 and q >= 5")
    q, k, v = (x.requires_grad_() for x in given())
    out, lse = attention(q, k, v, rule, kernel=kernel, return_lse=True)
    assert (out[:, :, :5] == 0).all()
    assert (lse[:, :, :5] == -inf).all()
    (out.sum() + lse[:, :, 5:].sum()).backward()
    for x in (q, k, v):
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()
    assert q.grad is not None
    assert (q.grad[:, :, :5] == 0).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_the_same_on_every_run(kernel: str) -> None:
    runs = []
    for _ in range(2):
        q, k, v = (x.requires_grad_() for x in given())
        attention(q, k, v, lt.rules.sparse_strided(l=4), kernel=kernel).square().sum().backward()
        runs.append([q.grad, k.grad, v.grad])
    for one, other in zip(*runs, strict=True):
        assert one is not None
        assert torch.equal(one, other)
