"""compare_records: what several records of one experiment agree on, each from its own seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from lattend.errors import NamingError
from lattend.nn.attention.gaussian_heads import Floats
from lattend.report.numbers import format_fixed, format_share
from lattend.report.report import Report
from lattend.report.table import Facts, Table
from lattend.study.heads.findings import RARE, Findings, words_of
from lattend.wording import many

if TYPE_CHECKING:
    from lattend.study.heads.record import Record

# Each column of the table, and the numbers by layer that stand in it
COLUMNS: dict[str, Callable[[Findings], Floats]] = {
    "began": lambda found: found.start.centres,
    "centres": lambda found: found.end.centres,
    "moved": lambda found: found.moved,
    "width": lambda found: found.end.width,
    "off pixel": lambda found: found.end.off,
    "grid": lambda found: found.end.grid,
}


def compare_records(records: Sequence[Record]) -> Report:
    """From the least to the greatest of each number, and how many records say the same."""
    _check_alike(records)
    found, settings = [record.findings for record in records], records[0].settings
    rows = [
        (str(layer + 1), *(_range([float(of(one)[layer]) for one in found]) for of in COLUMNS.values()))
        for layer in range(settings.layers)
    ]
    seeds = ", ".join(str(record.settings.seed) for record in records)
    facts = [("seeds", seeds)]
    for name in records[0].runs:
        shares = sorted(one.accuracy[name] for one in found)
        held = ", centres held fixed" if name == "control" else ""
        facts.append((name, f"{format_share(shares[0])} to {format_share(shares[-1])} right{held}"))
    title = f"Heads in training on {settings.data}, {many(settings.epochs, 'epoch')}: {len(records)} records"
    said = _findings(found)
    words = [(name, meaning) for name, meaning in words_of(settings) if name in COLUMNS]
    data = {
        "settings": [asdict(record.settings) for record in records],
        "records": [record.summary() for record in records],
        "findings": said,
    }
    parts = [Facts(facts), Table(("layer", *COLUMNS), rows), "", *said, Facts(words)]
    return Report(title, parts, data)


def _findings(found: Sequence[Findings]) -> list[str]:
    total = len(found)
    rising = sum(one.rises() for one in found)
    farther = sum(bool(one.gains[-1] > one.gains[0]) for one in found)
    layers = [(start, end) for one in found for start, end in zip(one.start.grid, one.end.grid, strict=True)]
    nearer = sum(bool(end < start) for start, end in layers)
    fits = [fit for one in found for fit in one.fits]
    rare = sum(fit.nearer < RARE for fit in fits)
    return [
        f"The last layer's centres gain more distance from the query than the first's in {farther} of "
        f"{total} records, and every layer gains more than the one before in {rising}.",
        f"Of {len(layers)} layers {nearer} end nearer to the grid than they began, and {rare} nearer than "
        "19 of 20 draws of heads as far from the query in random directions.",
    ]


def _check_alike(records: Sequence[Record]) -> None:
    """Raises where records differ in more than their seeds."""
    first = asdict(records[0].settings)
    for record in records[1:]:
        for name, value in asdict(record.settings).items():
            if name not in ("seed", "device") and value != first[name]:
                raise NamingError(
                    f"records are compared where they differ in their seeds alone, and {name} is "
                    f"{first[name]} and {value}; show them one by one"
                )
        if record.runs.keys() != records[0].runs.keys():
            raise NamingError("some of these records have a control and some have none; show them one by one")


def _range(numbers: Sequence[float]) -> str:
    low, high = format_fixed(min(numbers)), format_fixed(max(numbers))
    return low if low == high else f"{low}–{high}"
