"""A rule in LaTeX: the set of its pairs, its condition, and attention under it."""

from __future__ import annotations

from collections.abc import Mapping

from lattend.counts.notation import latex_name
from lattend.report.latex import aligned, cases, escape
from lattend.rules.language import expr
from lattend.rules.language.expr import (
    And,
    Arith,
    Compare,
    Condition,
    Lookup,
    Name,
    Not,
    Num,
    Or,
    Term,
    Truth,
)
from lattend.rules.rule import Rule

RELATIONS = {"<": "<", "<=": r"\le", "==": "=", "!=": r"\ne", ">=": r"\ge", ">": ">"}
# How tightly a term or a condition holds together; a looser one is bracketed inside a tighter
OR, AND, NOT = range(3)
MOD, SUM, PRODUCT, NEGATIVE = range(4)
Names = Mapping[str, str]


def set_latex(rule: Rule) -> str:
    r"""The pairs of a rule as a set.

    >>> from lattend.rules.reader import rule
    >>> print(set_latex(rule("k <= q and q - k <= t")))
    \left\{ (q, k) \;\middle|\; 0 \le q, k < n,\; k \le q \wedge q - k \le t \right\}
    """
    names = _names(rule)
    ranges: dict[str, list[str]] = {}
    for position, size in rule.limits.items():
        ranges.setdefault(size, []).append(names[position])
    limits = [rf"0 \le {', '.join(places)} < {_size(rule, size)}" for size, places in ranges.items()]
    condition = _bound(rule)
    said = r",\; ".join([*limits, *([] if condition == Truth(True) else [_condition(condition, OR, names)])])
    pair = ", ".join(names[position] for position in rule.positions)
    return rf"\left\{{ ({pair}) \;\middle|\; {said} \right\}}"


def condition_latex(rule: Rule, condition: Condition) -> str:
    r"""A condition on the letters of a rule.

    >>> from lattend.rules.reader import rule
    >>> windowed = rule("q // w == k // w and k <= q")
    >>> print(condition_latex(windowed, windowed.condition))
    \left\lfloor q / w \right\rfloor = \left\lfloor k / w \right\rfloor \wedge k \le q
    """
    return _condition(condition, OR, _names(rule))


def attention_latex(rule: Rule) -> str:
    r"""Attention under a rule: a softmax over the scores plus a mask of 0 and -∞.

    >>> from lattend.rules.reader import rule
    >>> print(attention_latex(rule("k <= q")))
    \begin{aligned}
    O &= \mathrm{softmax}\left(\frac{Q K^{\top}}{\sqrt{d}} + M\right) V \\
    M_{q, k} &= \begin{cases} 0 & \text{if } k \le q \\ -\infty & \text{otherwise} \end{cases}
    \end{aligned}
    """
    names = _names(rule)
    condition = _bound(rule)
    places = ", ".join(names[position] for position in rule.positions)
    whole = condition == Truth(True)
    mask = "0" if whole else cases([("0", _condition(condition, OR, names)), (r"-\infty", "")])
    return aligned(
        r"O &= \mathrm{softmax}\left(\frac{Q K^{\top}}{\sqrt{d}} + M\right) V", f"M_{{{places}}} &= {mask}"
    )


def _bound(rule: Rule) -> Condition:
    """The condition with all numbers that the rule has."""
    return expr.substituted(rule.condition, {name: Num(value) for name, value in rule.values.items()})


def _size(rule: Rule, name: str) -> str:
    return str(rule.values[name]) if name in rule.values else _name(name)


def _names(rule: Rule) -> dict[str, str]:
    """How the positions are written: qy is q with index y."""
    return {name: f"{name[0]}_{{{name[1]}}}" if len(name) == 2 else _name(name) for name in rule.positions}


def _name(name: str) -> str:
    return latex_name(name) if name.isascii() else rf"\text{{{escape(name)}}}"


def _condition(node: Condition, strength: int, names: Names) -> str:
    match node:
        case Truth():
            return r"\text{true}" if node.value else r"\text{false}"
        case Compare():
            left, right = (_term(side, MOD, names) for side in (node.left, node.right))
            return f"{left} {RELATIONS[node.op]} {right}"
        case Not():
            return rf"\neg ({_condition(node.arg, OR, names)})"
        case And():
            shown, own = r" \wedge ".join(_condition(arg, NOT, names) for arg in node.args), AND
        case Or():
            shown, own = r" \vee ".join(_condition(arg, AND, names) for arg in node.args), OR
    return f"({shown})" if own < strength else shown


def _term(node: Term, strength: int, names: Names) -> str:
    match node:
        case Num():
            shown, own = str(node.value), NEGATIVE if node.value >= 0 else SUM
        case Name():
            return names.get(node.name) or _name(node.name)
        case Lookup():
            return f"{_name(node.array)}[{_listed(node.indices, names)}]"
        case Arith(op="abs"):
            return rf"\left| {_listed(node.args, names)} \right|"
        case Arith(op="min" | "max"):
            return rf"\{node.op}\left({_listed(node.args, names)}\right)"
        case Arith(op="neg", args=(arg,)):
            shown, own = f"-{_term(arg, NEGATIVE, names)}", SUM
        case Arith(op="//", args=(left, right)):
            above, below = _term(left, PRODUCT, names), _term(right, NEGATIVE, names)
            return rf"\left\lfloor {above} / {below} \right\rfloor"
        case Arith(op="%", args=(left, right)):
            shown = rf"{_term(left, PRODUCT, names)} \bmod {_term(right, NEGATIVE, names)}"
            own = MOD
        case Arith(op="*", args=(left, right)):
            dot = r" \cdot " if isinstance(right, Num) else " "
            shown = f"{_term(left, PRODUCT, names)}{dot}{_term(right, NEGATIVE, names)}"
            own = PRODUCT
        case Arith(op=op, args=(left, right)):
            shown, own = f"{_term(left, SUM, names)} {op} {_term(right, PRODUCT, names)}", SUM
        case Arith():
            raise ValueError(f"{node.op} with {len(node.args)} arguments")
    return f"({shown})" if own < strength else shown


def _listed(terms: tuple[Term, ...], names: Names) -> str:
    return ", ".join(_term(term, MOD, names) for term in terms)
