"""Arrays written before a rule, as in `doc = [0, 0, 1]; doc[q] == doc[k]`: a text that holds its data."""

from __future__ import annotations

import re

from lattend.errors import Suggestion, TextError
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition, Lookup, Name
from lattend.rules.language.tokens import Source

EXAMPLE = [0] * 5 + [1] * 3 + [2] * 4  # documents of 5, 3 and 4 tokens, one after the other
_ENTRY = r"-?[0-9]{1,18}"
_ARRAY = re.compile(
    rf"\s*([A-Za-z][A-Za-z0-9_]*)\s*=\s*\[\s*({_ENTRY}(?:[\s,]+{_ENTRY})*)[\s,]*\][ \t]*(?:;|\n)"
)


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
