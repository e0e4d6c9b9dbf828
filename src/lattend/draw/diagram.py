"""Diagram: boxes, arrows and words in places of their own, and the same in characters for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lattend.draw.formats.palette import PAPER
from lattend.draw.formats.scene import SUBSCRIPT, Item, Path, Text, moved, text_width

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
