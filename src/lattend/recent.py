"""Recent: what was found lately, so much of it and no more."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
_NOTHING = object()


class Recent(dict[Key, Value]):
    """A memory of at most `most` values, each found once by its key; the oldest makes room.

    >>> lengths: Recent[str, int] = Recent(2)
    >>> [lengths.find(word, lambda: len(word)) for word in ("one", "three", "eleven")]
    [3, 5, 6]
    >>> list(lengths)
    ['three', 'eleven']
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self._lock = most, Lock()

    def find(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a key, made if it is not known; threads that make it at once get the same."""
        known = self.get(key, _NOTHING)
        if known is not _NOTHING:
            return known  # pyright: ignore[reportReturnType]
        made = make()
        with self._lock:
            while len(self) >= self.most:
                del self[next(iter(self))]
            return self.setdefault(key, made)
