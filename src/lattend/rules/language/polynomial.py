"""Polynomial: an exact polynomial in atoms, small enough to read.

sympy would do, but loading it takes longer than counting; it is called only to factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import NoClosedForm, TooLarge
from lattend.rules.language.linear import Atom, Linear, Monomial, atom_at, atom_value, monomial

MAX_TERMS = 100_000


@dataclass(frozen=True)
class Polynomial:
    """`sum(coefficient * product(atom ** exponent))`, rational coefficients, no zero among them."""

    terms: Mapping[Monomial, Fraction]

    @staticmethod
    def of(terms: Iterable[tuple[Fraction, Monomial]]) -> Polynomial:
        total: dict[Monomial, Fraction] = {}
        for coefficient, powers in terms:
            total[powers] = total[powers] + coefficient if powers in total else coefficient
        return Polynomial({powers: c for powers, c in total.items() if c})

    @staticmethod
    def constant(value: int | Fraction) -> Polynomial:
        return Polynomial({(): Fraction(value)} if value else {})

    @staticmethod
    def atom(atom: Atom) -> Polynomial:
        return Polynomial({((atom, 1),): Fraction(1)})

    @staticmethod
    def linear(form: Linear) -> Polynomial:
        terms = [(Fraction(c), ((atom, 1),)) for atom, c in form.terms]
        return Polynomial.of([*terms, (Fraction(form.constant), ())])

    def as_linear(self) -> tuple[Linear, int]:
        """Returns an integer linear form and a positive divisor; raises if it is not linear."""
        if self.degree() > 1:
            raise NoClosedForm("it compares or divides something that is not linear")
        divisor, terms = self._integral
        constant = sum(c for c, powers in terms if not powers)
        return Linear.of([(powers[0][0], c) for c, powers in terms if powers], constant), divisor

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __add__(self, other: Polynomial) -> Polynomial:
        return Polynomial.of((c, m) for part in (self, other) for m, c in part.terms.items())

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other.times(-1)

    def times(self, factor: int | Fraction) -> Polynomial:
        return Polynomial({m: c * factor for m, c in self.terms.items()} if factor else {})

    def __mul__(self, other: Polynomial) -> Polynomial:
        if len(self.terms) * len(other.terms) > MAX_TERMS:
            raise TooLarge(f"a formula of more than {MAX_TERMS:,} terms; write it with fewer")
        return Polynomial.of(
            (a * b, monomial((*m, *k))) for m, a in self.terms.items() for k, b in other.terms.items()
        )

    def __pow__(self, exponent: int) -> Polynomial:
        result = self if exponent else Polynomial.constant(1)
        for _ in range(exponent - 1):
            result = result * self
        return result

    @property
    def is_zero(self) -> bool:
        return not self.terms

    @property
    def is_constant(self) -> bool:
        return all(not monomial for monomial in self.terms)

    @cached_property
    def atoms(self) -> list[Atom]:
        """Its atoms, names first, in a fixed order."""
        atoms = {atom for monomial in self.terms for atom, _ in monomial}
        return sorted(atoms, key=lambda atom: (not isinstance(atom, str), str(atom)))

    def degree(self, atoms: Iterable[Atom] | None = None) -> int:
        """Returns the total degree in all atoms or in these atoms."""
        chosen = set(self.atoms if atoms is None else atoms)
        return max((sum(e for a, e in m if a in chosen) for m in self.terms), default=0)

    def substituted(self, values: Mapping[Atom, Polynomial]) -> Polynomial:
        """The polynomial with atoms replaced by polynomials."""
        if not any(atom in values for atom in self.atoms):
            return self
        raised: dict[tuple[Atom, int], Polynomial] = {}
        total: list[tuple[Fraction, Monomial]] = []
        for powers, coefficient in self.terms.items():
            part = Polynomial({tuple((a, e) for a, e in powers if a not in values): coefficient})
            for factor in powers:
                if factor[0] in values:
                    if factor not in raised:
                        raised[factor] = values[factor[0]] ** factor[1]
                    part = part * raised[factor]
            total.extend((c, m) for m, c in part.terms.items())
        return Polynomial.of(total)

    def at(self, values: Mapping[str, int | str]) -> Polynomial:
        """The polynomial with numbers, or other names, for the names in `values`."""
        if not values:
            return self
        total: list[tuple[Fraction, Monomial]] = []
        for powers, number in self.terms.items():
            coefficient, kept = number, list[tuple[Atom, int]]()
            for atom, exponent in powers:
                value = atom_at(atom, values)
                if isinstance(value, int):
                    coefficient *= value**exponent
                else:
                    kept.append((value, exponent))
            total.append((coefficient, monomial(kept)))
        return Polynomial.of(total)

    @cached_property
    def _integral(self) -> tuple[int, list[tuple[int, Monomial]]]:
        divisor = lcm(*(c.denominator for c in self.terms.values()))
        return divisor, [(int(c * divisor), m) for m, c in self.terms.items()]

    def value(self, values: Mapping[str, Any]) -> Any:
        """Returns the value at numbers: an int if it is whole, otherwise a Fraction; arrays broadcast."""
        coordinates = {atom: atom_value(atom, values) for atom in self.atoms}
        divisor, terms = self._integral
        total: Any = 0
        for coefficient, powers in terms:
            part: Any = coefficient
            for atom, exponent in powers:
                part = part * coordinates[atom] ** exponent
            total = total + part
        if divisor == 1:
            return total
        if isinstance(total, int):
            quotient, rest = divmod(total, divisor)
            return Fraction(total, divisor) if rest else quotient
        return total // divisor

    def _bound(self, values: Mapping[str, Any]) -> int:
        """A number that no partial sum of its integer numerator can pass at these arrays of values."""
        largest = {atom: int(np.max(np.abs(atom_value(atom, values)), initial=0)) for atom in self.atoms}
        total = 0
        for coefficient, powers in self._integral[1]:
            part = abs(coefficient)
            for atom, exponent in powers:
                part *= largest[atom] ** exponent
            total += part
        return total

    def values(self, env: Mapping[str, Any], most: int | None = None) -> NDArray[Any]:
        """Returns exact values at arrays: in int64 if no term can overflow, otherwise in Python integers.

        Where they are whole and known to be at most `most`, in int64 if they fit, however large terms are.
        """
        divisor = self._integral[0]
        if most is not None and most * (divisor & -divisor) < 2**63:
            return self._wrapped(env)
        if self._bound(env) < 2**62:
            return np.asarray(self.value(env))
        return np.asarray(self.value({name: np.asarray(x).astype(object) for name, x in env.items()}))

    def _wrapped(self, env: Mapping[str, Any]) -> NDArray[np.int64]:
        """Its values by sums modulo 2⁶⁴."""
        coordinates = {atom: _modulo(atom_value(atom, env)) for atom in self.atoms}
        shift, terms = self._modular
        total = np.zeros(1, np.int64)
        for coefficient, factors in terms:
            part = coefficient
            for atom in factors:
                part = part * coordinates[atom]
            total = total + part
        return total >> shift if shift else total

    @cached_property
    def _modular(self) -> tuple[int, list[tuple[NDArray[np.int64], list[Atom]]]]:
        """Modulo 2⁶⁴ an odd divisor has an inverse; by how much to shift for its twos, and the terms."""
        divisor, terms = self._integral
        shift = (divisor & -divisor).bit_length() - 1
        inverse = pow(divisor >> shift, -1, 2**64)
        factors = [[atom for atom, exponent in powers for _ in range(exponent)] for _, powers in terms]
        return shift, [(_modulo(c * inverse), some) for (c, _), some in zip(terms, factors, strict=True)]


def _modulo(number: Any) -> NDArray[np.int64]:
    """Returns integers modulo 2⁶⁴ as an array: products of arrays wrap, those of NumPy scalars warn."""
    if isinstance(number, int):
        return np.array([(number + 2**63) % 2**64 - 2**63])
    return np.atleast_1d(number)
