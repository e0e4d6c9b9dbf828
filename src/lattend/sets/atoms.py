"""Atoms and linear forms: the plain-Python face of everything isl says about coordinates.

A closed form is written in atoms: a name (`n`), a quotient (`n // w`) or a remainder (`n % w`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Linear:
    """`sum(coefficient * atom) + constant`, with integer coefficients and no zero among them."""

    terms: tuple[tuple[Atom, int], ...]
    constant: int = 0

    @staticmethod
    def of(terms: Iterable[tuple[Atom, int]], constant: int = 0) -> Linear:
        """The form with like atoms collected, in a fixed order."""
        total: dict[Atom, int] = {}
        for atom, coefficient in terms:
            total[atom] = total.get(atom, 0) + coefficient
        kept = [(atom, c) for atom, c in total.items() if c]
        return Linear(tuple(sorted(kept, key=lambda item: str(item[0]))), constant)

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """The form with `factor` times the other added."""
        more = ((atom, c * factor) for atom, c in other.terms)
        return Linear.of((*self.terms, *more), self.constant + other.constant * factor)

    def times(self, factor: int) -> Linear:
        return Linear(()).plus(self, factor)

    def value(self, values: Mapping[str, Any]) -> Any:
        """The number at these values; arrays broadcast."""
        total: Any = self.constant
        for atom, coefficient in self.terms:
            total = total + coefficient * atom_value(atom, values)
        return total

    def __str__(self) -> str:
        return sum_text([(c, str(atom)) for atom, c in self.terms], self.constant)


@dataclass(frozen=True, slots=True)
class Quotient:
    """`of // by`, rounded down; `by` is a positive number or the name of a modulus."""

    of: Linear
    by: int | str

    def __str__(self) -> str:
        return f"{_operand(self.of)} // {self.by}"


@dataclass(frozen=True, slots=True)
class Remainder:
    """`of % by`, in 0 … by - 1."""

    of: Linear
    by: int | str

    def __str__(self) -> str:
        return f"{_operand(self.of)} % {self.by}"


Atom = str | Quotient | Remainder
Monomial = tuple[tuple[Atom, int], ...]


def monomial(powers: Iterable[tuple[Atom, int]]) -> Monomial:
    """The product of these powers, like atoms collected, in a fixed order."""
    total: dict[Atom, int] = {}
    for atom, exponent in powers:
        total[atom] = total.get(atom, 0) + exponent
    return tuple(sorted(((a, e) for a, e in total.items() if e), key=lambda item: str(item[0])))


def _operand(linear: Linear) -> str:
    text = str(linear)
    return text if text.isalnum() else f"({text})"


def atom_value(atom: Atom, values: Mapping[str, Any]) -> Any:
    """The number an atom stands for at these values; arrays broadcast."""
    if isinstance(atom, str):
        return values[atom]
    by = values[atom.by] if isinstance(atom.by, str) else atom.by
    of = atom.of.value(values)
    return of // by if isinstance(atom, Quotient) else of % by


def atom_at(atom: Atom, values: Mapping[str, int]) -> Atom | int:
    """The atom with the names in `values` put in: a number once nothing is left to know."""
    if isinstance(atom, str):
        return values.get(atom, atom)
    of = linear_at(atom.of, values)
    by = values.get(atom.by, atom.by) if isinstance(atom.by, str) else atom.by
    if isinstance(by, int) and not of.terms:
        return of.constant // by if isinstance(atom, Quotient) else of.constant % by
    return type(atom)(of, by)


def linear_at(form: Linear, values: Mapping[str, int]) -> Linear:
    """The form with the names in `values` put in."""
    terms: list[tuple[Atom, int]] = []
    constant = form.constant
    for atom, coefficient in form.terms:
        found = atom_at(atom, values)
        if isinstance(found, int):
            constant += coefficient * found
        else:
            terms.append((found, coefficient))
    return Linear.of(terms, constant)


def atom_names(atom: Atom) -> set[str]:
    """The names an atom is made of."""
    if isinstance(atom, str):
        return {atom}
    inner = {name for part, _ in atom.of.terms for name in atom_names(part)}
    return inner | ({atom.by} if isinstance(atom.by, str) else set())


def linear(name: str) -> Linear:
    """The form that is just this name."""
    return Linear(((name, 1),))


def sum_text(terms: list[tuple[int, str]], constant: int = 0) -> str:
    """`[(2, "n"), (-1, "t")], 3` as `2n - t + 3`; positive terms come first."""
    parts = sorted([*terms, *([(constant, "")] if constant else [])], key=lambda item: item[0] < 0)
    text = ""
    for coefficient, name in parts:
        sign = "-" if coefficient < 0 else "+"
        size = abs(coefficient)
        wrapped = f"({name})" if size != 1 and name and not name.isidentifier() else name
        body = f"{size if size != 1 or not name else ''}{wrapped}"
        text += f" {sign} {body}" if text else f"{'-' if sign == '-' else ''}{body}"
    return text or "0"
