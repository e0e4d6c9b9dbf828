"""lattend draw: the picture of a rule, in the terminal or in a file."""

from __future__ import annotations

import re
from typing import Annotated

from lattend.cli.arguments import (
    At,
    Json,
    Out,
    RuleTexts,
    complete_rule,
    option,
    read_numbers,
    read_pixel,
    read_rule,
    refuse,
)
from lattend.cli.output import say, say_json
from lattend.errors import DomainError, NamingError

NUMBERS = re.compile(r"\s*\w+\s*=\s*-?\d.*")
NARROWEST = 16  # columns of a picture
EXAMPLES = (
    "lattend draw strided --at n=12,t=3",
    "lattend draw sparse_strided --at n=1000000,l=4096",
    'lattend draw "neighbourhood(2)" --pixel 3,4',
    'lattend draw "strided(3)" --compare "windowed(4)" --out both.svg',
    'lattend draw causal "strided(3)" "windowed(4)" --at n=12 --style cross --from 1',
)


def draw(
    rule: RuleTexts,
    at: At = None,
    out: Out = None,
    compare: Annotated[
        str | None, option("RULE", "A second rule, drawn over it.", autocompletion=complete_rule)
    ] = None,
    pixel: Annotated[str | None, option("y,x", "On an image: the keys of this pixel.")] = None,
    style: Annotated[
        str, option("colour|cross", "Coloured squares, or crosses as on paper; colour.")
    ] = "colour",
    first: Annotated[int, option("0|1", "The number of the first position; 0.", "--from")] = 0,
    width: Annotated[int | None, option("COLUMNS", "How wide to draw in the terminal.")] = None,
    json: Json = False,
) -> None:
    """The picture of a rule, or of several side by side.

    Queries down, keys across, attended pairs dark. A size that is not given is small. From a few hundred
    positions on, tiles are shaded by how full they are.
    """
    if width is not None and width < NARROWEST:
        raise DomainError(
            f"--width {width} is too narrow for a picture; it takes {NARROWEST} columns or more"
        )
    for text in rule[1:]:
        if NUMBERS.fullmatch(text):
            raise NamingError(f"{text} gives numbers, and is no rule to draw; write --at {text}")
    chosen, *others = map(read_rule, rule)
    values, options = read_numbers(at), {"pixel": read_pixel(pixel), "style": style, "first": first}
    if others:
        refuse(
            {"--compare": compare}, ["--compare"], "draws a rule over one, and here are several side by side"
        )
        picture = chosen.draw(beside=others, **options, **values)
    elif compare is not None:
        picture = chosen.draw(compare=read_rule(compare), **options, **values)
    else:
        picture = chosen.at(**values).draw(**options)
    file = None if out is None else str(picture.save(out))
    if json:
        say_json({"title": picture.title, "caption": list(picture.caption), "file": file})
    elif file is None:
        say(picture.terminal(width=width))
    else:
        say(f"{file}: {picture.title}; {'; '.join(picture.caption[: len(rule)])}")
