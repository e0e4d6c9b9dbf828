"""StaticStore: a step whose shapes, addresses and decisions are the same at every length.

Lengths and positions are tensors beside the keys, so that a CUDA graph, or a compiled program, can run a step
again and again. The key of position p lies in slot p while p < pinned, and in a ring of the slots after:

    slot(p) = pinned + (p - pinned) mod ring

A row that needs a key which is gone cannot raise without a wait: its outputs are NaN. So are those of a row
after `keep` of tokens that are not in its last call, on a GPU and in a compiled program; elsewhere it raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import nan
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.attend.bias import Bias
from lattend.attend.call.tensor_terms import nearest
from lattend.attend.decode import step
from lattend.attend.decode.entries import entries_of, entry_at
from lattend.attend.decode.fused_step import at_once, has_triton, may_prepare
from lattend.attend.decode.line_bias import bias_on_device
from lattend.attend.decode.slots import FREE
from lattend.attend.decode.step import FEW_QUERIES, MAX_POSITION, PIECE, NewTokens, Scoring, Slots, StepMask
from lattend.attend.decode.step_cache import KnownStep, KnownSteps, tensors_of
from lattend.attend.replay.compiled_call import WithoutAutocast
from lattend.errors import DomainError, LattendError
from lattend.plans.last_query import FOREVER
from lattend.plans.retention import Retention
from lattend.rules.axes import HEAD
from lattend.rules.code import python_code
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate, evaluate_term
from lattend.rules.language.expr import And, Arith, Compare, Condition, Lookup, Name, Num

FREED = -2  # the same where a key may still be in memory, whatever it holds
NO_DRAFT = -1  # in place of the number of tokens of the last call: the cache was changed since


class StaticStore:
    """Keys and values [batch, kv_heads, slots, D], positions and entries [batch, slots], lengths [batch]."""

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
        capacity: int | None,
    ) -> None:
        if not attended.fits:
            raise LattendError.of_rule(
                retention.rule.text,
                "has numbers that may pass 64 bits, or a divisor that may be 0; a static cache cannot look: "
                "leave static out",
            )
        self.retention, self.heads, self.rollback = retention, attended.heads, rollback
        self.condition, self.steps = attended.condition, KnownSteps()
        self.pinned, self.ring, self.reach = _layout(retention, rollback, capacity)
        self.most_new = self.ring if self.reach == FOREVER else rollback + 1  # without a copy of the keys
        _check_lookups(retention, attended)
        self.attended = _attended_function(
            python_code(attended.condition, ("q", "k", HEAD, *entries_of(growing)), "torch", "entry_of"),
            entries_of(growing),
        )
        self.freed = True  # whether a slot without a key may hold anything but zeros
        batch, slots = shape[0], self.pinned + self.ring
        self.keys, self.values, self.entries = step.empty_slots(slots, shape, growing, kind)
        with torch.inference_mode(False):  # else they could not be written to outside of it
            whole: dict[str, Any] = {"dtype": torch.int64, "device": self.keys.device}
            self.positions = torch.full((batch, slots), FREE, **whole)
            self.data = {name: torch.tensor(x, **whole) for name, x in retention.data.items()}
            self.now = torch.zeros(batch, **whole)  # the length of each row
            self.high = torch.zeros(batch, **whole)  # and the greatest that it ever had
            self.drafted = torch.full((batch,), NO_DRAFT, **whole)  # tokens of the last call
            self.places = torch.arange(max(slots, PIECE, self.heads or 0), **whole)
        if self.keys.is_cuda:
            self._stay_where_they_are()

    def _stay_where_they_are(self) -> None:
        """Tell torch.compile that its CUDA graphs may write to these tensors in place."""
        import torch._dynamo

        for tensor in (self.keys, self.values, self.positions, self.now, self.high, self.drafted):
            torch._dynamo.mark_static_address(tensor)
        for tensor in (*self.entries.values(), *self.data.values()):
            torch._dynamo.mark_static_address(tensor)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each row; the host waits for it."""
        return self.now.cpu().numpy()

    @property
    def in_step(self) -> bool:
        return len(np.unique(self.lengths)) < 2

    def held(self, row: int) -> NDArray[np.int64]:
        """The positions of a row whose keys queries to come may reach, in order."""
        found = self.positions[row].cpu().numpy()
        return np.sort(found[(found >= 0) & (self.retention.last(found) >= int(self.now[row]))])

    # Queries

    def attend(self, new: NewTokens, how: Scoring) -> tuple[Tensor, Tensor | None]:
        """The outputs of the new tokens, whose keys and values join the past."""
        s = new.q.shape[2]
        if self.reach == FOREVER and s > self.ring:
            raise DomainError(f"{s} new positions are more than the capacity of this cache, {self.ring}")
        if s == 1 and new.sizes is None:
            if new.entries or torch.compiler.is_compiling():
                return self._one_by_torch(new, how)
            known = self.steps.of(new.q, new.k, new.v, how)
            return self.one(new.q, new.k, new.v, how.bias, known)
        sizes = torch.full_like(self.now, s) if new.sizes is None else new.sizes
        if s > FEW_QUERIES and self._is_empty():
            found = self._first(new, sizes, how)
        else:
            pieces = [self._piece(new, sizes, how, start) for start in range(0, max(s, 1), PIECE)]
            out, lses = (
                torch.cat([out for out, _ in pieces], 2),
                [lse for _, lse in pieces if lse is not None],
            )
            found = out, torch.cat(lses, 2) if lses else None
        self.drafted.copy_(sizes)
        return found

    def one(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Bias | Tensor | None, known: KnownStep
    ) -> tuple[Tensor, Tensor | None]:
        """One token of each row; a step of the kind that is known."""
        if not known.is_for(self.keys, self.positions) and may_prepare(q):
            known.made(at_once(q, k, v, self._slots(), known.given(bias)), self.keys, self.positions)
        if known.run is not None:
            tensors = () if bias is None else tensors_of(bias).values()
            return known.run(q, k, v, *tensors, 0, -1, self.keys.shape[2])
        with WithoutAutocast(q):
            return self._one_by_torch(NewTokens(q, k, v, {}), known.given(bias))

    def _slots(self) -> Slots:
        length = FOREVER if self.retention.length is None else self.retention.length
        state, ring = (self.now, self.high, self.drafted), (self.pinned, self.ring, self.reach, length)
        whole = self.heads is None and not self.data and not self.pinned and attends_itself(self.condition)
        whole = whole and self.retention.whole and self.reach in (FOREVER, self.ring - 1)
        return Slots(self.keys, self.values, self.positions, self.condition, self.data, state, ring, whole)

    def _one_by_torch(self, new: NewTokens, how: Scoring) -> tuple[Tensor, Tensor | None]:
        found = self._piece(new, None, how, 0)
        self.drafted.fill_(1)
        return found

    def _is_empty(self) -> bool:
        """Whether this is a prefill, where the host may wait to know."""
        if torch.compiler.is_compiling() or (self.now.is_cuda and torch.cuda.is_current_stream_capturing()):
            return False
        return not bool(self.now.any())

    def _first(self, new: NewTokens, sizes: Tensor, how: Scoring) -> tuple[Tensor, Tensor]:
        """The prefill: attention itself."""
        found = step.prefill(self.retention.rule, new, how)
        self._take_in(new, sizes)
        return found

    def _piece(
        self, whole: NewTokens, all_sizes: Tensor | None, how: Scoring, start: int
    ) -> tuple[Tensor, Tensor | None]:
        """The tokens from `start` on, against the keys in the slots; without sizes one of each row."""
        cut = slice(start, start + PIECE)
        q, k, v = (x[:, :, cut] for x in (whole.q, whole.k, whole.v))
        new = NewTokens(q, k, v, {name: x[:, cut] for name, x in whole.entries.items()})
        sizes = None if all_sizes is None else (all_sizes - start).clamp(0, q.shape[2])
        at = self.now[:, None] + self.places[: q.shape[2]]
        self._clear_slots()
        if sizes is None or q.shape[2] <= self.most_new:
            self._take_in(new, sizes)
            keys, values, positions, entries = self.keys, self.values, self.positions, self.entries
            gone = self._gone(at)
        else:  # the new keys would take the slots of some that these queries reach
            real = self.places[: q.shape[2]] < sizes[:, None]
            keys, values = torch.cat([self.keys, k], 2), torch.cat([self.values, v], 2)
            positions = torch.cat([self.positions, torch.where(real, at, FREE)], 1)
            entries = {name: torch.cat([x, new.entries[name]], 1) for name, x in self.entries.items()}
            gone = self._gone(at)
            self._take_in(new, sizes)
        mask = self._mask(at, positions, new.entries, entries)
        added = None if how.bias is None else bias_on_device(how.bias, at, positions.clamp(min=0), q)
        out, lse = step.attend(q, keys, values, mask, how, added, fixed=True)
        gone = gone[:, None]
        lse = None if lse is None else lse.masked_fill(gone, nan)
        return out.masked_fill(gone[..., None], nan), lse

    def _mask(
        self, at: Tensor, positions: Tensor, new: Mapping[str, Tensor], entries: Mapping[str, Tensor]
    ) -> Tensor:
        """Which pairs are attended, [batch, 1 or heads, s, slots]."""
        q, k = at[:, None, :, None], positions[:, None, None, :]
        named = {entry_at(name, "q"): x[:, None, :, None] for name, x in new.items()}
        named |= {entry_at(name, "k"): x[:, None, None, :] for name, x in entries.items()}
        head = None if self.heads is None else self.places[: self.heads, None, None]
        found = self.attended(q, k, head, self._entry_of, **named) & (k >= 0)
        return found.expand(len(at), 1 if self.heads is None else self.heads, at.shape[1], positions.shape[1])

    def _entry_of(self, name: str, *places: Tensor | int) -> Tensor:
        """The entries of an array at these places, the nearest beyond an end: for slots without a key."""
        array = self.data[name]
        return array[tuple(nearest(place, size) for place, size in zip(places, array.shape, strict=True))]

    def _gone(self, at: Tensor) -> Tensor:
        """The queries [batch, s] that may reach a key whose slot another has taken."""
        newest = self.high[:, None] - self.ring - 1  # of the positions that are overwritten
        found = (newest >= self.pinned) & (at - self.reach <= newest)
        return found if self.retention.length is None else found | (at >= self.retention.length)

    # Slots

    def _clear_slots(self) -> None:
        """Zeros in slots without a key; programs compiled for a GPU write them when a row is reset."""
        compiling = torch.compiler.is_compiling()
        if self.keys.is_cuda:
            if has_triton() and not compiling:
                from lattend.attend.kernels.triton.decode_step import clear_freed

                with torch.cuda.device(self.keys.device):
                    clear_freed(self.keys, self.values, self.positions)
        elif compiling or self.freed:
            step.clear_slots(self.keys, self.values, self.positions < 0)
            if not compiling:
                self.freed = False

    def _slot(self, at: Tensor) -> Tensor:
        if not self.pinned:
            return at % self.ring
        return torch.where(at < self.pinned, at, self.pinned + (at - self.pinned) % self.ring)

    def _take_in(self, new: NewTokens, sizes: Tensor | None) -> None:
        """Put the first `sizes` new keys of each row where they belong, and count them; None is 1."""
        s = new.k.shape[2]
        if sizes is None:
            self._put(self.now[:, None], None, new)
        elif s <= self.ring:
            self._put(self.now[:, None] + self.places[:s], self.places[:s] < sizes[:, None], new)
        else:
            self._put_last(sizes, new)
        self.now.add_(1 if sizes is None else sizes)
        self.high.copy_(torch.maximum(self.high, self.now))

    def _put(self, at: Tensor, real: Tensor | None, new: NewTokens) -> None:
        """Write keys at these positions, each in a slot of its own, where they are real; None is all."""
        slot = self._slot(at)
        for into, given in ((self.keys, new.k), (self.values, new.v)):
            index = slot[:, None, :, None].expand(given.shape)
            if real is None:
                into.scatter_(2, index, given)
            else:
                into.scatter_(2, index, torch.where(real[:, None, :, None], given, into.gather(2, index)))
        given = {name: (self.entries[name], x) for name, x in new.entries.items()}
        for into, x in ((self.positions, at), *given.values()):
            into.scatter_(1, slot, x if real is None else torch.where(real, x, into.gather(1, slot)))

    def _put_last(self, sizes: Tensor, new: NewTokens) -> None:
        """Write more keys than the ring has slots: each slot takes the last that belongs there."""
        slots, end = self.places[: self.positions.shape[1]], (self.now + sizes)[:, None]
        newest = end - 1 - (end - 1 - slots) % self.ring  # the last position before the end in this slot
        holds = torch.where(slots < self.pinned, slots, newest)
        source = (holds - self.now[:, None]).clamp(0, new.k.shape[2] - 1)
        taken = (holds >= self.now[:, None]) & (holds < end) & (self._slot(holds) == slots)
        for into, given in ((self.keys, new.k), (self.values, new.v)):
            found = given.gather(2, source[:, None, :, None].expand(*into.shape))
            into.copy_(torch.where(taken[:, None, :, None], found, into))
        for name, given in new.entries.items():
            self.entries[name].copy_(torch.where(taken, given.gather(1, source), self.entries[name]))
        self.positions.copy_(torch.where(taken, holds, self.positions))

    # Rows and tokens

    def crop(self, lengths: Tensor) -> None:
        """Take back tokens: these many stay of each row, or of all; a number below 0 is taken off."""
        wanted = torch.where(lengths < 0, (self.now + lengths).clamp(min=0), lengths)
        self.now.copy_(torch.minimum(self.now, wanted))
        self.positions.masked_fill_(self.positions >= self.now[:, None], FREED)
        self._changed()

    def known_draft(self) -> NDArray[np.int64] | None:
        """The tokens of the last call in each row, or NO_DRAFT; None where the host would have to wait."""
        if torch.compiler.is_compiling() or self.drafted.is_cuda:
            return None
        return self.drafted.numpy()

    def keep(self, paths: Tensor, entries: Mapping[str, Tensor]) -> None:
        """Of the last call's tokens keep those on each row's path, [batch, a]; -1 is none."""
        size = self.drafted[:, None]
        real, start = (paths >= 0) & (paths < size), self.now[:, None] - size.clamp(min=0)
        drafted = start + paths.clamp(min=0)
        kept_at = start + torch.arange(paths.shape[1], device=paths.device)
        slot = self._slot(drafted)
        lost = real & (kept_at < self.pinned) & (self.positions.gather(1, slot) != drafted)
        after, before = paths[:, 1:], paths[:, :-1]
        wrong = (paths >= size).any(1) | ((after >= 0) & ((before < 0) | (after <= before))).any(1)
        # All queries to come reach a key that is gone
        self.high.masked_fill_(lost.any(1) | wrong | (self.drafted == NO_DRAFT), FOREVER)
        k, v = (
            x.gather(2, slot[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3]))
            for x in (self.keys, self.values)
        )
        kept = {name: entries.get(name, x.gather(1, slot)) for name, x in self.entries.items()}
        self.positions.masked_fill_(self.positions >= start, FREED)
        self.now.copy_(start[:, 0])
        self._take_in(NewTokens(k, k, v, kept), real.sum(1))
        self._changed()

    def _changed(self) -> None:
        self.drafted.fill_(NO_DRAFT)
        self.freed = True

    def select(self, rows: Tensor) -> None:
        """Let row i go on from row rows[i]."""
        if len(rows) != len(self.now):
            raise DomainError(f"a static cache keeps its batch of {len(self.now)}; got {len(rows)} rows")
        places = rows.to(self.keys.device)
        for x in (self.keys, self.values, self.positions, self.now, self.high, *self.entries.values()):
            x.copy_(x.index_select(0, places))
        self._changed()

    def reset(self, rows: Tensor | None) -> None:
        """Forget all positions of these rows, or of all."""
        chosen = slice(None) if rows is None else rows.to(self.keys.device)
        for x, empty in ((self.positions, FREE), (self.now, 0), (self.high, 0)):
            x[chosen] = empty
        self._changed()
        self.keys[chosen], self.values[chosen] = 0, 0  # a free slot is multiplied with 0


def attends_itself(condition: Condition) -> bool:
    """Whether each query attends to its own key; False also where this is not known.

    A linear inequality that holds at both ends holds between them.

    >>> from lattend.rules import causal, windowed
    >>> attends_itself(causal().condition), attends_itself(windowed(w=4).condition)
    (True, False)
    """
    for node in expr.walk(condition):
        if isinstance(node, Arith):
            linear = node.op in ("+", "-") or (node.op == "*" and isinstance(node.args[0], Num))
        elif isinstance(node, Compare):
            linear = node.op in ("<", "<=", ">", ">=")
        else:
            linear = isinstance(node, And | Name | Num)
        if not linear:
            return False
    ends = np.array([0, MAX_POSITION])
    return bool(np.all(evaluate(condition, {"q": ends, "k": ends}, {})))


def _layout(retention: Retention, rollback: int, capacity: int | None) -> tuple[int, int, int]:
    """The pinned slots, those of the ring, and how far back a query reaches."""
    pinned, reach, length = retention.pinned, max(retention.reach, 0), retention.length
    needed = pinned + reach + 1 + rollback
    if length is not None and needed > length:
        needed, pinned, reach = length, 0, FOREVER
    if needed >= FOREVER:
        if capacity is None:
            raise LattendError(
                "static=True makes all room at once, and under this rule the number of keys grows with the "
                "text: give capacity=…, or n=…"
            )
        return 0, capacity, FOREVER
    if capacity is not None and capacity < needed:
        raise DomainError(f"capacity = {capacity}: this rule, with rollback = {rollback}, needs {needed}")
    return pinned, (capacity or needed) - pinned, reach


def _check_lookups(retention: Retention, attended: StepMask) -> None:
    """Raises unless each array has an entry at every place where it is looked up, up to the length."""
    places = np.arange(retention.length or 0)
    known = {"q": places, "k": places, HEAD: np.arange(attended.heads or 1)[:, None]}
    for node in expr.walk(attended.condition):
        if not isinstance(node, Lookup):
            continue
        for index in node.indices:
            if len({*expr.names(index)} - {HEAD}) > 1:
                raise LattendError.of_rule(
                    retention.rule.text,
                    f"looks up {expr.term_text(node)}. In a static cache an index is of q or of k, not of "
                    "both: leave static out",
                )
        evaluate_term(node, known, retention.data)


@lru_cache(maxsize=256)
def _attended_function(code: str, entries: tuple[str, ...]) -> Callable[..., Tensor]:
    """The function of this code on tensors of positions, heads and entries; torch.compile can trace it."""
    lines = (
        f"def attended(q, k, {HEAD}, entry_of, {''.join(f'{name}=None, ' for name in entries)}):",
        f"    return {code}",
    )
    names: dict[str, Any] = {"torch": torch, "__name__": __name__}
    exec(compile("\n".join(lines), f"<attended {code}>", "exec"), names)
    return names["attended"]
