"""One person types rules in a browser: from the keystroke to the formula and the picture on the screen.

    python benchmarks/web_typing.py [--json FILE]

Rules like those of the catalogue are typed key by key into the page, 150 ms apart, in Chromium without a
screen, over the loopback address. Measured in the page: from the input event to the frame in which the
formula that belongs to the text so far is there, and the picture with it. Keys after which the text is no
rule are timed to the message that says so. Also: from the navigation to the first formula, with an empty
cache.
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
# The panels say which text they belong to by being neither busy nor stale; a frame later it is on the screen
WATCH = """() => {
    window.waits = [];
    let begun = null;
    const shown = () => {
        const panels = [...document.querySelectorAll("[data-panel=count], [data-panel=draw]")];
        const wrong = document.querySelector("textarea[aria-invalid=true]");
        return wrong !== null || (panels.length > 0 && panels.every(one => one.ariaBusy !== "true"));
    };
    const look = () => {
        if (begun !== null && performance.now() - begun > 3 && shown()) {
            waits.push(performance.now() - begun);
            begun = null;
        }
        requestAnimationFrame(look);
    };
    document.addEventListener("input", () => { begun = performance.now(); }, true);
    requestAnimationFrame(look);
}"""


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
            tab.goto(f"http://127.0.0.1:{port}/")
            tab.locator("[data-panel=count] .formula").first.wait_for()
            timing = "performance.getEntriesByType('navigation')[0].domInteractive"
            interactive = tab.evaluate(timing)
            first = tab.evaluate("performance.now()")
            tab.evaluate(WATCH)
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
