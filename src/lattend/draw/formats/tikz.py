r"""TikZ: a scene as one `tikzpicture`, to be put into a document that has `\usepackage{tikz}`."""

from __future__ import annotations

from collections.abc import Iterator

from lattend.draw.formats.scene import POINTS_PER_UNIT, Item, Path, Rect, Scene, Segment, Text
from lattend.draw.formats.svg import number
from lattend.report.latex import escape

_ANCHORS = {"start": "base west", "middle": "base", "end": "base east"}


def tikz(scene: Scene) -> str:
    r"""The scene as TikZ code; its colours are defined inside the picture."""
    colours = list(dict.fromkeys(colour for item in scene.items for colour in _colours(item) if colour))
    names = {colour: f"lattend{index}" for index, colour in enumerate(colours)}
    unit = f"{POINTS_PER_UNIT}bp"
    lines = [
        r"% needs \usepackage{tikz}",
        rf"\begin{{tikzpicture}}[x={unit}, y=-{unit}, inner sep=0pt, outer sep=0pt]",
        *(rf"\definecolor{{{name}}}{{HTML}}{{{colour[1:].upper()}}}" for colour, name in names.items()),
    ]
    for item in scene.items:
        match item:
            case Rect():
                corner, size = _place(item.x, item.y), _place(item.width, item.height)
                lines.append(rf"\fill[{names[item.fill]}] {corner} rectangle ++{size};")
            case Segment():
                width = f"{number(POINTS_PER_UNIT * item.width)}bp"
                ends = f"{_place(item.x1, item.y1)} -- {_place(item.x2, item.y2)}"
                lines.append(rf"\draw[{names[item.colour]}, line width={width}] {ends};")
            case Path():
                lines += _paths(item, names)
            case Text():
                size = number(POINTS_PER_UNIT * item.size)
                weight = r"\bfseries" if item.bold else ""
                font = rf"\fontsize{{{size}}}{{{size}}}\sffamily{weight}\selectfont"
                turn = ", rotate=90" if item.turned else ""
                style = f"{names[item.colour]}, anchor={_ANCHORS[item.anchor]}{turn}, font={font}"
                written = "".join(
                    rf"\textsubscript{{{escape(text)}}}" if lower else escape(text)
                    for text, lower in item.pieces
                )
                lines.append(rf"\node[{style}] at {_place(item.x, item.y)} {{{written}}};")
    lines.append(r"\end{tikzpicture}")
    return "\n".join(lines) + "\n"


def _colours(item: Item) -> tuple[str, ...]:
    match item:
        case Rect():
            return (item.fill,)
        case Path():
            return item.fill, item.colour
        case _:
            return (item.colour,)


def _paths(item: Path, names: dict[str, str]) -> Iterator[str]:
    places = " -- ".join(_place(x, y) for x, y in item.points)
    if item.fill:
        yield rf"\fill[{names[item.fill]}, fill opacity={number(item.opacity)}] {places} -- cycle;"
    if item.colour:
        width = f"{number(POINTS_PER_UNIT * item.width)}bp"
        end = " -- cycle" if item.closed else ""
        yield rf"\draw[{names[item.colour]}, line width={width}, line join=round] {places}{end};"


def _place(x: float, y: float) -> str:
    return f"({number(x)},{number(y)})"
