"""Colours, hatches and characters of pictures, told apart in colour, in grey and by shape alone.

Blue and orange are those of Okabe and Ito's colour-blind safe set; every pair of looks that can stand
side by side differs in luminance, and those of a comparison in their hatch as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Hatch = Literal["", "/", "\\", "x", "+"]

PAPER = "#ffffff"
TEXT = "#1f2328"
FAINT_TEXT = "#57606a"
FRAME = "#57606a"
CELL_BORDER = "#ffffff"

LEVELS = 20  # shades between an empty and a full tile


@dataclass(frozen=True, slots=True)
class Look:
    """How one class of cell is shown: `glyph` in a terminal, `plain` where only ASCII is known.

    `share` is how full such a cell is, None where fullness is not what the look tells.
    """

    label: str
    fill: str
    glyph: str
    plain: str
    ansi: int
    share: float | None = None
    hatch: Hatch = ""
    ink: str = ""


EMPTY = Look("empty", "#e6e9ed", "·", ".", 245, share=0.0)
MARKED = Look("attended", "#2f6fb5", "▒", "#", 75, share=1.0)
OWN = Look("attended, own position", "#0f2b52", "█", "@", 33, share=1.0)
HERE = Look("the pixel itself, not attended", "#e6e9ed", "o", "o", 214, share=0.0, hatch="x", ink="#0f2b52")

ONLY_A = Look("only A", "#0072b2", "/", "/", 75, hatch="/", ink="#ffffff")
ONLY_B = Look("only B", "#e69f00", "\\", "\\", 214, hatch="\\", ink="#4d3500")
BOTH = Look("both", "#1c1f26", "X", "X", 255, hatch="x", ink="#a3abb8")
MIXED = Look("several of these", "#a87ca0", "+", "+", 176, hatch="+", ink="#ffffff")

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
