"""A comparison as people read it: formulas, numbers, sentences about the crossovers; and as plain data."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from lattend.cost.table import aligned
from lattend.counts.count import Count

if TYPE_CHECKING:
    from lattend.cost.comparison.comparison import Comparison

WIDTH = 100
UNDEFINED = "–"


def as_text(found: Comparison) -> str:
    """Formulas and orders, the table of numbers, and where they cross."""
    lines = [*textwrap.wrap(found.warning, WIDTH), found.title, ""]
    lines += _indented(aligned([("", "formula", "order"), *_formulas(found)]))
    lines += ["", *_numbers(found)]
    lines += [f"  {width}" for width in found.widths]
    rows = [
        (f"{size:,}", *(UNDEFINED if v is None else f"{v:,}" for v in values.values()), _least(values))
        for size, values in found.rows
    ]
    head = (found.over, *found.costs, "least")
    lines += _indented(aligned([head, *rows], right=range(len(head) - 1)))
    lines += ["", "where they cross", *crossing_lines(found)]
    return "\n".join(line.rstrip() for line in lines)


def _formulas(found: Comparison) -> list[tuple[str, str, str]]:
    return [
        (label, str(count) if isinstance(count, Count) else f"{count:,}", found.orders[label])
        for label, count in found.formulas.items()
    ]


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
        for sentence in pair.sentences:
            lines += textwrap.wrap(sentence, WIDTH - 2, initial_indent="  ", subsequent_indent="    ")
        places = by_pair.get(id(pair), [])
        if places and pair.difference is not None and pair.difference.names:
            used = pair.difference.names if pair.difference is not None else ()
            given = ", ".join(f"{name} = {found.numbers[name]:,}" for name in used)
            at = ", ".join(f"{found.over} = {short(place)}" for place in places)
            lines.append(f"    at {given}: {at}")
    return lines


def short(number: float) -> str:
    """A whole number with commas, others with two digits after the point."""
    return f"{number:,.0f}" if number == int(number) else f"{number:,.2f}".rstrip("0")


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


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
        "widths": [
            {
                "label": w.label,
                "name": w.name,
                "width": w.width,
                "parameters": w.parameters,
                "reference": w.reference,
            }
            for w in found.widths
        ],
        "layers": layers,
        "rows": [{found.over: size, "values": values} for size, values in found.rows],
        "crossovers": [pair.json() for pair in found.crossovers],
        "crossings": [
            {"first": pair.first, "second": pair.second, found.over: place} for pair, place in found.crossings
        ],
    }
