"""Hostile links and texts are data: shown as text, never run; the rest of the page goes on."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from web.page_texts import link_to

from lattend.web.panels.start import examples

ROOT = Path(__file__).parents[3]
INDEX = ROOT / "client" / "src" / "pages" / "index.ts"
STATIC = ROOT / "src" / "lattend" / "web" / "static"
PAGES = re.findall(r'from "\./(\w+)/', INDEX.read_text())
VIOLATIONS = """window.violations = [];
addEventListener("securitypolicyviolation", (event) =>
    violations.push(`${location.hash} ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));"""


@pytest.fixture
def watched(page: Any) -> Iterator[Any]:
    """A tab in which nothing may go against the policy, and nobody may call `alert`."""
    page.add_init_script(VIOLATIONS)
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    yield page
    assert page.evaluate("violations") == []


def test_nothing_goes_against_the_policy(watched: Any, settled: Callable[[Any], None]) -> None:
    """On every page and in every example."""
    for path in (*(f"/#{page}" for page in PAGES), *(link_to(one.page, **one.state) for one in examples())):
        watched.goto(path)
        settled(watched)


IMAGE = quote('<img src=x onerror="alert(1)">')
HOSTILE = {
    "markup": f"#rule?rule={IMAGE}&other={IMAGE}&claim={IMAGE}",
    "script": "#rule?rule=%3Cscript%3Ealert(1)%3C/script%3E",
    "prototype": '#rule?__proto__={"polluted":1}&constructor={"prototype":{"polluted":1}}',
    "prototype of numbers": '#rule?rule=causal&numbers={"__proto__":{"polluted":1}}',
    "other kinds": "#rule?rule=causal&numbers=[1,2]&claim={}&first=null&heads=%22x%22",
    "other numbers": '#rule?rule=causal&numbers={"n":{"a":1},"t":[[[[]]]]}',
    "no such page": "#constructor?rule=causal",
    "an address": "#javascript:alert(1)",
    "broken codes": "#rule?rule=%E0%A4%A&numbers=%",
    "controls": "#rule?rule=k%00%1b%5B31m%20%E2%80%AE%3C%3D%20q",
    "half a character": "#rule?rule=%ED%A0%80",
    "TeX": "#rule?rule=causal&claim=" + quote(r"\href{javascript:alert(1)}{n}\htmlData{a=b}{x}"),
    "huge": "#rule?rule=" + "k%20%3C%3D%20q%20or%20" * 20_000,
    "deep": "#rule?rule=" + "(" * 20_000 + "&numbers=" + "[" * 20_000,
    "n = 10^30": '#rule?rule=causal&numbers={"n":"' + "1" + "0" * 30 + '"}',
}


def test_a_hostile_link_is_shown_and_the_page_goes_on(watched: Any, settled: Callable[[Any], None]) -> None:
    watched.goto("/")
    for name, hostile in HOSTILE.items():
        watched.goto("/" + hostile)
        settled(watched)
        assert watched.evaluate("({}).polluted === undefined && [].polluted === undefined"), name
        assert watched.locator("img, main script, iframe, object").count() == 0, name
        watched.goto("/#rule?rule=k%20%3C%3D%20q")
        formula = watched.locator("[data-panel=count] [data-latex]").first
        expect(formula, name).to_have_attribute("data-latex", r"\frac{n(n + 1)}{2}")


STARTS = {page["name"]: page["state"] for page in json.loads((STATIC / "pages.json").read_text())}
JUNK = (
    "null",
    "7",
    '"x"',
    "1e308",
    "-0.5",
    "[]",
    "{}",
    "[1]",
    "[null]",
    "[[1, 2]]",
    "[[null]]",
    '["x"]',
    '[["x"], ["y", "z"]]',
)
JUNK += (
    '{"a": 1}',
    '{"1": 5}',
    '{"1": null, "n": [[]]}',
    '{"1": "x", "a": "y"}',
    '{"queries": [[1]], "scores": [["x"]]}',
)
VIEWS = {  # of pages that can look otherwise than as they begin
    "price": ("view=layer", "view=compare", "view=model", "view=tables"),
    "rule": ("", "other=causal&claim=n", "rule=local2d&runs=true"),
    "work": ("", "practice=true"),
    "derive": ("derivation=game", "derivation=elbo"),
}


@pytest.mark.parametrize("name", PAGES)
def test_no_value_in_a_link_blanks_a_page(watched: Any, settled: Callable[[Any], None], name: str) -> None:
    """Whatever a field holds, the page shows its panels; what is thrown meanwhile fails the test too."""
    start = STARTS[name]
    fields = [field for field, value in start.items() if not isinstance(value, str)]
    for view in VIEWS.get(name, ("",)):
        watched.goto(f"/#{name}?{view}")
        settled(watched)
        for junk in JUNK:
            each = [f"{field}={quote(junk)}" for field in fields]
            several = [one for one in each if isinstance(start[one.split("=")[0]], (list, dict))]
            for fragment in {"&".join(each), *several}:
                watched.goto(f"/#{name}?{view}&{fragment}")
                watched.evaluate("new Promise(requestAnimationFrame)")
                shown = watched.locator("main section.panel").count()
                assert shown and not watched.locator("main .problem.mistake").count(), fragment
        settled(watched)


def test_numbers_that_are_none_are_told_once(watched: Any) -> None:
    watched.goto("/" + HOSTILE["other numbers"])
    told = watched.locator(".problem", has_text="numbers.n: Input should be a valid integer")
    expect(watched.locator("[data-panel=count] .problem-again")).to_be_visible()
    expect(told).to_have_count(1)


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """The address of another site on this machine, which has no policy: an empty page."""

    class Empty(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Elsewhere</title><body></body>")

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        serving.join()


FRAME = """address => new Promise(done => {
    const frame = document.createElement("iframe");
    frame.onload = frame.onerror = () => done();
    frame.src = address;
    document.body.append(frame);
})"""
ASK = """address => fetch(`${address}api/count`, {
    method: "POST", body: '{"rule": "causal"}', headers: {"content-type": "application/json"},
}).then(() => "answered", () => "refused")"""


def test_no_other_site_may_frame_the_page_or_ask_through_it(
    browser: Any, address: str, elsewhere: str
) -> None:
    """A page elsewhere, in the same browser, cannot read answers nor have questions asked."""
    context = browser.new_context()
    tab = context.new_page()
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.goto(elsewhere)
    tab.evaluate(FRAME, elsewhere)
    assert [frame.title() for frame in tab.frames] == ["Elsewhere", "Elsewhere"]  # frames as such are shown
    tab.evaluate(FRAME, address)
    assert any("frame-ancestors 'none'" in text for text in said), said
    assert [frame.locator("#app").count() for frame in tab.frames] == [0, 0, 0]
    assert tab.evaluate(ASK, address) == "refused"
    context.close()
