"""Calls in a text, `dilated(t=3, step=2)`, and arrays before a rule, `doc = [0, 0, 1]; doc[q] == doc[k]`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lattend.errors import Suggestion, TextError
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition, Lookup, Name, Span
from lattend.rules.language.grammar import Source

Value = int | bool | None | str | list[int] | tuple["Value", ...]

_CLOSING = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'"}
_HEAD = re.compile(r"\s*([A-Za-z]\w*)\s*")
_NAMED = re.compile(r"\s*([A-Za-z]\w*)\s*=(?!=)\s*")
_INTEGER = r"-?[0-9](?:_?[0-9]){0,299}"
_LIST = re.compile(rf"\[\s*(?:{_INTEGER}\s*(?:,\s*{_INTEGER}\s*)*)?\]")
_CONSTANTS = {"true": True, "false": False, "none": None}
EXAMPLE = [0] * 5 + [1] * 3 + [2] * 4  # documents of 5, 3 and 4 tokens, one after the other
_ENTRY = r"-?[0-9]{1,18}"
_ARRAY = re.compile(
    rf"\s*([A-Za-z][A-Za-z0-9_]*)\s*=\s*\[\s*({_ENTRY}(?:[\s,]+{_ENTRY})*)[\s,]*\][ \t]*(?:;|\n)"
)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument: its name, if any, the span of the name or of all of it, and the span of its value."""

    name: str | None
    place: Span
    value: Span


@dataclass(frozen=True, slots=True)
class Call:
    """A name with its arguments, which are None without brackets."""

    name: str
    place: Span
    arguments: tuple[Argument, ...] | None


def read_call(source: Source, start: int, end: int) -> Call | None:
    """Returns the call in this part of the text; None if it is something else."""
    head = _HEAD.match(source.text, start, end)
    if head is None or head.end() == end:
        return None if head is None else Call(head[1], head.span(1), None)
    if source.text[head.end()] != "(":
        return None
    close = closing(source, head.end(), end)
    if source.text[close + 1 : end].strip():
        return None
    inner = parts(source, head.end() + 1, close, ",")
    return Call(head[1], head.span(1), tuple(_argument(source, *span) for span in inner))


def _argument(source: Source, start: int, end: int) -> Argument:
    named = _NAMED.match(source.text, start, end)
    if named is None:
        return Argument(None, (start, end), (start, end))
    return Argument(named[1], named.span(1), (named.end(), end))


def read_word(source: Source, start: int, end: int) -> str:
    """A text, with or without quotes."""
    text = source.text[start:end].strip()
    if not text:
        raise source.error("a value is missing here", start, end)
    quoted = len(text) > 2 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text


def read_value(source: Source, start: int, end: int) -> Value:
    """Returns a number, true, false, none, a pair such as (3, 1), a list of numbers, or the text itself."""
    text = read_word(source, start, end)
    if re.fullmatch(_INTEGER, text):
        return int(text)
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if _LIST.fullmatch(text):
        return [int(number) for number in re.findall(_INTEGER, text)]
    if text[0] == "(" and text[-1] == ")":
        opening = source.text.index("(", start)
        spans = list(parts(source, opening + 1, opening + len(text) - 1, ","))
        if len(spans) > 1:
            return tuple(read_value(source, *span) for span in spans)
    return text


def parts(source: Source, start: int, end: int, sign: str) -> Iterator[Span]:
    """Yields the spans between separators outside brackets and quotes, without leading spaces."""
    first = at = start
    while at < end:
        letter = source.text[at]
        if letter in _CLOSING:
            at = closing(source, at, end)
        elif letter in _CLOSING.values():
            raise source.error(f"this {letter} closes nothing", at, at + 1)
        elif letter == sign:
            yield _trimmed(source, first, at)
            first = at + 1
        at += 1
    if first > start or source.text[first:end].strip():
        yield _trimmed(source, first, end)


def _trimmed(source: Source, start: int, end: int) -> Span:
    text = source.text[start:end]
    return start + len(text) - len(text.lstrip()), end


def closing(source: Source, at: int, end: int) -> int:
    """Where the bracket or the quote closes that opens at `at`."""
    opened = [at]
    for index in range(at + 1, end):
        letter, last = source.text[index], source.text[opened[-1]]
        if letter == _CLOSING[last]:
            opened.pop()
            if not opened:
                return index
        elif last not in "\"'" and letter in _CLOSING:
            opened.append(index)
        elif last not in "\"'" and letter in _CLOSING.values():
            raise source.error(f"this {letter} closes nothing", index, index + 1)
    raise source.error(f"this {source.text[opened[-1]]} is not closed", opened[-1], opened[-1] + 1)


def split_arrays(text: str) -> tuple[dict[str, list[int]], str]:
    """Returns the arrays at the beginning of a text, and the text with blanks in their place.

    >>> split_arrays("doc = [0, 0, 1]; doc[q] == doc[k]")
    ({'doc': [0, 0, 1]}, '                 doc[q] == doc[k]')
    """
    arrays: dict[str, list[int]] = {}
    at = 0
    while match := _ARRAY.match(text, at):
        arrays[match[1]] = [int(entry) for entry in re.findall(_ENTRY, match[2])]
        at = match.end()
    blank = "".join(letter if letter == "\n" else " " for letter in text[:at])
    return arrays, blank + text[at:]


def length_of(condition: Condition, arrays: dict[str, list[int]]) -> int | None:
    """Returns the number of positions if every array has one entry for each position."""
    lookups = [node for node in expr.walk(condition) if isinstance(node, Lookup) and node.array in arrays]
    each = all(
        isinstance(index, Name) and index.name in ("q", "k") for one in lookups for index in one.indices
    )
    lengths = {len(arrays[one.array]) for one in lookups}
    return lengths.pop() if each and len(lengths) == 1 else None


def array_missing(text: str, name: str) -> TextError:
    """Returns the error that an array is missing, with an example to insert before the rule."""
    match = re.search(rf"\b{re.escape(name)}\b", text)
    start, end = match.span() if match else (0, len(text))
    error = Source("rule", text).error(
        f"the rule looks up {name}[...], but no array of that name is given; write it before the rule, as in "
        f"{name} = [0, 0, 1]",
        start,
        end,
        Suggestion(0, 0, f"{name} = {EXAMPLE}\n"),
    )
    message = f"{error.message}; or pass it as data={{{name!r}: array}} (None: given with each call)"
    return TextError(message, text, start, end, error.suggestions, error.reason)
