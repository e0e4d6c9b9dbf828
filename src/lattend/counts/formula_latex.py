"""Claims, verdicts and printed formulas in LaTeX, which show how a text was read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lattend.counts.formula import WrittenClaim
from lattend.counts.formula_parser import parse_claim
from lattend.counts.latex import RELATIONS, formula_latex
from lattend.counts.notation import latex_name
from lattend.counts.verdict import NOWHERE, Counterexample, OrderVerdict, Status, Verdict
from lattend.errors import LattendError
from lattend.report.latex import aligned, inline, number
from lattend.report.maths import Maths, Sentence
from lattend.report.numbers import format_value

if TYPE_CHECKING:
    from lattend.counts.count import Count

SIGNS = {
    **{f" {op} ": f" {sign} " for op, sign in RELATIONS.items()},
    **{" = ": " = ", " and ": r" \text{ and } ", " or ": r" \text{ or } ", " ± ": r" \pm "},
    **{" divides ": r" \mid ", " does not divide ": r" \nmid "},
}
UNKNOWN = r"\overset{?}{=}"
EQUALS: dict[Status, str] = {
    "holds": "=",
    "holds only where": "=",
    "fails": r"\ne",
    "undecided": UNKNOWN,
}
PLACES: dict[Status, str] = {
    "holds": "for",
    "holds only where": "only where",
    "fails": "but where",
    "undecided": "where",
}
_RELATION = re.compile(f"({'|'.join(sorted(SIGNS, key=len, reverse=True))})")
_WORDS = re.compile("where|longer")  # in a condition that is not all signs
_ROOT = re.compile(r"\bsqrt\(")
_DECIMAL = re.compile(r"[-−]?\d[\d,]*(\.\d+)?(e[-−]?\d+)?")
_NEW = re.compile(r"([A-Za-z]\w*)'")  # what a name becomes
_CASES = re.compile("( when |; )")
_LONG = re.compile(r"\d{5,}")
_NAME = re.compile(r"[A-Za-z]\w*")


def claim_latex(claim: WrittenClaim) -> str:
    r"""All sides of a claim, joined by equals signs.

    >>> from lattend.counts.formula_parser import parse_claim
    >>> print(claim_latex(parse_claim("N = 1 + 2 + ... + n = n(n+1)/2", {"n"})))
    N = \sum_{i=1}^{n} i = \frac{n (n + 1)}{2}
    """
    name = [latex_name(claim.name)] if claim.name else []
    return " = ".join([*name, *(formula_latex(side.node) for side in claim.sides)])


def verdict_latex(claim: WrittenClaim, verdict: Verdict | None, count: str) -> str:
    r"""Each equation of a claim, = where it holds and \ne where it fails, with where that is.

    `count` is what the count is called; no verdict leaves a question mark.

    >>> from lattend.rules.reader import rule
    >>> text = "n(n-1)/2"
    >>> print(verdict_latex(parse_claim(text, {"n"}), rule("causal").count().claim(text), r"\text{count}"))
    \begin{aligned}
    \text{count} &\ne \frac{n (n - 1)}{2} \quad \text{but where } n = 0 \\
    &\text{at } n = 1 \colon\; 1 \ne 0
    \end{aligned}
    """
    first = latex_name(claim.name) if claim.name else count
    sides = [first, *(formula_latex(side.node) for side in claim.sides)]
    links = () if verdict is None else verdict.links or (verdict,)
    if len(links) != len(claim.sides):
        return rf" {UNKNOWN} ".join(sides)
    lines: list[str] = []
    for left, right, link in zip(sides, sides[1:], links, strict=False):
        lines.append(f"{left} &{EQUALS[link.status]} {right}{_places(link)}")
        lines += [] if link.counterexample is None else [_counterexample(link.counterexample)]
    return aligned(*lines) if len(lines) > 1 else lines[0].replace(" &", " ", 1)


def _places(link: Verdict) -> str:
    """Where an equation holds, or is open."""
    if not link.where or link.where == NOWHERE:
        return ""
    if isinstance(link, OrderVerdict) and link.holds:
        return rf" \quad \text{{{inline(link.where)}}}"
    where = link.where if _WORDS.search(link.where) else maths(link.where)
    written = where.latex if isinstance(where, Maths) else rf"\text{{{inline(where)}}}"
    return rf" \quad \text{{{PLACES[link.status]} }} {written}"


def _counterexample(counterexample: Counterexample) -> str:
    at = ", ".join(f"{latex_name(name)} = {value}" for name, value in counterexample.values.items())
    exact, claimed = (
        r"\text{undefined}" if value is None else str(value)
        for value in (counterexample.exact, counterexample.claimed)
    )
    return rf"&\text{{at }} {at} \colon\; {exact} \ne {claimed}"


def maths(text: str) -> str:
    r"""Returns a printed formula, order or condition with its LaTeX; other texts stay as they are.

    >>> maths("n*d <= (d + sqrt(d))/2").latex
    'n d \\le \\frac{d + \\sqrt{d}}{2}'
    """
    try:
        return Maths(text, "".join(_side(part) for part in _RELATION.split(text)))
    except LattendError:
        return text


def value_maths(value: Count | int | None) -> str:
    """A whole number with commas, a formula with its LaTeX, or a dash where nothing is known."""
    if value is None or isinstance(value, int):
        return format_value(value)
    return Maths(
        str(value), _LONG.sub(lambda digits: f"{int(digits[0]):,}".replace(",", "{,}"), value.latex())
    )


def order_maths(order: str) -> str:
    """An order of growth, `O(n*t) when t <= n; O(n^2) when t > n`, with the LaTeX of its formulas."""
    return Sentence(*(part if part in (" when ", "; ") else maths(part) for part in _CASES.split(order)))


def _side(text: str) -> str:
    """Returns the LaTeX of one side of a relation, or of its sign."""
    if text in SIGNS:
        return SIGNS[text]
    if _DECIMAL.fullmatch(text):
        return number(text)
    if "." in text:  # which would be read as a fraction
        raise LattendError(f"{text}: decimals stand alone")
    hidden: dict[str, str] = {}  # what the parser does not know, by the names that stand for it
    while root := _ROOT.search(text):
        end = _closing(text, root.end())
        hidden[f"root{len(hidden)}"] = rf"\sqrt{{{_side(text[root.end() : end])}}}"
        text = f"{text[: root.start()]}{[*hidden][-1]}{text[end + 1 :]}"
    for name in dict.fromkeys(_NEW.findall(text)):
        hidden[f"new{len(hidden)}"] = f"{latex_name(name)}'"
        text = text.replace(f"{name}'", [*hidden][-1])
    (side,) = parse_claim(text, set(_NAME.findall(text))).sides
    latex = formula_latex(side.node)
    for name, shown in hidden.items():
        latex = latex.replace(latex_name(name), shown)
    return latex


def _closing(text: str, start: int) -> int:
    """Where the bracket closes that was opened before the start."""
    depth = 1
    for index in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return index
    raise LattendError(f"{text}: a bracket is not closed")
