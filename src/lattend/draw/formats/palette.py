"""Colours, hatches and characters of pictures, told apart in colour, in grey and by shape alone.

Blue and orange are those of Okabe and Ito's colour-blind safe set; every pair of looks that can stand
side by side differs in luminance, and those of a comparison in their hatch as well. The scales of heat maps
go in equal steps through OKLab, Björn Ottosson's colour space of even perception: lightness alone tells the
order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

Hatch = Literal["", "/", "\\", "x", "+"]
Sign = Literal["", "/", "\\", "X", "+", "o", "@"]

PAPER = "#ffffff"
TEXT = "#1f2328"
FAINT_TEXT = "#57606a"
FRAME = "#57606a"
CELL_BORDER = "#ffffff"

LEVELS = 20  # shades between an empty and a full tile


@dataclass(frozen=True, slots=True)
class Look:
    """How one class of cell is shown: `glyph` in a terminal, `plain` where only ASCII is known.

    `share` is how full such a cell is, None where fullness is not what the look tells. A `sign` stands once
    in each cell; `ink` is the colour of signs and hatches, of the empty look that of the lines between cells.
    """

    label: str
    fill: str
    glyph: str
    plain: str
    ansi: int
    share: float | None = None
    hatch: Hatch = ""
    ink: str = ""
    sign: Sign = ""


EMPTY = Look("empty", "#e6e9ed", "·", ".", 245, share=0.0)
ATTENDED = Look("attended", "#2f6fb5", "▒", "#", 75, share=1.0)
OWN = Look("attended, own position", "#0f2b52", "█", "@", 33, share=1.0)
HERE = Look("the pixel itself, not attended", "#e6e9ed", "o", "o", 214, share=0.0, hatch="x", ink="#0f2b52")

ONLY_A = Look("only A", "#0072b2", "/", "/", 75, hatch="/", ink="#ffffff")
ONLY_B = Look("only B", "#e69f00", "\\", "\\", 214, hatch="\\", ink="#4d3500")
BOTH = Look("both", "#1c1f26", "X", "X", 255, hatch="x", ink="#a3abb8")
MIXED = Look("several of these", "#a87ca0", "+", "+", 176, hatch="+", ink="#ffffff")
# The signs of these looks on paper, by their glyphs
SIGNS: dict[str, Sign] = {
    **{EMPTY.glyph: "", ATTENDED.glyph: "X", OWN.glyph: "@", HERE.glyph: "o"},
    **{ONLY_A.glyph: "/", ONLY_B.glyph: "\\", BOTH.glyph: "X", MIXED.glyph: "+"},
}


def on_paper(look: Look) -> Look:
    """The look as one draws it by hand: a sign in a white cell, with lines between the cells."""
    sign = SIGNS[look.glyph]
    glyph, ink = (sign, TEXT) if sign else (look.glyph, "#c3c9d1")
    return replace(look, fill=PAPER, glyph=glyph, plain=sign or look.plain, hatch="", ink=ink, sign=sign)


_SLIVER, _FULL = (0x86, 0xB3, 0xDE), (0x10, 0x38, 0x6B)


def _shade(level: int) -> Look:
    along = (level - 1) / (LEVELS - 1)
    red, green, blue = (round(a + (b - a) * along) for a, b in zip(_SLIVER, _FULL, strict=True))
    quarter = (4 * level - 1) // LEVELS
    return Look(
        "above 0% to 100% full",
        f"#{red:02x}{green:02x}{blue:02x}",
        "░▒▓█"[quarter],
        ":+%#"[quarter],
        (153, 111, 69, 33)[quarter],
        share=level / LEVELS,
    )


SHADES = (EMPTY, *(_shade(level) for level in range(1, LEVELS + 1)))

STEPS = 64  # of a heat map's scale
GLYPHS, PLAIN = "·░▒▓█", ".:+%#"
BELOW, BELOW_PLAIN = "-~=≡", "-~=E"  # of negative numbers
# In a terminal: seen on black and on white, so that the character tells how much
GREEN, HOT, COLD = (245, 107, 72, 37, 32), (245, 180, 173, 209, 203), (245, 110, 74, 69, 33)

Colour = tuple[float, float, float]  # lightness, chroma, hue in degrees


def _rgb(colour: Colour) -> str:
    """`#rrggbb` of a colour in OKLab, cut to what a screen shows."""
    light, chroma, hue = colour
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    cones = (
        (light + 0.3963377774 * a + 0.2158037573 * b) ** 3,
        (light - 0.1055613458 * a - 0.0638541728 * b) ** 3,
        (light - 0.0894841775 * a - 1.2914855480 * b) ** 3,
    )
    mixing = (
        (4.0767416621, -3.3077115913, 0.2309699292),
        (-1.2684380046, 2.6097574011, -0.3413193965),
        (-0.0041960863, -0.7034186147, 1.7076147010),
    )
    linear = [sum(m * cone for m, cone in zip(row, cones, strict=True)) for row in mixing]
    shown = [12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in linear]
    return "#" + "".join(f"{round(255 * min(1.0, max(0.0, c))):02x}" for c in shown)


def _look(fill: str, along: float, share: float | None = None) -> Look:
    """A step of a scale; `along` runs from -1 over 0 to 1."""
    level = math.ceil(4 * abs(along) - 1e-9)
    if along < 0 and level:
        glyph, plain, ansi = BELOW[level - 1], BELOW_PLAIN[level - 1], COLD[level]
    else:
        glyph, plain, ansi = GLYPHS[level], PLAIN[level], HOT[level] if share is None else GREEN[level]
    return Look("", fill, glyph, plain, ansi, share)


def _amounts() -> tuple[Look, ...]:
    """From cream over green to dark blue."""
    shades: list[Look] = []
    for step in range(STEPS + 1):
        x = step / STEPS
        colour = (
            0.975 - 0.70 * x,
            0.03 + 0.09 * math.sin(math.pi * min(1.0, 0.15 + 0.75 * x)),
            105 + 165 * x,
        )
        shades.append(_look(_rgb(colour), x, share=x))
    return tuple(shades)


def _signed() -> tuple[Look, ...]:
    """From blue over white to red, equally dark at both ends."""
    half = STEPS // 2
    shades: list[Look] = []
    for step in range(-half, half + 1):
        x = abs(step) / half
        colour = (
            0.975 - 0.56 * x,
            0.165 * math.sin(math.pi / 2 * min(1.0, 1.3 * x)),
            255 if step < 0 else 38,
        )
        shades.append(_look(_rgb(colour), step / half, share=0.0 if step == 0 else None))
    return tuple(shades)


AMOUNTS, SIGNED = _amounts(), _signed()  # of heat maps: one hue after another, two hues apart


def ink(fill: str) -> str:
    """Dark or white, whichever is read better on this colour."""
    channels = [int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#1f2328" if luminance > 0.25 else "#ffffff"
