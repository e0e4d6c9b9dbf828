r"""Formulas in pieces, as counts are printed: `n when t > n; 0 otherwise`, LaTeX's cases, `where N = n // w`.

    parse_claim("w*N when t <= n; 0 otherwise where N = n // w", {"n", "t", "w"})

A parser of formulas hands over here where a row, a condition or a definition begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from lattend.counts.formula import ALWAYS, Formula, ParsedFormula, Piecewise, substituted
from lattend.rules.language.expr import Condition
from lattend.rules.language.grammar import ADD, OR, Token

if TYPE_CHECKING:
    from lattend.counts.formula_parser import FormulaParser

DEFINES = ("where", ",")
_OPENS, _CLOSES = ("(", "[", "{", "⌊", "⌈", "begin"), (")", "]", "}", "⌋", "⌉", "end")


@dataclass(frozen=True)
class Definition:
    """The definition of a short name, `N = n // w`, or of a letter with arguments, `F(n) = …`."""

    body: ParsedFormula
    names: tuple[str, ...] = ()

    def at(self, args: list[ParsedFormula], start: int, end: int) -> ParsedFormula:
        """The formula with these for its names."""
        put = {name: arg.node for name, arg in zip(self.names, args, strict=True)}
        depth = self.body.depth + max((0, *(arg.depth for arg in args)))
        node = replace(substituted(self.body.node, put), span=(start, end))
        return ParsedFormula(node, start, end, depth)


def take_definitions(parser: FormulaParser) -> None:
    """Reads definitions after `where` or a comma, `N = n // w`; the parser keeps what comes before.

    The last is read first: an earlier definition may use it.
    """
    tokens = parser.tokens
    starts = [at for at in range(len(tokens)) if _defines(parser, at)]
    for start, end in reversed([*pairwise([*starts, len(tokens) - 1])]):
        parser.tokens = [*_without_rows(tokens[start + 1 : end]), Token("end", "", *[tokens[end].start] * 2)]
        parser.at = 0
        name, names = _head(parser)
        parser.definitions[name] = Definition(parser.formula(), names)
        parser.finish()
    if starts:
        first = tokens[starts[0]].start
        parser.tokens = [*_without_rows(tokens[: starts[0]]), Token("end", "", first, first)]
        parser.at = 0


def _without_rows(tokens: list[Token]) -> list[Token]:
    """The tokens without ends of lines at either end."""
    inside = [at for at, token in enumerate(tokens) if token.value != ";"]
    return tokens[inside[0] : inside[-1] + 1] if inside else []


def _defines(parser: FormulaParser, at: int) -> bool:
    """Whether a definition follows the token here: outside of brackets, a name and an equals sign."""
    tokens = parser.tokens
    if tokens[at].value not in DEFINES:
        return False
    before = [token.value for token in tokens[:at]]
    if sum((value in _OPENS) - (value in _CLOSES) for value in before):
        return False
    return tokens[at].value == "where" or end_of_head(tokens, at + 1) is not None


def end_of_head(tokens: list[Token], at: int) -> int | None:
    """Returns where the equals sign stands after `N` or `F(n, q)` at this token; None without one."""
    end = at + 1
    if tokens[at].kind == "name" and tokens[end].value == "(":
        end = next((i + 1 for i in range(end, len(tokens)) if tokens[i].value == ")"), end)
    is_head = tokens[at].kind == "name" and tokens[min(end, len(tokens) - 1)].value == "="
    return end if is_head else None


def _head(parser: FormulaParser) -> tuple[str, tuple[str, ...]]:
    """Reads the left side of a definition, `N =` or `F(n, q) =`."""
    name, *rest = parser.tokens
    if name.kind != "name":
        raise parser.fail("after where comes what a short name stands for, as in where N = n // w", name)
    if name.value in parser.known:
        message = (
            f"{name.value} is a name of the count itself; give it a number by at, or say what is assumed"
        )
        raise parser.fail(message, name)
    end = next((at for at, token in enumerate(rest) if token.value == "="), None)
    head = rest[:end]
    is_call = len(head) > 1 and head[0].value == "(" and head[-1].value == ")"
    if end is None or (head and not is_call):
        raise parser.fail(f"write what {name.value} stands for, as in where {name.value} = n // w", name)
    parser.at = end + 2
    parser.at += parser.current.value == ";"
    return name.value, tuple(token.value for token in head if token.kind == "name")


def read_rows(parser: FormulaParser, first: ParsedFormula) -> ParsedFormula:
    """Reads a formula in pieces that begins with this one, whose condition comes next."""
    rows, pieces = [first], [(cast(Formula, first.node), _when(parser))]
    while parser.current.value == ";":
        parser.at += 1
        if parser.current.kind == "end" or parser.current.value in (";", "end"):
            continue
        rows.append(parser.expression(ADD))
        pieces.append((rows[-1].node, _when(parser)))
    start, end = first.start, parser.tokens[parser.at - 1].end
    return parser.deepened(Piecewise(tuple(pieces), (start, end)), rows, start, end)


def _when(parser: FormulaParser) -> Condition:
    """Reads the condition of a row: `when t <= n`, `otherwise`, or nothing."""
    word = parser.current.value
    if word not in ("when", "otherwise"):
        return ALWAYS
    parser.at += 1
    if word == "otherwise":
        return ALWAYS
    outside, parser.in_condition = parser.in_condition, True
    condition = parser.condition(parser.expression(OR))
    parser.in_condition = outside
    return condition.node
