"""Reading a rule from its text: a precedence parser, never `eval`.

From loosest to tightest: `or`, `and`, `not`, comparisons (chained too), `+ -`, `* // %`, unary `-`;
as in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast

from lattend.errors import TextError
from lattend.rules.language.call import closing
from lattend.rules.language.expr import (
    And,
    Arith,
    ArithOp,
    Compare,
    Condition,
    Lookup,
    Name,
    Node,
    Not,
    Num,
    Span,
    Term,
    Truth,
    depth,
)
from lattend.rules.language.grammar import (
    ADD,
    AND,
    COMPARE,
    MULTIPLY,
    NEGATE,
    NOT,
    OR,
    ConditionParser,
    Parsed,
    Source,
    Token,
    is_name,
)
from lattend.rules.language.scan import (
    CALLS,
    EXAMPLES,
    FUNCTIONS,
    WORDS,
    argument_count,
    missing_operand,
    no_such_rule,
    not_a_condition,
    not_a_number,
    tokens,
    unknown_function,
    what_is_left_over,
)

if TYPE_CHECKING:
    from lattend.rules.named import NamedRules

_LEVEL = {
    **{"or": OR, "and": AND},
    **dict.fromkeys(("<", "<=", "==", "!=", ">=", ">", "|"), COMPARE),
    **{"+": ADD, "-": ADD, "*": MULTIPLY, "//": MULTIPLY, "%": MULTIPLY},
}


def parse(text: str, named: NamedRules | None = None) -> Condition:
    """Parses the text of a rule, which may contain the names of `named` rules.

    >>> parse("q - k <= t")
    Compare(op='<=', left=Arith(op='-', args=(Name(name='q'), Name(name='k'))), right=Name(name='t'))
    """
    return _Parser(Source("rule", text), named=named).whole_condition()


def parse_assumption(text: str) -> Condition:
    """Parses an assumption: `w | n` and `w divides n` are read too, and a comma means `and`.

    >>> parse_assumption("w | n, t < n") == parse("n % w == 0 and t < n")
    True
    """
    return _Parser(Source("assumption", text), assumption=True).whole_condition()


def parse_term(text: str) -> Term:
    """Parses a term.

    >>> parse_term("min(q, 3)")
    Arith(op='min', args=(Name(name='q'), Num(value=3)))
    """
    return _Parser(Source("term", text)).whole_term()


class _Parser(ConditionParser[Parsed]):
    LEVEL: ClassVar = _LEVEL
    CLOSING: ClassVar = {"(": ")", "[": "]"}

    def __init__(self, source: Source, assumption: bool = False, named: NamedRules | None = None) -> None:
        source.check_length()
        super().__init__(source, tokens(source, assumption))
        self.assumption = assumption
        self.named = named
        if len(self.tokens) == 1:
            raise source.error(f"it is empty; write for instance {EXAMPLES[source.kind]}", 0, 1)

    # Whole texts

    def whole_condition(self) -> Condition:
        parts = [self.expression(OR)]
        while self.assumption and self.current.value == ",":
            self.at += 1
            parts.append(self.expression(OR))
        self.finish()
        return self.joined(And, [self.condition(part) for part in parts]).node

    def whole_term(self) -> Term:
        piece = self.expression(OR)
        self.finish()
        return self.term(piece, "a term is a number")

    # Operators, by precedence

    def arithmetic(self, left: Parsed, sign: Token, level: int) -> Parsed:
        right = self.expression(level + 1)
        a, b = self.sides(sign, left, right)
        if sign.value in ("//", "%"):
            self.check_divisor(b, right)
        span = (left.start, right.end)
        node = Arith(cast(ArithOp, sign.value), (a, b), span)
        return self.piece(node, span, max(left.depth, right.depth) + 1)

    # Operands

    def opening(self, token: Token, loosest: int) -> Callable[[Token], Parsed] | None:
        if token.value == "not":
            if loosest > NOT:
                raise self.fail("put brackets around not and its condition, as in (not k == q)", token)
            return self.negation
        if token.value == "-":
            return self.minus if self.following.kind != "number" else None
        if token.value == "(":
            return self.bracket
        if token.value in FUNCTIONS:
            return self.call
        if self.named is not None and token.value in self.named and self.following.value == "(":
            return self.rule_call
        return self.lookup if self.following.value == "[" and is_name(token.value, WORDS) else None

    def leaf(self, token: Token) -> Parsed:
        after = self.following
        if token.value == "-":  # -3 is a number, -(3) is minus a number
            self.at += 1
            number = self.leaf(after)
            span = (token.start, number.end)
            return self.piece(Num(-number.node.value, span), span)
        if token.kind in ("sign", "end") or token.value in ("and", "or"):
            missing = missing_operand(self.previous, token)
            raise self.fail(*missing) if missing else self.unmatched(token)
        self.at += 1
        span = (token.start, token.end)
        if token.kind == "number":
            if after.kind == "name" and after.start == token.end and after.value not in WORDS:
                message = f"write {token.value}*{after.value} for the product"
                raise self.error(message, token.start, after.end, f"{token.value}*{after.value}")
            return self.piece(Num(self.source.integer(token), span), span)
        if token.value.lower() in ("true", "false"):
            return self.piece(Truth(token.value.lower() == "true", span), span)
        if not is_name(token.value):
            raise self.fail(f"{token.value} is a word of Python and cannot be a name in a rule", token)
        if after.value == "(":
            rules = self.named.near(token.value) if self.named is not None else []
            message, meant = unknown_function(token, rules)
            raise self.error(message, token.start, after.end, *meant)
        return self.piece(Name(token.value, span), span)

    def negation(self, word: Token) -> Parsed:
        arg = self.condition(self.expression(NOT))
        span = (word.start, arg.end)
        return self.piece(Not(arg.node, span), span, arg.depth + 1)

    def minus(self, sign: Token) -> Parsed:
        arg = self.expression(NEGATE)
        span = (sign.start, arg.end)
        node = Arith("neg", (self.term(arg, "- stands before a number"),), span)
        return self.piece(node, span, arg.depth + 1)

    def bracket(self, opening: Token) -> Parsed:
        if self.current.value == ")":
            message = "there is nothing between these brackets; write a number or a condition there"
            raise self.error(message, opening.start, self.current.end)
        inner = self.expression(OR)
        return Parsed(inner.node, opening.start, self.close(opening), inner.depth)

    def call(self, name: Token) -> Parsed:
        if self.current.value != "(":
            raise self.fail(f"write its numbers in brackets, as in {CALLS[name.value]}", name)
        args, end = self.arguments()
        terms = tuple(self.term(arg, f"{name.value} takes numbers") for arg in args)
        span = (name.start, end)
        if (len(args) != 1) if name.value == "abs" else (len(args) < 2):
            raise self.error(argument_count(name.value, len(args)), *span)
        return self.piece(Arith(cast(ArithOp, name.value), terms, span), span, max(a.depth for a in args) + 1)

    def rule_call(self, name: Token) -> Parsed:
        close = closing(self.source, self.current.start, len(self.source.text))
        while self.current.start <= close and self.current.kind != "end":
            self.at += 1
        return self.rule((name.start, close + 1))

    def rule(self, span: Span) -> Parsed:
        """Returns the condition of the rule named at this span."""
        assert self.named is not None  # it has this name
        condition = self.named.condition(span)
        return self.piece(condition, span, depth(condition))

    def lookup(self, name: Token) -> Parsed:
        args, end = self.arguments()
        indices = tuple(self.term(arg, f"{name.value}[…] takes numbers") for arg in args)
        span = (name.start, end)
        if not args:
            raise self.error(f"write the place to look at, as in {name.value}[q]", *span)
        return self.piece(Lookup(name.value, indices, span), span, max(arg.depth for arg in args) + 1)

    # What was found, and whether it fits

    def left_over(self, token: Token) -> TextError:
        if token.value in self.CLOSING.values():
            return self.unmatched(token)
        message, meant = what_is_left_over(cast(Token, self.previous), token)
        return self.fail(message, token, *meant)

    def truth(self, node: Condition, span: Span, depth: int) -> Parsed:
        return self.piece(node, span, depth)

    def piece(self, node: Node, span: tuple[int, int], depth: int = 1) -> Parsed:
        self.check_depth(depth, span)
        return Parsed(node, *span, depth)

    def condition(self, piece: Parsed) -> Parsed:
        node = piece.node
        if isinstance(node, Lookup):
            entry = Compare("!=", node, Num(0, piece.span), piece.span)
            return self.piece(entry, piece.span, piece.depth + 1)
        if isinstance(node, Name) and self.named is not None:
            if node.name in self.named and node.span is not None:
                return self.rule(node.span)
            if near := self.named.near(node.name):
                raise self.error(no_such_rule(node.name, near), *piece.span, *near)
        if isinstance(node, (Num, Name, Arith)):
            shown = self.source.part(*piece.span)
            raise self.error(not_a_condition(shown), *piece.span)
        return piece

    def term(self, piece: Parsed, needs: str) -> Term:
        node = piece.node
        if isinstance(node, (Num, Name, Arith, Lookup)):
            return node
        shown = self.source.part(*piece.span)
        raise self.error(not_a_number(shown, needs), *piece.span)

    def check_divisor(self, node: Term, piece: Parsed) -> None:
        if isinstance(node, Num) and node.value < 1:
            raise self.error(f"the divisor is {node.value}; it must be at least 1", *piece.span)
