"""The CPU kernel against the reference, outputs and gradients, for chosen rules and random ones."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plans.test_plan import IMAGES, LINES
from random_rules import affine, split

import lattend as lt
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs
from lattend.attend.kernels import reference
from lattend.attend.kernels.cpu import grouped_sdpa
from lattend.attend.kernels.cpu import kernel as cpu
from lattend.attend.kernels.cpu.tile_group import TileGroup
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.plans.plan import plan
from lattend.rules.language.parser import parse_term
from lattend.rules.rule import Rule


def check(
    rule: Rule,
    *,
    batch: int = 2,
    heads: int = 3,
    kv_heads: int = 3,
    dtype: torch.dtype = torch.float32,
    data: dict[str, torch.Tensor] | None = None,
    bias: tuple[str, dict[str, torch.Tensor]] | None = None,
    plain: bool = False,
) -> None:
    """Compares with the reference; a plain call has what torch's own attention can take, and so takes it."""
    queries = prod(rule.values[axis.queries] for axis in rule.axes)
    keys = prod(rule.values[axis.keys] for axis in rule.axes)
    source = torch.Generator().manual_seed(0)
    D = 8 if plain else 5
    shapes = [(heads, queries, 8), (kv_heads, keys, 8), (kv_heads, keys, D), (heads, queries, D)]
    q, k, v, grad = (torch.randn(batch, *shape, generator=source).to(dtype) for shape in shapes)
    term, added = (None, {}) if bias is None else (parse_term(bias[0]), bias[1])
    call = AttentionCall(rule, 0.4, data=data or {}, term=term, bias=added)
    exact = [x.double() for x in (q, k, v, grad)]
    out, lse = reference.forward(call, *exact[:3])
    grad_lse = None if plain else torch.randn(lse.shape, generator=source).double()
    grads = reference.backward(
        call, BackwardInputs(exact[3], grad_lse, exact[0], exact[1], exact[2], out, lse)
    )
    expected = [out, lse, *grads[:3], *grads[3]]
    out, lse = cpu.forward(call, q, k, v)
    lse_too = None if grad_lse is None else grad_lse.float()
    *grads, biases = cpu.backward(call, BackwardInputs(grad, lse_too, q, k, v, out, lse))
    limit, least = TOLERANCE[dtype], 1.0 if plain else 1e-9  # without dlse, terms of size 1 may cancel
    for found, wanted in zip((out, lse, *grads, *biases), expected, strict=True):
        assert torch.equal(found == -torch.inf, wanted == -torch.inf)
        inside = wanted != -torch.inf
        error = (found.double() - wanted)[inside].norm() / (wanted[inside].norm() + least)
        assert error < limit, f"{rule}: off by {error:.1e}"


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("rule", LINES, ids=str)
def test_lines(rule: Rule, plain: bool) -> None:
    check(rule.at(n=41, **({"heads": 3} if rule.has_heads else {})), plain=plain)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("rule", IMAGES, ids=str)
def test_images(rule: Rule, plain: bool) -> None:
    check(rule.at(rows=5, cols=7), batch=1, plain=plain)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_numbers(dtype: torch.dtype, plain: bool) -> None:
    check(lt.rules.strided(t=9).at(n=41), heads=4, kv_heads=2, dtype=dtype, plain=plain)
    check(lt.rules.strided(t=9).at(n=17, m=41), heads=4, kv_heads=2, dtype=dtype, plain=plain)


@pytest.mark.parametrize("plain", [False, True])
def test_documents_that_differ_along_the_batch(plain: bool) -> None:
    ids = torch.tensor([[0] * 9 + [1] * 3 + [2] * 25, [4] * 30 + [3] * 7])
    check(lt.rules.documents(causal=True).at(n=37), data={"doc": ids}, plain=plain)
    check(lt.rules.documents().at(n=37), data={"doc": ids[0] % 2}, plain=plain)


def blocks(*shape: int) -> torch.Tensor:
    """A random table of blocks, its third row empty."""
    table = torch.rand(*shape, generator=torch.Generator().manual_seed(4)) < 0.4
    table[..., 2, :] = False
    return table


@pytest.mark.parametrize("n", [40, 37])
def test_random_blocks(n: int) -> None:
    check(lt.rules.bigbird(w=8, t=1, g=1, random=2, n=n))


def test_tables_of_blocks_given_at_call_time() -> None:
    rule = lt.rule("chosen[q // 4, k // 4]", data={"chosen": None})
    check(rule.at(n=21), data={"chosen": blocks(2, 6, 6)})
    check(rule.at(n=21), data={"chosen": blocks(2, 6, 6)}, plain=True)
    rule = lt.rule("chosen[q // 4, k // 8] > 0 and k <= q", data={"chosen": None})
    check(rule.at(n=21, m=19), data={"chosen": blocks(7, 5).to(torch.uint8)})
    rule = lt.rule("chosen[head, k // 1, q // 5] and doc[q] == doc[k]", data={"chosen": None, "doc": None})
    ids = torch.tensor([[0] * 9 + [1] * 12, [0] * 15 + [1] * 6])
    check(rule.at(n=21, heads=3), kv_heads=1, data={"chosen": blocks(3, 21, 5), "doc": ids})


def test_pairs_follow_the_attended_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    table = torch.eye(64, dtype=torch.int64) + torch.eye(64, dtype=torch.int64).roll(3, 0)
    rule = lt.rule("chosen[q // 16, k // 16]", data={"chosen": None}).at(n=1024)
    shapes: list[tuple[int, int, int]] = []
    add = cpu.OnlineSoftmax.add

    def counted(self: cpu.OnlineSoftmax, group: TileGroup, *given: torch.Tensor | None) -> None:
        shapes.append(group.shape)
        assert group.masked is None
        assert not group.masked_runs
        add(self, group, *given)

    monkeypatch.setattr(cpu.OnlineSoftmax, "add", counted)
    monkeypatch.setattr(grouped_sdpa, "takes", lambda *given: False)
    q = torch.zeros(1, 1, 1024, 8)
    cpu.forward(AttentionCall(rule, 1.0, data={"chosen": table}), q, q, q)
    assert shapes == [(64, 16, 32)]  # two blocks of keys for each block of queries


def test_a_learned_bias_gets_its_gradients() -> None:
    source = torch.Generator().manual_seed(3)
    slope, table = torch.randn(3, generator=source), torch.randn(3, 11, generator=source)
    term = "-slope[head]*abs(q - k) + table[head, k - q + 5]*slope[head] + scalar*q"
    bias = {"slope": slope, "table": table, "scalar": torch.tensor(0.1)}
    check(lt.rules.strided(t=5).at(n=37), bias=(term, bias))


@settings(max_examples=40, deadline=None)
@given(
    text=st.one_of(affine(), split()),
    n=st.integers(0, 12),
    t=st.integers(0, 6),
    w=st.integers(1, 5),
    plain=st.booleans(),
)
def test_random_rules(text: str, n: int, t: int, w: int, plain: bool) -> None:
    rule = lt.rule(text)
    values = {name: value for name, value in {"t": t, "w": w}.items() if name in rule.parameters}
    check(rule.at(n=n, **values), batch=1, heads=2, kv_heads=1, plain=plain)


def test_small_plain_work_is_a_call_of_torch_and_the_rest_is_not() -> None:
    def taken(rule: Rule, **changes: Any) -> bool:
        call = AttentionCall(rule, 0.4, **changes)
        groups = cpu._groups(plan(rule), 0, {}, remember=False)  # pyright: ignore[reportPrivateUsage]
        x = torch.empty(64, rule.values["n"], 64)
        return grouped_sdpa.takes(call, groups, x, x)

    assert taken(lt.rules.strided(t=9).at(n=64))
    assert not taken(lt.rules.strided(t=9).at(n=64), softcap=3.0)
    assert not taken(lt.rules.strided(t=9).at(n=64), seed=torch.zeros(2))
    assert not taken(lt.rules.strided(t=9).at(n=4096))


def test_a_query_in_two_groups_gets_both() -> None:
    """The second group is merged with the first; one that begins anew says so."""
    rule = lt.rules.sparse_strided(8).at(n=64)
    groups = cpu._groups(plan(rule), 0, {}, remember=False)  # pyright: ignore[reportPrivateUsage]
    assert [group.first for group in groups].count(False) > 0
    assert groups[0].first


def test_documents_bound_in_the_rule_execute_their_own_squares_only() -> None:
    rule = lt.rules.documents(lengths=[100] * 10)
    check(rule, batch=1, heads=1, kv_heads=1)
    groups = cpu._groups(plan(rule), 0, rule.data, remember=False)  # pyright: ignore[reportPrivateUsage]
    executed = sum(t * m * w for t, m, w in (group.shape for group in groups))
    assert executed < 3 * rule.total()  # of 10 times as many
