"""lattend draw: the picture of a rule, in the terminal or in a file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lattend.cli.arguments import (
    at_option,
    complete_rule,
    out_option,
    read_numbers,
    read_pixel,
    read_rule,
    rule_argument,
)
from lattend.cli.command import Answer, Command, option
from lattend.cli.output import save, say, say_json
from lattend.errors import DomainError, NamingError

NUMBERS = re.compile(r"\s*\w+\s*=\s*-?\d.*")
NARROWEST = 16  # columns of a picture


@dataclass(frozen=True)
class DrawCommand(Command):
    """The picture of a rule, or of several side by side.

    Queries down, keys across, attended pairs dark. A size that is not given is small. From a few hundred
    positions on, tiles are shaded by how full they are.

        lattend draw strided --at n=12,t=3
        lattend draw sparse_strided --at n=1000000,l=4096
        lattend draw "neighbourhood(2)" --pixel 3,4
        lattend draw "strided(3)" --compare "windowed(4)" --out both.svg
        lattend draw causal "strided(3)" "windowed(4)" --at n=12 --style cross --from 1
    """

    rule: list[str] = rule_argument()
    at: list[str] | None = at_option()
    out: str | None = out_option()
    compare: str | None = option("RULE", "A second rule, drawn over it.", complete=complete_rule)
    pixel: str | None = option("y,x", "On an image: the keys of this pixel.")
    style: str = option("colour|cross", "Coloured squares, or crosses as on paper; colour.", default="colour")
    first: int = option("0|1", "The number of the first position; 0.", "--from", default=0)
    width: int | None = option("COLUMNS", "How wide to draw in the terminal.")

    def answer(self) -> Answer:
        if self.width is not None and self.width < NARROWEST:
            raise DomainError(
                f"--width {self.width} is too narrow for a picture; it takes {NARROWEST} columns or more"
            )
        for text in self.rule[1:]:
            if NUMBERS.fullmatch(text):
                raise NamingError(f"{text} gives numbers, and is no rule to draw; write --at {text}")
        chosen, *others = map(read_rule, self.rule)
        values, options = (
            read_numbers(self.at),
            {"pixel": read_pixel(self.pixel), "style": self.style, "first": self.first},
        )
        if others:
            self.refuse(["compare"], "draws a rule over one, and here are several side by side")
            picture = chosen.draw(beside=others, **options, **values)
        elif self.compare is not None:
            picture = chosen.draw(compare=read_rule(self.compare), **options, **values)
        else:
            picture = chosen.at(**values).draw(**options)
        file = save(lambda: picture, self.out)
        if self.json:
            say_json({"title": picture.title, "caption": list(picture.caption), "file": file})
        elif file is None:
            say(picture.terminal(width=self.width))
        else:
            say(f"{file}: {picture.title}; {'; '.join(picture.caption[: len(self.rule)])}")
