"""The turns of a plan's parts on a GPU: which of them need sums, and whether every row is written."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_rules import affine

import lattend as lt
from lattend.plans.plan import plan
from lattend.plans.tables.part_passes import rows_of as written_by
from lattend.plans.tables.part_passes import sequence


def rows_of(part: Any) -> set[int]:
    """The positions of a part's rows, one by one."""
    axis = part.axes[0]
    found: list[int] = []
    for base, begin, end in zip(axis.outer_bases, *axis.slots, strict=True):
        found += [int(axis.outer_order.positions(slot, base)) for slot in range(begin, end)]
    assert len(set(found)) == len(found)
    return set(found)


@settings(max_examples=150, deadline=None)
@given(text=affine(), n=st.sampled_from([1, 40, 130]), t=st.integers(0, 50))
def test_rows_are_written_once_or_summed(text: str, n: int, t: int) -> None:
    rule = lt.rule(text)
    found = plan(rule, n=n, **({"t": t} if "t" in rule.parameters else {}))
    for parts in (found.parts, found.transposed):
        turns, begins, ends = sequence(parts)
        assert sorted(turn.place for turn in turns) == list(range(len(parts)))
        rows = [rows_of(parts[turn.place]) for turn in turns]
        if begins:
            assert set().union(*rows) == set(range(n))
        before = set[int]()
        for own, turn in zip(rows, turns, strict=True):  # sums are read where they were written
            if turn.earlier:
                have = set(np.flatnonzero(written_by(parts[place] for place in turn.earlier)))
                assert turn.continues and have & own == before & own and have <= before
            elif begins:
                assert own <= before if turn.continues else not own & before
            before |= own
        if turns and all(turn.alone for turn in turns):
            assert ends and not any(a & b for a, b in combinations(rows, 2))
        elif turns:
            last = [own for own, turn in zip(rows, turns, strict=True) if turn.ends]
            assert ends == bool(last) and all(own == set(range(n)) for own in last)


def test_sinks_and_a_window_share_no_keys() -> None:
    found = plan(lt.rules.sinks(s=4, t=100), n=1000)
    assert [turn.alone for turn in sequence(found.transposed)[0]] == [True, True]
    assert [turn.alone for turn in sequence(found.parts)[0]] == [False, False]  # a query has both
