"""Paths: which tokens a layer looks at, and how many layers it takes from one position to any other.

Stacked, layers let position k be heard at q after as many of them as there are steps from k to q. A band of t
previous positions takes ⌈(n - 1)/t⌉ from the first to the last; windows that never overlap let nothing pass.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lattend.cost.amount import ONE, Amount
from lattend.cost.points import Sizes, at_least, put
from lattend.cost.sizes import number_of
from lattend.counts.closed import Closed
from lattend.counts.polynomial import Polynomial
from lattend.counts.simplify import Piece
from lattend.errors import LattendError
from lattend.rules.language import expr
from lattend.rules.language.parser import parse
from lattend.rules.reader import rule
from lattend.rules.rule import Rule
from lattend.sets import Linear, Quotient, Space, region_of

MOST_WALKED = 128  # positions of a rule that is followed step by step


def looks_across(given: Rule) -> bool:
    """Whether some query looks at a key other than its own: read off the marked squares."""
    if expr.arrays(given.condition) or len(given.axes) != 1 or "m" in given.sizes:
        return True
    return not (given - rule("q == k")).same_as(rule("q < 0"))


def path_of(given: Rule, sizes: Sizes) -> Amount | None:
    """How many layers the longest way between two positions takes; None where it is not known.

    In closed form for full and causal attention and for bands; step by step for other rules at small
    numbers. None too where two positions never meet, in either direction.
    """
    if expr.arrays(given.condition) or len(given.axes) != 1 or "m" in given.sizes:
        return None
    try:
        reach = _reach(given.text, tuple(given.parameters))
        if reach is not None:
            return _band(reach, sizes)
        return _walked(given, sizes)
    except LattendError:
        return None


def conv_path(
    rows: Polynomial, cols: Polynomial, kernel: tuple[int, int], dilation: tuple[int, int] = (1, 1)
) -> Amount | None:
    """How many centred convolutions of stride 1 it takes from one pixel to the farthest.

    ⌈(rows - 1)/r⌉ or ⌈(cols - 1)/r⌉, whichever is more, where r = dilation · ⌊kernel/2⌋ is how far one
    looks. None where the kernel has no middle, or, dilated, leaves pixels out for ever.
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


def longest_walk(mask: NDArray[np.bool_]) -> int | None:
    """The most layers between two positions that ever meet, along the marked squares of a mask.

    None where two positions meet in neither direction, however many layers there are.
    """
    n = len(mask)
    step = mask | np.eye(n, dtype=bool)
    seen, longest, layers = np.eye(n, dtype=bool), 0, 0
    while True:
        layers += 1
        more = (step.astype(np.float32) @ seen.astype(np.float32)) > 0
        if (more == seen).all():
            return longest if (seen | seen.T).all() else None
        seen, longest = more, layers


@lru_cache(maxsize=256)
def _reach(text: str, parameters: tuple[str, ...]) -> str | int | None:
    """What a band looks back, or to both sides: a parameter, a number, or 0 where one layer sees all."""
    bare = rule(text)
    if any(bare.same_as(rule(whole)) for whole in ("q >= 0", "k <= q")):
        return 0
    numbers = [int(number) for number in dict.fromkeys(re.findall(r"\b[0-9]{1,9}\b", text))]
    tried: list[str | int] = [*parameters, *numbers, *(number - 1 for number in numbers if number > 1)]
    for reach in tried:
        for shape in ("k <= q and q - k <= {}", "abs(q - k) <= {}", "q <= k and k - q <= {}"):
            if reach != 0 and bare.same_as(rule(shape.format(reach))):
                return reach
    return None


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
    return put(_layers(), {"n": sizes["n"], "t": how_far}, at_least(("n", "t"), 1))


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
    found = Polynomial.atom(Quotient(Linear(((name, 1),), reach - 2), reach))
    return Amount(((None, found),), at_least((str(name),), 1))


@lru_cache(maxsize=1)
def _layers() -> Closed:
    """⌈(n - 1)/t⌉ in N = n // t and r = n % t: N + 1 where r is 2 or more, else N, and n - 1 where t is 1."""
    space = Space(("n", "t"), (), {"n": "t"})
    whole = Polynomial.atom(Quotient(Linear((("n", 1),)), "t"))
    one = Polynomial.constant(1)
    cases = {
        "n % t >= 2": whole + one,
        "n % t <= 1 and t >= 2": whole,
        "t == 1": whole - one,
    }
    domain = region_of(parse("n >= 1 and t >= 1"), space).aligned(space)
    pieces = [Piece(region_of(parse(c), space).aligned(space) & domain, f) for c, f in cases.items()]
    return Closed(space, domain, pieces)


def _walked(given: Rule, sizes: Sizes) -> Amount | None:
    """Any rule at small numbers: from layer to layer over its squares."""
    known = {name: number_of(sizes[name]) for name in given.free}
    numbers = {name: number for name, number in known.items() if number is not None}
    if len(numbers) < len(known) or given.has_heads or not 0 < numbers.get("n", 0) <= MOST_WALKED:
        return None
    found = longest_walk(np.asarray(given.at(**numbers).mask(), bool))
    return None if found is None else Amount.number(found)
