"""A formula as it was read, in LaTeX: so that whoever typed it sees how it was understood."""

from __future__ import annotations

from fractions import Fraction

from lattend.counts.formula import Apply, BigO, Formula, Number, Sum, Symbol, WrittenClaim
from lattend.counts.notation import latex_name

ORDER_SIGNS = {"O": "O", "Theta": r"\Theta", "Omega": r"\Omega", "o": "o", "omega": r"\omega"}
AROUND = {
    "floor": (r"\left\lfloor ", r" \right\rfloor"),
    "ceil": (r"\left\lceil ", r" \right\rceil"),
    "abs": (r"\left| ", r" \right|"),
    "min": (r"\min\left(", r"\right)"),
    "max": (r"\max\left(", r"\right)"),
}
ONE = Number(Fraction(1))
# How tightly a formula holds together; a looser one is bracketed inside a tighter
SUM, NEGATIVE, SIGMA, PRODUCT, POWER, WHOLE = range(6)


def claim_latex(claim: WrittenClaim) -> str:
    r"""All sides of a claim, joined by equals signs.

    >>> from lattend.counts.claim_parser import parse_claim
    >>> print(claim_latex(parse_claim("N = 1 + 2 + ... + n = n(n+1)/2", {"n"})))
    N = \sum_{i=1}^{n} i = \frac{n (n + 1)}{2}
    """
    name = [latex_name(claim.name)] if claim.name else []
    return " = ".join([*name, *(formula_latex(side.node) for side in claim.sides)])


def formula_latex(node: Formula | BigO) -> str:
    r"""The formula, written with fractions, powers and sums.

    >>> from lattend.counts.formula_parser import parse_formula
    >>> print(formula_latex(parse_formula("(n - t)(t + 1) + t^2/2", {"n", "t"})))
    (n - t) (t + 1) + \frac{t^{2}}{2}
    """
    if isinstance(node, BigO):
        return rf"{ORDER_SIGNS[node.sign]}\left({_written(node.body)[0]}\right)"
    return _written(node)[0]


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
        case Symbol():
            return latex_name(node.name), WHOLE
        case Sum():
            index, low, high = latex_name(node.variable), _written(node.low)[0], _written(node.high)[0]
            return rf"\sum_{{{index}={low}}}^{{{high}}} {_in(node.body, SIGMA)}", SIGMA
        case Apply():
            return _applied(node)


def _applied(node: Apply) -> tuple[str, int]:
    match node.op:
        case "+":
            return _joined(" + ", node.args), SUM
        case "-":
            return _joined(" - ", node.args), SUM
        case "neg":
            return f"-{_in(node.args[0], SIGMA)}", NEGATIVE
        case "*":
            factors = tuple(arg for arg in node.args if arg != ONE)
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


def _joined(sign: str, terms: tuple[Formula, ...]) -> str:
    first, *rest = terms
    return sign.join([_in(first, SUM), *(_in(term, SIGMA) for term in rest)])


def _product(factors: tuple[Formula, ...]) -> str:
    """Factors side by side; a dot between two numbers, which would read as one."""
    text = ""
    for factor in factors:
        part = _in(factor, PRODUCT)
        joint = r" \cdot " if text and part[0].isdigit() else " " if text else ""
        text += joint + part
    return text


def _in(node: Formula, tightness: int) -> str:
    """The formula, bracketed where it stands inside a tighter one."""
    text, held = _written(node)
    return text if held >= tightness else f"({text})"
