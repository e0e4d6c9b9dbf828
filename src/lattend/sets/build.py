"""Builds the integer set that a condition describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import islpy as isl

from lattend.errors import NoClosedForm, NotAffineError
from lattend.rules.axes import RESERVED
from lattend.rules.language import expr
from lattend.rules.language.expr import (
    Arith,
    Compare,
    Condition,
    Lookup,
    Name,
    Num,
    Term,
)
from lattend.rules.language.linear import divisor_of, scale_of
from lattend.sets.region import Region
from lattend.sets.space import Space
from lattend.sets.term import Arithmetic, CannotSplit, NeedSplit, SplitValue


@dataclass(frozen=True)
class Described:
    """A set, the box it lies in, its space, and the known conditions on its parameters."""

    space: Space
    points: isl.Set
    box: isl.Set
    context: isl.Set


def moduli_of(condition: Condition, positions: set[str]) -> dict[str, str]:
    """Which modulus each name is divided by, or compared with a multiple of.

    A name divided by two different moduli has no common split: the error names both.
    """
    moduli: dict[str, str] = {}

    def note(term: Term, modulus: str) -> None:
        for name in expr.names(term):
            if name in positions and moduli.setdefault(name, modulus) != modulus:
                raise NoClosedForm(
                    f"{name} is divided by both {moduli[name]} and {modulus}; with two symbolic moduli on "
                    f"one axis there is no closed form. Give one of them a number, as in {modulus}=4"
                )

    for node in expr.walk(condition):
        divisor = divisor_of(node)
        if divisor is not None and isinstance(node, Arith):
            note(node.args[0], divisor)
        if isinstance(node, Compare):
            for part in (*expr.walk(node.left), *expr.walk(node.right)):
                scale = scale_of(part)
                if scale is not None:
                    note(node.left, scale)
                    note(node.right, scale)
    return moduli


def describe(
    condition: Condition,
    *,
    parameters: tuple[str, ...],
    dims: tuple[str, ...],
    bounds: Condition,
    domain: Condition,
    tied: Mapping[str, tuple[str, ...]] | None = None,
    moduli: Mapping[str, str] | None = None,
    source: str | None = None,
) -> Described:
    """The points of `dims` that satisfy `condition` and `bounds`, for parameters within `domain`.

    `tied` lists, for each position and size, the names that must be split along with it; `moduli`
    splits positions that the condition itself may not divide. `source` is the text the spans refer to.
    """
    split: dict[str, str] = {}
    tied = tied or {}
    divided = moduli_of(condition, set(tied))
    for position, modulus in (*divided.items(), *(moduli or {}).items()):
        for name in (position, *tied[position]):
            if split.setdefault(name, modulus) != modulus:
                raise NoClosedForm(
                    f"{name} is split by both {split[name]} and {modulus}; with two symbolic moduli on "
                    f"one axis there is no closed form. Give one of them a number, as in {modulus}=4"
                )
    twice = [modulus for modulus in split.values() if modulus in split]
    if twice:
        raise NoClosedForm(f"{twice[0]} is a modulus and is itself divided by {split[twice[0]]}")
    space = Space(parameters, dims, split)
    while True:
        try:
            context = _Builder(space, space.context, condition, source).set_of(domain) & space.context
            builder = _Builder(space, context, condition, source)
            box = builder.set_of(bounds) & context
            points = builder.set_of(condition) & box
        except NeedSplit as need:
            if need.name in space.split or need.name == need.modulus:
                raise NoClosedForm(f"{need.name} cannot be split by {need.modulus} twice") from None
            if need.name in space.split.values() or need.modulus in space.split:
                raise NoClosedForm(
                    f"{need.name} is a modulus and is itself divided by {need.modulus}"
                ) from None
            space = space.splitting(need.name, need.modulus)
            continue
        return Described(space, points.coalesce(), box, context)


def region_of(condition: Condition, space: Space, source: str | None = None) -> Region:
    """The parameter values of `space` that satisfy `condition`."""
    try:
        points = _Builder(space, space.context, condition, source).set_of(condition) & space.context
    except NeedSplit as need:
        raise NoClosedForm(
            f"{expr.text(condition)} would need {need.name} split by {need.modulus}, which this count is not"
        ) from None
    return Region(space, points.params().coalesce())


def points_of(condition: Condition, space: Space, box: isl.Set) -> isl.Set:
    """The points of `box` that satisfy `condition`, in the coordinates of `space`."""
    try:
        return _Builder(space, box, condition, None).set_of(condition) & box
    except NeedSplit as need:
        raise NoClosedForm(f"{need.name} is not split by {need.modulus} here") from None


class _Builder:
    def __init__(self, space: Space, context: isl.Set, condition: Condition, source: str | None) -> None:
        self.space = space
        self.arithmetic = Arithmetic(space, context)
        self.moduli = set(space.split.values())
        self.condition, self.source = condition, source

    def set_of(self, node: Condition) -> isl.Set:
        """Where `node` holds."""
        universe = self.space.universe
        return expr.without_not(
            node,
            self._compare,
            lambda value: universe if value else universe.complement(),
            isl.Set.intersect,
            isl.Set.union,
        )

    def _compare(self, node: Compare, op: expr.CompareOp) -> isl.Set:
        try:
            gap = self.term(node.left).plus(self.term(node.right), -1)
            above = self.arithmetic.at_least_zero
            less = gap.times(-1)
            one = self.arithmetic.number(1)
            match op:
                case ">=":
                    return above(gap)
                case ">":
                    return above(gap.plus(one, -1))
                case "<=":
                    return above(less)
                case "<":
                    return above(less.plus(one, -1))
                case "==":
                    return above(gap) & above(less)
                case "!=":
                    return above(gap.plus(one, -1)) | above(less.plus(one, -1))
        except CannotSplit as reason:
            raise self._not_affine(node, f"{expr.text(node)} has no closed form: {reason}") from None

    def term(self, node: Term) -> SplitValue:
        """`node` as a value."""
        arithmetic = self.arithmetic
        match node:
            case Num():
                return arithmetic.number(node.value)
            case Name():
                return arithmetic.name(node.name, self.moduli)
            case Lookup():
                raise self._not_affine(node, f"{node.array}[...] is data, so it has no closed form")
            case Arith(op="+", args=(left, right)):
                return self.term(left).plus(self.term(right))
            case Arith(op="-", args=(left, right)):
                return self.term(left).plus(self.term(right), -1)
            case Arith(op="neg", args=(arg,)):
                return self.term(arg).times(-1)
            case Arith(op="*", args=(left, right)):
                return self._product(node, left, right)
            case Arith(op="//" | "%", args=(left, right)):
                return self._division(node, left, right)
            case Arith(op="abs", args=(arg,)):
                value = self.term(arg)
                return arithmetic.choose(arithmetic.at_least_zero(value), value, value.times(-1))
            case Arith(op="min" | "max"):
                values = [self.term(arg) for arg in node.args]
                best = values[0]
                for value in values[1:]:
                    gap = best.plus(value, -1) if node.op == "max" else value.plus(best, -1)
                    best = arithmetic.choose(arithmetic.at_least_zero(gap), best, value)
                return best
            case Arith():
                raise ValueError(f"{node.op} with {len(node.args)} arguments")

    def _product(self, node: Term, left: Term, right: Term) -> SplitValue:
        a, b = self.term(left), self.term(right)
        for value, other in ((a, b), (b, a)):
            number = value.constant()
            if number is not None:
                return other.times(number)
        for factor, other in ((right, a), (left, b)):
            if isinstance(factor, Name) and factor.name in self.moduli and not other.scaled:
                return SplitValue(self.space.zero, {factor.name: other.base})
        raise self._not_affine(
            node,
            f"{expr.term_text(node)} is not affine in {' and '.join(expr.names(node))}, so it has no closed "
            "form. Use + - // % and constant factors",
        )

    def _division(self, node: Arith, left: Term, right: Term) -> SplitValue:
        arithmetic, value = self.arithmetic, self.term(left)
        number = self.term(right).constant() if not isinstance(right, Name) else None
        if number is not None and number >= 1:
            divide = arithmetic.quotient_by_number if node.op == "//" else arithmetic.remainder_by_number
            return divide(value, number)
        if isinstance(right, Name) and right.name not in RESERVED:
            if right.name not in self.moduli:
                raise NeedSplit(next(iter(expr.names(left)), right.name), right.name)
            divide_by = arithmetic.quotient if node.op == "//" else arithmetic.remainder
            return divide_by(value, right.name)
        raise self._not_affine(
            node,
            f"{expr.term_text(node)}: the divisor must be a positive number or a parameter, "
            f"not {expr.term_text(right)}",
        )

    def _not_affine(self, node: Term | Compare, message: str) -> NotAffineError:
        source = self.source
        if source is not None and node.span is not None:
            start, end = node.span
        else:
            source = expr.text(self.condition)
            part = expr.text(node) if isinstance(node, Compare) else expr.term_text(node)
            start = max(0, source.find(part))
            end = start + len(part)
        return NotAffineError(f'rule "{source}": {message}.', source, start, end, reason=f"{message}.")
