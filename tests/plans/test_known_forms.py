"""Canonical forms that are known without isl, beside those that isl proves; and that isl is not loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.plans.canonical import KNOWN_FORMS, NUMBER, KnownForm, canonical_form, known_form
from lattend.rules.axes import IMAGE, LINE
from lattend.rules.language import expr
from lattend.rules.language.parser import parse
from lattend.sets.canonical import canonical

EXACT = list(KNOWN_FORMS.items())
CATALOGUE = ["full", "causal", "strided(255)", "windowed(16)", "neighbourhood(3)"]


def check(written: expr.Condition, known: KnownForm, number: int) -> None:
    condition = expr.substituted(written, {NUMBER.name: expr.Num(number)})
    found = known_form(condition, known.axes)
    assert found == canonical(condition, known.axes, expr.Truth(True))
    sizes = " and ".join(f"{axis.queries} >= 0" for axis in known.axes)
    assert found == canonical(condition, known.axes, parse(sizes))


@pytest.mark.parametrize(("written", "known"), EXACT, ids=map(expr.text, KNOWN_FORMS))
def test_known_forms_are_those_that_isl_proves(written: expr.Condition, known: KnownForm) -> None:
    for number in (*range(known.least, known.least + 40), 255, 4095, known.most):
        check(written, known, number)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(EXACT), st.data())
def test_known_forms_of_any_number(one: tuple[expr.Condition, KnownForm], data: st.DataObject) -> None:
    check(*one, data.draw(st.integers(one[1].least, one[1].most)))


@pytest.mark.parametrize(
    "text",
    [
        "k <= q and q - k <= 0",
        "q // 1 == k // 1",
        "k <= q and q // 3 == k // 4",
        f"k <= q and q - k <= {(1 << 30) + 1}",
        "k <= q and q - k <= -3",
        "k < q",
        "doc[q] == doc[k]",
    ],
)
def test_others_are_left_to_isl(text: str) -> None:
    assert known_form(parse(text), LINE) is None


def test_forms_belong_to_their_axes() -> None:
    assert known_form(parse("true"), IMAGE) is None
    assert known_form(parse("abs(qy - ky) <= 2 and abs(qx - kx) <= 3"), IMAGE) is None


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "neighbourhood(3)"])
def test_a_rule_with_keys_of_its_own_agrees(name: str) -> None:
    tied, apart = (canonical_form(lt.rule(name).at(n=9, m=m)) for m in (9, 12))
    assert expr.text(tied.condition) == expr.text(apart.condition)


def test_isl_is_not_loaded_for_a_plan_of_the_catalogue() -> None:
    program = (
        "import sys, lattend as lt\n"
        "from lattend.plans.plan import plan\n"
        f"for name in {CATALOGUE!r}:\n"
        "    rule = lt.rule(name)\n"
        "    plan(rule, **({'n': 64} if len(rule.axes) == 1 else {'rows': 8, 'cols': 8}))\n"
        "print('islpy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
