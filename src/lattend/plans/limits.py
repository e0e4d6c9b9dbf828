"""Solves comparisons for one position: `q - k <= t` becomes `k >= q - t`.

What is solved becomes a bound on a whole row of the picture, found once for each query; what cannot be
solved is asked of every pair.
"""

from __future__ import annotations

from dataclasses import dataclass

from lattend.rules.language import expr
from lattend.rules.language.expr import FLIPPED, Arith, CompareOp, Name, Num, Term


@dataclass(frozen=True, slots=True)
class Limits:
    """`low <= name` and `name <= high`; either may be missing."""

    low: Term | None = None
    high: Term | None = None


def plus(left: Term, right: Term) -> Term:
    """`left + right`, with numbers added up."""
    if isinstance(left, Num) and isinstance(right, Num):
        return Num(left.value + right.value)
    if isinstance(left, Num):
        left, right = right, left
    if isinstance(right, Num):
        if right.value == 0:
            return left
        if isinstance(left, Arith) and left.op in ("+", "-") and isinstance(left.args[1], Num):
            inner = left.args[1].value if left.op == "+" else -left.args[1].value
            return plus(left.args[0], Num(inner + right.value))
        if right.value < 0:
            return Arith("-", (left, Num(-right.value)))
    return Arith("+", (left, right))


def minus(left: Term, right: Term) -> Term:
    """`left - right`, with numbers subtracted."""
    if isinstance(right, Num):
        return plus(left, Num(-right.value))
    if isinstance(right, Arith) and right.op == "neg":
        return plus(left, right.args[0])
    if left == Num(0):
        return Arith("neg", (right,))
    return Arith("-", (left, right))


def times(left: Term, right: Term) -> Term:
    """`left * right`, with numbers multiplied out."""
    if isinstance(left, Num) and isinstance(right, Num):
        return Num(left.value * right.value)
    if Num(1) in (left, right):
        return right if left == Num(1) else left
    return Arith("*", (left, right))


def solve(compare: expr.Compare, name: str) -> Limits | None:
    """Returns the bound of a comparison on `name`; None if it cannot be solved for that name.

    >>> from lattend.rules.language.parser import parse
    >>> expr.term_text(solve(parse("q - k <= t"), "k").low)
    'q - t'
    >>> expr.term_text(solve(parse("q // w == k // w"), "k").high)
    'q // w * w + (w - 1)'
    """
    left, right, op = compare.left, compare.right, compare.op
    if name in expr.names(right):
        left, right, op = right, left, FLIPPED[op]
    if name in expr.names(right) or op == "!=" or _occurrences(left, name) != 1:
        return None
    match op:
        case "<":
            op, right = "<=", minus(right, Num(1))
        case ">":
            op, right = ">=", plus(right, Num(1))
        case _:
            pass
    return _peeled(left, op, right, name)


def _occurrences(term: Term, name: str) -> int:
    return sum(isinstance(node, Name) and node.name == name for node in expr.walk(term))


def _peeled(left: Term, op: CompareOp, right: Term, name: str) -> Limits | None:
    """Solves `left op right` for the name by inverting the operations around it one by one."""
    while not isinstance(left, Name):
        if not isinstance(left, Arith):
            return None
        contains_name = [name in expr.names(arg) for arg in left.args]
        match left:
            case Arith(op="+", args=(a, b)):
                left, right = (a, minus(right, b)) if contains_name[0] else (b, minus(right, a))
            case Arith(op="-", args=(a, b)) if contains_name[0]:
                left, right = a, plus(right, b)
            case Arith(op="-", args=(a, b)):
                left, right, op = b, minus(a, right), FLIPPED[op]
            case Arith(op="neg", args=(a,)):
                left, right, op = a, minus(Num(0), right), FLIPPED[op]
            case Arith(op="*", args=(a, b)):
                factor, inner = (b, a) if contains_name[0] else (a, b)
                if not isinstance(factor, Num) or factor.value <= 0 or op == "==":
                    return None
                left, right = inner, _divided(right, factor, up=op == ">=")
            case Arith(op="abs", args=(a,)) if op == "<=":
                return _between(minus(Num(0), right), a, right, name)
            case Arith(op="//", args=(a, divisor)) if contains_name[0]:
                low = times(right, divisor)
                high = plus(low, minus(divisor, Num(1)))
                if op == "==":
                    return _between(low, a, high, name)
                left, right = a, low if op == ">=" else high
            case _:
                return None
    match op:
        case "<=":
            return Limits(high=right)
        case ">=":
            return Limits(low=right)
        case _:
            return Limits(right, right)


def _between(low: Term, term: Term, high: Term, name: str) -> Limits | None:
    """`low <= term <= high` solved for the name; each end comes from one of the two."""
    lower, upper = _peeled(term, ">=", low, name), _peeled(term, "<=", high, name)
    if lower is None or upper is None:
        return None
    return Limits(
        upper.low if lower.low is None else lower.low, upper.high if lower.high is None else lower.high
    )


def _divided(term: Term, by: Num, *, up: bool) -> Term:
    """`term / by` rounded down, or up."""
    if by.value == 1:
        return term
    if isinstance(term, Num):
        return Num(-(-term.value // by.value) if up else term.value // by.value)
    return Arith("//", (plus(term, Num(by.value - 1)) if up else term, by))
