"""The core of every grammar: tokens, precedence climbing, brackets, nesting, and where errors point.

A grammar says how strongly its operators bind (LEVEL), what an operator makes of its two sides, and what its
operands are: leaves, and openings such as ( or - that hold further operands. `Parser` is the core,
`ConditionParser` adds comparisons joined by `and` and `or`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from keyword import iskeyword
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast

from lattend.errors import Suggestion, TextError
from lattend.rules.language.expr import (
    And,
    Arith,
    Compare,
    CompareOp,
    Condition,
    Num,
    Or,
    Span,
    Term,
    flattened,
)

MAX_LENGTH = 10_000
MAX_NESTING = 100
MAX_INTEGER = 10**18
MAX_NAME = 64

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[0-9]+(?:_[0-9]+)*")
_APART = ("and", "or", "not")
SPACE = re.compile(r"\s+")

Kind = Literal["number", "name", "sign", "end"]
Read = TypeVar("Read")
# How tightly the operators of rules and formulas bind; a power is found in formulas alone
OR, AND, NOT, COMPARE, ADD, MULTIPLY, NEGATE, POWER = range(1, 9)
_COMPARISONS: dict[str, CompareOp] = {"=": "==", "|": "==", "∣": "==", "∤": "!="}
_DIVIDES = ("|", "∣", "∤")


@dataclass(frozen=True, slots=True)
class Token:
    """A token: `text[start:end]`, with its standard spelling in `value`."""

    kind: Kind
    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """A text to parse, and what messages call it: a rule, an assumption, a formula."""

    kind: str
    text: str

    def error(self, message: str, start: int, end: int, *meant: str | Suggestion) -> TextError:
        """A TextError about `text[start:end]`, with as much of the text as fits on a line.

        `meant` are texts that may stand there instead, or what may be changed elsewhere.
        """
        text = "".join(char if char.isprintable() else " " for char in self.text)
        if len(text) > 72:
            cut = max(0, min(start - 30, len(text) - 60))
            left, right = "…" if cut else "", "…" if cut + 60 < len(text) else ""
            text = f"{left}{text[cut : cut + 60]}{right}"
        changes = (self.instead(start, end, one) if isinstance(one, str) else one for one in meant)
        return TextError(f'{self.kind} "{text}": {message}', self.text, start, end, changes, message)

    def instead(self, start: int, end: int, word: str) -> Suggestion:
        """Returns the replacement of `text[start:end]` by a word; and, or, not get spaces around them."""
        left, right = self.text[:start][-1:], self.text[end:][:1]
        before = " " if word in _APART and left.strip("( \t\n") else ""
        after = " " if word in _APART and right.strip() else ""
        return Suggestion(start, end, f"{before}{word}{after}")

    def part(self, start: int, end: int) -> str:
        """The characters from start to end, cut short when they are many."""
        text = " ".join(self.text[start:end].split())
        return text if len(text) <= 40 else f"{text[:37]}…"

    def check_length(self) -> None:
        if len(self.text) > MAX_LENGTH:
            message = f"it has {len(self.text):,} characters, and {MAX_LENGTH:,} are allowed; shorten it"
            raise self.error(message, MAX_LENGTH, len(self.text))

    def check_name(self, start: int, end: int) -> None:
        if end - start > MAX_NAME:
            message = f"this name has {end - start:,} characters, and {MAX_NAME} are allowed; shorten it"
            raise self.error(message, start, end)

    def integer(self, token: Token) -> int:
        """The value of a number token, at most 10**18."""
        digits = token.value.replace("_", "").lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > MAX_INTEGER:
            raise self.error(
                f"this number has {len(digits)} digits, and at most 10**18 is allowed; "
                "write a name instead and give its value later",
                token.start,
                token.end,
            )
        return int(digits)


def is_name(word: str, reserved: Collection[str] = ()) -> bool:
    """Whether `word` can name a position, a size, a parameter or an array."""
    return NAME.fullmatch(word) is not None and not iskeyword(word) and word not in reserved


def scan_name(source: Source, at: int) -> Token | None:
    """Returns the name that begins at `at`; None if there is none."""
    match = NAME.match(source.text, at)
    if match is None:
        return None
    source.check_name(at, match.end())
    return Token("name", match[0], at, match.end())


def scan_number(source: Source, at: int) -> Token | None:
    """Returns the integer that begins at `at`, if any; underscores may separate its digits."""
    match = _NUMBER.match(source.text, at)
    return Token("number", match[0], at, match.end()) if match else None


def scan(
    source: Source, read: Callable[[int], Token | list[Token]], space: re.Pattern[str] = SPACE
) -> list[Token]:
    """Returns the tokens of a text as `read` returns them, and a last one of kind "end"."""
    tokens: list[Token] = []
    at, end = 0, len(source.text)
    while True:
        skipped = space.match(source.text, at)
        at = skipped.end() if skipped else at
        if at == end:
            return [*tokens, Token("end", "", end, end)]
        token = read(at)
        tokens.extend(token if isinstance(token, list) else (token,))
        at = tokens[-1].end


@dataclass(frozen=True, slots=True)
class Parsed:
    """A node with its position in the text, brackets included, and its nesting depth."""

    node: Any
    start: int
    end: int
    depth: int = 1

    @property
    def span(self) -> Span:
        return self.start, self.end


P = TypeVar("P", bound=Parsed)


class Parser(ABC, Generic[P]):
    """Reads one text, one token ahead."""

    LEVEL: ClassVar[Mapping[str, int]]
    CLOSING: ClassVar[Mapping[str, str]] = {"(": ")"}
    LOOSEST: ClassVar[int] = 1
    DEEPEST: ClassVar[int] = MAX_NESTING

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.at: int = 0
        self.levels = 0

    # What a grammar says

    @abstractmethod
    def operator(self, left: P, sign: Token, level: int) -> P:
        """Reads the right side and returns the operation; an implicit operator has no token of its own."""

    @abstractmethod
    def opening(self, token: Token, loosest: int) -> Callable[[Token], P] | None:
        """Returns the reader of an operand with operands within it; None if `token` is a leaf."""

    @abstractmethod
    def leaf(self, token: Token) -> P:
        """Reads an operand of one token."""

    @abstractmethod
    def left_over(self, token: Token) -> TextError:
        """Returns the error that the text cannot continue with `token`."""

    def level(self, token: Token) -> int:
        """Returns how strongly the operator at `token` binds; 0 if there is none."""
        return self.LEVEL.get(token.value, 0)

    # Climbing

    def expression(self, loosest: int) -> P:
        """Reads the longest expression whose operators bind at least as strongly as `loosest`."""
        left = self.operand(loosest)
        while True:
            sign = self.current
            level = self.level(sign)
            if level == 0 or level < loosest:
                return left
            self.at += sign.value in self.LEVEL
            left = self.operator(left, sign, level)

    def operand(self, loosest: int) -> P:
        token = self.current
        read = self.opening(token, loosest)
        if read is None:
            return self.leaf(token)
        self.at += 1
        return self.deeper(token, partial(read, token))

    def deeper(self, token: Token, read: Callable[[], Read]) -> Read:
        """Calls `read` one nesting level deeper; raises if there are too many levels."""
        if self.levels == self.DEEPEST:
            raise self.fail(f"this is more than {self.DEEPEST} levels deep; write it with fewer", token)
        self.levels += 1
        piece = read()
        self.levels -= 1
        return piece

    def finish(self) -> None:
        """Raises unless the whole text was read."""
        if self.current.kind != "end":
            raise self.left_over(self.current)

    # Brackets

    def arguments(self) -> tuple[list[P], int]:
        """Reads expressions in brackets, separated by commas; returns them and the end of the brackets."""
        opening = self.current
        self.at += 1
        arguments: list[P] = []
        while not arguments or self.current.value == ",":
            if not arguments and self.current.value == self.CLOSING[opening.value]:
                break
            self.at += bool(arguments)
            arguments.append(self.expression(self.LOOSEST))
        return arguments, self.close(opening)

    def close(self, opening: Token) -> int:
        """Reads the bracket that closes `opening` and returns its end."""
        token, closing = self.current, self.CLOSING[opening.value]
        if token.value == closing:
            self.at += 1
            return token.end
        if token.kind == "end":
            raise self.never_closed(opening)
        if token.value in self.CLOSING.values():
            opened = f"the {opening.value} at character {opening.start + 1}"
            raise self.fail(f"this {token.value} cannot close {opened}; write {closing}", token, closing)
        raise self.left_over(token)

    # Places and errors

    @property
    def current(self) -> Token:
        return self.tokens[self.at]

    @property
    def previous(self) -> Token | None:
        return self.tokens[self.at - 1] if self.at else None

    @property
    def following(self) -> Token:
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def error(self, message: str, start: int, end: int, *meant: str | Suggestion) -> TextError:
        return self.source.error(message, start, end, *meant)

    def fail(self, message: str, token: Token, *meant: str | Suggestion) -> TextError:
        return self.error(message, token.start, token.end, *meant)

    def never_closed(self, opening: Token) -> TextError:
        closing, end = self.CLOSING[opening.value], len(self.source.text.rstrip())
        message = f"this {opening.value} is never closed; write {closing} where it ends"
        return self.fail(message, opening, Suggestion(end, end, closing))

    def unmatched(self, token: Token) -> TextError:
        """Returns the error that a bracket is never closed, or that `token` closes nothing."""
        if token.kind == "end" and self.previous is not None:
            return self.never_closed(self.previous)
        message = f"this {token.value} closes nothing; take it away or open a bracket before it"
        return self.fail(message, token, "")

    def check_depth(self, depth: int, span: Span) -> None:
        if depth > self.DEEPEST:
            message = f"this is more than {self.DEEPEST} operations one in another; write it with fewer"
            raise self.error(message, *span)


class ConditionParser(Parser[P]):
    """Reads comparisons, chained too, and conditions joined by `and` and `or`."""

    LOOSEST: ClassVar = OR

    @abstractmethod
    def arithmetic(self, left: P, sign: Token, level: int) -> P:
        """Reads the right side of an operator between numbers and returns the operation."""

    @abstractmethod
    def condition(self, piece: P) -> P:
        """Returns the piece if it is a condition; raises otherwise."""

    @abstractmethod
    def term(self, piece: P, needs: str) -> Term:
        """Returns the node of the piece if it is a number; raises otherwise, with what `needs` one."""

    @abstractmethod
    def truth(self, node: Condition, span: Span, depth: int) -> P:
        """Returns the piece of a condition."""

    def check_divisor(self, node: Term, piece: P) -> None:
        """Raises if this cannot divide."""

    def operator(self, left: P, sign: Token, level: int) -> P:
        if level == COMPARE:
            return self.comparison(left, sign)
        return self.junction(left, sign.value, level) if level <= AND else self.arithmetic(left, sign, level)

    def junction(self, left: P, word: str, level: int) -> P:
        parts = [self.condition(left), self.condition(self.expression(level + 1))]
        while self.current.value == word:
            self.at += 1
            parts.append(self.condition(self.expression(level + 1)))
        return self.joined(And if word == "and" else Or, parts)

    def joined(self, kind: type[And] | type[Or], parts: list[P]) -> P:
        if len(parts) == 1:
            return parts[0]
        span = (parts[0].start, parts[-1].end)
        # a part of the same kind hands over its arguments, so it is no level of its own
        depth = max(part.depth - isinstance(part.node, kind) for part in parts) + 1
        return self.truth(flattened(kind, [part.node for part in parts], span), span, depth)

    def comparison(self, left: P, sign: Token) -> P:
        links: list[P] = []
        while True:
            right = self.expression(ADD)
            links.append(self.link(sign, left, right))
            left, sign = right, self.current
            if self.level(sign) != COMPARE:
                return self.joined(And, links)
            self.at += 1

    def link(self, sign: Token, left: P, right: P) -> P:
        a, b = self.sides(sign, left, right)
        span, depth = (left.start, right.end), max(left.depth, right.depth) + 1
        op = _COMPARISONS.get(sign.value, cast(CompareOp, sign.value))
        if sign.value not in _DIVIDES:
            return self.truth(Compare(op, a, b, span), span, depth)
        self.check_divisor(a, left)
        return self.truth(Compare(op, Arith("%", (b, a), span), Num(0, span), span), span, depth + 1)

    def sides(self, sign: Token, left: P, right: P) -> tuple[Term, Term]:
        needs = f"{self.source.text[sign.start : sign.end]} stands between numbers"
        return self.term(left, needs), self.term(right, needs)
