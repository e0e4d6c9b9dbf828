"""Retention: which keys a decoder still has to hold at each position, and how many at most.

A key may be dropped after the last query that reaches it. The set says which query that is
(sets/future.py). Where there is no set (no isl, data, a rule that is not affine) the text of the rule
bounds it (plans/last_query.py), and what the text does not bound is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError, LattendError, NamingError, NoClosedForm, NotAffineError
from lattend.plans.canonical import canonical_form
from lattend.plans.last_query import FOREVER, NEVER, LastQueryBound, last_query_bound
from lattend.rules import causal, raster
from lattend.rules.axes import HEAD, HEADS, LINE, Axis, size_names
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import And, Arith, Compare, Condition, Name, Num, Or, Term
from lattend.rules.rule import Rule

if TYPE_CHECKING:
    from lattend.sets.future import Future

MAX_HORIZON = 1 << 24  # positions looked at one by one to find the greatest number of keys
MAX_PAIRS = 1 << 26
SAMPLE = 64
LARGE = 1 << 20  # beyond, numbers times positions might leave 64 bits
_RASTER, _BACK = raster().condition, causal().condition
_BACK_ONLY = (f"{expr.text(_BACK)} and (…)", f"({expr.text(_RASTER)}) and (…)")  # on a line, in reading order


@dataclass(frozen=True, eq=False)
class Retention:
    """How long each key of a rule on a line is kept.

    `condition` speaks of q, k (and head) only. `most` is the greatest number of keys in use at once,
    None when it grows with the sequence. `whole`: a query reaches every key in use at its position.
    `inexact` says why keys may be kept longer than needed; it is empty when they are not. Keys from `pinned`
    on are reached from `reach` positions ahead at most. Arrays that are `open` grow with the sequence; an
    array that the condition no longer looks up is not among them.
    """

    condition: Condition
    data: Mapping[str, NDArray[np.int64]]
    length: int | None
    most: int | None
    whole: bool
    inexact: str
    why: str
    pinned: int
    reach: int
    open: tuple[str, ...]
    _last: Callable[[Any], Any]

    @property
    def rule(self) -> Rule:
        """The rule on a line of any length, its numbers put in."""
        return Rule(self.condition, LINE, data=self.data, open=self.open)

    @overload
    def last(self, k: int) -> int: ...
    @overload
    def last(self, k: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def last(self, k: int | NDArray[np.int64]) -> int | NDArray[np.int64]:
        """Returns the last query that reaches key k: FOREVER if there always is one, NEVER if there is none.

        >>> from lattend.rules import windowed
        >>> retention(windowed(w=4)).last(np.arange(6)).tolist()
        [3, 3, 3, 3, 7, 7]
        """
        if isinstance(k, int):
            return min(int(self._last(k)), FOREVER)
        keys = np.asarray(k)
        found = self._last(keys.astype(object) if self._large else keys)
        return np.broadcast_to(np.minimum(found, FOREVER), keys.shape).astype(np.int64)

    @cached_property
    def _large(self) -> bool:
        numbers = [node.value for node in expr.walk(self.condition) if isinstance(node, Num)]
        return max(map(abs, numbers), default=0) > LARGE

    def kept(self, p: int) -> NDArray[np.int64]:
        """Returns the keys up to p that a later query reaches, or may reach if the answer is inexact.

        >>> from lattend.rules import sinks
        >>> retention(sinks(s=1, t=2)).kept(9).tolist()
        [0, 8, 9]
        """
        keys = np.arange(p + 1)
        return keys[self.last(keys) > p]

    def __str__(self) -> str:
        grows = (
            "the number grows with the sequence" if self.most is None else f"at most {self.most:,} at once"
        )
        return f"{self.why}; {grows}" + (f" ({self.inexact})" if self.inexact else "")


def retention(
    rule: Rule, /, *, query_heads: int | None = None, growing: bool = False, **values: int
) -> Retention:
    """Returns how long each key is kept while queries arrive one by one; raises if this is unknown.

    `growing`: entries of the arrays that the rule leaves open come with the queries.

    >>> from lattend.rules import strided
    >>> print(retention(strided(t=3)))
    key k is kept until query k + 3, the last that reaches it; at most 4 at once
    """
    bound = rule.at(**values)
    if bound.open and not growing:
        raise LattendError(
            f'rule "{rule.text}" gets {bound.open[0]} when attention runs, and a cache drops keys before: '
            f"give it with the cache, KVCache(rule, …, {bound.open[0]}=array)"
        )
    heads = bound.values.get(HEADS, query_heads) if bound.has_heads else None
    if bound.has_heads and heads is None:
        raise NamingError(f'rule "{rule.text}" speaks of heads: give the number of query heads')
    condition, length = on_a_line(bound, heads)
    condition = canonical_form(Rule(condition, LINE, data=bound.data, open=bound.open)).condition
    try:
        derived = _future(bound, condition, length, heads)
    except _NoSet as cause:
        return _from_text(bound, condition, length, heads, str(cause))
    if derived.ahead is not None:
        raise _attends_ahead(bound, derived.ahead)
    return Retention(
        condition,
        bound.data,
        length,
        _most(derived),
        derived.whole,
        "",
        str(derived),
        FOREVER if derived.pinned is None else derived.pinned,
        FOREVER if derived.reach is None else derived.reach,
        (),
        partial(derived.last, forever=FOREVER, never=NEVER),
    )


class _NoSet(Exception):
    """Returns why the rule has no set."""


def _future(rule: Rule, condition: Condition, length: int | None, heads: int | None) -> Future:
    if expr.arrays(condition):
        raise _NoSet("it looks up data")
    try:
        from lattend.sets.future import future
        from lattend.sets.guard import guarded
    except ModuleNotFoundError as missing:
        if missing.name != "islpy":
            raise
        raise _NoSet("islpy is not installed") from None
    try:
        return guarded(future, condition, length, heads, budget=rule.budget)
    except NotAffineError:
        raise _NoSet("it is not affine") from None
    except NoClosedForm as cause:
        raise _NoSet(f"its set was not found, {cause}") from None


# The rule on a line, its numbers put in


def on_a_line(rule: Rule, heads: int | None) -> tuple[Condition, int | None]:
    """Returns the condition on flat q and k and head, and the length if it is known."""
    outer, *inner = rule.axes
    free = [name for name in rule.free if name not in (HEADS, outer.queries, outer.keys)]
    if free:
        order = ": an image is read row by row, so its rows must have a length" if inner else ""
        raise NamingError(
            f'rule "{rule.text}" needs a value for {" and ".join(free)}{order}; '
            f"give {', '.join(f'{name}=…' for name in free)}"
        )
    known = {name: value for name, value in rule.values.items() if name != HEADS}
    ends = {known[name] for name in (outer.queries, outer.keys) if name in known}
    if len(ends) > 1:
        raise DomainError(
            f'rule "{rule.text}": a cache holds one key for each query, got '
            f"{outer.queries} = {known[outer.queries]} and {outer.keys} = {known[outer.keys]}"
        )
    if ends:
        known |= dict.fromkeys((outer.queries, outer.keys), next(iter(ends)))
    if heads is not None:
        known[HEADS] = heads
    condition = canonical_form(rule).condition  # which speaks of a size only where the set depends on it
    unknown = {*size_names(rule.axes)} - known.keys()
    sizes = [name for name in expr.names(condition) if name in unknown]
    if sizes:
        raise LattendError(
            f'rule "{rule.text}" speaks of {" and ".join(sizes)}, the size of the whole: what earlier '
            "queries see changes as the sequence grows, and their answers are already given. "
            f"If it is known beforehand, give {', '.join(f'{name}=…' for name in sizes)}"
        )
    numbers: dict[str, Term] = {name: Num(value) for name, value in known.items()}
    positions, step = row_by_row(rule.axes, known)
    if step == 0:
        raise DomainError(f'rule "{rule.text}": an image without columns has no positions')
    length = step * next(iter(ends)) if ends else None
    if rule.data and length is None:
        raise LattendError.of_rule(
            rule.text, f"looks up data: give {outer.queries}=…, the number of positions it is for"
        )
    back = _in_reading_order(condition) if len(rule.axes) == 2 else condition
    return expr.substituted(back, numbers | positions), length


def row_by_row(axes: Sequence[Axis], sizes: Mapping[str, int]) -> tuple[dict[str, Term], int]:
    """Returns each position as a term of flat q or k, and the number of positions in a row.

    On an image qx is q % cols and qy is q // cols; a row of the first axis has cols places.
    """
    outer, *inner = axes
    coordinates: dict[str, Term] = {}
    step = 1
    for axis in reversed(inner):
        for name, position in ((axis.query, "q"), (axis.key, "k")):
            coordinates[name] = Arith("%", (_blocks(position, step), Num(sizes[axis.queries])))
        step *= sizes[axis.queries]
    return coordinates | {outer.query: _blocks("q", step), outer.key: _blocks("k", step)}, step


def _in_reading_order(node: Condition) -> Condition:
    """Raster order said of positions in a row of pixels: k <= q."""
    if node in (_RASTER, canonical_form(raster()).condition):
        return _BACK
    if isinstance(node, And | Or):
        join = expr.all_of if isinstance(node, And) else expr.any_of
        return join(*(_in_reading_order(arg) for arg in node.args))
    return node


def _blocks(position: str, size: int) -> Term:
    return Name(position) if size == 1 else Arith("//", (Name(position), Num(size)))


# From the text alone


def _from_text(
    rule: Rule, condition: Condition, length: int | None, heads: int | None, cause: str
) -> Retention:
    joined = condition
    if heads is not None:
        joined = expr.any_of(*(expr.substituted(condition, {HEAD: Num(head)}) for head in range(heads)))
    if length is not None:
        joined = expr.all_of(Compare("<", Name("q"), Num(length)), joined)
    bound = last_query_bound(joined)
    if (
        rule.data and length and not rule.open
    ):  # raises here, rather than later, where the data ends too early
        evaluate(joined, {"q": np.array([0, length - 1]), "k": np.array([0, length - 1])}, rule.data)
    if not bound.back:
        _refuse_unless_back(rule, joined, length, cause)
    bounded = bound.pinned + bound.reach < FOREVER
    return Retention(
        condition,
        rule.data,
        length,
        max(0, bound.pinned + max(bound.reach, NEVER) + 1) if bounded else None,
        bound.steady and heads is None and not rule.open,
        "" if bound.steady else f"{cause}, so keys may be kept longer than needed",
        _bounded(bound) if bounded else _unbounded(bound),
        bound.pinned,
        bound.reach,
        tuple(name for name in rule.open if name in expr.arrays(condition)),
        bound.last,
    )


def _bounded(bound: LastQueryBound) -> str:
    first = f"for good when k < {bound.pinned:,}, " if bound.pinned else ""
    return f"key k is kept {first}until query k + {max(0, bound.reach):,} at the latest"


def _unbounded(bound: LastQueryBound) -> str:
    if bound.endless:
        return "every key is kept: no query is known to be the last that reaches it"
    return "key k is kept as long as the text of the rule lets a query reach it"


def _refuse_unless_back(rule: Rule, condition: Condition, length: int | None, cause: str) -> None:
    """Raises if a key lies ahead of its query, or if that is unknown."""
    size = SAMPLE if length is None else length
    for start in range(0, size, rows := max(1, MAX_PAIRS // 16 // max(size, 1))):
        if start * size > MAX_PAIRS or rule.open:
            break
        q = np.arange(start, min(start + rows, size))[:, None]
        k = np.arange(size)[None, :]
        mask = evaluate(condition, {"q": q, "k": k}, rule.data)
        ahead = np.argwhere(np.broadcast_to(np.asarray(mask, bool), (len(q), size)) & (k > q))
        if len(ahead):
            raise _attends_ahead(rule, (start + int(ahead[0, 0]), int(ahead[0, 1])))
    if length is None or size * size > MAX_PAIRS or rule.open:
        raise LattendError(
            f'rule "{rule.text}" may attend to keys k > q, which have not come yet: {cause}, so it is '
            "not known that there are none. "
            f"Say that it attends back only: {_BACK_ONLY[len(rule.axes) > 1]}"
        )


def _attends_ahead(rule: Rule, pair: tuple[int, int]) -> LattendError:
    q, k = pair
    order = " in reading order" if len(rule.axes) > 1 else ""
    return LattendError(
        f'rule "{rule}" has query {q} attend to key {k}{order}, which has not come yet when the query is '
        f"answered. A cache is for rules with k <= q; {_BACK_ONLY[len(rule.axes) > 1]} keeps those pairs only"
    )


def _most(future: Future) -> int | None:
    """The greatest number of keys in use at once, over all positions."""
    if future.pinned is None or future.reach is None:
        return None
    if future.settled is None:
        return future.pinned + future.reach + 1
    horizon = max(future.pinned, future.settled, future.period) + future.reach + future.period
    if horizon > MAX_HORIZON:
        return future.pinned + future.reach + 1
    keys = np.arange(horizon + 1)
    last = np.minimum(np.broadcast_to(future.last(keys, FOREVER, NEVER), keys.shape), horizon)
    used = last >= keys
    change = np.zeros(horizon + 2, np.int64)
    change[:-1] += used
    np.subtract.at(change, last[used].astype(np.int64) + 1, 1)
    return int(np.cumsum(change).max())
