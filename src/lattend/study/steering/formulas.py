"""The weights of orthonormal keys as formulas in the sharpness β and the number of keys m."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from lattend.errors import DomainError, NamingError
from lattend.report.report import Printed, Report
from lattend.report.table import Facts, Table
from lattend.study.exact.numbers import exact
from lattend.study.exact.shares import letter, share_latex, share_numbers, share_text, shares, total_of
from lattend.study.exact.writing import format_exact
from lattend.study.steering.linear import softmax
from lattend.study.steering.reports import format_keys, six_digits
from lattend.wording import many

CHECKED_AT = (0.5, 3.0, 8.0)  # sharpnesses
MOST_ROWS = 12
OFF = 1e-12  # that a formula may be off numbers of float64


def weight_formula(weights: Sequence[Any], keys: int | str = "m") -> WeightFormula:
    """The weights that steering to these `weights` gives on orthonormal keys, as formulas in β and m.

    The query Σ βᵢkᵢ has logits βᵢ: β + log(s·wanted) on the s wanted keys, 0 on all others. `keys` is their
    number, or a letter for it; weights that are left out are 0. Every formula is the softmax of these logits,
    worked out by sympy, and compared with numbers before it is given.

    >>> found = weight_formula(["1/2", "1/2"])
    >>> share_text(found.weights[0]), share_text(found.leak)
    ('e^β/(2e^β + m - 2)', '(m - 2)/(2e^β + m - 2)')
    """
    wanted = tuple(exact(weight) for weight in weights)
    total = total_of(wanted)
    if any(weight.is_negative for weight in wanted) or total != 1:
        raise DomainError(f"the weights are at least 0 and sum to 1; these sum to {format_exact(total)}")
    size = _number_of_keys(keys, len(wanted))
    formula = WeightFormula(wanted, size, *shares(wanted, size))
    formula.check()
    return formula


def _number_of_keys(keys: int | str, least: int) -> Any:
    if isinstance(keys, int):
        if keys < least:
            raise DomainError(f"there are {least} weights for {many(keys, 'key')}; give at most {keys}")
        return exact(keys)
    if not keys.isidentifier() or keys in ("β", "ε", "e"):
        raise NamingError(f'the number of keys is a whole number or a letter such as m, not "{keys}"')
    return letter(keys)


@dataclass(frozen=True, eq=False, repr=False)
class WeightFormula(Printed):
    """Formulas of sympy in `β` and in the number of `keys`, a number or a symbol.

    `weights` are those of the keys that were named, `other` is that of each further key, and `leak` what all
    keys that are not wanted get together.
    """

    wanted: tuple[Any, ...]
    keys: Any
    weights: tuple[Any, ...]
    other: Any
    leak: Any

    @property
    def many(self) -> int:
        """How many keys are wanted."""
        return sum(weight != 0 for weight in self.wanted)

    @property
    def _all(self) -> tuple[Any, ...]:
        return (*self.weights, self.other, self.leak)

    def numbers(self, sharpness: float, keys: int) -> list[float]:
        """The weights of the named keys, then that of another, then the leak, at these numbers.

        >>> [round(x, 4) for x in weight_formula([1]).numbers(5.0, keys=4)]  # e⁵/(e⁵ + 3), 1/(e⁵ + 3), 3/(…)
        [0.9802, 0.0066, 0.0198]
        """
        return share_numbers(self._all, self.keys, sharpness, keys)

    def check(self) -> None:
        """Raises where a formula is not the softmax of numbers, or the leak not what is left."""
        least = len(self.wanted)
        sizes = [int(self.keys)] if self.keys.is_Integer else [least, least + 1, least + 96]
        wanted = np.array([float(weight) for weight in self.wanted])
        used = wanted > 0
        for size, beta in itertools.product(sizes, CHECKED_AT):
            logits = np.zeros(size)
            logits[:least][used] = beta + np.log(self.many * wanted[used])
            right = softmax(logits)
            other = 1 / np.exp(logits).sum()
            leak = 1 - right[:least][used].sum()
            values = self.numbers(beta, size)
            if not np.allclose(values, [*right[:least], other, leak], rtol=0, atol=OFF):
                raise AssertionError(f"the formulas of {self.wanted} are off at m = {size}, β = {beta}")

    def latex(self) -> list[str]:
        """The weight of each named key, of any other, and the leak."""
        names = [*(rf"\alpha_{{{at}}}" for at in range(len(self.weights))), r"\alpha", r"\mathrm{leak}"]
        return [f"{name} = {share_latex(formula)}" for name, formula in zip(names, self._all, strict=True)]

    def json(self) -> dict[str, Any]:
        """The formulas as texts."""
        return {
            "keys": format_exact(self.keys),
            "wanted": [format_exact(weight) for weight in self.wanted],
            "weights": [share_text(weight) for weight in self.weights],
            "other": share_text(self.other),
            "leak": share_text(self.leak),
            "sharpness": self.sharpness,
            "latex": self.latex(),
        }

    @property
    def sharpness(self) -> str:
        """The sharpness at which the leak is ε, `β = log((m - 2)(1 - ε)/(2ε))`; "" where nothing leaks."""
        if self.keys == self.many:
            return ""
        above, below = f"({format_exact(self.keys - self.many)})", self.many
        if self.keys.is_Integer:
            rest = int(self.keys) - self.many
            common = gcd(rest, self.many)
            above, below = "" if rest == common else str(rest // common), self.many // common
        return f"β = log({above}(1 - ε)/{'ε' if below == 1 else f'({below}ε)'})"

    def report(self) -> Report:
        """The query, the weights, the leak, and where they tend to."""
        used = [at for at, weight in enumerate(self.wanted) if weight != 0]
        rows = [
            (str(at), format_exact(self.wanted[at]), share_text(self.weights[at])) for at in used[:MOST_ROWS]
        ]
        if len(used) > MOST_ROWS:
            rows.append((f"{len(used) - MOST_ROWS:,} more", "", ""))
        logits = f"{self._logits(used)} on {format_keys(used)}"
        facts = [("logits", logits)]
        if self.keys != len(used):
            rows.append(("each other", "0", share_text(self.other)))
            facts = [
                ("logits", f"{logits}; 0 on all others"),
                ("leak", f"{share_text(self.leak)} goes to the others together"),
                ("for leak ε", self.sharpness),
                ("limit", "the wanted weights, as β grows; no β reaches them"),
            ]
        at = ", ".join(map(six_digits, CHECKED_AT))
        facts.append(("checked", f"against softmax in float64, at β = {at}"))
        title = f"{format_exact(self.keys)} orthonormal keys, steered to {format_keys(used)}"
        return Report(title, [Table(("key", "wanted", "weight"), rows), Facts(facts)], self.json())

    def _logits(self, used: Sequence[int]) -> str:
        return "β" if len({self.wanted[at] for at in used}) == 1 else f"β + log({len(used)}·wanted)"

    __repr__ = Printed.__str__
