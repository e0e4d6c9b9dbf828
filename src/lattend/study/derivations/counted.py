"""Counted: a line about a rule's pairs is checked against its count, for all sizes at once."""

from __future__ import annotations

from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

from lattend.counts.formula import BigO
from lattend.counts.formula_parser import parse_formula
from lattend.counts.formula_value import value_at
from lattend.counts.terms.term import Term
from lattend.errors import DerivationError
from lattend.study.derivations.draft import Link
from lattend.study.derivations.evaluation import evaluate
from lattend.study.exact.numbers import exact

if TYPE_CHECKING:
    from lattend.counts.count import Count

LARGEST = 5  # number that a size or a parameter takes when two readings are compared


class Counted:
    """A rule's count, of all pairs or per query: every line must be it, exactly where its domain says."""

    def __init__(self, rule: str, per: str | None = None) -> None:
        self.rule, self.per = rule, per

    @cached_property
    def count(self) -> Count:
        from lattend.rules.reader import read_rule

        found = read_rule(self.rule).count(per=self.per, method="closed")
        assert not isinstance(found, int)
        return found

    def check(self, before: Term, link: Link, after: Term) -> str:
        self._check_reading(link.formula, after)
        verdict = self.count.claim(link.formula)
        found = verdict.where if verdict.status in ("holds", "holds only where") else ""
        if not found:
            raise DerivationError(f"as the count of {self.rule}: {verdict}")
        if found != link.domain:
            raise DerivationError(
                f"{link.formula} is said to hold where {link.domain}, it holds where {found}"
            )
        return f"proved to be the number of {'keys of a query' if self.per else 'pairs'} where {found}"

    def _check_reading(self, text: str, shown: Term) -> None:
        """That what is shown is what is claimed: two grammars read the formula, with one value."""
        names = [*self.count.names]
        claimed = parse_formula(text, names)
        if isinstance(claimed, BigO):
            raise DerivationError(f"{text} is a growth rate, not a number of pairs")
        for numbers in product(range(1, LARGEST + 1), repeat=len(names)):
            values = dict(zip(names, numbers, strict=True))
            exactly = {name: exact(number) for name, number in values.items()}
            if exact(value_at(claimed, values)) != evaluate(shown, exactly):
                raise DerivationError(f"{text} is read as two formulas, which differ at {values}")
