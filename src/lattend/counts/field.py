"""The receptive field of a stack of layers: the keys that a query sees through several layers.

Layers have residual connections, so that a position keeps what it has seen. Heads are joined: a layer
passes on what any of its heads attends to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.budget import DEFAULT
from lattend.counts.closed import Closed
from lattend.counts.count import Count
from lattend.counts.counting import bind
from lattend.counts.simplify import simplified
from lattend.errors import DeadlineError, DomainError, NamingError, NoClosedForm, NotAffineError, TooLarge
from lattend.report.shown import Shown
from lattend.rules.axes import HEAD, HEADS
from lattend.rules.language import expr
from lattend.rules.language.expr import Compare, Condition, Name, Num
from lattend.rules.language.linear import Linear, Quotient
from lattend.rules.language.parser import parse
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.rule import Rule, check_integer
from lattend.sets import Space, region_of
from lattend.sets.guard import remembered
from lattend.sets.powers import Extent, Relation, least_power
from lattend.sets.region import Piece
from lattend.wording import listed, many

MOST_LAYERS = 1 << 20
MOST_HEADS = 64
QUICK_POSITIONS = 128  # so many are traversed pair by pair rather than as sets
MOST_POSITIONS = 2048  # and so many where there is no set

Bools = NDArray[np.bool_]
Numbers = tuple[tuple[str, int], ...]  # values by name


@dataclass(frozen=True)
class Depth(Shown):
    """The number of layers after which the receptive field stops growing, and its extent then.

    Then a query sees "every" position, every "earlier" one, of every two positions one the other ("one
    way"), or "not all": the positions `apart` see each other in neither direction, however many layers.
    """

    layers: Count | int
    extent: Extent
    apart: dict[str, int] | None = None
    where: str = ""  # where that is so, if not at all numbers

    @property
    def all_reached(self) -> bool:
        """Whether, of any two positions, one sees the other in the end."""
        return self.extent != "not all"

    def text(self) -> str:
        """Returns a sentence, or a formula and a sentence."""
        if isinstance(self.layers, int):
            when = f"after {many(self.layers, 'layer')}"
            return f"{when} {self.seen()}" if self.all_reached else f"{when} it grows no more: {self.seen()}"
        return f"layers until it grows no more:\n{self.layers}\nthen {self.seen()}"

    def seen(self) -> str:
        """Returns what a query sees in the end."""
        if self.apart is None:
            elsewhere = f", where {self.where}; elsewhere each sees only itself" if self.where else ""
            return _SEEN[self.extent] + elsewhere
        queries = [coordinate for name, coordinate in self.apart.items() if name.startswith("q")]
        keys = [coordinate for name, coordinate in self.apart.items() if name in ("k", "kz", "ky", "kx")]
        two = [str(p[0]) if len(p) == 1 else str(tuple(p)) for p in (queries, keys)]
        sizes = {name: value for name, value in self.apart.items() if name[0] not in "qk"}
        where = f" (at {', '.join(f'{name} = {value}' for name, value in sizes.items())})" if sizes else ""
        return f"positions {two[0]} and {two[1]} never see each other{where}"

    __str__ = __repr__ = text


_SEEN: dict[Extent, str] = {
    "every": "every position sees every other",
    "earlier": "every position sees all before it",
    "one way": "of every two positions one sees the other",
    "not all": "some positions never see each other",
}


def receptive_field(rule: Rule, layers: int, deadline: float | None = None) -> Rule:
    """Returns the pairs connected by a number of layers, as a rule on the same axes, without heads.

    >>> from lattend.rules.reader import rule
    >>> receptive_field(rule("strided"), 3)
    <Rule k <= q and q - k <= 3 * t>
    """
    check_integer("layers", layers)
    if not 1 <= layers <= MOST_LAYERS:
        raise DomainError(f"layers is a number from 1 to {MOST_LAYERS:,}, got {layers}")
    one = one_layer(rule)
    if expr.arrays(one.condition):
        raise NoClosedForm.of_rule(rule.text, "looks up data, so its receptive field has no closed form")
    symbolic = replace(one, values={})
    try:
        condition = remembered(_condition, symbolic, layers, budget=one.budget.or_seconds(deadline))
    except DeadlineError as reason:
        letters = f"; give {listed(one.parameters)} a number" if one.parameters else ""
        raise DeadlineError(f"the receptive field was not found: {reason}{letters}") from None
    moduli = [Compare(">=", Name(name), Num(1)) for name in one.moduli]
    return replace(one, condition=condition, where=expr.all_of(*moduli, one.where))


def one_layer(rule: Rule) -> Rule:
    """Returns the rule of one layer, with its numbers written in and its heads joined."""
    if any(axis.queries != axis.keys for axis in rule.axes):
        raise DomainError(
            f'rule "{rule.text}" has keys of their own number m: only layers of self-attention can be stacked'
        )
    # a rule of the catalogue, which is quick to count, may be slow to compose
    rule = replace(rule.baked(), budget=DEFAULT if rule.budget.seconds is None else rule.budget)
    if not rule.has_heads:
        return rule
    if HEADS not in rule.values:
        raise NamingError(f'rule "{rule.text}" has heads, which a layer joins: give heads a number')
    heads = rule.values[HEADS]
    if heads > MOST_HEADS:
        raise TooLarge(f"at most {MOST_HEADS} heads are joined, got {heads}")

    def at(condition: Condition, head: int) -> Condition:
        return expr.substituted(condition, {HEAD: Num(head), HEADS: Num(heads)})

    return replace(
        rule,
        condition=expr.any_of(*(at(rule.condition, head) for head in range(heads))),
        where=at(rule.where, 0),
        values={name: value for name, value in rule.values.items() if name != HEADS},
    )


def depth(rule: Rule, deadline: float | None = None) -> Depth:
    """Returns the number of layers until the receptive field stops growing, and its extent then.

    A formula while a size is open, where there is an exact one; a number once every name has a value.
    """
    one = one_layer(rule)
    budget = one.budget.or_seconds(deadline)
    if one.free:
        if expr.arrays(one.condition):
            raise NoClosedForm.of_rule(rule.text, f"looks up data: give {' and '.join(one.free)} a number")
        symbolic = replace(one, values={})
        closed, extent, apart, where = remembered(_open_depth, symbolic, _frozen(one.values), budget=budget)
        if where:
            one = replace(one, where=expr.all_of(one.where, parse(where)))
        count = Count(replace(one, values={}), closed, budget=budget)
        return Depth(bind(count, one), extent, apart, where)
    positions = prod(one.values[axis.queries] for axis in one.axes)
    if positions <= QUICK_POSITIONS or expr.arrays(one.condition):
        return _traversed(one, positions)
    try:
        return Depth(*remembered(_depth, replace(one, values={}), _frozen(one.values), budget=budget))
    except (NoClosedForm, NotAffineError) as reason:
        if positions <= MOST_POSITIONS:
            return _traversed(one, positions)
        if isinstance(reason, DeadlineError):
            raise DeadlineError(f'rule "{rule.text}": its depth is not known: {reason}') from None
        raise


def depth_of_mask(mask: Bools) -> tuple[int, Bools]:
    """Returns the number of layers of this mask until nothing more is connected, and the last mask."""
    own = np.eye(len(mask), dtype=bool)
    return least_power(own, mask | own, _composed, np.array_equal)


def _condition(rule: Rule, layers: int) -> Condition:
    return Relation(rule).condition(layers)


def _open_depth(rule: Rule, numbers: Numbers) -> tuple[Closed, Extent, dict[str, int] | None, str]:
    relation = Relation(rule, dict(numbers))
    band = band_depth(relation, rule.parameters)
    if band is not None:
        closed, extent, where = band
        return closed.ready(), extent, None, where
    lengths = relation.lengths()
    domain = relation.pairs.domain
    closed = Closed(domain.space, domain, simplified(relation.most(lengths), domain))
    return closed.ready(), *_end(relation, relation.connected(lengths)), ""


def _depth(rule: Rule, numbers: Numbers) -> tuple[int, Extent, dict[str, int] | None]:
    relation = Relation(rule, dict(numbers))
    layers, connected = relation.depth()
    extent, apart = _end(relation, connected)
    return layers, extent, apart and {name: at for name, at in apart.items() if name in rule.positions}


def _end(relation: Relation, connected: Any) -> tuple[Extent, dict[str, int] | None]:
    extent = relation.extent(connected)
    return extent, relation.apart(connected) if extent == "not all" else None


def _traversed(rule: Rule, positions: int) -> Depth:
    """The depth of a complete rule, pair by pair."""
    layers, connected = depth_of_mask(flat_mask(rule, positions))
    order = np.tri(positions, dtype=bool)
    if connected.all():
        return Depth(layers, "every")
    if np.array_equal(connected, order):
        return Depth(layers, "earlier")
    either = connected | connected.T
    if either.all():
        return Depth(layers, "one way")
    sizes = [rule.values[axis.queries] for axis in rule.axes]
    two: list[int] = np.argwhere(~either)[0].tolist()
    coordinates = [int(at) for position in two for at in np.unravel_index(position, sizes)]
    return Depth(layers, "not all", dict(zip(rule.positions, coordinates, strict=True)))


def flat_mask(rule: Rule, positions: int) -> Bools:
    """Returns the mask of a complete rule on flat positions."""
    if positions > MOST_POSITIONS:
        raise TooLarge(f"{positions:,} positions are too many to traverse; the limit is {MOST_POSITIONS:,}")
    return rule.mask().reshape(positions, positions)


def _composed(one: Bools, other: Bools) -> Bools:
    return (one.astype(np.float32) @ other.astype(np.float32)) > 0


def _frozen(values: Mapping[str, int]) -> Numbers:
    return tuple(sorted(values.items()))


# Bands of a letter's width

BANDS: dict[str, Extent] = {
    "k <= q and q - k <= {}": "earlier",
    "abs(q - k) <= {}": "every",
    "q <= k and k - q <= {}": "one way",
}


def band_depth(relation: Relation, parameters: list[str]) -> tuple[Closed, Extent, str] | None:
    """Returns ⌈(n - 1)/t⌉, the extent and the domain t >= 1, if the rule is a band of t positions."""
    if len(relation.axes) != 1 or len(parameters) != 1:
        return None
    (name,) = parameters
    for shape, extent in BANDS.items():
        if relation.attends_to(parse(shape.format(name))):
            closed, names = band_layers(), {"t": name}
            space = closed.space.renamed(names)
            pieces = [Piece(p.region.renamed(names, space), p.formula.at(names)) for p in closed.pieces]
            return Closed(space, closed.domain.renamed(names, space), pieces), extent, f"{name} >= 1"
    return None


@lru_cache(maxsize=1)
def band_layers() -> Closed:
    """⌈(n - 1)/t⌉ in N = n // t and r = n % t: N + 1 where r is 2 or more, else N, and n - 1 where t is 1."""
    space = Space(("n", "t"), (), {"n": "t"})
    blocks = Polynomial.atom(Quotient(Linear((("n", 1),)), "t"))
    one = Polynomial.constant(1)
    cases = {
        "n % t >= 2": blocks + one,
        "n % t <= 1 and t >= 2": blocks,
        "t == 1": blocks - one,
    }
    domain = region_of(parse("n >= 1 and t >= 1"), space).aligned(space)
    pieces = [Piece(region_of(parse(c), space).aligned(space) & domain, f) for c, f in cases.items()]
    return Closed(space, domain, pieces)
