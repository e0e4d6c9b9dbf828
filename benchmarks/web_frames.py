"""How evenly the grid of the workbench is redrawn while a slider is dragged.

    python benchmarks/web_frames.py

A Chromium without a window and without a GPU moves the slider of t to and fro, a little further in every
frame, and notes when each frame begins. Between two frames of a screen lie 16.7 ms: more is a frame that was
missed. `busy` is how long the page's main thread works for a frame: for all of the page, not the grid alone.
At 10^5 positions cells are sampled while they move, and the server's exact counts follow.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import sync_playwright
from web_server import serving

sys.path.insert(0, str(Path(__file__).parents[1] / "client"))

from chromium import FLAGS, chromium

CASES = {12: 3, 512: 100, 100_000: 20_000}  # n, and t to begin with
RULES = {
    "sliding window": "k <= q and q - k <= t",
    "sinks and dilation": "k <= q and (k < 4 or q - k <= t or (q - k) % 7 == 0)",
}
DRAG = """([slider, seconds]) => new Promise((done) => {
    const frames = [], least = Number(slider.min), most = Number(slider.max);
    const move = (now) => {
        frames.push(now);
        const along = Math.abs((now - frames[0]) / 1000 % 2 - 1);  // to and fro in two seconds
        slider.value = least + (most - least) * along;
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        if (now - frames[0] < 1000 * seconds) requestAnimationFrame(move);
        else done(frames);
    };
    requestAnimationFrame(move);
})"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=4.0)
    seconds = parser.parse_args().seconds
    if chromium() is None:
        print("no Chromium here: frames of the page are not timed")
        return
    with serving("--workers", "2") as server, sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=chromium(), args=[*FLAGS])
        print(f"{'rule':<20}{'n':>9}{'frames':>8}{'median':>10}{'95 %':>10}{'longest':>10}{'busy':>10}")
        for name, rule in RULES.items():
            for n, t in CASES.items():
                state = f"rule={quote(rule)}&numbers={json.dumps({'n': n, 't': t})}"
                times, busy = dragged(browser, f"{server.address}#rule?{state}", seconds)
                ordered = sorted(times)
                shown = (statistics.median(times), ordered[int(0.95 * len(times))], ordered[-1], busy)
                print(f"{name:<20}{n:>9,}{len(times):>8}" + "".join(f"{time:>7.1f} ms" for time in shown))
        browser.close()


def dragged(browser: Any, address: str, seconds: float) -> tuple[list[float], float]:
    """The times between frames while the slider is moved, and the work for one, in milliseconds."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address)
    page.locator("[data-panel=draw] canvas").wait_for()
    page.locator("[data-panel=draw][aria-busy=false]").wait_for()
    slider = page.locator(".sliders input[type=range]").nth(1).element_handle()
    meter = page.context.new_cdp_session(page)
    meter.send("Performance.enable", {"timeDomain": "threadTicks"})  # its own time, not that of others
    before = worked(meter)
    frames = page.evaluate(DRAG, [slider, seconds])
    after = worked(meter)
    page.close()
    times = [later - earlier for earlier, later in itertools.pairwise(frames)]
    return times, 1e3 * (after - before) / len(times)


def worked(meter: Any) -> float:
    """Seconds that the main thread of the page has worked so far."""
    metrics = meter.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "TaskDuration")


if __name__ == "__main__":
    main()
