"""Every example in the exported site answers, from a subfolder of a plain file server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from web.page_texts import link_to

from lattend.ask.question import questions
from lattend.web.panels.start import Example, examples

MANY = len(questions())
ALL_QUESTIONS = f"{MANY} of {MANY}"
ELSEWHERE = "this site has the answers to its examples only"


class Quiet(SimpleHTTPRequestHandler):
    """Says nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address_of_site(site: Path) -> Iterator[str]:
    """The address of the site, in a folder of a folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site.parents[1]))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{site.parent.name}/{site.name}/"
        server.shutdown()


@pytest.fixture
def visitor(browser: Any, address_of_site: str) -> Iterator[Any]:
    """A tab whose every mishap fails the test."""
    context = browser.new_context(base_url=address_of_site)
    tab = context.new_page()
    wrong: list[str] = []
    asked: list[str] = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    tab.on("requestfailed", lambda request: wrong.append(request.url))
    tab.on("request", lambda request: asked.append(request.url))
    yield tab
    context.close()
    assert not wrong
    assert all(url.startswith(address_of_site) for url in asked)


def begins() -> list[Example]:
    static = Path(__file__).parents[3] / "src" / "lattend" / "web" / "static" / "pages.json"
    pages = json.loads(static.read_text()) if static.exists() else []
    return [Example(title=f"page {page['name']}", page=page["name"], state={}) for page in pages]


def test_every_page_and_every_example_answers(visitor: Any, settled: Callable[[Any], None]) -> None:
    visitor.goto("")
    for example in (*begins(), *examples()):
        visitor.goto(link_to(example.page, **example.state))
        settled(visitor)
        assert ELSEWHERE not in visitor.locator("body").inner_text(), example.title


@pytest.mark.parametrize("width", [1600, 360])
def test_a_grid_of_a_million_tokens_is_counted_on_any_screen(visitor: Any, width: int) -> None:
    [million] = [example for example in examples() if example.title.startswith("A million tokens")]
    visitor.set_viewport_size({"width": width, "height": 900})
    visitor.goto(link_to(million.page, **million.state))
    expect(visitor.locator("[data-panel=draw] .grid-how")).to_have_attribute("data-exact", "true")
    expect(visitor.locator("[data-panel=draw]")).to_contain_text("of 1,000,000,000,000 pairs")


def test_what_is_typed_there_is_told_where_it_is_answered(visitor: Any) -> None:
    visitor.goto("#rule")
    visitor.get_by_label("Who attends to whom").first.fill("k <= q + 17")
    expect(visitor.get_by_text("lattend serve").first).to_be_visible()


def test_questions_are_found_by_plain_words(visitor: Any) -> None:
    visitor.goto("#rule")
    visitor.get_by_role("button", name="Questions").click()
    dialog = visitor.get_by_role("dialog")
    expect(dialog.get_by_role("status")).to_have_text(ALL_QUESTIONS)
    dialog.get_by_role("searchbox").fill("Sliding  window?")
    expect(dialog.get_by_role("status")).not_to_have_text(ALL_QUESTIONS)
    expect(dialog.locator("section details").first).to_be_visible()
    dialog.get_by_role("searchbox").fill("no such words")
    expect(dialog.get_by_role("status")).to_have_text(f"0 of {MANY}")


def test_a_tile_that_nobody_counted_is_not_waited_for(visitor: Any, settled: Callable[[Any], None]) -> None:
    [million] = [example for example in examples() if example.title.startswith("A million tokens")]
    visitor.goto(link_to(million.page, **million.state))
    settled(visitor)
    visitor.locator("[data-panel=draw] canvas").first.hover(position={"x": 150, "y": 200})
    expect(visitor.locator(".grid-readout")).to_contain_text("not counted here")
