"""A formula's text → a sympy expression; read by a grammar, never evaluated as Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import sympy

from lattend.errors import TextError

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": sympy.exp,
    "log": sympy.log,
    "sqrt": sympy.sqrt,
    "sin": sympy.sin,
    "cos": sympy.cos,
    "tan": sympy.tan,
    "tanh": sympy.tanh,
    "atan": sympy.atan,
    "abs": sympy.Abs,
    "sigmoid": lambda x: 1 / (1 + sympy.exp(-x)),
    "softplus": lambda x: sympy.log(1 + sympy.exp(x)),
}
CONSTANTS = {"e": sympy.E, "pi": sympy.pi, "π": sympy.pi}
MOST_CHARACTERS, DEEPEST, LARGEST_POWER, MOST_DIGITS = 2000, 60, 1000, 4000

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)|(?P<sign>\*\*|[-+*/^()−·×]))"
)
_TOO_LONG = f"a number with more than {MOST_DIGITS:,} digits"
_SIGNS = {"**": "^", "−": "-", "·": "*", "×": "*"}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def formula(text: str, names: Collection[str] | None = None) -> Any:
    """The expression this text means, with its numbers exact; `names` are the only ones allowed, if given.

    + - * / ^ and brackets, `2p` for `2*p`, the functions above, e and pi.

    >>> formula("p*q + 0.1p^2")
    p**2/10 + p*q
    """
    if len(text) > MOST_CHARACTERS:
        raise TextError(
            f"a formula has at most {MOST_CHARACTERS:,} characters", text, MOST_CHARACTERS, len(text)
        )
    reader = _Reader(text, None if names is None else frozenset(names))
    value = reader.sum(0)
    reader.end()
    if any(_digits(number) > MOST_DIGITS for number in value.atoms(sympy.Rational)):
        raise TextError(f"formula: {_TOO_LONG}", text, 0, len(text))
    return value


class _Reader:
    """Reads sums of products of powers, one token ahead."""

    def __init__(self, text: str, names: frozenset[str] | None) -> None:
        self.text = text
        self.names = names
        self.tokens = list(_scan(text))
        self.place = 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.place]

    def take(self) -> _Token:
        self.place += 1
        return self.tokens[self.place - 1]

    def end(self) -> None:
        if self.next.kind != "end":
            self.fail(f"{self.next.text} is not expected here", self.next)

    def fail(self, message: str, token: _Token) -> NoReturn:
        raise TextError(f"formula: {message}", self.text, token.start, token.end)

    def sum(self, depth: int) -> Any:
        if depth > DEEPEST:
            self.fail(f"more than {DEEPEST} brackets or signs inside one another", self.next)
        value = self.product(depth)
        while self.next.text in ("+", "-"):
            value = value + self.product(depth) if self.take().text == "+" else value - self.product(depth)
        return value

    def product(self, depth: int) -> Any:
        value = self.signed(depth)
        while True:
            sign = self.next
            if sign.text == "*":
                self.take()
                value = value * self.signed(depth)
            elif sign.text == "/":
                self.take()
                below_at = self.next
                below = self.signed(depth)
                if below == 0:
                    self.fail("division by 0", below_at)
                value = value / below
            elif sign.kind == "name" or sign.text == "(":  # 2p, 2(p + q)
                value = value * self.power(depth)
            else:
                return value

    def signed(self, depth: int) -> Any:
        if self.next.text not in ("+", "-"):
            return self.power(depth)
        if depth > DEEPEST:
            self.fail(f"more than {DEEPEST} brackets or signs inside one another", self.next)
        negative = self.take().text == "-"
        value = self.signed(depth + 1)
        return -value if negative else value

    def power(self, depth: int) -> Any:
        base_at = self.next
        base: Any = self.atom(depth)
        if self.next.text != "^":
            return base
        self.take()
        at = self.next
        exponent = self.signed(depth + 1)
        if exponent.is_number and abs(exponent) > LARGEST_POWER:
            self.fail(f"a power of at most {LARGEST_POWER:,} is meant to be enough", at)
        if exponent.is_negative and base.is_zero:
            self.fail("0 has no negative power", base_at)
        if exponent.is_Rational and _digits(base.as_coeff_Mul()[0]) * abs(exponent) > MOST_DIGITS:
            self.fail(_TOO_LONG, at)
        value = base**exponent
        if any(one.exp.is_number and abs(one.exp) > LARGEST_POWER for one in value.atoms(sympy.Pow)):
            self.fail(f"powers of powers: at most {LARGEST_POWER:,} in all", at)
        return value

    def atom(self, depth: int) -> Any:
        token = self.take()
        if token.kind == "number":
            if abs(int(token.text.lower().partition("e")[2] or 0)) > LARGEST_POWER:
                self.fail(f"a power of at most {LARGEST_POWER:,} is meant to be enough", token)
            return sympy.Rational(token.text)
        if token.text == "(":
            return self.brackets(token, depth)
        if token.kind == "name":
            return self.name(token, depth)
        if token.kind == "end":
            self.fail(
                "something is missing at the end" if self.text.strip() else "there is no formula", token
            )
        self.fail(f"{token.text} is not expected here", token)

    def brackets(self, opening: _Token, depth: int) -> Any:
        value = self.sum(depth + 1)
        if self.next.text != ")":
            self.fail("this bracket is not closed", opening)
        self.take()
        return value

    def name(self, token: _Token, depth: int) -> Any:
        if self.names is not None and token.text in self.names:
            return sympy.Symbol(token.text, real=True)
        if token.text in FUNCTIONS:
            if self.next.text != "(":
                self.fail(f"{token.text} needs brackets, as in {token.text}(x)", token)
            return self.apply(token, self.brackets(self.take(), depth))
        if token.text in CONSTANTS:
            return CONSTANTS[token.text]
        if self.names is not None:
            known = f"the names are {', '.join(sorted(self.names))}" if self.names else "it has no value here"
            self.fail(f"{token.text} is not known; {known}", token)
        if self.next.text == "(" and self.next.start == token.end and len(token.text) > 1:
            self.fail(f"{token.text} is not a function; there are {', '.join(FUNCTIONS)}", token)
        return sympy.Symbol(token.text, real=True)

    def apply(self, token: _Token, argument: Any) -> Any:
        known = token.text in ("log", "sqrt") and argument.is_number
        if known and (argument.is_negative or (argument.is_zero and token.text == "log")):
            self.fail(f"{token.text} of {argument} is not a real number", token)
        return FUNCTIONS[token.text](argument)


def _digits(number: Any) -> int:
    """About how many digits a fraction takes to write; 0 for other numbers."""
    if not number.is_Rational:
        return 0
    return max(int(number.p).bit_length(), int(number.q).bit_length()) * 3 // 10


def _scan(text: str) -> Iterator[_Token]:
    place = 0
    while text[place:].strip():
        found = _TOKEN.match(text, place)
        if found is None:
            start = place + len(text[place:]) - len(text[place:].lstrip())
            raise TextError(f"formula: {text[start]} is not part of a formula", text, start, start + 1)
        kind = found.lastgroup or ""
        start, place = found.start(kind), found.end()
        yield _Token(kind, _SIGNS.get(found[kind], found[kind]), start, place)
    yield _Token("end", "", len(text), len(text) + 1)
