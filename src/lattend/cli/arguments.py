"""Arguments that commands share, and how their text is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lattend.cli.failures import RULE_HELP
from lattend.errors import LattendError, TextError

if TYPE_CHECKING:
    from lattend.rules import Rule

MOST_DIGITS = 300
_NAME = re.compile(r"[^\W\d]\w*")
_INTEGER = re.compile(r"[+-]?\d+(_\d+)*")


def complete_rule(incomplete: str) -> list[tuple[str, str]]:
    """The catalogue names that begin so, with their meanings."""
    from lattend.draw.samples import catalogue

    return [
        (name, rule.about.meaning)
        for name, rule in catalogue().items()
        if name.startswith(incomplete) and rule.about is not None
    ]


RuleText = Annotated[
    str,
    typer.Argument(
        metavar="RULE",
        show_default=False,
        autocompletion=complete_rule,
        help=RULE_HELP[0].upper() + RULE_HELP[1:],
    ),
]
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="n=12,t=3", show_default=False, help="Numbers for sizes and parameters."),
]
Per = Annotated[
    str | None,
    typer.Option(
        "--per", metavar="query|key", show_default=False, help="Count the keys of a query, or the reverse."
    ),
]
Assume = Annotated[
    list[str] | None,
    typer.Option(
        "--assume", metavar="CONDITION", show_default=False, help='What is known, such as "t < n" or "w | n".'
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def read_rule(text: str) -> Rule:
    """The rule a person means."""
    if text.strip() in ("", "-"):
        raise LattendError(f'"{text}" is no rule. RULE is {RULE_HELP}')
    from lattend.rules import from_name

    return from_name(text)


def read_numbers(texts: Sequence[str] | None) -> dict[str, int]:
    """`n=12,t=3` as a dictionary; the option may be repeated."""
    values: dict[str, int] = {}
    for text in texts or ():
        for name, value, start, end in _pairs("--at", text, "n=12,t=3"):
            if name in values:
                raise TextError(f"--at: {name} is given twice; give it once", text, start, end)
            values[name] = _integer(name, value, text, end - len(value), end)
    return values


def read_renames(texts: Sequence[str] | None) -> dict[str, str]:
    """`L=n` as a dictionary from the formula's names to the count's; the option may be repeated."""
    names: dict[str, str] = {}
    for text in texts or ():
        for name, value, start, end in _pairs("--rename", text, "L=n"):
            if name in names:
                raise TextError(f"--rename: {name} is given twice; give it once", text, start, end)
            if not _NAME.fullmatch(value):
                raise TextError(f"--rename: {value} is not a name", text, end - len(value), end)
            names[name] = value
    return names


def read_pixel(text: str | None) -> tuple[int, ...] | None:
    """`3,4` as (3, 4)."""
    if text is None:
        return None
    parts = _parts(text)
    return tuple(_integer("--pixel", part, text, start, end) for part, start, end in parts)


def read_names(text: str | None) -> list[str]:
    """`n,t` as a list."""
    return [part for part, _, _ in _parts(text or "") if part]


def _parts(text: str) -> Iterator[tuple[str, int, int]]:
    """The parts between commas without the spaces around them, and where they are."""
    place = 0
    for part in text.split(","):
        start = place + len(part) - len(part.lstrip())
        yield part.strip(), start, start + len(part.strip())
        place += len(part) + 1


def _pairs(option: str, text: str, example: str) -> Iterator[tuple[str, str, int, int]]:
    for part, start, end in _parts(text):
        name, equals, value = (side.strip() for side in part.partition("="))
        if not equals or not _NAME.fullmatch(name) or not value:
            raise TextError(f"{option}: write name=value, as in {example}", text, start, end)
        yield name, value, start, end


def _integer(name: str, value: str, text: str, start: int, end: int) -> int:
    if not _INTEGER.fullmatch(value):
        raise TextError(f"{name} must be an integer, got {value}", text, start, end)
    if len(value) > MOST_DIGITS:
        raise TextError(f"{name} has more than {MOST_DIGITS} digits", text, start, end)
    return int(value)
