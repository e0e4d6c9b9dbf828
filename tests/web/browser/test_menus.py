"""The examples and the questions, as a person meets them."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect


def test_a_first_visit_offers_examples_and_a_later_one_does_not(page: Any) -> None:
    page.goto("/")
    welcome = page.get_by_role("complementary", name="Where to begin")
    expect(welcome.get_by_role("button")).to_have_count(13)  # twelve examples, and close
    welcome.get_by_role("button", name="Causal attention, and a wrong claim").click()
    verdict = page.locator("[data-panel=claim] .claim-verdict")
    expect(verdict).to_contain_text("fails")
    expect(verdict).to_be_in_viewport()
    expect(welcome).to_have_count(0)
    page.goto("/")
    expect(page.locator("[data-panel=count] .formula").first).to_be_visible()
    expect(welcome).to_have_count(0)


def test_what_a_first_visit_offers_goes_when_a_rule_is_typed(page: Any) -> None:
    page.goto("/")
    welcome = page.get_by_role("complementary", name="Where to begin")
    expect(welcome).to_be_visible()
    canvas = page.locator(".grid-place canvas")
    canvas.hover(position={"x": 200, "y": 200})
    readout = page.locator(".grid-readout")
    expect(readout).to_contain_text("Keys of this query")
    expect(readout).to_be_in_viewport(ratio=1)
    page.get_by_label("Who attends to whom").fill("k < q")
    expect(welcome).to_have_count(0)


def test_an_example_is_opened_from_the_menu_and_the_menu_closes(page: Any) -> None:
    page.goto("/#rule")
    page.get_by_text("Examples", exact=True).click()
    page.get_by_role("button", name="Causal attention, and a wrong claim").click()
    expect(page.get_by_label("The count is")).to_have_value("n^2/2")
    expect(page.locator(".menu")).not_to_be_visible()


def test_a_question_is_found_by_another_word_and_opened_on_its_page(page: Any) -> None:
    page.goto("/#rule?rule=full")
    page.get_by_role("button", name="Questions").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("status")).to_have_text("93 of 93")
    dialog.get_by_label("Find questions").fill("autoregressive token i")
    dialog.get_by_text("How many keys does token i consider").click()
    expect(dialog.locator("pre").first).to_contain_text("holds for n >= 0")
    dialog.get_by_role("button", name="Open on the page Rule").first.click()
    expect(dialog).not_to_be_visible()
    panel = page.locator("[data-panel=claim]")
    expect(panel.get_by_label("The count is")).to_have_value("i")
    expect(panel.locator(".claim-status.holds")).to_be_visible()


def test_a_misspelt_word_is_offered_and_escape_closes(page: Any) -> None:
    page.goto("/#rule?rule=full")
    page.get_by_role("button", name="Questions").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Find questions").fill("causl")
    dialog.get_by_role("button", name="causal").click()
    expect(dialog.get_by_label("Find questions")).to_have_value("causal")
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()


def test_enter_opens_the_first_question_found_and_what_is_left_out_is_said(page: Any) -> None:
    page.goto("/#rule?rule=full")
    page.get_by_role("button", name="Questions").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Find questions").fill("vanish")
    page.keyboard.press("Enter")
    expect(dialog.locator("details[open] summary").first).to_be_focused()
    expect(dialog.locator(".questions-answer")).to_have_count(1)
    expect(dialog.locator(".questions-ran")).to_contain_text("... stands for what is left out here")
