"""The game page, used as a person uses it."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect


def test_dragging_the_start_moves_the_orbit_and_the_link(page: Any) -> None:
    page.goto("/#game")
    start = page.locator("[data-point=start]")
    expect(start).to_have_attribute("aria-valuetext", "1, 1")
    box = start.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y + 40, steps=4)
    page.mouse.up()
    expect(start).not_to_have_attribute("aria-valuetext", "1, 1")
    expect(page).to_have_url(re.compile("start="))
    p = page.get_by_label("p", exact=True).input_value()
    table = page.get_by_role("region", name="Step by step").locator("table")
    expect(table.locator("tbody tr").first).to_contain_text(re.compile(r"\d"))
    assert float(p) > 1


def test_the_start_moves_by_arrow_keys_and_the_period_stays_proved(page: Any) -> None:
    page.goto("/#game")
    start = page.locator("[data-point=start]")
    start.focus()
    page.keyboard.press("ArrowRight")
    expect(start).not_to_have_attribute("aria-valuetext", "1, 1")
    expect(page.get_by_role("region", name="Step by step")).to_contain_text("6, proved")


def test_a_step_with_a_period_is_one_click_away(page: Any) -> None:
    page.goto("/#game")
    page.get_by_role("button", name="period 5").click()
    expect(page.locator("[data-method=alternating]")).to_contain_text("period 5")
    expect(page.get_by_role("region", name="Step by step")).to_contain_text("5, proved")


def test_rules_are_compared(page: Any) -> None:
    page.goto("/#game")
    page.get_by_label("draw simultaneous").check()
    expect(page.locator("[data-method=simultaneous]")).to_contain_text("diverges")
    page.get_by_label("optimistic in detail").check()
    expect(page.locator("[data-method=optimistic]")).to_contain_text("diverges")
    page.get_by_label("step h", exact=True).fill("0.5")
    expect(page.locator("[data-method=optimistic]")).to_contain_text("converges")


def test_a_wrong_formula_says_where_and_the_page_goes_on(page: Any) -> None:
    page.goto("/#game")
    field = page.get_by_label("One player makes this small")
    field.fill("p*q +")
    expect(page.locator(".text-field .problem")).to_contain_text("something is missing")
    field.fill("p*q - q^2")
    expect(page.locator(".text-field .problem")).to_have_count(0)
    expect(page.locator(".game-players")).to_contain_text("max over q")
