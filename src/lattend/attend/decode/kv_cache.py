"""KVCache: keys and values of the past, only those that the rule can still reach.

Slots 0 … count - 1 of two buffers hold the keys in use. Which key lies where, and when it may be
dropped, is known on the host from positions alone, so a step waits for nothing on the device. A new key
takes the slot of one that is dropped; where more are dropped than come, the last slots move into the gaps.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.attend.arrays import with_arrays
from lattend.attend.bias import Bias
from lattend.attend.compiled import left_to_python
from lattend.attend.decode import step
from lattend.attend.decode.step import Scoring
from lattend.attend.operator import exactly
from lattend.attend.sinks import with_sinks
from lattend.errors import DomainError, NamingError, TensorError
from lattend.plans.last_query import FOREVER
from lattend.plans.retention import retention
from lattend.report.shown import Shown
from lattend.rules.reader import RuleLike, read_rule
from lattend.rules.rule import Rule, check_integer

OPTIONS = ("batch", "heads", "head_dim", "kv_heads", "value_dim", "dtype", "device")
FIRST_SLOTS = 64
MAX_AT_ONCE = 1 << 20  # slots made before any key comes; more are made when they are needed
AHEAD = 1024  # keys to come whose last queries are found together
PIECE = 512  # queries of a prompt that are answered together
MAX_PAIRS = 1 << 22  # of one such piece, all keys included


class KVCache(Shown):
    """The past of a sequence under a rule, for decoding token by token.

    `kv_heads` are those of the keys and values, `heads` unless given. `values` are the rule's parameters,
    n where the final length is known, and an array for each that the rule leaves open, the same for the
    whole batch.

    >>> from lattend.rules import strided
    >>> cache = KVCache(strided(t=2), batch=1, heads=2, head_dim=4)
    >>> for _ in range(9):
    ...     x = torch.ones(1, 2, 1, 4)
    ...     out = cache.attend(x, x, x)
    >>> len(cache), cache.positions.tolist(), cache.capacity
    (9, [7, 8], 3)
    """

    keys: Tensor  # [batch, kv_heads, slots, head_dim]
    values: Tensor

    def __init__(
        self,
        rule: RuleLike,
        *,
        batch: int,
        heads: int,
        head_dim: int,
        kv_heads: int | None = None,
        value_dim: int | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        **values: Any,
    ) -> None:
        sizes = {"batch": batch, "heads": heads, "kv_heads": heads if kv_heads is None else kv_heads}
        sizes |= {"head_dim": head_dim, "value_dim": head_dim if value_dim is None else value_dim}
        for name, size in sizes.items():
            check_integer(name, size)
            if size < 0 or (size == 0 and name != "batch"):
                raise DomainError(f"{name} = {size}: it is at least {0 if name == 'batch' else 1}")
        rule = read_rule(rule)
        clash = [name for name in rule.free if name in OPTIONS and name in rule.parameters]
        if clash:
            raise NamingError(
                f"the parameter {clash[0]} has the name of an option of KVCache; bind it first: "
                f"rule.at({clash[0]}=…)"
            )
        self.keys_of_rule = {rule.key}  # also as it was before its arrays were given
        rule = with_arrays(rule, values)
        values = {name: value for name, value in values.items() if name not in rule.data}
        self.rule = rule.at(**values)
        self.keys_of_rule.add(self.rule.key)
        self.retention = retention(rule, query_heads=heads, **values)
        self.heads = self.rule.values.get("heads", heads)
        if self.heads % sizes["kv_heads"]:
            raise DomainError(f"heads = {self.heads} is not a multiple of kv_heads = {sizes['kv_heads']}")
        self._attended = step.StepMask(
            self.retention.condition, self.retention.data, self.heads if rule.has_heads else None
        )
        most = self.retention.most
        slots = FIRST_SLOTS if most is None or most > MAX_AT_ONCE else most
        shape = (batch, sizes["kv_heads"], slots)
        with torch.inference_mode(False):  # else the buffers could not be written to outside of it
            self.keys = torch.empty(*shape, head_dim, dtype=dtype, device=device)
            self.values = torch.empty(*shape, sizes["value_dim"], dtype=dtype, device=device)
        self._positions = np.zeros(slots, np.int64)
        self._last = np.zeros(slots, np.int64)
        self.reset()

    # What it holds

    def __len__(self) -> int:
        """The number of positions seen."""
        return self._length

    @property
    def positions(self) -> NDArray[np.int64]:
        """The positions whose keys queries to come may reach, in order."""
        held = slice(self._count)
        return np.sort(self._positions[held][self._last[held] >= self._length])

    @property
    def capacity(self) -> int:
        """The number of keys there is room for."""
        return self.keys.shape[2]

    @property
    def nbytes(self) -> int:
        """The bytes of keys and values, all the room for them included."""
        return self.keys.nbytes + self.values.nbytes

    def __repr__(self) -> str:
        room = f"{len(self.positions):,} of {self._length:,} keys in {self.capacity:,} slots"
        return f"<KVCache of {self.rule}: {room}, {self.nbytes:,} bytes; {self.retention}>"

    # What is done with it

    @overload
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, *,
        scale: float | None = ..., bias: Bias | Tensor | None = ..., softcap: float | None = ...,
        sinks: Tensor | None = ..., return_lse: Literal[False] = ...,
    ) -> Tensor: ...  # fmt: skip
    @overload
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, *,
        scale: float | None = ..., bias: Bias | Tensor | None = ..., softcap: float | None = ...,
        sinks: Tensor | None = ..., return_lse: Literal[True],
    ) -> tuple[Tensor, Tensor]: ...  # fmt: skip
    @overload
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, *,
        scale: float | None = ..., bias: Bias | Tensor | None = ..., softcap: float | None = ...,
        sinks: Tensor | None = ..., return_lse: bool,
    ) -> Tensor | tuple[Tensor, Tensor]: ...  # fmt: skip
    @left_to_python
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, *,
        scale: float | None = None, bias: Bias | Tensor | None = None, softcap: float | None = None,
        sinks: Tensor | None = None, return_lse: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor | None]:  # fmt: skip
        """The outputs of the next s positions, whose keys and values join the past.

        q is [batch, heads, s, D], k and v as for attention: 1 position while decoding, any number
        of a prompt. The same rows as attention over the whole sequence gives. A table of all pairs can
        be the bias only where the cache was made with n. torch.compile leaves this to Python.
        """
        self._check(q, k, v)
        scale = 1 / sqrt(q.shape[3]) if scale is None else scale
        s = q.shape[2]
        added = None
        if bias is not None:
            length, seen = self.retention.length, self._length + s
            added = step.on_a_line(bias, self.rule, length, seen, self.heads, q)
        how = Scoring(scale, softcap, added, return_lse or sinks is not None)
        with exactly(q):
            if s == 1:
                out, lse = self._one(q, k, v, how)
            elif self._length == 0 and s > 1:
                out, lse = self._first(q, k, v, how)
            else:
                out, lse = self._pieces(q, k, v, how)
        if sinks is not None and lse is not None:
            out, lse = with_sinks(out, lse, sinks)
        return (out, lse) if return_lse else out

    def check_rule(self, rule: Rule, values: Mapping[str, Any]) -> None:
        """Raises unless this is the cache's rule, with its numbers."""
        arrays = [name for name in values if name in self.rule.data]
        if arrays:
            raise NamingError(f"{arrays[0]} is the cache's, which has it from the start; leave it out")
        if rule.key in self.keys_of_rule and {**rule.values, **values}.items() <= self.rule.values.items():
            return
        if rule.open:
            raise NamingError(
                f'rule "{rule.text}" gets {rule.open[0]} when attention runs, and a cache has it from the '
                "start: give the rule that the cache was made with"
            )
        raise NamingError(
            f'the cache was made for the rule "{self.rule}", not for "{rule.at(**values)}"; make another'
        )

    def select(self, indices: Tensor | list[int]) -> None:
        """Let sequence i of the batch go on from sequence indices[i]: beams reordered, copied or dropped."""
        places = torch.as_tensor(indices, device=self.keys.device)
        with torch.inference_mode(False):
            self.keys, self.values = (x.index_select(0, places) for x in (self.keys, self.values))

    def reset(self) -> None:
        """Forget all positions; the room stays."""
        self._length = self._count = 0
        self._soon, self._soon_from = np.zeros(0, np.int64), 0  # last queries of keys to come
        self._due = FOREVER  # the first position at which a key in a slot is past its last query

    # Queries

    def _first(self, q: Tensor, k: Tensor, v: Tensor, how: Scoring) -> tuple[Tensor, Tensor]:
        """The prefill: attention itself."""
        from lattend.attend.attention import attention

        found = attention(
            q, k, v, self.retention.rule, scale=how.scale, softcap=how.softcap, bias=how.bias, return_lse=True
        )
        self._admit(k, v, now=q.shape[2])
        self._length = q.shape[2]
        return found

    def _one(self, q: Tensor, k: Tensor, v: Tensor, how: Scoring) -> tuple[Tensor, Tensor | None]:
        position = self._length
        self._admit(k, v, now=position)
        self._length = position + 1
        held = slice(self._count)
        keys, values, by_head = self.keys[:, :, held], self.values[:, :, held], None
        positions = self._positions[held]
        if not self.retention.whole:
            mask = self._attended.on_host(position, positions)
            if self._attended.heads is not None:
                by_head = step.moved(np.array(mask[:, None, :]), q.device)
            elif not mask.all():
                slots = step.moved(np.flatnonzero(mask), q.device)
                keys, values = keys.index_select(2, slots), values.index_select(2, slots)
                positions = positions[mask]
        added = None if how.bias is None else step.bias_at(how.bias, np.array([position]), positions, q)
        return step.attend(q, keys, values, by_head, how, added)

    def _pieces(self, q: Tensor, k: Tensor, v: Tensor, how: Scoring) -> tuple[Tensor, Tensor | None]:
        """A prompt, or a part of one, after a past: as many queries at once as keep its pairs few."""
        most = self.retention.most
        grows = most is None or most > MAX_AT_ONCE
        outs: list[Tensor] = []
        lses: list[Tensor] = []
        done, s = 0, q.shape[2]
        while done < s or not outs:
            start = self._length
            end = min(s, done + max(1, min(PIECE, MAX_PAIRS // (self._count + PIECE))))
            piece_q, piece_k, piece_v = (x[:, :, done:end] for x in (q, k, v))
            new = np.arange(start, start + end - done)
            if grows:
                self._admit(piece_k, piece_v, now=start)
            held = slice(self._count)
            keys, values, positions = self.keys[:, :, held], self.values[:, :, held], self._positions[held]
            if not grows:  # there is room only for the keys that stay
                keys, values = torch.cat([keys, piece_k], 2), torch.cat([values, piece_v], 2)
                positions = np.concatenate([positions, new])
                self._admit(piece_k, piece_v, now=start + len(new))
            mask = self._attended.on_device(new, positions, q.device)
            added = None if how.bias is None else step.bias_at(how.bias, new, positions, q)
            out, lse = step.attend(piece_q, keys, values, mask, how, added)
            outs.append(out)
            lses += [] if lse is None else [lse]
            self._length += len(new)
            done = end
        return torch.cat(outs, 2), torch.cat(lses, 2) if how.return_lse else None

    def _check(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        batch, kv_heads, _, head_dim = self.keys.shape
        s = k.shape[2] if k.dim() == 4 else 0
        expected = ((batch, kv_heads, s, head_dim), (batch, kv_heads, s, self.values.shape[3]))
        if (k.shape, v.shape) != expected or q.dim() != 4:
            raise TensorError(
                f"this cache takes k {_shape(batch, kv_heads, 's', head_dim)} and v "
                f"{_shape(batch, kv_heads, 's', self.values.shape[3])}, got q {_shape(*q.shape)}, "
                f"k {_shape(*k.shape)} and v {_shape(*v.shape)}"
                + (f"; make it with kv_heads={k.shape[1]}" if k.dim() == 4 and k.shape[1] != kv_heads else "")
            )
        heads = q.shape[1]
        if q.shape != (batch, heads, s, head_dim) or heads % kv_heads:
            raise TensorError(
                f"q is {_shape(*q.shape)}, and beside k {_shape(*k.shape)} it must be "
                f"{_shape(batch, 'heads', s, head_dim)}, its heads a multiple of {kv_heads}"
            )
        if heads != self.heads:
            raise TensorError(
                f"q has {heads} heads, and the cache was made for {self.heads}; "
                f"make it with heads={heads}, kv_heads={kv_heads}"
            )
        for name, x in (("q", q), ("k", k), ("v", v)):
            if x.dtype != self.keys.dtype or x.device != self.keys.device:
                raise TensorError(
                    f"{name} is {x.dtype} on {x.device}, and this cache "
                    f"{self.keys.dtype} on {self.keys.device}"
                )
            if x.requires_grad and torch.is_grad_enabled():
                raise step.keeps_no_gradient(name)
        length = self.retention.length
        if length is not None and self._length + s > length:
            raise DomainError(
                f"{self._length} positions and {s} more are beyond the {length} that this cache was made for"
            )

    # Slots

    def _admit(self, k: Tensor, v: Tensor, now: int) -> None:
        """Drop the keys whose last query is before `now`, and take in the new ones that stay."""
        last = self._last_queries(k.shape[2])
        staying = np.flatnonzero(last >= now)
        gaps = np.flatnonzero(self._last[: self._count] < now) if now > self._due else _NONE
        slots = gaps[: len(staying)]
        if len(slots) < len(staying):
            more = len(staying) - len(slots)
            self._make_room(self._count + more)
            slots = np.concatenate([slots, np.arange(self._count, self._count + more)])
            self._count += more
        if len(slots):
            self._put(slots, k, v, staying)
            self._positions[slots] = self._length + staying
            self._last[slots] = last[staying]
        if len(gaps) > len(staying):
            self._close(gaps[len(staying) :], now)
        if len(gaps):
            self._due = int(self._last[: self._count].min(initial=FOREVER))
        elif len(staying):
            self._due = min(self._due, int(last[staying].min()))

    def _last_queries(self, size: int) -> NDArray[np.int64]:
        """The last queries of the next keys; found for many at a time."""
        start = self._length - self._soon_from
        if start < 0 or start + size > len(self._soon):
            self._soon = self.retention.last(np.arange(self._length, self._length + max(size, AHEAD)))
            self._soon_from, start = self._length, 0
        return self._soon[start : start + size]

    def _close(self, gaps: NDArray[np.intp], now: int) -> None:
        """Move the last keys into the gaps, so that slots 0 … count - 1 are in use."""
        count = self._count - len(gaps)
        movers = count + np.flatnonzero(self._last[count : self._count] >= now)
        targets = gaps[gaps < count]
        if len(movers):
            self._put(targets, self.keys, self.values, movers)
            self._positions[targets] = self._positions[movers]
            self._last[targets] = self._last[movers]
        self._count = count

    def _put(self, slots: NDArray[np.intp], k: Tensor, v: Tensor, places: NDArray[np.intp]) -> None:
        """Copy keys and values at these places into slots; as slices where both lie side by side."""
        a, c, size = int(slots[0]), int(places[0]), len(slots)
        if int(slots[-1]) - a == size - 1 and int(places[-1]) - c == size - 1:  # both are sorted
            self.keys[:, :, a : a + size] = k[:, :, c : c + size]
            self.values[:, :, a : a + size] = v[:, :, c : c + size]
            return
        into, source = (step.moved(np.ascontiguousarray(x), k.device) for x in (slots, places))
        self.keys.index_copy_(2, into, k.index_select(2, source))
        self.values.index_copy_(2, into, v.index_select(2, source))

    def _make_room(self, slots: int) -> None:
        """Twice the room, at least, when it is too small: each key is then copied twice at most."""
        if slots <= self.capacity:
            return
        room = max(slots, 2 * self.capacity)
        if self.retention.most is not None:
            room = min(room, max(slots, self.retention.most))
        more = room - self.capacity
        with torch.inference_mode(False):
            self.keys, self.values = (
                torch.cat([x, x.new_empty(*x.shape[:2], more, x.shape[3])], 2)
                for x in (self.keys, self.values)
            )
        self._positions, self._last = (np.pad(x, (0, more)) for x in (self._positions, self._last))


_NONE = np.zeros(0, np.intp)


def _shape(*sizes: int | str) -> str:
    return f"({', '.join(map(str, sizes))})"
