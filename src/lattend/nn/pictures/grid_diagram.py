"""draw_grid's diagram: a 2-D RNN as two planes, pixels below and states above, and its weights as arrows.

Seen from above: columns run to the right, rows towards the reader.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lattend.cost.reference.recurrence import GATES
from lattend.cost.sizes import Size
from lattend.draw.formats.palette import FAINT_TEXT, TEXT
from lattend.draw.formats.scene import Diagram, Item, Path, Place, Text, arrow, label, ring, spelt, text_width
from lattend.draw.grid.titles import first_to_last
from lattend.draw.picture import Picture
from lattend.errors import DomainError
from lattend.report.table import wrap_text
from lattend.wording import many

Anchor = Literal["start", "middle", "end"]
Pixel = tuple[int, int]
COLOURS = {"W_in": "#009e73", "W_left": "#0072b2", "W_top": "#d55e00"}
PALE = {"W_in": "#a9d9c9", "W_left": "#8fbfdd", "W_top": "#ecb48d"}
PIXEL, STATE, PLANE, LINE = "#fff3d6", "#ffffff", "#eef2f7", "#8c96a3"
MOST = 12  # rows or columns that are drawn; of more, a corner
CORNER = 8  # rows and columns of that corner
MOST_RISING = 36  # arrows from pixels to states
PLANE_WIDTH, LARGEST = 520.0, 88.0
SLANT, DEPTH = 0.36, 0.56  # how far a row moves to the left and down, of a cell's width
SIGNS, PLAIN_SIGNS = "○●□■→↓", "o@.#>v"  # state, bold; pixel, bold; arrows
ROOMY = 52.0  # a cell's width from which on its neighbours are named too
SMALL, LARGE = 11.0, 15.0  # sizes of words and of the equation

_SUM = "W_{in} x_{i,j} + W_{left} h_{i,j−1} + W_{top} h_{i−1,j}"
EQUATIONS = {
    "rnn": (f"h_{{i,j}} = σ({_SUM})",),
    "lstm": (
        f"i, f, l, o = σ(…), g = tanh(…) of the parts of {_SUM}",
        "c_{i,j} = f·(l·c_{i,j−1} + (1 − l)·c_{i−1,j}) + i·g",
        "h_{i,j} = o·tanh(c_{i,j})",
    ),
    "gru": (
        f"r, z, l = σ(…) of the parts of {_SUM}",
        "n = tanh(W_{in} x_{i,j} + r·(W_{left} h_{i,j−1} + W_{top} h_{i−1,j}))",
        "h_{i,j} = (1 − z)·n + z·(l·h_{i,j−1} + (1 − l)·h_{i−1,j})",
    ),
}


def draw_diagram(
    rows: int, cols: int, cell: str = "rnn", pixel: Pixel | None = None, c: Size = "c", h: Size = "h"
) -> Picture:
    """The two planes of a 2-D RNN, the arrows of W_in, W_left and W_top, and the equation beneath.

    The arrows into one pixel's state are bold. Of more than 12 rows or columns the upper left corner is
    drawn, and said to be.

    >>> dict(draw_diagram(4, 4).facts)["W_left"]  # 4 rows of 3
    'h × h, from the state on the left: 12 arrows, none into column 0'
    """
    shown = drawn_cells(rows, cols)
    arrows = {"W_in": rows * cols, "W_left": rows * (cols - 1), "W_top": (rows - 1) * cols}
    gates = GATES[cell]
    tall = f"{gates * h:,}" if isinstance(h, int) else h if gates == 1 else f"{gates}{h}"
    told = {
        "W_in": (f"{tall} × {c}, from the pixel below", ""),
        "W_left": (f"{tall} × {h}, from the state on the left", ", none into column 0"),
        "W_top": (f"{tall} × {h}, from the state above", ", none into row 0"),
    }
    facts = tuple(
        (name, f"{shape}: {many(arrows[name], 'arrow')}{none}") for name, (shape, none) in told.items()
    )
    caption = ["all arrows of a kind have the same weights; where there is no neighbour its state is 0"]
    chosen = tuple(min(length - 1, max(length // 2, 2)) for length in shown) if pixel is None else pixel
    if chosen[0] >= shown[0] or chosen[1] >= shown[1]:
        raise DomainError(
            f"pixel {chosen} is not drawn: of more than {MOST} rows or columns the diagram shows {CORNER}; "
            "choose one there"
        )
    planes = _Planes(*shown, cell, (chosen[0], chosen[1]))
    if shown != (rows, cols):
        here = f"rows {first_to_last(shown[0])} and columns {first_to_last(shown[1])}"
        caption.insert(0, f"shown: {here} of {rows:,} × {cols:,}")
    drawn = () if planes.all_rise else ("W_in is drawn from the last row and from one more pixel",)
    return Picture(
        f"A 2-D RNN on {rows:,} × {cols:,} pixels" + ("" if cell == "rnn" else f", {cell} cells"),
        caption=tuple(caption),
        drawn=drawn,
        facts=facts,
        diagrams=(planes.diagram(),),
        data={
            "size": [rows, cols],
            "cell": cell,
            "shown": list(shown),
            "arrows": arrows,
            "equation": [plain(line) for line in EQUATIONS[cell]],
        },
    )


def drawn_cells(rows: int, cols: int) -> Pixel:
    """How many rows and columns are drawn: all, or those of a corner."""
    return (rows, cols) if max(rows, cols) <= MOST else (min(rows, CORNER), min(cols, CORNER))


def plain(formula: str) -> str:
    """A formula in one line of text: two subscripts are places in brackets.

    >>> plain("W_{in} x_{i,j−1}")
    'W_in x[i, j−1]'
    """
    return re.sub(r"_\{(\w+)\}", r"_\1", re.sub(r"_\{([^{},]+),([^{}]+)\}", r"[\1, \2]", formula))


def latex(formula: str) -> str:
    r"""A formula of EQUATIONS as LaTeX.

    >>> print(latex("h_{i,j} = σ(W_{in} x_{i,j−1})"))
    h_{i,j} = \sigma(W_{\text{in}} x_{i,j-1})
    """
    found = re.sub(r"_\{(\w\w+)\}", r"_{\\text{\1}}", formula)
    found = found.replace(" of the parts of ", r"\text{ of the parts of }")
    signs = {"σ": r"\sigma", "−": "-", "·": r" \cdot ", "tanh": r"\tanh", "…": r"\ldots"}
    for sign, command in signs.items():
        found = found.replace(sign, command)
    return found


@dataclass(frozen=True)
class _Planes:
    """Where pixels and states of a grid stand, in units of the picture."""

    rows: int
    cols: int
    cell: str
    chosen: Pixel  # the cell whose arrows are bold

    @property
    def side(self) -> float:
        return min(LARGEST, PLANE_WIDTH / (self.cols + SLANT * self.rows))

    @property
    def left(self) -> float:
        return 34.0 + SLANT * self.side * self.rows

    @property
    def between(self) -> float:
        """How far below the states the pixels lie."""
        return self.side * (DEPTH * self.rows + 1.25)

    @property
    def all_rise(self) -> bool:
        """Whether every pixel's arrow is drawn; more would be a curtain."""
        return self.rows * self.cols <= MOST_RISING

    def place(self, row: float, col: float, pixels: bool = False) -> Place:
        """A place of the plane of states, or of that of pixels."""
        down = 40.0 + (self.between if pixels else 0.0)
        return self.left + self.side * (col - SLANT * row), down + self.side * DEPTH * row

    def centre(self, row: int, col: int, pixels: bool = False) -> Place:
        return self.place(row + 0.5, col + 0.5, pixels)

    def arrows(self) -> Iterator[tuple[str, Pixel, Pixel]]:
        """The weights, the cell an arrow comes from and the one it leads to, for every arrow."""
        for row, col in itertools.product(range(self.rows), range(self.cols)):
            yield "W_in", (row, col), (row, col)
            if col:
                yield "W_left", (row, col - 1), (row, col)
            if row:
                yield "W_top", (row - 1, col), (row, col)

    def diagram(self) -> Diagram:
        words = " ".join(plain(line) for line in EQUATIONS[self.cell])
        bottom = self.place(self.rows, 0, pixels=True)[1]
        items = [*self._below(), *self._above(), *self._names()]
        right = self.place(0, self.cols)[0]
        equations = EQUATIONS[self.cell]
        wide = max(right + 60.0, *(text_width(plain(line), LARGE) + 24 for line in equations))
        y = bottom + 40.0
        for line in equations:
            items.append(Text(wide / 2, y, line, LARGE, TEXT, "middle", formula=True))
            y += LARGE + 9
        return Diagram(wide, y - 6, tuple(items), self.lines, words)

    def _tile(self, row: int, col: int, fill: str, pixels: bool) -> Path:
        corners = ((row, col), (row, col + 1), (row + 1, col + 1), (row + 1, col))
        return Path(tuple(self.place(*at, pixels) for at in corners), LINE, 0.7, fill, closed=True)

    def _below(self) -> Iterator[Item]:
        """The pixels, and the arrows that rise from them."""
        for row, col in itertools.product(range(self.rows), range(self.cols)):
            yield self._tile(row, col, "#f5c65d" if (row, col) == self.chosen else PIXEL, pixels=True)
        for name, before, here in self.arrows():
            if name == "W_in" and here != self.chosen and (self.all_rise or here[0] == self.rows - 1):
                yield from self._arrow(name, before, here)

    def _above(self) -> Iterator[Item]:
        """The plane of states, half transparent, its arrows and its units; the chosen one's last."""
        corners = ((0, 0), (0, self.cols), (self.rows, self.cols), (self.rows, 0))
        yield Path(tuple(self.place(*at) for at in corners), LINE, 0.9, PLANE, 0.72, closed=True)
        usual = [found for found in self.arrows() if found[0] != "W_in" and found[2] != self.chosen]
        for name, before, here in usual:
            yield from self._arrow(name, before, here)
        for name, before, here in self.arrows():
            if here == self.chosen:
                yield from self._arrow(name, before, here)
        across, down = self._unit
        for row, col in itertools.product(range(self.rows), range(self.cols)):
            bold = (row, col) == self.chosen
            fill = "#f5c65d" if bold else STATE
            yield ring(self.centre(row, col), across, down, TEXT, 1.4 if bold else 0.9, fill)

    @property
    def _unit(self) -> tuple[float, float]:
        return 0.19 * self.side, 0.15 * self.side

    def _arrow(self, name: str, before: Pixel, here: Pixel) -> Iterator[Item]:
        """From the edge of one unit to the edge of the next, or from a pixel up to its state."""
        bold = here == self.chosen
        across, down = self._unit
        tail, tip = self.centre(*before, pixels=name == "W_in"), self.centre(*here)
        if name == "W_in":
            tip = tip[0], tip[1] + down
        elif name == "W_left":
            tail, tip = (tail[0] + across, tail[1]), (tip[0] - across - 1, tip[1])
        else:  # along the slant, as long as a unit reaches in that direction
            far = ((SLANT / across) ** 2 + (DEPTH / down) ** 2) ** -0.5
            tail = tail[0] - SLANT * far, tail[1] + DEPTH * far
            tip = tip[0] + SLANT * (far + 1), tip[1] - DEPTH * (far + 1)
        colour = COLOURS[name] if bold else PALE[name]
        thick = 2.0 if bold else 1.0 if name != "W_in" else 0.6
        yield from arrow(tail, tip, colour, thick, min(9.0, 0.15 * self.side) * (1.15 if bold else 0.9))

    def _names(self) -> Iterator[Item]:
        """The planes, rows and columns, the chosen cell's weights and what they join."""
        for pixels, words in ((False, "hidden plane h"), (True, "input plane x")):
            x, y = self.place(self.rows, self.cols, pixels)
            yield Text(x + 8, y, words, SMALL + 1, TEXT, bold=True)
        for col in range(self.cols):
            x, y = self.place(0, col + 0.5)
            yield Text(x, y - 5, str(col), 9, FAINT_TEXT, "middle")
        for row in range(self.rows):
            x, y = self.place(row + 0.5, 0)
            yield Text(x - 5, y + 3, str(row), 9, FAINT_TEXT, "end")
        x, y = self.place(0, self.cols / 2)
        yield Text(x, y - 18, "column j", SMALL, FAINT_TEXT, "middle")
        x, y = self.place(self.rows / 2, 0)
        yield Text(x - 18, y - 4, "row i", SMALL, FAINT_TEXT, "end")
        row, col = self.chosen
        across, down = self._unit
        size = max(9.0, min(SMALL + 2, 0.18 * self.side))
        texts: list[Text] = []

        def word(at: Place, dx: float, dy: float, text: str, anchor: Anchor, colour: str = TEXT) -> None:
            texts.append(Text(at[0] + dx, at[1] + dy, text, size, colour, anchor, formula=True))

        roomy = self.side >= ROOMY
        word(self.centre(row, col), 0.8 * across, down + size, "h_{i,j}", "start")
        if col:
            word(self.place(row + 0.5, col), -2, -6, "W_{left}", "middle", COLOURS["W_left"])
        if col and roomy:
            word(self.centre(row, col - 1), 0.6 * across, down + size, "h_{i,j−1}", "start")
        if row:
            word(self.place(row, col + 0.5), 7, 5, "W_{top}", "start", COLOURS["W_top"])
        if row and roomy:
            word(self.centre(row - 1, col), -0.8 * across, -down - 3, "h_{i−1,j}", "end")
        word(self.centre(row, col, pixels=True), 5, size - 2, "x_{i,j}", "start")
        gap = self.place(self.rows, 0)[1] + 0.7 * self.side
        word((self.centre(row, col)[0], gap), 6, 0, "W_{in}", "start", COLOURS["W_in"])
        for text in texts:
            yield from label(text)

    def lines(self, width: int, encoding: str) -> list[str]:
        """The planes in characters, side by side or below each other, what arrows mean, and the equation."""
        signs = SIGNS if spelt(SIGNS, encoding) == SIGNS else PLAIN_SIGNS
        state, own, pixel, own_pixel, right, down = signs
        cols = min(self.cols, max(2, (width + 3) // 4))
        states: list[str] = []
        pixels: list[str] = []
        for row in range(self.rows):
            here = [(row, col) == self.chosen for col in range(cols)]
            states.append(f" {right} ".join(own if bold else state for bold in here))
            pixels.append("   ".join(own_pixel if bold else pixel for bold in here))
            if row + 1 < self.rows:
                states.append("   ".join(down * cols))
                pixels.append("")
        names = "input plane x", "hidden plane h"
        wide = max(4 * cols - 3, len(names[0]))
        if 2 * wide + 4 <= width:
            pairs = zip((names[0], *pixels), (names[1], *states), strict=True)
            found = [f"{a:<{wide + 4}}{b}" for a, b in pairs]
        else:
            found = [names[0], *pixels, "", names[1], *states]
        if cols < self.cols:
            found += wrap_text(f"columns 0 to {cols - 1} of {self.cols}", width)
        rises = f"W_in from each {pixel} to the {state} in its place"
        found += ["", *wrap_text(f"{right} W_left   {down} W_top   {rises}", width), ""]
        for line in EQUATIONS[self.cell]:
            found += wrap_text(spelt(plain(line), encoding), width)
        return found
