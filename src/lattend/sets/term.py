"""SplitValue: an integer term as functions isl can hold, also when a modulus is symbolic.

With w symbolic, `w * block + offset` is not affine, so a value keeps the two apart: `base` is an
affine function, and `scaled[w]` is an affine function that counts whole w's. Comparing two values
compares blocks first and offsets second; an offset that leaves 0 … w - 1 carries into the blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import islpy as isl

from lattend.sets.space import Space

MAX_CARRY = 12
MAX_CONSTANT = 10_000  # that a symbol may divide


class NeedSplit(Exception):
    """A parameter that is compared with a split position, so it must be split by the same modulus."""

    def __init__(self, name: str, modulus: str) -> None:
        super().__init__(name, modulus)
        self.name, self.modulus = name, modulus


class CannotSplit(Exception):
    """A comparison that stays non-affine after splitting; says why."""


@dataclass(frozen=True)
class SplitValue:
    """`base + sum(w * scaled[w])`."""

    base: isl.PwAff
    scaled: Mapping[str, isl.PwAff]

    def plus(self, other: SplitValue, sign: int = 1) -> SplitValue:
        scaled = dict(self.scaled)
        for modulus, blocks in other.scaled.items():
            term = blocks if sign > 0 else blocks.neg()
            scaled[modulus] = scaled[modulus].add(term) if modulus in scaled else term
        return SplitValue(self.base.add(other.base if sign > 0 else other.base.neg()), scaled)

    def times(self, factor: int) -> SplitValue:
        by = isl.Val(str(factor))
        return SplitValue(
            self.base.scale_val(by), {w: blocks.scale_val(by) for w, blocks in self.scaled.items()}
        )

    def constant(self) -> int | None:
        """Returns the constant that this value is everywhere, or None."""
        return None if self.scaled else constant_of(self.base)


def constant_of(function: isl.PwAff) -> int | None:
    """Returns the constant that a function is everywhere, or None."""
    pieces = function.coalesce().get_pieces()
    if len(pieces) != 1 or not pieces[0][1].is_cst():
        return None
    return int(str(pieces[0][1].get_constant_val()))


class Arithmetic:
    """Operations on values of one space, within a context of known conditions."""

    def __init__(self, space: Space, context: isl.Set) -> None:
        self.space = space
        self.context = context

    def name(self, name: str, moduli: set[str]) -> SplitValue:
        space = self.space
        if name in space.split:
            return SplitValue(
                space.coordinate(f"o_{name}"), {space.split[name]: space.coordinate(f"b_{name}")}
            )
        if name in moduli:
            return SplitValue(space.zero, {name: space.constant(1)})
        return SplitValue(space.coordinate(f"v_{name}"), {})

    def number(self, value: int) -> SplitValue:
        return SplitValue(self.space.zero.add_constant_val(isl.Val(str(value))), {})

    def folded(self, value: SplitValue) -> SplitValue:
        """`value` with every constant number of w's moved into its base."""
        base, scaled = value.base, dict(value.scaled)
        for modulus, blocks in value.scaled.items():
            number = constant_of(blocks)
            if number is not None:
                size = self.space.coordinate(f"v_{modulus}")
                base = base.add(size.scale_val(isl.Val(str(number))))
                del scaled[modulus]
        return SplitValue(base, scaled)

    def at_least_zero(self, value: SplitValue) -> isl.Set:
        """Where `value >= 0`."""
        value = self.folded(value)
        if not value.scaled:
            return value.base.ge_set(self.space.zero)
        modulus = self._only_modulus(value)
        blocks = value.scaled[modulus].add(self.carry(value.base, modulus))
        return blocks.ge_set(self.space.zero)

    def quotient(self, value: SplitValue, modulus: str) -> SplitValue:
        """`value // modulus`."""
        carried = self.carry(value.base, modulus)
        others = {w: blocks for w, blocks in value.scaled.items() if w != modulus}
        if others:
            raise CannotSplit(f"it mixes multiples of {modulus} with multiples of {next(iter(others))}")
        blocks = value.scaled.get(modulus)
        return SplitValue(carried if blocks is None else blocks.add(carried), {})

    def remainder(self, value: SplitValue, modulus: str) -> SplitValue:
        """`value % modulus`."""
        others = [w for w in value.scaled if w != modulus]
        if others:
            raise CannotSplit(f"it mixes multiples of {modulus} with multiples of {others[0]}")
        size = self.space.coordinate(f"v_{modulus}")
        result: isl.PwAff | None = None
        for carry, where in self.carries(value.base, modulus):
            part = value.base.sub(size.scale_val(isl.Val(carry))).intersect_domain(where)
            result = part if result is None else result.union_add(part)
        return SplitValue(self.space.zero if result is None else result, {})

    def quotient_by_number(self, value: SplitValue, divisor: int) -> SplitValue:
        return SplitValue(self._affine(value).scale_down_val(isl.Val(str(divisor))).floor(), {})

    def remainder_by_number(self, value: SplitValue, divisor: int) -> SplitValue:
        return SplitValue(self._affine(value).mod_val(isl.Val(str(divisor))), {})

    def choose(self, where: isl.Set, then: SplitValue, otherwise: SplitValue) -> SplitValue:
        """`then` on `where` and `otherwise` elsewhere."""
        rest = where.complement()

        def pick(a: isl.PwAff, b: isl.PwAff) -> isl.PwAff:
            return a.intersect_domain(where).union_add(b.intersect_domain(rest)).coalesce()

        zero = self.space.zero
        moduli = then.scaled.keys() | otherwise.scaled.keys()
        scaled = {w: pick(then.scaled.get(w, zero), otherwise.scaled.get(w, zero)) for w in sorted(moduli)}
        return SplitValue(pick(then.base, otherwise.base), scaled)

    def carry(self, base: isl.PwAff, modulus: str) -> isl.PwAff:
        """Returns `base // modulus` for a base within a few multiples of w around 0."""
        result: isl.PwAff | None = None
        for carry, where in self.carries(base, modulus):
            part = self.space.constant(carry).intersect_domain(where)
            result = part if result is None else result.union_add(part)
        return self.space.zero if result is None else result

    def carries(self, base: isl.PwAff, modulus: str) -> list[tuple[int, isl.Set]]:
        """Returns each j with the set where `j*w <= base < (j + 1)*w`."""
        size = self.space.coordinate(f"v_{modulus}")

        def at_least(j: int) -> isl.Set:
            return base.ge_set(size.scale_val(isl.Val(j))) & self.context

        number = constant_of(base)
        if number is not None and 0 <= number <= MAX_CONSTANT:  # every quotient of a number is known
            quotients = sorted({0, *(number // by for by in range(1, number + 1))})
            return [(j, at_least(j) - at_least(j + 1)) for j in quotients]
        low = high = 0
        while not (self.context - at_least(low)).is_empty():
            low -= 1
            if low < -MAX_CARRY:
                raise self._too_far(base, modulus)
        while not at_least(high + 1).is_empty():
            high += 1
            if high > MAX_CARRY:
                raise self._too_far(base, modulus)
        steps = [at_least(j) for j in range(low, high + 2)]
        return [(low + i, steps[i] - steps[i + 1]) for i in range(high - low + 1)]

    def _too_far(self, base: isl.PwAff, modulus: str) -> Exception:
        """Which coordinate lets `base` run away from 0: a parameter can be split, a block cannot."""
        space = self.space
        names = [name for name, _ in space.coordinates(space.parameters + space.dims)]
        size = space.coordinate(f"v_{modulus}")
        for isl_name in names:
            kind, dim = space.isl.get_var_dict()[isl_name]
            where = isl.dim_type.in_ if kind == isl.dim_type.set else kind
            if isl_name == f"v_{modulus}" or not base.involves_dims(where, dim, 1):
                continue
            coordinate = space.coordinate(isl_name)
            outside = coordinate.gt_set(size) | coordinate.lt_set(space.zero)
            if (outside & self.context).is_empty():
                continue
            if isl_name.startswith("v_") and kind == isl.dim_type.param:
                return NeedSplit(isl_name[2:], modulus)
            return CannotSplit(f"it adds the block number {space.atoms[isl_name]} to a position")
        return CannotSplit(f"it needs more than {MAX_CARRY} cases of how a constant compares with {modulus}")

    def _only_modulus(self, value: SplitValue) -> str:
        if len(value.scaled) > 1:
            first, second = list(value.scaled)[:2]
            raise CannotSplit(f"it mixes multiples of {first} with multiples of {second}")
        return next(iter(value.scaled))

    def _affine(self, value: SplitValue) -> isl.PwAff:
        """Returns the value as one function, including constant multiples of w."""
        folded = self.folded(value)
        if folded.scaled:
            raise CannotSplit(f"it divides multiples of {next(iter(folded.scaled))} by a number")
        return folded.base
