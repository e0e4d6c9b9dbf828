"""Convex sets in plain coordinates: polyhedra, on which formulas are decided, and cones of exponents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import islpy as isl

from lattend.rules.language.linear import Atom, Linear, Quotient


@dataclass(frozen=True, eq=False)
class Polyhedron:
    """Integer points of a polyhedron whose coordinates are atoms.

    A quotient `n // 2` is a coordinate like any other, held in place by `0 <= n - 2*(n // 2) <= 1`.
    """

    atoms: tuple[Atom, ...]
    points: isl.Set

    @staticmethod
    def of(names: list[Atom], bounds: list[tuple[Linear, bool]], extra: Iterable[Atom]) -> Polyhedron:
        """The polyhedron of `bounds` (each `form >= 0`, or `== 0`) over `names` and every quotient met."""
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
            bounds.append((rest, False))
            bounds.append((Linear.of([(a, -c) for a, c in rest.terms], atom.by - 1 - rest.constant), False))

        for atom in [*extra, *(atom for form, _ in bounds for atom, _ in form.terms)]:
            add(atom)
        order = tuple(atoms)
        space = isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, len(order))
        basic = isl.BasicSet.universe(space)
        for form, equal in bounds:
            aff = _aff(space, order, form)
            make = isl.Constraint.equality_from_aff if equal else isl.Constraint.inequality_from_aff
            basic = basic.add_constraint(make(aff))
        return Polyhedron(order, isl.Set.from_basic_set(basic))

    def is_empty(self) -> bool:
        return bool(self.points.is_empty())

    def sliced(self, form: Linear, value: int) -> Polyhedron:
        """The part where `form == value`."""
        aff = _aff(self.points.get_space(), self.atoms, form).add_constant_val(isl.Val(str(-value)))
        return Polyhedron(self.atoms, self.points.add_constraint(isl.Constraint.equality_from_aff(aff)))

    def equalities(self) -> list[Linear]:
        """The forms that are 0 at all of its points."""
        return [form for form, equal in self._forms(self.points.affine_hull()) if equal]

    def bounded(self) -> list[tuple[Linear, int, int]]:
        """Forms that take finitely many values, at least two, with the least and the greatest.

        When there is none, the points are dense: a polynomial that is 0 at all of them is 0.
        """
        bounded: list[tuple[Linear, int, int]] = []
        for basic in self.points.get_basic_sets():
            for form, equal in self._forms(basic):
                if equal:
                    continue
                aff = _aff(self.points.get_space(), self.atoms, form)
                high = self.points.max_val(aff)
                if high.is_int():
                    low = self.points.min_val(aff)
                    bounded.append((form, int(str(low)), int(str(high))))
        return sorted((item for item in bounded if item[1] < item[2]), key=lambda item: item[2] - item[1])

    def _forms(self, basic: isl.BasicSet) -> list[tuple[Linear, bool]]:
        forms: list[tuple[Linear, bool]] = []
        for constraint in basic.get_constraints():
            terms = [
                (atom, int(str(constraint.get_coefficient_val(isl.dim_type.set, i))))
                for i, atom in enumerate(self.atoms)
            ]
            constant = int(str(constraint.get_constant_val()))
            forms.append((Linear.of(terms, constant), bool(constraint.is_equality())))
        return forms


def _aff(space: isl.Space, order: tuple[Atom, ...], form: Linear) -> isl.Aff:
    aff = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space))
    for atom, coefficient in form.terms:
        aff = aff.add_coefficient_val(isl.dim_type.in_, order.index(atom), isl.Val(str(coefficient)))
    return aff.add_constant_val(isl.Val(str(form.constant)))


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
