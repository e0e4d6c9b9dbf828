"""The map of tiles: its boxes add up to the work, at any zoom, and hold every attended pair."""

from __future__ import annotations

from typing import Any

import pytest

import lattend as lt
from lattend.errors import LattendError

LINES = (
    ("strided", {"n": 300, "t": 40}),
    ("causal", {"n": 500}),
    ("windowed", {"n": 500, "w": 70}),
    ("sparse_strided", {"n": 400, "l": 32}),
    ("(q - k) % 7 == 2", {"n": 333}),
    ("k <= q or k < 5", {"n": 200, "m": 300}),
    ("q % 5 < 2 and k % 3 == 0", {"n": 200}),
)


@pytest.mark.parametrize(("rule", "at"), LINES)
def test_the_boxes_of_the_cpu_add_up_to_the_executed_pairs(rule: str, at: dict[str, Any]) -> None:
    found = lt.explain(rule, kernel="cpu", **at)
    made = found.tile_map()
    assert found.executed == made.executed.sum()
    assert made.needed is not None
    assert made.needed.sum() == found.needed
    assert (made.needed <= made.executed).all()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("rule", "at"), LINES)
def test_a_part_of_the_map_is_the_map_of_that_part(rule: str, at: dict[str, Any], device: str) -> None:
    found = lt.explain(rule, device=device, **at)
    whole, part = found.tile_map(), found.tile_map((60, 124), (0, 64))
    assert part.query_edges == tuple(range(60, 125))  # a box is a pair
    assert part.executed.max() <= len(found.parts)  # tiles of two parts may hold the same pair
    mask = lt.rule(rule).mask(**at)[60:124, 0:64]
    assert part.needed is not None
    assert (part.needed == mask).all()
    assert (part.executed >= mask).all()
    rows, cols = whole.query_edges, whole.key_edges
    assert found.tile_map((rows[3], rows[4]), (cols[2], cols[3])).executed.sum() == whole.executed[3, 2]


def test_a_million_positions_are_mapped_by_whole_tiles() -> None:
    found = lt.explain("strided", n=10**6, t=255, device="cuda", dtype="bfloat16")
    made = found.tile_map()
    assert len(made.query_edges) <= 65
    assert made.query_edges[1] % found.parts[0].rows[0] == 0
    assert made.needed is not None
    assert made.needed.sum() == found.needed


def test_what_cannot_be_mapped_says_so() -> None:
    with pytest.raises(LattendError, match="on a line"):
        lt.explain("neighbourhood(1)", rows=8, cols=8).tile_map()
    with pytest.raises(LattendError, match="not within the 64"):
        lt.explain("causal", n=64).tile_map((0, 65))


def test_heads_are_mapped_at_head_0() -> None:
    found = lt.explain("k <= q and q - k <= 3 + head", n=64, heads=4, kernel="cpu").tile_map()
    assert found.needed is not None
    assert found.needed.sum() == lt.rule("k <= q and q - k <= 3").count(n=64)


def test_memory_is_that_of_the_tensors_and_of_the_keys_that_decoding_keeps() -> None:
    found = lt.explain("strided(3)", n=100, heads=4, kv_heads=2, head_dim=16, dtype="bfloat16").memory
    assert found.tensors == 2 * 100 * 16 * (4 + 2 + 2 + 4)  # q, k, v, output
    assert found.scores == 2 * 4 * 100 * 100
    assert (found.cached, found.cache) == (4, 2 * 2 * 2 * 4 * 16)  # keys and values of 2 heads, 2 bytes each
    assert lt.explain("causal", n=100, heads=4).memory.cached == 100
    ahead = lt.explain("full", n=100).memory
    assert ahead.cache is None
    assert "which has not come yet" in ahead.cache_text
