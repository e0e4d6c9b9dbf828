"""A normal spelling of conditions: `q >= k` and `not k > q` both become `k - q <= 0`.

It is read off the text, without sets, in microseconds. Conditions of one spelling attend the same pairs; of
those that attend the same pairs some keep two spellings, which only `sets.canonical` can tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from lattend.rules.language import expr
from lattend.rules.language.expr import FLIPPED, Compare, CompareOp, Condition
from lattend.rules.language.linear import Linear, gap_of


def normal_text(condition: Condition) -> str:
    """Returns a condition without `not`, linear forms compared with 0, the parts of `and` and `or` sorted.

    >>> from lattend.rules.language.parser import parse
    >>> normal_text(parse("not (k > q or 2*q - 2*k > 2*t + 1)"))
    'k - q <= 0 and q - k - t <= 0'
    """
    return expr.without_not(condition, _comparison, _truth, _both, _either).text


@dataclass(frozen=True)
class _Spelling:
    """Texts joined by `and` or `or`; a single text counts as both."""

    parts: frozenset[str]
    sign: str = ""

    @property
    def text(self) -> str:
        return f" {self.sign} ".join(sorted(self.parts))

    def under(self, sign: str) -> frozenset[str]:
        """The texts that this brings into a condition of that sign."""
        return self.parts if self.sign in ("", sign) else frozenset({f"({self.text})"})


def _truth(value: bool) -> _Spelling:
    return _Spelling(frozenset({"true" if value else "false"}))


TRUE, FALSE = _truth(True), _truth(False)


def _both(a: _Spelling, b: _Spelling) -> _Spelling:
    return _joined("and", a, b, unit=TRUE, zero=FALSE)


def _either(a: _Spelling, b: _Spelling) -> _Spelling:
    return _joined("or", a, b, unit=FALSE, zero=TRUE)


def _joined(sign: str, a: _Spelling, b: _Spelling, *, unit: _Spelling, zero: _Spelling) -> _Spelling:
    if zero in (a, b):
        return zero
    if unit in (a, b):
        return b if a == unit else a
    parts = a.under(sign) | b.under(sign)
    return _Spelling(parts, sign if len(parts) > 1 else "")


def _comparison(node: Compare, op: CompareOp) -> _Spelling:
    gap = gap_of(node, {})
    if gap is None:
        return _as_written(node, op)
    if op in ("==", "!="):
        return _equal(gap, op)
    if op in (">", ">="):
        gap = gap.times(-1)
    return _at_most(gap, gap.constant + (op in ("<", ">")))


def _as_written(node: Compare, op: CompareOp) -> _Spelling:
    """Returns a nonlinear comparison with its sides, the smaller one on the left."""
    left, right = expr.term_text(node.left), expr.term_text(node.right)
    if op in (">", ">=") or (op in ("==", "!=") and left > right):
        left, op, right = right, FLIPPED[op], left
    return _Spelling(frozenset({f"{left} {op} {right}"}))


def _at_most(gap: Linear, constant: int) -> _Spelling:
    """The terms of the gap and a constant, at most 0, divided by what the coefficients share."""
    if not gap.terms:
        return _truth(constant <= 0)
    shared = gcd(*(coefficient for _, coefficient in gap.terms))
    return _Spelling(frozenset({f"{_divided(gap, shared, -(-constant // shared))} <= 0"}))


def _equal(gap: Linear, op: CompareOp) -> _Spelling:
    """The gap against 0, divided by what the coefficients share, the first of them above 0."""
    if not gap.terms:
        return _truth((gap.constant == 0) is (op == "=="))
    shared = gcd(*(coefficient for _, coefficient in gap.terms))
    if gap.constant % shared:  # never 0: no integers make it so
        return _truth(op == "!=")
    shared = shared if gap.terms[0][1] > 0 else -shared
    return _Spelling(frozenset({f"{_divided(gap, shared, gap.constant // shared)} {op} 0"}))


def _divided(gap: Linear, by: int, constant: int) -> Linear:
    return Linear(tuple((atom, coefficient // by) for atom, coefficient in gap.terms), constant)
