"""Convex sets in plain coordinates: polyhedra, on which formulas are decided, and cones of exponents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import islpy as isl

from lattend.rules.language.linear import Atom, Linear, Quotient
from lattend.sets.bound import Bound, aff_of, bound_of


@dataclass(frozen=True, eq=False)
class Polyhedron:
    """Integer points of a polyhedron whose coordinates are atoms.

    A quotient `n // 2` is a coordinate like any other, held in place by `0 <= n - 2*(n // 2) <= 1`.
    """

    atoms: tuple[Atom, ...]
    points: isl.Set

    @staticmethod
    def of(names: list[Atom], bounds: list[Bound], extra: Iterable[Atom]) -> Polyhedron:
        """The polyhedron of `bounds` over `names` and every quotient met."""
        atoms: dict[Atom, None] = dict.fromkeys(names)
        bounds = list(bounds)

        def add(atom: Atom) -> None:
            if atom in atoms:
                return
            if not isinstance(atom, Quotient) or not isinstance(atom.by, int):
                raise ValueError(f"{atom} is not a coordinate of this polyhedron")
            for part, _ in atom.of.terms:
                add(part)
            atoms[atom] = None
            rest = Linear.of([*atom.of.terms, (atom, -atom.by)], atom.of.constant)
            bounds.append(Bound(rest, False))
            bounds.append(Bound(rest.times(-1).plus(Linear(constant=atom.by - 1)), False))

        for atom in [*extra, *(atom for bound in bounds for atom, _ in bound.form.terms)]:
            add(atom)
        points = isl.Set.universe(_space_of(atoms))
        polyhedron = Polyhedron(tuple(atoms), points)
        for bound in bounds:
            polyhedron = polyhedron.within(bound)
        return polyhedron

    def within(self, bound: Bound) -> Polyhedron:
        """The part where the bound holds."""
        make = isl.Constraint.equality_from_aff if bound.equal else isl.Constraint.inequality_from_aff
        return Polyhedron(self.atoms, self.points.add_constraint(make(self._aff(bound.form))))

    def _aff(self, form: Linear) -> isl.Aff:
        return aff_of(form, self.points.get_space(), _names_of(self.atoms))

    def is_empty(self) -> bool:
        return bool(self.points.is_empty())

    def sliced(self, form: Linear, value: int) -> Polyhedron:
        """The part where `form == value`."""
        return self.within(Bound(Linear(form.terms, form.constant - value), True))

    def equalities(self) -> list[Linear]:
        """The forms that are 0 at all of its points."""
        return [bound.form for bound in self._bounds(self.points.affine_hull()) if bound.equal]

    def bounded(self) -> list[tuple[Linear, int, int]]:
        """Forms that take finitely many values, at least two, with the least and the greatest.

        When there is none, the points are dense: a polynomial that is 0 at all of them is 0.
        """
        bounded: list[tuple[Linear, int, int]] = []
        for basic in self.points.get_basic_sets():
            for form in (bound.form for bound in self._bounds(basic) if not bound.equal):
                aff = self._aff(form)
                high = self.points.max_val(aff)
                if high.is_int():
                    low = self.points.min_val(aff)
                    bounded.append((form, int(str(low)), int(str(high))))
        return sorted((item for item in bounded if item[1] < item[2]), key=lambda item: item[2] - item[1])

    def _bounds(self, basic: isl.BasicSet) -> list[Bound]:
        meaning = _names_of(self.atoms)
        return [bound_of(constraint, meaning) for constraint in basic.get_constraints()]


@dataclass(frozen=True, eq=False)
class Cone:
    """Exponent vectors a >= 0 with one entry for each name: the variables grow as s**a."""

    names: tuple[str, ...]
    points: isl.Set

    @staticmethod
    def of(names: list[str]) -> Cone:
        """All growths: every exponent at least 0."""
        points = isl.Set.universe(_space_of(names))
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
        terms = ((name, more.get(name, 0) - less.get(name, 0)) for name in self.names)
        aff = aff_of(Linear.of(terms, -by), self.points.get_space(), _names_of(self.names))
        return isl.Set.from_basic_set(isl.BasicSet.from_constraint(isl.Constraint.inequality_from_aff(aff)))


def _names_of(atoms: Iterable[Atom]) -> dict[str, Atom]:
    """The atoms by the names of their coordinates in isl."""
    return {f"x{index}": atom for index, atom in enumerate(atoms)}


def _space_of(atoms: Iterable[Atom]) -> isl.Space:
    return isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=[*_names_of(atoms)])
