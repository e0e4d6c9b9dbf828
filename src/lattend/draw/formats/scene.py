"""Scene: rectangles, lines, paths, text and diagrams in abstract units, for every graphic form.

x grows to the right and y downwards; one unit is a CSS pixel, 3/4 of a point on paper.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from lattend.draw.formats.palette import PAPER, Look
from lattend.report.signs import SPELLINGS
from lattend.report.table import wrap_text

POINTS_PER_UNIT = 0.75
SUBSCRIPT, DROP = 0.72, 0.24  # size of a subscript and how much lower it stands, of the size of the text
_SUBSCRIPT = re.compile(r"_\{([^{}]*)\}")
RING = 24  # corners of a ring
NARROW, WIDE = " .,:;'!|()[]/-iljtfrIJ", "#%&+<=>@MWmw~×−±≤≥≈→∞Σ…"


@dataclass(frozen=True, slots=True)
class Rect:
    x: float
    y: float
    width: float
    height: float
    fill: str


@dataclass(frozen=True, slots=True)
class Segment:
    x1: float
    y1: float
    x2: float
    y2: float
    colour: str
    width: float


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text whose baseline passes through (x, y); `turned` reads upwards.

    In a `formula`, W_{in} has a subscript.
    """

    x: float
    y: float
    text: str
    size: float
    colour: str
    anchor: Literal["start", "middle", "end"] = "start"
    bold: bool = False
    turned: bool = False
    formula: bool = False

    @property
    def pieces(self) -> list[tuple[str, bool]]:
        """What is written, and whether it is a subscript.

        >>> Text(0, 0, "W_{in} x", 11, "#000000", formula=True).pieces
        [('W', False), ('in', True), (' x', False)]
        """
        if not self.formula:
            return [(self.text, False)]
        parts = _SUBSCRIPT.split(self.text)
        return [(part, index % 2 == 1) for index, part in enumerate(parts) if part]


@dataclass(frozen=True, slots=True)
class Path:
    """A line through points where it has a `colour`, and the area they enclose where it has a `fill`."""

    points: tuple[tuple[float, float], ...]
    colour: str = ""
    width: float = 0.0
    fill: str = ""
    opacity: float = 1.0  # of the area
    closed: bool = False


Item = Rect | Segment | Path | Text


@dataclass(frozen=True, slots=True)
class Scene:
    """Items in painting order on a page of this width and height."""

    width: float
    height: float
    items: tuple[Item, ...]


def patch(
    rect: Rect, look: Look, spacing: float, origin: tuple[float, float], cell: tuple[float, float]
) -> Iterator[Item]:
    """The rectangle, its hatch, and its sign in every cell of this width and height.

    Hatches of one origin and spacing continue from patch to patch.
    """
    yield rect
    if look.sign:
        rows, cols = round(rect.height / cell[1]), round(rect.width / cell[0])
        for row, col in itertools.product(range(rows), range(cols)):
            yield from _sign(rect.x + (col + 0.5) * cell[0], rect.y + (row + 0.5) * cell[1], look, min(cell))
    if look.hatch in ("/", "x"):
        yield from _diagonals(rect, look.ink, spacing, origin, +1)
    if look.hatch in ("\\", "x"):
        yield from _diagonals(rect, look.ink, spacing, origin, -1)
    if look.hatch == "+":
        width = _hatch_width(spacing)
        for x in _steps(rect.x, rect.x + rect.width, spacing, origin[0]):
            yield Segment(x, rect.y, x, rect.y + rect.height, look.ink, width)
        for y in _steps(rect.y, rect.y + rect.height, spacing, origin[1]):
            yield Segment(rect.x, y, rect.x + rect.width, y, look.ink, width)


def _sign(x: float, y: float, look: Look, side: float) -> Iterator[Item]:
    """The look's sign around a point, in a cell of this side: strokes of a cross, a ring, or both."""
    arm, width = 0.27 * side, max(0.6, min(1.6, side / 12))
    if look.sign in ("/", "X", "@"):
        yield Segment(x - arm, y + arm, x + arm, y - arm, look.ink, width)
    if look.sign in ("\\", "X", "@"):
        yield Segment(x - arm, y - arm, x + arm, y + arm, look.ink, width)
    if look.sign == "+":
        yield Segment(x - arm, y, x + arm, y, look.ink, width)
        yield Segment(x, y - arm, x, y + arm, look.ink, width)
    if look.sign in ("o", "@"):
        turns = (2 * math.pi * corner / RING for corner in range(RING))
        around = tuple((x + 1.42 * arm * math.cos(t), y + 1.42 * arm * math.sin(t)) for t in turns)
        yield Path(around, look.ink, width, closed=True)


def _diagonals(
    rect: Rect, ink: str, spacing: float, origin: tuple[float, float], sign: Literal[1, -1]
) -> Iterator[Segment]:
    """Lines x + sign * y = constant, cut to the rectangle."""
    low, high = sorted((sign * rect.y, sign * (rect.y + rect.height)))
    right = rect.x + rect.width
    for level in _steps(rect.x + low, right + high, spacing, origin[0] + sign * origin[1]):
        x1, x2 = max(rect.x, level - high), min(right, level - low)
        yield Segment(x1, sign * (level - x1), x2, sign * (level - x2), ink, _hatch_width(spacing))


def _steps(low: float, high: float, spacing: float, origin: float) -> Iterator[float]:
    """The places origin + (i + 1/2) * spacing strictly between low and high."""
    first = math.floor((low - origin) / spacing + 0.5)
    place = origin + (first + 0.5) * spacing
    while place < high - 1e-9:
        yield place
        place += spacing


def _hatch_width(spacing: float) -> float:
    return max(0.5, min(1.4, spacing / 7))


def moved(item: Item, x: float, y: float) -> Item:
    """The item so far to the right and below."""
    match item:
        case Path():
            return replace(item, points=tuple((a + x, b + y) for a, b in item.points))
        case Segment():
            return replace(item, x1=item.x1 + x, y1=item.y1 + y, x2=item.x2 + x, y2=item.y2 + y)
        case Rect() | Text():
            return replace(item, x=item.x + x, y=item.y + y)


def text_width(text: str, size: float, bold: bool = False) -> float:
    """How wide the text is in DejaVu Sans, a wide face, so that it fits in the others too."""
    narrow, wide = (sum(map(text.count, letters)) for letters in (NARROW, WIDE))
    return size * (0.38 * narrow + 0.9 * wide + 0.64 * (len(text) - narrow - wide)) * (1.13 if bold else 1.0)


def wrapped(text: str, size: float, width: float, lines: int = 3, bold: bool = False) -> list[str]:
    """The text in lines no wider than `width`, at most `lines` of them, "..." where it was cut."""
    columns = max(8, int(width / (0.36 * size)))
    while True:
        parts = wrap_text(text, columns, lines)
        widest = max((text_width(part, size, bold) for part in parts), default=0.0)
        if widest <= width or columns <= 8:
            return parts
        columns = max(8, min(columns - 1, int(columns * width / widest) + 1))


def spelt(text: str, encoding: str) -> str:
    """The text in characters of this encoding: signs spelt out, the rest replaced by "?"."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(SPELLINGS).encode(encoding, "replace").decode(encoding)
    return text


Place = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Diagram:
    """Items on a sheet of this width and height, and a plain version of them.

    `lines(width, encoding)` gives that version in lines no longer than the width, in signs of the encoding.
    """

    width: float
    height: float
    drawn: tuple[Item, ...]
    lines: Callable[[int, str], list[str]]
    words: str = ""

    def items(self, x: float, y: float) -> Iterator[Item]:
        """The items of a sheet whose upper left corner is here."""
        return (moved(item, x, y) for item in self.drawn)


def arrow(tail: Place, tip: Place, colour: str, width: float, head: float) -> Iterator[Item]:
    """A straight arrow with a head of this length."""
    long = math.dist(tail, tip)
    along = (tip[0] - tail[0]) / long, (tip[1] - tail[1]) / long
    neck = tip[0] - head * along[0], tip[1] - head * along[1]
    side = 0.36 * head * along[1], -0.36 * head * along[0]
    yield Path((tail, neck), colour, width)
    wings = (neck[0] + side[0], neck[1] + side[1]), (neck[0] - side[0], neck[1] - side[1])
    yield Path((tip, *wings), fill=colour, closed=True)


def ring(centre: Place, across: float, down: float, colour: str, width: float, fill: str) -> Path:
    """An ellipse with these half axes."""
    turns = (2 * math.pi * corner / 48 for corner in range(48))
    points = tuple((centre[0] + across * math.cos(t), centre[1] + down * math.sin(t)) for t in turns)
    return Path(points, colour, width, fill, closed=True)


def label(text: Text) -> Iterator[Item]:
    """A word on a light ground, so that it is read over lines."""
    wide = sum(text_width(part, text.size * (SUBSCRIPT if low else 1)) for part, low in text.pieces)
    left = text.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor] * wide
    top, bottom = text.y - 0.82 * text.size, text.y + 0.36 * text.size
    corners = (left - 1, top), (left + wide + 1, top), (left + wide + 1, bottom), (left - 1, bottom)
    yield Path(corners, fill=PAPER, opacity=0.82, closed=True)
    yield text
