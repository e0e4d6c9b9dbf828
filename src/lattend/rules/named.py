"""Catalogue names in a text: the whole text, as in strided(255), or a part, as in causal and k < 3."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from lattend.errors import LattendError, Suggestion, TextError
from lattend.rules.catalogue.names import NAMES, calls_near, rules_near, unknown_rule
from lattend.rules.language import expr
from lattend.rules.language.call import Call, Value, read_call, read_value
from lattend.rules.language.expr import Condition, Num, Span, Truth
from lattend.rules.language.grammar import MAX_LENGTH, NAME, Source
from lattend.rules.language.scan import WORDS
from lattend.rules.rule import Rule

_CALL = re.compile(r"\s*([A-Za-z]\w*)\s*(?:\([^()]*\)\s*)?")  # a name with arguments, known or not
_WORD = re.compile(r"[A-Za-z][\w-]*")
_EXAMPLES = "strided(255), dilated(t=3, step=2) or documents([3, 5])"
_SEVERAL_WORDS = re.compile(r"\s*[A-Za-z]{3,}(?:[\s-]+[A-Za-z]{3,})+\s*")
_WORDS_AND_NUMBERS = re.compile(
    r"\s*([A-Za-z_]{3,}(?:[\s-]+[A-Za-z_]{2,})*(?:\s+[A-Za-z](?=\s*=))?)(?:\s+|\s*[:=]\s*)([0-9]+(?:\s+[0-9]+)*)\s*"
)
LONG_NAME = 4  # letters of a name that may be that of a rule, misspelt


def named_call(text: str) -> Call | None:
    """Returns the call in a text that is a catalogue name, or looks like an unknown one; otherwise None."""
    if len(text) > MAX_LENGTH:
        return None
    if _SEVERAL_WORDS.fullmatch(text) and not WORDS & {*text.split()}:
        raise _no_rule(text)
    unbracketed = _WORDS_AND_NUMBERS.fullmatch(text)
    if unbracketed is not None and not WORDS & {*unbracketed[1].split()}:
        calls = [call for call in calls_near(unbracketed[1], unbracketed[2].split()) if _is_rule(call)]
        if calls:
            message = f"the numbers of a rule stand in brackets: write {' or '.join(calls)}"
            raise Source("rule", text).error(message, 0, len(text), *calls)
        if rules_near(unbracketed[1]):
            raise _no_rule(text, unbracketed[1])
    head = NAME.match(text.lstrip())
    if head is None or head[0] in WORDS or not (head[0] in NAMES or _CALL.fullmatch(text)):
        return None
    return read_call(Source("rule", text), 0, len(text))


def _no_rule(text: str, words: str = "") -> TextError:
    """Returns the error that no rule has this name, with similar names as suggestions."""
    near, text_words = rules_near(" ".join((words or text).split())), " ".join(text.split())
    return Source("rule", text).error(unknown_rule(text_words, near), 0, len(text), *near)


def _is_rule(text: str) -> bool:
    source = Source("rule", text)
    call = read_call(source, 0, len(text))
    try:
        return call is not None and bool(from_catalogue(source, call, (0, len(text))))
    except LattendError:
        return False


class NamedRules:
    """The rules of the catalogue that a text names, as its conditions.

    What else they bring is gathered: the domain of their parameters, the sizes that they fix, their arrays.
    """

    def __init__(self, source: Source, arrays: Mapping[str, Any]) -> None:
        self.source = source
        self.arrays = dict(arrays)
        self.sizes: dict[str, int] = {}
        self.where: Condition = Truth(True)
        self.places: list[Span] = []

    def __contains__(self, name: str) -> bool:
        return name in NAMES

    def near(self, name: str) -> list[str]:
        """Returns the rules that an unknown name may mean."""
        return rules_near(name) if len(name) >= LONG_NAME else []

    def condition(self, span: Span) -> Condition:
        """Returns the condition of the rule named at this span, with its numbers written in."""
        call = read_call(self.source, *span)
        assert call is not None  # a name of the catalogue stands there
        rule = from_catalogue(self.source, call, span)
        values = {name: Num(value) for name, value in rule.values.items() if name not in rule.sizes}
        domain = expr.conjuncts(expr.substituted(rule.where, values))
        self.where = expr.all_of(self.where, *(part for part in domain if expr.names(part)))
        self.places.append(span)
        self._take(rule, span)
        return expr.placed(expr.substituted(rule.condition, values), span)

    def _take(self, rule: Rule, span: Span) -> None:
        """Collects the sizes and arrays of a rule; raises if the text already has others."""
        sizes = {name: value for name, value in rule.values.items() if name in rule.sizes}
        for name, value in sizes.items():
            if self.sizes.setdefault(name, value) != value:
                message = f"this rule has {name} = {value}, and one before it {name} = {self.sizes[name]}"
                raise self.source.error(f"{message}; give them one size", *span)
        for name, array in rule.data.items():
            known = self.arrays.get(name)
            if known is not None and not np.array_equal(known, array):
                message = f"this rule has an array {name} of its own, and the text has another {name}"
                raise self.source.error(f"{message}; write one of the two out, under another name", *span)
            self.arrays[name] = array
        for name in rule.open:
            self.arrays.setdefault(name, None)


def from_catalogue(source: Source, call: Call, span: Span) -> Rule:
    """Returns the rule of a call in the text; errors point at `span`."""
    if call.name not in NAMES:
        raise source.error(unknown_rule(call.name), *call.place, *rules_near(call.name))
    function = NAMES[call.name]
    positional, named = _arguments(source, call, span[1] - 1)
    signature = inspect.signature(function)
    try:
        signature.bind(*positional, **named)
    except TypeError as problem:
        wanted = ", ".join(signature.parameters) or "no arguments"
        message = f"{call.name} takes {wanted}; here: {problem}"
        raise source.error(message, *span, *_fitting(call, [*signature.parameters])) from None
    try:
        return function(*positional, **named)
    except TextError:
        raise
    except LattendError as problem:
        raise source.error(str(problem), *span, call.name) from None


def _fitting(call: Call, parameters: list[str]) -> list[str | Suggestion]:
    """Returns corrections of misspelled arguments; the bare name for a rule without parameters."""
    if not parameters:
        return [call.name]
    wrong = [one for one in call.arguments or () if one.name is not None and one.name not in parameters]
    return [
        Suggestion(*one.place, near)
        for one in wrong
        for near in difflib.get_close_matches(one.name or "", parameters, 1)
    ]


def _arguments(source: Source, call: Call, close: int) -> tuple[list[Value], dict[str, Value]]:
    positional: list[Value] = []
    named: dict[str, Value] = {}
    for argument in call.arguments or ():
        start, end = argument.place[0], argument.value[1]
        value = read_value(source, *argument.value) if source.text[slice(*argument.value)].strip() else ""
        words = [one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, str)]
        if any(isinstance(value, tuple) or not _WORD.fullmatch(word) for word in words):
            raise source.error(f"write numbers, as in {_EXAMPLES}", start, close)
        if argument.name is None and named:
            raise source.error("write arguments without a name first", start, end)
        if argument.name is None:
            positional.append(value)
        elif argument.name in named:
            raise source.error(f"{argument.name} is given twice; give it once", *argument.place)
        else:
            named[argument.name] = value
    return positional, named
