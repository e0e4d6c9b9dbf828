"""What holds of every page: axe-core finds nothing serious, 360 pixels are enough, Tab reaches all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

ROOT = Path(__file__).parents[3]
AXE = ROOT / "client" / "node_modules" / "axe-core" / "axe.min.js"
# The pages, as the menu has them: pages/index.ts imports each from its folder
PAGES = re.findall(r'from "\./(\w+)/', (ROOT / "client" / "src" / "pages" / "index.ts").read_text())
SERIOUS = ("serious", "critical")
WIDE = """[...document.querySelectorAll("main *")]
    .filter(one => one.getBoundingClientRect().right > 361 && !one.closest(".scroll, .pieces, .formula, svg"))
    .slice(0, 5).map(one => one.outerHTML.slice(0, 150))"""
CONTROLS = """[...document.querySelectorAll("button, input, select, textarea, summary")]
    .filter(one => one.closest("main"))
    .filter(one => one.offsetParent !== null && !one.disabled && one.tabIndex >= 0)
    .filter(one => !one.closest("details:not([open]) > :not(summary)"))
    .map((one, place) => one.dataset.place = String(place))"""


@pytest.fixture
def tab(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A tab with these settings, into which axe-core may be put."""
    settings = {
        "viewport": {"width": 1280, "height": 900},
        "bypass_csp": True,
        **getattr(request, "param", {}),
    }
    context = browser.new_context(base_url=address, **settings)
    yield context.new_page()
    context.close()


def visit(tab: Any, page: str) -> None:
    """The page, once every panel on it has answered."""
    tab.goto(f"/#{page}")
    expect(tab.locator("main section.panel").first).to_be_visible()
    expect(tab.locator("section.panel[aria-busy=true]")).to_have_count(0)


@pytest.mark.parametrize(
    "tab", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True, ids=["light", "dark"]
)
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing_serious(tab: Any, page: str) -> None:
    visit(tab, page)
    if not AXE.exists() and not os.environ.get("CI"):
        pytest.skip("axe-core is not there: run `make browser`")
    tab.add_script_tag(content=AXE.read_text())
    found = tab.evaluate("axe.run().then(found => found.violations)")
    told = [
        f"{one['id']}: {node['html'][:200]}"
        for one in found
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]
    assert not told, "\n".join(told)


@pytest.mark.parametrize("tab", [{"viewport": {"width": 360, "height": 740}}], indirect=True, ids=["360"])
@pytest.mark.parametrize("page", PAGES)
def test_a_narrow_window_scrolls_only_down(tab: Any, page: str) -> None:
    visit(tab, page)
    width = tab.evaluate("document.documentElement.scrollWidth")
    assert width <= 360, tab.evaluate(WIDE)


@pytest.mark.parametrize("page", PAGES)
def test_every_control_has_a_name_and_is_reached_by_tab(page: str, tab: Any) -> None:
    visit(tab, page)
    tab.evaluate("document.activeElement.blur()")
    reached: set[str] = set()
    wanted = tab.evaluate(CONTROLS)
    for _ in range(4 * len(wanted) + 60):
        tab.keyboard.press("Tab")
        place = tab.evaluate("document.activeElement.dataset.place ?? null")
        if place is not None:
            reached.add(place)
        if len(reached) == len(wanted):
            break
    missed = [one for one in wanted if one not in reached]
    html = [
        tab.evaluate(f"document.querySelector('[data-place=\"{one}\"]').outerHTML.slice(0, 200)")
        for one in missed
    ]
    # Of radio buttons one name is one stop
    assert not [one for one in html if 'type="radio"' not in one], html
