"""Printed formulas as MathML: `(2n - t)(t + 1)/2` as a fraction, `n // w` as a floor.

It reads what counts print, no more; a text it cannot read is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

_TOKEN = re.compile(r"\s*(//|<=|>=|==|!=|\d+|[^\W\d]\w*|[-+*/%^()<>=,])")
_OPEN, _CLOSE = "<mo stretchy='false'>(</mo>", "<mo stretchy='false'>)</mo>"
_RELATIONS = {"<=": "≤", ">=": "≥", "==": "=", "=": "=", "!=": "≠", "<": "<", ">": ">"}


def formula(text: str, functions: Iterable[str] = (), *, large: bool = False) -> str:
    """The formula, or the relation between formulas, as one `<math>` element.

    >>> formula("n/2")
    '<math><mfrac><mi>n</mi><mn>2</mn></mfrac></math>'
    """
    start = '<math displaystyle="true">' if large else "<math>"
    try:
        return f"{start}{_Reader(text, functions).relation()}</math>"
    except _NotRead:
        return f"<code>{escape(text)}</code>"


class _NotRead(Exception):
    """The text is not in the notation that counts are printed in."""


class _Reader:
    """One text, read from left to right by what stands where: relation, sum, product, power."""

    def __init__(self, text: str, functions: Iterable[str]) -> None:
        self.functions = set(functions)
        self.tokens: list[str] = []
        place = 0
        text = text.rstrip()
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                raise _NotRead
            self.tokens.append(found[1])
            place = found.end()
        self.place = 0

    def relation(self) -> str:
        parts = [self._sum()]
        while self._next() in _RELATIONS:
            parts += [f"<mo>{escape(_RELATIONS[self._take()])}</mo>", self._sum()]
        if self._next():
            raise _NotRead
        return parts[0] if len(parts) == 1 else _row(parts)

    def _next(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def _take(self, wanted: str = "") -> str:
        token = self._next()
        if not token or (wanted and token != wanted):
            raise _NotRead
        self.place += 1
        return token

    def _sum(self) -> str:
        parts = ["<mo>−</mo>", self._product()] if self._skip("-") else [self._product()]
        while self._next() in ("+", "-"):
            sign = "+" if self._take() == "+" else "−"
            parts += [f"<mo>{sign}</mo>", self._product()]
        return parts[0] if len(parts) == 1 else _row(parts)

    def _skip(self, token: str) -> bool:
        if self._next() == token:
            self.place += 1
            return True
        return False

    def _product(self) -> str:
        """Factors side by side; what stands before a / is all of it the numerator."""
        factors, names = [self._power()], [self._is_word()]
        while True:
            token = self._next()
            if token == "*":
                self._take()
            elif token in ("/", "//", "%"):
                return self._divided(self._take(), factors, names)
            elif not (token == "(" or token.isidentifier() or token.isdigit()):
                return _times(factors, names)
            factors.append(self._power())
            names.append(self._is_word())

    def _divided(self, sign: str, factors: list[str], names: list[bool]) -> str:
        above, below = _times(factors, names), self._power()
        bare = _unfenced(above) if len(factors) == 1 else above
        if sign == "/":
            return f"<mfrac>{bare}{below}</mfrac>"
        if sign == "//":
            return f"<mrow><mo>⌊</mo>{above}<mo lspace='0' rspace='0'>/</mo>{below}<mo>⌋</mo></mrow>"
        return f"<mrow>{above}<mspace width='0.3em'/><mi>mod</mi><mspace width='0.3em'/>{below}</mrow>"

    def _is_word(self) -> bool:
        """Whether the last token was a name of several letters."""
        token = self.tokens[self.place - 1]
        return token.isidentifier() and len(token) > 1

    def _power(self) -> str:
        base = self._factor()
        return f"<msup>{base}<mn>{self._take()}</mn></msup>" if self._skip("^") else base

    def _factor(self) -> str:
        token = self._take()
        if token.isdigit():
            return f"<mn>{token}</mn>"
        if token == "(":
            inside = self._sum()
            self._take(")")
            return f"<mrow>{_OPEN}{inside}{_CLOSE}</mrow>"
        if not token.isidentifier():
            raise _NotRead
        if token in self.functions and self._next() == "(":
            return self._call(token)
        return f"<mi>{token}</mi>"

    def _call(self, name: str) -> str:
        self._take("(")
        arguments = [self._sum()]
        while self._skip(","):
            arguments += ["<mo>,</mo>", self._sum()]
        self._take(")")
        return f"<mrow><mi>{name}</mi>{_OPEN}{''.join(arguments)}{_CLOSE}</mrow>"


def _row(parts: list[str]) -> str:
    return f"<mrow>{''.join(parts)}</mrow>"


def _unfenced(markup: str) -> str:
    """Without the brackets around it, which a fraction bar replaces."""
    start, end = f"<mrow>{_OPEN}", f"{_CLOSE}</mrow>"
    return markup[len(start) : -len(end)] if markup.startswith(start) and markup.endswith(end) else markup


def _times(factors: list[str], words: list[bool]) -> str:
    """The factors with a dot next to a name of several letters, else with nothing between them."""
    if len(factors) == 1:
        return factors[0]
    text = factors[0]
    for i in range(1, len(factors)):
        text += ("<mo>·</mo>" if words[i] or words[i - 1] else "<mo>&#x2062;</mo>") + factors[i]
    return f"<mrow>{text}</mrow>"
