"""DynamicStore: keys and values in slots that the host hands out, so that a step never waits for the device.

It holds the keys that the rule can still reach and no others, and its room grows when it must.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lattend.attend.bias import Bias
from lattend.attend.decode import step
from lattend.attend.decode.entries import entry_at
from lattend.attend.decode.fused_step import at_once, library_takes, past_and_draft
from lattend.attend.decode.line_bias import bias_at
from lattend.attend.decode.ragged import NO_DRAFT, check_path
from lattend.attend.decode.slots import FREE, Copies, Integers, SlotTable
from lattend.attend.decode.step import PIECE, NewTokens, Scoring, Slots, StepMask
from lattend.attend.decode.step_cache import KnownStep, KnownSteps, tensors_of
from lattend.attend.kernels import gpu_crossovers
from lattend.attend.replay.compiled_call import WithoutAutocast
from lattend.errors import DomainError
from lattend.plans.last_query import FOREVER
from lattend.plans.retention import Retention

FIRST_SLOTS = 64
MAX_AT_ONCE = 1 << 20  # slots made before any key comes; more are made when they are needed
MAX_PAIRS = 1 << 22  # of one such piece, all keys included


class DynamicStore:
    """Keys and values [batch, kv_heads, slots, D], and the entries [batch, slots] of arrays that grow."""

    keys: Tensor
    values: Tensor

    def __init__(
        self,
        retention: Retention,
        attended: StepMask,
        growing: tuple[str, ...],
        rollback: int,
        shape: tuple[int, int, int, int],
        kind: Mapping[str, Any],
    ) -> None:
        most = None if retention.most is None else retention.most + rollback
        self.grows = most is None or most > MAX_AT_ONCE
        slots = FIRST_SLOTS if most is None or most > MAX_AT_ONCE else most
        self.retention, self.attended = retention, attended
        self.table = SlotTable(retention, slots, rollback)
        self.keys, self.values, self.entries = step.empty_slots(slots, shape, growing, kind)
        self._whole = retention.whole and not rollback  # a query attends to all keys in slots
        self.steps = KnownSteps()
        self._on_device: Tensor | None = None  # positions where a GPU reads them
        self._placed: tuple[int, int] | None = None  # the table's changes, and the next position
        self.drafted: tuple[Integers, Integers] | None = None  # where the last call began, and its tokens

    @property
    def batch(self) -> int:
        return self.keys.shape[0]

    @property
    def lengths(self) -> Integers:
        return np.broadcast_to(self.table.lengths, self.batch)

    @property
    def in_step(self) -> bool:
        return self.table.shared

    def held(self, row: int) -> Integers:
        return self.table.held(row)

    # Queries

    def attend(self, new: NewTokens, how: Scoring) -> tuple[Tensor, Tensor | None]:
        """The outputs of the new tokens, whose keys and values join the past."""
        s = new.q.shape[2]
        if s == 1 and new.sizes is None and self.table.shared and not new.entries:
            known = self.steps.of(new.q, new.k, new.v, how)
            return self.one(new.q, new.k, new.v, how.bias, known)
        sizes = np.full(len(self.table.lengths), s)
        if new.known_sizes is not None and self.batch:
            given = new.known_sizes.cpu().numpy().astype(np.int64)
            if not (given == s).all():
                self.table.split(self.batch)
            sizes = given[:1] if self.table.shared else given
        start = self.table.lengths
        run = self._pieces if start.any() or s < 2 else self._first
        found = run(new, sizes, how)
        self.drafted = start, sizes
        return found

    def _first(self, new: NewTokens, sizes: Integers, how: Scoring) -> tuple[Tensor, Tensor]:
        """The prefill: attention itself."""
        found = step.prefill(self.retention.rule, new, how)
        self._admit(new, sizes, now=sizes)
        self.table.lengths = self.table.lengths + sizes
        return found

    def one(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Bias | Tensor | None, known: KnownStep
    ) -> tuple[Tensor, Tensor | None]:
        """One token of each row, where all go in step; a step of the kind that is known."""
        table, start = self.table, self.table.lengths
        slot = table.step()
        if slot is None:
            self._admit(NewTokens(q, k, v, {}), _ONE, now=table.lengths)
            table.lengths = table.lengths + 1
        self.drafted = start, _ONE
        if not known.is_for(self.keys, table.positions):
            known.made(self._at_once(q, k, v, known.given(bias)), self.keys, table.positions)
        if known.run is not None:
            position = int(start[0])
            if self._on_device is not None and (known.text is not None or not self._whole):
                self._place(position)
            tensors = () if bias is None else tensors_of(bias).values()
            return known.run(q, k, v, *tensors, position, -1 if slot is None else slot, table.count)
        if slot is not None:
            self.keys.narrow(2, slot, 1).copy_(k)
            self.values.narrow(2, slot, 1).copy_(v)
        with WithoutAutocast(q):
            return self._one_by_torch(q, known.given(bias))

    def _at_once(self, q: Tensor, k: Tensor, v: Tensor, how: Scoring) -> Callable[..., Any] | None:
        """What takes such steps at once; not of a rule that reads arrays or may leave 64 bits."""
        if not self._whole and not self.attended.plain:
            return None
        condition = None if self._whole else self.attended.condition
        read = condition is not None or how.bias is not None
        where = self._where(q.device) if read else None
        slots = Slots(self.keys, self.values, where, condition, table=self.table)
        return at_once(q, k, v, slots, how)

    def _where(self, device: torch.device) -> Integers | Tensor:
        """The positions of keys where they are read: the table's own, or a copy on the device."""
        return self.table.positions if device.type == "cpu" else self._copied(device)

    def _copied(self, device: torch.device) -> Tensor:
        shape = self.table.positions.shape
        if self._on_device is None or self._on_device.shape != shape:
            self._on_device = torch.empty(shape, dtype=torch.int64, device=device)
            self._placed = None  # nothing is in it yet
        return self._on_device

    def _place(self, position: int) -> None:
        """Bring the copy of positions up to a table that has taken the step of this position.

        The steps that read it write it too, so that it differs only after something else was done.
        """
        if self._on_device is not None and self._placed != (self.table.changes, position):
            self._on_device.copy_(step.moved(self.table.positions, self._on_device.device))
        self._placed = self.table.changes, position + 1

    def _one_by_torch(self, q: Tensor, how: Scoring) -> tuple[Tensor, Tensor | None]:
        """The same, once its key is in a slot, by operations of torch."""
        keys, values, table = self.keys, self.values, self.table
        if table.count < table.capacity:
            keys, values = keys.narrow(2, 0, table.count), values.narrow(2, 0, table.count)
        if how.bias is None and self._whole:
            return step.attend(q, keys, values, None, how)
        position, held, attended = int(table.lengths[0]) - 1, slice(table.count), None
        positions, last = table.positions[0, held], table.last[0, held]
        for_rollback = bool(table.rollback) and bool((last < FOREVER).any())  # some keys only for that
        if for_rollback or not self.retention.whole:
            mask = self.attended.on_host(np.array([position]), positions)
            reached = np.count_nonzero(mask)
            if self.attended.heads is not None or mask.size < 2 * reached < 2 * mask.size:
                attended = step.moved(np.array(mask), q.device)
            elif reached < mask.size:
                slots = step.moved(np.flatnonzero(mask), q.device)
                keys, values = keys.index_select(2, slots), values.index_select(2, slots)
                positions = positions[mask[0]]
        added = None if how.bias is None else bias_at(how.bias, np.array([position]), positions, q)
        return step.attend(q, keys, values, attended, how, added)

    def _pieces(self, new: NewTokens, sizes: Integers, how: Scoring) -> tuple[Tensor, Tensor | None]:
        """A draft, a prompt or a part of one, after a past: as many queries at once as keep its pairs few."""
        if past := self._past_for_library(new, sizes, how):
            return self._by_library(new, sizes, how, past)
        outs: list[Tensor] = []
        lses: list[Tensor] = []
        done, s = 0, new.q.shape[2]
        while done < s or not outs:
            end = min(s, done + max(1, min(PIECE, MAX_PAIRS // (self.table.count + PIECE))))
            q, k, v = (x[:, :, done:end] for x in (new.q, new.k, new.v))
            piece = NewTokens(q, k, v, {name: x[:, done:end] for name, x in new.entries.items()})
            out, lse = self._piece(piece, np.clip(sizes - done, 0, end - done), how)
            outs.append(out)
            lses += [] if lse is None else [lse]
            done = end
        return torch.cat(outs, 2), torch.cat(lses, 2) if how.return_lse else None

    def _past_for_library(self, new: NewTokens, sizes: Integers, how: Scoring) -> int:
        """How many of the first slots hold the past, if torch's own attention takes the new tokens; else 0.

        It does where all of them attend to all of the past, and causally to their own keys: each key of both
        is then in use until the last of them, and a query reaches every key in use.
        """
        table, s = self.table, new.q.shape[2]
        every = table.shared and sizes[0] == s and not new.entries and self.retention.whole
        if not every or not library_takes(new.q, new.v, how):
            return 0
        start, last = int(table.lengths[0]), table.last[0, : table.count] - table.rollback
        past, end = int(np.count_nonzero(last >= start)), start + s - 1
        if past < gpu_crossovers.cached_keys("draft", self.keys) or (last[:past] < end).any():
            return 0
        return 0 if (self.retention.last(np.arange(start, end + 1)) < end).any() else past

    def _by_library(
        self, new: NewTokens, sizes: Integers, how: Scoring, past: int
    ) -> tuple[Tensor, Tensor | None]:
        """The same of tokens that torch's own attention takes."""
        keys, values = self.keys[:, :, :past], self.values[:, :, :past]
        out, lse = past_and_draft(new.q, new.k, new.v, keys, values, how.scale)
        self._admit(new, sizes, now=self.table.lengths + sizes)
        self.table.lengths = self.table.lengths + sizes
        return out, lse if how.return_lse else None

    def _piece(self, new: NewTokens, sizes: Integers, how: Scoring) -> tuple[Tensor, Tensor | None]:
        table, q = self.table, new.q
        queries = table.lengths[:, None] + np.arange(q.shape[2])
        if self.grows:
            self._admit(new, sizes, now=table.lengths)
        growing_together = table.shared and self.grows
        held = slice(
            table.count if growing_together else min(table.capacity, step.rounded_slots(table.count))
        )
        self._clear_slots(held)
        keys, values, positions = self.keys[:, :, held], self.values[:, :, held], table.positions[:, held]
        entries = {name: x[:, held] for name, x in self.entries.items()}
        if not self.grows:  # there is room only for the keys that stay
            keys, values = torch.cat([keys, new.k], 2), torch.cat([values, new.v], 2)
            real = np.arange(q.shape[2]) < sizes[:, None]
            positions = np.concatenate([positions, np.where(real, queries, FREE)], 1)
            entries = {name: torch.cat([x, new.entries[name]], 1) for name, x in entries.items()}
            self._admit(new, sizes, now=table.lengths + sizes)
        table.lengths = table.lengths + sizes
        at = {entry_at(name, "q"): x[:, :, None] for name, x in new.entries.items()}
        at |= {entry_at(name, "k"): x[:, None, :] for name, x in entries.items()}
        if table.shared and not at:
            queries, positions = queries[0], positions[0]
        if not table.shared and self.grows and self._whole and q.shape[2] == 1:  # all keys in use
            mask = step.moved(table.last[:, held] >= queries, q.device)[:, None, None]
        else:
            mask = self.attended.on_device(queries, positions, q.device, at)
        added = None if how.bias is None else bias_at(how.bias, queries, positions, q)
        return step.attend(q, keys, values, mask, how, added, fixed=not growing_together)

    # Slots

    def _clear_slots(self, read: slice) -> None:
        """Zeros in slots without a key, if there are any among those that are read."""
        positions = self.table.positions
        if self.table.freed and (positions[:, read] == FREE).any():
            step.clear_slots(self.keys, self.values, step.moved(positions == FREE, self.keys.device))
            self.table.freed = False

    def _admit(self, new: NewTokens, sizes: Integers, now: Integers) -> None:
        """Take in the new keys that stay, and drop those whose last query is before `now`."""
        coming, moving = self.table.admit(sizes, now)
        more = self.table.capacity - self.keys.shape[2]
        if more:
            self.steps.let_go()
            with torch.inference_mode(False):
                self.keys, self.values = (
                    torch.cat([x, x.new_zeros(*x.shape[:2], more, x.shape[3])], 2)
                    for x in (self.keys, self.values)
                )
                self.entries = {
                    name: torch.cat([x, x.new_zeros(x.shape[0], more)], 1) for name, x in self.entries.items()
                }
        self._copy(coming, new.k, new.v, new.entries)
        if moving is not None:
            self._copy(moving, self.keys, self.values, self.entries)

    def _copy(self, copies: Copies, k: Tensor, v: Tensor, entries: Mapping[str, Tensor]) -> None:
        """Copy into slots from places of these tensors; as slices where both lie side by side."""
        rows, slots, places = copies
        if not len(slots):
            return
        if rows is not None:
            row, into, source = (step.moved(np.ascontiguousarray(x), k.device) for x in copies)
            self.keys[row, :, into] = k[row, :, source]
            self.values[row, :, into] = v[row, :, source]
            for name, kept in self.entries.items():
                kept[row, into] = entries[name][row, source]
            return
        a, c, size = int(slots[0]), int(places[0]), len(slots)
        if int(slots[-1]) - a == size - 1 and int(places[-1]) - c == size - 1:  # both are sorted
            self.keys[:, :, a : a + size] = k[:, :, c : c + size]
            self.values[:, :, a : a + size] = v[:, :, c : c + size]
            for name, kept in self.entries.items():
                kept[:, a : a + size] = entries[name][:, c : c + size]
            return
        into, source = (step.moved(np.ascontiguousarray(x), k.device) for x in (slots, places))
        self.keys.index_copy_(2, into, k.index_select(2, source))
        self.values.index_copy_(2, into, v.index_select(2, source))
        for name, kept in self.entries.items():
            kept.index_copy_(1, into, entries[name].index_select(1, source))

    # Rows and tokens

    def crop(self, lengths: Integers) -> None:
        """Take back tokens: these many stay of each row, or of all, [1]; a number below 0 is taken off."""
        if not self.batch:
            self.drafted = None
            return
        if (lengths != lengths[0]).any():
            self.table.split(self.batch)
        wanted = lengths[:1] if self.table.shared else lengths
        now = self.table.lengths
        self.table.crop(np.minimum(now, np.where(wanted < 0, np.maximum(now + wanted, 0), wanted)))
        self.drafted = None

    def keep(self, paths: list[Integers], entries: Mapping[str, Tensor]) -> None:
        """Of the last call's tokens keep those on each row's path, or on one for all."""
        if self.drafted is None:
            raise DomainError(NO_DRAFT)
        if not self.batch:
            self.drafted = None
            return
        if len(paths) > 1 and any(not np.array_equal(path, paths[0]) for path in paths):
            self.table.split(self.batch)
        rows = len(self.table.lengths)
        starts, sizes = (np.broadcast_to(x, rows) for x in self.drafted)
        paths = paths[:1] * rows if len(paths) == 1 or self.table.shared else paths
        for path, size in zip(paths, sizes, strict=True):
            check_path(path, int(size))
        self.table.keep(starts, paths)
        self.drafted = None
        row, slots = np.nonzero(self.table.positions >= starts[:, None])
        places = self.table.positions[row, slots] - starts[row]
        row, into, source = (step.moved(x, self.keys.device) for x in (row, slots, places))
        for name, given in entries.items():
            if self.table.shared:
                self.entries[name][:, into] = given[:, source]
            else:
                self.entries[name][row, into] = given[row, source]

    def select(self, rows: Tensor) -> None:
        """Let row i go on from row rows[i]."""
        self.steps.let_go()
        places = rows.to(self.keys.device)
        with torch.inference_mode(False):
            self.keys, self.values = (x.index_select(0, places) for x in (self.keys, self.values))
            self.entries = {name: x.index_select(0, places) for name, x in self.entries.items()}
        if not self.table.shared or not len(rows):
            self.table.select(rows.cpu().numpy())
        self.table.freed = True  # slots of rows that are dropped are free memory
        self.drafted = None

    def reset(self, rows: Tensor | None) -> None:
        """Forget all positions of these rows, or of all; the room stays."""
        if rows is None:
            self.table.reset()
        else:
            self.table.split(self.batch)
            self.table.reset_rows(rows.cpu().numpy())
        self.drafted = None


_ONE = np.ones(1, np.int64)
