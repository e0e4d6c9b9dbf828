"""LaTeX of rules, formulas, claims and verdicts: one writer for the terms of both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from lattend.counts.formula import BigO, Formula, Piecewise, Sum, WrittenClaim
from lattend.counts.formula_parser import parse_claim
from lattend.counts.notation import latex_name
from lattend.counts.verdict import NOWHERE, Counterexample, OrderVerdict, Status, Verdict
from lattend.errors import LattendError
from lattend.report.latex import aligned, cases, escape, inline, number
from lattend.report.maths import Maths, Sentence
from lattend.report.numbers import format_value
from lattend.rules.language import expr
from lattend.rules.language.expr import (
    And,
    Arith,
    Compare,
    CompareOp,
    Condition,
    Lookup,
    Name,
    Not,
    Num,
    Or,
    Truth,
)
from lattend.rules.rule import Rule

if TYPE_CHECKING:
    from lattend.counts.count import Count

RELATIONS: dict[CompareOp, str] = {
    **{"<": "<", "<=": r"\le", "==": "=", "!=": r"\ne", ">=": r"\ge", ">": ">"},
}
DIVIDES: dict[CompareOp, str] = {"==": r"\mid", "!=": r"\nmid"}
ORDER_SIGNS = {"O": "O", "Theta": r"\Theta", "Omega": r"\Omega", "o": "o", "omega": r"\omega"}
AROUND = {
    "floor": (r"\left\lfloor ", r" \right\rfloor"),
    "ceil": (r"\left\lceil ", r" \right\rceil"),
    "abs": (r"\left| ", r" \right|"),
    "min": (r"\min\left(", r"\right)"),
    "max": (r"\max\left(", r"\right)"),
}
WORD = r"\mathrm"  # begins a name of several letters
ONE = Num(1)
# How tightly a term or a condition holds together; a looser one is bracketed inside a tighter one
MOD, SUM, NEGATIVE, SIGMA, PRODUCT, POWER, ATOM = range(7)
OR, AND, NOT = range(3)
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


def formula_latex(node: Formula | BigO) -> str:
    r"""Returns a formula or an order with fractions, powers and sums.

    >>> from lattend.counts.formula_parser import parse_formula
    >>> print(formula_latex(parse_formula("(n - t)(t + 1) + t^2/2", {"n", "t"})))
    (n - t) (t + 1) + \frac{t^{2}}{2}
    """
    writer = _Writer(_name)
    if isinstance(node, BigO):
        return rf"{ORDER_SIGNS[node.sign]}\left({writer.text(node.body)}\right)"
    return writer.text(node)


def set_latex(rule: Rule) -> str:
    r"""Returns the pairs of a rule as a set.

    >>> from lattend.rules.reader import rule
    >>> print(set_latex(rule("k <= q and q - k <= t")))
    \left\{ (q, k) \;\middle|\; 0 \le q, k < n,\; k \le q \wedge q - k \le t \right\}
    """
    names, writer, condition = _position_names(rule), _rule_writer(rule), _with_numbers(rule)
    positions: dict[str, list[str]] = {}  # by the size that bounds them
    for position, size in rule.limits.items():
        positions.setdefault(size, []).append(names[position])
    sizes = {size: str(rule.values[size]) if size in rule.values else _name(size) for size in positions}
    clauses = [rf"0 \le {', '.join(below)} < {sizes[size]}" for size, below in positions.items()]
    clauses += [] if condition == Truth(True) else [writer.condition(condition)]
    pair, text = ", ".join(names.values()), r",\; ".join(clauses)
    return rf"\left\{{ ({pair}) \;\middle|\; {text} \right\}}"


def condition_latex(rule: Rule, condition: Condition) -> str:
    r"""Returns a condition on the positions and parameters of a rule.

    >>> from lattend.rules.reader import rule
    >>> windowed = rule("q // w == k // w and k <= q")
    >>> print(condition_latex(windowed, windowed.condition))
    \left\lfloor q / w \right\rfloor = \left\lfloor k / w \right\rfloor \wedge k \le q
    """
    return _rule_writer(rule).condition(condition)


def attention_latex(rule: Rule) -> str:
    r"""Returns attention under a rule: a softmax over the scores plus a mask of 0 and -∞.

    >>> from lattend.rules.reader import rule
    >>> print(attention_latex(rule("k <= q")))
    \begin{aligned}
    O &= \mathrm{softmax}\left(\frac{Q K^{\top}}{\sqrt{d}} + M\right) V \\
    M_{q, k} &= \begin{cases} 0 & \text{if } k \le q \\ -\infty & \text{otherwise} \end{cases}
    \end{aligned}
    """
    condition = _with_numbers(rule)
    mask = "0"
    if condition != Truth(True):
        mask = cases([("0", _rule_writer(rule).condition(condition)), (r"-\infty", "")])
    return aligned(
        r"O &= \mathrm{softmax}\left(\frac{Q K^{\top}}{\sqrt{d}} + M\right) V",
        f"M_{{{', '.join(_position_names(rule).values())}}} &= {mask}",
    )


def _with_numbers(rule: Rule) -> Condition:
    """Returns the condition with the numbers of the rule written in."""
    return expr.substituted(rule.condition, {name: Num(value) for name, value in rule.values.items()})


def _position_names(rule: Rule) -> dict[str, str]:
    """Returns how positions are written: qy is q with index y."""
    return {name: f"{name[0]}_{{{name[1]}}}" if len(name) == 2 else _name(name) for name in rule.positions}


def _rule_writer(rule: Rule) -> _Writer:
    positions = _position_names(rule)
    return _Writer(lambda name: positions.get(name) or _name(name))


def _name(name: str) -> str:
    return latex_name(name) if name.isascii() else rf"\text{{{escape(name)}}}"


class _Writer:
    """Writes terms of rules and formulas, with names as `name` writes them."""

    def __init__(self, name: Callable[[str], str]) -> None:
        self.name = name

    def condition(self, node: Condition, strength: int = OR) -> str:
        """Returns a condition of a rule, in brackets if the context binds more tightly."""
        match node:
            case Truth():
                return r"\text{true}" if node.value else r"\text{false}"
            case Compare():
                return f"{self.text(node.left)} {RELATIONS[node.op]} {self.text(node.right)}"
            case Not():
                return rf"\neg ({self.condition(node.arg)})"
            case And():
                text, own = r" \wedge ".join(self.condition(arg, NOT) for arg in node.args), AND
            case Or():
                text, own = r" \vee ".join(self.condition(arg, AND) for arg in node.args), OR
        return f"({text})" if own < strength else text

    def piece_condition(self, node: Condition) -> str:
        """Returns the condition of a piece of a formula; an empty text if it always holds."""
        match node:
            case And() | Or():
                parts = [(arg, self.piece_condition(arg)) for arg in node.args]
                texts = [f"({text})" if isinstance(arg, And | Or) else text for arg, text in parts]
                return rf" \text{{ {'and' if isinstance(node, And) else 'or'} }} ".join(texts)
            case Compare(op="==" | "!=" as op, left=Arith(op="%", args=args), right=Num(0)):
                of, by = (self.within(arg, POWER) for arg in args)
                return f"{by} {DIVIDES[op]} {of}"
            case _:
                return "" if node == Truth(True) else self.condition(node)

    def text(self, node: Formula) -> str:
        """Returns a term without brackets around it."""
        return self.written(node)[0]

    def within(self, node: Formula, strength: int) -> str:
        """Returns a term, in brackets if it holds together more loosely than its context."""
        text, own = self.written(node)
        return text if own >= strength else f"({text})"

    def written(self, node: Formula) -> tuple[str, int]:
        """Returns a term without brackets around it, and how tightly it holds together."""
        match node:
            case Num():
                return str(node.value), ATOM if node.value >= 0 else NEGATIVE
            case Name():
                return self.name(node.name), ATOM
            case Lookup():
                return f"{self.name(node.array)}[{self.listed(node.indices)}]", ATOM
            case Sum():
                low, high = f"{self.name(node.variable)}={self.text(node.low)}", self.text(node.high)
                return rf"\sum_{{{low}}}^{{{high}}} {self.within(node.body, SIGMA)}", SIGMA
            case Piecewise():
                pieces = [(self.text(piece), self.piece_condition(when)) for piece, when in node.pieces]
                return cases(pieces), ATOM
            case Arith(op=op, args=args):
                return self.applied(op, args)

    def applied(self, op: str, args: Sequence[Formula]) -> tuple[str, int]:
        """Returns an operation and how tightly it holds together."""
        match op:
            case "+" | "-":
                terms = [self.within(args[0], SUM), *(self.within(arg, SIGMA) for arg in args[1:])]
                return f" {op} ".join(terms), SUM
            case "neg":
                return f"-{self.within(args[0], SIGMA)}", NEGATIVE
            case "*":
                first, *others = [factor for arg in args for factor in _factors(arg)] or [ONE]
                if others and isinstance(first, Arith) and first.op == "neg":
                    return f"-{self.product([*first.args, *others])}", NEGATIVE
                return (self.product([first, *others]), PRODUCT) if others else self.written(first)
            case "/":
                above, strength = self.written(args[0])
                below = self.text(args[1])
                if strength == NEGATIVE and above.startswith("-"):
                    return rf"-\frac{{{above[1:]}}}{{{below}}}", NEGATIVE
                return rf"\frac{{{above}}}{{{below}}}", PRODUCT
            case "^":
                base, exponent = args
                if exponent == ONE:
                    return self.written(base)
                return f"{self.within(base, ATOM)}^{{{self.text(exponent)}}}", POWER
            case "//":
                above, below = self.within(args[0], PRODUCT), self.within(args[1], POWER)
                return rf"\left\lfloor {above} / {below} \right\rfloor", ATOM
            case "%":
                return rf"{self.within(args[0], PRODUCT)} \bmod {self.within(args[1], POWER)}", MOD
            case _:
                before, after = AROUND[op]
                return f"{before}{self.listed(args)}{after}", ATOM

    def listed(self, args: Sequence[Formula]) -> str:
        return ", ".join(self.text(arg) for arg in args)

    def product(self, factors: Sequence[Formula]) -> str:
        """Returns factors side by side, with a dot between two numbers, which would read as one."""
        text = before = ""
        for factor in factors:
            part = self.within(factor, PRODUCT)
            has_word = part.startswith(WORD) or before.startswith(WORD)
            joint = r" \cdot " if part[0].isdigit() else r" \, " if has_word else " "
            text, before = text + joint + part if text else part, part
        return text


def _factors(node: Formula) -> Iterator[Formula]:
    """Yields the factors of a product, and of products within it, except 1."""
    if isinstance(node, Arith) and node.op == "*":
        for arg in node.args:
            yield from _factors(arg)
    elif node != ONE:
        yield node


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
