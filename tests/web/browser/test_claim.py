"""A claim, typed by a person."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect


def test_a_wrong_claim_is_refuted_and_its_counterexample_drawn(page: Any) -> None:
    page.goto("/#rule?rule=strided")
    panel = page.locator("[data-panel=claim]")
    panel.get_by_label("The count is").fill("n(t + 1)")
    expect(panel.locator(".claim-read .formula")).to_have_attribute("data-latex", "n (t + 1)")
    expect(panel.locator(".claim-verdict")).to_contain_text("at n = 1, t = 1 it gives 2, the count is 1")
    expect(panel.locator(".counterexample rect.attended")).to_have_count(1)
    panel.get_by_role("button", name="show n = 1, t = 1 on the grid").click()
    expect(page.get_by_label("t, number")).to_have_value("1")
    expect(page.locator("[data-panel=draw]")).to_be_in_viewport()
    panel.get_by_label("The count is").fill("(t + 1)(2n - t)/2")
    panel.get_by_label("assuming").fill("t <= n")
    expect(panel.locator(".claim-status.holds")).to_be_visible()


def test_a_letter_of_another_book_is_renamed_by_a_click(page: Any) -> None:
    page.goto("/#rule?rule=causal&claim=L(L%2B1)/2")
    panel = page.locator("[data-panel=claim]")
    panel.get_by_role("button", name="L is n").click()
    expect(panel.locator(".claim-status.holds")).to_be_visible()
    expect(page).to_have_url(re.compile("rename="))
    page.reload()
    expect(panel.locator(".claim-status.holds")).to_be_visible()
    panel.get_by_role("button", name="L is n: take that back").click()
    expect(panel.locator(".claim-letter")).to_be_visible()


def test_a_mistake_is_underlined(page: Any) -> None:
    page.goto("/#rule?rule=causal")
    panel = page.locator("[data-panel=claim]")
    panel.get_by_label("The count is").fill("n(n + 1))/2")
    expect(panel.locator(".wrong")).to_have_text(")")
    panel.get_by_label("The count is").fill("")
    panel.get_by_role("button", name="Θ(n^2)").click()
    expect(panel.locator(".claim-status.holds")).to_be_visible()
