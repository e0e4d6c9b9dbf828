"""Bars: numbers of several rows side by side, one bar a column."""

# pyright: standard
# (the types of matplotlib are known in part)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lattend.report.table import wrap_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THICK, GAP, WIDE = 14.0, 14.0, 440.0  # of a bar, between rows, of the longest bar


@dataclass(frozen=True)
class Bars:
    """Rows (name, {column: number}), each column in its colour; a row has the columns that it names.

    >>> Bars("Pairs", (("causal", {"needed": 10, "dense": 16}),), {"needed": "#10386b"}).words
    'causal: needed 10, dense 16'
    """

    title: str
    rows: tuple[tuple[str, dict[str, int]], ...]
    colours: dict[str, str]

    @property
    def words(self) -> str:
        """The numbers, as a screen reader says them."""
        return "; ".join(
            f"{name}: " + ", ".join(f"{column} {value:,}" for column, value in row.items())
            for name, row in self.rows
        )

    def names(self) -> list[str]:
        """What stands in the legend."""
        return list(dict.fromkeys(column for _, values in self.rows for column in values))

    def sides(self) -> tuple[float, float]:
        """Width and height between the axes, in units of the picture."""
        return WIDE, sum(GAP + THICK * len(values) for _, values in self.rows)

    def draw(self, ax: Axes) -> None:
        """Draws the bars into the axes of a matplotlib figure, the first row on top."""
        from matplotlib.ticker import NullLocator

        place, middles, named = 0.0, list[float](), set[str]()
        for _, values in self.rows:
            middles.append(place + (GAP + THICK * len(values)) / 2)
            for at, (column, value) in enumerate(values.items()):
                middle, label = place + GAP / 2 + THICK * (at + 0.5), "_" if column in named else column
                bar = ax.barh(middle, value, THICK - 2, color=self.colours[column], label=label)
                ax.bar_label(bar, [f"{value:,}"], padding=3)
                named.add(column)
            place += GAP + THICK * len(values)
        ax.set_title(self.title)
        ax.set_yticks(middles, [name for name, _ in self.rows])
        ax.set_ylim(place, 0)
        ax.set_xlim(0, max(max(values.values()) for _, values in self.rows) or 1)
        ax.xaxis.set_major_locator(NullLocator())
        ax.tick_params("y", length=0)
        ax.spines[["top", "right", "bottom"]].set_visible(False)
        ax.grid(False)

    def lines(self, width: int, block: str) -> list[str]:
        """The bars as characters, each with its number, below the name of its row."""
        numbers = [value for _, values in self.rows for value in values.values()]
        most, digits = max(numbers) or 1, max(len(f"{value:,}") for value in numbers)
        columns = max(map(len, self.names()))
        room = max(1, width - columns - digits - 2)
        lines: list[str] = [self.title] if self.title else []
        for name, values in self.rows:
            lines += wrap_text(name, width)
            for column, value in values.items():
                long = block * max(1, room * value // most) if value else ""
                lines.append(f"{column:<{columns}} {value:>{digits},} {long}")
        return lines
