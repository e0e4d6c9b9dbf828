"""Polynomials and roots as people write them: p^2 + h*p*q + q^2; a root without a formula as a decimal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from lattend.study.exact.writing import decimal, format_exact

LONGEST = 60  # characters of a formula beside others
PLACES = 6


def polynomial_text(expression: Any, names: Sequence[Any]) -> str:
    """A polynomial ordered by the powers of these names, their coefficients in front.

    >>> p, q, h = sympy.symbols("p q h")
    >>> polynomial_text(q**2 + h * p * q + (1 + h) * p**2, [p, q])
    '(h + 1)*p^2 + h*p*q + q^2'
    """
    parts: list[str] = []
    for powers, coefficient in sympy.Poly(sympy.expand(expression), *names).terms():
        power = sympy.prod([name**k for name, k in zip(names, powers, strict=True)])
        parts.append(_term(coefficient, format_exact(power) if any(powers) else ""))
    return " + ".join(parts).replace("+ -", "- ")


def has_no_formula(number: Any) -> bool:
    """Whether the number is known as the root of a polynomial only."""
    return bool(number.has(sympy.CRootOf))


def number_text(number: Any) -> str:
    """The number's formula; where that is long or there is none, six places.

    >>> number_text(sympy.sqrt(2) / 2), number_text(sympy.rootof("x**3 - x - 1", 0))
    ('sqrt(2)/2', '1.324718…')
    """
    if not has_no_formula(number) and len(written := format_exact(number)) <= LONGEST:
        return written
    return short_decimal(number, PLACES, "…")


def short_decimal(number: Any, places: int = 4, after: str = "") -> str:
    """The number rounded to so many places, as 5.7735e-32 where these would show nothing or too much.

    >>> short_decimal(sympy.sqrt(2)), short_decimal(sympy.sqrt(2) / 10**40)
    ('1.4142', '1.4142e-40')
    """
    if number == 0 or sympy.Rational(1, 1000) <= abs(number) < 10**9:
        return f"{decimal(number, places)}{after}"
    digits, _, power = str(number.evalf(places + 1)).partition("e")
    return f"{digits}{after}{'e' if power else ''}{power}"


def equation_text(number: Any) -> str:
    """The equation in h that a root without a formula solves; empty for others.

    >>> equation_text(2 * sympy.rootof("x**3 - x - 1", 0))
    'h^3 - 4h - 8 = 0'
    """
    factor, root = number.as_coeff_Mul()
    if not isinstance(root, sympy.CRootOf):
        return ""
    h = sympy.Symbol("h", positive=True)
    _, whole = sympy.Poly(root.poly.as_expr().subs(root.poly.gen, h / factor), h).clear_denoms(convert=True)
    return f"{format_exact(whole.primitive()[1].as_expr())} = 0"


def _term(coefficient: Any, power: str) -> str:
    if not power:
        return format_exact(coefficient)
    if coefficient in (1, -1):
        return power if coefficient == 1 else f"-{power}"
    written = format_exact(coefficient)
    if coefficient.is_Add:
        return f"({written})*{power}"
    return f"{written}{'' if coefficient.is_Integer else '*'}{power}"
