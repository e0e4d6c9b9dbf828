"""Notation: formulas of counts and their regions as text and as LaTeX."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from lattend.counts.algebra import by_weight, factored, is_size, rank, typical_value
from lattend.rules.language.linear import Atom, Linear, Quotient, Remainder
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Bound

# Short names for n // w and n % w, taken when the rule does not use them itself
BLOCKS = {"n": "N", "m": "M", "depth": "D", "rows": "R", "cols": "C", "q": "Q", "k": "K"}
RESTS = {"n": "r", "m": "s", "depth": "z", "rows": "y", "cols": "x", "q": "u", "k": "v"}
EASY = 3  # terms of a sum that need no other way to be written
SPARE = ("r", "s", "u", "v", "y", "x", "z", "e", "f", "g", "h")
Relation = tuple[str, str, str]  # subject, sign, other side
MIRRORED = {">": "<", ">=": "<="}


class Notation:
    """Formulas written with short names for quotients and remainders, which `where` explains.

    `signed` are the names that may be below 0: `t // w == 0` is then `0 <= t < w`, and else `t < w`.
    """

    def __init__(
        self, taken: Iterable[str], *, latex: bool = False, short: bool = True, signed: Iterable[str] = ()
    ) -> None:
        self.taken, self.signed = set(taken), frozenset(signed)
        self.latex, self.short = latex, short
        self.aliases: dict[Atom, str] = {}

    def where(self) -> str:
        """Returns `N = n // w, r = n % w` for the short names used so far, and those in their definitions."""
        meanings: dict[str, str] = {}
        while unexplained := [pair for pair in self.aliases.items() if pair[1] not in meanings]:
            meanings |= {alias: f"{alias} = {self.plain(atom)}" for atom, alias in unexplained}
        return ", ".join(sorted(meanings.values()))

    def alias(self, atom: Atom) -> str:
        if isinstance(atom, str):
            return self.plain(atom)
        if not self.short:
            return rf"\left({self.plain(atom)}\right)" if self.latex else f"({self.plain(atom)})"
        if atom not in self.aliases:
            base = str(atom.of)
            wanted = (BLOCKS if isinstance(atom, Quotient) else RESTS).get(base)
            numbered = [f"e{i}" for i in range(100)]
            options = [*([wanted] if wanted else []), *SPARE, *numbered]
            chosen = next(name for name in options if name not in self.taken)
            self.taken.add(chosen)
            self.aliases[atom] = chosen
        return self.aliases[atom]

    def plain(self, atom: Atom) -> str:
        if not self.latex:
            return str(atom)
        if isinstance(atom, str):
            return latex_name(atom)
        of = Polynomial.linear(atom.of)
        inner, by = self.sum(of), self.plain(atom.by) if isinstance(atom.by, str) else str(atom.by)
        inner = inner if len(of.terms) == 1 else f"({inner})"
        return rf"\lfloor {inner} / {by} \rfloor" if isinstance(atom, Quotient) else rf"{inner} \bmod {by}"

    def formula(self, polynomial: Polynomial, known: Mapping[Atom, Polynomial] | None = None) -> str:
        """The formula factored, whole or in two parts, whichever has the shortest sums.

        `known` holds what atoms are on the region in question, as `n // w` is 0 where n < w.
        """
        if polynomial.is_zero:
            return "0"
        parts = min(_groupings(polynomial, known or {}), key=_reading_order)
        parts = sorted(parts, key=lambda part: (factored(part)[0] < 0, -abs(typical_value(part))))
        return " + ".join(self._product(part) for part in parts).replace("+ -", "- ")

    def product(self, factors: list[Polynomial], known: Mapping[Atom, Polynomial]) -> str:
        """Several formulas multiplied with each other, each written on its own."""
        if len(factors) == 1:
            return self.formula(factors[0], known)
        texts = [self.formula(factor, known) for factor in factors]
        if "0" in texts:
            return "0"
        parts = [f"({text})" if _is_sum(text) else text for text in texts if text != "1"]
        return self._adjacent(sorted(parts, key=lambda part: not part.isdigit()) or ["1"])

    def _product(self, polynomial: Polynomial) -> str:
        coefficient, factors = factored(polynomial)
        alone = len(factors) == 1 and factors[0][1] == 1
        if alone and coefficient.denominator == 1 and (polynomial.degree() == 1 or abs(coefficient) == 1):
            return self.sum(polynomial)
        single = [(f, e) for f, e in factors if len(f.terms) == 1]
        sums = [(f, e) for f, e in factors if len(f.terms) > 1]
        single.sort(key=lambda item: rank(item[0].atoms[0]))
        sums.sort(key=lambda item: (len(item[0].terms), self.sum(item[0])))
        parts = [self._power(self.alias(f.atoms[0]), e) for f, e in single]
        bare = alone and self.latex and abs(coefficient.numerator) == 1  # a fraction's bar brackets it
        parts += [self._power(self.sum(f) if bare else f"({self.sum(f)})", e) for f, e in sums]
        number = abs(coefficient.numerator)
        if number != 1 or not parts:
            parts.insert(0, str(number))
        text = self._adjacent(parts)
        if coefficient.denominator != 1:
            text = self._over(text, coefficient.denominator)
        return f"-{text}" if coefficient < 0 else text

    def _over(self, text: str, below: int) -> str:
        return rf"\frac{{{text}}}{{{below}}}" if self.latex else f"{text}/{below}"

    def _power(self, base: str, exponent: int) -> str:
        if exponent == 1:
            return base
        return f"{base}^{{{exponent}}}" if self.latex else f"{base}^{exponent}"

    def _adjacent(self, parts: list[str]) -> str:
        """Returns factors side by side, with a sign between two that would read as one name or as a call."""
        text = parts[0]
        for before, part in itertools.pairwise(parts):
            if self.latex:
                word = before.startswith(r"\mathrm") or part.startswith(r"\mathrm")
                joint = r" \, " if word else "" if part[0] == "(" else " "
                joint = "" if before.isdigit() else joint
            elif part[0] == "(":
                joint = "*" if len(before) > 1 and before.isidentifier() else ""
            else:
                joint = "" if before.isdigit() and text.isdigit() else "*"
            text += joint + part
        return text

    def sum(self, polynomial: Polynomial) -> str:
        """The polynomial term by term, highest degree first."""
        text = ""
        for monomial, coefficient in by_weight(polynomial):
            powers = [self._power(self.alias(a), e) for a, e in sorted(monomial, key=lambda x: rank(x[0]))]
            size = abs(coefficient)
            if size.numerator != 1 or not powers:
                powers.insert(0, str(size.numerator))
            body = self._adjacent(powers)
            if size.denominator != 1:
                body = self._over(body, size.denominator)
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} {body}" if text else ("-" if sign == "-" else "") + body
        return text or "0"


def _is_sum(text: str) -> bool:
    """Returns whether a written formula needs brackets as a factor: its top is a sum or a quotient."""
    while "(" in text:
        shorter = re.sub(r"\([^()]*\)", "", text)
        if shorter == text:
            return True
        text = shorter
    return bool(re.search(r" [+-] |/|^-|frac", text))


def _groupings(polynomial: Polynomial, known: Mapping[Atom, Polynomial]) -> list[list[Polynomial]]:
    """Returns ways to write the polynomial as a sum of parts that are factored separately."""
    groupings = [[p.substituted(known)] for p in _rewritten(polynomial)]
    for (single,) in list(groupings):
        for atom in single.atoms:
            with_atom = {m: c for m, c in single.terms.items() if any(a == atom for a, _ in m)}
            without = {m: c for m, c in single.terms.items() if m not in with_atom}
            if with_atom and without:
                groupings.append([Polynomial(without), Polynomial(with_atom)])
    return groupings


def _rewritten(polynomial: Polynomial) -> list[Polynomial]:
    """Returns the polynomial as it is, and with `n % w` as `n - w*(n // w)`."""
    forms = [polynomial]
    for rest in [atom for atom in polynomial.atoms if isinstance(atom, Remainder)]:
        by = Polynomial.atom(rest.by) if isinstance(rest.by, str) else Polynomial.constant(rest.by)
        difference = Polynomial.linear(rest.of) - by * Polynomial.atom(Quotient(rest.of, rest.by))
        forms += [p.substituted({rest: difference}) for p in forms]
    return forms


def _reading_order(parts: list[Polynomial]) -> tuple[int, int, int]:
    """How hard a sum of factored parts is to read: its longest sum, all its terms, its atoms.

    A single product of short sums is always easy.
    """
    lengths = [len(f.terms) for part in parts for f in [f for f, _ in factored(part)[1]] or [part]]
    atoms = {atom for part in parts for atom in part.atoms if not isinstance(atom, str)}
    longest = 0 if len(parts) == 1 and max(lengths) <= EASY else max(lengths)
    return longest, sum(lengths) + len(atoms), len(parts)


def latex_name(name: str) -> str:
    """Returns a name, upright if it has several letters; its ending is an index, as hid in `D_hid`."""
    base, _, index = name.partition("_")
    head = base if len(base) == 1 else rf"\mathrm{{{base}}}"
    return head if not index else rf"{head}_{{\mathrm{{{index.replace('_', ' ')}}}}}"


def condition_text(clauses: list[list[Bound]], notation: Notation) -> str:
    """Returns a region as text; an empty text if it is everything."""
    texts = [_clause(clause, notation) for clause in clauses]
    if not texts or "" in texts:
        return ""
    joined = texts[0] if len(texts) == 1 else " or ".join(f"({t})" if " and " in t else t for t in texts)
    return _in_latex(joined) if notation.latex else joined


def _clause(clause: list[Bound], notation: Notation) -> str:
    """Returns conditions joined by `and`, with two bounds of the same term chained."""
    lows: dict[str, tuple[str, str]] = {}
    highs: dict[str, tuple[str, str]] = {}
    rest: list[str] = []
    for bound in sorted(_both_sides(_needed(clause), notation.signed), key=lambda b: str(b.form)):
        subject, sign, other = _relation(bound, notation)
        side = lows if sign in MIRRORED else highs if sign in MIRRORED.values() else None
        if side is None or subject in side:
            rest.append(f"{subject} {sign} {other}")
        else:
            side[subject] = (sign, other)
    for subject, (sign, other) in lows.items():
        if subject in highs:
            rest.append(f"{other} {MIRRORED[sign]} {subject} {' '.join(highs.pop(subject))}")
        else:
            rest.append(f"{subject} {sign} {other}")
    return " and ".join(rest + [f"{subject} {sign} {other}" for subject, (sign, other) in highs.items()])


def _both_sides(clause: Iterable[Bound], signed: frozenset[str]) -> Iterator[Bound]:
    """Yields the bounds, with `t // w == 0` as two bounds if t may be negative."""
    for bound in clause:
        match bound:
            case Bound(Linear(((Quotient(of, str()), _),), 0) as form, True) if str(of) in signed:
                yield from (Bound(form, False), Bound(form.times(-1), False))
            case _:
                yield bound


def _needed(clause: list[Bound]) -> list[Bound]:
    """Returns the bounds without redundant remainders: if t is 1, it divides every size."""
    ones = {
        str(bound.form.terms[0][0])
        for bound in clause
        if bound.equal and len(bound.form.terms) == 1 and bound.form.terms[0][1] == -bound.form.constant
    }
    return [bound for bound in clause if not _is_remainder_by(bound, ones)]


def _is_remainder_by(bound: Bound, moduli: set[str]) -> bool:
    """Returns whether a bound is about a remainder by one of these moduli only."""
    if len(bound.form.terms) != 1:
        return False
    ((atom, _),) = bound.form.terms
    return isinstance(atom, Remainder) and str(atom.by) in moduli


def _relation(bound: Bound, notation: Notation) -> Relation:
    """Returns the bound solved for the atom that is least like a size: ("t", "<=", "n")."""
    special = _of_blocks(bound, notation)
    if special is not None:
        return special
    form = bound.form
    atom, coefficient = min(
        form.terms, key=lambda item: (abs(item[1]) != 1, is_size(item[0]), -len(str(item[0])))
    )
    sign = 1 if coefficient > 0 else -1
    others = [(a, -c * sign) for a, c in form.terms if a != atom]
    constant = -form.constant * sign

    def side(number: int) -> str:
        return notation.sum(Polynomial.linear(Linear.of(others, number)))

    left = notation.sum(Polynomial.linear(Linear(((atom, abs(coefficient)),))))
    if bound.equal:
        return left, "==", side(constant)
    if others and constant == sign:  # x >= n + 1 and x <= n - 1 read better with a strict sign
        return left, ">" if sign > 0 else "<", side(0)
    return left, ">=" if sign > 0 else "<=", side(constant)


def _of_blocks(bound: Bound, notation: Notation) -> tuple[str, str, str] | None:
    """Returns a bound on one quotient or remainder as one on the size: `n >= 2w`, `w divides n`."""
    form = bound.form
    remainder = _remainder(bound)
    if remainder is not None:
        rest, number = remainder
        name = notation.sum(Polynomial.linear(rest.of))
        return (str(rest.by), "divides", name) if number == 0 else (notation.plain(rest), "==", str(number))
    if len(form.terms) != 1:
        return None
    atom, coefficient = form.terms[0]
    if isinstance(atom, str) or abs(coefficient) != 1:
        return None
    name, by = notation.sum(Polynomial.linear(atom.of)), str(atom.by)
    number = -form.constant * coefficient
    if isinstance(atom, Remainder):
        if bound.equal and number == 0:
            return by, "divides", name
        if not bound.equal and coefficient > 0 and number == 1:
            return by, "does not divide", name
        return None
    if not isinstance(atom.by, str):
        return None

    def multiple(j: int) -> str:
        return "0" if j == 0 else by if j == 1 else f"{j}{by}" if len(by) == 1 else f"{j}*{by}"

    if bound.equal:
        return (name, "<", multiple(1)) if number == 0 else None
    return (name, ">=", multiple(number)) if coefficient > 0 else (name, "<", multiple(number + 1))


def _remainder(bound: Bound) -> tuple[Remainder, int] | None:
    """`n - 2*(n // 2) == 1` as (n % 2, 1)."""
    quotients = [(a, c) for a, c in bound.form.terms if isinstance(a, Quotient) and isinstance(a.by, int)]
    if not bound.equal or len(quotients) != 1:
        return None
    atom, coefficient = quotients[0]
    sign = -1 if coefficient > 0 else 1
    rest = bound.form.plus(Linear(((atom, coefficient),)), -1).times(sign)
    number = atom.of.constant - rest.constant
    if coefficient * sign != -int(atom.by) or rest.terms != atom.of.terms or not 0 <= number < int(atom.by):
        return None
    return Remainder(atom.of, atom.by), number


def _in_latex(text: str) -> str:
    for plain, shown in (("<=", r"\le"), (">=", r"\ge"), ("!=", r"\ne"), ("==", "=")):
        text = text.replace(plain, shown)
    text = text.replace(" and ", r" \text{ and } ").replace(" or ", r" \text{ or } ")
    return text.replace("divides", r"\mid").replace("does not divide", r"\nmid")
