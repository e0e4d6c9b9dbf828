"""CanonicalForm: the condition that represents a set of pairs, however its rule was written."""

from __future__ import annotations

from dataclasses import dataclass

from lattend.rules.language.expr import Condition


@dataclass(frozen=True)
class CanonicalForm:
    """A condition that describes the set; `as_written` is the reason if no canonical one was derived.

    `rows` describes it too, with one interval of keys for each query where that is possible, and `columns`
    with one of queries for each key: `k <= max(q, 2999)` rather than `k <= 2999 or k <= q`.
    """

    condition: Condition
    rows: Condition
    columns: Condition
    as_written: str = ""

    @staticmethod
    def given_up(condition: Condition, reason: str) -> CanonicalForm:
        """Returns the condition as it was written, with the reason."""
        return CanonicalForm(condition, condition, condition, reason)
