"""The verdict is the library's, the counterexample is drawn, an open letter is offered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lattend as lt
from lattend.web.worker import reply

CLAIMS = (
    ("causal", "n(n+1)/2", ""),
    ("causal", "n^2/2", ""),
    ("causal", "N = 1 + 2 + ... + n = n(n+1)/2", ""),
    ("strided", "n(t+1)", ""),
    ("strided", "min(i, t+1)", "query"),
    ("windowed", "n(w+1)/2", ""),
    ("strided", "Theta(n t)", ""),
    ("k <= q or k < p", "n p", "key"),
    ("neighbourhood(1)", "9 rows cols", ""),
)


def ask(**question: Any) -> tuple[int, Any]:
    status, _, body = reply("claim", "", json.dumps(question).encode())
    return status, json.loads(body)


@pytest.mark.parametrize(("rule", "claim", "per"), CLAIMS)
def test_the_verdict_is_the_librarys(rule: str, claim: str, per: str) -> None:
    status, found = ask(rule=rule, claim=claim, per=per)
    assert status == 200
    assert found["verdict"]["sentence"] == str(lt.rule(rule).count(per=per or None).claim(claim))


def test_the_counterexample_is_drawn() -> None:
    _, found = ask(rule="strided", claim="n(t+1)")
    example, grid = found["verdict"]["example"], found["drawing"]
    assert (example["values"], example["claimed"], example["exact"]) == ({"n": 1, "t": 1}, "2", "1")
    assert grid["squares"] == ["1"]
    assert sum(row.count("1") for row in grid["squares"]) == int(example["exact"])


def test_the_counted_query_of_a_counterexample_is_marked() -> None:
    _, found = ask(rule="causal", claim="2q", per="query", first=1)
    grid, example = found["drawing"], found["verdict"]["example"]
    assert grid["squares"][grid["row"]].count("1") == int(example["exact"])


def test_the_counterexample_on_an_image_is_drawn_row_by_row() -> None:
    _, found = ask(rule="neighbourhood(1)", claim="9 rows cols")
    squares = found["drawing"]["squares"]
    assert sum(row.count("1") for row in squares) == int(found["verdict"]["example"]["exact"])


def test_the_counterexample_can_be_saved() -> None:
    question = json.dumps({"rule": "causal", "claim": "n^2"}).encode()
    status, media, body = reply("claim", "svg", question)
    assert (status, media) == (200, "image/svg+xml")
    assert b"the count is" in body
    assert reply("claim", "svg", json.dumps({"rule": "causal", "claim": "n(n+1)/2"}).encode())[0] == 422


def test_an_open_letter_is_offered_and_then_stands_for_what_was_chosen() -> None:
    _, found = ask(rule="causal", claim="L(L+1)/2")
    assert found["verdict"] is None
    assert (found["letter"]["name"], found["letter"]["offers"]) == ("L", ["n"])
    _, found = ask(rule="causal", claim="L(L+1)/2", rename={"L": "n"})
    assert found["verdict"]["status"] == "holds"


def test_assumptions_count() -> None:
    _, found = ask(rule="windowed", claim="n(w+1)/2", assume="w | n")
    assert found["verdict"]["status"] == "holds"


def test_mistakes_are_pointed_at() -> None:
    status, problem = ask(rule="causal", claim="n(n+1")
    assert (status, problem["field"]) == (422, "claim")
    status, problem = ask(rule="causal", claim="n", assume="n >")
    assert (status, problem["field"]) == (422, "assume")


@pytest.mark.parametrize("claim", ["", " ", "(" * 10_000, "n^99999999", "∑" * 500, "n" * 20_000, "\0", "1/0"])
def test_hostile_formulas_are_answered_with_a_message(claim: str) -> None:
    status, found = ask(rule="causal", claim=claim)
    assert (status, found.get("kind")) in ((422, "input"), (200, None))


@given(st.text(alphabet="nt+-*/^()12Θ=.,i ", max_size=12))
def test_no_formula_is_a_mistake_of_ours(claim: str) -> None:
    status, found = ask(rule="strided", claim=claim)
    assert status == 200 or found["kind"] in ("input", "no answer")
