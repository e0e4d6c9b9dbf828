"""A cost as people read it: three columns, then what its dependences say; and as plain data."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lattend.budget import Budget
from lattend.cost.amount import Amount
from lattend.cost.statement import COLUMNS, OPERATIONS
from lattend.counts.count import Count
from lattend.errors import DeadlineError, NamingError

if TYPE_CHECKING:
    from lattend.cost.cost import Cost

TABLE = Budget(4.0)  # for all that a table asks
SAME, UNKNOWN = "=", "–"
LINES = {
    "bytes_read": "bytes read",
    "bytes_written": "bytes written",
    "training_memory": "kept for training, numbers",
    "cache": "kept from token to token, numbers",
    "depth": "steps one after another",
}


def as_text(cost: Cost, width: int | None = None) -> str:
    """The cost as a table; columns stand below each other where they are wider than `width`."""
    cost = replace(cost, budget=TABLE.shared())
    rows: list[tuple[str, ...]] = [("", *COLUMNS)]
    parameters = _found(cost, "parameters")
    rows.append(("parameters", parameters, SAME, SAME))
    for op in OPERATIONS:
        if not cost.is_nothing(op):
            rows.append((op, *_columns(cost, op)))
    found = [_title(cost), "", *_fitted(rows, width)]
    if len(cost.parts) > 1:
        found += ["", *_fitted(_by_layer(cost), width)]
    if cost.way == "forward":
        found += ["", *_fitted([("", ""), *_other(cost), *_words(cost)], width)[1:]]
    return "\n".join(found)


def shown(value: Any) -> str:
    """A number with commas, or a formula."""
    return f"{value:,}" if isinstance(value, int) else str(value)


def _found(cost: Cost, quantity: str) -> str:
    """A quantity, or that a deadline passed before it was found."""
    try:
        return shown(getattr(cost, quantity))
    except DeadlineError as reason:
        return f"not found: {reason}"


def _title(cost: Cost) -> str:
    way = "" if cost.way == "forward" else ", backward pass"
    given = ", ".join(f"{name} = {value:,}" for name, value in cost.values.items())
    names = f" in {', '.join(cost.names)}" if cost.names else ""
    return f"{cost.name}{way}{names}{' at ' + given if given else ''}"


def _columns(cost: Cost, op: str) -> tuple[str, str, str]:
    needed = _found(cost.needed, op)
    try:
        executed = _found(cost.executed, op)
    except NamingError:
        executed = UNKNOWN
    dense = _found(cost.dense, op)
    return needed, SAME if executed == needed else executed, SAME if dense == needed else dense


def _by_layer(cost: Cost) -> list[tuple[str, ...]]:
    """Layers that are alike are put together."""
    rows: list[tuple[str, ...]] = [("layer", "parameters of one", "multiplies of one", "looks across tokens")]
    groups: dict[tuple[str, ...], Amount] = {}
    for times, layer in cost.parts:
        one = replace(cost, name=layer.name, parts=((Amount.number(1), layer),))
        key = (
            layer.name,
            _found(one, "parameters"),
            _found(one, "multiplies"),
            "yes" if layer.across else "no",
        )
        groups[key] = groups[key] + times if key in groups else times
    for (name, *rest), times in groups.items():
        count = cost.number_or_formula(times)
        many = f" × {shown(count)}" if count != 1 else ""
        rows.append((f"{name}{many}", *rest))
    return rows


def _other(cost: Cost) -> list[tuple[str, str]]:
    rows = [(words, _found(cost, name)) for name, words in LINES.items()]
    deep = cost.scalar_depth
    words = "known when every size has a number" if deep is None else f"{deep:,}"
    rows.append(("the same in scalars, sums as trees", words))
    if cost.memory_in_use is not None:
        rows.insert(3, ("alive at once in use, numbers", f"{cost.memory_in_use:,}"))
    return rows


def _words(cost: Cost) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    if len(cost.parts) == 1:
        layer = cost.parts[0][1]
        rows.append(("schedule", layer.depth.schedule))
        path = _found(cost, "path")
        if path != "None":
            rows.append(("longest way between positions", path))
        rows.append(("looks across tokens", "yes" if layer.across else "no"))
    return rows


def statements(cost: Cost) -> str:
    """The sets that are counted, layer by layer, and how many points each has."""
    found: list[str] = []
    for _, layer in cost.parts:
        rows = [(layer.name, "work at each point", "points", "over")]
        for statement in layer.statements:
            points = shown(cost.number_or_formula(statement.points.needed))
            rows.append((f"  {statement.name}", statement.kind, points, statement.over))
        found += ["", *aligned(rows)] if layer.statements else []
    return "\n".join(found[1:])


def _fitted(rows: Sequence[tuple[str, ...]], width: int | None) -> list[str]:
    """Rows under a heading in columns, or, where these are too wide, each row in lines of its own."""
    table = aligned(rows)
    if width is None or max(map(len, table)) <= width:
        return table
    head, *rest = rows
    found = [""]
    for name, *cells in rest:
        found.append(name)
        for column, cell in zip(head[1:], cells, strict=True):
            if cell != SAME or len(rest) == 1:
                lines = cell.splitlines() or [""]
                label = f"{column}  " if column else ""
                found += [
                    f"  {label if place == 0 else ' ' * len(label)}{line}" for place, line in enumerate(lines)
                ]
    return found


def aligned(rows: Sequence[tuple[str, ...]], right: Container[int] = ()) -> list[str]:
    """Rows whose cells may have several lines, in columns two spaces apart, those in `right` to the right."""
    cells = [[cell.splitlines() or [""] for cell in row] for row in rows]
    wide = [max(len(line) for row in cells for line in row[place]) for place in range(len(rows[0]))]
    found: list[str] = []
    for row in cells:
        for line in range(max(len(cell) for cell in row)):
            texts = [cell[line] if line < len(cell) else "" for cell in row]
            parts = [
                text.rjust(width) if place in right else text.ljust(width)
                for place, (text, width) in enumerate(zip(texts, wide, strict=True))
            ]
            found.append("  ".join(parts).rstrip())
    return found


def as_json(cost: Cost) -> dict[str, Any]:
    """Formulas as text with the places where they hold, numbers as numbers."""
    found: dict[str, Any] = {"layer": cost.name, "way": cost.way}
    found |= {"names": list(cost.names), "at": dict(cost.values)}
    found["parameters"] = _data(cost.parameters)
    for op in OPERATIONS:
        found[op] = {}
        for column in COLUMNS:
            try:
                found[op][column] = _data(getattr(getattr(cost, column), op))
            except NamingError:
                found[op][column] = None
    backward = cost.backward
    found["backward"] = {op: _data(getattr(backward, op)) for op in OPERATIONS}
    cost = cost.forward  # memory and steps are those of the forward pass
    found |= {name: _data(getattr(cost, name)) for name in LINES}
    found["memory_in_use"], found["scalar_depth"] = cost.memory_in_use, cost.scalar_depth
    found["path"] = _data(cost.path)
    found["schedule"] = cost.schedule
    found["across_tokens"] = cost.across_tokens
    return found


def _data(value: Any) -> Any:
    if isinstance(value, Count):
        data = value.json()
        return {"pieces": data["pieces"], "domain": data["domain"], "at": data["at"]}
    return value
