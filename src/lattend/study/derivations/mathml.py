"""Printed formulas as MathML: `(2n - t)(t + 1)/2` as a fraction, `n // w` as a floor.

A text that is no formula is shown as it is.
"""

from __future__ import annotations

import re
from html import escape

from lattend.errors import TextError
from lattend.study.derivations.notations import MATHML
from lattend.study.derivations.reader import read_term

_RELATION = re.compile(r" (<=|>=|==|!=|<|>|=) ")
_SIGNS = {"<=": "≤", ">=": "≥", "==": "="}


def formula(text: str, *, large: bool = False) -> str:
    """The formula, or the relation between formulas, as one `<math>` element.

    >>> formula("n/2")
    '<math><mfrac><mi>n</mi><mn>2</mn></mfrac></math>'
    """
    sides = _RELATION.split(text)
    try:
        parts = [_markup(side) for side in sides[::2]]
    except TextError:
        return f"<code>{escape(text)}</code>"
    for place, sign in enumerate(sides[1::2]):
        parts.insert(2 * place + 1, MATHML.sign(_SIGNS.get(sign, sign)))
    start = '<math displaystyle="true">' if large else "<math>"
    return f"{start}{parts[0] if len(parts) == 1 else MATHML.row(parts)}</math>"


def calls(text: str) -> str:
    """A product of functions, as a count that is one is headed: `F(rows, t) * F(cols, t)`."""
    found: list[str] = []
    for name, arguments in re.findall(r"(\w+)\((.*?)\)", text):
        inside = MATHML.fenced(MATHML.listed([_markup(one) for one in arguments.split(", ")]))
        found.append(MATHML.row([f"<mi>{name}</mi>", inside]))
    return f"<math><mrow>{'<mo>&#x2062;</mo>'.join(found)}</mrow></math>"


def _markup(text: str) -> str:
    return MATHML.write(read_term(text))
