"""lattend draw: the picture of a rule, in the terminal or in a file."""

from __future__ import annotations

from typing import Annotated

from lattend.cli.arguments import (
    At,
    Json,
    Out,
    RuleText,
    complete_rule,
    option,
    read_numbers,
    read_pixel,
    read_rule,
)
from lattend.cli.output import say, say_json

EXAMPLES = (
    "lattend draw strided --at n=12,t=3",
    "lattend draw sparse_strided --at n=1000000,l=4096",
    'lattend draw "neighbourhood(2)" --pixel 3,4',
    'lattend draw "strided(3)" --compare "windowed(4)" --out both.svg',
)


def draw(
    rule: RuleText,
    at: At = None,
    out: Out = None,
    compare: Annotated[
        str | None, option("RULE", "A second rule, drawn over it.", autocompletion=complete_rule)
    ] = None,
    pixel: Annotated[str | None, option("y,x", "On an image: the keys of this pixel.")] = None,
    width: Annotated[int | None, option("COLUMNS", "How wide to draw in the terminal.", min=16)] = None,
    json: Json = False,
) -> None:
    """The picture of a rule.

    Queries down, keys across, attended pairs dark. A size that is not given is small. From a few hundred
    positions on, tiles are shaded by how full they are.
    """
    chosen, values, place = read_rule(rule), read_numbers(at), read_pixel(pixel)
    if compare is None:
        picture = chosen.at(**values).draw(pixel=place)
    else:
        picture = chosen.draw(compare=read_rule(compare), pixel=place, **values)
    file = None if out is None else str(picture.save(out))
    if json:
        say_json({"title": picture.title, "caption": list(picture.caption), "file": file})
    elif file is None:
        say(picture.terminal(width=width))
    else:
        say(f"{file}: {picture.title}; {picture.caption[0]}")
