"""Whether symmetric matrices are definite: the signs of their eigenvalues, counted exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sympy.polys.domains.domain import Domain
from sympy.polys.matrices import DomainMatrix

from lattend.exact.disc import inertia


@dataclass(frozen=True)
class Signs:
    """How many eigenvalues lie above, below and at 0."""

    above: int
    below: int
    zero: int

    @property
    def positive(self) -> bool:
        return not (self.below or self.zero)


def signs(rows: Sequence[Sequence[Any]], domain: Domain) -> Signs:
    """The signs of the eigenvalues of a symmetric matrix over a real number field."""
    return Signs(*inertia(rows, domain))


def schur_complement(rows: Sequence[Sequence[Any]], first: int, domain: Domain) -> Signs:
    """The signs of A - B C⁻¹ B' for a matrix ((A, B), (B', C)) with C invertible and A `first` wide."""
    size = len(rows)
    whole = DomainMatrix([list(row) for row in rows], (size, size), domain)
    head, tail = range(first), range(first, size)
    A, B, C = whole.extract(head, head), whole.extract(head, tail), whole.extract(tail, tail)
    return signs((A - B * C.inv() * B.transpose()).to_list(), domain)
