"""SVG: a scene as one standalone image."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from lattend.draw.formats.scene import DROP, SUBSCRIPT, Item, Path, Rect, Scene, Segment, Text

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"


def number(value: float) -> str:
    """A coordinate in its shortest form, exact to a hundredth."""
    return repr(round(value, 2) + 0.0).removesuffix(".0")


def svg(scene: Scene, title: str, description: str) -> str:
    """The scene as SVG; title and description are what a screen reader says."""
    width, height = number(scene.width), number(scene.height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family={quoteattr(FONT)}>'
    )
    body = [f"<title>{escape(title)}</title>", f"<desc>{escape(description)}</desc>"]
    for _, group in itertools.groupby(scene.items, _style):
        body += _elements(list(group))
    return "\n".join([head, *body, "</svg>"]) + "\n"


def _style(item: Item) -> object:
    return (item.colour, item.width) if isinstance(item, Segment) else type(item)


def _elements(items: list[Item]) -> Iterator[str]:
    """Lines of one style become one path, which keeps hatched pictures small."""
    lines = [item for item in items if isinstance(item, Segment)]
    if lines:
        path = "".join(
            f"M{number(line.x1)} {number(line.y1)}L{number(line.x2)} {number(line.y2)}" for line in lines
        )
        stroke = f'stroke="{lines[0].colour}" stroke-width="{number(lines[0].width)}"'
        yield f'<path d="{path}" {stroke} fill="none"/>'
    for item in items:
        if isinstance(item, Rect):
            place = f'x="{number(item.x)}" y="{number(item.y)}"'
            size = f'width="{number(item.width)}" height="{number(item.height)}"'
            yield f'<rect {place} {size} fill="{item.fill}"/>'
        elif isinstance(item, Path):
            yield _path(item)
        elif isinstance(item, Text):
            place = f'x="{number(item.x)}" y="{number(item.y)}"'
            turn = f' transform="rotate(-90 {number(item.x)} {number(item.y)})"' if item.turned else ""
            weight = ' font-weight="bold"' if item.bold else ""
            anchor = f' text-anchor="{item.anchor}"' if item.anchor != "start" else ""
            yield (
                f'<text {place} font-size="{number(item.size)}" fill="{item.colour}"{anchor}{weight}{turn}>'
                f"{_written(item)}</text>"
            )


def _written(item: Text) -> str:
    """The words, subscripts smaller and lower; what follows one rises again."""
    written, down = "", number(DROP * item.size)
    for index, (text, lower) in enumerate(item.pieces):
        if lower:
            small = number(SUBSCRIPT * item.size)
            written += f'<tspan dy="{down}" font-size="{small}">{escape(text)}</tspan>'
        else:
            written += f'<tspan dy="-{down}">{escape(text)}</tspan>' if index else escape(text)
    return written


def _path(item: Path) -> str:
    d = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in item.points) + ("Z" if item.closed else "")
    fill = f'fill="{item.fill or "none"}"'
    if item.fill and item.opacity < 1:
        fill += f' fill-opacity="{number(item.opacity)}"'
    stroke = f' stroke="{item.colour}" stroke-width="{number(item.width)}" stroke-linejoin="round"'
    return f'<path d="{d}" {fill}{stroke if item.colour else ""}/>'
