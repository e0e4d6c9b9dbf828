"""The panels of the rule page: claims, the receptive field and the plan."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

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


def link(**state: Any) -> str:
    fields = (
        f"{name}={quote(value if isinstance(value, str) else json.dumps(value))}"
        for name, value in state.items()
    )
    return f"/#rule?{'&'.join(fields)}"


def test_the_layers_follow_the_slider_and_the_link(page: Any) -> None:
    page.goto(link(rule="sliding_window(window=256)", numbers={"n": 8192}, layers=31))
    panel = page.locator("[data-panel=field]")
    expect(panel.locator(".field-rule")).to_have_text("sees k <= q and q - k <= 7905")
    expect(panel.locator(".field-all")).to_have_text("every position sees all before it")
    panel.get_by_role("slider", name="layers").press("ArrowRight")
    expect(panel.locator(".field-rule")).to_have_text("sees k <= q and q - k <= 8160")
    expect(panel.get_by_role("img", name="1,175 of the 2,304 pairs")).to_be_visible()
    expect(page).to_have_url(re.compile("layers=32"))
    page.reload()
    expect(panel.get_by_label("layers, number")).to_have_value("32")


def test_the_map_tells_the_way_from_a_query_to_a_key(page: Any) -> None:
    page.goto(link(rule="k <= q and q - k <= t", numbers={"n": 10, "t": 3}))
    panel = page.locator("[data-panel=field]")
    heat = panel.locator(".heat")
    expect(panel.locator(".field-rule")).to_be_visible()
    expect(page.locator(".rule-facts [aria-busy=true]")).to_have_count(0)  # nothing above it grows any more
    box = heat.bounding_box()
    heat.hover(position={"x": box["width"] * 0.05, "y": box["height"] * 0.95})
    expect(panel.get_by_text("query 9 sees key 0 from layer 3 on: 9 ← 6 ← 3 ← 0")).to_be_visible()
    heat.hover(position={"x": box["width"] * 0.95, "y": box["height"] * 0.05})
    expect(panel.get_by_text("query 0 never sees key 9")).to_be_visible()


def test_the_pixel_of_an_image_moves_by_arrow_keys(page: Any) -> None:
    page.goto(link(rule="neighbourhood", numbers={"rows": 6, "cols": 6, "r": 1}))
    heat = page.locator("[data-panel=field] .heat")
    expect(heat).to_have_attribute("aria-valuetext", "(3, 3), the pixel itself")
    heat.press("ArrowLeft")
    expect(heat).to_have_attribute("aria-valuetext", "(3, 2), the pixel itself")


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
