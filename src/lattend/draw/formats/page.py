"""Page: a scene as a PNG or PDF file, drawn by matplotlib, whose font has Greek, signs and subscripts."""

# pyright: standard
# (the types of matplotlib are known in part)

from __future__ import annotations

import io
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path as Outline
from matplotlib.transforms import Affine2D

from lattend.draw.formats.scene import DROP, POINTS_PER_UNIT, SUBSCRIPT, Path, Rect, Scene, Segment, Text
from lattend.errors import LattendError

FONT = "DejaVu Sans"  # which matplotlib brings along
UNITS_PER_INCH = 72 / POINTS_PER_UNIT
MOST_PIXELS = 2**24
# Letters, not their outlines, so that a PDF can be searched
STYLE: dict[Any, Any] = {"pdf.fonttype": 42, "pdf.compression": 6, "path.simplify": False}


def png(scene: Scene, scale: float) -> bytes:
    """The scene as a PNG file, `scale` pixels a unit."""
    if not (scale > 0 and 1 <= scale * scene.width * scale * scene.height <= MOST_PIXELS):
        raise LattendError(
            f"this picture is {scene.width:.0f} by {scene.height:.0f} units: scale={scale:g} does not give "
            f"a PNG of 1 to {MOST_PIXELS:,} pixels; scale=2 is usual"
        )
    return _file(scene, "png", scale, {"Software": None})


def pdf(scene: Scene, title: str) -> bytes:
    """The scene as a PDF file of one page; without a date, so that equal scenes give equal files."""
    return _file(scene, "pdf", 1.0, {"Title": title, "CreationDate": None})


def _file(scene: Scene, form: str, scale: float, metadata: dict[str, Any]) -> bytes:
    dots = UNITS_PER_INCH * scale  # an inch
    sides = scene.width, scene.height
    if form == "png":  # matplotlib cuts off parts of a pixel; half of one keeps rounding from taking a whole
        sides = tuple((max(1, round(scale * side)) + 0.5) / scale for side in sides)
    figure = Figure((sides[0] / UNITS_PER_INCH, sides[1] / UNITS_PER_INCH), frameon=False)
    figure.add_artist(_Painting(scene))
    file = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(file, format=form, dpi=dots, metadata=metadata)
    return file.getvalue()


class _Painting(Artist):
    """The items of a scene in painting order, from the upper left corner of a figure."""

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self.scene = scene

    def draw(self, renderer: RendererBase) -> None:
        _, height = renderer.get_canvas_width_height()
        unit = float(np.asarray(renderer.points_to_pixels(POINTS_PER_UNIT)))
        place = Affine2D().scale(unit, -unit).translate(0, height)
        for item in self.scene.items:
            pen = renderer.new_gc()
            if isinstance(item, Text):
                _write(item, renderer, pen, place)
            else:
                _trace(item, renderer, pen, place)
            pen.restore()


def _trace(
    item: Rect | Segment | Path, renderer: RendererBase, pen: GraphicsContextBase, place: Affine2D
) -> None:
    colour, width, fill, opacity, closed = "", 0.0, "", 1.0, False
    match item:
        case Rect():
            right, bottom = item.x + item.width, item.y + item.height
            points = (item.x, item.y), (right, item.y), (right, bottom), (item.x, bottom)
            fill, closed = item.fill, True
            pen.set_snap(True)  # whole pixels, so that no seam shows between two cells
        case Segment():
            points = (item.x1, item.y1), (item.x2, item.y2)
            colour, width = item.colour, item.width
        case Path():
            points, colour, width = item.points, item.colour, item.width
            fill, opacity, closed = item.fill, item.opacity, item.closed
    pen.set_linewidth(POINTS_PER_UNIT * width if colour else 0)
    pen.set_foreground(colour or fill)
    corners = [*points, points[0]] if closed else points
    renderer.draw_path(pen, Outline(corners, closed=closed), place, to_rgba(fill, opacity) if fill else None)


def _write(item: Text, renderer: RendererBase, pen: GraphicsContextBase, place: Affine2D) -> None:
    weight = "bold" if item.bold else "normal"
    pieces: list[tuple[str, FontProperties, float, float]] = []  # text, font, length, how much lower
    for text, lower in item.pieces:
        size = POINTS_PER_UNIT * item.size * (SUBSCRIPT if lower else 1)
        font = FontProperties(family=FONT, size=size, weight=weight)
        length, _, _ = renderer.get_text_width_height_descent(text, font, False)
        drop = float(np.asarray(renderer.points_to_pixels(POINTS_PER_UNIT * DROP * item.size)))
        pieces.append((text, font, length, drop if lower else 0.0))
    along = -{"start": 0.0, "middle": 0.5, "end": 1.0}[item.anchor] * sum(piece[2] for piece in pieces)
    corner = place.transform((item.x, item.y))
    pen.set_foreground(item.colour)
    for text, font, length, drop in pieces:
        x, y = corner + ((drop, along) if item.turned else (along, -drop))
        y = renderer.get_canvas_width_height()[1] - y if renderer.flipy() else y
        renderer.draw_text(pen, x, y, text, font, 90 if item.turned else 0)
        along += length
