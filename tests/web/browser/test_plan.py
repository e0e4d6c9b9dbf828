"""The plan of a rule, and the map of its tiles, used as a person uses them."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect


def test_a_plan_follows_its_controls(page: Any) -> None:
    page.goto("/#rule?rule=strided(255)")
    panel = page.locator("[data-panel=explain]")
    panel.get_by_role("button", name="n = 65,536").click()
    expect(panel.locator(".plan-bars tr").first).to_contain_text("16,744,576")  # 256*65536 - 255*256/2
    expect(panel.locator(".plan-kernels .chosen")).to_contain_text(re.compile("native|cpu"))
    panel.get_by_role("combobox", name="device").select_option("cuda")
    panel.get_by_role("combobox", name="dtype").select_option("bfloat16")
    expect(panel.locator(".plan-kernels .chosen")).to_contain_text("triton")
    expect(panel.get_by_text("it runs on the CPU, and q is on cuda").first).to_be_visible()
    expect(panel.locator(".facts")).to_contain_text(["on an H200", "in order"])


def test_the_map_of_tiles_is_walked_by_keys_down_to_single_pairs(page: Any) -> None:
    page.goto('/#rule?rule=causal&numbers={"n":1000}&device=cuda')
    tiles = page.locator(".tile-map-canvas")
    words = page.locator(".tile-map-words")
    expect(words).to_contain_text("Queries 0 to 999 from top to bottom")
    tiles.press("ArrowRight")
    expect(words).to_contain_text("queries 0 to 15, keys 16 to 31: 256 pairs run, 0 of them attended")
    for _ in range(7):
        tiles.press("ArrowRight")
    expect(words).to_contain_text("queries 0 to 15, keys 128 to 143: skipped")
    for _ in range(8):
        tiles.press("ArrowLeft")
    expect(words).to_contain_text("256 pairs run, 136 of them attended")
    for _ in range(3):
        tiles.press("Enter")
    expect(page).to_have_url(re.compile("tiles_view="))
    tiles.press("ArrowRight")
    expect(words).to_contain_text("queries 0, keys 1: 1 pairs run, 0 of them attended")
    page.get_by_role("button", name="All", exact=True).click()
    expect(words).to_contain_text("keys 0 to 999")


def test_a_plan_on_an_image_is_the_librarys_picture(page: Any) -> None:
    page.goto("/#rule?rule=neighbourhood(2)")
    expect(page.locator(".plan-picture")).to_be_visible()


def test_a_number_of_heads_that_there_is_not_is_answered_by_a_message(page: Any) -> None:
    page.goto("/#rule?rule=causal")
    plan = page.locator("[data-panel=explain]")
    expect(plan.locator(".answer, .plan-words, dl").first).to_be_visible()
    for typed in ("0", "-3"):
        plan.get_by_label("heads", exact=True).fill(typed)
        expect(plan).to_contain_text("heads: Input should be greater than or equal to 1")
    plan.get_by_label("heads", exact=True).fill("4")
    expect(plan).not_to_contain_text("Input should be")
