"""What a group of warps leaves out of a tile, nobody attends to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_rules import affine

import lattend as lt
from lattend.attend.kernels.triton import launch
from lattend.attend.kernels.triton.hopper.tiles import EARLY, ROWS
from lattend.attend.kernels.triton.shapes import arranged, choose
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import plan
from lattend.plans.tables import skippable_steps
from lattend.plans.tables.adjacency import in_order
from lattend.plans.tables.chunks import in_chunks
from lattend.plans.tables.reading_order import read_together
from lattend.plans.tables.skippable_steps import leaving, left_out, passed, with_groups
from lattend.plans.tables.tile_costs import TileShape
from lattend.plans.tiles import INNER_BASE, INNER_END, INNER_FIRST, OUTER_BASE, OUTER_SLOT

SHAPE = TileShape((128,), 64, hopper=True, several=True)


def steps_left_out(table: np.ndarray, step: int, kernel: str) -> list[tuple[int, int, int]]:
    """The first row of a tile, first column and group of each step that is left out."""
    found: list[tuple[int, int, int]] = []
    for row, left in zip(table[0], passed(table, step, kernel)[0], strict=True):
        at, first = int(row[OUTER_SLOT] + row[OUTER_BASE]), int(row[INNER_BASE] + row[INNER_FIRST])
        steps = max(1, -(-int(row[INNER_END] - row[INNER_FIRST]) // step))
        for group, (opening, ending) in enumerate(left.tolist()):
            places = (*range(opening), *range(steps - ending, steps))
            assert len(places) < steps  # each has one at least
            found += [(at, first + place * step, group) for place in places]
    return found


@settings(max_examples=60, deadline=None)
@given(text=affine(), n=st.sampled_from([100, 300, 500]), t=st.integers(0, 150))
def test_what_is_left_out_is_not_attended(text: str, n: int, t: int) -> None:
    rule = lt.rule(text)
    numbers = {"t": t} if "t" in rule.parameters else {}
    found = plan(rule, n=n, **numbers)
    pairs = rule.mask(n=n, **numbers)
    for transposed in (False, True):
        parts = found.transposed if transposed else found.parts
        if len(parts) != 1 or not in_order(parts[0]):  # pairs of other parts are attended elsewhere
            continue
        if not found.tiles(0, (128,), transposed=transposed).table.size:
            continue
        mask = pairs.T if transposed else pairs
        own, each = (found.tiles(0, (rows,), transposed=transposed) for rows in (128, 64))
        kernel = "backward_dkdv" if transposed else "forward"
        for row, column, group in steps_left_out(with_groups(own, each), SHAPE.step, kernel):
            rows = slice(row + 64 * group, row + 64 * (group + 1))
            assert not mask[rows, max(column, 0) : column + SHAPE.step].any()


def test_a_window_leaves_out_a_sixth() -> None:
    """128 keys with 256 queries each: six steps of 64, and each half needs five of them."""
    found = plan(lt.rules.strided(255), n=4096)
    made = leaving(found, 0, found.transposed[0], "backward_dkdv", SHAPE)
    assert made is not None
    inside = [one for one in steps_left_out(made.table, SHAPE.step, "backward_dkdv") if one[0] < 4096 - 384]
    assert len(inside) == 2 * (4096 - 384) // 128
    assert 0.15 < left_out(made.table, SHAPE.step, "backward_dkdv") <= 1 / 6


def test_tiles_that_read_the_same_queries_stay_beside_each_other() -> None:
    found = plan(lt.rules.windowed(256), n=65_536)
    part, tiles = found.transposed[0], found.tiles(0, SHAPE.outer, transposed=True)
    made, ordered = leaving(found, 0, part, "backward_dkdv", SHAPE), read_together(part, tiles, SHAPE.step)
    assert made is not None and not np.array_equal(ordered.table, tiles.table)
    assert np.array_equal(read_together(part, made, SHAPE.step).table[..., :-4], ordered.table)


def test_who_takes_them() -> None:
    """Not long tiles or other shapes, nor where data cut, heads share keys or groups take turns."""
    kernel, bfloat16 = "backward_dkdv", torch.bfloat16
    found, long = plan(lt.rules.strided(255), n=4096), plan(lt.rules.causal(), n=16_384)
    assert leaving(found, 0, found.parts[0], "backward_dq", SHAPE) is not None
    assert leaving(found, 0, found.parts[0], "forward", replace(SHAPE, in_turn=True)) is None
    assert leaving(long, 0, long.transposed[0], kernel, SHAPE) is None
    assert leaving(found, 0, found.transposed[0], kernel, TileShape((128,), 64)) is None
    cut = plan(lt.rule("doc[q] == doc[k] and k <= q", data={"doc": None}), n=300)
    assert leaving(cut, 0, cut.transposed[0], kernel, SHAPE) is None
    back = plan(lt.rule("abs(q + k - 4095) <= 127"), n=4096)  # further keys have earlier queries
    assert leaving(back, 0, back.transposed[0], kernel, SHAPE) is None
    assert leaving(back, 0, back.parts[0], "backward_dq", SHAPE) is not None
    for n in (40, 576):  # rows that are not there save nothing
        few = plan(lt.rule("k <= q + 16320"), n=n, m=16_384)
        assert leaving(few, 0, few.parts[0], "backward_dq", SHAPE) is None
    alone, shared = (
        choose(found, 0, kernel, 128, bfloat16, hopper=True, shared=shared) for shared in (False, True)
    )
    assert alone.shape == shared.shape and 0.8 < alone.nanoseconds / shared.nanoseconds < 0.95


def test_no_step_is_left_out_where_another_part_joins() -> None:
    """The kernels take all steps of both parts then, and explain counts them."""
    found, kernel = plan(lt.rules.sinks(s=4, t=255), n=16_384), "backward_dq"
    made = arranged(found, kernel, 128, torch.bfloat16, hopper=[True, True])
    ((place, guest),) = made.joined.items()
    alone = choose(found, place, kernel, 128, torch.bfloat16, hopper=True)
    host = made.choices[place]
    assert alone.left > 0 and host.left == 0 and host.shape == alone.shape
    assert host.nanoseconds == alone.nanoseconds + alone.left * alone.masked
    runner = launch.PlanExecutor(found, torch.device("cpu"))
    q = torch.empty(1, 1, 16_384, 128, dtype=torch.bfloat16)
    ready = runner.part(Recorder(), kernel, place, q, q, {}, hopper=True, joined=guest)
    assert ready.leaves == 0
    assert runner.part(Recorder(), kernel, place, q, q, {}, hopper=True).leaves == 2


def test_tables_and_kernels_agree_on_groups() -> None:
    assert (ROWS.value, EARLY.value) == (skippable_steps.ROWS, skippable_steps.MOST)


def test_chunks_take_all_their_steps() -> None:
    found = plan(lt.rule("k < 40"), n=32_768)
    choice = choose(found, 0, "backward_dkdv", 128, torch.bfloat16, hopper=True)
    tiles = found.tiles(0, choice.shape.outer, transposed=True)
    left = replace(choice, left=100.0)
    more, none = (in_chunks(x, found.transposed[0], tiles, 16, 1).nanoseconds for x in (left, choice))
    assert none < more == pytest.approx(none * (1 + 100 * choice.masked / choice.nanoseconds))


def test_which_windows_leave_out_steps_and_which_take_turns() -> None:
    def forward(rule: lt.Rule, n: int) -> tuple[int, bool]:
        shape = choose(plan(rule, n=n), 0, "forward", 128, torch.bfloat16, hopper=True).shape
        return shape.step, shape.in_turn

    assert forward(lt.rules.strided(255), 65_536) == (64, False)
    assert forward(lt.rules.strided(511), 65_536) == (128, True)
    assert forward(lt.rules.strided(1023), 65_536) == (128, False)
    assert forward(lt.rules.causal(), 16_384) == (128, False)
