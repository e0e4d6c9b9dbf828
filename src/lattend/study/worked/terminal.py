"""Terminal: the steps as tables in plain characters, exact and decimal side by side where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from lattend.draw.picture import terminal_columns
from lattend.errors import NamingError
from lattend.report.table import wrap_text
from lattend.study.worked.entry import Rows, Step, plain, too_long

if TYPE_CHECKING:
    from lattend.study.worked.work import Worked

SHOWN = ("both", "exact", "decimal")
MOST_ROWS = 16  # rows, and columns, of a table that is printed
NARROWEST = 20
GAP = "   "
Cells = list[list[str]]


def terminal(worked: Worked, width: int | None = None, places: int = 4, show: str = "both") -> str:
    """What is given and all steps, in lines no longer than `width`; short tables beside each other."""
    columns = max(NARROWEST, width or terminal_columns())
    lines = wrap_text("Attention worked through", columns)
    for statement in worked.statements(show):
        lines += wrap_text(statement, columns)
    for steps in (worked.exercise, worked.steps[:3], *((step,) for step in worked.steps[3:])):
        blocks = [step_lines(step, columns, places, show) for step in steps]
        lines += ["", *_beside(blocks, columns, between=[""])]
    return "\n".join(line.rstrip() for line in lines)


def step_lines(step: Step, width: int | None = None, places: int = 4, show: str = "both") -> list[str]:
    """One step: its title and formula, then a table, or one a head."""
    columns = max(NARROWEST, width or terminal_columns())
    lines = wrap_text(f"{step.title}: {step.formula}", columns)
    tables = [_table(step, rows, columns, places, forms_of(step, rows, show)) for rows in step.tables]
    if step.per_head:
        tables = [[f"head {head + 1}", *table] for head, table in enumerate(tables)]
    lines += _beside(tables, columns)
    return [line.rstrip() for line in lines]


def step_text(step: Step) -> str:
    """One step by itself, and why it has no exact forms where it has none."""
    columns = max(NARROWEST, terminal_columns())
    notes = [part for note in too_long([step]) for part in wrap_text(note, columns)]
    return "\n".join([*step_lines(step, columns), *notes])


def _beside(blocks: list[list[str]], width: int, between: Sequence[str] = ()) -> list[str]:
    """The blocks in rows, as many in each as fit."""
    lines: list[str] = []
    while blocks:
        many = 1
        while many < len(blocks) and _width(_row(blocks[: many + 1])) <= width:
            many += 1
        lines += [*(between if lines else ()), *_row(blocks[:many])]
        blocks = blocks[many:]
    return lines


def _row(blocks: list[list[str]]) -> list[str]:
    wide = [_width(block) for block in blocks]
    return [
        GAP.join(part.ljust(columns) for part, columns in zip(parts, wide, strict=True)).rstrip()
        for parts in zip_longest(*blocks, fillvalue="")
    ]


def forms_of(step: Step, rows: Rows, show: str) -> tuple[str, ...]:
    """What of a table is written: exact forms, decimals, or both; one where the two are alike or too long."""
    if show not in SHOWN:
        raise NamingError(f"show is one of {', '.join(SHOWN)}, not {show!r}")
    if show == "decimal" or not step.readable:
        return ("decimal",)
    return ("exact",) if show == "exact" or plain(rows) else ("exact", "decimal")


def _table(step: Step, rows: Rows, width: int, places: int, forms: tuple[str, ...]) -> list[str]:
    shown = [row[:MOST_ROWS] for row in rows[:MOST_ROWS]]
    left_out = (len(rows) - len(shown), len(rows[0]) - len(shown[0]))
    exact = [[entry.text or "" for entry in row] for row in shown]
    rounded = [[entry.decimal(places) for entry in row] for row in shown]
    lines = _arranged(step, exact, rounded, width, forms)
    if any(left_out):
        parts = zip(left_out, ("row", "column"), strict=True)
        rest = " and ".join(f"{many} more {name}{'s' if many > 1 else ''}" for many, name in parts if many)
        lines += wrap_text(f"{rest} not printed; JSON, HTML, Markdown and LaTeX have them", width)
    return lines


def _arranged(step: Step, exact: Cells, rounded: Cells, width: int, forms: tuple[str, ...]) -> list[str]:
    """The cells side by side, below each other, or one a line: the first that is narrow enough."""
    if "exact" not in forms:
        return _in_groups(step, rounded, width, right=True)
    if forms == ("exact",):
        return _in_groups(step, exact, width, right=exact == rounded)
    left, numbers = _block(step, exact, right=False), _block(step, rounded, right=True)
    margin = len(str(len(exact))) + 2
    if _width(left) + len(GAP) + _width(numbers) - margin <= width:
        return _beside([left, [line[margin:] for line in numbers]], width)
    longest = max(len(form) for row in exact for form in row)
    if _width(numbers) <= width and (_width(left) <= width or margin + 2 * longest + 2 <= width):
        return [*_in_groups(step, exact, width, right=False), *numbers]
    return _listed(step, exact, rounded, width)


def _block(step: Step, cells: Cells, right: bool, first: int = 0) -> list[str]:
    """Rows under the numbers of the columns."""
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    names = [str(first + index + 1) for index in range(len(wide))]
    wide = [max(width, len(name)) for width, name in zip(wide, names, strict=True)]
    margin = len(str(len(cells)))
    lines = [_line(" " * margin, names, wide, right)] if step.across else []
    return lines + [_line(f"{index + 1:>{margin}}", row, wide, right) for index, row in enumerate(cells)]


def _line(name: str, cells: Sequence[str], wide: Sequence[int], right: bool) -> str:
    return "  ".join(
        [name, *(c.rjust(w) if right else c.ljust(w) for c, w in zip(cells, wide, strict=True))]
    ).rstrip()


def _in_groups(step: Step, cells: Cells, width: int, right: bool) -> list[str]:
    """As many columns at a time as there is room for."""
    margin = len(str(len(cells)))
    lines: list[str] = []
    first = last = 0
    while first < len(cells[0]):
        part = [row[first : first + 1] for row in cells]
        last = first + 1
        while last < len(cells[0]):
            wider = [row[first : last + 1] for row in cells]
            if _width(_block(step, wider, right, first)) > width:
                break
            part, last = wider, last + 1
        lines += _block(step, part, right, first)
        first = last
    return [piece for line in lines for piece in _folded(line, width, margin)]


def _folded(line: str, width: int, margin: int) -> list[str]:
    """A line that is still too long with its rest under its first cell."""
    if len(line) <= width:
        return [line]
    first, *rest = wrap_text(line, width)
    return [
        first,
        *(f"{' ' * (margin + 2)}{part}" for piece in rest for part in wrap_text(piece, width - margin - 2)),
    ]


def _listed(step: Step, exact: Cells, rounded: Cells, width: int) -> list[str]:
    """One number a line, its decimal behind it, or below it where there is no room."""
    lines: list[str] = []
    margin = len(str(len(exact[0])))
    longest = max(len(form) for forms in exact for form in forms)
    for index, (forms, numbers) in enumerate(zip(exact, rounded, strict=True)):
        lines.append(f"{step.down} {index + 1}")
        for at, (form, shown) in enumerate(zip(forms, numbers, strict=True)):
            name = f"  {at + 1:>{margin}}  " if step.across else "  "
            if form == shown:
                parts = [form]
            elif len(name) + longest + 2 + len(shown) <= width:
                parts = [f"{form:<{longest}}  {shown}"]
            else:
                parts = [*wrap_text(form, width - len(name)), shown]
            lines += [f"{name if not i else ' ' * len(name)}{part}" for i, part in enumerate(parts)]
    return lines


def _width(lines: Sequence[str]) -> int:
    return max(map(len, lines))
