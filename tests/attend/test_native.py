"""The native kernel against the reference, outputs and gradients, at every level that this processor runs."""

from __future__ import annotations

from math import inf, nan, prod
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plans.test_plan import IMAGES, LINES
from random_rules import affine, split
from torch import Tensor

import lattend as lt
from lattend.attend.attention import attention
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs
from lattend.attend.call.padding import real_keys
from lattend.attend.kernels import reference
from lattend.attend.kernels.dispatch import chosen, chosen_backward
from lattend.attend.kernels.native import build, kernel, library
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.rules.rule import Rule

pytestmark = pytest.mark.skipif(library.missing() is not None, reason=str(library.missing()))
GUARD = 16  # numbers before and after a tensor that must stay as they are
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def levels() -> list[str]:
    return [] if library.missing() else list(library.levels())


def drawn(source: torch.Generator, shape: tuple[int, ...], dtype: torch.dtype, inside: bool) -> Tensor:
    """Random numbers [batch, heads, n, D]; heads may lie inside positions in memory."""
    batch, heads, n, width = shape
    if not inside:
        return torch.randn(shape, generator=source).to(dtype)
    return torch.randn(batch, n, heads, width, generator=source).to(dtype).transpose(1, 2)


def check(
    rule: Rule,
    *,
    batch: int = 2,
    heads: int = 3,
    kv_heads: int = 3,
    dims: tuple[int, int] = (8, 5),
    dtype: torch.dtype = torch.float32,
    inside: bool = False,
    with_lse: bool = True,
    padding: Tensor | None = None,
) -> None:
    """Compares output, log-sum-exp and gradients with the reference's in float64."""
    queries = prod(rule.values[axis.queries] for axis in rule.axes)
    keys = prod(rule.values[axis.keys] for axis in rule.axes)
    source = torch.Generator().manual_seed(0)
    sizes = [(heads, queries, dims[0]), (kv_heads, keys, dims[0]), (kv_heads, keys, dims[1])]
    q, k, v, grad = (
        drawn(source, (batch, *size), dtype, inside) for size in (*sizes, (heads, queries, dims[1]))
    )
    ends = None if padding is None else torch.stack([torch.zeros_like(padding), padding], -1).int()
    call = AttentionCall(rule, 0.4, key_range=ends)
    exact = [x.double() for x in (q, k, v, grad)]
    out, lse = reference.forward(call, exact[0], exact[1], exact[2])
    grad_lse = torch.randn(lse.shape, generator=source) if with_lse else None
    wide = None if grad_lse is None else grad_lse.double()
    inputs = BackwardInputs(exact[3], wide, exact[0], exact[1], exact[2], out, lse)
    expected = [out, lse, *reference.backward(call, inputs)[:3]]
    out, lse = kernel.prepare(call, q, k, v).run(q, k, v, *call.tensors)
    given = BackwardInputs(grad, grad_lse, q, k, v, out, lse)
    grads = kernel.prepare_backward(call, given)(*(x for x in given if x is not None), *call.tensors)
    for found, wanted in zip((out, lse, *grads[:3]), expected, strict=True):
        assert torch.equal(found == -inf, wanted == -inf)
        there = wanted != -inf
        error = (found.double() - wanted)[there].norm() / (wanted[there].norm() + (1e-9 if with_lse else 1.0))
        assert error < TOLERANCE[dtype], f"{rule}: off by {error:.1e}"


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("rule", LINES, ids=str)
def test_lines(rule: Rule, level: str) -> None:
    with library.at_level(level):
        check(rule.at(n=41, **({"heads": 3} if rule.has_heads else {})))


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("rule", IMAGES, ids=str)
def test_images(rule: Rule, level: str) -> None:
    with library.at_level(level):
        check(rule.at(rows=5, cols=7), batch=1)


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims", [(16, 16), (64, 32), (1, 1), (20, 48), (33, 70), (128, 144)])
def test_head_dimensions_and_dtypes(dims: tuple[int, int], dtype: torch.dtype, level: str) -> None:
    with library.at_level(level):
        for inside in (False, True):
            how: dict[str, Any] = {"dims": dims, "dtype": dtype, "inside": inside}
            check(lt.rules.sparse_strided(l=8).at(n=35), batch=1, heads=4, kv_heads=2, **how)


@settings(max_examples=60, deadline=None)
@given(
    text=st.one_of(affine(), split()),
    sizes=st.tuples(st.integers(0, 40), st.integers(0, 6), st.integers(1, 5)),
    level=st.sampled_from(levels() or [""]),
    with_lse=st.booleans(),
    dtype=st.sampled_from(DTYPES),
)
def test_random_rules(
    text: str, sizes: tuple[int, int, int], level: str, with_lse: bool, dtype: torch.dtype
) -> None:
    rule, (n, t, w) = lt.rule(text), sizes
    values = {name: value for name, value in {"t": t, "w": w}.items() if name in rule.parameters}
    with library.at_level(level):
        check(rule.at(n=n, **values), batch=1, heads=2, kv_heads=1, dtype=dtype, with_lse=with_lse)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("dims", [(8, 5), (16, 32)])  # keys are summed in other memory, or in the results
def test_more_keys_than_are_taken_at_once(dims: tuple[int, int], dtype: torch.dtype) -> None:
    for kv_heads in (1, 4):  # one kv head: its tiles are cut into chunks
        how: dict[str, Any] = {"batch": 1, "heads": 4, "kv_heads": kv_heads, "dims": dims, "dtype": dtype}
        check(lt.rules.strided(t=149).at(n=170), **how)
        check(lt.rules.sparse_strided(l=16).at(n=170), **how, inside=True)
        check(lt.rule("k <= q and k % 50 < 9 and k < 140").at(n=170), **how)  # some keys have no queries
        check(lt.rule("q + k >= 190").at(n=170), **how)  # later tiles have keys before those of earlier ones
    check(lt.rules.full().at(n=17, m=300), dims=dims, dtype=dtype)


@pytest.mark.parametrize("level", levels())
def test_keys_that_only_half_of_a_tile_attends_to(level: str) -> None:
    with library.at_level(level):
        check(lt.rules.neighbourhood(r=3).at(rows=17, cols=22), batch=1, heads=2, kv_heads=2, dims=(16, 32))
        check(lt.rule("k <= q and q % 16 < 8").at(n=70), batch=1)
        check(lt.rule("k <= q and q % 16 >= 8").at(n=70), batch=1)


@pytest.mark.parametrize("level", levels())
def test_padding(level: str) -> None:
    with library.at_level(level):
        check(lt.rules.strided(t=9).at(n=41), padding=torch.tensor([29, 0]))
        check(lt.rules.full().at(n=41, m=170), padding=torch.tensor([170, 140]))


def test_a_mask_of_padding() -> None:
    source = torch.Generator().manual_seed(2)
    q, k, v = (torch.randn(2, 2, 30, 8, generator=source) for _ in range(3))
    mask = torch.rand(2, 30, generator=source) < 0.6
    found, wanted = (
        attention(q, k, v, "causal", padding=mask, kernel=name) for name in ("native", "reference")
    )
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("level", levels())
def test_scores_may_be_large(level: str) -> None:
    source = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(1, 1, 300, 16, generator=source) * size for size in (300, 1, 1))
    with library.at_level(level):
        found = attention(q, k, v, "k <= q", kernel="native")
    wanted = attention(q.double(), k.double(), v.double(), "k <= q", kernel="reference")
    torch.testing.assert_close(found.double(), wanted, atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("rule", LINES, ids=str)
def test_the_output_alone_is_that_with_the_log_sum_exp(rule: Rule, level: str) -> None:
    call = AttentionCall(rule.at(n=41, **({"heads": 3} if rule.has_heads else {})), 0.4)
    q, k, v = torch.randn(3, 1, 3, 41, 16)
    with library.at_level(level):
        prepared = kernel.prepare(call, q, k, v)
        out, _ = prepared.run(q, k, v, *call.tensors)
        found = prepared.output(q, k, v)
    assert torch.equal(found, out) and found is not out


@pytest.mark.parametrize("strange", [nan, inf, -inf])
def test_what_is_in_a_key_stays_in_the_rows_that_attend_to_it(strange: float) -> None:
    source = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 2, 40, 16, generator=source) for _ in range(3))
    plain = attention(q, k, v, lt.rules.strided(t=3), kernel="native")
    k[1, 0, 7, 3] = strange
    found = attention(q, k, v, lt.rules.strided(t=3), kernel="native")
    same = torch.ones(2, 2, 40, dtype=torch.bool)
    same[1, 0, 7:11] = False
    assert torch.equal(found[same], plain[same])


def results(threads: int, *, kv_heads: int) -> list[Tensor]:
    source = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, h, 900, 32, generator=source).requires_grad_() for h in (4, kv_heads, kv_heads))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        out, lse = attention(q, k, v, lt.rules.sparse_strided(l=30), kernel="native", return_lse=True)
        (out.square().sum() + lse.sum()).backward()
    finally:
        torch.set_num_threads(before)
    return [out, lse, *(x.grad for x in (q, k, v) if x.grad is not None)]


@pytest.mark.parametrize("kv_heads", [1, 4])
def test_the_number_of_threads_changes_no_bit(kv_heads: int) -> None:
    first = results(1, kv_heads=kv_heads)
    for threads in (2, 3, 8):
        for one, other in zip(first, results(threads, kv_heads=kv_heads), strict=True):
            assert torch.equal(one, other)


def guarded(shape: tuple[int, ...], dtype: torch.dtype, room: list[Tensor]) -> Tensor:
    """An empty tensor within memory whose ends are remembered."""
    room.append(torch.full((prod(shape) + 2 * GUARD,), 7.0, dtype=dtype))
    return room[-1][GUARD:-GUARD].view(shape)


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims", [(16, 16), (7, 19)])
def test_nothing_is_written_beside_the_results(
    dims: tuple[int, int], dtype: torch.dtype, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    room: list[Tensor] = []

    def empty_strided(shape: Any, strides: Any, *, dtype: torch.dtype) -> Tensor:
        return guarded(tuple(shape), dtype, room)

    monkeypatch.setattr(torch, "empty_strided", empty_strided)
    source = torch.Generator().manual_seed(0)
    q, k, v, grad = (
        torch.randn(1, 2, 37, d, generator=source).to(dtype) for d in (*dims[:1] * 2, *dims[1:] * 2)
    )
    call = AttentionCall(lt.rules.neighbourhood(r=2).at(rows=1, cols=37), 0.3)
    with library.at_level(level):
        out, lse = kernel.prepare(call, q, k, v).run(q, k, v, *call.tensors)
        given = BackwardInputs(grad, None, q, k, v, out, lse)
        kernel.prepare_backward(call, given)(grad, q, k, v, out, lse)
    assert len(room) == 5  # out, lse, dq, dk, dv
    for whole in room:
        assert (whole[:GUARD] == 7).all() and (whole[-GUARD:] == 7).all()
        assert torch.isfinite(whole.float()).all()


def test_which_calls_it_takes() -> None:
    x = torch.zeros(1, 2, 64, 16)
    band, causal = lt.rules.strided(t=9).at(n=64), lt.rules.causal().at(n=64)
    for rule in (band, causal):
        assert chosen(AttentionCall(rule, 1.0), x, x, x) == "native"
        assert chosen_backward(AttentionCall(rule, 1.0), x, x, x, None) == "native"
    asked = AttentionCall(causal, 1.0, kernel="sdpa")
    assert chosen_backward(asked, x, x, x, torch.zeros(1, 2, 64)) == "native"
    large = torch.zeros(1, 1, 16384, 64)
    assert chosen(AttentionCall(lt.rules.strided(t=9).at(n=16384), 1.0), large, large, large) == "native"
    wide = x.double()
    assert kernel.why_not(AttentionCall(band, 1.0), wide, wide, wide) == "it does not compute in float64"
    dropped = AttentionCall(band, 1.0, dropout=0.5)
    assert kernel.why_not(dropped, x, x, x) == "there is dropout"
    assert chosen(dropped, x, x, x) == "cpu"


def test_the_library_is_that_of_this_source() -> None:
    assert library.missing() is None


def test_a_library_of_another_source_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "source_hash", lambda: "0" * 16)
    said = "its compiled code is not that of this source: build it again with make setup"
    assert library.missing.__wrapped__() == said
    monkeypatch.setattr(library, "LIBRARY", build.HERE / "none.native")
    said = "this installation was built without a C++ compiler, and so without its compiled code"
    assert library.missing.__wrapped__() == said
    monkeypatch.setattr(library, "missing", lambda: said)
    x = torch.zeros(1, 2, 64, 16)
    assert chosen(AttentionCall(lt.rules.strided(t=9).at(n=64), 1.0), x, x, x) == "cpu"
    found = lt.explain("strided", n=64, t=9)
    assert (found.kernel, found.kernels["native"]) == ("cpu", said)


def test_real_keys_are_those_of_the_padding() -> None:
    k = torch.zeros(2, 1, 9, 4)
    call = AttentionCall(lt.rules.full().at(n=9), 1.0, key_range=torch.tensor([[0, 9], [2, 5]]))
    (found,) = kernel.ExtraInputs(call, k, k).of(call.tensors)
    wanted = real_keys(call, 9)
    assert wanted is not None and torch.equal(found, wanted)
