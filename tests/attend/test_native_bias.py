"""Bias and softcap in the native kernel: against other kernels in float64, outputs and all gradients."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_rules import affine
from torch import Tensor

import lattend as lt
from lattend import Bias
from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.kernels.dispatch import chosen
from lattend.attend.kernels.native import dense_bias, kernel, library
from lattend.attend.kernels.tolerance import TOLERANCE

pytestmark = pytest.mark.skipif(library.missing() is not None, reason=str(library.missing()))
BATCH, HEADS = 2, 4
Shapes = Callable[[int, int], tuple[tuple[int, ...], ...]]
BIASES: dict[str, tuple[Shapes, Callable[..., Any]]] = {
    "slopes": (lambda n, m: ((HEADS,),), lambda slope: Bias("-slope[head]*(q - k)", slope=slope)),
    "relative": (lambda n, m: ((HEADS, 9),), Bias.relative),
    "of positions": (
        lambda n, m: ((n,), (m,), ()),
        lambda a, b, c: Bias("a[q]*b[k]*c - b[k]", a=a, b=b, c=c),
    ),
    "rows of heads": (lambda n, m: ((HEADS, n),), lambda a: Bias("a[head, q]*(k % 3) + a[head, 0]", a=a)),
    "heads last": (lambda n, m: ((5, HEADS),), lambda a: Bias("a[(q + k) % 5, head]", a=a)),
    "quadratic": (lambda n, m: ((HEADS,), (HEADS, 1)), lambda a, x: Bias.quadratic(a / 999, x)),
    "elements": (lambda n, m: ((BATCH, m),), lambda a: Bias("a[batch, k]*a[batch, k]", a=a)),
    "no tensor": (lambda n, m: (), lambda: Bias("(k - q) // 2")),
    "table": (lambda n, m: ((n, m),), lambda table: table),
    "tables of heads": (lambda n, m: ((HEADS, n, m),), lambda table: table),
    "tables of elements": (lambda n, m: ((BATCH, HEADS, n, m),), lambda table: table),
    "one table": (lambda n, m: ((1, HEADS, n, m),), lambda table: table),
    "one head": (lambda n, m: ((BATCH, 1, n, m),), lambda table: table),
}


def drawn(
    source: torch.Generator, shape: tuple[int, ...], dtype: torch.dtype, apart: bool = False, size: float = 1
) -> Tensor:
    """Random numbers; `apart`: the last axis is the slowest in memory."""
    found = (size * torch.randn(shape, generator=source)).to(dtype)
    turned = found.movedim(-1, 0).contiguous().movedim(0, -1) if apart and shape else found
    return turned.requires_grad_()


def results(
    x: list[Tensor], tensors: list[Tensor], rule: Any, kernel: str, bias: Any, **how: Any
) -> list[Tensor]:
    """The output, the log-sum-exp and all gradients."""
    q, k, v = x
    out, lse = lt.attention(q, k, v, rule, bias=bias, kernel=kernel, return_lse=True, **how)
    end = out.double().sin().sum() + lse.double().masked_fill(lse == -inf, 0).cos().sum()
    return [out, lse, *torch.autograd.grad(end, [*x, *tensors])]


def check(
    name: str, rule: Any, queries: int, keys: int, *, dtype: torch.dtype = torch.float32, apart: bool = False,
    kv_heads: int = 2, **how: Any,
) -> None:  # fmt: skip
    """Compares the native kernel with the dense one in float64."""
    source = torch.Generator().manual_seed(queries)
    sizes = [(HEADS, queries, 8), (kv_heads, keys, 8), (kv_heads, keys, 5)]
    x = [drawn(source, (BATCH, *size), dtype, apart=False) for size in sizes]
    shapes, made = BIASES[name]
    tensors = [drawn(source, shape, torch.float32, apart, size=0.1) for shape in shapes(queries, keys)]
    found = results(x, tensors, rule, "native", made(*tensors), **how)
    exact = [[one.detach().double().requires_grad_() for one in some] for some in (x, tensors)]
    wanted = results(exact[0], exact[1], rule, "dense", made(*exact[1]), **how)
    summed = BATCH * HEADS * queries * torch.finfo(torch.float32).eps  # slopes of all rows, which may cancel
    for number, (mine, theirs) in enumerate(zip(found, wanted, strict=True)):
        tolerance = TOLERANCE[dtype] + (summed if number >= 5 else 0)
        assert torch.equal(mine == -inf, theirs == -inf)
        there = theirs != -inf
        error = (mine.double() - theirs)[there].norm() / (theirs[there].norm() + 1)
        assert error < tolerance, f"{name}, {rule}: off by {error:.1e}"


@pytest.mark.parametrize("level", [] if library.missing() else library.levels())
def test_levels(level: str) -> None:
    with library.at_level(level):
        check("relative", "causal", 37, 37)
        check("tables of heads", "strided(9)", 70, 70, softcap=1.5)


@pytest.mark.parametrize("name", BIASES)
def test_kinds_of_bias(name: str) -> None:
    check(name, "causal", 37, 37)
    check(name, lt.rules.sparse_strided(l=8), 35, 35, apart=True, softcap=1.5)
    check(name, lt.rules.full(), 3, 150, kv_heads=1, scale=-0.3, m=150)


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from([*BIASES]),
    text=affine(),
    sizes=st.tuples(st.integers(1, 40), st.integers(0, 6)),
    level=st.sampled_from([""] if library.missing() else [*library.levels()]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    softcap=st.sampled_from([None, 0.7, 30.0]),
    kept=st.booleans(),
)
def test_random_rules(
    name: str,
    text: str,
    sizes: tuple[int, int],
    level: str,
    dtype: torch.dtype,
    softcap: float | None,
    kept: bool,
) -> None:
    rule, (n, t) = lt.rule(text), sizes
    values: dict[str, Any] = {"t": t} if "t" in rule.parameters else {}
    most, dense_bias.MOST_KEPT = dense_bias.MOST_KEPT, dense_bias.MOST_KEPT if kept else 0
    try:
        with library.at_level(level):
            check(name, rule, n, n, dtype=dtype, softcap=softcap, **values)
    finally:
        dense_bias.MOST_KEPT = most


def test_flat_positions_of_an_image() -> None:
    source = torch.Generator().manual_seed(0)
    x = [drawn(source, (1, 2, 30, 8), torch.float32) for _ in range(3)]
    table = drawn(source, (2, 30, 30), torch.float32)
    rule = lt.rules.neighbourhood(r=1).at(cols=6)
    found, wanted = (results(x, [table], rule, name, table) for name in ("native", "dense"))
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


def test_entries_of_minus_infinity() -> None:
    source = torch.Generator().manual_seed(0)
    x = [drawn(source, (1, 2, 40, 8), torch.float32) for _ in range(3)]
    blocked = torch.rand(2, 40, 40, generator=source) < 0.5
    blocked[:, 7] = True  # a row without keys
    table = torch.randn(2, 40, 40, generator=source).masked_fill(blocked, -inf).requires_grad_()
    exact = [one.detach().double().requires_grad_() for one in (*x, table)]
    wanted = results(exact[:3], exact[3:], "causal", "reference", exact[3])
    for mine, theirs in zip(results(x, [table], "causal", "native", table), wanted, strict=True):
        torch.testing.assert_close(mine.double(), theirs, atol=1e-5, rtol=1e-5)


def test_a_row_of_the_lowest_numbers_is_a_mean() -> None:
    q, k, v = torch.randn(3, 1, 2, 40, 8, generator=torch.Generator().manual_seed(0))
    table = torch.zeros(2, 40, 40)
    table[:, 7] = torch.finfo(torch.float32).min
    out = lt.attention(q, k, v, "causal", bias=table, kernel="native")
    torch.testing.assert_close(out[:, :, 7], v[:, :, :8].mean(2))


@pytest.mark.parametrize("strange", [nan, inf, -inf])
def test_entries_of_pairs_that_are_not_attended_do_nothing(strange: float) -> None:
    source = torch.Generator().manual_seed(0)
    x = [drawn(source, (1, 2, 40, 8), torch.float32) for _ in range(3)]
    table = drawn(source, (2, 40, 40), torch.float32)
    future = torch.ones(40, 40, dtype=torch.bool).triu(1)
    other = table.detach().masked_fill(future, strange).requires_grad_()
    for softcap in (None, 2.0):
        found, wanted = (results(x, [t], "causal", "native", t, softcap=softcap) for t in (other, table))
        assert all(map(torch.equal, found, wanted))


def test_threads_change_no_bit() -> None:
    def run(threads: int) -> list[Tensor]:
        source = torch.Generator().manual_seed(0)
        x = [drawn(source, (2, 4, 300, 16), torch.float32) for _ in range(3)]
        table = drawn(source, (4, 601), torch.float32)
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            return results(x, [table], "causal", "native", Bias.relative(table))
        finally:
            torch.set_num_threads(before)

    assert all(map(torch.equal, run(1), run(3)))


def test_which_calls_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    x, rule = torch.zeros(1, 2, 64, 16), lt.rules.strided(t=9).at(n=64)
    call = AttentionCall(rule, 1.0, term=Bias("q - k").term)
    assert chosen(call, x, x, x) == "native"
    monkeypatch.setattr(kernel, "MAX_BIASED", 8000)
    assert kernel.why_not(call, x, x, x) == "it holds the bias of all pairs, at most 8,000: there are 8,192"
    assert chosen(call, x, x, x) == "cpu"
    assert chosen(AttentionCall(rule, 1.0, softcap=2.0), x, x, x) == "native"


def test_a_bias_is_not_evaluated_where_few_pairs_are_attended() -> None:
    x, band, causal = torch.zeros(1, 2, 1200, 16), lt.rules.strided(t=9), lt.rules.causal()
    call = AttentionCall(band.at(n=1200), 1.0, term=Bias("q - k").term)
    assert kernel.why_not(call, x, x, x) == "it evaluates the bias on all pairs, and few of them are attended"
    assert chosen(call, x, x, x) == "cpu"
    table = torch.zeros(1200, 1200)
    held = AttentionCall(band.at(n=1200), 1.0, term=Bias.table(table).term, bias={"table": table})
    dense = AttentionCall(causal.at(n=1200), 1.0, term=Bias("q - k").term)
    assert chosen(held, x, x, x) == chosen(dense, x, x, x) == "native"


def test_a_table_is_taken_as_it_lies() -> None:
    q, table = torch.zeros(2, 3, 5, 4), torch.randn(3, 5, 5)
    for bias in (table, table.transpose(1, 2)):
        call = AttentionCall(lt.rules.full().at(n=5), 1.0, term=Bias.table(bias).term, bias={"table": bias})
        found = dense_bias.DenseBias(call, q, q).values([bias])
        assert found.data_ptr() == bias.data_ptr() and torch.equal(found, bias.expand(2, 3, 5, 5))
