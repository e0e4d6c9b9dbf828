"""The page of worked attention, used as a person uses it."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect


def cell(page: Any, step: str, row: int, column: int) -> Any:
    return page.locator(f"[data-step={step}] [data-at='{row},{column}']")


def test_an_edited_number_changes_every_step(page: Any) -> None:
    page.goto("/#work")
    expect(cell(page, "weights", 0, 1)).to_contain_text("0.5344")
    page.get_by_label("Tokens, token 1, column 1").fill("1/2")
    expect(cell(page, "scores", 0, 0)).to_contain_text("0.2500")
    expect(cell(page, "scores", 0, 0).locator(".formula")).to_have_attribute(
        "data-latex", r"\displaystyle \frac{1}{4}"
    )
    page.get_by_label("Attention mask, as a rule").fill("causal")
    expect(cell(page, "masked", 0, 1)).to_have_text("−∞")
    expect(cell(page, "weights", 0, 1)).to_have_text("0")
    page.get_by_label("scores times").select_option("sqrt")
    expect(page.get_by_text("scores divided by sqrt(2)")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("no scaling")).to_be_visible()


def test_a_number_tells_where_it_comes_from(page: Any) -> None:
    page.goto("/#work")
    cell(page, "scores", 1, 0).hover()
    line = page.locator(".work-origin")
    expect(line).to_contain_text("Scores, query 2, key 1")
    expect(line.locator(".formula")).to_have_attribute(
        "data-latex", r"\displaystyle 2 \cdot 1 + 0 \cdot 0 = 2"
    )
    expect(page.locator("[data-step=q] .work-source")).to_have_count(2)
    cell(page, "q", 0, 0).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(line).to_contain_text("Queries, query 2, component 2")
    expect(page.locator(".matrix-cells input.work-source")).to_have_count(4)  # a token and a column of W_q


def test_an_answer_is_checked_as_it_is_typed(page: Any) -> None:
    page.goto("/#work")
    page.get_by_label("work it yourself").check()
    right, wrong = (page.get_by_label(f"Row sums, query {query}, sum 1") for query in (1, 2))
    right.fill("13.8256")
    wrong.fill("71")
    page.get_by_label("Weights, query 2, key 1").fill(".1041")
    panel = page.locator("[data-panel=check]")
    expect(panel.get_by_text("3 numbers: 1 right, 1 slip, 1 follows from it")).to_be_visible()
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(right).to_have_class("work-answer right")
    panel.get_by_text("What is wrong, and what is right").click()
    expect(panel.get_by_text("row 2, sum: you have 71, exact 70.3763")).to_be_visible()
    wrong.fill("70.3763")
    expect(panel.get_by_text("3 numbers: 2 right, 1 slip")).to_be_visible()
    expect(page).to_have_url(re.compile("70.3763"))
    page.reload()  # the link carries the answer
    expect(wrong).to_have_value("70.3763")
    panel.get_by_role("button", name="Clear my answer").click()
    expect(wrong).to_have_value("")


def test_matrices_come_and_go_and_mistakes_are_marked(page: Any) -> None:
    page.goto("/#work")
    page.get_by_role("button", name="Leave Value matrix out").click()
    expect(page.get_by_text("without W_v, the identity")).to_be_visible()
    page.get_by_role("button", name="Give value matrix").click()
    expect(page.get_by_label("Value matrix, row 1, column 1")).to_have_value("1")
    page.get_by_role("button", name="Add a row to Tokens").click()
    expect(page.locator("[data-step=outputs] tbody tr")).to_have_count(5)
    wrong = page.get_by_label("Tokens, token 5, column 2")
    wrong.fill("sqrt(")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Query matrix, row 1, column 1").fill("")
    expect(page.locator("[data-panel=work] .problem")).to_be_visible()


def test_a_hostile_link_is_answered_with_words(page: Any) -> None:
    page.goto('/#work?tokens=[[{}],3]&wq={"a":[]}&heads=99&answer={"q":7,"k":[[1]]}&practice=true&rule=((((')
    expect(page.get_by_role("heading", name="Work it yourself")).to_be_visible()
    page.goto("/#work?tokens=[[{}],3]&heads=99")
    page.reload()
    expect(page.locator("[data-panel=work] .problem")).to_be_visible()


def test_work_goes_on_from_queries_keys_and_values(page: Any) -> None:
    page.goto("/#work")
    expect(cell(page, "outputs", 0, 1)).to_contain_text("0.6622")
    page.get_by_label("Q, K and V").check()
    expect(page.locator("[data-step=q]")).to_have_count(0)
    expect(cell(page, "outputs", 0, 1)).to_contain_text("0.6622")
    page.get_by_label("Values, key 2, column 2").fill("10")
    expect(cell(page, "outputs", 0, 1)).not_to_contain_text("0.6622")
    cell(page, "scores", 1, 0).hover()
    expect(page.locator(".matrix-cells input.work-source")).to_have_count(4)  # a query and a key
    page.get_by_label("tokens and matrices").check()
    expect(cell(page, "outputs", 0, 1)).to_contain_text("0.6622")
