r"""TikZ: a scene as one `tikzpicture`, to be put into a document that has `\usepackage{tikz}`."""

from __future__ import annotations

from lattend.draw.scene import POINTS_PER_UNIT, Line, Rect, Scene, Text
from lattend.draw.svg import number

_ESCAPES = str.maketrans(
    {
        **{character: f"\\{character}" for character in "#$%&_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "-": "{-}",
        "×": r"\ensuremath{\times}",
        "−": r"\ensuremath{-}",
        "≤": r"\ensuremath{\le}",
        "≥": r"\ensuremath{\ge}",
    }
)
_ANCHORS = {"start": "base west", "middle": "base", "end": "base east"}


def tikz(scene: Scene) -> str:
    r"""The scene as TikZ code; its colours are defined inside the picture."""
    colours = list(
        dict.fromkeys(item.fill if isinstance(item, Rect) else item.colour for item in scene.items)
    )
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
            case Line():
                width = f"{number(POINTS_PER_UNIT * item.width)}bp"
                ends = f"{_place(item.x1, item.y1)} -- {_place(item.x2, item.y2)}"
                lines.append(rf"\draw[{names[item.colour]}, line width={width}] {ends};")
            case Text():
                size = number(POINTS_PER_UNIT * item.size)
                weight = r"\bfseries" if item.bold else ""
                font = rf"\fontsize{{{size}}}{{{size}}}\sffamily{weight}\selectfont"
                turn = ", rotate=90" if item.turned else ""
                style = f"{names[item.colour]}, anchor={_ANCHORS[item.anchor]}{turn}, font={font}"
                lines.append(
                    rf"\node[{style}] at {_place(item.x, item.y)} {{{item.text.translate(_ESCAPES)}}};"
                )
    lines.append(r"\end{tikzpicture}")
    return "\n".join(lines) + "\n"


def _place(x: float, y: float) -> str:
    return f"({number(x)},{number(y)})"
