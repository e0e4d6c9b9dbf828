"""Frame: the space of the sets of one rule, and the box of all its positions."""

from __future__ import annotations

from copy import copy

import islpy as isl

from lattend.rules.axes import HEAD, HEADS, Axis
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition, Truth
from lattend.sets.build import describe, points_of
from lattend.sets.pointset import PointSet, within
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
