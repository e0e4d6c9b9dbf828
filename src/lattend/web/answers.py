"""Answers that were given lately, so many bytes of them and no more."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from lattend.web.pool import Reply

KEPT = (200, 422)  # of other statuses there may be an answer another time
LARGEST = 1 << 18  # bytes of an answer that is kept
MOST = 64 << 20  # bytes of all of them
OVERHEAD = 400  # bytes that an entry takes beside its texts

Key = tuple[str, str, bytes]


@dataclass
class Answers:
    """What was answered to (panel, format, question); what was not asked for longest makes room."""

    most: int = MOST
    bytes: int = 0
    _known: OrderedDict[Key, Reply] = field(default_factory=OrderedDict)

    def get(self, key: Key) -> Reply | None:
        """The answer, if it is still here."""
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
        return found

    def keep(self, key: Key, reply: Reply) -> None:
        """Keep an answer, unless it is very long, or may be another next time."""
        if reply.status not in KEPT or len(reply.body) > LARGEST or key in self._known:
            return
        self._known[key] = reply
        self.bytes += _size(key, reply)
        while self.bytes > self.most:
            self.bytes -= _size(*self._known.popitem(last=False))


def _size(key: Key, reply: Reply) -> int:
    return len(key[2]) + len(reply.body) + OVERHEAD
