"""What a plan visits, pair by pair, found from its tables alone."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
from numpy.typing import NDArray

from lattend.plans.part import Part
from lattend.plans.plan import Plan
from lattend.plans.tiles import Tiles, listed_positions, with_lists
from lattend.rules.language.evaluation import evaluate, evaluate_term


def visits(plan: Plan, shape: tuple[int, ...], *, transposed: bool = False) -> NDArray[np.int64]:
    """How often each pair is computed and kept: [heads, outer …, inner …] of the whole rule."""
    heads = plan.rule.values.get("heads", 1)
    sizes = [size for axis in plan.axes for size in (axis.outer_size, axis.inner_size)]
    outer, inner = (sizes[1::2], sizes[::2]) if transposed else (sizes[::2], sizes[1::2])
    found = np.zeros((heads, *outer, *inner), np.int64)
    parts = plan.transposed if transposed else plan.parts
    for place, part in enumerate(parts):
        tiles = with_lists(part, plan.tiles(place, shape, transposed=transposed), plan.rule.data)
        for head in range(heads):
            for tile in range(tiles.table.shape[1]):
                _visit(found[head], part, tiles, head, tile, plan.rule.data)
    return found


def _visit(
    found: NDArray[np.int64],
    part: Part,
    tiles: Tiles,
    head: int,
    tile: int,
    data: Mapping[str, NDArray[np.int64]],
) -> None:
    row = tiles.table[head % len(tiles.table), tile]
    outer: dict[str, NDArray[np.int64]] = {}
    inner: dict[str, NDArray[np.int64]] = {}
    for place, axis in enumerate(part.axes):
        slot, outer_base, inner_base, begin, end = (int(x) for x in row[place * 5 : place * 5 + 5])
        rows = axis.outer_order.positions(slot + np.arange(tiles.shape[place]), outer_base)
        limit = axis.outer_size
        if axis.class_slots is not None:
            limit = min(limit, outer_base + axis.class_slots)
        outer[axis.outer] = rows[(rows >= axis.first) & (rows <= axis.last) & (rows < limit)]
        if part.block_table is None:
            inner[axis.inner] = axis.inner_order.positions(np.arange(begin, end + 3), inner_base)
        else:
            bases = np.array(inner_base)
            inner[axis.inner] = listed_positions(part, tiles, bases, np.arange(begin, end))
    names = [*outer, *inner]
    grid = dict(zip(names, np.ix_(*outer.values(), *inner.values()), strict=True))
    env = {**part.numbers, "head": head, **grid}
    attended = np.ones([len(v) for v in (*outer.values(), *inner.values())], bool)
    for axis in part.axes:
        at = grid[axis.inner]
        attended &= (at >= 0) & (at < axis.inner_size)
        for term in axis.lows:
            attended &= at >= evaluate_term(term, env, data)
        for term in axis.highs:
            attended &= at <= evaluate_term(term, env, data)
    full = [int(x) for x in row[-2:]]
    if full[1] > full[0]:
        begin = int(row[3])
        assert attended[:, full[0] - begin : full[1] - begin].all(), "a tile called full is not"
    inside = prod(int(row[p * 5 + 4]) - int(row[p * 5 + 3]) for p in range(len(part.axes)))
    if any(gate_fails(gate, env) for gate in part.gates):
        assert inside == 0, "a head that is left out has tiles"
        return
    if not part.exact:
        safe = {axis.inner: np.clip(grid[axis.inner], 0, axis.inner_size - 1) for axis in part.axes}
        attended &= evaluate(part.rest, {**env, **safe}, data)
    beyond = attended.copy()
    ranges = tuple(slice(0, int(row[p * 5 + 4]) - int(row[p * 5 + 3])) for p in range(len(part.axes)))
    beyond[(..., *ranges)] = False
    assert not beyond.any(), "an attended pair lies outside the tile's range"
    counted = np.nonzero(attended)
    places = [[*outer.values(), *inner.values()][d][index] for d, index in enumerate(counted)]
    np.add.at(found, tuple(places), 1)


def gate_fails(gate: object, env: dict[str, object]) -> bool:
    return not evaluate(gate, {k: v for k, v in env.items() if isinstance(v, int)}, {})  # pyright: ignore
