"""Letters that may be others mistyped."""

from __future__ import annotations

import pytest

import lattend as lt
from lattend.draw.grid.samples import catalogue
from lattend.rules.slips import slips


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("k <= qq", ["k <= q"]),
        ("K <= q", ["k <= q"]),
        ("k <= q and q - k <= N", ["k <= q and q - k <= n"]),
        ("q - k <= window or k < window or k < windw", ["q - k <= window or k < window or k < window"]),
        ("k <= q and q - k <= t", []),
        ("k <= q and q - k <= t and k <= T", []),
        ("k <= q and q // w == k // w", []),
        ("lambda q, k, qq: k <= qq", []),
    ],
)
def test_a_mistyped_letter_is_found(text: str, meant: list[str]) -> None:
    assert [slip.text for slip in slips(lt.rule(text))] == meant


def test_no_rule_of_the_catalogue_has_one() -> None:
    for rule in catalogue().values():
        assert slips(lt.rule(rule.text, data=dict(rule.data))) == []
