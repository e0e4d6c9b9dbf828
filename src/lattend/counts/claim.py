"""Claims: is this the count? Each equation and order is proved, or refuted with a counterexample."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import cast

from lattend.budget import Budget
from lattend.counts.algebra import load
from lattend.counts.count import Count
from lattend.counts.equality import Judged, first_difference, grows, judge_equation, words
from lattend.counts.formula import (
    BigO,
    ClaimSide,
    Formula,
    Sum,
    WrittenClaim,
    substituted,
    value_at,
    walk,
)
from lattend.counts.formula_parser import parse_claim, parse_formula
from lattend.counts.formula_scan import meant
from lattend.counts.orders import judge_order
from lattend.counts.symbolic import ONE, cases
from lattend.counts.verdict import NOWHERE, Counterexample, OrderVerdict, Status, Verdict
from lattend.errors import DeadlineError, DomainError, NoClosedForm, TextError, UnknownName
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Name, Num
from lattend.rules.language.grammar import Source
from lattend.rules.language.parser import parse_assumption
from lattend.sets import Region
from lattend.sets.guard import guarded
from lattend.sets.region import Piece

_WORD = re.compile("[A-Za-z]+")
LAST = Budget(1.0)  # to look for a counterexample among numbers, where no more is known in time
WORST: tuple[Status, ...] = ("fails", "undecided", "holds only where", "holds")


@dataclass(frozen=True, eq=False)
class _Reading:
    """A claim in the names of its count, and how this reading differs from the text.

    One of another count, such as that of all pairs, is worth a word only where it `must_hold`.
    """

    count: Count
    claim: WrittenClaim
    text: str
    how: str = ""
    must_hold: bool = False


def judge(
    count: Count,
    text: str,
    rename: Mapping[str, str] | None = None,
    values: Mapping[str, int] | None = None,
    *,
    exact: bool = False,
) -> Verdict:
    """The verdict on `text` as a formula for `count`.

    `rename` maps its names to the count's, or to formulas of them; `values` are numbers for names the count
    no longer has. Where it must be `exact`, an order of growth fails.
    """
    replacements: dict[str, Formula] = {name: _new_name(count, new) for name, new in (rename or {}).items()}
    replacements |= {name: Num(value) for name, value in (values or {}).items()}
    reading = _read(count, text, replacements)
    order = next((side.text for side in reading.claim.sides if isinstance(side.node, BigO)), "")
    if exact and order:
        return Verdict(one_line(text), "fails", because=_not_exact(order))
    try:
        verdict = guarded(_judge, [reading], budget=count.budget, loading=load)
    except DeadlineError as reason:
        difference = None
        with suppress(DeadlineError):
            difference = guarded(_first_difference, reading, budget=count.budget.stricter(LAST))
        if difference is not None:
            return Verdict(
                one_line(text), "fails", counterexample=difference, readings=reading.claim.readings
            )
        raise DeadlineError(
            f'formula "{one_line(text)}": not decided, {reason}; write it with fewer cases, or assume more'
        ) from None
    others = [] if verdict.holds else list(_other_readings(reading, replacements))
    with suppress(DeadlineError):
        return guarded(_judge, [reading, *others], budget=count.budget) if others else verdict
    return verdict


def judge_number(
    number: int,
    text: str,
    values: Mapping[str, int],
    rename: Mapping[str, str] | None = None,
    assumed: Iterable[str] = (),
    *,
    exact: bool = False,
) -> Verdict:
    """The verdict on `text` as the value of a count at numbers for all its names.

    >>> print(judge_number(28, "n(n + 1)/2", {"n": 7}))
    n(n + 1)/2: holds for n == 7
    """
    for assumption in assumed:
        if not evaluate(parse_assumption(assumption), values, {}):
            values_text = ", ".join(f"{name} = {value}" for name, value in values.items())
            raise DomainError(f"{values_text} contradicts the assumption {assumption}")
    known = {name: Num(value) for name, value in values.items()}
    put = known | {
        name: substituted(cast(Formula, parse_formula(new, values)), known)
        for name, new in (rename or {}).items()
    }
    claim = parse_claim(text, put)
    numbers: list[int | Fraction | None] = [number]
    for side in claim.sides:
        start, end = side.node.span or (0, len(text))
        if isinstance(side.node, BigO):
            if exact:
                return Verdict(one_line(text), "fails", because=_not_exact(side.text))
            message = f"{side.text} says how a count grows, and here every size has a number"
            raise Source("formula", text).error(message, start, end)
        for node, bound in walk(side.node):
            if isinstance(node, Name) and node.name not in {*put, *bound}:
                raise _unknown(node.name, [*values], [], text, *(node.span or (start, end)))
        numbers.append(value_at(substituted(side.node, put), values))
    where = " and ".join(f"{name} == {value}" for name, value in values.items())
    for index, (left, right) in enumerate(pairwise(numbers)):
        if left is None or left != right:
            claimed = None if right is None else Fraction(right)
            counterexample = Counterexample(dict(values), claimed, left, index > 0)
            return Verdict(one_line(text), "fails", counterexample=counterexample, readings=claim.readings)
    return Verdict(one_line(text), "holds", where, readings=claim.readings)


def _not_exact(order: str) -> str:
    return f"{order} says how the count grows, not what it is"


def one_line(text: str) -> str:
    """Returns a text on one line, with semicolons between its rows."""
    return "; ".join(" ".join(row.split()) for row in text.strip().splitlines())


def _first_difference(reading: _Reading) -> Counterexample | None:
    """Small numbers at which a single formula is not the count, where no more is known in time."""
    side, *others = reading.claim.sides
    if others or isinstance(side.node, BigO):
        return None
    return first_difference(reading.count, None, side.node)


def _new_name(count: Count, text: str) -> Formula:
    """Returns the formula that a letter is renamed to: a name of the count, or a formula of its names."""
    formula = parse_formula(text, count.names)
    if isinstance(formula, BigO):
        raise TextError(f'rename: "{text}" is an order of growth, not a name', text, 0, len(text))
    for node, bound in walk(formula):
        if isinstance(node, Name) and node.name not in {*count.names, *bound}:
            start, end = node.span or (0, len(text))
            message = f"this count has no {node.name}; it has {', '.join(count.names)}"
            raise Source("rename", text).error(message, start, end)
    return formula


def _read(
    count: Count, text: str, replacements: Mapping[str, Formula], short: Mapping[str, str] | None = None
) -> _Reading:
    """Returns the claim of a text with its names replaced; `short` are the count's own short names."""
    known = {*count.names, *count.values, *replacements}
    meanings = {name: cast(Formula, parse_formula(meaning, known)) for name, meaning in (short or {}).items()}
    claim = parse_claim(text, known, meanings)
    try:
        named, notes = _named(count, claim, text, known)
    except UnknownName as error:
        printed = _short_names(count) if short is None else {}
        if error.name in printed:
            return _read(count, text, replacements, printed)
        for bracketed in claim.bracketed:  # an index that stands outside of its sum: the bracket was left out
            with suppress(TextError):
                reading = _read(count, bracketed, replacements)
                readings = (f"read as {bracketed}", *reading.claim.readings)
                return replace(reading, claim=replace(reading.claim, readings=readings), text=text)
        raise
    words = {*_WORD.findall(text)}
    notes += [f"{name} read as {meaning}" for name, meaning in (short or {}).items() if name in words]
    put = {**replacements, **{name: Name(new) for name, new in named.items()}}
    sides = [ClaimSide(substituted(side.node, put), side.text) for side in claim.sides]
    notes = [*([f"{claim.name} read as the count"] if claim.name else []), *notes, *claim.readings]
    return _Reading(count, replace(claim, sides=tuple(sides), readings=tuple(notes)), text)


def _short_names(count: Count) -> dict[str, str]:
    """Returns the meaning of the short names in the printed count: N for n // w."""
    _, where = count.format_pieces()
    return dict(part.split(" = ") for part in where.split(", ")) if where else {}


def _other_readings(reading: _Reading, replacements: Mapping[str, Formula]) -> Iterator[_Reading]:
    """Yields other readings of the text: a longer sum, positions from 1, another count of the rule."""
    count = reading.count
    for text in reading.claim.bracketed:
        with suppress(TextError):
            yield replace(_read(count, text, replacements), how="with a bracket")
    used = {
        node.name for side in reading.claim.sides for node, _ in walk(side.node) if isinstance(node, Name)
    }
    if used & {*count.fixed} and count.first == 0:
        with suppress(NoClosedForm):
            other_reading = _read(count.counted_from(1), reading.text, replacements)
            yield replace(other_reading, how="with positions from 1, first=1")
    for other, how in count.related():
        with suppress(TextError):
            other_reading = _read(other, reading.text, replacements)
            yield replace(other_reading, how=f"this is {how}", must_hold=True)


def _named(count: Count, claim: WrittenClaim, text: str, known: set[str]) -> tuple[dict[str, str], list[str]]:
    """Returns replacements for names that the count does not have, with notes; raises if one is unclear.

    A letter alone is the position of what is counted; N_h, which nobody calls anything but heads, is heads.
    """
    spans: dict[str, tuple[int, int]] = {}
    used: set[str] = set()
    indices: set[str] = set()
    for side in claim.sides:
        for node, bound in walk(side.node):
            if isinstance(node, Sum):
                indices.add(node.variable)
            if isinstance(node, Name) and node.name not in bound:
                used.add(node.name)
                if node.name not in known:
                    spans.setdefault(node.name, node.span or (0, len(text)))
    if len(spans) == 1 and len(count.fixed) == 1 and not used & {*count.fixed}:
        (letter,), (position,) = spans, count.fixed
        if len(letter) == 1 and letter.islower() and letter not in indices:
            whose = "query" if position == count.rule.axes[0].query else "key"
            return {letter: position}, [
                f"{letter} read as {position}, the position of the {whose}, from {count.first}"
            ]
    replacements: dict[str, str] = {}
    for name, (start, end) in spans.items():
        options = meant(name, count.names)
        if len(options) != 1 or len(name) == 1:
            raise _unknown(name, count.names, options, text, start, end)
        replacements[name] = options[0]
    return replacements, [f"{name} read as {ours}" for name, ours in replacements.items()]


def _unknown(name: str, known: list[str], options: list[str], text: str, start: int, end: int) -> UnknownName:
    """The error that a name of a formula is none of the count's."""
    hint = f"say what it stands for: rename={{{name!r}: '…'}}"
    if options:
        hint = f"did you mean {' or '.join(options)}? Then rename it: rename={{{name!r}: {options[0]!r}}}"
    message = f"this count has no {name}; it has {', '.join(known) or 'no names'}; {hint}"
    error = Source("formula", text).error(message, start, end)
    return UnknownName(error.message, text, start, end, name, known, options, error.reason)


# Judging


def _judge(readings: list[_Reading]) -> Verdict:
    """Returns the verdict on the first reading, and those on readings that hold in more cases."""
    counts = {id(reading.count): reading.count.with_sizes() for reading in readings}
    first, *others = [replace(reading, count=counts[id(reading.count)]) for reading in readings]
    judged = _judge_claim(first)
    if judged.verdict.holds:
        return judged.verdict
    better: list[tuple[str, Verdict]] = []
    for other in others:
        verdict = _judge_claim(other)
        if other.must_hold:
            is_better = verdict.verdict.holds and not isinstance(verdict.verdict, OrderVerdict)
        else:
            is_better = _is_better(verdict, judged, other.count is first.count)
        if is_better:
            news = tuple(
                reading_text
                for reading_text in verdict.verdict.readings
                if reading_text not in judged.verdict.readings
            )
            better.append((other.how, replace(verdict.verdict, readings=news)))
    return replace(judged.verdict, instead=tuple(better))


def _is_better(new: Judged, old: Judged, comparable: bool) -> bool:
    """Returns whether the new claim holds and the old one does not, or it holds on a larger region."""
    mine, theirs = WORST.index(new.verdict.status), WORST.index(old.verdict.status)
    if mine != theirs or not comparable:
        return mine > max(theirs, WORST.index("undecided"))
    return old.agreed.is_subset(new.agreed) and not new.agreed.is_subset(old.agreed) and mine >= 2


def _judge_claim(reading: _Reading) -> Judged:
    """Returns the verdict on all equations of a claim, which is that on the worst one."""
    count, claim = reading.count, reading.claim
    before = [None, *(side.node for side in claim.sides)]
    texts = [claim.name or "the count", *(side.text for side in claim.sides)]
    links = [
        _judge_link(count, left, side.node, f"{name} = {side.text}")
        for left, name, side in zip(before, texts, claim.sides, strict=False)
    ]
    if len(links) == 1:
        only = links[0]
        verdict = replace(only.verdict, claim=one_line(reading.text), readings=claim.readings)
        return replace(only, verdict=verdict)
    agreed = links[0].agreed
    for link in links[1:]:
        agreed = agreed & link.agreed
    status, where = _worst(count, links, agreed)
    verdicts = tuple(link.verdict for link in links)
    is_order = all(isinstance(verdict, OrderVerdict) for verdict in verdicts)
    kind = OrderVerdict if is_order else Verdict
    verdict = kind(one_line(reading.text), status, where, links=verdicts, readings=claim.readings)
    return Judged(verdict, agreed)


def _worst(count: Count, links: list[Judged], agreed: Region) -> tuple[Status, str]:
    """Returns the joint status of all claimed equations, and where all of them hold."""
    statuses = {link.verdict.status for link in links}
    if "fails" in statuses:
        return "fails", ""
    if "undecided" in statuses:
        return "undecided", ""
    if statuses == {"holds"}:
        return "holds", count.domain_text
    if agreed.is_empty():
        return "fails", NOWHERE
    return "holds only where" if grows(count, agreed) else "fails", words(count, agreed)


def _judge_link(count: Count, left: Formula | BigO | None, right: Formula | BigO, text: str) -> Judged:
    """Returns the verdict on `left = right`; without a left side it is the count."""
    if isinstance(right, BigO):
        domain = count.closed.domain
        try:
            subject = (
                count if left is None else _as_count(count, left.body if isinstance(left, BigO) else left)
            )
            verdict = judge_order(subject, right, text)
        except NoClosedForm as reason:
            verdict = OrderVerdict(text, "undecided", remaining=str(reason))
        return Judged(verdict, domain if verdict.holds else domain - domain)
    if isinstance(left, BigO):
        raise ValueError("a claim has no formula after an order")
    return judge_equation(count, left, right, text)


def _as_count(count: Count, formula: Formula) -> Count:
    """Returns a formula on the count's domain as a count, used for its growth only."""
    parts = cases(formula, count.closed.domain)
    if any(case.below != ONE for case in parts):
        raise NoClosedForm("the growth of a fraction is not decided")
    return replace(
        count,
        closed=replace(count.closed, pieces=[Piece(case.region, case.above) for case in parts], line=None),
    )
