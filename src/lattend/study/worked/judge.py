"""Judging an answer: each number against the exact one, and again with the numbers given before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lattend.report.shown import Shown
from lattend.study.worked.answer import (
    DecimalInterval,
    Place,
    StrayNumbers,
    WrittenNumber,
    hull,
    interval,
    read_answer,
)
from lattend.study.worked.build import ORDER, Have, Tables, follow
from lattend.study.worked.entry import CONTEXT, MOST_PLACES, settled
from lattend.study.worked.inputs import Exercise

if TYPE_CHECKING:
    from lattend.study.worked.work import Worked

RIGHT, ROUNDED, FOLLOWS, SLIP = "right", "rounded", "follows", "slip"


@dataclass(frozen=True)
class NumberVerdict:
    """One number of an answer.

    It is right; rounded, where it is off but follows from right numbers as they were rounded; it follows from
    the slips at `roots`; or it is a slip itself. `own` is what the answer's own numbers lead to, `form` the
    exact number as it is written, if it is short.
    """

    place: Place
    written: WrittenNumber
    exact: Decimal
    kind: str
    own: Decimal
    roots: frozenset[Place] = frozenset()
    form: str | None = None


@dataclass(frozen=True, repr=False)
class Judgement(Shown):
    """A verdict on each number; true when there is no slip and no row has too many numbers."""

    verdicts: tuple[NumberVerdict, ...]
    heads: int = 1
    strays: tuple[StrayNumbers, ...] = ()

    def __bool__(self) -> bool:
        return not self.slips and not self.strays

    def of(self, kind: str) -> list[NumberVerdict]:
        """The verdicts of one kind."""
        return [verdict for verdict in self.verdicts if verdict.kind == kind]

    @property
    def slips(self) -> list[NumberVerdict]:
        return self.of(SLIP)

    def terminal(self, width: int | None = None) -> str:
        """A line for each slip, with what follows from it, and how many numbers are right."""
        from lattend.study.worked.judgement_text import judgement_lines

        return "\n".join(judgement_lines(self, width))

    def json(self) -> dict[str, Any]:
        """The judgement as plain data; rows and columns are counted from 1."""
        from lattend.study.worked.judgement_text import judgement_data

        return judgement_data(self)

    def __str__(self) -> str:
        return self.terminal()

    def __repr__(self) -> str:
        from lattend.study.worked.judgement_text import summary

        return f"<Judgement {summary(self)}>"


def judge(worked: Worked, answer: Any, places: int | None = None, nothing: str = "None") -> Judgement:
    """Every number of the answer: right, rounded, following from a slip, or a slip.

    `nothing` is how the answer's language writes that there is no number.
    """
    written, strays = read_answer(worked, answer, places, nothing)
    with localcontext(CONTEXT):
        return Judgement(tuple(_Judge(worked, written).verdicts()), worked.given.heads, strays)


@dataclass
class _Judge:
    """An answer laid over the work.

    A given number stands for all that its writer may have gone on with: the digits written down, or those a
    pocket calculator still held. A number that is off follows if it rounds one of those that the steps make
    of these. Steps are tried from the nearest one back, with every step in between worked out anew: first
    as it is, then with each number that is not handed in rounded to the places of the one that is judged.
    """

    worked: Worked
    written: dict[Place, WrittenNumber]
    found: dict[Place, NumberVerdict] = field(default_factory=dict[Place, NumberVerdict])
    reached: dict[Place, DecimalInterval] = field(
        default_factory=dict[Place, DecimalInterval]
    )  # what a number was compared with
    remembered: dict[tuple[Place, int], frozenset[Place]] = field(default_factory=dict[Any, Any])

    def verdicts(self) -> Iterator[NumberVerdict]:
        for step in range(len(ORDER)):
            for place in sorted(place for place in self.written if place[0] == ORDER[step]):
                self.found[place] = self._verdict(place, step)
                yield self.found[place]

    def _verdict(self, place: Place, step: int) -> NumberVerdict:
        name, head, row, column = place
        written, entry = self.written[place], self.worked.parts[name].tables[head][row][column]
        reached = self.reached[place] = interval(at(self._chain(step - 1), place))
        exact, own = entry.value, settled(reached.value)
        if written.near(exact):
            return NumberVerdict(place, written, exact, RIGHT, own)
        earlier = [last for last in reversed(range(step)) if ORDER[last] in self._given]
        for last, leads_to in self._ways(place, step, earlier):
            if written.near(leads_to):
                self.reached[place] = leads_to
                roots = self._roots(place, last)
                return NumberVerdict(place, written, exact, FOLLOWS if roots else ROUNDED, own, roots)
        return NumberVerdict(place, written, exact, SLIP, own, frozenset({place}), entry.text)

    def _ways(self, place: Place, step: int, earlier: list[int]) -> Iterator[tuple[int, DecimalInterval]]:
        """The values a number may have been worked out from: each given step, then with rounding after it."""
        for last in earlier:
            yield last, interval(at(self._chain(last), place))
        places = self.written[place].places
        if 0 < places <= MOST_PLACES:
            for last in (*earlier, -1):
                yield last, interval(at(self._rounded_chain(last, step, places), place))

    def _rounded_chain(self, last: int, step: int, places: int) -> Have:
        """The chain with numbers between two steps rounded to so many places, where the answer lacks them."""
        have = dict(self._chain(last))
        for name in ORDER[last + 1 : step + 1]:
            have[name] = follow(name, have, self.worked.given)
            if name != ORDER[step] and not (self.worked.given.direct and name in ("q", "k", "v")):
                have[name] = self._with_rounding(name, have[name], places)
        return have

    def _with_rounding(self, name: str, tables: Tables, places: int) -> Tables:
        """The numbers of a step that the answer lacks, as they are and rounded."""
        digits = name in ("exponentials", "sums")  # a small power of e keeps its digits
        return tuple(
            tuple(
                tuple(
                    value
                    if (name, head, row, column) in self.written
                    else interval(value).rounded(places, significant=digits)
                    for column, value in enumerate(values)
                )
                for row, values in enumerate(table)
            )
            for head, table in enumerate(tables)
        )

    @cached_property
    def _given(self) -> set[str]:
        return {name for name, *_ in self.written}

    @cached_property
    def _chains(self) -> dict[int, Have]:
        return {-1: self.worked.have}

    def _chain(self, last: int) -> Have:
        """All steps, as the numbers given up to the step `last` lead to them."""
        if last not in self._chains:
            before = self._chain(last - 1)
            if ORDER[last] not in self._given:
                self._chains[last] = before
            else:
                have: dict[str, Tables] = {name: before[name] for name in ORDER[:last]}
                have[ORDER[last]] = self._overlaid(ORDER[last], before[ORDER[last]])
                for name in ORDER[last + 1 :]:
                    have[name] = follow(name, have, self.worked.given)
                self._chains[last] = have
        return self._chains[last]

    def _overlaid(self, name: str, tables: Tables) -> Tables:
        """A step with what the numbers that the answer gives in it stand for."""
        slipped = {place[:3] for place, verdict in self.found.items() if verdict.kind == SLIP}
        return tuple(
            tuple(
                tuple(
                    self._stands_for((name, head, row, column), (name, head, row) in slipped)
                    if (name, head, row, column) in self.written
                    else value
                    for column, value in enumerate(values)
                )
                for row, values in enumerate(table)
            )
            for head, table in enumerate(tables)
        )

    def _stands_for(self, place: Place, beside: bool) -> DecimalInterval:
        """All that may have been gone on with in place of a given number.

        A slip stands for what rounds to it, as does a right number `beside` one in its row, since both may
        come from a mistake that was not handed in. Others stand for themselves and what they were rounded
        from.
        """
        written, verdict = self.written[place], self.found[place]
        value, low, high = written.value, written.value - written.half, written.value + written.half
        is_integer = written.places == 0
        if verdict.kind == SLIP:
            return interval(value) if is_integer else DecimalInterval(low, value, high)
        reached = self.reached[place]
        kept = (max(low, reached.low), min(high, reached.high))
        own = kept if kept[0] <= kept[1] else ()
        if verdict.kind == RIGHT:
            own = (*own, verdict.exact, *((low, high) if beside and not is_integer else ()))
        return hull(value, *own)

    def _roots(self, place: Place, last: int) -> frozenset[Place]:
        """The slips that a number worked out from the steps up to `last` comes from."""
        key = (place, last)
        if key not in self.remembered:
            causes: set[Place] = set()
            for source in sources(place, self._chain(last), self.worked.given):
                if source in self.found and ORDER.index(source[0]) <= last:
                    causes |= self.found[source].roots
                else:
                    causes |= self._roots(source, last)
            self.remembered[key] = frozenset(causes)
        return self.remembered[key]


def at(have: Have, place: Place) -> Any:
    """The number at a place."""
    name, head, row, column = place
    return have[name][head][row][column]


def sources(place: Place, have: Have, exercise: Exercise) -> Iterator[Place]:
    """The numbers of earlier steps that a number is made of; those multiplied by 0 are none."""
    name, head, row, column = place
    if name == "scores":
        for i, (x, y) in enumerate(zip(have["q"][head][row], have["k"][head][column], strict=True)):
            if y:
                yield "q", head, row, i
            if x:
                yield "k", head, column, i
    elif name == "masked":
        if exercise.mask[head][row][column]:
            yield "scores", head, row, column
    elif name == "exponentials":
        yield "masked", head, row, column
    elif name == "sums":
        yield from (("exponentials", head, row, key) for key in range(len(have["scores"][head][row])))
    elif name == "weights":
        yield "exponentials", head, row, column
        yield "sums", head, row, 0
    elif name == "mixed":
        for key, weight in enumerate(have["weights"][head][row]):
            value = have["v"][head][key][column]
            if value:
                yield "weights", head, row, key
            if weight:
                yield "v", head, key, column
    elif name == "outputs":
        width = len(have["mixed"][0][0])
        for i in range(width * exercise.heads):
            if exercise.wo[i][column] != 0 if exercise.wo is not None else i == column:
                yield "mixed", i // width, row, i % width
