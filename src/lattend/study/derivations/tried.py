"""tried: a derivation with some of its lines changed, and a verdict on each line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from lattend.counts.terms.notations import PLAIN
from lattend.counts.terms.term import Term
from lattend.errors import DomainError, LattendError, TextError
from lattend.study.derivations.derivation import DerivedLine
from lattend.study.derivations.draft import Chain, Draft, Link

Verdict = Literal["holds", "refuted", "unread"]
# What a formula of another kind than its line may raise where it is worked out
NO_VALUE = (TypeError, ValueError, IndexError, KeyError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class TriedLine:
    """A line as it was typed, and what became of it.

    `line` is None where it was not read; then `place` has the characters that the words speak of. A line
    that holds says how it was checked, a refuted one what both sides are.
    """

    text: str
    line: DerivedLine | None
    verdict: Verdict
    said: str
    place: tuple[int, int] = (0, 0)


def tried(draft: Draft, changes: Mapping[int, str] | None = None) -> list[TriedLine]:
    """Every line of the draft, those in `changes` by number from 1 with other right sides.

    A line is judged as it follows from the one before, so that a wrong line refutes itself and, where the
    next one was right, the next.

    >>> from lattend.study.derivations.catalogue import draft
    >>> [line.verdict for line in tried(draft("causal")(), {6: "n (n - 1)/2"})][-2:]
    ['holds', 'refuted']
    """
    changed = dict(changes or {})
    total = sum(len(chain.links) for chain in draft.chains)
    for number in changed:
        if not 1 <= number <= total:
            raise DomainError(f"{draft.name} has lines 1 to {total}, and no {number}")
    lines: list[TriedLine] = []
    for chain in draft.chains:
        before = draft.read(chain.left)
        for index, link in enumerate(chain.links):
            text = changed.get(len(lines) + 1, link.formula)
            left = None if index else draft.read(chain.left)
            lines.append(_tried(draft, chain, left, before, replace(link, formula=text)))
            line = lines[-1].line
            before = before if line is None else line.right
    return lines


def _tried(draft: Draft, chain: Chain, left: Term | None, before: Term, link: Link) -> TriedLine:
    text = link.formula
    try:
        after = draft.read(text)
    except TextError as error:
        return TriedLine(text, None, "unread", error.message, (error.start, error.end))
    line = DerivedLine(left, link.relation, after, link.reason, "", link.domain)
    try:
        how = chain.ground.check(before, link, after)
    except TextError as error:
        return TriedLine(text, line, "refuted", error.message, (error.start, error.end))
    except LattendError as error:
        return TriedLine(text, line, "refuted", str(error))
    except NO_VALUE:
        no_value = f"{PLAIN.write(after)} has no value of the kind that this line is of"
        return TriedLine(text, line, "refuted", no_value)
    return TriedLine(text, replace(line, checked=how), "holds", how)
