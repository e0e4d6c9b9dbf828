"""The pages of the 2-D RNN and of patches, used as a person uses them."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect


def test_the_wavefront_steps_and_plays(page: Any) -> None:
    page.goto("/#grid?size=4x5&step=-1&speed=2")
    cells = page.locator(".grid-cell.now")
    expect(page.locator(".grid-cell")).to_have_count(20)
    expect(cells).to_have_count(0)  # nothing moves by itself
    controls = page.get_by_role("group", name="The wavefront")
    controls.get_by_role("button", name="Step", exact=True).click()
    expect(cells).to_have_count(1)
    controls.get_by_role("slider").press("ArrowRight")
    expect(cells).to_have_text(["1", "1"])
    expect(page.locator(".grid-count")).to_have_text("Step 1: 2 of 20 cells run, 1 are done.")
    expect(page).to_have_url(re.compile("step=1"))
    controls.get_by_role("button", name="Play").click()
    expect(page.locator(".grid-count")).not_to_contain_text("Step 1:")  # by itself
    controls.get_by_role("button", name="Pause").click()
    step = controls.locator(".grid-now").text_content()
    expect(page).to_have_url(re.compile(f"step={step}" if step != "–" else "#grid"))


def test_a_link_may_hold_any_number(page: Any) -> None:
    page.goto("/#grid?size=5&step=-99&speed=-5&pixel=99,99")
    expect(page.locator(".grid-count")).to_have_text("Before the first step.")
    expect(page.locator(".grid-fields figcaption strong").first).to_have_text("25 of 25")
    page.goto("/#conv?alpha=500&head=99")
    expect(page.locator("[data-panel=conv_leak] .chart-box")).to_be_visible()
    page.goto("/#patches?token=1.5")
    expect(page.locator(".patches-told").first).to_contain_text("token 1: position (0, 1)")


def test_what_a_pixel_sees_follows_it(page: Any) -> None:
    page.goto("/#grid?size=6&pixel=2,3")
    seen = page.locator(".grid-fields figcaption strong")
    expect(seen).to_have_text(["12 of 36", "16 of 36", "36 of 36"])
    field = page.get_by_role("slider", name=re.compile("2-D RNN"))
    field.press("ArrowDown")
    field.press("ArrowRight")
    expect(seen).to_have_text(["20 of 36", "23 of 36", "30 of 36"])
    box = field.bounding_box()
    field.click(position={"x": box["width"] / 12, "y": box["height"] / 12})
    expect(seen).to_have_text(["1 of 36", "1 of 36", "16 of 36"])
    page.get_by_label("Directions").select_option("4")
    expect(seen.first).to_have_text("36 of 36")
    expect(page.locator(".grid-sweep")).to_have_count(4)


def test_patches_are_chosen_counted_and_cut(page: Any) -> None:
    page.goto("/#patches")
    count = page.locator(".patches-count")
    expect(count).to_have_text("196 tokens")
    image = page.get_by_role("slider", name=re.compile("^Image in patches"))
    image.press("Home")
    image.press("ArrowDown")
    image.press("ArrowRight")
    expect(image).to_have_attribute("aria-valuetext", re.compile(r"^token 15: position \(1, 1\)"))
    page.get_by_label("Patch, number, or rows by columns").fill("100")
    expect(count).to_have_text("4 tokens")
    expect(page.locator("[data-panel=patches] .facts").first).to_contain_text(
        "24 rows and 24 columns at the end"
    )
    page.get_by_label("Pixels left over").select_option("error")
    expect(page.locator("[data-panel=patches] .problem")).to_contain_text("24 are left over")
    page.keyboard.press("Control+z")
    expect(page.locator("[data-panel=patches] .problem")).to_have_count(0)


def test_scores_of_an_encoding_move_with_the_query(page: Any) -> None:
    page.goto("/#scores?size=7")
    greatest = page.locator("[data-panel=scores] .facts dd").last
    expect(greatest).to_have_text(re.compile(r"at pixel \(4, 5\)$"))  # (3, 3) and the centre (1, 2)
    weights = page.get_by_role("slider", name="Query pixel, and weights of every key")
    weights.press("ArrowUp")
    weights.press("ArrowLeft")
    expect(greatest).to_have_text(re.compile(r"at pixel \(3, 4\)$"))
    page.get_by_label("Centre Δ, down", exact=True).press("ArrowLeft")
    expect(page.locator(".scores-made")).to_contain_text("centre Δ = (0.5, 2)")
    expect(page.locator(".scores-none")).to_contain_text("content to content")  # said, not drawn
    expect(page.locator(".scores-maps figure")).to_have_count(3)
    page.get_by_role("combobox").select_option("relative")
    expect(page.locator(".scores-made")).to_contain_text("contents and weights are random, seed 0")
