"""The tables of docs/devices.md are what plans say."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

import lattend as lt
from lattend.budget import Budget
from lattend.parallel.reached import crossing
from lattend.parallel.shard_plan import ShardPlan, plan
from lattend.report.numbers import seconds, short_bytes

PAGE = (Path(__file__).parents[2] / "docs" / "devices.md").read_text()
SHAPE: dict[str, Any] = {"heads": 32, "kv_heads": 8, "head_dim": 128, "ranks": 8}
LINE: dict[str, Any] = {"n": 2**20}
IMAGE: dict[str, Any] = {"rows": 1024, "cols": 1024}
TEN = [  # the rule, its sizes and cut, and its halo
    ("causal", LINE, "zigzag", "a"),
    ("strided(255)", LINE, "contiguous", "t"),
    ("strided(1023)", LINE, "contiguous", "t"),
    ("strided(4095)", LINE, "contiguous", "t"),
    ("windowed(256)", LINE, "contiguous", "a % w"),
    ("windowed(1024)", LINE, "contiguous", "a % w"),
    ("neighbourhood(3)", IMAGE, "contiguous", "2·r·cols"),
    ("neighbourhood(6)", IMAGE, "contiguous", "2·r·cols"),
    ("sparse_strided(128)", LINE, "zigzag", "a"),
    ("sparse_fixed(l=128, c=8)", LINE, "zigzag", "c·(a // l) + a % l"),
]
BALANCED = (
    *("causal", "strided(4095)", "prefix_lm(65536)", "longformer(t=2048, g=64)", "sparse_strided(128)"),
    "sparse_fixed(l=128, c=8)",
)
BILLION = [
    ("causal", {"n": 10**9}),
    ("strided(4095)", {"n": 10**9}),
    ("windowed(1024)", {"n": 10**9}),
    ("sparse_fixed(l=128, c=8)", {"n": 10**9}),
    ("neighbourhood(6)", {"rows": 31623, "cols": 31623}),
]


planned: Any = plan  # arguments come in dictionaries


def one(found: ShardPlan, name: str) -> Any:
    return next(strategy for strategy in found.strategies if strategy.name == name)


def ten_row(rule: str, sizes: dict[str, Any], cut: str, formula: str) -> str:
    """A rule's halo and bytes as formulas, those of the fullest rank, and what others move."""
    found = planned(rule, **SHAPE, **sizes)
    halo = next(some for some in found.strategies if (some.name, some.cut) == ("halo", cut))
    product = formula if formula.isalpha() or "·r·" in formula else f"({formula})"
    others = " | ".join(short_bytes(one(found, name).forward) for name in ("ring", "Ulysses"))
    keys = f"{int(found.shares[cut].halo.max()):,}"
    return f"| {rule} | `{formula}` | {keys} | `4096·{product}` | {short_bytes(halo.forward)} | {others} |"


def balance_row(rule: str) -> str:
    shares = planned(rule, **SHAPE, **LINE).shares
    cells = (f"{share.balance:.3f}, {int(share.halo.max()):,}" for share in shares.values())
    return f"| {rule} | {' | '.join(cells)} |"


def billion_row(rule: str, sizes: dict[str, Any]) -> str:
    found = planned(rule, **{**SHAPE, "ranks": 1024}, **sizes)
    gets, time = short_bytes(found.chosen.forward), seconds(found.chosen.time)
    others = " | ".join(seconds(one(found, name).time) for name in ("ring", "all-gather"))
    return f"| {rule} | {found.chosen.label} | {gets} | {time} | {others} |"


@pytest.mark.parametrize("row", TEN, ids=lambda row: row[0])
def test_ten_rules(row: tuple[str, dict[str, Any], str, str]) -> None:
    assert ten_row(*row) in PAGE


HALOS = {
    "causal": ("a", "a < b"),
    "strided": ("t", "t <= a, a < b"),
    "windowed": ("a % w", "a < b, w | b, w | n"),
    "neighbourhood": ("2*r*cols", "r <= a, a < b, b <= rows - r"),
    "sparse_strided": ("a", "a < b, l | a, l | b, l | n"),
    "sparse_fixed": ("c*(a // l) + a % l", "a < b, l | b, l | n"),
}


@pytest.mark.parametrize("name", HALOS)
def test_the_formulas_of_the_table_are_proved(name: str) -> None:
    formula, assuming = HALOS[name]
    patient = replace(lt.rules.CATALOGUE[name](), budget=Budget(inf))
    assert crossing(patient).halo.claim(formula, assuming=assuming)


@pytest.mark.parametrize("rule", BALANCED)
def test_balance(rule: str) -> None:
    assert balance_row(rule) in PAGE


@pytest.mark.parametrize("row", BILLION, ids=lambda row: row[0])
def test_a_billion(row: tuple[str, dict[str, Any]]) -> None:
    assert billion_row(*row) in PAGE
