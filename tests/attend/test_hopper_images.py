"""Gradients of keys on images by the kernel for Hopper, run without one: in an emulator, against float64."""

from __future__ import annotations

from typing import Any

import gluon_emulator as emulator
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.attend.call import AttentionCall, BackwardInputs
from lattend.attend.kernels import reference
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.kernels.triton.hopper import launches
from lattend.attend.kernels.triton.launch import Runner
from lattend.attend.kernels.triton.shapes import TileShape, choose
from lattend.attend.tape import Tape
from lattend.plans.plan import plan
from lattend.rules.rule import Rule

R, DTYPE, PROGRAMS = lt.rules, torch.bfloat16, 3
CUTS = (((16, 8), (4, 16)), ((16, 8), (8, 8)), ((32, 4), (4, 16)), ((32, 4), (2, 32)))
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds from which schedules are drawn: the last one."""
    found = [0]

    def instead(tape: Tape, kernel: Any, programs: int, arguments: Any, constants: Any) -> None:
        emulator.launch(kernel, min(programs, PROGRAMS), arguments, constants, found[-1])

    monkeypatch.setattr(launches.launched, "launch", instead)
    return found


def check(rule: Rule, cut: tuple[tuple[int, ...], tuple[int, ...]], heads: int = 2, wide: int = 32) -> None:
    """Gradients of keys and values against the reference in float64; memory is full of NaN before."""
    outer, inner = cut
    shape = TileShape(outer, inner[0] * inner[1], 12, 3, True, inner=inner, hopper=True)
    n, source = rule.values["rows"] * rule.values["cols"], torch.Generator().manual_seed(1)
    q, k, v, grad = (torch.randn(2, heads, n, size, generator=source) for size in (32, 32, wide, wide))
    q, k, v, grad = (x.to(DTYPE) for x in (q, k, v, grad))
    call, exact = AttentionCall(rule, 0.3), BackwardInputs(grad, None, q, k, v, q, q)
    exact = exact._replace(**{name: getattr(exact, name).double() for name in ("grad_out", "q", "k", "v")})
    out, lse = reference.forward(call, exact.q, exact.k, exact.v)
    _, *wanted, _ = reference.backward(call, exact._replace(out=out, lse=lse))
    assert all(part.exact for part in plan(rule).transposed)
    runner = Runner(plan(rule), q.device, shapes=lambda kernel, place: shape)
    inputs = BackwardInputs(grad, None, q, k, v, out.to(DTYPE), lse.float())
    delta = (out * exact.grad_out).sum(-1).float()
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    found = runner.backward_dkdv(Tape(), call, inputs, delta, {})
    torch.use_deterministic_algorithms(before)
    for one, other in zip(found, wanted, strict=True):
        error = (one.double() - other).norm() / (other.norm() + 1e-9)
        assert error < TOLERANCE[DTYPE], f"{rule}, {cut}: off by {error:.1e}"


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_neighbourhoods(cut: tuple[tuple[int, ...], tuple[int, ...]], seeds: list[int]) -> None:
    check(R.neighbourhood(r=3).at(rows=20, cols=17), cut)


@pytest.mark.parametrize(
    "rule",
    [
        R.swin(w=12, shift=5).at(rows=28, cols=20),
        lt.rule("abs(qy - ky) <= 1 and kx <= qx and qy > 7").at(rows=20, cols=12),  # keys that nobody sees
        lt.rule("abs(qy - ky) <= head and abs(qx - kx) <= 2").at(rows=17, cols=9, heads=2),
        lt.rule("ky > qy + 90 and kx <= qx").at(rows=17, cols=9),  # nobody sees any
    ],
    ids=str,
)
def test_other_rules(rule: Rule, seeds: list[int]) -> None:
    check(rule, CUTS[0])


@given(
    up=st.integers(-9, 9), down=st.integers(-9, 9), left=st.integers(-9, 9), right=st.integers(-9, 9),
    rows=st.integers(1, 40), cols=st.integers(1, 24), cut=st.sampled_from(CUTS), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=12, deadline=None, suppress_health_check=SLOW)
def test_random_rectangles(
    up: int, down: int, left: int, right: int, rows: int, cols: int, cut: Any, seed: int, seeds: list[int]
) -> None:
    seeds.append(seed)
    text = f"ky - qy >= {up} and ky - qy <= {down} and kx - qx >= {left} and kx - qx <= {right}"
    rule = lt.rule(text).at(rows=rows, cols=cols)
    if plan(rule).parts:
        check(rule, cut, heads=1, wide=24)


def test_it_is_chosen_where_it_can_run() -> None:
    def taken(rule: Rule, **options: Any) -> bool:
        found = plan(rule, rows=128, cols=128)
        return choose(found, 0, "backward_dkdv", 128, torch.bfloat16, **options).shape.hopper

    assert taken(R.neighbourhood(r=3), hopper=True)
    assert not taken(R.neighbourhood(r=3))
    assert not taken(R.neighbourhood(r=3, step=2), hopper=True)
    assert not taken(R.neighbourhood(r=3, edge="shift"), hopper=True)
    assert not taken(lt.rule("abs(qy - ky) + abs(qx - kx) <= 3"), hopper=True)
