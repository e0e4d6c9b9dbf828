"""The page of derivations: a line is changed, refuted, mended and undone."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from lattend.study.derivations.catalogue import listed


def test_a_changed_line_is_refuted_then_holds(page: Any) -> None:
    page.goto("/#derive?derivation=causal")
    choice = page.get_by_role("button", name="quadratic")
    expect(choice.locator("sub")).to_have_text("q,k")  # A_{q,k}, set as a formula
    line = page.locator("[data-line='6']")
    expect(line).to_have_attribute("data-verdict", "holds")
    line.get_by_role("button", name="Change").click()
    field = line.get_by_label("Right side of line 6")
    field.fill("n (n - 1)/2")
    expect(line).to_have_attribute("data-verdict", "refuted")
    expect(line).to_contain_text("the count is")
    field.fill("n (n - ")
    expect(line).to_have_attribute("data-verdict", "unread")
    field.fill("(n^2 + n)/2")
    expect(line).to_have_attribute("data-verdict", "holds")
    expect(page).to_have_url(re.compile("n%5E2"))  # the link follows after a moment
    page.reload()
    expect(line).to_contain_text("changed by you")
    line.get_by_role("button", name="Undo").click()
    expect(line).to_contain_text("n equal terms")


def test_another_derivation_is_one_click_away(page: Any) -> None:
    page.goto("/#derive")
    page.get_by_role("button", name="game").click()
    expect(page.get_by_role("heading", name="One step of the game")).to_be_visible()
    page.get_by_label("step, or h").fill("h")
    expect(page.locator("[data-line='3'] .formula").last).to_have_attribute(
        "data-latex", "= \\displaystyle q + h p"
    )


def test_it_opens_on_attention_with_all_derivations_in_view(page: Any) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto("/#derive")
    expect(page.get_by_role("heading", name="The pairs of causal attention")).to_be_visible()
    names = page.get_by_role("group", name="Derivations").get_by_role("button")
    assert names.count() == len(listed())
    for name in names.all():
        expect(name).to_be_in_viewport(ratio=1)
