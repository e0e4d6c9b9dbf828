"""The key of a rule, a text with everything except its numbers; the normal spelling and the canonical form.

    q k n n                    the axes: query, key, and the sizes that bound them
    doc[q] == doc[k]           the condition
    true                       where it is defined
    doc=5f70bf18a08b           the digest of an array, or ? for one that is given at call time

Rules with one key attend the same pairs at the same numbers, so a compiled program can hold the key
where it cannot hold the rule; the key can be parsed again. In the normal spelling `q >= k` and `not k > q`
are both `k - q <= 0`. It is read off the text, without sets, in microseconds; two conditions that attend the
same pairs may have two, which only `sets.canonical` can tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from math import gcd
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary, ref

from numpy.typing import NDArray

from lattend.rules.axes import Axis
from lattend.rules.language import expr
from lattend.rules.language.expr import FLIPPED, Compare, CompareOp, Condition
from lattend.rules.language.linear import Linear, gap_of
from lattend.rules.language.parser import parse

if TYPE_CHECKING:
    from lattend.rules.rule import Rule

OPEN = "?"
KNOWN: WeakValueDictionary[str, Rule] = WeakValueDictionary()  # a living rule of each key
_DIGESTS: dict[int, tuple[ref[NDArray[Any]], str]] = {}


@dataclass(frozen=True)
class CanonicalForm:
    """A condition that describes the set; `as_written` is the reason if no canonical one was derived.

    `rows` describes it too, with one interval of keys for each query where that is possible, and `columns`
    with one of queries for each key: `k <= max(q, 2999)` rather than `k <= 2999 or k <= q`.
    """

    condition: Condition
    rows: Condition
    columns: Condition
    as_written: str = ""

    @staticmethod
    def given_up(condition: Condition, reason: str) -> CanonicalForm:
        """Returns the condition as it was written, with the reason."""
        return CanonicalForm(condition, condition, condition, reason)


def normal_text(condition: Condition) -> str:
    """Returns a condition without `not`, linear forms compared with 0, the parts of `and` and `or` sorted.

    >>> from lattend.rules.language.parser import parse
    >>> normal_text(parse("not (k > q or 2*q - 2*k > 2*t + 1)"))
    'k - q <= 0 and q - k - t <= 0'
    """
    both = partial(_joined, "and", unit=TRUE, zero=FALSE)
    either = partial(_joined, "or", unit=FALSE, zero=TRUE)
    return expr.without_not(condition, _comparison, _truth, both, either).text


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


def key_of(rule: Rule) -> str:
    """Returns the key of a rule."""
    axes = "; ".join(f"{axis.query} {axis.key} {axis.queries} {axis.keys}" for axis in rule.axes)
    arrays = {name: _digest(array) for name, array in rule.data.items()} | dict.fromkeys(rule.open, OPEN)
    data = " ".join(f"{name}={arrays[name]}" for name in sorted(arrays))
    return "\n".join((axes, expr.text(rule.condition), expr.text(rule.where), data))


def spelling_of(rule: Rule) -> str:
    """Returns a key, numbers included, that is equal for rules whose texts differ only in spelling."""
    axes, _, _, data = rule.key.split("\n")
    conditions = (normal_text(rule.condition), normal_text(rule.where))
    numbers = (f"{name}={rule.values.get(name, OPEN)}" for name in sorted({*rule.sizes, *rule.parameters}))
    return "\n".join((axes, *conditions, data, " ".join(numbers)))


def first_of(rule: Rule) -> Rule | None:
    """Returns the first rule with the same key, which this rule keeps alive; None if that is this rule."""
    first = KNOWN.setdefault(rule.key, rule)
    return None if first is rule else first


def parts_of(key: str) -> tuple[tuple[Axis, ...], Condition, Condition, dict[str, str]]:
    """Returns the axes, the condition, the domain and the digests of the arrays of a key."""
    axes_text, condition, where, data = key.split("\n")
    axes = tuple(Axis(*axis.split()) for axis in axes_text.split("; "))
    return axes, parse(condition), parse(where), dict(pair.split("=") for pair in data.split())


def unchanging(array: NDArray[Any]) -> NDArray[Any]:
    """Returns a read-only array, copied if necessary, so that its digest stays valid."""
    if array.base is None and not array.flags.writeable:
        return array
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _digest(array: NDArray[Any]) -> str:
    known = _DIGESTS.get(id(array))
    if known is not None and known[0]() is array:
        return known[1]
    content = blake2b(f"{array.dtype} {array.shape} ".encode() + array.tobytes(), digest_size=12)
    array_id, digest = id(array), content.hexdigest()
    _DIGESTS[array_id] = ref(array, lambda _: _DIGESTS.pop(array_id, None)), digest
    return digest
