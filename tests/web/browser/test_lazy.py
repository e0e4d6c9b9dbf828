"""A visit fetches the code of the page it opens, and of no other; what is on its way disturbs nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from lattend.web.static import page_files

FIRST = 110_000  # bytes in gzip, which every host sends; a first visit fetches no more


def fetched(page: Any) -> list[str]:
    """The names of the page's own files that a tab asks for from now on."""
    names: list[str] = []
    page.on("request", lambda request: names.append(request.url.partition("?")[0].rpartition("/")[2]))
    return names


def test_a_first_visit_fetches_little(page: Any) -> None:
    names = fetched(page)
    page.goto("/")
    expect(page.locator("[data-panel=count] .formula").first).to_be_visible()
    files = page_files()
    sizes = {name: len(files[name].packed["gzip"]) for name in {*names, "index.html"} if name in files}
    assert {"app.js", "core.js", "rule.js", "app.css"} <= {*sizes}
    assert sum(sizes.values()) < FIRST, sizes
    assert not {"price.js", "chart.js"} & {*sizes}


def test_pointing_at_a_page_fetches_it(page: Any, settled: Callable[[Any], None]) -> None:
    page.goto("/#api")
    settled(page)
    with page.expect_request("**/derive.js"):
        page.get_by_role("link", name="Derivations").hover()
    with page.expect_request("**/work.js"):
        page.get_by_role("link", name="Worked attention").focus()


def test_until_a_page_is_here_the_one_before_stays_and_takes_no_input(page: Any) -> None:
    held: list[Any] = []
    page.route("**/derive.js", lambda route: held.extend([route]))
    page.goto("/#api")
    expect(page.get_by_role("heading", name="Try it")).to_be_visible()
    page.get_by_role("link", name="Derivations").click()
    opened = page.locator("main > [data-page]")
    expect(opened).to_have_attribute("data-page", "api")
    expect(opened).to_have_attribute("aria-busy", "true")
    expect(page.get_by_text("The same answers as JSON")).to_be_visible()
    assert opened.evaluate("one => one.inert")
    held[0].continue_()
    expect(opened).to_have_attribute("data-page", "derive")
    expect(opened).to_have_attribute("aria-busy", "false")


def test_a_page_that_cannot_be_fetched_says_so(browser: Any, address: str) -> None:
    context = browser.new_context(base_url=address)
    page = context.new_page()
    page.route("**/derive.js", lambda route: route.abort())
    page.goto("/#derive")
    expect(page.get_by_role("alert")).to_contain_text("could not be fetched")
    page.unroute("**/derive.js")
    page.get_by_role("button", name="Fetch it again").click()
    expect(page.locator("[data-panel=derive]").first).to_be_visible()
    context.close()


def test_charts_load_in_a_browser_whose_language_has_no_tag(
    page: Any, settled: Callable[[Any], None]
) -> None:
    page.add_init_script("Object.defineProperty(navigator, 'language', {value: 'en-US@posix'})")
    page.goto("/#price")
    settled(page)
    expect(page.locator(".uplot").first).to_be_visible()
