"""Bars: the multiplies of a cost, layer by layer, needed beside executed and dense."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lattend.cost.statement import COLUMNS
from lattend.draw.charts.bars import Bars
from lattend.draw.picture import Picture
from lattend.errors import NamingError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lattend.cost.cost import Cost

FILLS = {"needed": "#10386b", "executed": "#2f6fb5", "dense": "#b8c9dd"}


def draw_bars(cost: Cost, ax: Axes | None = None) -> Picture:
    """The chart, one bar where all columns agree; every size must have a number."""
    rows = _rows(cost)
    title = f"Multiplies of {cost.name}{', backward' if cost.way == 'backward' else ''}"
    shown = [
        (name, values if len(set(values.values())) > 1 else {"needed": values["needed"]})
        for name, values in rows
    ]
    return Picture(title, bars=(Bars("", tuple(shown), FILLS),)).onto(ax)


def _rows(cost: Cost) -> list[tuple[str, dict[str, int]]]:
    """Layers that are alike are put together, and those that multiply nothing are left out."""
    rows: dict[str, dict[str, int]] = {}
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
        total = rows.setdefault(layer.name, dict.fromkeys(COLUMNS, 0))
        for column, value in values.items():
            total[column] += value
        count = cost.number_or_formula(many)
        times[layer.name] = times.get(layer.name, 0) + (count if isinstance(count, int) else 1)
    if not rows:
        raise NamingError(f"{cost.name} multiplies nothing, so that there is no bar to draw")
    named = {name: f"{name} × {times[name]}" if times[name] > 1 else name for name in rows}
    return [(named[name], values) for name, values in rows.items()]
