"""Tables and facts as lines of text and as HTML; rich lays out columns that stand beside each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from textwrap import wrap
from typing import Self, TypeVar

from lattend.report.latex import tabular

T = TypeVar("T")
WIDTH = 100
SAME = "="
GAP = "  "
LEAST_NAME = 24  # characters that a first column keeps when it is cut
LEAST_WORDS = 24  # characters that words beside a name have at least
LEAST_COLUMN = 16  # characters that a column of wrapped words has at least
SHORT = 12  # characters of a column that may stand beside numbers
_TIED = re.compile(r" (=|==|!=|<=|>=|<|>) ")  # what it compares stays on one line
_NUMBER = re.compile(r"[-−~]?[\d,]+([./]\d+)?(e[+-−]?\d+)?%?( ± [\d.,]+)?( [kMGTPEZ])?|[=–…-]|")


@dataclass(frozen=True)
class Table:
    """A table with a head. Cells may have several lines; columns of numbers are aligned to the right.

    A table that `wraps` is one of words: the widest columns are wrapped first where all do not fit.

    >>> Table(("", "pairs"), [("causal", "36"), ("full", "64")]).lines()
    ['        pairs', 'causal     36', 'full       64']
    """

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    wraps: bool = False

    @classmethod
    def of(cls, results: Iterable[T], columns: Mapping[str, Callable[[T], str]], wraps: bool = False) -> Self:
        """A row for each result: the heads of the columns, and how each cell is read off the result.

        >>> Table.of(["a", "bb"], {"text": str, "length": lambda text: str(len(text))}).rows
        [('a', '1'), ('bb', '2')]
        """
        rows = [tuple(cell(result) for cell in columns.values()) for result in results]
        return cls(tuple(columns), rows, wraps)

    @property
    def numbers(self) -> list[bool]:
        """Which columns hold numbers alone."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.head)
        return [any(column) and all(map(_NUMBER.fullmatch, column)) for column in columns]

    def lines(self, width: int | None = None) -> list[str]:
        """The lines of the table, at most this wide: cells are cut, folded below their row, or stacked."""
        widths = self._widths()
        over = 0 if width is None else sum(widths) + len(GAP) * (len(widths) - 1) - width
        if self.wraps and over > 0:
            while over > 0 and max(widths) > LEAST_COLUMN:
                widths[widths.index(max(widths))] -= 1
                over -= 1
            if over == 0:
                return self._wrapped(widths)._beside(widths)
        if width is not None and over > 0 and widths[0] - over < LEAST_NAME and len(widths) > 1:
            folded = self._folded([w <= SHORT and any(self.numbers) for w in widths])
            return folded if max(map(len, folded)) <= width else self._stacked(width)
        widths[0] -= max(0, over)
        return self._beside(widths)

    def html(self) -> str:
        """The same as an HTML table."""
        style = ["text-align: right" if right else "text-align: left" for right in self.numbers]

        def row(cells: Sequence[str], tag: str) -> str:
            pairs = zip(style, cells, strict=True)
            inner = "".join(f'<{tag} style="{s}; white-space: pre">{escape(c)}</{tag}>' for s, c in pairs)
            return f"<tr>{inner}</tr>"

        head = row(self.head, "th") if any(self.head) else ""
        return f"<table>{head}{''.join(row(cells, 'td') for cells in self.rows)}</table>"

    def markdown(self) -> list[str]:
        """The same as the lines of a Markdown table.

        >>> Table(("", "pairs"), [("causal", "36")]).markdown()
        ['|  | pairs |', '| --- | --- |', '| causal | 36 |']
        """
        rows = [self.head, ("---",) * len(self.head), *self.rows]
        cells = ([cell.replace("|", "\\|").replace("\n", "<br>") for cell in row] for row in rows)
        return [f"| {' | '.join(row)} |" for row in cells]

    def latex(self) -> str:
        """The same as a tabular environment."""
        return tabular(self.head, self.rows, self.numbers)

    def _widths(self) -> list[int]:
        from rich.cells import cell_len

        columns = zip(self.head, *self.rows, strict=True)
        return [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]

    def _wrapped(self, widths: Sequence[int]) -> Table:
        def cells(row: tuple[str, ...]) -> tuple[str, ...]:
            return tuple("\n".join(wrap(cell, w)) for cell, w in zip(row, widths, strict=True))

        return Table(self.head, [cells(row) for row in self.rows])

    def _beside(self, widths: Sequence[int]) -> list[str]:
        """All columns side by side; cells that are too long are cut."""
        from rich.console import Console
        from rich.table import Table as Grid
        from rich.text import Text

        grid = Grid(box=None, pad_edge=False, padding=(0, len(GAP), 0, 0), show_header=any(self.head))
        for name, width, right in zip(self.head, widths, self.numbers, strict=True):
            side = "right" if right else "left"
            grid.add_column(Text(name), justify=side, width=width, no_wrap=True, overflow="ellipsis")
        for row in self.rows:
            grid.add_row(*map(Text, row))
        page = StringIO()
        Console(
            file=page, force_jupyter=False, width=sum(widths) + len(GAP) * len(widths), color_system=None
        ).print(grid)
        return [line.rstrip() for line in page.getvalue().splitlines()]

    def _folded(self, narrow: list[bool]) -> list[str]:
        """Narrow columns side by side, and below each row its other cells."""
        stays = [index == 0 or right or narrow[index] for index, right in enumerate(self.numbers)]
        moved = [index for index, stay in enumerate(stays) if not stay]
        kept = [index for index, stay in enumerate(stays) if stay]
        head, *rows = (tuple(row[index] for index in kept) for row in (self.head, *self.rows))
        first, *rest = Table(head, rows).lines() if any(head) else ["", *Table(head, rows).lines()]
        lines = [first] if any(head) else []
        for line, row in zip(rest, self.rows, strict=True):
            lines.append(line)
            for index in moved:
                label = f"{self.head[index]}{GAP}" if self.head[index] else ""
                if (row[index] and row[index] != SAME) or len(self.rows) == 1:
                    cell = row[index].splitlines() or [""]
                    lines += [f"{GAP}{' ' * len(label) if i else label}{text}" for i, text in enumerate(cell)]
        return lines

    def _stacked(self, width: int) -> list[str]:
        """One row after another, each cell behind the name of its column."""
        lines: list[str] = []
        for first, *cells in self.rows:
            lines += wrap_text(f"{self.head[0]} {first}" if first[:1].isdigit() else first, width)
            for name, cell in zip(self.head[1:], cells, strict=True):
                said, *more = (f"{name}: {cell}" if name else cell).splitlines() or [""]
                lines += wrap_text(said, width, indent=GAP) if cell else []
                lines += [line for part in more for line in wrap_text(part, width, indent=2 * GAP)]
        return lines


@dataclass(frozen=True)
class Facts:
    """Names and their facts in two columns, or one below the other on a narrow terminal.

    What is said in several lines stays so: formulas by their pieces.

    >>> Facts([("period", "6"), ("numbers", "exact")]).lines()
    ['period   6', 'numbers  exact']
    """

    rows: Sequence[tuple[str, str]]

    def lines(self, width: int | None = None) -> list[str]:
        indent = max((len(name) for name, _ in self.rows), default=0) + len(GAP)
        width = width or WIDTH
        room = width - indent
        lines: list[str] = []
        for name, words in self.rows:
            if room < LEAST_WORDS:
                lines += wrap_text(name, width)
                lines += [line for part in words.splitlines() for line in wrap_text(part, width, indent=GAP)]
            else:
                parts = words.splitlines() if "\n" in words else wrap_text(words, room)
                first, *rest = [line for part in parts for line in fitted(part, room)] or [""]
                lines += [f"{name:<{indent}}{first}".rstrip(), *(f"{'':{indent}}{line}" for line in rest)]
        return lines

    def html(self) -> str:
        return Table(("", ""), self.rows).html()

    def markdown(self) -> list[str]:
        return Table(("", ""), self.rows).markdown()

    def latex(self) -> str:
        return Table(("", ""), self.rows).latex()


def fitted(line: str, columns: int) -> list[str]:
    """The line, or several lines if it is too long; all but the first are indented."""
    if len(line) <= columns:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    first, *rest = wrap_text(" ".join(line.split()), columns, indent=indent)
    return [first, *wrap_text(" ".join(part.strip() for part in rest), columns, indent=indent + GAP)]


def wrap_text(text: str, columns: int, lines: int | None = None, indent: str = "") -> list[str]:
    """The text in lines of at most `columns` characters; `t = 3` and `k <= q` stay on one line.

    >>> wrap_text("causal, n = 12, t = 3", 12)
    ['causal,', 'n = 12,', 't = 3']
    """
    tied = _TIED.sub("\xa0\\1\xa0", text)
    wide = max(columns, len(indent) + 1)
    parts = wrap(
        tied, wide, max_lines=lines, initial_indent=indent, subsequent_indent=indent, placeholder=" ..."
    )
    return [part.replace("\xa0", " ") for part in parts]
