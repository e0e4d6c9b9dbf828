"""Points: how many there are in a set, said as text over the sizes of a layer, or attended under a rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from lattend.budget import UNLIMITED, Budget
from lattend.cost.amount import Amount, as_term, at_least_one, divides, product
from lattend.cost.sizes import number_of
from lattend.counts.closed import Closed, closed_form, counted_points, covering
from lattend.errors import NamingError, NoClosedForm
from lattend.rules.language import expr
from lattend.rules.language.expr import Compare, Condition, Name, Num
from lattend.rules.language.linear import Atom
from lattend.rules.language.parser import parse
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.rule import Rule
from lattend.sets import PointSet, Region, Space
from lattend.sets.guard import guarded, remembered

Sizes = Mapping[str, Polynomial]
_SIDE = re.compile(r"([A-Za-z]\w*) < (\w+)")


def points(
    condition: str,
    sizes: Sizes,
    onto: tuple[str, ...] | None = None,
    where: str = "true",
    budget: Budget = UNLIMITED,
) -> Amount:
    """How many points a set has: the names in `condition` that are no sizes are its indices, from 0 up.

    With `onto`, how many different values these of its indices take. Defined `where` that holds of sizes.
    The sets of layers are ours and quick; who counts a user's rule gives a budget.

    >>> from lattend.cost.sizes import read_size
    >>> points("row < n and 1 <= col < n", {"n": read_size("n", "n")})
    n(n - 1)
    """
    sides = _sides(condition)
    if sides and where == "true" and not any(index in sizes for index, _ in sides):
        kept = (size for index, size in sides if onto is None or index in onto)
        return product(*(int(size) if size.isdigit() else sizes[size] for size in kept))
    parsed = parse(condition)
    used = tuple(name for name in expr.names(parsed) if name in sizes)
    indices = tuple(name for name in expr.names(parsed) if name not in sizes)
    domain = expr.all_of(at_least(used, 1), parse(where))
    chosen = {name: sizes[name] for name in used}
    closed = remembered(_counted, parsed, indices, used, onto, domain, budget=budget)
    return replace(guarded(substitute, closed, chosen, domain, budget=budget), budget=budget)


@lru_cache(maxsize=256)
def _sides(condition: str) -> tuple[tuple[str, str], ...]:
    """The indices and sizes of a box, `token < n and i < d`: its points are a product; () for other sets."""
    matches = [_SIDE.fullmatch(part) for part in condition.split(" and ")]
    sides = tuple((side[1], side[2]) for side in matches if side is not None)
    return sides if len(sides) == len(matches) == len(dict(sides)) else ()


def _counted(
    condition: Condition,
    indices: tuple[str, ...],
    names: tuple[str, ...],
    onto: tuple[str, ...] | None,
    domain: Condition,
) -> Closed:
    closed = PointSet.over(condition, indices, names, domain)
    if onto is not None:
        closed = closed.without([index for index in indices if index not in onto])
    return counted_points(closed)


def count_pairs(rule: Rule, sizes: Sizes) -> Amount:
    """How many pairs a rule attends, its sizes and parameters given as numbers, names or formulas."""
    known = known_numbers(rule, sizes)
    if len(known) == len(rule.free):
        return Amount.number(rule.total(**known))
    bound = with_parameters(rule, known)
    where, chosen = defined(bound), {name: sizes[name] for name in bound.free}
    closed = remembered(closed_form, replace(bound, where=where, values={}), (), budget=rule.budget)
    return replace(guarded(substitute, closed, chosen, where, budget=rule.budget), budget=rule.budget)


def known_numbers(rule: Rule, sizes: Sizes) -> dict[str, int]:
    """Those of its open sizes and parameters that are numbers."""
    return {name: number for name in rule.free if (number := number_of(sizes[name])) is not None}


def with_parameters(rule: Rule, known: Mapping[str, int]) -> Rule:
    """The rule with its parameters, not its sizes, put to these numbers."""
    return rule.at(**{name: value for name, value in known.items() if name in rule.parameters}).baked()


def defined(rule: Rule) -> Condition:
    """The domain of a cost under this rule: sizes from 1 up, parameters from 0, and the rule's own."""
    weaker = expr.conjuncts(at_least((*rule.sizes, *rule.parameters), 0))
    parts = (part for part in expr.conjuncts(rule.domain) if part not in weaker)
    return expr.all_of(at_least(rule.sizes, 1), at_least(rule.parameters, 0), *parts)


def at_least(names: Iterable[str], least: int) -> Condition:
    """Every one of these names is at least so much."""
    return expr.all_of(*(Compare(">=", Name(name), Num(least)) for name in names))


def substitute(closed: Closed, sizes: Sizes, where: Condition) -> Amount:
    """The closed form, defined `where`, with numbers, other names or formulas for its sizes."""
    changed = {name: size for name, size in sizes.items() if size != Polynomial.atom(name)}
    formulas: dict[Atom, Polynomial] = dict(changed.items())
    pieces = covering(closed)
    if len(pieces) == 1 and closed.domain.is_subset(pieces[0].region) and not closed.space.split:
        formula = pieces[0].formula
        if not changed or all(isinstance(atom, str) for atom in formula.atoms):
            return _within(((None, formula.substituted(formulas)),), sizes, where)
    numbers = {name: number_of(size) for name, size in changed.items()}
    fixed = {name: number for name, number in numbers.items() if number is not None}
    moved = {name: _name_and_shift(name, size) for name, size in changed.items() if name not in fixed}
    renamed = {name: new for name, (new, _) in moved.items()}
    split = closed.space.split
    shifts = _shifts([moved.get(n, (n, 0)) for n in closed.space.parameters if n not in fixed])
    if any(name in split or name in split.values() for name in (*fixed, *_moving(moved))):
        raise NamingError(
            f"give a number to all or none of {', '.join(dict.fromkeys((*split, *split.values())))}"
        )
    rest = Space(tuple(n for n in closed.space.parameters if n not in fixed), (), split)
    same = _same(rest, renamed)
    clash = [name for pair in same.items() for name in pair if name in split or name in split.values()]
    if clash:
        raise NoClosedForm(f"{clash[0]} and a size it is divided by have one name; give them two, or numbers")
    one = Space(tuple(n for n in rest.parameters if n not in same), (), split)
    space = one.renamed(renamed)
    found: tuple[tuple[Region, Polynomial], ...] = tuple(
        _shifted(
            piece.region.fixed(fixed, rest).merged(same, one).renamed(renamed, space),
            piece.formula.at({**fixed, **renamed}),
            shifts,
        )
        for piece in pieces
    )
    inside: tuple[tuple[Region | None, Polynomial], ...] = tuple(
        (region, formula) for region, formula in found if not region.is_empty()
    )
    if not space.parameters:
        inside = tuple((None, formula) for _, formula in inside[:1])
    return _within(inside or ((None, Polynomial({})),), sizes, where, dict(space.split))


def _same(space: Space, renamed: Mapping[str, str]) -> dict[str, str]:
    """Names that get the same new name as one before them."""
    first: dict[str, str] = {}
    same: dict[str, str] = {}
    for name in space.parameters:
        new = renamed.get(name, name)
        if new in first:
            same[name] = first[new]
        else:
            first[new] = name
    return same


def _within(
    pieces: tuple[tuple[Region | None, Polynomial], ...],
    sizes: Sizes,
    where: Condition,
    split: Mapping[str, str] | None = None,
) -> Amount:
    """The amount with its condition in the new names; what is said of a product of names is left out."""
    new = {name: term for name, size in sizes.items() if (term := as_term(size)) is not None}
    multiples = [divides(size) for size in sizes.values()]
    conditions = [part for part in expr.conjuncts(where) if set(expr.names(part)) <= set(new)]
    plain = {at_least((name,), 1): size for name, size in sizes.items()}
    moved = [
        part
        for one in conditions
        for part in expr.conjuncts(at_least_one(plain[one]) if one in plain else expr.substituted(one, new))
    ]
    left = [name for size in sizes.values() for name in size.atoms if isinstance(name, str)]
    known = {name for part in moved for name in expr.names(part)}
    open_ = [part for part in moved if expr.names(part)]
    least = at_least((name for name in left if name not in known), 1)
    return Amount(pieces, expr.all_of(*open_, *multiples, least), split or {})


def _name_and_shift(name: str, size: Polynomial) -> tuple[str, int]:
    """`n + 1` as n and 1: pieces by region take other names, shifted ones too; formulas would bend them."""
    for atom in size.atoms:
        shift = number_of(size - Polynomial.atom(atom))
        if shift is not None and isinstance(atom, str):
            return atom, shift
    raise NamingError(
        f"{name} is a name or a number here, not a formula: its count has several pieces; give {name} a name "
        "of its own"
    )


def _moving(moved: Mapping[str, tuple[str, int]]) -> list[str]:
    """The names that are shifted."""
    return [name for name, (_, shift) in moved.items() if shift]


def _shifts(moved: list[tuple[str, int]]) -> dict[str, int]:
    """The shift of each new name, which must be the same everywhere."""
    shifts: dict[str, int] = {}
    for new, shift in moved:
        if shifts.setdefault(new, shift) != shift:
            raise NamingError(f"{new} stands for two sizes that are not the same; give them two names")
    return {new: shift for new, shift in shifts.items() if shift}


def _shifted(region: Region, formula: Polynomial, shifts: Mapping[str, int]) -> tuple[Region, Polynomial]:
    """A piece in which some names stand for themselves and a number."""
    if not shifts:
        return region, formula
    if not all(isinstance(atom, str) for atom in formula.atoms):
        raise NoClosedForm(f"{next(iter(shifts))} is divided in this count; give it a number")
    for name, shift in shifts.items():
        region = region.shifted(name, shift)
    put: dict[Atom, Polynomial] = {
        n: Polynomial.atom(n) + Polynomial.constant(by) for n, by in shifts.items()
    }
    return region, formula.substituted(put)
