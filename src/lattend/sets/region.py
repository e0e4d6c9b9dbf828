"""Regions: sets of parameter values, where a formula holds; pieces: a formula and its region."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import islpy as isl

from lattend.rules.language.linear import Atom, Linear, Quotient
from lattend.rules.language.polynomial import Polynomial
from lattend.sets.bound import Bound, aff_of, any_clause_holds, bound_of
from lattend.sets.polyhedron import Polyhedron
from lattend.sets.space import Space

MAX_RESIDUE = 16


@dataclass(frozen=True, eq=False)
class Region:
    """The parameter values that satisfy some conditions, in the coordinates of `space`."""

    space: Space
    points: isl.Set

    def __and__(self, other: Region) -> Region:
        return Region(self.space, self.points & other.points)

    def __or__(self, other: Region) -> Region:
        return Region(self.space, (self.points | other.points).coalesce())

    def __sub__(self, other: Region) -> Region:
        return Region(self.space, (self.points - other.points).coalesce())

    def within(self, known: Region) -> Region:
        """Returns the region with shorter conditions that are equivalent where `known` holds."""
        return Region(self.space, self.points.coalesce().gist(known.points).coalesce())

    def where(self, bound: Bound) -> Region:
        """Returns the part where `bound` holds, a condition on its coordinates and their quotients."""
        function = isl.PwAff.from_aff(aff_of(bound.form, self.points.get_space(), self.space.atoms))
        zero = function.scale_val(isl.Val(0))
        return Region(
            self.space, self.points & (function.eq_set(zero) if bound.equal else function.ge_set(zero))
        )

    def is_empty(self) -> bool:
        return bool(self.points.is_empty())

    def is_subset(self, other: Region) -> bool:
        return bool(self.points.is_subset(other.points))

    def is_equal(self, other: Region) -> bool:
        """Whether both hold the same values."""
        return bool(self.points.is_equal(other.points))

    def unbounded(self, names: set[str]) -> bool:
        """Returns whether each of these names can be arbitrarily large in it, a split one by its blocks."""
        dims = self.points.get_space().get_var_dict()
        flat = self.points.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, len(dims))
        for name in names:
            options = [f"b_{name}", f"o_{name}"] if name in self.space.split else [f"v_{name}"]
            if all(flat.dim_max_val(dims[option][1]).is_int() for option in options):
                return False
        return True

    def parts(self) -> list[Region]:
        """Its convex parts."""
        return [Region(self.space, isl.Set.from_basic_set(part)) for part in self._basic]

    def text_length(self) -> int:
        """The number of its conditions."""
        return sum(part.n_constraint() + 1 for part in self.points.get_basic_sets())

    def equalities(self) -> list[Linear]:
        """The forms that are 0 at all of its points."""
        hull = self.points.affine_hull().remove_divs()
        bounds = [bound_of(c, self.space.atoms) for c in hull.get_constraints()]
        return [bound.form for bound in bounds if bound.equal]

    def rest(self, atom: Atom) -> int | None:
        """Returns the remainder of a quotient by a small number, if it is the same everywhere."""
        if not isinstance(atom, Quotient) or not isinstance(atom.by, int) or atom.by > MAX_RESIDUE:
            return None
        for rest in range(atom.by):
            exact = Linear.of([*atom.of.terms, (atom, -atom.by)], atom.of.constant - rest)
            if self.is_subset(self.where(Bound(exact, True))):
                return rest
        return None

    def relaxed(self) -> Iterator[tuple[Region, bool]]:
        """Yields the convex region with each condition dropped (False), and moved outward by one (True).

        It moves only where that makes it shorter to say: `t < n` to `t <= n`, not on to `t <= n + 1`.
        """
        for part in self.points.get_basic_sets():
            constraints = part.get_constraints()
            for index, chosen in enumerate(constraints):
                kept = isl.BasicSet.universe(part.get_space())
                for constraint in constraints[:index] + constraints[index + 1 :]:
                    kept = kept.add_constraint(constraint)
                yield Region(self.space, isl.Set.from_basic_set(kept)), False
                if not chosen.is_equality() and chosen.get_constant_val().is_neg():
                    outward = chosen.get_aff().add_constant_val(isl.Val(1))
                    moved = kept.add_constraint(isl.Constraint.inequality_from_aff(outward))
                    yield Region(self.space, isl.Set.from_basic_set(moved)), True

    def is_point(self) -> bool:
        """Whether it has exactly one point."""
        return len(self._basic) == 1 and self.dimension() == 0

    def dimension(self) -> int:
        """The number of directions in which it extends: 0 for a single point."""
        hulls = ((p.dim(isl.dim_type.param), p.affine_hull().remove_divs()) for p in self._basic)
        free = (dims - sum(c.is_equality() for c in hull.get_constraints()) for dims, hull in hulls)
        return max(free, default=0)

    @cached_property
    def _basic(self) -> list[isl.BasicSet]:
        return list(self.points.compute_divs().make_disjoint().get_basic_sets())

    @cached_property
    def clauses(self) -> list[list[Bound]]:
        """The region as a union of conjunctions of linear conditions on atoms."""
        return [[bound_of(c, self.space.atoms) for c in part.get_constraints()] for part in self._basic]

    def holds(self, values: Mapping[str, Any]) -> Any:
        """Whether the values lie in the region; arrays of values give arrays."""
        return any_clause_holds(self.clauses, values)

    def polyhedra(self, atoms: Iterable[Atom] = ()) -> list[Polyhedron]:
        """Returns its convex parts with every quotient, and those in `atoms`, as separate coordinates."""
        names = [atom for _, atom in self.space.coordinates(self.space.parameters)]
        return [Polyhedron.of(names, clause, atoms) for clause in self.clauses]

    @cached_property
    def _sample(self) -> dict[str, int] | None:
        if self.is_empty():
            return None
        point = self.points.sample_point()
        numbers: dict[Atom, int] = {}
        for name, atom in self.space.coordinates(self.space.parameters):
            kind, dim = self.points.get_space().get_var_dict()[name]
            numbers[atom] = int(str(point.get_coordinate_val(kind, dim)))
        return self.named(numbers)

    def least(self, order: list[str]) -> dict[str, int] | None:
        """Returns the least values in this order of names; None if it is empty or a name is split."""
        if self.is_empty() or any(name in self.space.split for name in order):
            return None
        dims = self.points.get_space().get_var_dict()
        flat = self.points.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, len(dims))
        numbers: dict[str, int] = {}
        for name in order:
            dim = dims[f"v_{name}"][1]
            value = nearest_to_zero(flat, dim)
            flat = flat.fix_val(isl.dim_type.set, dim, value)
            numbers[name] = int(str(value))
        return numbers

    def sample(self) -> dict[str, int] | None:
        """Returns values that lie in it, or None if it is empty."""
        return self._sample

    def named(self, coordinates: Mapping[Atom, int]) -> dict[str, int]:
        """Values of the user's names from values of the coordinates: n = w*(n // w) + n % w."""
        values = {atom: value for atom, value in coordinates.items() if isinstance(atom, str)}
        for name in self.space.parameters:
            if name in self.space.split:
                modulus = self.space.split[name]
                block, offset = (atom for _, atom in self.space.coordinates((name,)))
                values[name] = values[modulus] * coordinates[block] + coordinates[offset]
        return values

    def renamed(self, names: Mapping[str, str], space: Space) -> Region:
        """The same region with the names of its parameters changed, in the coordinates of `space`."""
        points = self.points
        for dim in range(points.dim(isl.dim_type.param)):
            old = str(points.get_dim_name(isl.dim_type.param, dim))
            prefix, name = old[:2], old[2:]
            points = points.set_dim_name(isl.dim_type.param, dim, prefix + names.get(name, name))
        return Region(space, points)

    def fixed(self, values: Mapping[str, int], space: Space) -> Region:
        """The same region with numbers for some of its parameters, which `space` no longer has."""
        points = self.points
        for name, value in values.items():
            coordinate = points.get_space().get_var_dict().get(f"v_{name}")
            if coordinate is not None:
                points = points.fix_val(isl.dim_type.param, coordinate[1], isl.Val(str(value)))
                points = points.project_out(isl.dim_type.param, coordinate[1], 1)
        return Region(space, points)

    def without(self, name: str, space: Space) -> Region:
        """Returns the projection of the region along one name, which `space` no longer has."""
        points = self.points
        for coordinate, _ in self.space.coordinates((name,)):
            dim = points.get_space().get_var_dict()[coordinate][1]
            points = points.project_out(isl.dim_type.param, dim, 1)
        return Region(space, points)

    def merged(self, same: Mapping[str, str], space: Space) -> Region:
        """Returns the part where each of these names equals another, which replaces it."""
        region = self.aligned(self.space)
        for name, other in same.items():
            region = region.where(Bound(Linear.of([(name, 1), (other, -1)], 0), True))
        points = region.points
        for name in same:
            dim = points.get_space().get_var_dict()[f"v_{name}"][1]
            points = points.project_out(isl.dim_type.param, dim, 1)
        return Region(space, points)

    def shifted(self, name: str, by: int) -> Region:
        """Returns the region shifted along one name: n >= 3 by 1 is n >= 2."""
        before = f"{name}_before"
        own = tuple(before if other == name else other for other in self.space.parameters)
        wide = replace(self.space, parameters=(*own, name))
        region = self.aligned(self.space).renamed({name: before}, wide).aligned(wide)
        region = region.where(Bound(Linear.of([(before, 1), (name, -1)], -by), True))
        dim = region.points.get_space().get_var_dict()[f"v_{before}"][1]
        return Region(self.space, region.points.project_out(isl.dim_type.param, dim, 1))

    def aligned(self, space: Space) -> Region:
        """The same region among the parameters of a larger space."""
        return Region(space, self.points.align_params(space.isl))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.space, str(self.points), self.__dict__.get("clauses"))


def _restored(space: Space, points: str, clauses: list[list[Bound]] | None) -> Region:
    region = Region(space, isl.Set(points))
    if clauses is not None:
        region.__dict__["clauses"] = clauses
    return region


def nearest_to_zero(points: isl.Set, dim: int) -> isl.Val:
    """Returns the least value of one coordinate from 0 up, or else the greatest below 0.

    By projection: isl's own minimum over a union can come from a part that has no integer point.
    """
    line = points.project_out(isl.dim_type.set, dim + 1, points.dim(isl.dim_type.set) - dim - 1)
    line = line.project_out(isl.dim_type.set, 0, dim)
    from_zero = line.lower_bound_val(isl.dim_type.set, 0, isl.Val(0))
    best = line.lexmax() if from_zero.is_empty() else from_zero.lexmin()
    return best.sample_point().get_coordinate_val(isl.dim_type.set, 0)


@dataclass(frozen=True, eq=False)
class Piece:
    """A formula and the region where it is the count; `factors` if it is a product."""

    region: Region
    formula: Polynomial
    factors: tuple[Polynomial, ...] = ()


def uncovered(pieces: Iterable[Piece], domain: Region) -> Region:
    """The part of `domain` where no piece holds, so that the count is 0."""
    for piece in pieces:
        domain = domain - piece.region
    return domain
