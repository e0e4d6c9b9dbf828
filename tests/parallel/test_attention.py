"""lt.parallel.attention: outputs, gradients and bytes are those of one process and of enumeration."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from gloo_ranks import Crew
from parallel_cases import Case, check, over_ranks

import lattend as lt
from lattend.machines import Machine

DOUBLE: Any = {"dtype": torch.float64}


def run(crew: Crew, case: Case) -> list[dict[str, Any]]:
    found = crew.run(case.ranks, over_ranks, case)
    check(case, found)
    return found


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize("rule", ["strided(5)", "k <= q", "sparse_fixed(6, 2)", "full"])
def test_each_number_of_ranks(crew: Crew, rule: str, ranks: int) -> None:
    run(crew, Case(rule, ranks, n=37))


@pytest.mark.parametrize("strategy", ["halo", "gather", "ring", "ulysses"])
@pytest.mark.parametrize("cut", [None, "zigzag"])
def test_strategies(crew: Crew, strategy: str, cut: str | None) -> None:
    for rule in ("strided(5)", "k <= q", "(q - k) % 4 == 0", "longformer(3, 2)"):
        found = run(crew, Case(rule, 4, strategy=strategy, cut=cut, heads=4, kv_heads=2))
        assert {one["strategy"] for one in found} == {strategy}


def test_the_strategy_of_fewest_bytes(crew: Crew) -> None:
    halo, *_ = run(crew, Case("strided(2)", 4, n=40))
    heads, *_ = run(crew, Case("k <= q", 4, n=40, heads=4, kv_heads=4))  # 3/4 of 10 * 28, and not of 40 * 28
    ring, *_ = run(crew, Case("k <= q", 4, n=40, heads=3, kv_heads=3))  # 3 heads on 4 ranks
    assert [one["strategy"] for one in (halo, heads, ring)] == ["halo", "ulysses", "ring"]


def test_the_quickest_strategy_where_a_cluster_is_described(crew: Crew) -> None:
    """Without it that of fewest bytes: keys come while a rank's own are computed, heads do not."""
    slow = lt.parallel.Cluster(Machine("slow", 1e9, 1e12, 8), 8, 1e9, 1e9, latency=0.0)
    full = Case("full", 4, n=40, heads=4, kv_heads=4)
    zigzag = replace(full, rule="causal", cut="zigzag")
    per_head = replace(full, rule="k <= q + head and head < heads")
    documents = replace(full, rule="doc[q] == doc[k]", values={"doc": torch.arange(40) // 9})
    cases = {"ring": full, "halo": replace(zigzag, ranks=3, n=42, heads=3, kv_heads=3)}
    for quickest, case in cases.items():
        assert run(crew, case)[0]["strategy"] == "ulysses"
        assert run(crew, replace(case, cluster=slow))[0]["strategy"] == quickest
    for case in (per_head, documents):  # their pairs are not counted: as without a cluster
        found = [run(crew, replace(case, cluster=one))[0]["strategy"] for one in (None, slow)]
        assert len(set(found)) == 1


@pytest.mark.parametrize("lengths", [(5, 0, 18), (0, 0, 23), (1, 21, 1), (23, 0, 0), (7, 8, 8)])
def test_shards_of_any_length(crew: Crew, lengths: tuple[int, ...]) -> None:
    for strategy in ("halo", "ring"):
        run(crew, Case("abs(q - k) <= 6", 3, cut=lengths, strategy=strategy))
    run(crew, Case("k <= q", 3, cut=lengths, heads=3, kv_heads=1))


def test_lengths_of_eight_bits(crew: Crew) -> None:
    padding = torch.tensor([130, 200], dtype=torch.uint8)
    run(crew, Case("strided(5)", 2, n=300, padding=padding, heads=2, kv_heads=1))


def test_one_rank(crew: Crew) -> None:
    found = run(crew, Case("strided(3)", 1, bias=("-s[head]*(q - k)", {"s": torch.rand(4, **DOUBLE)})))
    assert found[0]["forward"] == 0


# Options


OPTIONS: dict[str, dict[str, Any]] = {
    "softcap and scale": {"options": {"softcap": 2.0, "scale": 0.3}},
    "sinks": {"sinks": torch.tensor([0.5, -1.0, 0.0, 2.0], **DOUBLE)},
    "lengths": {"padding": torch.tensor([9, 23])},
    "mask": {"padding": torch.arange(46).view(2, 23) % 5 != 0},
    "dropout": {"options": {"dropout": 0.3}},
    "ALiBi": {"bias": ("-slope[head]*abs(q - k)", {"slope": torch.tensor([0.5, 0.2, 0.1, 0.3], **DOUBLE)})},
    "relative": {"bias": ("r[head, min(max(k - q + 3, 0), 6)]", {"r": torch.randn(4, 7, **DOUBLE)})},
    "table": {"bias": torch.randn(4, 23, 23, **DOUBLE)},
    "batch table": {"bias": torch.randn(2, 1, 23, 23, **DOUBLE)},
    "all": {
        "options": {"softcap": 3.0, "dropout": 0.2},
        "sinks": torch.tensor([0.5, -1.0, 0.0, 2.0], **DOUBLE),
        "padding": torch.arange(46).view(2, 23) % 4 != 1,
        "bias": ("a[head]*(q - n) + b*k", {"a": torch.rand(4, **DOUBLE), "b": torch.tensor(0.1, **DOUBLE)}),
    },
}


@pytest.mark.parametrize("option", OPTIONS)
def test_options(crew: Crew, option: str) -> None:
    by_heads = [] if "table" in option else ["ulysses"]
    for strategy in ("halo", "ring", *by_heads):
        case = Case("sparse_fixed(6, 2)", 2, strategy=strategy, **OPTIONS[option])
        run(crew, case)
        run(crew, replace(case, cut="zigzag"))


def test_per_head_rules(crew: Crew) -> None:
    for strategy in ("halo", "ring", "ulysses"):
        run(crew, Case("k <= q and q - k <= 2*head + 1 and head < heads", 2, strategy=strategy))


def test_documents(crew: Crew) -> None:
    ids = torch.tensor([[0] * 4 + [1] * 9 + [2] * 10, [3] * 12 + [1] * 2 + [0] * 9])
    mixed = torch.randint(0, 3, (23,), generator=torch.Generator().manual_seed(1))
    for rule in ("doc[q] == doc[k]", "k <= q and doc[q] == doc[k]", "abs(q - k) <= 4 or doc[k] == 1"):
        for doc in (ids, mixed):
            run(crew, Case(rule, 3, values={"doc": doc}))
    run(crew, Case(lt.rules.documents(lengths=[4, 9, 10], causal=True), 3))
    run(crew, Case("k <= q and doc[q] == doc[k]", 2, values={"doc": ids}, strategy="ulysses", cut="zigzag"))


def test_images(crew: Crew) -> None:
    for rule, values in (
        ("neighbourhood", {"r": 1}),
        ("swin", {"w": 4, "shift": 2}),
        ("axial", {}),
        ("raster", {}),
    ):
        run(crew, Case(rule, 3, n=40, shape=(8, 5), values=values, strategy="halo"))
    flat = Case("neighbourhood(1)", 3, n=40, values={"rows": 8, "cols": 5}, strategy="halo", cut=(11, 13, 16))
    run(crew, flat)  # cut within rows
    biased: Any = {
        "bias": (
            "a[head]*(qx - kx) + abs(qy - ky)*b",
            {"a": torch.rand(4, **DOUBLE), "b": torch.rand((), **DOUBLE)},
        )
    }
    run(crew, Case("neighbourhood(1)", 2, n=40, shape=(8, 5), **biased))


SCATTERED: dict[str, dict[str, Any]] = {
    "plain": {},
    "dropout": OPTIONS["dropout"],
    "lengths": {"padding": torch.tensor([81, 120])},
}


@pytest.mark.parametrize("option", SCATTERED)
def test_keys_in_many_runs_are_looked_up(crew: Crew, option: str) -> None:
    rule = "k <= q and (q - k <= 3 or k % 7 == 0 or k % 5 == 1)"
    for strategy in ("halo", "ring"):
        run(crew, Case(rule, 2, n=120, strategy=strategy, **SCATTERED[option]))


# Blocks of an image


def run_blocks(crew: Crew, case: Case) -> None:
    """On all eight ranks; where a mesh has fewer, as often as they go into eight."""
    found = crew.run(8, over_ranks, case)
    for first in range(0, 8, case.ranks):
        check(case, found[first : first + case.ranks])


MESHES: dict[str, dict[str, tuple[int, ...]]] = {
    "2 × 2": {"rows": (5, 4), "cols": (3, 4)},
    "4 × 2": {"rows": (3, 1, 2, 3), "cols": (4, 3)},
    "2 × 4": {"rows": (2, 7), "cols": (2, 0, 1, 4)},
    "columns": {"cols": (2, 3, 1, 1)},
}


@pytest.mark.parametrize("mesh", MESHES)
def test_blocks_of_an_image(crew: Crew, mesh: str) -> None:
    blocks = MESHES[mesh]
    ranks = math.prod(map(len, blocks.values()))
    case = Case("neighbourhood(1)", ranks, n=63, shape=(9, 7), blocks=blocks, heads=2, kv_heads=1, batch=1)
    run_blocks(crew, case)
    for rule in ("neighbourhood(3)", "axial", "swin(4, 2)", "(qy - ky) % 2 == 0 and qx <= kx"):
        run_blocks(crew, replace(case, rule=rule, strategy="halo"))
    marks = np.random.default_rng(2).integers(0, 2, (9, 7))
    strewn = lt.rule("abs(qy - ky) <= 3 and mark[ky, kx] == 1", data={"mark": marks})
    run_blocks(crew, replace(case, rule=strewn, strategy="halo"))


BLOCK_OPTIONS: dict[str, dict[str, Any]] = {
    **{name: OPTIONS[name] for name in ("softcap and scale", "sinks", "dropout")},
    "lengths": {"padding": torch.tensor([30, 56])},
    "mask": {"padding": torch.arange(126).view(2, 63) % 5 != 0},
    "relative": {"bias": ("p[head, min(max(kx - qx + 3, 0), 6)]", {"p": torch.randn(4, 7, **DOUBLE)})},
    "table": {"bias": torch.randn(4, 63, 63, **DOUBLE)},
    "heads": {"rule": "abs(qy - ky) <= head and abs(qx - kx) <= 1"},
    "looked up": {
        "rule": "abs(qy - ky) <= 2 and group[qx] == group[kx]",
        "values": {"group": torch.tensor([0, 1, 1, 0, 2, 0, 1])},
    },
}


@pytest.mark.parametrize("option", BLOCK_OPTIONS)
def test_options_on_blocks(crew: Crew, option: str) -> None:
    how = {"rule": "neighbourhood(2)", **BLOCK_OPTIONS[option]}
    case = Case(**how, ranks=4, n=63, shape=(9, 7), blocks=MESHES["2 × 2"])
    for strategy in ("halo", "ring"):
        run_blocks(crew, replace(case, strategy=strategy))


def test_blocks_of_a_volume(crew: Crew) -> None:
    rule = "abs(qz - kz) <= 1 and abs(qy - ky) <= 1 and abs(qx - kx) <= 1"
    for blocks in (
        {"depth": (2, 2), "rows": (1, 2), "cols": (3, 2)},
        {"rows": (2, 1), "cols": (3, 2)},
        {"depth": (1, 3), "cols": (3, 2)},
    ):
        ranks = 2 ** len(blocks)
        case = Case(rule, ranks, n=60, shape=(4, 3, 5), blocks=blocks, heads=2, kv_heads=2, batch=1)
        run_blocks(crew, case)
        run_blocks(crew, replace(case, options={"dropout": 0.3}))


CATALOGUE = [
    "band(2, 3)", "causal", "chunked(5, 1)", "dilated(3, 2)", "longformer(3, 2)", "prefix_lm(5)",
    "sinks(2, 4)", "sparse_strided(5)", "windowed(5)", "bigbird(4, 1, 1)",
]  # fmt: skip


@pytest.mark.parametrize("rule", CATALOGUE)
def test_the_catalogue(crew: Crew, rule: str) -> None:
    run(crew, Case(rule, 3))
