"""No question to a count or a cost runs isl outside of its budget: a worker that never answers is asked."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from random_rules import split

import lattend as lt
from lattend.budget import DEFAULT, UNLIMITED, Budget
from lattend.counts import Count, forget
from lattend.errors import DeadlineError, LattendError
from lattend.plans.retention import retention
from lattend.rules import CATALOGUE
from lattend.sets import guard

SOON = Budget(0.2)
LATE = "no answer within 0.2 seconds"
MOST = 2.0  # seconds of this process, however busy the machine is
# It greets, begins and reads, and that is all it does
STUCK = f"import os; os.write(1, {guard.READY + guard.BEGUN!r})\nwhile os.read(0, 1 << 16): pass"


@contextmanager
def stuck() -> Iterator[None]:
    """A worker that answers nothing, and no memory of what it answered before."""
    program, worker = guard.PROGRAM, guard._WORKER  # pyright: ignore[reportPrivateUsage]
    forget()
    guard.PROGRAM = STUCK
    worker.stop()
    try:
        yield
    finally:
        guard.PROGRAM = program
        worker.stop()


def asked(question: Callable[[], Any]) -> str:
    """What comes of a question; the wait for the worker is short, and this process itself does little."""
    begun = time.process_time()
    try:
        found = str(question())
    except DeadlineError as error:
        found = str(error)
    assert time.process_time() - begun < MOST
    return found


def questions(count: Count) -> dict[str, Callable[[], Any]]:
    """What a person asks of a count whose rule has a symbolic modulus w."""
    return {
        "some sizes": lambda: count.at(n=12),
        "modulus": lambda: count.at(w=5),
        "assumption": lambda: count.assuming("w | n"),
        "claim": lambda: count.claim("n*(n + 1)/2"),
        "order": lambda: count.order("n"),
        "text": lambda: count,
        "latex": count.latex,
        "sympy": count.sympy,
        "data": count.json,
    }


def test_every_question_to_a_count_is_asked_within_the_budget() -> None:
    rule = replace(lt.rule("k <= q and q - k <= t and q // w == k // w", where="t >= 0"), budget=SOON)
    count = rule.count(deadline=20)
    assert len(count.pieces) > 1
    assert count.budget == Budget(20)
    with stuck():
        for name, question in questions(replace(count, budget=SOON)).items():
            assert LATE in asked(question), name
        assert LATE in asked(rule.count)
        assert LATE in asked(rule.reach)
        number = rule.mask(n=9, t=2, w=4).sum()
        assert rule.count(n=9, t=2, w=4) == number  # by enumeration, which needs no isl
        assert count.at(n=9, t=2, w=4) == number  # numbers are put in without isl


def modulus_case(text: str) -> None:
    rule = replace(lt.rule(text), budget=SOON)
    try:
        count = replace(rule.count(deadline=5), budget=SOON)
        cost = lt.cost.attention(replace(rule, budget=Budget(5)), projections=None)
    except LattendError:
        assume(False)
        raise
    with stuck():
        for question in questions(count).values():
            asked(question)
        soon = replace(cost, budget=SOON)
        asked(lambda: soon.claim("multiplies", "n*heads*D_hid"))
        asked(lambda: soon.at(n=12).order("adds"))
        asked(lambda: lt.cost.attention(rule, projections=None))


SLOW = settings(max_examples=4, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
MODULUS = given(split())
test_random_rules_keep_to_their_deadline = SLOW(MODULUS(modulus_case))
test_many_random_rules_keep_to_theirs = pytest.mark.long(
    settings(SLOW, max_examples=100)(MODULUS(modulus_case))
)


def test_a_cost_says_what_was_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lattend.cost.summary.REPORT", SOON)
    rule = replace(lt.rule("k <= q and q - k <= t and q - k <= 40", where="t >= 0"), budget=Budget(20))
    cost = lt.cost.attention(rule, projections=None)
    with stuck():
        table = " ".join(str(cost).split())
        assert f"not found: {LATE}" in table
        path = f'not found: rule "{rule.text}": its longest path is not known: {LATE}'
        assert f"maximum path length (path) {path}" in table
        with pytest.raises(DeadlineError, match=r"its pairs were not counted: no answer within 0\.2 seconds"):
            lt.cost.attention(replace(rule, budget=SOON), projections=None)
        with pytest.raises(
            DeadlineError, match=r"its longest path is not known: no answer within 0\.2 seconds"
        ):
            _ = replace(cost, budget=SOON).path


def test_a_cache_says_that_its_set_was_not_found() -> None:
    """Keys may then be kept longer than needed, and that is said; with the set they are not."""
    rule = replace(lt.rule("k <= q and (q - k) % 3 == 0 and (q - k <= 7 or q < 5)"), budget=Budget(20))
    assert retention(rule).inexact == ""
    with stuck():
        late = retention(replace(rule, budget=SOON))
        assert late.inexact == f"its set was not found, {LATE}, so keys may be kept longer than needed"


def test_a_deadline_is_said_with_the_question_and_not_guessed() -> None:
    """The catalogue says that its sets are quick; what is made from its rules says nothing of the kind."""
    assert lt.rules.strided().budget == lt.rules.strided(3).at(n=9).baked().budget == UNLIMITED
    assert all(make().budget == UNLIMITED for make in CATALOGUE.values())
    plain = lt.rule("k <= q and q - k <= t")
    combined = (plain, lt.rules.causal() & lt.rules.strided(), ~lt.rules.causal(), lt.rules.full() | plain)
    assert all(rule.budget == DEFAULT for rule in combined)
    assert (
        replace(lt.rules.strided(), about=None).budget == UNLIMITED
    )  # what is told about a rule decides nothing
    assert replace(plain, about=lt.rules.strided().about).budget == DEFAULT


def test_the_catalogue_and_our_layers_need_no_second_process() -> None:
    with stuck():
        for make, per in itertools.product((lt.rules.strided, lt.rules.windowed), (None, "query")):
            count = make().count(per=per)
            assert "n" in str(count.at(n=12))
            assert not count.claim("n*(n + 1)/2 + 1")
        assert "t when t < n" in str(lt.rules.strided().reach())
        for cost in (lt.cost.attention("strided"), lt.cost.linear(), lt.cost.rnn2d()):
            assert "not found" not in str(cost)


def test_a_long_formula_is_cut_short_and_says_so() -> None:
    count = lt.rules.swin(w=3).count(per="query")
    assert len(count.pieces) > 12
    whole = replace(count, closed=replace(count.closed, line=None))
    *lines, last = str(whole).splitlines()
    assert last == f"… and {len(count.pieces) - 8} more pieces; .pieces has them all"
    assert 8 <= len(lines) <= 17
    assert rf"\text{{{last.replace('…', '...')}}} &" in whole.latex()
    assert whole.latex().isascii()
    assert len(whole.json()["pieces"]) >= len(count.pieces)
