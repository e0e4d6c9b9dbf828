"""A rule from one string: a catalogue name, a name with its arguments, or a rule's text."""

from __future__ import annotations

import difflib
import inspect
import re

from lattend.errors import LattendError, TextError
from lattend.rules.catalogue import CATALOGUE
from lattend.rules.language.scan import WORDS
from lattend.rules.language.tokens import MAX_LENGTH, Source, skip_space
from lattend.rules.rule import Rule, rule

_CALL = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)\s*(?:\((.*)\))?\s*", re.DOTALL)
_ARGUMENT = re.compile(
    r"""(?:(?P<name>[A-Za-z]\w*)\s*=\s*)?
    (?: (?P<number>-?[0-9]{1,19})
      | \[(?P<list>\s*(?:-?[0-9]{1,19}\s*(?:,\s*-?[0-9]{1,19}\s*)*)?)\]
      | (?P<quote>["']?)(?P<word>[A-Za-z][\w-]*)(?P=quote)
    )\s*(?:,\s*|$)""",
    re.VERBOSE,
)

Argument = int | str | bool | None | list[int]


def from_name(text: str) -> Rule:
    """The rule a person means: `strided`, `strided(255)`, `dilated(t=3, step=2)` or `k <= q`.

    >>> from_name("strided(255)")
    <Rule k <= q and q - k <= t with t = 255>
    """
    source = Source("rule", text)
    call = _CALL.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if call is None or call[1] in WORDS:
        return rule(text)
    if call[1] not in CATALOGUE:
        raise _unknown(source, call)
    function = CATALOGUE[call[1]]
    positional, named = _arguments(source, call) if call[2] is not None else ([], {})
    signature = inspect.signature(function)
    try:
        signature.bind(*positional, **named)
    except TypeError as problem:
        wanted = ", ".join(signature.parameters) or "no arguments"
        message = f"{call[1]} takes {wanted}; here: {problem}"
        raise source.error(message, call.start(1), len(text.rstrip())) from None
    try:
        return function(*positional, **named)
    except TextError:
        raise
    except LattendError as problem:
        raise source.error(str(problem), call.start(1), len(text.rstrip())) from None


def _arguments(source: Source, call: re.Match[str]) -> tuple[list[Argument], dict[str, Argument]]:
    positional: list[Argument] = []
    named: dict[str, Argument] = {}
    at, end = skip_space(source, call.start(2)), call.end(2)
    while at < end:
        found = _ARGUMENT.match(source.text, at, end)
        if found is None:
            examples = "strided(255), dilated(t=3, step=2) or documents([3, 5])"
            raise source.error(f"write numbers, as in {examples}", at, end)
        value = _argument(found)
        if found["name"] is None and named:
            raise source.error("write arguments without a name first", at, found.end())
        if found["name"] is None:
            positional.append(value)
        elif found["name"] in named:
            raise source.error(f"{found['name']} is given twice; give it once", *found.span("name"))
        else:
            named[found["name"]] = value
        at = found.end()
    return positional, named


def _argument(found: re.Match[str]) -> Argument:
    if found["number"] is not None:
        return int(found["number"])
    if found["list"] is not None:
        return [int(number) for number in re.findall(r"-?[0-9]+", found["list"])]
    constants: dict[str, Argument] = {"true": True, "false": False, "none": None}
    return constants.get(found["word"].lower(), found["word"])


def _unknown(source: Source, call: re.Match[str]) -> TextError:
    close = difflib.get_close_matches(call[1].lower(), CATALOGUE, 1, 0.5)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(CATALOGUE)}."
    message = f"no rule is named {call[1]}; {hint} Or write a condition, such as k <= q"
    return source.error(message, *call.span(1))
