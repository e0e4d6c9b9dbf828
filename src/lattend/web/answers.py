"""Answers that were given lately, so many bytes of them and no more."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from lattend.web.meaning import Meaning, Typed, retyped
from lattend.web.pool import Reply

KEPT = (200, 422)  # of other statuses there may be an answer another time
LARGEST = 1 << 18  # bytes of an answer that is kept
MOST = 64 << 20  # bytes of all of them
OVERHEAD = 400  # bytes that an entry takes beside its texts

Key = tuple[str, str, bytes]


class Known(NamedTuple):
    """An answer, and the rules as they were typed when it was given."""

    typed: Typed
    reply: Reply


@dataclass
class Answers:
    """What was answered, by panel, format and meaning; what was not asked for longest makes room."""

    most: int = MOST
    bytes: int = 0
    _known: OrderedDict[Key, Known] = field(default_factory=OrderedDict)

    def get(self, panel: str, form: str, meaning: Meaning) -> Reply | None:
        """The answer, if it is still here, with the rules as they are typed now."""
        key = (panel, form, meaning.key)
        found = self._known.get(key)
        if found is None:
            return None
        self._known.move_to_end(key)
        if found.typed == meaning.typed:
            return found.reply
        if found.reply.status != 200:  # what is wrong is said of the text
            return None
        body = retyped(found.reply.body, found.typed, meaning.typed)
        return found.reply._replace(body=body) if body is not None else None

    def keep(self, panel: str, form: str, meaning: Meaning, reply: Reply) -> None:
        """Keep an answer, unless it is very long, or may be another next time."""
        key = (panel, form, meaning.key)
        if reply.status not in KEPT or len(reply.body) > LARGEST or key in self._known:
            return
        self._known[key] = known = Known(meaning.typed, reply)
        self.bytes += _size(key, known)
        while self.bytes > self.most:
            self.bytes -= _size(*self._known.popitem(last=False))


def _size(key: Key, known: Known) -> int:
    return len(key[2]) + sum(map(len, known.typed.values())) + len(known.reply.body) + OVERHEAD
