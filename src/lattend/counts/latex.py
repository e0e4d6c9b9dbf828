"""Rules and formulas in LaTeX: one writer for the terms of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lattend.counts.formula import BigO, Formula, Piecewise, Sum
from lattend.counts.notation import latex_name
from lattend.report.latex import aligned, cases, escape
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
