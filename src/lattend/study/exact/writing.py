"""How exact numbers, polynomials and roots are written: as people type them, in LaTeX, as decimals."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import sympy

from lattend.report.numbers import fixed

SUM, PRODUCT, POWER, ATOM = range(4)  # how tightly a text holds together
MOST_DIGITS = 4000
LONGEST = 60  # characters of a formula beside others
PLACES = 6


def format_exact(value: Any) -> str:
    """The expression as people type it; `formula` reads it again.

    >>> format_exact(sympy.exp(2) / (2 + 2 * sympy.E))
    'e^2/(2e + 2)'
    """
    return _format(sympy.sympify(value))[0]


def latex(value: Any) -> str:
    """The expression in LaTeX."""
    return sympy.latex(sympy.sympify(value))


def decimal(value: Any, places: int = 4) -> str:
    """The number rounded to so many places, halves away from 0.

    >>> decimal(sympy.E / (1 + 2 * sympy.E + sympy.exp(2)))
    '0.1966'
    """
    value = sympy.sympify(value)
    if value.is_Rational:
        return fixed(fraction(value), places)
    digits = places + 20
    while True:  # more digits are asked for until it is certain
        near = fraction(sympy.Rational(value.evalf(digits, maxn=4 * MOST_DIGITS)))
        outwards, inwards = (near * (1 + sign * Fraction(1, 10 ** (digits - 3))) for sign in (1, -1))
        text = fixed(outwards, places)
        if text == fixed(inwards, places) or digits > MOST_DIGITS:  # or it is a tie
            return text
        digits *= 2


def fraction(value: Any) -> Fraction:
    """A rational number of sympy as a Fraction."""
    return Fraction(int(value.p), int(value.q))


def _format(value: Any) -> tuple[str, int]:
    """The text, and how tightly it holds together."""
    if value.is_Integer:
        return integer_text(value.p), ATOM if value >= 0 else SUM
    if value.is_Rational:
        return f"{integer_text(value.p)}/{integer_text(value.q)}", PRODUCT if value > 0 else SUM
    if value.is_Add:
        return _sum(value), SUM
    if value.is_Mul:
        return _product(value)
    if value is sympy.E:
        return "e", ATOM
    if isinstance(value, sympy.exp) or value.is_Pow:
        return _power(*value.as_base_exp())
    if value is sympy.I:
        return "i", ATOM
    if isinstance(value, sympy.Abs):
        return f"abs({format_exact(value.args[0])})", ATOM
    if value.is_Function:
        return f"{value.func.__name__}({', '.join(format_exact(part) for part in value.args)})", ATOM
    return str(value).replace("**", "^"), ATOM if value.is_Atom else SUM


def integer_text(number: int) -> str:
    """All digits of a whole number; Python's own text ends at 4,300."""
    return str(Decimal(int(number)))  # an integer has no exponent


def _sum(value: Any) -> str:
    parts: list[str] = []
    terms = [(term, format_exact(term)) for term in sorted(value.args, key=_rank)]
    first = next((index for index, (_, written) in enumerate(terms) if not written.startswith("-")), 0)
    if not terms[first][0].has(sympy.I):  # 1 - h^2 rather than -h^2 + 1
        terms.insert(0, terms.pop(first))
    for _, written in terms:
        if not parts:
            parts.append(written)
        elif written.startswith("-"):
            parts.append(f" - {written[1:]}")
        else:
            parts.append(f" + {written}")
    return "".join(parts)


def _rank(term: Any) -> tuple[Any, ...]:
    """Powers of e and of names first, the highest before the lower, then numbers; multiples of i last."""
    _, rest = term.as_coeff_Mul()
    powers = [factor.as_base_exp() for factor in sympy.Mul.make_args(rest)]
    degree = sum((power for _, power in powers if power.is_number), sympy.Integer(0))
    return (bool(rest.has(sympy.I)), rest == 1, -float(sympy.re(degree)), sympy.default_sort_key(rest))


def _product(value: Any) -> tuple[str, int]:
    above, below = sympy.fraction(value)
    if below != 1:
        if above.could_extract_minus_sign() and not above.is_Add:
            written, _ = _product_over(-above, below)
            return f"-{written}", SUM
        return _product_over(above, below)
    number, rest = value.as_coeff_Mul()
    if number == -1:
        return f"-{_inside(rest, PRODUCT)}", SUM
    factors = "*".join(_inside(factor, POWER) for factor in sorted(rest.as_ordered_factors(), key=_order))
    if number == 1:
        return factors, PRODUCT
    digit = factors[0].isdigit()  # 2*3^p, but 2e
    return f"{format_exact(number)}{'*' if digit else ''}{factors}", PRODUCT if number > 0 else SUM


def _product_over(above: Any, below: Any) -> tuple[str, int]:
    return f"{_inside(above, PRODUCT)}/{_inside(below, POWER)}", PRODUCT


def _order(factor: Any) -> tuple[bool, Any]:
    return factor.is_Add, factor.sort_key()


def _power(base: Any, exponent: Any) -> tuple[str, int]:
    if exponent == 1:
        return _format(base)
    if exponent.is_number and exponent.is_negative:
        return f"1/{_inside(base**-exponent, POWER)}", PRODUCT
    if exponent == sympy.Rational(1, 2):
        return f"sqrt({format_exact(base)})", ATOM
    return f"{_inside(base, ATOM)}^{_inside(exponent, ATOM)}", POWER


def _inside(value: Any, at_least: int) -> str:
    written, tightness = _format(value)
    return written if tightness >= at_least else f"({written})"


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


def factored_text(expression: Any) -> str:
    """The expression in factors where it is a polynomial.

    >>> p, q = sympy.symbols("p q")
    >>> factored_text(-p * q - q**2)
    '-q*(p + q)'
    """
    return format_exact(sympy.factor(expression) if expression.is_polynomial() else expression)


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
    _, polynomial = sympy.Poly(root.poly.as_expr().subs(root.poly.gen, h / factor), h).clear_denoms(
        convert=True
    )
    return f"{format_exact(polynomial.primitive()[1].as_expr())} = 0"


def _term(coefficient: Any, power: str) -> str:
    if not power:
        return format_exact(coefficient)
    if coefficient in (1, -1):
        return power if coefficient == 1 else f"-{power}"
    written = format_exact(coefficient)
    if coefficient.is_Add:
        return f"({written})*{power}"
    return f"{written}{'' if coefficient.is_Integer else '*'}{power}"
