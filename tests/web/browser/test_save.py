"""Every panel that shows a picture saves what is seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

LINKS = {
    "rule": "/#rule",
    "claim": "/#rule?rule=causal&claim=n%5E2%2F2",
    "compare": "/#price?view=compare",
    "model": "/#price?view=model",
    **{name: f"/#{name}" for name in ("conv", "grid", "patches", "scores", "steer", "elbo", "game", "heads")},
}
SVG = "{http://www.w3.org/2000/svg}"


def saved(page: Any, panel: Any, form: str) -> Path:
    with page.expect_download() as download:
        panel.locator(".save-seen", has_text=form).click()
    return download.value.path()


@pytest.mark.parametrize("name", LINKS)
def test_what_is_seen_is_saved(page: Any, settled: Callable[[Any], None], name: str) -> None:
    page.goto(LINKS[name])
    expect(page.locator("[data-picture]").first).to_be_visible()
    settled(page)
    panels = page.locator(".panel:has([data-picture])")
    drawn = page.locator("[data-picture] canvas:visible, canvas[data-picture]:visible")
    expect(page.locator(".panel canvas:visible")).to_have_count(drawn.count())
    assert panels.count()
    for place, panel in enumerate(panels.all()):
        text = saved(page, panel, "SVG").read_text("utf-8")
        picture = ElementTree.fromstring(text)
        title = panel.locator("h2").inner_text()
        assert picture.findtext(f"{SVG}title") == title
        assert "var(--" not in text and 'class="' not in text
        ids = set(re.findall(r'\bid="([^"]+)"', text))
        assert set(re.findall(r'(?:href="|url\((?:&quot;)?)#([^"&)]+)', text)) <= ids
        shapes = ("path", "line", "rect", "circle", "image")
        assert sum(len(picture.findall(f".//{SVG}{shape}")) for shape in shapes) > 1  # more than the ground
        if place:  # a PNG is made from the SVG, so one of a page is enough
            continue
        png = saved(page, panel, "PNG").read_bytes()
        width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
        assert (width, height) == (2 * int(picture.attrib["width"]), 2 * int(picture.attrib["height"]))


def test_a_zoomed_grid_is_saved_as_it_is_zoomed(page: Any) -> None:
    page.goto("/#rule")
    grid = page.get_by_role("region", name="Grid", exact=True)
    expect(grid.locator(".grid-seen")).to_be_visible()
    before = saved(page, grid, "SVG").read_text("utf-8")
    grid.get_by_role("button", name="Zoom in").click()
    expect(page).to_have_url(re.compile("view="))
    expect(grid.locator("canvas")).to_have_class("zoomed")
    after = saved(page, grid, "SVG").read_text("utf-8")
    assert re.findall('data:image/png[^"]*', before) != re.findall('data:image/png[^"]*', after)
    assert "attended" in after  # the legend, in words


def test_the_librarys_figure_and_what_is_seen_have_names_of_their_own(
    page: Any, settled: Callable[[Any], None]
) -> None:
    page.goto("/#rule")
    settled(page)
    both = page.get_by_role("region", name="Grid", exact=True).locator(".take")
    for name in ("SVG", "PNG", "View SVG", "View PNG"):
        expect(both.get_by_role("button", name=name, exact=True)).to_be_visible()
    files: list[str] = []
    for name in ("SVG", "View SVG"):
        with page.expect_download() as download:
            both.get_by_role("button", name=name, exact=True).click()
        files.append(download.value.suggested_filename)
    assert files == ["draw.svg", "draw-view.svg"]
    page.goto("/#conv")
    settled(page)
    one = page.get_by_role("region", name="Heads in place of the convolution").locator(".take")
    expect(one.get_by_role("button", name="SVG", exact=True)).to_be_visible()
