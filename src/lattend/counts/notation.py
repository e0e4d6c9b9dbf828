"""Notation: formulas of counts as text and as LaTeX."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping

from lattend.counts.algebra import factored
from lattend.counts.ranking import by_weight, rank, typical_value
from lattend.rules.language.linear import Atom, Quotient, Remainder
from lattend.rules.language.polynomial import Polynomial

# Short names for n // w and n % w, taken when the rule does not use them itself
BLOCKS = {"n": "N", "m": "M", "depth": "D", "rows": "R", "cols": "C", "q": "Q", "k": "K"}
RESTS = {"n": "r", "m": "s", "depth": "z", "rows": "y", "cols": "x", "q": "u", "k": "v"}
EASY = 3  # terms of a sum that need no other way to be written
SPARE = ("r", "s", "u", "v", "y", "x", "z", "e", "f", "g", "h")


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
