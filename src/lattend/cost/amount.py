"""Amount: how many of something there are, in the layer's symbols; amounts add and multiply.

A Count belongs to a rule. An amount is made of such counts and of plain products of sizes: most are one
polynomial that holds wherever the sizes do, those of attention bring the pieces of the rule's count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import lcm
from typing import Any, cast

from lattend.budget import UNLIMITED, Budget
from lattend.counts.closed import Closed
from lattend.counts.count import Count
from lattend.counts.simplify import simplified
from lattend.counts.symbolic import coordinate
from lattend.errors import DomainError, NamingError, NoClosedForm
from lattend.report.shown import Shown
from lattend.rules.axes import Axis
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Arith, Compare, Condition, Name, Num, Term, Truth
from lattend.rules.language.linear import Atom, atom_names
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.rule import check_integer
from lattend.sets import Region, Space, region_of
from lattend.sets.guard import guarded
from lattend.sets.region import Piece

EVERYWHERE = Truth(True)
FIRST = ("n", "m", "depth", "rows", "cols", "t", "l", "heads")  # then capitals last, others as they are spelt
Join = Callable[[Polynomial, Polynomial], Polynomial]


@dataclass(frozen=True)
class Symbols:
    """The names of a cost's formula, and the condition under which it holds.

    It stands where a Count has its rule.
    """

    sizes: tuple[str, ...]
    domain: Condition
    moduli: tuple[str, ...] = ()
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    text: str = "a cost"
    parameters: tuple[str, ...] = ()
    axes: tuple[Axis, ...] = ()

    @property
    def formula_domain(self) -> Condition:
        """Its domain, which says the range of every name."""
        return self.domain

    def at(self, **values: int) -> Symbols:
        """The same with these names bound, which must be known and within the domain."""
        known = {**self.values, **values}
        for name, value in values.items():
            if name not in self.sizes:
                raise NamingError(f"{self.text} has no {name}; it has {', '.join(self.sizes)}")
            check_integer(name, value)
        for part in expr.conjuncts(self.domain):
            names = expr.names(part)
            if all(name in known for name in names) and not evaluate(part, known, {}):
                numbers = ", ".join(f"{name} = {known[name]}" for name in names)
                raise DomainError(f"{self.text} needs {expr.text(part)}, got {numbers}")
        return replace(self, values=known)

    def baked(self) -> Symbols:
        """Itself: its numbers go into formulas, not into a condition."""
        return self


@dataclass(frozen=True, eq=False)
class Amount(Shown):
    """A polynomial, or pieces of one by region; `where` is the condition under which it holds."""

    pieces: tuple[tuple[Region | None, Polynomial], ...]  # None: wherever the amount is defined
    where: Condition = EVERYWHERE
    split: Mapping[str, str] = field(default_factory=dict[str, str])
    budget: Budget = UNLIMITED  # of the rule that it comes from; the sets of layers are ours and quick

    @staticmethod
    def of(formula: Polynomial) -> Amount:
        """A formula in sizes that are at least 1."""
        names = [atom for atom in formula.atoms if isinstance(atom, str)]
        least = (Compare(">=", Name(name), Num(1)) for name in names)
        return Amount(((None, formula),), expr.all_of(*least, divides(formula)))

    @staticmethod
    def number(value: int) -> Amount:
        return Amount(((None, Polynomial.constant(value)),))

    @property
    def plain(self) -> Polynomial | None:
        """The one formula it is everywhere, if it is one."""
        return self.pieces[0][1] if len(self.pieces) == 1 and self.pieces[0][0] is None else None

    @property
    def names(self) -> tuple[str, ...]:
        """Its symbols, in the order they came in."""
        names = dict.fromkeys(expr.names(self.where))
        for _, formula in self.pieces:
            names |= dict.fromkeys(name for atom in formula.atoms for name in atom_names(atom))
        return tuple(sorted(names, key=rank))

    @property
    def is_zero(self) -> bool:
        return all(formula.is_zero for _, formula in self.pieces)

    def __add__(self, other: Amount) -> Amount:
        return _joined(self, other, Polynomial.__add__)

    def __sub__(self, other: Amount) -> Amount:
        return _joined(self, other, Polynomial.__sub__)

    def __mul__(self, other: Amount | int) -> Amount:
        factor = Amount.number(other) if isinstance(other, int) else other
        return _joined(self, factor, Polynomial.__mul__)

    def value(self) -> int | None:
        """The number, if no name is left."""
        plain = self.plain
        if plain is None or not plain.is_constant:
            return None
        return int(plain.terms.get((), 0))

    def count(
        self, text: str = "a cost", values: Mapping[str, int] | None = None, shared: Budget | None = None
    ) -> Count | int:
        """The amount at some values as a Count, which prints and judges claims; a number if it is one.

        What is limited at all takes from the `shared` budget, if one is given.
        """
        number = self.value()
        return self.formula(text, values, shared) if number is None else number

    def formula(
        self, text: str = "a cost", values: Mapping[str, int] | None = None, shared: Budget | None = None
    ) -> Count | int:
        """The same, a formula too where it is the same number at all sizes; a number where none is open."""
        budget = self.budget.out_of(shared)
        space = Space(self.names, (), self.split)
        domain = _region(self.where, space)
        pieces = [
            Piece(domain if region is None else region.aligned(space) & domain, formula)
            for region, formula in _in_space(self, space)
        ]
        closed = Closed(space, domain, pieces)
        known = {name: value for name, value in (values or {}).items() if name in self.names}
        if self.value() is not None and len(known) == len(self.names):
            return int(pieces[0].formula.terms.get((), 0))
        if len(pieces) > 1 and len(known) < len(self.names):  # at numbers no region need be written
            closed = guarded(_simplified, closed, budget=budget)
        symbols = Symbols(self.names, self.where, tuple(dict.fromkeys(self.split.values())), text=text)
        subject: Any = symbols  # it has all that a Count asks of a rule
        count = Count(subject, closed, budget=budget)
        return cast("Count | int", count.at(**known)) if known else count

    def __str__(self) -> str:
        return str(self.count())

    __repr__ = __str__


def _simplified(closed: Closed) -> Closed:
    inside = [piece for piece in closed.pieces if not piece.region.is_empty()]
    return replace(closed, pieces=simplified(inside, closed.domain)).ready()


def rank(name: str) -> tuple[int, bool, str]:
    """The sort key of a name."""
    return FIRST.index(name) if name in FIRST else len(FIRST), name[0].isupper(), name


ZERO = Amount.number(0)
ONE = Amount.number(1)


def amount(formula: Polynomial | int) -> Amount:
    """A polynomial of sizes, or a number, as an amount."""
    return Amount.number(formula) if isinstance(formula, int) else Amount.of(formula)


def product(*sizes: Polynomial | int) -> Amount:
    """The product of these sizes, each a whole number from 1 up."""
    total, where = Polynomial.constant(1), list[Condition]()
    for size in sizes:
        total = total * (Polynomial.constant(size) if isinstance(size, int) else size)
        if not isinstance(size, int) and not size.is_constant:
            where += [at_least_one(size), divides(size)]
    return Amount(((None, total),), expr.all_of(*where))


def at_least_one(size: Polynomial) -> Condition:
    """The condition that a size is at least 1; for n + 1 and 4d, that n and d are."""
    term = as_term(size)
    if term is None or all(c >= 0 for c in size.terms.values()):
        return expr.all_of(*(Compare(">=", Name(str(name)), Num(1)) for name in size.atoms))
    return Compare(">=", term, Num(1))


def _joined(left: Amount, right: Amount, join: Join) -> Amount:
    alike = right.where in (left.where, EVERYWHERE)
    where = left.where if alike else expr.all_of(left.where, right.where)
    split = {**left.split, **right.split}
    budget = left.budget.stricter(right.budget)
    if left.plain is not None and right.plain is not None and not split:
        return Amount(((None, join(left.plain, right.plain)),), where, budget=budget)
    if any(right.split.get(name) not in (None, modulus) for name, modulus in left.split.items()):
        raise NoClosedForm("two rules split one size differently; give their parameters numbers")
    space = Space(tuple(dict.fromkeys((*left.names, *right.names))), (), split)
    pieces: list[tuple[Region | None, Polynomial]] = []
    ours, others = _in_space(left, space), _in_space(right, space)
    if len(ours) == len(others) > 1 and all(_same(a, b) for (a, _), (b, _) in zip(ours, others, strict=True)):
        both = [
            (region, join(mine, theirs)) for (region, mine), (_, theirs) in zip(ours, others, strict=True)
        ]
        return Amount(tuple(both), where, split, budget)
    for our_region, mine in ours:
        for their_region, theirs in others:
            region = (
                our_region
                if their_region is None
                else their_region
                if our_region is None
                else our_region & their_region
            )
            if region is None or not region.is_empty():
                pieces.append((region, join(mine, theirs)))
    return Amount(tuple(pieces), where, split, budget)


def divides(size: Polynomial) -> Condition:
    """The condition that a size such as d/12 is a whole number."""
    by = lcm(*(c.denominator for c in size.terms.values()))
    times = None if by == 1 else as_term(size.times(by))
    if times is None:
        return EVERYWHERE
    return Compare("==", Arith("%", (times, Num(by))), Num(0))


def as_term(size: Polynomial) -> Term | None:
    """A size that is a sum of names and numbers, as a rule writes it."""
    term: Term | None = None
    for powers, c in size.terms.items():
        if c.denominator > 1 or len(powers) > 1 or any(e > 1 or not isinstance(a, str) for a, e in powers):
            return None
        part: Term = Num(int(c))
        if powers:
            name = Name(str(powers[0][0]))
            part = name if c == 1 else Arith("*", (Num(int(c)), name))
        term = part if term is None else Arith("+", (term, part))
    return term or Num(0)


def _same(region: Region | None, other: Region | None) -> bool:
    return region is other or (region is not None and other is not None and region.is_equal(other))


def _in_space(amount: Amount, space: Space) -> list[tuple[Region | None, Polynomial]]:
    """Its pieces in the coordinates of a space, where a size may be split that was not before."""
    new = [name for name in space.split if name in amount.names and name not in amount.split]
    if new and amount.plain is None:
        raise NoClosedForm(f"{new[0]} is split by {space.split[new[0]]}; give {space.split[new[0]]} a number")
    parts: dict[Atom, Polynomial] = {name: coordinate(space, name) for name in new}
    return [
        (None if region is None else region.aligned(space), formula.substituted(parts))
        for region, formula in amount.pieces
    ]


@lru_cache(maxsize=512)
def _region_of(where: Condition, names: tuple[str, ...], split: tuple[tuple[str, str], ...]) -> Region:
    space = Space(names, (), dict(split))
    return region_of(where, space).aligned(space)


def _region(where: Condition, space: Space) -> Region:
    return _region_of(where, space.parameters, tuple(space.split.items()))
