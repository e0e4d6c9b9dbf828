"""Recent answers by the meaning of their question: however a rule is typed, it is answered once."""

from __future__ import annotations

import json
import re
import shlex
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from pydantic import BaseModel

from lattend.errors import LattendError
from lattend.rules.catalogue.names import NAMES
from lattend.rules.language.key import spelling_of
from lattend.rules.reader import read_rule
from lattend.web.panel import RULES, Panel
from lattend.web.pool import Reply

LONGEST_RULE = 1000  # characters of a rule that is taken as it is typed
_CALLED = re.compile(r"(\w+)\s*\(\s*[^)\s]")  # a name with arguments
Typed = Mapping[str, str]  # the rules of a question, by the field they stand in


class Meaning(NamedTuple):
    """The meaning of a question: its key in one spelling, and its rules as they were typed."""

    key: bytes
    typed: Typed


def meaning_of(panel: Panel, form: str, question: BaseModel) -> Meaning:
    """The meaning of a question. Answers of equal keys differ only in the rules of their snippets."""
    fields = question.model_dump(mode="json")
    typed = {name: fields[name] for name in RULES if name in fields}
    if form or panel.as_typed:  # a picture has the rule in its title
        typed = {}
    spelled = {name: _one_spelling(text) for name, text in typed.items() if len(text) <= LONGEST_RULE}
    return Meaning(json.dumps(fields | spelled, sort_keys=True).encode(), typed)


@lru_cache(maxsize=1024)
def _one_spelling(text: str) -> str:
    """The one spelling of a rule. A rule that may make large arrays stays as it is typed."""
    try:
        makes_arrays = any(name in NAMES for name in _CALLED.findall(text))
        return text if makes_arrays else spelling_of(read_rule(text))
    except LattendError:
        return text


def retyped(body: bytes, before: Typed, now: Typed) -> bytes | None:
    """Replace the rules in an answer's snippets; None where a text could be either rule."""
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
    return re.sub(pattern, lambda match: written[match[1]], text)


KEPT = (200, 422)  # of other statuses there may be an answer another time
LARGEST = 1 << 18  # bytes of an answer that is kept
MOST_BYTES = 64 << 20  # bytes of all of them
OVERHEAD = 400  # bytes that an entry takes beside its texts

Key = tuple[str, str, bytes]


class Known(NamedTuple):
    """An answer, and the rules as they were typed when it was given."""

    typed: Typed
    reply: Reply


@dataclass
class Answers:
    """Recent answers by panel, format and meaning. The least recently used one is dropped first."""

    most: int = MOST_BYTES
    bytes: int = 0
    _known: OrderedDict[Key, Known] = field(default_factory=OrderedDict)

    def get(self, panel: str, form: str, meaning: Meaning) -> Reply | None:
        """The answer if it is still kept, with the rules as they are typed now."""
        key = (panel, form, meaning.key)
        entry = self._known.get(key)
        if entry is None:
            return None
        self._known.move_to_end(key)
        if entry.typed == meaning.typed:
            return entry.reply
        if entry.reply.status != 200:  # a problem speaks of the text
            return None
        body = retyped(entry.reply.body, entry.typed, meaning.typed)
        return entry.reply._replace(body=body) if body is not None else None

    def keep(self, panel: str, form: str, meaning: Meaning, reply: Reply) -> None:
        """Keep an answer unless it is very long or may differ next time."""
        key = (panel, form, meaning.key)
        if reply.status not in KEPT or len(reply.body) > LARGEST or key in self._known:
            return
        self._known[key] = known = Known(meaning.typed, reply)
        self.bytes += _size(key, known)
        while self.bytes > self.most:
            self.bytes -= _size(*self._known.popitem(last=False))


def _size(key: Key, known: Known) -> int:
    return len(key[2]) + sum(map(len, known.typed.values())) + len(known.reply.body) + OVERHEAD
