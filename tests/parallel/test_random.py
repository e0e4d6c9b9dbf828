"""Random rules, cuts and options over ranks, against one process and enumeration."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import torch
from gloo_ranks import Crew
from hypothesis import given, settings
from hypothesis import strategies as st
from parallel_cases import Case, check, over_ranks
from random_rules import affine, split

DOUBLE: Any = {"dtype": torch.float64}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A rule, a cut and options."""
    symbolic = draw(st.booleans())
    rule = draw(split() if symbolic else affine())
    ranks, n = draw(st.sampled_from([2, 3, 4])), draw(st.integers(1, 26))
    values = {name: draw(st.integers(1, 6)) for name in ("t", "w") if name in rule.replace("not", "")}
    heads, kv_heads = draw(st.sampled_from([(2, 1), (4, 4), (4, 2), (3, 3)]))
    lengths = draw(st.lists(st.integers(0, n), min_size=ranks - 1, max_size=ranks - 1).map(sorted))
    ends = [0, *lengths, n]
    anyhow = tuple(b - a for a, b in pairwise(ends))
    strategies: list[Any] = [None, "halo", "ring", "gather"]
    if heads % ranks == 0 and (
        heads // ranks % (heads // kv_heads) == 0 or (heads // kv_heads) % (heads // ranks) == 0
    ):
        strategies.append("ulysses")
    seed = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    more: dict[str, Any] = {}
    if draw(st.booleans()):
        more["padding"] = draw(
            st.sampled_from(
                [torch.randint(0, n + 1, (2,), generator=seed), torch.rand(2, n, generator=seed) < 0.7]
            )
        )
    if draw(st.booleans()):
        more["sinks"] = torch.randn(heads, generator=seed, **DOUBLE)
    if draw(st.booleans()):
        more["bias"] = (
            "a[head]*(q - k) + b*q",
            {
                name: torch.rand(shape, generator=seed, **DOUBLE)
                for name, shape in (("a", (heads,)), ("b", ()))
            },
        )
    options = {"dropout": draw(st.sampled_from([0.0, 0.4])), "softcap": draw(st.sampled_from([None, 1.5]))}
    return Case(
        rule, ranks, n=n, heads=heads, kv_heads=kv_heads, cut=draw(st.sampled_from([None, "zigzag", anyhow])),
        strategy=draw(st.sampled_from(strategies)), values=values, options=options, **more,
    )  # fmt: skip


@settings(max_examples=60)
@given(case=cases())
def test_any_rule_cut_and_options(crew: Crew, case: Case) -> None:
    check(case, crew.run(case.ranks, over_ranks, case))


@st.composite
def block_cases(draw: st.DrawFn) -> Case:
    """A rule on an image, a condition an axis, cut into blocks of any size."""
    down, across = (draw(affine()) for _ in "yx")
    by_axis = [
        re.sub(r"\b(q|k|n)\b", lambda name, at=at, size=size: {"n": size}.get(name[0], name[0] + at), text)
        for text, at, size in ((down, "y", "rows"), (across, "x", "cols"))
    ]
    rule = f"({by_axis[0]}) {draw(st.sampled_from(['and', 'or']))} ({by_axis[1]})"
    blocks: dict[str, tuple[int, ...]] = {}
    for name, count in draw(
        st.sampled_from([{"rows": 2, "cols": 2}, {"rows": 4, "cols": 2}, {"cols": 4}])
    ).items():
        lengths = st.lists(st.integers(0, 4), min_size=count, max_size=count)
        blocks[name] = tuple(draw(lengths.filter(any)))
    shape = sum(blocks.get("rows", (draw(st.integers(1, 6)),))), sum(blocks["cols"])
    ranks = math.prod(map(len, blocks.values()))
    strategy, drops = (
        draw(st.sampled_from([None, "halo", "ring", "gather"])),
        draw(st.sampled_from([0.0, 0.3])),
    )
    how: dict[str, Any] = {
        "options": {"dropout": drops},
        "strategy": strategy,
        "values": {"t": draw(st.integers(0, 4))},
    }
    if "t" not in re.findall(r"\w+", rule):
        how["values"] = {}
    n = shape[0] * shape[1]
    if draw(st.booleans()):
        how["padding"] = torch.randint(0, n + 1, (1,), generator=torch.Generator().manual_seed(n))
    return Case(rule, ranks, n=n, heads=2, kv_heads=1, batch=1, shape=shape, blocks=blocks, **how)


@settings(max_examples=30)
@given(case=block_cases())
def test_any_blocks(crew: Crew, case: Case) -> None:
    found = crew.run(8, over_ranks, case)
    for first in range(0, 8, case.ranks):
        check(case, found[first : first + case.ranks])


@st.composite
def data_cases(draw: st.DrawFn) -> Case:
    """A rule that looks up arrays, given whole."""
    n, ranks = draw(st.integers(2, 24)), draw(st.sampled_from([2, 3]))
    rule = draw(
        st.sampled_from(
            [
                "doc[q] == doc[k]",
                "doc[k] == doc[q] and k <= q",
                "q - k <= 3 and k <= q and doc[q] == doc[k] + 1",
                "doc[q] == doc[k] or k < 2",
                "doc[k] > q",
                "abs(q - k) <= 2 and doc[q // 2] == 1",
            ]
        )
    )
    shape = draw(st.sampled_from([(n,), (2, n)]))
    numbers = draw(st.lists(st.integers(0, 4), min_size=2 * n, max_size=2 * n))
    doc = torch.tensor(numbers)[: shape[0] * (n if len(shape) > 1 else 1)].view(shape)
    cut, strategy = (
        draw(st.sampled_from([None, "zigzag"])),
        draw(st.sampled_from([None, "halo", "ring", "gather"])),
    )
    how: dict[str, Any] = {"values": {"doc": doc}, "cut": cut, "strategy": strategy}
    return Case(rule, ranks, n=n, heads=2, kv_heads=1, **how)


@settings(max_examples=25)
@given(case=data_cases())
def test_any_array(crew: Crew, case: Case) -> None:
    check(case, crew.run(case.ranks, over_ranks, case))
