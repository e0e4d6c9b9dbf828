"""Closed forms: from a rule to the pieces of its count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.simplify import simplified
from lattend.errors import NoClosedForm
from lattend.rules.axes import LINE, Axis
from lattend.rules.language import expr
from lattend.rules.language.expr import And, Condition, Name, Not, Or, Truth
from lattend.rules.language.linear import Linear, Quotient
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.rule import Rule
from lattend.sets import Bound, PointSet, Region, Space, moduli_of, region_of, within
from lattend.sets.region import Piece, uncovered

LARGEST_SIZE, MOST_QUOTIENTS = 10_000, 200  # of a size whose quotients by all numbers are gone through
LARGE = 1 << 60  # beyond, sums with it might leave 64 bits
MOST_CONDITIONS = 6


@dataclass(frozen=True, eq=False)
class Closed:
    """The pieces of a count on its domain, in the coordinates of `space`.

    On an image whose axes are alike, `line` is the count of one of them: the whole is the product
    over `axes`, each given as a renaming of the line's names.
    """

    space: Space
    domain: Region
    pieces: list[Piece]
    line: Closed | None = None
    axes: tuple[Mapping[str, str], ...] = ()

    @cached_property
    def signed(self) -> frozenset[str]:
        """The names that may be below 0 on its domain."""
        space, signed = self.space, set[str]()
        for name in space.parameters:
            alone = Linear(((name, 1),))
            atom = Quotient(alone, space.split[name]) if name in space.split else name
            below = self.domain.where(Bound(Linear(((atom, -1),), -1), False))
            if not below.is_empty():
                signed.add(name)
        return frozenset(signed)

    def ready(self) -> Closed:
        """Itself, its regions taken apart into conditions, so that numbers can be put in without isl."""
        for region in (self.domain, *(piece.region for piece in self.pieces)):
            _ = region.clauses
        return self

    def values_at(
        self, env: Mapping[str, Any], shape: tuple[int, ...], most: int | None = None
    ) -> NDArray[Any]:
        """The count at arrays of values, as exact integers: of the first piece that holds, else 0.

        Where none is greater than `most`, they come in int64 if that holds them.
        """
        arrays = {name: _spread(x, shape) for name, x in env.items() if np.ndim(x)}
        if any(abs(x) > LARGE for x in env.values() if isinstance(x, int)):
            env, most = {name: np.asarray(x).astype(object) for name, x in env.items()}, None
        values = np.zeros(shape, object if most is None or most > LARGE else np.int64)
        open_ = np.ones(shape, bool)
        for piece in self.pieces:
            inside = open_ & np.asarray(piece.region.holds(env), bool)
            if inside.all():  # often so, and quicker
                values[...] = piece.formula.values(env, most)
                break
            if inside.any():
                some = {**env, **{name: x[inside] for name, x in arrays.items()}}
                values[inside] = piece.formula.values(some, most)
                open_ &= ~inside
        return values


def _spread(numbers: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array of this shape; most are."""
    return numbers if np.shape(numbers) == shape else np.broadcast_to(numbers, shape)


def closed_form(rule: Rule, fixed: tuple[str, ...] = (), first: int = 0) -> Closed:
    """The number of attended pairs in the rule's sizes and parameters, bound ones included.

    Positions in `fixed` stay as symbols, counted from `first`: ("q",) counts the keys of each query.
    """
    if expr.arrays(rule.condition):
        array = expr.arrays(rule.condition)[0]
        raise NoClosedForm.of_rule(
            rule.text,
            f"looks up data ({array}[...]), so it has no closed form; at given numbers it is counted "
            "from the data",
        )
    if len(rule.axes) > 1 and not rule.has_heads:
        products = by_axis(rule.condition, rule.axes)
        if products is not None:
            factored = _sum_of_products(rule, products, fixed, first)
            if factored is not None:
                return factored.ready()
    return _counted(PointSet.of_rule(rule, rule.formula_domain, fixed, first)).ready()


def raw_form(rule: Rule) -> Closed:
    """Returns the count of a rule on a line as Barvinok computes it: fast, in many pieces."""
    points = PointSet.of_rule(rule)
    return Closed(points.domain.space, points.domain, points.counted()).ready()


def counted_points(points: PointSet) -> Closed:
    """Returns the number of points in few pieces."""
    return Closed(points.domain.space, points.domain, simplified(points.counted(), points.domain))


def at_sizes(closed: Closed, sizes: Mapping[str, int]) -> Closed:
    """Returns the pieces at numbers for split sizes with an open modulus: one piece for each quotient."""
    for name, size in sizes.items():
        space = closed.space
        quotients = {0, *(size // by for by in range(1, size + 1))} if size <= LARGEST_SIZE else set[int]()
        if len(quotients) > MOST_QUOTIENTS or not quotients:
            return closed
        by = space.split[name]
        kept = tuple(other for other in space.parameters if other != name)
        rest = Space(kept, (), {other: w for other, w in space.split.items() if other != name})
        block, offset = (atom for _, atom in space.coordinates((name,)))
        pieces: list[Piece] = []
        domain = closed.domain - closed.domain
        for quotient in sorted(quotients):
            left = Linear.of([(by, -quotient)], size)  # the remainder at this quotient
            put = {block: Polynomial.constant(quotient), offset: Polynomial.linear(left)}
            bounds = [
                Bound(Linear(((block, 1),), -quotient), True),
                Bound(left.plus(Linear(((offset, 1),)), -1), True),
            ]

            def inside(region: Region, bounds: list[Bound] = bounds) -> Region:
                return region.where(bounds[0]).where(bounds[1])

            domain = domain | inside(closed.domain)
            remaining = (Piece(inside(p.region), p.formula.substituted(put)) for p in closed.pieces)
            pieces += [p for p in remaining if not p.region.is_empty()]
        pieces = [Piece(p.region.without(name, rest), p.formula) for p in pieces]
        closed = Closed(rest, domain.without(name, rest), pieces)
    return closed


def _counted(points: PointSet) -> Closed:
    """Returns the same, from the points outside if they are simpler to count."""
    gaps = points.gaps()
    if gaps is None:
        return counted_points(points)
    counted = _combined(counted_points(points.whole()), counted_points(gaps), Polynomial.__sub__)
    if counted is None:
        raise ValueError("two sets of one space have one split")
    return Closed(counted.space, counted.domain, simplified(counted.pieces, counted.domain))


def _sum_of_products(
    rule: Rule, products: list[tuple[Condition, ...]], fixed: tuple[str, ...], first: int
) -> Closed | None:
    """The count of a rule on an image as sums of products of counts on lines."""
    moduli = _axis_moduli(rule)
    total: Closed | None = None
    lines: list[Closed] = []
    for conditions in products:
        joined: Closed | None = None
        for axis, condition in zip(rule.axes, conditions, strict=True):
            shared, line = _on_line(rule, axis, condition, fixed, first, moduli.get(axis.query))
            lines.append(shared)
            joined = line if joined is None else _combined(joined, line, Polynomial.__mul__)
            if joined is None:
                return None
        if joined is None:
            return None
        total = joined if total is None else _combined(total, joined, Polynomial.__add__)
        if total is None:
            return None
    if total is None:
        names = (*rule.sizes, *rule.parameters)
        nothing = PointSet.of(
            Truth(False), rule.axes, domain=rule.formula_domain, parameters=names, fixed=fixed, first=first
        )
        return _counted(nothing)
    inside = [within(p, size, first) for p, size in rule.limits.items() if p in fixed]
    domain = region_of(expr.all_of(rule.formula_domain, *inside), total.space)
    if len(products) > 1:
        return Closed(total.space, domain, simplified(total.pieces, domain))
    # A single product of simplified counts is as simple as it gets
    alike = all(line is lines[0] for line in lines)
    axes = tuple(_from_line(axis) for axis in rule.axes)
    return Closed(total.space, domain, total.pieces, lines[0] if alike else None, axes)


def _axis_moduli(rule: Rule) -> dict[str, str]:
    positions = {name for axis in rule.axes for name in (axis.query, axis.key)}
    moduli = moduli_of(rule.condition, positions)
    return {
        axis.query: modulus
        for axis in rule.axes
        for modulus in (moduli.get(axis.query) or moduli.get(axis.key),)
        if modulus
    }


def _on_line(
    rule: Rule, axis: Axis, condition: Condition, fixed: tuple[str, ...], first: int, modulus: str | None
) -> tuple[Closed, Closed]:
    """Returns the count of one axis: with the names of a line, shared by all axes, and with its own names."""
    back = _from_line(axis)
    to_line = {old: new for new, old in back.items()}
    others = [size for size in rule.sizes if size != axis.queries and size in expr.names(condition)]
    known = {axis.queries, *others, *rule.parameters}
    domain = expr.all_of(*(c for c in expr.conjuncts(rule.formula_domain) if set(expr.names(c)) <= known))
    held = tuple(to_line[name] for name in fixed if name in to_line)
    line = _line(
        expr.substituted(condition, {old: Name(new) for old, new in to_line.items()}),
        expr.substituted(domain, {old: Name(new) for old, new in to_line.items()}),
        ("n", *others, *rule.parameters),
        held,
        first,
        modulus,
    )
    space = line.space.renamed(back)
    pieces = [Piece(p.region.renamed(back, space), p.formula.at(back)) for p in line.pieces]
    return line, Closed(space, line.domain.renamed(back, space), pieces)


def _from_line(axis: Axis) -> dict[str, str]:
    return {"q": axis.query, "k": axis.key, "n": axis.queries}


@lru_cache(maxsize=256)
def _line(
    condition: Condition,
    domain: Condition,
    parameters: tuple[str, ...],
    held: tuple[str, ...],
    first: int,
    modulus: str | None,
) -> Closed:
    moduli = {"q": modulus} if modulus else {}
    options: dict[str, Any] = {"domain": domain, "parameters": parameters, "moduli": moduli}
    return _counted(PointSet.of(condition, LINE, fixed=held, first=first, **options))


def forget_lines() -> None:
    """Empty the memory of lines shared between axes; for measuring."""
    _line.cache_clear()


def _combined(
    left: Closed, right: Closed, join: Callable[[Polynomial, Polynomial], Polynomial]
) -> Closed | None:
    """The sum, difference or product of two counts; None when they split a name differently."""
    space = left.space.joined(right.space)
    if space is None:
        return None
    pieces: list[Piece] = []
    for a in covering(left):
        for b in covering(right):
            formula = join(a.formula, b.formula)
            region = Region(space, a.region.points & b.region.points)
            if not formula.is_zero and not region.is_empty():
                factors = (*(a.factors or (a.formula,)), *(b.factors or (b.formula,)))
                pieces.append(Piece(region, formula, factors if join is Polynomial.__mul__ else ()))
    return Closed(space, Region(space, left.domain.points & right.domain.points), pieces)


def covering(closed: Closed) -> list[Piece]:
    """Returns the pieces, including one that is 0, so that they cover the domain."""
    rest = uncovered(closed.pieces, closed.domain)
    return closed.pieces if rest.is_empty() else [*closed.pieces, Piece(rest, Polynomial({}))]


def by_axis(condition: Condition, axes: tuple[Axis, ...]) -> list[tuple[Condition, ...]] | None:
    """Returns disjoint products with one condition for each axis, whose union is `condition`, or None.

    `qy == ky or qx == kx` is [(qy == ky, true), (not qy == ky, qx == kx)].
    """
    if len(axes) == 1:
        return [(condition,)]
    axis, rest = axes[0], axes[1:]
    mine = {axis.query, axis.key}
    others = {name for other in rest for name in (other.query, other.key)}
    condition = _gathered(condition, mine, others)
    atoms = _axis_conditions(condition, mine, others)
    if atoms is None or len(atoms) > MOST_CONDITIONS:
        return None
    by_residual: dict[Condition, list[Condition]] = {}
    for chosen, residual in expr.choices(condition, atoms):
        if residual == Truth(False):
            continue
        literals = [atom if value else expr.negated(atom) for atom, value in chosen.items()]
        by_residual.setdefault(residual, []).append(expr.all_of(*literals))
    products: list[tuple[Condition, ...]] = []
    for residual, choices in by_residual.items():
        tails = by_axis(residual, rest)
        if tails is None:
            return None
        products.extend((expr.any_of(*choices), *tail) for tail in tails)
    return products


def _touches(condition: Condition, names: set[str]) -> bool:
    return any(name in names for name in expr.names(condition))


def _gathered(node: Condition, mine: set[str], others: set[str]) -> Condition:
    """Returns the condition with conditions on one axis grouped together."""
    match node:
        case Not():
            return Not(_gathered(node.arg, mine, others))
        case And() | Or():
            join = expr.all_of if isinstance(node, And) else expr.any_of
            kind = type(node)
            own = tuple(arg for arg in node.args if not _touches(arg, others) and _touches(arg, mine))
            rest = tuple(_gathered(arg, mine, others) for arg in node.args if arg not in own)
            if len(own) < 2:
                return join(*own, *rest)
            return kind((kind(own), *rest)) if rest else kind(own)
        case _:
            return node


def _axis_conditions(node: Condition, mine: set[str], others: set[str]) -> list[Condition] | None:
    """The largest parts that speak of this axis alone, each once; None if a part mixes axes."""
    if not _touches(node, mine):
        return []
    if not _touches(node, others):
        return [node]
    match node:
        case And() | Or():
            parts = [_axis_conditions(arg, mine, others) for arg in node.args]
        case Not():
            parts = [_axis_conditions(node.arg, mine, others)]
        case _:
            return None
    if any(part is None for part in parts):
        return None
    return list(dict.fromkeys(atom for part in parts for atom in part or ()))
