"""Polyhedron: a convex set of integer points in plain coordinates, on which formulas are decided."""

from __future__ import annotations

from collections.abc import Iterable
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
