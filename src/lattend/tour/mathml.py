"""Printed formulas as MathML: `(2n - t)(t + 1)/2` as a fraction, `n // w` as a floor.

A text that is no formula is shown as it is.
"""

from __future__ import annotations

import re
from html import escape
from itertools import pairwise

from lattend.counts.formula import Apply, BigO, Formula, Number, Symbol
from lattend.counts.formula_parser import parse_formula
from lattend.errors import TextError

_RELATION = re.compile(r" (<=|>=|==|!=|<|>|=) ")
_SIGNS = {"<=": "≤", ">=": "≥", "==": "=", "!=": "≠", "+": "+", "-": "−", "neg": "−"}
_OPEN, _CLOSE = "<mo stretchy='false'>(</mo>", "<mo stretchy='false'>)</mo>"


def formula(text: str, *, large: bool = False) -> str:
    """The formula, or the relation between formulas, as one `<math>` element.

    >>> formula("n/2")
    '<math><mfrac><mi>n</mi><mn>2</mn></mfrac></math>'
    """
    sides = _RELATION.split(text)
    try:
        parts = [_markup(parse_formula(side)) for side in sides[::2]]
    except TextError:
        return f"<code>{escape(text)}</code>"
    for place, sign in enumerate(sides[1::2]):
        parts.insert(2 * place + 1, _sign(sign))
    start = '<math displaystyle="true">' if large else "<math>"
    return f"{start}{_row(parts)}</math>"


def calls(text: str) -> str:
    """A product of functions, as a count that is one is headed: `F(rows, t) * F(cols, t)`."""
    found: list[str] = []
    for name, arguments in re.findall(r"(\w+)\((.*?)\)", text):
        inside = "<mo>,</mo>".join(_markup(parse_formula(one)) for one in arguments.split(", "))
        found.append(f"<mrow><mi>{name}</mi>{_OPEN}{inside}{_CLOSE}</mrow>")
    return f"<math><mrow>{'<mo>&#x2062;</mo>'.join(found)}</mrow></math>"


def _markup(node: Formula | BigO, fenced: bool = False) -> str:
    """The formula; a sum in brackets where it is `fenced`, as a factor is."""
    match node:
        case Number(value=value) if value.denominator == 1:
            return f"<mn>{value}</mn>"
        case Symbol():
            return f"<mi>{node.name}</mi>"
        case Apply(op="+" | "-" | "neg"):
            inside = _row(_terms(node))
            return f"<mrow>{_OPEN}{inside}{_CLOSE}</mrow>" if fenced else inside
        case Apply(op="*"):
            return _times(_factors(node))
        case Apply(op="^", args=(base, exponent)):
            return f"<msup>{_markup(base, True)}{_markup(exponent)}</msup>"
        case Apply(op="/", args=(above, below)):
            return f"<mfrac>{_markup(above)}{_markup(below)}</mfrac>"
        case Apply(op="//" | "%", args=(left, right)):
            above, below = _markup(left, True), _markup(right, True)
            if node.op == "//":
                return f"<mrow><mo>⌊</mo>{above}<mo lspace='0' rspace='0'>/</mo>{below}<mo>⌋</mo></mrow>"
            return f"<mrow>{above}<mspace width='0.3em'/><mi>mod</mi><mspace width='0.3em'/>{below}</mrow>"
        case _:
            raise TextError("counts are not printed so", "", 0, 0)


def _terms(node: Formula) -> list[str]:
    match node:
        case Apply(op="+" | "-", args=(left, right)):
            return [*_terms(left), _sign(node.op), _markup(right, True)]
        case Apply(op="neg", args=(inner,)):
            return [_sign("neg"), _markup(inner, True)]
        case _:
            return [_markup(node)]


def _factors(node: Formula) -> list[Formula]:
    match node:
        case Apply(op="*", args=(left, right)):
            return [*_factors(left), right]
        case _:
            return [node]


def _times(factors: list[Formula]) -> str:
    """The factors with a dot next to a name of several letters, else with nothing between them."""
    parts = [_markup(factors[0], True)]
    for before, factor in pairwise(factors):
        word = any(isinstance(one, Symbol) and len(one.name) > 1 for one in (before, factor))
        parts += ["<mo>·</mo>" if word else "<mo>&#x2062;</mo>", _markup(factor, True)]
    return _row(parts)


def _sign(sign: str) -> str:
    return f"<mo>{escape(_SIGNS.get(sign, sign))}</mo>"


def _row(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"
