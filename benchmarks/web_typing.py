"""One person types rules in a browser: from the keystroke to the formula and the picture on the screen.

python benchmarks/web_typing.py [--cold 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import sync_playwright
from web_server import Rows, machine, serving, show, waits_row

sys.path.insert(0, str(Path(__file__).parents[1] / "client"))
from chromium import FLAGS, chromium

HOW = """
Chromium without a window and without a GPU, the server and this script share the machine; loopback only.
Typing: whole rules like those of the catalogue, a key every 150 ms whatever the page does; a key that is
pressed late counts from when it was due. A key's wait ends with the first frame after both the formula and
the grid of its text are drawn, or those of a later text: a key that is overtaken goes on counting. Where the
later texts are no rules, that holds the typing in between too: so a second row lets their messages end it. Of
a text that is no rule yet, it ends with its message or with a later text; such texts are reported apart, and
so are texts asked before, which the page remembers. A key that never gets there fails and has no time.
Cold: a new server process and a new browser (started before, with an empty profile) each time. Page
interactive: the text field is there and takes keys. All from the start of the server's process.
"""
RULES = (
    *("k <= q and q - k <= 7", "k <= q", "q // 4 == k // 4", "abs(q - k) <= t", "k >= q - w and k <= q"),
    *("(q - k) % 3 == 0 and k <= q", "k < 5 or q - k <= 9", "q // w == k // w and k <= q"),
    *("windowed(16)", "strided(7)", "not k > q"),
)
FIELD = "Who attends to whom"
GAP = 0.15  # seconds between keys
LAST = 10.0  # seconds in which the last key must be answered
# Notes each key, the answers as they reach the page, and the first frame in which all is drawn for a text
WATCH = """(() => {
    const watch = { keys: [], waits: [], pictures: [], failed: [], interactive: null, first: null };
    window.watch = watch;
    const answers = new Map();
    const asking = window.fetch;
    window.fetch = async (...given) => {
        const response = await asking(...given);
        if (!String(given[0]).endsWith("api/batch") || !response.ok) return response;
        const asked = JSON.parse(given[1].body);
        let rest = "";
        const note = (text, through) => {
            through.enqueue(text);
            const lines = (rest + text).split("\\n");
            rest = lines.pop();
            for (const [place, status, found] of lines.map((line) => JSON.parse(line)))
                answers.set(`${asked[place][0]} ${asked[place][2].rule}`, { status, message: found.message });
        };
        const body = response.body.pipeThrough(new TextDecoderStream())
            .pipeThrough(new TransformStream({ transform: note })).pipeThrough(new TextEncoderStream());
        return new Response(body, { status: response.status, headers: response.headers });
    };
    let text = null, drawn = null, waiting = [], unpictured = [];
    const typed = () => document.querySelector("main .text-field textarea")?.value ?? null;
    const status = (panel) => answers.get(`${panel} ${(text ??= typed())}`)?.status;
    const clear = CanvasRenderingContext2D.prototype.clearRect; // with which every drawing begins
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
        if (this.canvas.closest("[data-panel=draw]") && status("read") === 200) drawn = text;
        return clear.apply(this, box);
    };
    const seen = () => {
        if (status("read") === 422) {
            const { message } = answers.get(`read ${text}`);
            const shown = document.querySelectorAll(".text-field .problem p");
            return [...shown].some((one) => one.textContent === message);
        }
        const formula = document.querySelector("[data-panel=count][aria-busy=false] .formula");
        const picture = document.querySelector("[data-panel=draw] .grid-how[data-exact=true]");
        return status("read") === 200 && status("count") === 200 && formula && picture && drawn === text;
    };
    const open = [undefined, 200, 409, 429, 503]; // there, superseded, or asked again
    const refused = () => !open.includes(status("read") === 200 ? status("count") : status("read"));
    const look = () => {
        if (watch.interactive === null && typed() !== null) {
            watch.interactive = 0;
            requestAnimationFrame(() => (watch.interactive = performance.timeOrigin + performance.now()));
        }
        if ((watch.first === null || waiting.length || unpictured.length) && seen()) {
            const done = waiting.splice(0), pictured = status("read") === 200 ? unpictured.splice(0) : [];
            requestAnimationFrame(() => {
                const now = performance.now();
                watch.first ??= performance.timeOrigin + now;
                for (const key of pictured) watch.pictures.push({ key: key.key, wait: now - key.begun });
                for (const key of done) watch.waits.push({ ...key, wait: now - key.begun });
            });
        } else if (status("read") !== 422 && refused()) {
            const other = (key) => key.text !== text;
            watch.failed.push(...waiting.filter((key) => !other(key)));
            [waiting, unpictured] = [waiting.filter(other), unpictured.filter(other)];
        }
        requestAnimationFrame(look);
    };
    document.addEventListener("input", (event) => {
        if (!event.target.matches(".text-field textarea")) return;
        text = event.target.value;
        if (event.inputType !== "insertText") { // the field is emptied: who waits still, waits in vain
            watch.failed.push(...waiting.splice(0));
            unpictured = [];
            return;
        }
        const known = answers.has(`read ${text}`);
        const key = { key: watch.keys.push(text) - 1, text, begun: event.timeStamp, known };
        waiting.push(key);
        unpictured.push(key);
        for (const one of waiting) one.overtaken = one !== key;
    }, true);
    requestAnimationFrame(look);
})()"""


class Key(NamedTuple):
    """A key: the text after it, how long it waited, and what is known of that text."""

    text: str
    wait: float | None  # seconds until this text or a later one is on the screen; None where nothing came
    picture: float | None = None  # the same, but messages of later texts do not end it
    known: bool = False  # asked before, so that the page remembers
    overtaken: bool = False  # a later text was on the screen first


class Cold(NamedTuple):
    """Seconds from the start of the server's process."""

    listening: float
    interactive: float
    first: float  # formula and picture


def watched(tab: Any, address: str) -> Any:
    """The tab, in which the page is watched and shows formula and picture."""
    tab.add_init_script(WATCH)
    tab.goto(address)
    end = time.monotonic() + 60
    while tab.evaluate("watch.first") is None:
        if time.monotonic() > end:
            raise RuntimeError("the page shows no formula and picture within a minute")
        time.sleep(0.01)
    return tab


def new_tab(browser: Any) -> Any:
    """A tab without a past."""
    return browser.new_context(viewport={"width": 1280, "height": 900}).new_page()


def typed(tab: Any, rules: Sequence[str], gap: float = GAP, last: float = LAST) -> list[Key]:
    """Type the rules with so many seconds from key to key, and tell what came of each key."""
    field, late = tab.get_by_label(FIELD, exact=True), list[float]()
    for rule in rules:
        field.fill("")
        due = time.monotonic()
        for letter in rule:
            due += gap
            time.sleep(max(0.0, due - time.monotonic()))
            late.append(time.monotonic() - due)
            tab.keyboard.type(letter)
        settle(tab, last)
    watch = tab.evaluate("watch")
    assert len(watch["keys"]) == len(late), "each key is one change of the text"
    pictures = {one["key"]: one["wait"] for one in watch["pictures"]}
    keys = [Key(text, None) for text in watch["keys"]]
    for one in watch["waits"]:
        place = one["key"]
        picture = pictures[place] / 1000 + late[place] if place in pictures else None
        keys[place] = Key(
            one["text"], one["wait"] / 1000 + late[place], picture, one["known"], one["overtaken"]
        )
    return keys


def settle(tab: Any, seconds: float) -> None:
    """Wait until no key waits any more, for so many seconds at most."""
    end = time.monotonic() + seconds
    while tab.evaluate("watch.waits.length + watch.failed.length < watch.keys.length"):
        if time.monotonic() > end:
            return
        time.sleep(0.02)


def is_rule(text: str) -> bool:
    """Whether the library reads it."""
    from lattend.web.worker import reply

    return reply("read", "", json.dumps({"rule": text}).encode())[0] == 200


def rows_of(keys: Sequence[Key]) -> Rows:
    """What is printed of the keys."""
    done = [key for key in keys if key.wait is not None]
    fresh = [key for key in done if not key.known]
    rules, others = (
        [key for key in fresh if is_rule(key.text)],
        [key for key in fresh if not is_rule(key.text)],
    )
    overtaken = sum(key.overtaken for key in done)
    return {
        "keys": f"{len(keys)}, {overtaken} of them overtaken: a later text was on the screen first",
        "a rule: key to formula and picture": waits_row(
            [key.picture for key in rules if key.picture is not None], "95 % under 150"
        ),
        "a rule: the same, or a later text's message": waits_row(_waits(rules)),
        "not yet a rule: key to message": waits_row(_waits(others)),
        "asked before, rules or not": waits_row(_waits([key for key in done if key.known])),
        "failed keys": f"{len(keys) - len(done)} (aim: none)",
    }


def _waits(keys: Sequence[Key]) -> list[float]:
    return [key.wait for key in keys if key.wait is not None]


def cold_start(engine: Any) -> Cold:
    """One start of everything."""
    browser = engine.chromium.launch(executable_path=chromium(), args=[*FLAGS])
    try:
        with serving() as server:
            watch = watched(new_tab(browser), server.address).evaluate("watch")
            moments = (watch[name] / 1000 - server.begun for name in ("interactive", "first"))
            return Cold(server.listening, *moments)
    finally:
        browser.close()


def cold_rows(starts: Sequence[Cold]) -> Rows:
    """What is printed of cold starts: the median, and each."""
    titles = {
        "cold: server listens": [one.listening for one in starts],
        "cold: page interactive": [one.interactive for one in starts],
        "cold: page interactive, after listening": [one.interactive - one.listening for one in starts],
        "cold: first formula and picture": [one.first for one in starts],
    }
    aims = {"cold: page interactive, after listening": " (aim: under 1 s)"}
    rows: Rows = {}
    for title, times in titles.items():
        each = ", ".join(f"{one:.2f}" for one in times)
        rows[title] = f"{statistics.median(times):.2f} s{aims.get(title, '')}; each {each}"
    return rows


def main() -> None:
    """Measure, and print what was found."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--cold", type=int, default=3, help="how many cold starts")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    if chromium() is None:
        print("no Chromium here: the page is not timed")
        return
    with sync_playwright() as engine:
        starts = [cold_start(engine) for _ in range(max(1, given.cold))]
        browser = engine.chromium.launch(executable_path=chromium(), args=[*FLAGS])
        with serving() as server:
            tab = watched(new_tab(browser), server.address)
            tab.wait_for_timeout(5000)  # until the workers that have torch are there
            keys = typed(tab, RULES)
        browser.close()
    show(HOW, {"machine": machine()} | cold_rows(starts) | rows_of(keys), given.json)


if __name__ == "__main__":
    main()
