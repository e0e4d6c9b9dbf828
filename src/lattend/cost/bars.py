"""Bars: the multiplies of a cost, layer by layer, needed beside executed and dense."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lattend.cost.statement import COLUMNS
from lattend.draw.charts.chart import Chart
from lattend.draw.formats.palette import FAINT_TEXT, FRAME, PAPER, TEXT
from lattend.draw.formats.scene import Item, Line, Rect, Scene, Text, text_width
from lattend.errors import NamingError

if TYPE_CHECKING:
    from lattend.cost.cost import Cost

FILLS = {"needed": "#10386b", "executed": "#2f6fb5", "dense": "#b8c9dd"}
BAR, GAP, LEFT, WIDE, RIGHT = 14.0, 14.0, 24.0, 440.0, 150.0


def bars(cost: Cost) -> Chart:
    """The chart, one bar where all columns agree; every size must have a number."""
    rows = _rows(cost)
    name_width = max(text_width(name, 13) for name, _ in rows) + 16
    most = max(max(values.values()) for _, values in rows) or 1
    x = LEFT + name_width
    title = f"Multiplies of {cost.name}{', backward' if cost.way == 'backward' else ''}"
    items: list[Item] = [Text(LEFT, 34, title, 17, TEXT, bold=True)]
    at = LEFT
    for column in COLUMNS:
        items += [Rect(at, 50, 12, 12, FILLS[column]), Text(at + 18, 60.5, column, 12.5, FAINT_TEXT)]
        at += 34 + text_width(column, 12.5)
    y = 84.0
    for name, every in rows:
        values = every if len(set(every.values())) > 1 else {"needed": every["needed"]}
        height = BAR * len(values)
        items.append(Text(x - 10, y + height / 2 + 4.5, name, 13, TEXT, "end"))
        for column, value in values.items():
            width = WIDE * value / most
            items.append(Rect(x, y + 1, max(width, 0.5), BAR - 2, FILLS[column]))
            items.append(Text(x + width + 6, y + BAR - 3.5, f"{value:,}", 11, FAINT_TEXT))
            y += BAR
        y += GAP
    items.append(Line(x, 76, x, y - GAP + 4, FRAME, 1))
    width, height = x + WIDE + RIGHT, y + 10
    scene = Scene(width, height, (Rect(0, 0, width, height, PAPER), *items))
    words = "; ".join(
        f"{name}: " + ", ".join(f"{c} {v:,}" for c, v in values.items()) for name, values in rows
    )
    return Chart(title, words, scene)


def _rows(cost: Cost) -> list[tuple[str, dict[str, int]]]:
    """Layers that are alike are put together, and those that multiply nothing are left out."""
    found: dict[str, dict[str, int]] = {}
    times: dict[str, int] = {}
    for many, layer in cost.parts:
        one = replace(cost, name=layer.name, parts=((many, layer),))
        values = {column: getattr(one, column).multiplies for column in COLUMNS}
        if any(not isinstance(value, int) for value in values.values()):
            raise NamingError(
                "a chart needs a number for every size: give " + ", ".join(f"{n}=…" for n in one.names)
            )
        if not any(values.values()):
            continue
        total = found.setdefault(layer.name, dict.fromkeys(COLUMNS, 0))
        for column, value in values.items():
            total[column] += value
        count = cost.number_or_formula(many)
        times[layer.name] = times.get(layer.name, 0) + (count if isinstance(count, int) else 1)
    if not found:
        raise NamingError(f"{cost.name} multiplies nothing, so that there is no bar to draw")
    named = {name: f"{name} × {times[name]}" if times[name] > 1 else name for name in found}
    return [(named[name], values) for name, values in found.items()]
