"""A formula's text → a sympy expression; read by a grammar, never evaluated as Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, ClassVar

import sympy

from lattend.errors import Suggestion, TextError
from lattend.rules.language.grammar import Kind, Parsed, Parser, Source, Token, scan

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
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)|(?P<sign>\*\*|[-+*/^()−·×])"
)
_SIGNS = {"**": "^", "−": "-", "·": "*", "×": "*"}
_ADD, _MULTIPLY, _SIGN, _POWER = range(1, 5)
_TOO_LONG = f"a number with more than {MOST_DIGITS:,} digits"
_TOO_HIGH = f"a power of at most {LARGEST_POWER:,} is meant to be enough"


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
    parser = _ExpressionParser(text, None if names is None else frozenset(names))
    value = parser.expression(_ADD).node
    parser.finish()
    if any(_digits(number) > MOST_DIGITS for number in value.atoms(sympy.Rational)):
        raise parser.error(_TOO_LONG, 0, len(text))
    return value


class _ExpressionParser(Parser[Parsed]):
    """Reads a formula straight into sympy's numbers and symbols."""

    LEVEL: ClassVar = {"+": _ADD, "-": _ADD, "*": _MULTIPLY, "/": _MULTIPLY, "^": _POWER}
    DEEPEST: ClassVar = DEEPEST

    def __init__(self, text: str, names: frozenset[str] | None) -> None:
        super().__init__(Source("formula", text), [])
        self.tokens = scan(self.source, self.token)
        self.names = names

    def token(self, at: int) -> Token:
        matched = _TOKEN.match(self.source.text, at)
        if matched is None:
            raise self.error(f"{self.source.text[at]} is not part of a formula", at, at + 1)
        kind: Kind = "number" if matched["number"] else "name" if matched["name"] else "sign"
        return Token(kind, _SIGNS.get(matched[0], matched[0]), at, matched.end())

    def error(self, message: str, start: int, end: int, *meant: str | Suggestion) -> TextError:
        failure = super().error(message, start, end, *meant)
        return TextError(f"formula: {message}", failure.text, start, end, failure.suggestions, message)

    def left_over(self, token: Token) -> TextError:
        return self.fail(f"{token.value} is not expected here", token)

    def level(self, token: Token) -> int:
        implicit = token.kind == "name" or token.value == "("  # 2p, 2(p + q)
        return _MULTIPLY if implicit else super().level(token)

    def operator(self, left: Parsed, sign: Token, level: int) -> Parsed:
        if level == _POWER:
            right = self.deeper(sign, partial(self.expression, _POWER))
        else:
            right = self.expression(level + 1)
        a, b = left.node, right.node
        match sign.value:
            case "+":
                value = a + b
            case "-":
                value = a - b
            case "/":
                if b == 0:
                    raise self.error("division by 0", *right.span)
                value = a / b
            case "^":
                value = self.power(left, right)
            case _:
                value = a * b
        return Parsed(value, left.start, right.end)

    def power(self, left: Parsed, right: Parsed) -> Any:
        base, exponent = left.node, right.node
        if exponent.is_number and abs(exponent) > LARGEST_POWER:
            raise self.error(_TOO_HIGH, *right.span)
        if exponent.is_negative and base.is_zero:
            raise self.error("0 has no negative power", *left.span)
        if exponent.is_Rational and _digits(base.as_coeff_Mul()[0]) * abs(exponent) > MOST_DIGITS:
            raise self.error(_TOO_LONG, *right.span)
        value = base**exponent
        if any(one.exp.is_number and abs(one.exp) > LARGEST_POWER for one in value.atoms(sympy.Pow)):
            raise self.error(f"powers of powers: at most {LARGEST_POWER:,} in all", *right.span)
        return value

    def opening(self, token: Token, loosest: int) -> Callable[[Token], Parsed] | None:
        if token.value in ("+", "-"):
            return self.signed
        if token.value == "(":
            return self.bracket
        return self.call if token.value in FUNCTIONS and token.value not in (self.names or ()) else None

    def signed(self, sign: Token) -> Parsed:
        arg = self.expression(_SIGN)
        return Parsed(-arg.node if sign.value == "-" else arg.node, sign.start, arg.end)

    def bracket(self, opening: Token) -> Parsed:
        inner = self.expression(_ADD)
        return Parsed(inner.node, opening.start, self.close(opening))

    def call(self, name: Token) -> Parsed:
        if self.current.value != "(":
            raise self.fail(f"{name.value} needs brackets, as in {name.value}(x)", name)
        inner = self.operand(_ADD)
        known = name.value in ("log", "sqrt") and inner.node.is_number
        if known and (inner.node.is_negative or (inner.node.is_zero and name.value == "log")):
            raise self.fail(f"{name.value} of {inner.node} is not a real number", name)
        return Parsed(FUNCTIONS[name.value](inner.node), name.start, inner.end)

    def leaf(self, token: Token) -> Parsed:
        if token.kind == "end":
            empty = not self.source.text.strip()
            raise self.fail("there is no formula" if empty else "something is missing at the end", token)
        if token.kind == "sign":
            raise self.left_over(token)
        self.at += 1
        value = self.number(token) if token.kind == "number" else self.name(token)
        return Parsed(value, token.start, token.end)

    def number(self, token: Token) -> Any:
        if abs(int(token.value.lower().partition("e")[2] or 0)) > LARGEST_POWER:
            raise self.fail(_TOO_HIGH, token)
        return sympy.Rational(token.value)

    def name(self, token: Token) -> Any:
        name = token.value
        if self.names is not None and name not in self.names and name not in CONSTANTS:
            known = f"the names are {', '.join(sorted(self.names))}" if self.names else "it has no value here"
            raise self.fail(f"{name} is not known; {known}", token)
        if name in CONSTANTS and name not in (self.names or ()):
            return CONSTANTS[name]
        if (
            self.names is None
            and self.current.value == "("
            and self.current.start == token.end
            and len(name) > 1
        ):
            raise self.fail(f"{name} is not a function; there are {', '.join(FUNCTIONS)}", token)
        return sympy.Symbol(name, real=True)


def _digits(number: Any) -> int:
    """About how many digits a fraction takes to write; 0 for other numbers."""
    if not number.is_Rational:
        return 0
    return max(int(number.p).bit_length(), int(number.q).bit_length()) * 3 // 10
