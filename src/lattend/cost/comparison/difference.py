"""Difference: one quantity minus another, piece by piece, in plain polynomials of one growing size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.cost.amount import Amount
from lattend.counts.count import Count
from lattend.errors import DomainError, NoClosedForm
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Condition, Num
from lattend.rules.language.linear import Remainder
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Region, Space, region_of
from lattend.sets.region import uncovered

ZERO = Polynomial.constant(0)


@dataclass(frozen=True, eq=False)
class Limit:
    """`form >= 0`, or `form == 0`."""

    form: Polynomial
    equal: bool = False

    def holds(self, values: Mapping[str, Any]) -> Any:
        value = self.form.value(values)
        return value == 0 if self.equal else value >= 0


@dataclass(frozen=True, eq=False)
class DifferencePiece:
    """A formula, and the limits within which it is the difference."""

    limits: tuple[Limit, ...]
    formula: Polynomial


@dataclass(frozen=True, eq=False)
class Difference:
    """First minus second, as a function of `over`; `names` are the other symbols."""

    over: str
    names: tuple[str, ...]
    pieces: tuple[DifferencePiece, ...]
    domain: Condition
    multiples: Mapping[str, str]  # it is said only where these moduli divide these sizes

    @property
    def region(self) -> Region:
        """The numbers that the other symbols may have."""
        known = [c for c in expr.conjuncts(self.domain) if set(expr.names(c)) <= set(self.names)]
        space = Space(self.names, (), {})
        return region_of(expr.all_of(*known), space).aligned(space)

    @property
    def where(self) -> str:
        """What is supposed besides, in words."""
        return " and ".join(f"{modulus} divides {name}" for name, modulus in self.multiples.items())

    def is_defined(self, env: Mapping[str, Any]) -> Any:
        """Whether numbers, or arrays of them, lie in the domain and in one of the pieces."""
        defined: Any = False
        for piece in self.pieces:
            inside: Any = True
            for limit in piece.limits:
                inside = inside & limit.holds(env)
            defined = defined | inside
        return self._whole.holds(env) & defined

    @cached_property
    def _whole(self) -> Region:
        space = Space((*self.names, self.over), (), {})
        return region_of(self.domain, space).aligned(space)

    def signs(self, env: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """-1, 0 or 1 at arrays of numbers, exactly."""
        shape = np.broadcast_shapes(*(np.shape(x) for x in env.values()))
        signs = np.zeros(shape, int)
        for piece in self.pieces:
            inside = np.ones(shape, bool)
            for limit in piece.limits:
                inside &= np.broadcast_to(np.asarray(limit.holds(env), bool), shape)
            if inside.any():
                chosen = {name: np.broadcast_to(x, shape)[inside] for name, x in env.items()}
                values = piece.formula.times(_denominator(piece.formula)).values(chosen)
                signs[inside] = np.asarray(values > 0, int) - np.asarray(values < 0, int)
        return signs


def difference(first: Amount, second: Amount, over: str) -> Difference:
    """The difference of two amounts that are plain polynomials, or become so where a modulus divides."""
    amount = first - second
    names = tuple(name for name in amount.names if name != over)
    counted = amount.count()
    if not isinstance(counted, Count):
        return Difference(over, names, (DifferencePiece((), Polynomial.constant(counted)),), amount.where, {})
    pieces: list[DifferencePiece] = []
    for region, formula in _covering(counted):
        for clause in region.clauses:
            limits = [
                Limit(_plain(Polynomial.linear(bound.form), amount.split), bound.equal) for bound in clause
            ]
            if any(limit.form.is_constant and not limit.holds({}) for limit in limits):
                continue
            open_ = tuple(limit for limit in limits if not limit.form.is_constant)
            pieces.append(DifferencePiece(open_, _plain(formula, amount.split)))
    used = {name: by for name, by in amount.split.items() if name in amount.names}
    return Difference(over, names, tuple(pieces), amount.where, used)


def settled(amount: Amount, values: Mapping[str, int]) -> Amount:
    """The amount with numbers for some of its names."""
    known = {name: value for name, value in values.items() if name in amount.names}
    if not known:
        return amount
    if any(name in amount.split or name in amount.split.values() for name in known):
        raise NoClosedForm("a number for a modulus is put in before the layer is made")
    left: list[Condition] = []
    for part in expr.conjuncts(amount.where):
        moved = expr.substituted(part, {name: Num(value) for name, value in known.items()})
        if expr.names(moved):
            left.append(moved)
        elif not evaluate(part, dict(known), {}):
            numbers = ", ".join(f"{name} = {known[name]}" for name in expr.names(part))
            raise DomainError(f"this cost needs {expr.text(part)}, got {numbers}")
    space = Space(tuple(name for name in amount.names if name not in known), (), amount.split)
    pieces: list[tuple[Region | None, Polynomial]] = []
    for region, formula in amount.pieces:
        fixed = None if region is None else region.fixed(known, space).aligned(space)
        if fixed is None or not fixed.is_empty():
            pieces.append((fixed, formula.at(known)))
    if not space.parameters:
        pieces = [(None, formula) for _, formula in pieces[:1]]
    return Amount(tuple(pieces) or ((None, ZERO),), expr.all_of(*left), amount.split)


def _covering(count: Count) -> Iterator[tuple[Region, Polynomial]]:
    """Its pieces, and 0 where there is none."""
    for piece in count.pieces:
        yield piece.region, piece.formula
    rest = uncovered(count.pieces, count.closed.domain)
    if not rest.is_empty():
        yield rest, ZERO


def _plain(formula: Polynomial, split: Mapping[str, str]) -> Polynomial:
    """The formula, times a power of the modulus, where n % w is 0 and n // w is n/w."""
    if all(isinstance(atom, str) for atom in formula.atoms):
        return formula
    terms: list[tuple[Fraction, dict[str, int]]] = []
    for powers, coefficient in formula.terms.items():
        exponents: dict[str, int] = {}
        gone = False
        for atom, exponent in powers:
            if isinstance(atom, str):
                exponents[atom] = exponents.get(atom, 0) + exponent
                continue
            name = str(atom.of)
            if split.get(name) != atom.by:
                raise NoClosedForm(f"{atom} is rounded, so that there is no polynomial to solve")
            if isinstance(atom, Remainder):
                gone = True
            elif isinstance(atom.by, str):
                exponents[name] = exponents.get(name, 0) + exponent
                exponents[atom.by] = exponents.get(atom.by, 0) - exponent
        if not gone:
            terms.append((coefficient, exponents))
    least = {by: min((e.get(by, 0) for _, e in terms), default=0) for by in split.values()}
    total: list[tuple[Fraction, tuple[tuple[str, int], ...]]] = []
    for coefficient, exponents in terms:
        raised = {n: e - min(0, least.get(n, 0)) for n, e in {**dict.fromkeys(least, 0), **exponents}.items()}
        total.append((coefficient, tuple(sorted((n, e) for n, e in raised.items() if e))))
    return Polynomial.of(total)


def _denominator(formula: Polynomial) -> int:
    return int(np.lcm.reduce([c.denominator for c in formula.terms.values()] or [1]))
