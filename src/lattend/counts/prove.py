"""Deciding whether a polynomial is 0 on a region, everywhere or nowhere: by algebra, never by sampling.

On a polyhedron, substitute the equalities that hold there. If the polynomial is now 0, it is 0 on all of it.
Otherwise look for a direction in which the polyhedron is bounded and decide slice by slice; if there is none,
its points are dense and a polynomial that is not 0 cannot vanish on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from lattend.errors import NoClosedForm
from lattend.rules.language.linear import Atom, Linear, Quotient
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Bound, Polyhedron, Region

MAX_SLICES = 5_000
MODULI = (2, 3, 4, 5, 8, 9)
MAX_RESIDUES = 1_000
MAX_FACTORED = 30  # terms of a polynomial that is known to be irreducible


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


def never_zero(factor: Polynomial, region: Region) -> bool:
    """Returns whether an irreducible nonlinear polynomial is provably never 0 on `region`.

    In one name it has no rational root. Otherwise it may have one sign there, or be 0 modulo
    no small number.
    """
    if len(factor.atoms) == 1 and len(factor.terms) <= MAX_FACTORED:
        return True
    return keeps_sign(factor, region) or _has_no_residue(factor)


def keeps_sign(polynomial: Polynomial, region: Region) -> bool:
    """Whether a polynomial is seen to be positive, or negative, at all points of `region`."""
    return any(_has_one_sign(form) for form in _from_zero(polynomial, region))


def _from_zero(polynomial: Polynomial, region: Region) -> Iterator[Polynomial]:
    """The polynomial in atoms that are at least 0 on the region, written from its limits: n = t + s."""
    least = {atom: least for atom in polynomial.atoms if (least := _least(atom, region)) is not None}
    if len(least) < len(polynomial.atoms):
        return
    yield polynomial.substituted({a: Polynomial.atom(a) + Polynomial.constant(v) for a, v in least.items()})
    for bound in region.clauses[0] if len(region.clauses) == 1 else []:
        names = dict(bound.form.terms)
        if bound.equal or sorted(names.values()) != [-1, 1] or not names.keys() <= least.keys():
            continue
        high, low = (next(atom for atom, c in names.items() if c == sign) for sign in (1, -1))
        start = Polynomial.atom(low) + Polynomial.constant(least[low])
        above = (
            start + Polynomial.atom(high) - Polynomial.constant(bound.form.constant)
        )  # high >= low - constant
        rest = {
            a: Polynomial.atom(a) + Polynomial.constant(v) for a, v in least.items() if a not in (high, low)
        }
        yield polynomial.substituted({**rest, low: start, high: above})


def _least(atom: Atom, region: Region) -> int | None:
    """Returns 1 or 0 if it is a lower bound of the atom on the region; otherwise None."""
    for value in (1, 0):
        if region.is_subset(region.where(Bound(Linear(((atom, 1),), -value), False))):
            return value
    return None


def _has_one_sign(polynomial: Polynomial) -> bool:
    """Returns whether all coefficients and the constant have one sign, so that it is not 0 for atoms >= 0."""
    signs = {coefficient > 0 for coefficient in polynomial.terms.values()}
    return len(signs) == 1 and () in polynomial.terms


def _has_no_residue(polynomial: Polynomial) -> bool:
    """Returns whether an integer polynomial is never 0 modulo some small number."""
    if any(c.denominator != 1 for c in polynomial.terms.values()):
        return False
    names = [f"x{i}" for i in range(len(polynomial.atoms))]
    plain = polynomial.substituted(
        {atom: Polynomial.atom(name) for atom, name in zip(polynomial.atoms, names, strict=True)}
    )
    for modulus in MODULI:
        if modulus ** len(names) <= MAX_RESIDUES:
            residues = product(range(modulus), repeat=len(names))
            values = (plain.value(dict(zip(names, residue, strict=True))) for residue in residues)
            if all(value % modulus for value in values):
                return True
    return False


def residues(value: Polynomial, divisor: int, region: Region) -> list[tuple[int, Region]]:
    """Returns each remainder of an integer polynomial and its region, from those by prime powers."""
    residues, product_so_far = [(0, region)], 1
    for power in _prime_powers(divisor):
        together = product_so_far * power
        residues = [
            (next(x for x in range(before, together, product_so_far) if x % power == rest), inner_region)
            for before, outer_region in residues
            for rest, inner_region in _residues_of_power(value, power, outer_region)
        ]
        product_so_far = together
    return residues


def _prime_powers(number: int) -> list[int]:
    """The powers of primes that a number is the product of: 12 is 4 times 3."""
    powers: list[int] = []
    prime = 2
    while number > 1:
        power = 1
        while number % prime == 0:
            number, power = number // prime, power * prime
        powers += [power] if power > 1 else []
        prime = prime + 1 if prime * prime <= number else max(number, 2)
    return powers


def _residues_of_power(value: Polynomial, power: int, region: Region) -> list[tuple[int, Region]]:
    """Returns the same for a power of a prime, from the remainders of the polynomial's atoms."""
    short = Polynomial({powers: c % power for powers, c in value.terms.items() if c % power})
    if power ** len(short.atoms) > MAX_RESIDUES:
        raise NoClosedForm(f"its division by {power} falls into too many cases")
    names = {atom: f"x{index}" for index, atom in enumerate(short.atoms)}
    plain = short.substituted({atom: Polynomial.atom(name) for atom, name in names.items()})
    combinations = [*product(range(power), repeat=len(names))]
    rests = [plain.value(dict(zip(names.values(), rest, strict=True))) % power for rest in combinations]
    if len({*rests}) == 1:
        return [(rests[0], region)]
    regions: dict[int, Region] = {}
    for rest, combination in zip(rests, combinations, strict=True):
        part = region
        for atom, number in zip(names, combination, strict=True):
            quotient = Quotient(Linear(((atom, 1),)), power)
            part = part.where(Bound(Linear.of([(atom, 1), (quotient, -power)], -number), True))
        regions[rest] = regions[rest] | part if rest in regions else part
    return [(rest, part) for rest, part in regions.items() if not part.is_empty()]


def solved(equalities: list[Linear]) -> dict[Atom, Polynomial]:
    """Returns each equality solved for one atom; no solution contains another solved atom.

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
