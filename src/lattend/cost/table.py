"""Tables and reports: how all that lt.cost gives is printed, in a terminal and in a notebook."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Any

WIDTH = 100
SAME, UNKNOWN = "=", "–"
GAP = "  "
LEAST_NAME = 24  # characters that a first column keeps when it is cut
SHORT = 12  # characters of a column that may stand beside numbers
UNITS = ("", "k", "M", "G", "T", "P", "E", "Z")
_NUMBER = re.compile(r"[\d,]+(\.\d+)?(e[+-]\d+)?%?( [kMGTPEZ])?|[=–]|")


def format_value(value: Any) -> str:
    """A number with commas, or a formula; a dash where nothing is known."""
    return UNKNOWN if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def short(number: int) -> str:
    """A number in at most eight characters: 640, 11,272, 4.089 G.

    >>> short(1_814_073_344), short(11_689_512), short(99_999)
    ('1.814 G', '11.69 M', '99,999')
    """
    if abs(number) < 100_000:
        return f"{number:,}"
    scaled, unit = float(number), 0
    while abs(scaled) >= 999.95 and unit < len(UNITS) - 1:
        scaled, unit = scaled / 1000, unit + 1
    digits = 3 - len(str(int(abs(scaled)))) + 1
    return f"{scaled:.{max(0, digits)}f} {UNITS[unit]}"


@dataclass(frozen=True)
class Table:
    """Rows under a head; cells may have several lines, and columns of numbers stand to the right.

    >>> Table(("", "pairs"), [("causal", "36"), ("full", "64")]).lines()
    ['        pairs', 'causal     36', 'full       64']
    """

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    @property
    def numbers(self) -> list[bool]:
        """Which columns hold numbers alone."""
        columns = list(zip(*self.rows, strict=True))
        return [any(column) and all(map(_NUMBER.fullmatch, column)) for column in columns]

    def lines(self, width: int | None = None) -> list[str]:
        """At most so wide: a long first column is cut, or formulas stand below their row."""
        cells = [[cell.splitlines() or [""] for cell in row] for row in (self.head, *self.rows)]
        widths = [max(len(line) for row in cells for line in row[place]) for place in range(len(self.head))]
        over = 0 if width is None else sum(widths) + len(GAP) * (len(widths) - 1) - width
        if over > 0 and widths[0] - over < LEAST_NAME and len(widths) > 1:
            return self._folded([w <= SHORT and any(self.numbers) for w in widths])
        widths[0] -= max(0, over)
        found: list[str] = []
        for row in cells:
            for line in range(max(map(len, row))):
                texts = [cell[line] if line < len(cell) else "" for cell in row]
                if len(texts[0]) > widths[0]:
                    texts[0] = f"{texts[0][: widths[0] - 1]}…"
                sides = zip(texts, widths, self.numbers, strict=True)
                found.append(GAP.join(t.rjust(w) if right else t.ljust(w) for t, w, right in sides).rstrip())
        return found if any(self.head) else found[1:]

    def _folded(self, narrow: list[bool]) -> list[str]:
        """Numbers and narrow columns side by side, and below each row its other cells, a line each."""
        stays = [place == 0 or right or narrow[place] for place, right in enumerate(self.numbers)]
        moved = [place for place, stay in enumerate(stays) if not stay]
        kept = [place for place, stay in enumerate(stays) if stay]
        head, *rows = (tuple(row[place] for place in kept) for row in (self.head, *self.rows))
        first, *found = Table(head, rows).lines() if any(head) else ["", *Table(head, rows).lines()]
        lines = [first] if any(head) else []
        for line, row in zip(found, self.rows, strict=True):
            lines.append(line)
            for place in moved:
                label = f"{self.head[place]}{GAP}" if len(moved) > 1 else ""
                if row[place] != SAME or len(self.rows) == 1:
                    cell = row[place].splitlines() or [""]
                    lines += [f"{GAP}{' ' * len(label) if i else label}{text}" for i, text in enumerate(cell)]
        return lines

    def html(self) -> str:
        """The same as an HTML table."""
        style = ["text-align: right" if right else "text-align: left" for right in self.numbers]

        def row(cells: Sequence[str], tag: str) -> str:
            pairs = zip(style, cells, strict=True)
            inner = "".join(f'<{tag} style="{s}; white-space: pre">{escape(c)}</{tag}>' for s, c in pairs)
            return f"<tr>{inner}</tr>"

        head = row(self.head, "th") if any(self.head) else ""
        return f"<table>{head}{''.join(row(cells, 'td') for cells in self.rows)}</table>"


@dataclass(frozen=True)
class Report:
    """A title, then tables and sentences; a blank line before each table, and for an empty sentence."""

    title: str
    parts: Sequence[Table | str]

    def text(self, width: int | None = None) -> str:
        """For a terminal so many columns wide."""
        lines = wrap(self.title, width) if width else [self.title]
        for part in self.parts:
            if isinstance(part, Table):
                lines += ["", *part.lines(width)]
            else:
                lines += wrap(part, width or WIDTH, subsequent_indent=GAP) or [""]
        return "\n".join(lines)

    def html(self) -> str:
        """For a notebook."""
        parts = [p.html() if isinstance(p, Table) else f"<div>{escape(p)}</div>" for p in self.parts]
        return f"<div><b>{escape(self.title)}</b></div>{''.join(parts)}"


class Printed(ABC):
    """What prints as a report: in a terminal by `text`, in a notebook as tables."""

    @abstractmethod
    def report(self) -> Report:
        """What there is to say."""

    def text(self, width: int | None = WIDTH) -> str:
        """The report in lines of at most `width` characters; None leaves them as long as they are."""
        return self.report().text(width)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.report().html()
