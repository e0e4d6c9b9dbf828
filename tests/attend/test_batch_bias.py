"""A bias of its own for each batch element: every kernel against attention written out in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import lattend as lt
from lattend.attend.attention import attention

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, HEADS, N = 3, 4, 13
RULES = ("causal", "strided(3)", "k % 3 == 0 or abs(q - k) <= 1", "k > n")
pytestmark = [  # of Triton's interpreter
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def made(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def qkv() -> tuple[Tensor, Tensor, Tensor]:
    shapes = ((BATCH, HEADS, N, 8), (BATCH, 2, N, 8), (BATCH, 2, N, 6))
    q, k, v = (made(*shape, seed=i) for i, shape in enumerate(shapes))
    return q, k, v


def written_out(q: Tensor, k: Tensor, v: Tensor, text: str, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Attention by the book, with a bias [batch, heads, n, m]."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    mask = torch.as_tensor(lt.rule(text).mask(n=q.shape[2]))
    scores = (q @ k.mT * 8**-0.5 + bias).masked_fill(~mask, -torch.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.masked_fill(lse == -torch.inf, 0)[..., None]).exp()
    return weights @ v, lse


def sloped(slope: Tensor) -> Tensor:
    places = torch.arange(N)
    return -slope[:, :, None, None] * (places[:, None] - places)


def scaled(table: Tensor) -> Tensor:
    """batch*table[k] + table[q]."""
    return torch.arange(BATCH).view(-1, 1, 1, 1) * table + table[:, None]


CASES: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Any], Callable[[Tensor], Tensor]]] = {
    "a table": ((BATCH, HEADS, N, N), lambda x: x, lambda x: x),
    "a table for all heads": ((BATCH, 1, N, N), lambda x: x, lambda x: x),
    "a table for all elements": ((1, HEADS, N, N), lambda x: x, lambda x: x),
    "a text": (
        (BATCH, HEADS, N, N),
        lambda x: lt.Bias("table[batch, head, q, k]", table=x),
        lambda x: x,
    ),
    "slopes": ((BATCH, HEADS), lambda x: lt.Bias("-slope[batch, head]*(q - k)", slope=x), sloped),
    "the number itself": ((N,), lambda x: lt.Bias("batch*table[k] + table[q]", table=x), scaled),
}


def results(found: tuple[Tensor, Tensor], leaves: list[Tensor], grad: Tensor) -> list[Tensor]:
    """The output, the log-sum-exp and all gradients."""
    out, lse = found
    end = (out * grad).sum() + torch.where(lse == -torch.inf, 0, lse).sum()
    return [out, lse, *torch.autograd.grad(end, leaves)]


@pytest.mark.parametrize("kernel", ["reference", "dense", "cpu", "triton"])
@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("case", CASES)
def test_kernels_do_what_is_written_out(case: str, text: str, kernel: str) -> None:
    shape, given, formula = CASES[case]
    grad = made(BATCH, HEADS, N, 6, seed=5)
    leaves = [x.requires_grad_() for x in (*qkv(), made(*shape, seed=4))]
    q, k, v, x = leaves
    wanted = results(written_out(q, k, v, text, formula(x)), leaves, grad)
    device, dtype = (DEVICE, torch.float32) if kernel == "triton" else ("cpu", torch.float64)
    mine = [x.detach().to(device, dtype).requires_grad_() for x in leaves]
    q, k, v, x = mine
    run = attention(q, k, v, text, bias=given(x), kernel=kernel, return_lse=True)
    found = results(run, mine, grad.to(device, dtype))
    for one, right in zip(found, wanted, strict=True):
        a, b = (x.detach().cpu().double().nan_to_num(neginf=-1.0) for x in (one, right))
        assert (a - b).norm() <= (1e-5 if kernel == "triton" else 1e-12) * (b.norm() + 1e-9)


@pytest.mark.parametrize("case", CASES)
def test_compiled(case: str) -> None:
    shape, given, _ = CASES[case]
    grad = made(BATCH, HEADS, N, 6, seed=5)
    leaves = [x.requires_grad_() for x in (*qkv(), made(*shape, seed=4))]

    def run(q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return attention(q, k, v, "strided(3)", bias=given(x), return_lse=True)

    torch._dynamo.reset()
    compiled = torch.compile(run, backend="aot_eager", fullgraph=True)
    for mine, right in zip(*(results(f(*leaves), leaves, grad) for f in (compiled, run)), strict=True):
        torch.testing.assert_close(mine, right)


def test_an_image_has_flat_positions() -> None:
    q, k, v = (x[:, :, :12].unflatten(2, (3, 4)) for x in qkv())
    table = made(BATCH, 1, 12, 12, seed=4)
    found = attention(q, k, v, "neighbourhood(1)", bias=table)
    for element in range(BATCH):
        at = slice(element, element + 1)
        alone = attention(q[at], k[at], v[at], "neighbourhood(1)", bias=table[element, 0])
        torch.testing.assert_close(found[at], alone)


@pytest.mark.parametrize("case", ["a table", "a table for all heads", "slopes"])
def test_a_cache_gives_the_rows_of_the_whole(case: str) -> None:
    shape, given, _ = CASES[case]
    q, k, v = qkv()
    bias = given(made(*shape, seed=4))
    whole = attention(q, k, v, "strided(3)", bias=bias)
    cache = lt.KVCache(
        "strided(3)", batch=BATCH, heads=HEADS, kv_heads=2, head_dim=8, value_dim=6, dtype=torch.float64, n=N
    )
    rows: list[Tensor] = []
    for first, end in ((0, 5), (5, 6), (6, 9), (9, 10), (10, 13)):
        at = slice(first, end)
        rows.append(attention(q[:, :, at], k[:, :, at], v[:, :, at], "strided(3)", cache=cache, bias=bias))
    torch.testing.assert_close(torch.cat(rows, 2), whole)


def test_vmap_repeats_the_batch() -> None:
    q, k, v = (torch.stack([x, 2 * x]) for x in qkv())
    bias = lt.Bias("table[batch, head, q, k] + batch*(q - k)", table=made(BATCH, HEADS, N, N, seed=4))

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention(q, k, v, "causal", bias=bias)

    found = torch.vmap(run)(q, k, v)
    torch.testing.assert_close(found, torch.stack([run(*x) for x in zip(q, k, v, strict=True)]))
    x = q[0]
    with pytest.raises(
        lt.errors.LattendError, match="bias: vmap maps the batch of q, k and v, and bias has none"
    ):
        torch.vmap(lambda slope: lt.attention(x, x, x, "causal", bias=lt.Bias("s*k", s=slope)))(torch.ones(3))


@pytest.mark.parametrize(
    ("bias", "text", "message"),
    [
        (
            lambda: lt.Bias("slope[batch]", slope=torch.zeros(2)),
            "causal",
            r"bias: slope has shape \(2\); slope\[batch\] needs 3 places on axis 0, one for each batch",
        ),
        (
            lambda: torch.zeros(2, 4, N, N),
            "causal",
            r"or \(3, 4, 13, 13\) with the batch, where the first two",
        ),
        (lambda: lt.Bias("batch[q]", batch=torch.zeros(N)), "causal", "batch is the batch element; give the"),
        (lambda: lt.Bias("batch*q"), "k <= q + batch", "a parameter batch too; give that another name"),
    ],
)
def test_mistakes_are_told(bias: Callable[[], Any], text: str, message: str) -> None:
    values: dict[str, Any] = {"batch": 1} if "batch" in text else {}
    with pytest.raises(lt.errors.LattendError, match=message):
        attention(*qkv(), text, bias=bias(), **values)
