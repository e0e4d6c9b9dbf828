"""What a cost prints: three columns, its layers, its memory and dependences; and the same as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lattend.budget import Budget
from lattend.cost.amount import Amount
from lattend.cost.layer import COLUMNS
from lattend.cost.result import STATE, WORK, label, label_and_name, totals
from lattend.counts.count import Count
from lattend.draw.charts.bars import Bars
from lattend.draw.picture import Picture
from lattend.errors import DeadlineError, LattendError, NamingError, TooLarge
from lattend.plans.plan import tile_text
from lattend.report.numbers import format_value
from lattend.report.report import Report
from lattend.report.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lattend.cost.cost import Cost

REPORT = Budget(4.0)  # for all that a report asks

LINES = (
    "bytes_read",
    "bytes_written",
    "saved_activations",
    "peak_activations",
    "cache",
    "depth",
    "scalar_depth",
)


def report_of(cost: Cost) -> Report:
    """The cost as people read it; what is not found within the budget is said."""
    cost = within_budget(cost)
    rows = {label_and_name(name): columns for name, columns in work_of(cost)}
    parts: list[Table | str] = [totals(found_or_why(lambda: cost.parameters), rows, _tiles(rows))]
    if len(cost.parts) > 1:
        parts.append(by_layer(cost))
    if cost.way == "forward":
        parts.append(Table(("", ""), [*_lines(cost), *_dependences(cost)]))
    return Report(cost.heading, parts)


def _tiles(rows: dict[str, tuple[Any, Any, Any]]) -> str:
    """The tiles in which attended pairs are executed, where there are any and all numbers are known."""
    _, executed, _ = rows.get("exponentials", (None, None, None))
    return "" if executed is None else tile_text()


def within_budget(cost: Cost) -> Cost:
    """The same with one budget for all that is asked of it from now on."""
    return cost.changed(budget=REPORT.shared())


def work_of(cost: Cost) -> Iterator[tuple[str, tuple[Any, Any, Any]]]:
    """Every kind of work that occurs: needed, executed (None while a size is open) and dense.

    A quantity is a number, a formula, or a text that says why it was not found within the budget.
    """
    yield from ((name, _columns(cost, name)) for name in WORK if not cost.is_nothing(name))


def memory_of(cost: Cost) -> Iterator[tuple[str, Any]]:
    """Memory and depth of a forward pass, as work_of gives them; None while a size is open."""
    for name in LINES:
        value = found_or_why(partial(getattr, cost, name))
        if name != "cache" or value != 0:  # else nothing is decoded token by token
            yield name, value


def found_or_why(quantity: Callable[[], Any]) -> Any:
    """A quantity, or why it was not found: a deadline passed, or there are too many tiles to list."""
    try:
        return quantity()
    except (DeadlineError, TooLarge) as reason:
        return f"not found: {reason}"


def _columns(cost: Cost, quantity: str) -> tuple[Any, Any, Any]:
    try:
        executed = found_or_why(lambda: cost.executed.value(quantity))
    except NamingError:  # a size is open
        executed = None
    needed, dense = (found_or_why(partial(column.value, quantity)) for column in (cost.needed, cost.dense))
    return needed, executed, dense


def by_layer(cost: Cost) -> Table:
    """The layers one by one; those that are alike are put together."""
    groups: dict[tuple[str, ...], Amount] = {}
    for times, layer in cost.parts:
        one = replace(cost, name=layer.name, parts=((Amount.number(1), layer),))
        names = ("parameters", "multiply_adds")
        numbers = (format_value(found_or_why(partial(one.value, name))) for name in names)
        key = (layer.name, *numbers, "yes" if layer.mixes_tokens else "no")
        groups[key] = groups[key] + times if key in groups else times
    rows: list[tuple[str, ...]] = []
    for (name, *rest), times in groups.items():
        count = cost.number_or_formula(times)
        rows.append((f"{name} × {format_value(count)}" if count != 1 else name, *rest))
    return Table(("layer", "parameters of one", "multiply-adds of one", "mixes tokens"), rows)


def _lines(cost: Cost) -> list[tuple[str, str]]:
    values = dict(memory_of(cost))
    words = {name: "known when every size has a number" for name, value in values.items() if value is None}
    called = {"cache": cache_label(cost)}
    return [
        (label_and_name(name, called.get(name)), words.get(name) or format_value(value))
        for name, value in values.items()
    ]


def cache_label(cost: Cost) -> str:
    """The label of the cache: KV cache, or recurrent state where all layers are recurrent."""
    streams = [layer.streams for _, layer in cost.parts if not layer.cache.is_zero]
    return STATE if streams and all(streams) else label("cache")


def path_label(cost: Cost) -> str:
    """The maximum path length, and where there is one: a band of width t = 0 connects no two positions."""
    with suppress(LattendError):
        widths = {by for by in cost.amount("path").split.values() if by in cost.names}
        if widths:
            return f"{label('path')}, where {' and '.join(f'{by} >= 1' for by in sorted(widths))}"
    return label("path")


def _dependences(cost: Cost) -> list[tuple[str, str]]:
    if len(cost.parts) != 1:
        return []
    layer = cost.parts[0][1]
    longest = found_or_why(lambda: cost.path)
    path = [] if longest is None else [(label_and_name("path", path_label(cost)), format_value(longest))]
    mixes = ("mixes tokens", "yes" if layer.mixes_tokens else "no")
    return [("schedule", layer.depth.schedule), *path, mixes]


def statements(cost: Cost, width: int | None = None) -> str:
    """The sets that are counted, layer by layer, and how many points each has."""
    lines: list[str] = []
    for _, layer in cost.parts:
        rows = [
            (f"  {s.name}", s.kind, format_value(cost.number_or_formula(s.points.needed)), s.over)
            for s in layer.statements
        ]
        table = Table((layer.name, "work at each point", "points", "over"), rows, wraps=True)
        lines += ["", *table.lines(width)] if rows else []
    return "\n".join(lines[1:])


def as_json(cost: Cost) -> dict[str, Any]:
    """Formulas as text with the places where they hold, numbers as numbers."""
    data: dict[str, Any] = {"layer": cost.name, "way": cost.way}
    data |= {"names": list(cost.names), "at": dict(cost.values), "parameters": _data(cost.parameters)}
    for name in WORK:
        data[name] = dict(zip(COLUMNS, map(_data, _columns(cost, name)), strict=True))
    data["backward"] = {name: _data(cost.backward.value(name)) for name in WORK}
    cost = cost.forward  # memory and depth are those of the forward pass
    data |= {name: _data(getattr(cost, name)) for name in (*LINES, "path")}
    return data | {"schedule": cost.schedule, "mixes_tokens": cost.mixes_tokens}


def _data(value: Any) -> Any:
    if isinstance(value, Count):
        data = value.json()
        return {"pieces": data["pieces"], "domain": data["domain"], "at": data["at"]}
    return value


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
