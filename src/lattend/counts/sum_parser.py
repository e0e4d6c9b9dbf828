r"""Sums as people write them: Σ with its limits, with an index or without one, and `1 + 2 + … + n`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from lattend.counts.formula import Formula, ParsedFormula, Summand, applied, walk
from lattend.counts.progression import Progression, formula_of, progression
from lattend.rules.language.expr import ArithOp, Name
from lattend.rules.language.grammar import ADD, MULTIPLY, Token
from lattend.rules.language.polynomial import Polynomial

if TYPE_CHECKING:
    from lattend.counts.formula_parser import FormulaParser

_SHORT = 50  # terms of a summand that is multiplied out to see how it goes on
_INDICES = ("i", "j", "k", "l", "s", "x", "y", "z")


def read_sigma(parser: FormulaParser, sign: Token) -> ParsedFormula:
    """A sum with its limits below and above the sign: Σ_{i=1}^{n} i."""
    lower: tuple[ParsedFormula | None, ParsedFormula] | None = None
    upper: ParsedFormula | None = None
    while parser.current.value in ("_", "^"):
        parser.at += 1
        if parser.tokens[parser.at - 1].value == "^":
            upper = parser.operand(ADD)
        else:
            lower = _lower_limit(parser, sign)
    if lower is None or upper is None:
        raise parser.fail("a sum has both its limits, as in Σ_{i=1}^{n} i", sign)
    body = parser.expression(MULTIPLY)
    variable, low = lower[0] or _unnamed_index(parser, body, sign), lower[1]
    if lower[0] is None:
        summed, first, last = (parser.written(*part.span).strip("{}") for part in (body, low, upper))
        series = f"the sum of {summed} for {variable.node.name} = {first} to {last}"
        parser.readings.append(f"{parser.written(sign.start, body.end)} read as {series}")
    _note_open_sum(parser, body)
    return parser.summed([body, variable, low, upper], sign.start, body.end)


def _lower_limit(parser: FormulaParser, sign: Token) -> tuple[ParsedFormula | None, ParsedFormula]:
    """Reads the index of a sum, if it is written, and the lower limit."""
    opening, name, equals = (
        parser.current,
        *(parser.tokens + parser.tokens[-1:] * 2)[parser.at + 1 : parser.at + 3],
    )
    if opening.value == "{" and name.kind == "name" and equals.value == "=":
        parser.at += 1
        variable = parser.leaf(name)
        parser.at += 1
        low = parser.expression(ADD)
        parser.close(opening)
        return variable, low
    low = parser.operand(ADD)
    if isinstance(low.node, Name) and low.node.name not in parser.known:
        raise parser.fail("write where the sum begins in braces, as in Σ_{i=1}^{n} i", sign)
    return None, low


def _unnamed_index(parser: FormulaParser, body: ParsedFormula, sign: Token) -> ParsedFormula:
    """Returns the index of a sum that does not name it: the only unknown name of its body."""
    inside = [
        node.name for node, bound in walk(body.node) if isinstance(node, Name) and node.name not in bound
    ]
    names = sorted({name for name in inside if name not in parser.known})
    index = names[0] if len(names) == 1 else next((name for name in _INDICES if name in names), "")
    if names and not index:
        message = f"write which of {', '.join(names)} the sum runs over, as in Σ_{{{names[0]}=1}}^{{n}}"
        raise parser.fail(message, sign)
    return ParsedFormula(Name(index or "i", body.span), *body.span)


def _note_open_sum(parser: FormulaParser, body: ParsedFormula) -> None:
    """Remember how far the body would reach if a bracket were left out: up to the next sum."""
    reach, end, depth = body.end, body.end, 0
    for token in parser.tokens[parser.at :]:
        is_over = token.kind == "end" or token.value in ("=", ",", *parser.CLOSING.values())
        if depth == 0 and (is_over or token.value in ("+", "-")):
            reach = end  # a term is complete
        if depth == 0 and (is_over or token.value in ("Σ", "…")):
            break
        depth += (token.value in parser.CLOSING) - (token.value in parser.CLOSING.values())
        end = token.end
    if reach > body.end:
        parser.open_sums.append((body.start, reach))


def read_dots(parser: FormulaParser, left: ParsedFormula, sign: ArithOp) -> ParsedFormula:
    """Reads the sum `1 + 2 + … + n`, derived from its first and its last terms."""
    dots = parser.current
    parser.at += 1
    if parser.level(parser.current) != ADD or sign not in ("+", "-"):
        raise parser.fail("dots stand between the terms of a sum, as in 1 + 2 + … + n", dots)
    before, last = summands(left), [_term(parser)]
    longest = _longest(parser, before, last)
    while parser.level(parser.current) == ADD and parser.following.value != "…":
        resume, more = parser.at, [*last, _term(parser)]
        longer = _longest(parser, before, more)
        if longer is None:
            parser.at = resume
            break
        longest, last = longer, more
    end = last[-1][1].end
    if longest is None:
        shown = parser.source.part(left.start, end)
        example = "1 + 2 + … + n or 1 + 3 + … + (2n - 1)"
        message = f"{shown} is not understood; write two terms that begin it, in equal steps, as in {example}"
        raise parser.error(message, left.start, end)
    skipped, series = longest
    span = before[skipped][1].start, end
    parser.readings.append(f"{parser.written(*span)} read as {series}")
    body, low, high = (_of_polynomial(part, *span) for part in (series.body, series.low, series.high))
    total = parser.summed([body, ParsedFormula(Name(series.index), *span), low, high], *span)
    if skipped == 0:
        return total
    rest = before[0][1]
    for op, term in before[1:skipped]:
        rest = parser.applied(op, rest, term)
    return replace(parser.applied("+", rest, total), summands=(*before[:skipped], ("+", total)))


def _term(parser: FormulaParser) -> Summand:
    """Reads a sign and the term after it."""
    sign = cast(ArithOp, parser.current.value)
    parser.at += 1
    return sign, parser.expression(MULTIPLY)


def _longest(
    parser: FormulaParser, before: Sequence[Summand], last: Sequence[Summand]
) -> tuple[int, Progression] | None:
    """The series with as many of these first terms as fit, and how many do not."""
    taken = {*parser.known, *(token.value for token in parser.tokens)}
    index = next(name for name in (*_INDICES, *(f"i{i}" for i in range(1000))) if name not in taken)
    if any(parser.expansion(term.node, term.span)[0] > _SHORT for _, term in (*before, *last)):
        return None
    shown, end = [_signed(*term) for term in before], [_signed(*term) for term in last]
    tried = ((skipped, progression(shown[skipped:], end, index)) for skipped in range(len(shown)))
    return next(((skipped, series) for skipped, series in tried if series is not None), None)


def summands(piece: ParsedFormula) -> tuple[Summand, ...]:
    """Returns the terms of a sum as it is written, each with its sign; a single term otherwise."""
    return piece.summands or (("+", piece),)


def _signed(sign: ArithOp, term: ParsedFormula) -> Formula:
    return term.node if sign == "+" else applied("neg", term.node)


def _of_polynomial(polynomial: Polynomial, start: int, end: int) -> ParsedFormula:
    depth = 1 + len(polynomial.terms) + 2 * polynomial.degree()
    return ParsedFormula(formula_of(polynomial), start, end, depth)
