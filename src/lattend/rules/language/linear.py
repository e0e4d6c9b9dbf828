"""Linear forms: `q - 4*(q // 4) - 3` is {q: 1, q // 4: -4} and -3; and the moduli of a condition.

Rules, sets, counts and plans share them. Their atoms are names (`n`), quotients (`n // w`) and remainders
(`n % w`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lattend.rules.axes import RESERVED
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Compare, Condition, Name, Num, Term


@dataclass(frozen=True, slots=True)
class Linear:
    """`sum(coefficient * atom) + constant`, with integer coefficients and no zero among them."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(terms: Iterable[tuple[Atom, int]], constant: int = 0) -> Linear:
        """The form with like atoms collected, in a fixed order."""
        total: dict[Atom, int] = {}
        for atom, coefficient in terms:
            total[atom] = total.get(atom, 0) + coefficient
        kept = [(atom, c) for atom, c in total.items() if c]
        if len(kept) > 1:
            kept.sort(key=lambda item: str(item[0]))
        return Linear(tuple(kept), constant)

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """The form with `factor` times the other added."""
        more = other.times(factor)
        constant = self.constant + more.constant
        if not self.terms or not more.terms:
            return Linear(self.terms or more.terms, constant)
        return Linear.of((*self.terms, *more.terms), constant)

    def times(self, factor: int) -> Linear:
        return Linear(tuple((atom, c * factor) for atom, c in self.terms if factor), self.constant * factor)

    def coefficient(self, atom: Atom) -> int:
        """How many times the atom is in the sum."""
        return dict(self.terms).get(atom, 0)

    def value(self, values: Mapping[str, Any]) -> Any:
        """The number at these values; arrays broadcast."""
        total: Any = self.constant
        for atom, coefficient in self.terms:
            number = atom_value(atom, values)
            total = total + (number if coefficient == 1 else coefficient * number)
        return total

    def at(self, values: Mapping[str, int | str]) -> Linear:
        """The form with numbers, or other names, for the names in `values`."""
        terms: list[tuple[Atom, int]] = []
        constant = self.constant
        for atom, coefficient in self.terms:
            value = atom_at(atom, values)
            if isinstance(value, int):
                constant += coefficient * value
            else:
                terms.append((value, coefficient))
        return Linear.of(terms, constant)

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
    """Returns the value of an atom; arrays broadcast."""
    if isinstance(atom, str):
        return values[atom]
    by = values[atom.by] if isinstance(atom.by, str) else atom.by
    of = atom.of.value(values)
    return of // by if isinstance(atom, Quotient) else of % by


def atom_at(atom: Atom, values: Mapping[str, int | str]) -> Atom | int:
    """Returns the atom with numbers or other names substituted; a number if every name has one."""
    if isinstance(atom, str):
        return values.get(atom, atom)
    of = atom.of.at(values)
    by = values.get(atom.by, atom.by) if isinstance(atom.by, str) else atom.by
    if isinstance(by, int) and not of.terms:
        return of.constant // by if isinstance(atom, Quotient) else of.constant % by
    return type(atom)(of, by)


def atom_names(atom: Atom) -> set[str]:
    """The names an atom is made of."""
    if isinstance(atom, str):
        return {atom}
    inner = {name for part, _ in atom.of.terms for name in atom_names(part)}
    return inner | ({atom.by} if isinstance(atom.by, str) else set())


def linear_of(term: Term, numbers: Mapping[str, int]) -> Linear | None:
    """The term as a linear form, with numbers for the names in `numbers`.

    None when it is not one: abs, min, max, data, a product of names, a divisor that is no number from 1 up.

    >>> from lattend.rules.language.parser import parse
    >>> str(linear_of(parse("2*(q - t) >= k % 4").left, {"t": 3}))  # 2q - 2*3
    '2q - 6'
    """
    match term:
        case Num():
            return Linear(constant=term.value)
        case Name():
            known = numbers.get(term.name)
            return Linear(((term.name, 1),)) if known is None else Linear(constant=known)
        case Arith(op="neg", args=(arg,)):
            value = linear_of(arg, numbers)
            return value and value.times(-1)
        case Arith(op="+" | "-" | "*" | "//" | "%" as op, args=(left, right)):
            a, b = linear_of(left, numbers), linear_of(right, numbers)
            return None if a is None or b is None else _combined(op, a, b)
        case _:
            return None


def gap_of(node: Compare, numbers: Mapping[str, int]) -> Linear | None:
    """`left - right` of a comparison, or None when a side is not linear."""
    left, right = linear_of(node.left, numbers), linear_of(node.right, numbers)
    return None if left is None or right is None else left.plus(right, -1)


def declared_ranges(condition: Condition) -> dict[str, bool]:
    """The names that the condition bounds below, or above by at most 0, and whether they may be below 0.

    >>> from lattend.rules.language.parser import parse
    >>> declared_ranges(parse("t >= -3 and 0 <= c and c <= l and s <= 8"))
    {'t': True, 'c': False}
    """
    ranges: dict[str, bool] = {}
    for part in expr.conjuncts(condition):
        gap = gap_of(part, {}) if isinstance(part, Compare) and part.op != "!=" else None
        match gap, part:
            case Linear(((str(name), count),), constant), Compare(op=op):
                limit, strict = (-constant if count > 0 else constant), op in ("<", ">")
                if op == "==" or (op in (">", ">=")) == (count > 0):  # abs(count) * name >= limit
                    ranges[name] = ranges.get(name, True) and limit + strict <= -abs(count)
                elif limit - strict <= 0:
                    ranges.setdefault(name, True)
            case _:
                pass
    return ranges


def _combined(op: str, a: Linear, b: Linear) -> Linear | None:
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
            atom = atom_at((Quotient if op == "//" else Remainder)(a, b.constant), {})
            return Linear(constant=atom) if isinstance(atom, int) else Linear(((atom, 1),))


def sum_text(terms: list[tuple[int, str]], constant: int = 0) -> str:
    """`[(2, "n"), (-1, "t")], 3` as `2n - t + 3`; positive terms come first."""
    parts = sorted([*terms, *([(constant, "")] if constant else [])], key=lambda item: item[0] < 0)
    text = ""
    for coefficient, name in parts:
        sign = "-" if coefficient < 0 else "+"
        size = abs(coefficient)
        joined = size != 1 or (sign == "-" and not text)  # -(k % 3), as -k % 3 is (-k) % 3
        wrapped = f"({name})" if joined and name and not name.isidentifier() else name
        body = f"{size if size != 1 or not name else ''}{wrapped}"
        text += f" {sign} {body}" if text else f"{'-' if sign == '-' else ''}{body}"
    return text or "0"


def divisor_of(node: expr.Node) -> str | None:
    """The parameter that `node` itself divides by: w in `q // w`."""
    if isinstance(node, Arith) and node.op in ("//", "%"):
        right = node.args[1]
        if isinstance(right, Name) and right.name not in RESERVED:
            return right.name
    return None


def scale_of(node: expr.Node) -> str | None:
    """The parameter that `node` multiplies another name with: step in `t*step`."""
    if isinstance(node, Arith) and node.op == "*":
        left, right = node.args
        if isinstance(right, Name) and right.name not in RESERVED and expr.names(left):
            return right.name
    return None


def moduli_in(condition: Condition) -> list[str]:
    """The moduli of a condition, each once, in order."""
    moduli = [divisor_of(node) or scale_of(node) for node in expr.walk(condition)]
    return list(dict.fromkeys(name for name in moduli if name is not None))


def with_modulus(condition: Condition, letter: str) -> tuple[Condition, int] | None:
    """Returns the condition with a letter in place of its only divisor, and that divisor; None without one.

    >>> from lattend.rules.language.parser import parse
    >>> found = with_modulus(parse("q // 64 == k // 64 and k % 64 != 63"), "w")
    >>> (expr.text(found[0]), found[1])
    ('q // w == k // w and k % w != w - 1', 64)
    """
    divided = (node for node in expr.walk(condition) if isinstance(node, Arith) and node.op in ("//", "%"))
    divisors = {node.args[1] for node in divided}
    number = next(iter(divisors), None)
    if len(divisors) != 1 or not isinstance(number, Num) or number.value < 2 or moduli_in(condition):
        return None
    modulus = Name(letter)
    letters: dict[Num, Term] = {number: modulus, Num(number.value - 1): Arith("-", (modulus, Num(1)))}
    symbolic = expr.replaced(condition, lambda name: name, lambda one: letters.get(one, one))
    return symbolic, number.value
