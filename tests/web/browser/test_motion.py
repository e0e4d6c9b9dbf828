"""Settings of a screen: one that wants no motion gets none, and one 3840 pixels wide is used well."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

INDEX = Path(__file__).parents[3] / "client" / "src" / "pages" / "index.ts"
PAGES = re.findall(r'from "\./(\w+)/', INDEX.read_text())
MOVING = """document.getAnimations().filter(one => one.playState === "running")
    .map(one => one.effect.target.outerHTML.slice(0, 150))"""
TIMED = """[...document.querySelectorAll("*")]
    .flatMap(one => ["", "::before", "::after"].map(part => [one, getComputedStyle(one, part)]))
    .filter(([, style]) => [style.transitionDuration, style.animationDuration]
        .some(text => text.split(", ").some(time => parseFloat(time) > 0.001)))
    .slice(0, 5).map(([one]) => one.outerHTML.slice(0, 150))"""
# Panels that lie over each other, or reach out of the window
BROKEN = """(() => {
    const panels = [...document.querySelectorAll("main section.panel")]
        .filter(one => !one.parentElement.closest("section.panel"))
        .map(one => ({ name: one.dataset.panel, box: one.getBoundingClientRect() }));
    const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
    const found = [];
    panels.forEach(({ name, box }, place) => {
        if (box.left < 0 || box.right > innerWidth) found.push(`${name} leaves the window`);
        if (box.width < 200) found.push(`${name} is ${box.width} wide`);
        for (const other of panels.slice(place + 1))
            if (over(box, other.box)) found.push(`${name} lies over ${other.name}`);
    });
    return found;
})()"""
SPREAD = """[...document.querySelectorAll("main canvas, main svg, main img")]
    .filter(one => !one.parentElement.closest("svg"))
    .map(one => [one.getBoundingClientRect(), one.closest(".panel, .scroll")?.getBoundingClientRect()])
    .filter(([one, panel]) => panel && one.width > panel.width + 1).length"""


@pytest.fixture
def tab(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A tab with these settings."""
    context = browser.new_context(base_url=address, **request.param)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize(
    "tab", [{"reduced_motion": "reduce", "viewport": {"width": 1280, "height": 900}}], indirect=True
)
def test_nothing_moves_where_no_motion_is_wanted(tab: Any, settled: Callable[[Any], None]) -> None:
    for page in PAGES:
        tab.goto(f"/#{page}")
        settled(tab)
        assert tab.evaluate(MOVING) == [], page
        assert tab.evaluate(TIMED) == [], page
    tab.emulate_media(reduced_motion="no-preference")
    assert tab.evaluate(TIMED) != []  # where motion is welcome there is some


@pytest.mark.parametrize("tab", [{"viewport": {"width": 3840, "height": 2160}}], indirect=True)
def test_a_screen_3840_pixels_wide_breaks_no_page(tab: Any, settled: Callable[[Any], None]) -> None:
    for page in PAGES:
        tab.goto(f"/#{page}")
        settled(tab)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 3840, page
        assert tab.evaluate(BROKEN) == [], page
        assert tab.evaluate(SPREAD) == 0, page


@pytest.mark.parametrize("tab", [{"viewport": {"width": 3840, "height": 2160}}], indirect=True)
def test_letters_grow_with_the_screen_and_a_point_stays_under_the_pointer(tab: Any) -> None:
    tab.goto("/#steer")
    query = tab.get_by_role("slider", name="query", exact=True)
    expect(query).to_be_visible()
    assert tab.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") > 24
    query.hover()
    tab.mouse.down()
    box = tab.locator(".plane").first.bounding_box()
    x, y = box["x"] + 0.6 * box["width"], box["y"] + 0.7 * box["height"]
    tab.mouse.move(x, y, steps=3)
    point = query.locator("path").bounding_box()
    assert abs(point["x"] + point["width"] / 2 - x) < 10 and abs(point["y"] + point["height"] / 2 - y) < 10
    tab.mouse.up()
