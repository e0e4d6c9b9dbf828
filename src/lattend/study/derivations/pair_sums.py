"""The numbers of pairs of causal, strided and windowed attention as sums, checked for all sizes."""

from __future__ import annotations

from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

from lattend.counts.formula import BigO, value_at
from lattend.counts.formula_parser import parse_formula
from lattend.counts.terms.term import Term
from lattend.errors import DerivationError
from lattend.study.derivations.draft import Chain, Draft, Link
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

        counted = read_rule(self.rule).count(per=self.per, method="closed")
        assert not isinstance(counted, int)
        return counted

    def check(self, before: Term, link: Link, after: Term) -> str:
        self._check_reading(link.formula, after)
        verdict = self.count.claim(link.formula)
        condition = verdict.where if verdict.status in ("holds", "holds only where") else ""
        if not condition:
            raise DerivationError(f"as the count of {self.rule}: {verdict}")
        if condition != link.domain:
            raise DerivationError(
                f"{link.formula} is said to hold where {link.domain}, it holds where {condition}"
            )
        return f"proved to be the number of {'keys of a query' if self.per else 'pairs'} where {condition}"

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


LETTERS = "n tokens; queries q from 0; query q attends to K_q keys, and there are N pairs in all"


def causal() -> Draft:
    """N = n(n + 1)/2: query q attends to every key up to its own."""
    every = "n >= 0"
    keys = [Link("q + 1", "the query itself and the q positions before it", domain=every)]
    pairs = [
        Link("sum(q + 1, q, 0, n - 1)", "the keys of all queries", domain=every),
        Link("sum(i, i, 1, n)", "i = q + 1: counted from 1, token i attends to i keys", domain=every),
        Link(
            "(sum(i, i, 1, n) + sum(n + 1 - i, i, 1, n))/2",
            "half of the sum forwards and the sum backwards",
            domain=every,
        ),
        Link("sum(n + 1, i, 1, n)/2", "term by term, i and n + 1 − i make n + 1", domain=every),
        Link("n (n + 1)/2", "n equal terms", domain=every),
    ]
    return Draft(
        "causal",
        "The pairs of causal attention",
        LETTERS,
        [Chain("K[q]", keys, Counted("causal", "query")), Chain("N", pairs, Counted("causal"))],
    )


def strided() -> Draft:
    """N = (2n − t)(t + 1)/2: query q attends to itself and at most t positions before it."""
    below, up_to = "t < n", "t <= n"
    keys = [
        Link(
            "min(q + 1, t + 1)",
            "the query itself and t before it, or all there are",
            domain="n >= 0 and t >= 0",
        )
    ]
    pairs = [
        Link(
            "sum(q + 1, q, 0, t) + sum(t + 1, q, t + 1, n - 1)",
            "the first t + 1 queries attend to all before them, the others to t + 1 keys",
            domain=below,
        ),
        Link(
            "sum(i, i, 1, t + 1) + sum(t + 1, i, t + 2, n)",
            "i = q + 1; the bracket belongs to the sum: every term is t + 1",
            domain=below,
        ),
        Link(
            "(t + 1)(t + 2)/2 + (n - t - 1)(t + 1)",
            "the sum of the first t + 1 numbers, and n − t − 1 equal terms",
            domain=up_to,
        ),
        Link("(t + 1)(t + 2 + 2 (n - t - 1))/2", "t + 1 is in both", domain=up_to),
        Link("(2n - t)(t + 1)/2", "t + 2 + 2n − 2t − 2 = 2n − t", domain=up_to),
        Link("n t + n - t^2/2 - t/2", "multiplied out", domain=up_to),
        Link("sum(i, i, n - t, n)", "t + 1 numbers whose mean is (2n − t)/2", domain=up_to),
    ]
    return Draft(
        "strided",
        "The pairs of strided attention: at most t positions before, and itself",
        LETTERS,
        [Chain("K[q]", keys, Counted("strided", "query")), Chain("N", pairs, Counted("strided"))],
        remark="Where t > n, more previous positions than tokens, all is causal and N = n(n + 1)/2.",
    )


def windowed() -> Draft:
    """N = n(w + 1)/2 where w divides n: causal inside windows of w."""
    every = "n >= 0 and w >= 1"
    keys = [Link("(q % w) + 1", "the query itself and those before it in its window", domain=every)]
    pairs = [
        Link(
            "sum(sum(i, i, 1, w), j, 1, n // w) + sum(i, i, 1, n % w)",
            "the whole windows, and the remainder",
            domain=every,
        ),
        Link(
            "(n // w) (w (w + 1)/2) + (n % w)((n % w) + 1)/2",
            "each is causal attention of its own",
            domain=every,
        ),
        Link("n (w + 1)/2", "where no remainder is left, n/w windows", domain="w divides n"),
    ]
    return Draft(
        "windowed",
        "The pairs of windowed attention: causal inside windows of w",
        LETTERS,
        [Chain("K[q]", keys, Counted("windowed", "query")), Chain("N", pairs, Counted("windowed"))],
    )
