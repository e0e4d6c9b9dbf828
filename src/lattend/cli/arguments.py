"""Arguments that commands share, and how their text is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from lattend.cli.command import argument, option
from lattend.cli.failures import RULE_HELP
from lattend.errors import LattendError, TextError

if TYPE_CHECKING:
    from lattend.rules import Rule

MOST_DIGITS = 300
T = TypeVar("T")
_NAME = re.compile(r"[^\W\d]\w*")
_INTEGER = re.compile(r"[+-]?\d+(_\d+)*")


def complete_rule(incomplete: str) -> list[tuple[str, str]]:
    """Catalogue names and aliases with this beginning, and their meanings."""
    from lattend.draw.grid.samples import catalogue

    known = catalogue()
    abouts = [rule.about for rule in known.values() if rule.about is not None]
    names = {name: about.meaning for about in abouts for name in (about.name, *about.alias_names)}
    return [(name, meaning) for name, meaning in names.items() if name.startswith(incomplete)]


# Fields that several commands have
rule_argument = partial(
    argument, "RULE", RULE_HELP[0].upper() + RULE_HELP[1:], complete=complete_rule
)  # of one rule, or of several
at_option = partial(option, "n=12,t=3", "Numbers for sizes and parameters.", "--at")
per_option = partial(option, "query|key", "Count the keys of a query, or the reverse.", "--per")
first_option = partial(option, "0|1", "The first position of --per; 0.", "--from", default=0, least=0, most=1)
assume_option = partial(option, "CONDITION", 'What is known, such as "t < n" or "w | n".', "--assume")
deadline_option = partial(option, "SECONDS", "How long a closed form may take.", least=0)
out_option = partial(option, "FILE", "Draw: .svg, .png, .pdf, .tex or .txt.", "--out", "-o")
pixel_option = partial(option, "y,x", "The pixel that is asked; the middle.")


def read_rule(text: str) -> Rule:
    """Read a rule: a catalogue name or a condition."""
    if text.strip() in ("", "-"):
        raise LattendError(f'"{text}" is no rule. RULE is {RULE_HELP}')
    from lattend.rules import reader

    return reader.read_rule(text)


def read_numbers(texts: Sequence[str] | None) -> dict[str, int]:
    """Read `n=12,t=3` as a dictionary. The option may be repeated."""
    return _named("--at", texts, "n=12,t=3", _integer)


def read_sizes(texts: Sequence[str] | None) -> dict[str, int | str]:
    """Read `n=12,kernel=k` as a dictionary of numbers and letters. The option may be repeated."""
    return _named("--at", texts, "n=12,kernel=k", _integer_or_letter)


def read_renames(texts: Sequence[str] | None) -> dict[str, str]:
    """Read `L=n,i=q+1` as a dictionary from the formula's names to the count's."""
    return _named("--rename", texts, "L=n or i=q+1", _new_name)


def read_pixel(text: str | None) -> tuple[int, ...] | None:
    """`3,4` as (3, 4)."""
    if text is None:
        return None
    parts = comma_parts(text)
    return tuple(_integer("--pixel", part, text, start, end) for part, start, end in parts)


def read_place(text: str | None) -> tuple[int, int] | None:
    """Read `3,4` as (3, 4): exactly two numbers."""
    pixel = read_pixel(text)
    if pixel is None or text is None:
        return None
    if len(pixel) != 2:
        raise TextError("--pixel is a row and a column, as in 3,4", text, 0, len(text))
    return pixel[0], pixel[1]


def read_points(name: str, text: str | None, length: int) -> list[tuple[float, ...]] | None:
    """Read `0,1;1,0` as [(0.0, 1.0), (1.0, 0.0)]; each point has `length` numbers."""
    if text is None:
        return None
    points: list[tuple[float, ...]] = []
    start = 0
    for part in text.split(";"):
        numbers, end = _numbers(name, part, text, start), start + len(part)
        if len(numbers) != length:
            example = ";".join([",".join("102"[:length])] * 2)
            message = f"{name} has {length} numbers between semicolons, as in {example}"
            raise TextError(message, text, start, end)
        points.append(numbers)
        start += len(part) + 1
    return points


def read_numbers_of(name: str, text: str | None) -> list[float] | None:
    """`2,0.5` as [2.0, 0.5]."""
    return None if text is None else list(_numbers(name, text, text, 0))


def _numbers(name: str, part: str, text: str, place: int) -> tuple[float, ...]:
    numbers: list[float] = []
    for number, start, end in comma_parts(part):
        try:
            numbers.append(float(number))
        except ValueError:
            raise TextError(
                f"{name}: {number or 'nothing'} is no number", text, place + start, place + end
            ) from None
    return tuple(numbers)


def read_names(text: str | None) -> list[str]:
    """`n,t` as a list."""
    return [part for part, _, _ in comma_parts(text or "") if part]


def comma_parts(text: str) -> Iterator[tuple[str, int, int]]:
    """The parts between commas without surrounding spaces, and their positions."""
    offset = 0
    for part in text.split(","):
        start = offset + len(part) - len(part.lstrip())
        yield part.strip(), start, start + len(part.strip())
        offset += len(part) + 1


def space_parts(text: str) -> Iterator[tuple[str, int, int]]:
    """The parts between spaces, and their positions."""
    return ((word[0], word.start(), word.end()) for word in re.finditer(r"\S+", text))


def _named(
    option: str, texts: Sequence[str] | None, example: str, read: Callable[[str, str, str, int, int], T]
) -> dict[str, T]:
    """`name=value` between commas, as a dictionary."""
    values: dict[str, T] = {}
    for text in texts or ():
        for part, start, end in comma_parts(text):
            name, equals, value = (side.strip() for side in part.partition("="))
            if not equals or not _NAME.fullmatch(name) or not value:
                raise TextError(f"{option}: write name=value, as in {example}", text, start, end)
            if name in values:
                raise TextError(f"{option}: {name} is given twice; give it once", text, start, end)
            values[name] = read(name, value, text, end - len(value), end)
    return values


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
