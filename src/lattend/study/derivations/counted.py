"""Counted: a line about a rule's pairs is checked against its count, for all sizes at once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lattend.errors import DerivationError
from lattend.study.derivations.argument import Link
from lattend.study.derivations.term import Term

if TYPE_CHECKING:
    from lattend.counts.count import Count


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
        verdict = self.count.claim(link.formula)
        found = verdict.where if verdict.status in ("holds", "holds only where") else ""
        if not found:
            raise DerivationError(f"as the count of {self.rule}: {verdict}")
        if found != link.domain:
            raise DerivationError(
                f"{link.formula} is said to hold where {link.domain}, it holds where {found}"
            )
        return f"proved to be the number of {'keys of a query' if self.per else 'pairs'} where {found}"
