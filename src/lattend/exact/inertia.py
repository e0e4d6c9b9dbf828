"""The signs of exact numbers, and of the eigenvalues of symmetric matrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import sympy
from sympy.polys.domains.domain import Domain
from sympy.polys.matrices import DomainMatrix

DIGITS = 40


class Inertia(NamedTuple):
    """How many eigenvalues lie above, below and at 0."""

    above: int
    below: int
    zero: int

    @property
    def positive(self) -> bool:
        return not (self.below or self.zero)


def inertia(rows: Sequence[Sequence[Any]], domain: Domain) -> Inertia:
    """The signs of the eigenvalues of a symmetric matrix over QQ or a real number field.

    All are real, so Descartes' rule is exact: as many are above 0 as the characteristic polynomial's
    coefficients change sign.

    >>> inertia([[sympy.QQ(0), sympy.QQ(1)], [sympy.QQ(1), sympy.QQ(0)]], sympy.QQ)
    Inertia(above=1, below=1, zero=0)
    """
    size = len(rows)
    if size == 0:
        return Inertia(0, 0, 0)
    coefficients = DomainMatrix([list(row) for row in rows], (size, size), domain).charpoly()
    signs = [sign(c, domain) for c in coefficients]
    zero = next(at for at, s in enumerate(reversed(signs)) if s)
    above = changes(signs)
    return Inertia(above, size - above - zero, zero)


def sign(value: Any, domain: Domain) -> int:
    """The sign of a number of QQ or of a real number field; 0 is decided exactly."""
    if value == domain.zero:
        return 0
    if domain.is_QQ:
        return 1 if value > 0 else -1
    expression = domain.to_sympy(value)
    digits = DIGITS
    while True:  # a number that is not 0 shows its sign once there are enough digits
        near = expression.evalf(digits, maxn=100 * digits)
        if abs(near) > sympy.Float(10) ** (-digits // 2):
            return 1 if near > 0 else -1
        digits *= 2


def changes(signs: Sequence[int]) -> int:
    """How often the sign changes, zeros left out."""
    kept = [s for s in signs if s]
    return sum(a != b for a, b in pairwise(kept))
