"""Rule: who attends to whom, written once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from lattend.budget import DEFAULT, Budget
from lattend.errors import DomainError, NamingError
from lattend.lazy import needing
from lattend.rules.axes import HEAD, HEADS, POSITIONS, RESERVED, Axis, axes_of, size_names, untied
from lattend.rules.by_name import by_name, check_domain, check_integer, check_value
from lattend.rules.combined import combined
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Compare, Condition, Name, Num, Term, Truth
from lattend.rules.language.key import first_of, key_of, unchanging
from lattend.rules.language.linear import declared_ranges, moduli_in

if TYPE_CHECKING:
    from types import ModuleType

    from torch.nn.attention.flex_attention import BlockMask

    from lattend.counts.count import Count
    from lattend.counts.field import Depth
    from lattend.counts.reach import Reach
    from lattend.draw import Picture
    from lattend.integrations.notebook.explorer import RuleExplorer
    from lattend.rules.catalogue.entry import RuleInfo
    from lattend.sets.compare import Witness

MAX_MASK = 1 << 32
MAX_ROW = 1 << 26


@dataclass(frozen=True, eq=False)
class Rule:
    """A set of (query, key) pairs, described by a condition on their positions.

    >>> from lattend.rules.reader import rule
    >>> band = rule("k <= q and q - k <= t")
    >>> band.mask(n=3, t=1).sum()  # 1 + 2 + 2 = 5 pairs
    np.int64(5)
    """

    condition: Condition
    axes: tuple[Axis, ...]
    where: Condition = Truth(True)  # noqa: RUF009  (a constant)
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    data: Mapping[str, NDArray[np.int64]] = field(default_factory=dict[str, NDArray[np.int64]])
    about: RuleInfo | None = None
    source: str | None = None
    open: tuple[str, ...] = ()  # the arrays that are given at call time
    budget: Budget = DEFAULT  # how long set work on it may take, unless it is said with the question
    key: str = field(init=False)  # all of it but its numbers, as one text

    def __post_init__(self) -> None:
        expr.check_size(self.condition)
        missing = [name for name in expr.arrays(self.condition) if name not in (*self.data, *self.open)]
        if missing:
            raise NamingError(
                f"the rule looks up {missing[0]}[...], but no array of that name is given; "
                f"pass it as data={{{missing[0]!r}: array}}"
            )
        put = object.__setattr__  # the dataclass is frozen
        put(self, "data", {name: unchanging(array) for name, array in self.data.items()})
        put(self, "key", key_of(self))
        put(self, "_first", first_of(self))

    @staticmethod
    def of(
        condition: Condition,
        *,
        where: Condition = Truth(True),  # noqa: B008  (a constant)
        cross: bool = False,
        data: Mapping[str, Any] | None = None,
        source: str | None = None,
    ) -> Rule:
        """Returns the rule of a condition on the axes of its names; an array that is None stays open."""
        arrays = data or {}
        return Rule(
            condition,
            axes_of(expr.names(condition) + expr.names(where), cross),
            where=where,
            data={name: np.asarray(array) for name, array in arrays.items() if array is not None},
            source=source,
            open=tuple(name for name, array in arrays.items() if array is None),
        )

    def __reduce__(self) -> tuple[object, ...]:
        return Rule, tuple(getattr(self, part.name) for part in fields(self) if part.init)

    # What it is made of

    @cached_property
    def sizes(self) -> list[str]:
        """The names of its sizes: n (and m), or rows and cols, or depth, rows and cols; then heads."""
        return size_names(self.axes) + ([HEADS] if self.has_heads else [])

    @cached_property
    def has_heads(self) -> bool:
        return bool({HEAD, HEADS} & {*expr.names(self.condition), *expr.names(self.where)})

    @cached_property
    def parameters(self) -> list[str]:
        """Its parameters, bound or not, in the order they occur."""
        names = expr.names(self.condition) + expr.names(self.where)
        taken = RESERVED | set(size_names(self.axes))
        return [name for name in dict.fromkeys(names) if name not in taken]

    @property
    def free(self) -> list[str]:
        """Sizes and parameters that have no value yet, sizes first."""
        return [name for name in self.sizes + self.parameters if name not in self.values]

    @cached_property
    def positions(self) -> list[str]:
        """The coordinates of one pair, queries first: head, q, k or head, qy, qx, ky, kx."""
        head = [HEAD] if self.has_heads else []
        return head + [axis.query for axis in self.axes] + [axis.key for axis in self.axes]

    @cached_property
    def text(self) -> str:
        """The rule as text, with its bound values apart: `k <= q and q - k <= t`."""
        return expr.text(self.condition)

    @cached_property
    def domain(self) -> Condition:
        """Where the rule is defined: sizes at least 0, moduli at least 1, and what it declares."""
        sizes = [Compare(">=", Name(size), Num(0)) for size in self.sizes]
        moduli = [Compare(">=", Name(name), Num(1)) for name in self.moduli]
        return expr.all_of(*sizes, *moduli, self.where)

    @cached_property
    def formula_domain(self) -> Condition:
        """Where its formulas hold: its domain, and parameters at least 0 unless their range is declared."""
        declared = {*self.moduli, *declared_ranges(self.where)}
        rest = [name for name in self.parameters if name not in declared]
        return expr.all_of(self.domain, *(Compare(">=", Name(name), Num(0)) for name in rest))

    @cached_property
    def moduli(self) -> list[str]:
        """The names it divides by, or multiplies another name with, in order."""
        return moduli_in(self.condition)

    def __str__(self) -> str:
        bound = ", ".join(f"{name} = {value}" for name, value in self.values.items())
        return f"{self.text} with {bound}" if bound else self.text

    def __repr__(self) -> str:
        return f"<Rule {self}>"

    def __eq__(self, other: object) -> bool:
        """Written alike: the same condition, axes, domain, values and data. See same_as for the sets."""
        if not isinstance(other, Rule):
            return NotImplemented
        mine, theirs = (
            (rule.condition, rule.axes, rule.where, dict(rule.values), rule.data.keys())
            for rule in (self, other)
        )
        return mine == theirs and all(np.array_equal(self.data[name], other.data[name]) for name in self.data)

    def __hash__(self) -> int:
        return hash((self.condition, self.axes, self.where, tuple(sorted(self.values.items()))))

    # Binding and combining

    def at(self, /, **values: int) -> Rule:
        """The rule with these sizes and parameters fixed; with head=…, the rule of that head alone.

        >>> from lattend.rules.reader import rule
        >>> rule("q - k <= t").at(t=3)
        <Rule q - k <= t with t = 3>
        """
        if HEAD in values and self.has_heads:
            return self.at(**{name: v for name, v in values.items() if name != HEAD})._of_head(values[HEAD])
        bound = self
        if "m" in values and "m" not in self.sizes and "n" in self.sizes:
            bound = replace(self, axes=untied(self.axes))
        for name, value in values.items():
            check_value(bound, name, value)
        known = {**self.values, **{name: int(v) for name, v in values.items()}}
        check_domain(bound, known)
        return bound._with_values(known)

    def _with_values(self, values: Mapping[str, int]) -> Rule:
        """Returns the rule with other numbers; its key and all that is derived from its condition stay."""
        bound = object.__new__(type(self))
        vars(bound).update(vars(self), values=values)
        vars(bound)["_first"] = first_of(bound)
        return bound

    def _of_head(self, head: int) -> Rule:
        """Returns the rule of one head, which no longer mentions heads."""
        check_integer(HEAD, head)
        heads = self.values.get(HEADS)
        if heads is None and HEADS in {*expr.names(self.condition), *expr.names(self.where)}:
            raise NamingError(f'rule "{self.text}" depends on heads: at(head={head}, heads=…)')
        if head < 0 or (heads is not None and head >= heads):
            raise DomainError(f"head = {head} lies outside 0 … {'heads - 1' if heads is None else heads - 1}")
        return self._written({HEAD: head} | ({} if heads is None else {HEADS: heads}))

    def complete(self, /, **values: int) -> Rule:
        """Returns the rule with these values; raises with the names that still have none."""
        bound = self.at(**values)
        if bound.free:
            known = ", ".join(f"{name}=…" for name in bound.free)
            hint = "" if POSITIONS & {*expr.names(self.condition)} else "; positions are named q and k"
            raise NamingError(
                f'rule "{self.text}" needs a value for {" and ".join(bound.free)}: give {known}{hint}'
            )
        return bound.given()

    def given(self) -> Rule:
        """Returns the rule itself; raises if an array is still open."""
        if self.open:
            raise NamingError(
                f'rule "{self.text}" gets {self.open[0]} when attention runs; '
                f"to count, draw or list its pairs give it now: data={{{self.open[0]!r}: array}}"
            )
        return self

    @property
    def lengths(self) -> dict[str, int]:
        """How many values each coordinate of a pair has, for a complete rule."""
        return {position: self.values[size] for position, size in self.limits.items()}

    @property
    def dense(self) -> int:
        """All (query, key) pairs, attended or not, over all heads, for a complete rule."""
        return prod(self.lengths.values())

    @cached_property
    def limits(self) -> dict[str, str]:
        """The size that bounds each coordinate of a pair: q is below n."""
        sizes = {HEAD: HEADS} | {a.query: a.queries for a in self.axes} | {a.key: a.keys for a in self.axes}
        return {position: sizes[position] for position in self.positions}

    def baked(self, keep: Sequence[str] = ()) -> Rule:
        """Returns the rule with bound parameters written into the condition; sizes and `keep` stay bound."""
        parameters = [name for name in self.parameters if name in self.values and name not in keep]
        return self._written({name: self.values[name] for name in parameters})

    def _written(self, numbers: Mapping[str, int]) -> Rule:
        """The rule with numbers for these names in its condition."""
        terms: dict[str, Term] = {name: Num(value) for name, value in numbers.items()}
        return replace(
            self,
            condition=expr.substituted(self.condition, terms),
            where=expr.substituted(self.where, terms),
            values={name: value for name, value in self.values.items() if name not in numbers},
            about=None,
            source=None if numbers else self.source,
        )

    def __and__(self, other: Rule) -> Rule:
        return combined(self, other, expr.all_of)

    def __or__(self, other: Rule) -> Rule:
        return combined(self, other, expr.any_of)

    def __sub__(self, other: Rule) -> Rule:
        return self & ~other

    def __invert__(self) -> Rule:
        return replace(self, condition=expr.negated(self.condition), about=None, source=None, budget=DEFAULT)

    # Looking at pairs one by one: NumPy, no integer sets

    @by_name
    def mask(self, /, **values: int) -> NDArray[np.bool_]:
        """The attended pairs as a bool array: [n, m], [rows, cols, rows, cols], heads first if any.

        >>> from lattend.rules.reader import rule
        >>> rule("k <= q").mask(n=2).astype(int).tolist()
        [[1, 0], [1, 1]]
        """
        bound = self.complete(**values)
        if bound.dense > MAX_MASK:
            raise DomainError(f"a mask of {bound.dense:,} pairs is too large to hold; use count or draw")
        return bound.mask_at({name: np.arange(length) for name, length in bound.lengths.items()})

    def mask_at(self, ranges: Mapping[str, NDArray[np.int64]]) -> NDArray[np.bool_]:
        """Which pairs of these ranges of positions are attended, for a complete rule."""
        open_grid = dict(zip(ranges, np.ix_(*ranges.values()), strict=True))
        attended = evaluate(self.condition, {**self.values, **open_grid}, self.data)
        return np.broadcast_to(np.asarray(attended, bool), [len(r) for r in ranges.values()]).copy()

    def contains(self, /, *position: int, **values: int) -> bool:
        """Whether one pair is attended: contains(q, k, t=3), contains(qy, qx, ky, kx, r=1).

        >>> from lattend.rules.reader import rule
        >>> rule("q - k <= t").contains(9, 5, n=12, t=3)
        False
        """
        bound = self.complete(**values)
        coordinates = bound.located("pair", bound.positions, position)
        return bool(evaluate(bound.condition, {**bound.values, **coordinates}, bound.data))

    def keys(self, /, *query: int, **values: int) -> list[int] | list[tuple[int, ...]]:
        """The keys of one query, in order; tuples (ky, kx) on an image.

        >>> from lattend.rules.reader import rule
        >>> rule("k <= q and q - k <= t").keys(7, n=12, t=3)
        [4, 5, 6, 7]
        """
        bound = self.complete(**values)
        names = bound.positions[: -len(bound.axes)]
        coordinates = bound.located("query", names, query)
        row = prod(length for name, length in bound.lengths.items() if name not in names)
        if row > MAX_ROW:
            raise DomainError(f'a row of {row:,} keys is too long to list; use count(per="query")')
        ranges = {name: np.arange(length) for name, length in bound.lengths.items() if name not in names}
        ranges = {name: np.array([coordinate]) for name, coordinate in coordinates.items()} | ranges
        keys: list[list[int]] = np.argwhere(bound.mask_at(ranges)[(0,) * len(names)]).tolist()
        return [key[0] for key in keys] if len(self.axes) == 1 else [tuple(key) for key in keys]

    def located(self, what: str, names: list[str], coordinates: tuple[int, ...]) -> dict[str, int]:
        """Returns coordinates by name; raises unless they lie on the grid of a complete rule."""
        if len(coordinates) != len(names):
            raise NamingError(f"a {what} of this rule is ({', '.join(names)}), got {coordinates}")
        for name, coordinate in zip(names, coordinates, strict=True):
            check_integer(name, coordinate)
            if not 0 <= coordinate < self.lengths[name]:
                raise DomainError(f"{name} = {coordinate} lies outside 0 … {self.lengths[name] - 1}")
        return {name: int(coordinate) for name, coordinate in zip(names, coordinates, strict=True)}

    # Doors to the other folders, opened on first use so that `import lattend` stays instant

    def same_as(self, other: Rule) -> bool:
        """Whether both rules attend the same pairs for all sizes and parameters of their common domain.

        >>> from lattend.rules.reader import rule
        >>> rule("k <= q").same_as(rule("not k > q"))
        True
        """
        return self.difference(other) is None

    def difference(self, other: Rule) -> Witness | None:
        """The smallest pair that only one of the two rules attends, or None when there is none."""
        from lattend.sets.compare import difference

        return difference(self.given(), other.given())

    # pyright holds that **values may bring n again
    @overload
    def count(
        self, /, *, per: str | None = ..., first: int = ..., method: str = ..., deadline: float | None = ...
    ) -> Count: ...
    @overload
    def count(self, /, *, n: int, **options: Any) -> int: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def count(self, /, *, rows: int, cols: int, **options: Any) -> int: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def count(self, /, **options: Any) -> Count: ...  # pyright: ignore[reportOverlappingOverload]
    @by_name
    def count(
        self, /, *, per: str | None = None, first: int = 0, method: str = "auto",
        deadline: float | None = None, **values: int,
    ) -> Count | int:  # fmt: skip
        """The number of attended pairs: a Count while a size or a parameter is open, an int once none is.

        `per="query"` counts the keys of each query, `per="key"` the queries of each key, whose positions
        begin at `first`: with first=1 the query q of a causal mask attends q keys. `method` is "closed"
        (the closed form or an error), "enumerate" (pair by pair) or "auto": the closed form, and where there
        is none the exact number by enumeration. `deadline` is in seconds, instead of the rule's budget;
        math.inf waits for as long as it takes.

        >>> from lattend.rules.reader import rule
        >>> rule("k <= q").count(n=8)  # 8 * 9 / 2
        36
        """
        from lattend.counts.counting import count

        return count(self.given(), per=per, first=first, method=method, deadline=deadline, **values)

    @by_name
    def total(self, /, **values: int) -> int:
        """The number of attended pairs with all values given, here or before.

        >>> from lattend.rules.reader import rule
        >>> rule("k <= q").at(n=8).total()
        36
        """
        count = self.complete(**values).count()
        assert isinstance(count, int)  # no name is open
        return count

    @by_name
    def reach(self, /, **values: int) -> Reach:
        """The attention span of a query, back and ahead, as formulas."""
        from lattend.counts.reach import reach

        return reach(self.at(**values).given())

    def receptive_field(self, layers: int, **values: int) -> Rule:
        """The pairs connected by a number of layers with residual connections, as a rule."""
        from lattend.counts.field import receptive_field

        return receptive_field(self.at(**values).given(), layers)

    @by_name
    def layers_to_reach_all(self, /, **values: int) -> Depth:
        """The number of layers after which the receptive field stops growing, and its extent then."""
        from lattend.counts.field import depth

        return depth(self.at(**values).given())

    @by_name
    def draw(self, /, **options: Any) -> Picture:
        """The picture of the rule at these numbers."""
        from lattend.draw import draw

        return draw(self.given(), **options)

    @by_name
    def mask_mod(self, /, *, device: Any = None, **values: int) -> Callable[..., Any]:
        """The rule as a function (b, h, q_idx, kv_idx) for FlexAttention; its arrays become tensors."""
        return _flex().mask_mod(self, device=device, **values)

    @by_name
    def block_mask(
        self, /, *, device: Any = None, block_size: int | tuple[int, int] = 128, **values: int
    ) -> BlockMask:
        """The rule as FlexAttention's BlockMask: every block of every row is listed, by no n x n step."""
        return _flex().block_mask(self, device=device, block_size=block_size, **values)

    def explore(self, /, **numbers: int) -> RuleExplorer:
        """The rule in a notebook, with a slider for each of its numbers."""
        from lattend.integrations.notebook import explore

        return explore(self, **numbers)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        from lattend.integrations.notebook.rule_forms import rule_bundle

        return rule_bundle(self)


def _flex() -> ModuleType:
    """The door to FlexAttention, which is part of torch."""
    return needing("torch", "lattend.integrations.flex", "mask_mod and block_mask run on torch")
