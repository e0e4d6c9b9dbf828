"""Crossover: the size at which one layer passes another, as a formula and as a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from lattend.cost.amount import Amount
from lattend.cost.comparison.crossing_points import CrossingPoint, Difference, difference
from lattend.cost.comparison.solve import CrossingCase, SignSample, cases_of, sample_at, solve
from lattend.counts.count import Count
from lattend.counts.latex import maths
from lattend.errors import DomainError, LattendError, NoClosedForm, TooLarge
from lattend.report.maths import marked
from lattend.report.shown import Shown
from lattend.rules.language.polynomial import Polynomial

SOLVED, EVALUATED, OPEN = "solved", "evaluated", "open"


@dataclass(frozen=True, eq=False)
class Crossover(Shown):
    """Two layers, and in each case which of them costs more from where on.

    `method` is "solved" (in closed form), "evaluated" (number by number) or "open"; `why` says why.
    """

    first: str
    second: str
    over: str
    cases: tuple[CrossingCase, ...]
    method: str = SOLVED
    where: str = ""
    checked: int = 0
    why: str = ""
    difference: Difference | None = field(default=None, repr=False)

    def at(self, **values: int) -> tuple[CrossingCase, list[Fraction]] | None:
        """The case that holds at numbers for the other symbols, and its places as numbers."""
        if self.difference is None:
            case = self.cases[0] if self.cases else None
            return None if case is None else (case, [x for p in case.places if (x := p.at({})) is not None])
        missing = [name for name in self.difference.names if name not in values]
        if missing:
            raise LattendError(f"give a number for {missing[0]} too")
        known = {name: values[name] for name in self.difference.names}
        places = [place for case in self.cases for place in case.all_places]
        sample = sample_at(self.difference, places, known)
        for case in self.cases:
            if sample is not None and case.holds(sample):
                return case, [x for place in case.places if (x := place.at(known)) is not None]
        return None

    @property
    def sentences(self) -> list[str]:
        """One for each case."""
        if not self.cases:
            return [f"where {self.first} and {self.second} cross is not solved: {self.why}"]
        tail = f" ({EVALUATED_AT})" if self.method == EVALUATED else ""
        return [marked(f"{self._sentence(case)}{tail}", self._formulas(case)) for case in self.cases]

    def _formulas(self, case: CrossingCase) -> list[str]:
        """Those that may stand in its sentence."""
        places = [*case.places, *([case.start] if case.start is not None else [])]
        at = [str(place) for place in places] + [place.next for place in places if place.next is not None]
        return [maths(text) for text in (*(f"{self.over} = {one}" for one in at), case.when.text, self.where)]

    def _sentence(self, case: CrossingCase) -> str:
        text = self._verdict(case)
        when = [part for part in (case.when.text, self.where) if part]
        if when:
            head, colon, tail = text.partition("; ")
            text = f"{head} when {' and '.join(when)}{colon}{tail}"
        return text

    def _verdict(self, case: CrossingCase) -> str:
        who = {1: self.first, -1: self.second}
        other = {1: self.second, -1: self.first}
        both = f"{self.first} and {self.second}"
        places = [f"{self.over} = {place}" for place in case.places]
        match case.signs:
            case (0,):
                return f"{both} are the same at every {self.over}"
            case (sign,) if case.start is not None:
                after = "beyond" if case.start.next is None else f"from {self.over} = {case.start.next} on"
                same = f"the same at {self.over} = {case.start}"
                return f"{who[sign]} costs more than {other[sign]} {after}; {same}"
            case (sign,):
                return f"{who[sign]} costs more than {other[sign]} at every {self.over}"
            case (0, sign):
                return f"{both} are the same up to {places[0]}; beyond, {who[sign]} costs more"
            case (sign, 0):
                return f"{who[sign]} costs more than {other[sign]} up to {places[0]}; the same from there on"
            case (one, two) if one == two:
                return f"{who[one]} costs more than {other[one]} but at {places[0]}; equal there"
            case (_, sign):
                return f"{who[sign]} passes {other[sign]} at {places[0]}{self._from(case, who[sign])}"
            case _:
                return self._stretches(case, places, who)

    def _from(self, case: CrossingCase, who: str) -> str:
        """From which whole number on, where that can be said."""
        (place,) = case.places
        if place.jump:
            return f"; {who} costs more from there on"
        if place.next is None:
            lead = "equal where that is whole, " if place.names else ""
            return f"; {lead}{who} costs more beyond"
        lead = "equal there, " if place.is_whole else ""
        return f"; {lead}costs more from {self.over} = {place.next} on"

    def _stretches(self, case: CrossingCase, places: list[str], who: Mapping[int, str]) -> str:
        """Three and more: who costs more up to where."""
        names = {**who, 0: "neither"}
        first = f"{names[case.signs[0]]} costs more up to {places[0]}"
        middle = [
            f"{names[sign]} from there to {place}"
            for sign, place in zip(case.signs[1:-1], places[1:], strict=True)
        ]
        sure = [
            text for place, text in zip(case.places, places, strict=True) if place.is_whole and not place.jump
        ]
        tie = f"; equal at {' and '.join(sure)}" if sure else ""
        return ", ".join([first, *middle, f"{names[case.signs[-1]]} beyond"]) + tie

    def json(self) -> dict[str, Any]:
        """The same as plain data; `costs_more` says who does, stretch by stretch, between the places."""
        names = {1: self.first, -1: self.second, 0: None}
        return {
            "first": self.first,
            "second": self.second,
            "over": self.over,
            "method": self.method,
            "where": self.where or None,
            "why": self.why or None,
            "checked": self.checked,
            "cases": [
                {
                    "when": case.when.text or "always",
                    "costs_more": [names[sign] for sign in case.signs],
                    "places": [place.text for place in case.places],
                    "verdict": verdict(case),
                    "sentence": self._sentence(case),
                }
                for case in self.cases
            ],
        }

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    __repr__ = __str__


def verdict(case: CrossingCase) -> str:
    """The fate of the first layer in a word: passes, is passed, always, never, same or several."""
    match case.signs:
        case (0,):
            return "same"
        case (1,):
            return "always"
        case (-1,):
            return "never"
        case (-1 | 0, 1):
            return "passes"
        case (1 | 0, -1):
            return "is passed"
        case _:
            return "several"


def crossover(labels: tuple[str, str], amounts: tuple[Amount, Amount], over: str) -> Crossover:
    """Solved where the difference is made of polynomials, else evaluated where only `over` is open."""
    first, second = labels
    try:
        gap = difference(*amounts, over)
        solution = solve(gap)
        checked = _check(gap, amounts, solution.points, solution.signs)
        return Crossover(first, second, over, solution.cases, SOLVED, gap.where, checked, "", gap)
    except (NoClosedForm, TooLarge) as problem:
        why = str(problem)
    names = {name for amount in amounts for name in amount.names} - {over}
    if names:
        return Crossover(first, second, over, (), OPEN, why=f"{why}; give {', '.join(sorted(names))} numbers")
    case, checked = evaluated(amounts, over)
    return Crossover(first, second, over, (case,), EVALUATED, checked=checked, why=why)


def _check(gap: Difference, amounts: tuple[Amount, Amount], points: Mapping[str, Any], signs: Any) -> int:
    """At how many points the two quantities, evaluated apart, compare as the solved difference says."""
    real = np.ones(len(signs), bool)
    for name, modulus in gap.multiples.items():
        real &= points[name] % points[modulus] == 0
    chosen = {name: values[real] for name, values in points.items()}
    one, other = (numbers(amount, chosen, int(real.sum())) for amount in amounts)
    if not np.array_equal(np.asarray(one > other, int) - np.asarray(one < other, int), signs[real]):
        raise NoClosedForm("the solved difference does not agree with the two formulas")
    return int(real.sum())


DENSE, FAR = 4096, 40  # every number up to the first, then powers of two up to 2^40
EVALUATED_AT = f"evaluated at every number up to {DENSE:,}, and at powers of two beyond"
MOST_RUNS = 12


def numbers(amount: Amount, points: Mapping[str, Any], many: int) -> Any:
    """The amount at arrays of numbers, exactly."""
    counted = amount.count()
    if not isinstance(counted, Count):
        return np.full(many, counted, object)
    return counted.closed.values_at({name: points[name] for name in amount.names}, (many,))


def evaluated(amounts: tuple[Amount, Amount], over: str) -> tuple[CrossingCase, int]:
    """Who costs more from which number on, and at how many numbers that was evaluated."""
    chosen = [*range(DENSE + 1), *(2**power for power in range(DENSE.bit_length(), FAR + 1))]
    counts = [amount.count() for amount in amounts]
    for count in counts:
        if isinstance(count, Count):
            inside = np.broadcast_to(count.closed.domain.holds({over: np.array(chosen, object)}), len(chosen))
            chosen = [number for number, defined in zip(chosen, inside, strict=True) if defined]
    if not chosen:
        raise DomainError(f"there is no {over} at which both are defined")
    sign_at = dict(zip(chosen, _signs(amounts, over, chosen), strict=True))
    for before, after in pairwise(chosen):
        low, high = before, after
        while sign_at[low] != sign_at[high] and high - low > 1:
            middle = (low + high) // 2
            (sign_at[middle],) = _signs(amounts, over, [middle])
            low, high = (middle, high) if sign_at[middle] == sign_at[low] else (low, middle)
    ordered = sorted(sign_at)
    sample = SignSample({}, ordered, [sign_at[number] for number in ordered])
    runs = sample.runs
    ends = {end for _, *both in runs for end in both} if len(runs) <= MOST_RUNS else set[int]()
    places = [
        CrossingPoint(Polynomial.constant(end), jump=jump) for end in sorted(ends) for jump in (False, True)
    ]
    case = next(cases_of(sample, places), None)
    if case is None:
        raise NoClosedForm(f"they change places more than {MOST_RUNS} times as {over} grows")
    return case, len(ordered)


def _signs(amounts: tuple[Amount, Amount], over: str, chosen: list[int]) -> list[int]:
    kind = np.int64 if chosen[-1] < 2**31 else object
    first, second = (numbers(a, {over: np.array(chosen, kind)}, len(chosen)) for a in amounts)
    return [int(a > b) - int(a < b) for a, b in zip(first, second, strict=True)]
