"""Terms at their numbers as sums: `q - 4*(q // 4) - 3` is {q: 1, q // 4: -4} and -3.

Enough to recognise strides and to prove that a bound is empty; not a general prover.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Name, Num, Term

Range = tuple[int, int]


@dataclass(frozen=True)
class Whole:
    """`of // by` or `of % by`."""

    op: str
    of: Form
    by: int


Atom = str | Whole


@dataclass(frozen=True)
class Form:
    """A sum of integer multiples of names, quotients and remainders, and a constant."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    def plus(self, other: Form, factor: int = 1) -> Form:
        total = dict(self.terms)
        for atom, count in other.terms:
            total[atom] = total.get(atom, 0) + factor * count
        kept = sorted(((a, c) for a, c in total.items() if c), key=lambda pair: repr(pair[0]))
        return Form(tuple(kept), self.constant + factor * other.constant)

    def times(self, factor: int) -> Form:
        return Form().plus(self, factor)

    def count(self, atom: Atom) -> int:
        """How many times the atom is in the sum."""
        return dict(self.terms).get(atom, 0)


def form(term: Term, numbers: Mapping[str, int]) -> Form | None:
    """The term as a sum, or None when it is not one (abs, min, max, data, products of positions)."""
    match term:
        case Num():
            return Form(constant=term.value)
        case Name():
            known = numbers.get(term.name)
            return Form(((term.name, 1),)) if known is None else Form(constant=known)
        case Arith(op="abs" | "min" | "max") | expr.Lookup():
            return None
        case Arith(op="neg", args=(arg,)):
            value = form(arg, numbers)
            return value and value.times(-1)
        case Arith(args=(left, right)):
            a, b = form(left, numbers), form(right, numbers)
            return None if a is None or b is None else _combined(term.op, a, b)
        case _:
            return None


def _combined(op: str, a: Form, b: Form) -> Form | None:
    match op:
        case "+":
            return a.plus(b)
        case "-":
            return a.plus(b, -1)
        case "*":
            if a.terms and b.terms:
                return None
            return a.times(b.constant) if a.terms else b.times(a.constant)
        case _:
            if b.terms or b.constant < 1:
                return None
            if not a.terms:
                return Form(constant=a.constant // b.constant if op == "//" else a.constant % b.constant)
            return Form(((Whole(op, a, b.constant), 1),))


def least(value: Form, ranges: Mapping[str, Range]) -> int:
    """A number that the sum is never below."""
    found = _span(value, ranges)[0]
    for atom, count in value.terms:
        if isinstance(atom, Whole) and atom.op == "//" and count % atom.by == 0:
            # by*(x // by) is x - x % by: the names may cancel then
            factor = count // atom.by
            remainder = Form(((Whole("%", atom.of, atom.by), 1),))
            other = value.plus(Form(((atom, count),)), -1).plus(atom.of, factor).plus(remainder, -factor)
            found = max(found, _span(other, ranges)[0])
    return found


def _span(value: Form, ranges: Mapping[str, Range]) -> Range:
    low = high = value.constant
    for atom, count in value.terms:
        a, b = _atom_span(atom, ranges)
        low += count * (a if count > 0 else b)
        high += count * (b if count > 0 else a)
    return low, high


def _atom_span(atom: Atom, ranges: Mapping[str, Range]) -> Range:
    if isinstance(atom, str):
        return ranges[atom]
    low, high = _span(atom.of, ranges)
    if atom.op == "//":
        return low // atom.by, high // atom.by
    if low // atom.by == high // atom.by:
        return low % atom.by, high % atom.by
    return 0, atom.by - 1
