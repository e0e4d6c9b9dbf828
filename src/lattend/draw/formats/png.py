"""PNG: a scene as pixels, drawn by Pillow with the font it brings along."""

from __future__ import annotations

import io
import math

from PIL import Image, ImageDraw, ImageFont

from lattend.draw.formats.scene import Line, Path, Rect, Scene, Text
from lattend.draw.formats.signs import SPELLINGS
from lattend.errors import LattendError

OVERSAMPLING = 2  # drawn larger and reduced: slanted lines and letters come out smooth
MOST_PIXELS = 2**24
IN_FONT = "±·…"  # of the signs; the font has no others
_SPELLINGS = {sign: said for sign, said in SPELLINGS.items() if chr(sign) not in IN_FONT}


def png(scene: Scene, scale: float) -> bytes:
    """The scene as a PNG file, `scale` pixels a unit."""
    pixels = scale * scene.width * scale * scene.height
    if not (scale > 0 and 1 <= pixels <= MOST_PIXELS):
        raise LattendError(
            f"this picture is {scene.width:.0f} by {scene.height:.0f} units: scale={scale:g} does not give "
            f"a PNG of 1 to {MOST_PIXELS:,} pixels; scale=2 is usual"
        )
    zoom = scale * OVERSAMPLING
    size = (round(scale * scene.width) * OVERSAMPLING, round(scale * scene.height) * OVERSAMPLING)
    image = Image.new("RGB", (max(OVERSAMPLING, size[0]), max(OVERSAMPLING, size[1])))
    canvas = ImageDraw.Draw(image)
    for item in scene.items:
        match item:
            case Rect():
                right, bottom = round(zoom * (item.x + item.width)), round(zoom * (item.y + item.height))
                left, top = round(zoom * item.x), round(zoom * item.y)
                if left < right and top < bottom:  # Pillow's corners are both inside
                    canvas.rectangle((left, top, right - 1, bottom - 1), item.fill)
            case Line():
                ends = (zoom * item.x1, zoom * item.y1, zoom * item.x2, zoom * item.y2)
                canvas.line(ends, item.colour, max(1, round(zoom * item.width)))
            case Path():
                _trace(image, item, zoom)
            case Text():
                _write(image, item, zoom)
    file = io.BytesIO()
    image.reduce(OVERSAMPLING).save(file, "PNG", optimize=True)
    return file.getvalue()


def _trace(image: Image.Image, item: Path, zoom: float) -> None:
    points = [(zoom * x, zoom * y) for x, y in item.points]
    if item.fill:
        veil = ImageDraw.Draw(image, "RGBA")  # blends with what lies below
        veil.polygon(points, f"{item.fill}{round(255 * item.opacity):02x}")
    if item.colour:
        ends = [*points, *points[:2]] if item.closed else points  # the second again, for a round joint
        width = max(1, round(zoom * item.width))
        ImageDraw.Draw(image).line(ends, item.colour, width, joint="curve")


def _write(image: Image.Image, item: Text, zoom: float) -> None:
    font = ImageFont.load_default(zoom * item.size)
    words = _drawn(item.text).split(" ")
    stroke = zoom * item.size / 80 if item.bold else 0.0  # the font has one weight
    gap = zoom * item.size * (0.32 if item.bold else 0.27)  # and narrow spaces
    lengths = [font.getlength(word) for word in words]
    length, height = math.ceil(sum(lengths) + gap * (len(words) - 1)), round(3 * zoom * item.size)
    strip = Image.new("L", (length + 8, height))
    canvas, at = ImageDraw.Draw(strip), 4.0
    for word, advance in zip(words, lengths, strict=True):
        canvas.text((at, height / 2), word, 255, font, "ls", stroke_width=stroke)
        at += advance + gap
    shift = {"start": 0.0, "middle": length / 2, "end": float(length)}[item.anchor]
    x, y = zoom * item.x, zoom * item.y
    if item.turned:
        strip = strip.rotate(90, expand=True)
        corner = (x - height / 2, y + shift - length - 4)
    else:
        corner = (x - shift - 4, y - height / 2)
    image.paste(item.colour, (round(corner[0]), round(corner[1])), strip)


def _drawn(text: str) -> str:
    """The text in characters that the font has."""
    spelt = text.translate(_SPELLINGS)
    return "".join(one if one.isascii() or one in IN_FONT else "?" for one in spelt)
