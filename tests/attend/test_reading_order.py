"""Tiles that read the same columns stand beside each other, and programs have as much to do as before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_rules import affine

import lattend as lt
from lattend.plans.plan import Plan, plan
from lattend.plans.tables.reading_order import LONGER, PAIRS, read_together

STEP = 64
PROGRAMS = 132


def table_of(found: Plan, place: int, transposed: bool) -> tuple[Any, Any]:
    """A table as the plan has it, and in the order of reading."""
    tiles = found.tiles(place, (128,), transposed=transposed)
    part = (found.transposed if transposed else found.parts)[place]
    return tiles.table, read_together(part, tiles, STEP).table


def columns_fetched(table: Any, room: int) -> int:
    """Blocks of 128 columns that are fetched, with room for so many of those used last."""
    kept: list[int] = []
    fetched = 0
    for row in table[0]:
        for block in range((row[2] + row[3]) // 128, -(-(row[2] + row[4]) // 128)):
            if block in kept:
                kept.remove(block)
            else:
                fetched += 1
            kept = [*kept, block][-room:]
    return fetched


def most_work(table: Any, pairs: int) -> int:
    """The steps of the busiest of 132 programs, dealt out there and back, one after another."""
    work = [0] * PROGRAMS
    steps = [max(1, -(-(row[4] - row[3]) // STEP)) + 4 for row in table[0]]
    for index, each in enumerate(one for one in steps for _ in range(pairs)):
        turn, place = divmod(index, PROGRAMS)
        work[place if turn % 2 == 0 else PROGRAMS - 1 - place] += each
    return max(work)


@settings(max_examples=60, deadline=None)
@given(text=affine(), n=st.sampled_from([300, 2000, 9000]), t=st.integers(0, 900), transposed=st.booleans())
def test_the_same_tiles_and_no_program_has_much_more_to_do(
    text: str, n: int, t: int, transposed: bool
) -> None:
    rule = lt.rule(text)
    found = plan(rule, n=n, **({"t": t} if "t" in rule.parameters else {}))
    for place in range(len(found.transposed if transposed else found.parts)):
        before, after = table_of(found, place, transposed)
        assert sorted(before[0].tolist()) == sorted(after[0].tolist())
        if len(before) == 1:
            for pairs in (1, 3, 16):
                assert pairs in PAIRS
                assert most_work(after, pairs) <= LONGER * most_work(before, pairs)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("w", [256, 1000, 1024])
def test_windows_are_fetched_once(w: int, transposed: bool) -> None:
    """With room for 24 blocks of keys, which is that of some windows and not of all."""
    before, after = table_of(plan(lt.rules.windowed(w), n=65_536), 0, transposed)
    blocks = 65_536 // 128
    assert columns_fetched(after, 24) <= blocks + 65_536 // w  # a block may be in two windows
    assert columns_fetched(before, 24) > 1.4 * blocks


def test_what_would_leave_programs_idle_stays_as_it_was() -> None:
    before, after = table_of(plan(lt.rules.windowed(4096), n=65_536), 0, False)
    assert before is after
    causal = plan(lt.rules.causal(), n=16_384)
    assert np.array_equal(*table_of(causal, 0, False))  # already in such an order
