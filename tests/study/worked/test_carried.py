"""One slip carried on, from rounded or from full digits: it is told once; and the spans that follow it."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.study.worked.answer import DecimalInterval
from lattend.study.worked.entry import CONTEXT
from lattend.study.worked.work import EXAMPLE

STEPS = ("q", "k", "v", "scores", "exponentials", "sums", "weights", "outputs")


def worked_on(case, places, rounds, slip=None, off=0.0):
    """All steps in floats: a slip added to one number, steps in `rounds` gone on with as they are written."""
    x, wq, wk, wv = (np.array(case[name], float) for name in ("tokens", "wq", "wk", "wv"))
    have: dict[str, np.ndarray] = {}
    recipes = {
        "q": lambda: x @ wq,
        "k": lambda: x @ wk,
        "v": lambda: x @ wv,
        "scores": lambda: case["scale"] * have["q"] @ have["k"].T,
        "exponentials": lambda: np.exp(have["scores"]),
        "sums": lambda: have["exponentials"].sum(1, keepdims=True),
        "weights": lambda: have["exponentials"] / have["sums"],
        "outputs": lambda: have["weights"] @ have["v"],
    }
    written: dict[str, list[list[str]]] = {}
    for name, recipe in recipes.items():
        have[name] = recipe()
        if slip is not None and slip[0] == name:
            have[name][slip[1:]] += off
        written[name] = [[f"{value:.{places}f}" for value in row] for row in have[name]]
        if name in rounds:
            have[name] = np.array(written[name], float)
    return written


def small(rows, columns):
    row = st.lists(st.integers(-1, 2), min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows)


@st.composite
def slips(draw):
    n = draw(st.integers(1, 4))
    case = {
        "tokens": draw(small(n, 2)),
        "scale": 1 / 8,
        **{name: draw(small(2, 2)) for name in ("wq", "wk", "wv")},
    }
    name = draw(st.sampled_from(STEPS))
    columns = {"sums": 1, "scores": n, "exponentials": n, "weights": n}.get(name, 2)
    place = (name, draw(st.integers(0, n - 1)), draw(st.integers(0, columns - 1)))
    handed_in = draw(st.sets(st.sampled_from(STEPS))) | {name}
    rounds = draw(st.sets(st.sampled_from(sorted(handed_in))))
    return (
        case,
        place,
        draw(st.sampled_from([0.25, 0.5, 1.0, 2.0])),
        handed_in,
        rounds,
        draw(st.integers(2, 7)),
    )


@settings(max_examples=150, deadline=None)
@given(slips())
def test_one_slip_is_one_slip(made):
    case, (name, row, column), off, handed_in, rounds, places = made
    answer = worked_on(case, places, rounds, (name, row, column), off)
    result = lt.study.work(**case).check({step: answer[step] for step in handed_in})
    assert [slip.place for slip in result.slips] == [(name, 0, row, column)]


@settings(max_examples=60, deadline=None)
@given(slips())
def test_a_second_slip_far_off_is_its_own(made):
    case, (name, row, column), off, handed_in, rounds, places = made
    answer = worked_on(case, places, rounds, (name, row, column), off)
    outputs = answer["outputs"]
    second = ("outputs", 0, row, 1 - column if name == "outputs" else 0)
    outputs[row][second[3]] = str(Decimal(outputs[row][second[3]]) + 10**6)
    result = lt.study.work(**case).check({step: answer[step] for step in handed_in | {"outputs"}})
    assert {slip.place for slip in result.slips} == {(name, 0, row, column), second}


@settings(max_examples=60, deadline=None)
@given(slips())
def test_nothing_but_rounding_is_no_slip(made):
    case, _, _, handed_in, rounds, places = made
    answer = worked_on(case, places, rounds)
    result = lt.study.work(**case).check({step: answer[step] for step in handed_in})
    assert result and not result.of("follows")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3), st.integers(0, 3), st.floats(0.01, 5), st.integers(2, 6))
def test_a_mistake_that_is_not_handed_in(row, column, off, places):
    """A wrong exponential is seen in weights, and outputs follow; or in outputs, if weights round it off."""
    answer = worked_on({**EXAMPLE, "scale": 1}, places, (), ("exponentials", row, column), off)
    result = lt.study.work(**EXAMPLE).check({name: answer[name] for name in ("weights", "outputs")})
    assert {slip.place[:3] for slip in result.slips} in (set(), {("weights", 0, row)}, {("outputs", 0, row)})


@pytest.mark.parametrize("output", [".7621", ".7622"])  # from the rounded weights, from the full ones
def test_full_digits_of_a_slip(output):
    answer = {
        "weights": [["0.1966", "0.5344", "0.0723", "0.2966"], None, None, None],
        "outputs": [["0", output], None, None, None],
    }
    first, last = lt.study.work(**EXAMPLE).check(answer).terminal(200).splitlines()
    assert first == "row 1, weight 4: you have 0.2966, exact 0.1966; output 2 of row 1 follows from it"
    assert last == "6 numbers: 4 right, 1 slip, 1 follows from it"
    answer["outputs"] = [["0", ".7625"], None, None, None]
    assert len(lt.study.work(**EXAMPLE).check(answer).slips) == 2


ends = st.lists(st.integers(-50, 50).map(lambda n: Decimal(n) / 8), min_size=3, max_size=3).map(sorted)


@settings(max_examples=60, deadline=None)
@given(ends, ends)
def test_spans_hold_every_result(left, right):
    x, y = DecimalInterval(*left), DecimalInterval(*right)
    with localcontext(CONTEXT):
        for a in left:
            assert x.exp().low <= a.exp() <= x.exp().high
            for b in right:
                assert (x + y).low <= a + b <= (x + y).high
                assert (x * y).low <= a * b <= (x * y).high
                assert (b * x).low <= a * b <= (b * x).high
                if min(right) > 0 or max(right) < 0 or (max(right) > 0 and b > 0):
                    assert (x / y).low <= a / b <= (x / y).high
                    assert (a / y).low <= a / b <= (a / y).high
