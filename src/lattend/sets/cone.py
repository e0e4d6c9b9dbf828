"""Cone: with which exponents several variables can grow together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import islpy as isl


@dataclass(frozen=True, eq=False)
class Cone:
    """Exponent vectors a >= 0 with one entry for each name: the variables grow as s**a."""

    names: tuple[str, ...]
    points: isl.Set

    @staticmethod
    def of(names: list[str]) -> Cone:
        """All growths: every exponent at least 0."""
        space = isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, len(names))
        points = isl.Set.universe(space)
        for dim in range(len(names)):
            points = points.lower_bound_val(isl.dim_type.set, dim, isl.Val(0))
        return Cone(tuple(names), points)

    def below(self, size: Mapping[str, int], others: list[dict[str, int]]) -> Cone:
        """Where `size` grows no faster than the fastest of `others`; with none, not at all."""
        allowed = isl.Set.empty(self.points.get_space())
        for other in [*others, {}]:  # a constant is always there
            allowed |= self._at_least(other, size, 0)
        return Cone(self.names, self.points & allowed)

    def beyond(
        self, ours: Mapping[str, int], theirs: list[dict[str, int]], by: int = 1
    ) -> dict[str, int] | None:
        """Returns a growth along which `ours` outgrows each of `theirs`, or keeps up with by=0; or None."""
        points = self.points
        for other in theirs:
            points &= self._at_least(ours, other, by)
        if points.is_empty():
            return None
        point = points.lexmin().sample_point()
        return {
            name: int(str(point.get_coordinate_val(isl.dim_type.set, dim)))
            for dim, name in enumerate(self.names)
        }

    def growing(self, names: Iterable[str]) -> Cone:
        """The growths in which all of these names grow."""
        points = self.points
        for name in names:
            points = points.lower_bound_val(isl.dim_type.set, self.names.index(name), isl.Val(1))
        return Cone(self.names, points)

    def grows(self, names: Iterable[str]) -> bool:
        """Whether all of these names can grow at once."""
        return not self.growing(names).points.is_empty()

    def _at_least(self, more: Mapping[str, int], less: Mapping[str, int], by: int) -> isl.Set:
        space = self.points.get_space()
        aff = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space))
        for dim, name in enumerate(self.names):
            coefficient = more.get(name, 0) - less.get(name, 0)
            aff = aff.add_coefficient_val(isl.dim_type.in_, dim, isl.Val(coefficient))
        aff = aff.add_constant_val(isl.Val(-by))
        return isl.Set.from_basic_set(isl.BasicSet.from_constraint(isl.Constraint.inequality_from_aff(aff)))
