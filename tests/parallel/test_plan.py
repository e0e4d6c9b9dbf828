"""lt.parallel.plan: known figures, formulas and claims, edges, strategies, words and errors."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.budget import Budget
from lattend.errors import DomainError, LattendError, NamingError, TooLarge
from lattend.parallel.cluster import Cluster, cluster_of
from lattend.parallel.layout import Cut, contiguous, of_lengths
from lattend.parallel.reached import crossing
from lattend.parallel.shard_plan import ShardPlan, joined, plan
from lattend.parallel.strategies import Strategy

GiB, MiB = 1 << 30, 1 << 20
LLAMA: dict[str, Any] = {"heads": 32, "kv_heads": 8, "head_dim": 128}


def named(found: ShardPlan, name: str) -> Strategy:
    return next(one for one in found.strategies if one.name == name)


def test_the_known_figure() -> None:
    found = plan("strided(4095)", n=2**20, ranks=8, **LLAMA)
    assert found.chosen.label == "halo, contiguous"
    assert found.chosen.forward == 4095 * 8 * (128 + 128) * 2 == 16 * MiB - 4096
    assert named(found, "ring").forward == named(found, "all-gather").forward == 3.5 * GiB
    assert named(found, "Ulysses").forward == 2.1875 * GiB
    assert found.share.halo.tolist() == [0] + [4095] * 7
    # 131072 queries: the first 4,095 of the line have fewer keys
    assert found.share.pairs.tolist() == [131072 * 4096 - 4095 * 4096 // 2] + [131072 * 4096] * 7


def test_formulas_of_a_shard_and_of_a_rank() -> None:
    found = plan("strided", t=3, n=64, ranks=8)
    assert str(found.halo) == "t  when t <= a < b\na  when a < t and a < b\n0  otherwise"
    assert found.halo.claim("min(t, a)", assuming="a < b")
    assert found.pairs.claim("(b - a)(t + 1)", assuming="a >= t")
    assert not found.pairs.claim("(b - a)*t", assuming="a >= t")
    assert found.rank_pairs.claim(
        "shard*(t + 1)", assuming="t < shard, shard | n, 1 <= rank, rank < n // shard"
    )
    assert found.rank_halo.claim("t", assuming="t <= shard, shard | n, 1 <= rank, rank < n // shard")
    for rank, (a, b) in enumerate(piece for (piece,) in found.layout.cuts[0].pieces):
        values = {"n": 64, "t": 3}
        assert found.pairs.at(**values, a=a, b=b) == found.share.pairs[rank]
        assert found.halo.at(**values, a=a, b=b) == found.share.halo[rank]
        assert found.rank_pairs.at(**values, shard=8, rank=rank) == found.share.pairs[rank]
        assert found.rank_halo.at(**values, shard=8, rank=rank) == found.share.halo[rank]


def test_letters_that_a_rule_has_are_not_taken_twice() -> None:
    found = plan("k <= q and q - k <= a + rank", a=2, rank=1, n=20, ranks=4)
    assert found.halo.at(n=20, a=2, rank=1, a_=5, b_=10) == 3
    assert found.rank_halo.at(n=20, a=2, rank=1, shard_=5, rank_=1) == 3


def test_blocks_of_an_image_in_closed_form() -> None:
    found = plan("neighbourhood(r=2)", rows=16, cols=12, ranks=6, cut=(2, 3))
    assert found.layout.name == "2 × 3 blocks"
    halo = crossing(replace(lt.rules.neighbourhood(), budget=Budget(inf)), axes=2).halo
    for rank in range(6):
        ((a, b), (c, d)) = found.layout.boxes(rank)[0]
        around = (min(16, b + 2) - max(0, a - 2)) * (min(12, d + 2) - max(0, c - 2))
        assert found.share.halo[rank] == around - (b - a) * (d - c)
        assert halo.at(rows=16, cols=12, r=2, a=a, b=b, c=c, d=d) == found.share.halo[rank]


@settings(max_examples=25)
@given(
    st.sampled_from(
        ["strided(3)", "causal", "windowed(4)", "sparse_fixed(l=4, c=1)", "sparse_strided(l=3)",
         "dilated(t=2, step=3)", "longformer(t=2, g=1)", "documents([5, 9, 4, 12])"]
    ),
    st.sampled_from(["contiguous", "zigzag", "balanced"]),
    st.integers(1, 7),
)  # fmt: skip
def test_edges_are_the_keys_that_the_mask_says(text: str, cut: str, ranks: int) -> None:
    rule = lt.rule(text)
    sizes: dict[str, Any] = {} if "n" in rule.values else {"n": 30}
    planned: Any = plan
    found = planned(rule, ranks=ranks, cut=cut, **sizes)
    mask = found.rule.mask()
    pieces = [[p for a, b in some for p in range(a, b)] for some in found.layout.cuts[0].pieces]
    for rank in range(ranks):
        seen = set(np.flatnonzero(mask[pieces[rank]].any(0)).tolist())
        edges = {edge.source: edge for edge in found.edges(rank)}
        for source in range(ranks):
            wanted = sorted(seen & set(pieces[source])) if source != rank else []
            keys = (
                [p for box in edges[source].keys for p in box.flat(mask.shape[1:]).tolist()]
                if source in edges
                else []
            )
            assert keys == wanted
            assert found.keys_from(rank).get(source, 0) == len(wanted)
        assert found.share.sent[rank] == sum(
            len({*np.flatnonzero(mask[pieces[other]].any(0)).tolist()} & {*pieces[rank]})
            for other in range(ranks)
            if other != rank
        )


def test_balance_of_causal_attention() -> None:
    found = plan("causal", n=2**16, ranks=8, **LLAMA)
    assert found.shares["contiguous"].balance == pytest.approx(15 / 8, rel=1e-3)
    assert found.shares["zigzag"].balance == pytest.approx(1, rel=1e-3)
    assert found.shares["balanced"].balance == pytest.approx(1, rel=1e-3)
    assert named(found, "ring").cut != "contiguous"


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        *[(text, {"n": n}) for text in ("causal", "windowed(64)", "k < 3") for n in (0, 5, 12345)],
        ("neighbourhood(3)", {"rows": 32, "cols": 30}),
        ("raster", {"rows": 100, "cols": 7}),
        ("abs(qy - ky) + abs(qx - kx) <= 2", {"rows": 100, "cols": 7}),  # read row by row
    ],
)
def test_a_balanced_cut_joined_is_that_of_fewer_ranks(text: str, sizes: dict[str, Any]) -> None:
    whole = plan(text, ranks=24, cut="balanced", **sizes).layout
    for groups in (2, 8, 24):
        assert joined(whole, groups) == plan(text, ranks=24 // groups, cut="balanced", **sizes).layout


def test_heads_that_cannot_be_shared_are_said() -> None:
    found = plan("causal", n=4096, ranks=6, heads=4)
    assert not any("Ulysses" in one.name and "×" not in one.name for one in found.strategies)
    assert "6 ranks do not share 4 heads on 4 of keys and values" in str(found)
    per_head = plan("k <= q and q - k <= 8*head", n=4096, ranks=4, heads=4)
    assert "differs between heads" in str(per_head)
    assert sum(per_head.share.pairs) == lt.rule("k <= q and q - k <= 8*head").count(n=4096, heads=4)


def test_what_does_not_fit_in_memory_is_not_chosen() -> None:
    found = plan("causal", n=10**8, ranks=64, **LLAMA)
    assert not named(found, "all-gather").fits(found.cluster)
    assert found.chosen.fits(found.cluster)
    assert "Too large for the memory of one device" in str(found)


def test_slower_links_take_longer_and_more_machines_less() -> None:
    def seconds(text: str, ranks: int = 16) -> float:
        return named(plan("causal", n=2**18, ranks=ranks, cluster=text, cut="zigzag", **LLAMA), "halo").time

    assert seconds("infiniband=1GB/s") > seconds("infiniband=50GB/s") > seconds("infiniband=50GB/s", 32)
    assert seconds("machine=A100") > seconds("machine=H100")


def test_one_rank_and_ranks_without_queries() -> None:
    alone = plan("causal", n=64, ranks=1)
    assert alone.chosen.forward == 0
    assert alone.share.pairs.tolist() == [64 * 65 // 2]
    many = plan("causal", n=3, ranks=8)
    assert many.share.pairs.tolist() == [1, 2, 3, 0, 0, 0, 0, 0]
    assert "nothing" in str(many)
    assert str(plan("causal", n=0, ranks=2))


def test_a_cut_of_ones_own() -> None:
    found = plan("strided(2)", n=10, ranks=3, cut=of_lengths([7, 0, 3]))
    assert found.share.halo.tolist() == [0, 0, 2]
    with pytest.raises(DomainError, match="the cut is one of 9 positions over 3 ranks, not 10 over 3"):
        plan("strided(2)", n=10, ranks=3, cut=contiguous(9, 3))


def test_a_billion_positions_on_1024_ranks() -> None:
    found = plan("strided(4095)", n=10**9, ranks=1024, **LLAMA)
    assert found.share.halo.tolist() == [0] + [4095] * 1023
    assert sum(found.share.pairs) == lt.rules.strided(t=4095).count(n=10**9)
    (edge,) = found.edges(512)
    assert (edge.source, edge.total) == (511, 4095)
    assert len(str(found).splitlines()) < 60
    assert len(found.json()["cuts"][0]["pairs"]) == 1024


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"ranks": 0}, "ranks = 0 is not one of 1 … 65,536"),
        ({"ranks": 2.5}, "ranks must be an integer, got 2.5"),
        ({"ranks": 4, "heads": 6, "kv_heads": 4}, "heads = 6 is no multiple of kv_heads = 4"),
        ({"ranks": 4, "dtype": "int8"}, "dtype is one of bfloat16, float16"),
        ({"ranks": 4, "cut": "spiral"}, "cut is one of contiguous, zigzag, balanced"),
        ({"ranks": 4, "cut": (2, 2)}, "a mesh of 2 × 2 needs a rule on 2 axes"),
        ({"ranks": 4, "cut": (3,)}, "a mesh of 3 has 3 ranks, and there are 4"),
        ({"ranks": 4, "m": 5}, "shards need as many keys as queries, got n = 64 and m = 5"),
        ({"ranks": 4, "cluster": "gpu=H100"}, 'a cluster has no "gpu"; it has machine, node'),
        ({"ranks": 4, "cluster": "node=8,node=4"}, '"node=8,node=4" gives node twice'),
        ({"ranks": 4, "cluster": "latency=3"}, "latency=3 is not read; write a time, as in latency=10us"),
        ({"ranks": 4, "cluster": "nvlink=fast"}, "nvlink=fast is not read; write bytes a second"),
        ({"ranks": 4, "cluster": "nvlink=450"}, "nvlink=450 is 450 bytes a second; write the unit, as in"),
        ({"ranks": 4, "cluster": "machine=Z9"}, 'no machine is named "Z9"'),
    ],
)  # fmt: skip
def test_wrong_input(more: dict[str, Any], message: str) -> None:
    with pytest.raises(LattendError) as error:
        plan("causal", n=64, **more)
    assert message in str(error.value)


def test_lines_of_any_length_that_a_machine_counts() -> None:
    found = plan("sparse_fixed(l=128, c=8)", n=10**18, ranks=7, cut="zigzag")
    assert sum(found.share.pairs) == lt.rules.sparse_fixed(128, 8).count(n=10**18)
    first = found.layout.cuts[0].pieces[6][0][0]  # rank 6 has the middle: two pieces that follow each other
    assert found.share.halo[6] == 8 * (first // 128) + first % 128
    assert "keys" in str(found)
    with pytest.raises(TooLarge, match="spans, more than 4,194,304"):
        found.edges(6)
    with pytest.raises(TooLarge, match="shards are counted on axes of at most 1,152,921,504,606,846,976"):
        plan("causal", n=2**61, ranks=7)


def test_a_missing_number_is_named() -> None:
    with pytest.raises(NamingError, match="needs a value for t"):
        plan("strided", n=64, ranks=4)


def test_a_cluster_is_described_by_its_numbers() -> None:
    assert cluster_of(None) == Cluster()
    found = cluster_of(
        "machine=A100,node=4,nvlink=300GB/s,infiniband=25GB/s,latency=5us,forward=0.5,backward=0.4"
    )
    assert (found.machine.name, found.node, found.inside, found.between) == ("A100", 4, 300e9, 25e9)
    assert (found.latency, found.forward, found.backward) == (pytest.approx(5e-6), 0.5, 0.4)
    with pytest.raises(DomainError, match="forward is a share of the rate, above 0 to 1"):
        cluster_of("forward=2")


def test_a_plan_needs_no_torch() -> None:
    program = (
        "import sys, lattend as lt; lt.parallel.plan('strided(3)', n=64, ranks=4).text(); "
        "lt.parallel.plan('strided(3)', n=64, ranks=4).draw().svg(); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_pictures_and_their_words() -> None:
    found = plan("strided(5)", n=64, ranks=8)
    picture = found.draw()
    assert picture.panels[0].cells.tolist() == [
        [0 if not (k <= q and q - k <= 5) else 1 if q // 8 == k // 8 else 2 for k in range(64)]
        for q in range(64)
    ]
    assert picture.bars[0].rows[1][1] == {"own pairs": 33, "pairs with keys of others": 15}
    assert "a rank gets at most 5 keys" in picture.words
    image = plan("neighbourhood(r=1)", rows=8, cols=8, ranks=4, cut="contiguous").draw()
    assert image.panels[0].cells.tolist() == [[1] * 8, [1] * 8, [2] * 8, *([[0] * 8] * 5)]
    assert plan("causal", n=10**6, ranks=100).draw().charts[0].title == "Pairs of each rank over the mean"
    (chart,) = found.chart().charts
    assert chart.dots[0].name == "chosen"
    assert chart.dots[-1].name == "halo, contiguous"  # it lies on all others


@pytest.mark.parametrize("pieces", [(((0, 2),), ((0, 2),)), (((0, 2),), ((3, 5),)), (((1, 3),), ((3, 5),))])
def test_a_cut_has_every_position_once(pieces: Any) -> None:
    with pytest.raises(lt.errors.DomainError, match="does not give each of 4 positions to one rank"):
        plan("causal", n=4, ranks=2, cut=Cut("mine", pieces))
