"""PDF: a scene as one page of its own size, drawn by fpdf2."""

from __future__ import annotations

from datetime import UTC, datetime

from fpdf import FPDF

from lattend.draw.formats.scene import POINTS_PER_UNIT, Line, Path, Rect, Scene, Text, spelt

FONT = "Helvetica"
ENCODING = "latin-1"  # what PDF's built-in fonts hold
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)  # a fixed date: equal pictures give equal files


def pdf(scene: Scene, title: str) -> bytes:
    """The scene as a PDF file of one page."""
    unit = POINTS_PER_UNIT
    page = FPDF(unit="pt", format=(unit * scene.width, unit * scene.height))
    page.set_creation_date(EPOCH)
    page.set_title(title)
    page.set_auto_page_break(False)
    page.set_margin(0)
    page.add_page()
    for item in scene.items:
        match item:
            case Rect():
                page.set_fill_color(item.fill)
                page.rect(unit * item.x, unit * item.y, unit * item.width, unit * item.height, style="F")
            case Line():
                page.set_draw_color(item.colour)
                page.set_line_width(unit * item.width)
                page.line(unit * item.x1, unit * item.y1, unit * item.x2, unit * item.y2)
            case Path():
                _trace(page, item)
            case Text():
                _write(page, item)
    return bytes(page.output())


def _trace(page: FPDF, item: Path) -> None:
    points = [(POINTS_PER_UNIT * x, POINTS_PER_UNIT * y) for x, y in item.points]
    if item.fill:
        page.set_fill_color(item.fill)
        with page.local_context(fill_opacity=item.opacity):
            page.polygon(points, style="F")
    if item.colour:
        page.set_draw_color(item.colour)
        page.set_line_width(POINTS_PER_UNIT * item.width)
        page.polyline(points, polygon=item.closed, style="D")


def _write(page: FPDF, item: Text) -> None:
    page.set_font(FONT, "B" if item.bold else "", POINTS_PER_UNIT * item.size)
    page.set_text_color(item.colour)
    text = spelt(item.text, ENCODING)
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[item.anchor] * page.get_string_width(text)
    x, y = POINTS_PER_UNIT * item.x, POINTS_PER_UNIT * item.y
    with page.rotation(90 if item.turned else 0, x, y):
        page.text(x - shift, y, text)
