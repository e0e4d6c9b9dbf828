"""The rule explorer's Python: what it takes, holds and answers; tests/web/browser has what it shows."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import lattend as lt
from lattend.errors import DomainError, NamingError, TextError
from lattend.integrations.notebook import explore

HALF: dict[str, Any] = {"n": 0.5}


def asked(widget: Any, panel: str, question: dict[str, Any]) -> list[dict[str, Any]]:
    """What the widget sends when its page asks this."""
    sent: list[dict[str, Any]] = []
    widget.send = sent.append
    widget._answer({"id": 7, "panel": panel, "question": question})
    return sent


def test_a_text_stays_as_it_is_typed() -> None:
    found = explore("k<=q  and q - k <= t", n=8)
    assert (found.rule, found.numbers) == ("k<=q  and q - k <= t", {"n": 8})
    assert found.value == lt.rule("k <= q and q - k <= t").at(n=8)


def test_a_rule_has_its_name_and_its_numbers() -> None:
    found = lt.rules.strided(t=3).explore(n=8)
    assert repr(found) == "RuleExplorer('strided', t=3, n=8)"
    assert found.value.count() == 26  # 1 + 2 + 3 + 5*4
    assert (lt.rules.causal() & lt.rule("k < s")).explore().rule == "k <= q and k < s"


def test_numbers_beyond_what_javascript_holds_travel_as_text() -> None:
    found = explore("k <= q", n=10**30)
    assert found.get_state()["numbers"] == {"n": str(10**30)}
    found.set_state({"numbers": {"n": str(10**31)}})
    assert found.numbers == {"n": 10**31}
    assert found.value.count() == 10**31 * (10**31 + 1) // 2


def test_numbers_of_a_rule_typed_before_are_left_out() -> None:
    found = explore("strided", n=8, t=2)
    found.rule = "causal"
    assert found.value == lt.rules.causal().at(n=8)
    found.rule = "k <"
    with pytest.raises(TextError, match="nothing after it"):
        _ = found.value


def test_where_no_widget_is_shown_the_rule_is() -> None:
    found = explore("causal", n=8)
    data, _ = found._repr_mimebundle_()
    assert data["text/plain"] == "RuleExplorer('causal', n=8)"
    assert "application/vnd.jupyter.widget-view+json" in data and "<svg" in data["text/html"]
    found.rule = "k <"
    data, _ = found._repr_mimebundle_()
    assert "text/html" not in data


def test_questions_are_answered() -> None:
    (found,) = asked(explore(), "count", {"rule": "causal", "numbers": {"n": 8}})
    assert (found["id"], found["status"], found["found"]["value"]) == (7, 200, "36")
    (found,) = asked(explore(), "read", {"rule": "k <"})
    assert found["status"] == 422 and found["found"]["field"] == "rule"
    (found,) = asked(explore(), "read", {"rules": "k"})
    assert found["status"] == 422
    assert asked(explore(), "explain", {"rule": "causal"}) == []  # it asks no others


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: explore("k <"), TextError, "< has nothing after it"),
        (lambda: explore("k <= q", t=3), NamingError, 'rule "k <= q" has no t; it has n'),
        (lambda: explore("k <= q", **HALF), DomainError, "n must be an integer, got 0.5"),
        (
            lambda: lt.rules.documents(lengths=[2, 3]).explore(),
            NamingError,
            "looks up arrays; draw it instead",
        ),
    ],
)
def test_what_it_cannot_show(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_without_anywidget_it_is_said_what_to_install() -> None:
    program = (
        "import sys; sys.modules['anywidget'] = None\nimport lattend as lt\n"
        "try:\n    lt.rule('k <= q').explore()\nexcept lt.errors.ExtraMissing as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("the rule explorer is a widget, made with anywidget and pydantic, an extra")
    assert run.stdout.endswith('pip install "lattend[notebook]"\n')
