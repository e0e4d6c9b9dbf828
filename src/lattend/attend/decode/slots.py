"""SlotTable: which position lies in which slot of a cache, known on the host from positions alone.

A new key takes the slot of one that is past its last query. While all rows of the batch go in step there is
one table for all of them, its slots 0 … count - 1 are in use, and where more keys are dropped than come, the
last ones move into the gaps. Rows of different lengths have a table each, and free slots between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError
from lattend.plans.last_query import FOREVER, NEVER
from lattend.plans.retention import Retention

Integers = NDArray[np.int64]

FREE = -1  # the position of a slot without a key
AHEAD = 1024  # keys to come whose last queries are found together


class Copies(NamedTuple):
    """Numbers to copy from places to slots: of these rows, or of all where there is one table."""

    rows: Integers | None
    slots: Integers
    places: Integers


class SlotTable:
    """Positions and last queries of the keys in slots, [rows, slots], and the length of each row.

    The last `rollback` tokens can be taken back: keys are kept that much longer. `floor` is the shortest text
    each row can go back to, since keys that shorter ones reach are gone.
    """

    def __init__(self, retention: Retention, slots: int, rollback: int) -> None:
        self.retention, self.rollback = retention, rollback
        self._soon, self._soon_from = np.zeros(0, np.int64), 0
        self._soon_one_by_one: list[int] = []
        self.most = None if retention.most is None else retention.most + rollback
        self.positions = np.full((1, slots), FREE)
        self.last = np.full((1, slots), NEVER)
        self.changes = 0  # of positions, those by `step` aside
        self.freed = True  # whether a slot without a key may hold anything but zeros
        self.reset()

    @property
    def capacity(self) -> int:
        return self.positions.shape[1]

    @property
    def shared(self) -> bool:
        """Whether all rows of the batch go in step."""
        return len(self.positions) == 1

    def held(self, row: int) -> Integers:
        """The positions of a row whose keys queries to come may reach, in order."""
        at = row % len(self.positions)
        return np.sort(self.positions[at][self.last[at] - self.rollback >= self.lengths[at]])

    # Rows

    def reset(self) -> None:
        """Free all slots; all rows go in step."""
        self.changes += 1
        self.freed = True
        self.positions, self.last = self.positions[:1], self.last[:1]
        self.positions[:], self.last[:] = FREE, NEVER
        self.lengths, self.floor = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.count = 0
        # The first position at which a key in a slot is past its last query; NEVER where slots may be free
        self._due = FOREVER

    def reset_rows(self, rows: Integers) -> None:
        self.changes += 1
        self.positions[rows], self.last[rows] = FREE, NEVER
        self.lengths[rows] = self.floor[rows] = 0
        self._due = NEVER
        self.freed = True

    def split(self, batch: int) -> None:
        """Give each row a table of its own."""
        self.changes += 1
        if not self.shared or batch < 2:
            return
        self.positions, self.last = (np.repeat(x, batch, 0) for x in (self.positions, self.last))
        self.lengths, self.floor = (np.repeat(x, batch) for x in (self.lengths, self.floor))

    def select(self, rows: Integers) -> None:
        self.changes += 1
        if not len(rows):  # a batch of none goes in step
            self.reset()
        elif not self.shared:
            self.positions, self.last = self.positions[rows], self.last[rows]
            self.lengths, self.floor = self.lengths[rows], self.floor[rows]
            self._due = NEVER  # one row alone is shared, and may have free slots between its keys

    # Tokens that come

    def step(self) -> int | None:
        """The slot of the next key of all rows, where it is one that is free, or that of the only key to go.

        None where there is more to do, by `admit`; nothing is changed then.
        """
        if self._due == NEVER or len(self.positions) != 1:
            return None
        position, slot = int(self.lengths[0]), self.count
        last = self._last_query(position)
        if last < position or (slot == self.capacity and self._due >= position):
            return None
        if self._due < position:
            in_use = self.last[0, :slot]
            slot = int(in_use.argmin())
            gone, in_use[slot] = int(in_use[slot]), last
            due = int(in_use.min())
            if due < position:  # another goes too
                in_use[slot] = gone
                return None
            self._due = due
            self.floor[0] = max(int(self.floor[0]), gone + 1 - self.rollback)
        else:
            self.last[0, slot] = last
            self._due = min(self._due, last)
            self.count += 1
        self.positions[0, slot] = position
        self.lengths = self.lengths + 1
        return slot

    def admit(self, sizes: Integers, now: Integers) -> tuple[Copies, Copies | None]:
        """Slots for the next `sizes` keys of each row; those past their last query before `now` are dropped.

        Gives what is to be copied into slots from the new keys, and then from slots to slots.
        """
        self.changes += 1
        return self._admit_shared(int(sizes[0]), int(now[0])) if self.shared else self._admit(sizes, now)

    def _admit_shared(self, size: int, now: int) -> tuple[Copies, Copies | None]:
        start, table, last_in = int(self.lengths[0]), self.positions[0], self.last[0]
        last = self._next_last_queries(start, size)
        staying = np.flatnonzero(last >= now)
        gaps = np.flatnonzero(last_in[: self.count] < now) if now > self._due else _NONE
        if len(staying) < size or len(gaps):
            gone = max(int(x.max(initial=NEVER)) for x in (last[last < now], last_in[gaps]))
            self.floor[0] = max(self.floor[0], gone + 1 - self.rollback)
        slots = gaps[: len(staying)]
        if len(slots) < len(staying):
            more = len(staying) - len(slots)
            self._make_room(self.count + more)
            table, last_in = self.positions[0], self.last[0]
            slots = np.concatenate([slots, np.arange(self.count, self.count + more)])
            self.count += more
        table[slots], last_in[slots] = start + staying, last[staying]
        moved = self._close(gaps[len(staying) :], now) if len(gaps) > len(staying) else None
        if len(gaps) or self._due == NEVER:
            self._due = int(last_in[: self.count].min(initial=FOREVER))
        elif len(staying):
            self._due = min(self._due, int(last[staying].min()))
        return Copies(None, slots, staying), moved

    def _close(self, gaps: Integers, now: int) -> Copies | None:
        """Move the last keys into the gaps, so that slots 0 … count - 1 are in use."""
        table, last = self.positions[0], self.last[0]
        count = self.count - len(gaps)
        movers = count + np.flatnonzero(last[count : self.count] >= now)
        targets = gaps[gaps < count]
        table[targets], last[targets] = table[movers], last[movers]
        table[count : self.count], last[count : self.count] = FREE, NEVER
        self.freed = True
        self.count = count
        return Copies(None, targets, movers) if len(movers) else None

    def _admit(self, sizes: Integers, now: Integers) -> tuple[Copies, None]:
        columns = np.arange(int(sizes.max(initial=0)))
        new = self.lengths[:, None] + columns
        last = self._last_queries(new)
        coming = columns < sizes[:, None]
        staying = coming & (last >= now[:, None])
        gone = np.where(coming & ~staying, last, NEVER).max(1, initial=NEVER)
        free = self.last[:, : self.count] < now[:, None]
        lacking = int((staying.sum(1) - free.sum(1)).max(initial=0))
        if lacking > 0:
            self._make_room(self.count + lacking)
            self.count += lacking
            free = self.last[:, : self.count] < now[:, None]
        rows, places = np.nonzero(staying)
        if len(columns) == 1 and len(rows):
            slots = free.argmax(1)[rows]
        else:
            order = np.argsort(~free, axis=1, kind="stable")  # free slots first
            slots = order[rows, (np.cumsum(staying, 1) - 1)[rows, places]]
        np.maximum.at(gone, rows, self.last[rows, slots])
        self.floor = np.maximum(self.floor, gone + 1 - self.rollback)
        self.positions[rows, slots], self.last[rows, slots] = new[rows, places], last[rows, places]
        return Copies(rows, slots, places), None

    def _last_query(self, position: int) -> int:
        """The last query of a key, and `rollback` more; looked up in numbers of Python."""
        place = position - self._soon_from
        if not 0 <= place < len(self._soon_one_by_one):
            self._next_last_queries(position, 1)
            self._soon_one_by_one = self._soon.tolist()
            place = position - self._soon_from
        return self._soon_one_by_one[place]

    def _last_queries(self, positions: Integers) -> Integers:
        """The last queries of keys at these positions, and `rollback` more."""
        if not positions.size:
            return np.zeros(positions.shape, np.int64)
        first = int(positions.min())
        return self._next_last_queries(first, int(positions.max()) + 1 - first)[positions - first]

    def _next_last_queries(self, first: int, size: int) -> Integers:
        """The same of keys side by side; found for many at a time."""
        start = first - self._soon_from
        if start < 0 or start + size > len(self._soon):
            keys = np.arange(first, first + max(size, AHEAD))
            found = self.retention.last(keys)
            self._soon = np.maximum(found, keys) + self.rollback if self.rollback else found
            self._soon_from, start, self._soon_one_by_one = first, 0, []
        return self._soon[start : start + size]

    def _make_room(self, slots: int) -> None:
        """Twice the room, at least, when it is too small: each key is then copied twice at most."""
        if slots <= self.capacity:
            return
        room = max(slots, 2 * self.capacity)
        if self.most is not None:
            room = min(room, max(slots, self.most))
        more = ((0, 0), (0, room - self.capacity))
        self.positions = np.pad(self.positions, more, constant_values=FREE)
        self.last = np.pad(self.last, more, constant_values=NEVER)

    # Tokens that are taken back

    def crop(self, lengths: Integers) -> None:
        """Take back the tokens of each row from these lengths on."""
        self.changes += 1
        self._check_floor(lengths)
        self._free(self.positions >= lengths[:, None])
        self.lengths = lengths

    def keep(self, starts: Integers, paths: list[Integers]) -> None:
        """Of the tokens from `starts` on keep those at these offsets, at consecutive positions."""
        self.changes += 1
        lengths = starts + np.array([len(path) for path in paths])
        self._check_floor(lengths)
        drafted = self.positions >= starts[:, None]
        found = [self._renumbered(row, *given) for row, given in enumerate(zip(starts, paths, strict=True))]
        self._free(drafted)
        for row, (slots, positions) in enumerate(found):
            self.positions[row, slots] = positions
            self.last[row, slots] = self._last_queries(positions)
        self.lengths = lengths

    def _renumbered(self, row: int, start: int, path: Integers) -> tuple[Integers, Integers]:
        """The slots of the kept tokens, and their new positions."""
        slots = np.flatnonzero(self.positions[row] >= start)
        offsets = self.positions[row, slots] - start
        new = start + np.arange(len(path))
        here = np.isin(path, offsets)
        lost = path[~here & (self._last_queries(new) - self.rollback >= start + len(path))]
        if len(lost):
            raise DomainError(
                f"token {lost[0]} of the draft is not held: this rule drops its key at once. "
                f"Make the cache with rollback={int(self.lengths[row]) - start} or more"
            )
        order = np.argsort(offsets)
        return slots[order[np.searchsorted(offsets[order], path[here])]], new[here]

    def _check_floor(self, lengths: Integers) -> None:
        wrong = np.flatnonzero(lengths < self.floor)
        if len(wrong):
            row = int(wrong[0])
            back = int(self.lengths[row] - lengths[row])
            raise DomainError(
                f"{back} tokens cannot be taken back: keys that position {int(lengths[row])} reaches are "
                f"dropped, and this text can go back to {int(self.floor[row])} tokens. "
                f"Make the cache with rollback={self.rollback + int(self.floor[row] - lengths[row])} or more"
            )

    def _free(self, slots: NDArray[np.bool_]) -> None:
        self.positions[slots], self.last[slots] = FREE, NEVER
        self._due = NEVER
        self.freed = True


_NONE = np.zeros(0, np.int64)
