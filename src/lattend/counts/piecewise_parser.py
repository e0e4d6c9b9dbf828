r"""Formulas in pieces, as counts are printed: `n when t > n; 0 otherwise`, LaTeX's cases, `where N = n // w`.

    parse_claim("w*N when t <= n; 0 otherwise where N = n // w", {"n", "t", "w"})

A parser of formulas hands over here where a row, a condition or a definition begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, cast

from lattend.counts.formula import ALWAYS, Formula, ParsedFormula, Piecewise, substituted, walk
from lattend.rules.language.expr import Condition
from lattend.rules.language.grammar import ADD, OR, Token

if TYPE_CHECKING:
    from lattend.counts.formula_parser import FormulaParser

MAX_SIZE = 5_000  # parts of a formula that holds definitions
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
        degree = self.body.degree * max((1, *(arg.degree for arg in args)))
        depth = self.body.depth + max((0, *(arg.depth for arg in args)))
        node = substituted(self.body.node, put)
        return replace(
            self.body,
            node=node,
            start=start,
            end=end,
            degree=degree,
            depth=depth,
            quotient=False,
            summands=(),
        )


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
        parser.definitions[name] = Definition(limited(parser, parser.formula()), names)
        parser.finish()
    if starts:
        first = tokens[starts[0]].start
        parser.tokens = [*_without_rows(tokens[: starts[0]]), Token("end", "", first, first)]
        parser.at = 0


def limited(parser: FormulaParser, piece: ParsedFormula) -> ParsedFormula:
    """Returns a formula with definitions substituted; raises if it has become too long."""
    if sum(1 for _ in islice(walk(piece.node), MAX_SIZE + 1)) > MAX_SIZE:
        message = (
            f"with what is defined put in, this has more than {MAX_SIZE:,} parts; write a smaller formula"
        )
        raise parser.error(message, *piece.span)
    return piece


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
    if tokens[at].value == "where":
        return True
    end = at + 2
    if tokens[min(end, len(tokens) - 1)].value == "(":
        end = next((i + 1 for i in range(end, len(tokens)) if tokens[i].value == ")"), end)
    return tokens[at + 1].kind == "name" and tokens[min(end, len(tokens) - 1)].value == "="


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
    terms, degree = max(row.terms for row in rows), max(row.degree for row in rows)
    depth = 1 + max(row.depth for row in rows)
    node = Piecewise(tuple(pieces), (start, end))
    return replace(
        first, node=node, end=end, depth=depth, terms=terms, degree=degree, quotient=False, summands=()
    )


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
