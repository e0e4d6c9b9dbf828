"""What holds of every page: axe-core finds nothing serious, 360 pixels are enough, Tab reaches all."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

ROOT = Path(__file__).parents[3]
AXE = ROOT / "client" / "node_modules" / "axe-core" / "axe.min.js"
# The pages, as the menu has them: pages/index.ts imports each from its folder
PAGES = re.findall(r'from "\./(\w+)/', (ROOT / "client" / "src" / "pages" / "index.ts").read_text())
# A list that the arrow keys of the focused field move through (aria-controls) needs no focus of its own
SERIOUS = """axe.run({ elementRef: true }).then(found => found.violations
    .filter(one => ["serious", "critical"].includes(one.impact))
    .flatMap(one => one.nodes
        .filter(node => one.id !== "scrollable-region-focusable"
            || node.element.id !== document.activeElement.getAttribute("aria-controls"))
        .map(node => `${one.id}: ${node.html.slice(0, 200)}`)))"""
# Two frames after the browser has changed its colours
THEME_IS = """theme => new Promise((done, fail) => requestAnimationFrame(() => requestAnimationFrame(() =>
    matchMedia(`(prefers-color-scheme: ${theme})`).matches ? done() : fail(new Error(theme)))))"""
WIDE = """[...document.querySelectorAll("main *")]
    .filter(one => one.getBoundingClientRect().right > 361 && !one.closest(".scroll, .pieces, .formula, svg"))
    .slice(0, 5).map(one => one.outerHTML.slice(0, 150))"""
# What scrolls and is not reached by keys
UNREACHED = """[...document.querySelectorAll("main *")]
    .filter(one => ["auto", "scroll"].includes(getComputedStyle(one).overflowX))
    .filter(one => one.scrollWidth > one.clientWidth + 1 && one.tabIndex < 0)
    .filter(one => !one.querySelector("a, button, input, select, textarea, [tabindex]"))
    .slice(0, 5).map(one => one.outerHTML.slice(0, 150))"""
# Letters that are smaller than 11 pixels on the screen; formulas have their own sizes
SMALL = """[...document.querySelectorAll("main *")]
    .filter(one => one.getClientRects().length && !one.closest("math"))
    .filter(one => [...one.childNodes].some(part => part.nodeType === Node.TEXT_NODE && part.data.trim()))
    .filter(one => {
        const scale = one instanceof SVGElement ? Math.hypot(one.getScreenCTM().a, one.getScreenCTM().b) : 1;
        return parseFloat(getComputedStyle(one).fontSize) * scale < 10.99;
    })
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
    expect(tab.locator(f"main > [data-page={page.partition('?')[0]}]")).to_be_visible()
    expect(tab.locator("main section.panel").first).to_be_visible()
    expect(tab.locator("section.panel[aria-busy=true]")).to_have_count(0)


def serious(tab: Any) -> list[str]:
    """What axe-core finds in the page as it stands, light and dark."""
    if not AXE.exists() and not os.environ.get("CI"):
        pytest.skip("axe-core is not there: run `make browser`")
    if not tab.evaluate("'axe' in window"):
        tab.add_script_tag(content=AXE.read_text())
    found: list[str] = []
    for theme in ("light", "dark"):
        tab.emulate_media(color_scheme=theme)
        tab.evaluate(THEME_IS, theme)
        found += [f"{theme}, {text}" for text in tab.evaluate(SERIOUS)]
    return found


@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing_serious(tab: Any, page: str) -> None:
    visit(tab, page)
    assert not serious(tab)


def with_a_mistake(tab: Any) -> None:
    tab.get_by_label("Who attends to whom").fill("j =< i && i - j < 8")
    expect(tab.locator(".text-field .problem button")).to_be_visible()
    expect(tab.locator("[data-panel=count] .stale").first).to_be_visible()


def with_a_wrong_claim(tab: Any) -> None:
    tab.get_by_label("The count is").fill("n^2")
    expect(tab.locator("[data-panel=claim] .counterexample")).to_be_visible()


def with_completion_open(tab: Any) -> None:
    tab.get_by_label("Who attends to whom").fill("")
    tab.get_by_label("Who attends to whom").press_sequentially("s")
    expect(tab.locator(".offered").get_by_role("option").first).to_be_visible()


def with_two_rules(tab: Any) -> None:
    tab.get_by_role("button", name="Compare with a second rule").click()
    tab.get_by_label("B: the rule to compare with").fill("windowed")
    expect(tab.locator("[data-panel=same]")).to_contain_text("They differ first at")


def with_examples_open(tab: Any) -> None:
    tab.get_by_text("Examples", exact=True).click()
    expect(tab.locator(".menu")).to_be_visible()


def with_questions_open(tab: Any) -> None:
    tab.get_by_role("button", name="Questions").click()
    dialog = tab.get_by_role("dialog")
    expect(dialog.get_by_role("status")).to_contain_text(" of ")
    dialog.locator("summary").first.click()
    expect(dialog.locator("pre").first).to_be_visible()


STATES = (
    with_a_mistake,
    with_a_wrong_claim,
    with_completion_open,
    with_two_rules,
    with_examples_open,
    with_questions_open,
)


@pytest.mark.parametrize("bring_about", STATES)
def test_axe_finds_nothing_serious_in_what_a_person_brings_about(
    tab: Any, bring_about: Callable[[Any], None]
) -> None:
    visit(tab, "rule?rule=strided")
    bring_about(tab)
    expect(tab.locator("section.panel[aria-busy=true]")).to_have_count(0)
    assert not serious(tab)


def test_axe_finds_nothing_serious_in_any_view_of_prices(tab: Any) -> None:
    visit(tab, "price")
    views = tab.get_by_role("group", name="What is priced").get_by_role("button")
    expect(views).to_have_count(4)
    for view in views.all():
        view.click()
        expect(view).to_have_attribute("aria-pressed", "true")
        expect(tab.locator("main section.panel").first).to_be_visible()
        expect(tab.locator("section.panel[aria-busy=true]")).to_have_count(0)
        assert not serious(tab), view.inner_text()


@pytest.mark.parametrize("tab", [{"viewport": {"width": 360, "height": 740}}], indirect=True, ids=["360"])
@pytest.mark.parametrize("page", PAGES)
def test_a_narrow_window_scrolls_only_down_and_is_read(tab: Any, page: str) -> None:
    visit(tab, page)
    width = tab.evaluate("document.documentElement.scrollWidth")
    assert width <= 360, tab.evaluate(WIDE)
    expect(tab.locator("nav [aria-current]")).to_be_in_viewport()  # the menu scrolls
    assert tab.evaluate(SMALL) == []
    assert tab.evaluate(UNREACHED) == []


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
