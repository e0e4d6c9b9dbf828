"""A rule typed in another way is not answered anew, and what is shown is what would have been answered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from web.questions import good_questions

from lattend.web.answer_cache import Answers, Meaning, meaning_of, retyped
from lattend.web.panels import PANELS
from lattend.web.pool import Reply
from lattend.web.worker import reply

SAME = (
    ("causal", "not k > q"),
    ("k <= q and q - k <= 3", "q - 4 < k and not (q < k)"),
    ("def mask(b, h, q, kv):\n    return q >= kv", "k <= q"),
)
ASKED: dict[str, dict[str, Any]] = {
    "claim": {"claim": "n^2"},
    "same": {"other": "k < q"},
    "cost": {"layer": "attention"},
    "cost_claim": {"layer": "attention", "claim": "multiplies: O(n^2)"},
    "cost_check": {"layer": "attention"},
}
OF_RULES = [
    name for name, panel in PANELS.items() if "rule" in panel.question.model_fields and not panel.as_typed
]


def meaning(panel: str, **fields: Any) -> Meaning:
    return meaning_of(PANELS[panel], "", PANELS[panel].question.model_validate(fields))


@pytest.mark.parametrize("panel", OF_RULES)
def test_an_answer_is_the_same_however_the_rule_is_typed(panel: str) -> None:
    """Each panel is asked twice; what is kept of the first, retyped, is what the second gives."""
    question = ASKED.get(panel) or good_questions()[panel][0]
    answered = 0
    for first, second in SAME:
        asked = [question | {"rule": text} for text in (first, second)]
        assert meaning(panel, **asked[0]).key == meaning(panel, **asked[1]).key
        (status, _, body), expected = (reply(panel, "", json.dumps(one).encode()) for one in asked)
        if status != 200:
            continue
        answered += 1
        typed = [meaning(panel, **one).typed for one in asked]
        found = retyped(body, typed[0], typed[1])
        assert found is not None and json.loads(found) == json.loads(expected[2])
    assert answered


def test_other_pairs_other_numbers_and_other_letters_are_other_questions() -> None:
    texts = (
        "causal",
        "k < q",
        "strided",
        "strided(2)",
        "strided(3)",
        "k <= q and q - k <= t",
        "k <= ",
        "full",
    )
    texts += ("k <= q and s == s", "ky <= qy", "documents", "k <=")
    assert len({meaning("count", rule=text).key for text in texts}) == len(texts)
    assert meaning("count", rule="causal", numbers={"n": 3}).key != meaning("count", rule="causal").key
    other_order = [{"n": 3, "t": 1}, {"t": 1, "n": 3}]
    assert len({meaning("count", rule="strided", numbers=one).key for one in other_order}) == 1


@pytest.mark.parametrize(
    "text",
    [
        "documents([9999999999999])",
        "causal and documents([9999999999999])",
        "bigbird(n=4000, w=1, t=1, g=1, random=1)",
    ],
)
def test_a_rule_that_would_make_arrays_is_not_read_by_the_server(text: str) -> None:
    assert json.loads(meaning("count", rule=text).key)["rule"] == text


def test_what_shows_the_spelling_is_kept_by_it() -> None:
    assert meaning("read", rule="k <= q").key != meaning("read", rule="q >= k").key
    draw = PANELS["draw"]
    titled = [
        meaning_of(draw, "svg", draw.question.model_validate({"rule": text})) for text in ("k <= q", "q >= k")
    ]
    assert titled[0].key != titled[1].key


def test_rules_in_copies_are_the_ones_typed_now() -> None:
    before, now = {"rule": "causal", "other": "k < q"}, {"rule": "k <= 'q'", "other": "causal"}
    copies = {
        "python": "lt.same('causal', 'k < q', per='causal2')",
        "command": "lattend causally causal 'k < q' --x=causal",
    }
    found = retyped(json.dumps({"copies": copies, "pairs": "causal"}).encode(), before, now)
    assert found is not None and json.loads(found) == {
        "copies": {
            "python": "lt.same(\"k <= 'q'\", 'causal', per='causal2')",
            "command": "lattend causally 'k <= '\"'\"'q'\"'\"'' causal --x=causal",
        },
        "pairs": "causal",
    }
    alike = {"rule": "causal", "other": "causal"}
    assert retyped(b"{}", alike, {"rule": "q >= k", "other": "causal"}) is None


def test_a_kept_answer_is_given_to_another_spelling_and_a_problem_is_not() -> None:
    known = Answers()
    body = json.dumps({"copies": {"python": "'causal'", "command": "causal", "latex": ""}}).encode()
    known.keep("count", "", meaning("count", rule="causal"), Reply(200, "application/json", body))
    found = known.get("count", "", meaning("count", rule="q>=k"))
    assert found is not None and json.loads(found.body)["copies"]["command"] == "'q>=k'"
    known.keep("keys", "", meaning("keys", rule="causal"), Reply(422, "application/json", b"{}"))
    assert known.get("keys", "", meaning("keys", rule="q>=k")) is None
    assert known.get("keys", "", meaning("keys", rule="causal")) is not None
