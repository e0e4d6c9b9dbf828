"""The page of a convolution as attention, used as a person uses it."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect


def test_sliders_move_heads_and_sharpen_them(page: Any) -> None:
    page.goto("/#conv")
    heads = page.locator("[data-panel=conv]")
    expect(heads.get_by_role("heading")).to_have_text("A 3 × 3 convolution as 9 heads")
    expect(heads.locator(".conv-head")).to_have_count(9)
    expect(page.locator("[data-panel=conv_error] dd strong")).to_have_text("3.25e−5")  # nearly equal
    page.get_by_label("Kernel", exact=True).press("ArrowRight")
    expect(heads.get_by_role("heading")).to_have_text("A 4 × 4 convolution as 16 heads")
    page.get_by_label("Sharpness α, number").fill("20")
    page.get_by_label("Sharpness α, number").press("Enter")
    expect(heads.locator("dd strong")).to_have_text("8.24e−9")
    expect(page.locator("[data-panel=conv_error] dd strong")).to_have_text(re.compile("e−9$"))
    page.keyboard.press("Control+z")
    expect(page.get_by_label("Sharpness α, number")).to_have_value("10")
    expect(page).not_to_have_url(re.compile("alpha"))


def test_the_query_moves_by_click_and_by_keys_and_the_link_has_it(page: Any) -> None:
    page.goto("/#conv?size=8")
    query = page.locator("[data-panel=conv] .facts dd").first
    expect(query).to_have_text("(4, 4) of the output, around pixel (4, 4)")
    image = page.get_by_role("slider", name=re.compile("^Query pixel"))
    box = image.bounding_box()
    image.click(position={"x": box["width"] * 1.5 / 10, "y": box["height"] * 2.5 / 10})
    expect(query).to_have_text("(1, 0) of the output, around pixel (1, 0)")
    image.press("ArrowRight")
    image.press("ArrowUp")
    image.press("ArrowUp")  # the edge holds it
    expect(query).to_have_text("(0, 1) of the output, around pixel (0, 1)")
    expect(page).to_have_url(re.compile(r"pixel=0%2C1"))
    page.reload()
    expect(query).to_have_text("(0, 1) of the output, around pixel (0, 1)")


def test_hard_heads_are_the_convolution_at_the_same_price(page: Any) -> None:
    page.goto("/#conv?size=8&stride=2")
    error = page.locator("[data-panel=conv_error] .facts dd").nth(1)
    expect(error).to_have_text(re.compile("nothing at all|e−1[5-9]: rounding"))
    proofs = page.locator("[data-panel=conv_same] li.holds")
    expect(proofs).to_have_count(3)
    page.get_by_label("Kernel, number, or rows by columns").fill("3x")
    expect(page.locator("[data-panel=conv] .problem")).to_contain_text("rows by columns as in 8x12")
    expect(page.locator(".problem-again")).to_have_count(3)
    expect(page.locator(".problem")).to_have_count(1)  # said once
    page.get_by_label("Kernel, number, or rows by columns").fill("1x2")
    expect(page.locator("[data-panel=conv]").get_by_role("heading")).to_have_text(
        "A 1 × 2 convolution as 2 heads"
    )
