"""Formulas as trees: `read_term` reads a text into a `Term`; products may go without a sign, as in 2n."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar

from lattend.errors import TextError
from lattend.rules.language.grammar import Kind, Parsed, Parser, Source, Token, scan

# Functions of what stands in their brackets; before a bracket, other names are factors
FUNCTIONS = (
    "softmax",
    "exp",
    "log",
    "sqrt",
    "norm",
    "min",
    "max",
    "sin",
    "cos",
    "tan",
    "tanh",
    "atan",
    "abs",
)
# Run an index over its values: sum(a, i, 1, n), sum(a, k), sum(a, j != k)
BINDERS = ("sum", "concat", "matrix")


@dataclass(frozen=True, slots=True)
class Term:
    """An operation and what it is applied to.

    number name              its text
    + - * / // % ^ = != neg  as in `a - b`, `-a`
    transposed               W.T
    index, head              Z[q, k] and W{h}: the first argument is what has the index
    call                     softmax(a)
    indicator                is(k = q), which is 1 or 0
    chance                   p(x|z), p(x, z): its text is the distribution and what stands between letters
    sum concat matrix        a body, an index, and its limits or none; or a condition in place of the index
    vector                   (a, b)
    """

    op: str
    args: tuple[Term, ...] = ()
    text: str = ""


def signature(chance: Term) -> str:
    """What a distribution is told apart by, its letters: p(x|z) is not p(z)."""
    name, between = chance.text[:-1], chance.text[-1]
    return f"{name}({between.join(letter.text for letter in chance.args)})"


def bound_index(binder: Term) -> str:
    """The index that a sum runs over its values."""
    index = binder.args[1]
    return index.text if index.op == "name" else index.args[0].text


_TOKEN = re.compile(
    r"(?P<number>\d+)|(?P<name>[^\W\d_][\w\u0303]*'*)|(?P<sign>\.T\b|//|!=|[-+*/%^=(){}\[\],|])"
)
_CONDITION, _ADD, _MULTIPLY, _SIGN, _POWER, _INDEX = range(1, 7)
_LEVEL = {
    **dict.fromkeys(("=", "!="), _CONDITION),
    **dict.fromkeys(("+", "-"), _ADD),
    **dict.fromkeys(("*", "/", "//", "%"), _MULTIPLY),
    "^": _POWER,
    **dict.fromkeys(("[", "{", ".T"), _INDEX),
}


@lru_cache(maxsize=512)
def read_term(text: str, distributions: str = "") -> Term:
    """The formula this text means; `distributions` are the letters that take brackets, as p in p(x|z).

    >>> read_term("2n")
    Term(op='*', args=(Term(op='number', args=(), text='2'), Term(op='name', args=(), text='n')), text='')
    """
    parser = _TermParser(text, distributions)
    node = parser.expression(_ADD).node
    parser.finish()
    return node


class _TermParser(Parser[Parsed]):
    LEVEL: ClassVar = _LEVEL
    CLOSING: ClassVar = {"(": ")", "[": "]", "{": "}"}

    def __init__(self, text: str, distributions: Collection[str]) -> None:
        super().__init__(Source("formula", text), [])
        self.tokens = scan(self.source, self.token)
        self.distributions = distributions

    def token(self, at: int) -> Token:
        token = _TOKEN.match(self.source.text, at)
        if token is None:
            raise self.error(f"{self.source.text[at]} is not part of a formula", at, at + 1)
        kind: Kind = "number" if token["number"] else "name" if token["name"] else "sign"
        return Token(kind, token[0], at, token.end())

    def left_over(self, token: Token) -> TextError:
        return self.fail(f"{token.value or 'the end'} is not expected here", token)

    def level(self, token: Token) -> int:
        implicit = token.kind in ("name", "number") or token.value == "("
        return _MULTIPLY if implicit else super().level(token)

    def operator(self, left: Parsed, sign: Token, level: int) -> Parsed:
        if sign.value == ".T":
            return Parsed(Term("transposed", (left.node,)), left.start, sign.end)
        if level == _INDEX:
            self.at -= 1
            arguments, end = self.arguments()
            op = "index" if sign.value == "[" else "head"
            return Parsed(Term(op, (left.node, *(one.node for one in arguments))), left.start, end)
        if level == _POWER:
            right = self.deeper(sign, partial(self.expression, _SIGN))
        else:
            right = self.expression(level + 1)
        op = sign.value if sign.value in _LEVEL else "*"
        return Parsed(Term(op, (left.node, right.node)), left.start, right.end)

    def opening(self, token: Token, loosest: int) -> Callable[[Token], Parsed] | None:
        if token.value in ("-", "("):
            return self.negated if token.value == "-" else self.bracket
        if self.following.value != "(" or self.following.start > token.end:
            return None
        if token.value in self.distributions:
            return self.chance
        return self.call if token.value in (*FUNCTIONS, *BINDERS, "is") else None

    def negated(self, sign: Token) -> Parsed:
        inner = self.expression(_MULTIPLY)
        return Parsed(Term("neg", (inner.node,)), sign.start, inner.end)

    def bracket(self, opening: Token) -> Parsed:
        self.at -= 1
        arguments, end = self.arguments()
        parts = tuple(one.node for one in arguments)
        return Parsed(parts[0] if len(parts) == 1 else Term("vector", parts), opening.start, end)

    def call(self, name: Token) -> Parsed:
        arguments, end = self.arguments()
        if name.value in BINDERS and not _is_bound([one.node for one in arguments]):
            raise self.fail(f"{name.value} runs over an index: {name.value}(a, i) or (a, i, 1, n)", name)
        op = name.value if name.value in BINDERS else "indicator" if name.value == "is" else "call"
        return Parsed(Term(op, tuple(one.node for one in arguments), name.value), name.start, end)

    def chance(self, name: Token) -> Parsed:
        opening, between = self.current, ","
        letters: list[Term] = []
        while not letters or self.current.value in (",", "|"):
            between = "|" if self.current.value == "|" else between
            self.at += 1
            letters.append(self.leaf(self.current).node)
        return Parsed(Term("chance", tuple(letters), name.value + between), name.start, self.close(opening))

    def leaf(self, token: Token) -> Parsed:
        if token.kind not in ("name", "number"):
            raise self.left_over(token)
        self.at += 1
        return Parsed(Term(token.kind, text=token.value), token.start, token.end)


def _is_bound(parts: list[Term]) -> bool:
    """Whether these are a body, an index or a condition on one, and limits or none."""
    index = parts[1] if len(parts) in (2, 4) else None
    return index is not None and "name" in (index.op, *(part.op for part in index.args[:1]))
