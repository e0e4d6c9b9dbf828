"""Questions that mean the same: a rule is typed in many ways, and answered once."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from pydantic import BaseModel

from lattend.errors import LattendError
from lattend.rules.catalogue.names import NAMES
from lattend.rules.language.key import spelling_of
from lattend.rules.reader import read_rule
from lattend.web.panel import RULES, Panel

LONG = 1000  # characters of a rule that is taken as it is typed
_CALLED = re.compile(r"(\w+)\s*\(\s*[^)\s]")  # a name with arguments
Typed = Mapping[str, str]  # the rules of a question, by the field they stand in


class Meaning(NamedTuple):
    """What is asked, in one spelling, and the rules as they were typed."""

    key: bytes
    typed: Typed


def meaning_of(panel: Panel, form: str, question: BaseModel) -> Meaning:
    """Equal keys have equal answers, but for the rules in their copies."""
    asked = question.model_dump(mode="json")
    typed = {name: asked[name] for name in RULES if name in asked}
    if form or panel.as_typed:  # a picture has the rule in its title
        typed = {}
    spelled = {name: _spelling(text) for name, text in typed.items() if len(text) <= LONG}
    return Meaning(json.dumps(asked | spelled, sort_keys=True).encode(), typed)


@lru_cache(maxsize=1024)
def _spelling(text: str) -> str:
    """The one spelling; the server reads it itself, so what may make arrays is taken as it is typed."""
    try:
        makes_arrays = any(name in NAMES for name in _CALLED.findall(text))
        return text if makes_arrays else spelling_of(read_rule(text))
    except LattendError:
        return text


def retyped(body: bytes, before: Typed, now: Typed) -> bytes | None:
    """An answer, its copies with these rules in place of those; None where they cannot be told apart."""
    if before == now:
        return body
    replaced = {before[name]: now[name] for name in now}
    if any(replaced[before[name]] != now[name] for name in now):
        return None
    answer = json.loads(body)
    if copies := answer.get("copies"):
        copies["python"] = _replaced(copies["python"], replaced, repr, "")
        copies["command"] = _replaced(copies["command"], replaced, shlex.quote, r"(?<!\S)")
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()


def _replaced(text: str, rules: Mapping[str, str], quoted: Callable[[str], str], before: str) -> str:
    written = {quoted(old): quoted(new) for old, new in rules.items()}
    longest = sorted(written, key=len, reverse=True)
    after = r"(?!\S)" if before else ""
    pattern = f"{before}({'|'.join(map(re.escape, longest))}){after}"
    return re.sub(pattern, lambda found: written[found[1]], text)
