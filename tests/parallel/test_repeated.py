"""Repeated calls decide nothing again, a ring has the memory of two shards, and tensors may come in parts."""

from __future__ import annotations

import pytest
from gloo_ranks import Crew
from parallel_repeated import (
    arrays_in_parts,
    decoded,
    keys_alive,
    keys_of_another_length,
    looks_at_sets,
    masks_on_some,
    remembered,
    same_bits,
)


def test_a_repeated_call_looks_at_no_set() -> None:
    with Crew(2) as crew:
        for first, second, third, other in crew.run(2, looks_at_sets):
            assert first > 0
            assert second == third == 0
            assert other > 0  # of another length


def test_what_is_remembered_is_bounded(crew: Crew) -> None:
    assert crew.run(2, remembered) == [64, 64]


@pytest.mark.parametrize("ranks", [3, 8])
def test_a_ring_has_the_memory_of_two_shards(crew: Crew, ranks: int) -> None:
    for most, between in crew.run(ranks, keys_alive, "ring", 5):
        assert most <= 2 * 5
        assert between == 0
    for most, between in crew.run(ranks, keys_alive, "gather", 5):
        assert most == between == (ranks - 1) * 5


def test_tensors_in_parts(crew: Crew) -> None:
    assert max(crew.run(3, arrays_in_parts)) < 1e-12
    assert max(crew.run(3, masks_on_some)) < 1e-12


def test_keys_of_another_length(crew: Crew) -> None:
    assert max(crew.run(3, keys_of_another_length)) < 1e-12


def test_the_same_bits_on_every_run(crew: Crew) -> None:
    assert crew.run(3, same_bits) == [True] * 3


@pytest.mark.parametrize("rule", ["k <= q", "strided(3)", "sinks(2, 3)", "k <= q and q - k <= 4*head"])
def test_a_cache_over_ranks(crew: Crew, rule: str) -> None:
    found = crew.run(3, decoded, rule, 4)
    assert max(worst for worst, _, _ in found) < 1e-12
    held = [keys for _, keys, _ in found]
    assert sorted(held) == [7, 8, 8] if rule == "k <= q" else sum(held) < 23
    assert {moved for *_, moved in found} == {
        2 * 2 * 4 * (3 + 1) * 8
    }  # two others, batch, heads, Dv + 1, 8 bytes
