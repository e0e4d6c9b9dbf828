"""The tables and charts of docs/speed.md, from the rows in benchmarks/results: `python docs/site/speed.py`.

A table stands under a comment that names its rows, `<!-- h200_d128 forward -->`; so does its chart. Where
nothing was measured yet it is empty. A test compares both with the rows, so that table, chart and data cannot
differ.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "benchmarks")]

import report  # noqa: E402  (benchmarks/report.py)
from report import Row, short  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "speed.md"
TABLE = re.compile(r"(<!-- (\w+) (forward|backward) -->\n\n)((?:\|.*\n)*)")
PLANS = re.compile(r"(<!-- plans -->\n\n)((?:\|.*\n)+)")
CHARTS = ("h200_d128", "h200_d64", "h200_d256", "h200_float32", "cpu")
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
HEAD = "Attention under a rule"
ON_A_GPU = {"cuDNN": "cuDNN SDPA", "FlexAttention": "FlexAttention"}
PEERS = {
    "h200_d128": ON_A_GPU,
    "h200_d64": ON_A_GPU,
    "h200_d256": ON_A_GPU,
    "h200_float32": {"SDPA, memory-efficient": "SDPA, memory-efficient", "FlexAttention": "FlexAttention"},
    "cpu": {"FlexAttention": "FlexAttention", "SDPA with mask": "SDPA mask", "chunks": "SDPA chunks"},
}


def rows(file: str, work: str) -> list[Row]:
    """What was measured of one pass, Lattend among it."""
    if not (RESULTS / f"{file}.json").exists():
        return []
    _, found = report.load(RESULTS / f"{file}.json")
    return [row for row in found if row.work == work and report.OURS in row.times]


def table(file: str, work: str) -> str:
    """The rows of one pass as Markdown; empty columns are left out, and what all rows have in common."""
    some = rows(file, work)
    if not some:
        return ""
    columns: dict[str, Callable[[Row], str]] = {"rule": lambda row: title(row.title)}
    if work == "forward":
        columns["n"] = lambda row: f"{row.n:,}"
    if len({row.head_dim for row in some}) > 1:
        columns["D"] = lambda row: str(row.head_dim)
    columns["products"] = lambda row: row.dtype
    columns["floor"] = lambda row: short(row.floor)
    columns["Lattend"] = lambda row: short(row.times[report.OURS])
    columns["from the floor"] = lambda row: ratio(row.times[report.OURS], row.floor)
    columns["predicted"] = lambda row: short(row.predicted) if row.predicted else ""
    columns["nondeterministic"] = lambda row: _time(row, "lattend, not deterministic")
    for peer, name in PEERS[file].items():
        columns[peer] = lambda row, name=name: beside(row, name)
    filled = {name: [write(row) for row in some] for name, write in columns.items()}
    filled = {name: cells for name, cells in filled.items() if any(cells)}
    lines = [list(filled), *map(list, zip(*filled.values(), strict=True))]
    return written(lines)


def plans() -> str:
    """How long plans take, as Markdown."""
    found = json.loads((RESULTS / "plans.json").read_text())
    powers = ["".join(SUPERSCRIPTS[int(digit)] for digit in str(power)) for power in found["powers"]]
    head = ["rule", "parts", *(f"2{power}" for power in powers), f"MiB at 2{powers[-1]}"]
    head[2] = f"n = {head[2]}"
    lines = [
        [
            row["rule"],
            str(row["parts"]),
            *(f"{one:.1f}" for one in row["milliseconds"]),
            f"{row['bytes'] / 2**20:.2f}",
        ]
        for row in found["rows"]
    ]
    return written([head, *lines])


def written(lines: list[list[str]]) -> str:
    """A table, its head first."""
    head, *rest = map(line, lines)
    return f"{head}|{'---|' * len(lines[0])}\n{''.join(rest)}"


def line(cells: list[str]) -> str:
    """One row of a table.

    >>> line(["causal", "", "1.75"]).rstrip()
    '| causal | | 1.75 |'
    """
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells) + "\n"


def title(text: str) -> str:
    """A rule as the page names it.

    >>> title("Sparse fixed l=128, c=8")
    'Sparse Transformer fixed, l = 128, c = 8'
    """
    text = re.sub(r"^Sparse (\w+)", r"Sparse Transformer \1,", text)
    return text.replace("=", " = ")


def _time(row: Row, name: str) -> str:
    return short(row.times[name]) if name in row.times else ""


def beside(row: Row, name: str) -> str:
    """A peer's time, and how many times as long that is."""
    if name not in row.times:
        return ""
    return f"{short(row.times[name])} ({ratio(row.times[name], row.times[report.OURS])})"


def ratio(time: float, other: float) -> str:
    """How many times as long, in three digits or, below 1, in two.

    >>> ratio(5.05, 6.48), ratio(3.56, 0.245)
    ('0.78×', '14.5×')
    """
    return f"{time / other:.2f}×" if time < other else f"{short(time / other)}×"


def page() -> str:
    """docs/speed.md with its tables as the rows have them."""
    text = TABLE.sub(lambda found: found[1] + table(found[2], found[3]), PAGE.read_text())
    return PLANS.sub(lambda found: found[1] + plans(), text)


def charts(folder: Path) -> list[Path]:
    """Draws the charts into a folder."""
    return [
        path
        for file in CHARTS
        if (RESULTS / f"{file}.json").exists()
        for path in report.draw(folder / f"{file}.svg", *report.load(RESULTS / f"{file}.json"), HEAD)
    ]


if __name__ == "__main__":
    PAGE.write_text(page())
    charts(RESULTS)
