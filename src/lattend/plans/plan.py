"""Plan: how the attended pairs of a rule are computed, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from lattend.errors import NamingError, TooLarge
from lattend.plans.branches import Branch, branches
from lattend.plans.canonical import canonical_form, decided
from lattend.plans.order import PlanAxis, has_windows
from lattend.plans.part import Part, is_empty, make_part
from lattend.plans.tiles import Tiles, outer_tiles, tiles, with_lists
from lattend.recent import Recent
from lattend.rules.axes import HEAD, HEADS
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Condition, Num, Term
from lattend.rules.language.intervals import Interval, interval
from lattend.rules.language.key import CanonicalForm
from lattend.rules.rule import Rule

MAX_KNOWN = 256
PROBE = {1: (64,), 2: (8, 8), 3: (4, 4, 4)}  # shapes at which windows and classes are compared
TILE = 64  # queries and keys of a tile, by default, where the executed pairs are counted for no kernel
MOST_POSITIONS = 1 << 26  # tables of tiles stay below a few hundred MB
BEGIN = 10_000  # what a tile costs beside its pairs, in pairs


@dataclass(frozen=True, eq=False)
class Plan:
    """Disjoint parts that together hold the attended pairs of a complete rule, each once."""

    rule: Rule
    parts: tuple[Part, ...]
    axes: tuple[PlanAxis, ...]
    form: CanonicalForm
    _tables: dict[tuple[int, bool, tuple[int, ...]], Tiles] = field(
        default_factory=dict[tuple[int, bool, tuple[int, ...]], Tiles], repr=False
    )

    @cached_property
    def transposed(self) -> tuple[Part, ...]:
        """Parts that hold the same pairs with keys outside and queries inside."""
        return _parts(self.form.columns, [axis.transposed() for axis in self.axes], self.rule.values)

    @cached_property
    def fits(self) -> bool:
        """Whether every intermediate number of the bounds has at most 62 bits."""
        return all(max_magnitude(part) < 1 << 62 for part in (*self.parts, *self.transposed))

    def tiles(self, part: int, shape: tuple[int, ...], *, transposed: bool = False) -> Tiles:
        """Returns the cached tiles of one part, with its lists of blocks if the rule holds their table."""
        key = (part, transposed, shape)
        if key not in self._tables:
            one = (self.transposed if transposed else self.parts)[part]
            tile_table = tiles(one, shape)
            # what is cut by data is cut before blocks are listed, and those data may be open
            known = one.block_table is not None and not one.cut_by and one.block_table.array in self.rule.data
            self._tables[key] = with_lists(one, tile_table, self.rule.data) if known else tile_table
        return self._tables[key]

    def executed(self, tile: int = TILE, heads: int = 1) -> int:
        """Returns the pairs in the tiles of `tile` × `tile` pairs that the plan touches, over all heads.

        This is what executed means where no kernel is named; a kernel cuts tiles of its own.

        >>> from lattend.rules import causal
        >>> plan(causal(), n=128).executed()  # three of four tiles: 3 * 64 * 64
        12288
        """
        positions = prod(axis.outer_size for axis in self.axes)
        if positions > MOST_POSITIONS:
            raise TooLarge(
                f"the tiles of {positions:,} positions are not listed; at most {MOST_POSITIONS:,} are"
            )
        total = 0
        for index, part in enumerate(self.parts):
            shape = (tile,) if len(part.axes) == 1 else PROBE[len(part.axes)]
            part_tiles = self.tiles(index, shape)
            pairs = int((-(-part_tiles.inner // tile)).sum()) * tile * tile
            total += pairs if len(part_tiles.table) > 1 else pairs * heads
        return total


def tile_text(tile: int = TILE) -> str:
    """`64 × 64 tiles`, as executed pairs are labeled."""
    return f"{tile} × {tile} tiles"


UNKNOWN = 1 << 61  # more than 32 bits hold, and no reason to refuse


def max_magnitude(part: Part, *more: Term, names: Mapping[str, Interval] | None = None) -> int:
    """Returns the largest magnitude of any number within the part's bounds and conditions, and `more`.

    `names` are further whole numbers in these; what has other names is no whole number.
    """
    ends = {name: Interval(value, value) for name, value in part.numbers.items()} | dict(names or {})
    ends[HEAD] = Interval(0, part.numbers.get(HEADS, 1))
    for axis in part.axes:
        ends |= {axis.outer: Interval(0, axis.outer_size), axis.inner: Interval(0, axis.inner_size)}
    terms = [t for a in part.axes for t in (*a.lows, *a.highs, *a.near_lows, *a.near_highs)]
    nodes = [node for root in (*terms, part.rest, *more) for node in expr.walk(root)]
    magnitudes = [0]
    for node in nodes:
        if isinstance(node, (Num, Arith)) and not expr.arrays(node) and ends.keys() >= set(expr.names(node)):
            try:
                magnitudes += [abs(int(end)) for end in interval(node, ends)]
            except ZeroDivisionError:  # by what is 0 at an end that is no position
                return UNKNOWN
    return max(magnitudes)


def plan(rule: Rule, /, **values: int) -> Plan:
    """Returns the plan of a rule whose names all have values; plans are cached.

    >>> from lattend.rules import sparse_strided
    >>> [str(part) for part in plan(sparse_strided(), n=64, l=8).parts]
    ['k <= q and q - k <= 7', '(q - k) % 8 == 0 and k <= q and q - k > 7']
    """
    if not isinstance(rule, Rule):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NamingError(f"rule must be a Rule, got {type(rule).__name__}; make one with lt.rule(...)")
    bound = rule.at(**values) if values else rule
    key = (bound.key, tuple(bound.values.items()))
    return _KNOWN.find(key, lambda: _planned(bound))


_KNOWN: Recent[object, Plan] = Recent(MAX_KNOWN)


def _planned(rule: Rule) -> Plan:
    if rule.free:
        raise NamingError(f'a plan of "{rule.text}" needs a value for {" and ".join(rule.free)}')
    at = rule.values
    axes = tuple(PlanAxis(a.query, a.key, at[a.queries], at[a.keys]) for a in rule.axes)
    form = canonical_form(rule)
    return Plan(rule, _parts(form.rows, axes, at), axes, form)


def _parts(condition: Condition, axes: Sequence[PlanAxis], numbers: Mapping[str, int]) -> tuple[Part, ...]:
    ranges = {HEAD: Interval(0, max(0, numbers.get(HEADS, 1) - 1))}
    for axis in axes:
        ranges[axis.outer] = Interval(0, axis.outer_size - 1)
        ranges[axis.inner] = Interval(0, axis.inner_size - 1)
    nonempty = all(low <= high for low, high in ranges.values())
    condition = decided(condition, numbers, ranges) if nonempty else condition
    inner = frozenset(axis.inner for axis in axes)
    conjunctions = branches(condition, lambda branch: is_empty(branch, axes, numbers), inner)
    made = [_best(branch, axes, numbers) for branch in conjunctions]
    return tuple(part for part in made if part is not None)


def _best(branch: Branch, axes: Sequence[PlanAxis], numbers: Mapping[str, int]) -> Part | None:
    """The conjunction as a part; windows become classes where tiles across their edges would cost more."""
    plain = make_part(branch, axes, numbers)
    if plain is None or not has_windows(branch, axes, numbers):
        return plain
    paired = make_part(branch, axes, numbers, windows=True)
    if paired is None or not paired.windowed:
        return plain
    shape = PROBE[len(axes)]
    if outer_tiles(paired, shape) > 2 * outer_tiles(plain, shape) or max(numbers.values()) >= 1 << 31:
        return plain
    costs = [tiles(part, shape) for part in (plain, paired)]
    work = [option.executed(32) + BEGIN * option.table.shape[1] for option in costs]
    return paired if work[1] < work[0] else plain


def forget_plans() -> None:
    """Empty the memory of plans; for measuring."""
    _KNOWN.clear()
