"""Entries: how many numbers of a relative table the attended pairs look up."""

from __future__ import annotations

from math import prod

import numpy as np

from lattend.cost.amount import Amount
from lattend.cost.pairs import MOST_MASK, AttendedPairs
from lattend.cost.points import defined, known_numbers, points, with_parameters
from lattend.cost.statement import Columns
from lattend.errors import DomainError, TooLarge
from lattend.rules.language import expr
from lattend.rules.rule import Rule


def entries_of(pairs: AttendedPairs, radius: tuple[int, ...] | None) -> Amount:
    """The entries of one head's table: one for each shift k - q, or 2r + 1 an axis."""
    return Amount.of(pairs.shifts) if radius is None else Amount.number(prod(2 * r + 1 for r in radius))


def used_entries(pairs: AttendedPairs, radius: tuple[int, ...] | None) -> Columns:
    """The entries that pairs read, in one head, or in all of them where heads differ.

    Without a radius there is one for each shift k - q; with one, shifts beyond it share those at the end.
    """
    rule, sizes = pairs.rule, pairs.sizes
    if radius is None and not pairs.per_head:
        return pairs.used_shifts()
    if radius is not None and len(radius) != len(rule.axes):
        many = len(rule.axes)
        raise DomainError(
            f'radius has one number an axis of the rule "{rule.text}", {many} in all, not {radius}'
        )
    every = entries_of(pairs, radius)
    every = every * Amount.of(sizes["heads"]) if pairs.per_head else every
    known = known_numbers(rule, sizes)
    if expr.arrays(rule.condition) and len(known) == len(rule.free):
        return Columns.of(Amount.number(_from_mask(rule.at(**known), radius)), every)
    bare = with_parameters(rule, known)
    said, onto = [expr.text(bare.condition)], list[str]()
    for place, axis in enumerate(bare.axes):
        away, entry = f"{axis.key} - {axis.query}", f"entry{place}"
        if radius is None:
            said.append(f"{entry} == {away} + {axis.queries} - 1")
        else:
            said.append(f"{entry} == min(max({away} + {radius[place]}, 0), {2 * radius[place]})")
        said += [f"{axis.query} < {axis.queries}", f"{axis.key} < {axis.keys}"]
        onto.append(entry)
    if pairs.per_head:
        said.append("head < heads")
        onto.append("head")
    condition = " and ".join(f"({part})" for part in said)
    used = points(condition, sizes, tuple(onto), expr.text(defined(bare)), rule.budget)
    return Columns.of(used, every)


def _from_mask(bound: Rule, radius: tuple[int, ...] | None) -> int:
    """The same from the pairs of a rule that looks up data."""
    if bound.dense > MOST_MASK:
        raise TooLarge(f"entries are looked up in a mask of at most {MOST_MASK:,} pairs")
    places, axes = np.argwhere(bound.mask()), len(bound.axes)
    shifts = places[:, -axes:] - places[:, -2 * axes : -axes]
    if radius is not None:
        shifts = np.clip(shifts, -np.array(radius), radius)
    return len(np.unique(np.hstack([places[:, : -2 * axes], shifts]), axis=0))
