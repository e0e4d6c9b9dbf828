"""PointSet: the attended pairs of a rule as a set of integer points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import islpy as isl

from lattend.errors import EngineMissing, NoClosedForm
from lattend.rules.axes import HEAD, HEADS, Axis
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Compare, Condition, Name, Num
from lattend.rules.language.linear import Atom, Linear, Monomial
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.rule import Rule
from lattend.sets.bound import aff_of, quotient_of
from lattend.sets.build import Described, describe
from lattend.sets.region import Piece, Region, nearest_to_zero
from lattend.sets.space import Space
from lattend.sets.term import Arithmetic


def can_count() -> bool:
    """Whether the installed isl has Barvinok's counting; plain islpy has not."""
    return hasattr(isl.Set, "card")


@dataclass(frozen=True, eq=False)
class PointSet:
    """Points (positions) for every value of the parameters in `domain`."""

    space: Space
    points: isl.Set
    box: isl.Set
    domain: Region

    @staticmethod
    def of(
        condition: Condition,
        axes: tuple[Axis, ...],
        *,
        domain: Condition,
        parameters: Iterable[str],
        fixed: Iterable[str] = (),
        first: int = 0,
        heads: bool = False,
        moduli: Mapping[str, str] | None = None,
        source: str | None = None,
    ) -> PointSet:
        """The pairs on `axes` where `condition` holds.

        Positions in `fixed` are parameters rather than dimensions: fixing q leaves the keys of one
        query. They are counted from `first`.
        """
        held = tuple(fixed)
        positions = [HEAD] if heads else []
        positions += [axis.query for axis in axes] + [axis.key for axis in axes]
        sizes: dict[str, str] = {HEAD: HEADS} if heads else {}
        tied: dict[str, tuple[str, ...]] = {}
        for axis in axes:
            sizes |= {axis.query: axis.queries, axis.key: axis.keys}
            together = (axis.query, axis.key, axis.queries, axis.keys)
            tied |= dict.fromkeys(together, together)
        inside = {p: within(p, sizes[p], first if p in held else 0) for p in positions}
        if first:
            condition = expr.substituted(condition, {p: Arith("-", (Name(p), Num(first))) for p in held})
        described = describe(
            condition,
            parameters=(*dict.fromkeys(parameters), *held),
            dims=tuple(p for p in positions if p not in held),
            bounds=expr.all_of(*(c for p, c in inside.items() if p not in held)),
            domain=expr.all_of(domain, *(inside[p] for p in held)),
            tied=tied,
            moduli=moduli,
            source=source,
        )
        return PointSet._described(described)

    @staticmethod
    def of_rule(
        rule: Rule, domain: Condition | None = None, fixed: Iterable[str] = (), first: int = 0
    ) -> PointSet:
        """The pairs of a rule on `domain`, or on its own; its parameters are symbols, bound ones too."""
        return PointSet.of(
            rule.condition,
            rule.axes,
            domain=domain or rule.domain,
            parameters=(*rule.sizes, *rule.parameters),
            fixed=fixed,
            first=first,
            heads=rule.has_heads,
            source=rule.source,
        )

    @staticmethod
    def over(
        condition: Condition, indices: tuple[str, ...], parameters: tuple[str, ...], domain: Condition
    ) -> PointSet:
        """The points of `indices`, all from 0 up, where `condition` holds."""
        described = describe(
            condition,
            parameters=parameters,
            dims=indices,
            bounds=expr.all_of(*(Compare(">=", Name(index), Num(0)) for index in indices)),
            domain=domain,
        )
        return PointSet._described(described)

    @staticmethod
    def _described(described: Described) -> PointSet:
        known = Region(described.space.of_parameters(), described.context.params())
        return PointSet(described.space, described.points, described.box, known)

    def gaps(self) -> PointSet | None:
        """Returns the points of the box outside the set, if they are simpler to count."""
        rest = (self.box - self.points).coalesce()
        if rest.n_basic_set() >= self.points.n_basic_set():
            return None
        return replace(self, points=rest)

    def overlapping(self) -> list[tuple[int, PointSet]]:
        """Sets whose counts add up to its own, with these signs.

        Of two convex parts that meet, both and what they share: to count these is quicker than to take one
        part away from the other, which mixes their quotients.
        """
        if self.points.n_basic_set() == 2:
            one, other = (isl.Set.from_basic_set(part) for part in self.points.get_basic_sets())
            if not (shared := one & other).is_empty():
                signed = (1, one), (1, other), (-1, shared)
                return [(sign, replace(self, points=points)) for sign, points in signed]
        return [(1, self)]

    def without(self, names: Iterable[str]) -> PointSet:
        """Returns the projection of the points along these dimensions."""
        gone = {name for name, _ in self.space.coordinates(tuple(names))}
        points, box = (self._projected(isl_set, gone) for isl_set in (self.points, self.box))
        kept = tuple(name for name in self.space.dims if name not in set(names))
        space = Space(
            self.space.parameters, kept, {n: w for n, w in self.space.split.items() if n not in set(names)}
        )
        return PointSet(space, points, box, self.domain)

    def shifts(self, pairs: list[tuple[str, str]]) -> PointSet:
        """The differences of pairs of dimensions that its points take; nothing else is kept."""
        space = self.points.get_space()
        if self.space.split:
            raise NoClosedForm("differences of split positions are not counted")
        local = isl.LocalSpace.from_space(space)
        image: isl.Map | None = None
        for plus, minus in pairs:
            ahead, behind = (
                isl.Aff.var_on_domain(local, isl.dim_type.set, space.get_var_dict()[f"v_{name}"][1])
                for name in (plus, minus)
            )
            one = isl.Map.from_aff(ahead - behind)
            image = one if image is None else image.flat_range_product(one)
        if image is None:
            return self
        shifted = self.points.apply(image)
        return PointSet(Space(self.space.parameters, (), {}), shifted, shifted, self.domain)

    @staticmethod
    def _projected(points: isl.Set, gone: set[str]) -> isl.Set:
        for name in gone:
            dim = points.get_space().get_var_dict()[name][1]
            points = points.project_out(isl.dim_type.set, dim, 1)
        return points.coalesce()

    def whole(self) -> PointSet:
        """All points of the box."""
        return replace(self, points=self.box)

    def counted(self) -> list[Piece]:
        """The number of points as quasi-polynomials of the parameters, each with its region."""
        if not can_count():
            raise EngineMissing(
                "closed forms need Barvinok's counting, and the islpy that is installed has none: "
                "pip uninstall islpy, then pip install islpy-barvinok"
            )
        pieces = self.points.card().coalesce().get_pieces()
        return [
            Piece(Region(self.domain.space, where), _from_isl(formula, self.space.atoms))
            for where, formula in pieces
        ]

    def unwrapped(self) -> PointSet:
        """The part where every split name is smaller than its modulus."""
        points = self.points
        for name in self.space.split:
            if f"b_{name}" in self.space.isl.get_var_dict():
                kind, dim = self.space.isl.get_var_dict()[f"b_{name}"]
                points = points.fix_val(kind, dim, isl.Val(0))
        return replace(self, points=points)

    def least(self, order: list[str]) -> dict[str, int]:
        """Returns the least point in the order of these names; below 0, the one nearest to 0.

        Names that are split count by their offset, so the set must be `unwrapped`.
        """
        points, coordinates = self.points, dict[str, int]()
        points = points.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, points.dim(isl.dim_type.param))
        names = [name for name, _ in self.space.coordinates(self.space.parameters + self.space.dims)]
        for name in order:
            dim = names.index(f"o_{name}" if name in self.space.split else f"v_{name}")
            value = nearest_to_zero(points, dim)
            points = points.fix_val(isl.dim_type.set, dim, value)
            coordinates[name] = int(str(value))
        return coordinates

    def greatest(self, plus: str, minus: str) -> list[Piece]:
        """Returns the maximum of `plus - minus` over the points, where there are any."""
        arithmetic = Arithmetic(self.space, self.box)
        moduli = set(self.space.split.values())
        gap = arithmetic.folded(arithmetic.name(plus, moduli).plus(arithmetic.name(minus, moduli), -1))
        functions = [gap.base]
        modulus = next(iter(gap.scaled), None)
        if modulus is not None:
            functions = [arithmetic.quotient(gap, modulus).base, arithmetic.remainder(gap, modulus).base]
        image = isl.Map.from_pw_aff(functions[0])
        for function in functions[1:]:
            image = image.flat_range_product(isl.Map.from_pw_aff(function))
        best = self.points.apply(image).lexmax_pw_multi_aff()
        pieces: list[Piece] = []

        def note(where: isl.Set, values: isl.MultiAff) -> None:
            formula = polynomial_of(values.get_aff(len(functions) - 1), self.space.atoms)
            if modulus is not None:
                formula += Polynomial.atom(modulus) * polynomial_of(values.get_aff(0), self.space.atoms)
            pieces.append(Piece(Region(self.domain.space, where.params()), formula))

        best.foreach_piece(note)
        return pieces

    def occupied(self) -> Region:
        """Returns the region where there is at least one point."""
        return Region(self.domain.space, self.points.params())

    def is_empty(self) -> bool:
        return bool(self.points.is_empty())


def summed(pieces: Iterable[Piece], name: str) -> list[Piece]:
    """Returns the sum of formulas over all values of one parameter, which must be finitely many.

    The formula i for 1 <= i <= n becomes n(n + 1)/2 for n >= 1.
    """
    total: isl.PwQPolynomial | None = None
    outer = Space((), (), {})
    for piece in pieces:
        space = piece.region.space
        kept = tuple(other for other in space.parameters if other != name)
        outer = Space(kept, (), {other: w for other, w in space.split.items() if other != name})
        points = piece.region.points
        points = points.from_params() if points.is_params() else points
        for coordinate, _ in space.coordinates((name,)):
            end, dim = points.dim(isl.dim_type.set), points.get_space().get_var_dict()[coordinate][1]
            points = points.move_dims(isl.dim_type.set, end, isl.dim_type.param, dim, 1)
        formula = _to_isl(piece.formula, points.get_space(), space.atoms)
        part = isl.PwQPolynomial.alloc(points, formula)
        total = part if total is None else total.add(part)
    if total is None:
        return []
    sums = total.sum().coalesce().get_pieces()
    return [Piece(Region(outer, where), _from_isl(formula, outer.atoms)) for where, formula in sums]


def _from_isl(formula: isl.QPolynomial, meaning: Mapping[str, Atom]) -> Polynomial:
    terms = formula.get_terms()
    dims = [(meaning[name], kind, dim) for name, (kind, dim) in formula.get_space().get_var_dict().items()]
    for term in terms[:1]:  # all have the same quotients
        for dim in range(term.dim(isl.dim_type.div)):
            dims.append((quotient_of(term.get_div(dim), meaning), isl.dim_type.div, dim))
    dims.sort(key=lambda item: str(item[0]))  # the order of atoms in a monomial
    coefficients: dict[Monomial, Fraction] = {}
    for term in terms:
        exponents = ((atom, int(term.get_exp(kind, dim))) for atom, kind, dim in dims)
        powers = tuple((atom, exponent) for atom, exponent in exponents if exponent)
        coefficients[powers] = Fraction(str(term.get_coefficient_val()))
    return Polynomial(coefficients)


def _to_isl(formula: Polynomial, space: isl.Space, meaning: Mapping[str, Atom]) -> isl.QPolynomial:
    total = isl.QPolynomial.zero_on_domain(space)
    for powers, coefficient in formula.terms.items():
        term = isl.QPolynomial.val_on_domain(space, isl.Val(str(coefficient)))
        for atom, exponent in powers:
            one = isl.QPolynomial.from_aff(aff_of(Linear(((atom, 1),)), space, meaning))
            term = term.mul(one.pow(exponent))
        total = total.add(term)
    return total


def polynomial_of(aff: isl.Aff, meaning: Mapping[str, Atom]) -> Polynomial:
    """An affine function of the parameters."""
    quotient = quotient_of(aff, meaning)  # its form over its denominator
    return Polynomial.linear(quotient.of).times(
        Fraction(1, quotient.by if isinstance(quotient.by, int) else 1)
    )


def within(position: str, size: str, first: int = 0) -> Condition:
    """Returns `first <= position < size + first`, with 0 as the default of `first`."""
    end = Arith("+", (Name(size), Num(first))) if first else Name(size)
    return expr.all_of(Compare(">=", Name(position), Num(first)), Compare("<", Name(position), end))
