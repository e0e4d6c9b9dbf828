"""Deciding whether a polynomial is 0 on a region: by algebra, never by sampling.

On a polyhedron, substitute the equalities that hold there. If the polynomial is now 0, it is 0 on all of it.
Otherwise look for a direction in which the polyhedron is bounded and decide slice by slice; if there is none,
its points are dense and a polynomial that is not 0 cannot vanish on them.
"""

from __future__ import annotations

from fractions import Fraction

from lattend.errors import NoClosedForm
from lattend.rules.language.linear import Atom, Linear
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Polyhedron, Region

MAX_SLICES = 5_000


def vanishes(polynomial: Polynomial, region: Region) -> bool:
    """Whether `polynomial` is 0 at every point of `region`."""
    if polynomial.is_zero:
        return True
    sample = region.sample()
    if sample is None:
        return True
    if polynomial.value(sample) != 0:
        return False
    if polynomial.substituted(solved(region.equalities())).is_zero:
        return True
    return all(vanishes_on(polynomial, polyhedron) for polyhedron in region.polyhedra(polynomial.atoms))


def vanishes_on(polynomial: Polynomial, polyhedron: Polyhedron) -> bool:
    """Whether `polynomial` is 0 at every point of `polyhedron`."""
    if polynomial.is_zero or polyhedron.is_empty():
        return True
    polynomial = polynomial.substituted(solved(polyhedron.equalities()))
    if polynomial.is_zero:
        return True
    if polynomial.is_constant:
        return False
    bounded = polyhedron.bounded()
    if not bounded:
        return False
    form, low, high = bounded[0]
    if high - low > MAX_SLICES:
        raise NoClosedForm(f"deciding this takes {high - low:,} cases of {form}, more than {MAX_SLICES:,}")
    return all(vanishes_on(polynomial, polyhedron.sliced(form, value)) for value in range(low, high + 1))


def solved(equalities: list[Linear]) -> dict[Atom, Polynomial]:
    """Each equality solved for one atom, the solutions free of each other's atoms.

    >>> solved([Linear.of([("t", 1), ("n", -1)])])["t"] == Polynomial.atom("n")
    True
    """
    solution: dict[Atom, Polynomial] = {}
    for equality in equalities:
        form = Polynomial.linear(equality).substituted(solution)
        if form.is_constant:
            continue
        # Prefer to eliminate a quotient, then the last name: formulas stay in n
        atom = max(form.atoms, key=lambda a: (not isinstance(a, str), str(a) != "n", str(a)))
        coefficient = form.terms[((atom, 1),)]
        rest = Polynomial({m: c for m, c in form.terms.items() if m != ((atom, 1),)})
        answer = {atom: rest.times(Fraction(-1) / coefficient)}
        solution = {a: p.substituted(answer) for a, p in solution.items()} | answer
    return solution
