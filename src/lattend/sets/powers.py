"""Powers of a rule: the pairs that a stack of its layers connects.

A layer brings to each query what its keys hold, and the residual connection keeps what the query held
itself. So L layers connect q to k where there is a path from q to k of at most L attended pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

import islpy as isl

from lattend.errors import NoClosedForm
from lattend.rules.language.expr import Compare, Condition, Name, Truth
from lattend.rules.rule import Rule
from lattend.sets.build import points_of
from lattend.sets.canonical import written
from lattend.sets.intervals import LetterFrame
from lattend.sets.pointset import PointSet, polynomial_of
from lattend.sets.region import Piece, Region
from lattend.sets.space import Space

MOST_COMMON = 8  # layers after which a rule that stops growing at all sizes has stopped

Pairs = TypeVar("Pairs")
Extent = Literal["every", "earlier", "one way", "not all"]


def power(one: Pairs, exponent: int, composed: Callable[[Pairs, Pairs], Pairs]) -> Pairs:
    """Returns `one` composed with itself `exponent` times, by repeated squaring."""
    product: Pairs | None = None
    while True:
        if exponent & 1:
            product = one if product is None else composed(product, one)
        exponent >>= 1
        if not exponent and product is not None:
            return product
        one = composed(one, one)


def least_power(
    none: Pairs,
    one: Pairs,
    composed: Callable[[Pairs, Pairs], Pairs],
    same: Callable[[Pairs, Pairs], bool],
) -> tuple[int, Pairs]:
    """Returns the least exponent from which the powers of `one` no longer change, and that power.

    Squares until one of them stays, then the greatest exponent before it, bit by bit from above.
    """
    if same(none, one):
        return 0, one
    squares = [one]
    while not same(square := composed(squares[-1], squares[-1]), squares[-1]):
        squares.append(square)
    limit = squares.pop()
    if not squares:
        return 1, limit
    before, exponent = squares.pop(), 1 << len(squares)
    for index in reversed(range(len(squares))):
        further = composed(before, squares[index])
        if not same(further, limit):
            before, exponent = further, exponent + (1 << index)
    return exponent + 1, limit


class Relation:
    """The pairs of a rule for self-attention as a relation of positions, which can be composed."""

    def __init__(self, rule: Rule, numbers: Mapping[str, int] | None = None) -> None:
        """Of a rule without heads and numbers; its sizes and parameters are letters but for `numbers`."""
        pairs = PointSet.of_rule(rule)
        points, box = (_at(points, numbers or {}) for points in (pairs.points, pairs.box))
        self.rule, self.axes = rule, rule.axes
        self.pairs = PointSet(pairs.space, points, box, pairs.domain)
        self.box = _relation(box)
        self.none = isl.Map.identity(self.box.get_space()) & self.box  # what no layer connects
        self.attended = _relation(points)
        self.one = (self.attended | self.none).coalesce()

    def condition(self, layers: int) -> Condition:
        """Returns the pairs connected by `layers` layers as a condition, the rule's own if it is equal."""
        connected = power(self.one, layers, _composed)
        if self.attended.is_equal(connected):
            return self.rule.condition
        if self.box.is_subset(connected):
            return Truth(True)
        if len(self.axes) == 1 and self._earlier().is_equal(connected):
            return Compare("<=", Name(self.axes[0].key), Name(self.axes[0].query))
        return written(_points(connected), LetterFrame(self.pairs, self.axes))

    def attends_to(self, condition: Condition) -> bool:
        """Returns whether its pairs are those of this condition at all sizes and parameters."""
        if self.pairs.space.split:
            return False
        return bool(self.pairs.points.is_equal(points_of(condition, self.pairs.space, self.pairs.box)))

    def depth(self) -> tuple[int, isl.Map]:
        """Returns the number of layers that connect everything that is ever connected, and those pairs."""
        return least_power(self.none, self.one, _composed, isl.Map.is_equal)

    def lengths(self) -> isl.Map:
        """Returns the exact least number of layers for each pair ever connected: [q -> k] -> [layers].

        Raises where isl cannot say it exactly for all sizes at once.
        """
        lengths = self._common_lengths()
        if lengths is None:
            paths, exact = self.one.power()
            if not exact:
                paths, exact = (self.attended - self.none).power()
            if not exact:
                raise NoClosedForm("the number of layers has no formula; give every letter a number")
            lengths = paths.reverse().subtract_domain(self.none.wrap())
        return lengths.lexmin().coalesce()

    def _common_lengths(self) -> isl.Map | None:
        """Returns the same if a few layers connect everything, whatever the sizes; otherwise None."""
        reached = self.none
        lengths: isl.Map | None = None
        for layers in range(1, MOST_COMMON + 1):
            further = _composed(reached, self.one)
            new = (further - reached).wrap()
            number = isl.Map.from_domain_and_range(new, isl.Set(f"{{ [{layers}] }}"))
            lengths = number if lengths is None else lengths | number
            if new.is_empty():
                return lengths
            reached = further
        return None

    def connected(self, lengths: isl.Map) -> isl.Map:
        """The pairs that have a length, and each position with itself."""
        return lengths.domain().unwrap() | self.none

    def extent(self, connected: isl.Map) -> Extent:
        """Which part of all pairs these are."""
        if self.box.is_subset(connected):
            return "every"
        if self._earlier().is_equal(connected):
            return "earlier"
        return "one way" if self._apart(connected).is_empty() else "not all"

    def _earlier(self) -> isl.Map:
        return isl.Map.lex_ge(self.box.domain().get_space()) & self.box

    def apart(self, connected: isl.Map) -> dict[str, int]:
        """The first two positions that are connected in neither direction, with the sizes."""
        points, space = self._apart(connected), self.pairs.space
        unconnected = PointSet(space, points, self.pairs.box, self.pairs.domain)
        if not space.split:
            return unconnected.least([*space.parameters, *space.dims])
        point = points.sample_point()
        values = {
            atom: int(str(point.get_coordinate_val(*points.get_space().get_var_dict()[name])))
            for name, atom in space.atoms.items()
        }
        return Region(Space((*space.parameters, *space.dims), (), space.split), points).named(values)

    def _apart(self, connected: isl.Map) -> isl.Set:
        back = _points(connected.reverse())
        for dim in range(back.dim(isl.dim_type.set)):  # under the names of queries and keys again
            name = str(self.pairs.points.get_dim_name(isl.dim_type.set, dim))
            back = back.set_dim_name(isl.dim_type.set, dim, name)
        return self.pairs.box - _points(connected) - back

    def most(self, lengths: isl.Map) -> list[Piece]:
        """The greatest length, in the sizes and parameters."""
        return _pieces(lengths.range().lexmax_pw_multi_aff(), self.pairs.domain.space)

    def each(self, lengths: isl.Map) -> list[Piece]:
        """The length of each pair, in its position too."""
        space = self.pairs.space
        names = [name for name, _ in space.coordinates(space.dims)]
        points = lengths.wrap().flatten()
        points = points.move_dims(
            isl.dim_type.param, points.dim(isl.dim_type.param), isl.dim_type.set, 0, len(names)
        )
        for dim, name in enumerate(names, points.dim(isl.dim_type.param) - len(names)):
            points = points.set_dim_name(isl.dim_type.param, dim, name)
        return _pieces(points.lexmin_pw_multi_aff(), Space((*space.parameters, *space.dims), (), space.split))


def _pieces(function: isl.PwMultiAff, space: Space) -> list[Piece]:
    pieces: list[Piece] = []

    def note(where: isl.Set, values: isl.MultiAff) -> None:
        pieces.append(Piece(Region(space, where.params()), polynomial_of(values.get_aff(0), space.atoms)))

    function.foreach_piece(note)
    return pieces


def _relation(points: isl.Set) -> isl.Map:
    """A set of pairs (q, k) as a relation q -> k."""
    half = points.dim(isl.dim_type.set) // 2
    return isl.Map.from_range(points).move_dims(isl.dim_type.in_, 0, isl.dim_type.out, 0, half)


def _points(relation: isl.Map) -> isl.Set:
    half = relation.dim(isl.dim_type.in_)
    return relation.move_dims(isl.dim_type.out, 0, isl.dim_type.in_, 0, half).range().coalesce()


def _at(points: isl.Set, numbers: Mapping[str, int]) -> isl.Set:
    for name, value in numbers.items():
        points = points.fix_val(*points.get_space().get_var_dict()[f"v_{name}"], isl.Val(str(value)))
    return points


def _composed(one: isl.Map, other: isl.Map) -> isl.Map:
    return one.apply_range(other).coalesce()
