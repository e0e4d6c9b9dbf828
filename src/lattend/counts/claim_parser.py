"""Claims as people write them: a formula, an order, or equations, `N = 1 + 2 + … + n = n(n + 1)/2`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lattend.counts.formula import BigO, Formula, WrittenClaim
from lattend.counts.formula_parser import ORDERS, FormulaParser
from lattend.counts.formula_scan import FUNCTIONS
from lattend.counts.piecewise_parser import take_definitions


def parse_claim(
    text: str, known: Collection[str] = (), definitions: Mapping[str, Formula] | None = None
) -> WrittenClaim:
    """The claim a text makes about a count with the `known` names, and short names that are defined already.

    >>> [side.text for side in parse_claim("N = 1 + 2 + … + n = n(n + 1)/2", {"n"}).sides]
    ['1 + 2 + … + n', 'n(n + 1)/2']
    """
    parser = FormulaParser(text, known, definitions)
    take_definitions(parser)
    name = _heading(parser)
    sides = [parser.side()]
    while parser.here.value == "=":
        parser.at += 1
        sides.append(parser.side())
        before, after = sides[-2].node, sides[-1].node
        if isinstance(before, BigO) and not isinstance(after, BigO):
            raise parser.error(
                "after an order comes another order, no formula", *(after.span or (0, len(text)))
            )
    parser.finish()
    bracketed = (f"{text[:start]}({text[start:end]}){text[end:]}" for start, end in parser.open_sums)
    return WrittenClaim(tuple(sides), name, tuple(dict.fromkeys(parser.readings)), tuple(bracketed))


def _heading(parser: FormulaParser) -> str:
    """The name before the first equals sign, `N =` or `N(n, t) =`, unless it is one of the known names."""
    tokens, name = parser.tokens, parser.here
    end = 1
    if parser.after.value == "(":
        while end < len(tokens) - 1 and (tokens[end].kind == "name" or tokens[end].value in ("(", ",")):
            end += 1
        end += tokens[end].value == ")"
    is_new = name.kind == "name" and name.value not in {*parser.known, *FUNCTIONS, *ORDERS}
    if not is_new or tokens[min(end, len(tokens) - 1)].value != "=":
        return ""
    parser.at = end + 1
    return name.value
