"""Lines changed by hand: right ones hold, wrong ones are refuted with what both sides are."""

from __future__ import annotations

import pytest

from lattend.errors import DomainError
from lattend.study.derivations.draft import HOMES, draft, tried


@pytest.mark.parametrize("name", HOMES)
def test_every_line_of_every_derivation_holds(name: str) -> None:
    assert {line.verdict for line in tried(draft(name)())} == {"holds"}


def test_a_line_said_otherwise_holds() -> None:
    lines = tried(draft("causal")(), {6: "(n^2 + n)/2"})
    assert lines[5].verdict == "holds"
    assert lines[5].line is not None
    assert lines[5].line.formula == "= (n² + n)/2"


def test_a_wrong_line_refutes_itself_and_the_next() -> None:
    lines = tried(draft("elbo")(), {2: "sum(q(z|x) log(p(x,z)), z)"})
    assert [line.verdict for line in lines] == ["holds", "refuted", "refuted", "holds", "holds", "holds"]
    assert "the left side is log(60/91)" in lines[1].said


def test_an_inequality_the_wrong_way_is_refuted() -> None:
    bound = "sum(q(z|x) log(p(x,z)/q(z|x)), z)"
    lines = tried(draft("elbo")(), {5: f"{bound} + 1"})
    assert lines[4].verdict == "refuted"
    assert tried(draft("elbo")(), {5: f"{bound} - 1"})[4].verdict == "holds"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("((", "not expected here"),
        ("sum(x)", "sum runs over an index"),
        ("💥", "is not part of a formula"),
    ],
)
def test_a_text_that_is_no_formula_is_not_read(text: str, said: str) -> None:
    line = tried(draft("elbo")(), {1: text})[0]
    assert (line.verdict, line.line) == ("unread", None)
    assert said in line.said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("w", "w has no value here"),
        ("9^9^9^9", "a power of at most 1,000"),
        ("sum(1, i, 1, 10^9)", "a sum of 1,000,000,000 terms is too long"),
        ("softmax(x)", "has no value of the kind"),
    ],
)
def test_a_formula_without_a_value_is_refuted(text: str, said: str) -> None:
    line = tried(draft("elbo")(), {1: text})[0]
    assert line.verdict == "refuted"
    assert said in line.said


def test_a_growth_rate_is_no_number_of_pairs() -> None:
    assert tried(draft("causal")(), {6: "O(n^2)"})[5].said == "O(n^2) is a growth rate, not a number of pairs"


def test_a_line_that_there_is_not_is_named() -> None:
    with pytest.raises(DomainError, match="causal has lines 1 to 6, and no 7"):
        tried(draft("causal")(), {7: "n"})
