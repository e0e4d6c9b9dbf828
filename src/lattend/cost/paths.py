"""Paths: whether a layer mixes tokens, and how many layers it takes from one position to any other.

Stacked, layers carry position k to q in as many of them as there are steps from k to q. A band of t
previous positions takes ⌈(n - 1)/t⌉ from the first to the last; windows that never overlap carry nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from lattend.budget import Budget
from lattend.cost.amount import ONE, Amount
from lattend.cost.points import Sizes, at_least, known_numbers, substitute, with_parameters
from lattend.cost.sizes import number_of
from lattend.counts.field import BANDS, band_layers, depth_of_mask
from lattend.errors import DeadlineError, LattendError
from lattend.rules.axes import HEADS
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.linear import Linear, Quotient
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.reader import rule
from lattend.rules.rule import Rule
from lattend.sets import PointSet
from lattend.sets.compare import difference
from lattend.sets.guard import remembered

MOST_TRAVERSED = 128  # positions of a rule that is traversed step by step
SMALL, MOST_SMALL = 7, 64  # positions, and numbers of parameters, of masks that tell rules apart


@lru_cache(maxsize=256)
def mixes_tokens(given: Rule) -> bool:
    """Whether some query attends to a key other than its own; one such pair at small numbers is a proof."""
    if expr.arrays(given.condition) or len(given.axes) != 1 or "m" in given.sizes:
        return True
    bare, own = replace(given.baked(), values={}), rule("q == k")
    if any((bare.mask(**at) & ~own.mask(n=SMALL)).any() for at in _small_values(bare)):
        return True
    return difference(bare - own, rule("q < 0"), given.budget) is not None


@lru_cache(maxsize=256)
def attends_ahead(given: Rule) -> bool:
    """Whether some query attends to a later key: then no token can be decoded before those after it."""
    if expr.arrays(given.condition) or len(given.axes) != 1 or "m" in given.sizes:
        return False
    bare = replace(given.baked(), values={})
    if any(np.triu(bare.mask(**at), 1).any() for at in _small_values(bare)):
        return True
    return difference(bare - rule("k <= q"), rule("q < 0"), given.budget) is not None


def path_of(rule: Rule, sizes: Sizes, shared: Budget | None = None) -> Amount | None:
    """How many layers the longest path between two positions takes; None where no formula for it is known.

    Step by step at small numbers; otherwise in closed form for full and causal attention and for bands. None
    too where two positions never meet, in either direction. Raises where a deadline passes.
    """
    if expr.arrays(rule.condition) or len(rule.axes) != 1 or "m" in rule.sizes:
        return None
    known = known_numbers(rule, sizes)
    try:
        many = number_of(sizes["n"]) or MOST_TRAVERSED + 1
        if len(known) == len(rule.free) and not rule.has_heads and many <= MOST_TRAVERSED:
            return _traversed(rule.at(**known))
        bare = replace(with_parameters(rule, known), values={})
        reach = remembered(_reach, bare, budget=rule.budget.out_of(shared))
        return None if reach is None else _band(reach, sizes)
    except DeadlineError as reason:
        raise DeadlineError(f'rule "{rule.text}": its longest path is not known: {reason}') from None
    except LattendError:
        return None


def conv_path(
    rows: Polynomial, cols: Polynomial, kernel: tuple[int, int], dilation: tuple[int, int] = (1, 1)
) -> Amount | None:
    """How many centred convolutions of stride 1 it takes from one pixel to the farthest.

    ⌈(rows - 1)/r⌉ or ⌈(cols - 1)/r⌉, whichever is more, where r = dilation · ⌊kernel/2⌋ is the span of
    one. None where the kernel has no middle, or, dilated, leaves pixels out for ever.
    """
    reaches = [by * (taps // 2) for by, taps in zip(dilation, kernel, strict=True)]
    if any(taps % 2 == 0 for taps in kernel) or any(by > 1 for by in dilation):
        return None
    needed = [
        (size, reach) for size, reach in zip((rows, cols), reaches, strict=True) if number_of(size) != 1
    ]
    if not needed:
        return Amount.number(0)
    if any(reach == 0 for _, reach in needed):
        return None
    numbers = [number_of(size) for size, _ in needed]
    if all(number is not None for number in numbers):
        ways = [-(-(n - 1) // r) for n, (_, r) in zip(numbers, needed, strict=True) if n is not None]
        return Amount.number(max(ways))
    (first, reach), *others = needed
    if any(size != first or other != reach for size, other in others):
        return None
    return _rounded(first, reach)


def longest_path(mask: NDArray[np.bool_]) -> int | None:
    """The most layers between two positions that ever meet, along the attended pairs of a mask.

    None where two positions meet in neither direction, however many layers there are.
    """
    layers, connected = depth_of_mask(mask)
    return layers if (connected | connected.T).all() else None


def _reach(given: Rule) -> str | int | None:
    """The span of a band: a parameter, a number, or 0 where one layer reaches everything."""
    if any(_is(given, rule(text)) for text in ("q >= 0", "k <= q")):
        return 0
    for reach in _farthest(given):
        if any(_is(given, rule(shape.format(reach))) for shape in BANDS):
            return reach
    return None


def _farthest(rule: Rule) -> list[str | int]:
    """The greatest distances between query and key that are a number or a parameter: read off the set."""
    pairs = PointSet.of_rule(rule)
    distances: list[str | int] = []
    for piece in (*pairs.greatest("q", "k"), *pairs.greatest("k", "q")):
        farthest = piece.formula
        number = number_of(farthest) if farthest.is_constant else None
        distances += [number] if number else []
        distances += [name for name in rule.parameters if farthest == Polynomial.atom(name)]
    return list(dict.fromkeys(distances))


def _is(rule: Rule, other: Rule) -> bool:
    """Whether both attend to the same pairs; where small masks differ, nothing needs a proof."""
    if set(other.parameters) <= set(rule.parameters):
        for values in _small_values(rule):
            own = {name: value for name, value in values.items() if name in other.free}
            if not rule.has_heads and (rule.mask(**values) != other.mask(**own)).any():
                return False
    return difference(rule, other, rule.budget) is None


def _small_values(rule: Rule) -> Iterator[dict[str, int]]:
    """Some small numbers for all its names, those outside its domain left out."""
    for numbers in islice(product(range(4), repeat=len(rule.parameters)), MOST_SMALL):
        values = {"n": SMALL, **({HEADS: 2} if rule.has_heads else {})}
        values |= dict(zip(rule.parameters, numbers, strict=True))
        if evaluate(rule.domain, values, {}):
            yield values


def _band(reach: str | int, sizes: Sizes) -> Amount | None:
    """⌈(n - 1)/t⌉, and 1 where the reach is everything."""
    if reach == 0:
        return ONE
    how_far = Polynomial.constant(reach) if isinstance(reach, int) else sizes[reach]
    number, many = number_of(how_far), number_of(sizes["n"])
    if number == 0 or (number is None and many is not None):
        return None
    if number is not None:
        return _rounded(sizes["n"], number)
    return substitute(band_layers(), {"n": sizes["n"], "t": how_far}, at_least(("n", "t"), 1))


def _rounded(size: Polynomial, reach: int) -> Amount | None:
    """⌈(n - 1)/reach⌉ for a number."""
    number = number_of(size)
    if number is not None:
        return Amount.number(-(-(number - 1) // reach))
    if reach == 1:
        return Amount.of(size - Polynomial.constant(1))
    if len(size.atoms) != 1 or size != Polynomial.atom(size.atoms[0]):
        return None
    name = size.atoms[0]
    rounds = Polynomial.atom(Quotient(Linear(((name, 1),), reach - 2), reach))
    return Amount(((None, rounds),), at_least((str(name),), 1))


def _traversed(bound: Rule) -> Amount | None:
    """Any rule at small numbers: from layer to layer over its pairs."""
    longest = longest_path(np.asarray(bound.mask(), bool))
    return None if longest is None else Amount.number(longest)
