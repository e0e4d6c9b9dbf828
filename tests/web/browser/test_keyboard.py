"""A whole task by keyboard alone: no pointer touches the page."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

FOCUSED = """(() => {
    const one = document.activeElement;
    const panel = one.closest("[data-panel]");
    return [(one.labels?.[0] ?? one).textContent.trim(), panel ? panel.dataset.panel : ""];
})()"""
MOST = 120  # presses of Tab to what is looked for


def tab_to(page: Any, text: str, *, panel: str = "", key: str = "Tab") -> None:
    """Press Tab until the control of this name has the focus, in this panel."""
    seen: list[str] = []
    for _ in range(MOST):
        page.keyboard.press(key)
        name, where = page.evaluate(FOCUSED)
        if name == text and panel in ("", where):
            return
        seen.append(name)
    raise AssertionError(f"Tab does not reach {text!r}, only {seen}")


def select_all_and_type(page: Any, text: str) -> None:
    page.keyboard.press("Control+a")
    page.keyboard.type(text)


def test_a_rule_is_typed_claimed_copied_and_undone_by_keyboard_alone(page: Any, address: str) -> None:
    origin = address.rstrip("/")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
    page.goto("/#rule?rule=full")
    expect(page.locator("[data-panel=count] .formula").first).to_be_visible()

    tab_to(page, "Who attends to whom")
    select_all_and_type(page, "str")
    option = page.locator(".offered").get_by_role("option").first
    expect(option).to_contain_text("strided")
    page.keyboard.press("Enter")  # takes the completion
    expect(page.get_by_label("Who attends to whom")).to_have_value("strided")
    expect(page.get_by_label("Who attends to whom")).to_be_focused()
    count = page.locator("[data-panel=count] .pieces .formula").first
    expect(count).to_have_attribute("data-latex", r"\frac{(2n - t)(t + 1)}{2}")

    tab_to(page, "The count is", panel="claim")
    page.keyboard.type("n(t + 1)")
    verdict = page.locator("[data-panel=claim] .claim-verdict")
    expect(verdict).to_contain_text("at n = 1, t = 1 it gives 2, the count is 1")

    tab_to(page, "LaTeX", panel="count", key="Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".live")).to_have_text("LaTeX copied")
    assert r"\frac{(2n - t)(t + 1)}{2}" in page.evaluate("navigator.clipboard.readText()")

    tab_to(page, "Examples", key="Shift+Tab")
    page.keyboard.press("Enter")
    tab_to(page, "Causal attention, and a wrong claim")
    page.keyboard.press("Enter")
    expect(page.get_by_label("The count is")).to_have_value("n^2/2")
    expect(count).to_have_attribute("data-latex", r"\frac{n(n + 1)}{2}")

    page.keyboard.press("Control+z")
    expect(page.get_by_label("Who attends to whom")).to_have_value("strided")
    expect(page.get_by_label("The count is")).to_have_value("n(t + 1)")
    expect(count).to_have_attribute("data-latex", r"\frac{(2n - t)(t + 1)}{2}")
    expect(page).to_have_url(re.compile("rule=strided"))


def test_a_mistake_is_mended_and_a_question_opened_by_keyboard_alone(page: Any) -> None:
    page.goto("/#rule?rule=full")
    field = page.get_by_label("Who attends to whom")
    tab_to(page, "Who attends to whom")
    select_all_and_type(page, "j =< i")
    page.keyboard.press("Escape")
    expect(page.locator(".mirror .wrong")).to_have_text("=<")
    tab_to(page, "k <= q")
    page.keyboard.press("Space")
    expect(field).to_have_value("k <= q")

    tab_to(page, "Questions", key="Shift+Tab")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    expect(page.get_by_role("button", name="Questions")).to_be_focused()


def test_the_first_tab_skips_to_the_page(page: Any) -> None:
    for link in ("/", "/#rule?rule=causal", "/#price"):
        page.goto("about:blank")
        page.goto(link)
        expect(page.locator("main .panel").first).to_be_visible()
        page.keyboard.press("Tab")
        expect(page.get_by_text("Skip to the page")).to_be_focused()


def test_a_second_rule_is_typed_at_once(page: Any) -> None:
    page.goto("/#rule?rule=full")
    page.get_by_role("button", name="Compare with a second rule").click()
    expect(page.get_by_label("B: the rule to compare with")).to_be_focused()
    select_all_and_type(page, "causal")
    expect(page.get_by_label("B: the rule to compare with")).to_have_value("causal")
