"""KVCache: keys and values of the past, only those that the rule can still reach.

Where they lie is left to a store: decode/dynamic.py, which the host directs, or decode/static.py, whose steps
are the same at every length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.attend.bias import Bias, dtype_name, shape_text
from lattend.attend.call.attention_call import CallSignature, rule_of
from lattend.attend.call.batch_arrays import with_arrays
from lattend.attend.call.checked_call import check_options, rule_given
from lattend.attend.call.inputs import as_one_kind, check_shapes, check_sinks
from lattend.attend.call.options import AttentionOptions, check_scoring, meant_by
from lattend.attend.call.rule_names import rule_names
from lattend.attend.call.sinks import with_sinks
from lattend.attend.decode import ragged, step
from lattend.attend.decode.dynamic import DynamicStore
from lattend.attend.decode.entries import entries_given, entries_of, with_entries
from lattend.attend.decode.line_bias import fits_any_length, line_rule, on_a_line
from lattend.attend.decode.static import StaticStore
from lattend.attend.decode.step import NewTokens, Scoring
from lattend.attend.decode.step_cache import KnownStep, KnownSteps
from lattend.attend.operators.attention_operator import WithoutAutocast
from lattend.attend.operators.tracing import check_exportable, left_to_python
from lattend.attend.replay.plain_call import call_signature
from lattend.errors import DomainError, NamingError
from lattend.plans.retention import retention
from lattend.report.report import Report
from lattend.report.shown import Shown
from lattend.report.table import Facts
from lattend.rules.reader import RuleLike, arrays_in, read_rule
from lattend.rules.rule import check_integer

SIZES = ("batch", "heads", "head_dim", "kv_heads", "value_dim")
OPTIONS = (*SIZES, "dtype", "device", "rollback", "static", "capacity")


class KVCache(Shown):
    """The past of a batch of sequences under a rule, for decoding token by token.

    `kv_heads` are those of the keys and values, `heads` unless given. `values` are the rule's parameters,
    n where the final length is known, and arrays that the rule leaves open, the same for the whole batch;
    entries of those that are not given here come with every call. The last `rollback` tokens can be taken
    back, whatever the rule drops.

    With static=True a step is the same at every length, for CUDA graphs and torch.compile(fullgraph=True).
    All room is made at once, `capacity` keys where the rule does not say how many.

    >>> from lattend.rules import strided
    >>> cache = KVCache(strided(t=2), batch=1, heads=2, head_dim=4)
    >>> for _ in range(9):
    ...     x = torch.ones(1, 2, 1, 4)
    ...     out = cache.attend(x, x, x)
    >>> len(cache), cache.positions.tolist(), cache.capacity
    (9, [7, 8], 3)
    """

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
        rollback: int = 0,
        static: bool = False,
        capacity: int | None = None,
        **values: Any,
    ) -> None:
        sizes = {"batch": batch, "heads": heads, "kv_heads": heads if kv_heads is None else kv_heads}
        sizes |= {"head_dim": head_dim, "value_dim": head_dim if value_dim is None else value_dim}
        more = {"rollback": rollback} | ({} if capacity is None else {"capacity": capacity})
        for name, size in {**sizes, **more}.items():
            check_integer(name, size)
            least = 0 if name in ("batch", "rollback") else 1
            if size < least:
                raise DomainError(f"{name} = {size}: it is at least {least}")
        rule = read_rule(rule, arrays_in(values))
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
        self.growing, self.numbers = rule.open, dict(self.rule.values)
        self.retention = retention(rule, query_heads=heads, growing=True, **values)
        self.heads = self.rule.values.get("heads", heads)
        if self.heads % sizes["kv_heads"]:
            raise DomainError(f"heads = {self.heads} is not a multiple of kv_heads = {sizes['kv_heads']}")
        self._line = line_rule(self.rule, self.heads, self.retention.length)
        attended = step.StepMask(
            with_entries(rule, self.retention.condition, self.growing),
            self.retention.data,
            self.heads if rule.has_heads else None,
            entries_of(self.growing),
        )
        shape = (batch, sizes["kv_heads"], head_dim, sizes["value_dim"])
        kind = {"dtype": dtype, "device": device}
        made = (self.retention, attended, self.growing, rollback, shape, kind)
        self.static = static
        if not isinstance(static, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise NamingError(f"static is True or False, not {static!r}")
        if capacity is not None and not static:
            raise NamingError("capacity is for static=True; without it a cache makes the room it needs")
        self._store = StaticStore(*made, capacity) if static else DynamicStore(*made)
        self._known = KnownSteps()

    # What it holds

    @property
    def keys(self) -> Tensor:
        """The keys in their slots, [batch, kv_heads, slots, head_dim]."""
        return self._store.keys

    @property
    def values(self) -> Tensor:
        """The values in the same slots, [batch, kv_heads, slots, value_dim]."""
        return self._store.values

    def __len__(self) -> int:
        """The number of positions seen, of the longest row."""
        return int(self._store.lengths.max(initial=0))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of positions seen, of each row of the batch."""
        return self._store.lengths.copy()

    @property
    def positions(self) -> NDArray[np.int64]:
        """The positions whose keys queries to come may reach, in order."""
        if not self._store.in_step:
            raise DomainError("rows of this cache have positions of their own: positions_of(row)")
        return self.positions_of(0) if self.keys.shape[0] else np.zeros(0, np.int64)

    def positions_of(self, row: int) -> NDArray[np.int64]:
        """The positions of one row whose keys queries to come may reach, in order."""
        ragged.rows_given([row], self.keys.shape[0])
        return self._store.held(row)

    @property
    def capacity(self) -> int:
        """The number of keys there is room for."""
        return self.keys.shape[2]

    @property
    def nbytes(self) -> int:
        """The bytes of keys and values, all the room for them included."""
        return self.keys.nbytes + self.values.nbytes

    def __repr__(self) -> str:
        return f"<KVCache of {self.rule}: {self._room}, {self.nbytes:,} bytes; {self.retention}>"

    def _repr_html_(self) -> str:
        shape = f"{shape_text(self.keys)}, values {shape_text(self.values)}, {dtype_name(self.keys.dtype)}"
        facts = [
            ("holds", self._room),
            ("keys", f"{shape} on {self.keys.device}"),
            ("bytes", f"{self.nbytes:,}"),
            ("kept", str(self.retention)),
        ]
        return Report(f"KVCache of {self.rule}", [Facts(facts)]).html()

    @property
    def _room(self) -> str:
        lengths = self.lengths
        held = len(self.positions_of(int(lengths.argmax()))) if len(lengths) else 0
        return f"{held:,} of {len(self):,} keys in {self.capacity:,} slots"

    # What is done with it

    @overload
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, *, padding: Tensor | None = ...,
        scale: float | None = ..., bias: Bias | Tensor | None = ..., softcap: float | None = ...,
        sinks: Tensor | None = ..., return_lse: Literal[False] = ..., **entries: Any,
    ) -> Tensor: ...  # fmt: skip
    @overload
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, *, padding: Tensor | None = ...,
        scale: float | None = ..., bias: Bias | Tensor | None = ..., softcap: float | None = ...,
        sinks: Tensor | None = ..., return_lse: Literal[True], **entries: Any,
    ) -> tuple[Tensor, Tensor]: ...  # fmt: skip
    @overload
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, *, padding: Tensor | None = ...,
        scale: float | None = ..., bias: Bias | Tensor | None = ..., softcap: float | None = ...,
        sinks: Tensor | None = ..., return_lse: bool, **entries: Any,
    ) -> Tensor | tuple[Tensor, Tensor]: ...  # fmt: skip
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, *, padding: Tensor | None = None,
        scale: float | None = None, bias: Bias | Tensor | None = None, softcap: float | None = None,
        sinks: Tensor | None = None, return_lse: bool = False, **entries: Any,
    ) -> Tensor | tuple[Tensor, Tensor | None]:  # fmt: skip
        """The outputs of the next s positions, whose keys and values join the past.

        q is [batch, heads, s, D], k and v as for attention: 1 position while decoding, any number
        of a prompt or a draft. The same rows as attention over the whole sequence gives. `padding` says which
        of the new tokens are real, as lengths [batch] or a mask [batch, s]; the others have no position, and
        their outputs are zeros. `entries` are those of the arrays that grow, one for each new token. A table
        of all pairs can be the bias only where the cache was made with n. Unless the cache is static,
        torch.compile leaves this to Python.
        """
        signature = None
        if padding is None and sinks is None and not torch.compiler.is_compiling():
            signature = call_signature((q, k, v), None, (scale, softcap, return_lse), bias, None, entries)
            known = self.known(signature)
            if known is not None:
                return self.again(known, q, k, v, bias)
        options = AttentionOptions(
            scale, bias=bias, padding=padding, softcap=softcap, sinks=sinks, return_lse=return_lse
        )
        return self._attend_and_remember(q, k, v, options, entries, signature)

    def attend_under(
        self, q: Tensor, k: Tensor, v: Tensor, rule: RuleLike, options: AttentionOptions,
        values: Mapping[str, Any],
    ) -> Any:  # fmt: skip
        """Runs attention with this cache: checks that the rule and its values are those of the cache."""
        signature = None
        if options.sinks is None and not torch.compiler.is_compiling():
            signature = call_signature((q, k, v), rule, options.in_signature, options.bias, None, values)
            known = self.known(signature)
            if known is not None:
                return self.again(known, q, k, v, options.bias)
        q, k, v, entries = self._checked(q, k, v, rule, options, values)
        return self._attend_and_remember(q, k, v, options, entries, signature)

    def known(self, signature: CallSignature | None) -> KnownStep | None:
        """Returns the step of this signature, if one was checked."""
        return self._known.get(signature)

    def _checked(
        self, q: Tensor, k: Tensor, v: Tensor, rule: RuleLike, options: AttentionOptions,
        values: Mapping[str, Any],
    ) -> tuple[Tensor, Tensor, Tensor, Mapping[str, Any]]:  # fmt: skip
        """Returns q, k, v and the entries among the values of a call of attention with this cache."""
        if not torch.compiler.is_compiling():
            check_exportable()
        key, numbers = rule_given(rule, values)
        check_options(options)
        if options.kernel is not None:
            raise NamingError(
                f'kernel="{options.kernel}": a cache answers its queries by itself; leave kernel out'
            )
        check_shapes(rule_names(key), q, k, v)
        q, k, v = as_one_kind(q, k, v)
        if options.return_max_logit:
            raise NamingError(
                "return_max_logit: a cache does not look for the largest scores; leave one of them out"
            )
        if options.dropout:
            raise NamingError("dropout is for training, and a cache for decoding; leave one of them out")
        if options.cu_seqlens is not None:
            raise NamingError(
                "cu_seqlens: a cache has a row for each sequence; pad them, and say so with padding"
            )
        check_sinks(options.sinks, q)
        return q, k, v, self.check_rule(key, numbers, values)

    def _attend_and_remember(
        self, q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions, entries: Mapping[str, Any],
        signature: CallSignature | None,
    ) -> Any:  # fmt: skip
        """Checks and runs a call, and keeps a step under its signature; the next one needs no checks."""
        run = self._attend if self.static else self._attend_in_python
        results = run(q, k, v, options, entries)
        if signature is not None and not self.growing and q.dim() == 4 and q.shape[2] == 1:
            self._remember(signature, (q, k, v), options)
        return results

    def _remember(
        self, signature: CallSignature, qkv: tuple[Tensor, Tensor, Tensor], options: AttentionOptions
    ) -> None:
        how, bias = Scoring.of(qkv[0], options), options.bias
        if bias is not None:
            if not self.static and not fits_any_length(bias, self._line):
                return
            seen = self.capacity if self.static else len(self)
            how = how._replace(bias=on_a_line(bias, self._line, seen, qkv[0]))
        self._known.find(signature, lambda: self._store.steps.of(*qkv, how))

    def again(self, known: KnownStep, q: Tensor, k: Tensor, v: Tensor, bias: Bias | Tensor | None) -> Any:
        """Runs a step whose signature is known."""
        store = self._store
        if isinstance(store, DynamicStore):
            if self.retention.length is not None:
                self._check_length(1)
            if not store.in_step:
                with WithoutAutocast(q):
                    found = store.attend(NewTokens(q, k, v, {}), known.given(bias))
                return found if known.how.return_lse else found[0]
        found = store.one(q, k, v, bias, known)
        return found if known.how.return_lse else found[0]

    @left_to_python
    def _attend_in_python(self, *given: Any) -> Tensor | tuple[Tensor, Tensor | None]:
        return self._attend(*given)

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions, entries: Mapping[str, Any]
    ) -> Tensor | tuple[Tensor, Tensor | None]:
        bias, sinks = options.bias, options.sinks
        check_scoring(options.for_kernels)
        step.check_step(q, k, v, (self.keys, self.values), self.heads)
        check_sinks(sinks, q)
        s = q.shape[2]
        real = ragged.real_tokens(options.padding, q)
        new = NewTokens(q, k, v, entries_given(self.growing, entries, (k.shape[0], s), k.device))
        if not self.static:
            self._check_length(s if real is None else real.known_sizes)
        added = None
        if bias is not None:
            seen = self.capacity if self.static else len(self) + s
            added = on_a_line(bias, self._line, seen, q)
        how = Scoring.of(q, options)._replace(bias=added)
        if sinks is not None:
            how = how._replace(return_lse=True)
        with WithoutAutocast(q):
            if real is None:
                out, lse = self._store.attend(new, how)
            else:
                out, lse = real.restored(*self._store.attend(real.first(new), how))
        if sinks is not None and lse is not None:
            out, lse = with_sinks(out, lse, sinks)
            out, lse = (out, lse) if real is None else real.emptied(out, lse)
        return (out, lse) if options.return_lse else out

    def check_rule(self, key: str, bound: Mapping[str, int], values: Mapping[str, Any]) -> dict[str, Any]:
        """The entries among the values; raises unless the rest is the cache's rule, with its numbers."""
        entries = {name: value for name, value in values.items() if name in self.growing}
        numbers = {name: value for name, value in values.items() if name not in self.growing}
        known = {**bound, **numbers}
        if key in self.keys_of_rule and all(
            name in self.numbers and self.numbers[name] == value for name, value in known.items()
        ):
            return entries
        arrays = [name for name in values if name in self.rule.data]
        if arrays:
            raise NamingError(f"{arrays[0]} is the cache's, which has it from the start; leave it out")
        rule = rule_of(key).at(**bound)
        unknown = [name for name in numbers if name not in (*rule.sizes, *rule.parameters, *rule.data)]
        if unknown:
            known = (*rule.sizes, *rule.parameters)
            hint = meant_by(unknown[0], known)
            raise NamingError(f'rule "{rule.text}" has no {unknown[0]}; it has {", ".join(known)}{hint}')
        if rule.open and rule.open != self.growing:
            raise NamingError(
                f'rule "{rule.text}" gets {rule.open[0]} when attention runs, and this cache has it from the '
                "start: give the rule that the cache was made with"
            )
        raise NamingError(
            f'the cache was made for the rule "{self.rule}", not for "{rule.at(**numbers)}"; make another'
        )

    def crop(self, lengths: int | Sequence[int] | Tensor) -> None:
        """Take back all tokens but the first `lengths`, one number for all rows or one for each.

        A number below 0 is that of the tokens to take back; one beyond the text changes nothing. Raises where
        the rule has dropped keys that the shorter text reaches: the last `rollback` tokens can always go.
        """
        batch = self.keys.shape[0]
        given = ragged.lengths_given(lengths, batch)
        if isinstance(self._store, StaticStore):
            return self._store.crop(given.to(self.keys.device).expand(batch))
        self._store.crop(given.cpu().numpy().astype(np.int64).reshape(-1))

    def keep(self, indices: Sequence[int] | Sequence[Sequence[int]] | Tensor, **entries: Any) -> None:
        """Of the last call's tokens keep these, in order, at consecutive positions, and take back the others.

        `indices` count from 0, the first token of the call; padding is not counted. One list is for all
        rows; a list of lists, or a tensor [batch, a] with -1 after the last, has one for each. `entries` are
        new ones for the kept tokens, where those that came with them no longer hold. Raises once the cache
        was changed after the call, and for tokens that are not in it; a static cache on a GPU gives NaN
        instead of an error.
        """
        known = tuple(name for name in self.growing if name in entries)
        batch = self.keys.shape[0]
        if isinstance(self._store, StaticStore):
            table = ragged.path_table(indices, batch, self.keys.device, self._store.known_draft())
            return self._store.keep(table, entries_given(known, entries, table.shape, table.device))
        paths = ragged.paths_given(indices, batch)
        shape = batch, max((len(path) for path in paths), default=0)
        self._store.keep(paths, entries_given(known, entries, shape, self.keys.device))

    def select(self, indices: Tensor | Sequence[int]) -> None:
        """Let sequence i of the batch go on from sequence indices[i]: beams reordered, copied or dropped."""
        self._store.select(ragged.rows_given(indices, self.keys.shape[0]))
        self._known.clear()  # the batch may be another

    def reset(self, rows: Sequence[int] | Tensor | None = None) -> None:
        """Forget all positions, or those of some rows, where other sequences begin; the room stays."""
        self._store.reset(None if rows is None else ragged.rows_given(rows, self.keys.shape[0]))

    def _check_length(self, sizes: int | Tensor) -> None:
        length = self.retention.length
        if length is None or (isinstance(sizes, int) and len(self) + sizes <= length):
            return
        more = sizes if isinstance(sizes, int) else sizes.cpu().numpy()
        for row, added in zip(*np.broadcast_arrays(self.lengths, more), strict=True):
            step.check_length(int(row), int(added), length)


def attend_cached(
    q: Tensor, k: Tensor, v: Tensor, rule: RuleLike, options: AttentionOptions, values: Mapping[str, Any]
) -> Any:
    """Runs attention with a cache: q, k and v are the next positions of its sequences."""
    cache = options.cache
    if not isinstance(cache, KVCache):
        raise NamingError(f"cache must be an lt.KVCache, got {type(cache).__name__}")
    return cache.attend_under(q, k, v, rule, options, values)
