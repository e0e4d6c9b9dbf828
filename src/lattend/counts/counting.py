"""count(rule): the closed form of a rule's count, or its number, by the best method."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import isfinite

from lattend.budget import Budget
from lattend.counts.closed import closed_form, forget_lines
from lattend.counts.count import Count
from lattend.counts.tiles import counted_from_data, enumerated, enumerated_per
from lattend.errors import (
    DeadlineError,
    EngineMissing,
    LattendError,
    NamingError,
    NoClosedForm,
    NotAffineError,
    TooLarge,
)
from lattend.rules.language import expr
from lattend.rules.language.linear import with_modulus
from lattend.rules.rule import Rule
from lattend.sets.guard import forget_sets, remembered

METHODS = ("auto", "closed", "enumerate")
QUICK = Budget(0.4)  # for a form that can be found in another way
LONG = 10.0  # seconds, the deadline that is suggested
LONGER = 3  # times the deadline that has passed, where that was long too
SMALL = 1 << 16  # pairs that are counted one by one sooner than a closed form is found


def count(
    rule: Rule,
    /,
    *,
    per: str | None = None,
    first: int = 0,
    method: str = "auto",
    deadline: float | None = None,
    **values: int,
) -> Count | int:
    """The number of attended pairs: an int when every name has a value, a Count before; see Rule.count."""
    if method not in METHODS:
        raise NamingError(f"method is one of {', '.join(METHODS)}, not {method!r}")
    clash = [name for name in ("per", "first", "method", "deadline") if name in rule.free]
    if clash:
        raise NamingError(
            f"the parameter {clash[0]} has the name of an option of count; bind it first: at({clash[0]}=…)"
        )
    budget = rule.budget.or_seconds(deadline)
    fixed = _fixed(rule, per)
    if first and not fixed:
        raise NamingError(f'first={first} is where positions begin: count per="query" or per="key" with it')
    positions = {name: value for name, value in values.items() if name in fixed}
    bound = rule.at(**{name: value for name, value in values.items() if name not in fixed})
    complete = not bound.free and len(positions) == len(fixed)
    if method == "enumerate":
        bound = bound.complete()
        return enumerated_per(bound, _complete(positions, fixed), first) if fixed else enumerated(bound)
    if complete and method == "auto":
        return number_at(bound, fixed, positions, first, budget)
    try:
        counted = closed_count(bound, fixed, budget, first)
        return counted.bound(positions) if positions or complete else counted
    except (NoClosedForm, NotAffineError) as reason:
        raise _with_advice(reason, bound, complete, budget) from None


def number_at(
    rule: Rule, fixed: tuple[str, ...], positions: Mapping[str, int], first: int, budget: Budget
) -> int:
    """Returns the count of a complete rule at these positions of `fixed`; small rules are enumerated."""
    if rule.dense <= SMALL or (fixed and expr.arrays(rule.condition)):
        return enumerated_per(rule, positions, first) if fixed else enumerated(rule)
    if expr.arrays(rule.condition):
        return counted_from_data(rule)
    try:
        return closed_count(rule, fixed, budget, first).number(positions)
    except (NoClosedForm, NotAffineError) as reason:
        try:
            return enumerated_per(rule, positions, first) if fixed else enumerated(rule)
        except TooLarge as size:
            error = TooLarge(f"{size}, and there is no closed form: {reason}")
            raise error.with_reason(f"{size.reason}, and there is no closed form: {reason.reason}") from None


def closed_count(rule: Rule, fixed: tuple[str, ...], budget: Budget, first: int = 0) -> Count:
    """The closed form of the rule with its bound values as numbers."""
    numbers = rule.baked()
    quick = budget if budget.seconds is None else budget.stricter(QUICK)
    if any(name in rule.values for name in rule.moduli):  # as a letter, all its remainders are one case
        with suppress(NoClosedForm, NotAffineError):
            letters = rule.baked(keep=rule.moduli)
            return bind(_closed_count(letters, fixed, quick, first, optional=True), rule)
    lettered = _with_modulus(numbers) if fixed else None
    if lettered is None:
        return bind(_closed_count(numbers, fixed, budget, first), rule)
    plain = None
    with suppress(DeadlineError):
        plain = bind(_closed_count(numbers, fixed, quick, first, optional=True), rule)
        if all(piece.formula.degree() <= 1 for piece in plain.pieces):
            return plain
    with suppress(NoClosedForm):
        return bind(_closed_count(lettered, fixed, budget, first, optional=True), lettered)
    return plain or bind(_closed_count(numbers, fixed, budget, first), rule)


def _closed_count(
    rule: Rule, fixed: tuple[str, ...], budget: Budget, first: int, *, optional: bool = False
) -> Count:
    symbolic = replace(rule, values={})
    closed = remembered(closed_form, symbolic, fixed, first, budget=budget, optional=optional)
    return Count(symbolic, closed, fixed, budget=budget, first=first)


def _with_modulus(rule: Rule) -> Rule | None:
    """Returns the rule with a bound letter in place of the number it divides by.

    Per position that may be simpler: `q // 64 == k // 64` goes through 64 remainders, `q // w == k // w`
    has one case for all of them.
    """
    letters = ("w" + "_" * more for more in itertools.count())
    letter = next(name for name in letters if name not in rule.parameters)
    symbolic = with_modulus(rule.condition, letter)
    if symbolic is None:
        return None
    condition, number = symbolic
    return replace(rule, condition=condition, values={**rule.values, letter: number})


def bind(count: Count, rule: Rule) -> Count:
    """The count with the rule's bound values put in."""
    values = {name: value for name, value in rule.values.items() if name in count.names}
    restricted = count.restricted(values) if len(values) < len(count.names) else count
    return replace(restricted, values=dict(rule.values), rule=rule)


def forget() -> None:
    """Empty the memory of closed forms; for measuring."""
    forget_sets()
    forget_lines()


def _fixed(rule: Rule, per: str | None) -> tuple[str, ...]:
    if per is None:
        return ()
    if per in ("query", "q"):
        return tuple(axis.query for axis in rule.axes)
    if per in ("key", "k"):
        return tuple(axis.key for axis in rule.axes)
    raise NamingError(f'per is "query" or "key", not {per!r}')


def _complete(positions: Mapping[str, int], fixed: tuple[str, ...]) -> dict[str, int]:
    missing = [name for name in fixed if name not in positions]
    if missing:
        raise NamingError(f"enumeration needs a value for {' and '.join(missing)}")
    return dict(positions)


def _with_advice(reason: LattendError, rule: Rule, complete: bool, budget: Budget) -> LattendError:
    """Returns why there is no closed form, with what still works."""
    if isinstance(reason, DeadlineError):
        moduli = [name for name in rule.moduli if name in rule.free]
        letter = next(iter([*moduli, *(name for name in rule.free if name in rule.parameters)]), None)
        names = ", ".join(f"{name}=…" for name in rule.free)
        numbers = "" if complete else "; counting at given numbers still works"
        summary = f"the closed form was not found: {reason.reason}"
        fixes = [f"{letter} a number, as in count({letter}=…)"] if letter else []
        seconds = max(LONG, LONGER * (budget.seconds or 0))
        if isfinite(seconds):
            fixes.append(f"{'' if letter else 'it '}more time: count(deadline={seconds:.0f})")
        fix = f"; give {', or '.join(fixes)}" if fixes else ""
        advice = f"{fix}{numbers}{numbers and f': count({names})'}"
        return DeadlineError(f'rule "{rule.text}": {summary}{advice}').with_reason(f"{summary}{numbers}")
    if isinstance(reason, NotAffineError):
        message = f'{reason.message.rstrip(".")}, or count by enumeration with count(method="enumerate").'
        plain = f"{reason.reason.rstrip('.')}, or give every letter a number."
        return NotAffineError(message, reason.text, reason.start, reason.end, reason=plain)
    if isinstance(reason, EngineMissing):
        return EngineMissing(f"{reason}. Counting at given numbers works without it")
    return reason
