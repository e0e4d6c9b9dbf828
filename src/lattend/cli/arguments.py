"""Arguments that commands share, and how their text is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from lattend.cli.failures import RULE_HELP
from lattend.errors import LattendError, NamingError, TextError

if TYPE_CHECKING:
    from lattend.rules import Rule

MOST_DIGITS = 300
T = TypeVar("T")
_NAME = re.compile(r"[^\W\d]\w*")
_INTEGER = re.compile(r"[+-]?\d+(_\d+)*")


def complete_rule(incomplete: str) -> list[tuple[str, str]]:
    """The catalogue names, aliases among them, that begin so, with their meanings."""
    from lattend.draw.grid.samples import catalogue

    known = catalogue()
    abouts = [rule.about for rule in known.values() if rule.about is not None]
    names = {name: about.meaning for about in abouts for name in (about.name, *about.alias_names)}
    return [(name, meaning) for name, meaning in names.items() if name.startswith(incomplete)]


def option(metavar: str, about: str, *names: str, **more: Any) -> Any:
    """An option that says its default in its help, if it has one."""
    return typer.Option(*names, metavar=metavar, show_default=False, help=about, **more)


def argument(metavar: str, about: str, **more: Any) -> Any:
    """An argument of a command."""
    return typer.Argument(metavar=metavar, show_default=False, help=about, **more)


RuleText = Annotated[
    str, argument("RULE", RULE_HELP[0].upper() + RULE_HELP[1:], autocompletion=complete_rule)
]
RuleTexts = Annotated[
    list[str], argument("RULE", RULE_HELP[0].upper() + RULE_HELP[1:], autocompletion=complete_rule)
]
At = Annotated[list[str] | None, option("n=12,t=3", "Numbers for sizes and parameters.", "--at")]
Per = Annotated[str | None, option("query|key", "Count the keys of a query, or the reverse.", "--per")]
First = Annotated[int, option("0|1", "The first position of --per; 0.", "--from", min=0, max=1)]
Assume = Annotated[
    list[str] | None, option("CONDITION", 'What is known, such as "t < n" or "w | n".', "--assume")
]
Deadline = Annotated[float | None, option("SECONDS", "How long a closed form may take.", min=0)]
Out = Annotated[str | None, option("FILE", "Draw: .svg, .png, .pdf, .tex or .txt.", "--out", "-o")]
Pixel = Annotated[str | None, option("y,x", "The pixel that is asked; the middle.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def refuse(given: Mapping[str, object], names: Iterable[str], why: str) -> None:
    """Raises where one of these options is given, which would change nothing: `--seed is for --scores`."""
    unused = [name for name in names if given[name] is not None and given[name] is not False]
    if unused:
        raise NamingError(f"{unused[0]} {why}")


def read_rule(text: str) -> Rule:
    """The rule a person means."""
    if text.strip() in ("", "-"):
        raise LattendError(f'"{text}" is no rule. RULE is {RULE_HELP}')
    from lattend.rules import reader

    return reader.read_rule(text)


def read_numbers(texts: Sequence[str] | None) -> dict[str, int]:
    """`n=12,t=3` as a dictionary; the option may be repeated."""
    return _named("--at", texts, "n=12,t=3", _integer)


def read_sizes(texts: Sequence[str] | None) -> dict[str, int | str]:
    """`n=12,kernel=k` as a dictionary of numbers and letters; the option may be repeated."""
    return _named("--at", texts, "n=12,kernel=k", _integer_or_letter)


def read_renames(texts: Sequence[str] | None) -> dict[str, str]:
    """`L=n,i=q+1` as a dictionary from the formula's names to the count's; the option may be repeated."""
    return _named("--rename", texts, "L=n or i=q+1", _new_name)


def read_pixel(text: str | None) -> tuple[int, ...] | None:
    """`3,4` as (3, 4)."""
    if text is None:
        return None
    parts = comma_parts(text)
    return tuple(_integer("--pixel", part, text, start, end) for part, start, end in parts)


def read_place(text: str | None) -> tuple[int, int] | None:
    """`3,4` as (3, 4), which must be two."""
    found = read_pixel(text)
    if found is None or text is None:
        return None
    if len(found) != 2:
        raise TextError("--pixel is a row and a column, as in 3,4", text, 0, len(text))
    return found[0], found[1]


def read_points(name: str, text: str | None, length: int) -> list[tuple[float, ...]] | None:
    """`0,1;1,0` as [(0.0, 1.0), (1.0, 0.0)], each of so many numbers."""
    if text is None:
        return None
    found: list[tuple[float, ...]] = []
    place = 0
    for part in text.split(";"):
        numbers, end = _numbers(name, part, text, place), place + len(part)
        if len(numbers) != length:
            example = ";".join([",".join("102"[:length])] * 2)
            said = f"{name} has {length} numbers between semicolons, as in {example}"
            raise TextError(said, text, place, end)
        found.append(numbers)
        place += len(part) + 1
    return found


def read_numbers_of(name: str, text: str | None) -> list[float] | None:
    """`2,0.5` as [2.0, 0.5]."""
    return None if text is None else list(_numbers(name, text, text, 0))


def _numbers(name: str, part: str, text: str, place: int) -> tuple[float, ...]:
    found: list[float] = []
    for number, start, end in comma_parts(part):
        try:
            found.append(float(number))
        except ValueError:
            raise TextError(
                f"{name}: {number or 'nothing'} is no number", text, place + start, place + end
            ) from None
    return tuple(found)


def read_names(text: str | None) -> list[str]:
    """`n,t` as a list."""
    return [part for part, _, _ in comma_parts(text or "") if part]


def comma_parts(text: str) -> Iterator[tuple[str, int, int]]:
    """The parts between commas without the spaces around them, and where they are."""
    place = 0
    for part in text.split(","):
        start = place + len(part) - len(part.lstrip())
        yield part.strip(), start, start + len(part.strip())
        place += len(part) + 1


def space_parts(text: str) -> Iterator[tuple[str, int, int]]:
    """The parts between spaces, and where they are."""
    return ((found[0], found.start(), found.end()) for found in re.finditer(r"\S+", text))


def _named(
    option: str, texts: Sequence[str] | None, example: str, read: Callable[[str, str, str, int, int], T]
) -> dict[str, T]:
    """`name=value` between commas, as a dictionary."""
    found: dict[str, T] = {}
    for text in texts or ():
        for part, start, end in comma_parts(text):
            name, equals, value = (side.strip() for side in part.partition("="))
            if not equals or not _NAME.fullmatch(name) or not value:
                raise TextError(f"{option}: write name=value, as in {example}", text, start, end)
            if name in found:
                raise TextError(f"{option}: {name} is given twice; give it once", text, start, end)
            found[name] = read(name, value, text, end - len(value), end)
    return found


def _new_name(name: str, value: str, text: str, start: int, end: int) -> str:
    from lattend.counts.formula_parser import parse_formula

    try:
        parse_formula(value)
    except TextError as problem:
        raise TextError(f"--rename: {problem.message}", text, start, end) from None
    return value


def _integer_or_letter(name: str, value: str, text: str, start: int, end: int) -> int | str:
    return value if _NAME.fullmatch(value) else _integer(name, value, text, start, end)


def _integer(name: str, value: str, text: str, start: int, end: int) -> int:
    if not _INTEGER.fullmatch(value):
        raise TextError(f"{name} must be an integer, got {value}", text, start, end)
    if len(value) > MOST_DIGITS:
        raise TextError(f"{name} has more than {MOST_DIGITS} digits", text, start, end)
    return int(value)
