"""Reading a rule from its text: a precedence parser, never `eval`.

From loosest to tightest: `or`, `and`, `not`, comparisons (chained too), `+ -`, `* // %`, unary `-`;
as in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from lattend.errors import TextError
from lattend.rules.language import advice
from lattend.rules.language.expr import (
    And,
    Arith,
    ArithOp,
    Compare,
    CompareOp,
    Condition,
    Lookup,
    Name,
    Node,
    Not,
    Num,
    Or,
    Term,
    Truth,
    flattened,
)
from lattend.rules.language.scan import FUNCTIONS, WORDS, tokens
from lattend.rules.language.tokens import MAX_NESTING, Source, Token, is_name

_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _NEGATE = range(1, 8)
_LEVEL = {
    **{"or": _OR, "and": _AND},
    **dict.fromkeys(("<", "<=", "==", "!=", ">=", ">", "|"), _COMPARE),
    **{"+": _ADD, "-": _ADD, "*": _MULTIPLY, "//": _MULTIPLY, "%": _MULTIPLY},
}
_CLOSING = {"(": ")", "[": "]"}


def parse(text: str) -> Condition:
    """The condition a rule's text stands for.

    >>> parse("q - k <= t")
    Compare(op='<=', left=Arith(op='-', args=(Name(name='q'), Name(name='k'))), right=Name(name='t'))
    """
    return _Parser(Source("rule", text)).whole_condition()


def parse_assumption(text: str) -> Condition:
    """The condition an assumption stands for: `w | n` or `w divides n`; a comma says and.

    >>> parse_assumption("w | n, t < n") == parse("n % w == 0 and t < n")
    True
    """
    return _Parser(Source("assumption", text), assumption=True).whole_condition()


def parse_term(text: str) -> Term:
    """The number a text stands for.

    >>> parse_term("min(q, 3)")
    Arith(op='min', args=(Name(name='q'), Num(value=3)))
    """
    return _Parser(Source("term", text)).whole_term()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A node, the place it was read from with its brackets, and how many levels it has."""

    node: Node
    start: int
    end: int
    depth: int = 1

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end


class _Parser:
    def __init__(self, source: Source, assumption: bool = False) -> None:
        source.check_length()
        self.source = source
        self.assumption = assumption
        self.tokens = tokens(source, assumption)
        self.at = 0
        self.levels = 0
        if len(self.tokens) == 1:
            raise source.error(f"it is empty; write for instance {advice.WHOLE[source.kind]}", 0, 1)

    # Whole texts

    def whole_condition(self) -> Condition:
        parts = [self.expression(_OR)]
        while self.assumption and self.here.value == ",":
            self.at += 1
            parts.append(self.expression(_OR))
        self.finish()
        return cast(Condition, self.joined(And, [self.condition(part) for part in parts]).node)

    def whole_term(self) -> Term:
        piece = self.expression(_OR)
        self.finish()
        return self.term(piece, "a term is a number")

    def finish(self) -> None:
        if self.here.kind != "end":
            raise self.fail(advice.left_over(self.tokens[self.at - 1], self.here), self.here)

    # Operators, by precedence

    def expression(self, loosest: int) -> _Piece:
        left = self.operand(loosest)
        while True:
            sign = self.here
            level = _LEVEL.get(sign.value, 0)
            if level == 0 or level < loosest:
                return left
            if level == _COMPARE:
                left = self.comparison(left)
            elif level <= _AND:
                left = self.junction(left, sign.value)
            else:
                self.at += 1
                left = self.arithmetic(sign, left, self.expression(level + 1))

    def junction(self, left: _Piece, word: str) -> _Piece:
        parts = [self.condition(left)]
        while self.here.value == word:
            self.at += 1
            parts.append(self.condition(self.expression(_LEVEL[word] + 1)))
        return self.joined(And if word == "and" else Or, parts)

    def joined(self, kind: type[And] | type[Or], parts: list[_Piece]) -> _Piece:
        if len(parts) == 1:
            return parts[0]
        span = (parts[0].start, parts[-1].end)
        conditions = [cast(Condition, part.node) for part in parts]
        # a part of the same kind hands over its arguments, so it is no level of its own
        depth = max(part.depth - isinstance(part.node, kind) for part in parts) + 1
        return self.piece(flattened(kind, conditions, span), span, depth)

    def comparison(self, left: _Piece) -> _Piece:
        links: list[_Piece] = []
        while _LEVEL.get(self.here.value) == _COMPARE:
            sign = self.here
            self.at += 1
            right = self.expression(_ADD)
            a, b = self.sides(sign, left, right)
            span, depth = (left.start, right.end), max(left.depth, right.depth) + 1
            if sign.value == "|":
                self.check_divisor(a, left)
                node = Compare("==", Arith("%", (b, a), span), Num(0, span), span)
                depth += 1
            else:
                node = Compare(cast(CompareOp, sign.value), a, b, span)
            links.append(self.piece(node, span, depth))
            left = right
        return self.joined(And, links)

    def arithmetic(self, sign: Token, left: _Piece, right: _Piece) -> _Piece:
        a, b = self.sides(sign, left, right)
        if sign.value in ("//", "%"):
            self.check_divisor(b, right)
        span = (left.start, right.end)
        node = Arith(cast(ArithOp, sign.value), (a, b), span)
        return self.piece(node, span, max(left.depth, right.depth) + 1)

    def sides(self, sign: Token, left: _Piece, right: _Piece) -> tuple[Term, Term]:
        needs = f"{self.source.text[sign.start : sign.end]} stands between numbers"
        return self.term(left, needs), self.term(right, needs)

    def operand(self, loosest: int) -> _Piece:
        token = self.here
        after = self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        read = self.reader(token, after, loosest)
        if read is None:
            return self.leaf(token, after)
        if self.levels == MAX_NESTING:
            raise self.fail(f"this is more than {MAX_NESTING} levels deep; write it with fewer", token)
        self.levels += 1
        self.at += 1
        piece = read(token)
        self.levels -= 1
        return piece

    def reader(self, token: Token, after: Token, loosest: int) -> Callable[[Token], _Piece] | None:
        """What reads the operand that begins with `token`, if it holds further operands."""
        if token.value == "not":
            if loosest > _NOT:
                raise self.fail("put brackets around not and its condition, as in (not k == q)", token)
            return self.negation
        if token.value == "-":
            return self.minus if after.kind != "number" else None
        if token.value == "(":
            return self.bracket
        if token.value in FUNCTIONS:
            return self.call
        return self.lookup if after.value == "[" and is_name(token.value, WORDS) else None

    def leaf(self, token: Token, after: Token) -> _Piece:
        if token.value == "-":  # -3 is a number, -(3) is minus a number
            self.at += 1
            number = self.leaf(after, self.tokens[self.at + 1])
            span = (token.start, number.end)
            return self.piece(Num(-cast(Num, number.node).value, span), span)
        if token.kind in ("sign", "end") or token.value in ("and", "or"):
            before = self.tokens[self.at - 1] if self.at else None
            message, place = advice.missing_operand(before, token)
            raise self.fail(message, place)
        self.at += 1
        span = (token.start, token.end)
        if token.kind == "number":
            if after.kind == "name" and after.start == token.end and after.value not in WORDS:
                message = f"write {token.value}*{after.value} for the product"
                raise self.source.error(message, token.start, after.end)
            return self.piece(Num(self.source.integer(token), span), span)
        if token.value.lower() in ("true", "false"):
            return self.piece(Truth(token.value.lower() == "true", span), span)
        if not is_name(token.value):
            raise self.fail(f"{token.value} is a word of Python and cannot be a name in a rule", token)
        if after.value == "(":
            raise self.source.error(advice.unknown_function(token.value), token.start, after.end)
        return self.piece(Name(token.value, span), span)

    # Operands that hold others

    def negation(self, word: Token) -> _Piece:
        arg = self.condition(self.expression(_NOT))
        span = (word.start, arg.end)
        return self.piece(Not(cast(Condition, arg.node), span), span, arg.depth + 1)

    def minus(self, sign: Token) -> _Piece:
        arg = self.expression(_NEGATE)
        span = (sign.start, arg.end)
        node = Arith("neg", (self.term(arg, "- stands before a number"),), span)
        return self.piece(node, span, arg.depth + 1)

    def bracket(self, opening: Token) -> _Piece:
        if self.here.value == ")":
            message = "there is nothing between these brackets; write a number or a condition there"
            raise self.source.error(message, opening.start, self.here.end)
        inner = self.expression(_OR)
        return _Piece(inner.node, opening.start, self.close(opening), inner.depth)

    def call(self, name: Token) -> _Piece:
        if self.here.value != "(":
            raise self.fail(f"write its numbers in brackets, as in {advice.CALL[name.value]}", name)
        args, end = self.arguments(name, f"{name.value} takes numbers")
        if (len(args) != 1) if name.value == "abs" else (len(args) < 2):
            message = advice.argument_count(name.value, len(args))
            raise self.source.error(message, name.start, end)
        nodes = tuple(cast(Term, arg.node) for arg in args)
        span = (name.start, end)
        return self.piece(Arith(cast(ArithOp, name.value), nodes, span), span, max(a.depth for a in args) + 1)

    def lookup(self, name: Token) -> _Piece:
        args, end = self.arguments(name, f"{name.value}[…] takes numbers")
        if not args:
            message = f"write the place to look at, as in {name.value}[q]"
            raise self.source.error(message, name.start, end)
        span = (name.start, end)
        node = Lookup(name.value, tuple(cast(Term, arg.node) for arg in args), span)
        return self.piece(node, span, max(arg.depth for arg in args) + 1)

    def arguments(self, name: Token, needs: str) -> tuple[list[_Piece], int]:
        opening = self.here
        self.at += 1
        args: list[_Piece] = []
        while not args or self.here.value == ",":
            if not args and self.here.value == _CLOSING[opening.value]:
                break
            self.at += bool(args)
            args.append(self.expression(_OR))
        end = self.close(opening)
        for arg in args:
            self.term(arg, needs)
        return args, end

    def close(self, opening: Token) -> int:
        if self.here.value != _CLOSING[opening.value]:
            before = self.tokens[self.at - 1]
            message, place = advice.not_closed(opening, _CLOSING[opening.value], before, self.here)
            raise self.fail(message, place)
        self.at += 1
        return self.tokens[self.at - 1].end

    # What was found, and whether it fits

    @property
    def here(self) -> Token:
        return self.tokens[self.at]

    def fail(self, message: str, token: Token) -> TextError:
        return self.source.error(message, token.start, token.end)

    def piece(self, node: Node, span: tuple[int, int], depth: int = 1) -> _Piece:
        if depth > MAX_NESTING:
            message = f"this is more than {MAX_NESTING} operations one in another; write it with fewer"
            raise self.source.error(message, *span)
        return _Piece(node, *span, depth)

    def condition(self, piece: _Piece) -> _Piece:
        node = piece.node
        if isinstance(node, Lookup):
            return self.piece(
                Compare("!=", node, Num(0, piece.span), piece.span), piece.span, piece.depth + 1
            )
        if isinstance(node, (Num, Name, Arith)):
            shown = self.source.part(*piece.span)
            raise self.source.error(advice.not_a_condition(shown), *piece.span)
        return piece

    def term(self, piece: _Piece, needs: str) -> Term:
        node = piece.node
        if isinstance(node, (Num, Name, Arith, Lookup)):
            return node
        shown = self.source.part(*piece.span)
        raise self.source.error(advice.not_a_number(shown, needs), *piece.span)

    def check_divisor(self, node: Term, piece: _Piece) -> None:
        if isinstance(node, Num) and node.value < 1:
            raise self.source.error(f"the divisor is {node.value}; it must be at least 1", *piece.span)
