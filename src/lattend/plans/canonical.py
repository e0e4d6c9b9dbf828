"""The canonical form of a rule, derived once for all sizes; plans depend on it alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lattend.recent import Recent
from lattend.rules.axes import IMAGE, LINE, Axis
from lattend.rules.language import expr
from lattend.rules.language.expr import Compare, Condition, Name, Num, Term, Truth
from lattend.rules.language.intervals import Interval, interval, least
from lattend.rules.language.key import CanonicalForm
from lattend.rules.language.linear import gap_of
from lattend.rules.language.parser import parse
from lattend.rules.rule import Rule

MAX_FORMS, MAX_SIZE = 256, 1 << 62
_FORMS: Recent[object, CanonicalForm] = Recent(MAX_FORMS)
NUMBER = Name("number")  # stands for the one number of a known form


class KnownForm(NamedTuple):
    """A known canonical form, its axes, and the range of its number."""

    axes: tuple[Axis, ...]
    form: Condition
    least: int = 0
    most: int = 1 << 30


# By how a rule is written. Loading isl takes longer than a small call of attention, so these forms are known
# without it. Tests compare them with what isl proves (tests/plans/test_known_forms.py).
KNOWN_FORMS = {
    parse("true"): KnownForm(LINE, parse("true")),
    parse("k <= q"): KnownForm(LINE, parse("k <= q")),
    parse("k <= q and q - k <= number"): KnownForm(LINE, parse("k <= q and q - k <= number"), 1),
    parse("k <= q and q // number == k // number"): KnownForm(
        LINE, parse("q // number == k // number and k <= q"), 2, 4096
    ),
    parse("q // number == k // number"): KnownForm(LINE, parse("q // number == k // number"), 2, 4096),
    parse("abs(qy - ky) <= number and abs(qx - kx) <= number"): KnownForm(
        IMAGE, parse("abs(qx - kx) <= number and abs(qy - ky) <= number"), 1
    ),
}


def canonical_form(rule: Rule) -> CanonicalForm:
    """Returns the form of a rule whose parameters are bound; it holds for all sizes.

    >>> from lattend.rules.reader import rule
    >>> str(expr.text(canonical_form(rule("not k > q and k > q - t").at(t=4)).condition))
    'k <= q and q - k <= 3'
    """
    values = rule.values
    tied = len(rule.axes) == 1 and values.get("n") == values.get("m", values.get("n"))
    key = (rule.key, tuple((name, values[name]) for name in rule.parameters), tied)
    return _FORMS.find(key, lambda: _derived(rule, tied))


def _derived(rule: Rule, tied: bool) -> CanonicalForm:
    numbers: dict[str, Term] = {name: Num(rule.values[name]) for name in rule.parameters}
    axes = rule.axes
    if tied:  # as many keys as queries, by whichever name
        numbers["m"], axes = Name("n"), LINE
    condition, domain = (expr.substituted(part, numbers) for part in (rule.condition, rule.domain))
    known = known_form(condition, axes)
    if known is not None and _holds(domain, {axis.queries: Interval(0, MAX_SIZE) for axis in axes}):
        return known
    try:
        from lattend.sets.canonical import canonical
    except ModuleNotFoundError as missing:
        if missing.name != "islpy":
            raise
        return CanonicalForm.given_up(condition, "islpy is not installed")
    return canonical(condition, axes, domain)


def known_form(condition: Condition, axes: tuple[Axis, ...]) -> CanonicalForm | None:
    """Returns the known form of a condition without open parameters; None if isl must derive it.

    >>> form = known_form(parse("k <= q and q // 16 == k // 16"), LINE)
    >>> form and expr.text(form.condition)
    'q // 16 == k // 16 and k <= q'
    """
    numbers = {node.value for node in expr.walk(condition) if isinstance(node, Num)}
    known = KNOWN_FORMS.get(expr.replaced(condition, lambda name: name, lambda _: NUMBER))
    if known is None or known.axes != axes or len(numbers) > 1:
        return None
    (number,) = numbers or (0,)
    if not known.least <= number <= known.most:
        return None
    form = expr.substituted(known.form, {NUMBER.name: Num(number)})
    return CanonicalForm(form, form, form)


def _holds(domain: Condition, sizes: Mapping[str, Interval]) -> bool:
    """Returns whether a domain holds for all of these sizes."""
    return sizes.keys() >= set(expr.names(domain)) and decided(domain, {}, sizes) == Truth(True)


def decided(condition: Condition, numbers: Mapping[str, int], ranges: Mapping[str, Interval]) -> Condition:
    """Returns the condition without comparisons that always or never hold in these ranges.

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
