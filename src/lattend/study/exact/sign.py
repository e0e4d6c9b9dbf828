"""Signs, zeros and limits of exact expressions, decided by algebra: what is close to 0 is not taken for 0."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import lcm, prod
from typing import Any, NamedTuple

import sympy
from sympy.core.evalf import PrecisionExhausted
from sympy.polys.domains.domain import Domain
from sympy.polys.fields import FracField
from sympy.polys.matrices import DomainMatrix

from lattend.errors import DomainError

FIRST_DIGITS = 40  # of a number that is known not to be 0
DIGITS = 1000  # beyond these a number that is not 0 is not told from 0
LARGEST_DEGREE = 64  # of an algebraic number that is proved to be 0
LONGEST = 200  # operations in a formula that is simplified


def sign_of(number: Any) -> int:
    """-1, 0 or 1; an error where neither digits nor algebra decide.

    >>> sign_of(sympy.sqrt(2) - 1), sign_of(sympy.sqrt(5 + 2 * sympy.sqrt(6)) - sympy.sqrt(2) - sympy.sqrt(3))
    (1, 0)
    """
    value = sympy.sympify(number)
    try:
        near = value.evalf(5, maxn=DIGITS, strict=True)
    except PrecisionExhausted:
        near = sympy.Integer(0)
    if not near.is_real:
        raise DomainError(f"{value!s:.60} is not a real number")
    if near == 0 and not _vanishes(value):
        raise DomainError(f"whether {value!s:.60} is 0 or only close to it could not be decided")
    return int(sympy.sign(near))


def sign(value: Any, domain: Domain) -> int:
    """The sign of a number of QQ or of a real number field; 0 is decided exactly."""
    if value == domain.zero:
        return 0
    if domain.is_QQ:
        return 1 if value > 0 else -1
    expression = domain.to_sympy(value)
    digits = FIRST_DIGITS
    while True:  # a number that is not 0 shows its sign once there are enough digits
        near = expression.evalf(digits, maxn=100 * digits)
        if abs(near) > sympy.Float(10) ** (-digits // 2):
            return 1 if near > 0 else -1
        digits *= 2


def changes(signs: Sequence[int]) -> int:
    """How often the sign changes, zeros left out."""
    kept = [s for s in signs if s]
    return sum(a != b for a, b in pairwise(kept))


def _vanishes(value: Any) -> bool:
    """Whether a number of a thousand zeros is 0: by its minimal polynomial, else by simplifying."""
    degree = prod(int(root.exp.q) for root in value.atoms(sympy.Pow) if root.exp.is_Rational)
    if value.is_algebraic and degree <= LARGEST_DEGREE:
        x = sympy.Symbol("x")
        return sympy.minimal_polynomial(value, x) == x
    return value.count_ops() <= LONGEST and sympy.simplify(value) == 0


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


def is_zero(value: Any) -> bool:
    """Whether the expression is 0 for all values of its symbols.

    >>> is_zero(sympy.log(6) - sympy.log(2) - sympy.log(3)), is_zero(sympy.exp(2) - sympy.exp(1) ** 2 - 1)
    (True, False)
    """
    value = sympy.sympify(value)
    if value.is_Rational:
        return bool(value == 0)
    letters, _ = _in_letters(sympy.expand_log(value, force=True, factor=True))
    return bool(_quotient(letters) == 0 if _is_rational(letters) else sympy.simplify(letters.expand()) == 0)


def limit(value: Any, name: str) -> Any:
    """The limit of the expression as the real symbol of this name grows without end.

    >>> limit(1 / (1 + sympy.exp(-sympy.Symbol("a", real=True))), "a")
    1
    """
    symbol = sympy.Symbol(name, real=True)
    letters, powers = _in_letters(sympy.sympify(value))
    if letters.free_symbols != {powers.get(symbol)} or not _is_rational(letters):
        return sympy.limit(value, symbol, sympy.oo)
    quotient = _quotient(letters)
    above, below = quotient.numer, quotient.denom
    leading = sympy.QQ.to_sympy(above.LC / below.LC)
    if above.degree() > below.degree():
        return sympy.oo * leading
    return leading if above.degree() == below.degree() else sympy.Integer(0)


def _in_letters(value: Any) -> tuple[Any, dict[Any, Any]]:
    """The expression with letters for exponentials and logarithms, and the letter of each exponent."""
    exponentials = value.atoms(sympy.exp) | (value.atoms(sympy.E.func) & {sympy.E})
    exponents = {one: one.as_base_exp()[1].expand().as_coefficients_dict() for one in exponentials}
    units: dict[Any, int] = {}
    for exponent in exponents.values():
        for part, many in exponent.items():
            units[part] = lcm(units.get(part, 1), int(many.q))
    letters = {part: sympy.Dummy(f"e{index}", positive=True) for index, part in enumerate(units)}
    new = {
        one: sympy.Mul(*(letters[part] ** (many * units[part]) for part, many in exponent.items()))
        for one, exponent in exponents.items()
    }
    new |= {one: sympy.Dummy(str(one)) for one in value.atoms(sympy.log)}
    return value.xreplace(new), letters


def _is_rational(value: Any) -> bool:
    """Whether this is a quotient of polynomials whose coefficients are fractions, without roots."""
    roots = any(not power.exp.is_Integer for power in value.atoms(sympy.Pow))
    return not roots and bool(value.is_rational_function())


def _quotient(value: Any) -> Any:
    """The expression as a quotient of two polynomials without a common factor."""
    symbols = sorted(value.free_symbols, key=str)
    return FracField(symbols or ["x"], sympy.QQ).from_expr(value)
