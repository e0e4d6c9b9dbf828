"""A formula as it was read, in LaTeX: so that whoever typed it sees how it was understood."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from lattend.counts.formula import (
    Apply,
    BigO,
    Condition,
    Formula,
    Junction,
    Number,
    Piecewise,
    Sum,
    WrittenClaim,
)
from lattend.counts.formula_parser import parse_claim
from lattend.counts.notation import latex_name
from lattend.counts.verdict import NOWHERE, Counterexample, OrderVerdict, Status, Verdict
from lattend.errors import LattendError
from lattend.report.latex import aligned, cases, inline, number
from lattend.report.maths import Maths, Sentence
from lattend.report.numbers import format_value
from lattend.rules.language.expr import Name

if TYPE_CHECKING:
    from lattend.counts.count import Count

ORDER_SIGNS = {"O": "O", "Theta": r"\Theta", "Omega": r"\Omega", "o": "o", "omega": r"\omega"}
AROUND = {
    "floor": (r"\left\lfloor ", r" \right\rfloor"),
    "ceil": (r"\left\lceil ", r" \right\rceil"),
    "abs": (r"\left| ", r" \right|"),
    "min": (r"\min\left(", r"\right)"),
    "max": (r"\max\left(", r"\right)"),
}
RELATIONS = {
    **{" = ": " = ", " == ": " = ", " != ": r" \ne ", " < ": " < ", " > ": " > ", " <= ": r" \le "},
    **{" >= ": r" \ge ", " and ": r" \text{ and } ", " or ": r" \text{ or } ", " ± ": r" \pm "},
    **{" divides ": r" \mid ", " does not divide ": r" \nmid "},
}
UNKNOWN = r"\overset{?}{=}"
SIGNS: dict[Status, str] = {
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
_RELATION = re.compile(f"({'|'.join(sorted(RELATIONS, key=len, reverse=True))})")
_WORDS = re.compile("where|longer")  # in a condition that is not all signs
_ROOT = re.compile(r"\bsqrt\(")
_DECIMAL = re.compile(r"[-−]?\d[\d,]*(\.\d+)?(e[-−]?\d+)?")
_NEW = re.compile(r"([A-Za-z]\w*)'")  # what a name becomes
_CASES = re.compile("( when |; )")
_LONG = re.compile(r"\d{5,}")
_NAME = re.compile(r"[A-Za-z]\w*")
WORD = r"\mathrm"  # begins a name of several letters
ONE = Number(Fraction(1))
# How tightly a formula holds together; a looser one is bracketed inside a tighter
SUM, NEGATIVE, SIGMA, PRODUCT, POWER, WHOLE = range(6)


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
        lines.append(f"{left} &{SIGNS[link.status]} {right}{_places(link)}")
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


def _counterexample(found: Counterexample) -> str:
    at = ", ".join(f"{latex_name(name)} = {value}" for name, value in found.values.items())
    exact, claimed = (
        r"\text{undefined}" if value is None else str(value) for value in (found.exact, found.claimed)
    )
    return rf"&\text{{at }} {at} \colon\; {exact} \ne {claimed}"


def formula_latex(node: Formula | BigO) -> str:
    r"""The formula, written with fractions, powers and sums.

    >>> from lattend.counts.formula_parser import parse_formula
    >>> print(formula_latex(parse_formula("(n - t)(t + 1) + t^2/2", {"n", "t"})))
    (n - t) (t + 1) + \frac{t^{2}}{2}
    """
    if isinstance(node, BigO):
        return rf"{ORDER_SIGNS[node.sign]}\left({_written(node.body)[0]}\right)"
    return _written(node)[0]


def maths(text: str) -> str:
    r"""A formula, an order or a condition as we print it, with its LaTeX; a text that is none stays as it is.

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
    return Maths(str(value), _LONG.sub(lambda found: f"{int(found[0]):,}".replace(",", "{,}"), value.latex()))


def order_maths(order: str) -> str:
    """An order of growth, `O(n*t) when t <= n; O(n^2) when t > n`, with the LaTeX of its formulas."""
    return Sentence(*(part if part in (" when ", "; ") else maths(part) for part in _CASES.split(order)))


def _side(text: str) -> str:
    """One side of a relation, or the relation."""
    if text in RELATIONS:
        return RELATIONS[text]
    if _DECIMAL.fullmatch(text):
        return number(text)
    if "." in text:  # which would be read as a fraction
        raise LattendError(f"{text}: decimals stand alone")
    hidden: dict[str, str] = {}  # what the parser does not know, by the names that stand for it
    while found := _ROOT.search(text):
        end = _closing(text, found.end())
        hidden[f"root{len(hidden)}"] = rf"\sqrt{{{_side(text[found.end() : end])}}}"
        text = f"{text[: found.start()]}{[*hidden][-1]}{text[end + 1 :]}"
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
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise LattendError(f"{text}: a bracket is not closed")


def _written(node: Formula) -> tuple[str, int]:
    """The text, and how tightly it holds together."""
    match node:
        case Number():
            value = node.value
            if value.denominator == 1:
                return str(value), WHOLE if value >= 0 else NEGATIVE
            sign = "-" if value < 0 else ""
            return (
                rf"{sign}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}",
                NEGATIVE if sign else PRODUCT,
            )
        case Name():
            return latex_name(node.name), WHOLE
        case Sum():
            index, low, high = latex_name(node.variable), _written(node.low)[0], _written(node.high)[0]
            return rf"\sum_{{{index}={low}}}^{{{high}}} {_in(node.body, SIGMA)}", SIGMA
        case Piecewise():
            return cases([(_written(piece)[0], _condition(when)) for piece, when in node.pieces]), WHOLE
        case Apply():
            return _applied(node)


def _condition(condition: Condition) -> str:
    """The condition of a piece; nothing where it always holds."""
    if isinstance(condition, Junction):
        joint = rf" \text{{ {condition.op} }} "
        inner = ((arg, _condition(arg)) for arg in condition.args)
        return joint.join(f"({text})" if isinstance(arg, Junction) else text for arg, text in inner)
    left, right = condition.left, condition.right
    divides = RELATIONS[" divides "] if condition.sign == "==" else RELATIONS[" does not divide "]
    if isinstance(left, Apply) and left.op == "%" and right == Number(Fraction(0)):
        of, by = (_in(arg, POWER) for arg in left.args)
        if condition.sign in ("==", "!="):
            return f"{by}{divides}{of}"
    return f"{_written(left)[0]} {RELATIONS[f' {condition.sign} '].strip()} {_written(right)[0]}"


def _applied(node: Apply) -> tuple[str, int]:
    match node.op:
        case "+":
            return _joined(" + ", node.args), SUM
        case "-":
            return _joined(" - ", node.args), SUM
        case "neg":
            return f"-{_in(node.args[0], SIGMA)}", NEGATIVE
        case "*":
            factors = tuple(arg for arg in _factors(node) if arg != ONE)
            if len(factors) > 1 and isinstance(factors[0], Apply) and factors[0].op == "neg":
                return f"-{_product((*factors[0].args, *factors[1:]))}", NEGATIVE
            return (_product(factors), PRODUCT) if len(factors) > 1 else _written(*factors or (ONE,))
        case "/":
            above, below = (_written(arg)[0] for arg in node.args)
            if above.startswith("-") and _written(node.args[0])[1] == NEGATIVE:
                return rf"-\frac{{{above[1:]}}}{{{below}}}", NEGATIVE
            return rf"\frac{{{above}}}{{{below}}}", PRODUCT
        case "^":
            base, exponent = node.args
            if exponent == ONE:
                return _written(base)
            return f"{_in(base, WHOLE)}^{{{_written(exponent)[0]}}}", POWER
        case "//":
            above, below = (_in(arg, POWER) for arg in node.args)
            return rf"\left\lfloor {above} / {below} \right\rfloor", WHOLE
        case "%":
            of, by = (_in(arg, POWER) for arg in node.args)
            return rf"{of} \bmod {by}", NEGATIVE
        case "floor" | "ceil" | "abs" | "min" | "max":
            before, after = AROUND[node.op]
            return f"{before}{', '.join(_written(arg)[0] for arg in node.args)}{after}", WHOLE


def _factors(node: Formula) -> Iterator[Formula]:
    """Those of a product, and of the products in it."""
    if isinstance(node, Apply) and node.op == "*":
        for arg in node.args:
            yield from _factors(arg)
    else:
        yield node


def _joined(sign: str, terms: tuple[Formula, ...]) -> str:
    first, *rest = terms
    return sign.join([_in(first, SUM), *(_in(term, SIGMA) for term in rest)])


def _product(factors: tuple[Formula, ...]) -> str:
    """Factors side by side; a dot between two numbers, which would read as one."""
    text = before = ""
    for factor in factors:
        part = _in(factor, PRODUCT)
        word = part.startswith(WORD) or before.startswith(WORD)
        joint = r" \cdot " if part[0].isdigit() else r" \, " if word else " "
        text, before = text + joint + part if text else part, part
    return text


def _in(node: Formula, tightness: int) -> str:
    """The formula, bracketed where it stands inside a tighter one."""
    text, held = _written(node)
    return text if held >= tightness else f"({text})"
