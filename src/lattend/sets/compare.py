"""Comparing rules as sets: whether they are the same, and if not, where they first differ."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lattend.budget import DEFAULT, Budget
from lattend.errors import NamingError, NoClosedForm
from lattend.report.shown import Shown
from lattend.rules.combined import aligned
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition, Name, Num
from lattend.rules.rule import Rule
from lattend.sets.guard import guarded
from lattend.sets.pointset import PointSet

MAX_MODULUS = 64
SPLIT_MODULUS = 16  # how far a modulus is looked at when a parameter, which has no bound, is split by it


@dataclass(frozen=True)
class Witness(Shown):
    """A pair attended by only one of two rules, and the numbers at which it is."""

    values: dict[str, int]
    pair: tuple[int, ...]
    attended_by: str

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} = {value}" for name, value in self.values.items())
        return f"at {numbers} only {self.attended_by!r} has the pair {self.pair}"


def difference(left: Rule, right: Rule, budget: Budget = DEFAULT) -> Witness | None:
    """Returns the smallest pair that only one rule attends: by sizes, then parameters, then position.

    Parameters are looked for from 0 up; below 0 only where the rules differ nowhere else.
    """
    left, right = aligned(left.baked(), right.baked())
    if left.data or right.data:
        raise NoClosedForm(
            "rules that look up data can be compared at given numbers only: compare their masks, "
            "as in (a.mask(n=…) != b.mask(n=…)).any()"
        )
    for name in left.values:
        if right.values.get(name) not in (None, left.values[name]):
            raise NamingError(
                f"the rules have different {name}: {left.values[name]} and {right.values[name]}"
            )
    return guarded(_difference, left, right, budget=budget)


def _difference(left: Rule, right: Rule) -> Witness | None:
    both = left & right
    sizes = {name: Num(value) for name, value in both.values.items()}
    only_left = (left - right).condition
    only_right = (right - left).condition
    condition = expr.any_of(only_left, only_right)
    unbound = replace(both, condition=condition, values={})
    fixed = expr.all_of(*(expr.Compare("==", Name(name), number) for name, number in sizes.items()))
    points = _points(unbound, fixed, {})
    if points.is_empty():
        return None
    counted = expr.all_of(fixed, *(expr.Compare(">=", Name(name), Num(0)) for name in unbound.parameters))
    usual = _points(unbound, counted, {})
    witness = _least(unbound, fixed, points) if usual.is_empty() else _least(unbound, counted, usual)
    pair = tuple(witness[name] for name in unbound.positions)
    own = tuple(witness[name] for name in left.positions)
    values = {name: witness[name] for name in (*unbound.sizes, *unbound.parameters)}
    return Witness(values, pair, left.text if left.contains(*own, **_own(left, values)) else right.text)


def _own(rule: Rule, values: dict[str, int]) -> dict[str, int]:
    known = {*rule.sizes, *rule.parameters} - set(rule.values)
    return {name: value for name, value in values.items() if name in known}


def _points(rule: Rule, fixed: Condition, moduli: dict[str, int]) -> PointSet:
    numbers = {name: Num(value) for name, value in moduli.items()}
    return PointSet.of(
        expr.substituted(rule.condition, numbers),
        rule.axes,
        domain=expr.substituted(expr.all_of(rule.domain, fixed), numbers),
        parameters=[name for name in (*rule.sizes, *rule.parameters) if name not in moduli],
        heads=rule.has_heads,
    )


def _least(rule: Rule, fixed: Condition, points: PointSet) -> dict[str, int]:
    """The least point in the order sizes, parameters, positions."""
    order = [*rule.sizes, *rule.parameters, *rule.positions]
    split = points.space.split
    moduli = sorted(set(split.values()))
    if not moduli:
        return points.least(order)
    # Below the modulus nothing wraps and the set is affine as it is; above it, the modulus is one of
    # finitely many numbers
    low = points.unwrapped()
    best = None if low.is_empty() else low.least(order)

    def rank(pair: dict[str, int]) -> list[tuple[bool, int]]:
        return [(pair[name] < 0, abs(pair[name])) for name in order]

    def limit() -> int:
        if best is None:
            return MAX_MODULUS
        seen = max(abs(best[name]) for name in split if name in best)
        return max(seen, SPLIT_MODULUS) if any(name in rule.parameters for name in split) else seen

    for modulus in moduli:
        number = 0
        while number < limit():
            number += 1
            at = _points(rule, fixed, {modulus: number})
            if not at.space.split and not at.is_empty():
                pair = {**at.least([name for name in order if name != modulus]), modulus: number}
                if best is None or rank(pair) < rank(best):
                    best = pair
    if best is None:
        name = moduli[0]
        raise NoClosedForm(
            f"the rules differ, but the smallest place was looked for only up to {name} = {MAX_MODULUS}; "
            f"give {name} a number, as in {name}={MAX_MODULUS + 6}"
        )
    return best
