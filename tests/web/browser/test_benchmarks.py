"""The benchmarks of the page measure what it does: how long that takes is no test."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # they are scripts: each finds the others beside it
load: Any = importlib.import_module("web_load")
typing: Any = importlib.import_module("web_typing")

DELAY = 0.6  # seconds
DELAYED = f"""(() => {{
    const asking = window.fetch;
    window.fetch = async (...given) => {{
        await new Promise((done) => setTimeout(done, {1000 * DELAY}));
        return asking(...given);
    }};
}})()"""
BROKEN = """(() => {
    const asking = window.fetch;
    window.fetch = async (...given) => {
        const response = await asking(...given);
        if (!window.broken) return response;
        const late = { kind: "no answer", message: "late", field: "", text: "", start: 0, end: 0, fixes: [] };
        const lines = (await response.text()).split("\\n").slice(0, -1).map((line) => JSON.parse(line));
        const changed = lines.map((line) => (line[1] === 200 ? [line[0], 504, late] : line));
        return new Response(changed.map((line) => JSON.stringify(line) + "\\n").join(""));
    };
})()"""


def test_the_load_asks_what_the_page_asks(page: Any, settled: Callable[[Any], None]) -> None:
    page.goto("/")
    expect(page.locator("[data-panel=explain] table").first).to_be_visible(timeout=60_000)  # torch is loaded
    settled(page)
    asked: dict[str, Any] = {}

    def note(request: Any) -> None:
        if request.url.endswith("/api/batch"):
            asked.update({panel: question for panel, _, question in json.loads(request.post_data)})

    page.on("request", note)
    rule = "k <= q and q - k <= 31"
    page.get_by_label(typing.FIELD, exact=True).fill(rule)
    settled(page)
    assert asked == {panel: {"rule": rule, **more} for panel, more in (load.FIRST | load.REST).items()}


def test_a_key_that_is_overtaken_counts_until_a_later_text_is_shown(page: Any, address: str) -> None:
    page.add_init_script(DELAYED)
    rule, gap = "k <= q", 0.1
    keys = typing.typed(typing.watched(page, address), [rule], gap)
    assert [key.text for key in keys] == [rule[:end] for end in range(1, len(rule) + 1)]
    assert [key.overtaken for key in keys] == [True] * 5 + [False]
    for place, key in enumerate(keys):  # nothing is answered sooner, and only the last text is ever shown
        assert key.wait >= DELAY + gap * (len(rule) - 1 - place) - 0.02
        assert key.picture == key.wait
    rows = typing.rows_of(keys)
    assert rows["a rule: key to formula and picture"].startswith("1 times")
    assert rows["not yet a rule: key to message"].startswith("5 times")


def test_a_key_without_an_answer_fails_and_has_no_time(page: Any, address: str) -> None:
    page.add_init_script(BROKEN)
    tab = typing.watched(page, address)
    tab.evaluate("window.broken = true")
    keys = typing.typed(tab, ["k < q"], 0.3)
    assert keys[-1].wait is None and keys[-1].picture is None
    assert typing.rows_of(keys)["failed keys"].startswith("1 ")
