"""The receptive field on the rule page, used as a person uses it."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from playwright.sync_api import expect


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
