"""Frames, the space of the sets of one rule; and sets whose rows are intervals, `low <= k <= high`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from itertools import combinations

import islpy as isl

from lattend.rules.axes import HEAD, HEADS, Axis
from lattend.rules.language import expr
from lattend.rules.language.expr import Compare, Condition, Name, Term, Truth
from lattend.sets.bound import quotient_of
from lattend.sets.build import describe, points_of
from lattend.sets.pointset import PointSet, within
from lattend.sets.set_to_condition import sort_key, term_of
from lattend.sets.space import Space


class Frame:
    """The space of the sets of one rule, and the box of all its positions."""

    def __init__(self, axes: tuple[Axis, ...], domain: Condition, heads: bool) -> None:
        self.axes, self.domain = axes, domain
        sizes = {axis.query: axis.queries for axis in axes} | {axis.key: axis.keys for axis in axes}
        if heads:
            sizes = {HEAD: HEADS} | sizes
        self.dims = tuple(sizes)
        self.keys = tuple(axis.key for axis in axes)
        self.queries = tuple(axis.query for axis in axes)
        self.parameters = tuple(dict.fromkeys(sizes.values()))
        self.bounds = expr.all_of(*(within(position, size) for position, size in sizes.items()))
        self.space = Space(self.parameters, self.dims, {})
        self.box = self.points(Truth(True))

    def narrowed(self, sizes: isl.Set) -> Frame:
        """The same frame with the box of these sizes alone."""
        frame = copy(self)
        frame.box = self.box.intersect_params(sizes)
        return frame

    def points(self, condition: Condition) -> isl.Set:
        """The points of the box where the condition holds."""
        described = describe(
            condition, parameters=self.parameters, dims=self.dims, bounds=self.bounds, domain=self.domain
        )
        return described.points


class LetterFrame(Frame):
    """The frame of pairs whose parameters may be letters, and their positions split by a modulus."""

    def __init__(self, pairs: PointSet, axes: tuple[Axis, ...]) -> None:
        self.axes, self.space, self.box = axes, pairs.space, pairs.box
        self.dims = pairs.space.dims

    def points(self, condition: Condition) -> isl.Set:
        return points_of(condition, self.space, self.box)


MAX_ENDS = 4  # formulas that an end of an interval may be made of


def interval_form(
    condition: Condition,
    pieces: list[isl.Set],
    inner: tuple[str, ...],
    frame: Frame,
    condition_of: Callable[[isl.Set], Condition],
) -> Condition | None:
    """Returns `low <= k <= high` with one formula for each end, if each row is an interval.

    It is made from the condition, not from the set as it came, so that one condition gives one form.
    """
    inner_names = [name for name in inner if any(_speaks_of(piece, name, frame) for piece in pieces)]
    if len(inner_names) != 1:
        return None
    points = frame.points(condition)
    dim = frame.dims.index(inner_names[0])
    rows = _rows(points, dim)
    outer = points.eliminate(isl.dim_type.set, dim, 1) & frame.box
    conditions: list[Condition] = []
    ends: tuple[tuple[isl.PwMultiAff, expr.CompareOp], ...] = (
        (rows.lexmin_pw_multi_aff(), ">="),
        (rows.lexmax_pw_multi_aff(), "<="),
    )
    for best, op in ends:
        end = _end(best, op, inner_names[0], outer, points, frame)
        if end is None:
            return None
        conditions.append(end)
    if not outer.is_equal(frame.box):
        conditions.append(condition_of(outer))
    form = expr.all_of(*conditions)
    return form if frame.points(form).is_equal(points) else None


def _speaks_of(piece: isl.Set, name: str, frame: Frame) -> bool:
    return bool(piece.involves_dims(isl.dim_type.set, frame.dims.index(name), 1))


def _rows(points: isl.Set, key: int) -> isl.Map:
    """Returns the keys of each query as a map from the other positions."""
    rows = isl.Map.from_range(points)
    for dim in range(points.dim(isl.dim_type.set)):
        if dim != key:
            source = 0 if dim < key else 1
            rows = rows.move_dims(isl.dim_type.in_, rows.dim(isl.dim_type.in_), isl.dim_type.out, source, 1)
    return rows


def _end(
    best: isl.PwMultiAff, op: expr.CompareOp, inner: str, outer: isl.Set, points: isl.Set, frame: Frame
) -> Condition | None:
    """Returns `inner op formula`, the simplest proved bound of all rows."""
    ends: list[Term] = []
    meaning = frame.space.atoms

    def note(_: isl.Set, value: isl.MultiAff) -> None:
        quotient = quotient_of(value.get_aff(0), meaning)
        ends.append(term_of(quotient))

    best.foreach_piece(note)
    ends = sorted(dict.fromkeys(ends), key=sort_key)
    if len(ends) > MAX_ENDS:
        return None
    wanted = _towards(points, op, frame, inner) & frame.box
    for formula in (None, *_formulas(ends)):
        condition = Truth(True) if formula is None else Compare(op, Name(inner), formula)
        if (frame.points(condition) & outer).is_equal(wanted):
            return condition
    return None


def _towards(points: isl.Set, op: str, frame: Frame, key: str) -> isl.Set:
    """For `>=` all keys of a row from its first on, for `<=` all up to its last."""
    dim_index, names = frame.dims.index(key), [f"v_{name}" for name in frame.dims]
    moved = [*names[:dim_index], "moved", *names[dim_index + 1 :]]
    shift = isl.Map(f"{{ [{', '.join(names)}] -> [{', '.join(moved)}] : moved {op} {names[dim_index]} }}")
    shifted = points.apply(shift)
    for name, dim in zip(names, range(len(names)), strict=True):
        shifted = shifted.set_dim_name(isl.dim_type.set, dim, name)
    return shifted


def _formulas(ends: list[Term]) -> Iterator[Term]:
    """Yields single ends, then the minimum or maximum of two, then of three."""
    yield from ends
    nested: tuple[tuple[expr.ArithOp, expr.ArithOp], ...] = (("min", "max"), ("max", "min"))
    for op, _ in nested:
        for pair in combinations(ends, 2):
            yield expr.Arith(op, pair)
    for op, inner in nested:
        for index, end in enumerate(ends):
            for pair in combinations(ends[:index] + ends[index + 1 :], 2):
                yield expr.Arith(op, (end, expr.Arith(inner, pair)))
