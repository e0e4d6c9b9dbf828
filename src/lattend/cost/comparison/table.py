"""A comparison as people read it: formulas, numbers, sentences about the crossovers; and as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lattend.counts.count import Count
from lattend.report.numbers import format_value, rounded
from lattend.report.report import Report
from lattend.report.table import Table

if TYPE_CHECKING:
    from lattend.cost.comparison.comparison import Comparison


def report_of(found: Comparison) -> Report:
    """Formulas and orders, the table of numbers, and where they cross; different positions are said first."""
    rows = [
        (f"{size:,}", *(format_value(value) for value in values.values()), _least(values))
        for size, values in found.rows
    ]
    parts: list[Table | str] = [found.title] if found.warning else []
    parts += [Table(("", "formula", "order"), _formulas(found)), ""]
    parts += [*_numbers(found), *map(str, found.widths)]
    parts += [Table((found.over, *found.costs, "least"), rows), "", "where they cross"]
    return Report(found.warning or found.title, [*parts, *crossing_lines(found)])


def _formulas(found: Comparison) -> list[tuple[str, str, str]]:
    return [(label, format_value(count), found.orders[label]) for label, count in found.formulas.items()]


def _numbers(found: Comparison) -> list[str]:
    if not found.numbers:
        return []
    given = ", ".join(f"{name} = {value:,}" for name, value in found.numbers.items())
    if not found.chosen:
        return [f"at {given}"]
    return [f"at {given}, with {' and '.join(found.chosen)} as an example: give a number to choose another"]


def _least(values: dict[str, int | None]) -> str:
    """Who needs the least."""
    known = {label: value for label, value in values.items() if value is not None}
    best = [label for label, value in known.items() if value == min(known.values())]
    return ", ".join(best) if len(best) < len(values) else "all the same"


def crossing_lines(found: Comparison) -> list[str]:
    """The sentences, each pair's cases together, with the number at the numbers of the table."""
    lines: list[str] = []
    by_pair: dict[int, list[float]] = {}
    for pair, number in found.crossings:
        by_pair.setdefault(id(pair), []).append(number)
    for pair in found.crossovers:
        lines += pair.sentences
        places = by_pair.get(id(pair), [])
        if places and pair.difference is not None and pair.difference.names:
            given = ", ".join(f"{name} = {found.numbers[name]:,}" for name in pair.difference.names)
            at = ", ".join(f"{found.over} = {rounded(place, 2)}" for place in places)
            lines.append(f"  at {given}: {at}")
    return lines


def as_json(found: Comparison) -> dict[str, Any]:
    """Formulas with the places where they hold, numbers as numbers."""
    layers: list[dict[str, Any]] = []
    for label, count in found.formulas.items():
        pieces: Any = [{"when": "always", "count": str(count)}]
        if isinstance(count, Count):
            pieces = count.json()["pieces"]
        layers.append({"label": label, "formula": pieces, "order": found.orders[label]})
    return {
        **({"warning": found.warning, "positions": found.positions} if found.positions else {}),
        "quantity": found.quantity,
        "over": found.over,
        "at": dict(found.numbers),
        "chosen": list(found.chosen),
        "widths": [asdict(width) for width in found.widths],
        "layers": layers,
        "rows": [{found.over: size, "values": values} for size, values in found.rows],
        "crossovers": [pair.json() for pair in found.crossovers],
        "crossings": [
            {"first": pair.first, "second": pair.second, found.over: place} for pair, place in found.crossings
        ],
    }
