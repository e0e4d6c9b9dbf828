"""The signs of the eigenvalues of symmetric matrices, counted exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sympy.polys.domains.domain import Domain
from sympy.polys.matrices import DomainMatrix

from lattend.study.exact.sign import changes, sign


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

    >>> import sympy
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
