"""The picture the README opens with: one rule, and its answer to each of the four questions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import lattend as lt
from lattend.draw.formats.palette import ATTENDED, EMPTY, FAINT_TEXT, OWN, PAPER, TEXT
from lattend.draw.formats.scene import Item, Rect, Scene, Text, wrapped
from lattend.draw.formats.svg import svg

MEASURED = Path(__file__).parents[2] / "benchmarks" / "results" / "h200_d128.json"
RULE = "k <= q and q - k <= t"
QUESTIONS = ("What does it look like?", "What does it cost?", "Can I run it that fast?", "Is it right?")
WIDTH, TOP, COLUMN, GAP, HEIGHT = 1000, 92, 216, 32, 320
N, T = 65_536, 255  # as measured
RIGHT, WRONG = "#1a7f37", "#b35900"


def opening() -> str:
    """The picture as SVG; every number in it is computed or read from the measurements."""
    items: list[Item] = [Rect(0, 0, WIDTH, HEIGHT, PAPER), Text(20, 38, RULE, 24, TEXT, bold=True)]
    items.append(Text(WIDTH - 20, 38, "a layer is a set of integer points", 15, FAINT_TEXT, "end"))
    for place, (question, answer) in enumerate(zip(QUESTIONS, (grid, price, speed, proof), strict=True)):
        left = 20 + place * (COLUMN + GAP)
        items += [Text(left, TOP - 14, question, 14, FAINT_TEXT), *answer(left)]
    return svg(Scene(WIDTH, HEIGHT, tuple(items)), f"The rule {RULE}", "Its grid, count, speed and proof.")


def grid(left: float) -> Iterator[Item]:
    """The pairs at n = 12, t = 3."""
    size, cell = 12, COLUMN / 12
    attended = lt.rule(RULE).mask(n=size, t=3)
    for query in range(size):
        for key in range(size):
            look = OWN if query == key else ATTENDED if attended[query, key] else EMPTY
            yield Rect(left + key * cell, TOP + query * cell, cell - 1, cell - 1, look.fill)


def price(left: float) -> Iterator[Item]:
    """The closed form, and what it comes to."""
    count = lt.rule(RULE).count()
    formula, where = str(count).splitlines()[0].split("  when ")
    pairs = count.at(n=N, t=T)
    yield Text(left, TOP + 30, formula.strip(), 20, TEXT, bold=True)
    yield Text(left, TOP + 52, f"pairs, when {where}", 13, FAINT_TEXT)
    yield Text(left, TOP + 104, f"{pairs:,}", 26, ATTENDED.fill, bold=True)
    yield Text(left, TOP + 126, f"at n = {N:,}, t = {T}", 13, FAINT_TEXT)
    yield Text(left, TOP + 178, f"{pairs / N**2:.2%}", 26, ATTENDED.fill, bold=True)
    yield Text(left, TOP + 200, f"of all {N**2:,} pairs", 13, FAINT_TEXT)


def speed(left: float) -> Iterator[Item]:
    """Milliseconds on a GPU, forward and backward."""
    rows = json.loads(MEASURED.read_text(encoding="utf-8"))["rows"]
    found = {row["work"]: row for row in rows if (row["title"], row["n"]) == (f"strided t={T}", N)}
    y = TOP + 12
    for work in ("forward", "backward"):
        longest = max(found[work]["times"].values())
        yield Text(left, y, f"{work}, ms", 13, FAINT_TEXT)
        for name, colour in (("lattend", ATTENDED.fill), ("FlexAttention", "#9aa4af")):
            time = found[work]["times"][name]
            yield Rect(left, y + 9, COLUMN * time / longest, 22, colour)
            label = "Lattend" if name == "lattend" else name
            yield Text(left + 6, y + 25, f"{label} {time:.2f}", 13, PAPER if name == "lattend" else TEXT)
            y += 27
        y += 34
    yield Text(left, TOP + 200, f"on an H200, at n = {N:,}, t = {T}", 13, FAINT_TEXT)


def proof(left: float) -> Iterator[Item]:
    """Claims about the count, proved and refuted."""
    y = TOP + 14
    for claim in ("sum(i, i, n - t, n)", "n*t"):
        found = lt.rule(RULE).count().claim(claim, assuming="t <= n")
        colour = RIGHT if found else WRONG
        yield Text(left, y, claim, 16, TEXT, bold=True)
        said = f"holds for {found.where}" if found else f"fails: {found.counterexample}"
        for line in wrapped(said, 14, COLUMN, 3):
            y += 21
            yield Text(left, y, line, 14, colour)
        y += 38
    yield Text(left, TOP + 200, "proved for all n and t, not sampled", 13, FAINT_TEXT)
