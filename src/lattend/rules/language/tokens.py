"""Tokens: a text split into numbers, names and signs with their positions, for rules and formulas."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from keyword import iskeyword
from typing import Literal

from lattend.errors import Suggestion, TextError

MAX_LENGTH = 10_000
MAX_NESTING = 100
MAX_INTEGER = 10**18
MAX_NAME = 64

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[0-9]+(?:_[0-9]+)*")
_APART = ("and", "or", "not")
SPACE = re.compile(r"\s+")

Kind = Literal["number", "name", "sign", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    """A token: `text[start:end]`, with its standard spelling in `value`."""

    kind: Kind
    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """A text to parse, and what messages call it: a rule, an assumption, a formula."""

    kind: str
    text: str

    def error(self, message: str, start: int, end: int, *meant: str | Suggestion) -> TextError:
        """A TextError about `text[start:end]`, with as much of the text as fits on a line.

        `meant` are texts that may stand there instead, or what may be changed elsewhere.
        """
        text = "".join(char if char.isprintable() else " " for char in self.text)
        if len(text) > 72:
            cut = max(0, min(start - 30, len(text) - 60))
            left, right = "…" if cut else "", "…" if cut + 60 < len(text) else ""
            text = f"{left}{text[cut : cut + 60]}{right}"
        changes = (self.instead(start, end, one) if isinstance(one, str) else one for one in meant)
        return TextError(f'{self.kind} "{text}": {message}', self.text, start, end, changes, message)

    def instead(self, start: int, end: int, word: str) -> Suggestion:
        """Returns the replacement of `text[start:end]` by a word; and, or, not get spaces around them."""
        left, right = self.text[:start][-1:], self.text[end:][:1]
        before = " " if word in _APART and left.strip("( \t\n") else ""
        after = " " if word in _APART and right.strip() else ""
        return Suggestion(start, end, f"{before}{word}{after}")

    def part(self, start: int, end: int) -> str:
        """The characters from start to end, cut short when they are many."""
        text = " ".join(self.text[start:end].split())
        return text if len(text) <= 40 else f"{text[:37]}…"

    def check_length(self) -> None:
        if len(self.text) > MAX_LENGTH:
            message = f"it has {len(self.text):,} characters, and {MAX_LENGTH:,} are allowed; shorten it"
            raise self.error(message, MAX_LENGTH, len(self.text))

    def check_name(self, start: int, end: int) -> None:
        if end - start > MAX_NAME:
            message = f"this name has {end - start:,} characters, and {MAX_NAME} are allowed; shorten it"
            raise self.error(message, start, end)

    def integer(self, token: Token) -> int:
        """The value of a number token, at most 10**18."""
        digits = token.value.replace("_", "").lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > MAX_INTEGER:
            raise self.error(
                f"this number has {len(digits)} digits, and at most 10**18 is allowed; "
                "write a name instead and give its value later",
                token.start,
                token.end,
            )
        return int(digits)


def is_name(word: str, reserved: Collection[str] = ()) -> bool:
    """Whether `word` can name a position, a size, a parameter or an array."""
    return NAME.fullmatch(word) is not None and not iskeyword(word) and word not in reserved


def scan_name(source: Source, at: int) -> Token | None:
    """Returns the name that begins at `at`; None if there is none."""
    match = NAME.match(source.text, at)
    if match is None:
        return None
    source.check_name(at, match.end())
    return Token("name", match[0], at, match.end())


def scan_number(source: Source, at: int) -> Token | None:
    """Returns the integer that begins at `at`, if any; underscores may separate its digits."""
    match = _NUMBER.match(source.text, at)
    return Token("number", match[0], at, match.end()) if match else None


def scan(
    source: Source, read: Callable[[int], Token | list[Token]], space: re.Pattern[str] = SPACE
) -> list[Token]:
    """Returns the tokens of a text as `read` returns them, and a last one of kind "end"."""
    tokens: list[Token] = []
    at, end = 0, len(source.text)
    while True:
        skipped = space.match(source.text, at)
        at = skipped.end() if skipped else at
        if at == end:
            return [*tokens, Token("end", "", end, end)]
        token = read(at)
        tokens.extend(token if isinstance(token, list) else (token,))
        at = tokens[-1].end
