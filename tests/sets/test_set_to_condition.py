"""Bounds of isl as conditions: they say the same of every position."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.linear import Linear, Quotient
from lattend.sets.bound import Bound, any_clause_holds
from lattend.sets.set_to_condition import remainder_conditions


@st.composite
def bounds_on_remainders(draw: st.DrawFn) -> Bound:
    by, factor = draw(st.sampled_from([2, 3, 5, 8, 12])), draw(st.sampled_from([1, -1, 2, -3]))
    of = Linear.of([("q", draw(st.integers(-3, 3))), ("k", draw(st.sampled_from([-1, 1])))], draw(SMALL))
    remainder = of.plus(Linear(((Quotient(of, by), by),)), -1)
    return Bound(remainder.times(-factor).plus(Linear((), draw(SMALL))), draw(st.booleans()))


SMALL = st.integers(-20, 20)


@given(st.lists(bounds_on_remainders(), min_size=1, max_size=3))
def test_bounds_on_remainders_are_said_by_their_conditions(bounds: list[Bound]) -> None:
    conditions, others = remainder_conditions(bounds, ("q", "k"))
    assert not others
    for q, k in itertools.product(range(13), repeat=2):
        values = {"q": q, "k": k}
        assert evaluate(expr.all_of(*conditions), values, {}) == any_clause_holds([bounds], values)
