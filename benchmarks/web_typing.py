"""One person types rules in a browser: from the keystroke to the formula and the picture on the screen.

    python benchmarks/web_typing.py [--json FILE]

Rules like those of the catalogue are typed key by key into the page, 150 ms apart, in Chromium without a
screen, over the loopback address. Measured in the page: from the input event until the answers about the
text so far are there (its meaning, from which the picture is drawn, and its formula) and two more frames,
in which they are shown. Of a text that is no rule, its message. A key that the next one overtakes is not
counted. Also: from the navigation to the first formula, with an empty cache.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from web_load import serve

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from web.chromium import chromium

RULES = (
    *("k <= q and q - k <= 7", "k <= q", "q // 4 == k // 4", "abs(q - k) <= t", "k <= q and k >= q - w"),
    *("(q - k) % 3 == 0 and k <= q", "k <= q and (k < 5 or q - k <= 9)", "q // w == k // w and k <= q"),
)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
)
GAP = 150  # ms between keys
# Notes when the answers about a text arrive; two frames later they are on the screen
WATCH = """(() => {
    window.waits = [];
    const answered = new Map();
    const asking = window.fetch;
    window.fetch = async (...given) => {
        const response = await asking(...given);
        if (!String(given[0]).endsWith("api/ask")) return response;
        const asked = JSON.parse(given[1].body);
        void (async () => {
            const reader = response.clone().body.pipeThrough(new TextDecoderStream()).getReader();
            for (let rest = "";;) {
                const { done, value } = await reader.read();
                if (done) return;
                const lines = (rest + value).split("\\n");
                rest = lines.pop();
                for (const [place, status] of lines.map(line => JSON.parse(line)))
                    answered.set(`${asked[place][0]} ${asked[place][2].rule}`, status);
            }
        })();
        return response;
    };
    let text = null, begun = 0;
    const look = () => {
        const read = answered.get(`read ${text}`);
        if (text !== null && read && (read !== 200 || answered.get(`count ${text}`))) {
            const since = begun;
            text = null;
            requestAnimationFrame(() => requestAnimationFrame(() => waits.push(performance.now() - since)));
        }
        requestAnimationFrame(look);
    };
    document.addEventListener("input", (event) => {
        text = event.target.value;
        begun = performance.now();
    }, true);
    requestAnimationFrame(look);
})()"""


def measure() -> dict[str, Any]:
    """The waits in milliseconds."""
    server, port, _ = serve()
    try:
        with sync_playwright() as engine:
            browser = engine.chromium.launch(executable_path=chromium(), args=[*FLAGS])
            warm = browser.new_page()
            warm.goto(f"http://127.0.0.1:{port}/")
            warm.locator("[data-panel=count] .formula").first.wait_for()
            warm.wait_for_timeout(4000)  # until the workers that have torch are there
            tab = browser.new_context().new_page()
            tab.add_init_script(WATCH)
            tab.goto(f"http://127.0.0.1:{port}/")
            tab.locator("[data-panel=count] .formula").first.wait_for()
            timing = "performance.getEntriesByType('navigation')[0].domInteractive"
            interactive = tab.evaluate(timing)
            first = tab.evaluate("performance.now()")
            field = tab.get_by_label("Who attends to whom")
            for rule in RULES:
                field.fill("")
                field.press_sequentially(rule, delay=GAP)
            tab.wait_for_timeout(1000)
            waits: list[float] = tab.evaluate("waits")
            browser.close()
    finally:
        server.terminate()
        server.wait()
    cuts = statistics.quantiles(waits, n=100)
    return {
        "keystrokes": len(waits),
        "key to formula and picture, median": f"{cuts[49]:.0f} ms",
        "key to formula and picture, 95th percentile": f"{cuts[94]:.0f} ms (aim: under 150)",
        "page interactive, cold": f"{interactive:.0f} ms (aim: under 1000)",
        "first formula, cold": f"{first:.0f} ms at most",
    }


def main() -> None:
    """Measure, and print what was found."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    rows = measure()
    for name, value in rows.items():
        print(f"{name:<46} {value}")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
