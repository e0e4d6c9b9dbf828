"""Halves of tiles: what a group of warps leaves out, nobody attends to."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_rules import affine

import lattend as lt
from lattend.attend.kernels.triton.halves import halved, left_out, with_halves
from lattend.attend.kernels.triton.reading_order import read_together
from lattend.attend.kernels.triton.shapes import TileShape, choose
from lattend.attend.kernels.triton.tables import in_order
from lattend.plans.plan import plan
from lattend.plans.tiles import INNER_BASE, INNER_END, INNER_FIRST, OUTER_BASE, OUTER_SLOT

SHAPE = TileShape((128,), 64, hopper=True, several=True)


def steps_left_out(table: np.ndarray, step: int) -> list[tuple[int, int, int]]:
    """The rows, first column and half of each step that is left out, as the kernels have them."""
    found: list[tuple[int, int, int]] = []
    for row in table[0]:
        at, first = int(row[OUTER_SLOT] + row[OUTER_BASE]), int(row[INNER_BASE] + row[INNER_FIRST])
        steps = max(1, -(-int(row[INNER_END] - row[INNER_FIRST]) // step))
        if steps > 1 and row[-2] <= first + (steps - 1) * step:
            found.append((at, first + (steps - 1) * step, 0))
        if steps > 1 and row[-1] >= first + step:
            found.append((at, first, 1))
    return found


@settings(max_examples=60, deadline=None)
@given(text=affine(), n=st.sampled_from([100, 300, 500]), t=st.integers(0, 150))
def test_what_is_left_out_is_not_attended(text: str, n: int, t: int) -> None:
    rule = lt.rule(text)
    numbers = {"t": t} if "t" in rule.parameters else {}
    found = plan(rule, n=n, **numbers)
    if len(found.parts) > 1:  # pairs of other parts are attended elsewhere
        return
    pairs = rule.mask(n=n, **numbers)
    for transposed in (False, True):
        part = (found.transposed if transposed else found.parts)[:1]
        if not part or not in_order(part[0]) or not found.tiles(0, (128,), transposed=transposed).table.size:
            continue
        halves = (found.tiles(0, (size,), transposed=transposed) for size in (128, 64))
        mask = pairs.T if transposed else pairs
        for row, column, half in steps_left_out(with_halves(*halves), SHAPE.step):
            rows = slice(row + 64 * half, row + 64 * (half + 1))
            assert not mask[rows, max(column, 0) : column + SHAPE.step].any()


def test_a_window_leaves_out_a_sixth() -> None:
    """128 keys with 256 queries each: six steps of 64, and each half needs five of them."""
    found = plan(lt.rules.strided(255), n=4096)
    made = halved(found, 0, found.transposed[0], "backward_dkdv", SHAPE)
    assert made is not None
    inside = [one for one in steps_left_out(made.table, SHAPE.step) if one[0] < 4096 - 384]
    assert len(inside) == 2 * (4096 - 384) // 128
    assert 0.15 < left_out(made.table, SHAPE.step) <= 1 / 6


def test_tiles_that_read_the_same_queries_stay_beside_each_other() -> None:
    found = plan(lt.rules.windowed(256), n=65_536)
    part, tiles = found.transposed[0], found.tiles(0, SHAPE.outer, transposed=True)
    made, ordered = halved(found, 0, part, "backward_dkdv", SHAPE), read_together(part, tiles, SHAPE.step)
    assert made is not None and not np.array_equal(ordered.table, tiles.table)
    assert np.array_equal(read_together(part, made, SHAPE.step).table[..., :-2], ordered.table)


def test_who_takes_them() -> None:
    """Gradients of keys, not in long tiles or other shapes, nor where data cut or heads share keys."""
    kernel, bfloat16 = "backward_dkdv", torch.bfloat16
    found, long = plan(lt.rules.strided(255), n=4096), plan(lt.rules.causal(), n=16_384)
    assert halved(found, 0, found.parts[0], "backward_dq", SHAPE) is None
    assert halved(long, 0, long.transposed[0], kernel, SHAPE) is None
    assert halved(found, 0, found.transposed[0], kernel, TileShape((128,), 64)) is None
    cut = plan(lt.rule("doc[q] == doc[k] and k <= q", data={"doc": None}), n=300)
    assert halved(cut, 0, cut.transposed[0], kernel, SHAPE) is None
    alone, shared = (
        choose(found, 0, kernel, 128, bfloat16, hopper=True, shared=shared) for shared in (False, True)
    )
    assert alone.shape == shared.shape and 0.8 < alone.nanoseconds / shared.nanoseconds < 0.95


def test_narrow_windows_take_turns_and_long_rows_do_not() -> None:
    def in_turn(rule: lt.Rule, n: int) -> bool:
        return choose(plan(rule, n=n), 0, "forward", 128, torch.bfloat16, hopper=True).shape.in_turn

    assert in_turn(lt.rules.strided(255), 65_536)
    assert not in_turn(lt.rules.windowed(256), 65_536)
    assert not in_turn(lt.rules.strided(1023), 65_536)
    assert not in_turn(lt.rules.causal(), 16_384)
