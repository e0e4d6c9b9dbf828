"""Chains: how many steps a set of cells needs when each waits for others, and why not fewer.

A schedule gives every cell its step. It is guessed from the longest chains at small sizes, then proved for
all sizes: every cell comes after those it waits for, so that so many steps suffice; and every cell past step
0 waits for one of the step just before, so that from the last step a chain goes back to the first.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import islpy as isl
import numpy as np

from lattend.errors import NoClosedForm
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Compare, Condition, Name, Num
from lattend.rules.language.linear import Atom, Linear
from lattend.sets.pointset import PointSet, polynomial_of
from lattend.sets.region import Piece, Region

SMALL = (2, 3, 4)  # sizes at which the longest chains are looked at
Shift = tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """The step of each cell, and the number of steps by region of the sizes."""

    step: Linear
    steps: list[Piece]
    domain: Region


def schedule(
    condition: Condition, indices: tuple[str, ...], sizes: tuple[str, ...], waits: tuple[Shift, ...]
) -> Schedule:
    """Returns the minimum number of steps of the cells of `condition`, each of which waits for others.

    The 2-D RNN waits for (0, -1) and (-1, 0): cell (row, col) runs at step row + col.
    """
    domain = expr.all_of(*(Compare(">=", Name(size), Num(1)) for size in sizes))
    cells = PointSet.over(condition, indices, sizes, domain)
    step = _guess(condition, indices, sizes, waits)
    function = _function(step, cells)
    _prove(cells, step, function, indices, waits)
    count = cells.points.apply(isl.Map.from_pw_aff(function + 1)).lexmax_pw_multi_aff()
    pieces: list[Piece] = []

    def note(where: isl.Set, steps: isl.MultiAff) -> None:
        region = Region(cells.domain.space, where.params())
        pieces.append(Piece(region, polynomial_of(steps.get_aff(0), cells.space.atoms)))

    count.foreach_piece(note)
    return Schedule(step, pieces, cells.domain)


def levels(
    condition: Condition, indices: tuple[str, ...], sizes: Mapping[str, int], waits: tuple[Shift, ...]
) -> dict[tuple[int, ...], int]:
    """Returns the length of the longest chain before each cell, by enumeration."""
    spans = [range(max(sizes.values()) + 1)] * len(indices)
    inside = {
        cell
        for cell in itertools.product(*spans)
        if evaluate(condition, {**sizes, **dict(zip(indices, cell, strict=True))}, {})
    }
    level_of: dict[tuple[int, ...], int] = {}

    def level(cell: tuple[int, ...]) -> int:
        if cell not in level_of:
            before = [tuple(a + b for a, b in zip(cell, wait, strict=True)) for wait in waits]
            level_of[cell] = max((level(other) + 1 for other in before if other in inside), default=0)
        return level_of[cell]

    for cell in sorted(inside):
        level(cell)
    return level_of


def _guess(
    condition: Condition, indices: tuple[str, ...], sizes: tuple[str, ...], waits: tuple[Shift, ...]
) -> Linear:
    """The linear form in indices and sizes that gives the levels at small sizes."""
    rows: list[tuple[int, ...]] = []
    wanted: list[int] = []
    for numbers in itertools.product(SMALL, repeat=len(sizes)):
        for cell, level in levels(condition, indices, dict(zip(sizes, numbers, strict=True)), waits).items():
            rows.append((*cell, *numbers, 1))
            wanted.append(level)
    solution, *_ = np.linalg.lstsq(np.array(rows, float), np.array(wanted, float), rcond=None)
    coefficients = [round(float(x)) for x in solution]
    if any(
        sum(a * b for a, b in zip(row, coefficients, strict=True)) != level
        for row, level in zip(rows, wanted, strict=True)
    ):
        raise NoClosedForm("the step of a cell is not a linear formula in its place")
    atoms: list[Atom] = [*indices, *sizes]
    return Linear.of(list(zip(atoms, coefficients, strict=False)), coefficients[-1])


def _function(step: Linear, cells: PointSet) -> isl.PwAff:
    total = cells.space.zero + step.constant
    for atom, coefficient in step.terms:
        total = total + cells.space.coordinate(f"v_{atom}").scale_val(isl.Val(str(coefficient)))
    return total


def _prove(
    cells: PointSet, step: Linear, function: isl.PwAff, indices: tuple[str, ...], waits: tuple[Shift, ...]
) -> None:
    """Raises unless the schedule is valid and no cell could run earlier."""
    zero = cells.space.zero
    if not cells.points.is_subset(function.ge_set(zero)):
        raise NoClosedForm("a schedule begins before step 0")
    late = cells.points & function.gt_set(zero)
    held_up = late - late  # cells that wait for one of the step just before
    for wait in waits:
        gap = -sum(dict(step.terms).get(index, 0) * by for index, by in zip(indices, wait, strict=True))
        waiting = cells.points & _moved(cells.points, wait)
        if gap < 1 and not waiting.is_empty():
            raise NoClosedForm("a cell would run before one it waits for")
        held_up = held_up | waiting if gap == 1 else held_up
    if not late.is_subset(held_up):
        raise NoClosedForm("a cell could run earlier than its step")


def _moved(points: isl.Set, wait: Shift) -> isl.Set:
    """Returns the cells that wait for one of these points."""
    space = points.get_space()
    local = isl.LocalSpace.from_space(space)
    image: isl.Map | None = None
    for dim, by in enumerate(wait):
        back = isl.Aff.var_on_domain(local, isl.dim_type.set, dim).add_constant_val(isl.Val(str(-by)))
        image = isl.Map.from_aff(back) if image is None else image.flat_range_product(isl.Map.from_aff(back))
    if image is None:
        return points
    moved = points.apply(image)
    for dim in range(len(wait)):
        name = str(space.get_dim_name(isl.dim_type.set, dim))
        moved = moved.set_dim_name(isl.dim_type.set, dim, name)
    return moved
