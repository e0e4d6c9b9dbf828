"""A condition is known by the name it has in the catalogue, whatever its letters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lattend.budget import Budget
from lattend.draw.grid.samples import catalogue
from lattend.errors import DeadlineError
from lattend.rules.reader import rule
from lattend.sets.recognise import known_as

NAMES = [name for name in catalogue() if name != "documents"]


@pytest.mark.parametrize("name", NAMES)
def test_the_condition_of_a_named_rule_is_known(name: str) -> None:
    written = rule(catalogue()[name].text)
    found = known_as(written)
    assert found is not None
    assert found.about.name == name
    assert found.call == str(found) == name


@pytest.mark.parametrize(
    ("text", "known", "call"),
    [
        ("q - k < t and not k > q", "strided with t = t - 1", ""),
        ("k <= q and q - k < 256", "strided with t = 255", "strided(t=255)"),
        ("q // 64 == k // 64 and k <= q", "windowed with w = 64", "windowed(w=64)"),
        ("abs(q - k) <= r", "band with before = r, after = r", ""),
        ("abs(qy - ky) <= 3 and -3 <= qx - kx <= 3", "neighbourhood with r = 3", "neighbourhood(r=3)"),
        ("k <= q and (k < 4 or q - k < 128)", "sinks with s = 4, t = 127", "sinks(s=4, t=127)"),
        ("k <= q and q - k <= 2*t", "strided with t = 2 * t", ""),
        ("k <= q and q - k <= 17*t", "strided with t = 17 * t", ""),
        ("k <= q and q - k <= t + 5", "strided with t = t + 5", ""),
        ("k <= q and q - k < t + 5", "strided with t = t + 4", ""),
        ("k <= q and q - k < t - 1", "strided with t = t - 2", ""),
        ("k <= q and (k < s + 2 or q - k <= 2*t)", "sinks with s = s + 2, t = 2 * t", ""),
        ("q // 64 == k // 64", "chunked with w = 64, t = 0", "chunked(w=64, t=0)"),
        ("k <= q and q - k <= 1000000000000000000", "strided with t = 1000000000000000000", None),
    ],
)
def test_other_letters_and_numbers_are_told(text: str, known: str, call: str | None) -> None:
    found = known_as(rule(text))
    assert str(found) == known
    assert found is not None
    assert call is None or found.call == call
    if call:
        assert rule(text).same_as(rule(call))


@pytest.mark.parametrize(
    "text", ["q + k < n", "k <= q and k % 2 == 0", "q - k <= head", "a*k <= q + b and k % c == d and e < q"]
)
def test_what_has_no_name_is_not_given_one(text: str) -> None:
    assert known_as(rule(text)) is None


def test_what_could_not_be_proved_in_time_is_not_told_as_none() -> None:
    with pytest.raises(DeadlineError):
        known_as(replace(rule("q - k < t and not k > q"), budget=Budget(0)))
