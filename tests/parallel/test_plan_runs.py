"""What lt.parallel.plan says is moved, and what is moved: the same bytes."""

from __future__ import annotations

import pytest
from gloo_ranks import Crew
from parallel_cases import Case, moved, moved_on_blocks

import lattend as lt

RUN_AS = {"halo": "halo", "halo, staged": "ring", "Ulysses": "ulysses", "all-gather": "gather"}


@pytest.mark.parametrize(
    "rule", ["strided(5)", "k <= q", "sparse_fixed(6, 2)", "abs(q - k) <= 13", "windowed(10)"]
)
def test_bytes_are_those_of_the_plan(crew: Crew, rule: str) -> None:
    sizes = {"heads": 4, "kv_heads": 2, "head_dim": 4, "value_dim": 3, "batch": 2}
    plan = lt.parallel.plan(rule, n=40, ranks=4, dtype="float64", cut="contiguous", **sizes)  # pyright: ignore
    known = {one.name: one for one in plan.strategies}
    for name, strategy in RUN_AS.items():
        forward, backward = zip(*crew.run(4, moved, rule, strategy, 40), strict=True)
        assert (max(forward), max(backward)) == (known[name].forward, known[name].backward), name


@pytest.mark.parametrize("rule", ["neighbourhood(1)", "neighbourhood(3)", "axial", "swin(4, 2)"])
def test_bytes_of_blocks_are_those_of_the_plan(crew: Crew, rule: str) -> None:
    blocks = {"rows": (3, 2, 2, 2), "cols": (4, 3)}
    case = Case(rule, 8, n=63, shape=(9, 7), blocks=blocks, heads=2, kv_heads=1, batch=1)
    sizes = {"heads": 2, "kv_heads": 1, "head_dim": case.width, "value_dim": case.value_width}
    plan = lt.parallel.plan(rule, rows=9, cols=7, ranks=8, dtype="float64", cut=(4, 2), **sizes)  # pyright: ignore
    known = {one.name: one for one in plan.strategies}
    for name, strategy in (("halo", "halo"), ("halo, staged", "ring"), ("all-gather", "gather")):
        forward, backward = zip(*crew.run(8, moved_on_blocks, rule, strategy, case), strict=True)
        assert (max(forward), max(backward)) == (known[name].forward, known[name].backward), name
