"""The canonical form of a rule at its numbers, found once for all sizes; plans are made from it alone."""

from __future__ import annotations

from collections.abc import Mapping

from lattend.plans.known_forms import known_form
from lattend.recent import Recent
from lattend.rules.axes import LINE
from lattend.rules.canonical import Canonical
from lattend.rules.language import expr
from lattend.rules.language.expr import Compare, Condition, Name, Num, Term, Truth
from lattend.rules.language.intervals import Interval, interval, least
from lattend.rules.language.linear import gap_of
from lattend.rules.rule import Rule

MAX_KNOWN, MOST_SIZE = 256, 1 << 62
_KNOWN: Recent[object, Canonical] = Recent(MAX_KNOWN)


def canonical_form(rule: Rule) -> Canonical:
    """The form of a rule whose parameters are bound; sizes need not be, and it holds for all of them.

    >>> from lattend.rules.reader import rule
    >>> str(expr.text(canonical_form(rule("not k > q and k > q - t").at(t=4)).condition))
    'k <= q and q - k <= 3'
    """
    values = rule.values
    tied = len(rule.axes) == 1 and values.get("n") == values.get("m", values.get("n"))
    key = (rule.key, tuple((name, values[name]) for name in rule.parameters), tied)
    return _KNOWN.find(key, lambda: _found(rule, tied))


def _found(rule: Rule, tied: bool) -> Canonical:
    numbers: dict[str, Term] = {name: Num(rule.values[name]) for name in rule.parameters}
    axes = rule.axes
    if tied:  # as many keys as queries, by whichever name
        numbers["m"], axes = Name("n"), LINE
    condition, domain = (expr.substituted(part, numbers) for part in (rule.condition, rule.domain))
    known = known_form(condition, axes)
    if known is not None and _holds(domain, {axis.queries: Interval(0, MOST_SIZE) for axis in axes}):
        return known
    try:
        from lattend.sets.canonical import canonical
    except ModuleNotFoundError as missing:
        if missing.name != "islpy":
            raise
        return Canonical.given_up(condition, "islpy is not installed")
    return canonical(condition, axes, domain)


def _holds(domain: Condition, sizes: Mapping[str, Interval]) -> bool:
    """Whether a domain holds for all of these sizes."""
    return sizes.keys() >= set(expr.names(domain)) and decided(domain, {}, sizes) == Truth(True)


def decided(condition: Condition, numbers: Mapping[str, int], ranges: Mapping[str, Interval]) -> Condition:
    """The condition without what always holds, or never, for names in these ranges.

    >>> from lattend.rules.language.parser import parse
    >>> ranges = {"q": Interval(0, 63), "k": Interval(0, 63)}
    >>> expr.text(decided(parse("k <= q and q - k <= t"), {"t": 99}, ranges))
    'k <= q'
    """
    return expr.pushed(condition, lambda node: _decided(node, numbers, ranges))


def _decided(node: Compare, numbers: Mapping[str, int], ranges: Mapping[str, Interval]) -> Condition:
    gap = gap_of(node, numbers)
    if gap is not None:
        low, high = least(gap.times(-1), ranges), -least(gap, ranges)  # where right - left lies
    elif expr.arrays(node):
        return node
    else:
        names = {**ranges, **{name: Interval(value, value) for name, value in numbers.items()}}
        a, b = interval(node.left, names), interval(node.right, names)
        low, high = b.low - a.high, b.high - a.low
    always = {"<=": low >= 0, "<": low > 0, "==": low == high == 0, ">=": high <= 0, ">": high < 0}
    never = {"<=": high < 0, "<": high <= 0, "==": low > 0 or high < 0, ">=": low > 0, ">": low >= 0}
    if always.get(node.op):
        return Truth(True)
    return Truth(False) if never.get(node.op) else node
