"""The rule page, used as a person uses it."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect


def test_a_typed_rule_shows_its_formula(page: Any) -> None:
    page.goto("/")
    page.get_by_label("Who attends to whom").fill("k <= q")
    formulas = page.locator("[data-panel=count] .formula")
    expect(formulas).to_have_count(1)
    expect(formulas).to_have_attribute("data-latex", r"\frac{n(n + 1)}{2}")
